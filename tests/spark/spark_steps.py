"""The steps that Spark takes with source and sinks, taken by a test.

No Spark runs here: what Spark would call is called, and a driver that dies is a reader that is
dropped with its connection.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock
from penstock.spark.base import options
from penstock.spark.base.schema import MESSAGE, struct_type
from penstock.spark.sink.stream_writer import StreamWriter
from penstock.spark.sink.writer import BatchWriter
from penstock.spark.source.partitions import Slice
from penstock.spark.source.stream import StreamReader

START = {"unit": 0}


class Bench:
    """One queue manager with the queues IN and OUT."""

    def __init__(self, qm: penstock.QueueManager, home: Path) -> None:
        self.qm = qm
        self.base = {"queueManager": "QM1", "home": str(home)}
        self.source = qm.queue("IN")
        self.target = qm.queue("OUT")

    def fill(self, first: int, last: int, **fields: Any) -> list[bytes]:
        made = [b"%04d" % number for number in range(first, last)]
        self.source.put_batch(made, **{"persistent": True, **fields})
        return made

    def reader(self, **given: str) -> StreamReader:
        read = options.parse({**self.base, "queue": "IN", **given}, options.STREAM)
        return StreamReader(read, struct_type(MESSAGE))

    def left(self) -> list[bytes]:
        return [message.data for message in self.source.browse()]


def plan(reader: StreamReader, start: dict[str, Any]) -> dict[str, Any]:
    return reader.latestOffset(start, reader.getDefaultReadLimit())


def rows(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[bytes]:
    found = []
    for part in reader.partitions(start, end):
        assert isinstance(part, Slice)
        for batch in reader.read(part):
            found += batch.column("body").to_pylist()
    return found


class Task:
    """A TaskContext."""

    def __init__(self, query: str, batch: int, partition: int) -> None:
        self.local = {"sql.streaming.queryId": query, "streaming.sql.batchId": str(batch)}
        self.partition = partition

    def getLocalProperty(self, name: str) -> str:
        return self.local[name]

    def partitionId(self) -> int:
        return self.partition

    def taskAttemptId(self) -> int:
        return 100 + self.partition


Put = Callable[..., Any]
TEXT = {"value": "string"}


def stream_writer(
    bench: Bench, columns: dict[str, str] = TEXT, queue: str = "OUT", **given: str
) -> StreamWriter:
    read = options.parse({**bench.base, "queue": queue, **given}, options.SINK)
    return StreamWriter(read, struct_type(columns))


def batch_writer(bench: Bench, columns: dict[str, str], **given: str) -> BatchWriter:
    return BatchWriter(options.parse({**bench.base, **given}, options.WRITE), struct_type(columns))

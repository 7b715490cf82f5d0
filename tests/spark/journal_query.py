"""The steps of a streaming query over the journal, taken by a test without Spark.

The offset log and the commit log are lists. A driver that dies is a reader that is dropped; the
next one finds the logs as they are.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

from spark_fixture import NOWHERE

import penstock
from penstock.spark.base.schema import struct_type
from penstock.spark.datasource import PenstockDataSource
from penstock.spark.source.journal_records import columns

LINEAR = {"segment_size": 128 << 10, "journal_limit": 1 << 20, "ring_size": 1 << 18}
DEATHS = ("planned", "logged", "sliced", "read")
Row = tuple[int, int, str, str, int, int, bytes | None]


class Query:
    """A query with its checkpoint. rows: of the micro-batches that are done, in order."""

    def __init__(self, home: Path, endpoint: str | None = None, **given: str) -> None:
        """Reads the files of a home, or, as on another host, through a server."""
        if endpoint is not None:
            given = {"endpoint": endpoint, **given}
            home = NOWHERE
        self.given = {"queueManager": "QM1", "home": str(home), "mode": "journal", **given}
        self.log: list[dict[str, Any]] = []
        self.done: list[list[dict[str, Any]]] = []
        self.reader = self.new_reader()

    def new_reader(self) -> Any:
        maker = PenstockDataSource(self.given)
        return maker.streamReader(struct_type(columns()))

    def die(self) -> None:
        self.reader.stop()
        self.reader = self.new_reader()

    def begin(self) -> dict[str, Any]:
        """The start of the micro-batch that is not done."""
        number = len(self.done)
        return self.log[number - 1] if number else self.again(self.reader.initialOffset())

    def again(self, offset: dict[str, Any]) -> dict[str, Any]:
        """As the log gives it back."""
        found: dict[str, Any] = json.loads(json.dumps(offset))
        return found

    def trigger(self, death: str = "") -> int | None:
        """One micro-batch; its rows, or None when there was nothing to do or the driver died."""
        start = self.begin()
        if len(self.log) == len(self.done):
            limit = self.reader.getDefaultReadLimit()
            end = self.again(self.reader.latestOffset(start, limit))
            if end == start:
                return None
            if death == "planned":
                return self.die()
            self.log.append(end)
            if death == "logged":
                return self.die()
        parts = self.reader.partitions(start, self.log[-1])
        task = pickle.loads(pickle.dumps(self.reader))
        if death == "sliced":
            return self.die()
        rows = [
            row
            for part in parts
            for batch in task.read(pickle.loads(pickle.dumps(part)))
            for row in batch.to_pylist()
        ]
        if death == "read":
            return self.die()
        self.done.append(rows)
        return len(rows)

    def run(self) -> None:
        """Until there is nothing more."""
        while self.trigger() is not None:
            pass

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for batch in self.done for row in batch]

    @property
    def bodies(self) -> list[bytes | None]:
        return [row["body"] for row in self.rows]


def decided(row: dict[str, Any]) -> Row:
    """As the model names its fields."""
    return (
        row["commit_lsn"], row["lsn"], row["event"], row["queue"] or "", row["identity"],
        row["unit_id"], row["body"],
    )  # fmt: skip


def linear(home: Path, name: str = "QM1", **settings: int) -> penstock.QueueManager:
    """A new queue manager that keeps its journal, in small segments, with a few queues."""
    penstock.create(name, home, logging="linear", **{**LINEAR, **settings})
    qm = penstock.connect(name, home)
    for queue in ("ORDERS", "OTHER", "Q"):
        qm.define("QLOCAL", queue, defpsist=True)
    return qm

"""Data sources that cost Spark nothing but their rows, to compare ``format("penstock")`` with.

*constant* yields one Arrow record batch again and again, in the columns of a penstock source. It is
what Spark can take from any Python source of that shape. *discard* counts its rows and drops them:
what any Python sink must pay for.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from penstock.spark.base.schema import MESSAGE, arrow_schema, struct_type

BATCH = 10_000  # rows of a record batch

_SAMPLE: dict[str, Any] = {
    "queue": "BENCH",
    "msg_id": b"i" * 24,
    "correl_id": b"c" * 24,
    "msg_seq_number": 1,
    "sequence": 1 << 40,
    "lsn": 1 << 30,
    "priority": 4,
    "persistent": True,
    "put_time": 1_700_000_000_000_000,
    "format": "",
    "ccsid": 1208,
    "encoding": 546,
    "msg_type": 8,
    "reply_to_q": "",
    "reply_to_qmgr": "",
    "user_identifier": "bench",
    "put_appl_name": "bench",
    "backout_count": 0,
}


@functools.cache  # a worker makes it once
def constant_batch(schema: StructType, size: int, rows: int) -> pa.RecordBatch:
    """A record batch of equal rows; columns that a sample lacks are null."""
    values = {**_SAMPLE, "body": b"m" * size}
    wanted = arrow_schema(schema)
    arrays = [pa.array([values.get(field.name)] * rows, field.type) for field in wanted]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


class _Rows(InputPartition):
    def __init__(self, rows: int) -> None:
        super().__init__(None)
        self.rows = rows


class _Shape:
    """The common part of both readers of the constant source."""

    def __init__(self, options: Any, schema: StructType) -> None:
        self.rows = int(options["rows"])
        self.size = int(options["size"])
        self.split = int(options["partitions"])
        self.schema = schema

    def shares(self) -> list[_Rows]:
        share = -(-self.rows // self.split)
        return [_Rows(min(share, self.rows - begin)) for begin in range(0, self.rows, share)]

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        whole = constant_batch(self.schema, self.size, min(BATCH, rows))
        for begin in range(0, rows, BATCH):
            yield whole.slice(0, min(BATCH, rows - begin))


class _ConstantReader(DataSourceReader, _Shape):
    def __init__(self, options: Any, schema: StructType) -> None:
        _Shape.__init__(self, options, schema)

    def partitions(self) -> Sequence[InputPartition]:
        return self.shares()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Rows)
        return self.batches(partition.rows)


class _ConstantStream(DataSourceStreamReader, SupportsTriggerAvailableNow, _Shape):
    """All rows in as many micro-batches as the option triggers, then no more."""

    def __init__(self, options: Any, schema: StructType) -> None:
        _Shape.__init__(self, options, schema)
        self.last = int(options.get("triggers", "1"))
        self.rows //= self.last

    def initialOffset(self) -> dict[str, int]:
        return {"batch": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        """There is never more."""

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        return {"batch": min(self.last, start["batch"] + 1)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return self.shares() if start != end else []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Rows)
        return self.batches(partition.rows)


class ConstantSource(DataSource):
    """``constant``: options rows, size (of a body), partitions, triggers (of a stream)."""

    @classmethod
    def name(cls) -> str:
        """``constant``."""
        return "constant"

    def schema(self) -> StructType:
        """That of a penstock source."""
        return struct_type(MESSAGE)

    def reader(self, schema: StructType) -> DataSourceReader:
        """All rows."""
        return _ConstantReader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """All rows as one micro-batch."""
        return _ConstantStream(self.options, schema)


class _Counted(WriterCommitMessage):
    def __init__(self, rows: int) -> None:
        self.rows = rows


class _Discard:
    def __init__(self, options: Any) -> None:
        self.expected = int(options["rows"])

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _Counted(sum(batch.num_rows for batch in iterator))

    def check(self, messages: Sequence[Any]) -> None:
        found = sum(message.rows for message in messages if message is not None)
        if found not in (0, self.expected):  # 0: a micro-batch without data
            raise AssertionError(f"{found} rows came, not {self.expected}")


class _DiscardWriter(_Discard, DataSourceArrowWriter):
    def commit(self, messages: Any) -> None:
        self.check(messages)


class _DiscardStream(_Discard, DataSourceStreamArrowWriter):
    def commit(self, messages: Any, batchId: int) -> None:
        self.check(messages)


class DiscardSink(DataSource):
    """``discard``: option rows, the number that must come."""

    @classmethod
    def name(cls) -> str:
        """``discard``."""
        return "discard"

    def writer(self, schema: StructType, overwrite: bool) -> _DiscardWriter:
        """Counts."""
        return _DiscardWriter(self.options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> _DiscardStream:
        """Counts each micro-batch."""
        return _DiscardStream(self.options)

"""Sinks whose rows go through the driver: a task reports its rows, and the driver puts them before
it commits them all.

What is wrong with a row is found there, and fails the write. When the driver dies in between, what
it had prepared is backed out by the end of the write that is repeated (sink/ending.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from ..base.connection import connected
from ..sink.writer import Sink
from ..sink.written import Run, Task, Written
from .rows import Room, packed, unpacked

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ..base.options import Options

__all__ = ["RelayedBatchWriter", "RelayedSink"]


class RelayedTask(WriterCommitMessage):
    """The rows of a task."""

    def __init__(self, text: bytes, run: Run, task: Task) -> None:
        self.text, self.run, self.task = text, run, task


class RelayedSink:
    """The common part of both sinks."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises SchemaError for columns that cannot be put."""
        self.sink = Sink(options, schema)

    def put(self, rows: Iterator[Any], run: Run) -> RelayedTask:
        """In a task. Raises SourceError: it has too many rows."""
        room = Room("a task", "repartition() makes more tasks, or use penstock serve (endpoint)")
        return RelayedTask(packed(rows, room), run, Task.current())

    def end(
        self, messages: Sequence[WriterCommitMessage | None], once: bool, write: str = ""
    ) -> None:
        """On the driver: puts the rows of all tasks and commits them. Raises SourceError: nothing
        of them was put.
        """
        tasks = [one for one in messages if isinstance(one, RelayedTask)]
        written: list[Written] = []
        try:
            with connected(self.sink.options) as qm:
                for one in tasks:
                    rows = unpacked(one.text)
                    written.append(self.sink.put_into(qm, rows, one.run, one.task))
                self.sink.end(written, once, write)
        except BaseException:
            self.sink.drop(written)
            raise


class RelayedBatchWriter(DataSourceArrowWriter):
    """The batch sink."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises SchemaError for columns, and SourceError for a queue, that cannot be written."""
        self._relayed = RelayedSink(options, schema)
        with connected(options) as qm:
            self._relayed.sink.check(qm)
        self._once = options["txnAppId"] is not None
        self._run = Run.of(options)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """In a task."""
        return self._relayed.put(iterator, self._run)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver: all of it becomes visible."""
        self._relayed.end(messages, self._once, self._run.write)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver: nothing of it does."""
        self._relayed.sink.drop([], self._run)

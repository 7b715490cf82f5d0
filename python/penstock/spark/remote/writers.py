"""Sinks into a queue manager on another host. A task sends its rows in pieces, each of which is put
and prepared once it has arrived; a task on the queue manager's host puts them itself (place.py).

A piece is sent once. When the connection is lost, nobody knows here what became of it: the task
fails, Spark repeats it under another attempt, and what the earlier one has left is backed out at
the end of the write (sink/ending.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from ..base.errors import SourceError
from ..sink.writer import Sink
from ..sink.written import Run, Task, Written
from . import protocol
from .place import Place

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ..base.options import Options

__all__ = ["RemoteBatchWriter", "RemoteSink"]

_PIECE = 8 << 20  # bytes of rows, about


class RemoteSink:
    """The common part of both sinks."""

    def __init__(
        self, use: str, options: Options, given: Mapping[str, str], schema: StructType
    ) -> None:
        """Raises SchemaError for columns that cannot be put."""
        self._here = Sink(options, schema)
        self.place = Place(use, options, given, schema)

    def put(self, rows: Iterator[Any], run: Run) -> Written:
        """Puts a task's record batches into prepared units. Raises SourceError."""
        task = Task.current()
        with self.place.attached() as qm:
            if qm is not None:
                return self._here.put_into(qm, rows, run, task)
        try:
            return _sent(self.place, rows, run, task)
        finally:
            self.place.close()

    def end(
        self, messages: Sequence[WriterCommitMessage | None], once: bool, run: Run | None = None
    ) -> None:
        """Commits what the tasks prepared."""
        written = [one for one in messages if isinstance(one, Written)]
        if written:
            own = run or Run(written[0].sink, written[0].version, written[0].sink)
            sent = [protocol.written_json(one) for one in written]
            self._called("end", written=sent, once=once, run=list(own))

    def drop(self, messages: Sequence[WriterCommitMessage | None], run: Run | None = None) -> None:
        """Backs out what the tasks prepared; only warns when it cannot, as Sink.drop() does."""
        written = [protocol.written_json(one) for one in messages if isinstance(one, Written)]
        if not written and run is None:
            return
        try:
            self._called("drop", written=written, run=None if run is None else list(run))
        except SourceError as error:
            text = "units of work of a batch that failed may be left prepared, `penstock resolve` "
            warnings.warn(f"{text}shows them: {error}", RuntimeWarning, stacklevel=2)

    def _called(self, name: str, **fields: Any) -> None:
        try:
            self.place.call(name, **fields)
        finally:
            self.place.close()


class RemoteBatchWriter(DataSourceArrowWriter):
    """The batch sink."""

    def __init__(self, options: Options, given: Mapping[str, str], schema: StructType) -> None:
        """Raises SchemaError for columns, and SourceError for a queue, that cannot be written."""
        self._sink = RemoteSink("write", options, given, schema)
        self._once = options["txnAppId"] is not None
        self._run = Run.of(options)
        try:
            self._sink.place.find()
            self._sink.place.call("check")
        finally:
            self._sink.place.close()

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """In a task."""
        return self._sink.put(iterator, self._run)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver: all of it becomes visible."""
        self._sink.end(messages, self._once, self._run)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver: nothing of it does."""
        self._sink.drop(messages, self._run)


def _sent(place: Place, rows: Iterator[Any], run: Run, task: Task) -> Written:
    """Sends rows; while a piece is put, the next one is taken from Spark."""
    sending = _Sending(place, run, task)
    pending: Future[None] | None = None
    with ThreadPoolExecutor(1, "penstock-sink") as thread:
        for piece in _pieces(rows):
            if pending is not None:
                pending.result()
            pending = thread.submit(sending.send, piece)
        if pending is not None:
            pending.result()
    if pending is None:
        place.call("check")  # also where there are no rows
    return sending.written


class _Sending:
    """What the server has put of a task's rows."""

    def __init__(self, place: Place, run: Run, task: Task) -> None:
        self._place, self._run, self._task = place, run, task
        self._rows = 0
        self.written = Written(run.sink, run.version, task.partition, {}, 0, {})

    def send(self, piece: Any) -> None:
        """Sends a table. Raises SourceError."""
        done = self.written
        task = self._task._replace(units=len(done.counts), rows=self._rows)
        found = protocol.written_from(
            self._place.write(piece, run=list(self._run), task=list(task))
        )
        self._rows += piece.num_rows
        done.counts |= found.counts
        done.warnings += found.warnings
        for reason, count in found.dead.items():
            done.dead[reason] = done.dead.get(reason, 0) + count


def _pieces(rows: Iterator[Any]) -> Iterator[Any]:
    """Tables of about _PIECE bytes."""
    import pyarrow as pa

    some: list[Any] = []
    size = 0
    for batch in rows:
        at = 0
        while at < batch.num_rows:
            fit = max(1, batch.num_rows * (_PIECE - size) // max(1, batch.nbytes))
            part = batch.slice(at, fit)
            at += part.num_rows
            some.append(part)
            size += part.nbytes
            if size >= _PIECE * 7 // 8:
                yield pa.Table.from_batches(some)
                some, size = [], 0
    if some:
        yield pa.Table.from_batches(some)

"""The sinks: rows are put as messages, all of a batch or none.

Each task puts its rows into units of work that it prepares under unique names (units.py), makes
durable together at its end, and reports to the driver; a unit holds at most MAXUMSGS messages.
Messages of a task keep its order; those of several tasks are on the queue in the order in which
they were put, as in MQ. The driver commits the units of all tasks in one atomic call. For a sink
that can receive a batch twice, the same call commits the unit that replaces the sink's entry in the
ledger (ledger.py): a batch whose version is in the ledger is not written again, its units are
backed out. At the end of a write no unit of it stays prepared (ending.py).

==========  ==============================================================================
sink        identity, version
==========  ==============================================================================
streaming   id of the query (in its checkpoint) and id of the batch
batch       options txnAppId and txnVersion; without them a name used once, and no entry
==========  ==============================================================================

States after a crash (WAL, CL: Spark's offset and commit logs):

====================================  =======================  ====================================
killed                                state                    afterwards
====================================  =======================  ====================================
a task, before it prepared            a unit in flight         the queue manager backs it out; Spark
                                                               runs the task again
a task, after a prepare               a prepared unit that     another attempt prepares under
                                      the driver does not      another name; this one is backed out
                                      know                     by the end of the batch
the driver, before its commit         prepared units of the    the batch is written again; its
                                      tasks                    commit backs these out
in commit, before it is decided       the same, perhaps the    the same
                                      ledger's unit
after the commit, before CL           visible, the ledger      the batch is written again; its
                                      has the version          commit finds the version and backs
                                                               the new units out
after CL                              visible                  nothing to do
====================================  =======================  ====================================

A row that cannot be put fails the job, or goes to the queue of the option deadLetterQueue
(dead_letters.py).

A row whose priority is above the queue manager's highest is put with the highest: MQ's warning 2049
(MQRC_PRIORITY_EXCEEDS_MAXIMUM), not an error. The driver reports their number in a Python warning,
once for each batch, on the standard error of the job: Spark commits in a Python process beside its
JVM, with the JVM's standard error. The ledger's entry has the sum over all batches of the sink.

A failed batch write whose end could not be recorded (a full disk), or whose driver was killed, and
that is not repeated, leaves its units prepared: `penstock resolve` shows and resolves them.

Rows are put persistent unless a column or the option persistence says otherwise. Non-persistent
messages of a prepared unit are lost when the queue manager is restarted before the commit, so a
process keeps it running until then (keeper.py). The commit counts the messages of each unit: when
some are missing, it backs out the batch and fails.
"""

from __future__ import annotations

import re
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

import penstock
from penstock._mqi_constants import descriptor as mq
from penstock.constants import ReasonCode

from ..base import acting, host, units
from ..base.connection import connected, open_queue, served
from ..base.errors import DataLoss, SchemaError, SourceError, TooManyUnits
from ..base.ledger import Ledger, ledger
from ..base.options import Options
from ..base.schema import check_write
from . import ending, keeper
from .dead_letters import DeadLetters, is_of_queue, is_of_rows
from .written import Run, Task, Written

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock import Queue, QueueManager, Xid

__all__ = ["BatchWriter", "Sink"]

_MOST_ROWS = 1 << 30
_BATCHES_AHEAD = 2  # of rows, taken from Spark before the ones before them are put
_UNIT_MESSAGES = 50_000  # of one unit at most, however high MAXUMSGS is
_KEYS = ("queue", "msg_id", "correl_id")  # columns that an error shows
_IN_BATCH = re.compile(r", message \d+ of the batch| \(message \d+\)| of message \d+")
_PERSISTENCE = {"persistent": mq.MQPER_PERSISTENT, "queue": mq.MQPER_PERSISTENCE_AS_Q_DEF}


class Sink:
    """The common part of streaming and batch sinks."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises SchemaError for columns that cannot be put."""
        check_write(schema, options["queue"])
        self.options = options
        self.where = host.here()

    def check(self, qm: QueueManager) -> None:
        """Raises MQError when a queue of the options cannot be written."""
        for name in (self.options["queue"], self.options["deadLetterQueue"]):
            if name is not None:
                acting.check(name, "put")
                open_queue(qm, name, "output").close()

    # ---- in a task ----

    def put(self, rows: Iterator[Any], run: Run) -> Written:
        """Puts a task's record batches into prepared units.

        Raises:
            SourceError: The rows cannot be put.
        """
        with served(self.options, self.where) as qm:
            return self.put_into(qm, rows, run, Task.current())

    def put_into(self, qm: QueueManager, rows: Iterator[Any], run: Run, task: Task) -> Written:
        """The same over a connection, in that task."""
        self.check(qm)  # also where there are no rows
        putting = _Putting(qm, self.options, run, task)
        try:
            _put_all(qm, putting, rows)
            if putting.is_volatile:
                keeper.keep(qm, self.options["home"], run.sink, run.version)
            if putting.is_late():
                putting.back_out()
                keeper.release(qm, run.sink, run.version)
        except BaseException:
            putting.back_out()
            raise
        finally:
            putting.close()
        counts = {str(xid): count for xid, count in putting.counts.items()}
        dead = putting.dead.counts if putting.dead is not None else {}
        return Written(run.sink, run.version, task.partition, counts, putting.warnings, dead)

    # ---- on the driver ----

    def end(
        self, messages: Sequence[WriterCommitMessage | None], once: bool, write: str = ""
    ) -> None:
        """Commits what the tasks prepared.

        Args:
            messages: Of all tasks.
            once: Check the ledger whether this version was committed before.
            write: Of a batch sink.
        """
        written = sorted((m for m in messages if isinstance(m, Written)), key=lambda m: m.partition)
        if not written:
            return
        sink, version = written[0].sink, written[0].version
        xids = [xid for one in written for xid in one.xids]
        with connected(self.options) as qm:
            keeper.release(qm, sink, version)
            if len(xids) > units.MOST_UNITS:
                units.back_out(qm, xids)
                raise TooManyUnits(
                    f"the batch has {len(xids)} units of work, {units.MOST_UNITS} can be committed "
                    "at once: raise MAXUMSGS of the queue manager, or write fewer rows a batch"
                )
            with ledger(qm) as book:
                units.back_out(qm, units.ledgers(qm.recover(), units.SINK))  # of killed drivers
                owner = f"sink:{sink}" if once else ending.owner_of(write)
                before = book.read(owner)
                if before is not None and not once:  # this call is repeated
                    ending.check_committed(before)
                elif before is None or before["version"] < version:
                    self._check_complete(qm, written)
                    self._commit(qm, book, owner, before or {}, written)
                self._sweep(qm, book)

    def _check_complete(self, qm: QueueManager, written: list[Written]) -> None:
        """Backs the batch out and raises DataLoss when some of its messages are gone: those that
        are not persistent, in a restart of the queue manager.
        """
        found = {str(status.xid): status.puts for status in qm.prepared_list()}
        counts = {xid: count for one in written for xid, count in one.counts.items()}
        missing = sum(count - found.get(xid, count) for xid, count in counts.items())
        if not missing:
            return
        units.back_out(qm, map(penstock.Xid.parse, counts))
        one = written[0]
        raise DataLoss(
            f"batch {one.version} of sink {one.sink}: {missing} of {sum(counts.values())} messages "
            "are not persistent and were lost when the queue manager ended before the commit; "
            "nothing of the batch was put: write it again, or with the column persistent true"
        )

    def _commit(
        self,
        qm: QueueManager,
        book: Ledger,
        owner: str,
        before: dict[str, Any],
        written: list[Written],
    ) -> None:
        """Commits the units of the tasks with the entry of their owner in the ledger."""
        sink, version = written[0].sink, written[0].version
        record = units.ledger_unit(units.SINK, f"{sink}.{version}")
        sums = {
            "messages": before.get("messages", 0) + sum(one.messages for one in written),
            "warnings": before.get("warnings", 0) + sum(one.warnings for one in written),
        }
        dead = before.get("deadLetters", 0) + sum(sum(one.dead.values()) for one in written)
        if dead:
            sums["deadLetters"] = dead
        kept = None if owner == f"sink:{sink}" else ending.KEPT_SECONDS
        book.prepare(owner, {"version": version, "time": int(time.time()), **sums}, record, kept)
        qm.commit_prepared(*(xid for one in written for xid in one.xids), record)
        self._warn(written)

    def _sweep(self, qm: QueueManager, book: Ledger) -> None:
        """Backs out what is left of writes that have ended; only warns when it cannot."""
        try:
            ending.sweep(qm, book)
        except penstock.MQError as error:
            acting.warn(
                f"queue manager {self.options['queueManager']}: {error}; units of work of writes "
                "that have ended are left prepared until the end of the next write",
                stacklevel=2,
            )

    def _warn(self, written: list[Written]) -> None:
        self._warn_of_dead_letters(written)
        count = sum(one.warnings for one in written)
        if count:
            # Python shows a text once in a process: each batch has a different one
            acting.warn(
                f"queue manager {self.options['queueManager']}, batch {written[0].version} of sink "
                f"{written[0].sink}: {count} of "
                f"{sum(one.messages for one in written)} messages were put with the highest "
                "priority instead of a higher one: MQRC_PRIORITY_EXCEEDS_MAXIMUM (2049)",
                stacklevel=2,
            )

    def _warn_of_dead_letters(self, written: list[Written]) -> None:
        reasons: Counter[int] = Counter()
        for one in written:
            reasons.update(one.dead)
        if reasons:
            text = ", ".join(f"{count} with reason {reason}" for reason, count in reasons.items())
            acting.warn(
                f"queue manager {self.options['queueManager']}, batch {written[0].version} of sink "
                f"{written[0].sink}: {reasons.total()} of {sum(one.messages for one in written)} "
                f"rows could not be put and are on {self.options['deadLetterQueue']}: {text}",
                stacklevel=2,
            )

    def drop(
        self,
        messages: Sequence[WriterCommitMessage | None],
        run: Run | None = None,
    ) -> None:
        """Backs out the units that the tasks prepared; only warns when it cannot.

        With the run of a batch write also the units that tasks have prepared without reporting
        them, and those that they prepare later.

        The batch has failed already, and Spark passes on only the reason of that failure.
        """
        written = [one for one in messages if isinstance(one, Written)]
        xids = [xid for one in written for xid in one.xids]
        try:
            if xids or run is not None:
                with connected(self.options) as qm:
                    for one in written:
                        keeper.release(qm, one.sink, one.version)
                    units.back_out(qm, xids)
                    if run is not None:
                        self._end_failed(qm, *run)
        except SourceError as error:
            first = f"; the first of them is {xids[0]}" if xids else ""
            acting.warn(
                f"units of work of a batch that failed {'are' if xids else 'may be'} left prepared,"
                f" `penstock resolve` shows them: {error}{first}",
                stacklevel=2,
            )

    def _end_failed(self, qm: QueueManager, sink: str, version: int, write: str) -> None:
        """Ends a batch write of which nothing is committed."""
        keeper.release(qm, sink, version)
        with ledger(qm) as book:
            ending.drop(book, write)
            units.back_out(qm, units.of_sink(qm.recover(), sink, version))
            ending.sweep(qm, book)


class BatchWriter(DataSourceArrowWriter):
    """The batch sink."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises SchemaError for columns, and SourceError for a queue, that cannot be written."""
        self.sink = Sink(options, schema)
        with connected(options) as qm:
            self.sink.check(qm)
        self.once = options["txnAppId"] is not None
        self.run = Run.of(options)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """In a task."""
        return self.sink.put(iterator, self.run)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver: all of it becomes visible."""
        self.sink.end(messages, self.once, self.run.write)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver: nothing of it does."""
        self.sink.drop(messages, self.run)


# ---- putting ----


def _put_all(qm: QueueManager, putting: _Putting, rows: Iterator[Any]) -> None:
    """Puts and prepares all rows in a thread, whose units of work they are: while that waits for
    the disk, this one takes rows from Spark.
    """
    pending: deque[Future[None]] = deque()
    put, end = acting.inherited(putting.put), acting.inherited(putting.end)
    with ThreadPoolExecutor(1, "penstock-sink") as thread:
        try:
            for batch in rows:
                if len(pending) == _BATCHES_AHEAD:
                    pending.popleft().result()
                pending.append(thread.submit(put, batch))
            pending.append(thread.submit(end))
            while pending:
                pending.popleft().result()
        except BaseException:
            for future in pending:
                future.cancel()
            thread.submit(qm.backout).result()
            raise


class _Putting:
    """The output of a task: the open unit, and those that are prepared."""

    def __init__(self, qm: QueueManager, options: Options, run: Run, task: Task) -> None:
        self.qm = qm
        self.queue: str | None = options["queue"]  # None: a column names it
        self.persistence = _PERSISTENCE[options["persistence"]]
        self.expiry: float | None = options["expiry"]
        self.run, self.task = run, task
        self.most = min(_UNIT_MESSAGES, int(str(qm.display("QMGR")[0]["maxumsgs"])))
        self.open: dict[str, Queue] = {}
        self.dead: DeadLetters | None = None
        if options["deadLetterQueue"] is not None:
            target = self._open(options["deadLetterQueue"])
            self.dead = DeadLetters(target, self.persistence, self.expiry)
        self.step = _MOST_ROWS  # rows of a put: fewer after one that could not be put
        self.rows = self.before = task.rows  # of the task; before the current record batch
        self.in_unit = 0
        self.counts: dict[Xid, int] = {}  # messages of the units that are prepared
        self.is_volatile = False  # whether a restart would lose messages of them
        self.warnings = 0

    def close(self) -> None:
        """Closes the queues."""
        for queue in self.open.values():
            queue.close()

    def put(self, batch: Any) -> None:
        """Puts the rows of a record batch, in their order for each queue."""
        self.before, self.rows = self.rows, self.rows + batch.num_rows
        if batch.num_rows == 0:
            return
        from penstock.arrow.messages_from_arrow import null_body

        null = null_body(batch)
        if null is not None:
            if self.dead is None:
                raise SchemaError(
                    f"the body of a row is null; it may be empty ({self._row(batch, null)})"
                )
            batch = self._without_null_bodies(batch)
        batch = self._with_headers(batch)
        if self.queue is not None:
            self._put_rows(self._open(self.queue), batch, None)
            return
        import pyarrow.compute as pc

        names = batch.column("queue")
        for name in pc.unique(names).to_pylist():
            chosen = pc.equal(names, name) if name is not None else names.is_null()
            rows = batch.filter(chosen if name is None else pc.fill_null(chosen, False))
            queue = self._queue_of_rows(name, batch, rows, pc.index(chosen, True).as_py())
            if queue is not None:
                self._put_rows(queue, rows, pc.indices_nonzero(chosen))

    def _queue_of_rows(self, name: str | None, batch: Any, rows: Any, first: int) -> Queue | None:
        """The queue that rows name; None: there is none, and they are on the dead-letter queue."""
        if name is None and self.dead is None:
            raise SchemaError(
                f"a queue is null, and there is no option queue ({self._row(batch, first)})"
            )
        try:
            if name is not None:
                return self._open(name)
            reason = int(ReasonCode.OBJECT_NAME_ERROR)
        except penstock.MQError as error:
            if self.dead is None or not is_of_queue(error):
                at = self._row(batch, first)
                raise SourceError(f"queue {name} of a row: {error} ({at})") from error
            reason = error.reason
        self._put_dead(rows, reason, name or "")
        return None

    def _without_null_bodies(self, batch: Any) -> Any:
        """The other rows; those go to the dead-letter queue, with empty bodies."""
        import pyarrow.compute as pc

        from penstock.arrow.messages_from_arrow import null_bodies

        null = null_bodies(batch)
        self._put_dead(batch.filter(null), ReasonCode.BUFFER_ERROR, self.queue)
        return batch.filter(pc.invert(null))

    def _with_headers(self, batch: Any) -> Any:
        """with_headers(); rows whose properties cannot be stored go to the dead-letter queue."""
        from penstock.arrow.messages_from_arrow import with_headers

        while True:
            try:
                return with_headers(batch)
            except penstock.MQError as error:
                if self.dead is None or error.index is None:
                    with self._named(batch):
                        raise
                index, reason = error.index, error.reason
            self._put_dead(batch.slice(index, 1), reason, self.queue)
            kept = [n for n in range(batch.num_rows) if n != index]
            batch = batch.take(kept)

    def _put_dead(self, rows: Any, reason: int, name: str | None) -> None:
        """Puts rows on the dead-letter queue; ``name``: their queue, None: a column has it."""
        assert self.dead is not None
        rows = rows.select([column for column in rows.schema.names if column != "properties"])
        at = 0
        while at < rows.num_rows:
            if self.in_unit == self.most:
                self.prepare()
            part = rows.slice(at, self.most - self.in_unit if name is not None else 1)
            own = name if name is not None else part.column("queue")[0].as_py()
            self.dead.put(part, reason, own or "")
            at += part.num_rows
            self.in_unit += part.num_rows

    def _put_rows(self, queue: Queue, rows: Any, numbers: Any) -> None:
        """Puts rows; ``numbers``: their numbers in the record batch, None: from 0."""
        at = 0
        while at < rows.num_rows:
            if self.in_unit == self.most:
                self.prepare()
            part = rows.slice(at, min(self.most - self.in_unit, self.step))
            at += self._put_part(queue, part, at, numbers)

    def _put_part(self, queue: Queue, part: Any, at: int, numbers: Any) -> int:
        """Puts rows, all or some of the first ones; returns how many of them are done."""
        from penstock.arrow.messages_from_arrow import bodies, fields

        try:
            given = fields(part, self.persistence, self.expiry)
            result = queue.put_batch(bodies(part), syncpoint=True, **given)
        except penstock.MQError as error:
            if self.dead is None or not is_of_rows(error):
                with self._named(part, at, numbers):
                    raise
            return self._put_others(queue, part, error)
        self.in_unit += part.num_rows
        self.warnings += result.warnings
        self.step = min(2 * self.step, _MOST_ROWS)
        return int(part.num_rows)

    def _put_others(self, queue: Queue, part: Any, error: penstock.MQError) -> int:
        """After an error of rows: as _put_part()."""
        if error.count:  # those before it took effect
            self.in_unit += error.count
            return int(error.count)
        if is_of_queue(error):
            self._put_dead(part, error.reason, queue.name)
            return int(part.num_rows)
        if part.num_rows == 1 or error.index == 0:
            self._put_dead(part.slice(0, 1), error.reason, queue.name)
            self.step = 1
            return 1
        self.step = error.index if error.index else part.num_rows // 2
        return 0  # fewer are tried next

    @contextmanager
    def _named(self, batch: Any, first: int = 0, numbers: Any = None) -> Iterator[None]:
        """Names the row in the text of an error.

        Args:
            batch: Rows that are put.
            first: Number of the first one among those that are put together.
            numbers: Of these in the record batch; None: the same.
        """
        try:
            yield
        except penstock.MQError as error:
            if error.index is None:
                raise
            number = first + error.index
            if numbers is not None:
                number = numbers[number].as_py()
            row = self._row(batch, error.index, number)
            text = _IN_BATCH.sub("", error.text, count=1)
            raise type(error)(error.reason, f"{text} ({row})") from error

    def _row(self, batch: Any, index: int, number: int | None = None) -> str:
        """A row as a user finds it; ``number``: in the record batch, None: ``index``."""
        number = self.before + (index if number is None else number)
        keys = "".join(
            f", {name} {batch.column(name)[index].as_py()!r:.80}"
            for name in _KEYS
            if name in batch.schema.names and batch.column(name)[index].is_valid
        )
        return f"row {number} of partition {self.task.partition}{keys}"

    def prepare(self) -> None:
        """Ends the open unit, if it has messages."""
        if self.in_unit == 0:
            return
        sink, version, write = self.run
        nth = self.task.units + len(self.counts)
        xid = units.task_unit(sink, version, self.task.partition, self.task.attempt, nth, write)
        self.qm.prepare(xid, wait=False)
        self.counts[xid] = self.in_unit
        self.in_unit = 0

    def end(self) -> None:
        """Prepares the open unit; makes all units durable."""
        self.prepare()
        if self.counts:
            listed = self.qm.prepared_list()  # makes the listed units durable
            self.is_volatile = any(one.nonpersistent for one in listed if one.xid in self.counts)

    def is_late(self) -> bool:
        """Whether the write has ended: nobody commits the prepared units any more."""
        return bool(self.counts) and ending.has_ended(self.qm, next(iter(self.counts)))

    def back_out(self) -> None:
        """Backs out the prepared units."""
        units.back_out(self.qm, self.counts)
        self.counts = {}

    def _open(self, name: str) -> Queue:
        if name not in self.open:
            acting.check(name, "put")
            self.open[name] = open_queue(self.qm, name, "output")
        return self.open[name]

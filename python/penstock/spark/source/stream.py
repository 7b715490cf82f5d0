"""The streaming source.

A micro-batch is one or more *prepared units of work* for each of the stream's queues (queues.py)
that has messages, with these in delivery order. Its offset is the number of the micro-batch, with
the number of the units of each queue (taking.py):

    {"queue": "ORDERS", "stream": "5f1c...", "unit": 12, "parts": {"ORDERS": 1}}

``latestOffset`` checks whether there is a message to take. Spark writes the returned offset to its
write-ahead log, plans the query, and only then calls ``partitions``, which must have taken the
messages and prepared the units durably under names derived from the offset. So every offset that
Spark knows is either not taken yet, or durable under its name; a unit is prepared even when other
programs have emptied the queue. A micro-batch that is planned again finds its units by name: always
the same rows. Messages leave the queue when the micro-batch is committed: by ``commit``, or
earlier, when Spark asks for the next offset. The ledger (ledger.py) records the number in the same
atomic commit.

A background thread (background.py) takes and commits while Spark writes and plans: from the second
micro-batch on, ``latestOffset`` starts the taking at once, and ``partitions`` waits for it. Units
that were taken before Spark logged the offset keep their name over a crash, because the log knows
the stream and the previous number: the next ``latestOffset`` of the stream finds them and returns
their number again. Nothing is taken ahead for the first micro-batch, whose stream no log knows yet.

States after a crash (WAL: Spark's offset log; CL: its commit log):

====================================  =======================  ====================================
killed                                state                    afterwards
====================================  =======================  ====================================
before latestOffset                   nothing taken            no effect
after latestOffset, before the WAL    nothing taken, or parts  the number is returned again, for
                                      of n are prepared        the prepared parts, if any
after the WAL, before partitions      the same                 Spark plans n again: prepared parts
                                                               are found, the others taken now; no
                                                               row had been read yet
while it is taken, before a prepare   a unit in flight         the queue manager backs it out; then
                                                               as above
after partitions                      n is prepared            n is planned again: the same rows
in read, in the sink's write          n is prepared            the same rows; the sink starts over
after the sink's commit, before CL    n is prepared            the same rows; the sink recognises
                                                               the batch
after CL, before latestOffset(n)      n is prepared            latestOffset(n) commits it
in commit, before it is decided       n is prepared, perhaps   the entry's unit is backed out, n
                                      a unit of the ledger     committed again
after commit                          n is gone, the ledger    commit(n) again does nothing
                                      has n
====================================  =======================  ====================================

Two processes that take the same micro-batch (one of them a driver believed dead) cannot both
prepare a name: the second one backs out the messages that it took and reads the other's unit. Units
with a number below the ledger's can only be such a late driver's: they are backed out, their
messages return to the queue. A stop of the stream, or of the queue manager, at any point is one of
the rows above.

With ``eagerCommit`` (the default) a micro-batch is committed when Spark asks for the next offset,
which it does once the commit log contains the batch; otherwise an idle stream would keep its last
messages, and the journal from there on, until more come. When there is nothing to take, the commit
completes before ``latestOffset`` returns; else it follows the taking, in the background thread.
Asynchronous progress tracking, which Spark allows only for sinks without guarantees, breaks this
assumption: use eagerCommit=false.

Messages that have reached BOTHRESH, and bodies that cannot be decoded, may be put aside instead of
becoming rows (aside.py). With order=arrival a micro-batch takes the oldest messages, whatever their
priority (arrival.py).

Before the first message is taken, a micro-batch of a probe finds out whether tasks reach the queue
manager (probe.py): its offset has the number of the one before it.

A stream with a new checkpoint finds what a stream over one of its queues left prepared that no
process runs any more (abandoned.py): it ends, returns the messages to the queue, or leaves them, by
the option onAbandoned.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from ..base import acting, host, relayed, units
from ..base.connection import connect, leave, reported, served
from ..base.errors import DataLoss, SourceError
from ..base.ledger import ledger
from ..base.options import Options
from ..base.schema import MESSAGE, arrow_schema, check_read
from . import abandoned, partitions, probe
from .aside import Aside, Batch
from .background import Background
from .committing import Commits
from .gathering import Gathering
from .partitions import Slice
from .queues import Queues
from .rules import KEEP_ALL, Rules
from .taking import NO_LIMIT, Taker, planned

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock import Queue, QueueManager, Xid
    from penstock.client.status import PreparedStatus

    from ..base.units import Part

__all__ = ["StreamReader", "default_limit", "exit_on_sigterm", "warn_of_once"]

_START = {"unit": 0}  # the stream gets its id with its first micro-batch
_MOST_REPORTED = 100  # queues of a report
Offset = dict[str, Any]


class _Ahead(NamedTuple):
    """A micro-batch that is being taken before Spark plans it."""

    start: Offset
    end: Offset
    taken: Future[list[Xid]]
    is_eager: bool  # the micro-batch before it is committed next

    def is_committed(self, end: Offset) -> bool:
        """Whether the background thread commits ``end``, so that Spark need not."""
        return self.is_eager and end["unit"] <= self.start["unit"]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Takes the messages of queues in micro-batches."""

    def __init__(self, options: Options, schema: StructType, has_listener: bool = False) -> None:
        """Makes the reader.

        Args:
            options: Of a streaming source.
            schema: Of the rows.
            has_listener: Whether the session commits the last micro-batch (last_batch.py).

        Raises:
            SchemaError: for columns that a queue does not have.
        """
        check_read(schema, MESSAGE)
        _load()
        self._has_listener = has_listener
        self.options = options
        self.schema = schema
        self._queues = Queues(options)
        self._taker = Taker(options, self._queues)
        self._commits = Commits(self._queues.noted())
        self._qm: QueueManager | None = None
        self._stream = ""
        self._mark = -1  # descriptor: this process runs the stream
        self._has_looked = False  # for messages of abandoned streams
        self._limit: ReadLimit = self.getDefaultReadLimit()
        self._gathering = Gathering(options)
        self._background = Background()
        self._ahead: _Ahead | None = None
        self._probe = probe.State(options)
        self._asides: dict[str, Aside] = {}
        self._take_ms = 0  # how long the last take took, by this process
        self._found: dict[int, dict[Part, Xid]] | None = None  # of an earlier process, by number
        self._progress: Offset = {}  # as of the last submission to the background thread

    def __getstate__(self) -> dict[str, Any]:
        """The state for tasks, which call read() alone."""
        return {"options": self.options, "schema": self.schema}

    # ---- what Spark calls on the driver ----

    def initialOffset(self) -> Offset:
        """Before the first micro-batch. Raises SourceError when a queue cannot be got from."""
        qm = self._connected()
        if not any(self._queues):
            acting.warn(
                f"queue manager {qm.name}: there is no queue yet that fits queuePattern "
                f"{self.options['queuePattern']}",
                stacklevel=2,
            )
        return dict(_START)

    def getDefaultReadLimit(self) -> ReadLimit:
        """From maxMessagesPerTrigger, else maxBytesPerTrigger."""
        return default_limit(self.options)

    def prepareForTriggerAvailableNow(self) -> None:
        """Notes the newest messages: later ones are not taken by this run."""
        self.bind(None)

    def bind(self, newest: Mapping[str, int] | None) -> Mapping[str, int]:
        """The same with what an earlier reader of this run has noted; None: now. Returns it."""
        self._connected()
        return self._queues.bind(newest)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The next number when there is something to take, else ``start``.

        Raises:
            SourceError: The offset is of other queues; the stream is new, and another one has left
                messages of a queue prepared (option onAbandoned).
        """
        self._queues.check(start)
        if isinstance(limit, ReadAllAvailable):
            relayed.check_not_all(self.options)
        qm = self._connected()
        with self._reported():
            if self._ahead is not None and self._ahead.start == start:
                return self._ahead.end  # Spark has not planned it yet
            if not start.get("stream"):
                self._end_abandoned(qm)
            self._run(qm, start.get("stream") or self._stream)
            self._background.wait_all()
            self._queues.look(qm)
            self._limit = limit
            self._warn_of_once()
            end = self._next(qm, start)
            if end == start or self._gathers(qm, start):
                self._commit_eagerly(start)
                return start
            self._progress = self._report_of(qm, start["unit"])
            if self._probe.is_due(start):
                self._background.submit(self._commit_eagerly, start)
                is_once = isinstance(limit, ReadAllAvailable)
                return self._probe.offset(start, self._queues.noted(), is_once)
            if start.get("stream"):
                taking = self._background.submit(self._prepared, qm, start, end)
                self._ahead = _Ahead(start, end, taking, self.options["eagerCommit"])
            self._background.submit(self._commit_eagerly, start)
            return end

    def reportLatestOffset(self) -> Offset | None:
        """For the progress of the query: the messages on the queues, and the lag of the stream.

        ``depth`` counts the messages on the queues (CURDEPTH); ``inDoubt`` those that this stream
        has taken and not committed; ``lag`` is their sum; ``oldestMessageAgeMs`` the age of the
        oldest message on a queue; ``queues``, of a stream over several, those with messages, the
        deepest ones first; ``takeMs`` and ``commitMs`` how long the last take and the last commit
        of a micro-batch took, by this process; ``abandoned`` messages that streams over these
        queues have taken which do not run; ``commitAtEnd`` is for last_batch.py. When a micro-batch
        is under way: before it was taken.
        """
        qm = self._connected()
        with self._reported():
            if self._background.is_idle:
                self._progress = self._report_of(qm, 0)
        return self._progress

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The micro-batch ``end``, prepared now unless it is already."""
        if start == end:
            return []
        self._queues.check(start, end)
        qm = self._connected()
        if probe.is_probe(start, end):
            return self._probe.partitions(end, [queue.name for queue in self._queues])
        with self._reported():
            ahead, self._ahead = self._ahead, None
            if ahead is not None and (ahead.start, ahead.end) == (start, end):
                taken = ahead.taken.result()
            else:
                self._background.wait_all()
                taken = self._prepared(qm, start, end)
            # prepared_list() makes the units prepared just now durable
            statuses = {status.xid: status for status in qm.prepared_list()}
            ended = [xid for xid in taken if xid not in statuses]
            if ended:
                raise SourceError(f"unit {ended[0]} of this stream was resolved by another program")
            found = [statuses[xid] for xid in taken]
            rules = self._settled(qm, end, found)
            if self.options["order"] == "arrival":
                planned = partitions.by_arrival(qm, found, self.options)
            else:
                planned = partitions.in_turn(found, self.options)
            return [Slice(groups, host.here(), rules) for groups in planned]

    def commit(self, end: Offset) -> None:
        """Commits the units of work up to ``end``; committed ones stay committed."""
        self._queues.check(end)
        self._attached()
        with self._reported():
            if self._ahead is not None and self._ahead.is_committed(end):
                return  # in progress; if it fails, the next call reports it
            self._background.wait_all()
            self._commit_up_to(end)

    def stop(self) -> None:
        """Disconnects; prepared units stay."""
        self._background.close()
        if self._qm is not None:
            qm, self._qm = self._qm, None
            self._unmark()
            self._queues.close()
            leave(qm)

    # ---- what a task does ----

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The messages of a slice as record batches; of a probe none."""
        options = self.options
        if isinstance(partition, probe.Probe):
            probe.attach(options, partition)
            return
        assert isinstance(partition, Slice)
        schema = arrow_schema(self.schema)
        with served(options, partition.where) as qm:
            yield from partitions.rows_of(qm, partition, schema, options)

    # ---- the queue manager ----

    def _attached(self) -> QueueManager:
        """The connection of this process, which Spark ends with a signal."""
        if self._qm is None:
            self._qm = connect(self.options)
            exit_on_sigterm()
        return self._qm

    def _connected(self) -> QueueManager:
        """The same, once the queues are open. Raises SourceError: one cannot be got from."""
        if self._qm is None:
            qm = connect(self.options)
            try:
                self._queues.look(qm)
            except BaseException:
                self._queues.close()
                leave(qm)
                raise
            self._qm = qm
            exit_on_sigterm()
        return self._qm

    def _reported(self) -> AbstractContextManager[None]:
        """Names the queues in errors that name none."""
        return reported(self.options, self._queues.choice.given)

    def _limits(self) -> tuple[int, int]:
        """Messages and bytes of a micro-batch."""
        if isinstance(self._limit, ReadAllAvailable):
            return NO_LIMIT, NO_LIMIT
        return relayed.limited(
            self.options,
            self.options["maxMessagesPerTrigger"] or NO_LIMIT,
            self.options["maxBytesPerTrigger"] or NO_LIMIT,
        )

    def _report_of(self, qm: QueueManager, done: int) -> Offset:
        """The result of reportLatestOffset(); micro-batches up to ``done`` count as committed."""
        if self._stream:
            self._commits.number(qm, self._stream)  # with it the counts of earlier runs
        oldest: dict[str, int] = {}

        def depth_of(queue: Queue) -> int:
            status = queue.status()
            oldest[queue.name] = _age_ms(status.oldest_us)
            return status.depth

        depths = self._queues.each(depth_of)
        prepared = qm.prepared_list()
        taken = 0
        for one in prepared:
            numbers, _ = units.of_stream([one.xid], self._stream)
            taken += one.gets if any(number > done for number in numbers) else 0
        depth = sum(depths.values())
        report = {
            **self._queues.noted(),
            "depth": depth,
            "inDoubt": taken,
            "lag": depth + taken,
            "oldestMessageAgeMs": max(oldest.values(), default=0),
            "abandoned": sum(one.messages for one in self._abandoned(qm, prepared)),
            "backedOut": self._commits.counts.backed_out,
            "badBodies": self._commits.counts.bad,
            "takeMs": self._take_ms,
            "commitMs": self._commits.took_ms,
        }
        if len(self._queues.choice.names or ()) != 1:
            deepest = sorted(filter(depths.get, depths), key=lambda name: -depths[name])
            report["queues"] = {
                name: {"depth": depths[name], "oldestMessageAgeMs": oldest[name]}
                for name in deepest[:_MOST_REPORTED]
            }
        if self.options["eagerCommit"]:
            names = ("queueManager", "home", "queue", "queuePattern")
            report["commitAtEnd"] = {n: self.options[n] for n in names if self.options[n]}
        return report

    # ---- the streams that run, and those that do not ----

    def _run(self, qm: QueueManager, stream: str) -> None:
        """Shows that this process runs the stream; ``""``: its id is not known yet."""
        if stream != self._stream or self._mark < 0:
            self._unmark()
            self._stream = stream
            if stream:
                self._mark = abandoned.mark(qm.path, stream)

    def _unmark(self) -> None:
        if self._mark >= 0:
            os.close(self._mark)
            self._mark = -1

    def _abandoned(
        self, qm: QueueManager, prepared: list[PreparedStatus]
    ) -> list[abandoned.Abandoned]:
        """What streams over these queues that do not run have left."""
        others = [one for one in prepared if units.stream_of(one.xid) != self._stream]
        return abandoned.find(others, qm.path, self._queues.choice)

    def _end_abandoned(self, qm: QueueManager) -> None:
        """Does with the messages of abandoned streams, once, what the option says."""
        if self._has_looked:
            return
        with ledger(qm):
            units.back_out(qm, units.ledgers(qm.recover(), units.SOURCE))  # of killed drivers
            found = self._abandoned(qm, qm.prepared_list())
            self._has_looked = not found or self.options["onAbandoned"] != "fail"
            if not found:
                return
            text = (
                f"queue manager {qm.name}, {self._queues.choice.text}: "
                f"{sum(one.messages for one in found)} messages are prepared for streams that do "
                f"not run ({', '.join(one.stream for one in found)})"
            )
            if self.options["onAbandoned"] == "fail":
                raise SourceError(
                    f"{text}: continue these from their checkpoints, return the messages with "
                    f"`penstock resolve {qm.name} --stream {found[0].stream} --backout`, or set "
                    "option onAbandoned to backout or ignore"
                )
            if self.options["onAbandoned"] == "backout":
                for one in found:
                    units.back_out(qm, one.xids)
                text += "; onAbandoned=backout: they are back on the queue"
            else:
                text += "; onAbandoned=ignore: this stream does not see them"
        acting.warn(text, stacklevel=3)

    # ---- checking for messages ----

    def _warn_of_once(self) -> None:
        """Trigger.Once ends without a sign that its micro-batch is done."""
        if isinstance(self._limit, ReadAllAvailable) and not self._has_listener:
            warn_of_once(self._queues.choice.text)

    def _next(self, qm: QueueManager, start: Offset) -> Offset:
        """The offset behind ``start``, or that when there is nothing to take."""
        parts = _counted(self._prepared_before(qm, start))
        if not parts:
            parts = self._taker.plan(qm, self._limits(), start["unit"])
        if not parts:
            return start
        stream = start.get("stream") or self._stream or units.new_id()
        end = {**self._queues.noted(), "stream": stream, "unit": start["unit"] + 1, "parts": parts}
        noted = {name: self._aside(name).noted(self._aside(name).rules(qm)) for name in parts}
        noted = {name: rule for name, rule in noted.items() if rule}
        return {**end, "aside": noted} if noted else end

    def _gathers(self, qm: QueueManager, start: Offset) -> bool:
        """Whether the micro-batch behind ``start`` waits for more messages."""
        if self._queues.is_bound or isinstance(self._limit, ReadAllAvailable):
            return False
        if self._prepared_before(qm, start):
            return False
        return self._gathering.waits(sum(self._queues.each(lambda queue: queue.depth).values()))

    def _prepared_before(self, qm: QueueManager, start: Offset) -> dict[Part, Xid]:
        """Parts of the next micro-batch that an earlier process of this stream prepared."""
        if not start.get("stream"):
            return {}
        if self._found is None:
            self._found, _ = units.of_stream(qm.recover(), start["stream"])
        return self._found.get(start["unit"] + 1, {})

    def _commit_eagerly(self, start: Offset) -> None:
        """Commits the micro-batches that Spark has completed."""
        if self.options["eagerCommit"]:
            self._commit_up_to(start)

    # ---- taking ----

    def _prepared(self, qm: QueueManager, start: Offset, end: Offset) -> list[Xid]:
        """The units of the micro-batches after ``start`` up to ``end``, in their order."""
        self._run(qm, end["stream"])
        first = start["unit"] + 1 if start.get("stream") == self._stream else 1
        found, _ = units.of_stream(qm.recover(), self._stream)
        committed = self._commits.number(qm, self._stream) if first > 1 else 0
        if first > 1 and first - 1 not in found and first - 1 > committed:
            self._lost(
                f"micro-batch {first - 1} of stream {self._stream} is neither prepared nor "
                "committed: its unit was backed out manually, or this is another queue manager"
            )
        taken = []
        for number in range(first, end["unit"] + 1):
            there = found.get(number, {})
            is_newest = number == end["unit"]
            if is_newest:
                there = planned(there, end["parts"])
            if not there or (is_newest and len(there) < sum(end["parts"].values())):
                there = self._take(qm, number, end["parts"] if is_newest else {}, there)
            taken += [there[part] for part in sorted(there)]
        return taken

    def _take(
        self, qm: QueueManager, number: int, parts: dict[str, int], there: dict[Part, Xid]
    ) -> dict[Part, Xid]:
        """Prepares the missing parts. Raises DataLoss when they were committed.

        parts: the plan, of the newest micro-batch.
        """
        if number <= self._commits.number(qm, self._stream) or not parts:
            self._lost(
                f"micro-batch {number} of stream {self._stream} is asked for again, but its "
                "messages were committed: the checkpoint is older than the ledger"
            )
            return there
        if number == 1:
            self._commits.register(qm, self._stream)
        start = time.monotonic_ns()
        taken = self._taker.take(qm, (self._stream, number), parts, there, self._limits())
        self._take_ms = (time.monotonic_ns() - start) // 1_000_000
        return taken

    def _aside(self, queue: str) -> Aside:
        if queue not in self._asides:
            self._asides[queue] = Aside(self.options, self.schema, queue)
        return self._asides[queue]

    def _settled(
        self, qm: QueueManager, end: Offset, found: list[PreparedStatus]
    ) -> dict[str, Rules]:
        """The rules of the queues whose messages are not all rows."""
        by_queue: dict[str, list[PreparedStatus]] = {}
        for status in found:
            by_queue.setdefault(units.queue_of(status.xid) or "", []).append(status)
        is_new = self._taker.newest == end["unit"]
        there = units.asides(qm.recover(), self._stream).get(end["unit"], {})
        rules = {}
        for place, name in enumerate(sorted({*end["parts"], *by_queue})):
            batch = Batch(self._stream, end["unit"], place)
            noted, own = end.get("aside", {}).get(name, []), by_queue.get(name, [])
            rules[name] = self._aside(name).settle(qm, batch, there, noted, own, is_new)
        return {name: rule for name, rule in rules.items() if rule != KEEP_ALL}

    def _lost(self, text: str) -> None:
        if self.options["failOnDataLoss"]:
            raise DataLoss(text)
        acting.warn(text, stacklevel=3)

    # ---- committing ----

    def _commit_up_to(self, end: Offset) -> None:
        qm = self._attached()
        self._run(qm, end.get("stream") or self._stream)
        if self._stream and end["unit"] > self._commits.known:
            self._commits.commit(qm, self._stream, end["unit"], end["parts"])


def default_limit(options: Options) -> ReadLimit:
    """From maxMessagesPerTrigger, else maxBytesPerTrigger."""
    if options["maxMessagesPerTrigger"] is not None:
        return ReadMaxRows(options["maxMessagesPerTrigger"])
    if options["maxBytesPerTrigger"] is not None:
        return ReadMaxBytes(options["maxBytesPerTrigger"])
    return ReadMaxRows(NO_LIMIT)  # ReadAllAvailable comes from Trigger.Once alone


def warn_of_once(queues: str) -> None:
    """Trigger.Once ends without a sign that its micro-batch is done."""
    acting.warn(
        f"{queues}: Trigger.Once leaves its micro-batch prepared until the stream starts again: "
        "use Trigger.AvailableNow (availableNow=True), or penstock.spark.register(), which commits "
        "it when the query has ended",
        stacklevel=4,
    )


def _counted(parts: Iterable[Part]) -> dict[str, int]:
    """Queue -> number of its parts, by name."""
    return dict(sorted(Counter(part.queue for part in parts).items()))


def _age_ms(put_us: int) -> int:
    """The age of a message; 0: there is none."""
    return max(0, time.time_ns() // 1_000_000 - put_us // 1000) if put_us else 0


def _load() -> None:
    """Imports what the first trigger needs, before Spark waits for that."""
    for name in (
        "admin.settings", "batch", "client.identity_context", "client.object_commands",
        "client.status", "opening.resolution",
    ):  # fmt: skip
        import_module(f"penstock.{name}")


def exit_on_sigterm() -> None:
    """Makes SIGTERM, with which Spark ends this process, an exit that runs stop().

    Only in PySpark's process for a streaming source, where this is the main thread, and only when
    no handler is installed.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _exit)


def _exit(number: int, frame: Any) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second one does not interrupt stop()
    raise SystemExit(128 + number)

"""The streaming source.

A micro-batch is one or more *prepared units of work* with the messages in delivery order. Its
offset is the number of the micro-batch, with the number of its units:

    {"queue": "ORDERS", "stream": "5f1c...", "unit": 12, "parts": 1}

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

A stream enters the ledger before its first unit. So a stream with a new checkpoint finds what a
stream over the same queue left prepared that no process runs any more (abandoned.py): it ends,
returns the messages to the queue, or leaves them, by the option onAbandoned.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
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

import penstock

from ..base import host, units
from ..base.connection import connect, leave, open_queue, reported, served
from ..base.errors import DataLoss, SourceError
from ..base.ledger import ledger, look
from ..base.options import Options
from ..base.schema import MESSAGE, arrow_schema, check_read
from . import abandoned, probe
from .aside import Aside, Counts, counted, counts_in
from .background import Background
from .gathering import Gathering
from .rules import KEEP_ALL, Rules

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock import Queue, QueueManager, Xid
    from penstock.client.status import PreparedStatus

    from .arrow_from_messages import Rows

__all__ = ["Slice", "StreamReader"]

_NO_LIMIT = 1 << 62  # messages or bytes
_START = {"unit": 0}  # the stream gets its id with its first micro-batch
_UNIT_MESSAGES = 50_000  # of one unit at most, however high MAXUMSGS is
_LEAST_ROOM = 64 << 10  # for the bodies of a record batch
_BATCH_ROWS = 4_096  # that are read at a time for their numbers
_FEWEST_ROWS = 1_000  # a partition of fewer rows is not worth a task
Offset = dict[str, Any]


class Piece(NamedTuple):
    """Messages first .. last - 1 of a unit, in the order in which they were taken."""

    unit: str
    first: int
    last: int
    mean_bytes: int


class _Ahead(NamedTuple):
    """A micro-batch that is being taken before Spark plans it."""

    start: Offset
    end: Offset
    taken: Future[list[Xid]]
    is_eager: bool  # the micro-batch before it is committed next

    def is_committed(self, end: Offset) -> bool:
        """Whether the background thread commits ``end``, so that Spark need not."""
        return self.is_eager and end["unit"] <= self.start["unit"]


class Slice(InputPartition):
    """The partition that one task reads."""

    def __init__(
        self,
        pieces: list[Piece],
        where: host.Host,
        rules: Rules = KEEP_ALL,
        is_merged: bool = False,
    ) -> None:
        super().__init__(None)
        self.pieces = pieces
        self.where = where
        self.rules = rules
        self.is_merged = is_merged  # by message number (order=arrival), else one after the other


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Takes a queue's messages in micro-batches."""

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
        self._open: tuple[QueueManager, Queue] | None = None
        self._stream = ""
        self._mark = -1  # descriptor: this process runs the stream
        self._has_looked = False  # for messages of abandoned streams
        self._committed = -1  # unknown
        self._bound: int | None = None  # message number up to which Trigger.AvailableNow goes
        self._limit: ReadLimit = self.getDefaultReadLimit()
        self._gathering = Gathering(options)
        self._background = Background()
        self._ahead: _Ahead | None = None
        self._probe = probe.State(options)
        self._aside = Aside(options, schema)
        self._new = 0  # number of the micro-batch of which messages were taken last
        self._counts = Counts()  # of what was put aside and committed
        self._times = {"takeMs": 0, "commitMs": 0}  # of the newest micro-batch that had it
        self._found: dict[int, int] | None = None  # number -> parts, of an earlier process
        self._progress: Offset = {}  # as of the last submission to the background thread

    def __getstate__(self) -> dict[str, Any]:
        """The state for tasks: without the connection and without pending work."""
        return {
            **self.__dict__,
            "_open": None,
            "_background": Background(),
            "_ahead": None,
            "_mark": -1,
        }

    # ---- what Spark calls on the driver ----

    def initialOffset(self) -> Offset:
        """Before the first micro-batch. Raises SourceError when the queue cannot be got from."""
        self._connected()
        return dict(_START)

    def getDefaultReadLimit(self) -> ReadLimit:
        """From maxMessagesPerTrigger, else maxBytesPerTrigger."""
        if self.options["maxMessagesPerTrigger"] is not None:
            return ReadMaxRows(self.options["maxMessagesPerTrigger"])
        if self.options["maxBytesPerTrigger"] is not None:
            return ReadMaxBytes(self.options["maxBytesPerTrigger"])
        return ReadMaxRows(_NO_LIMIT)  # ReadAllAvailable comes from Trigger.Once alone

    def prepareForTriggerAvailableNow(self) -> None:
        """Notes the newest message number: later messages are not taken by this run."""
        _, queue = self._connected()
        with reported(self.options, self.options["queue"]):
            self._bound = queue.newest_number

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The next number when there is something to take, else ``start``.

        Raises:
            SourceError: The offset is of another queue; the stream is new, and another one has left
                messages of the queue prepared (option onAbandoned).
        """
        self._check_queue(start)
        qm, queue = self._connected()
        with reported(self.options, self.options["queue"]):
            if self._ahead is not None and self._ahead.start == start:
                return self._ahead.end  # Spark has not planned it yet
            if not start.get("stream"):
                self._end_abandoned(qm)
            self._run(qm, start.get("stream") or self._stream)
            self._background.wait_all()
            self._limit = limit
            self._warn_of_once()
            end = self._next(qm, queue, start)
            if end == start or self._gathers(qm, queue, start):
                self._commit_eagerly(start)
                return start
            self._progress = self._report_of(qm, queue, start["unit"])
            if self._probe.is_due(start):
                self._background.submit(self._commit_eagerly, start)
                return self._probe.offset(start, isinstance(limit, ReadAllAvailable))
            if start.get("stream"):
                taking = self._background.submit(self._prepared, qm, queue, start, end)
                self._ahead = _Ahead(start, end, taking, self.options["eagerCommit"])
            self._background.submit(self._commit_eagerly, start)
            return end

    def reportLatestOffset(self) -> Offset | None:
        """For the progress of the query: the messages on the queue, and the lag of the stream.

        ``depth`` counts the messages on the queue (CURDEPTH); ``inDoubt`` those that this stream
        has taken and not committed; ``lag`` is their sum; ``oldestMessageAgeMs`` the age of the
        oldest message on the queue; ``takeMs`` and ``commitMs`` how long the last take and the last
        commit of a micro-batch took, by this process; ``abandoned`` messages that streams over this
        queue have taken which do not run; ``commitAtEnd`` is for last_batch.py. When a micro-batch
        is under way: before it was taken.
        """
        qm, queue = self._connected()
        with reported(self.options, self.options["queue"]):
            if self._background.is_idle:
                self._progress = self._report_of(qm, queue, 0)
        return self._progress

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The micro-batch ``end``, prepared now unless it is already."""
        if start == end:
            return []
        self._check_queue(start, end)
        qm, queue = self._connected()
        if probe.is_probe(start, end):
            return self._probe.partitions(end)
        with reported(self.options, self.options["queue"]):
            ahead, self._ahead = self._ahead, None
            if ahead is not None and (ahead.start, ahead.end) == (start, end):
                taken = ahead.taken.result()
            else:
                self._background.wait_all()
                taken = self._prepared(qm, queue, start, end)
            # prepared_list() makes the units prepared just now durable
            statuses = {status.xid: status for status in qm.prepared_list()}
            ended = [xid for xid in taken if xid not in statuses]
            if ended:
                raise SourceError(f"unit {ended[0]} of this stream was resolved by another program")
            found = [statuses[xid] for xid in taken]
            is_new = self._new == end["unit"]
            rules = self._aside.settle(qm, self._stream, end, found, is_new)
            if self.options["order"] == "arrival":
                return self._intervals(qm, found, rules)
        return self._slices(found, rules)

    def commit(self, end: Offset) -> None:
        """Commits the units of work up to ``end``; committed ones stay committed."""
        self._check_queue(end)
        self._connected()
        with reported(self.options, self.options["queue"]):
            if self._ahead is not None and self._ahead.is_committed(end):
                return  # in progress; if it fails, the next call reports it
            self._background.wait_all()
            self._commit_up_to(end)

    def stop(self) -> None:
        """Disconnects; prepared units stay."""
        self._background.close()
        if self._open is not None:
            qm, _ = self._open
            self._open = None
            self._unmark()
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
        from .arrow_from_messages import Rows

        properties, by_number = options["includeProperties"], partition.is_merged
        build = Rows(options["queue"], schema, properties, partition.rules, by_number)
        with served(options, partition.where) as qm:
            if partition.is_merged:
                from .arrival import merged

                pieces = (self._chunks(qm, build, piece) for piece in partition.pieces)
                yield from merged([map(build.numbered, chunks) for chunks in pieces])
                return
            for piece in partition.pieces:
                yield from map(build.made, self._chunks(qm, build, piece))

    def _chunks(self, qm: QueueManager, build: Rows, piece: Piece) -> Iterator[Any]:
        """The messages of a piece. Raises SourceError when some are missing."""
        from penstock.batch.prepared import prepared_chunks

        xid = penstock.Xid.parse(piece.unit)
        rows = min(self.options["batchRows"], piece.last - piece.first)
        most = self.options["batchBytes"]
        room = min(most, rows * piece.mean_bytes * 5 // 4 + _LEAST_ROOM)
        at = piece.first
        for part in prepared_chunks(qm, xid, at, piece.last, build.fill, rows, room):
            at += len(part)
            yield part
        if at != piece.last:
            raise SourceError(f"unit {xid} has lost some of its messages")

    # ---- the queue manager ----

    def _connected(self) -> tuple[QueueManager, Queue]:
        """Connection and queue of this process, which Spark ends with a signal."""
        if self._open is None:
            qm = connect(self.options)
            try:
                with reported(self.options, self.options["queue"]):
                    queue = _open_for_both(qm, self.options["queue"])
            except BaseException:
                leave(qm)
                raise
            self._open = qm, queue
            _exit_on_sigterm()
        return self._open

    def _check_queue(self, *offsets: Offset) -> None:
        """Raises SourceError for an offset of another queue."""
        own = self.options["queue"]
        for offset in offsets:
            if offset.get("queue", own) != own:
                raise SourceError(
                    f"the checkpoint belongs to a stream over queue {offset['queue']}, option "
                    f"queue names {own}: a stream over another queue needs a checkpoint of its own"
                )

    def _wanted(self) -> dict[str, Any]:
        """The selection of this stream's messages."""
        return {
            "persistent_only": self.options["nonPersistent"] == "exclude",
            "up_to": self._bound,
        }

    def _limits(self) -> tuple[int, int]:
        """Messages and bytes of a micro-batch."""
        if isinstance(self._limit, ReadAllAvailable):
            return _NO_LIMIT, _NO_LIMIT
        return (
            self.options["maxMessagesPerTrigger"] or _NO_LIMIT,
            self.options["maxBytesPerTrigger"] or _NO_LIMIT,
        )

    def _unit_messages(self) -> int:
        qm, _ = self._connected()
        return min(_UNIT_MESSAGES, int(str(qm.display("QMGR")[0]["maxumsgs"])))

    def _parts(self, queue: Queue) -> int:
        """Units that the next micro-batch needs."""
        most, _ = self._limits()
        needed = -(-min(most, max(1, queue.depth)) // self._unit_messages())
        return min(needed, units.MOST_UNITS)

    def _report_of(self, qm: QueueManager, queue: Queue, done: int) -> Offset:
        """The result of reportLatestOffset(); micro-batches up to ``done`` count as committed."""
        if self._stream:
            self._committed_number(qm)  # with it the counts of earlier runs
        status = queue.status()
        taken = 0
        prepared = qm.prepared_list()
        for one in prepared:
            numbers, _ = units.of_stream([one.xid], self._stream)
            taken += one.gets if any(number > done for number in numbers) else 0
        depth, oldest = status.depth, status.oldest_us
        left = self._abandoned(qm, prepared, partial(look, qm))
        age = max(0, time.time_ns() // 1_000_000 - oldest // 1000) if oldest else 0
        report = {
            "queue": self.options["queue"],
            "depth": depth,
            "inDoubt": taken,
            "lag": depth + taken,
            "oldestMessageAgeMs": age,
            "abandoned": sum(one.messages for one in left),
            "backedOut": self._counts.backed_out,
            "badBodies": self._counts.bad,
            **self._times,
        }
        if self.options["eagerCommit"]:
            names = ("queueManager", "home")
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
        self, qm: QueueManager, prepared: list[PreparedStatus], entry_of: abandoned.EntryOf
    ) -> list[abandoned.Abandoned]:
        """What streams over this queue that do not run have left."""
        others = [one for one in prepared if units.stream_of(one.xid) != self._stream]
        return abandoned.find(others, qm.path, entry_of, self.options["queue"])

    def _end_abandoned(self, qm: QueueManager) -> None:
        """Does with the messages of abandoned streams, once, what the option says."""
        if self._has_looked:
            return
        with ledger(qm) as book:
            units.back_out(qm, units.ledgers(qm.recover(), units.SOURCE))  # of killed drivers
            found = self._abandoned(qm, qm.prepared_list(), book.read)
            self._has_looked = not found or self.options["onAbandoned"] != "fail"
            if not found:
                return
            text = (
                f"queue manager {qm.name}, queue {self.options['queue']}: "
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
        warnings.warn(text, RuntimeWarning, stacklevel=3)

    def _register(self, qm: QueueManager) -> None:
        """Enters a new stream into the ledger: what it leaves is then known to be of its queue."""
        with ledger(qm) as book:
            if book.read(f"stream:{self._stream}") is None:
                entry = {"unit": 0, "queue": self.options["queue"], "time": int(time.time())}
                book.add(f"stream:{self._stream}", entry)

    # ---- checking for messages ----

    def _warn_of_once(self) -> None:
        """Trigger.Once ends without a sign that its micro-batch is done."""
        if isinstance(self._limit, ReadAllAvailable) and not self._has_listener:
            warnings.warn(
                f"queue {self.options['queue']}: Trigger.Once leaves its micro-batch prepared "
                "until the stream starts again: use Trigger.AvailableNow (availableNow=True), or "
                "penstock.spark.register(), which commits it when the query has ended",
                RuntimeWarning,
                stacklevel=3,
            )

    def _next(self, qm: QueueManager, queue: Queue, start: Offset) -> Offset:
        """The offset behind ``start``, or that when there is nothing to take."""
        parts = self._prepared_before(qm, start)
        if not parts and len(queue.browse_batch(1, first=True, max_bytes=1, **self._wanted())):
            parts = self._parts(queue)
        if not parts:
            return start
        stream = start.get("stream") or self._stream or units.new_id()
        own = {"queue": self.options["queue"], "stream": stream}
        noted = self._aside.noted(self._aside.rules(qm))
        return {**own, "unit": start["unit"] + 1, "parts": parts, **noted}

    def _gathers(self, qm: QueueManager, queue: Queue, start: Offset) -> bool:
        """Whether the micro-batch behind ``start`` waits for more messages."""
        if self._bound is not None or isinstance(self._limit, ReadAllAvailable):
            return False
        return not self._prepared_before(qm, start) and self._gathering.waits(queue.depth)

    def _prepared_before(self, qm: QueueManager, start: Offset) -> int:
        """Parts of the next micro-batch that an earlier process of this stream prepared."""
        if not start.get("stream"):
            return 0
        if self._found is None:
            found, _ = units.of_stream(qm.recover(), start["stream"])
            self._found = {number: len(parts) for number, parts in found.items()}
        return self._found.get(start["unit"] + 1, 0)

    def _commit_eagerly(self, start: Offset) -> None:
        """Commits the micro-batches that Spark has completed."""
        if self.options["eagerCommit"]:
            self._commit_up_to(start)

    # ---- taking ----

    def _prepared(self, qm: QueueManager, queue: Queue, start: Offset, end: Offset) -> list[Xid]:
        """The units of the micro-batches after ``start`` up to ``end``, in their order."""
        self._run(qm, end["stream"])
        first = start["unit"] + 1 if start.get("stream") == self._stream else 1
        found, _ = units.of_stream(qm.recover(), self._stream)
        if first > 1 and first - 1 not in found and first - 1 > self._committed_number(qm):
            self._lost(
                f"micro-batch {first - 1} of stream {self._stream} is neither prepared nor "
                "committed: its unit was backed out manually, or this is another queue manager"
            )
        taken = []
        for number in range(first, end["unit"] + 1):
            there = found.get(number, {})
            parts = end["parts"] if number == end["unit"] else max(len(there), 1)
            if len(there) < parts:
                there = self._take(qm, queue, number, parts, there, number == end["unit"])
            taken += [there[part] for part in sorted(there)]
        return taken

    def _take(
        self,
        qm: QueueManager,
        queue: Queue,
        number: int,
        parts: int,
        there: dict[int, Xid],
        is_newest: bool,
    ) -> dict[int, Xid]:
        """Prepares the missing parts. Raises DataLoss when they were committed."""
        if number <= self._committed_number(qm) or not is_newest:
            self._lost(
                f"micro-batch {number} of stream {self._stream} is asked for again, but its "
                "messages were committed: the checkpoint is older than the ledger"
            )
            return there
        if number == 1:
            self._register(qm)
        with self._timed("takeMs"):
            return self._take_parts(qm, queue, number, parts, there)

    def _take_parts(
        self, qm: QueueManager, queue: Queue, number: int, parts: int, there: dict[int, Xid]
    ) -> dict[int, Xid]:
        messages, size = self._limits()
        result = dict(there)
        up_to = self._bound
        for status in qm.prepared_list():
            if status.xid in there.values():
                messages, size = messages - status.gets, size - status.bytes
        if self.options["order"] == "arrival":
            room = min(messages, (parts - len(result)) * self._unit_messages())
            up_to = self._up_to_by_arrival(queue, room, size)
            messages, size = (room if up_to is not None else 0), _NO_LIMIT
        for part in range(parts):
            if part in result:
                continue
            xid = units.stream_unit(self._stream, number, part)
            self._new = number
            got, got_bytes = self._take_part(qm, queue, xid, (messages, size), up_to)
            messages, size = messages - got, size - got_bytes
            result[part] = xid
        return result

    def _up_to_by_arrival(self, queue: Queue, room: int, size: int) -> int | None:
        """The number of the newest message that a micro-batch takes, whose units have room for so
        many messages; None: there is none.
        """
        from .arrival import LAST, lowest

        only = self.options["nonPersistent"] == "exclude"
        up_to = min(LAST if self._bound is None else self._bound, queue.newest_number)
        if room <= 0 or size <= 0 or up_to == 0:
            return None
        if size >= _NO_LIMIT and queue.depth <= room:
            return up_to
        return lowest(queue, room, size, only, up_to)

    def _take_part(
        self,
        qm: QueueManager,
        queue: Queue,
        xid: Xid,
        limits: tuple[int, int],
        up_to: int | None,
    ) -> tuple[int, int]:
        """Takes messages into one unit and prepares it; returns their number and bytes."""
        messages, size = limits
        wanted = {**self._wanted(), "up_to": up_to}
        most = min(messages, self._unit_messages())
        got = got_bytes = 0
        try:
            while got < most and got_bytes < size:
                more, more_bytes = queue.take_batch_uncopied(
                    most - got, max_bytes=size - got_bytes, **wanted
                )
                if not more:
                    break
                got += more
                got_bytes += more_bytes
            qm.prepare(xid, allow_empty=True, wait=False)
        except penstock.XidInUse:  # another process took this part: its messages are the rows
            qm.backout()
            status = next((s for s in qm.prepared_list() if s.xid == xid), None)
            return (status.gets, status.bytes) if status is not None else (0, 0)
        except BaseException:
            qm.backout()
            raise
        return got, got_bytes

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = time.monotonic_ns()
        yield
        self._times[name] = (time.monotonic_ns() - start) // 1_000_000

    def _lost(self, text: str) -> None:
        if self.options["failOnDataLoss"]:
            raise DataLoss(text)
        warnings.warn(text, RuntimeWarning, stacklevel=3)

    def _slices(self, statuses: list[PreparedStatus], rules: Rules) -> list[Slice]:
        """Partitions of about the same number of rows, in delivery order."""
        rows = self._slice_rows(statuses)
        where = host.here()
        slices: list[Slice] = []
        pieces: list[Piece] = []
        room = rows
        for status in statuses:
            mean = status.bytes // max(1, status.gets)
            at = 0
            while at < status.gets:
                last = min(status.gets, at + room)
                pieces.append(Piece(str(status.xid), at, last, mean))
                room -= last - at
                at = last
                if room == 0:
                    slices.append(Slice(pieces, where, rules))
                    pieces, room = [], rows
        if pieces:
            slices.append(Slice(pieces, where, rules))
        return slices

    def _slice_rows(self, statuses: list[PreparedStatus]) -> int:
        """Rows of a partition, at most."""
        total = sum(status.gets for status in statuses)
        rows: int = self.options["messagesPerPartition"]
        fewest: int | None = self.options["minPartitions"]
        if fewest is None:
            return min(rows, max(_FEWEST_ROWS, -(-total // host.cores())))
        return min(rows, max(1, -(-total // fewest)))

    def _intervals(
        self, qm: QueueManager, statuses: list[PreparedStatus], rules: Rules
    ) -> list[Slice]:
        """Partitions of about the same number of rows, by message number."""
        from . import arrival

        mean = {str(s.xid): s.bytes // max(1, s.gets) for s in statuses}
        runs = [run for s in statuses for run in arrival.runs(s.xid, _numbers(qm, s))]
        return [
            Slice(
                [Piece(str(xid), first, last, mean[str(xid)]) for xid, first, last in pieces],
                host.here(),
                rules,
                is_merged=len(pieces) > 1,
            )
            for pieces in arrival.cut(runs, self._slice_rows(statuses))
        ]

    # ---- committing ----

    def _committed_number(self, qm: QueueManager) -> int:
        """The number in the ledger, read once: only this stream changes it."""
        if self._committed < 0:
            with ledger(qm) as book:
                _, ledgers = units.of_stream(qm.recover(), self._stream)
                units.back_out(qm, ledgers)
                entry = book.read(f"stream:{self._stream}")
            self._committed = entry["unit"] if entry else 0
            self._counts = counts_in(entry)
        return self._committed

    def _commit_up_to(self, end: Offset) -> None:
        qm, _ = self._connected()
        self._run(qm, end.get("stream") or self._stream)
        if not self._stream or end["unit"] <= max(0, self._committed):
            return
        done = self._committed_number(qm)
        with ledger(qm) as book:
            there = qm.recover()
            found, ledgers = units.of_stream(there, self._stream)
            units.back_out(qm, ledgers)
            asides = units.asides(there, self._stream)
            for number in {*found, *asides}:
                if number <= done:  # of a late driver
                    units.back_out(qm, found.pop(number, {}).values())
                    units.back_out(qm, asides.pop(number, ()))
            due: list[Xid] = []
            counts = self._counts
            for number in range(done + 1, end["unit"] + 1):
                parts, aside = found.get(number, {}), asides.get(number, {})
                if len(due) + len(parts) + len(aside) > units.MOST_UNITS:
                    self._commit(qm, book, number - 1, due, counts)
                    due = []
                due += [*(parts[part] for part in sorted(parts)), *aside]
                counts = counts.plus(counted(aside.values()))
            if end["unit"] > done:
                with self._timed("commitMs"):
                    self._commit(qm, book, end["unit"], due, counts)

    def _commit(
        self, qm: QueueManager, book: Any, number: int, due: list[Xid], counts: Counts
    ) -> None:
        xid = units.ledger_unit(units.SOURCE, self._stream)
        entry = {"unit": number, "queue": self.options["queue"], "time": int(time.time())}
        book.prepare(f"stream:{self._stream}", {**entry, **counts.entry()}, xid)
        qm.commit_prepared(*due, xid)
        self._committed = number
        self._counts = counts


def _numbers(qm: QueueManager, status: PreparedStatus) -> Any:
    """The message numbers of a unit, in the order in which it took them."""
    import numpy as np

    from penstock.batch.chunks import as_batch
    from penstock.batch.prepared import prepared_chunks

    mean = status.bytes // max(1, status.gets)
    room = _BATCH_ROWS * mean + _LEAST_ROOM
    parts = prepared_chunks(qm, status.xid, 0, status.gets, as_batch, _BATCH_ROWS, room)
    found = [part.descriptors["number"].copy() for part in parts]
    return np.concatenate(found) if found else np.empty(0, np.uint64)


def _load() -> None:
    """Imports what the first trigger needs, before Spark waits for that."""
    for name in (
        "admin.settings", "batch", "client.identity_context", "client.object_commands",
        "client.status", "opening.resolution",
    ):  # fmt: skip
        import_module(f"penstock.{name}")


def _open_for_both(qm: QueueManager, name: str) -> Queue:
    """Opens the queue for input and browse."""
    with open_queue(qm, name, "browse"):  # an alias or a remote queue is refused here
        return qm.open(name, input=True, browse=True, output=False)


def _exit_on_sigterm() -> None:
    """Makes SIGTERM, with which Spark ends this process, an exit that runs stop().

    Only in PySpark's process for a streaming source, where this is the main thread, and only when
    no handler is installed.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _exit)


def _exit(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)

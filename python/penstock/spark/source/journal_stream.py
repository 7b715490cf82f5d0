"""``readStream`` with ``mode=journal``: what happens to the queues, as a stream.

The offset is an LSN of one history of one queue manager:

    {"queueManager": "QM1", "id": "9f2c...", "timeline": 0, "since": 4096, "first": 61440,
     "lsn": 81920, "time": 1790000000000000}

A micro-batch is the range of LSNs from one offset to the next. With ``isolation=committed`` (the
default) its rows are the events that were decided in the range, each once, ordered by (LSN of the
decision, LSN of the record): journal_events.py. A unit of work is decided by one record, so no unit
is divided. With ``isolation=none`` its rows are the records of the range, by LSN. Neither depends
on anything but the range and the files, so a micro-batch that is planned again, by this driver or
another one, has the same rows. Nothing is taken, locked or written: any number of streams may read
the same journal, each with a checkpoint of its own.

No offset is above what is durable: a crash takes nothing back that a stream has shown.

first: where the stream began. Spark asks for the initial offset again when it plans the very first
micro-batch again, and would get another one by then (``latest``); what counts is this. A new stream
begins with an empty micro-batch when there is nothing to read, so that Spark has it in its log.

since: the oldest LSN that was there when the stream began. Units that began before it are passed
over and counted: their first records were gone before, which is no loss of this stream.

Why nothing is pinned
    Linear logging is required. There a segment that the queue manager needs no longer is renamed
    into ``archive``; it is never written over and never removed, and the journal's limit does not
    count it. A reader that was about to open it in ``journal`` finds it in ``archive``
    (segment_files.open_segment), and one that has it mapped keeps the same file. So a slow reader
    never holds up the queue manager, and a lease that is given up at 50 % of the limit would have
    nothing to give up: what it protects from does not happen. The one way to lose records is that
    somebody removes them from the archive, as ``penstock archive --prune-before`` does on purpose.
    Pruning does not ask streams, as a stopped one has no lease anyway; a stream that has not read
    what was removed finds it out: with ``failOnDataLoss`` it fails and names the LSNs, without it
    continues behind them and counts in the progress what was passed over. With circular logging a
    segment can be written over at any moment after a checkpoint, in less time than a micro-batch
    takes; a pin would then decide between a full journal and a failed stream, so it is refused.

Another history
    Offsets are compared with the queue manager's id and timeline. One that was restored has another
    timeline, and one that was created anew another id: both are refused. An older copy of the
    directory that was put back has neither; it is refused while the checkpoint is ahead of it, and
    afterwards because the last record before the offset was sealed at another time (``time``,
    microseconds; 0: not known).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from penstock.admin.settings import read_settings
from penstock.journal import DamagedFile, events, scan
from penstock.journal.files import DirectoryFiles
from penstock.journal.head import read_head
from penstock.journal.segment_range import SegmentRange
from penstock.journal.unit_index import EventReport

from ..base import host, relayed
from ..base.errors import DataLoss, SourceError
from ..base.options import Options
from ..base.queue_choice import QueueChoice
from ..base.schema import check_read
from .durable import DurableJournal
from .journal import directory_of, lsn_at
from .journal_events import (
    EventSlice,
    Planned,
    Walk,
    on_loss,
    read_events,
    slices_of,
    wanted,
)
from .journal_records import Segment, chosen_events, columns, moment, read_records

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["JournalStreamReader"]

_NO_LIMIT = 1 << 62
_NEAR = 1 << 20  # LSNs
Offset = dict[str, Any]
_T = TypeVar("_T")


class JournalStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the journal in micro-batches."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises SchemaError, OptionError."""
        check_read(schema, columns())
        self.options = options
        self.schema = schema
        self.is_committed = options["isolation"] != "none"
        self.events = chosen_events(options, events.KINDS if self.is_committed else scan.EVENTS)
        self.choice = QueueChoice.of(options)
        self.starting_time = moment(options, "startingTime")
        self._opened: tuple[Path, DurableJournal] | None = None
        self._bound: int | None = None  # LSN up to which Trigger.AvailableNow goes
        self._is_checked = False  # the history
        self._walk: Walk | None = None
        self._planned: Planned | None = None  # the newest micro-batch
        self._planned_to: int | None = None  # LSN where the newest micro-batch ends
        self._report = EventReport()  # what was passed over, since this process started

    def __getstate__(self) -> dict[str, Any]:
        """The state for tasks: without the connection and what was found out."""
        return {**self.__dict__, "_opened": None, "_walk": None, "_planned": None}

    # ---- what Spark calls on the driver ----

    def initialOffset(self) -> Offset:
        """Where startingOffsets says. Raises SourceError, DataLoss."""

        def find() -> Offset:
            journal = self._journal()
            return self._offset(self._first_lsn(journal), journal.oldest_lsn)

        return self._reported(find)

    def getDefaultReadLimit(self) -> ReadLimit:
        """From maxBytesPerTrigger."""
        return ReadMaxBytes(self.options["maxBytesPerTrigger"] or _NO_LIMIT)

    def prepareForTriggerAvailableNow(self) -> None:
        """Notes what is durable now: later records are not read by this run."""
        self.bind(None)

    def bind(self, newest: Mapping[str, int] | None) -> Mapping[str, int]:
        """The same with what an earlier reader of this run has noted; None: now. Returns it."""
        if newest is None:
            newest = {"lsn": self._reported(lambda: self._journal().end_lsn)}
        self._bound = newest["lsn"]
        return newest

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The end of the next micro-batch; ``start`` when there is nothing to read.

        Raises SourceError for an offset of another history, DataLoss.
        """

        def find() -> Offset:
            journal = self._journal()
            self._check(journal, start)
            end = journal.end_lsn if self._bound is None else min(self._bound, journal.end_lsn)
            most = self.options["maxBytesPerTrigger"] or _NO_LIMIT
            if isinstance(limit, ReadAllAvailable):
                relayed.check_not_all(self.options)
                most = _NO_LIMIT
            _, most = relayed.limited(self.options, 0, most)
            known = {**start, "first": start.get("first", start["lsn"])}
            if self.is_committed:
                planned = self._plan(journal, start, end, most)
                lsn = start["lsn"] if planned is None else planned.end
            else:
                lsn = max(start["lsn"], min(end, start["lsn"] + most))
            self._planned_to = lsn
            if lsn == start["lsn"]:
                return known
            return {**known, "lsn": lsn, "time": _sealed(journal, lsn)}

        return self._reported(find)

    def reportLatestOffset(self) -> Offset | None:
        """For the progress of the query.

        ``lsn`` is the end of what is durable, ``behind`` the bytes of journal between the newest
        micro-batch and there. ``unitsIncomplete`` and ``lost`` count, with
        failOnDataLoss=false, units of work of which records are gone, and holes in the journal;
        ``unitsBegunBefore`` units that began before the oldest record which the stream found at its
        start. All since this process started.
        """

        def find() -> Offset:
            journal = self._journal()
            report: Offset = {"lsn": journal.end_lsn, "lost": len(self._report.lost)}
            if self._planned_to is not None:
                report["behind"] = max(0, journal.end_lsn - self._planned_to)
            if self.is_committed:
                report["unitsIncomplete"] = self._report.incomplete
                report["unitsBegunBefore"] = self._report.begun_before
            return report

        return self._reported(find)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The tasks of a micro-batch. Raises SourceError, DataLoss."""
        begin = start["lsn"] if "first" in start else end["first"]
        if begin >= end["lsn"]:
            return []

        def find() -> Sequence[InputPartition]:
            journal = self._journal()
            self._check(journal, end)
            if not self.is_committed:
                return self._segments(journal, begin, end["lsn"])
            planned = self._planned
            if planned is None or (planned.start, planned.end) != (begin, end["lsn"]):
                self._walk = None
                planned = self._plan(journal, {**end, "lsn": begin}, end["lsn"], _NO_LIMIT)
                if planned is None:  # what was decided in it was passed over
                    return []
            return slices_of(journal, planned, end["since"], self.options["minPartitions"])

        return self._reported(find)

    def commit(self, end: Offset) -> None:
        """Nothing: the journal does not know its readers."""

    def stop(self) -> None:
        """Disconnects."""
        if self._opened is not None:
            self._opened[1].close()
            self._opened = None

    # ---- what a task does ----

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a partition as record batches."""
        if isinstance(partition, EventSlice):
            return read_events(partition, self.options, self.schema, self.events)
        if not isinstance(partition, Segment):  # what Spark plans when there are no partitions
            return iter(())
        return read_records(partition, self.options, self.schema, self.events)

    # ---- the journal ----

    def _reported(self, action: Callable[[], _T]) -> _T:
        """The result; the errors of readers as sentences."""
        name = self.options["queueManager"]
        try:
            return action()
        except scan.JournalDataLoss as error:
            self._walk = None
            raise DataLoss(f"journal of {name}: {error.text}") from error
        except DamagedFile as error:
            self._walk = None
            raise SourceError(f"journal of {name}: {error}") from error

    def _journal(self) -> SegmentRange:
        """What is durable now. Raises SourceError for circular logging."""
        if self._opened is None:
            path = directory_of(self.options)
            if read_settings(path).logging != "linear":
                raise SourceError(
                    f"queue manager {self.options['queueManager']} has circular logging, which "
                    "writes over segments that a stream has not read: a stream over the journal "
                    "needs linear logging (penstock create --logging linear, or logging = "
                    '"linear" in section [journal] of qm.toml before the next start)'
                )
            self._opened = path, DurableJournal(path, self.options)
        return self._opened[1].segments()

    def _offset(self, lsn: int, since: int) -> Offset:
        return {**self._history(), "since": since, "lsn": lsn, "time": 0}

    def _history(self) -> Offset:
        """Which history of which queue manager the journal is of."""
        assert self._opened is not None
        head = read_head(DirectoryFiles(self._opened[0]), None)
        name = self.options["queueManager"]
        return {"queueManager": name, "id": head.qm_id.hex(), "timeline": head.timeline}

    def _first_lsn(self, journal: SegmentRange) -> int:
        """Where a new stream begins."""
        lsn = self.options["startingLsn"]
        if lsn is not None:
            if lsn > journal.end_lsn:
                raise SourceError(
                    f"option startingLsn is {lsn}, but the journal of "
                    f"{self.options['queueManager']} ends at LSN {journal.end_lsn}"
                )
            return int(lsn)
        if self.starting_time is not None:
            return lsn_at(journal, self.starting_time)
        if self.options["startingOffsets"] == "earliest":
            return journal.oldest_lsn
        return journal.end_lsn

    def _check(self, journal: SegmentRange, *offsets: Offset) -> None:
        """Raises SourceError for offsets of another history."""
        own = self._history()
        for offset in offsets:
            if (offset["id"], offset["timeline"]) != (own["id"], own["timeline"]):
                raise SourceError(
                    f"the checkpoint belongs to a stream over queue manager "
                    f"{offset['queueManager']}, id {offset['id']}, timeline {offset['timeline']}; "
                    f"{own['queueManager']} has id {own['id']}, timeline {own['timeline']}: it was "
                    "created anew or restored, and a stream over it needs a checkpoint of its own"
                )
            lsn = offset["lsn"]
            text = f"the journal of {own['queueManager']} ends at LSN {journal.end_lsn}"
            if lsn <= journal.end_lsn:
                if self._is_checked or not offset["time"] or lsn < journal.oldest_lsn:
                    continue
                if offset["time"] == _sealed(journal, lsn):
                    continue
                text = f"the journal of {own['queueManager']} has other records there"
            raise SourceError(
                f"the checkpoint is at LSN {lsn}, and {text}: its directory is an older copy, and "
                "a stream over it needs a checkpoint of its own"
            )
        self._is_checked = True

    def _plan(self, journal: SegmentRange, start: Offset, end: int, most: int) -> Planned | None:
        """The next range of decisions from ``start`` on; the walk continues, or begins there."""
        if self._walk is None or self._walk.at != start["lsn"]:
            chosen = wanted(self.events, self.choice)
            loss = on_loss(self.options)
            self._walk = Walk(chosen, start["lsn"], start["since"], loss, self._report)
        self._planned = self._walk.plan(journal, end, most)
        return self._planned

    def _segments(self, journal: SegmentRange, start: int, end: int) -> Sequence[InputPartition]:
        """The segments with the records of a range, with isolation=none."""
        holes = journal.holes(start, end)
        if holes and self.options["failOnDataLoss"]:
            name = self.options["queueManager"]
            raise DataLoss(f"journal of {name}: {holes[0]}")
        self._report.lost += holes
        where = host.here()
        return [Segment(one, where, start, end) for one in journal.overlapping(start, end)]


def _sealed(journal: SegmentRange, lsn: int) -> int:
    """When the last record before ``lsn`` was sealed, microseconds; 0: there is none near it."""
    time = 0
    for segment in journal.overlapping(lsn - 1, lsn):
        for rows in scan.index_rows(segment, max(0, lsn - _NEAR), lsn, journal.scanned):
            if len(rows["time"]):
                time = int(rows["time"][-1].astype("int64"))
    return time

"""Rows of the journal with ``isolation=committed``: events of decided units of work.

A read is a range [start, end) of LSNs of decisions, cut into slices; a task reads one. A decision
lies in one slice, and all events of its unit are with it, wherever their records lie. So any LSN is
a valid boundary, of slices and of micro-batches, and the union of slices is what
``penstock.journal.events`` gives for the range. Where to cut is a matter of size alone; the walk
decides it, which reads the index of units and no bodies.

CLEAR and OBJECT_DELETE are events of their own (penstock.journal.events): who keeps the contents of
queues removes what is below the number, or everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pyspark.sql.datasource import InputPartition

from penstock.journal import DamagedFile
from penstock.journal.events import KINDS, event_batches
from penstock.journal.scan import JournalDataLoss
from penstock.journal.segment_range import SegmentRange
from penstock.journal.unit_index import EventReport, OnLoss, Positions, UnitIndex, Wanted

from ..base import host, worker
from ..base.errors import DataLoss, SourceError
from ..base.options import Options
from ..base.queue_choice import QueueChoice

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["EventSlice", "Planned", "Walk", "on_loss", "read_events", "slices_of", "wanted"]

_EVENT_COST = 64  # bytes that an event counts besides its body
_STRETCH = 1 << 20  # a slice consists of stretches of about that cost
_SLICE = 64 << 20  # cost of a slice at most, about
_FAR = 64 << 20  # LSNs without an event after which an empty micro-batch notes the position


class Stretch(NamedTuple):
    """end: LSN behind its last decision. cost: of its events."""

    end: int
    cost: int


@dataclass(frozen=True)
class Planned:
    """A range of decisions. rows: events that are decided in it."""

    start: int
    end: int
    rows: int
    stretches: tuple[Stretch, ...]


class EventSlice(InputPartition):
    """A range of decisions that one task reads. first: number of the segment where it begins.
    durable_lsn: where the journal ended when the read was planned."""

    def __init__(
        self,
        directory: str,
        start: int,
        end: int,
        *,
        since: int,
        first: int,
        durable_lsn: int,
        where: host.Host,
    ) -> None:
        super().__init__(None)
        self.directory, self.durable_lsn = directory, durable_lsn
        self.start, self.end, self.since = start, end, since
        self.first = first
        self.where = where


def on_loss(options: Options) -> OnLoss:
    """What is done about records that are not there any more."""
    return "refuse" if options["failOnDataLoss"] else "skip"


def wanted(kinds: Sequence[str], choice: QueueChoice) -> Wanted:
    """The selection of events."""
    return Wanted.of_names(kinds or KINDS, None if choice.is_all else choice)


class Walk:
    """Follows the decisions from an LSN on, and says where micro-batches end.

    chosen: the events. start: the LSN where the first micro-batch begins. since: units of work that
    began before it are passed over and counted. report: counts what was passed over.
    """

    def __init__(
        self, chosen: Wanted, start: int, since: int, loss: OnLoss, report: EventReport
    ) -> None:
        self.at = start
        self._report = report
        self._chosen, self._since, self._loss = chosen, since, loss
        self._index: UnitIndex | None = None
        self._found: Iterator[Positions] = iter(())
        self._walked = start  # decisions before it have been found
        self._until = start
        self._left: Positions | None = None  # found and not planned

    def plan(self, journal: SegmentRange, end: int, most: int) -> Planned | None:
        """The next range, up to ``end`` at most; None: nothing was decided there.

        most: the cost at which it ends; one unit of work is in it in any case. Raises
        JournalDataLoss, DamagedFile; the walk is of no more use then.
        """
        start, rows, cost = self.at, 0, 0
        stretches: list[Stretch] = []
        while (part := self._next(journal, end)) is not None:
            taken, sums = _fit(part, most - cost, is_first=rows == 0)
            if taken:
                stretches += _stretches(part.commit_lsn[:taken], sums[:taken])
                rows, cost = rows + taken, cost + int(sums[taken - 1])
            if taken < len(sums):
                self._left = part.part(taken, len(sums))
                break
        if rows:
            self.at = stretches[-1].end
            return Planned(start, self.at, rows, tuple(stretches))
        if self._walked - start > _FAR:
            self.at = self._walked
            return Planned(start, self.at, 0, (Stretch(self.at, 0),))
        return None

    def _next(self, journal: SegmentRange, end: int) -> Positions | None:
        """Some decided events that are not planned; None: there are none before ``end``."""
        while True:
            part, self._left = self._left, None
            if part is not None:
                planned = int(np.searchsorted(part.commit_lsn, self.at, "left"))
                if planned < len(part.lsn):
                    return part.part(planned, len(part.lsn))
            self._left = next(self._found, None)
            if self._left is None:
                self._walked = max(self._walked, self._until)
                if self._until >= end:
                    return None
                self._find(journal, end)

    def _find(self, journal: SegmentRange, end: int) -> None:
        if self._index is None:
            self._index = UnitIndex(
                journal, self.at, wanted=self._chosen, since=self._since, on_loss=self._loss,
                report=self._report,
            )  # fmt: skip
        self._index.go_on_in(journal)
        self._until = end
        self._found = self._index.positions(end)


def _fit(part: Positions, most: int, *, is_first: bool) -> tuple[int, Any]:
    """How many events fit, whole units alone, and the sums of their costs."""
    sums = np.cumsum(part.size.astype(np.int64) + _EVENT_COST)
    fit = int(np.searchsorted(sums, most, "right"))
    decisions = part.commit_lsn
    if fit < len(sums):
        first = int(np.searchsorted(decisions, decisions[fit], "left"))
        if first == 0 and is_first:
            first = int(np.searchsorted(decisions, decisions[fit], "right"))
        fit = first
    return fit, sums


def _stretches(decisions: Any, sums: Any) -> list[Stretch]:
    """The events cut into stretches, between units."""
    cuts = np.flatnonzero(np.diff(sums // _STRETCH)) + 1
    ends = np.unique(np.append(np.searchsorted(decisions, decisions[cuts], "right"), len(sums)))
    costs = np.diff(np.concatenate([[0], sums[ends - 1]]))
    return [
        Stretch(int(decisions[end - 1]) + 1, int(cost))
        for end, cost in zip(ends, costs, strict=True)
    ]


def slices_of(
    journal: SegmentRange, planned: Planned, since: int, fewest: int | None
) -> list[InputPartition]:
    """The slices of a range, of about the same cost; none where nothing was decided.

    fewest: slices, about; None: one for each processor.
    """
    if not planned.rows:
        return []
    total = sum(stretch.cost for stretch in planned.stretches)
    cost = min(_SLICE, -(-total // (fewest or host.cores())))
    where = host.here()
    slices: list[InputPartition] = []
    start, sum_ = planned.start, 0
    for stretch in planned.stretches:
        sum_ += stretch.cost
        if sum_ >= cost or stretch.end == planned.end:
            slices.append(
                EventSlice(
                    journal.directory,
                    start,
                    stretch.end,
                    since=since,
                    first=journal.number_at(start),
                    durable_lsn=journal.end_lsn,
                    where=where,
                )
            )
            start, sum_ = stretch.end, 0
    return slices


def read_events(
    part: EventSlice, options: Options, schema: StructType, kinds: Sequence[str]
) -> Iterator[Any]:
    """The rows of a slice as record batches. Raises DataLoss, SourceError."""
    from ..base.schema import arrow_schema
    from .journal_records import record_batch

    worker.keep_imports()
    name = options["queueManager"]
    part.where.check(name)
    arrow = arrow_schema(schema)
    choice = QueueChoice.of(options)
    try:
        journal = SegmentRange(part.directory, durable_lsn=part.durable_lsn, first=part.first)
        if journal.end_lsn < part.end:
            raise DataLoss(
                f"journal of {name}: it ends at LSN {journal.end_lsn}, the records up to "
                f"{part.end} are not there any more"
            )
        for batch in event_batches(
            part.directory,
            [field.name for field in schema.fields],
            start=part.start,
            end=part.end,
            since=part.since,
            kinds=kinds or KINDS,
            queues=None if choice.is_all else choice,
            on_loss=on_loss(options),
            batch_rows=options["batchRows"],
            batch_bytes=options["batchBytes"],
            journal=journal,
        ):
            yield record_batch(batch.to_arrow(), arrow)
    except JournalDataLoss as error:
        raise DataLoss(f"journal of {name}: {error.text}") from error
    except DamagedFile as error:
        raise SourceError(f"journal of {name}: {error}") from error

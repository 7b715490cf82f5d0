"""Which records of the journal take effect, and when: an index of decided units of work.

Terms
  event      a record that changes what is on the queues: PUT, GET, EXPIRE, CLEAR, OBJECT_DELETE.
  decision   the record with which events take effect: of a unit of work its COMMIT, the
             COMMIT_PREPARED that names it, or its last record, where that commits; of an event that
             stands alone itself.
  position   (LSN of the decision, LSN of the event). Events are ordered by it.
  open unit  one whose decision has not been read. Its events wait here, 24 bytes each.
  horizon    the LSN from which on all records have been read. It falls when a unit is decided that
             began before it: a COMMIT names the first LSN of its unit. A COMMIT_PREPARED does not;
             the horizon falls, segment by segment, until the PREPARE is found, which does.

Invariants
  1. A unit is decided once: unit ids are never given twice. So a unit is complete when the horizon
     is at or below its first LSN.
  2. Open units hold every wanted event at or above the horizon that may still be decided. A restart
     drops open units that are not prepared (FORMAT.md 10.5).
  3. Events come out in the order of their positions, each once.

A unit that ends with a record of flag COMMITS has no other event: only single calls outside
syncpoint commit so, and what precedes that record are pieces of its body.

No locks, no files of its own. Errors: DamagedFile; JournalDataLoss where records are not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from . import layout as L
from .scan import index_rows, queue_names
from .segment_files import JournalDataLoss, SegmentFile
from .segment_range import SegmentRange

Column = npt.NDArray[Any]
Rows = Mapping[str, Column]
OnLoss = Literal["refuse", "skip"]
Queues = Iterable[str] | Callable[[str], bool] | None

EVENT_TYPES = {
    "PUT": L.PUT,
    "GET": L.GET,
    "EXPIRE": L.EXPIRE,
    "OBJECT_DELETE": L.OBJECT_DELETE,
    "CLEAR": L.CLEAR,
}
_DECIDING = (L.COMMIT, L.COMMIT_PREPARED)
_UNDOING = (L.BACKOUT, L.BACKOUT_PREPARED)
_UNKNOWN = -1


@dataclass(slots=True)
class EventReport:
    """Counts of units of work that gave no events.

    begun_before: they began before the LSN from which on units count. incomplete: the segments with
    their first records are not there. lost: what is missing, a sentence for each hole.
    """

    begun_before: int = 0
    incomplete: int = 0
    lost: list[str] = field(default_factory=list)

    def met(self, text: str, on_loss: OnLoss) -> None:
        """Counts a hole, or raises JournalDataLoss."""
        if on_loss != "skip":
            raise JournalDataLoss("journal", 0, "gone", text)
        self.lost.append(text)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events are chosen. types: of EVENT_TYPES. accepts: whether the queue of that name is;
    None: all are."""

    types: tuple[int, ...] = tuple(EVENT_TYPES.values())
    accepts: Callable[[str], bool] | None = None

    @classmethod
    def of_names(cls, kinds: Iterable[str], queues: Queues) -> Wanted:
        """kinds: of EVENT_TYPES. queues: names, a function that chooses names, or None: all."""
        if queues is not None and not callable(queues):
            queues = frozenset(queues).__contains__
        return cls(tuple(EVENT_TYPES[kind] for kind in kinds), queues)

    def of(self, rows: Rows, segment: SegmentFile) -> Column:
        """The mask of the chosen rows."""
        mask = np.isin(rows["event"], self.types)
        deleted = mask & (rows["event"] == L.OBJECT_DELETE)
        chosen = mask if self.accepts is not None else deleted
        if chosen.any():
            names = queue_names(rows["object"][chosen], segment)
            # an object that is no queue has no name here, and holds no messages
            queues = [name for name in np.unique(names) if self._accepts(name)]
            mask[chosen] = np.isin(names, queues)
        return mask

    def _accepts(self, name: bytes) -> bool:
        return name != b"" if self.accepts is None else self.accepts(name.decode("latin-1"))


class Positions(NamedTuple):
    """Events, ascending; a row of each array for each event. size: bytes of the body."""

    commit_lsn: Column
    commit_time: Column
    lsn: Column
    size: Column

    def part(self, start: int, end: int) -> Positions:
        """Some rows."""
        return Positions(*(column[start:end] for column in self))


class _Open(NamedTuple):
    """Events of open units."""

    unit: Column
    lsn: Column
    size: Column

    def with_more(self, other: Iterable[Column]) -> _Open:
        return _Open(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))

    def where(self, mask: Column) -> _Open:
        return self if mask.all() else _Open(*(column[mask] for column in self))


def _nothing() -> _Open:
    return _Open(*(np.empty(0, dtype=np.uint64) for _ in range(3)))


class UnitIndex:
    """The events that are decided from an LSN on.

    journal: where the records are. start: the LSN of the first decision that counts. since: units
    that began before it are passed over. looks_back: whether the horizon may fall.
    """

    def __init__(
        self,
        journal: SegmentRange,
        start: int,
        *,
        wanted: Wanted,
        since: int = 0,
        on_loss: OnLoss = "refuse",
        report: EventReport | None = None,
        looks_back: bool = True,
    ) -> None:
        self._journal = journal
        self._next = self._horizon = start
        self._wanted = wanted
        self._since = since
        self._on_loss = on_loss
        self._report = report or EventReport()
        self._looks_back = looks_back
        self._open = _nothing()
        self._prepared: dict[int, int] = {}  # unit id -> its first LSN
        self._first_epoch = self._epoch = 0

    @property
    def horizon(self) -> int:
        """The LSN from which on records have been read."""
        return self._horizon

    def go_on_in(self, journal: SegmentRange) -> None:
        """The next positions are those of a newer list of the same journal."""
        self._journal = journal

    def positions(self, end: int) -> Iterator[Positions]:
        """The events that are decided from where the last call ended up to ``end``.

        Raises DamagedFile, JournalDataLoss.
        """
        for hole in self._journal.holes(self._next, end):
            self._report.met(hole, self._on_loss)
        at = self._next
        for segment in self._journal.overlapping(at, end):
            if segment.prev_end_lsn > at:
                self._start_over(segment.base_lsn)
            self._enter(segment.restart_epoch)
            for rows in index_rows(segment, at, end, self._journal.scanned):
                yield self._take(rows, segment)
            at = segment.end_lsn
        self._next = max(self._next, end)

    def _start_over(self, lsn: int) -> None:
        """Behind a hole: of units that were open before it something may be missing."""
        self._open = _nothing()
        self._prepared.clear()
        self._horizon = lsn
        self._first_epoch = 0

    def _enter(self, epoch: int) -> None:
        """A segment of that restart epoch begins: open units of earlier ones are dropped."""
        self._first_epoch = self._first_epoch or epoch
        if epoch > self._epoch > 0 and len(self._open.unit):
            self._open = self._open.where(np.isin(self._open.unit, _ids(self._prepared)))
        self._epoch = epoch

    # ---- decisions ----

    def _take(self, rows: Rows, segment: SegmentFile) -> Positions:
        """The events that these rows decide."""
        event, unit = rows["event"], rows["unit_id"]
        for at in np.flatnonzero(event == L.PREPARE).tolist():
            self._prepared[int(unit[at])] = int(rows["first_lsn"][at])
        deciding = np.flatnonzero(rows["commits"] | np.isin(event, _DECIDING))
        ids, first = np.unique(unit[deciding], return_index=True)
        deciding = deciding[first]
        if self._looks_back and len(ids):
            ids, deciding = self._complete(rows, ids, deciding)
        wanted = self._wanted.of(rows, segment)
        alone = wanted & (unit == 0)
        new = wanted & (unit != 0)
        waiting = self._open.with_more((unit[new], rows["lsn"][new], rows["body_length"][new]))
        at = _search(ids, waiting.unit)
        decided = at >= 0
        undone = unit[np.isin(event, _UNDOING)]
        over = decided | np.isin(waiting.unit, undone) if len(undone) else decided
        self._open = waiting.where(~over)
        if self._prepared:
            for one in (*ids.tolist(), *undone.tolist()):
                self._prepared.pop(one, None)
        by = deciding[at[decided]]
        return _sorted(
            np.concatenate([rows["lsn"][alone], rows["lsn"][by]]),
            np.concatenate([rows["time"][alone], rows["time"][by]]),
            np.concatenate([rows["lsn"][alone], waiting.lsn[decided]]),
            np.concatenate([rows["body_length"][alone], waiting.size[decided]]),
        )

    def _complete(self, rows: Rows, ids: Column, deciding: Column) -> tuple[Column, Column]:
        """The decided units whose events are all known, looking back for them. The others are
        counted, or refused."""
        begun = self._begun(rows, deciding)
        self._extend(self._lowest(begun))
        while (begun == _UNKNOWN).any() and (before := self._before()) is not None:
            self._extend(before)
            begun = self._begun(rows, deciding)
        self._extend(self._lowest(begun))
        whole = begun >= self._horizon
        for at in np.flatnonzero(~whole).tolist():
            self._pass_over(int(ids[at]), int(begun[at]))
        return ids[whole], deciding[whole]

    def _begun(self, rows: Rows, deciding: Column) -> Column:
        """The first LSN of the unit that each of these rows decides, or _UNKNOWN."""
        first, own = rows["first_lsn"][deciding], rows["lsn"][deciding]
        begun = np.where(first == 0, own, first).astype(np.int64)
        unit = rows["unit_id"][deciding]
        for at in np.flatnonzero(rows["event"][deciding] == L.COMMIT_PREPARED).tolist():
            known = self._prepared.get(int(unit[at]), _UNKNOWN)
            begun[at] = known if known != 0 else own[at]  # 0: it has no records
        return begun

    def _lowest(self, begun: Column) -> int:
        """The lowest of those that may be looked back for."""
        return int(begun[begun >= self._since].min(initial=self._horizon))

    def _pass_over(self, unit: int, begun: int) -> None:
        """Counts a unit that is not complete. Raises JournalDataLoss."""
        lowest = self._horizon if begun == _UNKNOWN else begun + 1
        if lowest <= self._since:
            self._report.begun_before += 1
            return
        begin = "" if begun == _UNKNOWN else f", which began at LSN {begun},"
        text = f"of unit of work {unit}{begin} the records before LSN {self._horizon} are not there"
        self._report.met(f"{text} any more", self._on_loss)
        self._report.incomplete += 1

    # ---- looking back ----

    def _before(self) -> int | None:
        """Where the next step of looking back begins; None: there is nothing to look at."""
        before = self._journal.before(self._horizon)
        if before is None or self._horizon <= self._since:
            return None
        before = max(before, self._since)
        return None if self._journal.holes(before, self._horizon) else before

    def _extend(self, low: int) -> None:
        """Reads what precedes the horizon, from ``low`` on as far as it is there."""
        low = max(low, self._since)
        while low < self._horizon and (before := self._before()) is not None:
            self._read_before(max(low, before))

    def _read_before(self, low: int) -> None:
        """Reads the records from ``low`` up to the horizon, of one segment at most."""
        earlier = UnitIndex(self._journal, low, wanted=self._wanted, looks_back=False)
        for _ in earlier.positions(self._horizon):
            pass  # decided before the start
        earlier._enter(self._first_epoch)
        self._open = earlier._open.with_more(self._open)
        self._prepared = {**earlier._prepared, **self._prepared}
        self._first_epoch = earlier._first_epoch
        self._horizon = low


def _ids(units: Iterable[int]) -> Column:
    return np.fromiter(units, dtype=np.uint64)


def _search(ids: Column, units: Column) -> Column:
    """For each unit its index in the sorted ids; -1 where it is not among them."""
    if not len(ids):
        return np.full(len(units), -1, dtype=np.intp)
    at = np.minimum(np.searchsorted(ids, units), len(ids) - 1)
    return np.where(ids[at] == units, at, -1)


def _sorted(commit_lsn: Column, commit_time: Column, lsn: Column, size: Column) -> Positions:
    order = np.lexsort((lsn, commit_lsn))
    return Positions(commit_lsn[order], commit_time[order], lsn[order], size[order])

"""From positions of events to their rows: columns and bodies, in the order of the decisions.

Terms
  position   as in unit_index.py.
  stretch    a part of a segment that holds wanted records close to each other; one scan reads it.
  run        rows that follow each other in the result and in the scanned bodies: one copy.

A batch is read by scans of the stretches that its records lie in, in LSN order, and then put into
the order of the positions. Units whose records lie among those of others cost nothing more; one
that began long before is a stretch of its own.

No locks. Errors: DamagedFile, JournalDataLoss.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .scan import ScanBatch, scan
from .segment_files import JournalDataLoss, SegmentFile
from .segment_range import SegmentRange
from .unit_index import Positions

if TYPE_CHECKING:
    import pyarrow

Column = npt.NDArray[Any]

OWN_COLUMNS = ("commit_lsn", "commit_time")
_FAR = 1 << 20  # LSNs between two records that begin different stretches


@dataclass(frozen=True, slots=True)
class Bodies:
    """Row i has the bytes from offsets[i] to offsets[i + 1]; present: the rows with a body."""

    data: Column
    offsets: npt.NDArray[np.int64]
    present: Column


class EventBatch:
    """Some events, in order.

    columns, bodies, offsets: as in scan.ScanBatch, with commit_lsn and commit_time. messages: the
    mask of the rows that have the columns of a message.
    """

    __slots__ = ("_names", "_present", "bodies", "columns", "messages", "offsets")

    def __init__(
        self,
        names: tuple[str, ...],
        columns: Mapping[str, Column],
        messages: Column,
        bodies: Bodies | None,
    ) -> None:
        self.columns = {name: columns[name] for name in names if name != "body"}
        self.messages = messages
        self.bodies = None if bodies is None else bodies.data
        self.offsets = None if bodies is None else bodies.offsets
        self._present = messages if bodies is None else bodies.present
        self._names = names

    def __len__(self) -> int:
        return len(self.messages)

    def body(self, row: int) -> bytes | None:
        """A copy of one body; None in rows without. Raises ValueError when none were requested."""
        if self.bodies is None or self.offsets is None:
            raise ValueError("the column body was not asked for")
        if not self._present[row]:
            return None
        return bytes(self.bodies[self.offsets[row] : self.offsets[row + 1]])

    def to_arrow(self) -> pyarrow.RecordBatch:
        """The rows as an Arrow record batch, as ScanBatch.to_arrow() makes it. Needs pyarrow."""
        from .arrow import record_batch

        return record_batch(
            self._names, self.columns, self.messages, self.bodies, self.offsets, self._present
        )


@dataclass(frozen=True, slots=True)
class _Found:
    """Rows of one scanned batch. rows: their indexes in it."""

    batch: ScanBatch
    rows: Column


class EventReader:
    """Reads the rows of events.

    names: columns of a batch. kinds: events that positions may be of. batch_rows, batch_bytes: of a
    batch at most, but for one longer body.
    """

    def __init__(
        self,
        journal: SegmentRange,
        names: tuple[str, ...],
        kinds: Sequence[str],
        batch_rows: int,
        batch_bytes: int,
    ) -> None:
        self._journal = journal
        self._names = names
        self._kinds = kinds
        self._rows, self._bytes = batch_rows, batch_bytes
        self._with_bodies = "body" in names
        own = (*OWN_COLUMNS, "lsn")
        self._scanned = ("lsn", *(name for name in names if name not in own))

    def batches(self, positions: Positions) -> Iterator[EventBatch]:
        """The rows of these events, in their order. Raises DamagedFile, JournalDataLoss."""
        start, total = 0, len(positions.lsn)
        ends = np.cumsum(positions.size)
        while start < total:
            end = min(start + self._rows, total)
            if self._with_bodies:
                before = int(ends[start - 1]) if start else 0
                fit = int(np.searchsorted(ends, before + self._bytes, "right"))
                end = min(end, max(fit, start + 1))
            yield self._read(positions.part(start, end))
            start = end

    def _read(self, positions: Positions) -> EventBatch:
        lsns = np.sort(positions.lsn)
        found = [one for stretch in self._stretches(lsns) for one in self._scan(*stretch, lsns)]
        rows = sum(len(one.rows) for one in found)
        if rows != len(lsns):
            text = f"{len(lsns) - rows} records from LSN {lsns[0]} on are not there any more"
            raise JournalDataLoss("journal", 0, "gone", text)
        order = np.searchsorted(lsns, positions.lsn)
        columns = {
            name: _joined([one.batch.columns[name][one.rows] for one in found], order)
            for name in self._scanned
            if name != "body"
        }
        columns["commit_lsn"] = positions.commit_lsn
        columns["commit_time"] = positions.commit_time
        messages = _joined([one.batch.messages[one.rows] for one in found], order)
        bodies = _bodies(found, order) if self._with_bodies else None
        return EventBatch(self._names, columns, messages, bodies)

    def _stretches(self, lsns: Column) -> Iterator[tuple[SegmentFile, int, int]]:
        """The stretches with these records: segment, LSN of the first and of the last one."""
        for segment in self._journal.overlapping(int(lsns[0]), int(lsns[-1]) + 1):
            first, last = np.searchsorted(lsns, (segment.base_lsn, segment.end_lsn))
            here = lsns[first:last]
            if len(here):
                far = np.flatnonzero(np.diff(here) > _FAR) + 1
                for part in np.split(here, far):
                    yield segment, int(part[0]), int(part[-1])

    def _scan(self, segment: SegmentFile, first: int, last: int, lsns: Column) -> Iterator[_Found]:
        """The records of a stretch that are among these."""
        for batch in scan(
            segment,
            self._scanned,
            start_lsn=first,
            end_lsn=last + 1,
            events=self._kinds,
            verify=self._with_bodies,
            batch_rows=self._rows,
            batch_bytes=self._bytes,
            report=self._journal.scanned,
        ):
            lsn = batch.columns["lsn"]
            at = np.minimum(np.searchsorted(lsns, lsn), len(lsns) - 1)
            rows = np.flatnonzero(lsns[at] == lsn)
            if len(rows):
                yield _Found(batch, rows)


def _joined(parts: list[Column], order: Column) -> Column:
    """The parts as one array, in that order."""
    return np.concatenate(parts)[order]


def _bodies(found: list[_Found], order: Column) -> Bodies:
    """The bodies of the rows in that order; those of one batch as they are, when none is left out
    and the order is theirs."""
    present = _joined([one.batch.has_body[one.rows] for one in found], order)
    if len(found) == 1 and len(found[0].rows) == len(found[0].batch):
        data, offsets = found[0].batch.bodies, found[0].batch.offsets
        if data is not None and offsets is not None and bool((np.diff(order) == 1).all()):
            return Bodies(data, offsets, present)
    begins, sizes, sources = [], [], []
    for number, one in enumerate(found):
        assert one.batch.offsets is not None
        begins.append(one.batch.offsets[one.rows])
        sizes.append(one.batch.offsets[one.rows + 1] - begins[-1])
        sources.append(np.full(len(one.rows), number))
    begin, size, source = _joined(begins, order), _joined(sizes, order), _joined(sources, order)
    offsets = np.concatenate([[0], np.cumsum(size)])
    data = np.empty(int(offsets[-1]), dtype=np.uint8)
    breaks = (begin[1:] != begin[:-1] + size[:-1]) | (source[1:] != source[:-1])
    bounds = np.concatenate([[0], np.flatnonzero(breaks) + 1, [len(order)]])
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        memory = found[source[first]].batch.bodies
        assert memory is not None
        length = int(offsets[last] - offsets[first])
        data[offsets[first] : offsets[last]] = memory[begin[first] : begin[first] + length]
    return Bodies(data, offsets, present)

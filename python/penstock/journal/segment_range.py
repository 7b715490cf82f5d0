"""The segments that hold a range of LSNs, of the journal and its archive as one.

Terms
  range   [start, end) in LSNs. The stream of batches has gaps of LSNs: behind the last batch of a
          segment, and where a restart began a segment. Nothing is missing in them.
  hole    a segment that is not there, between others or before the oldest one: pruned, moved
          elsewhere, or, with circular logging, written over.

The list is made once, so that all readers of a range agree on where the newest segment ends. Older
segments are listed when a reader looks back, no further than it does: an archive may have tens of
thousands, and listing one opens it.

No locks. Errors: DamagedFile; JournalDataLoss names the LSNs of a hole.
"""

from __future__ import annotations

import os

from .segment_files import (
    JournalDataLoss,
    ScanReport,
    SegmentFile,
    list_segments,
    listed_numbers,
    segment_at,
)

_NEWEST = 2  # segments that newest() lists at once
_ATTEMPTS = 20  # at the oldest segment, which may be removed meanwhile


class SegmentRange:
    """The segments of a queue manager as of one moment.

    directory: the queue manager's. durable_lsn: as of list_segments(). first: the number of the
    first segment that is listed at once.
    """

    def __init__(
        self, directory: str | os.PathLike[str], *, durable_lsn: int = 0, first: int = 1
    ) -> None:
        self.directory = os.path.abspath(os.fspath(directory))
        self.scanned = ScanReport()
        self._durable_lsn = durable_lsn
        self._segments = list_segments(directory, durable_lsn=durable_lsn, first=first)
        self._listed_from = first if self._segments else 1
        if not self._segments:
            self._segments = list_segments(directory, durable_lsn=durable_lsn)
        if not self._segments:
            raise JournalDataLoss("journal", 0, "gone", "there are no segments")

    @classmethod
    def newest(cls, directory: str | os.PathLike[str], durable_lsn: int) -> SegmentRange:
        """For who reads near the end: the newest segments are listed at once."""
        newest = max(listed_numbers(directory), default=1)
        return cls(directory, durable_lsn=durable_lsn, first=max(1, newest + 1 - _NEWEST))

    @property
    def end_lsn(self) -> int:
        """The end of what is durable; the ranges of readers end there at the latest."""
        return self._segments[-1].end_lsn

    @property
    def oldest_lsn(self) -> int:
        """The LSN from which on there is no hole."""
        known = {segment.number: segment for segment in self._segments}
        for _ in range(_ATTEMPTS):
            numbers = listed_numbers(self.directory) if self._listed_from > 1 else known.keys()
            oldest = self._segments[-1].number
            while oldest - 1 in numbers:
                oldest -= 1
            segment = known.get(oldest) or segment_at(self.directory, oldest)
            if segment is not None:
                return segment.base_lsn
        raise JournalDataLoss("journal", 0, "gone", "the oldest segments go while they are listed")

    def before(self, lsn: int) -> int | None:
        """The begin of the segment that lies before ``lsn``; None when there is none."""
        self._list_back_to(lsn - 1)
        return max((s.base_lsn for s in self._segments if s.base_lsn < lsn), default=None)

    def number_at(self, lsn: int) -> int:
        """The number of the segment where records from ``lsn`` on begin."""
        numbers = [s.number for s in self._segments if s.base_lsn <= lsn]
        return max(numbers, default=self._segments[0].number)

    def overlapping(self, start: int, end: int) -> list[SegmentFile]:
        """The segments with records in [start, end), ascending."""
        self._list_back_to(start)
        return [s for s in self._segments if s.end_lsn > start and s.base_lsn < end]

    def holes(self, start: int, end: int) -> list[str]:
        """What is missing in [start, end), a sentence for each hole."""
        self._list_back_to(start)
        found = []
        for segment in self._segments:
            if segment.prev_end_lsn > start < end:
                until = min(segment.prev_end_lsn, end)
                found.append(f"records from LSN {start} to {until} are not there any more")
            start = max(start, segment.end_lsn)
        return found

    def _list_back_to(self, lsn: int) -> None:
        """Lists what lies before the segments that are known, until one begins at that LSN or
        before it, or there are no more; those that are known stay as they are.
        """
        newest = self._segments[-1].number
        while self._listed_from > 1 and self._segments[0].base_lsn > lsn:
            twice = 2 * (newest + 1 - self._listed_from)
            self._listed_from = max(1, newest + 1 - twice)
            known = self._segments[0].number
            older = list_segments(
                self.directory, durable_lsn=self._durable_lsn, first=self._listed_from
            )
            self._segments = [s for s in older if s.number < known] + self._segments

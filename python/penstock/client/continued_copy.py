"""A copy, continued by the archive of linear logging: the same as if the backup had ended later.

The journal of a copy ends in one segment. Later segments, and that one whole, are in the archive of
the queue manager or still in its journal. They are copied behind those of the copy, up to a moment:
the end of the last flush batch that was sealed by then, or before an LSN.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from ..journal import DamagedFile
from ..journal import layout as L
from ..journal.segment import round_up
from ..journal.segment_files import SegmentFile, list_segments
from ..journal.store import View, archived_segments
from .backup_files import Pace, copy_file, head_file, open_source, write_file

Moment = int | datetime
_COMPARED = 1 << 20


def continue_copy(
    source: Path,
    view: View,
    ended: int,
    later: Path,
    until: Moment,
    target: Path,
    timeline: int,
) -> int:
    """Makes a copy in the empty directory ``target``: ``source`` continued by the
    segments in the queue manager's directory ``later``. Returns the LSN where its journal ends.

    ended: where the journal of the copy ends. until: an aware datetime, or an LSN.

    Raises DamagedFile when the segments do not continue the copy, ValueError for a moment before
    its end.
    """
    newest = view.segments[-1]
    chosen, end_lsn = _choose(source, view, ended, later, until)
    for folder in (target / "journal", target / "checkpoint"):
        os.mkdir(folder, 0o700)
    for segment in view.segments[:-1]:
        _copy(source / segment.file, target / segment.file, None)
    for found in chosen:
        to = target / "journal" / f"{found.number:010d}.psj"
        _copy(_where(later, found), to, min(found.end_lsn, end_lsn) - found.base_lsn)
    assert view.checkpoint is not None
    _copy(source / view.checkpoint.file, target / view.checkpoint.file, None)
    last = chosen[-1]
    write_file(target / "HEAD", head_file(newest.qm_id, last.number, last.generation, timeline))
    write_file(target / "qm.toml", (source / "qm.toml").read_bytes())
    return end_lsn


def _where(later: Path, segment: SegmentFile) -> Path:
    """Its file, which may have moved to the archive since it was listed."""
    listed = later / segment.file
    if listed.exists():
        return listed
    names = archived_segments(os.listdir(later / "archive"))
    return later / "archive" / names[segment.number]


def _copy(source: Path, to: Path, end: int | None) -> None:
    fd = open_source(source)
    try:
        copy_file(fd, to, end, Pace(None), lambda count: None)
    finally:
        os.close(fd)


def _begin_alike(one: Path, other: Path, count: int) -> bool:
    """Whether the first bytes are the same, header included: one history, not two."""
    with open(open_source(one), "rb") as first, open(open_source(other), "rb") as second:
        for at in range(0, count, _COMPARED):
            size = min(_COMPARED, count - at)
            if first.read(size) != second.read(size):
                return False
    return True


def _choose(
    source: Path, view: View, ended: int, later: Path, until: Moment
) -> tuple[list[SegmentFile], int]:
    """The segments from the copy's newest one on, and where the journal ends."""
    newest = view.segments[-1]
    found = [s for s in list_segments(later, on_damage="skip") if s.number >= newest.number]
    if (
        not found
        or found[0].number != newest.number
        or not _begin_alike(source / newest.file, _where(later, found[0]), ended - newest.base_lsn)
    ):
        text = f"the segment {newest.number} in {later} does not continue it"
        raise DamagedFile(newest.file, 0, "chain", text)
    chosen: list[SegmentFile] = []
    end_lsn = 0
    for segment in found:
        if chosen and segment.number != chosen[-1].number + 1:
            text = f"segment {chosen[-1].number + 1} is neither in the archive nor the journal"
            raise DamagedFile(segment.file, 48, "chain", text)
        end = _end_in(later, segment, until)
        if end == segment.base_lsn + L.PAGE and chosen:
            break  # nothing of it
        chosen.append(segment)
        end_lsn = end
        if end < segment.end_lsn:
            break
    if end_lsn < ended:
        raise ValueError(f"{until} is before the copy was made: LSN {ended} is the first it can be")
    return chosen, end_lsn


def _end_in(root: Path, segment: SegmentFile, until: Moment) -> int:
    """The end of the last batch of the segment that belongs to the moment."""
    end = segment.base_lsn + L.PAGE
    for lsn, after, time_us in _batches(_where(root, segment), segment):
        late = lsn >= until if isinstance(until, int) else time_us > until.timestamp() * 1e6
        if late:
            break
        end = after
    return end


def _batches(path: Path, segment: SegmentFile) -> Iterator[tuple[int, int, int]]:
    """LSN, end and time of each flush batch. They are checked when the copy is."""
    fd = open_source(path)
    try:
        data = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
    finally:
        os.close(fd)
    at, stop = L.PAGE, segment.end_lsn - segment.base_lsn
    while at < stop:
        header = L.overlay("psj_batch", data[at : at + L.BATCH_HEADER])[0]
        if int(header.lsn) != segment.base_lsn + at:
            raise DamagedFile(segment.file, at, "batch", "no flush batch begins here")
        after = at + round_up(max(int(header.length), L.BATCH_HEADER))
        yield segment.base_lsn + at, segment.base_lsn + after, int(header.time_us)
        at = after

"""A consistent view of a queue manager's files: the valid segments and the end of the journal.

A :class:`View` is made from the names, the headers and the newest whole checkpoint. If a queue
manager is at work, files may change during the reading; on a contradiction the reader checks
whether they did and, if so, starts over (:func:`steady`). A contradiction in unchanged files is
damage.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from . import checksum
from . import layout as L
from .checkpoint import Checkpoint, choose_checkpoint, read_checkpoint
from .errors import DamagedFile
from .files import FileSet
from .head import Head, check_head, read_head
from .records import (
    Record,
    common_distance,
    is_common,
    is_short,
    record_length,
    take_record,
    take_short,
)
from .segment import Checker, Scan, Segment, newest_mark, read_segment, scan_segment, segment_name

T = TypeVar("T")

_SEGMENT_NAME = re.compile(r"[0-9]{10}\.psj")
_ARCHIVED_NAME = re.compile(r"([0-9]{10})-([0-9]{10})(?:-([0-9]{2}))?\.psj")
_ATTEMPTS = 20
_PAUSE = 0.01  # seconds between two reads


class FilesChanged(DamagedFile):
    """A segment was recycled while it was read; a second read will find another state."""


@dataclass(frozen=True, slots=True)
class TornTail:
    """The incomplete batch that a crash left after the end of the journal."""

    file: str
    offset: int
    lsn: int
    text: str


def segment_numbers(names: list[str]) -> list[int]:
    """Numbers of the segment files among ``names``, ascending."""
    return sorted(int(name[:10]) for name in names if _SEGMENT_NAME.fullmatch(name))


def archived_name(timeline: int, number: int, copy: int = 0) -> str:
    """``0000000000-0000000007.psj``, and ``0000000000-0000000007-01.psj`` for copy 1."""
    return f"{timeline:010d}-{number:010d}{f'-{copy:02d}' if copy else ''}.psj"


@dataclass(frozen=True, slots=True, order=True)
class ArchivedName:
    """The name of an archived segment, taken apart; ascending, those that were archived later."""

    timeline: int
    number: int
    copy: int

    @property
    def name(self) -> str:
        """The name, as the writer spells it."""
        return archived_name(self.timeline, self.number, self.copy)


def archived_names(names: list[str]) -> list[ArchivedName]:
    """All segment files among the names in ``archive``, ascending."""
    matches = filter(None, map(_ARCHIVED_NAME.fullmatch, names))
    found = (ArchivedName(int(m[1]), int(m[2]), int(m[3] or 0)) for m in matches)
    return sorted(at for at in found if at.name in names)


def archived_segments(names: list[str]) -> dict[int, str]:
    """Number -> name of the archived segments that belong to the journal's history: of files with
    one number the one that was archived last (FORMAT.md, section 1)."""
    return {at.number: at.name for at in archived_names(names)}


def steady(files: FileSet, look: Callable[[], T]) -> T:
    """Runs ``look`` and repeats it while it fails and the files change.

    Times of change are coarse, so files count as unchanged only when that was seen twice.
    """
    unchanged = 0
    for _ in range(_ATTEMPTS if files.patience else 0):
        before = files.fingerprint()
        try:
            return look()
        except (DamagedFile, FileNotFoundError) as error:
            files.forget()
            moving = isinstance(error, FilesChanged) or files.fingerprint() != before
        unchanged = 0 if moving else unchanged + 1
        if unchanged == files.patience:
            break
        time.sleep(_PAUSE)
    try:
        return look()
    except FileNotFoundError as error:
        raise DamagedFile(str(error.filename), 0, "file", "is missing") from error


class View:
    """Segments that count, ascending: from the begin segment on without holes, before it those that
    the checkpoint lists; the newest whole checkpoint, or None; what is wrong with newer ones."""

    def __init__(
        self,
        files: FileSet,
        segments: list[Segment],
        checkpoint: Checkpoint | None,
        passed_over: list[DamagedFile],
    ) -> None:
        self.files = files
        self.segments = segments
        self.checkpoint = checkpoint
        self.passed_over = passed_over
        self._bases = [segment.base_lsn for segment in segments]
        self._by_number = {segment.number: segment for segment in segments}

    @property
    def begin_lsn(self) -> int:
        """Records below it are in the checkpoint already."""
        return self.checkpoint.begin_lsn if self.checkpoint else 0

    def replay_from(self) -> int:
        """Number of the segment where the replay begins."""
        return self.checkpoint.begin_segment if self.checkpoint else self.segments[0].number

    def segment_of(self, lsn: int) -> Segment | None:
        """The segment that holds ``lsn``."""
        at = bisect_right(self._bases, lsn) - 1
        if at < 0 or lsn >= self.segments[at].end_lsn:
            return None
        return self.segments[at]

    def required_end(self, segment: Segment) -> int | None:
        """The LSN to which the segment's batches must reach: as the next segment says, or the
        checkpoint when that is gone; None for the newest."""
        after = self._by_number.get(segment.number + 1)
        if after is not None:
            return after.prev_end_lsn
        listed = self.checkpoint.listed.get(segment.number) if self.checkpoint else None
        return None if listed is None else listed[2]

    def copy(self, segment: Segment) -> bytes:
        """The whole segment, copied; FilesChanged when it was recycled during the copy."""
        data = self.files.read(segment.file, 0, segment.size)
        self.still(segment, data[: L.PAGE])
        return data

    def still(self, segment: Segment, page: bytes | None = None) -> None:
        """Raises FilesChanged unless the file is still ``segment``."""
        for look in (page, self.files.read(segment.file, 0, L.PAGE)):
            if look is None:
                continue
            h = L.overlay("psj_segment", look)[0] if len(look) == L.PAGE else None
            if h is None or h.generation != segment.generation or h.segment_no != segment.number:
                text = "the segment was recycled while it was read"
                raise FilesChanged(segment.file, 56, "recycled", text)

    def scan(self, segment: Segment, checker: Checker | None = None) -> Scan:
        """The batches of one segment, up to the end that its successor gives."""
        end = self.required_end(segment)
        limit = None if end is None else end - segment.base_lsn
        return scan_segment(segment, self.copy(segment), limit=limit, checker=checker)

    def scans(self, first: int, checker: Checker | None = None) -> Iterator[Scan]:
        """The segments from number ``first`` on; raises DamagedFile where the chain breaks."""
        for segment in self.segments:
            if segment.number >= first:
                scan = self.scan(segment, checker)
                check_end(scan, self.required_end(segment), self.checkpoint)
                yield scan

    def _common_of(self, segment: Segment, offset: int, data: bytes) -> bytes:
        """The COMMON record of the short one at ``offset``; nothing when that is none, or bad."""
        distance = common_distance(data)
        least = L.PAGE + L.BATCH_HEADER
        if not is_short(data) or distance % 8 or not L.RECORD_HEADER <= distance <= offset - least:
            return b""
        head = self.files.read(segment.file, offset - distance, min(distance, L.COMMON_MAX))
        common = head[: record_length(head)]
        whole = is_common(head, 0, len(head)) and len(common) == record_length(head)
        good = whole and checksum.record_crc(common) == int.from_bytes(common[4:8], "little")
        return common if good else b""

    def record_at(self, lsn: int, expected: tuple[int, ...], identity: int) -> Record:
        """The record at ``lsn``, which must be of such a type and that message. Raises
        DamagedFile."""
        segment = self.segment_of(lsn)
        if segment is None or lsn % 8 or lsn - segment.base_lsn < L.PAGE + L.BATCH_HEADER:
            text = f"message {identity}: no segment holds its record at LSN {lsn}"
            raise DamagedFile("journal", 0, "message", text)
        offset = lsn - segment.base_lsn
        size = record_length(self.files.read(segment.file, offset, 2))
        limit = min(L.RECORD_MAX, segment.size - offset)
        if not L.RECORD_MIN <= size <= limit:
            text = f"record of {size} bytes where message {identity} should be"
            self.still(segment)
            raise DamagedFile(segment.file, offset, "message", text)
        data = self.files.read(segment.file, offset, size)
        common = self._common_of(segment, offset, data)
        self.still(segment)
        short = is_short(data)
        seed = int.from_bytes(common[4:8], "little")
        stored = int.from_bytes(data[4:8], "little")
        lost = record_length(data) != size or (short and not common)
        if lost or checksum.record_crc(data, seed) != stored:
            text = f"the CRC of a record of message {identity} is wrong"
            raise DamagedFile(segment.file, offset, "message", text)
        record = (
            take_short(segment.file, offset, lsn, data, common)
            if short
            else take_record(segment.file, offset, lsn, data)
        )
        if record.type not in expected or record.identity != identity:
            text = f"a {record.type_name} record of message {record.identity}, not of {identity}"
            raise DamagedFile(segment.file, offset, "message", text)
        return record


def check_end(scan: Scan, required: int | None, checkpoint: Checkpoint | None) -> None:
    """Torn tail or damage: raises DamagedFile when something known durable lies above the end.

    required: where the batches of a segment that is not the newest end.
    """
    segment = scan.segment
    if required is not None:
        if scan.problem is not None:
            text = f"{scan.problem}; batches up to LSN {required} were there"
            raise DamagedFile(segment.file, scan.problem_offset, "batch", text)
        return
    if checkpoint is not None and checkpoint.end_lsn > scan.end_lsn:
        text = f"the journal ends at LSN {scan.end_lsn} ({scan.problem}), but the checkpoint says "
        text += f"that it was durable to {checkpoint.end_lsn}"
        raise DamagedFile(segment.file, scan.problem_offset, "batch", text)
    if scan.problem is None:
        return
    mark, offset = newest_mark(segment, scan.data, scan.end)
    if mark > scan.end_lsn:
        text = f"{scan.problem}; the mark at offset {offset} says that LSN {mark} was durable"
        raise DamagedFile(segment.file, scan.problem_offset, "batch", text)


def torn_tail(scan: Scan) -> TornTail | None:
    """The incomplete batch after the end of the newest segment, None when there is none."""
    if scan.problem is None or not scan.written:
        return None
    return TornTail(scan.segment.file, scan.end, scan.end_lsn, scan.problem)


def read_view(files: FileSet, qm_id: bytes | None) -> View:
    """A View of the files as they are now. Raises DamagedFile."""
    head = _head(files, qm_id)  # before the names: the segments there are as new, or newer
    path, data, passed_over = choose_checkpoint(files)
    checkpoint = read_checkpoint(path, data, qm_id) if path else None
    qm_id = qm_id or (checkpoint.qm_id if checkpoint else None)
    numbers = segment_numbers(files.names("journal"))
    begin = checkpoint.begin_segment if checkpoint else 1
    unread = passed_over[0] if passed_over and not checkpoint else None
    if not numbers or numbers[-1] < begin:
        raise unread or DamagedFile("journal", 0, "chain", f"segment {begin} is missing")
    segments: list[Segment] = []
    for number in range(numbers[-1], begin - 1, -1):
        if number not in numbers:
            raise unread or DamagedFile("journal", 0, "chain", f"segment {number} is missing")
        segment = _segment_at(files, number, qm_id)
        if segments:
            check_order(segment, segments[-1])
        qm_id = segment.qm_id
        segments.append(segment)
    # others before the begin segment are left over from a retirement that a crash cut short
    for number in sorted(checkpoint.listed, reverse=True) if checkpoint else ():
        if number not in numbers:
            text = f"segment {number} is missing, the checkpoint lists it"
            raise DamagedFile("journal", 0, "chain", text)
        segment = _segment_at(files, number, qm_id)
        _check_listed(segment, segments[-1], checkpoint.listed[number] if checkpoint else None)
        segments.append(segment)
    segments.reverse()
    if isinstance(head, DamagedFile):
        raise head
    check_head(head, segments[-1])
    if checkpoint is not None:
        check_checkpoint(checkpoint, segments)
    return View(files, segments, checkpoint, passed_over)


def _head(files: FileSet, qm_id: bytes | None) -> Head | DamagedFile:
    """What HEAD says, or what is wrong with it: missing segments are named first."""
    try:
        return read_head(files, qm_id)
    except DamagedFile as error:
        return error


def _segment_at(files: FileSet, number: int, qm_id: bytes | None) -> Segment:
    path = segment_name(number)
    segment = read_segment(path, files.read(path, 0, L.PAGE), files.size(path), qm_id)
    _check_number(segment, number)
    return segment


def _check_listed(segment: Segment, after: Segment, listed: tuple[int, int, int] | None) -> None:
    """Checks a segment before the begin segment against its line in the checkpoint and the next
    segment, which need not be its neighbour. Raises DamagedFile."""
    generation, base, end = listed or (0, 0, 0)
    if (segment.generation, segment.base_lsn) != (generation, base):
        text = f"has generation {segment.generation} and LSN {segment.base_lsn}, the checkpoint "
        raise DamagedFile(segment.file, 56, "chain", text + f"lists {generation} and {base}")
    if not base + L.PAGE <= end <= segment.end_lsn:
        text = f"LSN {end} is not an end of segment {segment.number}"
        raise DamagedFile(segment.file, 72, "chain", text)
    if after.number == segment.number + 1:
        check_order(segment, after)
        if after.prev_end_lsn != end:
            text = f"segment {segment.number} ends at LSN {after.prev_end_lsn}, the checkpoint "
            raise DamagedFile(after.file, 88, "chain", text + f"lists {end}")
    elif (
        after.base_lsn < segment.end_lsn
        or after.generation <= segment.generation
        or after.restart_epoch < segment.restart_epoch
    ):
        text = f"does not follow segment {segment.number}"
        raise DamagedFile(after.file, 56, "chain", text)


def _check_number(segment: Segment, number: int) -> None:
    if segment.number != number:
        text = f"the name says segment {number}, the header {segment.number}"
        raise DamagedFile(segment.file, 48, "chain", text)


def check_order(segment: Segment, after: Segment) -> None:
    """Checks neighbouring segments against each other. Raises DamagedFile for the later one."""
    if after.base_lsn < segment.end_lsn:
        raise DamagedFile(after.file, 72, "chain", "begins inside the segment before it")
    if after.generation <= segment.generation:
        raise DamagedFile(after.file, 56, "chain", "its generation is not above its predecessor's")
    if after.restart_epoch < segment.restart_epoch:
        raise DamagedFile(after.file, 64, "chain", "its epoch is below its predecessor's")
    if not segment.base_lsn + L.PAGE <= after.prev_end_lsn <= segment.end_lsn:
        text = f"LSN {after.prev_end_lsn} is not an end of segment {segment.number}"
        raise DamagedFile(after.file, 88, "chain", text)


def check_checkpoint(checkpoint: Checkpoint, segments: list[Segment]) -> None:
    """Checks the checkpoint against the segments. Raises DamagedFile."""
    newest = segments[-1]
    if checkpoint.generation > newest.generation:
        text = f"names generation {checkpoint.generation}, the newest segment has "
        raise DamagedFile(checkpoint.file, 96, "chain", text + str(newest.generation))
    begin = checkpoint.begin_segment
    segment = next(segment for segment in segments if segment.number == begin)
    if not segment.prev_end_lsn <= checkpoint.begin_lsn <= segment.end_lsn:
        text = f"begin LSN {checkpoint.begin_lsn} is not in segment {begin}"
        raise DamagedFile(checkpoint.file, 48, "chain", text)

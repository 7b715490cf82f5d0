"""A consistent view of a queue manager's files: the valid segments and the end of the journal.

A :class:`View` is made from the names, the headers and the newest checkpoint. If a queue manager is
at work, files may change during the reading; on a contradiction the reader checks whether they did
and, if so, starts over (:func:`steady`). A contradiction in unchanged files is damage.
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
from .checkpoint import Checkpoint, checkpoint_names, read_checkpoint
from .errors import DamagedFile
from .files import FileSet
from .records import Record, take_record
from .segment import Checker, Scan, Segment, newest_mark, read_segment, scan_segment, segment_name

T = TypeVar("T")

_SEGMENT_NAME = re.compile(r"[0-9]{10}\.psj")
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
    """Segments that count, ascending, without holes; the newest checkpoint, or None."""

    def __init__(
        self, files: FileSet, segments: list[Segment], checkpoint: Checkpoint | None
    ) -> None:
        self.files = files
        self.segments = segments
        self.checkpoint = checkpoint
        self._bases = [segment.base_lsn for segment in segments]

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

    def successor(self, segment: Segment) -> Segment | None:
        """The next segment, None for the newest."""
        at = segment.number - self.segments[0].number + 1
        return self.segments[at] if at < len(self.segments) else None

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
        after = self.successor(segment)
        limit = None if after is None else after.prev_end_lsn - segment.base_lsn
        return scan_segment(segment, self.copy(segment), limit=limit, checker=checker)

    def scans(self, first: int, checker: Checker | None = None) -> Iterator[Scan]:
        """The segments from number ``first`` on; raises DamagedFile where the chain breaks."""
        for segment in self.segments[first - self.segments[0].number :]:
            scan = self.scan(segment, checker)
            check_end(scan, self.successor(segment), self.checkpoint)
            yield scan

    def record_at(self, lsn: int, expected: int, identity: int) -> Record:
        """The record at ``lsn``, which must be of that type and message. Raises DamagedFile."""
        segment = self.segment_of(lsn)
        if segment is None or lsn % 8 or lsn - segment.base_lsn < L.PAGE + L.BATCH_HEADER:
            text = f"message {identity}: no segment holds its record at LSN {lsn}"
            raise DamagedFile("journal", 0, "message", text)
        offset = lsn - segment.base_lsn
        data = self.files.read(segment.file, offset, 4)
        size = int.from_bytes(data, "little")
        limit = min(L.RECORD_MAX, segment.size - offset)
        if not L.RECORD_HEADER <= size <= limit or size % 8:
            text = f"record of {size} bytes where message {identity} should be"
            self.still(segment)
            raise DamagedFile(segment.file, offset, "message", text)
        data = self.files.read(segment.file, offset, size)
        self.still(segment)
        view = memoryview(data)
        crc = int.from_bytes(data[4:8], "little")
        if int.from_bytes(data[:4], "little") != size or crc != checksum.crc32c(
            view[8:], checksum.crc32c(view[:4])
        ):
            text = f"the CRC of a record of message {identity} is wrong"
            raise DamagedFile(segment.file, offset, "message", text)
        record = take_record(segment.file, offset, lsn, data)
        if record.type != expected or record.identity != identity:
            text = f"a {record.type_name} record of message {record.identity}, not of {identity}"
            raise DamagedFile(segment.file, offset, "message", text)
        return record


def check_end(scan: Scan, after: Segment | None, checkpoint: Checkpoint | None) -> None:
    """Torn tail or damage: raises DamagedFile when something known durable lies above the end."""
    segment = scan.segment
    if after is not None:
        if scan.problem is not None:
            text = f"{scan.problem}; segment {after.number} requires batches up to LSN "
            text += str(after.prev_end_lsn)
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
    names = checkpoint_names(files.names("checkpoint"))
    checkpoint = None
    if names:
        path = f"checkpoint/{names[0]}"
        checkpoint = read_checkpoint(path, files.read(path, 0, files.size(path)), qm_id)
        qm_id = qm_id or checkpoint.qm_id
    numbers = segment_numbers(files.names("journal"))
    needed = checkpoint.needs_segment() if checkpoint else 1
    if not numbers or numbers[-1] < needed:
        raise DamagedFile("journal", 0, "chain", f"segment {needed} is missing")
    segments: list[Segment] = []
    for number in reversed(numbers):
        if segments and segments[-1].number != number + 1:
            break  # older ones are left over from a retirement that a crash cut short
        path = segment_name(number)
        try:
            page = files.read(path, 0, L.PAGE)
            segment = read_segment(path, page, files.size(path), qm_id)
            _check_number(segment, number)
            if segments:
                check_order(segment, segments[-1])
        except (DamagedFile, FileNotFoundError):
            if number < needed:
                break
            raise
        qm_id = segment.qm_id
        segments.append(segment)
    if segments[-1].number > needed:
        text = f"segment {segments[-1].number - 1} is missing, {needed} is the oldest needed"
        raise DamagedFile("journal", 0, "chain", text)
    segments.reverse()
    if checkpoint is not None:
        check_checkpoint(checkpoint, segments)
    return View(files, segments, checkpoint)


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
    if not segments[0].number <= begin <= newest.number:
        raise DamagedFile(checkpoint.file, 56, "chain", f"replay begins in segment {begin}")
    segment = segments[begin - segments[0].number]
    if not segment.prev_end_lsn <= checkpoint.begin_lsn <= segment.end_lsn:
        text = f"begin LSN {checkpoint.begin_lsn} is not in segment {begin}"
        raise DamagedFile(checkpoint.file, 48, "chain", text)

"""The segment files of a journal and its archive: listing them, their order, their ends.

No function takes a lock or writes. A queue manager may be at work: files move to the archive or are
recycled during a listing, which generations detect (FORMAT.md, "Reading beside a writer").
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from .. import _engine
from ..admin.settings import SettingsError, read_settings
from ..errors import MQError
from . import layout as L
from .checkpoint import checkpoint_names
from .errors import DamagedFile
from .files import DirectoryFiles
from .head import read_head
from .store import archived_segments, segment_numbers

OnDamage = Literal["refuse", "skip"]

_FOLDERS = ("journal", "archive")
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_POPULATE_READ = 22  # MADV_POPULATE_READ, Linux 5.14
_POPULATE_STEP = 16 << 20
_ATTEMPTS = 5
_HEAD = struct.Struct("<QQ")  # segment_no, generation; at 48 of a segment's header


class JournalDataLoss(DamagedFile):
    """A segment that was listed, or holds a part of a body, is not there any more."""


@dataclass(slots=True)
class ScanReport:
    """Counts of what scans read and skipped; several scans may share one.

    damage: what was skipped. damaged_bytes: of the segments, skipped for it. bodies_lost: PUT rows
    with a body of which a part is in a segment that is gone; their body is null.
    """

    segments: int = 0
    batches: int = 0
    records: int = 0
    rows: int = 0
    damage: list[DamagedFile] = field(default_factory=list)
    damaged_bytes: int = 0
    bodies_lost: int = 0

    def met(self, error: DamagedFile, on_damage: OnDamage) -> None:
        """Counts damage, or raises it."""
        if on_damage != "skip":
            raise error
        self.damage.append(error)


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """One segment of a queue manager's journal, as it was when it was listed. Picklable.

    directory: the queue manager's. end_lsn: batches below it are read, no others. closed: the next
    segment gives the end of this one; otherwise it is the LSN known durable. first_us: wall clock
    of its first batch, last_us: at or after that of its last one; None when there is none.
    name: of the file, in ``archive`` if `archived`; it may have moved there since.
    """

    directory: str
    qm_id: bytes
    number: int
    generation: int
    restart_epoch: int
    base_lsn: int
    size: int
    prev_end_lsn: int
    end_lsn: int
    closed: bool
    archived: bool
    name: str
    first_us: int | None
    last_us: int | None

    @property
    def file(self) -> str:
        """Its path in the directory; the file may have moved to the archive since."""
        return f"{_FOLDERS[self.archived]}/{self.name}"


class MappedSegment:
    """A segment file that is open and mapped; `still()` is False after it was recycled."""

    def __init__(self, directory: str, name: str, qm_id: bytes, number: int) -> None:
        self.name = name
        try:
            self._fd = os.open(os.path.join(directory, name), _OPEN_FLAGS)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):
                raise DamagedFile(name, 0, "file", "is a symbolic link") from error
            if error.errno in (errno.ENXIO, errno.EACCES, errno.EIO):
                text = f"cannot be opened: {error.strerror}"
                raise DamagedFile(name, 0, "file", text) from error
            raise
        try:
            status = os.fstat(self._fd)
            if not stat.S_ISREG(status.st_mode):
                raise DamagedFile(name, 0, "file", "is not a regular file")
            if status.st_size < L.MIN_SEGMENT:
                raise DamagedFile(name, 0, "file", f"{status.st_size} bytes are no segment")
            self.bytes = mmap.mmap(self._fd, status.st_size, prot=mmap.PROT_READ)
            try:
                self.scan = _engine.SegmentScan(self.bytes, qm_id, number)
            except MQError as error:
                text = str(error.args[0] if error.args else error)
                raise DamagedFile(name, 0, "header", text) from error
        except BaseException:
            os.close(self._fd)
            raise
        header = self.scan.header
        self.identity = (header[0], header[1])

    def still(self) -> bool:
        """Whether the file is still the same segment."""
        return _HEAD.unpack(os.pread(self._fd, _HEAD.size, 48)) == self.identity

    def populate(self, end: int) -> None:
        """Makes the bytes below `end` readable: a bad sector is an error, not a signal."""
        for at in range(0, end, _POPULATE_STEP):
            try:
                self.bytes.madvise(_POPULATE_READ, at, min(_POPULATE_STEP, end - at))
            except OSError as error:
                if error.errno == errno.EINVAL:  # a kernel without it
                    return
                text = f"cannot be read: {error.strerror}"
                raise DamagedFile(self.name, at, "medium", text) from error

    def close(self) -> None:
        """Closes the file. The mapping ends with it, because no column refers to it."""
        os.close(self._fd)


def _paths(directory: str, number: int) -> Iterator[str]:
    """Where a segment may lie: in the journal, then, looked up only when asked for, the archive."""
    yield f"journal/{number:010d}.psj"
    name = archived_segments(DirectoryFiles(directory).names("archive")).get(number)
    if name is not None:
        yield f"archive/{name}"


def _paths_of(segment: SegmentFile) -> Iterator[str]:
    """The same, where it was when it was listed first."""
    yield segment.file
    yield from (path for path in _paths(segment.directory, segment.number) if path != segment.file)


def open_segment(segment: SegmentFile) -> MappedSegment:
    """The segment, in either folder. Raises JournalDataLoss, DamagedFile."""
    problem: DamagedFile | None = None
    for _ in range(2):  # it may move from one folder to the other between the two attempts
        for name in _paths_of(segment):
            try:
                mapped = MappedSegment(segment.directory, name, segment.qm_id, segment.number)
            except FileNotFoundError:
                continue
            except DamagedFile as error:
                problem = problem or error
                continue
            if mapped.identity[1] == segment.generation:
                return mapped
            mapped.close()
    if problem is not None:
        raise problem
    text = (
        f"segment {segment.number} is not there any more: recycled or removed since it was listed"
    )
    raise JournalDataLoss(segment.file, 0, "recycled", text)


def _inspect(directory: str, qm_id: bytes, number: int, in_archive: bool) -> SegmentFile | None:
    """The segment in a file; None when it is in neither folder."""
    for path in _paths(directory, number):
        folder, _, name = path.partition("/")
        if in_archive and folder == "journal":
            continue  # left over from a retirement
        try:
            mapped = MappedSegment(directory, path, qm_id, number)
        except FileNotFoundError:
            continue
        try:
            _, generation, epoch, base, size, prev_end, _, _ = mapped.scan.header
            return SegmentFile(
                directory=directory,
                qm_id=qm_id,
                number=number,
                generation=generation,
                restart_epoch=epoch,
                base_lsn=base,
                size=size,
                prev_end_lsn=prev_end,
                end_lsn=base + size,
                closed=False,
                archived=folder == "archive",
                name=name,
                first_us=mapped.scan.first_us or None,
                last_us=None,
            )
        finally:
            mapped.close()
    return None


def listed_elsewhere(segment: SegmentFile) -> SegmentFile:
    """A segment that was listed on another host: the numbers are that one's, the directory is here.

    What the file says of itself counts, and the end stays where it was. A segment that is gone
    stays as it is, and its scan says so. Raises DamagedFile.
    """
    directory, number = os.path.abspath(segment.directory), segment.number
    own = replace(segment, directory=directory, qm_id=_qm_id(directory), name=f"{number:010d}.psj")
    found = _inspect(directory, own.qm_id, number, False)
    if found is None or found.generation != segment.generation:
        return own
    end = min(max(segment.end_lsn, found.base_lsn + L.PAGE), found.end_lsn)
    return replace(found, end_lsn=end, closed=segment.closed)


def _closed_by(segment: SegmentFile, after: SegmentFile) -> SegmentFile:
    """The segment with the end that its successor gives. Raises DamagedFile."""
    if after.base_lsn < segment.base_lsn + segment.size or after.generation <= segment.generation:
        raise DamagedFile(after.file, 72, "chain", "does not follow the segment before it")
    if not segment.base_lsn + L.PAGE <= after.prev_end_lsn <= segment.base_lsn + segment.size:
        text = f"LSN {after.prev_end_lsn} is not an end of segment {segment.number}"
        raise DamagedFile(after.file, 88, "chain", text)
    return replace(segment, end_lsn=after.prev_end_lsn, closed=True, last_us=after.first_us)


def _still_open(segment: SegmentFile, durable_lsn: int) -> SegmentFile:
    """The segment without a successor: it ends where it is known to be durable."""
    mapped = open_segment(segment)
    try:
        mapped.populate(segment.size)
        mark, _, first, last = mapped.scan.look()
    finally:
        mapped.close()
    first_batch = segment.base_lsn + L.PAGE
    end = min(max(mark, durable_lsn, first_batch), segment.base_lsn + segment.size)
    return replace(segment, end_lsn=end, first_us=first or None, last_us=last or None)


def _durable_by_checkpoint(directory: str, qm_id: bytes) -> int:
    """The durable LSN in the newest checkpoint with a good header; 0 without one."""
    files = DirectoryFiles(directory)
    names = checkpoint_names(files.names("checkpoint"))
    for name in names:
        try:
            page = files.read(f"checkpoint/{name}", 0, L.PAGE)
        except FileNotFoundError:
            continue
        whole = len(page) == L.PAGE and _engine.crc32c(page[: L.PAGE - 4]) == int.from_bytes(
            page[L.PAGE - 4 :], "little"
        )
        h = L.overlay("psc_header", page)[0] if whole else None
        if h is not None and L.raw(h.magic) == L.CHECKPOINT_MAGIC and L.raw(h.qm_id) == qm_id:
            return int(h.end_lsn)
    if names:
        raise DamagedFile(f"checkpoint/{names[0]}", 0, "header", "no checkpoint has a good header")
    return 0


def _read_head(directory: str, qm_id: bytes, on_damage: OnDamage, report: ScanReport) -> int:
    """Number of the newest segment by HEAD; 0 when that is passed over."""
    try:
        return read_head(DirectoryFiles(directory), qm_id).segment_no
    except DamagedFile as error:
        report.met(error, on_damage)
        return 0


def _numbers(directory: str) -> dict[int, bool]:
    """Number -> whether it lies in the archive only. The journal's are those without a hole, with
    the archived ones between them: what lies before one is kept for a message, or left over.
    Archived ones that are newer than the journal are those of a history that was given up."""
    files = DirectoryFiles(directory)
    # in this order: a file that moves from the first folder to the second is seen in one
    journal = set(segment_numbers(files.names("journal")))
    archived = archived_segments(files.names("archive")).keys()
    number = newest = max(journal, default=0)
    found = {at: True for at in archived if at < newest or not newest}
    while number in journal or number in archived:
        found[number] = number not in journal
        number -= 1
    return dict(sorted(found.items()))


def listed_numbers(directory: str | os.PathLike[str]) -> set[int]:
    """The numbers of the segments that list_segments() lists, by the names of files alone."""
    return set(_numbers(os.fspath(directory)))


def segment_at(directory: str, number: int) -> SegmentFile | None:
    """One segment, whose end is that of its file; None: it is not there. Raises DamagedFile."""
    return _inspect(directory, _qm_id(directory), number, False)


def _qm_id(directory: str) -> bytes:
    try:
        return read_settings(directory).qm_id
    except (FileNotFoundError, SettingsError) as error:
        raise DamagedFile("qm.toml", 0, "settings", str(error)) from error


def list_segments(
    directory: str | os.PathLike[str],
    *,
    durable_lsn: int = 0,
    first: int = 1,
    on_damage: OnDamage = "refuse",
    report: ScanReport | None = None,
) -> list[SegmentFile]:
    """The segments of a queue manager in LSN order, archived ones first.

    directory: the queue manager's. durable_lsn: what an attached caller knows of
    (``qm.status().durable_lsn``); without it the newest durable mark on disk counts. The LSN where
    the newest segment ends is fixed here, so that scans of the list agree. first: segments with
    lower numbers are left out, unopened.
    on_damage: "skip" leaves out files that are damaged or do not follow the one before, passes over
    a damaged checkpoint, a bad HEAD and segments that are missing by it, and counts all of them in
    ``report``. Raises DamagedFile, with "skip" only for qm.toml.
    """
    directory = os.path.abspath(os.fspath(directory))
    report = report or ScanReport()
    qm_id = _qm_id(directory)
    named = _read_head(directory, qm_id, on_damage, report)  # before the names
    for _ in range(_ATTEMPTS):
        found: list[SegmentFile] = []
        gone = False
        numbers = _numbers(directory)
        for number, in_archive in numbers.items():
            if number < first:
                continue
            try:
                segment = _inspect(directory, qm_id, number, in_archive)
            except DamagedFile as error:
                report.met(error, on_damage)
                continue
            if segment is None:
                gone |= bool(found) and not in_archive  # the oldest may go, others not
            else:
                found.append(segment)
        if not gone:
            break
    if max(numbers, default=0) < named:
        text = f"names segment {named} as the newest, which is missing"
        report.met(DamagedFile("HEAD", 56, "head", text), on_damage)
    try:
        durable_lsn = max(durable_lsn, _durable_by_checkpoint(directory, qm_id))
    except DamagedFile as error:
        report.met(error, on_damage)
    return _with_ends(found, durable_lsn, on_damage, report)


def _with_ends(
    found: list[SegmentFile], durable_lsn: int, on_damage: OnDamage, report: ScanReport
) -> list[SegmentFile]:
    """The segments with their ends; without those that do not follow, when damage is skipped."""
    result: list[SegmentFile] = []
    newest: SegmentFile | None = None  # its end is not known yet
    for segment in found:
        try:
            if newest is not None and segment.number == newest.number + 1:
                result.append(_closed_by(newest, segment))
                newest = segment
                continue
        except DamagedFile as error:
            report.met(error, on_damage)
            continue
        _add_open(result, newest, 0, on_damage, report)
        newest = segment
    _add_open(result, newest, durable_lsn, on_damage, report)
    return result


def _add_open(
    result: list[SegmentFile],
    segment: SegmentFile | None,
    durable_lsn: int,
    on_damage: OnDamage,
    report: ScanReport,
) -> None:
    """Adds a segment without a successor, unless it turns out to be damaged."""
    if segment is None:
        return
    try:
        result.append(_still_open(segment, durable_lsn))
    except DamagedFile as error:
        report.met(error, on_damage)

"""The archive of linear logging: listing it, and removing segments that are no longer needed.

A queue manager with ``journal.logging = "linear"`` moves journal segments that it no longer needs
to the folder ``archive`` of its directory. It never reads them again: they are for
:mod:`penstock.journal.scan`. Pruning is permanent. It removes segments from the oldest on, so that
the rest has no gaps.

No file of the archive is ever replaced. When an older copy of a directory was put back beside an
archive that is newer, segments of both histories have the same numbers: those of the journal that
is there now get a further name (FORMAT.md, section 1), and the others are *superseded*, together
with those whose number is in the journal or newer than it. They are not listed, and pruned with
their number.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from .files import DirectoryFiles
from .records import utc
from .store import archived_names, archived_segments, segment_numbers

_Directory = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class ArchivedSegment:
    """One file. first, last: when its first batch was sealed, and no later than its last one was;
    None when that is not known. size: bytes."""

    file: Path
    number: int
    size: int
    first: datetime | None
    last: datetime | None


def usage(directory: _Directory) -> tuple[int, int]:
    """Files and bytes in the archive of a queue manager's directory. Looks at names and sizes."""
    files = size = 0
    for file in _files(directory):
        try:
            size += file.stat(follow_symlinks=False).st_size
        except FileNotFoundError:
            continue  # pruned since
        files += 1
    return files, size


def _files(directory: _Directory) -> list[Path]:
    """All segment files in the archive, of every history."""
    names = DirectoryFiles(directory).names("archive")
    return [Path(directory, "archive", at.name) for at in archived_names(names)]


def superseded(directory: _Directory) -> list[Path]:
    """Archived files of a history that was given up: nothing reads them. Looks at names."""
    names = DirectoryFiles(directory).names("archive")
    kept = archived_segments(names)
    journal = set(segment_numbers(DirectoryFiles(directory).names("journal")))
    newest = max(journal, default=1 << 63)
    return [
        Path(directory, "archive", at.name)
        for at in archived_names(names)
        if kept[at.number] != at.name or at.number > newest or at.number in journal
    ]


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else utc(microseconds)


def segments(directory: _Directory) -> list[ArchivedSegment]:
    """The archived segments, oldest first. Raises penstock.journal.DamagedFile."""
    from .scan import list_segments

    return [
        ArchivedSegment(
            file=Path(segment.directory, segment.file),
            number=segment.number,
            size=segment.size,
            first=_moment(segment.first_us),
            last=_moment(segment.last_us),
        )
        for segment in list_segments(directory)
        if segment.archived
    ]


def prune(directory: _Directory, before: datetime) -> list[ArchivedSegment]:
    """Removes archived segments that hold nothing from ``before`` on; returns them.

    before: an aware datetime. A segment goes when the one after it began before that moment.
    Raises ValueError for a naive datetime, OSError, penstock.journal.DamagedFile.
    """
    if before.tzinfo is None:
        raise ValueError(f"{before!r} has no time zone")
    removed: list[ArchivedSegment] = []
    for segment in segments(directory):
        if segment.last is None or segment.last >= before:
            break
        for at in archived_names(DirectoryFiles(directory).names("archive")):
            if at.number == segment.number:
                (segment.file.parent / at.name).unlink(missing_ok=True)
        removed.append(segment)
    if removed:
        folder = os.open(removed[0].file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return removed

"""Is a copy whole? What a restart of it would read, read once.

HEAD, checkpoints, headers of segments and their chain are read by the second reader; the batches of
every segment are read, and every record's checksum compared, by the scan of the core, which is a
hundred times faster. ``penstock verify`` on the copy does all of it with the second reader, and
compares the messages as well.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..journal import QueueManagerFiles
from ..journal.checkpoint import checkpoint_names, read_checkpoint
from ..journal.errors import DamagedFile
from ..journal.scan import scan
from ..journal.segment import Segment, read_segment
from ..journal.segment_files import SegmentFile
from ..journal.store import View, segment_numbers


def check_copy(path: Path, end_lsn: int) -> None:
    """Reads everything in a directory that nobody writes. Raises DamagedFile.

    end_lsn: the journal must reach up to it.
    """
    files = QueueManagerFiles(path)
    view = files.view()
    for name in checkpoint_names(os.listdir(path / "checkpoint")):
        data = (path / "checkpoint" / name).read_bytes()
        read_checkpoint(f"checkpoint/{name}", data, view.segments[-1].qm_id)
    for segment, end in _with_ends(path, view, end_lsn):
        for _ in scan(_as_file(path, segment, end), ["lsn"]):
            pass


def _with_ends(path: Path, view: View, end_lsn: int) -> list[tuple[Segment, int]]:
    """The segments of the copy, and up to where each must be whole."""
    newest = view.segments[-1]
    found = {segment.number: segment for segment in view.segments}
    for number in segment_numbers(os.listdir(path / "journal")):
        if number not in found:  # only the older checkpoint needs it
            name = f"journal/{number:010d}.psj"
            with open(path / name, "rb") as file:
                page, size = file.read(4096), os.fstat(file.fileno()).st_size
            found[number] = read_segment(name, page, size, newest.qm_id)
    result = []
    for number, segment in sorted(found.items()):
        after = found.get(number + 1)
        end = after.prev_end_lsn if after else view.required_end(segment)
        if segment is newest:
            end = end_lsn
        if end is not None:
            result.append((segment, end))
    if not newest.base_lsn < end_lsn <= newest.end_lsn:
        raise DamagedFile(newest.file, 72, "chain", f"LSN {end_lsn} does not lie in it")
    return result


def _as_file(path: Path, segment: Segment, end_lsn: int) -> SegmentFile:
    return SegmentFile(
        directory=os.fspath(path),
        qm_id=segment.qm_id,
        number=segment.number,
        generation=segment.generation,
        restart_epoch=segment.restart_epoch,
        base_lsn=segment.base_lsn,
        size=segment.size,
        prev_end_lsn=segment.prev_end_lsn,
        end_lsn=end_lsn,
        closed=True,
        archived=False,
        name=f"{segment.number:010d}.psj",
        first_us=None,
        last_us=None,
    )

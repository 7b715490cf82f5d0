"""Restore: a new queue manager from a copy, under an identity and a timeline of its own.

The order that makes it safe. The copy is verified first, and only read. The new queue manager is
made in a temporary directory of the home, verified, started once and ended in order; then its
directory gets its name. A restore that fails, or is killed, leaves no queue manager; the temporary
directory is removed by the next restore under that name. Nothing that exists is replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ..admin.directory import Home, directory_of
from ..admin.manager_files import sync_directory
from ..admin.new_directory import NewDirectory, check_free
from ..admin.settings import Settings, directory_name, write_settings
from ..constants import NAME_SPACE_QUEUE_MANAGERS, ReasonCode
from ..errors import InvalidValue, ObjectDamaged
from ..journal import QueueManagerFiles
from ..journal.errors import DamagedFile
from ..journal.head import read_head
from ..journal.store import View
from ..objects.codec import decode, encode
from ..objects.system import own_identifier
from .backup_check import check_copy
from .backup_files import head_file, write_file
from .connection import QueueManager
from .continued_copy import Moment, continue_copy
from .rekey import rekey_checkpoint, rekey_segment

Progress = Callable[[int, int], None]
_TIMELINES = 36 * 36  # ids have two digits to the base 36
_SEGMENTS_MOST = 4096


@dataclass(frozen=True, slots=True)
class Restored:
    """A queue manager that was restored. messages: on its queues; prepared: units of work without
    an outcome."""

    name: str
    path: Path
    timeline: int
    messages: int
    prepared: int


def restore(
    path: str | os.PathLike[str],
    name: str | None = None,
    home: Home = None,
    progress: Progress | None = None,
    *,
    to: Moment | None = None,
    archive: str | os.PathLike[str] | None = None,
) -> Restored:
    """Makes the queue manager ``name`` of a copy: of a backup, or of files that were copied while
    nobody was attached.

    Args:
        path: the directory of the copy, which is not changed and may be read-only.
        name: of the new queue manager; None: as in the copy.
        home: of the new queue manager, as for penstock.create().
        progress: called with the bytes written so far and in all.
        to: an aware datetime, or an LSN: the copy is continued by what was logged after it, up to
            the last flush batch that was sealed by then, or that begins before the LSN.
        archive: with ``to``: the directory of the queue manager that was copied, with linear
            logging; it is only read. One with its ``qm.toml`` and ``archive`` is enough.

    Raises:
        ObjectAlreadyExists: 2100: there is a queue manager of that name.
        ObjectDamaged: 2101: the copy is not whole, or the archive does not continue it; nothing is
            made (see ``penstock salvage``).
        InvalidValue: 2046: ``to`` is before the copy was made, or not with ``archive``; the copy
            was restored too often, each time from the one before.
        QueueManagerNameError: 2058: not a name.
    """
    source = Path(path)
    if (to is None) != (archive is None):
        raise InvalidValue(ReasonCode.OPTIONS_ERROR, "to and archive are given together")
    if name is not None:
        check_free(directory_of(name, home))  # before all is read
    try:
        old, view, end_lsn = _read(source)
        target = directory_of(name or old.name, home)
        timeline = read_head(view.files, old.qm_id).timeline + 1
        if timeline >= _TIMELINES:
            text = f"{source} is of timeline {timeline - 1}, the last one"
            raise InvalidValue(ReasonCode.OPTIONS_ERROR, text)
        new = replace(old, name=name or old.name, qm_id=os.urandom(16), group="")
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NewDirectory(target, ".restore-tmp") as made:
            inner = made.work / directory_name(new.name)
            if to is not None and archive is not None:
                source = _continued(source, (view, end_lsn), Path(archive), to, made.work)
                old, view, end_lsn = _read(source)
            _write(source, inner, view, end_lsn, new, timeline, progress)
            check_copy(inner, end_lsn)
            messages, prepared = _start_once(inner, old, new)
            made.finish(inner)
    except DamagedFile as error:
        what = "is not whole" if to is None else "cannot be continued"
        text = f"{path} {what}: {error}"
        raise ObjectDamaged(ReasonCode.OBJECT_DAMAGED, text) from error
    return Restored(new.name, target, timeline, messages, prepared)


def _continued(source: Path, read: tuple[View, int], later: Path, to: Moment, work: Path) -> Path:
    """The copy with what was logged after it, in a directory that goes with the restore."""
    view, ended = read
    target = work / "continued.tmp"
    os.mkdir(target, 0o700)
    timeline = read_head(view.files, view.segments[-1].qm_id).timeline
    try:
        continue_copy(source, view, ended, later, to, target, timeline)
    except ValueError as error:
        raise InvalidValue(ReasonCode.OPTIONS_ERROR, str(error)) from error
    return target


def _read(source: Path) -> tuple[Settings, View, int]:
    """Settings, files, and the end of the journal of a copy that is whole. Raises DamagedFile."""
    files = QueueManagerFiles(source)
    settings = files.settings()
    if settings is None:
        raise DamagedFile("qm.toml", 0, "file", "is missing")
    view = files.view()
    if view.passed_over:
        raise view.passed_over[0]
    (newest,) = view.scans(view.segments[-1].number)
    check_copy(source, newest.end_lsn)
    return settings, view, newest.end_lsn


def _write(
    source: Path,
    target: Path,
    view: View,
    end_lsn: int,
    new: Settings,
    timeline: int,
    progress: Progress | None,
) -> None:
    """The files of the new queue manager, flushed, but for the directory's own name."""
    for folder in (target, target / "journal", target / "checkpoint", target / "errors"):
        os.mkdir(folder, 0o700)
    newest, checkpoint = view.segments[-1], view.checkpoint
    ends = {segment.number: view.required_end(segment) or end_lsn for segment in view.segments}
    total = sum(ends[segment.number] - segment.base_lsn for segment in view.segments)
    done = 0

    def step(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(min(done, total), total)

    continued = checkpoint is not None and checkpoint.clean and checkpoint.end_lsn == end_lsn
    for segment in view.segments:
        whole = continued and segment is newest  # a start goes on in it: it has room on the disk
        file = segment.file
        identity = (new.qm_id, timeline)
        end = ends[segment.number]
        rekey_segment(segment, source / file, target / file, end, whole, identity, step)
    if checkpoint is not None:
        data = rekey_checkpoint((source / checkpoint.file).read_bytes(), view, new.qm_id)
        write_file(target / checkpoint.file, data)
    write_file(target / "HEAD", head_file(new.qm_id, newest.number, newest.generation, timeline))
    write_settings(target, new)
    for folder in (target / "journal", target / "checkpoint", target):
        sync_directory(folder)


def _start_once(inner: Path, old: Settings, new: Settings) -> tuple[int, int]:
    """Starts the queue manager, which recovers it, gives its own object its name, and ends it in
    order. Returns the messages, and the prepared units.

    With a higher limit of the journal: a copy and what continues it may exceed the usual one, until
    checkpoints have let go what is no longer needed.
    """
    files = sum(file.stat().st_size for file in (inner / "journal").iterdir())
    most = _SEGMENTS_MOST * new.segment_size
    limit = min(max(new.journal_limit, 4 * files), most)
    write_settings(inner, replace(new, journal_limit=limit))
    with QueueManager(new.name, inner.parent) as qm:
        messages = int(qm.attach_info["messages"])
        prepared = len(qm.prepared_list())
        qm.checkpoint()
        _make_own(qm, old.name, new)
        qm.checkpoint()
    write_settings(inner, new)
    return messages, prepared


def _make_own(qm: QueueManager, old: str, new: Settings) -> None:
    """The queue manager's own object, as it was under the name `old`, gets name and QMID of this
    one."""
    there = qm.look_up(NAME_SPACE_QUEUE_MANAGERS, old)
    own = qm.look_up(NAME_SPACE_QUEUE_MANAGERS, qm.name)
    if there is None or own is None:
        return
    kind, _, data = qm.read_object(*there[:2])
    attributes = decode(data) | own_identifier(new)
    qm.alter_object(
        own[0], own[1], kind, qm.name, encode(attributes), name_space=NAME_SPACE_QUEUE_MANAGERS
    )
    if old != qm.name:
        qm.delete_object(there[0], there[1], False, old)

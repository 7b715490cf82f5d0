"""Backup: a verified copy of a queue manager's files, made while it runs.

The copy holds everything that was committed before the backup began; units of work that were not
decided then, but for prepared ones, are dropped when it is opened, and so are non-persistent
messages. What is copied, and why these files do not change meanwhile, is written in
``csrc/recovery/backup.h``; how the copy appears, in ``backup_files``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from .. import _engine
from ..admin.directory import Home, directory_of, settings_of
from ..admin.manager_files import sync_directory
from ..admin.new_directory import NewDirectory
from ..admin.settings import for_engine, read_settings
from ..constants import ReasonCode
from ..errors import MQError, ObjectDamaged, ObjectInUse
from ..journal import QueueManagerFiles
from ..journal.checkpoint import checkpoint_names
from ..journal.errors import DamagedFile
from ..journal.store import segment_numbers
from .attachment import Attachment
from .backup_check import check_copy
from .backup_files import (
    Pace,
    copy_file,
    head_file,
    open_source,
    write_file,
)

Progress = Callable[[int, int], None]
_ATTEMPTS = 5
_BASE_LSN_AT = 72  # in a segment's header


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A backup that was made. path: of the copy. bytes: copied, in `files` files, in `seconds`,
    the verification included. end_lsn: the journal of the copy ends there. slowest_flush: seconds,
    of the journal's flushes while it was copied, which commits wait for; 0.0 when nobody committed.
    """

    path: Path
    files: int
    bytes: int
    seconds: float
    end_lsn: int
    slowest_flush: float


@dataclass(frozen=True, slots=True)
class _Item:
    """A file to copy: up to `end` (None: all); `then`: segments before that one are let go."""

    name: str
    source: int
    end: int | None
    then: int | None = None


def backup(
    qm: Attachment, path: str | os.PathLike[str], progress: Progress | None = None
) -> BackupReport:
    """See :meth:`penstock.QueueManager.backup`."""
    with NewDirectory(path) as target, ExitStack() as stack:
        root = Path(qm.path)
        for attempt in range(_ATTEMPTS):
            pinned = qm.backup_begin()
            release = stack.enter_context(ExitStack())
            release.callback(_end, qm)
            opened = release.enter_context(ExitStack())
            try:
                items = _pinned_items(root, pinned, opened)
                break
            except FileNotFoundError:  # two newer checkpoints, since the pin
                release.close()
                if attempt + 1 == _ATTEMPTS:
                    raise
        settings = read_settings(root)
        head = head_file(
            settings.qm_id,
            pinned["last_segment"],
            pinned["last_generation"],
            pinned["timeline"],
        )

        def let_go(segment: int) -> float:
            return qm.backup_advance(segment) / 1e6

        job = _Job(root, target, head, progress, let_go)
        return job.run(items, pinned["end_lsn"])


def _end(qm: Attachment) -> None:
    with suppress(MQError):  # it has stopped: nothing is pinned any more
        qm.backup_end()


def _pinned_items(root: Path, pinned: dict[str, int], opened: ExitStack) -> list[_Item]:
    """What a copy consists of. Raises FileNotFoundError when a checkpoint has gone since."""
    names = checkpoint_names(os.listdir(root / "checkpoint"))
    chosen = [name for name in names if int(name[:16], 16) <= pinned["checkpoint_lsn"]][:2]
    if not chosen or int(chosen[0][:16], 16) != pinned["checkpoint_lsn"]:
        raise FileNotFoundError(f"the checkpoint at LSN {pinned['checkpoint_lsn']} has gone")
    items = [_item(root, f"checkpoint/{name}", None, opened) for name in chosen]
    last = pinned["last_segment"]
    for number in segment_numbers(os.listdir(root / "journal")):
        if pinned["first_segment"] <= number <= last:
            end = None
            name = f"journal/{number:010d}.psj"
            if number == last:
                end = pinned["end_lsn"] - _base_lsn(root / name)
            items.append(_Item(name, -1, end, number + 1))
    return items


def _base_lsn(segment: Path) -> int:
    fd = open_source(segment)
    try:
        return int.from_bytes(os.pread(fd, 8, _BASE_LSN_AT), "little")
    finally:
        os.close(fd)


def _item(root: Path, name: str, end: int | None, opened: ExitStack) -> _Item:
    source = open_source(root / name)
    opened.callback(os.close, source)
    return _Item(name, source, end)


class _Job:
    """Copies files, verifies the copy, and gives it its name."""

    def __init__(
        self,
        root: Path,
        target: NewDirectory,
        head: bytes | None,
        progress: Progress | None,
        let_go: Callable[[int], float] | None,
    ) -> None:
        """head: None: copied. let_go: says that segments before one are copied; returns seconds."""
        self._root, self._target, self._head = root, target, head
        self._progress = progress or (lambda done, total: None)
        self._let_go = let_go
        self._copied, self._done, self._total = 1, 0, 0

    def run(self, items: list[_Item], end_lsn: int) -> BackupReport:
        """All steps; on an error nothing is left."""
        began = time.monotonic()
        work = self._target.work
        for folder in ("journal", "checkpoint", "errors"):
            os.mkdir(work / folder, 0o700)
        pace = Pace(self._slowest if self._let_go else None)
        self._total = sum(_size(self._root, item) for item in items)
        copied = sum(self._copy(item, pace) for item in items)
        write_file(work / "HEAD", self._head or (self._root / "HEAD").read_bytes())
        write_file(work / "qm.toml", (self._root / "qm.toml").read_bytes())
        self._verify(end_lsn)
        self._target.finish()
        seconds = time.monotonic() - began
        return BackupReport(
            self._target.path, len(items) + 2, copied, seconds, end_lsn, pace.slowest
        )

    def _slowest(self) -> float:
        assert self._let_go is not None
        return self._let_go(self._copied)

    def _copy(self, item: _Item, pace: Pace) -> int:
        source = item.source if item.source >= 0 else open_source(self._root / item.name)
        try:
            copied = copy_file(source, self._target.work / item.name, item.end, pace, self._step)
        finally:
            if item.source < 0:
                os.close(source)
        if item.then is not None and self._let_go is not None:
            self._copied = item.then
            self._let_go(item.then)
        return copied

    def _step(self, count: int) -> None:
        self._done += count
        self._progress(self._done, self._total)

    def _verify(self, end_lsn: int) -> None:
        work = self._target.work
        for folder in ("journal", "checkpoint"):
            sync_directory(work / folder)
        try:
            check_copy(work, end_lsn)
        except DamagedFile as error:
            text = f"the copy does not verify, it is removed: {error}"
            raise ObjectDamaged(ReasonCode.OBJECT_DAMAGED, text) from error


def _size(root: Path, item: _Item) -> int:
    if item.end is not None:
        return item.end
    if item.source >= 0:
        return os.fstat(item.source).st_size
    return os.stat(root / item.name).st_size


def backup_of_stopped(
    name: str,
    path: str | os.PathLike[str],
    home: Home = None,
    progress: Progress | None = None,
) -> BackupReport | None:
    """The same of a queue manager that ended in order, without starting it: nobody can connect
    meanwhile. None when processes are attached, or it did not end in order: connect to it.

    Raises what QueueManager.backup() raises, and QueueManagerNameError.
    """
    root = directory_of(name, home)
    settings = settings_of(name, root)
    if not _ended_in_order(root):
        return None
    with NewDirectory(path) as target:
        try:
            exclusion = _engine.Exclusion(root, for_engine(settings))
        except ObjectInUse:
            return None
        try:
            if not _ended_in_order(root):  # somebody was faster
                return None
            names = [f"checkpoint/{name}" for name in _names(root / "checkpoint", ".psc")]
            names += [
                f"journal/{n:010d}.psj" for n in segment_numbers(os.listdir(root / "journal"))
            ]
            items = [_Item(name, -1, None) for name in names]
            checkpoint = QueueManagerFiles(root).checkpoint
            end_lsn = checkpoint.end_lsn if checkpoint else 0
            return _Job(root, target, None, progress, None).run(items, end_lsn)
        finally:
            exclusion.end()


def _names(folder: Path, ending: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(ending))


def _ended_in_order(root: Path) -> bool:
    """Whether nobody is attached and the files are those of an orderly end."""
    try:
        if _engine.attached_processes(root):
            return False
        files = QueueManagerFiles(root)
        checkpoint = files.checkpoint
        if checkpoint is None or not checkpoint.clean:
            return False
        ends = [scan.end_lsn for scan in files.scans()]
    except (DamagedFile, MQError):
        return False
    return bool(ends) and ends[-1] == checkpoint.end_lsn

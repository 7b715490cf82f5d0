"""Temporary queue managers, for tests and experiments.

A temporary queue manager is one like others, in a folder of its own on a tmpfs, so that its flushes
cost nothing, and with small tables, so that it is soon ready. When its block ends it is stopped
without an orderly end, and the folder is removed.

What a killed process leaves. The folder is locked (flock) by the process that made it. The first
temporary queue manager of a process removes the unlocked folders of its user; one whose queue
manager is in use by other processes stays, and so does one that was kept.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
import warnings
from pathlib import Path

from ..admin.create import chosen_settings, make_files
from ..admin.delete import delete, remove_manager
from ..admin.directory import Home, directory_of, managers
from ..errors import MQError, ObjectInUse
from .clock import Clock
from .connection import QueueManager

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from ..admin.settings import Settings

_TMPFS = "/dev/shm"
_FOLDER = "penstock-temporary-"
_KEPT = "kept"  # a file: nobody removes the folder
# Sizes that nothing is refused for: messages, queues and journal may grow as everywhere.
_SETTINGS = {"segment_size": 1 << 20, "ring_size": 1 << 18}  # bytes
_TUNING = {
    "first_segment_size": 1 << 18, "growth_step": 1 << 16,  # bytes
    "stripe_count": 16, "name_bucket_count": 1024,
}  # fmt: skip
_LEAVE_SECONDS = 10.0  # for processes that are in the middle of a call
_LOOK_SECONDS = 0.0005
_looked_for_left = False


class TemporaryQueueManager(QueueManager):
    """The connection that :func:`penstock.temporary` gives."""

    _tuning = _TUNING

    def __init__(self, chosen: Settings, folder: Path) -> None:
        """Connects to the queue manager that has just been made there."""
        self._chosen = chosen
        super().__init__(chosen.name, folder)

    @property
    def clock(self) -> Clock:
        """The clock by which messages expire and become due: a test advances it."""
        return Clock(self)

    def _read_settings(self, name: str) -> Settings:
        return self._chosen


class Temporary:
    """A context manager for a temporary queue manager; see :func:`penstock.temporary`.

    Attributes:
        discard: whether the end of the block removes the queue manager; may be changed before.
    """

    def __init__(self, name: str, home: Home, discard: bool, settings: dict[str, Any]) -> None:
        """Checks the arguments; makes nothing."""
        directory_of(name, home)
        self._chosen = chosen_settings(name, _SETTINGS | settings)
        self._parent = home
        self.discard = discard
        self._manager: TemporaryQueueManager | None = None
        self._folder = Path()
        self._lock = -1
        self._pid = 0

    def __enter__(self) -> TemporaryQueueManager:
        """The connection to the new queue manager."""
        if self._manager is not None:
            raise RuntimeError("a temporary queue manager is for one block")
        self._pid = os.getpid()
        self._folder, self._lock = _make_folder(self._parent)
        path = directory_of(self._chosen.name, self._folder)
        try:
            make_files(path, self._chosen, _TUNING)
            self._manager = TemporaryQueueManager(self._chosen, self._folder)
        except BaseException:
            self._remove_folder()
            raise
        return self._manager

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the queue manager; nothing in a forked child, whose it is not."""
        if self._manager is None or self._lock < 0 or self._pid != os.getpid():
            return
        try:
            if self.discard:
                self._discard(self._manager)
            else:
                self._keep(self._manager)
        except MQError as left:
            if error is None:
                raise
            warnings.warn(f"a temporary queue manager stays: {left}", ResourceWarning, stacklevel=2)

    def _discard(self, manager: QueueManager) -> None:
        """Stops it for all processes, and removes it when they have left it."""
        try:
            if not manager.closed:
                with contextlib.suppress(MQError):  # it has ended, or a process does not leave it
                    manager.end("preemptive")
                with contextlib.suppress(MQError):
                    manager.detach(commit=False)
            if manager.path.exists():  # else the block has deleted it
                _remove_when_left(manager.path, self._chosen)
        except MQError:
            self._unlock()  # the folder is for the next process that makes one
            raise
        self._remove_folder()

    def _keep(self, manager: QueueManager) -> None:
        """Ends it in order: nothing is committed that the block has not committed."""
        (self._folder / _KEPT).touch()
        self._unlock()
        manager.detach(commit=False)

    def _remove_folder(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._unlock()

    def _unlock(self) -> None:
        lock, self._lock = self._lock, -1
        os.close(lock)


def _remove_when_left(path: Path, settings: Settings) -> None:
    """Removes a stopped queue manager. Other processes, and other connections of this one, leave it
    in their own threads: they have some time for that. Raises ObjectInUse.
    """
    end = time.monotonic() + _LEAVE_SECONDS
    while True:
        try:
            return remove_manager(path, settings)
        except ObjectInUse:
            if time.monotonic() > end:
                raise
        time.sleep(_LOOK_SECONDS)


# ---- folders ----


def _make_folder(home: Home) -> tuple[Path, int]:
    """A new folder, and the descriptor that holds its lock. It gets its name when it is locked."""
    global _looked_for_left
    parent = os.fspath(home) if home is not None else _TMPFS
    prefix = f"{_FOLDER}{os.geteuid()}-"
    if home is None and not _looked_for_left:
        _looked_for_left = True
        _remove_left(Path(_TMPFS), prefix)
    made = Path(tempfile.mkdtemp(prefix=f".{prefix}", dir=parent))
    folder = made.with_name(made.name[1:])
    lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made.rename(folder)
    except BaseException:
        os.close(lock)
        made.rmdir()
        raise
    return folder, lock


def _remove_left(parent: Path, prefix: str) -> None:
    """Removes the folders of killed processes."""
    for folder in parent.glob(f"{prefix}*"):
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # it has gone, or is no folder of ours
        try:
            if os.fstat(lock).st_uid != os.geteuid() or (folder / _KEPT).exists():
                continue
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for name in managers(folder):
                delete(name, folder)
            shutil.rmtree(folder, ignore_errors=True)
        except (OSError, MQError):
            pass  # in use, or not to be understood
        finally:
            os.close(lock)

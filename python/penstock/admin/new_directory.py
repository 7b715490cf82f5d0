"""A directory that appears complete or not at all.

The order that makes it safe. Everything is written into a temporary directory beside it, each file
is flushed when it is whole, then the directories; only then the directory gets its name, and the
parent directory is flushed. A death at any point leaves the temporary directory, which the next one
that makes the same path removes, with the shared memory of a queue manager that was started in it.
Nothing that exists is replaced.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path

from ..constants import ReasonCode
from ..errors import MQError, ObjectAlreadyExists, ObjectInUse
from .delete import delete
from .directory import settings_of
from .manager_files import sync_directory
from .settings import SETTINGS_FILE


class NewDirectory:
    """A directory in the making; a context manager, which removes what was not finished."""

    def __init__(self, path: str | os.PathLike[str], ending: str = ".backup-tmp") -> None:
        """ending: of the temporary directory's name.

        Raises ObjectAlreadyExists, ObjectInUse (another process makes that path), OSError.
        """
        self.path = Path(path).absolute()
        self.work = self.path.with_name(self.path.name + ending)
        check_free(self.path)
        self._lock = self._take()

    def _take(self) -> int:
        """The lock of the temporary directory, which is emptied: its process was killed."""
        os.makedirs(self.work, mode=0o700, exist_ok=True)
        lock = os.open(self.work, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._empty()
        except BlockingIOError as error:
            os.close(lock)
            text = f"{self.work}: another process is writing it"
            raise ObjectInUse(ReasonCode.OBJECT_IN_USE, text) from error
        except BaseException:
            os.close(lock)
            raise
        return lock

    def _empty(self) -> None:
        """A queue manager that was left may have a region in shared memory, which goes with it."""
        for left in [self.work / name for name in os.listdir(self.work)]:
            if (left / SETTINGS_FILE).exists():
                with contextlib.suppress(MQError):
                    delete(settings_of(left.name, left).name, self.work)
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            elif os.path.lexists(left):
                left.unlink()

    def __enter__(self) -> NewDirectory:
        return self

    def __exit__(self, *exc: object) -> None:
        if os.path.lexists(self.work):
            shutil.rmtree(self.work, ignore_errors=True)
        os.close(self._lock)

    def finish(self, made: Path | None = None) -> None:
        """Flushes the directories and gives the name to what was made (None: all of it)."""
        made = made or self.work
        for folder in [path for path in made.rglob("*") if path.is_dir()]:
            sync_directory(folder)
        sync_directory(made)
        check_free(self.path)
        os.rename(made, self.path)
        sync_directory(self.path.parent)


def check_free(path: Path) -> None:
    """Raises ObjectAlreadyExists when there is anything at a path."""
    if os.path.lexists(path):
        text = f"{path} exists already"
        raise ObjectAlreadyExists(ReasonCode.OBJECT_ALREADY_EXISTS, text)

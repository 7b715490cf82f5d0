"""The files of a queue manager, for processes that are not attached to it.

* ``journal/*.psj``, ``archive/*.psj``: the header of a segment carries the queue manager's id at
  offset 32.
* ``lock``: only the core reads and writes it (``_engine.attached_processes``, ``Exclusion``).
"""

from __future__ import annotations

import errno
import os
import re
import stat

from ..constants import ReasonCode
from ..errors import ObjectDamaged, ObjectInUse

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from pathlib import Path

_LOCK_FILE = "lock"
_HEAD_FILE = "HEAD"
_SEGMENT_MAGIC = b"PSTKJRNL"
_SEGMENT_ID = slice(32, 48)  # of the queue manager's id in the header of a segment
_HEADER_BYTES = 48


def open_regular(name: str | os.PathLike[str], folder: int | None = None) -> int:
    """Opens a file for reading. Links are not followed, and nothing is waited for: a FIFO would
    block until somebody writes.

    Args:
        name: path, or a name in ``folder``.
        folder: descriptor of a directory.

    Raises:
        OSError: it cannot be opened; ELOOP for a symbolic link, EINVAL for what is no file.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    fd = os.open(name, flags, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "is not a regular file", os.fspath(name))
    return fd


def check_journal_belongs(path: Path, qm_id: bytes) -> None:
    """Checks that no journal segment carries the id of another queue manager.

    Raises:
        ObjectDamaged: 2101: one does.
    """
    for segment in sorted([*path.glob("journal/*.psj"), *path.glob("archive/*.psj")]):
        with open(open_regular(segment), "rb") as file:
            header = file.read(_HEADER_BYTES)
        if header[:8] == _SEGMENT_MAGIC and header[_SEGMENT_ID] != qm_id:
            raise ObjectDamaged(
                ReasonCode.OBJECT_DAMAGED,
                f"{segment} belongs to another queue manager than {path / 'qm.toml'}",
            )


def remove_files(path: Path) -> None:
    """Removes a queue manager's files and its directory; qm.toml last, so that an interrupted
    removal can be repeated.

    Raises:
        ObjectInUse: 2042: the directory holds files of others, which are named.
    """
    import shutil

    for name in ("journal", "checkpoint", "errors"):
        shutil.rmtree(path / name, ignore_errors=True)
    _remove_archive(path / "archive")
    for name in (_LOCK_FILE, _HEAD_FILE, "keeper.pid", "qm.toml.tmp", "qm.toml"):
        (path / name).unlink(missing_ok=True)
    try:
        path.rmdir()
    except OSError as error:
        rest = ", ".join(sorted(os.listdir(path)))
        raise ObjectInUse(
            ReasonCode.OBJECT_IN_USE, f"{path} was emptied of our files but holds {rest}"
        ) from error


def _remove_archive(folder: Path) -> None:
    """Removes archived segments, and their folder unless it holds other files."""
    for file in folder.glob("[0-9]*.psj"):
        if re.fullmatch(r"[0-9]{10}-[0-9]{10}(-[0-9]{2})?\.psj", file.name):
            file.unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError:
        pass  # it does not exist, or remove_files() names its contents


def sync_directory(path: Path) -> None:
    """Makes the entries of a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

"""One process at a time works on a file of messages, from before it has its name.

A new file is written as NAME.begun and renamed. Both names lead to the lock: who opens NAME.begun
and gets its lock is alone with it, because another process renames or removes it only with that
lock. So the check that NAME is free, made with the lock, holds until the rename. Without that, the
second of two unloads that began at once replaced the file of the first, which went on to remove
messages whose only copy stood in a file without a name.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from .errors import MessageFileError

BEGUN = ".begun"


def lock_file(fd: int, path: str) -> None:
    """One process at a time. Raises MessageFileError."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise MessageFileError(f"{path}: another process works on it") from None


def begin_file(path: Path) -> tuple[int, Path]:
    """The file that is to get the name: an open descriptor, locked and empty, and its name so far.

    Raises:
        FileExistsError: there is a file of that name.
        MessageFileError: another process begins it.
    """
    begun = path.with_name(path.name + BEGUN)
    if path.exists():
        raise FileExistsError(17, "there is a file of that name", str(path))
    fd = os.open(begun, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        lock_file(fd, str(path))
        _check_ours(fd, begun, path)
        os.ftruncate(fd, 0)
    except BaseException:
        os.close(fd)
        raise
    return fd, begun


def _check_ours(fd: int, begun: Path, path: Path) -> None:
    """With the lock: nobody was faster between the first look and the lock."""
    try:
        ours = os.path.samestat(os.stat(begun), os.fstat(fd))
    except FileNotFoundError:
        ours = False
    if path.exists():
        if ours:
            begun.unlink()
        raise FileExistsError(17, "there is a file of that name", str(path))
    if not ours:
        raise MessageFileError(f"{path}: another process works on it")

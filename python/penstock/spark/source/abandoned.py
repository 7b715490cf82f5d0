"""Micro-batches that a stream left prepared and that no process of it will commit.

A stream that stops leaves its last micro-batches prepared, for its next start from the checkpoint.
Where that never comes, because the checkpoint was deleted or another one is used for the same
queue, their messages stay invisible. So a new stream looks for them before its first micro-batch.

The names of the units say of which queues their messages are. Whether a process runs a stream is
known from a lock: each has a read lock on one byte of the queue manager's file ``lock``, far
behind the bytes that the engine uses, at an offset that is a hash of the stream's id. It belongs to
an open file description (F_OFD_SETLK), so it ends with the process, whatever ends that.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from ..base import units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from penstock import Xid
    from penstock.client.status import PreparedStatus

__all__ = ["Abandoned", "find", "is_running", "mark"]

_FIRST = 1 << 62  # the engine's bytes are those of attachment slots, from 0
_FLOCK = struct.Struct("hhqqi0q")  # struct flock: type, whence, start, length, pid


class Abandoned(NamedTuple):
    """What a stream that no process runs has left prepared."""

    stream: str
    messages: int
    xids: list[Xid]


def find(
    prepared: Iterable[PreparedStatus], path: Path, is_wanted: Callable[[str], bool]
) -> list[Abandoned]:
    """Looks for abandoned micro-batches.

    Args:
        prepared: Units, of any kind.
        path: The queue manager's directory.
        is_wanted: Whether messages of a queue count. A stream that has left some is returned with
            all that it has left.
    """
    found: dict[str, list[PreparedStatus]] = {}
    for status in prepared:
        stream = units.stream_of(status.xid)
        if stream is not None:
            found.setdefault(stream, []).append(status)
    return [
        Abandoned(stream, sum(one.gets for one in left), [one.xid for one in left])
        for stream, left in found.items()
        if any(is_wanted(units.queue_of(one.xid) or "") for one in left)
        and not is_running(path, stream)
    ]


def mark(path: Path, stream: str) -> int:
    """Shows that this process runs the stream, until the descriptor is closed.

    Args:
        path: The queue manager's directory.
        stream: Its id.

    Returns:
        The descriptor.
    """
    descriptor = os.open(path / "lock", os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _range(fcntl.F_RDLCK, stream))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def is_running(path: Path, stream: str) -> bool:
    """Whether a process runs the stream; arguments as of mark()."""
    descriptor = os.open(path / "lock", os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _range(fcntl.F_WRLCK, stream))
    finally:
        os.close(descriptor)
    return bool(_FLOCK.unpack(found)[0] != fcntl.F_UNLCK)


def _range(kind: int, stream: str) -> bytes:
    offset = int.from_bytes(hashlib.sha256(stream.encode()).digest()[:7], "big")
    return _FLOCK.pack(kind, os.SEEK_SET, _FIRST + offset, 1, 0)

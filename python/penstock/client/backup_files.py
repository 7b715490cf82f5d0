"""The files of a backup: what copies them beside a queue manager that works."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

from .. import _engine
from ..journal import layout as L

_PIECE = 128 << 10
_FLUSH_EVERY = 2  # pieces: what is flushed at once keeps commits waiting
_SLOW = 0.002  # seconds: a flush of the journal that takes longer slows the copying
_PAUSE_MOST = 0.05
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_MAKE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_HEAD_PAGE = struct.Struct("<8sHHIQQ16sQQQQ")


class Pace:
    """How fast to copy: after each piece a pause of ``factor`` times what the piece took.

    The factor follows what commits see: it rises when a flush of the journal was slow, and sinks
    slowly otherwise.
    """

    def __init__(self, slowest_flush: Callable[[], float] | None) -> None:
        """slowest_flush: seconds, since the last question; None: nobody commits, no pauses."""
        self._ask = slowest_flush
        self._factor = 2.0
        self.slowest = 0.0

    def after(self, took: float) -> None:
        """Waits after a piece that took so many seconds."""
        if self._ask is None:
            return
        slowest = self._ask()
        self.slowest = max(self.slowest, slowest)
        self._factor = (
            min(self._factor * 2, 16.0) if slowest > _SLOW else max(self._factor * 0.9, 1.0)
        )
        time.sleep(min(took * self._factor, _PAUSE_MOST))


def open_source(path: Path) -> int:
    """A file for copying; raises FileNotFoundError when it has gone."""
    return os.open(path, _READ)


def copy_file(
    source: int, to: Path, end: int | None, pace: Pace, progress: Callable[[int], None]
) -> int:
    """Copies the bytes below ``end`` (None: all) of an open file, and leaves zeroes behind them up
    to its size. Returns the bytes copied; the copy is flushed."""
    size = os.fstat(source).st_size
    end = size if end is None else min(end, size)
    target = os.open(to, _MAKE, 0o600)
    try:
        at = pieces = 0
        while at < end:
            began = time.monotonic()
            piece = os.pread(source, min(_PIECE, end - at), at)
            if not piece:
                break
            _write_all(target, piece, at)
            at += len(piece)
            pieces += 1
            if pieces % _FLUSH_EVERY == 0:
                os.fdatasync(target)
            progress(len(piece))
            pace.after(time.monotonic() - began)
        os.ftruncate(target, size)
        os.fsync(target)
    finally:
        os.close(target)
    return at


def _write_all(fd: int, piece: bytes, at: int) -> None:
    view = memoryview(piece)
    while view:
        written = os.pwrite(fd, view, at)
        view, at = view[written:], at + written


def write_file(to: Path, data: bytes) -> None:
    """A small file, flushed."""
    fd = os.open(to, _MAKE, 0o600)
    try:
        _write_all(fd, data, 0)
        os.fsync(fd)
    finally:
        os.close(fd)


def head_file(qm_id: bytes, segment_no: int, generation: int, timeline: int) -> bytes:
    """HEAD with both pages naming one segment (FORMAT.md, section 4)."""
    pages = []
    for sequence in (2, 3):
        page = _HEAD_PAGE.pack(
            L.HEAD_MAGIC,
            L.MAJOR,
            0,
            L.PAGE,
            0,
            0,
            qm_id,
            sequence,
            segment_no,
            generation,
            timeline,
        ).ljust(L.PAGE - 4, b"\0")
        pages.append(page + _engine.crc32c(page).to_bytes(4, "little"))
    return b"".join(pages)

"""The raw disk's limit, measured in the same run: append a padded block and flush it.

The journal must do that for each commit; missing here are encoding, checksums, queues and locks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

PAGE = 4096


class RawLog:
    """A preallocated file of zeroes; each append goes to pages that no earlier one touched."""

    def __init__(self, path: Path, size: int) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._path = path
        self._size = size
        self._offset = 0
        zeroes = bytes(1 << 20)
        for at in range(0, size, len(zeroes)):
            os.pwrite(self._fd, zeroes[: size - at], at)
        os.fdatasync(self._fd)

    def append(self, block: bytes) -> None:
        """Writes one padded block; it is on the medium when this returns."""
        if self._offset + len(block) > self._size:
            self._offset = 0
        if hasattr(os, "RWF_DSYNC"):
            os.pwritev(self._fd, [block], self._offset, os.RWF_DSYNC)
        else:
            os.pwrite(self._fd, block, self._offset)
            os.fdatasync(self._fd)
        self._offset += len(block)

    def close(self) -> None:
        """Removes the file."""
        os.close(self._fd)
        self._path.unlink()


def padded(payload: bytes) -> bytes:
    """The payload and zeroes up to the page."""
    return payload + bytes(-len(payload) % PAGE)


def seconds_each(work: Callable[[], object], count: int) -> float:
    """Average time of one call."""
    start = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - start) / count


def compare(
    raw: Callable[[], object], ours: Callable[[], object], *, rounds: int = 8, count: int = 60
) -> tuple[float, float]:
    """Runs both in turns; returns the median seconds of one raw and of one own call."""
    raw_times: list[float] = []
    our_times: list[float] = []
    seconds_each(raw, count)
    seconds_each(ours, count)
    for _ in range(rounds):
        raw_times.append(seconds_each(raw, count))
        our_times.append(seconds_each(ours, count))
    return sorted(raw_times)[rounds // 2], sorted(our_times)[rounds // 2]

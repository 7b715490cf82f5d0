"""Batches part by part, for programs that read much and keep nothing of it: the data source for
Spark.

A part's descriptors and bodies lie in *blocks* that are used again once nothing refers to them: a
part of ten thousand messages has megabytes, and memory that is new to a process costs more than
what is copied into it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _engine
from .batch import _LEAST_ROOM, _TYPICAL, DTYPE, MessageBatch, Place, _Look

if TYPE_CHECKING:
    from .queue import Queue

__all__ = ["browse_parts", "read_parts"]

_KEPT = 5  # blocks: two parts' descriptors and bodies, and one to spare
_KEPT_BYTES = 16 << 20  # of a block at most


def _references(blocks: list[npt.NDArray[np.uint8]], at: int) -> int:
    return sys.getrefcount(blocks[at])


_ALONE = _references([np.empty(0, np.uint8)], 0)


class _Spares:
    """The blocks. One that anything else refers to, be it a slice of a slice, is in use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: list[npt.NDArray[np.uint8]] = []  # newest last

    def take(self, size: int) -> npt.NDArray[np.uint8]:
        """So many bytes, in which there is anything."""
        if size > _KEPT_BYTES:
            return np.empty(size, np.uint8)
        with self._lock:
            blocks = self._blocks
            fit = [at for at, block in enumerate(blocks) if len(block) >= size]
            free = [at for at in fit if _references(blocks, at) == _ALONE]
            if not free:
                blocks.append(np.empty(size, np.uint8))
                del blocks[:-_KEPT]
                return blocks[-1][:]
            return blocks[min(free, key=lambda at: len(blocks[at]))][:size]


_spares = _Spares()


def read_parts(
    call: _Look, messages: int, rows: int, room: int, most: int
) -> Iterator[MessageBatch]:
    """Messages part by part, each read once into memory that is not copied again.

    Args:
        call: reads what is next into descriptors, bodies and offsets: (messages, bytes that the
            next one needs when it was room that was lacking).
        messages: how many are read at most.
        rows: messages of a part at most.
        room: bytes of the first part's bodies at most; doubled where that was too little.
        most: bytes of any part's bodies at most, but for a single one that is longer.

    Yields:
        Parts that follow each other. The descriptors of a part are overwritten by the next one.
    """
    memory = _spares.take(max(1, min(messages, rows)) * DTYPE.itemsize).view(DTYPE)
    size = room = min(room, most)
    while messages:
        part = memory[:messages]
        bodies, offsets = _spares.take(size), np.empty(len(part) + 1, np.int64)
        count, needed = call(part, bodies, offsets)
        if count:
            messages -= count
            size = room = min(2 * room, most) if needed else room
            yield MessageBatch(part[:count], bodies[: int(offsets[count])], offsets[: count + 1])
        elif needed > size:
            size = needed
        else:
            return


def browse_parts(
    queue: Queue, places: tuple[Place, Place], up_to: int, rows: int, most: int
) -> Iterator[MessageBatch]:
    """The messages behind the first place up to the second one, as :func:`read_parts` yields them.

    Args:
        queue: opened for browse; its cursor is moved.
        places: see Queue.places().
        up_to, rows, most: as of browse_batch() and read_parts().
    """
    begin = True

    def call(part: Any, bodies: Any, offsets: Any) -> tuple[int, int]:
        nonlocal begin
        count, needed = _engine.batch_browse(
            queue, part, bodies, offsets, begin, 0, False, up_to, places
        )
        begin = False
        return count, needed

    return read_parts(call, 2**63, rows, max(_LEAST_ROOM, rows * _TYPICAL), most)

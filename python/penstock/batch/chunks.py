"""Reading messages chunk by chunk, for programs that read many and keep none: the data source for
Spark.

A chunk's descriptors and bodies lie in *blocks* that are reused once nothing refers to them: a
chunk of ten thousand messages has megabytes, and page faults on new memory cost more than copying
into it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from .. import _engine
from .arrow_columns import Column
from .browse import Position
from .limits import LEAST_ROOM, TYPICAL
from .message_batch import MessageBatch
from .row_layout import DTYPE

if TYPE_CHECKING:
    from .._engine import QueueHandle

__all__ = ["Fill", "Table", "as_batch", "as_table", "browse_chunks", "read_chunks"]

_GATHERED = 1000  # rows that are read and converted at a time
_KEPT = 5  # blocks: columns and bodies of two chunks, and the descriptors
_KEPT_BYTES = 16 << 20  # of a block at most


def _references(blocks: list[npt.NDArray[np.uint8]], at: int) -> int:
    return sys.getrefcount(blocks[at])


_ALONE = _references([np.empty(0, np.uint8)], 0)


class _Spares:
    """The blocks. A block is in use while anything else refers to it, even a slice of a slice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: list[npt.NDArray[np.uint8]] = []  # newest last

    def take(self, size: int) -> npt.NDArray[np.uint8]:
        """A block of this many bytes, with undefined contents."""
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


class Table:
    """Columns of messages, converted while they were read, and their bodies, for Arrow libraries.

    Attributes:
        bodies, offsets: as of a MessageBatch.
    """

    __slots__ = ("_array", "_columns", "bodies", "offsets")

    def __init__(
        self,
        columns: Sequence[Column],
        array: object,
        bodies: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
    ) -> None:
        """Made by as_table(): array is the capsule of an Arrow array."""
        self._columns = columns
        self._array = array
        self.bodies = bodies
        self.offsets = offsets

    def __len__(self) -> int:
        """The number of messages."""
        return len(self.offsets) - 1

    def __arrow_c_schema__(self) -> object:
        """The struct type: the columns, and ``body``."""
        return _engine.arrow_schema(self._columns)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Schema and array. The first caller takes the array; nothing is copied."""
        return _engine.arrow_schema(self._columns), self._array


# Reads the next messages into rows, bodies and offsets. Returns the number of messages, and the
# bytes that the next message needs when the room for bodies was too small, else 0.
Read = Callable[[Any, Any, Any], tuple[int, int]]
_Chunk = TypeVar("_Chunk", MessageBatch, Table)
# Reads a chunk of at most so many rows and bytes of bodies. Returns it and the bytes as above.
Fill = Callable[[Read, int, int], tuple[_Chunk, int]]


def as_batch(read: Read, rows: int, size: int) -> tuple[MessageBatch, int]:
    """Reads a chunk as a batch."""
    part = _spares.take(rows * DTYPE.itemsize).view(DTYPE)
    bodies, offsets = _spares.take(size), np.empty(rows + 1, np.int64)
    count, needed = read(part, bodies, offsets)
    return MessageBatch(part[:count], bodies[: offsets[count]], offsets[: count + 1]), needed


def as_table(columns: Sequence[Column]) -> Fill[Table]:
    """Reads a chunk as columns, in the form of arrow_array() of the engine, and bodies.

    The messages pass through few descriptors, which stay in a processor's cache.
    """

    def fill(read: Read, rows: int, size: int) -> tuple[Table, int]:
        few = _spares.take(min(rows, _GATHERED) * DTYPE.itemsize).view(DTYPE)
        bodies, offsets = _spares.take(size), np.zeros(rows + 1, np.int64)
        memory = _spares.take(_engine.arrow_room(columns, rows))
        table = _engine.ArrowTable(columns, rows, memory)
        at = end = needed = 0
        while at < rows:
            count, needed = read(few[: rows - at], bodies[end:], offsets[at:])
            if not count:
                break
            table.append(few, count)
            offsets[at : at + count + 1] += end
            at += count
            end = int(offsets[at])
        offsets = offsets[: at + 1]
        offsets[at] = end
        bodies = bodies[:end]
        return Table(columns, table.finish(bodies, offsets), bodies, offsets), needed

    return fill


def read_chunks(
    read: Read, fill: Fill[_Chunk], messages: int, rows: int, room: int, most: int
) -> Iterator[_Chunk]:
    """Yields messages in consecutive chunks, each read once into memory that is not copied again.

    Args:
        read: reads the next messages.
        fill: makes a chunk: as_batch, or as_table().
        messages: limit of all chunks together.
        rows: messages of a chunk at most.
        room: bytes of the first chunk's bodies at most; doubled when it was too small.
        most: bytes of any chunk's bodies at most, except for a single longer message.
    """
    size = room = min(room, most)
    while messages:
        part, needed = fill(read, min(messages, rows), size)
        if len(part):
            messages -= len(part)
            size = room = min(2 * room, most) if needed else room
            yield part
        elif needed > size:
            size = needed
        else:
            return


def browse_chunks(
    queue: QueueHandle,
    positions: tuple[Position, Position],
    up_to: int,
    fill: Fill[_Chunk],
    rows: int,
    most: int,
) -> Iterator[_Chunk]:
    """Yields the messages behind the first position up to the second one, as read_chunks() does.

    Args:
        queue: opened for browse; its cursor is moved.
        positions: ends of the range, see Queue.split_points().
        up_to: as of browse_batch().
        fill, rows, most: as of read_chunks().
    """
    begin = True

    def read(part: Any, bodies: Any, offsets: Any) -> tuple[int, int]:
        nonlocal begin
        count, needed = _engine.batch_browse(
            queue, part, bodies, offsets, begin, 0, False, up_to, positions
        )
        begin = False
        return count, needed

    return read_chunks(read, fill, 2**63, rows, max(LEAST_ROOM, rows * TYPICAL), most)

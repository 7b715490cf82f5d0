"""Rows of a partition, or of a task, as bytes that Spark carries between driver and executors.

Spark keeps them in memory, several times over, and is not made for much: a micro-batch is cut to
MOST_BYTES (base/relayed.py), a batch read or a task of a sink that has more is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..base.errors import SourceError
from ..base.relayed import MOST_BYTES

__all__ = ["Room", "packed", "unpacked"]


class Room:
    """What is left of the bytes that may be relayed."""

    def __init__(self, what: str, advice: str) -> None:
        """what: For the error: the batch read, the task. advice: What makes it smaller."""
        self._what, self._advice = what, advice
        self._left = MOST_BYTES

    def take(self, size: int) -> None:
        """Raises SourceError: there is not so much left."""
        self._left -= size
        if self._left < 0:
            raise SourceError(
                f"relay=true carries small batches through the driver: {self._what} has more than "
                f"{MOST_BYTES >> 20} MiB of rows; {self._advice}"
            )


def packed(batches: Iterable[Any], room: Room | None = None) -> bytes:
    """Record batches as one text; b"" without any. Raises SourceError: there is no room."""
    import pyarrow as pa

    sink, writer = pa.BufferOutputStream(), None
    for batch in batches:
        if room is not None:
            room.take(batch.nbytes)
        if writer is None:
            writer = pa.ipc.new_stream(sink, batch.schema)
        writer.write_batch(batch)
    if writer is None:
        return b""
    writer.close()
    made: bytes = sink.getvalue().to_pybytes()
    return made


def unpacked(text: bytes) -> Iterator[Any]:
    """The record batches again."""
    if not text:
        return
    import pyarrow as pa

    with pa.ipc.open_stream(text) as reader:
        yield from reader

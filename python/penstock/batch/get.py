"""Getting message batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import _engine
from .limits import LEAST_ROOM, TYPICAL, check_limits, row_capacity
from .message_batch import MessageBatch, without_bodies
from .row_layout import DTYPE

if TYPE_CHECKING:
    from .._engine import QueueHandle, Unit


def _get_once(
    queue: QueueHandle, capacity: int, room: int, wait: float | None, max_bytes: int,
    persistent_only: bool, up_to: int | None, syncpoint: bool | None, unit: Unit | None,
) -> tuple[MessageBatch, int]:  # fmt: skip
    """One call of the core, repeated with more room when its first message needs it."""
    while True:
        rows = np.empty(capacity, DTYPE)
        bodies = np.empty(room, np.uint8)
        offsets = np.empty(capacity + 1, np.int64)
        count, needed = _engine.batch_get(
            queue, rows, bodies, offsets, wait, max_bytes, persistent_only, up_to, syncpoint, unit
        )
        if count == 0 and needed > room:
            room = needed
            continue
        used = int(offsets[count]) if count else 0
        batch = MessageBatch._made(rows[:count], bodies[:used], offsets[: count + 1])
        if not count:
            offsets[0] = 0
        return batch, needed


def take_batch_uncopied(
    queue: QueueHandle,
    max_messages: int,
    max_bytes: int | None,
    persistent_only: bool,
    up_to: int | None,
    unit: Unit | None,
) -> tuple[int, int]:
    """Queue.take_batch_uncopied()."""
    check_limits(max_messages, max_bytes, up_to)
    most = min(max_messages, 2**32 - 1)
    return _engine.batch_take_uncopied(queue, most, max_bytes or 0, persistent_only, up_to, unit)


def _join(chunks: list[MessageBatch]) -> MessageBatch:
    if len(chunks) == 1:
        return chunks[0]
    rows = np.empty(sum(len(chunk) for chunk in chunks), DTYPE)  # concatenate() would repack them
    starts = np.cumsum([0] + [len(chunk.bodies) for chunk in chunks])
    offsets = [chunk.offsets[:-1] + start for chunk, start in zip(chunks, starts, strict=False)]
    at = 0
    for chunk in chunks:
        rows[at : at + len(chunk)] = chunk.descriptors
        at += len(chunk)
    return MessageBatch(
        rows,
        np.concatenate([chunk.bodies for chunk in chunks]),
        np.concatenate([*offsets, starts[-1:]]).astype(np.int64),
    )


def get_batch(
    queue: QueueHandle, max_messages: int, wait: float | None, max_bytes: int | None,
    syncpoint: bool | None, persistent_only: bool, up_to: int | None, with_bodies: bool,
    unit: Unit | None,
) -> MessageBatch:  # fmt: skip
    """Queue.get_batch()."""
    check_limits(max_messages, max_bytes, up_to)
    if not with_bodies:
        rows = np.empty(row_capacity(queue, max_messages), DTYPE)
        count, _ = _engine.batch_get(
            queue, rows, None, None, wait, max_bytes or 0, persistent_only, up_to, syncpoint, unit
        )
        return without_bodies(rows, count)
    return _get_chunks(
        queue, [], max_messages, TYPICAL, wait, max_bytes, persistent_only, up_to, syncpoint, unit
    )


def get_rest(
    queue: QueueHandle, chunk: MessageBatch, left: int, needed: int, syncpoint: bool | None,
    persistent_only: bool, unit: Unit | None,
) -> MessageBatch:  # fmt: skip
    """Gets the messages for which the first chunk of a batch had no room."""
    typical = _next_typical(chunk, needed, TYPICAL)
    return _get_chunks(
        queue, [chunk], left, typical, 0, None, persistent_only, None, syncpoint, unit
    )


def _next_typical(chunk: MessageBatch, needed: int, typical: int) -> int:
    return max(typical, needed, len(chunk.bodies) // len(chunk)) * 5 // 4


def _get_chunks(
    queue: QueueHandle, chunks: list[MessageBatch], left: int, typical: int, wait: float | None,
    max_bytes: int | None, persistent_only: bool, up_to: int | None, syncpoint: bool | None,
    unit: Unit | None,
) -> MessageBatch:  # fmt: skip
    """Gets chunk by chunk, with room for bodies of the typical size; joins the chunks."""
    while True:
        capacity = row_capacity(queue, left)
        room = max(LEAST_ROOM, capacity * typical)
        if max_bytes is not None:
            room = min(room, max_bytes)
        try:
            chunk, needed = _get_once(
                queue, capacity, room, wait, max_bytes or 0, persistent_only, up_to, syncpoint, unit
            )
        except Exception:
            if chunks:  # these messages are taken; the next call reports the error
                break
            raise
        chunks.append(chunk)
        left -= len(chunk)
        if left <= 0 or needed == 0 or max_bytes is not None:
            break
        wait = 0
        typical = _next_typical(chunk, needed, typical)
    return _join(chunks)

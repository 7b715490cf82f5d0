"""Browsing message batches, and splitting a queue into ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _engine
from ..constants import ReasonCode
from ..errors import InvalidValue
from .limits import check_limits, check_number, row_capacity
from .message_batch import MessageBatch, without_bodies
from .row_layout import DTYPE

if TYPE_CHECKING:
    from .._engine import QueueHandle


_BROWSE_ROOM = 16 << 20
_MOST_PARTS = 100_000
Position = tuple[int, int]  # in delivery order: placement priority, message number
_Read = Callable[[Any, Any, Any], tuple[int, int]]


def _read(call: _Read, capacity: int, room: int) -> MessageBatch:
    """One call of the core that copies without taking, repeated with more room when needed."""
    while True:
        rows = np.empty(capacity, DTYPE)
        bodies = np.empty(room, np.uint8)
        offsets = np.zeros(capacity + 1, np.int64)
        count, needed = call(rows, bodies, offsets)
        if count or not needed:
            return MessageBatch(rows[:count], bodies[: int(offsets[count])], offsets[: count + 1])
        room = needed


def browse_batch(
    queue: QueueHandle, max_messages: int, first: bool, max_bytes: int | None,
    persistent_only: bool, up_to: int | None, with_bodies: bool, delayed: bool,
) -> MessageBatch:  # fmt: skip
    """Queue.browse_batch()."""
    check_limits(max_messages, max_bytes, up_to)
    begin = first
    most = max_bytes or (_BROWSE_ROOM if with_bodies else 0)

    def call(rows: Any, bodies: Any, offsets: Any) -> tuple[int, int]:
        return _engine.batch_browse(
            queue, rows, bodies, offsets, begin, most, persistent_only, up_to, None, delayed
        )

    capacity = row_capacity(queue, max_messages)
    if with_bodies:
        return _read(call, capacity, most)
    rows = np.empty(capacity, DTYPE)
    return without_bodies(rows, call(rows, None, None)[0])


def split_points(queue: QueueHandle, parts: int) -> list[Position]:
    """Queue.split_points()."""
    check_number("parts", parts, 1)
    if parts > _MOST_PARTS:
        raise InvalidValue(ReasonCode.OPTIONS_ERROR, f"parts {parts} is more than {_MOST_PARTS}")
    return _engine.queue_split_points(queue, parts)

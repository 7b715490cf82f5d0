"""Putting a message batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _engine
from ..constants import ReasonCode
from .bodies import bodies_of, check_offsets
from .fields import REPORT_KNOWN, check_fields, fill_fields
from .message_batch import BatchResult, MessageBatch
from .row_layout import DTYPE, Rows

if TYPE_CHECKING:
    from .._engine import QueueHandle, Unit


def _rows_for(queue: QueueHandle, source: Any, count: int) -> Rows:
    rows: Rows
    if not isinstance(source, MessageBatch):
        rows = np.empty(count, DTYPE)
        _engine.batch_start(queue, rows)
        return rows
    rows = source.descriptors.copy()
    _engine.batch_start(queue, rows, True)
    return rows


def put_batch(
    queue: QueueHandle,
    source: Any,
    syncpoint: bool | None,
    columns: Mapping[str, Any],
    unit: Unit | None = None,
) -> BatchResult:
    """Queue.put_batch(); ``columns`` are its fields by name, None = not given."""
    bodies = bodies_of(source)
    rows = _rows_for(queue, source, len(bodies.offsets) - 1)
    if columns.get("delay") is not None or columns.get("at") is not None:
        queue.check_delays()
    given = fill_fields(rows, columns)
    if columns.get("delay") is not None:
        rows["due_us"][rows["due_us"] != 0] += queue.connection.advanced_us()
    if given:
        check_fields(rows, given)
    if "reply_to_q" in given:
        _engine.batch_complete_reply(queue, rows)
    reason, count, failed, warnings = _engine.batch_put(
        queue, rows, bodies.buffer, bodies.offsets, syncpoint, "put_time_us" in given, unit
    )
    if reason:
        if reason == ReasonCode.BUFFER_LENGTH_ERROR:
            check_offsets(bodies.offsets, memoryview(bodies.buffer).nbytes)
        _engine.batch_fail(queue, reason, count, failed)
    if "report" not in given and not isinstance(source, MessageBatch):
        return BatchResult(count, warnings, rows)
    unknown = (rows["report"] & ~REPORT_KNOWN != 0) & (rows["reason"] == 0)
    if unknown.any():
        rows["reason"][unknown] = ReasonCode.UNKNOWN_REPORT_OPTION
        warnings += int(unknown.sum())
    return BatchResult(count, warnings, rows)

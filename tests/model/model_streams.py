"""Stream queues of the model: "Streaming queues" and "Stream queues and transactions"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import model_put
import model_reports
from model_state import LocalQueue, Message, Unit
from mq_numbers import UNLIMITED, R

if TYPE_CHECKING:
    from model import QueueManager

MUST_DUPLICATE = 1  # STRMQOS
# Report: what the queue manager itself acts on, each with and without data, and ACTIVITY
REMOVED = sum(option * 7 for option in (256, 2048, 0x200000, 0x01000000)) | 4


def stream_of(qm: QueueManager, queue: LocalQueue) -> LocalQueue | None:
    found = qm.objects.get(queue["STREAMQ"]) if queue["STREAMQ"] else None
    return found if isinstance(found, LocalQueue) else None


def must_duplicate(queue: LocalQueue) -> bool:
    return bool(queue["STREAMQ"]) and bool(queue["STRMQOS"] == MUST_DUPLICATE)


def refusals(
    qm: QueueManager, queue: LocalQueue, data: Any, unit: Unit | None, others: int
) -> set[R]:
    """What keeps the copy of a message from the stream queue. `others`: messages that the put
    itself, and the report on its arrival, add to the unit of work.
    """
    target = stream_of(qm, queue)
    if target is None:
        return {R.UNKNOWN_OBJECT_NAME} if queue["STREAMQ"] else set()
    full = unit is not None and unit.count + others + 1 > qm.manager["MAXUMSGS"]
    return {
        reason
        for holds, reason in (
            (target["PUT"], R.PUT_INHIBITED),
            (len(data) > target["MAXMSGL"], R.MSG_TOO_BIG_FOR_Q),
            (len(data) > qm.manager["MAXMSGL"], R.MSG_TOO_BIG_FOR_Q_MGR),
            (len(target.messages) >= target["MAXDEPTH"], R.Q_FULL),
            (full, R.SYNCPOINT_LIMIT_REACHED),
        )
        if holds
    }


def copy(
    qm: QueueManager, queue: LocalQueue, message: Message, unit: Unit | None
) -> tuple[LocalQueue, Message]:
    """Puts the copy of a message that was put, in its unit of work."""
    target = stream_of(qm, queue)
    assert target is not None
    fields = {**message.md, "Report": message.md["Report"] & ~REMOVED, "Expiry": UNLIMITED}
    fields |= {key: model_reports.same(message.md, key) for key in ("MsgId", "CorrelId")}
    model_put.cap_expiry_by([target], fields)
    made = Message(qm.next_number(), model_put.placement_of(qm, target, fields), fields,
                   message.data)  # fmt: skip
    target.place(made)
    if unit is not None:
        made.put_by = unit
        unit.add(target, made, put=True)
    return target, made

"""Triggers of the model: section 8.7.

Nobody waits on an initiation queue in the calls that are compared. So the end of a connection that
closes the last handle for input leaves the evaluation to the next close of such a handle, where a
trigger monitor would get the message within a second. TRIGINT keeps its default, which is never
over.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import model_put
from model_state import Anything, Definition, Fresh, LocalQueue, Message, Unit
from mq_numbers import IDENTITY, INPUT, MD_INITIAL, MD_VERSION_2, ORIGIN

if TYPE_CHECKING:
    from model import QueueManager

MQTM = struct.Struct("<4si48s48s64si256s128s128s")
NONE, FIRST, EVERY, DEPTH = range(4)
MADE_BY_MANAGER = 7  # PutApplType


def triggers(queue: LocalQueue) -> bool:
    return bool(queue["TRIGGER"]) and queue["TRIGTYPE"] != NONE


def counts(queue: LocalQueue, message: Message) -> bool:
    """Whether the message counts: of a queue in order of arrival each does."""
    return bool(queue["MSGDLVSQ"] == 1 or message.placement >= queue["TRIGMPRI"])


def present(queue: LocalQueue) -> int:
    return sum(counts(queue, message) for message in queue.messages)


def is_watched(qm: QueueManager, queue: LocalQueue) -> bool:
    """Whether the initiation queue can take trigger messages, and somebody has it open."""
    target = qm.objects.get(queue["INITQ"])
    return (
        isinstance(target, LocalQueue)
        and not (target["PUT"] or target["GET"] or target["USAGE"])
        and target.open_count(INPUT) > 0
    )


def is_armed(qm: QueueManager) -> bool:
    """Whether some call may make a trigger message."""
    return any(triggers(queue) and is_watched(qm, queue) for queue in qm.queues())


# ---- when ----


def arrived(
    qm: QueueManager,
    queue: LocalQueue,
    message: Message,
    unit: Unit | None,
    limited: bool = True,
    reports: bool = False,
) -> None:
    """A message has been put. `limited`: MAXUMSGS counts for the unit of work. `reports`: the
    report on its arrival comes after it, and has its room.
    """
    if not triggers(queue) or message.md["Priority"] < queue["TRIGMPRI"]:
        return
    got = sum(one.got_by is not None for one in queue.messages)
    before = max(0, present(queue) - counts(queue, message) - got)
    kind = queue["TRIGTYPE"]
    if kind != EVERY and queue.open_count(INPUT):
        return
    if (kind == FIRST and before) or (kind == DEPTH and before + 1 != queue["TRIGDPTH"]):
        return
    make(qm, queue, unit, limited, reports)


def evaluate(qm: QueueManager, queue: LocalQueue, every: bool) -> None:
    """The conditions, by the messages that are there."""
    kind = queue["TRIGTYPE"]
    least = queue["TRIGDPTH"] if kind == DEPTH else 1
    if not triggers(queue) or present(queue) < least:
        return
    if every if kind == EVERY else not queue.open_count(INPUT):
        make(qm, queue, None)


def changed(qm: QueueManager, name: str) -> None:
    """A queue or a process has been altered."""
    for queue in qm.queues():
        if name in (queue.name, queue["PROCESS"], queue["INITQ"]):
            evaluate(qm, queue, every=True)


def input_opened(qm: QueueManager, opened: LocalQueue) -> None:
    """Is it an initiation queue?"""
    for queue in qm.queues():
        if queue["INITQ"] == opened.name:
            evaluate(qm, queue, every=True)


def input_ended(queue: LocalQueue) -> None:
    """A handle for input is gone: with the last one the queue is to be looked at."""
    queue.trigger_due |= triggers(queue) and not queue.open_count(INPUT)


def input_closed(qm: QueueManager, queue: LocalQueue) -> None:
    """A handle for input has been closed by a call."""
    if queue.trigger_due and triggers(queue) and not queue.deleted:
        queue.trigger_due = False
        evaluate(qm, queue, every=False)


# ---- what ----


def make(
    qm: QueueManager,
    queue: LocalQueue,
    unit: Unit | None,
    limited: bool = True,
    reports: bool = False,
) -> None:
    """The trigger message, when the conditions on the definitions are met. One that has no place is
    discarded: there is no dead-letter queue.
    """
    process = qm.objects.get(queue["PROCESS"])
    if queue["GET"] or not is_watched(qm, queue) or process is None or process.kind != "PROCESS":
        return
    target = qm.objects[queue["INITQ"]]
    assert isinstance(target, LocalQueue)
    data = body(queue, process)
    full = unit is not None and limited and unit.count + 1 + reports > qm.manager["MAXUMSGS"]
    if not (
        full
        or len(data) > min(target["MAXMSGL"], qm.manager["MAXMSGL"])
        or len(target.messages) >= target["MAXDEPTH"]
    ):
        place(qm, target, data, unit)
    if queue["TRIGTYPE"] == DEPTH:
        queue.attrs["TRIGGER"] = 0


def place(qm: QueueManager, target: LocalQueue, data: bytes, unit: Unit | None) -> None:
    fields: dict[str, Any] = {**MD_INITIAL, **MD_VERSION_2}
    fields |= {key: MD_INITIAL[key] for key in (*IDENTITY, *ORIGIN)}
    fields |= {
        "Format": "MQTRIG",
        "CodedCharSetId": qm.surroundings["CodedCharSetId"],
        "Priority": target["DEFPRTY"],
        "Persistence": 0,
        "ReplyToQMgr": qm.name,
        "PutApplType": MADE_BY_MANAGER,
        "PutApplName": qm.name,
        "PutDate": Anything(),
        "PutTime": Anything(),
    }
    fields["MsgId"] = Fresh(fields, "MsgId")
    model_put.cap_expiry_by([target], fields)
    placement = model_put.placement_of(qm, target, fields)
    message = Message(qm.next_number(), placement, fields, data)
    target.place(message)
    if unit is not None:
        message.put_by = unit
        message.stays = True
        unit.add(target, message, put=True)


def body(queue: LocalQueue, process: Definition) -> bytes:
    """The MQTM."""
    texts = [
        text.encode().ljust(size)
        for text, size in (
            (queue.name, 48), (queue["PROCESS"], 48), (queue["TRIGDATA"], 64),
            (process["APPLICID"], 256), (process["ENVRDATA"], 128), (process["USERDATA"], 128),
        )
    ]  # fmt: skip
    return MQTM.pack(b"TM  ", 1, *texts[:3], process["APPLTYPE"], *texts[3:])

"""Report messages of the model: section 8.5."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import model_put
from model_names import resolve
from model_state import (
    TEMPORARY_DYNAMIC,
    Anything,
    Definition,
    Failure,
    Fresh,
    LocalQueue,
    Message,
    SameId,
    Unit,
    refuse_if,
)
from mq_numbers import IDENTITY, MD_INITIAL, MD_VERSION_2, XQH_LENGTH, R

if TYPE_CHECKING:
    from model import QueueManager

EXPIRATION, COA, COD = 258, 259, 260  # Feedback
OPTION = {
    EXPIRATION: 0x200000,
    COA: 256,
    COD: 2048,
}  # Report; the bits for some and for all data are the next two
PASS_MSG_ID, PASS_CORREL_ID, PASS_DISCARD, DISCARD = 128, 64, 16384, 0x08000000
SOME_DATA = 100


def asks(queue: LocalQueue, md: dict[str, Any], feedback: int) -> bool:
    """Does the queue manager report the arrival, delivery or expiration of such a message?"""
    wanted = md["Report"] & OPTION[feedback] and md["ReplyToQ"]
    arrived = queue["USAGE"] == 0 or feedback == EXPIRATION
    return bool(wanted and arrived and md["Format"] != "MQDEAD")


def confirm(
    qm: QueueManager, queue: LocalQueue, message: Message, feedback: int, unit: Unit | None
) -> None:
    """The report on a message that was put on the queue or got from it, in the unit of work. Raises
    Failure when it may neither be delivered nor discarded (there is no dead-letter queue).
    """
    if not asks(queue, message.md, feedback):
        return
    made, data = report_on(qm, message, feedback)
    try:
        place(qm, message.md, made, data, unit)
    except Failure:
        if made["Report"] or not message.persistent:
            return
        if unit is None:
            raise
        unit.failed = True
        raise Failure(R.BACKED_OUT) from None


def owes(queue: LocalQueue, message: Message) -> bool:
    """Has the message expired, and its report on that not been made?"""
    return message.expired and asks(queue, message.md, EXPIRATION)


def expire(qm: QueueManager, queue: LocalQueue, message: Message) -> None:
    """Discards an expired message, and reports that outside units of work (5.7). Without a place
    the report is lost (there is no dead-letter queue).
    """
    queue.messages.remove(message)
    if owes(queue, message):
        with contextlib.suppress(Failure):
            place(qm, message.md, *report_on(qm, message, EXPIRATION), None)


def report_on(qm: QueueManager, message: Message, feedback: int) -> tuple[dict[str, Any], bytes]:
    """MQMD and data."""
    md = message.md
    option = OPTION[feedback]
    passes = md["Report"] & PASS_DISCARD and feedback != EXPIRATION  # then nothing is left to pass
    made = {**MD_INITIAL, **MD_VERSION_2}
    made |= {key: md[key] for key in (*IDENTITY, *MD_VERSION_2, "Priority", "Persistence")}
    made |= {
        "MsgType": 4,
        "Feedback": feedback,
        "Report": DISCARD if md["Report"] & (DISCARD | PASS_DISCARD) else 0,
        "Expiry": md["Expiry"] if passes else MD_INITIAL["Expiry"],
        "CodedCharSetId": qm.surroundings["CodedCharSetId"],
        "ReplyToQMgr": qm.name,
        "PutApplType": 7,
        "PutApplName": qm.name,
        "PutDate": Anything(),
        "PutTime": Anything(),
        "BackoutCount": 0,
    }
    made["MsgId"] = same(md, "MsgId") if md["Report"] & PASS_MSG_ID else Fresh(made, "MsgId")
    made["CorrelId"] = same(md, "CorrelId" if md["Report"] & PASS_CORREL_ID else "MsgId")
    if not md["Report"] & (option * 2 | option * 4):
        return made, b""
    made |= {key: md[key] for key in ("Format", "Encoding", "CodedCharSetId")}
    return made, message.data if md["Report"] & option * 4 else message.data[:SOME_DATA]


def same(md: dict[str, Any], name: str) -> Any:
    return SameId(md, name) if isinstance(md[name], (Fresh, SameId)) else md[name]


def place(
    qm: QueueManager, md: dict[str, Any], made: dict[str, Any], data: bytes, unit: Unit | None
) -> None:
    """Puts the report on ReplyToQ; raises what keeps it from there."""
    path = resolve(qm, md["ReplyToQ"], md["ReplyToQMgr"])
    if isinstance(path, Definition):
        raise Failure(R.Q_TYPE_ERROR)
    queue = path.queue
    length = len(data) + (XQH_LENGTH if path.remote else 0)
    refuse_if(
        (any(step.attrs.get("PUT") for step in path.steps), R.PUT_INHIBITED),
        (length > queue["MAXMSGL"], R.MSG_TOO_BIG_FOR_Q),
        (length > qm.manager["MAXMSGL"], R.MSG_TOO_BIG_FOR_Q_MGR),
        (made["Persistence"] == 1 and queue["DEFTYPE"] == TEMPORARY_DYNAMIC,
         R.PERSISTENT_NOT_ALLOWED),
        (len(queue.messages) >= queue["MAXDEPTH"], R.Q_FULL),
    )  # fmt: skip
    model_put.cap_expiry(path, made)
    placement = model_put.placement_of(qm, queue, made)
    fields, body = made, data
    if path.remote:
        fields, body = model_put.transmitted(qm, made, path.remote, data)
    report = Message(qm.next_number(), placement, fields, body)
    queue.place(report)
    if unit is not None:
        report.put_by = unit
        unit.add(queue, report, put=True)

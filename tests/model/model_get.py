"""MQGET of the model: section 5."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import model_convert
import model_reports
from model_open import several
from model_state import Answer, Anything, Connection, Failure, Handle, Message, answer, refuse_if
from mq_numbers import (
    BROWSE,
    BROWSES,
    GMO,
    IDENTITY,
    INPUT,
    MD_VERSION_2,
    MO,
    NO_ID,
    OO,
    ORIGIN,
    R,
)

if TYPE_CHECKING:
    from model import QueueManager

MDE = struct.Struct("<4s4i8si24s4i")
KNOWN = int(sum(GMO))
UNDER_CURSOR = GMO.MSG_UNDER_CURSOR | GMO.BROWSE_MSG_UNDER_CURSOR
SYNCPOINTS = (GMO.SYNCPOINT, GMO.NO_SYNCPOINT, GMO.SYNCPOINT_IF_PERSISTENT)
MATCHED = {
    MO.MSG_ID: "MsgId",
    MO.CORREL_ID: "CorrelId",
    MO.GROUP_ID: "GroupId",
    MO.MSG_SEQ_NUMBER: "MsgSeqNumber",
    MO.OFFSET: "Offset",
}


def get(
    qm: QueueManager,
    connection: Connection,
    handle: Handle,
    md: dict[str, Any],
    gmo: dict[str, Any],
    room: int | None,
) -> Answer:
    """MQGET with a buffer of `room` bytes, None: as many as needed. A wait ends at once: no other
    caller acts during it.
    """
    options = GMO(gmo.get("Options", 0))
    wrong = wrong_structures(md, gmo, options)
    if any(holds for holds, _ in wrong):
        wrong += handle.spoilt()
    refuse_if(*wrong, *missing_rights(handle, options))
    if options & (GMO.BROWSE_FIRST | GMO.BROWSE_NEXT):  # ends the lock, also when it fails (5.4)
        handle.unlock()
    limit = unit_limit(qm, connection, options)
    handle.check_usable(*limit)
    if options & GMO.UNLOCK:
        return unlock(handle)
    assert handle.path is not None
    if options & GMO.BROWSE_FIRST:
        handle.cursor = None
    if any(step.attrs.get("GET") for step in handle.path.steps):
        raise Failure(R.GET_INHIBITED, *limit)
    expire_first(qm, handle, md, gmo, options, limit)
    message = choose(handle, md, gmo, options, limit)
    in_unit = not options & BROWSE and in_syncpoint(qm, options, message)
    length = len(as_seen(message, md)[0])
    short = room is not None and room < length
    refused = short and not options & GMO.ACCEPT_TRUNCATED_MSG
    refuse_if(
        (in_unit and limit, R.SYNCPOINT_LIMIT_REACHED),
        (in_unit and limit and refused, R.TRUNCATED_MSG_FAILED),  # the order is not specified
    )
    if refused:
        return returned(message, md, gmo, room, R.TRUNCATED_MSG_FAILED)
    result = returned(message, md, gmo, room, R.TRUNCATED_MSG_ACCEPTED if short else R.NONE)
    if options & BROWSE:
        browse(handle, message, options)
    else:
        take_reported(qm, connection, handle, message, in_unit)
    return result


def take_reported(
    qm: QueueManager, connection: Connection, handle: Handle, message: Message, in_unit: bool
) -> None:
    """Takes the message, and reports its delivery in the same unit of work."""
    both = in_unit and model_reports.asks(handle.queue, message.md, model_reports.COD)
    refuse_if((both and connection.unit.count + 2 > qm.manager["MAXUMSGS"],
               R.SYNCPOINT_LIMIT_REACHED))  # fmt: skip
    context = handle.context
    try:
        if in_unit:
            take(connection, handle, message, in_unit)
        model_reports.confirm(
            qm, handle.queue, message, model_reports.COD, connection.unit if in_unit else None
        )
    except Failure:
        handle.context = context
        message.backout_count += not in_unit
        if message.locked_by is not None:  # it was got, and backed out
            message.locked_by.unlock()
        raise
    if not in_unit:  # until the unit of both has ended the message is on its queue
        take(connection, handle, message, in_unit)


# ---- checks ----


def wrong_structures(md: dict[str, Any], gmo: dict[str, Any], options: GMO) -> list[Any]:
    """Errors in the caller's arguments; no document fixes the order of these checks."""
    wrong_gmo = not 1 <= gmo.get("Version", 1) <= 4 or gmo.get("StrucId", "GMO") != "GMO"
    wrong_md = md.get("Version", 1) not in (1, 2) or md.get("StrucId", "MD") != "MD"
    waits = options & (GMO.WAIT | GMO.SET_SIGNAL)
    return [
        (wrong_gmo, R.GMO_ERROR),
        (wrong_md, R.MD_ERROR),
        (waits and gmo.get("WaitInterval", 0) < -1, R.WAIT_INTERVAL_ERROR),
        (bad_options(int(options)), R.OPTIONS_ERROR),
        (needs_version_2(md, gmo, options), R.WRONG_MD_VERSION),
    ]


def needs_version_2(md: dict[str, Any], gmo: dict[str, Any], options: GMO) -> bool:
    """Match options compare fields that version 1 of MQMD has not."""
    chosen = gmo.get("MatchOptions", 0) if gmo.get("Version", 1) >= 2 else 0
    ignored = options & (UNDER_CURSOR | GMO.UNLOCK)
    return bool(chosen & ~3 and md.get("Version", 1) == 1 and not ignored)


def bad_options(options: int) -> bool:
    """The list of 5.1."""
    browsing = options & BROWSE
    return bool(
        options & ~KNOWN
        or several(options, SYNCPOINTS)
        or several(options, (*BROWSES, GMO.MSG_UNDER_CURSOR))
        or (options & GMO.SYNCPOINT and (browsing or options & (GMO.LOCK | GMO.UNLOCK)))
        or (options & GMO.SYNCPOINT_IF_PERSISTENT and (browsing or options & GMO.UNLOCK))
        or (options & GMO.MARK_SKIP_BACKOUT)  # 5.8: on other platforms than z/OS refused
        or (options & GMO.SET_SIGNAL)
        or (options & GMO.LOCK and not browsing)
        or (options & GMO.UNLOCK and options & ~int(GMO.UNLOCK | GMO.NO_SYNCPOINT))
    )


def missing_rights(handle: Handle, options: GMO) -> list[Any]:
    """Checks of the open options; an unusable handle may give its own reason instead."""
    browses = bool(options & (BROWSE | GMO.UNLOCK))
    needs_cursor = browses or options & GMO.MSG_UNDER_CURSOR
    missing = [
        (needs_cursor and not handle.options & OO.BROWSE, R.NOT_OPEN_FOR_BROWSE),
        (not browses and not handle.options & INPUT, R.NOT_OPEN_FOR_INPUT),
    ]
    return [*missing, *handle.spoilt()] if any(holds for holds, _ in missing) else []


def unlock(handle: Handle) -> Answer:
    if handle.locked is None:
        return answer(R.NO_MSG_LOCKED)
    handle.unlock()
    return answer()


def unit_limit(qm: QueueManager, connection: Connection, options: GMO) -> tuple[R, ...]:
    """2024 when the unit of work is full and the call may belong to it; the order of this check and
    those of the queue is not specified.
    """
    outside = options & (BROWSE | GMO.NO_SYNCPOINT | GMO.UNLOCK)
    asked = options & (GMO.SYNCPOINT | GMO.SYNCPOINT_IF_PERSISTENT) or qm.zos
    full = connection.unit.count >= qm.manager["MAXUMSGS"]
    return (R.SYNCPOINT_LIMIT_REACHED,) if full and asked and not outside else ()


def in_syncpoint(qm: QueueManager, options: GMO, message: Message) -> bool:
    """5.1: IF_PERSISTENT by the message; no option: outside, on z/OS inside."""
    if options & GMO.SYNCPOINT_IF_PERSISTENT:
        return message.persistent
    return bool(options & GMO.SYNCPOINT) or (qm.zos and not options & GMO.NO_SYNCPOINT)


# ---- which message ----


def choose(
    handle: Handle, md: dict[str, Any], gmo: dict[str, Any], options: GMO, limit: tuple[R, ...]
) -> Message:
    """The message that the call means, or Failure."""
    queue = handle.queue
    if options & UNDER_CURSOR:
        at = [m for m in queue.messages if m.place == handle.cursor and m.available(handle)]
        if not at or at[0].expired:
            raise Failure(R.NO_MSG_UNDER_CURSOR, *limit)
        return at[0]
    after = handle.cursor if options & GMO.BROWSE_NEXT else None
    for message in list(queue.messages):
        if after is not None and message.place <= after:
            continue
        if not message.available(handle):
            continue
        if message.expired:  # discarded when it would have been returned (5.7)
            if matches(message, md, gmo):
                queue.messages.remove(message)
            continue
        if matches(message, md, gmo):
            return message
    raise Failure(R.NO_MSG_AVAILABLE, *limit)


def expire_first(
    qm: QueueManager,
    handle: Handle,
    md: dict[str, Any],
    gmo: dict[str, Any],
    options: GMO,
    limit: tuple[R, ...],
) -> None:
    """Reports the expired messages that the search for another one meets (5.7)."""
    refused = limit and not options & GMO.SYNCPOINT_IF_PERSISTENT
    while not options & UNDER_CURSOR and not refused:
        after = handle.cursor if options & GMO.BROWSE_NEXT else None
        for message in handle.queue.messages:
            behind = after is None or message.place > after
            if behind and message.available(handle) and matches(message, md, gmo):
                break
        else:
            return
        if message.locked_by is not None or not model_reports.owes(handle.queue, message):
            if not message.expired:
                return
            handle.queue.messages.remove(message)
        else:
            model_reports.expire(qm, handle.queue, message)


def matches(message: Message, md: dict[str, Any], gmo: dict[str, Any]) -> bool:
    """5.2: all the given options; an id of NULs matches any. Version 1 of MQGMO: both ids."""
    options = MO.MSG_ID | MO.CORREL_ID
    if gmo.get("Version", 1) >= 2:
        options = MO(gmo.get("MatchOptions", int(options)))
    for option, field in MATCHED.items():
        wanted = md.get(field, MD_VERSION_2.get(field, NO_ID))
        if options & option and wanted != NO_ID and wanted != message.md[field]:
            return False
    return True


# ---- what happens to it ----


def browse(handle: Handle, message: Message, options: GMO) -> None:
    handle.cursor = message.place
    if options & GMO.LOCK:
        handle.unlock()
        handle.locked = message
        message.locked_by = handle


def take(connection: Connection, handle: Handle, message: Message, in_unit: bool) -> None:
    if message.locked_by is not None:
        message.locked_by.unlock()
    if handle.options & OO.SAVE_ALL_CONTEXT:
        handle.context = {key: message.md[key] for key in (*IDENTITY, *ORIGIN)}
    if in_unit:
        message.got_by = connection.unit
        connection.unit.add(handle.queue, message, put=False)
    else:
        handle.queue.messages.remove(message)


def as_seen(message: Message, md: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Data and MQMD in the caller's version: what version 1 cannot hold comes as an MQMDE in front
    of the data, as it may on a put (1.1).
    """
    fields = {**message.md, "BackoutCount": message.backout_count}
    if md.get("Version", 1) == 2:
        return message.data, fields
    second = [fields.pop(key) for key in MD_VERSION_2]
    if second == list(MD_VERSION_2.values()) or not isinstance(message.data, bytes):
        return message.data, fields
    described = fields["Encoding"], fields["CodedCharSetId"], fields["Format"].ljust(8).encode()
    extension = MDE.pack(b"MDE ", 2, MDE.size, *described, 0, *second)
    fields |= {"Format": "MQHMDE", "Encoding": Anything(), "CodedCharSetId": Anything()}
    return extension + message.data, fields


def returned(
    message: Message, md: dict[str, Any], gmo: dict[str, Any], room: int | None, reason: R
) -> Answer:
    """The message for the caller: MQMD in the caller's version, data truncated to the buffer."""
    data, fields = as_seen(message, md)
    length = len(data)
    reasons = frozenset({reason})
    if room is not None and isinstance(data, bytes):
        data = data[:room]
    if gmo.get("Options", 0) & GMO.CONVERT and reason != R.TRUNCATED_MSG_FAILED:
        accept = bool(gmo["Options"] & GMO.ACCEPT_TRUNCATED_MSG)
        found = model_convert.convert(data, fields, md, room, reason != R.NONE, accept)
        data = found.data
        if found.changed:
            fields["CodedCharSetId"], fields["Encoding"] = model_convert.target(md)
        if reason == R.NONE:
            reasons = found.reasons
            length = len(data) if reasons == {R.NONE} else length
    values: dict[str, Any] = {"data": data, "length": length, "md": fields}
    if room is not None and not isinstance(data, bytes) and room < length:
        del values["data"]  # a truncated transmission header: its length suffices
    if gmo.get("Version", 1) >= 3:
        whole = length if room is None else min(room, length)
        values["ReturnedLength"] = len(data) if isinstance(data, bytes) else whole
    return Answer(reasons, values)

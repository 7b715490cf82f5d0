"""MQPUT and MQPUT1 of the model: sections 1.3 to 1.5 and 4. The order of checks is that of 4.4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import model_reports
import model_streams
import model_triggers
from model_names import resolve
from model_open import check_descriptor, list_outcome, open_path, several
from model_state import (
    TEMPORARY_DYNAMIC,
    Answer,
    Anything,
    Connection,
    Definition,
    Failure,
    Fresh,
    Handle,
    LocalQueue,
    Message,
    Near,
    Path,
    Transmitted,
    Unit,
    answer,
    refuse_if,
)
from mq_numbers import (
    CONTEXTS,
    IDENTITY,
    MAX_PRIORITY,
    MD_INITIAL,
    MD_VERSION_2,
    NO_ID,
    OO,
    ORIGIN,
    OT,
    PERSISTENCE_AS_Q_DEF,
    PMO,
    PRIORITY_AS_Q_DEF,
    REPORT_ACCEPT_IF_XMIT,
    REPORT_DEFINED,
    REPORT_NEEDS_REPLY_Q,
    REPORT_REJECT,
    UNLIMITED,
    XQH_LENGTH,
    R,
)

if TYPE_CHECKING:
    from model import QueueManager

KNOWN = int(sum(PMO))
# Context option: MQOO options that allow it, reason when none of them was used.
CONTEXT_RIGHTS = {
    PMO.PASS_IDENTITY_CONTEXT: (
        OO.PASS_IDENTITY_CONTEXT
        | OO.PASS_ALL_CONTEXT
        | OO.SET_IDENTITY_CONTEXT
        | OO.SET_ALL_CONTEXT,
        R.NOT_OPEN_FOR_PASS_IDENT,
    ),
    PMO.PASS_ALL_CONTEXT: (
        OO.PASS_ALL_CONTEXT | OO.SET_ALL_CONTEXT,
        R.NOT_OPEN_FOR_PASS_ALL,
    ),
    PMO.SET_IDENTITY_CONTEXT: (
        OO.SET_IDENTITY_CONTEXT | OO.SET_ALL_CONTEXT,
        R.NOT_OPEN_FOR_SET_IDENT,
    ),
    PMO.SET_ALL_CONTEXT: (OO.SET_ALL_CONTEXT, R.NOT_OPEN_FOR_SET_ALL),
}


def put(
    qm: QueueManager,
    connection: Connection,
    handle: Handle,
    md: dict[str, Any],
    pmo: dict[str, Any],
    data: bytes,
) -> Answer:
    """MQPUT."""
    options = pmo.get("Options", 0)
    handle.check_usable(*no_room_for_both(qm, connection, handle, md, options))
    refuse_if((not handle.options & OO.OUTPUT, R.NOT_OPEN_FOR_OUTPUT))
    check_options(pmo, options)
    refuse_if((options & PMO.ALTERNATE_USER_AUTHORITY, R.OPTIONS_ERROR))
    saved = check_context(connection, handle, pmo)
    if handle.members is not None:
        return put_to_list(qm, connection, handle, md, options, data, saved)
    assert handle.path is not None
    return put_on(qm, connection, handle.path, md, options, data, saved)


def no_room_for_both(
    qm: QueueManager, connection: Connection, handle: Handle, md: dict[str, Any], options: int
) -> tuple[R, ...]:
    """2024 when MAXUMSGS leaves no room for a message and its report, which is checked before
    anything is put, in no specified order with other checks.
    """
    full = connection.unit.count + 2 > qm.manager["MAXUMSGS"]
    if not full or handle.path is None or not in_syncpoint(qm, options):
        return ()
    asks = model_reports.asks(handle.queue, {**MD_INITIAL, **md}, model_reports.COA)
    return (R.SYNCPOINT_LIMIT_REACHED,) if asks else ()


def put1(
    qm: QueueManager,
    connection: Connection,
    od: dict[str, Any],
    md: dict[str, Any],
    pmo: dict[str, Any],
    data: bytes,
) -> Answer:
    """MQPUT1: MQOPEN for output, MQPUT, MQCLOSE in one."""
    options = pmo.get("Options", 0)
    check_descriptor(od)
    refuse_if((od.get("ObjectType", OT.Q) != OT.Q, R.OBJECT_TYPE_ERROR))
    wrong: frozenset[R] = frozenset()
    try:
        check_options(pmo, options)
        refuse_if((options & PMO.LOGICAL_ORDER, R.OPTIONS_ERROR))
    except Failure as failure:
        wrong = failure.reasons
    try:
        found = resolve(qm, od.get("ObjectName", ""), od.get("ObjectQMgrName", ""))
        refuse_if((isinstance(found, Definition), R.Q_TYPE_ERROR))
    except Failure as failure:  # the order of the checks of names and options is not specified
        raise Failure(*failure.reasons, *wrong) from None
    refuse_if(*((True, reason) for reason in wrong))
    assert isinstance(found, Path)
    handle = open_path(qm, connection, found, OO.OUTPUT | OO.SET_ALL_CONTEXT)
    found.queue.handles.remove(handle)
    saved = check_context(connection, handle, pmo)
    return put_on(qm, connection, found, md, options, data, saved)


def check_options(pmo: dict[str, Any], options: int) -> None:
    refuse_if(
        (not 1 <= pmo.get("Version", 1) <= 3 or pmo.get("StrucId", "PMO") != "PMO", R.PMO_ERROR),
    )
    refuse_if(
        (
            options & ~KNOWN
            or several(options, (PMO.SYNCPOINT, PMO.NO_SYNCPOINT))
            or several(options, CONTEXTS)
            or several(options, (PMO.ASYNC_RESPONSE, PMO.SYNC_RESPONSE)),
            R.OPTIONS_ERROR,
        )
    )


def check_context(
    connection: Connection, handle: Handle, pmo: dict[str, Any]
) -> dict[str, Any] | None:
    """Rights to set or pass context (4.3); the context that is passed."""
    options = pmo.get("Options", 0)
    for option, (rights, reason) in CONTEXT_RIGHTS.items():
        if options & option and not handle.options & rights:
            raise Failure(reason)
    if not options & (PMO.PASS_IDENTITY_CONTEXT | PMO.PASS_ALL_CONTEXT):
        return None
    source = connection.handles.get(pmo.get("Context", 0))
    if source is None or not source.options & OO.SAVE_ALL_CONTEXT:
        raise Failure(R.CONTEXT_HANDLE_ERROR)
    if source.context is None:
        raise Failure(R.CONTEXT_NOT_AVAILABLE)
    return source.context


# ---- one destination ----


def put_on(
    qm: QueueManager,
    connection: Connection,
    path: Path,
    md: dict[str, Any],
    options: int,
    data: bytes,
    saved: dict[str, Any] | None,
) -> Answer:
    """Puts one message where a path leads. Checks 6 to 15 of 4.4."""
    check_fields(md, remote=path.remote is not None)
    first, queue = path.steps[0], path.queue
    in_unit = in_syncpoint(qm, options)
    both = in_unit and model_reports.asks(queue, {**MD_INITIAL, **md}, model_reports.COA)
    full = connection.unit.count + 1 + both > qm.manager["MAXUMSGS"]
    tight = (full and both, R.SYNCPOINT_LIMIT_REACHED)  # in no specified order with the others
    streams = path.remote is None and bool(queue["STREAMQ"])
    unit = connection.unit if in_unit else None
    lost = model_streams.refusals(qm, queue, data, unit, 1 + both) if streams else set()
    must = [(True, reason) for reason in lost if model_streams.must_duplicate(queue)]
    if any(step.attrs.get("PUT") for step in path.steps):
        refuse_if((True, R.PUT_INHIBITED), tight, *must)
    stored = stored_fields(qm, md, options, saved)
    resolve_defaults(first, stored)
    cap_expiry(path, stored)
    header = XQH_LENGTH if path.remote else 0
    for holds, reason in (
        (len(data) + header > queue["MAXMSGL"], R.MSG_TOO_BIG_FOR_Q),
        (len(data) + header > qm.manager["MAXMSGL"], R.MSG_TOO_BIG_FOR_Q_MGR),
        (stored["Persistence"] == 1 and queue["DEFTYPE"] == TEMPORARY_DYNAMIC,
         R.PERSISTENT_NOT_ALLOWED),
        (len(queue.messages) >= queue["MAXDEPTH"], R.Q_FULL),
        (in_unit and full, R.SYNCPOINT_LIMIT_REACHED),
    ):  # fmt: skip
        refuse_if((holds, reason), (holds and tight[0], tight[1]), *(must if holds else []))
    refuse_if(*must)
    values = new_ids(stored, options)
    body: Any = data
    placement = placement_of(qm, queue, stored)
    if path.remote:
        stored, body = transmitted(qm, stored, path.remote, data)
    message = Message(qm.next_number(), placement, stored, body)
    queue.place(message)
    if in_unit:
        message.put_by = connection.unit
        connection.unit.add(queue, message, put=True)
    copy = model_streams.copy(qm, queue, message, unit) if streams and not lost else None
    model_triggers.arrived(qm, queue, message, unit, reports=both)
    if path.remote is None:
        confirm_arrival(qm, queue, message, unit, copy)
    where, manager = path.remote or (queue.name, qm.name)
    if options & PMO.RESOLVE_LOCAL_Q:
        where, manager = queue.name, qm.name
    return answer(note(md), ResolvedQName=where, ResolvedQMgrName=manager, **values)


def confirm_arrival(
    qm: QueueManager,
    queue: LocalQueue,
    message: Message,
    unit: Unit | None,
    copy: tuple[LocalQueue, Message] | None,
) -> None:
    """The report on arrival, in the unit of work of the put; outside neither is put without the
    other, nor the copy of the message.
    """
    try:
        model_reports.confirm(qm, queue, message, model_reports.COA, unit)
    except Failure:
        if unit is None:
            queue.messages.remove(message)
        if unit is None and copy is not None:
            copy[0].messages.remove(copy[1])
        raise


def in_syncpoint(qm: QueueManager, options: int) -> bool:
    """Neither option: outside, on z/OS inside (4.1)."""
    return bool(options & PMO.SYNCPOINT) or (qm.zos and not options & PMO.NO_SYNCPOINT)


def check_fields(md: dict[str, Any], remote: bool) -> None:
    """Each field of MQMD (1.3 rule 7)."""
    refuse_if(
        (md.get("Version", 1) not in (1, 2) or md.get("StrucId", "MD") != "MD", R.MD_ERROR),
    )
    kind, expiry = md.get("MsgType", 8), md.get("Expiry", UNLIMITED)
    report = md.get("Report", 0) & 0xFFFFFFFF
    unknown = report & ~REPORT_DEFINED
    needs_reply = kind == 1 or report & REPORT_NEEDS_REPLY_Q
    rejected = unknown & (REPORT_REJECT if remote else REPORT_REJECT | REPORT_ACCEPT_IF_XMIT)
    refuse_if(
        (not (1 <= kind <= 65535 or 65536 <= kind <= 999999999), R.MSG_TYPE_ERROR),
        (expiry != UNLIMITED and not 1 <= expiry <= 999999999, R.EXPIRY_ERROR),
        (md.get("Feedback", 0) < 0, R.FEEDBACK_ERROR),
        (md.get("Persistence", 2) not in (0, 1, 2), R.PERSISTENCE_ERROR),
        (md.get("Priority", -1) < -1, R.PRIORITY_ERROR),
        (rejected, R.REPORT_OPTIONS_ERROR),
        (needs_reply and not md.get("ReplyToQ"), R.MISSING_REPLY_TO_Q),
    )


def note(md: dict[str, Any]) -> R:
    """Check 15: success with a note; 2049 goes before 2104."""
    if md.get("Priority", -1) > MAX_PRIORITY:
        return R.PRIORITY_EXCEEDS_MAXIMUM
    if md.get("Report", 0) & 0xFFFFFFFF & ~REPORT_DEFINED:
        return R.UNKNOWN_REPORT_OPTION
    return R.NONE


def resolve_defaults(first: Definition, stored: dict[str, Any]) -> None:
    """AS_Q_DEF: from the first definition in the path, as it is now (1.4, 1.5)."""
    if stored["Persistence"] == PERSISTENCE_AS_Q_DEF:
        stored["Persistence"] = first["DEFPSIST"]
    if stored["Priority"] == PRIORITY_AS_Q_DEF:
        stored["Priority"] = first["DEFPRTY"]


def cap_expiry(path: Path, stored: dict[str, Any]) -> None:
    """CAPEXPRY: the least on the path limits Expiry (5.7)."""
    cap_expiry_by([*path.steps, path.queue], stored)


def cap_expiry_by(definitions: list[Definition], stored: dict[str, Any]) -> None:
    caps = [one.attrs.get("CAPEXPRY", -1) for one in definitions]
    caps = [cap for cap in caps if cap > 0]
    given = stored["Expiry"].given if isinstance(stored["Expiry"], Near) else UNLIMITED
    if caps and (given == UNLIMITED or given > min(caps)):
        stored["Expiry"] = Near(min(caps))


def placement_of(qm: QueueManager, queue: LocalQueue, stored: dict[str, Any]) -> int:
    """The priority at which a message is queued: fixed at arrival, beside the field (1.5)."""
    if queue["MSGDLVSQ"] == 1:
        return int(queue["DEFPRTY"])
    placement = min(stored["Priority"], MAX_PRIORITY)
    by_group = qm.zos and queue.attrs.get("INDXTYPE") == 5
    if by_group and stored["MsgSeqNumber"] == 1 and placement < 2:
        return 2
    return int(placement)


def new_ids(stored: dict[str, Any], options: int) -> dict[str, Any]:
    """Generated ids (1.3 rules 3, 4); what MQPUT gives back in MQMD."""

    if options & PMO.NEW_MSG_ID or stored["MsgId"] == NO_ID:
        stored["MsgId"] = Fresh(stored, "MsgId")
    if options & PMO.NEW_CORREL_ID:
        stored["CorrelId"] = Fresh(stored, "CorrelId")
    return {"MsgId": stored["MsgId"], "CorrelId": stored["CorrelId"]}


def stored_fields(
    qm: QueueManager, md: dict[str, Any], options: int, saved: dict[str, Any] | None
) -> dict[str, Any]:
    """The MQMD of the new message, as MQGET will return it."""
    fields = {**MD_INITIAL, **MD_VERSION_2}
    given = {k: v for k, v in md.items() if md.get("Version", 1) == 2 or k not in MD_VERSION_2}
    fields.update((key, value) for key, value in given.items() if key in fields)
    fields["BackoutCount"] = 0
    if fields["CodedCharSetId"] == 0:
        fields["CodedCharSetId"] = qm.surroundings["CodedCharSetId"]
    if fields["Expiry"] != UNLIMITED:
        fields["Expiry"] = Near(fields["Expiry"])
    if not fields["ReplyToQMgr"]:
        reply_address(qm, fields)
    fields.update(context(qm, fields, options, saved))
    return fields


def reply_address(qm: QueueManager, fields: dict[str, Any]) -> None:
    """Blank ReplyToQMgr: the local one, or that of a reply-queue alias (1.3 rule 2)."""
    alias = qm.objects.get(fields["ReplyToQ"])
    if alias is not None and alias.kind == "QREMOTE":
        fields["ReplyToQ"], fields["ReplyToQMgr"] = alias["RNAME"], alias["RQMNAME"]
    else:
        fields["ReplyToQMgr"] = qm.name


def context(
    qm: QueueManager, fields: dict[str, Any], options: int, saved: dict[str, Any] | None
) -> dict[str, Any]:
    """The table of 4.3."""
    default = {
        **{key: qm.surroundings[key] for key in ("UserIdentifier", "AccountingToken")},
        "ApplIdentityData": "",
        **{key: qm.surroundings[key] for key in ("PutApplType", "PutApplName")},
        "PutDate": Anything(),
        "PutTime": Anything(),
        "ApplOriginData": "",
    }
    if options & PMO.NO_CONTEXT:
        return {key: MD_INITIAL[key] for key in (*IDENTITY, *ORIGIN)}
    if options & PMO.SET_ALL_CONTEXT:
        return {key: fields[key] for key in (*IDENTITY, *ORIGIN)}
    if options & PMO.SET_IDENTITY_CONTEXT:
        return {**default, **{key: fields[key] for key in IDENTITY}}
    if options & PMO.PASS_ALL_CONTEXT and saved:
        return {key: saved[key] for key in (*IDENTITY, *ORIGIN)}
    if options & PMO.PASS_IDENTITY_CONTEXT and saved:
        return {**default, **{key: saved[key] for key in IDENTITY}}
    return default


def transmitted(
    qm: QueueManager, stored: dict[str, Any], remote: tuple[str, str], data: bytes
) -> tuple[dict[str, Any], Transmitted]:
    """The two descriptors of a message on a transmission queue (8.8)."""
    outer = {**MD_INITIAL, **MD_VERSION_2}
    outer |= {key: Anything() for key in (*IDENTITY, *ORIGIN)}
    outer |= {"MsgId": Anything(), "CorrelId": Anything(), "ReplyToQ": Anything()}
    outer |= {
        "ReplyToQMgr": Anything(),
        "Format": "MQXMIT",
        "CodedCharSetId": qm.surroundings["CodedCharSetId"],
        "Priority": stored["Priority"],
        "Persistence": stored["Persistence"],
    }
    return outer, Transmitted(*remote, stored, data)


# ---- distribution lists (3.6) ----


def put_to_list(
    qm: QueueManager,
    connection: Connection,
    handle: Handle,
    md: dict[str, Any],
    options: int,
    data: bytes,
    saved: dict[str, Any] | None,
) -> Answer:
    """One message to each destination that could be opened; 2137 for the others."""
    check_fields(md, remote=False)
    reasons: list[R] = []
    for member in handle.members or ():
        if isinstance(member, R):
            reasons.append(R.OPEN_FAILED)
            continue
        try:
            member.check_usable(*no_room_for_both(qm, connection, member, md, options))
            assert member.path is not None
            done = put_on(qm, connection, member.path, md, options, data, saved)
            reasons.append(R(min(done.reasons)))
        except Failure as failure:
            reasons.append(min(failure.reasons))
    return list_outcome(reasons)

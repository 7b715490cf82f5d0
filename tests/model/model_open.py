"""MQOPEN and MQCLOSE of the model: sections 2 and 3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import model_triggers
from model_names import CHARACTERS, resolve, resolve_attributes
from model_state import (
    PERMANENT_DYNAMIC,
    Answer,
    Connection,
    Definition,
    Failure,
    FreshName,
    Handle,
    LocalQueue,
    Path,
    answer,
    refuse_if,
)
from mq_numbers import BINDS, CO, INPUT, INPUTS, OO, OT, R

if TYPE_CHECKING:
    from model import QueueManager

KNOWN = int(sum(OO))
NEEDS_OUTPUT = (
    OO.PASS_IDENTITY_CONTEXT
    | OO.PASS_ALL_CONTEXT
    | OO.SET_IDENTITY_CONTEXT
    | OO.SET_ALL_CONTEXT
    | OO.NO_MULTICAST
)
OF_ANY_OBJECT = OO.ALTERNATE_USER_AUTHORITY | OO.FAIL_IF_QUIESCING
ONLY_LOCAL = (
    INPUT
    | OO.BROWSE
    | OO.SAVE_ALL_CONTEXT
    | OO.RESOLVE_NAMES
    | OO.CO_OP
    | OO.NO_READ_AHEAD
    | OO.READ_AHEAD
)
NO_ROUTE = frozenset(
    {
        R.UNKNOWN_REMOTE_Q_MGR,
        R.REMOTE_Q_NAME_ERROR,
        R.UNKNOWN_XMIT_Q,
        R.XMIT_Q_TYPE_ERROR,
        R.XMIT_Q_USAGE_ERROR,
        R.UNKNOWN_DEF_XMIT_Q,
        R.DEF_XMIT_Q_TYPE_ERROR,
        R.DEF_XMIT_Q_USAGE_ERROR,
    }
)
NAME_PART_MAX = 33  # characters of DynamicQName up to and with the asterisk


def several(options: int, exclusive: tuple[int, ...]) -> bool:
    return sum(bool(options & one) for one in exclusive) > 1


def check_options(options: int) -> None:
    """3.2 rule 1."""
    used = options & (INPUT | OO.BROWSE | OO.OUTPUT | OO.INQUIRE | OO.SET | sum(BINDS))
    if (
        options & ~KNOWN
        or not used
        or several(options, INPUTS)
        or several(options, BINDS)
        or several(options, (OO.READ_AHEAD, OO.NO_READ_AHEAD))
        or (options & OO.SAVE_ALL_CONTEXT and not options & INPUT)
        or (options & NEEDS_OUTPUT and not options & OO.OUTPUT)
        or (options & OO.CO_OP and not options & OO.BROWSE)
    ):
        raise Failure(R.OPTIONS_ERROR)


def open_object(
    qm: QueueManager, connection: Connection, hobj: int, od: dict[str, Any], options: int
) -> Answer:
    """MQOPEN."""
    check_descriptor(od)
    check_options(options)
    refuse_if((len(connection.handles) >= qm.manager["MAXHANDS"], R.HANDLE_NOT_AVAILABLE))
    if od.get("ObjectRecs"):
        return open_list(qm, connection, hobj, od, options)
    if od.get("ObjectType", OT.Q) == OT.Q_MGR:
        return open_manager(qm, connection, hobj, od, options)
    found = resolve_for(qm, od.get("ObjectName", ""), od.get("ObjectQMgrName", ""), options)
    if isinstance(found, Path):
        handle = open_path(qm, connection, found, options)
        connection.handles[hobj] = handle
        if options & INPUT:
            model_triggers.input_opened(qm, found.queue)
        return answer(**resolved_names(qm, found, od, options))
    return open_model(qm, connection, hobj, od, options, found)


def resolve_for(qm: QueueManager, queue: str, manager: str, options: int) -> Path | Definition:
    """Name resolution; 2086 may replace 2087 and 2045 when the options need an object of this queue
    manager and ObjectQMgrName is unknown.
    """
    local = options & (ONLY_LOCAL | OO.INQUIRE | OO.SET)
    unknown = manager not in ("", qm.name) and manager not in qm.objects
    if not options & (INPUT | OO.BROWSE | OO.OUTPUT) and manager in ("", qm.name):
        inner = resolve_attributes(qm, queue)
        if inner is not None:
            return inner
    try:
        found = resolve(qm, queue, manager)
    except Failure as failure:
        if local and unknown:
            raise Failure(*failure.reasons, R.UNKNOWN_OBJECT_Q_MGR) from None
        alias = not unknown and manager not in ("", qm.name)
        if local and (alias or failure.reasons <= NO_ROUTE):
            raise Failure(*failure.reasons, R.OPTION_NOT_VALID_FOR_TYPE) from None
        raise
    if local and unknown:
        raise Failure(R.OPTION_NOT_VALID_FOR_TYPE, R.UNKNOWN_OBJECT_Q_MGR)
    return found


def check_descriptor(od: dict[str, Any]) -> None:
    known_type = od.get("ObjectType", OT.Q) in list(OT)
    refuse_if(
        (not 1 <= od.get("Version", 1) <= 4 or od.get("StrucId", "OD") != "OD", R.OD_ERROR),
        (not known_type, R.OBJECT_TYPE_ERROR),
    )


def resolved_names(
    qm: QueueManager, path: Path, od: dict[str, Any], options: int
) -> dict[str, Any]:
    """ResolvedQName and ResolvedQMgrName of MQOD version 3, and of MQPMO."""
    if od.get("Version", 1) < 3 or not options & (INPUT | OO.BROWSE | OO.OUTPUT):
        return {}
    queue, manager = path.remote or (path.queue.name, qm.name)
    if options & OO.RESOLVE_LOCAL_Q:
        queue, manager = path.queue.name, qm.name
    return {"ResolvedQName": queue, "ResolvedQMgrName": manager}


def open_manager(
    qm: QueueManager, connection: Connection, hobj: int, od: dict[str, Any], options: int
) -> Answer:
    """The queue manager itself: only MQINQ makes sense."""
    refuse_if(
        (od.get("ObjectName", ""), R.OBJECT_NAME_ERROR),
        (options & ~int(OF_ANY_OBJECT | OO.INQUIRE), R.OPTION_NOT_VALID_FOR_TYPE),
    )
    connection.handles[hobj] = Handle(connection, options, qm.manager)
    return answer()


# ---- queues that exist ----


def open_path(
    qm: QueueManager, connection: Connection, path: Path, options: int, created: bool = False
) -> Handle:
    """A handle for a resolved name, or Failure."""
    if path.remote or path.by_manager_name:
        inquires = options & (OO.INQUIRE | OO.SET)
        refuse_if(
            (path.remote and options & ONLY_LOCAL, R.OPTION_NOT_VALID_FOR_TYPE),
            (path.by_manager_name and inquires, R.OPTION_NOT_VALID_FOR_TYPE),
            (path.by_manager_name and options & ONLY_LOCAL, R.OPTION_NOT_VALID_FOR_TYPE),
        )
    handle = Handle(connection, options, path.steps[0])
    handle.path = path
    handle.versions = [(step, step.version) for step in path.steps]
    handle.created = created
    if options & INPUT:
        handle.exclusive = wants_exclusive(path.queue, options)
        check_shared(path.queue, handle)
    path.queue.handles.append(handle)
    return handle


def wants_exclusive(queue: LocalQueue, options: int) -> bool:
    """3.2 rule 4: AS_Q_DEF takes DEFSOPT; NOSHARE makes every input exclusive."""
    asked = queue["DEFSOPT"] if options & OO.INPUT_AS_Q_DEF else options
    return bool(asked & OO.INPUT_EXCLUSIVE) or not queue["SHARE"]


def check_shared(queue: LocalQueue, handle: Handle) -> None:
    """3.2 rule 3."""
    for other in queue.handles:
        if other.options & INPUT and (handle.exclusive or other.exclusive):
            raise Failure(R.OBJECT_IN_USE)


# ---- dynamic queues ----


def open_model(
    qm: QueueManager,
    connection: Connection,
    hobj: int,
    od: dict[str, Any],
    options: int,
    model: Definition,
) -> Answer:
    """Any open of a model queue creates a queue with the model's attributes (3.3)."""
    wanted = od.get("DynamicQName", "CSQ.*" if qm.zos else "AMQ.*")
    check_dynamic_name(wanted)
    generated = wanted.endswith("*")
    name = f"*{hobj}" if generated else wanted  # until the engine has returned the name
    if name in qm.objects:
        raise Failure(R.OBJECT_ALREADY_EXISTS)
    if name in qm.logically_deleted:
        raise Failure(R.NAME_IN_USE)
    queue = LocalQueue(name, model.attrs)
    handle = open_path(qm, connection, Path([queue], queue), options, created=queue.temporary)
    queue.creator = handle if queue.temporary else None
    qm.objects[name] = queue
    connection.handles[hobj] = handle

    shown = FreshName(qm.objects, queue, wanted[:-1]) if generated else name
    return answer(ObjectName=shown, ObjectQMgrName=qm.name)


def check_dynamic_name(name: str) -> None:
    """Characters of a queue name, an asterisk at the end of at most 33 characters."""
    body = name.removesuffix("*")
    if (
        not name
        or not set(body) <= CHARACTERS
        or (name != body and len(name) > NAME_PART_MAX)
        or len(name) > 48
    ):
        raise Failure(R.DYNAMIC_Q_NAME_ERROR)


# ---- distribution lists (3.6) ----


def open_list(
    qm: QueueManager, connection: Connection, hobj: int, od: dict[str, Any], options: int
) -> Answer:
    """Opens each destination; failed ones are recorded as such."""
    allowed = OO.OUTPUT | NEEDS_OUTPUT | sum(BINDS) | OO.FAIL_IF_QUIESCING
    refuse_if(
        (od.get("ObjectName"), R.OBJECT_NAME_ERROR),
        (od.get("Version", 1) < 2, R.OD_ERROR),
        (options & ~int(allowed), R.OPTION_NOT_VALID_FOR_TYPE),
    )
    members: list[Handle | R] = []
    for queue, manager in od["ObjectRecs"]:
        try:
            found = resolve(qm, queue, manager)
            refuse_if((isinstance(found, Definition), R.Q_TYPE_ERROR))
            assert isinstance(found, Path)
            members.append(open_path(qm, connection, found, options))
        except Failure as failure:
            members.append(min(failure.reasons))
    outcome = list_outcome([member if isinstance(member, R) else R.NONE for member in members])
    opened = [member for member in members if isinstance(member, Handle)]
    if opened:
        handle = Handle(connection, options, qm.manager)
        handle.members = members
        connection.handles[hobj] = handle
    return outcome


def list_outcome(reasons: list[R]) -> Answer:
    """All alike: that reason, records untouched. Else 2136 and a record for each destination."""
    if len(set(reasons)) == 1:
        return answer(reasons[0], ResponseRecs=None)
    return answer(R.MULTIPLE_REASONS, ResponseRecs=reasons)


# ---- MQCLOSE ----


def close_object(qm: QueueManager, connection: Connection, hobj: int, options: int) -> Answer:
    """MQCLOSE: Table 74 (2.2), 2045 against 2055 (2.3)."""
    handle = connection.handles[hobj]
    refuse_if((options not in (0, *CO), R.OPTIONS_ERROR))
    refuse_if((options & (CO.KEEP_SUB | CO.REMOVE_SUB), R.OPTION_NOT_VALID_FOR_TYPE))
    if handle.path is None:
        refuse_if((options & (CO.DELETE | CO.DELETE_PURGE), R.OPTION_NOT_VALID_FOR_TYPE))
    elif not handle.queue.deleted:
        check_deletion(handle, options)
    close_handle(qm, connection, hobj, options)
    return answer()


def check_deletion(handle: Handle, options: int) -> None:
    queue = handle.queue
    if not options & (CO.DELETE | CO.DELETE_PURGE) or handle.created:
        return
    refuse_if((queue["DEFTYPE"] != PERMANENT_DYNAMIC, R.OPTION_NOT_VALID_FOR_TYPE))
    refuse_if(
        (queue.busy(), R.Q_NOT_EMPTY),
        (options & CO.DELETE and queue.messages, R.Q_NOT_EMPTY),
    )


def close_handle(qm: QueueManager, connection: Connection, hobj: int, options: int = 0) -> None:
    """A call closes one handle."""
    handle = connection.handles[hobj]
    let_go(qm, connection, hobj, options)
    if handle.path is not None and handle.options & INPUT:
        model_triggers.input_closed(qm, handle.queue)


def let_go(qm: QueueManager, connection: Connection, hobj: int, options: int = 0) -> None:
    """Ends a handle that may be ended, and the queue when the close deletes it."""
    handle = connection.handles.pop(hobj)
    for part in handle.members or [handle]:
        if isinstance(part, Handle) and part.path is not None:
            part.unlock()
            part.queue.handles.remove(part)
            if part.options & INPUT:
                model_triggers.input_ended(part.queue)
    if handle.path is None:
        return
    if handle.created or options & (CO.DELETE | CO.DELETE_PURGE):
        delete_queue(qm, handle.queue)
    qm.forget_deleted()


def delete_queue(qm: QueueManager, queue: LocalQueue) -> None:
    """Logical deletion (2.4): out of reach by name, its messages gone, older handles get 2052."""
    if queue.deleted:
        return
    queue.deleted = True
    del qm.objects[queue.name]
    pending = queue.busy()
    for message in queue.messages:
        if message.locked_by is not None:
            message.locked_by.locked = None
    if qm.zos and (queue.handles or pending):
        qm.logically_deleted[queue.name] = queue
    queue.messages = [m for m in queue.messages if m.put_by or m.got_by]

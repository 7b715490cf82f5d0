"""Sessions of the model: calls of a process through the Python interface beside its MQI calls:
batches of puts, gets and browses; units of work that are prepared and resolved by name.

A session has one unit of work (the process has one thread) and its own handles. The rules are those
of the interface's documentation: a batch has the effect of its messages put or got one by one,
except that everything is checked before the first put; a prepared unit belongs to no process, and
is committed or backed out by its name, several together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import model_put
import model_reports
import model_streams
import model_triggers
from model_get import take_reported
from model_open import close_handle, open_object
from model_state import (
    TEMPORARY_DYNAMIC,
    Answer,
    Connection,
    Either,
    Failure,
    Handle,
    LocalQueue,
    Message,
    Path,
    Unit,
    answer,
    refuse_if,
)
from mq_numbers import INPUT, NO_ID, OO, XQH_LENGTH, R

if TYPE_CHECKING:
    from model import QueueManager

Row = dict[str, Any]


class Session(Connection):
    """One process at the Python interface."""

    def __init__(self, process: int) -> None:
        super().__init__(process)
        self.marks: dict[int, tuple[LocalQueue, int]] = {}  # newest_number of a queue


def as_rows(messages: list[Message]) -> list[Row]:
    """Messages of a batch. Beside a blank ReplyToQ a row may leave the queue manager out."""
    rows = []
    for message in messages:
        fields = {**message.md, "BackoutCount": message.backout_count}
        if fields["ReplyToQ"] == "":
            fields["ReplyToQMgr"] = Either("", fields["ReplyToQMgr"])
        rows.append({"md": fields, "data": message.data})
    return rows


# ---- handles ----


def py_open(qm: QueueManager, session: Session, hobj: int, name: str, options: int) -> Answer:
    """qm.open()."""
    opened = open_object(qm, session, hobj, {"ObjectName": name}, options)
    return Answer(opened.reasons, {})


def py_close(qm: QueueManager, session: Session, hobj: int) -> Answer:
    """Queue.close()."""
    handle_of(session, hobj)
    close_handle(qm, session, hobj)
    return answer()


def handle_of(session: Session, hobj: int) -> Handle:
    refuse_if((hobj not in session.handles, R.HOBJ_ERROR))
    return session.handles[hobj]


def path_of(handle: Handle) -> Path:
    assert handle.path is not None
    return handle.path


def usable(handle: Handle, right: int, missing: R, *others: R) -> None:
    """The handle was opened for this and is still usable; the order of the two checks is not
    specified, nor that of `others`, which apply in any case, and the second one.
    """
    wrong = not handle.options & right
    refuse_if((wrong, missing), *(handle.spoilt() if wrong else []))
    handle.check_usable(*others)


# ---- put ----


def put_batch(
    qm: QueueManager, session: Session, hobj: int, rows: list[Row], syncpoint: bool
) -> Answer:
    """Queue.put_batch(): all or nothing, but to another queue manager in a unit of work, where
    what went before a failure is in the unit.
    """
    handle = handle_of(session, hobj)
    refuse_if((not handle.options & OO.OUTPUT, R.NOT_OPEN_FOR_OUTPUT))
    if not rows:
        return answer(count=0, warnings=0)
    handle.check_usable()
    path = path_of(handle)
    made = [stored(qm, path, row) for row in rows]
    reasons = {reason for md, data in made for reason in refused(qm, path, md, data)}
    refuse_if((any(step.attrs.get("PUT") for step in path.steps), R.PUT_INHIBITED))
    singly = path.queue["STREAMQ"] or model_triggers.triggers(path.queue)
    if path.remote is None and not singly:
        reasons |= no_room(qm, session, path, len(rows), syncpoint)
        if reasons:
            return Answer(frozenset(reasons), {"count": 0})
    return put_all(qm, session, path, made, syncpoint)


def put_all(
    qm: QueueManager, session: Session, path: Path, made: list[Any], syncpoint: bool
) -> Answer:
    unit = session.unit if syncpoint else Unit()
    ids = []
    for count, (md, data) in enumerate(made):
        reasons = refused(qm, path, md, data) | no_room(qm, session, path, 1, syncpoint)
        streams = path.remote is None and bool(path.queue["STREAMQ"])
        counted = unit if syncpoint else None
        lost = model_streams.refusals(qm, path.queue, data, counted, 1) if streams else set()
        reasons |= lost if model_streams.must_duplicate(path.queue) else set()
        if reasons:
            if not syncpoint:
                unit.back_out()
            return Answer(frozenset(reasons), {"count": count if syncpoint else 0})
        values = model_put.new_ids(md, 0)
        ids.append(values["MsgId"])
        placement = model_put.placement_of(qm, path.queue, md)
        fields, body = md, data
        if path.remote:
            fields, body = model_put.transmitted(qm, md, path.remote, data)
        message = Message(qm.next_number(), placement, fields, body)
        message.put_by = unit
        path.queue.place(message)
        unit.add(path.queue, message, put=True)
        if streams and not lost:
            model_streams.copy(qm, path.queue, message, unit)
        model_triggers.arrived(qm, path.queue, message, unit, limited=syncpoint)
    if not syncpoint:
        unit.commit()
    warnings = sum(md["Priority"] > 9 for md, _ in made)
    known: dict[str, Any] = {} if path.remote else {"msg_ids": ids}
    return answer(count=len(made), warnings=warnings, **known)


def stored(qm: QueueManager, path: Path, row: Row) -> tuple[Row, bytes]:
    """The MQMD of a message of a batch, and its body."""
    md = {
        "Version": 2,
        "MsgId": row.get("msg_id") or NO_ID,
        "CorrelId": row.get("correl_id") or NO_ID,
        "Priority": -1 if row["priority"] is None else row["priority"],
        "Persistence": 2 if row["persistent"] is None else int(row["persistent"]),
    }
    fields = model_put.stored_fields(qm, md, 0, None)
    model_put.resolve_defaults(path.steps[0], fields)
    model_put.cap_expiry(path, fields)
    return fields, row["data"]


def refused(qm: QueueManager, path: Path, md: Row, data: bytes) -> set[R]:
    """Why this message cannot be put, whatever is on the queue."""
    length = len(data) + (XQH_LENGTH if path.remote else 0)
    queue = path.queue
    temporary = queue["DEFTYPE"] == TEMPORARY_DYNAMIC
    return {
        reason
        for holds, reason in (
            (length > queue["MAXMSGL"], R.MSG_TOO_BIG_FOR_Q),
            (length > qm.manager["MAXMSGL"], R.MSG_TOO_BIG_FOR_Q_MGR),
            (md["Persistence"] == 1 and temporary, R.PERSISTENT_NOT_ALLOWED),
        )
        if holds
    }


def no_room(qm: QueueManager, session: Session, path: Path, count: int, syncpoint: bool) -> set[R]:
    """The reason why so many messages cannot be put now."""
    full = len(path.queue.messages) + count > path.queue["MAXDEPTH"]
    long = syncpoint and session.unit.count + count > qm.manager["MAXUMSGS"]
    return {R.Q_FULL for _ in range(full)} | {R.SYNCPOINT_LIMIT_REACHED for _ in range(long)}


# ---- get and look ----


def chosen(
    qm: QueueManager,
    handle: Handle,
    most: int,
    max_bytes: int | None,
    fits: Callable[[Message], bool],
    after: tuple[int, int] | None = None,
    takes: bool = False,
) -> list[Message]:
    """The next messages that a call is given: `most`, of `max_bytes` together or a single one.
    What has expired is discarded on the way.
    """
    queue = path_of(handle).queue
    expire_first(qm, queue, lambda m: fits(m) and (after is None or m.place > after), most)
    found: list[Message] = []
    for message in list(queue.messages):
        if after is not None and message.place <= after:
            continue
        if not message.available(handle) or not fits(message):
            continue
        if len(found) == most:
            break
        if model_reports.owes(queue, message):
            break  # its report comes before the rest
        if message.expired:
            queue.messages.remove(message)
            continue
        if found and takes and reported(queue, found[-1], message):
            break
        used = sum(len(one.data) for one in found)
        if found and max_bytes is not None and used + len(message.data) > max_bytes:
            break
        found.append(message)
    return found


def expire_first(
    qm: QueueManager, queue: LocalQueue, fits: Callable[[Message], bool], most: int
) -> None:
    """Reports the expired messages that come before the first one that a call is given."""
    for message in list(queue.messages) if most > 0 else ():
        if message.available(None) and fits(message):
            if not message.expired:
                return
            model_reports.expire(qm, queue, message)


def reported(queue: LocalQueue, last: Message, message: Message) -> bool:
    """A message whose delivery is reported is a batch of its own."""
    return any(model_reports.asks(queue, one.md, model_reports.COD) for one in (last, message))


def wanted(
    session: Session, handle: Handle, persistent_only: bool, up_to: int | None
) -> Callable[[Message], bool]:
    """The messages that the options select. A mark of another queue excludes nothing."""
    bound = None if up_to is None else 0
    if up_to in session.marks and session.marks[up_to][0] is path_of(handle).queue:
        bound = session.marks[up_to][1]
    return lambda message: (
        (message.persistent or not persistent_only) and (bound is None or message.number <= bound)
    )


def get_batch(
    qm: QueueManager,
    session: Session,
    hobj: int,
    most: int,
    max_bytes: int | None,
    syncpoint: bool,
    persistent_only: bool,
    up_to: int | None,
) -> Answer:
    """Queue.get_batch() without a wait. MAXUMSGS may end it early."""
    handle = handle_of(session, hobj)
    room = qm.manager["MAXUMSGS"] - session.unit.count
    limit = [R.SYNCPOINT_LIMIT_REACHED for _ in range(syncpoint and room <= 0)]
    usable(handle, INPUT, R.NOT_OPEN_FOR_INPUT, *limit)
    inhibited = any(step.attrs.get("GET") for step in path_of(handle).steps)
    refuse_if((inhibited, R.GET_INHIBITED), *((True, reason) for reason in limit))
    most = min(most, room) if syncpoint else most
    fits = wanted(session, handle, persistent_only, up_to)
    found = chosen(qm, handle, most, max_bytes, fits, takes=True)
    result = answer(rows=as_rows(found))
    for message in found:
        take_reported(qm, session, handle, message, syncpoint)
    return result


def browse_batch(
    qm: QueueManager,
    session: Session,
    hobj: int,
    most: int,
    first: bool,
    max_bytes: int,
    persistent_only: bool,
) -> Answer:
    """Queue.browse_batch(): the cursor moves behind the returned messages."""
    handle = handle_of(session, hobj)
    usable(handle, OO.BROWSE, R.NOT_OPEN_FOR_BROWSE)
    if first:
        handle.cursor = None
    refuse_if((any(step.attrs.get("GET") for step in path_of(handle).steps), R.GET_INHIBITED))
    fits = wanted(session, handle, persistent_only, None)
    found = chosen(qm, handle, most, max_bytes, fits, after=handle.cursor)
    if found:
        handle.cursor = found[-1].place
    return answer(rows=as_rows(found))


def mark(qm: QueueManager, session: Session, hobj: int, number: int) -> Answer:
    """Queue.newest_number, kept under `number`."""
    handle = handle_of(session, hobj)
    refuse_if((path_of(handle).queue.deleted, R.Q_DELETED))
    session.marks[number] = (path_of(handle).queue, qm.newest())
    return answer()


# ---- units of work ----


def py_end(qm: QueueManager, session: Session, commit: bool) -> Answer:
    """qm.commit(), qm.backout()."""
    whole = True
    if commit:
        whole = session.unit.commit()
    else:
        session.unit.back_out()
    qm.forget_deleted()
    return answer() if whole else answer(R.BACKED_OUT)


def prepare(qm: QueueManager, session: Session, xid: int, allow_empty: bool) -> Answer:
    """qm.prepare(): the unit belongs to no process from here on."""
    if session.unit.failed:
        session.unit.back_out()
        raise Failure(R.BACKED_OUT)
    refuse_if(
        (not session.unit.count and not allow_empty, R.UOW_NOT_AVAILABLE),
        (xid in qm.prepared, R.UOW_IN_PROGRESS),
    )
    qm.prepared[xid] = session.unit
    session.unit = Unit()
    return answer()


def end_prepared(qm: QueueManager, session: Session, xids: list[int], commit: bool) -> Answer:
    """qm.commit_prepared(), qm.backout_prepared(): all or none."""
    refuse_if(
        (len(set(xids)) != len(xids), R.OPTIONS_ERROR),
        (any(xid not in qm.prepared for xid in xids), R.UOW_NOT_AVAILABLE),
    )
    units = [qm.prepared.pop(xid) for xid in xids]
    discarded = 0
    for unit in units:
        if commit:
            unit.commit()
        else:
            discarded += unit.back_out()
    qm.forget_deleted()
    return answer(discarded=discarded)


def browse_prepared(
    qm: QueueManager, session: Session, xid: int, first: int, last: int | None
) -> Answer:
    """qm.browse_prepared(): in the order of the calls."""
    refuse_if((xid not in qm.prepared, R.UOW_NOT_AVAILABLE))
    return answer(rows=prepared_rows(qm.prepared[xid])[first:last])


def prepared_rows(unit: Unit) -> list[Row]:
    return [
        {"put": put, **row}
        for (put, _, _), row in zip(
            unit.calls, as_rows([message for _, _, message in unit.calls]), strict=True
        )
    ]


def recover(qm: QueueManager, session: Session) -> Answer:
    """qm.prepared_list() with every message, oldest unit first."""
    return answer(units=[picture(xid, unit) for xid, unit in qm.prepared.items()])


def picture(xid: int, unit: Unit) -> dict[str, Any]:
    return {
        "xid": xid,
        "puts": len(unit.puts),
        "gets": len(unit.gets),
        "nonpersistent": sum(not message.persistent for _, _, message in unit.calls),
        "bytes": sum(len(message.data) for _, _, message in unit.calls),
        "rows": prepared_rows(unit),
    }


def survive_restart(unit: Unit) -> None:
    """The effect of a restart on a prepared unit: non-persistent messages that it put and those of
    temporary queues are lost; non-persistent ones that it got can still be read, and never return.
    """
    kept = []
    for put, queue, message in unit.calls:
        if queue.temporary or (put and not message.persistent):
            if message in queue.messages:
                queue.messages.remove(message)
            continue
        message.taken = message.taken or not message.persistent
        kept.append((put, queue, message))
    unit.calls = kept


CALLS: dict[str, Callable[..., Answer]] = {
    call.__name__: call
    for call in (
        py_open,
        py_close,
        put_batch,
        get_batch,
        browse_batch,
        mark,
        py_end,
        prepare,
        end_prepared,
        browse_prepared,
        recover,
    )
}


def separate(qm: QueueManager, do: str, process: int, arguments: dict[str, Any]) -> int:
    """How many of the first messages of a batch take effect one by one: a killed call may have
    stopped after each of them. Makes the call.
    """
    done = qm.session_call(do, process, **arguments)
    if done.reasons != {R.NONE}:
        return 0
    path = path_of(qm.sessions[process].handles[arguments["hobj"]])
    if do == "put_batch":
        made = [stored(qm, path, row)[0] for row in arguments["rows"]]
        whole = arguments["syncpoint"] or path.remote or any(md["Persistence"] for md in made)
        return 0 if whole else len(made)
    persistent = [row["md"]["Persistence"] for row in done.values["rows"]]
    return len(persistent) if arguments["syncpoint"] else [*persistent, 1].index(1)

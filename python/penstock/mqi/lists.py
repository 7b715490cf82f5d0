"""Distribution lists: MQOPEN, MQPUT, MQPUT1 and MQCLOSE with several destinations.

An MQOD of version 2 with RecsPresent names its destinations in ``ObjectRecs`` (a list of MQOR); an
MQPMO of version 2 may give values for each in ``PutMsgRecs`` (MQPMR; PutMsgRecFields selects the
fields). One MQRR for each destination is returned in ``ResponseRecs`` only when the outcomes
differ: then the reason is 2136, a warning when at least one destination succeeded.

Rules of "Distribution lists" and the API reason codes 2136, 2137, 2154 to 2156, 2158, 2159.
Persistence and priority are resolved for each destination separately.
"""

from __future__ import annotations

from .._engine import (
    Hconn,
    Hobj,
    QueueHandle,
    Structure,
    check_put,
    put_one,
    register_list_verbs,
)
from ..errors import MQError
from ..opening import option_rules as rules
from . import constants as mq
from .handles import open_handle, open_output, structure_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Outcome = tuple[int, int]

UNUSABLE = mq.MQHO_UNUSABLE_HOBJ
_OUTPUT = mq.MQOO_OUTPUT
_MULTIPLE_REASONS, _OPEN_FAILED = mq.MQRC_MULTIPLE_REASONS, mq.MQRC_OPEN_FAILED
_CONTEXTS = rules.CONTEXTS
_GROUP_ID = mq.MQPMRF_GROUP_ID
# MQPMO.PutMsgRecFields; the identifiers among them come back in the record.
_RECORD_FIELDS = (
    (1, "MsgId"),
    (2, "CorrelId"),
    (_GROUP_ID, "GroupId"),
    (8, "Feedback"),
    (16, "AccountingToken"),
)
_IDENTIFIERS = mq.MQPMRF_MSG_ID | mq.MQPMRF_CORREL_ID | _GROUP_ID
_NONE = mq.MQMI_NONE
_GROUP_FLAGS = mq.MQMF_MSG_IN_GROUP | mq.MQMF_LAST_MSG_IN_GROUP


class Target:
    """One destination: its handle, or the outcome of its failed open."""

    __slots__ = ("outcome", "queue")

    def __init__(self, queue: QueueHandle | None, outcome: Outcome) -> None:
        """A destination and how its open ended."""
        self.queue = queue
        self.outcome = outcome


def combine(outcomes: list[Outcome]) -> tuple[int, int, bool]:
    """Completion and reason code of the whole call, and whether the outcomes differ."""
    if all(outcome == outcomes[0] for outcome in outcomes):
        return *outcomes[0], False
    failed = all(comp_code == 2 for comp_code, _ in outcomes)
    return 2 if failed else 1, _MULTIPLE_REASONS, True


# ---- MQOPEN, MQCLOSE ----


def open_list(hconn: Hconn, od: Any, options: int) -> tuple[Any, int, int]:
    """MQOPEN of a list whose options have been checked among themselves."""
    targets = _open_targets(hconn, od, options, put1=False)
    comp_code, reason, differ = combine([target.outcome for target in targets])
    if differ:
        _respond(od, [target.outcome for target in targets])
    _count(od, targets, 2)
    if comp_code == 2:
        return UNUSABLE, *hconn.refuse(reason, "no destination of the list could be opened")
    hobj = Hobj(hconn, options)
    hobj.targets = targets
    return hconn.enter(hobj), comp_code, reason


def _open_targets(hconn: Hconn, od: Any, options: int, put1: bool) -> list[Target]:
    """Opens every destination. Raises MQError for errors of the list itself."""
    records = _check_list(od)
    wrong = options & ~rules.VALID[rules.LIST]
    if wrong:
        raise MQError(
            mq.MQRC_OPTION_NOT_VALID_FOR_TYPE,
            f"the options {wrong:#x} do not fit a distribution list",
        )
    if not options & _OUTPUT:
        raise MQError(mq.MQRC_OPTION_NOT_VALID_FOR_TYPE, "a distribution list is opened for output")
    return [_open_one(hconn, od, record, options, put1) for record in records]


def _check_list(od: Any) -> list[Any]:
    """The records of a list: 2152, 2154, 2155, 2156."""
    count = od.RecsPresent
    if count < 0:
        raise MQError(mq.MQRC_RECS_PRESENT_ERROR, f"MQOD.RecsPresent {count} is negative")
    if od.ObjectName or od.ObjectQMgrName:
        name, reason = od.ObjectName, mq.MQRC_OBJECT_NAME_ERROR
        if not name:
            name, reason = od.ObjectQMgrName, mq.MQRC_OBJECT_Q_MGR_NAME_ERROR
        raise MQError(reason, f"a distribution list has no name: {name!r}")
    records = od.ObjectRecs
    if len(records) != count or (od.ObjectRecOffset and od.ObjectRecPtr):
        raise MQError(
            mq.MQRC_OBJECT_RECORDS_ERROR,
            f"MQOD.ObjectRecs has {len(records)} records, RecsPresent is {count}",
        )
    answers = od.ResponseRecs
    if (answers and len(answers) != count) or (od.ResponseRecOffset and od.ResponseRecPtr):
        raise MQError(
            mq.MQRC_RESPONSE_RECORDS_ERROR,
            f"MQOD.ResponseRecs has {len(answers)} records, not {count}",
        )
    return list(records)


def _open_one(hconn: Hconn, od: Any, record: Any, options: int, put1: bool) -> Target:
    try:
        if put1:
            queue = open_output(hconn, od, record.ObjectName, record.ObjectQMgrName)
        else:
            found = hconn.qm.look_up(1, record.ObjectName) if record.ObjectName else None
            if found is not None and found[2] == 2 and not record.ObjectQMgrName:
                raise MQError(mq.MQRC_Q_TYPE_ERROR, f"{record.ObjectName} is a model queue")
            queue = open_handle(hconn, od, options, record.ObjectName, record.ObjectQMgrName)
    except MQError as error:
        return Target(None, (error.comp_code, error.reason))
    return Target(queue, (0, 0))


def close_list(hobj: Hobj) -> int:
    """Closes every member, even when one fails; the reason code of one that failed, else 0."""
    first = 0
    for target in hobj.targets:
        if target.queue is None:
            continue
        try:
            target.queue.shut()
        except MQError as error:
            first = first or error.reason
    return first


# ---- MQPUT, MQPUT1 ----


def put_list(hconn: Hconn, hobj: Hobj, md: Any, pmo: Any, data: Any) -> Outcome:
    """MQPUT to a list. Called by the engine, which has checked handle and structures."""
    md, pmo = structure_in(md), structure_in(pmo)
    code = check_put(hconn, md, pmo, hobj.options, False)
    if code:
        return hconn.refuse(code)
    answers = _check_records(pmo, md, len(hobj.targets))
    outcomes = _put_all(hconn, hobj.targets, md, pmo, data, hobj.options, False)
    comp_code, reason, differ = combine(outcomes)
    if differ and answers:
        _write(answers, outcomes)
    return comp_code, reason


def put1_list(hconn: Hconn, od: Any, md: Any, pmo: Any, data: Any) -> Outcome:
    """MQPUT1 to a list: a failed open is the outcome of its destination."""
    md, pmo = structure_in(md), structure_in(pmo)
    targets = _open_targets(hconn, od, _OUTPUT, put1=True)
    try:
        code = check_put(hconn, md, pmo, _CONTEXTS, True)
        if code:
            return hconn.refuse(code)
        _check_records(pmo, md, len(targets))
        outcomes = _put_all(hconn, targets, md, pmo, data, _CONTEXTS, True)
    finally:
        for target in targets:
            if target.queue is not None:
                target.queue.shut()
    comp_code, reason, differ = combine(outcomes)
    if differ:
        _respond(od, outcomes)
    _count(od, targets, 2)
    if comp_code == 2:
        return hconn.refuse(reason, "the message was put to no destination of the list")
    return comp_code, reason


def _check_records(pmo: Any, md: Any, count: int) -> list[Any]:
    """The response records of an MQPMO: 2154, 2156, 2158, 2159, 2258."""
    if pmo.Version < 2:
        return []
    fields = pmo.PutMsgRecFields
    records, answers = pmo.PutMsgRecs, pmo.ResponseRecs
    if pmo.RecsPresent < 0 or (pmo.RecsPresent not in (0, count) and (records or answers)):
        raise MQError(
            mq.MQRC_RECS_PRESENT_ERROR, f"MQPMO.RecsPresent {pmo.RecsPresent}: the list has {count}"
        )
    if fields & ~31:
        raise MQError(
            mq.MQRC_PMO_RECORD_FLAGS_ERROR, f"MQPMO.PutMsgRecFields {fields:#x} has unknown bits"
        )
    wanted = fields != 0 and pmo.RecsPresent != 0
    if (wanted and len(records) != count) or (pmo.PutMsgRecOffset and pmo.PutMsgRecPtr):
        raise MQError(
            mq.MQRC_PUT_MSG_RECORDS_ERROR,
            f"MQPMO.PutMsgRecs has {len(records)} records, not {count}",
        )
    if (answers and len(answers) != count) or (pmo.ResponseRecOffset and pmo.ResponseRecPtr):
        raise MQError(
            mq.MQRC_RESPONSE_RECORDS_ERROR,
            f"MQPMO.ResponseRecs has {len(answers)} records, not {count}",
        )
    grouped = md.Version == 2 and md.MsgFlags & _GROUP_FLAGS and md.GroupId == _NONE
    if grouped and not (wanted and fields & _GROUP_ID):
        raise MQError(
            mq.MQRC_GROUP_ID_ERROR, "a message of a group needs a GroupId of each destination"
        )
    return list(answers)


def _put_all(
    hconn: Hconn, targets: list[Target], md: Any, pmo: Any, data: Any, rights: int, put1: bool
) -> list[Outcome]:
    """Puts to each destination; the outcomes in order."""
    fields = pmo.PutMsgRecFields if pmo.Version >= 2 and pmo.RecsPresent else 0
    records = list(pmo.PutMsgRecs) if fields else [None] * len(targets)
    asynchronous = pmo.Options & mq.MQPMO_ASYNC_RESPONSE
    outcomes: list[Outcome] = []
    for target, record in zip(targets, records, strict=True):
        if target.queue is None:
            outcomes.append(target.outcome if put1 else (2, _OPEN_FAILED))
            if asynchronous:
                hconn.count_async(outcomes[-1][1], None)
            continue
        copy = md.copy()
        _carry(fields, record, copy)
        try:
            code = put_one(hconn, target.queue, copy, pmo, data, rights, put1)
        except MQError as error:
            code = error.reason
        if asynchronous:
            hconn.count_async(code, target.queue)
        outcomes.append(hconn.refuse(code) if code else (0, 0))
        if outcomes[-1][0] != 2 and record is not None:
            _carry(fields & _IDENTIFIERS, copy, record)
    _count(pmo, targets, 0, outcomes)
    return outcomes


def _carry(fields: int, source: Any, into: Any) -> None:
    """The chosen fields of an MQPMR or MQMD into the other."""
    for bit, name in _RECORD_FIELDS:
        if fields & bit:
            setattr(into, name, getattr(source, name))


# ---- results ----


def _respond(od: Any, outcomes: list[Outcome]) -> None:
    """Outcomes into the response records of an MQOD, where it has some."""
    if od.ResponseRecs:
        _write(od.ResponseRecs, outcomes)


def _write(records: list[Any], outcomes: list[Outcome]) -> None:
    for record, (comp_code, reason) in zip(records, outcomes, strict=True):
        record.CompCode, record.Reason = comp_code, reason


def _count(
    structure: Structure,
    targets: list[Target],
    newest: int,
    outcomes: list[Outcome] | None = None,
) -> None:
    """KnownDestCount (local), UnknownDestCount (remote) and InvalidDestCount (failed)."""
    known = unknown = invalid = 0
    for number, target in enumerate(targets):
        outcome = target.outcome if outcomes is None else outcomes[number]
        if outcome[0] == 2 or target.queue is None:
            invalid += 1
        elif target.queue.is_remote:
            unknown += 1
        else:
            known += 1
    counted: Any = structure
    if counted.Version >= newest:
        counted.KnownDestCount, counted.UnknownDestCount = known, unknown
        counted.InvalidDestCount = invalid


register_list_verbs(put=put_list, close=close_list)

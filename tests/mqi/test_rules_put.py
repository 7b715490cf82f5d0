"""Rules of MQPUT and MQPUT1 in the MQI reference: fields, lists, order of checks, context.

The number in a test's name is the section's. Test vectors and traps are in files of their own.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from desk import EMBEDDED, FAILED, HEADER, OK, WARNING, Desk
from penstock import mqi

OUTPUT, INPUT = mqi.MQOO_OUTPUT, mqi.MQOO_INPUT_SHARED
NONE = bytes(24)


def md(**fields: Any) -> Any:
    return mqi.MQMD(**fields)


# ---- 1.3: fields ----


def test_1_3_a_reply_queue_is_needed_for_requests_and_reports(desk: Desk) -> None:
    queue = desk.local()
    for report in (0x01000000, 0x00200000, 256, 2048, 1, 2):
        assert desk.put(queue, md=md(Report=report)) == (FAILED, 2027), report
        assert desk.put(queue, md=md(Report=report, ReplyToQ="R")) == (OK, 0), report
    assert desk.put(queue, md=md(MsgType=mqi.MQMT_REQUEST)) == (FAILED, 2027)
    assert desk.put(queue, md=md(MsgType=mqi.MQMT_REQUEST, ReplyToQ="R")) == (OK, 0)


def test_1_3_a_blank_reply_manager_becomes_the_local_one(desk: Desk) -> None:
    queue = desk.local()
    desk.send(queue, md=md(ReplyToQ="R"))
    got = desk.take(queue).md
    assert (got.ReplyToQ, got.ReplyToQMgr) == ("R", desk.name)
    desk.send(queue, md=md(ReplyToQ="R", ReplyToQMgr="THERE"))
    assert desk.take(queue).md.ReplyToQMgr == "THERE"


def test_1_3_a_reply_queue_alias_replaces_both_names(desk: Desk) -> None:
    queue = desk.local()
    alias = desk.define("QREMOTE", rname="ANSWERS", rqmname="HOME")
    desk.send(queue, md=md(ReplyToQ=alias))
    got = desk.take(queue).md
    assert (got.ReplyToQ, got.ReplyToQMgr) == ("ANSWERS", "HOME")
    desk.send(queue, md=md(ReplyToQ=alias, ReplyToQMgr=desk.name))
    assert desk.take(queue).md.ReplyToQ == alias  # only with a blank ReplyToQMgr


def test_1_3_message_ids_are_made_when_none_is_given_or_asked_for(desk: Desk) -> None:
    queue = desk.local()
    first = desk.send(queue)
    assert first.MsgId[:4] == b"AMQ " and first.MsgId[4:16] == b"QM1".ljust(12)
    again = desk.send(queue, md=md(MsgId=first.MsgId))
    assert again.MsgId == first.MsgId
    new = desk.send(queue, md=md(MsgId=first.MsgId), options=mqi.MQPMO_NEW_MSG_ID)
    assert new.MsgId not in (first.MsgId, NONE)
    assert [g.md.MsgId for g in desk.drain(queue)] == [first.MsgId, first.MsgId, new.MsgId]


def test_1_3_correl_ids_are_kept_unless_a_new_one_is_asked_for(desk: Desk) -> None:
    queue = desk.local()
    assert desk.send(queue).CorrelId == NONE
    assert desk.send(queue, md=md(CorrelId=b"c" * 24)).CorrelId == b"c" * 24
    made = desk.send(queue, options=mqi.MQPMO_NEW_CORREL_ID)
    got = [g.md.CorrelId for g in desk.drain(queue)]
    assert got == [NONE, b"c" * 24, made.CorrelId] and made.CorrelId != NONE


def test_1_3_the_backout_count_is_ignored(desk: Desk) -> None:
    queue = desk.local()
    desk.send(queue, md=md(BackoutCount=7))
    assert desk.take(queue).md.BackoutCount == 0


def test_1_3_both_warnings_apply_and_2049_is_reported(desk: Desk) -> None:
    queue = desk.local()
    assert desk.put(queue, md=md(Priority=12, Report=0x20)) == (WARNING, 2049)


# ---- 3.6: distribution lists ----


def open_list(desk: Desk, names: list[str], **records: Any) -> tuple[Any, Any, tuple[int, int]]:
    od = mqi.MQOD(
        Version=mqi.MQOD_VERSION_2,
        ObjectRecs=[mqi.MQOR(ObjectName=name) for name in names],
        **records,
    )
    hobj, cc, rc = mqi.MQOPEN(desk.hconn, od, OUTPUT)
    return od, hobj, (cc, rc)


def test_3_6_each_destination_resolves_its_own_defaults(desk: Desk) -> None:
    plain = desk.local(defpsist="NO", defprty=1)
    alias = desk.define("QALIAS", target=desk.local(), defpsist="YES", defprty=7)
    route = desk.local(usage="XMITQ")
    remote = desk.define(
        "QREMOTE", rname="THERE", rqmname="FAR", xmitq=route, defpsist="YES", defprty=4
    )
    od, hobj, answer = open_list(desk, [plain, alias, remote])
    assert answer == (OK, 0)
    assert (od.KnownDestCount, od.UnknownDestCount, od.InvalidDestCount) == (2, 1, 0)
    desk.send(hobj, b"x")
    base = desk.qm.display("QALIAS", alias)[0]["target"]
    got = [desk.take(name) for name in (plain, str(base), route)]
    assert [(g.priority, g.persistence) for g in got] == [(1, 0), (7, 1), (4, 1)]


def test_3_6_the_callers_message_id_stays_and_each_message_has_its_own(desk: Desk) -> None:
    queues = [desk.local(), desk.local()]
    _, hobj, _ = open_list(desk, queues)
    sent = desk.send(hobj, b"x")
    assert sent.MsgId == NONE
    ids = [desk.take(name).md.MsgId for name in queues]
    assert NONE not in ids and len(set(ids)) == 2


def test_3_6_put_records_give_ids_to_each_destination(desk: Desk) -> None:
    queues = [desk.local(), desk.local()]
    _, hobj, _ = open_list(desk, queues)
    pmo = mqi.MQPMO(
        Version=mqi.MQPMO_VERSION_2,
        Options=mqi.MQPMO_NO_SYNCPOINT,
        PutMsgRecFields=mqi.MQPMRF_MSG_ID | mqi.MQPMRF_CORREL_ID,
        PutMsgRecs=[
            mqi.MQPMR(MsgId=b"a" * 24, CorrelId=b"1" * 24),
            mqi.MQPMR(MsgId=NONE, CorrelId=b"2" * 24),
        ],
    )
    assert mqi.MQPUT(desk.hconn, hobj, md(), pmo, b"x") == (OK, 0)
    got = [desk.take(name).md for name in queues]
    assert got[0].MsgId == b"a" * 24 and got[1].MsgId not in (NONE, b"a" * 24)
    assert [m.CorrelId for m in got] == [b"1" * 24, b"2" * 24]
    assert pmo.PutMsgRecs[1].MsgId == got[1].MsgId


def test_3_6_a_list_counts_one_message_for_each_destination(desk: Desk) -> None:
    queues = [desk.local() for _ in range(3)]
    _, hobj, _ = open_list(desk, queues)
    desk.send(hobj, b"x", syncpoint=True)
    assert [desk.depth(name) for name in queues] == [1, 1, 1]
    desk.backout()
    assert [desk.depth(name) for name in queues] == [0, 0, 0]


def test_3_6_lists_are_for_output_only(desk: Desk) -> None:
    od = mqi.MQOD(Version=mqi.MQOD_VERSION_2, ObjectRecs=[mqi.MQOR(ObjectName=desk.local())])
    for options in (INPUT, mqi.MQOO_BROWSE, mqi.MQOO_INQUIRE, mqi.MQOO_SET):
        assert mqi.MQOPEN(desk.hconn, od, options)[1:] == (FAILED, 2045), options


# ---- 4.3: context ----


def test_4_3_default_context_names_user_and_program(desk: Desk) -> None:
    queue = desk.local()
    before = time.strftime("%Y%m%d%H%M", time.gmtime())
    desk.send(queue)
    got = desk.take(queue).md
    assert got.UserIdentifier and got.PutApplName and got.PutApplType != 0
    assert before <= got.PutDate + got.PutTime[:4] <= time.strftime("%Y%m%d%H%M", time.gmtime())
    assert (got.ApplIdentityData, got.ApplOriginData) == ("", "")


def test_4_3_no_context_is_blank(desk: Desk) -> None:
    queue = desk.local()
    desk.send(queue, options=mqi.MQPMO_NO_CONTEXT)
    got = desk.take(queue).md
    assert (got.UserIdentifier, got.PutApplName, got.PutApplType) == ("", "", 0)
    assert (got.PutDate, got.PutTime, got.AccountingToken) == ("", "", bytes(32))


CONTEXT = {
    "UserIdentifier": "somebody",
    "AccountingToken": b"t" * 32,
    "ApplIdentityData": "identity",
    "PutApplType": 25,
    "PutApplName": "program",
    "PutDate": "20200102",
    "PutTime": "03040506",
    "ApplOriginData": "abcd",
}
IDENTITY = ("UserIdentifier", "AccountingToken", "ApplIdentityData")


def context(message: Any) -> dict[str, Any]:
    return {name: getattr(message, name) for name in CONTEXT}


def test_4_3_set_all_context_takes_every_field(desk: Desk) -> None:
    queue = desk.local()
    hobj = desk.opened(queue, OUTPUT | mqi.MQOO_SET_ALL_CONTEXT)
    desk.send(hobj, md=md(**CONTEXT), options=mqi.MQPMO_SET_ALL_CONTEXT)
    assert context(desk.take(queue).md) == CONTEXT


def test_4_3_set_identity_context_takes_identity_only(desk: Desk) -> None:
    queue = desk.local()
    hobj = desk.opened(queue, OUTPUT | mqi.MQOO_SET_IDENTITY_CONTEXT)
    desk.send(hobj, md=md(**CONTEXT), options=mqi.MQPMO_SET_IDENTITY_CONTEXT)
    got = context(desk.take(queue).md)
    assert {n: got[n] for n in IDENTITY} == {n: CONTEXT[n] for n in IDENTITY}
    assert got["PutDate"] != CONTEXT["PutDate"] and got["ApplOriginData"] == ""


@pytest.mark.parametrize(
    ("right", "option", "whole"),
    [
        (mqi.MQOO_PASS_ALL_CONTEXT, mqi.MQPMO_PASS_ALL_CONTEXT, True),
        (mqi.MQOO_PASS_IDENTITY_CONTEXT, mqi.MQPMO_PASS_IDENTITY_CONTEXT, False),
    ],
)
def test_4_3_context_is_passed_from_the_message_got_last(
    desk: Desk, right: int, option: int, whole: bool
) -> None:
    source, target = desk.local(), desk.local()
    hobj = desk.opened(source, OUTPUT | mqi.MQOO_SET_ALL_CONTEXT)
    desk.send(hobj, md=md(**CONTEXT), options=mqi.MQPMO_SET_ALL_CONTEXT)
    saving = desk.opened(source, INPUT | mqi.MQOO_SAVE_ALL_CONTEXT | mqi.MQOO_BROWSE)
    pmo = mqi.MQPMO(Options=option | mqi.MQPMO_NO_SYNCPOINT, Context=int(saving))
    passing = desk.opened(target, OUTPUT | right)
    desk.take(saving, options=mqi.MQGMO_BROWSE_FIRST)  # browsing saves nothing
    assert mqi.MQPUT(desk.hconn, passing, md(), pmo, b"") == (FAILED, 2098)
    desk.take(saving)
    assert mqi.MQPUT(desk.hconn, passing, md(), pmo, b"") == (OK, 0)
    got = context(desk.take(target).md)
    names = CONTEXT if whole else IDENTITY
    assert {n: got[n] for n in names} == {n: CONTEXT[n] for n in names}
    assert whole or got["PutDate"] != CONTEXT["PutDate"]


# ---- 4.4: checks, in their order ----


def test_4_4_the_order_of_checks(desk: Desk) -> None:
    queue = desk.local(put="DISABLED", maxmsgl=1, maxdepth=0)
    reader, writer = desk.opened(queue, INPUT), desk.opened(queue, OUTPUT)

    def put(hobj: Any, message: Any, options: Any, data: bytes = b"xx") -> tuple[int, int]:
        answer: tuple[int, int] = mqi.MQPUT(desk.hconn, hobj, message, options, data)
        return answer

    bad_pmo = mqi.MQPMO(StrucId="XXXX")
    set_all = mqi.MQPMO(Options=mqi.MQPMO_SET_ALL_CONTEXT)
    fine = mqi.MQPMO(Options=mqi.MQPMO_NO_SYNCPOINT)
    bad_md = md(StrucId="XXXX")
    assert put(-1, bad_md, bad_pmo) == (FAILED, 2019)
    assert put(reader, bad_md, bad_pmo) == (FAILED, 2039)
    assert put(writer, bad_md, bad_pmo) == (FAILED, 2173)
    assert put(writer, bad_md, mqi.MQPMO(Options=6)) == (FAILED, 2046)
    assert put(writer, bad_md, set_all) == (FAILED, 2095)
    assert put(writer, bad_md, fine) == (FAILED, 2026)
    assert put(writer, md(Persistence=9), fine) == (FAILED, 2047)
    assert put(writer, md(), fine) == (FAILED, 2051)
    desk.qm.alter("QLOCAL", queue, put="ENABLED")
    assert put(writer, md(), fine) == (FAILED, 2030)
    assert put(writer, md(), fine, b"x") == (FAILED, 2053)
    desk.qm.alter("QLOCAL", queue, maxdepth=1)
    assert put(writer, md(Priority=10), fine, b"x") == (WARNING, 2049)


def test_4_4_lowering_maxdepth_keeps_what_is_there(desk: Desk) -> None:
    queue = desk.local()
    for data in (b"1", b"2", b"3"):
        desk.send(queue, data)
    desk.qm.alter("QLOCAL", queue, maxdepth=1)
    assert desk.put(queue) == (FAILED, 2053)
    assert desk.bodies(queue) == [b"1", b"2", b"3"]
    desk.send(queue)


def test_4_4_a_failed_put_leaves_its_unit_of_work_usable(desk: Desk) -> None:
    queue, full = desk.local(), desk.local(maxdepth=0)
    desk.send(queue, b"1", syncpoint=True)
    assert desk.put(full, syncpoint=True) == (FAILED, 2053)
    desk.send(queue, b"2", syncpoint=True)
    desk.commit()
    assert desk.bodies(queue) == [b"1", b"2"]


def test_4_4_empty_messages_are_legal(desk: Desk) -> None:
    queue = desk.local(maxmsgl=0)
    desk.send(queue, b"")
    got = desk.take(queue)
    assert (got.data, got.length) == (b"", 0)


def test_4_4_the_text_of_a_failure_names_the_queue_without_padding(desk: Desk) -> None:
    _, name = desk.dynamic(desk.model("TEMPDYN"), OUTPUT)
    assert desk.put(name, md=md(Persistence=1)) == (FAILED, 2048)
    assert name in desk.hconn.error and "  " not in desk.hconn.error


# ---- 4.5, 8.8: remote puts ----


def test_4_5_limits_are_those_of_the_transmission_queue(desk: Desk) -> None:
    route = desk.local(usage="XMITQ", maxmsgl=HEADER + 10, maxdepth=2)
    remote = desk.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=route)
    assert desk.put(remote, b"x" * 11) == (FAILED, 2030)
    desk.send(remote, b"x" * 10)
    desk.send(remote)
    assert desk.put(remote) == (FAILED, 2053)
    desk.qm.alter("QLOCAL", route, put="DISABLED")
    assert desk.put(remote) == (FAILED, 2051)


def test_8_8_the_message_on_a_transmission_queue_has_two_descriptors(desk: Desk) -> None:
    route = desk.local(usage="XMITQ")
    remote = desk.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=route)
    fields = {"Format": "MQSTR", "Expiry": 600, "Report": 0x08000000, "CorrelId": b"c" * 24}
    sent = desk.send(remote, b"data", md(**fields))
    got = desk.take(route)
    header = mqi.MQXQH.unpack(got.data[:HEADER])
    assert (header.RemoteQName, header.RemoteQMgrName) == ("THERE", "FAR")
    inner = mqi.MQMD.unpack(got.data[EMBEDDED:HEADER])
    assert (inner.Version, inner.Format, inner.Report) == (1, "MQSTR", 0x08000000)
    assert (inner.MsgId, inner.CorrelId) == (sent.MsgId, b"c" * 24)
    assert inner.UserIdentifier and inner.PutDate
    assert got.data[HEADER:] == b"data"
    outer = got.md
    assert (outer.Format, outer.MsgType, outer.Report) == ("MQXMIT", 8, 0)
    assert 0 < inner.Expiry <= 600


def test_8_8_fields_of_version_2_follow_as_an_extension(desk: Desk) -> None:
    route = desk.local(usage="XMITQ")
    remote = desk.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=route)
    group = {"Version": 2, "GroupId": b"g" * 24, "MsgFlags": 8, "MsgSeqNumber": 3}
    desk.send(remote, b"data", md(Format="MQSTR", **group))
    got = desk.take(route).data
    inner = mqi.MQMD.unpack(got[EMBEDDED:HEADER])
    assert (inner.Version, inner.Format) == (1, "MQHMDE")
    extension = mqi.MQMDE.unpack(got[HEADER : HEADER + 72])
    assert (extension.Format, extension.MsgSeqNumber, extension.MsgFlags) == ("MQSTR", 3, 8)
    assert (extension.GroupId, got[HEADER + 72 :]) == (b"g" * 24, b"data")

"""Rules of MQPUT and MQPUT1 in the MQI reference: fields, lists, order of checks, context.

The number in a test's name is the section's. Test vectors and traps are in separate files.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from penstock import mqi
from qmgr_fixture import EMBEDDED, FAILED, HEADER, OK, WARNING, QmgrFixture

OUTPUT, INPUT = mqi.MQOO_OUTPUT, mqi.MQOO_INPUT_SHARED
NONE = bytes(24)


def md(**fields: Any) -> Any:
    return mqi.MQMD(**fields)


# ---- 1.3: fields ----


def test_1_3_a_reply_queue_is_needed_for_requests_and_reports(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    for report in (0x01000000, 0x00200000, 256, 2048, 1, 2):
        assert qmgr.put(queue, md=md(Report=report)) == (FAILED, 2027), report
        assert qmgr.put(queue, md=md(Report=report, ReplyToQ="R")) == (OK, 0), report
    assert qmgr.put(queue, md=md(MsgType=mqi.MQMT_REQUEST)) == (FAILED, 2027)
    assert qmgr.put(queue, md=md(MsgType=mqi.MQMT_REQUEST, ReplyToQ="R")) == (OK, 0)


def test_1_3_a_blank_reply_manager_becomes_the_local_one(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    qmgr.send(queue, md=md(ReplyToQ="R"))
    got = qmgr.take(queue).md
    assert (got.ReplyToQ, got.ReplyToQMgr) == ("R", qmgr.name)
    qmgr.send(queue, md=md(ReplyToQ="R", ReplyToQMgr="THERE"))
    assert qmgr.take(queue).md.ReplyToQMgr == "THERE"


def test_1_3_a_reply_queue_alias_replaces_both_names(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    alias = qmgr.define("QREMOTE", rname="ANSWERS", rqmname="HOME")
    qmgr.send(queue, md=md(ReplyToQ=alias))
    got = qmgr.take(queue).md
    assert (got.ReplyToQ, got.ReplyToQMgr) == ("ANSWERS", "HOME")
    qmgr.send(queue, md=md(ReplyToQ=alias, ReplyToQMgr=qmgr.name))
    assert qmgr.take(queue).md.ReplyToQ == alias  # only with a blank ReplyToQMgr


def test_1_3_message_ids_are_generated_when_none_is_given_or_a_new_one_is_requested(
    qmgr: QmgrFixture,
) -> None:
    queue = qmgr.local()
    first = qmgr.send(queue)
    assert first.MsgId[:4] == b"AMQ " and first.MsgId[4:16] == b"QM1".ljust(12)
    again = qmgr.send(queue, md=md(MsgId=first.MsgId))
    assert again.MsgId == first.MsgId
    new = qmgr.send(queue, md=md(MsgId=first.MsgId), options=mqi.MQPMO_NEW_MSG_ID)
    assert new.MsgId not in (first.MsgId, NONE)
    assert [g.md.MsgId for g in qmgr.drain(queue)] == [first.MsgId, first.MsgId, new.MsgId]


def test_1_3_correl_ids_are_kept_unless_a_new_one_is_requested(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    assert qmgr.send(queue).CorrelId == NONE
    assert qmgr.send(queue, md=md(CorrelId=b"c" * 24)).CorrelId == b"c" * 24
    made = qmgr.send(queue, options=mqi.MQPMO_NEW_CORREL_ID)
    got = [g.md.CorrelId for g in qmgr.drain(queue)]
    assert got == [NONE, b"c" * 24, made.CorrelId] and made.CorrelId != NONE


def test_1_3_the_backout_count_is_ignored(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    qmgr.send(queue, md=md(BackoutCount=7))
    assert qmgr.take(queue).md.BackoutCount == 0


def test_1_3_both_warnings_apply_and_2049_is_reported(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    assert qmgr.put(queue, md=md(Priority=12, Report=0x20)) == (WARNING, 2049)


# ---- 3.6: distribution lists ----


def open_list(
    qmgr: QmgrFixture, names: list[str], **records: Any
) -> tuple[Any, Any, tuple[int, int]]:
    od = mqi.MQOD(
        Version=mqi.MQOD_VERSION_2,
        ObjectRecs=[mqi.MQOR(ObjectName=name) for name in names],
        **records,
    )
    hobj, cc, rc = mqi.MQOPEN(qmgr.hconn, od, OUTPUT)
    return od, hobj, (cc, rc)


def test_3_6_each_destination_resolves_its_own_defaults(qmgr: QmgrFixture) -> None:
    plain = qmgr.local(defpsist="NO", defprty=1)
    alias = qmgr.define("QALIAS", target=qmgr.local(), defpsist="YES", defprty=7)
    route = qmgr.local(usage="XMITQ")
    remote = qmgr.define(
        "QREMOTE", rname="THERE", rqmname="FAR", xmitq=route, defpsist="YES", defprty=4
    )
    od, hobj, answer = open_list(qmgr, [plain, alias, remote])
    assert answer == (OK, 0)
    assert (od.KnownDestCount, od.UnknownDestCount, od.InvalidDestCount) == (2, 1, 0)
    qmgr.send(hobj, b"x")
    base = qmgr.qm.display("QALIAS", alias)[0]["target"]
    got = [qmgr.take(name) for name in (plain, str(base), route)]
    assert [(g.priority, g.persistence) for g in got] == [(1, 0), (7, 1), (4, 1)]


def test_3_6_the_callers_message_id_stays_and_each_message_has_its_own(qmgr: QmgrFixture) -> None:
    queues = [qmgr.local(), qmgr.local()]
    _, hobj, _ = open_list(qmgr, queues)
    sent = qmgr.send(hobj, b"x")
    assert sent.MsgId == NONE
    ids = [qmgr.take(name).md.MsgId for name in queues]
    assert NONE not in ids and len(set(ids)) == 2


def test_3_6_put_records_give_ids_to_each_destination(qmgr: QmgrFixture) -> None:
    queues = [qmgr.local(), qmgr.local()]
    _, hobj, _ = open_list(qmgr, queues)
    pmo = mqi.MQPMO(
        Version=mqi.MQPMO_VERSION_2,
        Options=mqi.MQPMO_NO_SYNCPOINT,
        PutMsgRecFields=mqi.MQPMRF_MSG_ID | mqi.MQPMRF_CORREL_ID,
        PutMsgRecs=[
            mqi.MQPMR(MsgId=b"a" * 24, CorrelId=b"1" * 24),
            mqi.MQPMR(MsgId=NONE, CorrelId=b"2" * 24),
        ],
    )
    assert mqi.MQPUT(qmgr.hconn, hobj, md(), pmo, b"x") == (OK, 0)
    got = [qmgr.take(name).md for name in queues]
    assert got[0].MsgId == b"a" * 24 and got[1].MsgId not in (NONE, b"a" * 24)
    assert [m.CorrelId for m in got] == [b"1" * 24, b"2" * 24]
    assert pmo.PutMsgRecs[1].MsgId == got[1].MsgId


def test_3_6_a_list_counts_one_message_for_each_destination(qmgr: QmgrFixture) -> None:
    queues = [qmgr.local() for _ in range(3)]
    _, hobj, _ = open_list(qmgr, queues)
    qmgr.send(hobj, b"x", syncpoint=True)
    assert [qmgr.depth(name) for name in queues] == [1, 1, 1]
    qmgr.backout()
    assert [qmgr.depth(name) for name in queues] == [0, 0, 0]


def test_3_6_lists_are_for_output_only(qmgr: QmgrFixture) -> None:
    od = mqi.MQOD(Version=mqi.MQOD_VERSION_2, ObjectRecs=[mqi.MQOR(ObjectName=qmgr.local())])
    for options in (INPUT, mqi.MQOO_BROWSE, mqi.MQOO_INQUIRE, mqi.MQOO_SET):
        assert mqi.MQOPEN(qmgr.hconn, od, options)[1:] == (FAILED, 2045), options


# ---- 4.3: context ----


def test_4_3_default_context_names_user_and_program(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    before = time.strftime("%Y%m%d%H%M", time.gmtime())
    qmgr.send(queue)
    got = qmgr.take(queue).md
    assert got.UserIdentifier and got.PutApplName and got.PutApplType != 0
    assert before <= got.PutDate + got.PutTime[:4] <= time.strftime("%Y%m%d%H%M", time.gmtime())
    assert (got.ApplIdentityData, got.ApplOriginData) == ("", "")


def test_4_3_no_context_is_blank(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    qmgr.send(queue, options=mqi.MQPMO_NO_CONTEXT)
    got = qmgr.take(queue).md
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


def test_4_3_set_all_context_takes_every_field(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    hobj = qmgr.opened(queue, OUTPUT | mqi.MQOO_SET_ALL_CONTEXT)
    qmgr.send(hobj, md=md(**CONTEXT), options=mqi.MQPMO_SET_ALL_CONTEXT)
    assert context(qmgr.take(queue).md) == CONTEXT


def test_4_3_set_identity_context_takes_identity_only(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    hobj = qmgr.opened(queue, OUTPUT | mqi.MQOO_SET_IDENTITY_CONTEXT)
    qmgr.send(hobj, md=md(**CONTEXT), options=mqi.MQPMO_SET_IDENTITY_CONTEXT)
    got = context(qmgr.take(queue).md)
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
    qmgr: QmgrFixture, right: int, option: int, whole: bool
) -> None:
    source, target = qmgr.local(), qmgr.local()
    hobj = qmgr.opened(source, OUTPUT | mqi.MQOO_SET_ALL_CONTEXT)
    qmgr.send(hobj, md=md(**CONTEXT), options=mqi.MQPMO_SET_ALL_CONTEXT)
    saving = qmgr.opened(source, INPUT | mqi.MQOO_SAVE_ALL_CONTEXT | mqi.MQOO_BROWSE)
    pmo = mqi.MQPMO(Options=option | mqi.MQPMO_NO_SYNCPOINT, Context=int(saving))
    passing = qmgr.opened(target, OUTPUT | right)
    qmgr.take(saving, options=mqi.MQGMO_BROWSE_FIRST)  # browsing saves nothing
    assert mqi.MQPUT(qmgr.hconn, passing, md(), pmo, b"") == (FAILED, 2098)
    qmgr.take(saving)
    assert mqi.MQPUT(qmgr.hconn, passing, md(), pmo, b"") == (OK, 0)
    got = context(qmgr.take(target).md)
    names = CONTEXT if whole else IDENTITY
    assert {n: got[n] for n in names} == {n: CONTEXT[n] for n in names}
    assert whole or got["PutDate"] != CONTEXT["PutDate"]


# ---- 4.4: checks, in their order ----


def test_4_4_the_order_of_checks(qmgr: QmgrFixture) -> None:
    queue = qmgr.local(put="DISABLED", maxmsgl=1, maxdepth=0)
    reader, writer = qmgr.opened(queue, INPUT), qmgr.opened(queue, OUTPUT)

    def put(hobj: Any, message: Any, options: Any, data: bytes = b"xx") -> tuple[int, int]:
        answer: tuple[int, int] = mqi.MQPUT(qmgr.hconn, hobj, message, options, data)
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
    qmgr.qm.alter("QLOCAL", queue, put="ENABLED")
    assert put(writer, md(), fine) == (FAILED, 2030)
    assert put(writer, md(), fine, b"x") == (FAILED, 2053)
    qmgr.qm.alter("QLOCAL", queue, maxdepth=1)
    assert put(writer, md(Priority=10), fine, b"x") == (WARNING, 2049)


def test_4_4_lowering_maxdepth_keeps_the_messages(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    for data in (b"1", b"2", b"3"):
        qmgr.send(queue, data)
    qmgr.qm.alter("QLOCAL", queue, maxdepth=1)
    assert qmgr.put(queue) == (FAILED, 2053)
    assert qmgr.bodies(queue) == [b"1", b"2", b"3"]
    qmgr.send(queue)


def test_4_4_a_failed_put_leaves_its_unit_of_work_usable(qmgr: QmgrFixture) -> None:
    queue, full = qmgr.local(), qmgr.local(maxdepth=0)
    qmgr.send(queue, b"1", syncpoint=True)
    assert qmgr.put(full, syncpoint=True) == (FAILED, 2053)
    qmgr.send(queue, b"2", syncpoint=True)
    qmgr.commit()
    assert qmgr.bodies(queue) == [b"1", b"2"]


def test_4_4_empty_messages_are_legal(qmgr: QmgrFixture) -> None:
    queue = qmgr.local(maxmsgl=0)
    qmgr.send(queue, b"")
    got = qmgr.take(queue)
    assert (got.data, got.length) == (b"", 0)


def test_4_4_the_text_of_a_failure_names_the_queue_without_padding(qmgr: QmgrFixture) -> None:
    _, name = qmgr.dynamic(qmgr.model("TEMPDYN"), OUTPUT)
    assert qmgr.put(name, md=md(Persistence=1)) == (FAILED, 2048)
    assert name in qmgr.hconn.error and "  " not in qmgr.hconn.error


# ---- 4.5, 8.8: remote puts ----


def test_4_5_limits_are_those_of_the_transmission_queue(qmgr: QmgrFixture) -> None:
    route = qmgr.local(usage="XMITQ", maxmsgl=HEADER + 10, maxdepth=2)
    remote = qmgr.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=route)
    assert qmgr.put(remote, b"x" * 11) == (FAILED, 2030)
    qmgr.send(remote, b"x" * 10)
    qmgr.send(remote)
    assert qmgr.put(remote) == (FAILED, 2053)
    qmgr.qm.alter("QLOCAL", route, put="DISABLED")
    assert qmgr.put(remote) == (FAILED, 2051)


def test_8_8_the_message_on_a_transmission_queue_has_two_descriptors(qmgr: QmgrFixture) -> None:
    route = qmgr.local(usage="XMITQ")
    remote = qmgr.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=route)
    fields = {"Format": "MQSTR", "Expiry": 600, "Report": 0x08000000, "CorrelId": b"c" * 24}
    sent = qmgr.send(remote, b"data", md(**fields))
    got = qmgr.take(route)
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


def test_8_8_fields_of_version_2_follow_as_an_extension(qmgr: QmgrFixture) -> None:
    route = qmgr.local(usage="XMITQ")
    remote = qmgr.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=route)
    group = {"Version": 2, "GroupId": b"g" * 24, "MsgFlags": 8, "MsgSeqNumber": 3}
    qmgr.send(remote, b"data", md(Format="MQSTR", **group))
    got = qmgr.take(route).data
    inner = mqi.MQMD.unpack(got[EMBEDDED:HEADER])
    assert (inner.Version, inner.Format) == (1, "MQHMDE")
    extension = mqi.MQMDE.unpack(got[HEADER : HEADER + 72])
    assert (extension.Format, extension.MsgSeqNumber, extension.MsgFlags) == ("MQSTR", 3, 8)
    assert (extension.GroupId, got[HEADER + 72 :]) == (b"g" * 24, b"data")

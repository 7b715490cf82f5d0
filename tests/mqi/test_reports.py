"""Report messages on arrival (COA) and delivery (COD): section 8.5 of the reference.

Made by the queue manager in the unit of work of the put or get that they are about.
"""

from __future__ import annotations

from typing import Any

import pytest

from penstock import mqi
from qmgr_fixture import FAILED, OK, WARNING, Got, QmgrFixture, embedded, transmission

COA, COD = mqi.MQRO_COA, mqi.MQRO_COD
NONE = bytes(24)
BODY = b"0123456789" * 30


def asking(replies: str, report: int = COA | COD, **fields: Any) -> Any:
    return mqi.MQMD(Version=2, Report=report, ReplyToQ=replies, **fields)


def feedback(reports: list[Got]) -> list[int]:
    return [got.md.Feedback for got in reports]


# ---- when ----


def test_a_put_and_a_get_are_confirmed(qmgr: QmgrFixture, replies: str) -> None:
    queue = qmgr.local()
    sent = qmgr.send(queue, BODY, asking(replies))
    [arrival] = qmgr.drain(replies)
    assert qmgr.take(queue).data == BODY
    [delivery] = qmgr.drain(replies)
    assert (arrival.md.Feedback, delivery.md.Feedback) == (259, 260)
    for got in (arrival, delivery):
        assert (got.md.MsgType, got.md.CorrelId, got.data) == (4, sent.MsgId, b"")


def test_each_kind_is_made_only_when_it_was_asked_for(qmgr: QmgrFixture, replies: str) -> None:
    queue = qmgr.local()
    for report, expected in ((COA, [259]), (COD, [260]), (1 | 2 | 0x00200000, [])):
        qmgr.send(queue, BODY, asking(replies, report))
        qmgr.take(queue)
        assert feedback(qmgr.drain(replies)) == expected, report


def test_a_browse_and_a_get_that_leaves_the_message_confirm_nothing(
    qmgr: QmgrFixture, replies: str
) -> None:
    queue = qmgr.local()
    qmgr.send(queue, BODY, asking(replies, COD))
    hobj = qmgr.opened(queue, mqi.MQOO_BROWSE | mqi.MQOO_INPUT_SHARED)
    assert qmgr.get(hobj, options=mqi.MQGMO_BROWSE_FIRST).data == BODY
    assert qmgr.get(hobj, length=5).rc == 2080
    assert qmgr.depth(replies) == 0
    assert qmgr.get(hobj, options=mqi.MQGMO_MSG_UNDER_CURSOR).data == BODY
    assert feedback(qmgr.drain(replies)) == [260]


def test_reports_are_in_the_unit_of_work_of_their_put_and_get(
    qmgr: QmgrFixture, replies: str
) -> None:
    queue = qmgr.local()
    for persistence in (0, 1):
        md = asking(replies, Persistence=persistence)
        qmgr.send(queue, BODY, md, syncpoint=True)
        assert qmgr.drain(replies, hconn=qmgr.other()) == []
        qmgr.backout()
        assert qmgr.drain(replies) == []
        qmgr.send(queue, BODY, md, syncpoint=True)
        qmgr.commit()
        assert feedback(qmgr.drain(replies)) == [259]
        qmgr.take(queue, syncpoint=True)
        assert qmgr.drain(replies) == []
        qmgr.backout()
        assert qmgr.drain(replies) == []
        assert qmgr.take(queue, syncpoint=True).md.BackoutCount == 1
        qmgr.commit()
        assert feedback(qmgr.drain(replies)) == [260]


def test_a_get_in_syncpoint_if_persistent_confirms_inside_or_outside_the_unit(
    qmgr: QmgrFixture, replies: str
) -> None:
    queue = qmgr.local()
    qmgr.send(queue, b"n", asking(replies, COD, Persistence=0, Priority=5))
    qmgr.send(queue, b"p", asking(replies, COD, Persistence=1, Priority=4))
    hobj = qmgr.opened(queue, mqi.MQOO_INPUT_SHARED)
    for _ in range(2):
        qmgr.take(hobj, options=mqi.MQGMO_SYNCPOINT_IF_PERSISTENT)
    assert [got.md.Persistence for got in qmgr.drain(replies)] == [0]
    qmgr.commit()
    assert [got.md.Persistence for got in qmgr.drain(replies)] == [1]


def test_a_waiting_get_confirms_what_arrives(qmgr: QmgrFixture, replies: str) -> None:
    import threading

    queue, other = qmgr.local(), qmgr.other()
    got: list[Got] = []
    thread = threading.Thread(target=lambda: got.append(qmgr.get(queue, wait=30000, hconn=other)))
    thread.start()
    qmgr.until(lambda: qmgr.waiting(queue) == 1)
    qmgr.send(queue, BODY, asking(replies))
    thread.join(30)
    assert [one.data for one in got] == [BODY]
    assert feedback(qmgr.drain(replies)) == [259, 260]


def test_a_distribution_list_confirms_each_destination(qmgr: QmgrFixture, replies: str) -> None:
    names = [qmgr.local(), qmgr.local()]
    od = mqi.MQOD(Version=2, ObjectRecs=[mqi.MQOR(ObjectName=name) for name in names])
    hobj, cc, rc = mqi.MQOPEN(qmgr.hconn, od, mqi.MQOO_OUTPUT)
    assert (cc, rc) == (OK, 0)
    qmgr.send(hobj, BODY, asking(replies))
    assert feedback(qmgr.drain(replies)) == [259, 259]


def test_transmission_queues_and_dead_letters_confirm_nothing(
    qmgr: QmgrFixture, replies: str
) -> None:
    route = qmgr.local(usage="XMITQ")
    far = qmgr.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=route)
    qmgr.send(far, BODY, asking(replies))
    message = qmgr.take(route)
    assert message.md.Format == "MQXMIT"
    qmgr.send(route, message.data, asking(replies, Format="MQXMIT"))
    qmgr.take(route)
    letters = qmgr.local()
    qmgr.send(letters, BODY, asking(replies, Format="MQDEAD"))
    qmgr.take(letters)
    assert qmgr.drain(replies) == []


# ---- what a report is ----


@pytest.mark.parametrize("kind", [COA, COD])
@pytest.mark.parametrize(
    ("more", "length"),
    [(0, 0), (1, min(100, len(BODY))), (3, len(BODY))],
    ids=["none", "100", "all"],
)
def test_a_report_has_as_much_data_as_was_asked_for(
    qmgr: QmgrFixture, replies: str, kind: int, more: int, length: int
) -> None:
    queue = qmgr.local()
    md = asking(replies, kind | kind * 2 * more, Format="MQSTR", Encoding=273, CodedCharSetId=819)
    qmgr.send(queue, BODY, md)
    got = qmgr.get(queue, options=mqi.MQGMO_ACCEPT_TRUNCATED_MSG, length=7)
    assert (got.rc, got.data, got.length) == (2079, BODY[:7], len(BODY))
    report = qmgr.take(replies)
    assert report.data == BODY[:length]
    described = ("MQSTR", 273, 819) if length else ("", 546, 1208)
    assert (report.md.Format, report.md.Encoding, report.md.CodedCharSetId) == described


def test_a_long_message_in_the_journal_is_reported_whole(qmgr: QmgrFixture, replies: str) -> None:
    queue, body = qmgr.local(), bytes(range(256)) * 1200
    md = asking(replies, mqi.MQRO_COD_WITH_FULL_DATA, Persistence=1)
    qmgr.send(queue, body, md, syncpoint=True)
    qmgr.commit()
    qmgr.restart()
    assert qmgr.get(queue, options=mqi.MQGMO_ACCEPT_TRUNCATED_MSG, length=0).rc == 2079
    assert qmgr.take(replies).data == body


@pytest.mark.parametrize(
    ("options", "same_msg_id", "field"),
    [(0, False, "MsgId"), (128, True, "MsgId"), (64, False, "CorrelId"), (192, True, "CorrelId")],
)
def test_the_report_options_choose_the_ids(
    qmgr: QmgrFixture, replies: str, options: int, same_msg_id: bool, field: str
) -> None:
    queue = qmgr.local()
    sent = qmgr.send(queue, BODY, asking(replies, COA | COD | options, CorrelId=b"c" * 24))
    qmgr.take(queue)
    reports = qmgr.drain(replies)
    assert len(reports) == 2
    for got in reports:
        assert (got.md.MsgId == sent.MsgId) == same_msg_id and got.md.MsgId != NONE
        assert got.md.CorrelId == getattr(sent, field)


@pytest.mark.parametrize("persistence", [0, 1])
def test_a_report_has_priority_and_persistence_of_its_message(
    qmgr: QmgrFixture, replies: str, persistence: int
) -> None:
    queue = qmgr.local(defpsist="YES" if persistence else "NO", defprty=3)
    qmgr.send(queue, BODY, asking(replies, COA, Persistence=2, Priority=-1))
    assert qmgr.put(queue, BODY, asking(replies, COA, Priority=12)) == (WARNING, 2049)
    above, plain = qmgr.drain(replies)
    assert (above.md.Priority, plain.md.Priority) == (12, 3)
    assert (above.md.Persistence, plain.md.Persistence) == (persistence, persistence)


def test_a_report_comes_from_the_queue_manager_for_the_user_of_its_message(
    qmgr: QmgrFixture, replies: str
) -> None:
    queue = qmgr.local()
    hobj = qmgr.opened(queue, mqi.MQOO_OUTPUT | mqi.MQOO_SET_ALL_CONTEXT)
    md = asking(
        replies, COA, UserIdentifier="somebody", AccountingToken=b"t" * 32,
        ApplIdentityData="data", PutApplType=28, PutApplName="program", PutDate="20200102",
        PutTime="03040567", ApplOriginData="orig", MsgFlags=8, GroupId=b"g" * 24, MsgSeqNumber=2,
    )  # fmt: skip
    qmgr.send(hobj, BODY, md, options=mqi.MQPMO_SET_ALL_CONTEXT)
    got = qmgr.take(replies).md
    assert (got.UserIdentifier, got.AccountingToken) == ("somebody", b"t" * 32)
    assert (got.ApplIdentityData, got.ApplOriginData) == ("data", "")
    assert (got.PutApplType, got.PutApplName) == (mqi.MQAT_QMGR, qmgr.name)
    assert got.PutDate > "20200102"
    assert (got.GroupId, got.MsgSeqNumber, got.MsgFlags) == (b"g" * 24, 2, 8)
    assert (got.ReplyToQ, got.ReplyToQMgr, got.BackoutCount) == ("", qmgr.name, 0)


def test_a_report_inherits_discard_and_expiry_on_request(qmgr: QmgrFixture, replies: str) -> None:
    queue = qmgr.local()
    for options, report, expires in (
        (0, 0, False), (16384, 0x08000000, True), (0x08000000, 0x08000000, False),
    ):  # fmt: skip
        qmgr.send(queue, BODY, asking(replies, COA | COD | options, Expiry=60000))
        qmgr.take(queue)
        reports = qmgr.drain(replies)
        assert feedback(reports) == [259, 260]
        for got in reports:
            assert got.md.Report == report
            assert (0 < got.md.Expiry <= 60000) if expires else got.md.Expiry == -1


# ---- where it goes ----


def test_reports_go_through_aliases_and_to_other_queue_managers(
    qmgr: QmgrFixture, replies: str
) -> None:
    queue, route = qmgr.local(), qmgr.local(usage="XMITQ")
    alias = qmgr.define("QALIAS", target=replies)
    far = qmgr.define("QREMOTE", rname="THERE", rqmname=route)
    qmgr.send(queue, BODY, asking(alias, COA, Priority=6))
    assert feedback(qmgr.drain(replies)) == [259]
    qmgr.send(queue, BODY, asking(far, COA, Priority=6))
    qmgr.send(queue, BODY, asking("ANY", COA, Priority=6, ReplyToQMgr=route))
    first, second = qmgr.drain(route)
    assert transmission(first.data) == ("THERE", route)
    assert transmission(second.data) == ("ANY", route)
    assert embedded(first.data)[0] == 6


def undeliverable(qmgr: QmgrFixture, why: str) -> tuple[str, int, int]:
    """A ReplyToQ that takes no report; the reason, and the persistence of the message."""
    if why == "unknown":
        return "NO.SUCH", 2085, 1
    if why == "model":
        return qmgr.model("PERMDYN"), 2057, 1
    if why == "inhibited":
        return qmgr.local(put="DISABLED"), 2051, 1
    if why == "full":
        return qmgr.local(maxdepth=0), 2053, 1
    assert why == "temporary"
    return qmgr.dynamic(qmgr.model("TEMPDYN"), mqi.MQOO_INPUT_SHARED)[1], 2048, 1


REASONS = ["unknown", "model", "inhibited", "full", "temporary"]


@pytest.mark.parametrize("syncpoint", [False, True])
@pytest.mark.parametrize("why", REASONS)
def test_an_undeliverable_report_becomes_a_dead_letter(
    qmgr: QmgrFixture, dead: str, why: str, syncpoint: bool
) -> None:
    queue = qmgr.local()
    where, reason, persistence = undeliverable(qmgr, why)
    md = asking(where, mqi.MQRO_COA_WITH_DATA | COD, Persistence=persistence, Format="MQSTR")
    qmgr.send(queue, BODY, md, syncpoint=syncpoint)
    if syncpoint:
        assert qmgr.depth(dead) == 1 and qmgr.drain(dead) == []
        qmgr.commit()
    qmgr.take(queue)
    letters = qmgr.drain(dead)
    assert feedback(letters) == [259, 260]
    for letter, data in zip(letters, (BODY[:100], b""), strict=True):
        assert (letter.md.Format, letter.md.MsgType) == ("MQDEAD", 4)
        header = mqi.MQDLH.unpack(letter.data[:172])
        assert (header.Reason, header.DestQName, header.DestQMgrName) == (
            reason, where, qmgr.name
        )  # fmt: skip
        assert (header.PutApplType, header.PutApplName) == (mqi.MQAT_QMGR, qmgr.name)
        assert header.Format == ("MQSTR" if data else "")
        assert letter.data[172:] == data


@pytest.mark.parametrize("option", [16384, 0x08000000])
def test_a_report_that_may_be_discarded_is_no_dead_letter(
    qmgr: QmgrFixture, dead: str, option: int
) -> None:
    queue = qmgr.local()
    qmgr.send(queue, BODY, asking("NO.SUCH", COA | COD | option, Persistence=1))
    assert qmgr.take(queue).data == BODY
    assert qmgr.drain(dead) == []


def test_without_a_dead_letter_queue_a_non_persistent_report_is_discarded_and_logged(
    qmgr: QmgrFixture,
) -> None:
    queue, where = qmgr.local(), qmgr.new_name("GONE")
    for _ in range(3):
        qmgr.send(queue, BODY, asking(where, Persistence=0))
        assert qmgr.take(queue).data == BODY
    lines = [line for line in qmgr.log().splitlines() if "AMQ9544" in line and where in line]
    assert len(lines) == 1 and "2085" in lines[0]


def test_without_a_dead_letter_queue_a_persistent_report_fails_its_call(
    qmgr: QmgrFixture,
) -> None:
    queue = qmgr.local()
    assert qmgr.put(queue, BODY, asking("NO.SUCH", COA, Persistence=1)) == (FAILED, 2085)
    assert qmgr.depth(queue) == 0
    qmgr.send(queue, BODY, asking("NO.SUCH", COD, Persistence=1))
    got = qmgr.get(queue)
    assert (got.cc, got.rc, got.data) == (FAILED, 2085, b"")
    assert qmgr.depth(queue) == 1


@pytest.mark.parametrize("persistence", [0, 1])
def test_a_unit_whose_report_has_no_place_is_backed_out(
    qmgr: QmgrFixture, persistence: int
) -> None:
    queue, other = qmgr.local(), qmgr.local()
    qmgr.send(queue, BODY, asking("NO.SUCH", COD, Persistence=1))
    qmgr.send(other, b"before", mqi.MQMD(Persistence=persistence), syncpoint=True)
    assert qmgr.get(queue, syncpoint=True).rc == 2003
    assert mqi.MQCMIT(qmgr.hconn)[1] == 2003
    assert qmgr.drain(other) == [] and qmgr.depth(queue) == 1
    qmgr.send(other, b"after", syncpoint=True)
    qmgr.commit()
    assert qmgr.bodies(other) == [b"after"]


def test_a_report_counts_towards_maxumsgs_and_2024_leaves_the_unit_as_it_was(
    qmgr: QmgrFixture, replies: str
) -> None:
    queue = qmgr.local()
    qmgr.qm.alter("QMGR", maxumsgs=3)
    try:
        qmgr.send(queue, b"1", asking(replies), syncpoint=True)
        assert qmgr.put(queue, b"2", asking(replies), syncpoint=True) == (FAILED, 2024)
        qmgr.send(queue, b"3", syncpoint=True)
        qmgr.commit()
        assert feedback(qmgr.drain(replies)) == [259]
        for _ in range(2):
            qmgr.send(replies, b"fills the unit", syncpoint=True)
        assert qmgr.get(queue, syncpoint=True).rc == 2024
        qmgr.commit()
        assert qmgr.bodies(queue) == [b"1", b"3"]
    finally:
        qmgr.qm.alter("QMGR", maxumsgs=10000)


def test_persistent_reports_survive_the_death_of_their_process(
    qmgr: QmgrFixture, replies: str
) -> None:
    queue = qmgr.local()
    qmgr.failure(lambda: qmgr.send(queue, BODY, asking(replies, Persistence=1)))
    qmgr.failure(lambda: qmgr.take(queue))
    assert feedback(qmgr.drain(replies)) == [259, 260]
    assert qmgr.depth(queue) == 0

"""Report messages on expiration: sections 5.7 and 8.5 of the reference.

The message is kept until its report has been made, outside the unit of work of the call that meets
it, or by a wait on any queue.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from penstock import mqi
from qmgr_fixture import Got, QmgrFixture

EXPIRATION = mqi.MQRO_EXPIRATION
COD = mqi.MQRO_COD
BODY = b"0123456789" * 30


def expiring(replies: str, report: int = EXPIRATION, **fields: Any) -> Any:
    fields = {"Version": 2, "Expiry": 1, **fields}
    return mqi.MQMD(Report=report, ReplyToQ=replies, **fields)


def expire(qmgr: QmgrFixture, queue: str, *descriptors: Any, body: bytes = BODY) -> list[Any]:
    """Puts the messages, and waits until they have expired."""
    sent = [qmgr.send(queue, body, md) for md in descriptors]
    time.sleep(0.25)
    return sent


def bodies(batch: Any) -> list[bytes]:
    return [batch.body(i) for i in range(len(batch))]


def feedback(reports: list[Got]) -> list[int]:
    return [got.md.Feedback for got in reports]


# ---- when ----


@pytest.mark.parametrize("persistence", [0, 1])
def test_the_get_that_meets_an_expired_message_reports_it(
    qmgr: QmgrFixture, replies: str, persistence: int
) -> None:
    queue = qmgr.local()
    [sent] = expire(qmgr, queue, expiring(replies, Persistence=persistence))
    qmgr.send(queue, b"live")
    assert qmgr.depth(queue) == 2  # until then it counts
    assert qmgr.take(queue).data == b"live"
    [report] = qmgr.drain(replies)
    md = report.md
    assert (md.Feedback, md.MsgType, md.CorrelId) == (258, 4, sent.MsgId)
    assert (md.Persistence, md.Expiry, md.Report) == (persistence, -1, 0)
    assert (md.PutApplType, report.data) == (7, b"")
    assert qmgr.depth(queue) == 0


@pytest.mark.parametrize("how", ["empty", "browse", "by id", "unit", "wait"])
def test_every_way_to_look_at_a_queue_reports(qmgr: QmgrFixture, replies: str, how: str) -> None:
    queue = qmgr.local()
    expire(qmgr, queue, *[expiring(replies, MsgId=bytes([n]) * 24) for n in range(1, 4)])
    hobj = qmgr.opened(queue, mqi.MQOO_BROWSE | mqi.MQOO_INPUT_SHARED)
    if how == "browse":
        assert qmgr.get(hobj, options=mqi.MQGMO_BROWSE_FIRST).rc == 2033
    elif how == "by id":
        for n in range(1, 4):
            assert qmgr.get(hobj, md=mqi.MQMD(MsgId=bytes([n]) * 24)).rc == 2033
    elif how == "unit":
        assert qmgr.get(hobj, syncpoint=True).rc == 2033
        qmgr.backout()  # the reports are outside it
    else:
        assert qmgr.get(hobj, wait=50 if how == "wait" else 0).rc == 2033
    assert feedback(qmgr.drain(replies)) == [258] * 3
    assert qmgr.depth(queue) == 0


def test_batches_report_what_they_meet(qmgr: QmgrFixture, replies: str) -> None:
    queue = qmgr.local()
    for n in range(3):
        qmgr.send(queue, b"%d" % n)
        expire(qmgr, queue, expiring(replies, Persistence=n % 2))
    with qmgr.qm.queue(queue) as handle:
        seen = [bodies(handle.browse_batch(10)) for _ in range(4)]
        assert seen == [[b"0"], [b"1"], [b"2"], []]  # it ends before the message
        assert feedback(qmgr.drain(replies)) == [258] * 3
        expire(qmgr, queue, expiring(replies))
        assert bodies(handle.get_batch(10)) == [b"0", b"1", b"2"]
        assert len(handle.get_batch(10)) == 0
    assert feedback(qmgr.drain(replies)) == [258]


def test_an_index_by_id_passes_on_to_the_next_message_of_the_id(
    qmgr: QmgrFixture, replies: str
) -> None:
    queue, key = qmgr.local(), b"k" * 24
    expire(qmgr, queue, *[expiring(replies, CorrelId=key) for _ in range(2)])
    qmgr.send(queue, b"live", mqi.MQMD(CorrelId=key))
    for _ in range(100):
        qmgr.send(queue, b"other")
    got = qmgr.take(queue, md=mqi.MQMD(CorrelId=key), MatchOptions=mqi.MQMO_MATCH_CORREL_ID)
    assert got.data == b"live"
    assert feedback(qmgr.drain(replies)) == [258] * 2


def test_a_requester_that_waits_learns_that_nobody_took_its_request(
    qmgr: QmgrFixture, replies: str
) -> None:
    queue = qmgr.local()
    sent = qmgr.send(queue, BODY, expiring(replies, MsgType=1))
    got = qmgr.take(replies, wait=20000)  # no server: nobody looks at the queue
    assert (got.md.Feedback, got.md.CorrelId) == (258, sent.MsgId)
    assert qmgr.depth(queue) == 0


def test_the_keeper_of_a_queue_manager_reports(qmgr: QmgrFixture, replies: str) -> None:
    queue = qmgr.local()
    expire(qmgr, queue, *[expiring(replies) for _ in range(5)])
    made = 0

    def all_made() -> bool:
        nonlocal made
        made += qmgr.qm.make_reports()
        return made == 5

    qmgr.until(all_made)
    assert feedback(qmgr.drain(replies)) == [258] * 5
    assert qmgr.qm.make_reports() == 0


def test_a_message_that_did_not_ask_or_was_got_before_is_not_reported(
    qmgr: QmgrFixture, replies: str
) -> None:
    queue = qmgr.local()
    expire(qmgr, queue, expiring(replies, COD), expiring(replies, 0), mqi.MQMD(Expiry=1))
    assert qmgr.get(queue).rc == 2033
    assert qmgr.drain(replies) == []
    qmgr.send(queue, BODY, expiring(replies, EXPIRATION, Expiry=600))
    qmgr.take(queue)
    assert qmgr.drain(replies) == []


def test_a_message_got_in_a_unit_may_expire_before_its_backout(
    qmgr: QmgrFixture, replies: str
) -> None:
    queue = qmgr.local()
    qmgr.send(queue, BODY, expiring(replies, Expiry=3))
    assert qmgr.take(queue, syncpoint=True).data == BODY
    time.sleep(0.5)
    assert qmgr.get(queue, hconn=qmgr.other()).rc == 2033
    assert qmgr.drain(replies) == []
    qmgr.backout()
    assert qmgr.get(queue).rc == 2033
    assert feedback(qmgr.drain(replies)) == [258]


@pytest.mark.parametrize("how", ["restart", "failure"])
def test_what_expires_while_nobody_is_attached_is_reported_after_the_restart(
    qmgr: QmgrFixture, replies: str, how: str
) -> None:
    queue = qmgr.local()
    body = bytes(range(256)) * 1200

    def put() -> None:
        qmgr.send(queue, body, expiring(replies, EXPIRATION * 7, Persistence=1))
        qmgr.send(queue, b"", expiring(replies, COD, Persistence=1))

    qmgr.after(how, put)
    time.sleep(0.2)
    assert qmgr.get(queue).rc == 2033
    assert [got.data for got in qmgr.drain(replies)] == [body]
    assert qmgr.depth(queue) == 0


# ---- what a report is, and where it goes ----


@pytest.mark.parametrize(("more", "length"), [(0, 0), (1, 100), (3, len(BODY))])
def test_a_report_has_as_much_data_as_was_asked_for(
    qmgr: QmgrFixture, replies: str, more: int, length: int
) -> None:
    queue = qmgr.local()
    md = expiring(replies, EXPIRATION | EXPIRATION * 2 * more, Format="MQSTR", Priority=7)
    expire(qmgr, queue, md)
    assert qmgr.get(queue, length=0, options=mqi.MQGMO_ACCEPT_TRUNCATED_MSG).rc == 2033
    report = qmgr.take(replies)
    assert report.data == BODY[:length]
    assert (report.md.Format, report.md.Priority) == ("MQSTR" if length else "", 7)


def test_ids_and_discard_are_passed_on_request_and_no_expiry_is_left_to_pass(
    qmgr: QmgrFixture, replies: str
) -> None:
    queue = qmgr.local()
    passing = EXPIRATION | 128 | 64 | mqi.MQRO_PASS_DISCARD_AND_EXPIRY
    [sent] = expire(qmgr, queue, expiring(replies, passing, CorrelId=b"c" * 24))
    assert qmgr.get(queue).rc == 2033
    md = qmgr.take(replies).md
    assert (md.MsgId, md.CorrelId) == (sent.MsgId, b"c" * 24)
    assert (md.Report, md.Expiry) == (mqi.MQRO_DISCARD_MSG, -1)


def test_an_undeliverable_report_becomes_a_dead_letter(qmgr: QmgrFixture, dead: str) -> None:
    queue = qmgr.local()
    discarded = expiring("NOWHERE", EXPIRATION | mqi.MQRO_DISCARD_MSG)
    expire(qmgr, queue, expiring("NOWHERE", Persistence=1), discarded)
    assert qmgr.get(queue).rc == 2033
    [letter] = qmgr.drain(dead)
    assert (letter.md.Format, letter.md.Feedback) == ("MQDEAD", 258)


def test_without_a_dead_letter_queue_it_is_discarded_and_logged_and_the_get_goes_on(
    qmgr: QmgrFixture,
) -> None:
    queue = qmgr.local()
    expire(qmgr, queue, expiring("NO.SUCH.QUEUE", Persistence=1), expiring("NO.SUCH.QUEUE"))
    qmgr.send(queue, b"live")
    assert qmgr.take(queue).data == b"live"
    assert qmgr.depth(queue) == 0
    assert "NO.SUCH.QUEUE" in qmgr.log()


def test_a_report_on_a_report_queue_that_is_full_does_not_stop_the_gets(
    qmgr: QmgrFixture,
) -> None:
    queue, replies = qmgr.local(), qmgr.local(maxdepth=1)
    expire(qmgr, queue, *[expiring(replies) for _ in range(3)])
    assert qmgr.get(queue).rc == 2033
    assert feedback(qmgr.drain(replies)) == [258]
    assert qmgr.depth(queue) == 0


def test_a_killed_reporter_leaves_both_or_neither(qmgr: QmgrFixture, replies: str) -> None:
    queue = qmgr.local()
    expire(qmgr, queue, *[expiring(replies, Persistence=1) for _ in range(20)])
    qmgr.failure(lambda: qmgr.get(queue))
    assert qmgr.get(queue).rc == 2033
    assert feedback(qmgr.drain(replies)) == [258] * 20


def test_an_event_loop_reports_what_its_gets_meet_and_while_they_wait(
    qmgr: QmgrFixture, replies: str
) -> None:
    import asyncio

    import penstock.asyncio

    queue = qmgr.local()

    async def look() -> list[int]:
        async with penstock.asyncio.connect(qmgr.qm.name, home=qmgr.qm.path.parent) as qm:
            asked, answers = await qm.queue(queue), await qm.queue(replies)
            expire(qmgr, queue, expiring(replies))
            assert await asked.get(default=None) is None
            met = await answers.get()
            expire(qmgr, queue, expiring(replies))
            return [met.feedback, (await answers.get(wait=20)).feedback]  # nobody looks at queue

    assert asyncio.run(look()) == [258, 258]

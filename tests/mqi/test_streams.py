"""Stream queues: STREAMQ and STRMQOS ("Streaming queues", "Stream queues and transactions")."""

from __future__ import annotations

from typing import Any

import pytest

import penstock
from penstock import mqi
from qmgr_fixture import FAILED, OK, QmgrFixture

REMOVED = mqi.MQRO_COA | mqi.MQRO_COD | mqi.MQRO_EXPIRATION | mqi.MQRO_EXCEPTION
MUST = "MUSTDUP"


def streaming(qmgr: QmgrFixture, quality: str = "BESTEF", **of_stream: Any) -> tuple[str, str]:
    """A queue, and its stream queue."""
    stream = qmgr.local(**of_stream)
    return qmgr.local(streamq=stream, strmqos=quality), stream


# ---- the copy ----


@pytest.mark.parametrize("quality", ["BESTEF", MUST])
@pytest.mark.parametrize("persistence", [0, 1])
def test_a_copy_is_the_message_without_expiry_and_reports(
    qmgr: QmgrFixture, quality: str, persistence: int
) -> None:
    queue, stream = streaming(qmgr, quality, defprty=9, defpsist="YES")
    replies = qmgr.local()
    md = mqi.MQMD(
        Version=2, Report=REMOVED | mqi.MQRO_PASS_MSG_ID, ReplyToQ=replies, Expiry=900,
        Persistence=persistence, Priority=3, Format="MQSTR", CorrelId=b"c" * 24,
    )  # fmt: skip
    qmgr.send(queue, b"body", md)
    copy, message = qmgr.take(stream), qmgr.take(queue)
    assert copy.data == message.data == b"body"
    for field in ("MsgId", "CorrelId", "Priority", "Persistence", "Format", "PutDate", "PutTime",
                  "PutApplName", "UserIdentifier", "ReplyToQ"):  # fmt: skip
        assert getattr(copy.md, field) == getattr(message.md, field), field
    assert (copy.md.Expiry, copy.md.Report) == (-1, mqi.MQRO_PASS_MSG_ID)
    assert [got.md.Feedback for got in qmgr.drain(replies)] == [259, 260]  # of the message alone


def test_a_copy_has_the_expiry_of_capexpry_of_its_queue(qmgr: QmgrFixture) -> None:
    queue, stream = streaming(qmgr, capexpry=500)
    qmgr.send(queue, b"x", mqi.MQMD(Expiry=100))
    assert 490 <= int(qmgr.take(stream).md.Expiry) <= 500


def test_copies_go_to_aliases_and_to_other_queue_managers(qmgr: QmgrFixture) -> None:
    base, route = qmgr.local(), qmgr.local(usage="XMITQ")
    alias = qmgr.define("QALIAS", target=base)
    far = qmgr.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=route)
    for name, where in ((alias, base), (far, route)):
        queue = qmgr.local(streamq=name)
        qmgr.send(queue, b"to " + name.encode())
        assert qmgr.take(where).data.endswith(b"to " + name.encode())
        assert qmgr.depth(queue) == 1


def test_every_way_to_put_makes_copies(qmgr: QmgrFixture) -> None:
    queue, stream = streaming(qmgr)
    alias = qmgr.define("QALIAS", target=queue)
    mqi.MQPUT1(qmgr.hconn, mqi.MQOD(ObjectName=alias), mqi.MQMD(), mqi.MQPMO(), b"put1")
    with qmgr.qm.queue(queue) as handle:
        handle.put(b"put")
        handle.put(b"durable", persistent=True)
        handle.put_batch([b"b1", b"b2"])
        with qmgr.qm.transaction():
            handle.put(b"unit")
    expected = [b"put1", b"put", b"durable", b"b1", b"b2", b"unit"]
    assert qmgr.bodies(stream) == expected
    assert qmgr.bodies(queue) == expected


def test_a_dynamic_queue_streams_as_its_model_says(qmgr: QmgrFixture) -> None:
    stream = qmgr.local()
    model = qmgr.model("PERMDYN", streamq=stream)
    hobj, name = qmgr.dynamic(model, mqi.MQOO_OUTPUT)
    qmgr.send(hobj, b"x")
    assert qmgr.bodies(stream) == [b"x"]
    with pytest.raises(penstock.MQError):
        qmgr.qm.alter("QLOCAL", name, streamq="")


def test_a_stream_begins_and_ends_with_alter_for_open_handles(qmgr: QmgrFixture) -> None:
    queue, stream = qmgr.local(), qmgr.local()
    hobj = qmgr.opened(queue, mqi.MQOO_OUTPUT)
    for target, body in (("", b"1"), (stream, b"2"), ("", b"3")):
        qmgr.qm.alter("QLOCAL", queue, streamq=target)
        qmgr.send(hobj, body)
    assert qmgr.bodies(stream) == [b"2"]
    qmgr.qm.alter("QLOCAL", queue, streamq=stream)
    qmgr.restart()
    qmgr.send(queue, b"4")
    assert qmgr.bodies(stream) == [b"4"]


def test_a_copy_may_trigger(qmgr: QmgrFixture) -> None:
    initiation = qmgr.local()
    process = qmgr.define("PROCESS", applicid="prog")
    queue, _ = streaming(qmgr, trigger=True, trigtype="EVERY", initq=initiation, process=process)
    watching = qmgr.opened(initiation, mqi.MQOO_INPUT_SHARED)
    qmgr.send(queue, b"x")
    assert len(qmgr.drain(watching)) == 1


# ---- units of work ----


def test_a_copy_is_in_the_unit_of_work_of_its_message(qmgr: QmgrFixture) -> None:
    for quality in ("BESTEF", MUST):
        queue, stream = streaming(qmgr, quality)
        qmgr.send(queue, b"x", syncpoint=True)
        assert qmgr.drain(stream, hconn=qmgr.other()) == []
        qmgr.backout()
        assert (qmgr.depth(queue), qmgr.depth(stream)) == (0, 0)
        qmgr.send(queue, b"y", syncpoint=True)
        qmgr.commit()
        assert (qmgr.bodies(queue), qmgr.bodies(stream)) == ([b"y"], [b"y"])


REFUSING = [
    ({"maxdepth": 0}, 2053),
    ({"put": "DISABLED"}, 2051),
    ({"maxmsgl": 1}, 2030),
]


@pytest.mark.parametrize(("of_stream", "reason"), REFUSING)
@pytest.mark.parametrize("syncpoint", [False, True])
@pytest.mark.parametrize("persistence", [0, 1])
def test_what_refuses_the_copy_refuses_a_put_that_must_duplicate(
    qmgr: QmgrFixture, of_stream: dict[str, Any], reason: int, syncpoint: bool, persistence: int
) -> None:
    queue, stream = streaming(qmgr, MUST, **of_stream)
    other = qmgr.local()
    if syncpoint:
        qmgr.send(other, b"before", syncpoint=True)
    md = mqi.MQMD(Persistence=persistence)
    assert qmgr.put(queue, b"body", md, syncpoint=syncpoint) == (FAILED, reason)
    if syncpoint:
        qmgr.commit()  # the unit is as it was
        assert qmgr.bodies(other) == [b"before"]
    assert (qmgr.depth(queue), qmgr.depth(stream)) == (0, 0)


@pytest.mark.parametrize(("of_stream", "reason"), REFUSING)
@pytest.mark.parametrize("syncpoint", [False, True])
def test_a_put_of_best_effort_goes_on_without_its_copy_and_logs_it(
    qmgr: QmgrFixture, of_stream: dict[str, Any], reason: int, syncpoint: bool
) -> None:
    queue, stream = streaming(qmgr, "BESTEF", **of_stream)
    assert qmgr.put(queue, b"body", syncpoint=syncpoint) == (OK, 0)
    if syncpoint:
        qmgr.commit()
    assert (qmgr.bodies(queue), qmgr.depth(stream)) == ([b"body"], 0)
    assert f"stream queue {stream} was not put: {reason}" in qmgr.log()


def test_a_copy_of_best_effort_never_fails_a_put_whatever_else_the_unit_has_met(
    qmgr: QmgrFixture,
) -> None:
    queue, stream = streaming(qmgr, "BESTEF", maxdepth=0)
    lost = mqi.MQMD(Report=mqi.MQRO_COA, ReplyToQ="NOWHERE", Persistence=1)
    assert qmgr.put(qmgr.local(), b"x", lost, syncpoint=True) == (FAILED, 2003)
    assert qmgr.put(queue, b"in a unit that can only be backed out", syncpoint=True) == (OK, 0)
    qmgr.backout()
    assert (qmgr.depth(queue), qmgr.depth(stream)) == (0, 0)


def test_the_report_on_a_message_goes_before_its_copy_of_best_effort(qmgr: QmgrFixture) -> None:
    queue, stream = streaming(qmgr, "BESTEF")
    replies = qmgr.local()
    try:
        qmgr.qm.alter("QMGR", maxumsgs=2)
        md = mqi.MQMD(Report=mqi.MQRO_COA, ReplyToQ=replies)
        assert qmgr.put(queue, b"x", md, syncpoint=True) == (OK, 0)
        qmgr.commit()
    finally:
        qmgr.qm.alter("QMGR", maxumsgs=10000)
    depths = [qmgr.depth(name) for name in (queue, replies, stream)]
    assert depths == [1, 1, 0]
    assert f"stream queue {stream} was not put: 2024" in qmgr.log()


def test_a_stream_queue_that_is_deleted_or_missing_refuses_or_is_logged(qmgr: QmgrFixture) -> None:
    must, best = qmgr.local(streamq="NOT.YET", strmqos=MUST), qmgr.local(streamq="NOT.YET")
    assert qmgr.put(must, b"x") == (FAILED, 2085)
    assert qmgr.put(best, b"x") == (OK, 0)
    qmgr.define("QLOCAL", "NOT.YET")
    assert qmgr.put(must, b"x") == (OK, 0)
    assert qmgr.bodies("NOT.YET") == [b"x"]
    qmgr.qm.delete("QLOCAL", "NOT.YET")
    assert qmgr.put(must, b"x") == (FAILED, 2085)


@pytest.mark.parametrize("report", [0, mqi.MQRO_COA])
def test_maxumsgs_without_room_for_both_refuses_a_put_that_must_duplicate(
    qmgr: QmgrFixture, report: int
) -> None:
    queue, stream = streaming(qmgr, MUST)
    replies, needed = qmgr.local(), 3 if report else 2
    md = mqi.MQMD(Report=report, ReplyToQ=replies)
    try:
        qmgr.qm.alter("QMGR", maxumsgs=4)
        for before in range(5):
            for _ in range(before):
                qmgr.send(replies, b"before", syncpoint=True)
            expected = (OK, 0) if before + needed <= 4 else (FAILED, 2024)
            assert qmgr.put(queue, b"x", md, syncpoint=True) == expected, before
            qmgr.commit()
            copies = qmgr.bodies(stream)
            assert copies == qmgr.bodies(queue) == [b"x"] * (expected == (OK, 0))
            qmgr.drain(replies)
    finally:
        qmgr.qm.alter("QMGR", maxumsgs=10000)


def test_a_stream_queue_that_became_a_model_queue_takes_no_copy_and_makes_no_queue(
    qmgr: QmgrFixture,
) -> None:
    must, best = qmgr.local(streamq="LATER", strmqos=MUST), qmgr.local(streamq="LATER")
    qmgr.define("QMODEL", "LATER", deftype="PERMDYN")
    before = sorted(str(row["name"]) for row in qmgr.qm.display("QLOCAL", "*"))
    for syncpoint in (False, True):
        assert qmgr.put(must, b"x", syncpoint=syncpoint) == (FAILED, 2057)
        assert qmgr.put(best, b"x", syncpoint=syncpoint) == (OK, 0)
        qmgr.commit()
    assert sorted(str(row["name"]) for row in qmgr.qm.display("QLOCAL", "*")) == before
    assert "stream queue LATER was not put: 2057" in qmgr.log()


def test_a_put_that_fails_makes_no_copy(qmgr: QmgrFixture) -> None:
    for quality in ("BESTEF", MUST):
        stream = qmgr.local()
        queue = qmgr.local(streamq=stream, strmqos=quality, maxdepth=1)
        assert qmgr.put(queue, b"1") == (OK, 0)
        for syncpoint in (False, True):
            assert qmgr.put(queue, b"2", syncpoint=syncpoint) == (FAILED, 2053)
            qmgr.commit()
        assert qmgr.bodies(stream) == [b"1"]


def test_killed_after_the_put_returned_both_are_there(qmgr: QmgrFixture) -> None:
    queue, stream = streaming(qmgr, MUST)

    def put() -> None:
        for n in range(10):
            qmgr.send(queue, b"%d" % n, mqi.MQMD(Persistence=1))
        qmgr.send(queue, b"open", mqi.MQMD(Persistence=1), syncpoint=True)

    qmgr.failure(put)
    assert qmgr.bodies(queue) == qmgr.bodies(stream) == [b"%d" % n for n in range(10)]


# ---- definitions ----


def test_a_chain_is_refused_and_a_copy_is_never_copied(qmgr: QmgrFixture) -> None:
    third = qmgr.local()
    second = qmgr.local(streamq=third)
    with pytest.raises(penstock.MQError, match="has STREAMQ"):
        qmgr.local(streamq=second)
    end, stream = qmgr.local(), qmgr.local()
    queue = qmgr.local(streamq=stream)
    qmgr.qm.alter("QLOCAL", stream, streamq=end)  # a chain, made later
    qmgr.send(queue, b"x")
    assert [qmgr.bodies(name) for name in (queue, stream, end)] == [[b"x"], [b"x"], []]
    qmgr.send(stream, b"y")  # no copy
    assert [qmgr.bodies(name) for name in (stream, end)] == [[b"y"], [b"y"]]


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("S.SELF", {"streamq": "S.SELF"}),
        ("S.X", {"streamq": "S.COPY", "usage": "XMITQ"}),
        ("S.SYS", {"streamq": "SYSTEM.ADMIN.QMGR.EVENT"}),
        ("S.MODEL", {"streamq": "SYSTEM.DEFAULT.MODEL.QUEUE"}),
        ("SYSTEM.MINE", {"streamq": "S.COPY"}),
    ],
)
def test_restricted_definitions_are_refused(
    qmgr: QmgrFixture, name: str, attributes: dict[str, Any]
) -> None:
    with pytest.raises(penstock.MQError, match="STREAMQ"):
        qmgr.qm.define("QLOCAL", name, **attributes)
    assert not qmgr.exists(name)

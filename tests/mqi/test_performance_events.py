"""Performance events: full, depth high and low, service interval high and OK; RESET QSTATS."""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from typing import NamedTuple

import pytest

import penstock
import penstock.asyncio
from penstock.client import performance_events
from penstock.constants import ReasonCode
from penstock.mqsc import Interpreter
from qmgr_fixture import QmgrFixture

EVENTS = "SYSTEM.ADMIN.PERFM.EVENT"
LONG_MS = 999_999_999
FULL, HIGH, LOW = ReasonCode.Q_FULL, ReasonCode.Q_DEPTH_HIGH, ReasonCode.Q_DEPTH_LOW
SLOW, OK = ReasonCode.Q_SERVICE_INTERVAL_HIGH, ReasonCode.Q_SERVICE_INTERVAL_OK


class Event(NamedTuple):
    """An event message: MQRC_*, the queue, and the statistics of it."""

    reason: int
    queue: str
    seconds: int
    high_depth: int
    puts: int
    gets: int


def parsed(data: bytes) -> Event:
    """The fields of an event message; every other one is compared here."""
    head = struct.unpack_from("<9i", data)
    assert head[:7] == (7, 36, 1, 45, 1, 1, 1) and head[8] == 6
    names = []
    for at, selector in ((36, 2015), (104, 2002)):
        *fixed, name = struct.unpack_from("<5i48s", data, at)
        assert fixed == [4, 68, selector, 1208, 48]
        names.append(name.decode("ascii").rstrip())
    numbers = []
    for at, selector in zip(range(172, 236, 16), (35, 36, 37, 38), strict=True):
        *fixed, number = struct.unpack_from("<4i", data, at)
        assert fixed == [3, 16, selector]
        numbers.append(number)
    assert len(data) == 236 and names[0]
    return Event(head[7], names[1], *numbers)


@pytest.fixture(autouse=True)
def _enabled(qmgr: QmgrFixture) -> None:
    qmgr.qm.alter("QMGR", perfmev="ENABLED")
    events(qmgr.qm)


def events(qm: penstock.QueueManager, queue: str = "") -> list[Event]:
    """The event messages that are there, taken."""
    with qm.queue(EVENTS) as source:
        found = []
        while (message := source.get(default=None, syncpoint=False)) is not None:
            found.append(parsed(message.data))
    assert not queue or all(event.queue == queue for event in found)
    return found


def reasons(qm: penstock.QueueManager, queue: str) -> list[int]:
    return [event.reason for event in events(qm, queue)]


def enabled(qm: penstock.QueueManager, name: str) -> str:
    """Which depth events the definition has enabled: F, H, L."""
    (row,) = qm.display("QLOCAL", name)
    keys = (("F", "qdpmaxev"), ("H", "qdphiev"), ("L", "qdploev"))
    return "".join(letter for letter, key in keys if row[key] == "ENABLED")


# ---- depth ----


def test_depth_events_enable_and_disable_each_other(qmgr: QmgrFixture) -> None:
    name = qmgr.local(maxdepth=10, qdphiev="ENABLED")
    with qmgr.qm.queue(name) as queue:
        for _ in range(7):
            queue.put(b"x")
        assert events(qmgr.qm) == [] and enabled(qmgr.qm, name) == "FH"
        queue.put(b"x")
        (event,) = events(qmgr.qm, name)
        assert event[2:] == (0, 8, 8, 0) and event.reason == HIGH
        assert enabled(qmgr.qm, name) == "FL"
        queue.put(b"x")
        queue.put(b"x")
        for _ in range(2):
            with pytest.raises(penstock.QueueFull):
                queue.put(b"x")
        (event,) = events(qmgr.qm, name)
        assert event[2:] == (0, 10, 2, 0) and event.reason == FULL
        assert enabled(qmgr.qm, name) == "L"
        for _ in range(7):
            queue.get()
        assert events(qmgr.qm) == []
        queue.get()
        (event,) = events(qmgr.qm, name)
        assert event[2:] == (0, 10, 0, 8) and event.reason == LOW
        assert enabled(qmgr.qm, name) == "FH"


def test_a_full_queue_is_an_event_by_default(qmgr: QmgrFixture) -> None:
    name = qmgr.local(maxdepth=1)
    with qmgr.qm.queue(name) as queue:
        queue.put(b"x")
        with pytest.raises(penstock.QueueFull) as caught:
            queue.put(b"x")
        assert "MAXDEPTH is 1" in str(caught.value)  # the event leaves the text as it was
        assert reasons(qmgr.qm, name) == [FULL] and enabled(qmgr.qm, name) == "L"
        queue.get()
        assert reasons(qmgr.qm, name) == [LOW] and enabled(qmgr.qm, name) == "FH"


def test_nothing_happens_while_perfmev_is_disabled(qmgr: QmgrFixture) -> None:
    qmgr.qm.alter("QMGR", perfmev="DISABLED")
    name = qmgr.local(maxdepth=1, qdphiev="ENABLED", qdploev="ENABLED", qsvciev="HIGH", qsvcint=0)
    with qmgr.qm.queue(name) as queue:
        queue.put(b"x")
        with pytest.raises(penstock.QueueFull):
            queue.put(b"x")
        queue.get()
    assert events(qmgr.qm) == [] and enabled(qmgr.qm, name) == "FHL"
    qmgr.qm.alter("QMGR", perfmev="ENABLED")
    with qmgr.qm.queue(name) as queue:
        queue.put(b"x")
    assert reasons(qmgr.qm, name)[0] == HIGH


@pytest.mark.parametrize("persistent", [False, True])
def test_messages_of_units_count_and_a_backout_takes_no_event_back(
    qmgr: QmgrFixture, persistent: bool
) -> None:
    name = qmgr.local(maxdepth=4, qdepthhi=50, qdepthlo=25, qdphiev="ENABLED")
    qm = qmgr.qm
    with qm.queue(name) as queue:
        with pytest.raises(ZeroDivisionError), qm.transaction():
            queue.put(b"x", persistent=persistent)
            queue.put(b"x", persistent=persistent)
            assert reasons(qm, name) == [HIGH]  # while the unit is open
            raise ZeroDivisionError
        assert queue.depth == 0 and events(qm) == []  # a backout is no get
        queue.put(b"x", persistent=persistent)
        queue.put(b"x", persistent=persistent)
        with pytest.raises(ZeroDivisionError), qm.transaction():
            queue.get()
            assert reasons(qm, name) == [LOW]
            raise ZeroDivisionError
        assert queue.depth == 2 and events(qm) == []


def test_batches_cause_events(qmgr: QmgrFixture) -> None:
    name = qmgr.local(maxdepth=100, qdphiev="ENABLED")
    with qmgr.qm.queue(name) as queue:
        queue.put_batch([b"x"] * 90)
        assert reasons(qmgr.qm, name) == [HIGH]
        with pytest.raises(penstock.MQError):
            queue.put_batch([b"x"] * 11)
        assert reasons(qmgr.qm, name) == [FULL]
        assert len(queue.get_batch(85)) == 85
        assert reasons(qmgr.qm, name) == [LOW]


def test_verbs_cause_events(qmgr: QmgrFixture) -> None:
    name = qmgr.local(maxdepth=2, qdepthhi=50, qdepthlo=0, qdphiev="ENABLED")
    qmgr.send(name, b"x")
    assert reasons(qmgr.qm, name) == [HIGH]
    qmgr.send(name, b"x")
    assert qmgr.put(name, b"x") == (2, FULL)
    assert reasons(qmgr.qm, name) == [FULL]
    qmgr.take(name)
    qmgr.take(name)
    assert reasons(qmgr.qm, name) == [LOW]


def test_the_queue_that_a_path_ends_at_has_the_event(qmgr: QmgrFixture) -> None:
    name = qmgr.local(maxdepth=2, qdepthhi=50, qdphiev="ENABLED")
    alias = qmgr.define("QALIAS", target=name)
    with qmgr.qm.queue(alias) as queue:
        queue.put(b"x")
    assert reasons(qmgr.qm, name) == [HIGH]


def test_a_change_of_limits_counts_for_open_handles(qmgr: QmgrFixture) -> None:
    name = qmgr.local(maxdepth=100)
    with qmgr.qm.queue(name) as queue:
        queue.put(b"x")
        qmgr.qm.alter("QLOCAL", name, qdphiev="ENABLED", qdepthhi=2)
        queue.put(b"x")
    assert reasons(qmgr.qm, name) == [HIGH]


def test_two_threads_cause_one_event(qmgr: QmgrFixture) -> None:
    name = qmgr.local(maxdepth=1000, qdepthhi=50, qdphiev="ENABLED")

    def put() -> None:
        with qmgr.qm.queue(name) as queue:
            for _ in range(300):
                queue.put(b"x", persistent=False)

    threads = [threading.Thread(target=put) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reasons(qmgr.qm, name) == [HIGH]


# ---- service interval ----


def test_a_service_interval_that_is_exceeded_is_an_event_at_the_next_call(
    qmgr: QmgrFixture,
) -> None:
    name = qmgr.local(qsvciev="HIGH", qsvcint=30)
    with qmgr.qm.queue(name) as queue:
        queue.put(b"1")
        queue.put(b"2")
        assert events(qmgr.qm) == []
        time.sleep(0.05)
        queue.put(b"3")  # a put does not begin the interval anew
        assert reasons(qmgr.qm, name) == [SLOW]
        (row,) = qmgr.qm.display("QLOCAL", name)
        assert row["qsvciev"] == "OK"
        queue.get()  # longer than the interval after the first put: not OK, and begins it anew
        assert events(qmgr.qm) == []
        queue.get()
        assert reasons(qmgr.qm, name) == [OK]
        (row,) = qmgr.qm.display("QLOCAL", name)
        assert row["qsvciev"] == "HIGH"


def test_an_empty_queue_has_no_service_interval(qmgr: QmgrFixture) -> None:
    name = qmgr.local(qsvciev="HIGH", qsvcint=20)
    with qmgr.qm.queue(name) as queue:
        queue.put(b"x")
        queue.get()
        time.sleep(0.04)
        queue.put(b"x")
        queue.get()
    assert events(qmgr.qm) == []


def test_a_get_within_the_interval_is_an_event(qmgr: QmgrFixture) -> None:
    name = qmgr.local(qsvciev="OK", qsvcint=LONG_MS)
    with qmgr.qm.queue(name) as queue:
        queue.put(b"x")
        assert events(qmgr.qm) == []
        queue.get()
        (event,) = events(qmgr.qm, name)
    assert event.reason == OK and event[3:] == (1, 1, 1)


# ---- where the message goes ----


def test_the_event_message_is_the_queue_managers(qmgr: QmgrFixture) -> None:
    name = qmgr.local(maxdepth=1)
    with qmgr.qm.queue(name) as queue, qmgr.qm.transaction():
        queue.put(b"x")
        with pytest.raises(penstock.QueueFull):
            queue.put(b"x")
        md = qmgr.take(EVENTS).md  # no unit of work has it
    assert (md.Format, md.MsgType, md.Report, md.Feedback, md.Expiry) == ("MQEVENT", 8, 0, 0, -1)
    assert md.PutApplType == 7 and md.ReplyToQ == md.UserIdentifier == ""
    assert md.ReplyToQMgr == md.PutApplName == qmgr.qm.name
    assert md.Persistence == 0 and md.CorrelId == bytes(24) and md.MsgId != bytes(24)


def test_an_event_that_its_queue_does_not_take_is_lost_and_fails_nothing(
    qmgr: QmgrFixture,
) -> None:
    name = qmgr.local(maxdepth=2, qdepthhi=50, qdphiev="ENABLED")
    qmgr.qm.alter("QLOCAL", EVENTS, put="DISABLED")
    try:
        with qmgr.qm.queue(name) as queue:
            queue.put(b"x")
            assert queue.depth == 1 and enabled(qmgr.qm, name) == "FL"
    finally:
        qmgr.qm.alter("QLOCAL", EVENTS, put="ENABLED")
    assert events(qmgr.qm) == []
    (line,) = (text for text in qmgr.log().splitlines() if EVENTS in text)
    assert "AMQ9544" in line and "2051" in line


def test_an_event_of_a_queue_that_is_gone_fails_nobodys_call(
    qmgr: QmgrFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*arguments: object) -> None:
        raise penstock.errors.QueueDeleted(ReasonCode.Q_DELETED, "deleted meanwhile")

    monkeypatch.setattr(performance_events, "make", gone)
    name = qmgr.local(maxdepth=2, qdepthhi=50, qdepthlo=0, qdphiev="ENABLED")
    with qmgr.qm.queue(name) as queue:
        queue.put(b"x")
        assert queue.get().data == b"x"
        assert queue.get(wait=1.1, default=None) is None
    assert qmgr.qm.make_reports() == 0
    monkeypatch.undo()
    assert events(qmgr.qm) == []


def test_an_event_has_its_message_though_the_definition_cannot_be_changed(
    qmgr: QmgrFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: object) -> None:
        raise penstock.StorageMediumFull(ReasonCode.STORAGE_MEDIUM_FULL, "the journal is full")

    monkeypatch.setattr(performance_events, "change", refused)
    name = qmgr.local(maxdepth=2, qdepthhi=50, qdphiev="ENABLED")
    with qmgr.qm.queue(name) as queue:
        queue.put(b"x")
    assert reasons(qmgr.qm, name) == [HIGH]


def test_the_event_queue_itself_has_no_event_messages(qmgr: QmgrFixture) -> None:
    """A program that takes them would cause the next one with each get."""
    name = qmgr.local(maxdepth=1)
    qmgr.qm.alter("QLOCAL", EVENTS, maxdepth=2, qdphiev="ENABLED", qdepthhi=50)
    try:
        with qmgr.qm.queue(name) as queue:
            queue.put(b"x")
            with pytest.raises(penstock.QueueFull):
                queue.put(b"x")
            found = events(qmgr.qm)
    finally:
        qmgr.qm.alter("QLOCAL", EVENTS, maxdepth=5000, qdphiev="DISABLED", qdploev="DISABLED")
    assert [(event.reason, event.queue) for event in found] == [(FULL, name)]
    assert events(qmgr.qm) == []


def test_calls_of_an_event_loop_cause_events(qmgr: QmgrFixture) -> None:
    name = qmgr.local(maxdepth=2, qdepthhi=50, qdepthlo=0, qdphiev="ENABLED")

    async def run() -> list[int]:
        async with penstock.asyncio.connect(qmgr.qm.name, qmgr.qm.path.parent) as qm:
            queue, source = await qm.queue(name), await qm.queue(EVENTS)
            await queue.put(b"x", persistent=False)
            first = await source.get(wait=10)
            await queue.get()
            second = await source.get(wait=10)
            return [parsed(message.data).reason for message in (first, second)]

    assert asyncio.run(run()) == [HIGH, LOW]


# ---- statistics ----


def test_statistics_begin_anew_when_they_are_read(qmgr: QmgrFixture) -> None:
    name = qmgr.local()
    with qmgr.qm.queue(name) as queue:
        for _ in range(5):
            queue.put(b"x")
        for _ in range(3):
            queue.get()
        first = qmgr.qm.reset_queue_statistics(name)
        with qmgr.qm.transaction():
            queue.get()
            second = qmgr.qm.reset_queue_statistics(name)
    third = qmgr.qm.reset_queue_statistics(name)
    assert (first.name, first.high_depth, first.put_count, first.get_count) == (name, 5, 5, 3)
    assert (second.high_depth, second.put_count, second.get_count) == (2, 0, 1)
    assert (third.high_depth, third.put_count, third.get_count) == (1, 0, 0)
    assert 0 <= first.seconds < 60


def test_reset_qstats_shows_and_resets(qmgr: QmgrFixture) -> None:
    name = qmgr.local()
    with qmgr.qm.queue(name) as queue:
        queue.put(b"x")
        queue.put(b"x")
        queue.get()
    shell = Interpreter(qmgr.qm)
    text = " ".join(" ".join(shell.execute(f"RESET QSTATS({name})").lines).split())
    assert f"QSTATS({name})" in text and "HIQDEPTH(2) MSGSIN(2) MSGSOUT(1) RESETINT(0)" in text
    text = " ".join(" ".join(shell.execute(f"RESET QSTATS({name})").lines).split())
    assert "HIQDEPTH(1) MSGSIN(0) MSGSOUT(0)" in text
    several = shell.execute("RESET QSTATS(SYSTEM.*)")
    assert several.ok and len(several.objects) > 2
    assert not shell.execute("RESET QSTATS(NO.SUCH.QUEUE)").ok


@pytest.mark.parametrize(("kind", "reason"), [("QALIAS", 2057), ("", 2085)])
def test_only_local_queues_have_statistics(qmgr: QmgrFixture, kind: str, reason: int) -> None:
    name = qmgr.define(kind, target=qmgr.local()) if kind else "NO.SUCH.QUEUE"
    with pytest.raises(penstock.MQError) as caught:
        qmgr.qm.reset_queue_statistics(name)
    assert caught.value.reason == reason

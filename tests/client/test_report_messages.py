"""Report messages through the Python interface: put(report=...), batches, other processes, kills.

What a report is, is tested with the verbs (mqi/test_reports.py).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock import Queue, QueueManager
from penstock.constants import Report

BOTH = Report.COA | Report.COD
ALL_DATA = Report.COA_WITH_FULL_DATA | Report.COD_WITH_FULL_DATA
KILLS = 12


@pytest.fixture
def replies(qm: QueueManager) -> Queue:
    qm.define("QLOCAL", "REPLIES")
    return qm.open("REPLIES")


def feedback(replies: Queue) -> list[int]:
    return [message.feedback for message in replies.get_batch(1000)]


def test_put_and_get_are_confirmed_to_reply_to_q(queue: Queue, replies: Queue) -> None:
    sent = queue.put(b"body", report=BOTH, reply_to_q="REPLIES", priority=4)
    assert queue.get().data == b"body"
    first, second = replies.get(), replies.get()
    assert (first.feedback, second.feedback) == (259, 260)
    assert (first.correl_id, first.msg_type, first.priority) == (sent.msg_id, 4, 4)


def test_confirmations_are_in_the_transaction(
    qm: QueueManager, queue: Queue, replies: Queue
) -> None:
    with qm.transaction():
        queue.put(b"1", report=BOTH, reply_to_q="REPLIES")
        assert replies.get(default=None, syncpoint=False) is None
    assert feedback(replies) == [259]
    with pytest.raises(KeyError), qm.transaction():
        queue.get()
        raise KeyError
    assert queue.get().backout_count == 1
    assert feedback(replies) == [260]


def test_a_report_with_data_needs_the_option_without(queue: Queue, replies: Queue) -> None:
    for report in (512, 1024 | 512, 256 | 1024, 4096, 0x04000000):
        with pytest.raises(penstock.InvalidValue) as caught:
            queue.put(b"", report=report, reply_to_q="REPLIES")
        assert caught.value.reason == 2061
        with pytest.raises(penstock.InvalidValue) as caught:
            queue.put_batch([b""], report=report, reply_to_q="REPLIES")
        assert caught.value.reason == 2061


# ---- batches ----


@pytest.mark.parametrize("persistent", [False, True])
def test_a_batch_confirms_the_arrival_of_its_messages(
    queue: Queue, replies: Queue, persistent: bool
) -> None:
    bodies = [b"0", b"11", b"222"]
    result = queue.put_batch(
        bodies, report=[ALL_DATA, 0, ALL_DATA], reply_to_q="REPLIES", persistent=persistent
    )
    reports = replies.get_batch(10)
    assert [(m.feedback, m.data) for m in reports] == [(259, b"0"), (259, b"222")]
    ids = [bytes(one) for one in result.msg_ids]
    assert [m.correl_id for m in reports] == [ids[0].ljust(24, b"\0"), ids[2].ljust(24, b"\0")]
    assert [m.data for m in (queue.get(), queue.get(), queue.get())] == bodies


@pytest.mark.parametrize("syncpoint", [False, True])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("size", [3, 40000])
def test_batches_confirm_the_delivery_of_their_messages(
    qm: QueueManager, queue: Queue, replies: Queue, persistent: bool, syncpoint: bool, size: int
) -> None:
    kinds = [0, 0, Report.COD_WITH_FULL_DATA, Report.COD, 0, Report.COD]
    bodies = [bytes([at]) * size for at in range(len(kinds))]
    queue.put_batch(bodies, report=kinds, reply_to_q="REPLIES", persistent=persistent)
    got: list[bytes] = []
    for most in (6, 6, 6, 6, 6, 6):
        got += [message.data for message in queue.get_batch(most, syncpoint=syncpoint)]
    assert got == bodies
    assert len(replies.get_batch(10)) == (0 if syncpoint else 3)
    if syncpoint:
        qm.backout()
        assert len(replies.get_batch(10)) == 0
        while len(queue.get_batch(6, syncpoint=True)):
            pass
        qm.commit()
        found = replies.get_batch(10)
        assert [len(message.data) for message in found] == [size, 0, 0]
        assert {message.feedback for message in found} == {260}


def test_a_batch_without_bodies_reports_the_data(
    qm: QueueManager, queue: Queue, replies: Queue
) -> None:
    queue.put(b"body", report=Report.COD_WITH_FULL_DATA, reply_to_q="REPLIES")
    assert len(queue.get_batch(5, syncpoint=True, bodies=False)) == 1
    qm.commit()
    assert replies.get().data == b"body"


def test_a_browsed_batch_confirms_nothing(queue: Queue, replies: Queue) -> None:
    queue.put(b"body", report=BOTH, reply_to_q="REPLIES")
    with queue.connection.open("Q", browse=True) as browser:
        assert len(browser.browse_batch(5)) == 1
    assert feedback(replies) == [259]


def test_a_batch_whose_report_has_no_place_puts_nothing(queue: Queue) -> None:
    with pytest.raises(penstock.UnknownObjectName):
        queue.put_batch([b"1", b"2"], report=[0, BOTH], reply_to_q="NONE", persistent=True)
    assert queue.depth == 0


# ---- other processes, kills ----


def in_child(work: Callable[[int], object]) -> tuple[int, int]:
    """A forked process that does the work; its pid, and the pipe that the work writes to."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        try:
            os.close(reader)
            work(writer)
        finally:
            os._exit(0)
    os.close(writer)
    return pid, reader


def test_each_message_has_each_report_once_whenever_a_process_is_killed(home: Path) -> None:
    """COA reports are as many as messages that were put, COD as those that left the queue."""
    penstock.create("QM1", home, segment_size=1 << 20, journal_limit=64 << 20, ring_size=1 << 20)
    with penstock.connect("QM1", home) as qm:
        for name in ("Q", "REPLIES"):
            qm.define("QLOCAL", name, maxdepth=100000)

    def work(pipe: int) -> None:
        with penstock.connect("QM1", home) as qm, qm.open("Q") as queue:
            while True:
                queue.put(b"x" * 500, report=BOTH, reply_to_q="REPLIES", persistent=True)
                os.write(pipe, b".")
                queue.put_batch([b"y"] * 3, report=BOTH, reply_to_q="REPLIES", persistent=True)
                os.write(pipe, b".")
                with qm.transaction():
                    queue.get()
                    queue.put(b"z", report=BOTH, reply_to_q="REPLIES", persistent=True)
                os.write(pipe, b".")
                queue.get_batch(2)
                os.write(pipe, b".")

    for number in range(KILLS):
        pid, reader = in_child(work)
        assert len(os.read(reader, 1)) == 1
        for _ in range(number * 3 % 17):
            os.read(reader, 1)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reader)
        with penstock.connect("QM1", home) as qm, qm.open("Q") as queue:
            present = [message.msg_id for message in queue.browse()]
            with qm.open("REPLIES") as replies:
                reports = [(m.feedback, m.correl_id) for m in replies.browse()]
        arrived = [correl_id for kind, correl_id in reports if kind == 259]
        delivered = [correl_id for kind, correl_id in reports if kind == 260]
        assert len(reports) == len(set(reports)) == len(arrived) + len(delivered)
        assert sorted(delivered + present) == sorted(arrived), number
    penstock.delete("QM1", home)

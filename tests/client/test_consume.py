"""Claims of Queue.consume(): what is committed when, what waits, and where failures end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import penstock
from penstock import Retry

SOON = Retry(0.05)


@pytest.fixture
def qm():
    with penstock.temporary() as manager:
        manager.define("QLOCAL", "Q")
        yield manager


def test_asking_for_the_next_message_commits_the_last_one_and_an_exception_backs_it_out(qm):
    with qm.queue("Q") as q, qm.queue("Q") as others:
        for text in ("a", "b", "c"):
            q.put(text)
        seen = []
        with pytest.raises(KeyError):
            for message in q.consume(wait=0, retry=Retry(0)):
                seen.append(message.text)
                assert others.status().got == 1
                if message.text == "b":
                    raise KeyError
        assert seen == ["a", "b"]
        assert [(m.text, m.backout_count) for m in others] == [("b", 1), ("c", 0)]


def test_what_the_loop_puts_is_committed_with_its_message(qm):
    qm.define("QLOCAL", "OUT")
    with qm.queue("Q") as q, qm.queue("OUT") as out:
        q.put("a")
        q.put("b")
        with pytest.raises(RuntimeError):
            for message in q.consume(wait=0, retry=Retry(0)):
                out.put(message.text * 2)
                if message.text == "b":
                    raise RuntimeError
        assert [m.text for m in out] == ["aa"]


def test_a_message_that_waits_for_its_retry_blocks_nobody_and_holds_no_unit(qm):
    with qm.queue("Q") as q:
        q.put("bad")
        q.put("good")
        times = []

        @q.consume(wait=1, retry=Retry(0.3, most=2))
        def work(message):
            times.append((message.text, time.monotonic()))
            if message.text == "bad":
                raise ValueError("bad")

        qm.define("QLOCAL", "DEAD")
        qm.alter("QMGR", deadq="DEAD")
        work.run()
        texts = [text for text, _ in times]
        assert texts == ["bad", "good", "bad", "bad"]
        bad = [moment for text, moment in times if text == "bad"]
        assert bad[1] - bad[0] >= 0.3 and bad[2] - bad[1] >= 0.3
        assert q.status().got == 0 and q.depth == 0
        with qm.queue("DEAD") as dead:
            message = dead.get()
            assert message.format == "MQDEAD"
            assert int.from_bytes(message.data[8:12], sys.byteorder) == 2362


def test_bothresh_sends_a_message_to_boqname_as_it_was_put(qm):
    qm.define("QLOCAL", "FAILED")
    qm.alter("QLOCAL", "Q", bothresh=2, boqname="FAILED")
    with qm.queue("Q") as q, qm.queue("FAILED") as failed:
        q.put(b"x", priority=7, correl_id=b"c", format="MINE", ccsid=850)

        @q.consume(wait=0.5, retry=Retry(0))
        def work(message):
            raise ValueError

        work.run()
        message = failed.get()
        assert (message.data, message.priority, message.format, message.ccsid) == (
            b"x", 7, "MINE", 850,
        )  # fmt: skip
        assert q.depth == 0


def test_without_a_place_for_it_a_message_stays_and_waits_the_longest_time(qm):
    with qm.queue("Q") as q:
        q.put("x")
        with pytest.raises(ValueError):
            for _ in q.consume(wait=0, retry=Retry(0, most=0)):
                raise ValueError
        assert list(q.consume(wait=0, retry=Retry(0, longest=60, most=0))) == []
        assert (q.depth, q.status().delayed) == (1, 1)


def test_many_threads_take_each_message_once(qm):
    with qm.queue("Q") as q:
        for i in range(400):
            q.put(str(i))
        seen, lock = [], threading.Lock()

        @q.consume(threads=4, wait=0.2)
        def work(message):
            with lock:
                seen.append(message.text)

        work.run()
        assert sorted(map(int, seen)) == list(range(400))


def test_limit_and_stop_end_it(qm):
    with qm.queue("Q") as q:
        for i in range(5):
            q.put(str(i))
        assert [m.text for m in q.consume(limit=2)] == ["0", "1"]
        consumer = q.consume()
        for message in consumer:
            assert message.text == "2"
            consumer.stop()
        assert q.depth == 2


@pytest.mark.parametrize(
    "bad",
    [
        {"limit": -1}, {"limit": True}, {"threads": 0}, {"threads": 2.5}, {"retry": 5},
    ],
)  # fmt: skip
def test_arguments_that_are_none_are_refused(qm, bad):
    with qm.queue("Q") as q, pytest.raises(penstock.MQError) as refused:
        q.consume(**bad)
    assert refused.value.reason == 2046


@pytest.mark.parametrize("wait", [-1, "1", True, float("nan")])
def test_a_wait_that_is_none_is_refused_before_anything_is_got(qm, wait):
    with qm.queue("Q") as q, pytest.raises(penstock.MQError) as refused:
        q.consume(wait=wait)
    assert refused.value.reason == 2090


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((-1,), {}), (("1",), {}), ((1,), {"factor": 0.5}), ((1,), {"jitter": 2}),
        ((1,), {"most": -1}),
    ],
)  # fmt: skip
def test_a_policy_that_is_none_is_refused(args, named):
    with pytest.raises(penstock.MQError) as refused:
        Retry(*args, **named)
    assert refused.value.reason == 2046


def test_waits_grow_by_the_factor_to_the_longest_and_jitter_shortens_them():
    policy = Retry(1, factor=2, longest=5)
    assert [policy.wait(n) for n in (1, 2, 3, 4, 5000)] == [1, 2, 4, 5, 5]
    assert all(0.5 <= Retry(1, jitter=0.5).wait(1) <= 1 for _ in range(100))


_WORKER = """
import sys, time, penstock
with penstock.connect("QM", home=sys.argv[1]) as qm, qm.queue("Q") as q:
    @q.consume()
    def work(message):
        print("begin", flush=True)
        time.sleep(float(sys.argv[2]))
        print("end", flush=True)
    work.run()
print("left", flush=True)
"""


_LOOP = """
import sys, time, penstock
with penstock.connect("QM", home=sys.argv[1]) as qm, qm.queue("Q") as q:
    for message in q.consume():
        print("begin", flush=True)
        time.sleep(float(sys.argv[2]))
        print("end", flush=True)
print("left", flush=True)
"""


@pytest.mark.parametrize("program", [_WORKER, _LOOP], ids=["handler", "loop"])
@pytest.mark.parametrize(("signals", "said"), [(1, ["begin", "end", "left"]), (2, ["begin"])])
def test_sigterm_lets_the_work_end_and_a_second_one_does_not(tmp_path, signals, said, program):
    path = Path(tmp_path)
    with penstock.connect("QM", home=path, create=True) as qm:
        qm.define("QLOCAL", "Q", defpsist="YES")
        with qm.queue("Q") as q:
            q.put("a")
            worker = subprocess.Popen(
                [sys.executable, "-c", program, str(path), "1" if signals == 1 else "60"],
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert worker.stdout is not None
            first = worker.stdout.readline().strip()
            for _ in range(signals):
                os.kill(worker.pid, signal.SIGTERM)
                time.sleep(0.5)
            rest = worker.communicate(timeout=60)[0].split()
            assert [first, *rest] == said
            while q.status().got:
                time.sleep(0.05)
            assert q.depth == (0 if signals == 1 else 1)


@pytest.mark.parametrize("own", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_loop_leaves_the_programs_own_handler_of_sigterm_as_it_was(qm, own):
    before = signal.signal(signal.SIGTERM, own)
    try:
        with qm.queue("Q") as q:
            q.put("a")
            q.put("b")
            for _ in q.consume(wait=0, limit=1):
                taken = signal.getsignal(signal.SIGTERM) is not own
                assert taken == (own is signal.SIG_DFL)
            assert signal.getsignal(signal.SIGTERM) is own
            for _ in q.consume(wait=0):
                break
            assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)

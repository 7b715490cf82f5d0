"""Claims of consume(prefetch=): commits go on behind the messages, and none is lost or doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

import penstock
from penstock import Retry
from penstock.client.commits import CommitThread

COUNT = 200

MOVER = """
import sys
import penstock
with penstock.connect("QM1", sys.argv[1]) as qm, qm.queue("IN") as q, qm.queue("OUT") as out:
    for message in q.consume(wait=5, prefetch=8):
        out.put(message.data)
        print(message.text, flush=True)
"""


@pytest.fixture
def qm(home: Path):
    penstock.create("QM1", home, segment_size=1 << 20, journal_limit=64 << 20, ring_size=1 << 20)
    with penstock.connect("QM1", home) as manager:
        for name in ("IN", "OUT"):
            manager.define("QLOCAL", name, defpsist=True)
        yield manager


def put_all(qm, count=COUNT):
    with qm.queue("IN") as q:
        q.put_batch([b"%d" % n for n in range(count)], persistent=True)


def texts(qm, name):
    with qm.queue(name) as q:
        return [m.text for m in q.browse()]


def test_commits_share_flushes_and_everything_is_committed_at_the_end(qm):
    put_all(qm)
    with qm.queue("IN") as q, qm.queue("OUT") as out:
        before = qm.status().flushes
        for message in q.consume(wait=0, prefetch=20):
            out.put(message.data)
            assert q.status().got <= 20
        assert qm.status().flushes - before < COUNT / 4
        assert (q.depth, q.status().got, qm.status().units) == (0, 0, 0)
    assert texts(qm, "OUT") == [str(n) for n in range(COUNT)]
    assert not [t for t in threading.enumerate() if t.name == "penstock commits"]


def test_a_failure_backs_out_its_message_alone(qm):
    put_all(qm, 10)
    with qm.queue("IN") as q, qm.queue("OUT") as out:
        with pytest.raises(KeyError):
            for message in q.consume(wait=0, prefetch=100, retry=Retry(0)):
                out.put(message.data)
                if message.text == "6":
                    raise KeyError
        assert [(m.text, m.backout_count) for m in q.browse()][:2] == [("6", 1), ("7", 0)]
        out.put("x", syncpoint=False)
    assert texts(qm, "OUT") == [*"012345", "x"]


def test_a_handler_that_fails_sometimes_gets_each_message_to_its_end_once(qm):
    put_all(qm)
    seen = Counter()
    with qm.queue("IN") as q, qm.queue("OUT") as out:

        @q.consume(wait=0.2, prefetch=10, threads=3, retry=Retry(0))
        def work(message):
            seen[message.text] += 1
            out.put(message.data)
            if int(message.text) % 7 == 0 and message.backout_count == 0:
                raise ValueError

        work.run()
    assert sorted(texts(qm, "OUT"), key=int) == [str(n) for n in range(COUNT)]
    assert all(seen[str(n)] == (2 if n % 7 == 0 else 1) for n in range(COUNT))


def test_a_loop_that_is_left_has_committed_what_was_done(qm):
    put_all(qm, 5)
    with qm.queue("IN") as q:
        messages = iter(q.consume(prefetch=10, retry=Retry(0)))
        assert [next(messages).text for _ in range(3)] == ["0", "1", "2"]
        messages.close()
        assert [(m.text, m.backout_count) for m in q.browse()][:2] == [("2", 1), ("3", 0)]


def test_messages_that_are_not_persistent_are_committed_at_once(qm):
    with qm.queue("IN") as q, qm.queue("IN") as others:
        for n in range(3):
            q.put(str(n), persistent=False)
        for _ in q.consume(wait=0, prefetch=10):
            assert others.status().got == 1
        assert not [t for t in threading.enumerate() if t.name == "penstock commits"]


def test_a_failed_commit_is_raised_later_and_leaves_the_next_ones_alone(qm):
    with qm.queue("OUT") as out:
        ended, good = qm.unit(), qm.unit()
        ended.commit()
        out.put("good", unit=good)
        with pytest.raises(penstock.UnitNotAvailable), CommitThread(5) as behind:
            behind.give(ended)
            behind.give(good)
        assert texts(qm, "OUT") == ["good"]


def test_without_memory_for_a_commit_the_loop_ends_and_nothing_is_lost(qm, monkeypatch):
    def no_memory(units):
        raise MemoryError

    put_all(qm, 10)
    monkeypatch.setattr("penstock._engine.commit_together", no_memory)
    with qm.queue("IN") as q:
        with pytest.raises(MemoryError):
            for _ in q.consume(wait=0, prefetch=3):
                pass
        assert sorted(m.text for m in q.browse()) == [str(n) for n in range(10)]


def test_a_child_of_a_loop_ends_without_waiting_for_the_parents_thread(qm):
    put_all(qm, 3)
    with qm.queue("IN") as q:
        messages = iter(q.consume(wait=0, prefetch=5))
        assert [next(messages).text for _ in range(3)] == ["0", "1", "2"]
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            with suppress(penstock.MQError):  # the unit of the message in progress is the parent's
                messages.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert next(messages, None) is None
        assert q.depth == 0


@pytest.mark.parametrize("prefetch", [1, 5])
def test_a_loop_that_nobody_has_left_at_exit_has_committed_what_was_done(qm, home, prefetch):
    put_all(qm, 5)
    program = f"""
import sys
import penstock
qm = penstock.connect("QM1", sys.argv[1])
messages = iter(qm.queue("IN").consume(prefetch={prefetch}))
print(*(next(messages).text for _ in range(3)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(home)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("0 1 2\n", "")
    assert texts(qm, "IN") == ["2", "3", "4"]


def test_what_a_loop_raises_behind_the_end_of_its_connection_is_not_covered_up(qm, home):
    put_all(qm, 3)
    with penstock.connect("QM1", home) as other, pytest.raises(KeyError):
        for _ in other.queue("IN").consume(prefetch=5):
            other.close()
            raise KeyError


@pytest.mark.parametrize("bad", [0, -1, 1.0, True, None, 10_001, "2"])
def test_a_prefetch_that_is_none_is_refused(qm, bad):
    with qm.queue("IN") as q, pytest.raises(penstock.MQError) as caught:
        q.consume(prefetch=bad)
    assert caught.value.reason == 2046 and repr(bad) in str(caught.value)


def test_a_worker_that_is_killed_leaves_each_message_on_one_of_both_queues(qm, home):
    put_all(qm)
    for kill_at in (1, 30, 77):
        worker = subprocess.Popen(
            [sys.executable, "-c", MOVER, str(home)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(kill_at):
            assert worker.stdout.readline()
        assert worker.pid > 1
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
        worker.stdout.close()
    end = time.monotonic() + 20
    while qm.status().attached > 1 and time.monotonic() < end:
        time.sleep(0.02)
    left, moved = texts(qm, "IN"), texts(qm, "OUT")
    assert sorted(left + moved, key=int) == [str(n) for n in range(COUNT)]
    assert len(moved) >= 77 - 8

"""Claims of Clock.advance(): messages expire and become due as if the time had passed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest

import penstock
import penstock.asyncio
from penstock import Retry

HOUR = 3600


@pytest.fixture
def qm():
    with penstock.temporary() as manager:
        manager.define("QLOCAL", "Q", defpsist=True)
        yield manager


def texts(q, **how):
    return [m.text for m in q.browse(**how)]


def test_what_is_due_within_the_time_is_available_in_the_order_of_its_puts(qm):
    with qm.queue("Q") as q:
        q.put("later", delay=2 * HOUR)
        q.put("due", delay=HOUR)
        q.put_batch([b"batch", b"more"], delay=[HOUR, 2 * HOUR])
        q.put("now")
        qm.clock.advance(HOUR - 60)
        assert texts(q) == ["now"]
        qm.clock.advance(61)
        assert texts(q) == ["due", "batch", "now"]
        assert (q.depth, q.status().delayed) == (5, 2)


@pytest.mark.parametrize("persistent", [False, True])
def test_what_expires_within_the_time_is_gone_and_the_rest_has_less_left(qm, persistent):
    with qm.queue("Q") as q:
        q.put("short", expiry=10, persistent=persistent)
        q.put("long", expiry=HOUR, persistent=persistent)
        q.put("ever", persistent=persistent)
        qm.clock.advance(60)
        found = list(q.browse())
        assert [m.text for m in found] == ["long", "ever"]
        assert HOUR - 70 < found[0].expiry <= HOUR - 60
        assert q.get().text == "long"


def test_what_is_put_afterwards_counts_from_the_time_of_the_clock(qm):
    qm.clock.advance(HOUR)
    with qm.queue("Q") as q:
        q.put("expires", expiry=60)
        q.put("delayed", delay=60)
        q.put("at", at=qm.clock.now() + timedelta(seconds=60))
        q.put_batch([b"batch"], delay=60)
        q.put("past", at=qm.clock.now() - timedelta(seconds=1))
        assert texts(q) == ["expires", "past"]
        assert abs(q.get().put_time - qm.clock.now()) < timedelta(seconds=5)
        qm.clock.advance(61)
        assert texts(q) == ["delayed", "at", "batch", "past"]


def test_a_get_that_waits_returns_when_the_clock_reaches_its_message(qm):
    with qm.queue("Q") as q, qm.queue("Q") as others:
        others.put("x", delay=HOUR)
        found = []
        thread = threading.Thread(target=lambda: found.append(q.get(wait=30).text))
        thread.start()
        while others.status().waiters == 0:
            time.sleep(0.001)
        begin = time.monotonic()
        qm.clock.advance(HOUR)
        thread.join(30)
        assert found == ["x"] and time.monotonic() - begin < 0.5


def test_a_task_that_waits_returns_when_the_clock_reaches_its_message(qm):
    async def main():
        async with penstock.asyncio.connect(qm.name, qm.path.parent) as other:
            q = await other.queue("Q")
            await q.put("x", delay=HOUR)
            task = asyncio.create_task(q.get(wait=30))
            while not q.handle.status().waiters:
                await asyncio.sleep(0.001)
            qm.clock.advance(HOUR)
            assert (await asyncio.wait_for(task, 0.5)).text == "x"

    asyncio.run(main())


def test_a_message_that_waits_for_its_retry_is_tried_again(qm):
    with qm.queue("Q") as q:
        q.put("x")
        with pytest.raises(KeyError):
            for _ in q.consume(wait=0, retry=Retry(HOUR)):
                raise KeyError
        assert list(q.consume(wait=0)) == []
        qm.clock.advance(HOUR)
        assert [m.text for m in q.consume(wait=0)] == ["x"]


def test_another_process_has_the_same_clock(qm):
    program = """
import sys
import penstock
with penstock.connect("TEMPORARY", sys.argv[1]) as qm, qm.queue("Q") as q:
    print(q.get().text, q.get(default=None))
    q.put("from there", delay=60)
"""
    with qm.queue("Q") as q:
        q.put("expires", expiry=10)
        q.put("due", delay=HOUR)
        qm.clock.advance(HOUR)
        done = subprocess.run(
            [sys.executable, "-c", program, str(qm.path.parent)],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        assert done.stdout == "due None\n"
        qm.clock.advance(60)
        assert texts(q) == ["from there"]


def test_checkpoints_and_restarts_behind_an_advanced_clock_find_nothing_wrong(qm, tmp_path):
    made = penstock.temporary("KEPT", home=tmp_path, discard=False)
    with made as kept:
        kept.define("QLOCAL", "Q", defpsist=True)
        with kept.queue("Q") as q:
            for n in range(200):
                q.put(f"expires {n}", expiry=60)
                q.put(f"stays {n}", delay=HOUR)
            kept.checkpoint()
            kept.clock.advance(HOUR)
            assert len(list(q.browse())) == 200
            q.put("new", expiry=60)
            for _ in range(3):
                kept.checkpoint()
                kept.check()
            assert len(list(q.browse())) == 201
    path = made._folder
    with penstock.connect("KEPT", path) as again, again.queue("Q") as q:
        assert (len(list(q.browse())), q.status().delayed) == (201, 0)
        again.checkpoint()
        again.check()


def test_jobs_of_schedules_that_passed_are_put_once(qm):
    qm.schedule("nightly", "Q", every=HOUR, put="job")
    worker = threading.Thread(target=lambda: qm_of(qm, lambda own: own.run_schedules(wait=1.0)))
    qm.clock.advance(10 * HOUR)
    worker.start()
    worker.join(30)
    with qm.queue("Q") as q:
        assert texts(q) == ["job"]


def qm_of(qm, call):
    with penstock.connect(qm.name, qm.path.parent) as own:
        call(own)


@pytest.mark.parametrize("bad", [-1, float("nan"), 1e12, True, "1", None])
def test_a_time_that_is_none_is_refused(qm, bad):
    with pytest.raises(penstock.MQError) as caught:
        qm.clock.advance(bad)
    assert caught.value.reason == 2046 and repr(bad) in str(caught.value)


def test_the_clock_ends_at_a_hundred_years(qm):
    qm.clock.advance(3_155_760_000)
    with pytest.raises(penstock.MQError) as caught:
        qm.clock.advance(1)
    assert caught.value.reason == 2046

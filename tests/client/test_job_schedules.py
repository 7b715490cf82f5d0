"""Schedules: jobs come when they are due, each once, whoever runs them and whatever is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import InvalidValue, UnknownObjectName
from penstock.client import schedules as module
from penstock.client.schedules import DEFINITIONS, TICKS

RUNNER = """
import sys, penstock
with penstock.connect("QM1", sys.argv[1]) as qm:
    print("ready", flush=True)
    qm.run_schedules()
"""
LOOP = """
import asyncio, sys, penstock.asyncio
async def main():
    async with penstock.asyncio.connect("QM1", sys.argv[1]) as qm:
        print("ready", flush=True)
        await asyncio.gather(*[qm.run_schedules() for _ in range(2)])
asyncio.run(main())
"""
CHANGER = """
import os, sys, penstock
from penstock.client.schedules import DEFINITIONS
qm = penstock.connect("QM1", sys.argv[1])
queue = qm.open(DEFINITIONS, exclusive=True)
queue.get(syncpoint=True)
print("holds", flush=True)
sys.stdin.read()
"""
EVERY = 0.004
SECONDS = 2.0


@pytest.fixture
def qm(home: Path) -> Iterator[penstock.QueueManager]:
    penstock.create("QM1", home)
    with penstock.connect("QM1", home) as manager:
        manager.define("QLOCAL", "JOBS", maxdepth=999_999)
        yield manager


def jobs(qm: penstock.QueueManager, name: str = "JOBS") -> list[bytes]:
    with qm.open(name) as queue:
        return [message.data for message in queue.browse()]


def depth(qm: penstock.QueueManager, name: str) -> int:
    with qm.open(name) as queue:
        return queue.depth


def make_due(qm: penstock.QueueManager, monkeypatch: pytest.MonkeyPatch, ahead: timedelta) -> None:
    """All ticks are due now, and for schedules it is ``ahead`` later."""

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + ahead

    with qm.open(TICKS) as ticks:
        for message in list(ticks.browse(delayed=True)):
            assert ticks.cancel(message.msg_id)
            ticks.put(message.data, correl_id=message.correl_id, persistent=True)
    monkeypatch.setattr(module, "datetime", Later)


def run(qm: penstock.QueueManager) -> None:
    qm.run_schedules(wait=0)


def test_a_job_comes_when_it_is_due_and_as_it_was_given(
    qm: penstock.QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = {"json": {"a": [1, None]}, "priority": 7, "correl_id": b"c" * 24, "persistent": False}
    made = qm.schedule("hourly", "JOBS", put=put, every=3600)
    assert made == qm.schedules()[0] and made.put == put
    assert made.due is not None and made.due > datetime.now(timezone.utc) + timedelta(minutes=59)
    run(qm)
    assert jobs(qm) == []
    make_due(qm, monkeypatch, timedelta(hours=1))
    run(qm)
    with qm.open("JOBS") as queue:
        job = queue.get()
        assert (job.json(), job.priority, job.correl_id) == ({"a": [1, None]}, 7, b"c" * 24)
        assert not job.persistent and queue.depth == 0
    assert qm.schedules()[0].due == made.due + timedelta(hours=1)


@pytest.mark.parametrize(("missed", "count"), [("one", 1), ("all", 25), ("skip", 0)])
def test_after_a_day_of_absence_the_policy_says_what_comes(
    qm: penstock.QueueManager, monkeypatch: pytest.MonkeyPatch, missed: Any, count: int
) -> None:
    made = qm.schedule("hourly", "JOBS", put="x", every=3600, missed=missed, grace=10)
    assert made.due is not None
    make_due(qm, monkeypatch, timedelta(hours=25, seconds=30))
    run(qm)
    assert jobs(qm) == [b"x"] * count
    assert qm.schedules()[0].due == made.due + timedelta(hours=25)


def test_a_change_takes_the_place_of_what_was_and_a_deletion_leaves_nothing(
    qm: penstock.QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    qm.schedule("s", "JOBS", put="old", every=60)
    qm.schedule("other", "JOBS", put="other", every=60)
    qm.schedule("s", "JOBS", put="new", every=60)
    assert (depth(qm, DEFINITIONS), depth(qm, TICKS)) == (2, 2)
    make_due(qm, monkeypatch, timedelta(seconds=60))
    run(qm)
    assert sorted(jobs(qm)) == [b"new", b"other"]
    qm.delete_schedule("s")
    assert [one.name for one in qm.schedules()] == ["other"]
    assert (depth(qm, DEFINITIONS), depth(qm, TICKS)) == (1, 1)
    with pytest.raises(UnknownObjectName, match="QM1 has no schedule s"):
        qm.delete_schedule("s")


@pytest.mark.parametrize("change", ["altered", "deleted"])
def test_a_tick_that_a_runner_has_is_dropped_when_its_schedule_is_changed_meanwhile(
    qm: penstock.QueueManager, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    qm.schedule("s", "JOBS", put="old", every=60)
    make_due(qm, monkeypatch, timedelta(seconds=60))
    with qm.open(TICKS) as ticks, qm.transaction():
        tick = ticks.get()

        def act() -> None:
            if change == "deleted":
                qm.delete_schedule("s")
            else:
                qm.schedule("s", "JOBS", put="new", every=60)

        other = threading.Thread(target=act)
        other.start()
        other.join()
        assert module.handle(qm, tick) == 0
    assert jobs(qm) == [] and depth(qm, TICKS) == (change == "altered")


def test_a_job_that_cannot_be_put_waits_and_comes_once(
    qm: penstock.QueueManager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    qm.define("QLOCAL", "SMALL", maxdepth=1)
    with qm.open("SMALL") as small:
        small.put(b"there")
        qm.schedule("s", "SMALL", put="x", every=3600)  # a full queue does not refuse it
        make_due(qm, monkeypatch, timedelta(hours=1))
        run(qm)
        assert "2053" in caplog.text and depth(qm, TICKS) == 1
        with qm.open(TICKS) as ticks:
            assert ticks.status().delayed == 1  # it holds no unit of work
        small.get()
        make_due(qm, monkeypatch, timedelta(hours=1))
        run(qm)
        assert jobs(qm, "SMALL") == [b"x"]


def test_a_schedule_for_no_queue_or_a_job_that_no_put_takes_is_refused_and_leaves_nothing(
    qm: penstock.QueueManager,
) -> None:
    with pytest.raises(UnknownObjectName, match=r"NO\.SUCH"):
        qm.schedule("s", "NO.SUCH", every=5)
    for put in ({"priority": 7}, {"data": b"", "json": 1}, {"data": b"", "priority": -2}):
        with pytest.raises(penstock.MQError):
            qm.schedule("s", "JOBS", put=put, every=5)
    with pytest.raises(InvalidValue, match="delay"):
        qm.schedule("s", "JOBS", put={"data": b"", "delay": 5}, every=5)
    for name in ("", "a\nb", " a", "x" * 101):
        with pytest.raises(InvalidValue, match="schedule name"):
            qm.schedule(name, "JOBS", every=5)
    assert qm.schedules() == [] and jobs(qm) == []


def test_schedules_survive_an_end_and_a_kill(home: Path, qm: penstock.QueueManager) -> None:
    made = qm.schedule("s", "JOBS", put=b"\xff\x00", cron="0 2 * * *", zone="Europe/Berlin")
    qm.close()
    with penstock.connect("QM1", home) as again:
        assert again.schedules() == [made] and made.put["data"] == b"\xff\x00"


def test_a_definition_in_a_unit_of_a_killed_process_is_found_and_not_taken_for_deleted(
    home: Path, qm: penstock.QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    qm.schedule("s", "JOBS", put="x", every=60)
    make_due(qm, monkeypatch, timedelta(seconds=60))
    with subprocess.Popen(
        [sys.executable, "-c", CHANGER, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"holds\n"
        killer = threading.Timer(0.3, holder.kill)
        killer.start()
        run(qm)  # waits until the definitions are free
        killer.join()
    assert jobs(qm) == [b"x"] and len(qm.schedules()) == 1


@pytest.mark.parametrize("program", [RUNNER, LOOP], ids=["threads", "loops"])
def test_each_occurrence_has_one_job_though_runners_are_killed_at_any_moment(
    home: Path, qm: penstock.QueueManager, program: str
) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)

    def started() -> subprocess.Popen[bytes]:
        made = subprocess.Popen([sys.executable, "-c", program, home], stdout=subprocess.PIPE)
        assert made.stdout is not None and made.stdout.readline() == b"ready\n"
        return made

    runners = [started() for _ in range(3)]
    start = datetime.now(timezone.utc) + timedelta(seconds=0.05)
    qm.schedule("often", "JOBS", put="x", every=EVERY, start=start, missed="all")
    end, kills = time.monotonic() + SECONDS, 0
    try:
        while time.monotonic() < end or kills < 4:
            time.sleep(chance.random() * 0.1)
            victim = chance.randrange(len(runners))
            runners[victim].kill()
            runners[victim].communicate()
            kills += 1
            runners[victim] = started()
        for runner in runners:  # in order, within the job in progress
            runner.send_signal(signal.SIGTERM)
        # one that has not come to run_schedules() yet ends by the signal itself
        assert {runner.wait(30) for runner in runners} <= {0, -signal.SIGTERM}
    finally:
        for runner in runners:
            runner.kill()
            runner.communicate()
    end = time.monotonic() + 30
    while qm.unit_list() and time.monotonic() < end:  # what the killed ones had got
        qm.maintain()
    assert not qm.unit_list()
    run(qm)
    due = qm.schedules()[0].due
    assert due is not None
    assert len(jobs(qm)) == (due - start) / timedelta(seconds=EVERY), (seed, kills)
    assert kills > 3 and depth(qm, TICKS) == 1


def test_a_process_that_was_forked_is_refused(qm: penstock.QueueManager) -> None:
    qm.schedule("s", "JOBS", every=60)
    child = os.fork()
    if child == 0:
        try:
            qm.schedules()
        except penstock.MQError as error:
            os._exit(0 if error.reason == 2012 else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

"""Units of work that nobody ends: idle, stopped, or of a program that waits for something else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock import journal, mqi
from surroundings import SECONDS, hear, python, say, stop_at_rest

BODY = b"x" * 40_000
LIMIT = 8 << 20

OWNER = """
import sys
import penstock

def reason(call, *arguments, **named):
    try:
        call(*arguments, **named)
        return 0
    except penstock.MQError as error:
        return error.reason

home, puts = sys.argv[1], int(sys.argv[2])
with penstock.connect("ONE", home) as qm, qm.queue("UNIT") as queue:
    print(queue.get(syncpoint=True).data.decode(), flush=True)
    for n in range(puts):
        queue.put(b"y" * 40_000, persistent=True, syncpoint=True)
    print("open", flush=True)
    for line in sys.stdin:
        if line.startswith("wait"):
            print("waiting", flush=True)
            print(reason(queue.get, wait=0.9, syncpoint=True), flush=True)
        elif line.startswith("put"):
            print(reason(queue.put, b"late", syncpoint=True), flush=True)
        else:
            print(reason(qm.commit), flush=True)
"""


def create(home: Path, **settings: int) -> None:
    penstock.create("ONE", home, journal_limit=LIMIT, segment_size=1 << 20, **settings)
    with penstock.connect("ONE", home) as qm:
        qm.define("qlocal", "UNIT")
        qm.define("qlocal", "Q")
        with qm.queue("UNIT") as queue:
            queue.put(b"got", persistent=True)


def until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.02)


def pour(queue: penstock.Queue, times: float) -> None:
    """Durable messages of so many limits of the journal together, each put and got."""
    for _ in range(int(times * LIMIT / len(BODY))):
        queue.put(BODY, persistent=True, syncpoint=False)
        queue.get(syncpoint=False)


def logged(home: Path) -> str:
    files = sorted((home / "ONE" / "errors").iterdir())
    return "".join(file.read_text() for file in files)


def end_of(owner: subprocess.Popen[str]) -> list[str]:
    """What a put, a commit and another commit of the owner end with."""
    answers = []
    for order in ("put", "commit", "commit"):
        say(owner, order)
        answers.append(hear(owner))
    return answers


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("puts", [0, 80])
def test_an_open_unit_of_an_idle_or_stopped_process_does_not_end_the_traffic_of_others(
    tmp_path: Path, stopped: bool, puts: int
) -> None:
    create(tmp_path)
    with (
        penstock.connect("ONE", tmp_path) as qm,
        qm.queue("Q") as queue,
        qm.queue("UNIT") as unit,
        python(OWNER, tmp_path, puts) as owner,
    ):
        hear(owner, "got")
        hear(owner, "open")
        if stopped:
            time.sleep(1)  # its maintenance thread has done what the puts asked for
            stop_at_rest(owner.pid)
        pour(queue, 10)
        until(lambda: qm.status().units == 0, "the unit is backed out")
        assert [message.data for message in unit.browse()] == [b"got"]
        if stopped:
            os.kill(owner.pid, signal.SIGCONT)
        assert end_of(owner) == ["2003", "2003", "0"]
        assert qm.status().journal_bytes <= LIMIT
        text = logged(tmp_path)
        assert f"of process {owner.pid} was backed out, since " in text
    assert [f for f in journal.verify(tmp_path / "ONE") if f["severity"] == "damage"] == []


def test_a_unit_older_than_max_unit_age_is_backed_out_and_its_messages_are_there_for_others(
    tmp_path: Path,
) -> None:
    create(tmp_path, max_unit_age=1)
    with (
        penstock.connect("ONE", tmp_path) as qm,
        qm.queue("UNIT") as queue,
        python(OWNER, tmp_path, 3) as owner,
    ):
        hear(owner, "got")
        hear(owner, "open")
        stop_at_rest(owner.pid)
        message = queue.get(wait=30)
        assert (message.data, message.backout_count) == (b"got", 1)
        os.kill(owner.pid, signal.SIGCONT)
        assert end_of(owner) == ["2003", "2003", "0"]
        assert queue.depth == 0
        assert "since it was older than limits.max_unit_age: 4 messages" in logged(tmp_path)


def test_an_owner_stopped_inside_a_call_keeps_its_unit(tmp_path: Path) -> None:
    create(tmp_path, max_unit_age=1)
    with (
        penstock.connect("ONE", tmp_path) as qm,
        qm.queue("UNIT") as queue,
        python(OWNER, tmp_path, 0) as owner,
    ):
        hear(owner, "got")
        hear(owner, "open")
        say(owner, "wait")
        hear(owner, "waiting")
        until(lambda: queue.status().waiters == 1, "the owner waits")
        os.kill(owner.pid, signal.SIGSTOP)
        time.sleep(3)
        assert qm.status().units == 1
        assert queue.depth == 0
        os.kill(owner.pid, signal.SIGCONT)
        assert hear(owner) == "2033"


def test_the_block_of_a_transaction_ends_with_backed_out_also_when_it_only_closes(
    tmp_path: Path,
) -> None:
    create(tmp_path, max_unit_age=1)
    with penstock.connect("ONE", tmp_path) as watcher, watcher.queue("UNIT") as queue:
        with penstock.connect("ONE", tmp_path) as qm, qm.queue("UNIT") as own:
            too_old = pytest.raises(penstock.BackedOut, match=r"older than limits\.max_unit_age")
            with too_old, qm.transaction() as unit:
                assert own.get().data == b"got"
                until(lambda: watcher.status().units == 0, "the unit is backed out")
                assert unit.count == 1
            with pytest.raises(penstock.BackedOut), qm.transaction():
                own.put(b"never")
                until(lambda: watcher.status().units == 0, "the unit is backed out")
                own.put(b"never")
            with qm.transaction():
                own.put(b"put")
        assert [message.data for message in queue.browse()] == [b"got", b"put"]
        qm = penstock.connect("ONE", tmp_path)
        with qm.queue("UNIT") as own:
            own.put(b"never", syncpoint=True)
            until(lambda: watcher.status().units == 0, "the unit is backed out")
        with pytest.raises(penstock.BackedOut):
            qm.close()
        assert [message.data for message in queue.browse()] == [b"got", b"put"]


def test_a_task_of_asyncio_gets_backed_out_too(tmp_path: Path) -> None:
    create(tmp_path, max_unit_age=1)

    async def work() -> None:
        with penstock.connect("ONE", tmp_path) as qm, qm.queue("UNIT") as queue:
            with pytest.raises(penstock.BackedOut), qm.transaction():
                queue.put(b"never", persistent=True)
                while qm.status().units:
                    await asyncio.sleep(0.05)
            with qm.transaction():
                queue.put(b"put", persistent=True)
            assert [message.data for message in queue.browse()] == [b"got", b"put"]

    asyncio.run(asyncio.wait_for(work(), SECONDS))


def test_mqcmit_of_a_unit_that_was_backed_out_is_a_warning_and_mqback_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(tmp_path, max_unit_age=1)
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    with penstock.connect("ONE", tmp_path) as watcher:
        hconn, _, reason = mqi.MQCONN("ONE")
        assert reason == 0
        for end, expected in ((mqi.MQCMIT, (1, 2003)), (mqi.MQBACK, (0, 0))):
            od, md = mqi.MQOD(ObjectName="UNIT"), mqi.MQMD()
            pmo = mqi.MQPMO(Options=mqi.MQPMO_SYNCPOINT)
            assert mqi.MQPUT1(hconn, od, md, pmo, b"never")[1] == 0
            until(lambda: watcher.status().units == 0, "the unit is backed out")
            assert mqi.MQPUT1(hconn, od, md, pmo, b"never") == (2, 2003)
            assert end(hconn) == expected
        mqi.MQDISC(hconn)

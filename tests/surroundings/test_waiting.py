"""Waiting for messages: whom a stopped or departing waiter holds up."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import penstock
from surroundings import SECONDS, hear, not_possible_here, python

WAITER = """
import sys
import penstock
with penstock.connect("QM1", sys.argv[1]) as qm, qm.queue("Q") as queue:
    limits = [None if limit == "None" else int(limit) for limit in sys.argv[2:]]
    print("open", flush=True)
    for limit in limits:
        try:
            print(queue.get(wait=None, max_length=limit).data.decode(), flush=True)
        except penstock.MQError as error:
            print(error.reason, flush=True)
"""


def until(true: Callable[[], bool], what: str) -> None:
    """Waits for a condition."""
    end = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.005)


def is_stopped(pid: int) -> bool:
    """Whether every thread of the process is stopped."""
    states = [
        Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(") ")[2][0]
        for thread in os.listdir(f"/proc/{pid}/task")
    ]
    return set(states) == {"T"}


@pytest.fixture
def qm(tmp_path: Path) -> Iterator[penstock.QueueManager]:
    """A queue manager with a queue Q; its home is the test's folder."""
    with penstock.connect("QM1", tmp_path, create=True) as qm:
        yield qm


@contextmanager
def waiter(
    queue: penstock.Queue, number: int, home: Path, limit: int | None, gets: int = 2
) -> Iterator[subprocess.Popen[str]]:
    """A process that waits on the queue, listed as its waiter of that number."""
    with python(WAITER, home, *[limit] * gets) as child:
        hear(child, "open")
        until(lambda: queue.status().waiters == number, f"{number} waiters")
        yield child


def test_a_stopped_first_waiter_does_not_delay_the_second(
    qm: penstock.QueueManager, tmp_path: Path
) -> None:
    with (
        qm.queue("Q", defpsist=False) as queue,
        waiter(queue, 1, tmp_path, None) as first,
        waiter(queue, 2, tmp_path, None, gets=1) as second,
    ):
        os.kill(first.pid, signal.SIGSTOP)
        until(lambda: is_stopped(first.pid), "the first waiter is stopped")
        queue.put(b"for whoever runs")
        hear(second, "for whoever runs")
        assert qm.status().woken_by_bound == 0
        assert second.wait(SECONDS) == 0  # the next message has one waiter
        os.kill(first.pid, signal.SIGCONT)
        queue.put(b"for the first")
        hear(first, "for the first")


def test_a_waiter_that_has_no_room_leaves_the_message_to_the_second_at_once(
    qm: penstock.QueueManager, tmp_path: Path
) -> None:
    with (
        qm.queue("Q") as queue,
        waiter(queue, 1, tmp_path, 3) as first,
        waiter(queue, 2, tmp_path, None) as second,
    ):
        queue.put(b"four")
        hear(first, "2080")
        hear(second, "four")
        assert qm.status().woken_by_bound == 0


PUTTER = """
import sys
import penstock
with penstock.connect("QM1", sys.argv[1]) as qm, qm.queue("Q") as queue:
    print("open", flush=True)
    while True:
        queue.put(b"x" * 100, persistent=True)
        queue.get()
"""

FILLER = """
import sys
import penstock
with penstock.connect("QM1", sys.argv[1]) as qm, qm.queue("Q") as queue:
    print("open", flush=True)
    try:
        with qm.transaction():
            try:
                while True:
                    queue.put(b"x" * 60000, persistent=True)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
                raise
    except KeyboardInterrupt:
        pass
"""


def stop_in_a_flush(child: subprocess.Popen[str], queue: penstock.Queue) -> threading.Thread:
    """Stops the child while it leads a flush; the thread that found that waits for the flush."""
    for _ in range(500):
        os.kill(child.pid, signal.SIGSTOP)
        until(lambda: is_stopped(child.pid), "the process is stopped")
        probe = threading.Thread(target=lambda: queue.put(b"probe", persistent=True), daemon=True)
        probe.start()
        probe.join(1)
        if probe.is_alive():
            return probe
        os.kill(child.pid, signal.SIGCONT)
        time.sleep(0.001)
    not_possible_here("the process was never stopped in a flush")


def test_a_process_stopped_in_a_flush_is_named_to_the_only_other_one_that_waits(
    qm: penstock.QueueManager, tmp_path: Path
) -> None:
    with qm.queue("Q") as queue, python(PUTTER, tmp_path) as child:
        hear(child, "open")
        probe = stop_in_a_flush(child, queue)
        log = Path(qm.path) / "errors" / "AMQERR01.LOG"
        until(lambda: "flush lock" in log.read_text(), "the log names the lock")
        line = next(row for row in log.read_text().splitlines() if "flush lock" in row)
        assert f"process {child.pid} (" in line and "kill -CONT" in line
        held = [lock for lock in qm.lock_list() if lock.lock == "flush"]
        assert [lock.pid for lock in held] == [child.pid] and held[0].seconds >= 4
        command = [sys.executable, "-m", "penstock.cli", "status", "QM1"]
        shown = subprocess.run(
            command,
            env={**os.environ, "PENSTOCK_HOME": str(tmp_path), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        ).stdout
        assert f"held up: process {child.pid}" in shown and "flush lock" in shown
        assert probe.is_alive()  # its message is decided: it waits, however long that takes
        os.kill(child.pid, signal.SIGCONT)
        probe.join(SECONDS)
        assert not probe.is_alive()
        until(lambda: not qm.lock_list(), "no lock is held up any more")


def test_control_c_ends_a_put_that_waits_for_room_behind_a_stopped_process(
    tmp_path: Path,
) -> None:
    penstock.create("QM1", tmp_path, ring_size=1 << 20)
    with (
        penstock.connect("QM1", tmp_path) as qm,
        qm.queue("Q") as queue,
        python(PUTTER, tmp_path) as child,
        python(FILLER, tmp_path) as filler,
    ):
        hear(child, "open")
        probe = stop_in_a_flush(child, queue)
        hear(filler, "open")
        until(lambda: qm.status().tail_lsn - qm.status().durable_lsn > 900_000, "a full ring")
        tails = [0, 1]
        while tails[-1] != tails[-2]:  # until the puts wait for room
            time.sleep(0.5)
            tails.append(qm.status().tail_lsn)
        filler.send_signal(signal.SIGINT)
        hear(filler, "interrupted")
        os.kill(child.pid, signal.SIGCONT)
        assert filler.wait(SECONDS) == 0
        probe.join(SECONDS)
        assert not probe.is_alive()


CONNECTOR = """
import signal
import sys
import penstock
signal.signal(signal.SIGINT, lambda *_: print("handled", flush=True))
signal.signal(signal.SIGTERM, signal.default_int_handler)
print("connecting", flush=True)
try:
    penstock.connect("QM1", sys.argv[1])
except KeyboardInterrupt:
    print("interrupted", flush=True)
except penstock.MQError as error:
    print(error.reason, flush=True)
else:
    print("connected", flush=True)
"""


@pytest.mark.parametrize("end", ["the lock is free", "the handler raises"])
def test_signals_are_handled_while_a_connect_waits_for_another_process(
    tmp_path: Path, end: str
) -> None:
    with penstock.connect("QM1", tmp_path, create=True):
        pass  # makes the file `lock`
    with (
        (tmp_path / "QM1" / "lock").open("r+b") as lock,
        python(CONNECTOR, tmp_path) as child,
    ):
        fcntl.lockf(lock, fcntl.LOCK_EX, 1, 0)  # as a process that attaches has it
        hear(child, "connecting")
        until(lambda: "lock" in open_files(child.pid), "the process waits for the file")
        child.send_signal(signal.SIGINT)
        hear(child, "handled")  # and the connect goes on waiting
        if end == "the lock is free":
            fcntl.lockf(lock, fcntl.LOCK_UN, 1, 0)
            hear(child, "connected")
        else:
            child.send_signal(signal.SIGTERM)
            hear(child, "interrupted")


def open_files(pid: int) -> set[str]:
    """The names of the files that a process has open."""
    found = set()
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.add(Path(os.readlink(f"/proc/{pid}/fd/{descriptor}")).name)
        except FileNotFoundError:
            pass  # closed since
    return found

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
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import penstock
from surroundings import SECONDS, hear, not_possible_here, python, say

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


def until(true: Callable[[], bool], what: str, pause: float = 0.005) -> None:
    """Waits for a condition."""
    end = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(pause)


def is_stopped(pid: int) -> bool:
    """Whether every thread of the process is stopped."""
    states = [
        Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(") ")[2][0]
        for thread in os.listdir(f"/proc/{pid}/task")
    ]
    return set(states) == {"T"}


def sleeps(pid: int) -> bool:
    """Whether the first thread of the process sleeps."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "S"


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
with penstock.connect("QM1", sys.argv[1]) as qm, qm.queue("Q") as queue, qm.queue("SMALL") as small:
    print("open", flush=True)
    sys.stdin.readline()
    if sys.argv[2] == "clear":
        qm.clear("CLEARED")
        sys.exit()
    try:
        with qm.transaction():
            try:
                while True:
                    if sys.argv[2] == "0":
                        small.get()
                    else:
                        queue.put(bytes(int(sys.argv[2])), persistent=True)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
                raise
    except KeyboardInterrupt:
        pass
"""
# Bytes of a message; 0: gets, whose records are the shortest but for the first one. All this may
# leave room for one CLEAR or deletion, which would then be decided and wait for the flush.
FILLS = (60000, 2000, 1, 0, "clear")


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


def wait_until_it_waits(qm: penstock.QueueManager, filler: subprocess.Popen[str]) -> None:
    """Returns when nothing enters the journal and the process sleeps."""
    tails = [-3, -2, -1]

    def waits() -> bool:
        del tails[0]
        tails.append(qm.status().tail_lsn)
        return len(set(tails)) == 1 and sleeps(filler.pid)

    until(waits, "nothing enters the journal", pause=0.3)


def start_fillers(
    qm: penstock.QueueManager, home: Path, stack: ExitStack
) -> list[subprocess.Popen[str]]:
    """Processes that fill the ring when they are told to, the longest records first."""
    with qm.queue("SMALL") as small:
        small.put_batch([b"x"] * 100, persistent=True)
    qm.define("qlocal", "CLEARED")
    with qm.queue("CLEARED") as cleared:
        cleared.put(b"x", persistent=True)
    fillers = [stack.enter_context(python(FILLER, home, size)) for size in FILLS]
    for filler in fillers:
        hear(filler, "open")
    return fillers


def fill_the_ring(qm: penstock.QueueManager, fillers: list[subprocess.Popen[str]]) -> None:
    """Behind a process stopped in a flush: until no record finds room, in ring or segment."""
    for filler in fillers:
        say(filler)
        wait_until_it_waits(qm, filler)


def test_control_c_ends_a_unit_of_work_that_waits_for_room_behind_a_stopped_process(
    tmp_path: Path,
) -> None:
    penstock.create("QM1", tmp_path, ring_size=1 << 20)
    with (
        penstock.connect("QM1", tmp_path) as qm,
        qm.queue("Q") as queue,
        python(PUTTER, tmp_path) as child,
        ExitStack() as stack,
    ):
        fillers = start_fillers(qm, tmp_path, stack)
        hear(child, "open")
        probe = stop_in_a_flush(child, queue)
        fill_the_ring(qm, fillers)
        fillers[0].send_signal(signal.SIGINT)
        hear(fillers[0], "interrupted")
        assert fillers[0].wait(SECONDS) == 0  # it has backed out and left
        os.kill(child.pid, signal.SIGCONT)
        probe.join(SECONDS)
        assert not probe.is_alive()


# Each makes its call when it is told to; all that the call changes is made before.
CALLER = """
import sys
import penstock

what = sys.argv[2]
with penstock.connect("QM1", sys.argv[1]) as qm, qm.queue("W." + what) as queue:
    unit = qm.transaction()
    if what == "delete":
        qm.define("qlocal", "W.GONE")
    if what in ("get_batch", "clear"):
        queue.put_batch([b"x"] * 10, persistent=True)
    if what == "clear":
        queue.close()
    if what in ("remote", "remote_batch"):
        qm.define("qlocal", "X." + what, usage="xmitq")
        qm.define("qremote", "R." + what, rname="Q", rqmname="QM2", xmitq="X." + what)
        remote = qm.open("R." + what)
    if what == "resolve":
        with qm.transaction() as before:
            queue.put(b"x", persistent=True)
            before.prepare(penstock.Xid(1, b"resolve"))
    if what in ("commit", "block", "close", "prepare"):
        if what == "close":
            queue.put(b"x", persistent=True, syncpoint=True)
        else:
            unit.__enter__()
            queue.put(b"x", persistent=True)
    calls = {
        "commit": lambda: unit.commit(),
        "block": lambda: unit.__exit__(None, None, None),
        "close": lambda: qm.close(),
        "prepare": lambda: unit.prepare(penstock.Xid(1, b"prepare")),
        "resolve": lambda: qm.commit_prepared(penstock.Xid(1, b"resolve")),
        "put_batch": lambda: queue.put_batch([b"x" * 100] * 1000, persistent=True),
        "get_batch": lambda: queue.get_batch(10),
        "define": lambda: qm.define("qlocal", "W.NEW"),
        "alter": lambda: qm.alter("qlocal", "W.alter", maxdepth=7),
        "delete": lambda: qm.delete("qlocal", "W.GONE"),
        "clear": lambda: qm.clear("W.clear"),
        "checkpoint": lambda: qm.checkpoint(),
        "remote": lambda: remote.put(b"x", persistent=True),
        "remote_batch": lambda: remote.put_batch([b"x"] * 10, persistent=True),
    }
    print("ready", flush=True)
    sys.stdin.readline()
    print("calling", flush=True)
    try:
        calls[what]()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        if what in ("commit", "prepare"):
            unit.backout()
    else:
        print("done", flush=True)
"""
CALLS = (
    "commit",
    "block",
    "close",
    "prepare",
    "resolve",
    "put_batch",
    "get_batch",
    "define",
    "alter",
    "delete",
    "clear",
    "checkpoint",
    "remote",
    "remote_batch",
)


@pytest.fixture(scope="module")
def callers(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Processes that are ready to make a call each, while another is stopped in a flush and the log
    ring is full.
    """
    home = tmp_path_factory.mktemp("callers")
    penstock.create("QM1", home, ring_size=1 << 20)
    with (
        penstock.connect("QM1", home) as qm,
        qm.queue("Q") as queue,
        python(PUTTER, home) as child,
        ExitStack() as stack,
    ):
        for what in CALLS:
            qm.define("qlocal", "W." + what)
        ready = {what: stack.enter_context(python(CALLER, home, what)) for what in CALLS}
        for caller in ready.values():
            hear(caller, "ready")
        fillers = start_fillers(qm, home, stack)
        hear(child, "open")
        probe = stop_in_a_flush(child, queue)
        fill_the_ring(qm, fillers)
        yield ready
        os.kill(child.pid, signal.SIGCONT)
        probe.join(SECONDS)
        assert not probe.is_alive()


@pytest.mark.timeout(40)
@pytest.mark.parametrize("what", CALLS)
def test_control_c_ends_a_call_that_waits_for_a_stopped_process(
    callers: dict[str, subprocess.Popen[str]], what: str
) -> None:
    caller = callers[what]
    say(caller)
    hear(caller, "calling")
    until(lambda: sleeps(caller.pid), "the call waits")
    caller.send_signal(signal.SIGINT)
    hear(caller, "interrupted")
    assert caller.wait(SECONDS) == 0  # nothing of it is left to be waited for


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

"""Several units of work interleaved over threads, against a model; kills; and nothing is left.

A step of the model (unit_model.py) is made by a thread chosen at random.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import Queue, QueueManager, Unit
from unit_model import Driver, check

THREADS = 4


class Threads(Driver):
    """Each call in a thread chosen at random."""

    def __init__(self, qm: QueueManager, seed: int) -> None:
        super().__init__(qm, seed)
        self.threads = [ThreadPoolExecutor(1) for _ in range(THREADS)]

    def call(self, function: Any, *arguments: Any, **named: Any) -> Any:
        """The exception instead of a result."""
        done: Future[Any] = self.random.choice(self.threads).submit(function, *arguments, **named)
        error = done.exception()
        return error if error is not None else done.result()

    def close(self) -> None:
        """The end."""
        super().close()
        for thread in self.threads:
            thread.shutdown()


@pytest.mark.parametrize("seed", range(12))
def test_units_interleaved_over_threads_do_what_the_model_does(home: Path, seed: int) -> None:
    check(home, lambda qm: Threads(qm, seed))


# ---- at the same time ----


class Shared:
    """Units that threads use without asking each other; what became of their puts."""

    def __init__(self, qm: QueueManager, queue: Queue) -> None:
        self.qm, self.queue = qm, queue
        self.lock = threading.Lock()
        self.units = [self.new() for _ in range(3)]
        self.committed: list[list[bytes]] = []
        self.refused = 0

    def new(self) -> tuple[Unit, list[bytes]]:
        """A unit and what was put in it."""
        return self.qm.unit(), []

    def work(self, number: int) -> None:
        """Puts into the units of all, and ends some of them."""
        choose = random.Random(number)
        for step in range(400):
            at = choose.randrange(len(self.units))
            unit, put = self.units[at]
            try:
                if choose.random() < 0.1:
                    commit = choose.random() < 0.5
                    unit.commit() if commit else unit.backout()
                    with self.lock:
                        if commit:  # a put that comes too late is taken out of the list yet
                            self.committed.append(put)
                        self.units[at] = self.new()
                else:
                    body = b"%d.%d" % (number, step)
                    put.append(body)
                    self.put(unit, put, body, b"x" * choose.choice((1, 100_000)))
            except penstock.CallInProgress:
                self.refused += 1
            except penstock.UnitNotAvailable:
                pass

    def put(self, unit: Unit, put: list[bytes], body: bytes, fill: bytes) -> None:
        """A put, noted before; one that has failed is not in the unit."""
        try:
            self.queue.put(fill, correl_id=body, persistent=False, unit=unit)
        except penstock.MQError:
            put.remove(body)
            raise


def test_units_used_by_threads_at_the_same_time_are_whole_or_absent(
    qm: QueueManager, queue: Queue
) -> None:
    shared = Shared(qm, queue)
    threads = [threading.Thread(target=shared.work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for unit, _ in shared.units:
        unit.backout()
    found = [m.correl_id.rstrip(b"\0") for m in queue.browse()]
    assert sorted(found) == sorted(body for put in shared.committed for body in put)
    assert qm.status().units == 0


# ---- kills ----

KILLED = """
import os, random, sys, threading
import penstock
qm = penstock.connect("QM1", sys.argv[1])
taken, made = qm.open("TAKEN"), qm.open("MADE")
choose = random.Random(int(sys.argv[2]))
numbers = iter(range(10**9))
lock = threading.Lock()
def work():
    while True:
        with lock:
            number = next(numbers)
        unit = qm.unit()
        got = taken.get(default=None, unit=unit)
        for part in range(3):
            made.put(b"%d.%d" % (number, part), unit=unit)
        if choose.random() < 0.3:
            with lock:
                kept.append(unit)  # stays open
            continue
        unit.commit()
        os.write(1, b"%d %s\\n" % (number, got.data if got else b"-"))
kept = []
for _ in range(3):
    threading.Thread(target=work).start()
"""


@pytest.mark.parametrize("seed", range(6))
def test_the_units_of_a_killed_process_are_whole_or_backed_out(qm: QueueManager, seed: int) -> None:
    """The process is killed at a random moment, after some of its units were committed."""
    for name in ("TAKEN", "MADE"):
        qm.define("QLOCAL", name, defpsist=True, maxdepth=1_000_000)
    with qm.open("TAKEN") as taken, qm.open("MADE") as made:
        bodies = [b"t%d" % number for number in range(2000)]
        taken.put_batch(bodies)
        arguments = [sys.executable, "-c", KILLED, str(qm.path.parent), str(seed)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            acked = [child.stdout.readline() for _ in range(random.Random(seed).randrange(5, 120))]
            os.kill(child.pid, signal.SIGKILL)
            acked += [line for line in child.stdout.read().splitlines() if b" " in line]
        until = time.monotonic() + 30
        while qm.status().units > 0 and time.monotonic() < until:
            qm.maintain()  # it does nothing while the thread is in a round of its own
        assert qm.status().units == 0
        parts: dict[bytes, list[bytes]] = {}
        for m in made.browse():
            number, part = m.data.split(b".")
            parts.setdefault(number, []).append(part)
        assert all(found == [b"0", b"1", b"2"] for found in parts.values())
        assert {line.split()[0] for line in acked} <= set(parts)
        left = {m.data: m.backout_count for m in taken.browse()}
        gone = {line.split()[1] for line in acked} - {b"-"}
        assert not gone & set(left)
        assert len(left) + len(parts) == len(bodies)  # each unit took one of them
        assert sum(left.values()) > 0


# ---- nothing is left ----


def memory() -> int:
    """Resident bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_100_000_empty_units_take_nothing_of_the_region_and_leave_nothing(
    qm: QueueManager,
) -> None:
    def cycle() -> None:
        units = [qm.unit() for _ in range(100_000)]
        status = qm.status()
        assert (status.contexts, status.units) == before
        for number, unit in enumerate(units):
            unit.commit() if number % 2 else unit.backout()

    status = qm.status()
    before = status.contexts, status.units
    cycle()
    gc.collect()
    blocks, resident = sys.getallocatedblocks(), memory()
    for _ in range(5):
        cycle()
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 500
    assert memory() - resident < 16 << 20


def test_used_units_give_back_what_they_took_of_the_region(qm: QueueManager, queue: Queue) -> None:
    for _ in range(4):
        units = [qm.unit() for _ in range(2000)]
        for unit in units:
            queue.put(b"x", persistent=False, unit=unit)
        assert qm.status().units == 2000
        for unit in units:
            unit.backout()
        status = qm.status()
        assert status.units == 0 and status.contexts < 300
    assert queue.depth == 0


def test_close_ends_100_000_units(home: Path) -> None:
    with penstock.connect("QM1", home, create=True) as keep:
        qm = penstock.connect("QM1", home)
        units = [qm.unit() for _ in range(100_000)]
        with qm.queue("Q") as queue:
            for unit in units[::1000]:
                queue.put(b"x", unit=unit)
        qm.close()
        with keep.open("Q") as queue:
            assert queue.depth == 0
        assert keep.status().units == 0
        with pytest.raises(penstock.BackedOut):
            units[0].commit()

"""Several units of work interleaved over threads, against a model; kills; and nothing is left.

The model is a list of messages a queue, each with what has become of it. A step is made by a thread
chosen at random, one step at a time, so that the model says what each call returns.
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
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import Queue, QueueManager, Unit

STEPS = 500
THREADS = 4
DELAY = 3600.0  # seconds: longer than the test
SLOTS = 6  # units that are open at a time, at most
MAXUMSGS = 8
SMALL = {"segment_size": 1 << 20, "journal_limit": 64 << 20, "ring_size": 1 << 20}


@dataclass
class Stored:
    """A message of the model; `unit`: the slot of the unit that has put or got it."""

    data: bytes
    priority: int
    state: str = "available"  # or delayed: for longer than the test; put, got
    unit: int | None = None
    backouts: int = 0
    delayed: bool = False  # once it is committed
    msg_id: bytes = b""


@dataclass
class Model:
    """The queues by name, their messages in the order of the puts."""

    queues: dict[str, list[Stored]] = field(default_factory=lambda: {"A": [], "B": []})

    def of(self, unit: int) -> list[tuple[str, Stored]]:
        """What is in a unit."""
        return [(q, m) for q, found in self.queues.items() for m in found if m.unit == unit]

    def put(
        self, queue: str, data: bytes, priority: int, unit: int | None, msg_id: bytes | None
    ) -> None:
        """A put; with the MsgId of one that is delayed."""
        state = "put" if unit is not None else "delayed" if msg_id else "available"
        self.queues[queue].append(
            Stored(data, priority, state, unit, delayed=bool(msg_id), msg_id=msg_id or b"")
        )

    def in_order(self, queue: str, *states: str) -> list[Stored]:
        """In the order of delivery; sorted() keeps the order of equal priorities."""
        found = [m for m in self.queues[queue] if m.state in states]
        return sorted(found, key=lambda m: -m.priority)

    def available(self, queue: str) -> list[Stored]:
        """What a get can find."""
        return self.in_order(queue, "available")

    def get(self, queue: str, unit: int | None) -> Stored | None:
        """A get."""
        for m in self.available(queue):
            if unit is None:
                self.queues[queue].remove(m)
            else:
                m.state, m.unit = "got", unit
            return m
        return None

    def end(self, unit: int, commit: bool, delayed: bool = False) -> None:
        """Commit, or backout, with a delay perhaps."""
        for queue, m in self.of(unit):
            if (m.state == "put") == commit:
                m.backouts += not commit
                m.delayed = m.delayed or delayed
                m.state, m.unit = "delayed" if m.delayed else "available", None
            else:
                self.queues[queue].remove(m)

    def cancel(self, queue: str, stored: Stored) -> bool:
        """Of a message that may be delayed; true: it was."""
        found = stored in self.queues[queue] and stored.state == "delayed"
        if found:
            self.queues[queue].remove(stored)
        return found

    def seen(self, queue: str, *states: str) -> list[tuple[bytes, int, int]]:
        """What a browse shows."""
        return [(m.data, m.priority, m.backouts) for m in self.in_order(queue, *states)]


class Driver:
    """Makes steps in the engine and in the model, and compares."""

    def __init__(self, qm: QueueManager, seed: int) -> None:
        self.qm, self.random, self.model = qm, random.Random(seed), Model()
        self.queues: dict[str, Queue] = {name: qm.open(name) for name in ("A", "B")}
        self.threads = [ThreadPoolExecutor(1) for _ in range(THREADS)]
        self.units: dict[int, Unit] = {}
        self.number = 0

    def call(self, function: Any, *arguments: Any, **named: Any) -> Any:
        """In a thread chosen at random; the exception instead of a result."""
        done: Future[Any] = self.random.choice(self.threads).submit(function, *arguments, **named)
        error = done.exception()
        return error if error is not None else done.result()

    def slot(self) -> int | None:
        """A unit that is open, or none."""
        return self.random.choice([None, *self.units, *self.units])

    def room(self, slot: int | None) -> int:
        """Messages that fit into the unit."""
        return 1000 if slot is None else MAXUMSGS - len(self.model.of(slot))

    def begin(self) -> None:
        """A new unit, in a free slot."""
        free = [slot for slot in range(SLOTS) if slot not in self.units]
        if free:
            self.units[free[0]] = self.call(self.qm.unit)

    def put(self) -> None:
        """One put or a batch."""
        slot, queue = self.slot(), self.random.choice("AB")
        priority, count = self.random.randrange(10), self.random.choice((1, 1, 1, 3))
        bodies = [b"%d" % (self.number + i) for i in range(count)]
        self.number += count
        unit = None if slot is None else self.units[slot]
        options = {"priority": priority, "persistent": self.random.random() < 0.5, "unit": unit}
        delay = DELAY if count == 1 and self.random.random() < 0.25 else None
        if count == 1:
            result = self.call(self.queues[queue].put, bodies[0], delay=delay, **options)
        else:
            result = self.call(self.queues[queue].put_batch, bodies, **options)
        if count > self.room(slot):
            assert isinstance(result, penstock.UnitLimitReached), result
            return
        assert not isinstance(result, BaseException), result
        for body in bodies:
            self.model.put(queue, body, priority, slot, result.msg_id if delay else None)

    def cancel(self) -> None:
        """Of a message that is delayed, or was, or is in a unit."""
        queue = self.random.choice("AB")
        known = [m for m in self.model.queues[queue] if m.msg_id]
        if known:
            stored = self.random.choice(known)
            msg_id = stored.msg_id
            expected = self.model.cancel(queue, stored)
            assert self.call(self.queues[queue].cancel, msg_id) is expected
            assert self.call(self.queues[queue].cancel, msg_id) is False

    def get(self) -> None:
        """One get."""
        slot, queue = self.slot(), self.random.choice("AB")
        unit = None if slot is None else self.units[slot]
        result = self.call(self.queues[queue].get, default=None, unit=unit)
        if self.room(slot) == 0 and self.model.available(queue):
            assert isinstance(result, penstock.UnitLimitReached), result
            return
        expected = self.model.get(queue, slot)
        if expected is None:
            assert result is None or self.room(slot) == 0, result
        else:
            assert (result.data, result.priority, result.backout_count) == (
                expected.data, expected.priority, expected.backouts,
            )  # fmt: skip

    def get_batch(self) -> None:
        """A batch of up to three."""
        slot, queue = self.slot(), self.random.choice("AB")
        if self.room(slot) < 3:
            return
        unit = None if slot is None else self.units[slot]
        result = self.call(self.queues[queue].get_batch, 3, unit=unit)
        expected = [m for m in (self.model.get(queue, slot) for _ in range(3)) if m is not None]
        assert [m.data for m in result] == [m.data for m in expected]

    def end(self) -> None:
        """Ends a unit in one of the ways there are."""
        if not self.units:
            return
        slot = self.random.choice(list(self.units))
        unit = self.units.pop(slot)
        way = self.random.choice(
            ("commit", "commit", "backout", "later", "block", "prepare", "drop")
        )
        assert unit.count == len(self.model.of(slot))
        commit = way in ("commit", "block") or (way == "prepare" and self.random.random() < 0.5)
        if way == "block":
            assert self.call(unit.__exit__, None, None, None) is None
        elif way == "prepare":
            xid = penstock.Xid(1, b"%d" % self.number)
            self.number += 1
            assert self.call(unit.prepare, xid, True) is None
            assert not isinstance(
                self.call(self.qm.commit_prepared if commit else self.qm.backout_prepared, xid),
                BaseException,
            )
        elif way == "drop":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                del unit
        elif way == "later":
            assert self.call(unit.backout, delay=DELAY) is None
        else:
            assert self.call(getattr(unit, way)) is None
        self.model.end(slot, commit, delayed=way == "later")

    def compare(self) -> None:
        """What is on the queues."""
        for name, queue in self.queues.items():
            found = [(m.data, m.priority, m.backout_count) for m in queue.browse()]
            assert found == self.model.seen(name, "available")
            found = [(m.data, m.priority, m.backout_count) for m in queue.browse(delayed=True)]
            assert found == self.model.seen(name, "available", "delayed")
            assert queue.status().delayed == len(self.model.in_order(name, "delayed"))

    def run(self, steps: int) -> None:
        """Random steps."""
        ways = [self.put] * 5 + [self.get] * 4 + [self.get_batch, self.begin, self.end]
        ways += [self.cancel]
        for step in range(steps):
            self.random.choice(ways)()
            if step % 50 == 0:
                self.compare()
        for unit in self.units.values():
            unit.backout()
        for slot in list(self.units):
            self.model.end(slot, False)
        self.compare()
        for thread in self.threads:
            thread.shutdown()
        for queue in self.queues.values():
            queue.close()


@pytest.mark.parametrize("seed", range(12))
def test_units_interleaved_over_threads_do_what_the_model_does(home: Path, seed: int) -> None:
    penstock.create("QM1", home, max_uncommitted_messages=MAXUMSGS, **SMALL)
    with penstock.connect("QM1", home) as qm:
        for name in "AB":
            qm.define("QLOCAL", name)
        Driver(qm, seed).run(STEPS)
        qm.check()
        assert qm.status().units == 0


# ---- at the same time ----


class Shared:
    """Units that threads use without asking each other; what became of their puts."""

    def __init__(self, qm: QueueManager, queue: Queue) -> None:
        self.qm, self.queue = qm, queue
        self.lock = threading.Lock()
        self.units = [self.new() for _ in range(3)]
        self.committed: list[bytes] = []
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
                        self.committed += put if commit else []
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
    assert sorted(found) == sorted(shared.committed)
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

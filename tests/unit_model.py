"""A model of units of work, and what makes steps in it and in the engine.

The model is a list of messages a queue, each with what has become of it. One step is made at a
time, so that the model says what each call returns.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import penstock
from penstock import Message

DELAY = 3600.0  # seconds: longer than the test
SLOTS = 6  # units that are open at a time, at most
MAXUMSGS = 8
STEPS = 500
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
    """Makes steps in the engine and in the model, and compares. How a call is made: a subclass."""

    def __init__(self, qm: Any, seed: int) -> None:
        self.qm, self.random, self.model = qm, random.Random(seed), Model()
        self.queues: dict[str, Any] = {name: self.open(name) for name in ("A", "B")}
        self.units: dict[int, Any] = {}
        self.number = 0

    ways = ("commit", "commit", "backout", "later", "block", "prepare", "drop")  # to end a unit

    def open(self, name: str) -> Any:
        """A queue."""
        return self.qm.open(name)

    def leave(self, unit: Any) -> None:
        """The end of a block."""
        assert self.call(unit.__exit__, None, None, None) is None

    def await_dropped(self) -> None:
        """Until a unit that was dropped has ended."""

    def browsed(self, queue: Any, **how: Any) -> list[Message]:
        """What a browse shows."""
        return list(queue.browse(**how))

    def close(self) -> None:
        """The end."""
        for queue in self.queues.values():
            queue.close()

    def call(self, function: Any, *arguments: Any, **named: Any) -> Any:
        """The exception instead of a result."""
        raise NotImplementedError

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
        way = self.random.choice(self.ways)
        assert unit.count == len(self.model.of(slot))
        commit = way in ("commit", "block") or (way == "prepare" and self.random.random() < 0.5)
        if way == "block":
            self.leave(unit)
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
                self.await_dropped()
        elif way == "later":
            assert self.call(unit.backout, delay=DELAY) is None
        else:
            assert self.call(getattr(unit, way)) is None
        self.model.end(slot, commit, delayed=way == "later")

    def compare(self) -> None:
        """What is on the queues."""
        for name, queue in self.queues.items():
            found = [(m.data, m.priority, m.backout_count) for m in self.browsed(queue)]
            assert found == self.model.seen(name, "available")
            found = [
                (m.data, m.priority, m.backout_count) for m in self.browsed(queue, delayed=True)
            ]
            assert found == self.model.seen(name, "available", "delayed")
            assert self.call(queue.status).delayed == len(self.model.in_order(name, "delayed"))

    def run(self, steps: int) -> None:
        """Random steps."""
        ways = [self.put] * 5 + [self.get] * 4 + [self.get_batch, self.begin, self.end]
        ways += [self.cancel]
        for step in range(steps):
            self.random.choice(ways)()
            if step % 50 == 0:
                self.compare()
        for unit in self.units.values():
            assert self.call(unit.backout) is None
        for slot in list(self.units):
            self.model.end(slot, False)
        self.compare()
        self.close()


def check(home: Path, make: Callable[[penstock.QueueManager], Driver]) -> None:
    """Random steps of that driver with a new queue manager, which is sound afterwards."""
    penstock.create("QM1", home, max_uncommitted_messages=MAXUMSGS, **SMALL)
    with penstock.connect("QM1", home) as qm:
        for name in "AB":
            qm.define("QLOCAL", name)
        make(qm).run(STEPS)
        qm.check()
        assert qm.status().units == 0

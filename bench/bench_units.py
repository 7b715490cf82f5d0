"""Units of work as objects: made and ended empty, and with a message, against transactions."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import workloads as w
from conftest import Interleave
from penstock import Queue, QueueManager
from report import Aim

OPEN = 100_000
CALLS = 20_000
BODY = b"x" * 256

Scale = Callable[[int], int]


def make_and_end(qm: QueueManager, count: int) -> float:
    """Seconds for one unit: `count` are open before the first is ended. They take no context."""
    contexts = qm.status().contexts
    begun = time.perf_counter()
    units = [qm.unit() for _ in range(count)]
    made = time.perf_counter() - begun
    status = qm.status()
    w.expect((status.contexts, status.units) == (contexts, 0), "empty units take contexts")
    begun = time.perf_counter()
    for unit in units:
        unit.commit()
    ended = time.perf_counter() - begun
    w.expect(qm.status().units == 0, "units that were ended are open")
    return (made + ended) / count


def put_in_units(qm: QueueManager, queue: Queue, count: int) -> float:
    """Seconds for a unit with one message that is not persistent."""
    begun = time.perf_counter()
    for _ in range(count):
        unit = qm.unit()
        queue.put(BODY, unit=unit)
        unit.commit()
    seconds = time.perf_counter() - begun
    empty(queue, count)
    return seconds / count


def put_in_transactions(qm: QueueManager, queue: Queue, count: int) -> float:
    """The same with transaction()."""
    begun = time.perf_counter()
    for _ in range(count):
        with qm.transaction():
            queue.put(BODY)
    seconds = time.perf_counter() - begun
    empty(queue, count)
    return seconds / count


def empty(queue: Queue, count: int) -> None:
    """Takes what was put, and compares it."""
    batch = queue.get_batch(count)
    w.expect(batch.bodies.tobytes() == BODY * count, "other bodies than those that were put")
    w.expect(queue.depth == 0, "more messages than were put")


def bench_empty_units(interleave: Interleave, files: Path, scale: Scale) -> None:
    """Making and ending an empty unit while 100,000 are open."""
    with w.manager(files) as qm:
        interleave(
            "unit of work: make and end an empty one, 100,000 open",
            {"penstock": lambda: make_and_end(qm, scale(OPEN))},
            [Aim("absolute", 2e-6)],
        )


def bench_units_with_a_message(interleave: Interleave, files: Path, scale: Scale) -> None:
    """One put of 256 bytes in a unit of its own."""
    calls = scale(CALLS)
    with w.manager(files) as qm, w.define(qm, "UNITS", persistent=False) as queue:
        interleave(
            "unit of work with one put of 256 bytes",
            {
                "penstock": lambda: put_in_units(qm, queue, calls),
                "transaction()": lambda: put_in_transactions(qm, queue, calls),
            },
            [Aim("time", 1.1, "transaction()")],
        )

"""Definitions: display and open with many queues defined."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import penstock
import workloads as w
from conftest import Interleave
from penstock import objects
from report import Aim

QUEUES = 100_000
OPENS = 2_000

Scale = Callable[[int], int]


def _define(qm: penstock.QueueManager, count: int) -> None:
    """Defines local queues N0, N1, ... a thousand with each flush."""
    kind = objects.TYPES["QLOCAL"]
    attrs = objects.encode(objects.pruned(kind, objects.parse_all(kind, {"defpsist": True})))
    for start in range(0, count, 1000):
        names = range(start, min(count, start + 1000))
        qm.define_objects([(1, kind.number, f"N{n}", 0, attrs) for n in names])


def _opens(qm: penstock.QueueManager, name: str, count: int) -> float:
    """Median seconds to open a queue and to close it."""
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        qm.open(name).close()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def bench_display(interleave: Interleave, files: Path, scale: Scale) -> None:
    """DISPLAY of every local queue, each with all its attributes."""
    count = scale(QUEUES)
    with w.manager(files) as qm:
        _define(qm, count)

        def display() -> float:
            begun = time.perf_counter()
            shown = qm.display("QLOCAL", "N*")
            taken = time.perf_counter() - begun
            w.expect(len(shown) == count and shown[-1]["defpsist"] is True, "a queue is missing")
            return taken

        interleave(f"display of {count:,} queues", {"penstock": display}, [Aim("absolute", 2.0)], 5)


def bench_open_among_many(interleave: Interleave, files: Path, scale: Scale) -> None:
    """Open and close one queue among many, against the same among few."""
    count, opens = scale(QUEUES), scale(OPENS)
    with w.manager(files / "many") as many, w.manager(files / "few") as few:
        _define(many, count)
        _define(few, 10)
        interleave(
            f"open and close among {count:,} queues",
            {
                "penstock": lambda: _opens(many, "N7", opens),
                "among few": lambda: _opens(few, "N7", opens),
            },
            [Aim("time", 1.5, "among few")],
        )

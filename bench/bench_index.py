"""The priority index against a binary heap of the same keys, both in C, without the queue."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import limits
import workloads as w
from conftest import Interleave
from programs import Program

Scale = Callable[[int], int]
OPERATIONS = ("insert", "pop_insert", "remove_any", "back_out")


@contextmanager
def _index_program() -> Iterator[Program]:
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-", dir=w.REGION_DIRECTORY) as region,
        Program("c_priority_index", region) as program,
    ):
        yield program


@pytest.mark.parametrize("depth", [1_000, 1_000_000])
def bench_heap(interleave: Interleave, scale: Scale, depth: int) -> None:
    """Insert, take the first and insert another, remove any, take and back out; one row for each.

    One round of the test runs all four, so the other operations are stored beside the first and
    reported as separate figures.
    """
    messages = scale(depth)
    count = messages // 2
    rows: dict[str, dict[str, list[float]]] = {
        operation: {"ten-level heap": [], "binary heap": []} for operation in OPERATIONS
    }

    def keep(side: str, times: dict[str, float]) -> float:
        for operation in OPERATIONS:
            rows[operation][side].append(times[operation])
        return sum(times.values())

    with _index_program() as program:

        def ours() -> float:
            values = [float(text) / 1e9 for text in program.ask(f"{messages} {count}").split()]
            return keep("ten-level heap", dict(zip(OPERATIONS, values, strict=True)))

        figure = interleave(
            f"heap of {messages:,} messages, the four operations together",
            {
                "ten-level heap": ours,
                "binary heap": lambda: keep("binary heap", limits.binary_heap(messages, count)),
            },
            [],
            rounds=7,
        )
    for operation, sides in rows.items():
        kept = {side: sorted(times)[len(times) // 2] * 1e9 for side, times in sides.items()}
        figure.notes.append(
            f"{operation:<12}" + ", ".join(f"{side} {ns:.0f} ns" for side, ns in kept.items())
        )

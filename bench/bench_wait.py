"""Request and reply between two processes against two futex words."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

import limits
import workloads as w
from conftest import Interleave
from report import Aim

TRIPS = 2_000

Scale = Callable[[int], int]


def _processors(spread: bool) -> tuple[int, int]:
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[-1] if spread else usable[0]


@pytest.mark.parametrize("where", ["two processors", "one processor"])
def bench_ping_pong(interleave: Interleave, files: Path, scale: Scale, where: str) -> None:
    """Put a request, get the reply with a wait; the other process gets with a wait and replies."""
    ask_on, answer_on = _processors(where == "two processors")
    trips = scale(TRIPS)
    with (
        w.manager(files) as qm,
        w.define(qm, "REQUEST", persistent=False) as requests,
        w.define(qm, "REPLY", persistent=False) as replies,
        w.Crew(w.echo_worker, [(str(files), answer_on)]) as crew,
    ):
        crew.answers()

        def ask() -> float:
            with w.on_processor(ask_on):
                return statistics.median(w.round_trips(requests, replies, trips))

        interleave(
            f"ping-pong of two processes on {where}, median of {trips:,}",
            {
                "penstock": ask,
                "raw futex": lambda: statistics.median(limits.ping_pong(trips, ask_on, answer_on)),
            },
            [Aim("time", 1.3, "raw futex")],
        )
        requests.put(b"")
        w.expect(crew.answers() == ["ended"], "the answering process did not end")
        w.expect(requests.depth == 0 and replies.depth == 0, "messages are left")

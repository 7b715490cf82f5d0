"""Waiting: request and reply between two processes, messages apart, empty queues."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import limits
import penstock
import workloads as w
from conftest import Interleave
from report import Aim

TRIPS = 2_000
SPACED = 1_000
EMPTY = 50_000
# Seconds: what a request and its reply may take.
MEDIAN = {"two processors": 4e-6, "one processor": 4e-6}
TAIL = {"two processors": 15e-6, "one processor": 40e-6}

Scale = Callable[[int], int]


def _processors(spread: bool) -> tuple[int, int]:
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[-1] if spread else usable[0]


Ask = Callable[[], list[float]]


@contextmanager
def _asking(files: Path, trips: int, where: str) -> Iterator[Ask]:
    """A function that makes requests and returns the time of each, sorted, while another process
    gets with a wait and replies.
    """
    ask_on, answer_on = _processors(where == "two processors")
    with (
        w.manager(files) as qm,
        w.define(qm, "REQUEST", persistent=False) as requests,
        w.define(qm, "REPLY", persistent=False) as replies,
        w.Crew(w.echo_worker, [(str(files), answer_on)]) as crew,
    ):
        crew.answers()

        def ask() -> list[float]:
            with w.on_processor(ask_on):
                return sorted(w.round_trips(requests, replies, trips))

        yield ask
        requests.put(b"")
        w.expect(crew.answers() == ["ended"], "the answering process did not end")
        w.expect(requests.depth == 0 and replies.depth == 0, "messages are left")


@pytest.mark.parametrize("where", ["two processors", "one processor"])
def bench_ping_pong(interleave: Interleave, files: Path, scale: Scale, where: str) -> None:
    """Put a request, get the reply with a wait; the other process gets with a wait and replies."""
    ask_on, answer_on = _processors(where == "two processors")
    trips = scale(TRIPS)
    with _asking(files, trips, where) as ask:
        interleave(
            f"ping-pong of two processes on {where}, median of {trips:,}",
            {
                "penstock": lambda: statistics.median(ask()),
                "raw futex": lambda: statistics.median(limits.ping_pong(trips, ask_on, answer_on)),
            },
            [Aim("absolute", MEDIAN[where]), Aim("time", 1.3, "raw futex")],
        )


@pytest.mark.parametrize("where", ["two processors", "one processor"])
def bench_ping_pong_tail(interleave: Interleave, files: Path, scale: Scale, where: str) -> None:
    """The same, one in a hundred."""
    trips = scale(TRIPS)
    with _asking(files, trips, where) as ask:
        interleave(
            f"ping-pong of two processes on {where}, 99th percentile of {trips:,}",
            {"penstock": lambda: ask()[trips * 99 // 100]},
            [Aim("absolute", TAIL[where])],
        )


def bench_messages_apart(interleave: Interleave, files: Path, scale: Scale) -> None:
    """Processor time of a getter for each message, when they come 1 ms apart: no spin pays there.

    The raw side sleeps for as long and gets without a wait.
    """
    count = scale(SPACED)
    echo_on = _processors(spread=True)[1]
    with (
        w.manager(files) as qm,
        w.define(qm, "REQUEST", persistent=False) as requests,
        w.define(qm, "REPLY", persistent=False) as replies,
        w.Crew(w.echo_worker, [(str(files), echo_on)]) as crew,
    ):
        crew.answers()

        def spent(wait: bool) -> float:
            begun = time.process_time()
            for number in range(count):
                time.sleep(0.001)
                requests.put(w.body(number, 32))
                if wait:
                    replies.get(wait=60.0)
            used = time.process_time() - begun
            for _ in range(0 if wait else count):
                replies.get(wait=60.0)
            return used / count

        interleave(
            f"processor time of one of {count:,} requests 1 ms apart",
            {"penstock": lambda: spent(True), "without waiting": lambda: spent(False)},
            [],
        )
        requests.put(b"")
        w.expect(crew.answers() == ["ended"], "the answering process did not end")


def bench_empty_get(interleave: Interleave, files: Path, scale: Scale) -> None:
    """A get that finds nothing: with a default, and with the exception."""
    count = scale(EMPTY)
    with w.manager(files) as qm, w.define(qm, "EMPTY", persistent=False) as queue:

        def with_default() -> float:
            begun = time.perf_counter()
            for _ in range(count):
                queue.get(default=None)
            return (time.perf_counter() - begun) / count

        def with_exception() -> float:
            begun = time.perf_counter()
            for _ in range(count):
                try:
                    queue.get()
                except penstock.NoMessageAvailable:
                    pass
            return (time.perf_counter() - begun) / count

        interleave(
            "a get from an empty queue",
            {"penstock": with_default, "with the exception": with_exception},
            [Aim("absolute", 0.3e-6)],
        )

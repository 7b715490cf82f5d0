"""Batches: many messages a call, against a memcpy loop and against append and flush in C."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import limits
import penstock
import workloads as w
from conftest import Interleave
from limits import get_unit_bytes, put_unit_bytes
from report import Aim

BODY = 256
DESCRIPTOR = 192  # struct ps_descriptor: what a message has beside its body
COUNT = 1_000  # messages a batch
BATCHES = 20  # a round
ROUNDS = 101
UNIT = 100  # messages of a durable batch
UNITS = 50
DURABLE_ROUNDS = 61
RATE = 3e6  # messages a second

Scale = Callable[[int], int]


class Batches:
    """Puts and gets of the same numbered bodies; what came out is compared after the clock."""

    def __init__(self, queue: penstock.Queue, count: int, size: int) -> None:
        self._queue = queue
        self._count = count
        self._bodies = np.frombuffer(
            b"".join(w.body(number, size) for number in range(count)), np.uint8
        )
        self._offsets = np.arange(count + 1, dtype=np.int64) * size

    def run(self, batches: int, timed: str) -> float:
        """Seconds per message of the puts or of the gets of this many batches."""
        put = get = 0.0
        for _ in range(batches):
            begun = time.perf_counter()
            result = self._queue.put_batch((self._bodies, self._offsets))
            between = time.perf_counter()
            got = self._queue.get_batch(self._count)
            get += time.perf_counter() - between
            put += between - begun
            w.expect(result.count == len(got) == self._count, f"{len(got)} of {self._count}")
            w.expect(np.array_equal(got.bodies, self._bodies), "other bodies than were put")
            w.expect(bool((got.descriptors["number"] == result.numbers).all()), "another order")
        w.expect(self._queue.depth == 0, f"{self._queue.depth} messages left")
        return (put if timed == "put" else get) / (batches * self._count)


@pytest.mark.parametrize("way", ["put", "get"])
def bench_batch_in_memory(interleave: Interleave, files: Path, scale: Scale, way: str) -> None:
    """Batches of 1,000 non-persistent messages of 256 bytes, from and to NumPy arrays."""
    batches = scale(BATCHES)
    with w.manager(files) as qm, w.define(qm, "BATCH", persistent=False) as queue:
        both = Batches(queue, COUNT, BODY)
        interleave(
            f"{way}_batch of {COUNT:,}, non-persistent, {BODY} bytes, a message",
            {
                "penstock": lambda: both.run(batches, way),
                "C: memcpy loop": lambda: limits.copy_records(DESCRIPTOR, BODY, COUNT)[
                    way == "get"
                ],
            },
            [Aim("absolute", 1 / RATE, either=Aim("rate", 0.5, "C: memcpy loop"))],
            rounds=ROUNDS,
        )


@pytest.mark.parametrize("way", ["put", "get"])
def bench_batch_durable(interleave: Interleave, files: Path, scale: Scale, way: str) -> None:
    """Batches of 100 persistent messages, each one unit with one flush."""
    units = scale(UNITS)
    payload = put_unit_bytes(UNIT, BODY) if way == "put" else get_unit_bytes(UNIT)
    with (
        w.manager(files) as qm,
        w.define(qm, "DURABLE", persistent=True) as queue,
        limits.RawLog(files / "raw") as log,
    ):
        both = Batches(queue, UNIT, BODY)
        flushes: list[int] = []

        def run() -> float:
            with w.Flushes(files) as counted:
                seconds = both.run(units, way)
            flushes.append(counted.count)
            return seconds

        figure = interleave(
            f"durable {way}_batch of {UNIT}, {BODY} bytes, a message",
            {
                "penstock": run,
                "raw append + flush": lambda: log.append(payload, units) / UNIT,
            },
            [Aim("rate", 0.85, "raw append + flush")],
            rounds=DURABLE_ROUNDS,
        )
    figure.notes.append(
        f"{sum(flushes) / (len(flushes) * units):.2f} flushes a put and get of a batch"
    )

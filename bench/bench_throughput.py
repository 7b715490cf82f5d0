"""Durable units of work of 100 messages: single puts, put and get, random priorities."""

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

UNIT = 100  # messages of a unit of work
UNITS = 20  # a round
ROUNDS = 61
BODY = 1024
SMALL = 256
PRIORITIES = 10
BACKLOG = 100_000  # messages at random priorities
BACKLOG_RATE = 600e3  # messages a second, put and got

RAW = "raw append + flush"
RAW_BODIES = "raw append + flush of the bodies"
Scale = Callable[[int], int]


def put_units(
    qm: penstock.QueueManager, queue: penstock.Queue, bodies: list[bytes], units: int
) -> float:
    """Seconds of so many units, each of which puts all bodies one by one."""
    put = queue.put
    begun = time.perf_counter()
    for _ in range(units):
        with qm.transaction():
            for data in bodies:
                put(data, persistent=True)
    return time.perf_counter() - begun


def get_units(
    qm: penstock.QueueManager, queue: penstock.Queue, bodies: list[bytes], units: int
) -> float:
    """Seconds of so many units, each of which gets all bodies one by one, in order."""
    get = queue.get
    elapsed = 0.0
    for _ in range(units):
        begun = time.perf_counter()
        with qm.transaction():
            got = [get().data for _ in bodies]
        elapsed += time.perf_counter() - begun
        w.expect(got == bodies, "the bodies got are not the bodies put")
    w.expect(queue.depth == 0, f"{queue.depth} messages are left")
    return elapsed


def raw_units(log: limits.RawLog, size: int, units: int) -> float:
    """Seconds a message of the flushes that so many units of puts, then of gets, cannot avoid."""
    puts = log.append(put_unit_bytes(UNIT, size), units)
    return (puts + log.append(get_unit_bytes(UNIT), units)) / UNIT


def bench_single_puts_and_a_commit(interleave: Interleave, files: Path, scale: Scale) -> None:
    """100 puts of 1 KiB and their commit, against the bytes of the bodies alone."""
    units = scale(UNITS)
    bodies = [w.body(number, BODY) for number in range(UNIT)]
    with (
        w.manager(files) as qm,
        w.define(qm, "UNITS", persistent=True) as queue,
        limits.RawLog(files / "raw") as log,
    ):

        def puts() -> float:
            with w.Flushes(files) as counted:
                elapsed = put_units(qm, queue, bodies, units)
            w.expect(counted.count >= units, f"{counted.count} flushes of {units} units")
            get_units(qm, queue, bodies, units)
            return elapsed / (units * UNIT)

        interleave(
            f"{UNIT} puts of 1 KiB and a commit, durable, a message",
            {
                "penstock": puts,
                RAW_BODIES: lambda: log.append(UNIT * BODY, units) / UNIT,
            },
            [Aim("rate", 0.70, RAW_BODIES)],
            rounds=ROUNDS,
        )


@pytest.mark.parametrize("size", [SMALL, BODY])
def bench_put_and_get_in_units(
    interleave: Interleave, files: Path, scale: Scale, size: int
) -> None:
    """Units of 100 puts, then units of 100 gets, against the bytes of both."""
    units = scale(UNITS)
    bodies = [w.body(number, size) for number in range(UNIT)]
    with (
        w.manager(files) as qm,
        w.define(qm, "UNITS", persistent=True) as queue,
        limits.RawLog(files / "raw") as log,
    ):

        def both() -> float:
            puts = put_units(qm, queue, bodies, units)
            return (puts + get_units(qm, queue, bodies, units)) / (units * UNIT)

        interleave(
            f"durable put + get of {size} bytes in units of {UNIT}, a message",
            {"penstock": both, RAW: lambda: raw_units(log, size, units)},
            [Aim("rate", 0.78, RAW)],
            rounds=ROUNDS,
        )


def bench_random_priorities(interleave: Interleave, files: Path, scale: Scale) -> None:
    """100,000 messages at random priorities: put in units of 100, then drained in units of 100."""
    count = scale(BACKLOG) // UNIT * UNIT
    chance = np.random.default_rng(20260101)
    priorities = chance.integers(0, PRIORITIES, count)
    order = np.argsort(-priorities, kind="stable")  # as they must come out
    bodies = [w.body(number, SMALL) for number in range(UNIT)]
    with (
        w.manager(files) as qm,
        w.define(qm, "PRIORITIES", persistent=True) as queue,
        limits.RawLog(files / "raw") as log,
    ):

        def fill_and_drain() -> float:
            numbers: list[int] = []
            got: list[int] = []
            begun = time.perf_counter()
            for at in range(0, count, UNIT):
                result = queue.put_batch(
                    bodies, priority=priorities[at : at + UNIT], persistent=True
                )
                numbers += result.numbers.tolist()
            for _ in range(0, count, UNIT):
                got += queue.get_batch(UNIT).descriptors["number"].tolist()
            elapsed = time.perf_counter() - begun
            expected = np.asarray(numbers)[order].tolist()
            w.expect(got == expected, "messages came in another order than MQ's")
            w.expect(queue.depth == 0, f"{queue.depth} messages are left")
            return elapsed / count

        interleave(
            f"{count:,} messages of {SMALL} bytes at random priorities, in and out, a message",
            {"penstock": fill_and_drain, RAW: lambda: raw_units(log, SMALL, count // UNIT)},
            [Aim("absolute", 1 / BACKLOG_RATE)],
            rounds=5,
        )

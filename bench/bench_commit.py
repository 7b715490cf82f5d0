"""Durable calls: one producer, eight producers, get, mover; each against append and flush in C."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

import limits
import workloads as w
from conftest import Interleave
from limits import BATCH_HEAD, COMMIT_RECORD, RECORD_HEAD, put_record_bytes
from programs import Program, span
from report import Aim

BODY = 1024
CALLS = 100
ROUNDS = 61  # many short rounds: a device's speed drifts within seconds
PRODUCERS = 8
EACH = 50

Scale = Callable[[int], int]


def bench_durable_put(interleave: Interleave, files: Path, scale: Scale) -> None:
    """Persistent put of 1 KiB outside syncpoint, one producer."""
    calls = scale(CALLS)
    with (
        w.manager(files) as qm,
        w.define(qm, "PUTS", persistent=True) as queue,
        limits.RawLog(files / "raw") as log,
    ):
        interleave(
            "durable put of 1 KiB, one producer",
            {
                "penstock": lambda: w.durable_puts(qm, queue, files, BODY, calls),
                "raw append + flush": lambda: log.append(
                    BATCH_HEAD + put_record_bytes(BODY), calls
                ),
            },
            [Aim("rate", 0.90, "raw append + flush")],
            rounds=ROUNDS,
        )


def bench_durable_get(interleave: Interleave, files: Path, scale: Scale) -> None:
    """Get of a persistent message of 1 KiB outside syncpoint: its delete record is flushed."""
    calls = scale(CALLS)
    with (
        w.manager(files) as qm,
        w.define(qm, "GETS", persistent=True) as queue,
        limits.RawLog(files / "raw") as log,
    ):
        interleave(
            "durable get of 1 KiB",
            {
                "penstock": lambda: w.durable_gets(qm, queue, files, BODY, calls),
                "raw append + flush": lambda: log.append(BATCH_HEAD + RECORD_HEAD, calls),
            },
            [Aim("rate", 0.85, "raw append + flush")],
            rounds=ROUNDS,
        )


def bench_mover(interleave: Interleave, files: Path, scale: Scale) -> None:
    """Get and put of 1 KiB in one unit of work: one flush."""
    calls = scale(CALLS)
    payload = BATCH_HEAD + RECORD_HEAD + put_record_bytes(BODY) + COMMIT_RECORD
    with (
        w.manager(files) as qm,
        w.define(qm, "SOURCE", persistent=True) as source,
        w.define(qm, "TARGET", persistent=True) as target,
        limits.RawLog(files / "raw") as log,
    ):
        interleave(
            "mover: get and put of 1 KiB in a unit of work",
            {
                "penstock": lambda: w.moves(qm, source, target, files, BODY, calls),
                "raw append + flush": lambda: log.append(payload, calls),
            },
            [Aim("rate", 0.85, "raw append + flush")],
            rounds=ROUNDS,
        )


def _raw_group(files: Path, processes: bool, each: int) -> Callable[[], float]:
    def run() -> float:
        record = put_record_bytes(BODY)
        return limits.group_commit(files / "group", PRODUCERS, processes, each, record).seconds

    return run


def bench_eight_threads(interleave: Interleave, files: Path, scale: Scale) -> None:
    """Persistent puts of 1 KiB by eight Python threads of one process."""
    each = scale(EACH)
    total = PRODUCERS * each
    flushes: list[int] = []
    with w.manager(files) as qm, w.define(qm, "SHARED", persistent=True) as queue:

        def puts() -> float:
            with w.Flushes(files) as counted:
                seconds = w.thread_puts(queue, PRODUCERS, each, BODY)
            flushes.append(counted.count)
            w.check_producers(w.drain(qm, queue, total), PRODUCERS, each)
            return seconds

        figure = interleave(
            "durable put of 1 KiB, 8 producers, Python threads",
            {"penstock": puts, "raw group commit, threads": _raw_group(files, False, each)},
            [Aim("rate", 0.85, "raw group commit, threads")],
            rounds=31,
        )
    figure.notes.append(f"{len(flushes) * total / sum(flushes):.1f} puts a flush")


def bench_eight_processes(interleave: Interleave, files: Path, scale: Scale) -> None:
    """Persistent puts of 1 KiB by eight Python processes."""
    each = scale(EACH)
    total = PRODUCERS * each
    flushes: list[int] = []
    with w.manager(files) as qm, w.define(qm, "SHARED", persistent=True) as queue:
        jobs = [(str(files), "SHARED", producer, BODY) for producer in range(PRODUCERS)]
        with w.Crew(w.put_worker, jobs) as crew:
            crew.answers()

            def puts() -> float:
                with w.Flushes(files) as counted:
                    seconds = w.process_puts(crew, PRODUCERS, each)
                flushes.append(counted.count)
                w.check_producers(w.drain(qm, queue, total), PRODUCERS, each)
                return seconds

            figure = interleave(
                "durable put of 1 KiB, 8 producers, Python processes",
                {"penstock": puts, "raw group commit, processes": _raw_group(files, True, each)},
                [Aim("rate", 0.85, "raw group commit, processes")],
                rounds=31,
            )
    figure.notes.append(f"{len(flushes) * total / sum(flushes):.1f} puts a flush")


def _c_producers(files: Path, processes: bool) -> list[Program]:
    """Eight producers in C: one program with eight threads, or eight with one."""
    if not processes:
        return [Program("c_producers", files, "SHARED", BODY, 0, PRODUCERS)]
    return [Program("c_producers", files, "SHARED", BODY, n, 1) for n in range(PRODUCERS)]


@pytest.mark.parametrize("kind", ["threads", "processes"])
def bench_eight_c_producers(interleave: Interleave, files: Path, scale: Scale, kind: str) -> None:
    """Persistent puts of 1 KiB by eight producers through the C interface."""
    each = scale(EACH)
    total = PRODUCERS * each
    flushes: list[int] = []
    directory = files / w.NAME
    directory.mkdir(mode=0o700)
    with ExitStack() as stack:
        programs = [
            stack.enter_context(program) for program in _c_producers(directory, kind == "processes")
        ]

        def puts() -> float:
            with w.Flushes(files) as counted:
                seconds = span(programs, f"put {each}") / total
            flushes.append(counted.count)
            programs[0].must(f"drain {PRODUCERS} {each}", "drained")
            return seconds

        figure = interleave(
            f"durable put of 1 KiB, 8 producers, C {kind}",
            {
                "penstock": puts,
                f"raw group commit, {kind}": _raw_group(files, kind == "processes", each),
            },
            [Aim("rate", 0.85, f"raw group commit, {kind}")],
            rounds=31,
        )
    figure.notes.append(f"{len(flushes) * total / sum(flushes):.1f} puts a flush")

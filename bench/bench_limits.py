"""The raw limits by themselves, against each other: what this machine can do. Needs no engine."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from pathlib import Path

import limits
from conftest import Interleave
from limits import BATCH_HEAD, RECORD_HEAD, put_record_bytes, put_unit_bytes

BODY = 1024
APPENDS = 100
PRODUCERS = 8
EACH = 50
TRIPS = 2_000
COPIES = 200_000

Scale = Callable[[int], int]


def bench_limit_of_durable_calls(interleave: Interleave, files: Path, scale: Scale) -> None:
    """Append and flush: a put of 1 KiB, a delete record, and eight producers sharing flushes."""
    appends, each = scale(APPENDS), scale(EACH)
    record = put_record_bytes(BODY)

    def shared(processes: bool) -> float:
        return limits.group_commit(files / "group", PRODUCERS, processes, each, record).seconds

    with limits.RawLog(files / "raw") as log:
        interleave(
            "append + flush",
            {
                "put record of 1 KiB": lambda: log.append(BATCH_HEAD + record, appends),
                "delete record": lambda: log.append(BATCH_HEAD + RECORD_HEAD, appends),
                "16 put records in a batch": lambda: log.append(put_unit_bytes(16, BODY), appends),
                "8 threads sharing flushes": lambda: shared(processes=False),
                "8 processes sharing flushes": lambda: shared(processes=True),
            },
            [],
            rounds=31,
        )


def bench_limit_of_hand_over(interleave: Interleave, scale: Scale) -> None:
    """Round trip between two processes through futex words."""
    usable = sorted(os.sched_getaffinity(0))
    trips = scale(TRIPS)

    def median(ask_on: int, answer_on: int) -> float:
        return statistics.median(limits.ping_pong(trips, ask_on, answer_on))

    interleave(
        "futex ping-pong",
        {
            "on one processor": lambda: median(usable[0], usable[0]),
            "on two processors": lambda: median(usable[0], usable[-1]),
        },
        [],
    )


def bench_limit_of_copies(interleave: Interleave, scale: Scale) -> None:
    """Two robust lock holds and two copies."""
    copies = scale(COPIES)
    interleave(
        "robust lock and copy, twice",
        {
            "16 bytes": lambda: limits.copy_pairs(16, copies),
            "256 bytes": lambda: limits.copy_pairs(256, copies),
            "1 KiB": lambda: limits.copy_pairs(1024, copies),
            "64 KiB": lambda: limits.copy_pairs(65536, copies // 20),
        },
        [],
    )

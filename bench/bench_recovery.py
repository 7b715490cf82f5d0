"""Restart with a backlog, after an orderly end and after a kill; create and first attach."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import limits
import workloads as w
from conftest import Interleave
from report import Aim

BODY = 256
BACKLOG = 1_000_000
INDEX_ENTRY = 128  # bytes that the index may use for a message
FIRST_SEGMENT = 2 << 20
FIRST_REGION = 8 << 20

Scale = Callable[[int], int]


class _Restarts:
    """Restarts of one queue manager, and the limit over the same files."""

    def __init__(self, home: Path, count: int, kill: bool) -> None:
        self._home = home
        self._count = count
        self._kill = kill
        self._region_bytes = 0
        self.read: list[str] = []
        self.first_gets: list[float] = []

    def ours(self) -> float:
        """A restart in a new process; the next one finds it ended or killed again."""
        seconds, self._region_bytes, first = w.restart(self._home, BODY, self._count, self._kill)
        self.first_gets.append(first)
        return seconds

    def limit(self) -> float:
        """The time of the C library for the same files, with the region size of the restart."""
        done = limits.restart(
            self._home / w.NAME,
            w.REGION_DIRECTORY / f"penstock-bench-{self._home.stat().st_ino}",
            self._region_bytes or INDEX_ENTRY * self._count + FIRST_REGION,
            INDEX_ENTRY * self._count,
        )
        self.read.append(f"{done.checkpoint_bytes / 1e6:.0f} + {done.journal_bytes / 1e6:.0f} MB")
        return done.seconds

    def notes(self) -> list[str]:
        """The contents of the files, and the time until the first message was visible."""
        return [
            f"checkpoint + journal read: {', '.join(dict.fromkeys(self.read))}",
            f"region {self._region_bytes / 1e6:.0f} MB",
            f"first message seen after {min(self.first_gets) * 1e3:.0f} ms at best",
        ]


def bench_restart_after_orderly_end(interleave: Interleave, files: Path, scale: Scale) -> None:
    """First attach with a million persistent messages; the last process had left in order."""
    count = scale(BACKLOG)
    w.fill_backlog(files, BODY, count, kill=False)
    restarts = _Restarts(files, count, kill=False)
    figure = interleave(
        f"restart with {count:,} persistent messages after an orderly end",
        {"penstock": restarts.ours, "raw read + allocate + write": restarts.limit},
        [Aim("time", 2.0, "raw read + allocate + write")],
        rounds=7,
    )
    figure.notes += restarts.notes()


def bench_restart_after_kill(interleave: Interleave, files: Path, scale: Scale) -> None:
    """First attach with a million persistent messages; the only process was killed.

    Every round makes the backlog again: a restart may leave a checkpoint behind, which would make
    the next one easier.
    """
    count = scale(BACKLOG)
    restarts = _Restarts(files, count, kill=True)

    def fresh_limit() -> float:
        w.discard(files)
        w.fill_backlog(files, BODY, count, kill=True)
        return restarts.limit()

    try:
        figure = interleave(
            f"restart with {count:,} persistent messages after a kill",
            {"penstock": restarts.ours, "raw read + allocate + write": fresh_limit},
            [Aim("time", 2.0, "raw read + allocate + write")],
            rounds=3,
        )
    finally:
        w.discard(files)
    figure.notes += restarts.notes()


def bench_create_and_first_attach(interleave: Interleave, files: Path) -> None:
    """A new queue manager and the first attach to it, against the files it cannot do without."""
    region = w.REGION_DIRECTORY / f"penstock-bench-{files.stat().st_ino}"
    interleave(
        "create + first attach",
        {
            "penstock": lambda: w.create_and_attach(files),
            "raw files": lambda: limits.create(files / "raw", region, FIRST_SEGMENT, FIRST_REGION),
        },
        [Aim("absolute", 20e-3)],
    )

"""What attached processes cost that do nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Interleave
from programs import Program
from report import Aim

SECONDS = 5
MOST = {64: 0.01, 512: 0.01}  # seconds of processor time a second, of all together

Scale = Callable[[int], int]


@pytest.mark.parametrize("count", sorted(MOST))
def bench_idle_processes(interleave: Interleave, files: Path, scale: Scale, count: int) -> None:
    """Processor time that all attached processes use together while nothing happens."""
    seconds = max(1, scale(SECONDS))
    with tempfile.TemporaryDirectory(dir=files) as folder, Program("c_idle", folder, count) as idle:
        interleave(
            f"processor seconds a second of {count} idle processes",
            {"penstock": lambda: int(idle.ask(f"cpu {seconds}")) / 1e9 / seconds},
            [Aim("absolute", MOST[count])],
            rounds=3,
        )

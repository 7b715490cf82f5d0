"""The soak run can fail: what its verdict says of made-up series, and planted leaks in short runs.

The run itself is ``make soak``.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from flatness import Tolerance, judge, slope, windows

SOAK = Path(__file__).resolve().parent / "soak.py"
MIB = 1 << 20
GROWTH = Tolerance(0.10, 8 * MIB)
RATE = Tolerance(0.35, 50, falling=True)


def noisy(values: list[float], share: float) -> list[float]:
    """The values, each moved at random by up to that share of it."""
    chance = random.Random(7)
    return [value * (1 + share * (chance.random() * 2 - 1)) for value in values]


def test_a_level_series_with_noise_is_flat() -> None:
    verdict = judge(noisy([100.0 * MIB] * 240, 0.2), GROWTH)
    assert verdict.flat
    assert verdict.level == pytest.approx(100 * MIB, rel=0.05)


def test_a_slow_rise_under_noise_is_not_flat() -> None:
    rising = [100.0 * MIB + i * 0.15 * MIB for i in range(240)]
    assert not judge(noisy(rising, 0.05), GROWTH).flat


def test_a_rise_in_the_warm_up_does_not_count() -> None:
    assert judge([i * 2.0 * MIB for i in range(60)] + [120.0 * MIB] * 180, GROWTH).flat


def test_a_sawtooth_is_flat() -> None:
    assert judge([(20.0 + i % 17) * MIB for i in range(240)], GROWTH).flat


def test_a_fall_of_memory_is_flat_and_a_fall_of_the_rate_is_not() -> None:
    falling = [52_000.0 - i * 140 for i in range(240)]
    assert judge(falling, GROWTH).flat
    assert not judge(falling, RATE).flat


def test_a_third_of_wild_windows_does_not_move_the_slope() -> None:
    values = [100.0] * 12
    for i in (1, 5, 8):
        values[i] = 10_000.0
    assert slope(values) == 0


def test_a_run_too_short_for_its_windows_is_an_error() -> None:
    with pytest.raises(ValueError, match="12 windows need one each"):
        windows([1.0] * 12)


@pytest.mark.parametrize(
    ("leak", "series"),
    [("messages", "region"), ("descriptors", "descriptors"), ("memory", "memory")],
)
def test_a_planted_leak_makes_a_short_run_fail(tmp_path: Path, leak: str, series: str) -> None:
    command = [sys.executable, str(SOAK), "--minutes", "0.2", "--home", str(tmp_path)]
    done = subprocess.run(
        [*command, "--leak", leak], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"WRONG: {series} is not flat" in done.stderr
    assert done.stdout.splitlines()[-1].endswith("verdict wrong")

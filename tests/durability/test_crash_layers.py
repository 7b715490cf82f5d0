"""The crash layers that are C programs (tests/crash), run small: disk states, I/O errors, damage.

Each runs to the end of a small count and must find nothing; mutations show that it would.
Their CI sizes are ``make t3 t4 t12``, with sanitizers ``make crash-asan``; all mutations are ``make
mutation``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRASH = ROOT / "tests" / "crash"
BUILD = ROOT / "build" / "crash"
STATES = 20000  # of the disk; most of a run's time goes into what they are states of
SMALL = {"t3": STATES, "t4": 1500, "t12": 61}


def build() -> Path:
    """The folder with the programs."""
    made = subprocess.run(
        ["make", "-s", f"-j{os.cpu_count()}", "-C", str(CRASH), "programs"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr[-4000:]
    return BUILD / "plain"


def run_layer(folder: Path, layer: str, count: int) -> str:
    """The layer's output. Fails when it found a violation."""
    done = subprocess.run(
        [str(folder / f"run_{layer}"), "--count", str(count)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def plain() -> Path:
    """The programs."""
    return build()


@pytest.fixture(scope="module")
def disk_states(plain: Path) -> str:
    """What a run of T3 prints."""
    return run_layer(plain, "t3", STATES)


@pytest.mark.parametrize("layer", SMALL)
def test_a_small_run_of_the_layer_finds_nothing_and_prints_count_seed_and_verdict(
    plain: Path, disk_states: str, layer: str
) -> None:
    printed = disk_states if layer == "t3" else run_layer(plain, layer, SMALL[layer])
    last = printed.splitlines()[-1]
    assert "verdict: all right" in last
    assert re.search(r"seed \d+$", last)
    assert re.search(r"\d{3,} (distinct states|cases) in", last)


def test_every_tearing_size_and_second_and_third_crashes_are_among_the_disk_states(
    disk_states: str,
) -> None:
    for row in (*(f"tearing {n} bytes" for n in (8, 64, 512, 4096)), "second crash", "third crash"):
        counted = re.search(rf"{row} +(\d+) states +(\d+) distinct", disk_states)
        assert counted, row
        assert int(counted[2]) > 100, row


def test_the_same_seed_gives_the_same_states(plain: Path, disk_states: str) -> None:
    again = run_layer(plain, "t3", STATES)
    first, second = (re.findall(r"(\d+) states", printed) for printed in (disk_states, again))
    assert first == second and len(first) > 5


@pytest.mark.parametrize(
    "mutation",
    [
        "the flush is left out",
        "shares a sector",
        "a failed flush is believed",
        "damage in the middle is cut off",
    ],
)
def test_a_mutation_is_caught_by_its_layer(plain: Path, mutation: str) -> None:
    where = ["--root", str(ROOT), "--objects", str(plain)]
    done = subprocess.run(
        [sys.executable, str(CRASH / "mutations.py"), *where, "--only", mutation],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 caught" in done.stdout

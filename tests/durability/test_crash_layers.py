"""The crash layers that are C programs (tests/crash), run small: disk states, I/O errors, damage.

Each runs to the end of a small count and must find nothing; mutations show that it would.
Their CI sizes are ``make t3 t4 t12``; all mutations are ``make -C tests/crash plant``.
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
SMALL = {"t3": 40000, "t4": 1500, "t12": 61}
SMALL_ASAN = {"t3": 1500, "t4": 150, "t12": 1999}


def build(variant: str) -> Path:
    """The folder with the programs of that build."""
    made = subprocess.run(
        ["make", "-s", f"-j{os.cpu_count()}", "-C", str(CRASH), "programs", f"VARIANT={variant}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr[-4000:]
    return BUILD / variant


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
    """Programs of the plain build."""
    return build("plain")


@pytest.fixture(scope="module")
def sanitized() -> Path:
    """Programs built with address and undefined-behaviour sanitizers."""
    return build("asan")


@pytest.mark.parametrize("layer", SMALL)
def test_a_small_run_of_the_layer_finds_nothing_and_prints_count_seed_and_verdict(
    plain: Path, layer: str
) -> None:
    printed = run_layer(plain, layer, SMALL[layer])
    last = printed.splitlines()[-1]
    assert "verdict: all right" in last
    assert re.search(r"seed \d+$", last)
    assert re.search(r"\d{3,} (distinct states|cases) in", last)


@pytest.mark.parametrize("layer", SMALL_ASAN)
def test_the_layer_leaks_nothing_and_touches_nothing_it_must_not(
    sanitized: Path, layer: str
) -> None:
    assert "verdict: all right" in run_layer(sanitized, layer, SMALL_ASAN[layer])


def test_every_tearing_size_and_second_and_third_crashes_are_among_the_disk_states(
    plain: Path,
) -> None:
    printed = run_layer(plain, "t3", 20000)
    for row in (*(f"tearing {n} bytes" for n in (8, 64, 512, 4096)), "second crash", "third crash"):
        counted = re.search(rf"{row} +(\d+) states +(\d+) distinct", printed)
        assert counted, row
        assert int(counted[2]) > 100, row


def test_the_same_seed_gives_the_same_states(plain: Path) -> None:
    first, second = (re.findall(r"(\d+) states", run_layer(plain, "t3", 3000)) for _ in range(2))
    assert first == second


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

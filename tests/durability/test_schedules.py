"""Schedules (T9), run small: pairs of operations of two processes, interleaved at stores.

The run must find nothing; the planted faults are such that one process alone never meets. The CI
size is ``make t9``.
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
PROGRAM = ROOT / "build" / "crash" / "t2" / "schedules"
FAULTS = (
    "a follower sleeps on a value",
    "a waiter that was chosen sleeps on",
    "two resolvers claim one prepared unit",
)


@pytest.fixture(scope="module")
def program() -> Path:
    """The program, built."""
    command = ["make", "-s", f"-j{os.cpu_count()}", "-C", str(CRASH), "-f", "t9.mk", "schedules"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-4000:]
    return PROGRAM


def run(program: Path, *arguments: str) -> str:
    """What it prints. Fails when it found something."""
    done = subprocess.run(
        [str(program), *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def test_a_small_run_finds_nothing_and_nearly_all_of_its_schedules_are_distinct(
    program: Path,
) -> None:
    printed = run(program, "--count", "1500", "--seed", "5")
    found = re.search(
        r"T9: 1500 schedules, (\d+) distinct, (\d+) with a kill, (\d+) switches, 0 failed, seed 5",
        printed,
    )
    assert found, printed
    assert int(found[1]) > 1200
    assert int(found[2]) > 400
    assert int(found[3]) > 1000


def test_a_schedule_is_repeated_by_the_arguments_that_a_failure_prints(program: Path) -> None:
    arguments = ["--first", "put_persistent", "--second", "commit_unit", "--count", "3"]
    arguments += ["--at", "40", "--then", "60", "--ending", "0"]
    assert "3 schedules, 1 distinct" in run(program, *arguments)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_needs_two_processes_is_found(program: Path, fault: str) -> None:
    where = ["--root", str(ROOT), "--objects", str(program.parents[1] / "plain")]
    done = subprocess.run(
        [sys.executable, str(CRASH / "mutations.py"), *where, "--only", fault],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 caught" in done.stdout

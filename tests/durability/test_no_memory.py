"""No memory (T5), run small: allocations of the core, and of calls from Python, fail.

``make t5`` runs all of it.
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


def run(*command: str) -> str:
    """What it prints. Fails when it found something, or was ended by a signal."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


def test_each_allocation_of_the_core_fails_once_and_for_ever_and_nothing_is_lost_or_leaks() -> None:
    made = ["make", "-s", f"-j{os.cpu_count()}", "-C", str(CRASH), "-f", "t5.mk", "no-memory"]
    run(*made)
    printed = run(str(ROOT / "build" / "crash" / "plain" / "no_memory"))
    found = re.search(r"T5: (\d+) failures of (\d+) allocations of the core, 0 failed", printed)
    assert found, printed
    assert int(found[1]) == 2 * int(found[2]) >= 80


@pytest.mark.parametrize("scenario", ["put_get", "transaction", "prepare", "batch"])
def test_a_call_from_python_whose_allocations_fail_raises_and_leaves_nothing_behind(
    scenario: str,
) -> None:
    printed = run(sys.executable, str(CRASH / "python_no_memory.py"), "--only", scenario)
    assert re.search(r"T5: \d+ failures of allocations under Python, 0 failed", printed)

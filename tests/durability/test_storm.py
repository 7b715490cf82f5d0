"""T7 in small: Python processes killed while they work lose nothing and double nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CRASH = Path(__file__).resolve().parent.parent / "crash"
PROGRAM = CRASH / "python_storm.py"


@pytest.mark.timeout(600)  # processes that wait for each other, on a slow and busy machine too
@pytest.mark.parametrize("seed", [1, 2])
def test_killed_python_processes_lose_nothing_and_three_witnesses_agree(seed: int) -> None:
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), "--kills", "15", "--workers", "6", "--seed", str(seed)],
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
        env=dict(os.environ),
    )
    assert ended.returncode == 0, ended.stderr
    assert "T7: 15 kills of 6 Python processes" in ended.stdout
    assert "three witnesses agree" in ended.stdout


@pytest.mark.timeout(600)
def test_reports_copies_and_trigger_messages_are_one_with_what_causes_them() -> None:
    ended = subprocess.run(
        [sys.executable, str(CRASH / "report_storm.py"), "--kills", "25", "--seed", "3"],
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "25 kills" in ended.stdout

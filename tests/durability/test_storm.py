"""T7 in small: Python processes killed while they work lose nothing and double nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CRASH = Path(__file__).resolve().parent.parent / "crash"


@pytest.mark.timeout(600)  # processes that wait for each other, on a slow and busy machine too
@pytest.mark.parametrize(("program", "seed"), [("python", 1), ("python", 2), ("task", 1)])
def test_killed_processes_lose_nothing_and_three_witnesses_agree(program: str, seed: int) -> None:
    command = [sys.executable, str(CRASH / f"{program}_storm.py"), "--kills", "15"]
    ended = subprocess.run(
        [*command, "--workers", "6", "--seed", str(seed)],
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
        env=dict(os.environ),
    )
    assert ended.returncode == 0, ended.stderr
    assert "T7: 15 kills of 6 processes" in ended.stdout
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

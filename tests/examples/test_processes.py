"""Programs of a run: killed with all processes that they have started, and no others."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline_proof import processes
from pipeline_proof.processes import Program, members

FAMILY = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], process_group=0)
print(os.getpid(), child.pid, os.getpgid(child.pid), flush=True)
time.sleep(600)
"""
if sys.version_info < (3, 11):  # process_group came then
    FAMILY = FAMILY.replace("process_group=0", "preexec_fn=lambda: os.setpgid(0, 0)")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Program]:
    def start(text: str) -> Program:
        monkeypatch.setattr(processes, "PROGRAM", (sys.executable, "-c", text))
        return Program(["word"], tmp_path / "output")

    return start


def wait_for(what: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_kill_reaches_what_left_the_process_group_and_spares_others(
    program: Callable[[str], Program],
) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    one = program(FAMILY)
    try:
        wait_for(lambda: one.output.read_text().endswith("\n"))
        leader, child, group = map(int, one.output.read_text().split())
        assert leader == one.process.pid and group == child
        assert sorted(members(leader)) == sorted([leader, child])
        one.kill()
        assert members(leader) == []
        assert one.process.returncode == -9
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("number", [1, 0, -1])
def test_numbers_that_would_mean_everybody_are_refused(
    number: int, program: Callable[[str], Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = program("")
    one.process.wait()
    monkeypatch.setattr(one.process, "pid", number)
    with pytest.raises(AssertionError, match="refusing to kill"):
        one.kill()
    assert members(number) == []


def test_a_program_that_fails_reports_the_reason(program: Callable[[str], Program]) -> None:
    one = program("import sys; sys.exit('the reason')")
    one.process.wait()
    assert not one.is_running
    with pytest.raises(RuntimeError, match=r"word failed, status 1:\nthe reason"):
        one.end()


def test_a_program_that_gets_sigterm_may_end_in_order(program: Callable[[str], Program]) -> None:
    one = program(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    wait_for(lambda: one.output.read_text() == "ready\n")
    one.end()
    assert one.process.returncode == 0

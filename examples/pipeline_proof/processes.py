"""Programs that a run of the pipelines starts, kills and ends.

A program is started as the leader of a new session, so that all processes that it starts in turn,
in whatever process group, can be identified by their session. Only members of that session are
signalled, and never a process whose number is 1 or less.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Program", "members"]

PROGRAM = (sys.executable, "-m", "penstock.spark.pipelines")
SECONDS = 600  # limit for the end of a program after its signal, on a slow machine
_SHOWN = 2000  # characters of the output of one that failed


class Program:
    """One of the pipelines' commands as a process, from its construction on."""

    def __init__(self, words: Sequence[str], output: Path) -> None:
        """``words``: the command and its options. ``output``: where its output is appended."""
        self.words = list(words)
        self.output = output
        with output.open("ab") as file:
            self.process = subprocess.Popen(
                [*PROGRAM, *self.words],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def failed(self, text: str) -> RuntimeError:
        """The error to raise, with the end of its output."""
        said = self.output.read_text(errors="replace")[-_SHOWN:]
        return RuntimeError(f"{text}, status {self.process.returncode}:\n{said}")

    def kill(self) -> None:
        """Kills it and all that it has started, at once."""
        leader = self.process.pid
        if leader <= 1:
            raise AssertionError(f"refusing to kill {leader}")
        end = time.monotonic() + SECONDS
        # it is waited for last: until then its number cannot be reused
        while others := members(leader):
            for number in others:
                _kill_member(number, leader)
            if time.monotonic() > end:
                raise TimeoutError(f"processes {others} do not die")
            time.sleep(0.01)
        self.process.wait()

    def end(self) -> None:
        """Tells it to end. Raises RuntimeError when it does not end in order."""
        if self.is_running:
            self.process.terminate()
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        if self.process.returncode:
            raise self.failed(f"{self.words[0]} failed")


def members(session: int) -> list[int]:
    """Processes of a session that are alive. A leader of 1 or less has none."""
    if session <= 1:
        return []
    found = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [number for number in found if number > 1 and _is_member(number, session)]


def _is_member(number: int, session: int) -> bool:
    try:
        text = Path(f"/proc/{number}/stat").read_text()
    except OSError:  # it has ended
        return False
    state, _, _, of = text.rpartition(")")[2].split()[:4]
    return int(of) == session and state not in "ZX"


def _kill_member(number: int, session: int) -> None:
    """Kills a process if it is still what it was: the descriptor keeps its number from others."""
    try:
        handle = os.pidfd_open(number)
    except ProcessLookupError:
        return
    try:
        if _is_member(number, session):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)

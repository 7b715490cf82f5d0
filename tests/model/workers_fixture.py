"""The engine's side: worker processes on one queue manager, started, killed and called."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from worker import LENGTH, receive, send

SETTINGS = {"segment_size": 1 << 20, "journal_limit": 64 << 20, "ring_size": 1 << 20}
SECONDS = 10  # the longest that one operation may take


class WorkerForker:
    """The process that forks workers."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair()
        self.control.settimeout(SECONDS)
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py")), str(theirs.fileno())],
            stderr=subprocess.DEVNULL,  # it has the warnings about discarded messages
            pass_fds=[theirs.fileno()],
        )
        theirs.close()

    def fork(self, home: Path, name: str) -> tuple[int, socket.socket]:
        """Pid and socket of a new worker."""
        ours, theirs = socket.socketpair()
        request = pickle.dumps((str(home), name))
        socket.send_fds(self.control, [request], [theirs.fileno()])
        theirs.close()
        (pid,) = LENGTH.unpack(self.control.recv(LENGTH.size, socket.MSG_WAITALL))
        ours.settimeout(SECONDS)
        return pid, ours

    def close(self) -> None:
        self.control.close()
        self.process.wait(SECONDS)


class WorkersFixture:
    """Workers by number."""

    def __init__(self, forker: WorkerForker, home: Path, name: str) -> None:
        self.forker, self.home, self.name = forker, home, name
        self.by_number: dict[int, tuple[int, socket.socket]] = {}

    def spawn(self, at: int) -> None:
        self.by_number[at] = self.forker.fork(self.home, self.name)

    def ask(self, at: int, op: dict[str, Any]) -> tuple[int, int, dict[str, Any]]:
        """One operation in a worker."""
        self.post(at, op)
        return receive(self.by_number[at][1])  # type: ignore[no-any-return]

    def post(self, at: int, op: dict[str, Any]) -> None:
        send(self.by_number[at][1], op)

    def leave(self, at: int) -> None:
        """The worker ends as an interpreter does, without MQDISC."""
        self.post(at, {"do": "leave"})
        self._wait_for_end(at)

    def kill(self, at: int) -> None:
        """SIGKILL; when other processes are attached, waits for the cleanup of the worker."""
        pid, _ = self.by_number[at]
        assert pid > 1
        os.kill(pid, signal.SIGKILL)
        self._wait_for_end(at)
        for survivor in self.by_number:
            cc, _, values = self.ask(survivor, {"do": "settle", "pid": pid})
            assert cc == 0, f"a killed process stays: {values}"
            break

    def _wait_for_end(self, at: int) -> None:
        pid, channel = self.by_number.pop(at)
        with contextlib.suppress(EOFError):
            while True:
                receive(channel)
        channel.close()
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:  # the socket goes a little before the process does
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.0002)
        raise AssertionError(f"process {pid} does not end")

    def close(self) -> None:
        for at, (pid, _) in list(self.by_number.items()):
            try:
                self.leave(at)
            except (OSError, AssertionError):  # it does not answer
                assert pid > 1
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

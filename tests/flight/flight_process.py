"""``penstock serve`` as a process of a test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ports import free_port

WAIT_SECONDS = 60


class Process:
    """``penstock serve`` as a process."""

    def __init__(self, home: Path, *arguments: str, listen: str = "") -> None:
        listen = listen or f"127.0.0.1:{free_port()}"
        program = Path(sys.executable).with_name("penstock")
        self.process = subprocess.Popen(
            [program, "serve", "QM1", "--home", home, "--listen", listen, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        self.address = self.said.rpartition(" at ")[2].strip()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(WAIT_SECONDS)

    def end(self) -> str:
        """Ends it in order; what it said on stderr."""
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=WAIT_SECONDS)
        assert self.process.returncode == 0, said
        return said


@contextmanager
def serving(home: Path, *arguments: str, **more: str) -> Iterator[Process]:
    """A server process that is gone afterwards."""
    made = Process(home, *arguments, **more)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.kill()
        for pipe in (made.process.stdout, made.process.stderr):
            if pipe is not None:
                pipe.close()

"""The ``penstock`` command as a process, with its own home."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Command:
    """Runs ``penstock`` with its own home."""

    home: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PENSTOCK_HOME": str(self.home)}

    @contextmanager
    def running(
        self, *arguments: str, stdout: int = subprocess.PIPE
    ) -> Iterator[subprocess.Popen[bytes]]:
        """The command as a process with pipes, which does not outlive the block."""
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", *arguments],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=subprocess.PIPE,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def run(self, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Runs the command to its end."""
        with self.running(*arguments) as process:
            out, err = process.communicate(data, timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def ok(self, *arguments: str, data: bytes = b"") -> bytes:
        """Runs it, demands status 0, returns stdout."""
        done = self.run(*arguments, data=data)
        assert done.returncode == 0, (arguments, done)
        return done.stdout

    def depth(self, queue: str) -> int:
        """CURDEPTH, by way of mqsc."""
        text = self.ok("mqsc", "QM1", f"DISPLAY QLOCAL({queue}) CURDEPTH").decode()
        return int(text.partition("CURDEPTH(")[2].partition(")")[0])

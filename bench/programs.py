"""The C programs on the engine (``c_*.c``): built with the core, driven over standard streams."""

from __future__ import annotations

import subprocess
from pathlib import Path

from limits import BENCH, BUILD, CORE, WrongResult, compile_c

ENGINE_FLAGS = ["-O3", "-flto=auto", "-fvisibility=hidden"]  # as the extension is built


def build(name: str) -> Path:
    """Compiles ``<name>.c`` with the core's sources; gives the program."""
    sources = [BENCH / f"{name}.c", BENCH / "c_engine.c", *sorted(CORE.rglob("*.c"))]
    watched = [*BENCH.glob("*.h"), *CORE.rglob("*.h"), *CORE.rglob("*.def")]
    return compile_c(BUILD / name, sources, ENGINE_FLAGS, watched)


class Program:
    """A running C program that answers a line for each command line."""

    def __init__(self, name: str, *arguments: object) -> None:
        self._name = name
        self._process = subprocess.Popen(
            [str(build(name)), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self.answer() != "ready":
            raise WrongResult(f"{name} did not get ready")

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        code = self._process.wait()
        if code != 0:
            raise WrongResult(f"{self._name} ended with {code}")

    def tell(self, command: str) -> None:
        """Sends a command line."""
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """The next answer; a result that the program found wrong is raised."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise WrongResult(f"{self._name} ended early")
        if line.startswith("wrong:"):
            raise WrongResult(f"{self._name}: {line}")
        return line

    def ask(self, command: str) -> str:
        """Sends a command line and gives its answer."""
        self.tell(command)
        return self.answer()

    def must(self, command: str, expected: str) -> None:
        """Sends a command line whose answer must be `expected`."""
        if (got := self.ask(command)) != expected:
            raise WrongResult(f"{self._name}: {command!r} answered {got!r}")


def span(programs: list[Program], command: str) -> float:
    """Sends a command to all programs at once; seconds from the first begin to the last end."""
    for program in programs:
        program.tell(command)
    stamps = [tuple(map(int, program.answer().split())) for program in programs]
    return (max(end for _, end in stamps) - min(begun for begun, _ in stamps)) / 1e9

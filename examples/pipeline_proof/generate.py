"""Generates log files for users without any: five systems, each in its own format.

The lines are random; the same seed gives the same files.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

__all__ = ["generate"]

_BEGIN = datetime(2026, 3, 1, 6, 0, tzinfo=timezone.utc)
_DAYS = 3  # that the lines of a file are spread over, about
_SHARES = {"FATAL": 1, "ERROR": 6, "WARN": 18, "INFO": 65, "DEBUG": 10}  # percent of the lines
_SAID = {
    "FATAL": ("cannot go on: {word} is gone", "out of memory after {n} MB"),
    "ERROR": ("request {n} failed: {word} refused", "{word} did not answer within {n} ms"),
    "WARN": ("queue of {word} holds {n} entries", "retry {n} of {word}"),
    "INFO": ("served {word} in {n} ms", "{word} joined, {n} members", "saved {n} rows of {word}"),
    "DEBUG": ("cache of {word}: {n} hits",),
}
_WORDS = ("orders", "stock", "mail", "ledger", "search", "prices", "sessions", "images")
Writer = Callable[[datetime, str, str, int], str]


def _coordinator(when: datetime, level: str, text: str, n: int) -> str:
    stamp = f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03d}"
    return f"{stamp} - {level:<5} [Worker-{n % 7}:Session$Keeper@{n % 900}] - {text}"


def _cloud(when: datetime, level: str, text: str, n: int) -> str:
    stamp = f"{when:%Y-%m-%d %H:%M:%S}.{when.microsecond // 1000:03d}"
    said = {"WARN": "WARNING", "FATAL": "CRITICAL"}.get(level, level)
    return f"cloud-api.log {stamp} {2000 + n % 50} {said} cloud.api.server [req-{n:08x}] {text}"


def _compute(when: datetime, level: str, text: str, n: int) -> str:
    return f"{when:%y/%m/%d %H:%M:%S} {level} stage.Runner{n % 4}: {text}"


def _web(when: datetime, level: str, text: str, n: int) -> str:
    said = {"FATAL": "crit"}.get(level, level.lower())
    return f"[{when:%a %b %d %H:%M:%S %Y}] [{said}] [client 192.0.2.{n % 250}] {text}"


def _system(when: datetime, level: str, text: str, n: int) -> str:
    said = "" if level in ("INFO", "DEBUG", "WARN") else f"{level.lower()}: "
    stamp = f"{when:%b} {when.day:2d} {when:%H:%M:%S}"
    return f"{stamp} host{n % 3} keeperd[{3000 + n % 99}]: {said}{text}"


_SYSTEMS: dict[str, Writer] = {
    "coordinator": _coordinator,
    "cloud": _cloud,
    "compute": _compute,
    "web": _web,
    "system": _system,
}


def _lines(writer: Writer, count: int, chance: random.Random) -> Iterator[str]:
    when = _BEGIN
    levels, weights = list(_SHARES), list(_SHARES.values())
    longest = max(2, _DAYS * 2 * 86_400_000 // count)  # milliseconds between two lines
    for _ in range(count):
        when += timedelta(milliseconds=chance.randrange(1, longest))
        level = chance.choices(levels, weights)[0]
        number = chance.randrange(1, 100_000)
        text = chance.choice(_SAID[level]).format(word=chance.choice(_WORDS), n=number)
        yield writer(when, level, text, number)


def generate(folder: Path, lines: int = 2000, seed: int = 1) -> list[Path]:
    """Writes one file for each of the five systems.

    Args:
        folder: The folder for the files; it must exist.
        lines: In each file. The last line of each has no end of line, as in some real files.
        seed: Of the random generator.

    Returns:
        The files.
    """
    chance = random.Random(seed)
    files = []
    for name, writer in _SYSTEMS.items():
        path = folder / f"{name}.log"
        path.write_text("\n".join(_lines(writer, lines, chance)))
        files.append(path)
    return files

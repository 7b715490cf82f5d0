"""Lines counted by ``grep``, independently of the programs whose counts they are compared with."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.spark.pipelines.show import show_rows

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Check", "Checks", "Counts", "WrongCount", "count_by_grep", "show_checks"]

Counts = Mapping[tuple[str, str], int]
"""(format, level) -> lines."""

NOT_BLANK = "[^[:space:]]"
_WORDS = {
    "FATAL": "FATAL|EMERG|ALERT|CRIT|CRITICAL|PANIC",
    "ERROR": "ERROR|SEVERE|ERR",
    "WARN": "WARN|WARNING",
    "NOTICE": "NOTICE",
    "INFO": "INFO|INFORMATION",
    "DEBUG": "DEBUG|FINE",
    "TRACE": "TRACE",
}
_ANY = "|".join(_WORDS.values())
# extended regular expressions; %s stands for the spellings of a level
_LINES = {
    "zookeeper": "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]+,[0-9]+ - (%s) +[[].*[]] - ",
    "openstack": "^([^ ]+ )?[0-9-]{10} [0-9:]{8}[.][0-9]+ [0-9]+ (%s) [[:alnum:]_.-]+ ",
    "spark": "^[0-9]{2}/[0-9]{2}/[0-9]{2} [0-9:]{8} (%s) [^ :]+: ",
    "apache": "^[[][A-Z][a-z][a-z] [^]]*[0-9]{4}[]] [[]([a-z_]*:)?(%s)[0-9]?[]] ",
}
_SYSLOG = "^[A-Z][a-z][a-z] [ 0-9][0-9] [0-9:]{8} [^ ]+ [^] :[]+([[][0-9]+[]])?: "
_NO_WORD = "[^[:alnum:]_]"
_GENERIC = (  # a level anywhere in a line
    f"(^|{_NO_WORD})({_ANY})({_NO_WORD}|$)|[[]({_ANY.lower()})[]]|"
    f'(^|{_NO_WORD})level="?({_ANY.lower()})({_NO_WORD}|$)'
)


class WrongCount(AssertionError):
    """Two counts of the same lines differ; the text names them."""


@dataclass(frozen=True)
class Check:
    """A count: what was counted, the result, the expected number, and its source."""

    what: str
    found: int
    due: int
    by: str

    @property
    def agrees(self) -> bool:
        """Whether the count is the expected one."""
        return self.found == self.due

    def __str__(self) -> str:
        return f"{self.what}: {self.found}; {self.by}: {self.due}"


class Checks(list[Check]):
    """All that was compared, in the order of the comparisons."""

    def add(self, what: str, found: int, due: int, by: str = "grep") -> None:
        """Adds a comparison, right or wrong."""
        self.append(Check(what, found, due, by))

    def add_lines(self, what: str, found: Counts, expected: Counts) -> None:
        """Adds a comparison for each format and level that either has."""
        for key in sorted({*found, *expected}):
            name = f"{what}: {key[0]}, {key[1]}"
            self.add(name, found.get(key, 0), expected.get(key, 0))

    def evaluate(self) -> None:
        """Raises WrongCount naming everything that differs."""
        wrong = [str(check) for check in self if not check.agrees]
        if wrong:
            raise WrongCount("; ".join(wrong))


def _grep(options: str, pattern: str, file: Path | None, text: bytes = b"") -> bytes:
    """The output of grep for lines of the file, or of the text, that match.

    Raises:
        OSError: grep failed.
    """
    done = subprocess.run(
        ["grep", f"-a{options}E", "-e", pattern, "--", "-" if file is None else str(file)],
        input=text,
        capture_output=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode > 1:
        raise OSError(f"grep: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def _count(pattern: str, file: Path) -> int:
    return int(_grep("c", pattern, file))


def count_by_grep(files: Iterable[str | Path]) -> tuple[int, Counts]:
    """Counts lines that are not blank.

    Returns:
        All of them; and by format and level, ``generic`` being those of no known format.
    """
    total = 0
    counts: Counter[tuple[str, str]] = Counter()
    for file in sorted({Path(file).resolve() for file in files}):
        lines = _count(NOT_BLANK, file)
        known = _known(file)
        levels = _generic(file)
        # a line has a level only where it is not an ordinary one
        levels["INFO"] += lines - known.total() - levels.total()
        counts += known
        counts += Counter({("generic", level): n for level, n in levels.items()})
        total += lines
    return total, {key: n for key, n in counts.items() if n}


def _known(file: Path) -> Counter[tuple[str, str]]:
    """Lines of the known formats."""
    counts: Counter[tuple[str, str]] = Counter()
    for level, words in _WORDS.items():
        for name, pattern in _LINES.items():
            counts[name, level] = _count(pattern % _said(name, words), file)
        counts["syslog", level] = _count(f"{_SYSLOG}({words.lower()}): ", file)
    counts["syslog", "INFO"] += _count(_SYSLOG, file) - sum(
        counts["syslog", level] for level in _WORDS
    )
    return counts


def _said(name: str, words: str) -> str:
    return words.lower() if name == "apache" else words


def _generic(file: Path) -> Counter[str]:
    """Levels of lines of unknown format, the first in a line; INFO may be missing."""
    every = "|".join([*(p % _said(name, _ANY) for name, p in _LINES.items()), _SYSLOG])
    others = _grep("v", every, file)
    level_of = {word: level for level, words in _WORDS.items() for word in words.split("|")}
    seen: dict[bytes, str] = {}
    for said in _grep("no", _GENERIC, None, others).split(b"\n")[:-1]:
        number, _, text = said.partition(b":")
        if number not in seen:
            seen[number] = level_of[re.findall("[A-Z]+", text.decode("latin-1").upper())[-1]]
    return Counter(seen.values())


def show_checks(console: Console, checks: Checks) -> None:
    """Prints each count, the expected number, and whether they agree."""
    show_rows(
        console,
        "every count, and what it must be",
        ("counted", "found", "due", "says", ""),
        ((c.what, c.found, c.due, c.by, "" if c.agrees else "DIFFERS") for c in checks),
    )

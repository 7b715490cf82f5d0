"""Lines counted by ``grep``: an answer that owes nothing to the programs it is compared with."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["Counts", "WrongCount", "compare", "count_by_grep"]

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
# extended regular expressions; %s stands for the spellings of a level
_LINES = {
    "zookeeper": "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]+,[0-9]+ - (%s) +[[].*[]] - ",
    "openstack": "^([^ ]+ )?[0-9-]{10} [0-9:]{8}[.][0-9]+ [0-9]+ (%s) [[:alnum:]_.-]+ ",
    "spark": "^[0-9]{2}/[0-9]{2}/[0-9]{2} [0-9:]{8} (%s) [^ :]+: ",
    "apache": "^[[][A-Z][a-z][a-z] [^]]*[0-9]{4}[]] [[]([a-z_]*:)?(%s)[0-9]?[]] ",
}
_SYSLOG = "^[A-Z][a-z][a-z] [ 0-9][0-9] [0-9:]{8} [^ ]+ [^] :[]+([[][0-9]+[]])?: "


class WrongCount(AssertionError):
    """Two counts of the same lines differ; the text says which."""


def _grep(pattern: str, files: list[Path]) -> int:
    """Lines of the files that match.

    Raises:
        OSError: grep failed.
    """
    found = 0
    for file in files:
        done = subprocess.run(
            ["grep", "-acE", "-e", pattern, "--", str(file)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
        if done.returncode > 1:
            raise OSError(f"grep: {done.stderr.strip()}")
        found += int(done.stdout)
    return found


def count_by_grep(files: Iterable[str | Path]) -> tuple[int, Counts]:
    """Counts lines that are not blank.

    Returns:
        All of them; and those of the known formats by format and level. Lines of other formats
        are in the first number only.
    """
    paths = sorted({Path(file).resolve() for file in files})
    counts: Counter[tuple[str, str]] = Counter()
    for level, words in _WORDS.items():
        for name, pattern in _LINES.items():
            said = words.lower() if name == "apache" else words
            counts[name, level] = _grep(pattern % said, paths)
        counts["syslog", level] = _grep(f"{_SYSLOG}({words.lower()}): ", paths)
    # a system's line says a level only when it is not an ordinary one
    counts["syslog", "INFO"] += _grep(_SYSLOG, paths) - sum(
        counts["syslog", level] for level in _WORDS
    )
    return _grep(NOT_BLANK, paths), {key: n for key, n in counts.items() if n}


def compare(what: str, found: Counts, total: int, expected: Counts) -> None:
    """Compares a table's lines with grep's.

    Args:
        what: Of which table they are, for the message.
        found: Lines by format and level; those of ``generic`` make up for what is left of
            ``total``, whatever their level.
        total: Lines that there are.
        expected: Those of known formats.

    Raises:
        WrongCount: They differ.
    """
    known = {key: n for key, n in found.items() if key[0] != "generic"}
    if sum(found.values()) != total:
        raise WrongCount(f"{what} has {sum(found.values())} lines, grep counts {total}")
    for key in sorted({*known, *expected}):
        if known.get(key, 0) != expected.get(key, 0):
            raise WrongCount(
                f"{what} has {known.get(key, 0)} lines of {key[0]} with level {key[1]}, "
                f"grep counts {expected.get(key, 0)}"
            )

"""Formats of log lines, as data: the same table is used by Python and, as SQL, by Spark.

A format is one regular expression with groups in a fixed order, in the common syntax of Python's
``re`` and Java's ``Pattern``, and the notation of its time. The first format that matches a line is
its format; ``generic`` comes last and matches everything.

Terms:
    level     The level in the line, in one of the spellings of ``LEVELS``.
    severity  0 to 9, also the priority of the line's message; 9 is the most severe.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = [
    "DEFAULT_LEVEL",
    "FORMATS",
    "GENERIC",
    "LEVELS",
    "SEVERITY",
    "SPELLINGS",
    "Format",
    "Parsed",
    "parse_line",
    "severity_of",
]

SEVERITY = {
    "FATAL": 9,
    "ERROR": 7,
    "WARN": 6,
    "NOTICE": 4,
    "INFO": 3,
    "DEBUG": 1,
    "TRACE": 0,
}
"""Level -> severity. Lines without a level have that of ``DEFAULT_LEVEL``."""

SPELLINGS = {
    "EMERG": "FATAL",
    "ALERT": "FATAL",
    "CRIT": "FATAL",
    "CRITICAL": "FATAL",
    "PANIC": "FATAL",
    "SEVERE": "ERROR",
    "ERR": "ERROR",
    "WARNING": "WARN",
    "INFORMATION": "INFO",
    "FINE": "DEBUG",
}
"""Other spellings of levels, in upper case -> the level."""

LEVELS = (*SEVERITY, *SPELLINGS)
DEFAULT_LEVEL = "INFO"

_WORDS = "|".join(LEVELS)
_LOWER = _WORDS.lower()
_ALONE = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"  # \b, which is not the same in every Java


@dataclass(frozen=True)
class Format:
    """A format of log lines.

    Attributes:
        name: Value of the table's column ``log_format``.
        pattern: Matches the whole line, without its end. Its level group matches one of ``LEVELS``,
            in upper or in lower case.
        groups: Number of the group of ``time``, ``level``, ``component`` and ``message``; 0: the
            format does not contain it.
        time: Notation of the time: ``iso`` (date and time, blank or T between, fraction after point
            or comma, zone or none), ``yearless`` (as in syslog), or a Spark pattern.
    """

    name: str
    pattern: str
    groups: tuple[int, int, int, int]
    time: str
    compiled: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # ASCII: what Java means by \d, \w and \s
        object.__setattr__(self, "compiled", re.compile(self.pattern, re.ASCII | re.DOTALL))


FORMATS = (
    Format(  # 2015-07-29 17:41:44,747 - WARN  [thread:Class@774] - text
        "zookeeper",
        rf"(\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d,\d+) - ({_WORDS}) +\[(.*?)\] - (.*)",
        (1, 2, 3, 4),
        "iso",
    ),
    Format(  # nova-api.log 2017-05-16 00:00:00.008 25746 INFO nova.module [request] text
        "openstack",
        rf"(?:\S+ )?(\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+) \d+ ({_WORDS}) ([\w.\-]+) (.*)",
        (1, 2, 3, 4),
        "iso",
    ),
    Format(  # 17/06/09 20:10:40 INFO package.Class: text
        "spark",
        rf"(\d\d/\d\d/\d\d \d\d:\d\d:\d\d) ({_WORDS}) ([^\s:]+): (.*)",
        (1, 2, 3, 4),
        "yy/MM/dd HH:mm:ss",
    ),
    Format(  # [Sun Dec 04 04:47:44 2005] [error] text; later versions write [module:error]
        "apache",
        r"\[[A-Z][a-z]{2} ([A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d(?:\.\d+)? \d{4})\] "
        rf"\[(?:(\w*):)?({_LOWER})\d?\] (.*)",
        (1, 3, 2, 4),
        "MMM dd HH:mm:ss[.SSSSSS] yyyy",
    ),
    Format(  # Dec 10 06:55:46 host program[24200]: text; a level only from some programs
        "syslog",
        r"([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) \S+ ([^\s:\[\]]+)(?:\[\d+\])?: "
        rf"((?:({_LOWER}): )?.*)",
        (1, 4, 2, 3),
        "yearless",
    ),
)

GENERIC = Format(  # a time where a line may begin with one; the first word that is a level
    "generic",
    r"(?:\W{0,2}(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+\-]\d\d:?\d\d)?))?"
    rf"(?:.*?(?:{_ALONE[0]}({_WORDS}){_ALONE[1]}|\[({_LOWER})\]|"
    rf"{_ALONE[0]}level=\"?({_LOWER}){_ALONE[1]}))?.*",
    (1, 2, 0, 0),
    "iso",
)
GENERIC_LEVELS = (2, 3, 4)  # its groups of which at most one has matched


@dataclass(frozen=True)
class Parsed:
    """A line's parts as text; None where it has none. ``level`` is one of ``SEVERITY``."""

    format: str
    time: str | None
    level: str
    component: str | None
    message: str


def parse_line(line: bytes | str) -> Parsed:
    """Splits a line, with or without its end of line, into its parts. Never fails."""
    text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    text = text.rstrip("\r\n")
    for form in FORMATS:
        match = form.compiled.fullmatch(text)
        if match:
            time, said, component, message = (match[n] if n else None for n in form.groups)
            return Parsed(form.name, time, _level(said), component or None, message or "")
    match = GENERIC.compiled.fullmatch(text)
    assert match is not None, text
    said = next((match[n] for n in GENERIC_LEVELS if match[n]), None)
    return Parsed(GENERIC.name, match[1], _level(said), None, text)


def _level(said: str | None) -> str:
    """The level of a spelling."""
    word = (said or DEFAULT_LEVEL).upper()
    return SPELLINGS.get(word, word)


def severity_of(line: bytes | str) -> int:
    """The priority with which a line's message is put, 0 to 9."""
    return SEVERITY[parse_line(line).level]

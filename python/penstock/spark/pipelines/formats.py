"""Formats of log lines, as data: the same table is used by Python and, as SQL, by Spark.

A format is one regular expression with groups in a fixed order, in the common syntax of Python's
``re`` and Java's ``Pattern``, and the notation of its time. The first format that matches a line is
its format; ``generic`` comes last and matches everything. More formats come from a file of the user
(user_formats.py).

Terms:
    level     The level in the line, in one of the spellings of ``LEVELS``.
    severity  0 to 9, also the priority of the line's message; 9 is the most severe.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = [
    "DEFAULT_LEVEL",
    "FORMATS",
    "GENERIC",
    "LEVELS",
    "PARTS",
    "SEVERITY",
    "SPELLINGS",
    "TIMES",
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

PARTS = ("time", "level", "component", "message")
TIMES = ("iso", "yearless", "epoch", "epoch_ms")
"""Notations of times that are no patterns of Spark."""

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
        pattern: Matches the whole line, without its end.
        groups: Number of the group of each of ``PARTS``; 0: the format does not contain it. The
            message is then the whole line.
        time: Notation of the time: ``iso`` (date and time, blank or T between, fraction after point
            or comma, zone or none), ``yearless`` (as in syslog), ``epoch`` and ``epoch_ms`` (since
            1970 UTC), or a Spark pattern, in which the year may be missing.
        levels: Spellings of levels that only this format has, in upper case; others are ``LEVELS``.
    """

    name: str
    pattern: str
    groups: tuple[int, int, int, int]
    time: str
    levels: Mapping[str, str] = field(default_factory=dict)
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
    Format(  # 2015-10-18 18:01:47,978 INFO [main] org.apache.hadoop.Class: text
        "hadoop",
        rf"(\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d,\d+) ({_WORDS}) +\[.*?\] ([^\s:]+): (.*)",
        (1, 2, 3, 4),
        "iso",
    ),
    Format(  # 03-17 16:13:38.811  1702  2395 D WindowManager: text
        "android",
        r"(\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) +\d+ +\d+ ([VDIWEFA]) ([^:]*?) *: ?(.*)",
        (1, 2, 3, 4),
        "MM-dd HH:mm:ss.SSS",
        {"V": "TRACE", "D": "DEBUG", "I": "INFO", "W": "WARN", "E": "ERROR", "F": "FATAL",
         "A": "FATAL"},
    ),
    Format(  # - 1117838570 2005.06.03 R02-M1 2005-06-03-15.42.50.675872 R02-M1 RAS KERNEL INFO text
        "bgl",
        r"\S+ \d+ \d{4}\.\d\d\.\d\d \S+ (\d{4}-\d\d-\d\d-\d\d\.\d\d\.\d\d\.\d{6}) \S+ \S+ (\S+) "
        rf"({_WORDS}|FAILURE) ?(.*)",
        (1, 3, 2, 4),
        "yyyy-MM-dd-HH.mm.ss.SSSSSS",
        {"FAILURE": "FATAL"},
    ),
    Format(  # - 1131566461 2005.11.09 dn228 Nov 9 12:01:01 dn228/dn228 crond[2915]: text
        "thunderbird",
        r"\S+ (\d+) \d{4}\.\d\d\.\d\d \S+ [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \S+ "
        rf"(?:([^\s:\[\]]+)(?:\[\d+\])?: )?((?:({_LOWER}): )?.*)",
        (1, 4, 2, 3),
        "epoch",
    ),
)  # fmt: skip

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


def parse_line(line: bytes | str, formats: Sequence[Format] = FORMATS) -> Parsed:
    """Splits a line, with or without its end of line, into its parts. Never fails."""
    text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    text = text.rstrip("\r\n")
    for form in formats:
        match = form.compiled.fullmatch(text)
        if match:
            time, said, component = (match[n] if n else None for n in form.groups[:3])
            level = form.levels.get((said or "").upper()) or _level(said)
            message = match[form.groups[3]] or ""  # group 0 is the line
            return Parsed(form.name, time, level, component or None, message)
    match = GENERIC.compiled.fullmatch(text)
    assert match is not None, text
    said = next((match[n] for n in GENERIC_LEVELS if match[n]), None)
    return Parsed(GENERIC.name, match[1], _level(said), None, text)


def _level(said: str | None) -> str:
    """The level of a spelling."""
    word = (said or DEFAULT_LEVEL).upper()
    level = SPELLINGS.get(word, word)
    return level if level in SEVERITY else DEFAULT_LEVEL


def severity_of(line: bytes | str, formats: Sequence[Format] = FORMATS) -> int:
    """The priority with which a line's message is put, 0 to 9."""
    return SEVERITY[parse_line(line, formats).level]

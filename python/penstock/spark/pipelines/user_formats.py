r"""Formats of log lines from a TOML file, for logs that no built-in format is for.

    [[format]]
    name = "billing"             # of letters, digits, _ . -: the column log_format, and a folder
    pattern = '(?<time>\S+ \S+) (?<level>\w) \[(?<component>.*?)\] (?<message>.*)'
    time = "dd.MM.yyyy HH:mm:ss" # needed with a group time
    [format.levels]              # spellings of this format; others are those of all formats
    I = "INFO"
    X = "FATAL"

The pattern is a regular expression for the whole line, in the syntax that Python and Java share; a
named group may be written ``(?<name>`` or ``(?P<name>``. Groups are time, level, component and
message, each of which may be missing; without a message it is the whole line, and without a level,
or with an unknown one, the level is INFO. The time is ``iso``, ``epoch``, ``epoch_ms``, or a
datetime pattern of Spark; without a year in it the time is in the newest year in which the line is
not from the future. A line has the first format that matches it: those of the file, in their order,
come before the built-in ones.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .formats import FORMATS, GENERIC, PARTS, SEVERITY, TIMES, Format
from .options import OptionError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["all_formats", "load_formats"]

_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,64}\Z")
_KEYS = {"name", "pattern", "time", "levels"}
_GROUP = re.compile(r"(?<!\\)((?:\\\\)*)\(\?P?<([A-Za-z_]\w*)>")
_BACK = re.compile(r"\(\?P=|\\k<")


def all_formats(path: str | Path | None) -> tuple[Format, ...]:
    """The formats of the file, if there is one, and the built-in ones. Raises OptionError."""
    return FORMATS if path is None else (*load_formats(path), *FORMATS)


def load_formats(path: str | Path) -> tuple[Format, ...]:
    """The formats of a file. Raises OptionError: it cannot be read, or something in it is wrong."""
    try:
        document = tomllib.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:  # no TOML and no UTF-8 are ValueErrors
        raise OptionError(f"formats {path}: {error}") from error
    tables = document.pop("format", None)
    if document or not isinstance(tables, list) or not tables:
        raise OptionError(f"formats {path}: a file of formats is a list of tables [[format]]")
    found: list[Format] = []
    for number, table in enumerate(tables, 1):
        name = table.get("name") if isinstance(table, dict) else None
        where = f"formats {path}: format {name or number}"
        try:
            found.append(_format(table))
        except ValueError as error:
            raise OptionError(f"{where}: {error}") from error
        taken = {form.name for form in (*found[:-1], *FORMATS, GENERIC)}
        if found[-1].name in taken:
            raise OptionError(f"{where}: there is a format of that name already")
    return tuple(found)


def _format(table: Any) -> Format:
    """Raises ValueError."""
    if not isinstance(table, dict):
        raise ValueError("it is not a table")
    if unknown := set(table) - _KEYS:
        raise ValueError(f"key {min(unknown)} is unknown; there are {', '.join(sorted(_KEYS))}")
    for key in ("name", "pattern"):
        if not isinstance(table.get(key), str):
            raise ValueError(f"key {key} is missing, or no text")
    if not _NAME.match(table["name"]):
        raise ValueError("a name has 1 to 64 letters, digits, or _ . -")
    pattern, groups = _pattern(table["pattern"])
    time = table.get("time", "")
    if not isinstance(time, str) or bool(time) != bool(groups[0]):
        raise ValueError("a group time and a key time, a text, go together")
    if time and time not in TIMES and not re.search(r"[HhkK]", time):
        raise ValueError(f"time {time!r} is none of {', '.join(TIMES)}, and no pattern with hours")
    return Format(table["name"], pattern, groups, time, _levels(table.get("levels", {})))


def _pattern(text: str) -> tuple[str, tuple[int, int, int, int]]:
    """The pattern with numbered groups, and their numbers."""
    if _BACK.search(text):
        raise ValueError("a pattern has no references to named groups")
    try:
        known = dict(re.compile(_GROUP.sub(r"\1(?P<\2>", text), re.ASCII | re.DOTALL).groupindex)
    except re.error as error:
        raise ValueError(f"the pattern is no regular expression: {error}") from None
    if unknown := set(known) - set(PARTS):
        raise ValueError(f"group {min(unknown)} is unknown; there are {', '.join(PARTS)}")
    time, level, component, message = (known.get(part, 0) for part in PARTS)
    return _GROUP.sub(r"\1(", text), (time, level, component, message)


def _levels(given: Any) -> Mapping[str, str]:
    if not isinstance(given, dict):
        raise ValueError("levels is not a table")
    for word, level in given.items():
        if level not in SEVERITY:
            raise ValueError(f"level {word} is one of {', '.join(SEVERITY)}, not {level!r}")
    return {word.upper(): level for word, level in given.items()}

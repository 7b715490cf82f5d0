"""Splits MQSC text into commands, and keeps the line and position of each character.

Rules ("MQSC" of the MQI reference):

1. A line whose last non-blank character is ``+`` is continued at the first non-blank character of
   the next line, one that ends in ``-`` at column 1 of the next line, inside quotes too.
2. A line with ``*`` in column 1 is a comment. Comments and blank lines are skipped, also within a
   command.
3. A ``;`` outside quotes ends a command, as does the end of a line that is not continued.
4. A line has at most 2048 characters.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

LINE_LENGTH_MAX = 2048
BLANKS = " \t"
_ENDS = re.compile("[';]")


class Location(NamedTuple):
    """The position of a character: line and column, counted from 1."""

    line: int
    column: int


class Source(NamedTuple):
    """The text of one command, and the pieces of lines that it was joined from.

    pieces: (offset in text, line, column) of each one's first character. too_long: the line, and
    how long it is, that breaks rule 4; the text is not to be run then.
    """

    text: str
    pieces: tuple[tuple[int, int, int], ...]
    too_long: tuple[int, int] | None = None

    @property
    def line(self) -> int:
        """The line that the command begins in."""
        return self.pieces[0][1]

    def location(self, at: int) -> Location:
        """The location of the character at an offset; the one behind the end counts too."""
        offset, line, column = next(p for p in reversed(self.pieces) if p[0] <= at or p[0] == 0)
        return Location(line, column + at - offset)


def mark_of(line: str) -> str:
    """``+`` or ``-`` when the command is continued on the next line, else ""."""
    kept = line.rstrip(BLANKS)
    return kept[-1] if kept[-1:] in ("+", "-") and not is_skipped(line) else ""


def is_skipped(line: str) -> bool:
    """Whether a line is a comment or blank."""
    return line.startswith("*") or not line.strip(BLANKS)


def read_commands(lines: Iterable[str], first: int = 1) -> Iterator[Source]:
    """Yields the commands of these lines, each as soon as its last line was read.

    Args:
        lines: with or without line ends.
        first: number of the first line.
    """
    text, mark = "", ""
    pieces: list[tuple[int, int, int]] = []
    too_long: tuple[int, int] | None = None
    for number, raw in enumerate(lines, first):
        line = raw.rstrip("\r\n")
        if is_skipped(line):
            continue
        if len(line) > LINE_LENGTH_MAX:
            too_long = too_long or (number, len(line))
        begin = len(line) - len(line.lstrip(BLANKS)) if mark == "+" else 0
        pieces.append((len(text), number, begin + 1))
        mark = mark_of(line)
        text += line.rstrip(BLANKS)[begin:-1] if mark else line[begin:]
        if not mark:
            yield from _at_semicolons(text, pieces, too_long)
            text, pieces, too_long = "", [], None
    if pieces:
        yield from _at_semicolons(text, pieces, too_long)


def _at_semicolons(
    text: str, pieces: list[tuple[int, int, int]], too_long: tuple[int, int] | None
) -> Iterator[Source]:
    """The commands in one joined line; as one when a line of it is too long."""
    if too_long is not None:
        begin, stop = _extent(text, 0, len(text))
        if begin < stop:
            yield Source(text[begin:stop], _shifted(pieces, begin), too_long)
        return
    offsets = [offset for offset, _, _ in pieces]
    start = 0
    for end in (*_semicolons(text), len(text)):
        begin, stop = _extent(text, start, end)
        if begin < stop:
            # the last piece that begins at or before the command, and those within it
            within = slice(bisect_right(offsets, begin) - 1, bisect_left(offsets, stop))
            yield Source(text[begin:stop], _shifted(pieces[within], begin))
        start = end + 1


def _semicolons(text: str) -> Iterator[int]:
    """The offsets of those outside quotes."""
    quoted = False
    for match in _ENDS.finditer(text):
        if match.group() == "'":
            quoted = not quoted
        elif not quoted:
            yield match.start()


def _extent(text: str, start: int, end: int) -> tuple[int, int]:
    """The part of a text without the blanks around it."""
    part = text[start:end]
    begin = start + len(part) - len(part.lstrip(BLANKS))
    return begin, begin + len(part.strip(BLANKS))


def _shifted(pieces: list[tuple[int, int, int]], begin: int) -> tuple[tuple[int, int, int], ...]:
    """Pieces of the part of a text, with offsets in that part."""
    return tuple(
        (max(offset - begin, 0), line, column + max(begin - offset, 0))
        for offset, line, column in pieces
    )

"""MQSC text to commands, and one command to tokens.

Terms
  command   one or more lines: a line whose last non-blank character is ``+`` goes on at the first
            non-blank of the next line, one that ends in ``-`` at column 1 of the next line. A ``;``
            outside quotes ends a command too.
  comment   a line with ``*`` in column 1; it may stand between the lines of a command.
  token     a word, a quoted string, or one of ``( )``. Blanks and commas separate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LINE_LENGTH_MAX = 2048
_SEPARATORS = " \t\r\n,"
_SPECIAL = _SEPARATORS + "()'"


class SyntaxFault(ValueError):
    """The text is not a command; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word or string with its value, or a bracket. ``spaced``: a separator stands before it."""

    kind: str  # "word", "string", "(" or ")"
    value: str
    column: int
    spaced: bool


def split_commands(lines: Iterable[str]) -> Iterator[str]:
    """Yields the text of each command, continuation lines joined, comments and blank lines left
    out.

    Raises:
        SyntaxFault: a line longer than 2048 characters.
    """
    text = ""
    going_on = ""  # "", "+" or "-": how the line before asked for more
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip("\r\n")
        if len(line) > LINE_LENGTH_MAX:
            raise SyntaxFault(
                f"line {number} has {len(line)} characters, {LINE_LENGTH_MAX} at most"
            )
        if line.startswith("*"):
            continue
        piece = line.lstrip() if going_on == "+" else line
        kept = piece.rstrip()
        going_on = kept[-1:] if kept[-1:] in ("+", "-") else ""
        text += kept[:-1] if going_on else piece
        if not going_on:
            yield from _at_semicolons(text)
            text = ""
    yield from _at_semicolons(text)


def _at_semicolons(text: str) -> Iterator[str]:
    """The commands in one joined line."""
    start = 0
    quoted = False
    for at, character in enumerate(text):
        if character == "'":
            quoted = not quoted
        elif character == ";" and not quoted:
            if text[start:at].strip():
                yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()


def tokens(text: str) -> list[Token]:
    """Takes one command apart.

    Raises:
        SyntaxFault: a quote without its end.
    """
    found: list[Token] = []
    at = 0
    spaced = True
    while at < len(text):
        character = text[at]
        start = at
        if character in _SEPARATORS:
            at += 1
            spaced = True
            continue
        if character in "()":
            at += 1
            found.append(Token(character, character, start + 1, spaced))
        elif character == "'":
            value, at = _quoted(text, at)
            found.append(Token("string", value, start + 1, spaced))
        else:
            while at < len(text) and text[at] not in _SPECIAL:
                at += 1
            found.append(Token("word", text[start:at], start + 1, spaced))
        spaced = False
    return found


def _quoted(text: str, start: int) -> tuple[str, int]:
    """The value of the string that begins at ``start`` and the place behind it."""
    value = ""
    at = start + 1
    while True:
        end = text.find("'", at)
        if end < 0:
            raise SyntaxFault(f"the quote at column {start + 1} has no end")
        value += text[at:end]
        if text[end + 1 : end + 2] != "'":
            return value, end + 1
        value += "'"  # doubled: one quote of the value
        at = end + 2

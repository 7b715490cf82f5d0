"""What the command prints: text in which nothing acts on the terminal.

Names, bodies, programs and errors come from other programs and from files. A terminal obeys
control characters in them (ESC and the C1 controls), and some characters hide or reorder what is
beside them. They are printed as escapes, ``\\x1b``; tables treat no text as markup.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from rich.console import Console

# C0 but tab and newline, DEL, C1, marks and orders of direction, line separators, surrogates
_ACTIVE = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
TABLE_COLUMNS = 200  # of a table that goes to no terminal


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def printable(text: str) -> str:
    """The text with escapes for what a terminal would obey; lines and tabs stay."""
    return _ACTIVE.sub(_escape, text)


def in_line(text: str) -> str:
    """The text as a part of one line: printable, newlines are escaped as well."""
    return printable(text).replace("\n", "\\n")


def printable_bytes(data: bytes) -> bytes:
    """Bytes of anybody for a terminal: what is no UTF-8 is escaped too."""
    return printable(data.decode("utf-8", "backslashreplace")).encode()


def json_text(value: Any) -> str:
    """One line of JSON; what a terminal would obey stands in JSON's own escapes."""
    text = json.dumps(value, ensure_ascii=False)
    return _ACTIVE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def echo(text: str, *, err: bool = False) -> None:
    """Prints one line, whatever the text contains."""
    click.echo(in_line(text), err=err)


def echo_lines(lines: Iterable[str]) -> None:
    """Prints lines, nothing when there are none."""
    text = "\n".join(map(in_line, lines))
    if text:
        click.echo(text)


def descriptor_of(stream: TextIO | None, name: str) -> int:
    """The descriptor of a standard stream. Raises ValueError: it was closed from the beginning
    (``>&-``), and its number may be that of another file by now.
    """
    return _opened(stream, name).fileno()


def _opened(stream: TextIO | None, name: str) -> TextIO:
    if stream is None:
        raise ValueError(f"standard {name} is closed")
    return stream


def pass_on(text: str) -> None:
    """Prints text that other programs read: unchanged, but printable where stdout is a terminal."""
    out = _opened(sys.stdout, "output")
    out.write(f"{printable(text) if out.isatty() else text}\n")


def table_console(**options: Any) -> Console:
    """The console for tables: stdout, as wide as the terminal, or 200 columns elsewhere."""
    from rich.console import Console as RichConsole

    class Terminal(RichConsole):
        """Every str that rich renders passes here: cells, titles, printed text."""

        def render_str(self, text: str, **how: Any) -> Any:
            return super().render_str(printable(text), **{**how, "markup": False, "emoji": False})

    console = Terminal(**options)
    return console if console.is_terminal else Terminal(width=TABLE_COLUMNS, **options)

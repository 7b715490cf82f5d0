"""Tables of results for users."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from rich.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from rich.console import Console

    from .audit import Audit

__all__ = ["show_audit", "show_rows"]


def show_rows(
    console: Console, title: str, heads: Iterable[str], rows: Iterable[Iterable[Any]]
) -> None:
    """Prints a table; numbers stand on the right."""
    table = Table(title=title, title_justify="left")
    listed = [list(row) for row in rows]
    for number, head in enumerate(heads):
        is_number = all(isinstance(row[number], int | float | None) for row in listed)
        table.add_column(head, justify="right" if listed and is_number else "left")
    for row in listed:
        table.add_row(*(_text(value) for value in row))
    console.print(table)


def show_audit(console: Console, found: Audit, rows: int) -> None:
    """Prints an audit's tables, at most that many rows of each but the first."""
    _show(console, "queues: messages, bytes, and seconds from put to get", found.queues, None)
    _show(console, "who put most", found.putters, rows)
    _show(console, "units of work that were backed out", found.backed_out, rows)
    _show(console, "messages that were never taken", found.never_got, rows)
    _show(console, "parts of the journal that could not be read", found.gaps, rows)


def _show(console: Console, title: str, frame: DataFrame, rows: int | None) -> None:
    found = frame.collect() if rows is None else frame.limit(rows).collect()
    if not found:
        console.print(f"{title}: none")
        return
    show_rows(console, title, frame.columns, found)


def _text(value: Any) -> str:
    """A value as text for users."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.3f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, datetime):
        return f"{value.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)

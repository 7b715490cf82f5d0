"""What a queue manager's ledger knows of streams, sinks and batch writes: shown, and forgotten.

Works without PySpark.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.cli.common import NOTHING, count_of, fail
from penstock.cli.terminal import echo, json_text, printable, table_console

from ..base.ledger import ledger
from ..source.ledger_rows import ledger_rows, state_of

if TYPE_CHECKING:
    from rich.table import Table

    import penstock

__all__ = ["run"]

DAY = 86_400.0
COLUMNS = ("kind", "id", "queue", "committed", "changed", "state")


def chosen(
    rows: list[dict[str, Any]], names: tuple[str, ...], older_than: float | None
) -> list[dict[str, Any]]:
    """What is to be forgotten. The command ends when a name is not there, or is still needed."""
    if older_than is not None:
        oldest = time.time() - older_than * DAY
        return [row for row in rows if row["time"] < oldest and not reason_to_keep(row)]
    found = [row for row in rows if row["id"] in names]
    missing = sorted(set(names) - {row["id"] for row in found})
    if missing:
        fail(f"the ledger has no entry of {', '.join(missing)}; nothing was done")
    for row in found:
        if reason := reason_to_keep(row):
            fail(f"{row['kind']} {row['id']} {reason}; nothing was done")
    return found


def reason_to_keep(row: dict[str, Any]) -> str:
    """Why its entry is needed; nothing when it is not."""
    if row["running"]:
        return "is running"
    if row["prepared"]:
        return f"has left {count_of(row['prepared'], 'unit')} of work: end them (penstock resolve)"
    return ""


def table(rows: list[dict[str, Any]]) -> Table:
    """One line an entry."""
    from rich.table import Table

    shown = Table(*COLUMNS, box=None, pad_edge=False)
    for row in rows:
        changed = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(row["time"]))
        done = row.get("unit", row.get("version", ""))
        cells = (row["kind"], row["id"], row.get("queue", ""), done, changed, state_of(row))
        shown.add_row(*(printable(str(cell)) for cell in cells))
    return shown


def show(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Prints them: a table, or one JSON object a line."""
    if as_json:
        for row in rows:
            echo(json_text(row))
    elif rows:
        table_console().print(table(rows))


def forget(manager: penstock.QueueManager, rows: list[dict[str, Any]]) -> None:
    """Removes entries, and says which."""
    for row in rows:
        with ledger(manager) as book:
            book.remove(f"{row['kind']}:{row['id']}")
        echo(f"forgotten: {row['kind']} {row['id']}")


def run(
    manager: penstock.QueueManager,
    names: tuple[str, ...],
    older_than: float | None,
    confirm: Callable[[str], object],
    as_json: bool,
) -> int:
    """The command; its status. confirm: asks, and raises when the answer is no."""
    rows = ledger_rows(manager)
    if not names and older_than is None:
        show(rows, as_json)
        return 0 if rows else NOTHING
    found = chosen(rows, names, older_than)
    if found:
        confirm(
            printable(f"Forget {len(found)} of {len(rows)} entries of {manager.name}'s ledger?")
        )
        forget(manager, found)
    return 0 if found else NOTHING

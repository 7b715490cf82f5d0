"""``penstock journal``"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .common import directory_of, fail, manager_argument
from .terminal import echo, json_text, table_console


def record_text(record: dict[str, Any]) -> str:
    """One record as a line for users."""
    parts = [f"{record['lsn']:>14}", f"{record['type']:<14}", f"unit {record['unit']:<8}"]
    if record.get("queue") or record["object"]:
        parts.append(str(record.get("queue") or f"object {record['object']}"))
    if record["identity"]:
        parts.append(f"message {record['identity']}")
    descriptor = record.get("descriptor")
    if descriptor:
        parts.append(f"priority {descriptor['priority']}")
    if "body_length" in record:
        parts.append(f"{record['body_length']} bytes")
    if "xid" in record:
        parts.append(f"as {record['xid']}")
    if "units" in record:
        parts.append("units " + ", ".join(map(str, record["units"])))
    if record["commits"]:
        parts.append("commits")
    return "  ".join(parts)


def show_segments(directory: Path) -> None:
    """A table of the segment files."""
    from rich.table import Table

    from penstock import journal

    table = Table(title=f"journal of {directory.name}", title_justify="left")
    for heading in ("file", "base LSN", "end LSN", "size", "used", "batches", "records", "created"):
        table.add_column(heading, justify="left" if heading in ("file", "created") else "right")
    for s in journal.describe_segments(directory):
        numbers = (s[k] for k in ("base_lsn", "end_lsn", "size", "used", "batches", "records"))
        table.add_row(s["file"], *(f"{n:,}" for n in numbers), str(s["created"])[:19])
    table_console().print(table)


@click.command("journal")
@manager_argument
@click.option("--json", "as_json", is_flag=True, help="One JSON object a record.")
@click.option("--segments", is_flag=True, help="A table of the segment files instead of records.")
def command(qm: str, home: Path | None, as_json: bool, segments: bool) -> None:
    """List the records of QM's journal, oldest first, as the second, independent reader sees them.

    Reads files only: works whether the queue manager runs or not, and never starts it.
    """
    from penstock import journal

    directory = directory_of(qm, home)
    try:
        if segments:
            if as_json:
                echo(json_text(journal.describe_segments(directory)))
            else:
                show_segments(directory)
            return
        for record in journal.iter_record_dicts(directory):
            echo(json_text(record) if as_json else record_text(record))
    except journal.DamagedFile as error:
        fail(f"{error}; `penstock verify {qm}` says more")

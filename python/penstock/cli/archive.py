"""``penstock archive``"""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import click

from .common import count_of, directory_of, fail, manager_argument
from .terminal import echo, json_text, table_console


def moment_of(text: str) -> datetime:
    """An ISO 8601 date or date and time, in UTC unless it has an offset."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is no date such as 2026-03-01 or 2026-03-01T12:00:00"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def show(directory: Path, as_json: bool) -> None:
    """The archived segments, oldest first."""
    from rich.table import Table

    from penstock.journal import archive

    found = archive.segments(directory)
    if as_json:
        rows = [
            {
                "file": str(segment.file),
                "segment": segment.number,
                "size": segment.size,
                "first": segment.first and segment.first.isoformat(),
                "last": segment.last and segment.last.isoformat(),
            }
            for segment in found
        ]
        echo(json_text(rows))
        return
    table = Table(title=f"archive of {directory.name}", title_justify="left")
    for heading in ("file", "size", "first", "last"):
        table.add_column(heading, justify="right" if heading == "size" else "left")
    for segment in found:
        times = (str(moment or "")[:19] for moment in (segment.first, segment.last))
        table.add_row(segment.file.name, f"{segment.size:,}", *times)
    table_console().print(table)


@click.command("archive")
@manager_argument
@click.option("--list", "listing", is_flag=True, help="List the segments (the default).")
@click.option("--json", "as_json", is_flag=True, help="The list as JSON.")
@click.option(
    "--prune-before",
    metavar="WHEN",
    help="Remove segments that hold nothing from that date or time (UTC) on. They are gone then.",
)
def command(
    qm: str, home: Path | None, listing: bool, as_json: bool, prune_before: str | None
) -> None:
    """List or prune the journal segments that QM, with linear logging, has archived.

    Works on files only, whether the queue manager runs or not.
    """
    from penstock.journal import DamagedFile, archive

    directory = directory_of(qm, home)
    try:
        if prune_before is not None:
            removed = archive.prune(directory, moment_of(prune_before))
            size = sum(segment.size for segment in removed)
            echo(f"{count_of(len(removed), 'segment')} removed, {size:,} bytes")
        if listing or as_json or prune_before is None:
            show(directory, as_json)
    except DamagedFile as error:
        fail(str(error))

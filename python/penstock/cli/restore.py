"""``penstock restore``"""

from __future__ import annotations

from pathlib import Path

import click

from .archive import moment_of
from .backup import byte_progress
from .common import count_of, home_option, show_warnings
from .terminal import echo


@click.command("restore")
@click.argument("path", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--as", "name", metavar="NAME", help="The new queue manager's name, if another one.")
@click.option(
    "--to",
    "moment",
    metavar="WHEN",
    help="Up to that date or time (UTC), or LSN, by what was logged after the copy.",
)
@click.option(
    "--archive",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="With --to: the directory of the queue manager that was copied.",
)
@home_option
def command(
    path: Path, name: str | None, home: Path | None, moment: str | None, archive: Path | None
) -> None:
    """Make a new queue manager of the copy in the directory PATH: of a backup, or of files that
    were copied while nobody was connected.

    It has an identity and a timeline of its own, so that it and the original may both be used. The
    copy is verified first, and not changed.

    With --to and --archive the copy is continued by the archive of linear logging, and by what is
    still in the journal.
    """
    from penstock.client.restore import restore

    show_warnings()
    to = None if moment is None else int(moment) if moment.isdecimal() else moment_of(moment)
    with byte_progress("restored") as progress:
        made = restore(path, name, home, progress, to=to, archive=archive)
    prepared = f", {count_of(made.prepared, 'prepared unit')}" if made.prepared else ""
    echo(
        f"{made.name}: {count_of(made.messages, 'message')}{prepared} restored to {made.path}, "
        f"timeline {made.timeline}"
    )

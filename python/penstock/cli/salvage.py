"""``penstock salvage``"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from .common import FAILED, count_of, fail, home_option, show_warnings
from .terminal import echo, json_text
from .unload import progress_bar

SHOWN = 50  # losses of a kind in the text


def loss_text(loss: dict[str, Any]) -> str:
    """One loss as a line for users."""
    where = ""
    if loss["number"]:
        where = f"message {loss['number']}" + (f" of {loss['queue']}" if loss["queue"] else "")
    if loss["file"]:
        where += (" in " if where else "") + loss["file"]
        if loss["offset"] >= 0:
            end = f" to {loss['end']}" if loss["end"] >= 0 else ""
            where += f" at offset {loss['offset']}{end}"
    count = f"{loss['count']} " if loss["count"] != 1 else ""
    return ": ".join(part for part in (loss["kind"], where, count + loss["text"]) if part)


def show(losses: list[dict[str, Any]]) -> None:
    """The list as text: the first of each kind, and how many more there are."""
    seen: Counter[str] = Counter()
    for loss in losses:
        seen[loss["kind"]] += 1
        if seen[loss["kind"]] <= SHOWN:
            echo(loss_text(loss))
    for kind, count in seen.items():
        if count > SHOWN:
            echo(f"{kind}: {count - SHOWN} more; --json shows all")


@click.command("salvage")
@click.argument("qm", metavar="QM")
@click.option("--to", "new", metavar="NEW", required=True, help="The new queue manager's name.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Of the damaged queue manager, when it is not that of QM.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a loss, then the counts.")
@home_option
def command(qm: str, home: Path | None, new: str, directory: Path | None, as_json: bool) -> None:
    """Make the queue manager NEW of all that can be read and proven of the damaged files of QM, and
    list what is not: files and ranges, units of work, messages with number and queue.

    Nothing is written into QM's directory, which may be read-only. Status 0 when nothing is lost, 2
    otherwise.
    """
    from penstock.admin.settings import manager_directory
    from penstock.client.salvage import salvage
    from penstock.journal import DamagedFile

    show_warnings()
    path = directory or manager_directory(qm, home)
    if not path.is_dir():
        fail(f"there is no directory {path}")
    try:
        with progress_bar("salvaged") as progress:
            result = salvage(path, new, home, progress)
    except DamagedFile as error:
        fail(str(error))
    counts = {
        "messages": result.messages,
        "bytes": result.bytes,
        "definitions": result.definitions,
        "expired": result.expired,
    }
    if as_json:
        for loss in result.losses:
            echo(json_text(loss))
        echo(json_text(counts))
    else:
        show(result.losses)
        made = count_of(result.messages, "message"), count_of(result.definitions, "definition")
        lost = f"{len(result.losses)} in the list" if result.losses else "nothing is lost"
        echo(f"{new}: {made[0]}, {made[1]}; {lost}")
    if result.losses:
        raise SystemExit(FAILED)

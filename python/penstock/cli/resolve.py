"""``penstock resolve``"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .common import NOTHING, count_of, fail, manager_argument
from .status import prepared_fields, prepared_table
from .terminal import echo, json_text, printable, table_console

if TYPE_CHECKING:
    import penstock
    from penstock.client.status import PreparedStatus

AT_ONCE = 4096  # units that one call resolves, all or none
STREAM_FORMAT = int.from_bytes(b"PSPK", "big")  # format id of the units of streams


def of_stream(xid: penstock.Xid, stream: uuid.UUID) -> bool:
    """Whether the stream has a unit: its global id is the stream's, as bytes or text."""
    names = (stream.bytes, stream.hex.encode(), str(stream).encode())
    return xid.format_id == STREAM_FORMAT and xid.gtrid in names


def parsed(texts: tuple[str, ...]) -> list[penstock.Xid]:
    """The names given on the command line."""
    import penstock

    try:
        return [penstock.Xid.parse(text) for text in dict.fromkeys(texts)]
    except penstock.InvalidValue as error:
        raise click.UsageError(error.text) from None


def chosen(
    there: list[PreparedStatus], xids: tuple[str, ...], every: bool, stream: uuid.UUID | None
) -> list[PreparedStatus]:
    """The selected prepared units; the command ends when a named one does not exist."""
    if not xids:
        return [u for u in there if stream is None or of_stream(u.xid, stream)]
    by_xid = {unit.xid: unit for unit in there}
    names = parsed(xids)
    missing = [str(xid) for xid in names if xid not in by_xid]
    if missing:
        fail(f"no prepared unit of work is named {', '.join(missing)}; nothing was done")
    return [by_xid[xid] for xid in names]


def portions(units: list[PreparedStatus]) -> Iterator[list[PreparedStatus]]:
    """Units in lists for one call each."""
    for at in range(0, len(units), AT_ONCE):
        yield units[at : at + AT_ONCE]


def end_units(manager: penstock.QueueManager, units: list[PreparedStatus], commit: bool) -> None:
    """Resolves the units and reports each."""
    discarded = 0
    for portion in portions(units):
        names = [unit.xid for unit in portion]
        if commit:
            manager.commit_prepared(*names)
        else:
            discarded += manager.backout_prepared(*names)
        for unit in portion:
            counts = f"{count_of(unit.puts, 'put')}, {count_of(unit.gets, 'get')}"
            echo(f"{'committed' if commit else 'backed out'} {unit.xid}: {counts}")
    if discarded:
        text = count_of(discarded, "non-persistent message")
        echo(f"{text} discarded: the queue manager was restarted since they were got")


def show(units: list[PreparedStatus], as_json: bool) -> None:
    """The list."""
    if as_json:
        for unit in units:
            echo(json_text(prepared_fields(unit)))
    else:
        rows = [prepared_fields(unit) for unit in units]
        table_console().print(prepared_table(rows, time.time()))


def check_options(
    commit: bool, backout: bool, listing: bool, xids: tuple[str, ...], selected: bool
) -> None:
    """Raises UsageError for options that contradict each other."""
    if commit + backout + listing > 1:
        raise click.UsageError("--list, --commit and --backout exclude each other")
    if xids and not (commit or backout):
        raise click.UsageError("say --commit or --backout for the units named")
    if xids and selected:
        raise click.UsageError("name units, or say --all or --stream")
    if (commit or backout) and not (xids or selected):
        raise click.UsageError("name the units, or say --all or --stream")


@click.command("resolve")
@manager_argument
@click.argument("xids", metavar="[XID]...", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="Show them; what is done by default.")
@click.option("--commit", is_flag=True, help="Commit the units named: all of them, or none.")
@click.option("--backout", is_flag=True, help="Back them out: what they got is back in its place.")
@click.option("--all", "every", is_flag=True, help="All prepared units, instead of names.")
@click.option("--stream", type=click.UUID, help="All prepared units of that Spark stream.")
@click.option("--yes", is_flag=True, help="Do not ask before --all.")
@click.option("--json", "as_json", is_flag=True, help="The list, one JSON object a unit.")
def command(
    qm: str,
    home: Path | None,
    xids: tuple[str, ...],
    listing: bool,
    commit: bool,
    backout: bool,
    every: bool,
    stream: uuid.UUID | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Show QM's prepared units of work, or resolve them manually.

    A prepared unit belongs to no process: it stays, over restarts too, until its coordinator
    commits it or backs it out. Resolve it here only when the coordinator never will.

    Status 0, 1 when there was no such unit, 2 when nothing was done because of an error.
    """
    import penstock

    check_options(commit, backout, listing, xids, every or stream is not None)
    with penstock.connect(qm, home=home, control=True) as manager:
        units = chosen(manager.prepared_list(), xids, every, stream)
        if not commit and not backout:
            show(units, as_json)
        elif units:
            if every and stream is None and not yes:
                what = "Commit" if commit else "Back out"
                text = count_of(len(units), "prepared unit")
                question = f"{what} {text} of {qm}, prepared by any program?"
                click.confirm(printable(question), abort=True)
            end_units(manager, units, commit)
    if not units:
        raise SystemExit(NOTHING)

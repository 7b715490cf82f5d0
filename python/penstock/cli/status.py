"""``penstock status``"""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..constants import NAME_SPACE_QUEUES, ReasonCode
from .common import attached_pids, directory_of, listed, manager_argument
from .terminal import echo, json_text, printable, table_console

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    import penstock
    from penstock.client.status import PreparedStatus

MIB = 1 << 20
_LEDGER = "SYSTEM.SPARK.LEDGER"  # of Spark's streams and sinks


def collect(manager: penstock.QueueManager) -> dict[str, Any]:
    """Everything `status` shows, JSON-able. This command's own process is among the attached."""
    import penstock
    from penstock.journal import archive

    locks = manager.lock_list()
    queues = []
    for definition in manager.display("QLOCAL", "*"):
        name = str(definition["name"])
        try:
            slot = manager.find_object(name)
            counts = manager.queue_status(*slot, name, oldest=not locks)  # waits for no lock
        except penstock.UnknownObjectName:
            continue  # deleted concurrently
        in_use = counts["depth"] or counts["open_input"] or counts["open_output"]
        if name.startswith("SYSTEM.") and not (in_use or counts["put_count"]):
            continue  # every queue manager has these; shown once something is done with them
        queues.append({"name": name, "maxdepth": definition["maxdepth"], **counts})
    files, size = archive.usage(manager.path)
    state = asdict(manager.status())
    return {
        "name": manager.name,
        "running": True,
        "archive": {
            "segments": files,
            "bytes": size,
            "superseded": len(archive.superseded(manager.path)),
        },
        "manager": state,
        "region_place": region_place(manager.path, state),
        "locks": [asdict(lock) for lock in locks],
        "queues": queues,
        "units": [asdict(unit) for unit in manager.unit_list()],
        "prepared": [prepared_fields(unit) for unit in manager.prepared_list()],
        "streams": [] if locks else streams_of(manager),  # they are read under locks
        "processes": [asdict(process) for process in manager.process_list()],
    }


def streams_of(manager: penstock.QueueManager) -> list[dict[str, Any]]:
    """Spark's streams and sinks, as their ledger has them; none where no job has made one."""
    if manager.look_up(NAME_SPACE_QUEUES, _LEDGER) is None:
        return []
    from ..spark.source.ledger_rows import ledger_rows

    return [row for row in ledger_rows(manager) if row["kind"] in ("stream", "sink")]


def streams_table(rows: list[dict[str, Any]], now: float) -> Table:
    """The table of Spark's streams and sinks, from the rows of streams_of()."""
    from rich.table import Table

    from ..spark.source.ledger_rows import state_of

    table = Table(title="Spark's streams and sinks", title_justify="left")
    for column in ("id", "kind", "queue", "commits", "last one ago", "state"):
        # a name is taken from here to be given to `resolve`: it is folded, never cut
        kind: dict[str, Any] = {"overflow": "fold"} if column == "id" else {"no_wrap": True}
        table.add_column(column, **kind)
    for row in rows:
        done = row.get("unit", row.get("version", ""))
        cells = (row["id"], row["kind"], row.get("queue", ""), done, ago(row["time"] * 1e6, now))
        table.add_row(*(printable(str(cell)) for cell in cells), state_of(row))
    return table


def region_place(directory: Path, state: dict[str, Any]) -> str:
    """Where the shared region lies: a folder, or memory alone."""
    from penstock.admin.settings import AUTOMATIC, read_settings

    if state["region_in_memory"]:
        return "memory, as /dev/shm is small"
    chosen = read_settings(directory).region_dir
    return chosen if chosen != AUTOMATIC else "/dev/shm"


def _huge_pages(manager: dict[str, Any]) -> str:
    """What the system gave in huge pages, or why it gave none."""
    if manager["region_huge"]:
        return f"{manager['region_huge'] / MIB:.0f} MiB in huge pages"
    return f"no huge pages: {manager['huge_refusal']}"


def ago(moment_us: float, now: float) -> str:
    """The time since then, in the largest unit of which there is one; "" for never."""
    if not moment_us:
        return ""
    seconds = max(0.0, now - moment_us / 1e6)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def prepared_fields(unit: PreparedStatus) -> dict[str, Any]:
    """A prepared unit as JSON-able data."""
    return {**asdict(unit), "xid": str(unit.xid)}


def prepared_table(units: list[dict[str, Any]], now: float) -> Table:
    """The table of prepared units, from the rows of prepared_fields()."""
    from rich.table import Table

    table = Table(title="prepared units of work", title_justify="left")
    for column in ("xid", "puts", "gets", "not persistent", "bytes", "prepared for"):
        # a name is taken from here to be given to `resolve`: it is folded, never cut
        kind: dict[str, Any] = {"overflow": "fold"} if column == "xid" else {"justify": "right"}
        table.add_column(column, **kind)
    for u in units:
        counts = (f"{u[k]:,}" for k in ("puts", "gets", "nonpersistent", "bytes"))
        table.add_row(u["xid"], *counts, ago(u["prepared_us"], now))
    return table


def _table(title: str, columns: str, rows: list[list[str]]) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns.split("|")):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _what_holds(m: dict[str, Any], now: float) -> str:
    """What takes the journal's space: messages, and the oldest unit of work; a warning with what
    frees it, from half of the limit on."""
    text = f"; messages take {m['live_bytes'] / MIB:,.0f} of {m['live_limit'] / MIB:,.0f} MiB"
    if m["moved_messages"]:
        text += f", {m['moved_messages']:,} were moved together"
    if m["held_us"]:
        owner = f"of process {m['held_pid']}" if m["held_pid"] else "that is prepared"
        text += f"; the oldest unit of work, {owner}, began {ago(m['held_us'], now)} and "
        text += f"{m['held_bytes'] / MIB:,.0f} MiB of journal ago"
    if m["backup_pid"]:
        text += f"; a backup by process {m['backup_pid']} keeps {m['backup_bytes'] / MIB:,.0f} MiB"
    if 2 * m["journal_bytes"] < m["journal_limit"]:
        return text
    text += "\nwarning: the journal's files take more than half of journal.limit"
    if 2 * m["live_bytes"] >= m["live_limit"]:
        text += "; get messages (the queues below say which are deep and old)"
    if m["held_us"] and m["held_pid"]:
        text += f"; end the unit of work of process {m['held_pid']}"
    elif m["held_us"]:
        text += "; resolve the prepared units (penstock resolve)"
    return text


def render(found: dict[str, Any]) -> Group:
    """The tables for users."""
    from rich.console import Group

    now = time.time()
    m = found["manager"]
    state = "stopped" if m["stopped"] else "quiescing" if m["quiescing"] else "running"
    journal = (
        f"journal: {m['segments']} segments, {m['journal_bytes'] / MIB:.0f} of "
        f"{m['journal_limit'] / MIB:.0f} MiB; durable LSN {m['durable_lsn']:,}, checkpoint "
        f"{m['checkpoint_lsn']:,}; {m['flushes']:,} flushes of {m['flushed_records']:,} records"
    )
    journal += _what_holds(m, now)
    if found["archive"]["segments"]:
        kept = found["archive"]
        journal += f"; archive: {kept['segments']:,} segments, {kept['bytes'] / MIB:,.0f} MiB"
        if kept["superseded"]:
            journal += f" ({kept['superseded']:,} superseded)"
    region = (
        f"region: {m['region_used'] / MIB:.1f} of {m['region_bytes'] / MIB:.1f} MiB used in "
        f"{found['region_place']}, "
        f"{m['body_bytes'] / MIB:.1f} MiB of bodies; {m['message_entries']:,} index entries; "
        f"{_huge_pages(m)}"
    )
    queues = [
        [
            q["name"],
            f"{q['depth']:,}",
            f"{q['maxdepth']:,}",
            f"{q['uncommitted']:,}",
            f"{q['got']:,}",
            f"{q['delayed']:,}",
            f"{q['open_input']}/{q['open_output']}/{q['open_other']}",
            str(q["waiters"]),
            f"{q['put_count']:,}",
            f"{q['get_count']:,}",
            ago(q.get("oldest_us", 0), now),
        ]
        for q in found["queues"]
    ]
    processes = [
        [str(p["pid"]), p["program"], "keeper" if p["keeper"] else "", ago(p["attached_us"], now)]
        for p in found["processes"]
    ]
    units = [
        [str(u["pid"]), str(u["thread"]), f"{u['count']:,}", ago(u["started_us"], now)]
        for u in found["units"]
    ]
    parts: list[Any] = [f"{found['name']}: {state}, {m['attached']} attached", journal, region]
    parts += [
        f"held up: process {lock['pid']} ({lock['program']}) has had the {lock['lock']} lock for "
        f"{lock['seconds']} s; is it stopped?"
        for lock in found["locks"]
    ]
    if m["checkpoint_damaged"]:
        parts.append(
            f"checkpoint {m['checkpoint_damaged']:016x}.psc is damaged: the restart used the one "
            "before and more of the journal; the next checkpoint replaces it"
        )
    heads = "queue|depth|max|uncommitted|got|delayed|in/out/other|waiting|puts|gets|oldest"
    parts.append(_table("queues", heads, queues))
    parts.append(_table("processes", "pid|program|role|attached for", processes))
    if units:
        parts.append(_table("units of work", "pid|thread|messages|open for", units))
    if found["prepared"]:
        parts.append(prepared_table(found["prepared"], now))
    if found["streams"]:
        parts.append(streams_table(found["streams"], now))
    return Group(*parts)


def watch(manager: penstock.QueueManager, interval: float) -> None:
    """Draws again until Ctrl-C."""
    from rich.live import Live

    console = table_console()
    with Live(render(collect(manager)), console=console, auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(interval)
            live.update(render(collect(manager)), refresh=True)


def show_from_outside(qm: str, directory: Path, reason: str, as_json: bool) -> None:
    """For root, who may look and not attach: what the files tell, and why there is no more."""
    from penstock import journal

    pids = attached_pids(directory)
    segments = journal.describe_segments(directory)
    if as_json:
        echo(json_text({"name": qm, "running": True, "pids": list(pids), "segments": segments}))
        return
    size = sum(segment["size"] for segment in segments)
    echo(f"{qm}: running, attached processes: {listed(pids)}")
    echo(f"journal: {len(segments)} segments, {size / MIB:.0f} MiB")
    echo(f"more is for its users: {reason}")


@click.command("status")
@manager_argument
@click.option("--watch", "watching", is_flag=True, help="A live view, until Ctrl-C.")
@click.option("--interval", type=click.FloatRange(min=0.1), default=1.0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(qm: str, home: Path | None, watching: bool, interval: float, as_json: bool) -> None:
    """Show QM's queues, processes, units of work and journal. Never starts the queue manager."""
    directory = directory_of(qm, home)
    if not attached_pids(directory):
        if as_json:
            echo(json_text({"name": qm, "running": False}))
        else:
            echo(f"{qm}: not running")
        return
    import penstock

    try:
        manager = penstock.connect(qm, home=home, control=True)
    except penstock.MQError as error:
        if error.reason != ReasonCode.NOT_AUTHORIZED or os.geteuid() != 0:
            raise
        show_from_outside(qm, directory, error.text, as_json)
        return
    with manager:
        if as_json:
            echo(json_text(collect(manager)))
        elif watching:
            watch(manager, interval)
        else:
            table_console().print(render(collect(manager)))

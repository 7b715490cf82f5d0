"""``penstock schedule``: schedules listed, set, deleted and run."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .common import NOTHING, manager_argument
from .terminal import echo, json_text, printable, table_console

if TYPE_CHECKING:
    from penstock.client.schedules import Schedule


def when(schedule: Schedule) -> str:
    """When its jobs are due, in one line."""
    if schedule.every is not None:
        return f"every {schedule.every.total_seconds():g} s"
    return f"{schedule.cron} {schedule.zone}"


def fields(schedule: Schedule) -> dict[str, Any]:
    """JSON-able; a body that is no text stands in hexadecimal."""
    every = schedule.every.total_seconds() if schedule.every is not None else None
    put = {k: v.hex() if isinstance(v, bytes) else v for k, v in schedule.put.items()}
    return {
        "name": schedule.name,
        "queue": schedule.queue,
        "every": every,
        "cron": schedule.cron,
        "zone": schedule.zone,
        "missed": schedule.missed,
        "grace": schedule.grace.total_seconds(),
        "put": put,
        "due": schedule.due.isoformat() if schedule.due is not None else None,
    }


@click.group("schedule")
def command() -> None:
    """Jobs that are put on a queue again and again."""


@command.command("list")
@manager_argument
@click.option("--json", "as_json", is_flag=True, help="One JSON object a schedule.")
def list_command(qm: str, home: Path | None, as_json: bool) -> None:
    """Show QM's schedules and when each is due next. Status 1 when there is none."""
    import penstock

    with penstock.connect(qm, home=home, control=True) as manager:
        found = manager.schedules()
    if as_json:
        for one in found:
            echo(json_text(fields(one)))
    elif found:
        _show(found)
    if not found:
        raise SystemExit(NOTHING)


def _show(found: list[Schedule]) -> None:
    from rich.table import Table

    table = Table("name", "queue", "when", "missed", "due (UTC)", box=None, pad_edge=False)
    for one in found:
        due = f"{one.due:%Y-%m-%d %H:%M:%S}" if one.due is not None else "now"
        table.add_row(*map(printable, (one.name, one.queue, when(one), one.missed, due)))
    table_console().print(table)


@command.command("set")
@manager_argument
@click.argument("name")
@click.argument("queue")
@click.option("--data", default="", help="Body of a job.")
@click.option("--every", type=float, metavar="SECONDS", help="From one job to the next.")
@click.option("--cron", metavar="EXPRESSION", help="Instead: five fields, as crontab has them.")
@click.option("--zone", help="Time zone of --cron, such as Europe/Berlin. Default: UTC.")
@click.option("--start", metavar="TIME", help="First job of --every, ISO 8601 with a zone.")
@click.option(
    "--missed",
    type=click.Choice(["one", "all", "skip"]),
    default="one",
    show_default=True,
    help="What becomes of jobs that were due while nobody ran schedules.",
)
@click.option("--grace", type=float, default=60.0, show_default=True, help="Seconds, for skip.")
@click.option("--priority", type=int, help="Of a job. Default: the queue's.")
@click.option("--non-persistent", is_flag=True, help="Jobs are not persistent.")
def set_command(
    qm: str,
    home: Path | None,
    name: str,
    queue: str,
    data: str,
    every: float | None,
    cron: str | None,
    zone: str | None,
    start: str | None,
    missed: Any,
    grace: float,
    priority: int | None,
    non_persistent: bool,
) -> None:
    """Make the schedule NAME, whose jobs go to QUEUE, or change it."""
    import penstock

    put: dict[str, Any] = {"data": data, "persistent": not non_persistent}
    if priority is not None:
        put["priority"] = priority
    with penstock.connect(qm, home=home, control=True) as manager:
        made = manager.schedule(
            name,
            queue,
            put=put,
            every=every,
            cron=cron,
            zone=zone,
            start=_moment(start),
            missed=missed,
            grace=grace,
        )
    due = f"{made.due:%Y-%m-%d %H:%M:%S} UTC" if made.due is not None else "now"
    echo(f"schedule {name}: {when(made)}, next {due}")


def _moment(text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise click.UsageError(
            f"--start {text!r} is no time such as 2027-01-31T08:00+01:00"
        ) from None


@command.command("delete")
@manager_argument
@click.argument("name")
def delete_command(qm: str, home: Path | None, name: str) -> None:
    """Delete the schedule NAME."""
    import penstock

    with penstock.connect(qm, home=home, control=True) as manager:
        manager.delete_schedule(name)
    echo(f"schedule {name} deleted")


@command.command("run")
@manager_argument
@click.option("--wait", type=float, metavar="SECONDS", help="End when nothing was due for so long.")
def run_command(qm: str, home: Path | None, wait: float | None) -> None:
    """Put the jobs of QM's schedules when they are due, until SIGTERM or Ctrl-C. It may run several
    times at once: each job is put once.
    """
    import penstock

    with penstock.connect(qm, home=home) as manager:
        manager.run_schedules(wait)

"""The commands of the pipelines: ``python -m penstock.spark.pipelines``, or with ``spark-submit``.

Under ``spark-submit`` this file is run as a script, so what it uses is imported by full name.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.spark.pipelines.options import (
    AuditOptions,
    IngestOptions,
    ReplayOptions,
    command_line,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _show_path(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(str(Path(__file__).resolve()))
        context.exit()


@click.group()
@click.option(
    "--path",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_path,
    help="Print where this program is, for spark-submit.",
)
def commands() -> None:
    """Pipelines over the queues of a penstock queue manager."""


_MANAGER = click.option("--queue-manager", metavar="TEXT", required=True, help="Its name.")
_HOME = click.option("--home", metavar="DIR", help="Directory of the queue managers.")


@commands.command("feed")
@_MANAGER
@_HOME
@click.option("--queue", default="LOG.LINES", show_default=True, help="Queue of the lines.")
@click.option("--formats", metavar="FILE", help="TOML file of formats, before the built-in ones.")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
def feed_command(
    queue_manager: str, home: str | None, queue: str, formats: str | None, files: tuple[str, ...]
) -> None:
    """Put each line of FILES on a queue once, the worst with the highest priority."""
    import penstock
    from penstock.spark.pipelines.feed import feed
    from penstock.spark.pipelines.user_formats import all_formats

    known = all_formats(formats)
    with penstock.connect(queue_manager, home) as qm:
        fed = feed(qm, queue, files, known)
    click.echo(f"{fed.messages} messages, {fed.bytes} bytes, {fed.files} files")


@commands.command("alerts")
@_MANAGER
@_HOME
@click.option("--queue", default="LOG.LINES.ALERTS", show_default=True, help="Queue of alerts.")
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--leave-when-empty", is_flag=True, help="End when there is nothing to take.")
def alerts_command(
    queue_manager: str, home: str | None, queue: str, output: Path, leave_when_empty: bool
) -> None:
    """Take alerts as they come and append each to a file; ends with SIGTERM. Without Spark."""
    import penstock
    from penstock.spark.pipelines.alerts import serve

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with penstock.connect(queue_manager, home) as qm:
        written = serve(qm, queue, output, stop, leave_when_empty=leave_when_empty)
    click.echo(f"{written} alerts")


@commands.command("ingest")
@command_line(IngestOptions)
def ingest_command(**given: Any) -> None:
    """Log lines from a queue into a partitioned Parquet table, the worst as alerts on a queue."""
    from penstock.spark.pipelines.ingest import counted, ingest

    spark = _session("penstock ingest")
    queries = ingest(spark, given)
    if any(query.isActive for query in queries):
        signal.signal(signal.SIGTERM, lambda *_: [query.stop() for query in queries])
        spark.streams.awaitAnyTermination()
    for query in queries:
        query.stop()
    found = counted(spark, given["table"])
    click.echo(
        f"{found.all} lines; {found.generic} of no known format, {found.timeless} without a time"
    )
    spark.stop()


@commands.command("unmatched")
@click.option("--table", required=True, help="Folder of the Parquet table of ingest.")
@click.option("--rows", type=click.IntRange(1), default=20, show_default=True, help="At most.")
def unmatched_command(table: str, rows: int) -> None:
    """Report the lines of a table that no format matches or that have no time, by their shape."""
    from penstock.cli.terminal import table_console
    from penstock.spark.pipelines.ingest import unmatched
    from penstock.spark.pipelines.show import show_rows

    spark = _session("penstock unmatched")
    found = unmatched(spark, table)
    show_rows(table_console(), "lines of no known format or time", found.columns,
              found.limit(rows).collect())  # fmt: skip
    spark.stop()


@commands.command("audit")
@command_line(AuditOptions)
@click.option("--rows", type=click.IntRange(1), default=20, show_default=True, help="Of a table.")
def audit_command(rows: int, **given: Any) -> None:
    """Report waiting times, messages never taken, units backed out, and the largest putters."""
    from penstock.cli.terminal import table_console
    from penstock.spark.pipelines.audit import audit
    from penstock.spark.pipelines.show import show_audit

    spark = _session("penstock audit")
    found = audit(spark, given)
    show_audit(table_console(), found, rows)
    found.release()
    spark.stop()


@commands.command("replay")
@command_line(ReplayOptions)
def replay_command(**given: Any) -> None:
    """Put the messages of a past interval of the journal on a queue again."""
    from penstock.spark.pipelines.replay import replay

    spark = _session("penstock replay")
    done = replay(spark, given)
    click.echo(f"{done.messages} messages, {done.bytes} bytes")
    spark.stop()


@commands.command("streams")
@_MANAGER
@_HOME
@click.option("--forget", "names", metavar="ID", multiple=True, help="Remove the entry with it.")
@click.option(
    "--forget-older-than",
    "older_than",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="Remove those that committed nothing for so long, do not run and have nothing left.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object an entry.")
def streams_command(
    queue_manager: str,
    home: str | None,
    names: tuple[str, ...],
    older_than: float | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Show the streams, sinks and batch writes that the ledger knows, or forget some. Without
    Spark.

    An entry is what makes a stream or a sink exactly once: forget it when its checkpoint is gone,
    so that it will never start again. Times are UTC. Status 1 when there is no such entry.
    """
    import penstock
    from penstock.spark.pipelines import streams

    if names and older_than is not None:
        raise click.UsageError("--forget and --forget-older-than exclude each other")

    def confirm(text: str) -> None:
        if not yes:
            click.confirm(text, abort=True)

    with penstock.connect(queue_manager, home, control=True) as qm:
        status = streams.run(qm, names, older_than, confirm, as_json)
    raise SystemExit(status)


def _session(name: str) -> SparkSession:
    from penstock.spark.local import local_session

    return local_session(name)


def _run() -> None:
    """Runs a command. Of a Spark error that the data source caused, only its sentence is shown."""
    from penstock.cli.common import fail
    from penstock.spark.base.errors import sentence_in

    try:
        commands(standalone_mode=False)
    except Exception as error:
        said = sentence_in(error)
        if said is None:
            raise
        fail(said)


def main() -> None:
    """Runs a command; an error is one line on stderr, and status 2."""
    from penstock.cli.common import run_to_status

    sys.exit(run_to_status(_run))


if __name__ == "__main__":
    main()

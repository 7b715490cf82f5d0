"""``penstock backup``"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .common import manager_argument, show_warnings
from .terminal import echo, json_text

if TYPE_CHECKING:
    from penstock.client.backup import BackupReport

MIB = 1 << 20


@contextmanager
def byte_progress(verb: str) -> Iterator[Callable[[int, int], None]]:
    """A bar of bytes where stderr is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: None
        return
    columns = (TextColumn(verb), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(verb, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def report_text(qm: str, report: BackupReport) -> str:
    """What was done, in a line."""
    text = (
        f"{qm}: {report.bytes / MIB:,.1f} MiB in {report.files} files copied to {report.path} in "
        f"{report.seconds:,.1f} s, verified"
    )
    if report.slowest_flush:
        text += f"; slowest flush of the journal meanwhile {report.slowest_flush * 1000:,.1f} ms"
    return text


@click.command("backup")
@manager_argument
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON.")
def command(qm: str, home: Path | None, path: Path, as_json: bool) -> None:
    """Copy the files of QM into the new directory PATH and verify the copy. It holds everything
    that was committed before; programs go on working.

    A queue manager that was ended is copied without starting it.
    """
    import penstock
    from penstock.client.backup import backup_of_stopped

    show_warnings()
    with byte_progress("copied") as progress:
        report = backup_of_stopped(qm, path, home, progress)
        if report is None:
            with penstock.connect(qm, home, control=True) as manager:
                report = manager.backup(path, progress=progress)
    if as_json:
        echo(
            json_text(
                {
                    "path": str(report.path),
                    "files": report.files,
                    "bytes": report.bytes,
                    "seconds": round(report.seconds, 3),
                    "end_lsn": report.end_lsn,
                    "slowest_flush_ms": round(report.slowest_flush * 1000, 3),
                }
            )
        )
    else:
        echo(report_text(qm, report))

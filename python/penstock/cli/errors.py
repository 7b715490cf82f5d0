"""``penstock errors``"""

from __future__ import annotations

from pathlib import Path

import click

from .common import directory_of, manager_argument


def log_lines(directory: Path) -> list[str]:
    """Every line of the error log, oldest first. AMQERR01.LOG is the newest file."""
    lines: list[str] = []
    for path in sorted((directory / "errors").glob("AMQERR*.LOG"), reverse=True):
        lines += path.read_text(encoding="utf-8", errors="backslashreplace").splitlines()
    return lines


@click.command("errors")
@manager_argument
@click.option("--lines", "-n", type=click.IntRange(min=1), help="Only the newest N messages.")
def command(qm: str, home: Path | None, lines: int | None) -> None:
    """Show the error log of QM, oldest message first, one a line with its AMQ number."""
    found = log_lines(directory_of(qm, home))
    for line in found[-lines:] if lines else found:
        click.echo(line)

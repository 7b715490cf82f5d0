"""``penstock create``"""

from __future__ import annotations

from pathlib import Path

import click

from .common import manager_argument


@click.command("create")
@manager_argument
@click.option(
    "--platform",
    type=click.Choice(["unix", "zos"]),
    default="unix",
    show_default=True,
    help="Whose rules hold where platforms differ; structures exist on zos.",
)
@click.option(
    "--logging",
    type=click.Choice(["circular", "linear"]),
    default="circular",
    show_default=True,
    help="linear keeps journal segments that are no longer needed in the folder archive.",
)
def command(qm: str, home: Path | None, platform: str, logging: str) -> None:
    """Make the queue manager QM: a directory with its settings and an empty journal."""
    import penstock
    from penstock.admin.settings import manager_directory

    penstock.create(qm, home=home, platform=platform, logging=logging)
    click.echo(f"queue manager {qm} created in {manager_directory(qm, home)}")

"""``penstock delete``"""

from __future__ import annotations

from pathlib import Path

import click

from .common import manager_argument


@click.command("delete")
@manager_argument
def command(qm: str, home: Path | None) -> None:
    """Remove the queue manager QM, its queues and all their messages. Nobody may be attached."""
    import penstock

    penstock.delete(qm, home=home)
    click.echo(f"queue manager {qm} deleted")

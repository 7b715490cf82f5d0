"""``penstock delete``"""

from __future__ import annotations

from pathlib import Path

import click

from .common import PID_FILE, attached_pids, directory_of, manager_argument
from .terminal import echo


@click.command("delete")
@manager_argument
def command(qm: str, home: Path | None) -> None:
    """Remove the queue manager QM, its queues and all messages. No process may be attached."""
    import penstock

    directory = directory_of(qm, home)
    if not attached_pids(directory):
        (directory / PID_FILE).unlink(missing_ok=True)  # of a keeper that was killed
    penstock.delete(qm, home=home)
    echo(f"queue manager {qm} deleted")

"""``penstock list``"""

from __future__ import annotations

from pathlib import Path

import click

from .common import NOTHING, attached_pids, home_option
from .terminal import echo


@click.command("list")
@home_option
def command(home: Path | None) -> None:
    """Name the queue managers, one a line, and whether they run. Status 1 when there is none."""
    from penstock.admin.settings import manager_directory, manager_names

    names = manager_names(home)
    width = max((len(name) for name in names), default=0)
    for name in names:
        running = attached_pids(manager_directory(name, home)) != ()
        echo(f"{name:<{width}}  {'running' if running else 'ended'}")
    if not names:
        raise SystemExit(NOTHING)

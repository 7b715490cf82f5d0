"""``penstock end``"""

from __future__ import annotations

import time
from pathlib import Path

import click

from .common import (
    attached_pids,
    directory_of,
    fail,
    listed,
    manager_argument,
    show_warnings,
)
from .terminal import echo

LOOK_SECONDS = 0.05
PATIENCE = 30.0  # seconds that -i and -p wait for the others to be gone


@click.command("end")
@manager_argument
@click.option(
    "-c", "mode", flag_value="controlled", default=True, help="Controlled: ask and return."
)
@click.option("-w", "mode", flag_value="wait", help="Controlled, and wait until all have left.")
@click.option("-i", "mode", flag_value="immediate", help="Calls fail from now on (2162).")
@click.option("-p", "mode", flag_value="preemptive", help="At once, as if it had failed (2009).")
def command(qm: str, home: Path | None, mode: str) -> None:
    """Ask every process to leave QM, which takes no new connections from now on. Default: -c.

    After -c, -w and -i messages of NPMCLASS(HIGH) queues are kept, after -p no non-persistent ones.
    """
    import penstock

    show_warnings()
    directory = directory_of(qm, home)
    if not attached_pids(directory):
        echo(f"queue manager {qm} is not running")
        return
    with penstock.connect(qm, home=home, control=True) as manager:
        manager.end(mode)
        if mode == "wait":
            while manager.status().attached > 1:
                time.sleep(LOOK_SECONDS)
    if mode in ("immediate", "preemptive"):
        _wait_until_gone(qm, directory)
    pids = attached_pids(directory)
    if pids:
        echo(f"queue manager {qm} ends when processes {listed(pids)} have left")
    else:
        echo(f"queue manager {qm} has ended")


def _wait_until_gone(qm: str, directory: Path) -> None:
    """Stopped processes leave when their last call has returned; one that hangs is named."""
    deadline = time.monotonic() + PATIENCE
    while pids := attached_pids(directory):
        if time.monotonic() > deadline:
            fail(f"still attached to {qm} after {PATIENCE:.0f} s: process {listed(pids)}")
        time.sleep(LOOK_SECONDS)

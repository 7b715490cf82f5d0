"""``penstock browse``"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from .common import NOTHING, queue_argument
from .json_line import message_line
from .lines import write_all
from .terminal import descriptor_of


@click.command("browse")
@queue_argument
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="At most N messages.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with the fields.")
def command(qm: str, queue: str, home: Path | None, count: int | None, as_json: bool) -> None:
    """Show the messages of QUEUE in the order get would take them, and leave them there.

    Status 0, or 1 when there was none.
    """
    import penstock

    shown = 0
    fd = descriptor_of(sys.stdout, "output")
    terminal = os.isatty(fd)
    with penstock.connect(qm, home=home) as manager, manager.open(queue) as opened:
        for message in opened.browse():
            write_all(fd, message_line(message, as_json, terminal))
            shown += 1
            if shown == count:
                break
    if not shown:
        raise SystemExit(NOTHING)

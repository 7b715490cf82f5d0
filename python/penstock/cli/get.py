"""``penstock get``: messages to lines, each committed only after stdout took it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .common import FAILED, NOTHING, fail, queue_argument, show_warnings
from .json_line import message_line
from .lines import write_all
from .terminal import descriptor_of

if TYPE_CHECKING:
    import penstock

UNIT_MESSAGES = 500  # messages a unit of work at most
UNIT_BYTES = 4 << 20  # of bodies, at most


class OutputClosed(Exception):
    """The reader of stdout has gone; the unit was backed out."""


def take_unit(
    queue: penstock.Queue, wait: float | None, most: int, as_json: bool, terminal: bool
) -> tuple[int, list[bytes]]:
    """Gets up to ``most`` messages under syncpoint:
    waits for the first, takes the rest if present.
    """
    from penstock import NoMessageAvailable

    lines: list[bytes] = []
    size = 0
    while len(lines) < most and size < UNIT_BYTES:
        try:
            message = queue.get(wait=0 if lines else wait, syncpoint=True)
        except NoMessageAvailable:
            break
        lines.append(message_line(message, as_json, terminal))
        size += len(lines[-1])
    return len(lines), lines


def move_out(
    manager: penstock.QueueManager,
    queue: penstock.Queue,
    *,
    wait: float | None,
    count: int | None,
    as_json: bool,
    fd: int,
    moved: Callable[[int], None],
) -> int:
    """Takes messages until the queue is empty or ``count`` were taken; returns how many.

    Raises:
        OutputClosed: stdout took no more; its unit was backed out.
        MQError: a get or commit failed; the unit was backed out.
    """
    taken = 0
    terminal = os.isatty(fd)
    while count is None or taken < count:
        most = UNIT_MESSAGES if count is None else min(UNIT_MESSAGES, count - taken)
        try:
            number, lines = take_unit(queue, wait, most, as_json, terminal)
            write_all(fd, b"".join(lines))
        except BrokenPipeError as error:
            manager.backout()
            raise OutputClosed from error
        except BaseException:
            manager.backout()
            raise
        if not number:
            break
        manager.commit()
        taken += number
        moved(taken)
    return taken


@contextmanager
def _progress(fd: int) -> Iterator[Callable[[int], None]]:
    """Counts on a terminal's stderr when stdout goes elsewhere; else nothing."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal or os.isatty(fd):
        yield lambda taken: None
        return
    text = TextColumn("{task.completed:,.0f} messages taken")
    columns = (SpinnerColumn(), text, TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("get", total=None)
        yield lambda taken: progress.update(task, completed=taken)


def wait_seconds(wait: float) -> float | None:
    """The wait of the Python interface: seconds, None for ever."""
    return None if wait < 0 else wait


@click.command("get")
@queue_argument
@click.option(
    "--wait",
    type=float,
    default=0.0,
    metavar="S",
    help="Seconds to wait for a message when there is none; negative: for ever.",
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="At most N messages.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with the fields.")
def command(
    qm: str, queue: str, home: Path | None, wait: float, count: int | None, as_json: bool
) -> None:
    """Take messages from QUEUE, highest priority first, and write one a line, bytes unchanged; to a
    terminal with escapes for what it would obey.

    Ends when the queue is empty or N messages were taken: status 0, or 1 when there was none. Works
    in units of work, each committed after stdout took its lines; a broken pipe or Ctrl-C puts the
    last unit back.
    """
    import penstock

    show_warnings()
    fd = descriptor_of(sys.stdout, "output")
    taken = 0
    with (
        penstock.connect(qm, home=home) as manager,
        manager.open(queue) as opened,
        _progress(fd) as progress,
    ):
        try:
            taken = move_out(
                manager,
                opened,
                wait=wait_seconds(wait),
                count=count,
                as_json=as_json,
                fd=fd,
                moved=progress,
            )
        except OutputClosed:
            taken = -1
    if taken < 0:
        fail("the output is closed; the last unit of work was backed out", FAILED)
    if not taken:
        raise SystemExit(NOTHING)

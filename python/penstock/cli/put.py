"""``penstock put``: one message a line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..constants import ReasonCode
from .common import INTERRUPTED, LOST, count_of, fail, queue_argument, say, show_warnings
from .lines import LineTooLong, PriorityMap, WaitForInput, read_lines
from .terminal import descriptor_of

if TYPE_CHECKING:
    import penstock

UNIT_LINES = 1000  # lines a unit of work, when --unit is not given
UNIT_BYTES = 8 << 20  # a unit is committed early beyond this


def parse_map(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> PriorityMap | None:
    """``WORD=PRIORITY,...`` of the command line. Raises click.BadParameter naming the item."""
    try:
        return None if value is None else PriorityMap.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from error


@dataclass(slots=True)
class Putter:
    """Puts lines in units of work of ``unit`` lines and knows how many are committed."""

    qm: penstock.QueueManager
    queue: penstock.Queue
    unit: int
    priority: int | None = None
    rules: PriorityMap | None = None
    persistent: bool | None = None
    after_commit: Callable[[int], None] = lambda put: None
    put: int = 0  # lines committed
    above_maximum: int = 0  # warnings 2049
    _pending: int = field(default=0)
    _pending_bytes: int = field(default=0)

    def line(self, line: bytes) -> None:
        """Puts one line; a failure leaves the lines before it in the open unit."""
        priority = self.priority
        if self.rules is not None:
            priority = self.rules.priority_of(line, priority)
        receipt = self.queue.put(
            line, priority=priority, persistent=self.persistent, syncpoint=True
        )
        self.above_maximum += receipt.reason == ReasonCode.PRIORITY_EXCEEDS_MAXIMUM
        self._pending += 1
        self._pending_bytes += len(line)
        if self._pending >= self.unit or self._pending_bytes >= UNIT_BYTES:
            self.commit()

    def commit(self) -> None:
        """Commits the open unit, if there is one. When that fails its lines do not count."""
        if self._pending:
            pending, self._pending, self._pending_bytes = self._pending, 0, 0
            self.qm.commit()
            self.put += pending
            self.after_commit(self.put)

    def back_out(self) -> None:
        """Backs the open unit out."""
        if self._pending:
            self._pending = self._pending_bytes = 0
            self.qm.backout()


@contextmanager
def opened(path: str) -> Iterator[int]:
    """The descriptor of a file, or of stdin for ``-``."""
    if path == "-":
        yield descriptor_of(sys.stdin, "input")
        return
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


class _Stop(Exception):
    """An error at a line: the text gives the line and the reason; with the exit status."""

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(text)
        self.status = status


def put_file(putter: Putter, path: str, idle: Callable[[], None] | None) -> None:
    """Puts the lines of one file and commits what went well.

    Raises _Stop at the first that did not.
    """
    from penstock import MQError

    number = 0
    where = "stdin" if path == "-" else path
    try:
        with opened(path) as fd, WaitForInput() as wait:
            for line in read_lines(fd, idle=idle, wait=wait):
                number += 1
                putter.line(line)
        putter.commit()
    except KeyboardInterrupt:
        putter.back_out()
        raise _Stop("interrupted", INTERRUPTED) from None
    except LineTooLong as error:
        putter.commit()
        raise _Stop(f"line {number + 1} of {where}: {error}") from error
    except MQError as error:
        _keep_what_went_well(putter)
        raise _Stop(f"line {number} of {where}: {error}") from error
    except OSError as error:
        putter.commit()
        raise _Stop(f"{where}: {error.strerror}") from error


def default_is_volatile(manager: penstock.QueueManager, name: str) -> bool:
    """Whether a message put without a persistence is lost with the queue manager's end."""
    found = manager.display("QUEUE", name)
    return not found or not found[0].get("defpsist")


def lost_text(qm: str, lost: int) -> str:
    """What happened to messages that nobody kept, and how to keep them."""
    return (
        f"this command was the last process attached to {qm}, so {qm} ended, and with it "
        f"{count_of(lost, 'non-persistent message')}; to keep them put with --persistent, or keep "
        f"{qm} running with `penstock start {qm}`"
    )


def _keep_what_went_well(putter: Putter) -> None:
    """Commits the lines before the one that failed; they are lost only if that fails too."""
    from penstock import MQError

    try:
        putter.commit()
    except MQError as error:
        say(str(error))


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """Shows lines put on a terminal; does nothing in a pipe."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda put: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} lines put"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("put", total=None)
        yield lambda put: progress.update(task, completed=put)


@click.command("put")
@queue_argument
@click.argument(
    "files",
    nargs=-1,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="[FILE]...",
)
@click.option("--priority", type=click.IntRange(0, 0x7FFFFFFF), help="Priority of every line.")
@click.option(
    "--priority-map",
    "rules",
    callback=parse_map,
    metavar="WORD=N,...",
    help="ERROR=9,WARN=6,INFO=3: the first word of the map that occurs in the line decides; "
    "without one --priority, else the queue's DEFPRTY.",
)
@click.option(
    "--persistent/--not-persistent",
    "persistent",
    default=None,
    help="Default: as the queue's DEFPSIST says.",
)
@click.option(
    "--unit",
    type=click.IntRange(min=1),
    help=f"Lines a unit of work. Default: {UNIT_LINES}, and whenever the input pauses.",
)
def command(
    qm: str,
    queue: str,
    home: Path | None,
    files: tuple[str, ...],
    priority: int | None,
    rules: PriorityMap | None,
    persistent: bool | None,
    unit: int | None,
) -> None:
    """Put one message a line on QUEUE: FILEs in the order given, - or none is stdin.

    A line's bytes are the message, without the newline; an empty line is a message of length 0.
    Stops at the first line that fails, with the reason and the number of lines put; those stay on
    the queue. Status 3 when the queue manager ended with this command, and with it the messages
    that are not persistent.
    """
    import penstock

    show_warnings()
    stop: _Stop | None = None
    with penstock.connect(qm, home=home) as manager, manager.open(queue) as opened_queue:
        putter = Putter(manager, opened_queue, unit or UNIT_LINES, priority, rules, persistent)
        volatile = persistent is False
        if persistent is None:
            volatile = default_is_volatile(manager, opened_queue.name)
        with _progress() as progress:
            putter.after_commit = progress
            try:
                for path in files or ("-",):
                    put_file(putter, path, None if unit else putter.commit)
            except _Stop as caught:
                stop = caught
    if putter.above_maximum:
        say(
            f"{count_of(putter.above_maximum, 'line')} with a priority above the maximum: placed "
            "at the maximum, the field kept (2049 MQRC_PRIORITY_EXCEEDS_MAXIMUM)"
        )
    lost = manager.np_discarded if volatile and putter.put else 0
    if stop is not None:
        if lost:
            say(lost_text(qm, lost))
        fail(f"{stop}; {count_of(putter.put, 'line')} put", stop.status)
    if lost:
        fail(lost_text(qm, lost), LOST)

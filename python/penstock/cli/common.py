"""Shared by all subcommands: the queue manager's name and home, messages on stderr, statuses."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from .terminal import echo, printable

NOTHING = 1  # status: there was nothing to take
FAILED = 2  # status: an error
LOST = 3  # status: what was put is lost, because the queue manager ended
INTERRUPTED = 130  # status: Ctrl-C
PID_FILE = "keeper.pid"  # in the queue manager's directory, while `penstock start` keeps it running

F = TypeVar("F", bound=Callable[..., Any])


def say(text: str) -> None:
    """One line on stderr, behind the command's name."""
    echo(f"penstock: {text}", err=True)


def fail(text: str, status: int = FAILED) -> NoReturn:
    """Reports an error and ends the command."""
    say(text)
    raise SystemExit(status)


def count_of(number: int, noun: str) -> str:
    """``1 line``, ``2 lines``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def home_option(command: F) -> F:
    """Adds ``--home``."""
    return click.option(
        "--home",
        type=click.Path(path_type=Path),
        default=None,
        help="Directory of the queue managers. Default: PENSTOCK_HOME, else the data directory.",
    )(command)


def manager_argument(command: F) -> F:
    """Adds the argument QM and ``--home``."""
    return click.argument("qm", metavar="QM")(home_option(command))


def queue_argument(command: F) -> F:
    """Adds the arguments QM and QUEUE and ``--home``."""
    return manager_argument(click.argument("queue", metavar="QUEUE")(command))


def directory_of(qm: str, home: Path | None) -> Path:
    """The directory of an existing queue manager; ends the command when there is none."""
    from penstock.admin.directory import refusal
    from penstock.admin.settings import SETTINGS_FILE, manager_directory

    path = manager_directory(qm, home)
    try:
        found = (path / SETTINGS_FILE).is_file()
    except PermissionError:
        fail(f"queue manager {qm}: {refusal(path)}")
    if not found:
        fail(f"there is no queue manager {qm} in {path.parent}")
    return path


def attached_pids(directory: Path) -> tuple[int, ...]:
    """Pids of the attached processes, none when nobody is attached. Starts nothing."""
    from penstock import _engine

    return _engine.attached_processes(directory)


def listed(pids: tuple[int, ...]) -> str:
    """Pids as text; a process of another PID namespace has none."""
    return ", ".join(str(pid) if pid else "in another PID namespace" for pid in pids)


class _WarningsToStderr(logging.Handler):
    """Shows the library's warnings, such as messages that were discarded at the end."""

    def emit(self, record: logging.LogRecord) -> None:
        say(f"{record.levelname.lower()}: {record.getMessage()}")


def show_warnings() -> None:
    """Sends the library's warnings to stderr from now on."""
    logger = logging.getLogger("penstock")
    if not any(isinstance(h, _WarningsToStderr) for h in logger.handlers):
        handler = _WarningsToStderr(logging.WARNING)
        logger.addHandler(handler)
        logger.propagate = False


def run_to_status(call: Callable[[], Any]) -> int:
    """Runs a command and returns its status; an error is one line on stderr."""
    from penstock import MQError

    try:
        call()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILED
    except click.exceptions.Abort:
        say("interrupted")
        return INTERRUPTED
    except click.ClickException as error:
        _show(error)
        return FAILED
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except MQError as error:
        say(str(error))
        return FAILED
    except BrokenPipeError:
        _forget_stdout()
        return FAILED
    except (OSError, ValueError) as error:
        say(str(error))
        return FAILED
    except MemoryError:
        say("no memory")
        return FAILED
    return 0


def _show(error: click.ClickException) -> None:
    """An error of the command line, of several lines, on stderr."""
    text = io.StringIO()
    error.show(text)
    click.echo(printable(text.getvalue()), nl=False, err=True)


def _forget_stdout() -> None:
    """Replaces a closed stdout, so that the interpreter's exit reports no error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)

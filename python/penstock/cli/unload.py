"""``penstock unload``"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .common import count_of, fail, manager_argument, say, show_warnings
from .terminal import echo

if TYPE_CHECKING:
    import penstock

F = TypeVar("F", bound=Callable[..., Any])
SYSTEM = "SYSTEM."  # queues that "*" leaves out


def _priorities(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    if value is None:
        return None
    low, dash, high = value.partition("-")
    if not low.isdecimal() or (dash and not high.isdecimal()):
        raise click.BadParameter(f"{value!r} is not N or N-M", context, parameter)
    return int(low), int(high or low)


def _identifier(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> bytes | None:
    try:
        return None if value is None else bytes.fromhex(value)
    except ValueError as error:
        text = f"{value!r} is not hexadecimal"
        raise click.BadParameter(text, context, parameter) from error


def _moment(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value[:-1] + "+00:00" if value.endswith("Z") else value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def selection_options(command: F) -> F:
    """Adds the options that say which messages."""
    for option in reversed(
        (
            click.option(
                "--priority", metavar="N[-M]", callback=_priorities, help="Only these priorities."
            ),
            click.option(
                "--msg-id", metavar="HEX", callback=_identifier, help="Only with this MsgId."
            ),
            click.option(
                "--correl-id", metavar="HEX", callback=_identifier, help="Only with this CorrelId."
            ),
            click.option("--format", metavar="NAME", help="Only with this Format."),
            click.option(
                "--put-from",
                metavar="TIME",
                callback=_moment,
                help="Only what was put from then on: 2026-01-31T12:00, UTC.",
            ),
            click.option(
                "--put-before", metavar="TIME", callback=_moment, help="Only what was put before."
            ),
            click.option(
                "--count", type=click.IntRange(min=1), metavar="N", help="At most N messages."
            ),
        )
    ):
        command = option(command)
    return command


def is_parquet(path: str, parquet: bool) -> bool:
    """By the option, or the name."""
    return parquet or path.rstrip("/").endswith(".parquet")


@contextmanager
def progress_bar(verb: str) -> Iterator[Callable[[int], None]]:
    """Counts messages where stderr is a terminal."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda messages: None
        return
    text = TextColumn(f"{{task.completed:,.0f}} messages {verb}")
    with Progress(
        SpinnerColumn(), text, TimeElapsedColumn(), console=console, transient=True
    ) as progress:
        task = progress.add_task(verb, total=None)
        yield lambda messages: progress.update(task, completed=messages)


def queues_named(manager: penstock.QueueManager, names: tuple[str, ...]) -> list[str]:
    """Local queues by names and generic names; ``*`` leaves out those of the system."""
    found: list[str] = []
    for name in names:
        if not name.endswith("*"):
            found.append(name)
            continue
        local = [str(queue["name"]) for queue in manager.display("QLOCAL", name)]
        found += [q for q in local if name.startswith("SYSTEM") or not q.startswith(SYSTEM)]
    if not found:
        fail(f"no local queue has a name like {' '.join(names)}")
    return list(dict.fromkeys(found))


@click.command("unload")
@manager_argument
@click.argument("queues", metavar="QUEUE...", nargs=-1, required=True)
@click.option(
    "--to", "path", metavar="FILE", required=True, help="The new file; -: standard output."
)
@click.option("--remove", is_flag=True, help="Take the messages off their queues.")
@click.option("--resume", is_flag=True, help="Continue an unload with --remove, or begin it.")
@click.option(
    "--parquet", is_flag=True, help="A directory of Parquet files; also by its name, *.parquet."
)
@click.option("--text", is_flag=True, help="Bodies as text whatever their format says.")
@selection_options
def command(
    qm: str,
    home: Path | None,
    queues: tuple[str, ...],
    path: str,
    remove: bool,
    resume: bool,
    parquet: bool,
    text: bool,
    **chosen: Any,
) -> None:
    """Write the messages of each QUEUE (a name, a generic name like ORD*, or * for all) to FILE,
    with all fields of their descriptors, one a line of JSON.

    With --remove the messages leave their queues, each unit of work when its lines are on the disk.
    After a kill, repeat the command with --resume until it ends: each message is then in the file
    once.
    """
    import penstock

    show_warnings()
    delayed = 0
    with penstock.connect(qm, home=home) as manager, progress_bar("unloaded") as progress:
        names = queues_named(manager, queues)
        done = manager.unload(
            path,
            *names,
            remove=remove,
            resume=resume,
            parquet=is_parquet(path, parquet),
            as_text=text,
            progress=progress,
            **chosen,
        )
        for name in names if remove else ():
            with manager.open(name, input=False, output=False, browse=True) as queue:
                delayed += queue.status().delayed
    if delayed:
        say(f"{count_of(delayed, 'delayed message')} left where they are: not due yet")
    if path != "-":
        echo(f"{path}: {count_of(done, 'message')} of {count_of(len(names), 'queue')}")

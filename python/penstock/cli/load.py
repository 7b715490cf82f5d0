"""``penstock load``"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .common import count_of, manager_argument, show_warnings
from .terminal import echo
from .unload import is_parquet, progress_bar, selection_options


@click.command("load")
@manager_argument
@click.argument("path", metavar="FILE")
@click.option("--queue", metavar="NAME", help="For all messages, whatever queue they name.")
@click.option("--resume", is_flag=True, help="Continue a load that was ended, or begin it.")
@click.option("--again", is_flag=True, help="Begin anew although a part has been loaded.")
@click.option("--partial", is_flag=True, help="Accept a file whose unload was not finished.")
@click.option(
    "--parquet", is_flag=True, help="A directory of Parquet files; also by its name, *.parquet."
)
@selection_options
def command(
    qm: str,
    home: Path | None,
    path: str,
    queue: str | None,
    resume: bool,
    again: bool,
    partial: bool,
    parquet: bool,
    **chosen: Any,
) -> None:
    """Put the messages of FILE, which penstock unload has written, on the queues that they name;
    -: standard input.

    Their fields are those of the file; BackoutCount begins at 0. After a kill, repeat the command
    with --resume until it ends: each message has then been put once.
    """
    import penstock

    show_warnings()
    with penstock.connect(qm, home=home) as manager, progress_bar("loaded") as progress:
        done = manager.load(
            path,
            queue=queue,
            resume=resume,
            again=again,
            partial=partial,
            parquet=is_parquet(path, parquet),
            progress=progress,
            **chosen,
        )
    echo(f"{path}: {count_of(done, 'message')} loaded")

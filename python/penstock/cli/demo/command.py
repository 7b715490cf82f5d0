"""``penstock demo``"""

from __future__ import annotations

import random
from pathlib import Path

import click

from ..common import fail
from ..terminal import echo, table_console


@click.command("demo")
@click.argument(
    "files", nargs=-1, type=click.Path(exists=True, dir_okay=False), metavar="[FILE]..."
)
@click.option("--priority-map", "rules", metavar="WORD=N,...", help="The rule for priorities.")
@click.option(
    "--unit", type=click.IntRange(1, 5000), default=100, show_default=True, help="Lines a unit."
)
@click.option("--lines", type=click.IntRange(min=100), help="Without FILE: about so many lines.")
@click.option("--home", type=click.Path(path_type=Path), help="Where to work; a real disk.")
@click.option("--seed", type=int, help="Of the random moments at which processes are killed.")
@click.option("--keep", is_flag=True, help="Keep the queue manager afterwards.")
def command(
    files: tuple[str, ...],
    rules: str | None,
    unit: int,
    lines: int | None,
    home: Path | None,
    seed: int | None,
    keep: bool,
) -> None:
    """Move every line of FILEs through a persistent priority queue while processes are killed.

    Three producers and two consumers work in units of work; a producer, a consumer, then all of
    them die by SIGKILL; the queue manager restarts; the end check proves every line exactly once,
    in order. Without FILEs: sources of Python's standard library.
    """
    from penstock.cli.demo.census import ProofFailed
    from penstock.cli.demo.plan import DEFAULT_LINES, make_plan
    from penstock.cli.demo.screen import Screen
    from penstock.cli.demo.supervisor import Demonstration, demonstration_folder, remove_folder

    folder = demonstration_folder(home)
    seed = random.randrange(1 << 32) if seed is None else seed
    finished = False
    try:
        plan = make_plan(str(folder), list(files), rules, unit, lines or DEFAULT_LINES)
        if not plan.total:
            fail("the files have no lines")
        with Screen(table_console()) as screen:
            screen.event(f"working in {folder}, seed {seed}")
            Demonstration(plan, folder, screen, seed).run()
        finished = True
    except ProofFailed as error:
        fail(f"NOT PROVEN: {error}; everything is kept in {folder}, seed {seed}")
    finally:
        if keep:
            echo(f"kept: penstock status DEMO --home {folder}")
        elif finished:
            remove_folder(folder)

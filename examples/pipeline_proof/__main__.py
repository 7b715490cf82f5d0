"""The proof as a command: ``PYTHONPATH=examples python -m pipeline_proof [FILES]``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from penstock.cli.common import fail, run_to_status
from penstock.cli.demo.supervisor import demonstration_folder
from penstock.cli.terminal import table_console

from .check import WrongCount
from .generate import generate
from .run import Run


@click.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False))
@click.option("--home", type=click.Path(path_type=Path), help="Folder to work in, on a real disk.")
@click.option("--lines", type=click.IntRange(100), default=2000, show_default=True,
              help="Without FILES: lines of each of five generated files.")  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True, help="Of the generated lines.")
@click.option("--keep", is_flag=True, help="Keep the folder afterwards.")
def run_command(
    files: tuple[str, ...], home: Path | None, lines: int, seed: int, keep: bool
) -> None:
    """Run all pipelines on FILES, kill the stream on the way, and compare with grep's counts."""
    folder = demonstration_folder(home)
    paths = [Path(file) for file in files]
    if not paths:
        (folder / "logs").mkdir()
        paths = generate(folder / "logs", lines, seed)
    run = Run(folder, paths, table_console())
    try:
        run.run()
    except WrongCount as error:
        fail(f"verdict: NOT PROVEN: {error}; everything is kept in {folder}")
    if keep:
        click.echo(f"kept: {folder}")
    else:
        run.remove()


if __name__ == "__main__":
    sys.exit(run_to_status(lambda: run_command.main(standalone_mode=False)))

"""``penstock mqsc``"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from .common import FAILED, manager_argument, show_warnings


@click.command("mqsc")
@manager_argument
@click.argument("commands", nargs=-1, metavar='["COMMAND"]...')
def command(qm: str, home: Path | None, commands: tuple[str, ...]) -> None:
    """Run MQSC commands: each COMMAND, or what stdin has, one a line, + and - continue a line.

    DEFINE, ALTER, DELETE, DISPLAY and CLEAR QLOCAL. Status 2 when a command failed.
    """
    import penstock
    from penstock.mqsc import Interpreter, Reply

    show_warnings()
    echo = not commands

    def show(text: str, reply: Reply) -> None:
        if echo and text:
            click.echo(f"{interpreter.read:>6} : {text}")
        for line in reply.lines:
            click.echo(line)

    with penstock.connect(qm, home=home) as manager:
        interpreter = Interpreter(manager)
        lines: Iterable[str] = commands or sys.stdin
        interpreter.run(lines, show)
    if echo:
        for line in interpreter.summary():
            click.echo(line)
    if interpreter.failed or interpreter.syntax_errors:
        raise SystemExit(FAILED)

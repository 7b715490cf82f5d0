"""``penstock mqsc``"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .common import fail, manager_argument, show_warnings
from .dump import print_dump
from .lines import WaitForInput, read_lines
from .terminal import descriptor_of, echo, echo_lines

if TYPE_CHECKING:
    from penstock.mqsc import Interpreter, Reply

INCOMPLETE = 10  # status: some commands were wrong or failed, as runmqsc has it


def _show_attributes(context: click.Context, option: click.Parameter, value: str) -> None:
    """``--attributes``: needs no queue manager."""
    if not value or context.resilient_parsing:
        return
    from penstock.mqsc.guide import guide

    noun, _, keyword = value.partition(".")
    lines = guide(noun, keyword)
    if not lines:
        fail(f"there is no help about {value}; say a kind such as QLOCAL, or QLOCAL.MAXDEPTH")
    echo_lines(lines)
    context.exit()


@click.command("mqsc")
@manager_argument
@click.argument("what", nargs=-1, metavar="[FILE|COMMAND]...")
@click.option("-e", "commands", multiple=True, metavar="COMMAND", help="A command. Repeatable.")
@click.option("-v", "--verify", is_flag=True, help="Only look whether the commands are right.")
@click.option("--dump", is_flag=True, help="As penstock dump: print all definitions as commands.")
@click.option(
    "--attributes",
    metavar="KIND[.ATTRIBUTE]",
    is_eager=True,
    expose_value=False,
    callback=_show_attributes,
    help="Explain the attributes of a kind of object, such as QLOCAL.",
)
def command(
    qm: str,
    home: Path | None,
    what: tuple[str, ...],
    commands: tuple[str, ...],
    verify: bool,
    dump: bool,
) -> None:
    """Run MQSC commands on QM: from FILEs, from arguments, else from stdin or the keyboard.

    An argument that names no file is a command. DEFINE, ALTER, DELETE, DISPLAY and CLEAR queues,
    and objects of other kinds; SET CHLAUTH and AUTHREC; DISPLAY QSTATUS and CONN; PING QMGR. A
    command that fails does not stop the others; the status is then 10. A warning says what of a
    command has no effect, and is no failure.
    """
    import penstock
    from penstock.mqsc import Interpreter

    show_warnings()
    if what and commands:
        fail("say files and commands as arguments, or commands with -e, not both")
    lines = _lines(what, commands)
    if lines is None and not dump:
        descriptor_of(sys.stdin, "input")
    with penstock.connect(qm, home=home, control=True) as manager:
        if dump:
            print_dump(manager)
            return
        interpreter = Interpreter(manager, check_only=verify)
        if lines is None and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty():
            from .shell import run_shell

            run_shell(manager, interpreter)
        else:
            _run(interpreter, _stdin() if lines is None else lines, bool(commands))
    if interpreter.failed or interpreter.syntax_errors:
        raise SystemExit(INCOMPLETE)


def _lines(what: tuple[str, ...], commands: tuple[str, ...]) -> Iterable[str] | None:
    """The lines to run; None for those of stdin. Ends the command when a file cannot be read."""
    if commands:
        return "\n".join(commands).split("\n")
    if not what:
        return None
    lines: list[str] = []
    for argument in what:
        lines += _lines_of(argument)
    return lines


def _stdin() -> Iterator[str]:
    """The lines of stdin, each as soon as it is there."""
    encoding, errors = sys.stdin.encoding, sys.stdin.errors or "strict"
    fd = descriptor_of(sys.stdin, "input")
    with WaitForInput() as wait:
        for line in read_lines(fd, wait=wait):
            yield line.decode(encoding, errors)


def _lines_of(argument: str) -> Iterator[str]:
    """The lines of a file, or those of a command."""
    from penstock.mqsc.words import VERB_OF

    first = argument.split(None, 1)[0].upper() if argument.strip() else ""
    if argument == "-":
        yield from _stdin()
    elif Path(argument).is_file():
        try:
            yield from Path(argument).read_text("utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            fail(f"{argument} is no text in UTF-8: {error}")
    elif first and first == argument.upper() and first not in VERB_OF and "(" not in first:
        fail(f"there is no file {argument}")
    else:
        yield from argument.split("\n")


def _run(interpreter: Interpreter, lines: Iterable[str], quiet: bool) -> None:
    """Runs the lines; commands that come from a text are shown with their replies and counted."""

    def show(reply: Reply) -> None:
        if not quiet:
            echo(f"{interpreter.read:>6} : {reply.command}")
        echo_lines(reply.lines)

    interpreter.run(lines, show)
    if not quiet:
        echo_lines(interpreter.summary())

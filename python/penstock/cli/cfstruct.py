"""``penstock cfstruct``"""

from __future__ import annotations

from pathlib import Path

import click

from .common import count_of, fail, manager_argument
from .terminal import echo, printable, table_console


@click.group("cfstruct")
def command() -> None:
    """Structures of the coupling facility, on a queue manager of platform z/OS."""


@command.command("list")
@manager_argument
def list_command(qm: str, home: Path | None) -> None:
    """Show QM's structures and how many queues and messages they hold."""
    from rich.table import Table

    import penstock

    table = Table()
    for column in ("structure", "CFLEVEL", "RECOVER", "queues", "messages"):
        table.add_column(column, no_wrap=True)
    with penstock.connect(qm, home=home, control=True) as manager:
        if manager.platform != "zos":
            fail(f"{qm} is not of platform z/OS: it has no structures")
        queues = manager.display("QLOCAL", "*")
        for structure in manager.display("CFSTRUCT", "*"):
            on_it = [q for q in queues if q["cfstruct"] == structure["name"]]
            table.add_row(
                str(structure["name"]),
                str(structure["cflevel"]),
                "YES" if structure["recover"] else "NO",
                str(len(on_it)),
                str(sum(int(str(q["curdepth"])) for q in on_it)),
            )
    table_console().print(table)


@command.command("fail")
@manager_argument
@click.argument("name", metavar="NAME")
@click.option("--yes", is_flag=True, help="Do not ask.")
def fail_command(qm: str, home: Path | None, name: str, yes: bool) -> None:
    """Simulate the failure of structure NAME: its non-persistent messages are lost, persistent
    ones are recovered from the journal.
    """
    import penstock
    from penstock.objects import TYPES

    with penstock.connect(qm, home=home, control=True) as manager:
        if manager.platform != "zos":
            fail(f"{qm} is not of platform z/OS: it has no structures")
        found = manager.look_up(TYPES["CFSTRUCT"].name_space, name)
        if found is None:
            fail(f"there is no structure {name} on {qm}")
        if not yes:
            question = f"Lose the non-persistent messages of all queues on structure {name}?"
            click.confirm(printable(question), abort=True)
        lost = manager.fail_structure(found[0], found[1])
        echo(
            f"structure {name} failed and is back: {count_of(lost, 'non-persistent message')} lost"
        )

"""``penstock cfstruct``"""

from __future__ import annotations

from pathlib import Path

import click

from .common import fail, manager_argument, table_console


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
    with penstock.connect(qm, home=home) as manager:
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

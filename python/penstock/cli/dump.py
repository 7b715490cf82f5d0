"""``penstock dump``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .common import NOTHING, fail, manager_argument, show_warnings
from .terminal import pass_on

if TYPE_CHECKING:
    from penstock import QueueManager


@click.command("dump")
@manager_argument
@click.option("-n", "--name", default="*", metavar="NAME", help="Only objects of it, or of ABC*.")
@click.option("-t", "--type", "types", multiple=True, metavar="TYPE", help="One, such as QLOCAL.")
@click.option("--system", is_flag=True, help="With the objects that each queue manager has.")
def command(qm: str, home: Path | None, name: str, types: tuple[str, ...], system: bool) -> None:
    """Print the definitions of QM as MQSC commands that make them.

    With all attributes, as dmpmqcfg -a has it; penstock mqsc runs them. Status 1 when there is
    nothing to print.
    """
    import penstock
    from penstock.mqsc.dump import KINDS

    show_warnings()
    wrong = [kind for kind in types if kind.upper() not in KINDS]
    if wrong:
        fail(f"{wrong[0]} is no type of object; there are {', '.join(KINDS)}")
    with penstock.connect(qm, home=home, control=True) as manager:
        if not print_dump(manager, name, types, system):
            raise SystemExit(NOTHING)


def print_dump(
    manager: QueueManager, name: str = "*", types: tuple[str, ...] = (), system: bool = False
) -> int:
    """Prints a heading and the commands; how many there were."""
    from penstock.mqsc.dump import KINDS, dump

    pass_on(f"* Definitions of queue manager {manager.name}")
    count = 0
    for text in dump(manager, name, types or KINDS, system):
        pass_on(text)
        count += 1
    return count

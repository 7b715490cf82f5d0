"""``penstock create``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .common import manager_argument
from .terminal import echo

if TYPE_CHECKING:
    from collections.abc import Callable

_CHOICES = {"platform": ["unix", "zos"], "logging": ["circular", "linear"]}


def _settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds an option for each setting."""
    from penstock.admin.settings import CHOSEN

    for field, item in reversed(CHOSEN.items()):
        kind: Any = click.Choice(_CHOICES[field]) if field in _CHOICES else item.type
        command = click.option(
            f"--{field.replace('_', '-')}",
            type=str if item.size else kind,
            metavar="SIZE" if item.size else None,
            default=None,
            help=item.help + (" Bytes, or such as 64M, 1G." if item.size else ""),
        )(command)
    return command


@click.command("create")
@manager_argument
@_settings
def command(qm: str, home: Path | None, **settings: Any) -> None:
    """Make the queue manager QM: a directory with its settings and an empty journal.

    What is not given takes its default, see docs/operations.md.
    """
    import penstock
    from penstock.admin.settings import manager_directory

    given = {field: value for field, value in settings.items() if value is not None}
    penstock.create(qm, home=home, **given)
    echo(f"queue manager {qm} created in {manager_directory(qm, home)}")

"""The definitions of a queue manager as commands that make them again.

The queue manager's own attributes come first, then what others need (structures, then queues), so
that the commands run in their order on a new queue manager. Dynamic queues and instances of cluster
queues are left out, as are passwords, which are not stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..names import matcher
from ..objects import TYPES
from .layout import as_commands

if TYPE_CHECKING:
    from penstock import QueueManager

KINDS = (
    "QMGR", "CFSTRUCT", "QLOCAL", "QMODEL", "QALIAS", "QREMOTE", "NAMELIST", "PROCESS", "CHANNEL",
    "AUTHINFO", "LISTENER", "SERVICE", "COMMINFO", "TOPIC", "SUB", "CHLAUTH", "AUTHREC",
)  # fmt: skip
_SYSTEM = "SYSTEM."


def _is_shipped(kind: str, name: str) -> bool:
    """Whether each queue manager has an object of the type and name; it has no records."""
    return name.startswith(_SYSTEM) and not TYPES[kind].identity


def dump(
    manager: QueueManager, name: str = "*", kinds: Iterable[str] = KINDS, system: bool = False
) -> Iterator[str]:
    """Yields the commands, each of several lines joined by newlines.

    Args:
        manager: a connected queue manager.
        name: only objects of this name, full or generic (``ABC*``).
        kinds: only these types, in any case.
        system: with the objects whose names begin with SYSTEM., which each queue manager has.
    """
    wanted = {kind.upper() for kind in kinds}
    fits = matcher(name)
    for kind in KINDS:
        if kind not in wanted or TYPES[kind].platform not in ("", manager.platform):
            continue
        found = (
            row
            for row in manager.display(kind)
            if fits(str(row["name"])) and (system or not _is_shipped(kind, str(row["name"])))
        )
        yield from as_commands(found)

"""Attributes of a queue that the queue manager changes itself: trigger control, enabled events."""

from __future__ import annotations

from ..objects.codec import encode, pruned, read
from ..objects.types import TYPES

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._engine import Connection
    from ..objects.attribute import Stored


def change(
    qm: Connection,
    slot: int,
    generation: int,
    changes: Mapping[int, Stored],
    only_if: Mapping[int, Stored],
) -> None:
    """Changes attributes of a local queue, whoever else alters it meanwhile.

    Args:
        slot, generation: the queue.
        changes: values by selector.
        only_if: values by selector that it must have; else nothing is done.

    Raises:
        QueueDeleted: 2052: the queue is gone. MQError: of the alter, such as 2192.
    """
    kind = TYPES["QLOCAL"]
    while True:
        number, name, attrs, version, space, instance = qm.read_stamped(slot, generation)
        stored = read(kind, attrs)
        if any(stored[selector] != value for selector, value in only_if.items()):
            return
        if qm.alter_object(
            slot, generation, number, name, encode(pruned(kind, {**stored, **changes})), version,
            False, space, instance,
        ):  # fmt: skip
            return

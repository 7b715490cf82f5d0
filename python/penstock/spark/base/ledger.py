"""The ledger of Spark's streams and sinks (penstock.client.ledger): the last commit of each.

Queue SYSTEM.SPARK.LEDGER holds an entry for each stream and sink, and for a week one for each batch
write that has ended (sink/ending.py). Owners are ``stream:``, ``sink:`` or ``write:`` and an id.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from penstock.client import ledger as ledgers
from penstock.client.ledger import Ledger

if TYPE_CHECKING:
    from penstock import QueueManager

__all__ = ["QUEUE", "Ledger", "entries", "ledger", "look"]

QUEUE = "SYSTEM.SPARK.LEDGER"
_DESCRIPTION = "what Spark's streams and sinks have committed"


def ledger(qm: QueueManager) -> AbstractContextManager[Ledger]:
    """Opens it exclusively. Raises ObjectInUse, 2042: another process has it for over a minute."""
    return ledgers.ledger(qm, QUEUE, _DESCRIPTION)


def look(qm: QueueManager, owner: str) -> dict[str, Any] | None:
    """The entry of an owner, as penstock.client.ledger.look() has it."""
    return ledgers.look(qm, QUEUE, owner)


def entries(qm: QueueManager) -> list[dict[str, Any]]:
    """All entries, as penstock.client.ledger.entries() has them."""
    return ledgers.entries(qm, QUEUE)

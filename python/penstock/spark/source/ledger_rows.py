"""What a queue manager's ledger knows of streams, sinks and batch writes, for those who show it.

Works without PySpark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base import units
from ..base.ledger import entries
from .abandoned import is_running

if TYPE_CHECKING:
    from penstock import QueueManager

__all__ = ["ledger_rows", "state_of"]


def ledger_rows(manager: QueueManager) -> list[dict[str, Any]]:
    """Each entry of the ledger, JSON-able, oldest first. kind: stream, sink or write. queue: its
    name, or the names or the pattern of several. prepared: units of work that it has left
    prepared. running: of a stream, whether a process runs it.
    """
    prepared = manager.recover()
    rows = []
    for entry in entries(manager):
        kind, _, name = entry.pop("owner").partition(":")
        if "queuePattern" in entry:
            entry["queue"] = entry.pop("queuePattern")
        running = is_running(manager.path, name) if kind == "stream" else None
        left = len(units.of_owner(prepared, kind, name))
        rows.append({"kind": kind, "id": name, **entry, "running": running, "prepared": left})
    return rows


def state_of(row: dict[str, Any]) -> str:
    """The state of an entry in words; "-" when there is nothing to say."""
    state = "running" if row["running"] else ""
    left = f"{row['prepared']} prepared" if row["prepared"] else ""
    return ", ".join(filter(None, (state, left))) or "-"

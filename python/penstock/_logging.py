"""Messages in Python's log, logger ``penstock``; logging is imported with the first of them."""

from __future__ import annotations


def discarded_at_restart(name: str, count: int) -> None:
    """Non-persistent messages that a restart did not bring back."""
    _warn("queue manager %s: the restart discarded %d non-persistent message%s", name, count)


def discarded_at_end(name: str, count: int) -> None:
    """Non-persistent messages lost because the last process left."""
    _warn(
        "queue manager %s: %d non-persistent message%s discarded, because no process is attached "
        "any more",
        name,
        count,
    )


def _warn(text: str, name: str, count: int) -> None:
    import logging

    logging.getLogger("penstock").warning(text, name, count, "" if count == 1 else "s")

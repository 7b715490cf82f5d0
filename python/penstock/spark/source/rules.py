"""Which messages of a queue are no rows: see aside.py, bodies.py."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DEAD_LETTER", "FAIL", "KEEP_ALL", "NULL", "Rules"]

FAIL, NULL, DEAD_LETTER = "fail", "null", "deadletter"  # onBadBody


class Rules(NamedTuple):
    """Which messages are put aside.

    Attributes:
        threshold: Those that were backed out so often; 0: none.
        on_bad: What becomes of bad bodies: FAIL, NULL or DEAD_LETTER, which puts them aside.
    """

    threshold: int = 0
    on_bad: str = FAIL


KEEP_ALL = Rules()

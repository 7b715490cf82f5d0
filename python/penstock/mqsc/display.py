"""Lays out what DISPLAY found: ``KEYWORD(value)`` pairs in two columns."""

from __future__ import annotations

from collections.abc import Sequence

_INDENT = "   "
_COLUMN = 40  # characters


def lay_out(pairs: Sequence[str]) -> list[str]:
    """Lines with one or two pairs each; a long pair has a line of its own."""
    lines: list[str] = []
    left = ""
    for pair in pairs:
        if left and len(left) < _COLUMN and len(pair) <= _COLUMN:
            lines.append(f"{_INDENT}{left:<{_COLUMN}}{pair}")
            left = ""
            continue
        if left:
            lines.append(_INDENT + left)
        left = pair
    if left:
        lines.append(_INDENT + left)
    return lines

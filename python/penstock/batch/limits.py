"""Limits and room of calls that read many messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..constants import ReasonCode
from ..errors import InvalidValue
from .refusals import wrong_type

if TYPE_CHECKING:
    from .._engine import QueueHandle


_FIRST_ROWS = 4096  # a call with more allocates for no more than the queue's depth
LEAST_ROOM = 65536
TYPICAL = 320  # bytes of a body, before any was read


def check_number(name: str, value: int, least: int) -> None:
    """Checks an integer argument. Raises InvalidType, InvalidValue: 2046."""
    if isinstance(value, bool) or not isinstance(value, int):
        wrong_type(f"{name} must be an integer, not {value!r:.40}", ReasonCode.OPTIONS_ERROR)
    if not least <= value < 2**63:
        raise InvalidValue(ReasonCode.OPTIONS_ERROR, f"{name} {value} is not {least} or more")


def row_capacity(queue: QueueHandle, wanted: int) -> int:
    """Rows to make room for: a large request is bounded by the depth of the queue."""
    return wanted if wanted <= _FIRST_ROWS else min(wanted, queue.counts()["depth"] + _FIRST_ROWS)


def check_limits(max_messages: int, max_bytes: int | None, up_to: int | None) -> None:
    """Checks the limits of a call. Raises InvalidType, InvalidValue: 2046."""
    check_number("max_messages", max_messages, 1)
    if max_bytes is not None:
        check_number("max_bytes", max_bytes, 1)
    if up_to is not None:
        check_number("up_to", up_to, 0)

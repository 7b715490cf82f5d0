"""Exceptions for arguments of batch calls, with MQ reason codes."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ..constants import ReasonCode
from ..errors import InvalidType, InvalidValue


def wrong_type(text: str, reason: int = ReasonCode.BUFFER_ERROR) -> NoReturn:
    """Raises InvalidType: 2004, or the reason of the field."""
    raise InvalidType(reason, text)


def wrong_length(text: str) -> NoReturn:
    """Raises InvalidValue: 2005."""
    raise InvalidValue(ReasonCode.BUFFER_LENGTH_ERROR, text)


def wrong_value(name: str, values: Any, wrong: Any, why: str, reason: int) -> NoReturn:
    """Raises InvalidValue for the first message where the mask ``wrong`` is set."""
    index = int(np.argmax(wrong))
    refuse_message(index, reason, f"{name} {values[index]!s} (message {index}) {why}")


def refuse_message(index: int | None, reason: int, text: str) -> NoReturn:
    """Raises InvalidValue for a message of the batch; None: for all."""
    error = InvalidValue(reason, text)
    error.index = index
    raise error

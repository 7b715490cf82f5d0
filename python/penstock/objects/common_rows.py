"""Attributes and words that the tables of several types share."""

from __future__ import annotations

from .._mqi_constants import selectors as mq
from ..constants import NAME_LENGTH
from .attribute import Attribute

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .attribute import Stored

MOST = 999999999
# Accounting, statistics, online monitoring: of an object as the queue manager says, or its own.
AS_MANAGER = -3
ON: Mapping[str, int] = {"OFF": 0, "ON": 1}
LEVELS: Mapping[str, int] = {"OFF": 0, "LOW": 17, "MEDIUM": 33, "HIGH": 65}
NEVER: Mapping[str, int] = {"NONE": -1}  # of the queue manager: whatever the object says
OWN_ON: Mapping[str, int] = {"QMGR": AS_MANAGER, **ON}
OWN_LEVELS: Mapping[str, int] = {"QMGR": AS_MANAGER, **LEVELS}
CONTROL: Mapping[str, int] = {"QMGR": 0, "STARTONLY": 1, "MANUAL": 2}


def name_row(
    keyword: str, selector: int, help: str, default: Stored = "", **more: Any
) -> Attribute:
    """An attribute that is the name of an object."""
    return Attribute(keyword, selector, help, default, length=NAME_LENGTH, name=True, **more)


def altered() -> list[Attribute]:
    """The time of the last change of the definition."""
    return [
        Attribute("ALTDATE", mq.MQCA_ALTERATION_DATE, "Date of the last change", "", length=12,
                  display_only=True),
        Attribute("ALTTIME", mq.MQCA_ALTERATION_TIME, "Time of the last change", "", length=8,
                  display_only=True),
    ]  # fmt: skip

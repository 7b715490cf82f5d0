"""Timestamps of a definition: date and time of its creation and of its last change."""

from __future__ import annotations

from time import gmtime, strftime

from .._mqi_constants import selectors as mq

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from .attribute import Stored

CREATED = (mq.MQCA_CREATION_DATE, mq.MQCA_CREATION_TIME)
_ALTERED = (mq.MQCA_ALTERATION_DATE, mq.MQCA_ALTERATION_TIME)


def current_times(creation: bool = False) -> dict[int, Stored]:
    """The current time (UTC) as values of the last change, on request also of the creation."""
    now = gmtime()
    date, time = strftime("%Y-%m-%d", now), strftime("%H.%M.%S", now)
    stamps: dict[int, Stored] = {_ALTERED[0]: date, _ALTERED[1]: time}
    if creation:
        stamps |= {CREATED[0]: date, CREATED[1]: time}
    return stamps

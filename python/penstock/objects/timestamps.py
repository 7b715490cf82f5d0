"""Timestamps of a definition: date and time of its creation and of its last change."""

from __future__ import annotations

from time import gmtime, strftime

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from .attribute import Stored

CREATED = (2004, 2005)  # selectors of CRDATE and CRTIME
_ALTERED = (2027, 2028)  # of ALTDATE and ALTTIME


def current_times(creation: bool = False) -> dict[int, Stored]:
    """The current time (UTC) as values of the last change, on request also of the creation."""
    now = gmtime()
    date, time = strftime("%Y-%m-%d", now), strftime("%H.%M.%S", now)
    stamps: dict[int, Stored] = {_ALTERED[0]: date, _ALTERED[1]: time}
    if creation:
        stamps |= {CREATED[0]: date, CREATED[1]: time}
    return stamps

"""Instances of cluster queues: several definitions of one name, told apart by CLUSQMGR.

They stand in name space 107 under the instance numbers 1, 2, 3 and so on, without a hole, so that
all of a name are found by counting up. An instance that is deleted leaves a vacant place (CLUSQMGR
blank), which the next one takes.
"""

from __future__ import annotations

from ..errors import UnknownObjectName
from ..objects.codec import decode, read
from ..objects.definition import describe
from ..objects.types import TYPES

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .. import _engine
    from ..objects.attribute import Stored
    from ..objects.definition import Definition
    from ..objects.types import ObjectType
    from .attachment import Attachment

    _Found = tuple[int, int, int, int]  # what look_up gives

_MANAGER = 2031  # selector of CLUSQMGR
_INSTANCES_MOST = 65536


class Place:
    """Where an object is or would be: what look_up found, its instance number, whether vacant."""

    __slots__ = ("found", "instance", "vacant", "what")

    def __init__(
        self, found: _Found | None, instance: int = 0, vacant: bool = False, what: str = ""
    ) -> None:
        """Notes the place; ``what``: which instance, for people."""
        self.found, self.instance, self.vacant, self.what = found, instance, vacant, what


def instances(
    connection: _engine.Connection, name: str
) -> Iterator[tuple[_Found, int, dict[int, Stored]]]:
    """What look_up found, instance number and stored values of each instance of a cluster queue."""
    for found, number, stored in _places(connection, name):
        if stored[_MANAGER]:
            yield found, number, stored


def _places(
    connection: _engine.Connection, name: str
) -> Iterator[tuple[_Found, int, dict[int, Stored]]]:
    """The places of a name, vacant ones too."""
    kind = TYPES["QCLUSTER"]
    for number in range(1, _INSTANCES_MOST):
        found = connection.look_up(kind.name_space, name, number)
        if found is None:
            return
        try:
            attrs = connection.read_object(found[0], found[1])[2]
        except UnknownObjectName:
            continue
        yield found, number, read(kind, attrs)


def place_of(
    connection: _engine.Connection, kind: ObjectType, name: str, given: Mapping[int, Stored]
) -> Place:
    """Where an object is, or where it goes; instances by the CLUSQMGR that is given."""
    if kind.name != "QCLUSTER":
        return Place(connection.look_up(kind.name_space, name))
    wanted = given.get(_MANAGER, "")
    what = f" of queue manager {wanted}"
    vacant: Place | None = None
    number = 0
    for found, number, stored in _places(connection, name):
        if stored[_MANAGER] == wanted and wanted:
            return Place(found, number, what=what)
        if not stored[_MANAGER] and vacant is None:
            vacant = Place(found, number, True, what)
    return vacant or Place(None, number + 1, what=what)


def display_instances(
    manager: Attachment, found: Iterable[tuple[ObjectType, str, bytes, int, int]]
) -> list[Definition]:
    """Definitions of those instances that are there, by name and queue manager."""
    shown = []
    for kind, name, attrs, _, _ in found:
        stored = decode(attrs)
        if stored.get(_MANAGER):
            shown.append(describe(kind, name, stored, manager.platform))
    return sorted(shown, key=lambda row: (str(row["name"]), str(row["clusqmgr"])))

"""Instances of cluster queues: several definitions of one name, distinguished by CLUSQMGR.

They are stored in name space 107 under the instance numbers 1, 2, 3 and so on, without gaps, so
that all instances of a name are found by counting up. A deleted instance leaves its number vacant
(CLUSQMGR blank); the next instance reuses it.
"""

from __future__ import annotations

from .._mqi_constants.selectors import MQCA_CLUSTER_Q_MGR_NAME
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

    _Found = tuple[int, int, int, int]  # the result of look_up()

_MANAGER = MQCA_CLUSTER_Q_MGR_NAME
_INSTANCES_MOST = 65536


class Location:
    """The slot in the catalog that an object has or would get.

    Attributes:
        found: the result of ``look_up()``, None for a new slot.
        instance: instance number, 0 for all objects but cluster queues.
        vacant: whether the slot is that of a deleted instance.
        what: text for messages: which instance.
    """

    __slots__ = ("found", "instance", "vacant", "what")

    def __init__(
        self, found: _Found | None, instance: int = 0, vacant: bool = False, what: str = ""
    ) -> None:
        """Stores the attributes."""
        self.found, self.instance, self.vacant, self.what = found, instance, vacant, what


def instances(
    connection: _engine.Connection, name: str
) -> Iterator[tuple[_Found, int, dict[int, Stored]]]:
    """The result of look_up(), instance number and stored values of each instance of a queue."""
    for found, number, stored in _locations(connection, name):
        if stored[_MANAGER]:
            yield found, number, stored


def _locations(
    connection: _engine.Connection, name: str
) -> Iterator[tuple[_Found, int, dict[int, Stored]]]:
    """As :func:`instances`, vacant numbers included."""
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


def location_of(
    connection: _engine.Connection, kind: ObjectType, name: str, given: Mapping[int, Stored]
) -> Location:
    """The location of an object, or the one for a new object; instances by CLUSQMGR."""
    if kind.name != "QCLUSTER":
        found = connection.look_up(kind.name_space, kind.catalog_name(name, given))
        if found is None and kind.subtype is not None and kind.subtype.selector not in given:
            found = connection.look_up(kind.name_space, kind.catalog_names(name)[-1])
        return Location(found)
    wanted = given.get(_MANAGER, "")
    what = f" of queue manager {wanted}"
    vacant: Location | None = None
    number = 0
    for found, number, stored in _locations(connection, name):
        if stored[_MANAGER] == wanted and wanted:
            return Location(found, number, what=what)
        if not stored[_MANAGER] and vacant is None:
            vacant = Location(found, number, True, what)
    return vacant or Location(None, number + 1, what=what)


def display_instances(
    manager: Attachment, found: Iterable[tuple[ObjectType, str, bytes, int, int]]
) -> list[Definition]:
    """Definitions of the instances that are not vacant, sorted by name and queue manager."""
    shown = []
    for kind, name, attrs, _, _ in found:
        stored = decode(attrs)
        if stored.get(_MANAGER):
            shown.append(describe(kind, name, stored, manager.platform))
    return sorted(shown, key=lambda row: (str(row["name"]), str(row["clusqmgr"])))

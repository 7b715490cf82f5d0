"""Types of object: QLOCAL to QMGR, each with its attributes, its name space and its rules of names.

Name spaces are those of the engine: 1 holds queues of every type, 107 the instances of cluster
queues, and the others 100 + MQOT_*. ``number`` is the type within it: MQQT_* for queues, MQOT_* for
other objects.
"""

from __future__ import annotations

from ..constants import ReasonCode
from ..errors import AttributeNameError, InvalidType, InvalidValue, ObjectNameError
from . import other_tables, queue_tables
from .attribute import Attribute, nearest

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .attribute import Stored

QUEUES, CLUSTER_QUEUES = 1, 107  # name spaces
_STRUCTURE_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_NAME = {  # selector of the object's name in MQINQ
    "PROCESS": 2012, "NAMELIST": 2010, "TOPIC": 2092, "QMGR": 2015, "CFSTRUCT": 2039,
    "CHANNEL": 3501,
}  # fmt: skip


class ObjectType:
    """A type of object.

    Attributes:
        name: as in DEFINE, such as "QLOCAL".
        noun: word for messages, such as "queue".
        name_space, number: the name space of its objects, and their type there.
        name_length: characters of a name at most.
        platform: "zos" when it exists there only, else "".
        default_object: the object that supplies defaults for new ones, "" for none.
        attributes: by keyword, as DISPLAY shows them.
        by_selector: the same, and those that only MQINQ knows (name and type).
        defaults: stored values by selector of an empty attribute list.
        always: selectors that a list always holds.
    """

    def __init__(
        self,
        name: str,
        noun: str,
        name_space: int,
        number: int,
        default_object: str,
        rows: list[Attribute],
        *,
        name_length: int = 48,
        platform: str = "",
    ) -> None:
        """Declares the type."""
        self.name, self.noun = name, noun
        self.name_space, self.number = name_space, number
        self.name_length, self.platform = name_length, platform
        self.default_object = default_object
        self.attributes: Mapping[str, Attribute] = {row.keyword: row for row in rows}
        self.by_selector: dict[int, Attribute] = {row.selector: row for row in rows}
        self._keywords = {word: row for row in rows for word in (row.keyword, *row.synonyms)}
        self.defaults: Mapping[int, Stored] = {
            row.selector: row.default for row in rows if not row.computed
        }
        self.always = frozenset(row.selector for row in rows if row.always)
        self._identify()

    def __repr__(self) -> str:
        """``<ObjectType QLOCAL>``."""
        return f"<ObjectType {self.name}>"

    @property
    def is_queue(self) -> bool:
        """Whether its objects are queues: local, model, alias, remote."""
        return self.name_space == QUEUES

    def attribute(self, keyword: str) -> Attribute:
        """The attribute of a keyword or synonym in any case.

        Raises AttributeNameError with the nearest keyword.
        """
        found = self._keywords.get(keyword.upper())
        if found is None:
            hint = nearest(keyword.upper(), self._keywords).lower()
            raise AttributeNameError(
                ReasonCode.SELECTOR_ERROR, f"{self.name} has no attribute {keyword!r}{hint}"
            )
        return found

    def check_name(self, name: str) -> str:
        """The name without trailing blanks, when an object of the type can have it.

        Raises:
            ObjectNameError, InvalidType: with the rule.
        """
        from ..names import check_object_name

        check_object_name(name, self.name_length)
        if self.name == "CFSTRUCT":
            wrong = [c for c in name if c not in _STRUCTURE_CHARACTERS]
            if wrong or name[0].isdigit():
                raise ObjectNameError(
                    ReasonCode.OBJECT_NAME_ERROR,
                    f"the name {name!r} is not one of a structure: 1 to 12 characters out of "
                    "A-Z 0-9, the first one a letter",
                )
        return name

    def _identify(self) -> None:
        """Adds the selectors of the name and of the type of queue."""
        own_name = _NAME.get(self.name, 2016)
        if own_name not in self.by_selector:
            self.by_selector[own_name] = Attribute(
                "NAME", own_name, "Name of the object", "", length=self.name_length,
                computed="name", display_only=True,
            )  # fmt: skip
        if self.name_space in (QUEUES, CLUSTER_QUEUES):
            self.by_selector[20] = Attribute(
                "QTYPE", 20, "Type of queue", self.number, words=queue_tables.QUEUE_TYPES,
                computed="type", display_only=True,
            )  # fmt: skip


_Q = "queue"
TYPES: Mapping[str, ObjectType] = {
    kind.name: kind
    for kind in (
        ObjectType("QLOCAL", _Q, 1, 1, "SYSTEM.DEFAULT.LOCAL.QUEUE", queue_tables.rows("L")),
        ObjectType("QALIAS", _Q, 1, 3, "SYSTEM.DEFAULT.ALIAS.QUEUE", queue_tables.rows("A")),
        ObjectType("QREMOTE", _Q, 1, 6, "SYSTEM.DEFAULT.REMOTE.QUEUE", queue_tables.rows("R")),
        ObjectType("QMODEL", _Q, 1, 2, "SYSTEM.DEFAULT.MODEL.QUEUE", queue_tables.rows("M")),
        ObjectType("QCLUSTER", "cluster queue", 107, 7, "", queue_tables.rows("C")),
        ObjectType("PROCESS", "process", 103, 3, "SYSTEM.DEFAULT.PROCESS", other_tables.PROCESS),
        ObjectType(
            "NAMELIST", "namelist", 102, 2, "SYSTEM.DEFAULT.NAMELIST", other_tables.NAMELIST
        ),
        ObjectType("TOPIC", "topic", 108, 8, "SYSTEM.DEFAULT.TOPIC", other_tables.TOPIC),
        ObjectType("CHANNEL", "channel", 106, 6, "", other_tables.CHANNEL, name_length=20),
        ObjectType(
            "CFSTRUCT", "structure", 110, 10, "", other_tables.CFSTRUCT, name_length=12,
            platform="zos",
        ),
        ObjectType("QMGR", "queue manager", 105, 5, "", other_tables.QMGR),
    )
}  # fmt: skip

# The type of an object, by its name space and number.
BY_NUMBER: Mapping[tuple[int, int], ObjectType] = {
    (kind.name_space, kind.number): kind for kind in TYPES.values()
}


def object_type(kind: str, platform: str = "zos") -> ObjectType:
    """The type of that name in any case, on a platform.

    Raises InvalidValue or InvalidType (MQRC_OBJECT_TYPE_ERROR) with what there is.
    """
    if not isinstance(kind, str):
        raise InvalidType(
            ReasonCode.OBJECT_TYPE_ERROR, f"an object type is a str, not {type(kind).__name__}"
        )
    found = TYPES.get(kind.upper())
    if found is None:
        raise InvalidValue(
            ReasonCode.OBJECT_TYPE_ERROR,
            f"{kind!r} is no type of object: {', '.join(TYPES)}",
        )
    if found.platform not in ("", platform):
        raise InvalidValue(
            ReasonCode.OBJECT_TYPE_ERROR, f"{found.name} is a type of object of platform z/OS"
        )
    return found

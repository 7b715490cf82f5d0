"""Types of object: QLOCAL to QMGR, each with its attributes, its name space and its rules of names.

Name spaces are those of the engine (:mod:`penstock.constants`). ``number`` is the type within one:
MQQT_* for queues, MQOT_* for other objects.
"""

from __future__ import annotations

from .._mqi_constants import calls, values
from .._mqi_constants import selectors as mq
from ..constants import (
    NAME_SPACE_CLUSTER_QUEUES,
    NAME_SPACE_OTHERS,
    NAME_SPACE_QUEUES,
    ReasonCode,
)
from ..errors import AttributeNameError, InvalidType, InvalidValue, ObjectNameError
from ..names import nearest
from . import other_tables, queue_tables
from .attribute import Attribute

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .attribute import Stored

_STRUCTURE_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_NAME = {  # selector of the object's name in MQINQ
    "PROCESS": mq.MQCA_PROCESS_NAME, "NAMELIST": mq.MQCA_NAMELIST_NAME,
    "TOPIC": mq.MQCA_TOPIC_NAME, "QMGR": mq.MQCA_Q_MGR_NAME, "CFSTRUCT": mq.MQCA_CF_STRUC_NAME,
    "CHANNEL": mq.MQCACH_CHANNEL_NAME,
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
        return self.name_space == NAME_SPACE_QUEUES

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
        own_name = _NAME.get(self.name, mq.MQCA_Q_NAME)
        if own_name not in self.by_selector:
            self.by_selector[own_name] = Attribute(
                "NAME", own_name, "Name of the object", "", length=self.name_length,
                computed="name", display_only=True,
            )  # fmt: skip
        if self.name_space in (NAME_SPACE_QUEUES, NAME_SPACE_CLUSTER_QUEUES):
            self.by_selector[mq.MQIA_Q_TYPE] = Attribute(
                "QTYPE", mq.MQIA_Q_TYPE, "Type of queue", self.number,
                words=queue_tables.QUEUE_TYPES, computed="type", display_only=True,
            )  # fmt: skip


def _other(
    name: str, noun: str, number: int, default_object: str, rows: list[Attribute], **more: Any
) -> ObjectType:
    """A type of object that is no queue: it has a name space to itself."""
    return ObjectType(name, noun, NAME_SPACE_OTHERS + number, number, default_object, rows, **more)


_Q = "queue"
TYPES: Mapping[str, ObjectType] = {
    kind.name: kind
    for kind in (
        ObjectType("QLOCAL", _Q, NAME_SPACE_QUEUES, values.MQQT_LOCAL,
                   "SYSTEM.DEFAULT.LOCAL.QUEUE", queue_tables.rows("L")),
        ObjectType("QALIAS", _Q, NAME_SPACE_QUEUES, values.MQQT_ALIAS,
                   "SYSTEM.DEFAULT.ALIAS.QUEUE", queue_tables.rows("A")),
        ObjectType("QREMOTE", _Q, NAME_SPACE_QUEUES, values.MQQT_REMOTE,
                   "SYSTEM.DEFAULT.REMOTE.QUEUE", queue_tables.rows("R")),
        ObjectType("QMODEL", _Q, NAME_SPACE_QUEUES, values.MQQT_MODEL,
                   "SYSTEM.DEFAULT.MODEL.QUEUE", queue_tables.rows("M")),
        ObjectType("QCLUSTER", "cluster queue", NAME_SPACE_CLUSTER_QUEUES, values.MQQT_CLUSTER, "",
                   queue_tables.rows("C")),
        _other("PROCESS", "process", calls.MQOT_PROCESS, "SYSTEM.DEFAULT.PROCESS",
               other_tables.PROCESS),
        _other("NAMELIST", "namelist", calls.MQOT_NAMELIST, "SYSTEM.DEFAULT.NAMELIST",
               other_tables.NAMELIST),
        _other("TOPIC", "topic", calls.MQOT_TOPIC, "SYSTEM.DEFAULT.TOPIC", other_tables.TOPIC),
        _other("CHANNEL", "channel", calls.MQOT_CHANNEL, "", other_tables.CHANNEL, name_length=20),
        _other("CFSTRUCT", "structure", calls.MQOT_CF_STRUC, "", other_tables.CFSTRUCT,
               name_length=12, platform="zos"),
        _other("QMGR", "queue manager", calls.MQOT_Q_MGR, "", other_tables.QMGR),
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

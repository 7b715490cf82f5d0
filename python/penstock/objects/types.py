"""Types of object: QLOCAL to QMGR, each with its attributes, its name space and its rules of names.

Name spaces are those of the engine (:mod:`penstock.constants`). ``number`` is the type within one:
MQQT_* for queues, MQOT_* for other objects.
"""

from __future__ import annotations

from .._mqi_constants import calls, values
from .._mqi_constants import selectors as mq
from ..constants import (
    NAME_CHARACTERS,
    NAME_LENGTH,
    NAME_SPACE_CLUSTER_QUEUES,
    NAME_SPACE_OTHERS,
    NAME_SPACE_QUEUES,
    ReasonCode,
)
from ..errors import AttributeNameError, InvalidType, InvalidValue, ObjectNameError
from ..names import nearest
from . import (
    administration_tables,
    channel_tables,
    manager_tables,
    other_tables,
    queue_tables,
)
from .attribute import Attribute

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .attribute import Stored

_STRUCTURE_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_NAME = {  # selector of the object's name in MQINQ
    "PROCESS": mq.MQCA_PROCESS_NAME, "NAMELIST": mq.MQCA_NAMELIST_NAME,
    "TOPIC": mq.MQCA_TOPIC_NAME, "QMGR": mq.MQCA_Q_MGR_NAME, "CFSTRUCT": mq.MQCA_CF_STRUC_NAME,
    "CHANNEL": mq.MQCACH_CHANNEL_NAME, "LISTENER": mq.MQCACH_LISTENER_NAME,
    "SERVICE": mq.MQCA_SERVICE_NAME, "AUTHINFO": mq.MQCA_AUTH_INFO_NAME,
    "COMMINFO": mq.MQCA_COMM_INFO_NAME, "SUB": mq.MQCACF_SUB_NAME,
    "AUTHREC": mq.MQCACF_AUTH_PROFILE_NAME, "CHLAUTH": mq.MQCACH_CHANNEL_NAME,
}  # fmt: skip
_LONG_NAME = 10240  # bytes of the name of a subscription
_SUBSCRIPTION = 1100  # subscriptions have no MQOT_*: a number of ours, above all of MQ's
_GENERIC = frozenset("*?@")  # characters of profiles besides those of names
_CATALOG_NAME_BYTES = NAME_LENGTH // 2  # of a digest, in hexadecimal the length of a name


class ObjectType:
    """A type of object.

    Attributes:
        name: as in DEFINE, such as "QLOCAL".
        noun: word for messages, such as "queue".
        name_space, number: the name space of its objects, and their type there.
        name_length: characters of a name at most.
        platform: "zos" when it exists there only, else "".
        default_object: the object that supplies defaults for new ones, "" for none.
        subtype: the attribute that says what kind of channel, of authentication information or of
            record an object is, None for types without such kinds.
        identity: attributes that distinguish objects of one name, in addition to it.
        separate: the subtype whose names are apart from those of the others, "" for none.
        unbuilt: the function that a definition of the type asks for and this release lacks.
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
        name_length: int = NAME_LENGTH,
        platform: str = "",
        subtype: str = "",
        identity: Sequence[str] = (),
        separate: str = "",
        unbuilt: str = "",
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
        self.subtype = self.attributes[subtype] if subtype else None
        self.identity = tuple(self.attributes[keyword] for keyword in identity)
        self.separate, self.unbuilt = separate, unbuilt
        self.name_selector = _NAME.get(name, mq.MQCA_Q_NAME)
        self._identify()

    def __repr__(self) -> str:
        """``<ObjectType QLOCAL>``."""
        return f"<ObjectType {self.name}>"

    @property
    def is_queue(self) -> bool:
        """Whether its objects are queues: local, model, alias, remote."""
        return self.name_space == NAME_SPACE_QUEUES

    @property
    def by_digest(self) -> bool:
        """Whether the catalog knows an object by a digest, its name being no name of the catalog:
        too long, or one of several objects.
        """
        return bool(self.identity) or self.name_length > NAME_LENGTH

    def catalog_name(self, name: str, stored: Mapping[int, Stored]) -> str:
        """The name under which the catalog has the object with these values."""
        apart = self.separate and self.subtype_of(stored) == self.separate
        if not (self.by_digest or apart):
            return name
        from hashlib import blake2b

        parts = [name, *(str(stored.get(row.selector, row.default)) for row in self.identity)]
        return blake2b("\0".join(parts).encode(), digest_size=_CATALOG_NAME_BYTES).hexdigest()

    def catalog_names(self, name: str) -> tuple[str, ...]:
        """The names under which the catalog can have objects of a name."""
        plain = self.catalog_name(name, {})
        if not self.separate or self.subtype is None:
            return (plain,)
        apart = {self.subtype.selector: self.subtype.words[self.separate]}
        return plain, self.catalog_name(name, apart)

    def own_name(self, name: str, stored: Mapping[int, Stored]) -> str:
        """The name of the object that the catalog has under a name, with these values."""
        return str(stored.get(self.name_selector, name))

    def subtype_of(self, stored: Mapping[int, Stored]) -> str:
        """The word of the subtype, such as SDR of a channel; "" for types without one."""
        if self.subtype is None:
            return ""
        return str(self.subtype.show(stored.get(self.subtype.selector, 0)))

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

        if self.by_digest:
            return self._check_long_name(name)
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

    def _check_long_name(self, name: str) -> str:
        """The name of a subscription, or a profile. Raises ObjectNameError, InvalidType."""
        if not isinstance(name, str):
            raise InvalidType(
                ReasonCode.OBJECT_NAME_ERROR, f"a name is a str, not {type(name).__name__}"
            )
        if self.identity:
            fits, rule = (NAME_CHARACTERS | _GENERIC).issuperset(name), "A-Z a-z 0-9 . _ / % * ? @"
        else:
            fits, rule = name.isprintable(), "printable ones"
        if not fits or not 1 <= len(name.encode("utf-8", "replace")) <= self.name_length:
            raise ObjectNameError(
                ReasonCode.OBJECT_NAME_ERROR,
                f"the name {name!r} is not one of a {self.noun}: 1 to {self.name_length} "
                f"characters, {rule}",
            )
        return name

    def _identify(self) -> None:
        """Adds the selectors of the name and of the type of queue."""
        own_name = self.name_selector
        if own_name not in self.by_selector:
            self.by_selector[own_name] = Attribute(
                "NAME", own_name, "Name of the object", "", length=self.name_length,
                computed="" if self.by_digest else "name", inquirable=not self.by_digest,
                display_only=True,
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
        _other("TOPIC", "topic", calls.MQOT_TOPIC, "SYSTEM.DEFAULT.TOPIC", other_tables.TOPIC,
               unbuilt="publish/subscribe"),
        _other("CHANNEL", "channel", calls.MQOT_CHANNEL, "", channel_tables.CHANNEL,
               name_length=20, subtype="CHLTYPE", separate="CLNTCONN", unbuilt="running channels"),
        _other("CFSTRUCT", "structure", calls.MQOT_CF_STRUC, "", other_tables.CFSTRUCT,
               name_length=12, platform="zos"),
        _other("LISTENER", "listener", calls.MQOT_LISTENER, "SYSTEM.DEFAULT.LISTENER.TCP",
               administration_tables.LISTENER, unbuilt="listeners"),
        _other("SERVICE", "service", calls.MQOT_SERVICE, "SYSTEM.DEFAULT.SERVICE",
               administration_tables.SERVICE, unbuilt="services"),
        _other("AUTHINFO", "authentication information object", calls.MQOT_AUTH_INFO, "",
               administration_tables.AUTHINFO, subtype="AUTHTYPE", unbuilt="authentication"),
        _other("COMMINFO", "communication information object", calls.MQOT_COMM_INFO,
               "SYSTEM.DEFAULT.COMMINFO.MULTICAST", administration_tables.COMMINFO,
               unbuilt="multicast"),
        _other("SUB", "subscription", _SUBSCRIPTION, "", administration_tables.SUB,
               name_length=_LONG_NAME, unbuilt="publish/subscribe"),
        _other("CHLAUTH", "channel authentication record", calls.MQOT_CHLAUTH, "",
               administration_tables.CHLAUTH, name_length=20, subtype="CHLAUTYP",
               identity=("CHLAUTYP", "ADDRESS", "CLNTUSER", "QMNAME", "SSLPEER", "SSLCERTI"),
               unbuilt="channel authentication"),
        _other("AUTHREC", "authority record", calls.MQOT_AUTH_REC, "",
               administration_tables.AUTHREC, identity=("OBJTYPE", "ENTTYPE", "ENTITY"),
               unbuilt="checks of authorities"),
        _other("QMGR", "queue manager", calls.MQOT_Q_MGR, "", manager_tables.QMGR),
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

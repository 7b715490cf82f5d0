"""Rules that concern more than one attribute of a definition.

Each is checked on the whole definition as it would be stored, by DEFINE and by ALTER alike. Rules:
"Queue attributes", "Dynamic queues from model queues", "Message channels" and "Queue-sharing
groups" of the MQI reference.
"""

from __future__ import annotations

from .._mqi_constants.values import (
    MQQDT_PREDEFINED,
    MQQDT_SHARED_DYNAMIC,
    MQQDT_TEMPORARY_DYNAMIC,
    MQQSGD_SHARED,
    MQUS_TRANSMISSION,
)
from ..constants import ReasonCode
from ..errors import InvalidValue

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .attribute import Stored
    from .types import ObjectType

    _Get = Callable[[str], Stored]

_SHARED = MQQSGD_SHARED
_TEMPORARY, _SHARED_DYNAMIC = MQQDT_TEMPORARY_DYNAMIC, MQQDT_SHARED_DYNAMIC
_PREDEFINED = MQQDT_PREDEFINED
_LEVEL_WITH_RECOVERY = 3
_NO_DEFAULT_ROUTE = "SYSTEM.CLUSTER.TRANSMIT.QUEUE"
_SYSTEM, _DEFAULT_LOCAL = "SYSTEM.", "SYSTEM.DEFAULT.LOCAL.QUEUE"
_STREAMING_SYSTEM_QUEUES = frozenset(
    (
        _DEFAULT_LOCAL,
        "SYSTEM.DEFAULT.MODEL.QUEUE",
        "SYSTEM.JMS.TEMPQ.MODEL",
        *(f"SYSTEM.ADMIN.{what}.QUEUE" for what in ("ACCOUNTING", "ACTIVITY", "STATISTICS")),
        *(
            f"SYSTEM.ADMIN.{what}.EVENT"
            for what in (
                "CHANNEL", "COMMAND", "CONFIG", "LOGGER", "PERFM", "PUBSUB", "QMGR",
            )
        ),
    )
)  # fmt: skip
_ROOT_TOPICS = ("SYSTEM.BASE.TOPIC", "SYSTEM.DEFAULT.TOPIC")


def check_definition(
    kind: ObjectType,
    name: str,
    stored: Mapping[int, Stored],
    given: Mapping[int, Stored],
    old: Mapping[int, Stored] | None = None,
) -> None:
    """Checks a definition.

    Args:
        kind: its type.
        name: its name.
        stored: every value by selector, as it would be stored.
        given: those that the command names.
        old: the values of the definition that is changed, None for a new one.

    Raises:
        InvalidValue: a rule is broken; the text has the values.
    """

    def get(keyword: str) -> Stored:
        row = kind.attributes[keyword]
        return stored.get(row.selector, row.default)

    if old is not None:
        _check_fixed(kind, name, stored, old)
    if "CLUSTER" in kind.attributes and "CLUSNL" in kind.attributes:
        _refuse(
            bool(get("CLUSTER") and get("CLUSNL")),
            f"{name}: CLUSTER({get('CLUSTER')}) and CLUSNL({get('CLUSNL')}) exclude each other",
        )
    check = _CHECKS.get(kind.name)
    if check is not None:
        check(name, get)
    if kind.subtype is not None:
        _check_subtype(kind, name, stored, given)


def _refuse(broken: bool, text: str, reason: int = ReasonCode.OPTIONS_ERROR) -> None:
    if broken:
        raise InvalidValue(reason, text)


def _check_fixed(
    kind: ObjectType, name: str, stored: Mapping[int, Stored], old: Mapping[int, Stored]
) -> None:
    """Checks that attributes which only DEFINE sets, and a queue's structure, are unchanged."""
    for row in kind.attributes.values():
        was, new = old.get(row.selector, row.default), stored.get(row.selector, row.default)
        shared = row.keyword == "CFSTRUCT" and old.get(63) == _SHARED
        dynamic = row.keyword == "STREAMQ" and old.get(7, _PREDEFINED) != _PREDEFINED
        _refuse(
            (row.fixed or shared or (dynamic and kind.name == "QLOCAL")) and was != new,
            f"{name}: {row.keyword} is {row.show(was)} and cannot be changed to {row.show(new)}",
        )


def _check_stream(name: str, get: _Get) -> None:
    """Checks STREAMQ ("Streaming queue restrictions")."""
    target = str(get("STREAMQ"))
    if not target:
        return
    _refuse(target == name, f"{name}: STREAMQ({target}) is the queue itself")
    _refuse(
        get("USAGE") == MQUS_TRANSMISSION,
        f"{name}: STREAMQ({target}) and USAGE(XMITQ) exclude each other",
    )
    _refuse(
        target.startswith(_SYSTEM) and target != _DEFAULT_LOCAL,
        f"{name}: STREAMQ({target}): no stream queue begins with {_SYSTEM}",
    )
    _refuse(
        name.startswith(_SYSTEM) and name not in _STREAMING_SYSTEM_QUEUES,
        f"{name}: STREAMQ({target}): this queue cannot be copied",
    )


def _check_local(name: str, get: _Get) -> None:
    _check_stream(name, get)
    shared, structure = get("QSGDISP") == _SHARED, get("CFSTRUCT")
    _refuse(shared and not structure, f"{name}: QSGDISP(SHARED) needs CFSTRUCT(name)")
    _refuse(
        bool(structure) and not shared,
        f"{name}: CFSTRUCT({structure}) needs QSGDISP(SHARED)",
    )


def _check_model(name: str, get: _Get) -> None:
    _check_stream(name, get)
    _refuse(
        get("DEFTYPE") == _TEMPORARY and get("DEFPSIST") == 1,
        f"{name}: DEFPSIST(YES) and DEFTYPE(TEMPDYN) exclude each other: temporary dynamic queues "
        "hold no persistent messages",
        ReasonCode.PERSISTENCE_ERROR,
    )
    _refuse(
        get("DEFTYPE") == _SHARED_DYNAMIC and not get("CFSTRUCT"),
        f"{name}: DEFTYPE(SHAREDYN) needs CFSTRUCT(name)",
    )


def _check_cluster_queue(name: str, get: _Get) -> None:
    for keyword in ("CLUSQMGR", "CLUSTER"):
        _refuse(not get(keyword), f"{name}: an instance of a cluster queue needs {keyword}")


def _check_structure(name: str, get: _Get) -> None:
    level = int(get("CFLEVEL"))
    _refuse(
        get("RECOVER") == 1 and level < _LEVEL_WITH_RECOVERY,
        f"{name}: RECOVER(YES) needs CFLEVEL(3) or higher, not CFLEVEL({level})",
    )


def _check_topic(name: str, get: _Get) -> None:
    _refuse(not get("TOPICSTR") and name not in _ROOT_TOPICS, f"{name}: a topic needs TOPICSTR")


def _check_queue_manager(name: str, get: _Get) -> None:
    _refuse(get("DEFXMITQ") == _NO_DEFAULT_ROUTE, f"{name}: DEFXMITQ cannot be {_NO_DEFAULT_ROUTE}")


def _check_subscription(name: str, get: _Get) -> None:
    _refuse(
        not get("TOPICSTR") and not get("TOPICOBJ"), f"{name}: a subscription needs TOPICSTR or "
        "TOPICOBJ",
    )  # fmt: skip


def _check_subtype(
    kind: ObjectType, name: str, stored: Mapping[int, Stored], given: Mapping[int, Stored]
) -> None:
    """Checks that the subtype has the attributes that are given, and those that it needs."""
    subtype, word = kind.subtype_of(stored), kind.subtype.keyword if kind.subtype else ""
    for selector in given:
        row = kind.by_selector[selector]
        _refuse(
            bool(row.kinds) and subtype not in row.kinds,
            f"{name}: a {kind.noun} of type {subtype} has no {row.keyword}; it is for "
            + ", ".join(row.kinds),
        )
    if name.startswith("SYSTEM.DEF"):
        return
    for keyword, subtypes in _NEEDED.get(kind.name, {}).items():
        value = stored.get(kind.attributes[keyword].selector)
        _refuse(subtype in subtypes and not value, f"{name}: {word}({subtype}) needs {keyword}")


_NEEDED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "CHANNEL": {
        "CONNAME": ("SDR", "RQSTR", "CLUSSDR", "CLNTCONN"),
        "XMITQ": ("SDR", "SVR"),
    },
    "AUTHINFO": {"CONNAME": ("CRLLDAP", "IDPWLDAP"), "OCSPURL": ("OCSP",)},
    "CHLAUTH": {
        "ADDRESS": ("ADDRESSMAP",),
        "CLNTUSER": ("USERMAP",),
        "QMNAME": ("QMGRMAP",),
        "SSLPEER": ("SSLPEERMAP",),
    },
}
_CHECKS: Mapping[str, Callable[[str, _Get], None]] = {
    "QLOCAL": _check_local,
    "QMODEL": _check_model,
    "QCLUSTER": _check_cluster_queue,
    "CFSTRUCT": _check_structure,
    "TOPIC": _check_topic,
    "SUB": _check_subscription,
    "QMGR": _check_queue_manager,
}

"""The objects that every queue manager has: SYSTEM.DEFAULT.*, SYSTEM.DEF.*, and its own.

They are made at the first start that does not find the queue manager's own object, in one call that
flushes once; that object is the last one. A crash in between leaves some of the others, and the
next start makes those that are missing.
"""

from __future__ import annotations

import functools

from ..constants import MAX_DEPTH, ReasonCode
from ..errors import ObjectAlreadyExists, ObjectInUse
from .codec import encode, pruned
from .definition import parse_all
from .timestamps import current_times
from .types import TYPES

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .. import _engine
    from ..admin.settings import Settings
    from .attribute import Stored

    _Row = tuple[int, int, str, int, bytes]  # arguments of define_objects()

_DEFAULT_MAXIMUM = 4194304  # bytes: MAXMSGL of a queue as shipped
_ATTEMPTS = 100  # of processes that start at the same moment

EVENT_QUEUE = "SYSTEM.ADMIN.PERFM.EVENT"  # of performance events
CHANNEL_DEFAULTS = {
    "SDR": "SYSTEM.DEF.SENDER", "SVR": "SYSTEM.DEF.SERVER", "RCVR": "SYSTEM.DEF.RECEIVER",
    "RQSTR": "SYSTEM.DEF.REQUESTER", "CLUSSDR": "SYSTEM.DEF.CLUSSDR",
    "CLUSRCVR": "SYSTEM.DEF.CLUSRCVR", "SVRCONN": "SYSTEM.DEF.SVRCONN",
    "CLNTCONN": "SYSTEM.DEF.CLNTCONN", "AMQP": "SYSTEM.DEF.AMQP",
}  # fmt: skip
AUTHINFO_DEFAULTS = {
    "CRLLDAP": "SYSTEM.DEFAULT.AUTHINFO.CRLLDAP", "OCSP": "SYSTEM.DEFAULT.AUTHINFO.OCSP",
    "IDPWOS": "SYSTEM.DEFAULT.AUTHINFO.IDPWOS", "IDPWLDAP": "SYSTEM.DEFAULT.AUTHINFO.IDPWLDAP",
}  # fmt: skip
# The objects that supply defaults for new ones, by type and subtype.
SUBTYPE_DEFAULTS = {"CHANNEL": CHANNEL_DEFAULTS, "AUTHINFO": AUTHINFO_DEFAULTS}
# Queues that must take every message: they have the queue manager's MAXMSGL, also when it changes.
LIMIT_FOLLOWERS = {
    "SYSTEM.DEAD.LETTER.QUEUE": "NORMAL", "SYSTEM.CLUSTER.TRANSMIT.QUEUE": "XMITQ",
}  # fmt: skip
_BASE_TOPIC = {
    "defpsist": "NO", "defprty": 0, "defpresp": "SYNC", "pub": "ENABLED", "sub": "ENABLED",
    "dursub": "YES", "pmsgdlv": "ALLDUR", "npmsgdlv": "ALLAVAIL", "pubscope": "ALL",
    "subscope": "ALL", "usedlq": "YES", "capexpry": "NOLIMIT",
    "mcast": "DISABLED",
    "mdurmdl": "SYSTEM.DURABLE.MODEL.QUEUE", "mndurmdl": "SYSTEM.NDURABLE.MODEL.QUEUE",
}  # fmt: skip


def shipped(kind: str, platform: str, subtype: str = "") -> dict[int, Stored]:
    """The values of a type, and of a subtype of it, as shipped for a platform."""
    return {
        row.selector: row.default_on(platform, subtype)
        for row in TYPES[kind].attributes.values()
        if not row.computed and row.applies(platform, subtype)
    }


def make_missing(connection: _engine.Connection, settings: Settings) -> None:
    """Defines those SYSTEM objects that the queue manager lacks, its own object last.

    Raises:
        StorageMediumFull, QueueManagerQuiescing, ...: from the engine.
    """
    for _ in range(_ATTEMPTS):
        missing = [
            row for row in _rows(settings) if connection.look_up(row[0], row[2], row[3]) is None
        ]
        if not missing:
            return
        try:
            connection.define_objects(missing)
            return
        except ObjectAlreadyExists:
            continue  # another process starts too
    raise ObjectInUse(
        ReasonCode.OBJECT_IN_USE,
        f"queue manager {settings.name}: {_ATTEMPTS} attempts to define its SYSTEM objects",
    )


def _rows(settings: Settings) -> Iterator[_Row]:
    """Name space, type, catalog's name, instance and attribute list of each SYSTEM object."""
    now = current_times(creation=True)
    yield from _default_rows(settings.platform, settings.max_message_length, tuple(now.items()))
    limits = {
        "maxmsgl": settings.max_message_length,
        "maxumsgs": settings.max_uncommitted_messages,
    }
    identifier = own_identifier(settings)
    yield _row(settings.platform, now, "QMGR", settings.name, "", limits, identifier)


@functools.lru_cache(maxsize=1)  # for programs that make one queue manager after another
def _default_rows(
    platform: str, longest: int, now: tuple[tuple[int, Stored], ...]
) -> tuple[_Row, ...]:
    """Those of all but the queue manager's own object."""
    times = dict(now)
    return tuple(_row(platform, times, *given) for given in _definitions(longest))


def _row(
    platform: str,
    times: dict[int, Stored],
    kind_name: str,
    name: str,
    subtype: str,
    given: dict[str, Any],
    more: dict[int, Stored] | None = None,
) -> _Row:
    """One of them; ``more``: values that nobody may give."""
    kind = TYPES[kind_name]
    stored = shipped(kind_name, platform, subtype) | parse_all(kind, given, platform) | (more or {})
    stored |= {selector: times[selector] for selector in times if selector in stored}
    known = kind.catalog_name(name, stored)
    if known != name:
        stored[kind.name_selector] = name
    return kind.name_space, kind.number, known, 0, encode(pruned(kind, stored))


def _definitions(max_message_length: int) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Type, name, subtype and attributes of each SYSTEM object but the queue manager's."""
    longest = {"maxmsgl": min(_DEFAULT_MAXIMUM, max_message_length)}
    yield "QLOCAL", TYPES["QLOCAL"].default_object, "", longest
    yield "QMODEL", TYPES["QMODEL"].default_object, "", longest
    for kind in ("QALIAS", "QREMOTE", "PROCESS", "NAMELIST", "TOPIC", "LISTENER", "SERVICE",
                 "COMMINFO"):  # fmt: skip
        yield kind, TYPES[kind].default_object, "", {}
    yield "TOPIC", "SYSTEM.BASE.TOPIC", "", _BASE_TOPIC
    for channel, name in CHANNEL_DEFAULTS.items():
        yield "CHANNEL", name, channel, {"chltype": channel}
    for authtype, name in AUTHINFO_DEFAULTS.items():
        yield "AUTHINFO", name, authtype, {"authtype": authtype}
    large = {"maxmsgl": max_message_length, "maxdepth": MAX_DEPTH}
    for name, usage in LIMIT_FOLLOWERS.items():
        yield "QLOCAL", name, "", large | {"usage": usage}
    yield "QLOCAL", "SYSTEM.ADMIN.COMMAND.QUEUE", "", longest | {"maxdepth": 3000}
    yield "QLOCAL", EVENT_QUEUE, "", longest


def own_identifier(settings: Settings) -> dict[int, Stored]:
    """QMID, the identifier of the queue manager's object, made of name and number."""
    row = TYPES["QMGR"].attributes["QMID"]
    return {row.selector: f"{settings.name[:15]}_{settings.qm_id.hex()}"}

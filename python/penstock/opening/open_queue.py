"""Opening queues: the steps between a resolved name and a handle of the engine.

Checks the options against the type of the object, binds an instance of a cluster queue, and names
the dynamic queue that a model queue makes. ``qm.open()``, MQOPEN and MQPUT1 share this module; a
local queue that is opened by its own name takes the binding's quick path instead.

Rules: "MQOPEN options", "DynamicQName", "Cluster binding".
"""

from __future__ import annotations

import zlib
from contextlib import suppress

from .._mqi_constants.calls import MQOO_OUTPUT
from .._mqi_constants.values import MQBND_BIND_ON_OPEN
from ..constants import (
    NAME_CHARACTERS,
    NAME_LENGTH,
    QueueType,
    ReasonCode,
)
from ..errors import UnknownObjectName, error_for
from .resolution import binding, choose_instance, differing, resolve

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .._engine import Connection
    from .resolution import Destination

_STAR_LIMIT = 33  # positions 1 to 33: 15 characters and more remain for what is generated
_OUTPUT, _BIND_ON_OPEN = MQOO_OUTPUT, MQBND_BIND_ON_OPEN
_DIFFERING_INSTANCES = 9407  # AMQ9407
_UNIQUE = 16


def prepare(
    qm: Connection, name: str, manager: str, options: int, dynamic_name: str
) -> tuple[str, Destination, bytes | None]:
    """Prepares the open of a queue: name, destination, and the definition of a queue to be made.

    Args:
        qm: the connection.
        name, manager: ObjectName and ObjectQMgrName.
        options: MQOO_*, checked among themselves.
        dynamic_name: DynamicQName, for a model queue.

    Raises:
        MQError: as :func:`.resolution.resolve`; 2045 when an option does not fit; 2011 and 2100 for
            DynamicQName; 2268 when no instance of a cluster queue can be bound.
    """
    destination = resolve(qm, name, manager, options)
    check_options(destination, options)
    if destination.instances and options & _OUTPUT:
        bind(qm, destination, options)
    if destination.opened != QueueType.MODEL:
        return name, destination, None
    from ..objects.codec import decode, encode
    from ..objects.inquiry import dynamic_queue

    made = new_name(dynamic_name, lambda: qm.new_id()[-_UNIQUE // 2 :].hex().upper())
    attrs = encode(dynamic_queue(decode(qm.read_object(*destination.queue)[2])))
    return made, destination, attrs


def check_options(destination: Destination, options: int) -> None:
    """Checks open options against the type of the destination. Raises MQError: 2045."""
    from .option_rules import CLUSTER, LOCAL, REMOTE, REMOTE_DEFINITION, VALID

    if destination.instances:
        kind = CLUSTER
    elif destination.remote is None:
        kind = LOCAL
    else:
        kind = REMOTE_DEFINITION if destination.inquired is not None else REMOTE
    wrong = options & ~VALID[kind]
    if wrong:
        what = ("local", "remote", "remote", "cluster")[kind]
        raise error_for(
            ReasonCode.OPTION_NOT_VALID_FOR_TYPE,
            f"the options {wrong:#x} do not fit {destination.resolved_name}, a {what} queue",
        )


def bind(qm: Connection, destination: Destination, options: int) -> None:
    """Binds the handle to one instance of a cluster queue, unless the bind option is NOT_FIXED.

    Logs AMQ9407 when the instances differ in their defaults.
    """
    if destination.first is None and differing(qm, destination.instances):
        _report_differing(qm, destination)
    if binding(qm, destination, options) != _BIND_ON_OPEN:
        return
    chosen = choose_instance(qm, destination)
    if chosen.here:
        destination.stay_here(chosen)
        return
    destination.bound = chosen
    destination.resolved_manager = chosen.queue_manager
    destination.steps.insert(
        len(destination.steps) - 1, (chosen.slot, chosen.generation, chosen.resolution)
    )


def _report_differing(qm: Connection, destination: Destination) -> None:
    """Logs AMQ9407, once for each state of the definitions and hour, whichever process opens the
    queue: an application that does so for every message must not fill the error log.
    """
    versions = repr(list(_versions(qm, destination))).encode("ascii")
    first = destination.instances[0]
    if qm.report_is_due(first.slot, first.generation, zlib.crc32(versions)):
        qm.log(
            _DIFFERING_INSTANCES,
            "W",
            f"cluster queue {destination.resolved_name} is defined inconsistently: its instances "
            "differ in DEFPSIST or DEFPRTY",
        )


def _versions(qm: Connection, destination: Destination) -> Iterator[tuple[int, int, int]]:
    """Slot, generation and definition version of each instance."""
    for each in destination.instances:
        with suppress(UnknownObjectName):  # deleted concurrently
            yield each.slot, each.generation, qm.read_stamped(each.slot, each.generation)[3]


def new_name(pattern: str, unique: Callable[[], str]) -> str:
    """The name of a dynamic queue.

    Args:
        pattern: DynamicQName: a name, or a prefix of one with ``*`` as its last character.
        unique: returns 16 characters that no other name has.

    Raises:
        MQError: 2011 when the pattern is neither.
    """
    pattern = pattern.split("\0", 1)[0].rstrip(" ")
    start = pattern[:-1] if pattern.endswith("*") else pattern
    text = f"DynamicQName {pattern!r} "
    if not pattern:
        raise error_for(ReasonCode.DYNAMIC_Q_NAME_ERROR, text + "is blank")
    if not NAME_CHARACTERS.issuperset(start) or len(pattern) > NAME_LENGTH:
        raise error_for(
            ReasonCode.DYNAMIC_Q_NAME_ERROR,
            text + f"is not at most {NAME_LENGTH} characters A-Z a-z 0-9 . _ / %, or fewer and *",
        )
    if start is pattern:
        return pattern
    if len(pattern) > _STAR_LIMIT:
        raise error_for(
            ReasonCode.DYNAMIC_Q_NAME_ERROR, text + f"has its * behind position {_STAR_LIMIT}"
        )
    return start + unique()

"""Opening queues: what lies between a resolved name and a handle of the engine.

Which options fit what was opened, which instance of a cluster queue is bound, and what a model
queue becomes. The faces (``qm.open()``, MQOPEN, MQPUT1) meet here; a local queue opened by its own
name does not even come here.

Rules: "MQOPEN options", "DynamicQName", "Cluster binding".
"""

from __future__ import annotations

from ..constants import NAME_CHARACTERS, NAME_LENGTH, QueueType, ReasonCode
from ..errors import error_for
from .resolution import binding, choose_instance, differing, resolve

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Callable

    from .._engine import Connection
    from .resolution import Route

_STAR_LIMIT = 33  # positions 1 to 33: 15 characters and more remain for what is generated
_OUTPUT, _BIND_ON_OPEN = 16, 0
_DIFFERING_INSTANCES = 9407  # AMQ9407
_UNIQUE = 16


def prepare(
    qm: Connection, name: str, manager: str, options: int, dynamic_name: str
) -> tuple[str, Route, bytes | None]:
    """What a handle for a queue needs: name, route, and the definition when it is to be made.

    Args:
        qm: the connection.
        name, manager: ObjectName and ObjectQMgrName.
        options: MQOO_*, checked among themselves.
        dynamic_name: DynamicQName, for a model queue.

    Raises:
        MQError: what name resolution gives; 2045 when an option does not fit; 2011 and 2100 for
            DynamicQName; 2268 when no instance of a cluster queue can be bound.
    """
    route = resolve(qm, name, manager, options)
    check_options(route, options)
    if route.instances and options & _OUTPUT:
        bind(qm, route, options)
    if route.opened != QueueType.MODEL:
        return name, route, None
    from ..objects.codec import decode, encode
    from ..objects.inquiry import dynamic_queue

    made = new_name(dynamic_name, lambda: qm.new_id()[-_UNIQUE // 2 :].hex().upper())
    attrs = encode(dynamic_queue(decode(qm.read_object(*route.queue)[2])))
    return made, route, attrs


def check_options(route: Route, options: int) -> None:
    """Refuses open options that do not fit what the name resolved to: 2045."""
    from .option_rules import CLUSTER, LOCAL, REMOTE, REMOTE_DEFINITION, VALID

    if route.instances:
        kind = CLUSTER
    elif route.remote is None:
        kind = LOCAL
    else:
        kind = REMOTE_DEFINITION if route.inquired is not None else REMOTE
    wrong = options & ~VALID[kind]
    if wrong:
        what = ("local", "remote", "remote", "cluster")[kind]
        raise error_for(
            ReasonCode.OPTION_NOT_VALID_FOR_TYPE,
            f"the options {wrong:#x} do not fit {route.resolved_name}, a {what} queue",
        )


def bind(qm: Connection, route: Route, options: int) -> None:
    """Chooses the instance that the handle keeps, when it keeps one; logs instances that differ."""
    if route.first is None and differing(qm, route.instances):
        qm.log(
            _DIFFERING_INSTANCES,
            "W",
            f"cluster queue {route.resolved_name} is defined inconsistently: its instances differ "
            "in DEFPSIST or DEFPRTY",
        )
    if binding(qm, route, options) != _BIND_ON_OPEN:
        return
    chosen = choose_instance(qm, route)
    route.bound = chosen
    route.resolved_manager = chosen.queue_manager
    route.steps.insert(len(route.steps) - 1, (chosen.slot, chosen.generation, chosen.resolution))


def new_name(pattern: str, unique: Callable[[], str]) -> str:
    """The name of a dynamic queue.

    Args:
        pattern: DynamicQName: a name, or the beginning of one with ``*`` as its last character.
        unique: gives 16 characters that no other name has.

    Raises:
        MQError: 2011 when it is no such name.
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

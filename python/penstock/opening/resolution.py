"""Name resolution: from the names that an application gives to the queue that receives messages.

Rules of "Name resolution" and "How are destination object attributes resolved for aliases, remote
queues and cluster queues?". ObjectQMgrName is resolved before ObjectName, once, at the open. The
result is a :class:`Destination`: the target queue, the *first definition* (it supplies DEFPSIST and
DEFPRTY at each put), the definitions that the handle depends on (a change of one is 2041), and, for
a remote destination, the names for its transmission header.

The module does not depend on the engine: a :class:`Source` answers two questions, so that tests can
use a dictionary.

Choices where the rules are silent:

* An alias resolves to its base for every open option, so 2082 and 2001 come from INQUIRE too.
* A local definition of a remote queue is followed only for OUTPUT; INQUIRE and SET work on the
  definition.
* A queue-manager alias leads to the local queue manager, a transmission queue or a cluster, not to
  another queue-manager alias: 2087.
* A local queue that is not a transmission queue, named as a queue manager, is 2092.
* A local queue in a cluster is one of its instances for an open for output alone; all other opens,
  and all of a local queue that has neither CLUSTER nor CLUSNL, lead to the local queue.
* The name of a cluster queue manager is known from the instances of the queue that is opened.
* Among the instances of a cluster queue the choice goes by CLWLRANK, PUT, CLWLUSEQ and CLWLPRTY,
  then round robin.
* RQMNAME of a remote queue may be a cluster queue manager; XMITQ and a queue of that name go first.
"""

from __future__ import annotations

from contextlib import suppress

from .._mqi_constants import calls
from .._mqi_constants import selectors as mq
from .._mqi_constants.values import (
    MQCLWL_USEQ_ANY,
    MQCLWL_USEQ_AS_Q_MGR,
    MQUS_TRANSMISSION,
)
from ..constants import (
    NAME_CHARACTERS,
    NAME_LENGTH,
    NAME_SPACE_CLUSTER_QUEUES,
    NAME_SPACE_QUEUE_MANAGERS,
    NAME_SPACE_QUEUES,
    QueueType,
    ReasonCode,
)
from ..errors import UnknownObjectName, error_for

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from typing import NoReturn, Protocol

    from ..errors import MQError

    Found = tuple[int, int, int, int]  # slot, generation, type, resolution version

    class Source(Protocol):
        """The definitions that names are resolved with."""

        @property
        def name(self) -> str:
            """Name of the local queue manager."""

        def look_up(self, name_space: int, name: str, instance: int = 0) -> Found | None:
            """The object of a name, None when it does not exist."""

        def values(
            self, slot: int, generation: int, selectors: tuple[int, ...]
        ) -> tuple[int | str | None, ...]:
            """Stored attribute values, None for each that the definition does not have."""


CLUSTER_TRANSMIT_QUEUE = "SYSTEM.CLUSTER.TRANSMIT.QUEUE"

_USAGE, _INHIBIT_PUT, _BASE_TYPE = mq.MQIA_USAGE, mq.MQIA_INHIBIT_PUT, mq.MQIA_BASE_TYPE
_DEF_PERSISTENCE, _DEF_PRIORITY = mq.MQIA_DEF_PERSISTENCE, mq.MQIA_DEF_PRIORITY
_BASE_QUEUE, _REMOTE_QUEUE = mq.MQCA_BASE_Q_NAME, mq.MQCA_REMOTE_Q_NAME
_REMOTE_QUEUE_MANAGER, _TRANSMISSION_QUEUE = mq.MQCA_REMOTE_Q_MGR_NAME, mq.MQCA_XMIT_Q_NAME
_DEFAULT_TRANSMISSION_QUEUE = mq.MQCA_DEF_XMIT_Q_NAME
_CLUSTER_QUEUE_MANAGER, _DEF_BIND = mq.MQCA_CLUSTER_Q_MGR_NAME, mq.MQIA_DEF_BIND
_CHOICE = _CLUSTER_QUEUE_MANAGER, _INHIBIT_PUT, mq.MQIA_CLWL_Q_RANK, mq.MQIA_CLWL_Q_PRIORITY
_CLUSTERS = mq.MQCA_CLUSTER_NAME, mq.MQCA_CLUSTER_NAMELIST
_USE_QUEUE, _USE_AS_MANAGER, _USE_ANY = mq.MQIA_CLWL_USEQ, MQCLWL_USEQ_AS_Q_MGR, MQCLWL_USEQ_ANY
_XMITQ, _TOPIC = MQUS_TRANSMISSION, calls.MQOT_TOPIC
_LOCAL, _MODEL, _ALIAS, _REMOTE = (
    int(QueueType.LOCAL),
    int(QueueType.MODEL),
    int(QueueType.ALIAS),
    int(QueueType.REMOTE),
)
_CLUSTER = int(QueueType.CLUSTER)


# MQOO_* that need an object of this queue manager.
_NEEDS_LOCAL = (
    calls.MQOO_INPUT_AS_Q_DEF
    | calls.MQOO_INPUT_SHARED
    | calls.MQOO_INPUT_EXCLUSIVE
    | calls.MQOO_BROWSE
    | calls.MQOO_INQUIRE
    | calls.MQOO_SET
)
_OUTPUT = calls.MQOO_OUTPUT


class Instance:
    """One instance of a cluster queue: a definition at another queue manager, known here, or the
    local queue itself (``here``).
    """

    __slots__ = ("generation", "here", "queue_manager", "resolution", "slot")

    def __init__(
        self, slot: int, generation: int, resolution: int, queue_manager: str, here: bool = False
    ) -> None:
        """Slot, generation and resolution version of the definition, and its queue manager."""
        self.here = here
        self.slot = slot
        self.generation = generation
        self.resolution = resolution
        self.queue_manager = queue_manager


class Destination:
    """The result of resolving a name.

    Attributes:
        opened: type of the definition that was opened (MQQT_*), 0 when the queue manager's name
            alone decided.
        queue: slot and generation of the target: a local queue or a transmission queue; of the
            definition itself when it is opened for INQUIRE or SET alone.
        queue_name: the target's name.
        first: slot and generation of the first definition.
        steps: (slot, generation, resolution version) of all definitions used, in their order.
        remote: RemoteQName and RemoteQMgrName for the transmission header, None for a local target.
        resolved_name, resolved_manager: ResolvedQName and ResolvedQMgrName.
        inquired: slot and generation of the definition that MQINQ and MQSET work on, None when
            this queue manager has none.
        output_only: reached through a queue-manager alias for the local queue manager.
        instances: of a cluster queue, else empty; ``bound``: the one that the handle keeps.
    """

    __slots__ = (
        "bound",
        "first",
        "inquired",
        "instances",
        "opened",
        "output_only",
        "queue",
        "queue_name",
        "remote",
        "resolved_manager",
        "resolved_name",
        "steps",
    )

    def __init__(self) -> None:
        """An empty destination; :func:`resolve` fills it."""
        self.opened = 0
        self.queue = (0, 0)
        self.queue_name = ""
        self.first: tuple[int, int] | None = None
        self.steps: list[tuple[int, int, int]] = []
        self.remote: tuple[str, str] | None = None
        self.resolved_name = ""
        self.resolved_manager = ""
        self.inquired: tuple[int, int] | None = None
        self.output_only = False
        self.instances: list[Instance] = []
        self.bound: Instance | None = None

    def choose(self, source: Source) -> Instance:
        """The instance of a cluster queue for the next put. Raises MQError: 2268, 2270."""
        return self.bound or choose_instance(source, self)

    def require_enabled(self, source: Source) -> None:
        """After a put failed with 2051. Raises MQError: 2268 when all instances inhibit puts."""
        choose_instance(source, self)

    def stay_here(self, chosen: Instance) -> None:
        """The instance that is bound is the local queue: nothing is transmitted."""
        self.instances = []
        self.remote = None
        self.steps.pop()  # the transmission queue
        self.pass_through((chosen.slot, chosen.generation, _LOCAL, chosen.resolution))
        self.queue = chosen.slot, chosen.generation
        self.queue_name = self.resolved_name
        self.resolved_manager = chosen.queue_manager

    def pass_through(self, found: Found) -> None:
        """Adds a definition to those that the destination depends on."""
        if self.first is None:
            self.first = found[0], found[1]
        self.steps.append((found[0], found[1], found[3]))


def resolve(source: Source, name: str, manager: str = "", options: int = _OUTPUT) -> Destination:
    """Resolves the name of a queue.

    Args:
        source: the definitions.
        name: ObjectName, without trailing blanks.
        manager: ObjectQMgrName, without trailing blanks.
        options: MQOO_* of the open.

    Raises:
        MQError: 2001, 2082, 2085 to 2087, 2091, 2092, 2152, 2153, 2184, 2196 to 2199.
    """
    check_name(name, ReasonCode.OBJECT_NAME_ERROR)
    if manager and manager != source.name:
        check_name(manager, ReasonCode.OBJECT_Q_MGR_NAME_ERROR)
        return _at_manager(source, name, manager, options)
    return _here(source, Destination(), name, not manager, options)


def check_name(name: str, reason: int) -> None:
    """Checks a name: 1 to 48 characters out of A-Z a-z 0-9 . _ / %. Raises MQError: `reason`."""
    if len(name) > NAME_LENGTH or not NAME_CHARACTERS.issuperset(name):
        raise error_for(
            reason,
            f"the name {name!r} is not made of at most {NAME_LENGTH} characters "
            "A-Z a-z 0-9 . _ / %",
        )
    if not name:
        raise error_for(ReasonCode.UNKNOWN_OBJECT_NAME, "the name is blank")


# ---- at this queue manager ----


def _here(
    source: Source, destination: Destination, name: str, cluster: bool, options: int
) -> Destination:
    """Resolves a name of the local queue manager, with `cluster` also among cluster queues."""
    found = source.look_up(NAME_SPACE_QUEUES, name)
    if found is None:
        return _in_cluster(source, destination, name, cluster)
    kind = found[2]
    destination.opened = kind
    destination.inquired = found[0], found[1]
    if kind == _LOCAL:
        return _arrive(source, destination, name, found, cluster, options)
    destination.pass_through(found)
    if kind == _ALIAS:
        return _base_of(source, destination, name, found, cluster, options)
    if kind == _REMOTE:
        return _remote_queue(source, destination, name, found, options)
    return _end_at(source, destination, name, found)


def _arrive(
    source: Source, destination: Destination, name: str, found: Found, cluster: bool, options: int
) -> Destination:
    """Resolution ends at a local queue, with `cluster` also at other instances of it."""
    if cluster and options & _OUTPUT and not options & _NEEDS_LOCAL:
        others = _other_instances(source, name, found)
        if others:
            here = Instance(found[0], found[1], found[3], source.name, here=True)
            return _to_cluster(source, destination, name, [here, *others])
    destination.pass_through(found)
    return _end_at(source, destination, name, found)


def _other_instances(source: Source, name: str, found: Found) -> list[Instance]:
    """The instances of a local queue at other queue managers; none unless it is in a cluster."""
    if not any(source.values(found[0], found[1], _CLUSTERS)):
        return []
    return [each for each in find_instances(source, name) if each.queue_manager != source.name]


def _end_at(source: Source, destination: Destination, name: str, found: Found) -> Destination:
    """Resolution ends at a local or a model queue, or a definition that is not followed."""
    destination.queue = found[0], found[1]
    destination.queue_name = destination.resolved_name = name
    destination.resolved_manager = source.name
    return destination


def _base_of(
    source: Source, destination: Destination, name: str, alias: Found, cluster: bool, options: int
) -> Destination:
    """Resolves the base of an alias: not another alias, a model queue or a topic."""
    base, base_type = source.values(alias[0], alias[1], (_BASE_QUEUE, _BASE_TYPE))
    target = str(base or "")
    if base_type == _TOPIC:
        _fail(
            ReasonCode.ALIAS_BASE_Q_TYPE_ERROR,
            f"alias {name} stands for the topic {target}, not for a queue",
        )
    found = source.look_up(NAME_SPACE_QUEUES, target) if target else None
    if found is None:
        with suppress(UnknownObjectName):
            return _in_cluster(source, destination, target, True)
        _fail(
            ReasonCode.UNKNOWN_ALIAS_BASE_Q,
            f"alias {name} stands for {target or 'a blank name'}, which does not exist",
        )
    if found[2] == _REMOTE:
        destination.pass_through(found)
        return _remote_queue(source, destination, target, found, options)
    if found[2] != _LOCAL:
        _fail(
            ReasonCode.ALIAS_BASE_Q_TYPE_ERROR,
            f"alias {name} stands for {target}, which is an alias or a model queue",
        )
    return _arrive(source, destination, target, found, cluster, options)


# ---- to other queue managers ----


def _remote_queue(
    source: Source, destination: Destination, name: str, found: Found, options: int
) -> Destination:
    """A local definition of a remote queue."""
    if not options & _OUTPUT:
        destination.remote = "", ""
        return _end_at(source, destination, name, found)
    queue, manager, transmission = _names(source, found)
    if not queue:
        _fail(
            ReasonCode.REMOTE_Q_NAME_ERROR,
            f"{name} has a blank RNAME: it is an alias of a queue manager or of a reply queue",
        )
    if not manager or manager == source.name:
        _fail(
            ReasonCode.UNKNOWN_REMOTE_Q_MGR,
            f"{name} has RQMNAME({manager}), which is no remote queue manager",
        )
    if not transmission:
        instances = _at_cluster_manager(source, queue, manager)
        if instances:
            return _to_cluster(source, destination, queue, instances)
    return _transmit(source, destination, queue, manager, transmission)


def _at_cluster_manager(source: Source, queue: str, manager: str) -> list[Instance]:
    """The instances of a cluster queue at a queue manager that no queue here is named like: a
    transmission queue of that name goes before the cluster.
    """
    if source.look_up(NAME_SPACE_QUEUES, manager) is not None:
        return []
    return [each for each in find_instances(source, queue) if each.queue_manager == manager]


def _at_manager(source: Source, name: str, manager: str, options: int) -> Destination:
    """ObjectQMgrName is given and is not the local queue manager's."""
    destination = Destination()
    found = source.look_up(NAME_SPACE_QUEUES, manager)
    if found is not None and found[2] == _REMOTE:
        return _manager_alias(source, destination, name, manager, found, options)
    if found is not None and found[2] == _LOCAL:
        _check_usage(source, found, manager, ReasonCode.XMIT_Q_USAGE_ERROR)
        return _deliver(source, destination, name, manager, manager, found)
    instances = [each for each in find_instances(source, name) if each.queue_manager == manager]
    if instances:
        return _to_cluster(source, destination, name, instances)
    if options & _NEEDS_LOCAL:
        _fail(ReasonCode.UNKNOWN_OBJECT_Q_MGR, f"there is no queue manager {manager} here")
    return _by_default(source, destination, name, manager)


def _manager_alias(
    source: Source, destination: Destination, name: str, manager: str, found: Found, options: int
) -> Destination:
    """ObjectQMgrName is a queue-manager alias."""
    queue, target, transmission = _names(source, found)
    if queue:
        _fail(
            ReasonCode.UNKNOWN_REMOTE_Q_MGR,
            f"{manager} is no queue-manager alias: it has RNAME({queue})",
        )
    destination.pass_through(found)
    if not target or target == source.name:
        destination.output_only = True
        if options & _NEEDS_LOCAL:
            _fail(
                ReasonCode.OPTION_NOT_VALID_FOR_TYPE,
                f"{name} is opened through the queue-manager alias {manager}: for output only",
            )
        return _here(source, destination, name, False, options)
    if not transmission:
        instances = _at_cluster_manager(source, name, target)
        if instances:
            return _to_cluster(source, destination, name, instances)
    return _transmit(source, destination, name, target, transmission)


def _names(source: Source, found: Found) -> list[str]:
    """RNAME, RQMNAME and XMITQ of the definition of a remote queue."""
    selectors = (_REMOTE_QUEUE, _REMOTE_QUEUE_MANAGER, _TRANSMISSION_QUEUE)
    return [str(value or "") for value in source.values(found[0], found[1], selectors)]


def _transmit(
    source: Source, destination: Destination, queue: str, manager: str, transmission: str
) -> Destination:
    """To `queue` at `manager`: by XMITQ, the queue named like the manager, or the default."""
    if transmission:
        found = source.look_up(NAME_SPACE_QUEUES, transmission)
        if found is None:
            _fail(ReasonCode.UNKNOWN_XMIT_Q, f"there is no transmission queue {transmission}")
        _check_transmission_queue(source, found, transmission)
        return _deliver(source, destination, queue, manager, transmission, found)
    found = source.look_up(NAME_SPACE_QUEUES, manager)
    if found is None:
        return _by_default(source, destination, queue, manager)
    if found[2] == _REMOTE:
        _fail(
            ReasonCode.UNKNOWN_REMOTE_Q_MGR,
            f"{manager} is itself the local definition of a remote queue",
        )
    _check_transmission_queue(source, found, manager)
    return _deliver(source, destination, queue, manager, manager, found)


def _by_default(source: Source, destination: Destination, queue: str, manager: str) -> Destination:
    """By DEFXMITQ: the destination then also depends on the queue manager's definition."""
    name = ""
    own = source.look_up(NAME_SPACE_QUEUE_MANAGERS, source.name)
    if own is not None:
        name = str(source.values(own[0], own[1], (_DEFAULT_TRANSMISSION_QUEUE,))[0] or "")
    if own is None or not name:
        _fail(
            ReasonCode.UNKNOWN_REMOTE_Q_MGR,
            f"no transmission queue leads to {manager}: none has its name and DEFXMITQ is blank",
        )
    found = source.look_up(NAME_SPACE_QUEUES, name)
    if found is None:
        _fail(ReasonCode.UNKNOWN_DEF_XMIT_Q, f"DEFXMITQ({name}) does not exist")
    if found[2] != _LOCAL:
        _fail(ReasonCode.DEF_XMIT_Q_TYPE_ERROR, f"DEFXMITQ({name}) is not a local queue")
    _check_usage(source, found, name, ReasonCode.DEF_XMIT_Q_USAGE_ERROR)
    first = destination.first
    destination.pass_through(own)
    destination.first = first  # the queue manager supplies no defaults
    return _deliver(source, destination, queue, manager, name, found)


def _deliver(
    source: Source,
    destination: Destination,
    queue: str,
    manager: str,
    transmission: str,
    found: Found,
) -> Destination:
    """Onto a transmission queue that has been checked."""
    destination.pass_through(found)
    destination.queue = found[0], found[1]
    destination.queue_name = transmission
    destination.remote = queue, manager
    destination.resolved_name, destination.resolved_manager = queue, manager
    return destination


def _check_transmission_queue(source: Source, found: Found, name: str) -> None:
    if found[2] != _LOCAL:
        _fail(ReasonCode.XMIT_Q_TYPE_ERROR, f"the transmission queue {name} is no local queue")
    _check_usage(source, found, name, ReasonCode.XMIT_Q_USAGE_ERROR)


def _check_usage(source: Source, found: Found, name: str, reason: int) -> None:
    if source.values(found[0], found[1], (_USAGE,))[0] != _XMITQ:
        _fail(reason, f"the queue {name} does not have USAGE(XMITQ)")


# ---- clusters ----


def find_instances(source: Source, name: str) -> list[Instance]:
    """The instances of a cluster queue in this catalog, which numbers them from 1 without gaps; an
    instance with a blank queue manager is vacant.
    """
    found: list[Instance] = []
    number = 1
    while (row := source.look_up(NAME_SPACE_CLUSTER_QUEUES, name, number)) is not None:
        number += 1
        with suppress(UnknownObjectName):  # deleted concurrently
            manager = source.values(row[0], row[1], (_CLUSTER_QUEUE_MANAGER,))[0]
            if manager:
                found.append(Instance(row[0], row[1], row[3], str(manager)))
    return found


def _in_cluster(source: Source, destination: Destination, name: str, cluster: bool) -> Destination:
    """Resolves a name that no local object has among the cluster queues."""
    instances = find_instances(source, name) if cluster and name else []
    if not instances:
        _fail(ReasonCode.UNKNOWN_OBJECT_NAME, f"there is no queue {name}")
    return _to_cluster(source, destination, name, instances)


def _to_cluster(
    source: Source, destination: Destination, name: str, instances: list[Instance]
) -> Destination:
    """Onto the cluster's transmission queue; the instance is chosen later."""
    found = source.look_up(NAME_SPACE_QUEUES, CLUSTER_TRANSMIT_QUEUE)
    if found is None:
        _fail(
            ReasonCode.CLUSTER_RESOLUTION_ERROR,
            f"cluster queue {name}: there is no {CLUSTER_TRANSMIT_QUEUE}",
        )
    if found[2] != _LOCAL or source.values(found[0], found[1], (_USAGE,))[0] != _XMITQ:
        _fail(
            ReasonCode.CLUSTER_RESOLUTION_ERROR,
            f"cluster queue {name}: {CLUSTER_TRANSMIT_QUEUE} is no transmission queue",
        )
    if not destination.opened:
        destination.opened = _CLUSTER
        destination.inquired = instances[0].slot, instances[0].generation
    destination.instances = instances
    destination.steps.append((found[0], found[1], found[3]))
    destination.queue = found[0], found[1]
    destination.queue_name = CLUSTER_TRANSMIT_QUEUE
    destination.remote = name, ""
    destination.resolved_name = name
    return destination


_turns: dict[str, int] = {}  # cluster queue -> choices of an instance by this process


class _Candidate:
    """An instance that is there, with the attributes that a choice looks at."""

    __slots__ = ("inhibited", "instance", "priority", "rank")

    def __init__(self, instance: Instance, values: tuple[int | str | None, ...]) -> None:
        self.instance = instance
        self.inhibited, self.rank, self.priority = (int(value or 0) for value in values)


def _candidates(source: Source, instances: list[Instance]) -> list[_Candidate]:
    """The instances that still exist."""
    found = []
    for each in instances:
        try:
            manager, *values = source.values(each.slot, each.generation, _CHOICE)
        except UnknownObjectName:
            continue  # deleted concurrently
        if each.here or manager == each.queue_manager:  # else its number is vacant, or another's
            found.append(_Candidate(each, tuple(values)))
    return found


def choose_instance(source: Source, destination: Destination) -> Instance:
    """Chooses among the instances of a cluster queue: of those with the highest CLWLRANK the ones
    that are not put-inhibited, of these the one here if CLWLUSEQ prefers it, else the ones with the
    highest CLWLPRTY, in turns.

    Source: 9.2 of the MQI reference, steps 2 to 4, 7 and 9; there are no channels whose rank, state
    and weight could count.

    Raises:
        MQError: 2268 when all are put-inhibited, 2270 when none is left.
    """
    name = destination.resolved_name
    present = _candidates(source, destination.instances)
    if not present:
        _fail(ReasonCode.NO_DESTINATIONS_AVAILABLE, f"cluster queue {name}: no instance is left")
    rank = max(each.rank for each in present)
    ranked = [each for each in present if each.rank == rank]
    enabled = [each for each in ranked if not each.inhibited]
    if not enabled:
        _fail(
            ReasonCode.CLUSTER_PUT_INHIBITED,
            f"cluster queue {name}: all {len(ranked)} instances of CLWLRANK({rank}) are "
            "PUT(DISABLED)",
        )
    for each in enabled:
        if each.instance.here and not _uses_any(source, each.instance):
            return each.instance
    priority = max(each.priority for each in enabled)
    best = [each.instance for each in enabled if each.priority == priority]
    turn = _turns.get(name, 0)
    _turns[name] = turn + 1
    return best[turn % len(best)]


def _uses_any(source: Source, here: Instance) -> bool:
    """Whether CLWLUSEQ of the local queue, or of the queue manager, is ANY."""
    use: int | str | None = None
    with suppress(UnknownObjectName):  # deleted concurrently
        use = source.values(here.slot, here.generation, (_USE_QUEUE,))[0]
    if use is None or use == _USE_AS_MANAGER:
        own = source.look_up(NAME_SPACE_QUEUE_MANAGERS, source.name)
        use = source.values(own[0], own[1], (_USE_QUEUE,))[0] if own is not None else None
    return use == _USE_ANY


def differing(source: Source, instances: list[Instance]) -> bool:
    """Whether the instances differ in DEFPSIST or DEFPRTY, which is reported as AMQ9407."""
    seen = set()
    for each in instances:
        try:
            seen.add(source.values(each.slot, each.generation, (_DEF_PERSISTENCE, _DEF_PRIORITY)))
        except UnknownObjectName:
            continue
    return len(seen) > 1


def binding(source: Source, destination: Destination, options: int) -> int:
    """MQBND_* in force: 0 on open, 1 not fixed, 2 on group. BIND_AS_Q_DEF takes DEFBIND of the
    definition that was opened.
    """
    for option, value in ((16384, 0), (32768, 1), (4194304, 2)):
        if options & option:
            return value
    if destination.inquired is None:
        return 0
    return int(source.values(*destination.inquired, (_DEF_BIND,))[0] or 0)


def reply_alias(source: Source, name: str) -> tuple[str, str]:
    """ReplyToQ and ReplyToQMgr of a message whose ReplyToQMgr is blank: those of the reply-queue
    alias of that name, else the name itself at the local queue manager.
    """
    found = source.look_up(NAME_SPACE_QUEUES, name) if name else None
    if found is None or found[2] != _REMOTE:
        return name, source.name
    queue, manager = source.values(found[0], found[1], (_REMOTE_QUEUE, _REMOTE_QUEUE_MANAGER))
    return str(queue or name), str(manager or source.name)


def _fail(reason: int, text: str) -> NoReturn:
    error: MQError = error_for(reason, text)
    raise error

"""Commands on objects: define, alter, delete, clear, display.

A change reads the definition with its definition version and stores the new one only if the version
is still the same; otherwise it starts over. So no concurrent change is lost.
Rules: "Queue attributes" (changing rules) and "MQSC" of the MQI reference.
"""

from __future__ import annotations

from .._mqi_constants import selectors as mq
from ..constants import NAME_SPACE_QUEUES, ReasonCode
from ..errors import (
    AttributeNameError,
    InvalidValue,
    ObjectAlreadyExists,
    ObjectInUse,
    UnknownObjectName,
)
from ..names import check_object_name, matcher
from ..objects.codec import decode, encode, pruned, read
from ..objects.definition import describe, parse_all
from ..objects.rules import check_definition
from ..objects.system import LIMIT_FOLLOWERS, SUBTYPE_DEFAULTS, shipped
from ..objects.timestamps import CREATED, current_times
from ..objects.types import BY_NUMBER, TYPES, object_type
from .cluster_instances import display_instances, location_of

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..objects.attribute import Attribute, Stored
    from ..objects.definition import Definition
    from ..objects.types import ObjectType
    from .attachment import Attachment

_ATTEMPTS = 10000  # of a change that loses to concurrent changes each time
_QUEUE_KINDS = ("QLOCAL", "QALIAS", "QREMOTE", "QMODEL")
_FOLLOWED = ("QALIAS", "QREMOTE")  # definitions that lead from a name to another queue
_DEFINITION_TYPE, _STRUCTURE, _STREAM, _TARGET, _MAX_LENGTH, _LEVEL = (
    mq.MQIA_DEFINITION_TYPE,
    mq.MQCA_CF_STRUC_NAME,
    mq.MQCA_STREAM_QUEUE_NAME,
    mq.MQCA_BASE_Q_NAME,
    mq.MQIA_MAX_MSG_LENGTH,
    mq.MQIA_CF_LEVEL,
)


# ---- define ----


def define(
    manager: Attachment, kind_name: str, name: str, like: str | None, replace: bool,
    given_by_keyword: Mapping[str, object],
) -> None:  # fmt: skip
    """See QueueManager.define."""
    kind = object_type(kind_name, manager.platform)
    if kind.name == "QMGR":
        raise InvalidValue(
            ReasonCode.OBJECT_TYPE_ERROR, "a queue manager is made by penstock.create(), not DEFINE"
        )
    kind.check_name(name)
    given = parse_all(kind, given_by_keyword, manager.platform)
    new = {**kind.defaults, **_start(manager, kind, name, like, given), **given}
    new |= _times_of(kind, creation=True)
    if kind.catalog_name(name, new) != name:
        new[kind.name_selector] = name
    check_definition(kind, name, new, given)
    _check_against_others(manager, kind, name, new)
    for _ in range(_ATTEMPTS):
        if _define_once(manager, kind, name, new, given, replace):
            _note_change(manager, kind, name)
            return
    raise _overtaken(kind, name)


def _define_once(
    manager: Attachment, kind: ObjectType, name: str, new: dict[int, Stored],
    given: Mapping[int, Stored], replace: bool,
) -> bool:  # fmt: skip
    """Defines or replaces an object; False when a concurrent change won."""
    location = location_of(manager, kind, name, new)
    if location.found is None:
        try:
            manager.define_object(
                kind.number, kind.catalog_name(name, new), encode(pruned(kind, new)),
                kind.name_space, location.instance,
            )  # fmt: skip
            return True
        except ObjectAlreadyExists:
            return False  # created concurrently: read it and start over
    slot, generation = location.found[:2]
    try:
        number, _, attrs, version, space, _ = manager.read_stamped(slot, generation)
    except UnknownObjectName:
        return False  # deleted concurrently
    if not replace and not location.vacant:
        raise ObjectAlreadyExists(
            ReasonCode.OBJECT_ALREADY_EXISTS, _exists(kind, name, BY_NUMBER[space, number])
        )
    if number != kind.number:
        raise ObjectAlreadyExists(
            ReasonCode.OBJECT_ALREADY_EXISTS,
            _exists(kind, name, BY_NUMBER[space, number])
            + "; REPLACE does not change the type of an object",
        )
    old = read(kind, attrs)
    replaced = {**new, **{s: old[s] for s in (*CREATED, _DEFINITION_TYPE) if s in old and s in new}}
    if kind.name == "QMODEL":
        replaced[_DEFINITION_TYPE] = new[_DEFINITION_TYPE]
    before = None if location.vacant else old
    check_definition(kind, name, replaced, given, before)
    if before is not None:
        _check_change(manager, kind, name, (slot, generation), old, replaced, force=False)
    return _store(
        manager, kind, name, (slot, generation), version, old, replaced, location.instance
    )


def _exists(kind: ObjectType, name: str, there: ObjectType) -> str:
    """The message for a name that is taken."""
    if there is kind:
        return f"{kind.noun} {name} is defined already"
    return f"{name} is a {there.name} already; one name is one {there.noun}"


def _start(
    manager: Attachment, kind: ObjectType, name: str, like: str | None,
    given: Mapping[int, Stored],
) -> dict[int, Stored]:  # fmt: skip
    """The initial values of a new object: from LIKE, the SYSTEM default or the shipped values."""
    if kind.subtype is not None and kind.subtype.selector not in given and like is None:
        raise InvalidValue(
            ReasonCode.OPTIONS_ERROR, f"{name}: DEFINE {kind.name} needs {kind.subtype.keyword}"
        )
    subtype = kind.subtype_of(given)
    default = SUBTYPE_DEFAULTS.get(kind.name, {}).get(subtype, kind.default_object)
    if like is not None:
        kind.check_name(like)
        found = manager.look_up(kind.name_space, kind.catalog_name(like, given))
        if found is None or found[2] != kind.number:
            raise UnknownObjectName(
                ReasonCode.UNKNOWN_OBJECT_NAME,
                f"{name}: LIKE({like}): there is no such {kind.noun}",
            )
    else:
        found = manager.look_up(kind.name_space, default) if default and name != default else None
        if found is None or found[2] != kind.number:
            return shipped(kind.name, manager.platform, subtype)
    stored = decode(manager.read_object(found[0], found[1])[2])
    own = [s for s in stored if s not in kind.by_selector or kind.by_selector[s].display_only]
    for selector in own:
        del stored[selector]
    return stored


def differences(manager: Attachment, name: str, given_by_keyword: Mapping[str, object]) -> str:
    """Which of these attributes a local queue does not have, with what it has instead; "" when it
    has all of them. Raises as DEFINE does for what cannot be an attribute.
    """
    kind = object_type("QLOCAL", manager.platform)
    given = parse_all(kind, given_by_keyword, manager.platform)
    found = manager.look_up(kind.name_space, name)
    if found is None or found[2] != kind.number:
        text = ", ".join(f"{keyword}={value!r}" for keyword, value in given_by_keyword.items())
        return f"{text} (it is no local queue)"
    there = read(kind, manager.read_object(found[0], found[1])[2])
    return ", ".join(
        f"{keyword}={value!r} (it has {row.show(there.get(row.selector, row.default))!r})"
        for keyword, value in given_by_keyword.items()
        for row in (kind.attribute(keyword),)
        if given[row.selector] != there.get(row.selector, row.default)
    )


# ---- alter ----


def alter(
    manager: Attachment, kind_name: str, name: str, force: bool,
    given_by_keyword: Mapping[str, object],
) -> None:  # fmt: skip
    """See QueueManager.alter."""
    kind = object_type(kind_name, manager.platform)
    if kind.name == "QMGR":
        name = manager.name
    kind.check_name(name)
    given = parse_all(kind, given_by_keyword, manager.platform)
    for _ in range(_ATTEMPTS):
        slot, generation, instance = _find(manager, kind, name, given)
        _, _, attrs, version, _, _ = manager.read_stamped(slot, generation)
        old = read(kind, attrs)
        new = {**old, **given, **_times_of(kind)}
        check_definition(kind, name, new, given, old)
        _check_against_others(manager, kind, name, new)
        _check_change(manager, kind, name, (slot, generation), old, new, force)
        if kind.name == "QMGR" and int(new[_MAX_LENGTH]) < int(old[_MAX_LENGTH]):
            _follow_limit(manager, old, new)
        if _store(manager, kind, name, (slot, generation), version, old, new, instance):
            if kind.name == "QMGR" and int(new[_MAX_LENGTH]) > int(old[_MAX_LENGTH]):
                _follow_limit(manager, old, new)
            _note_change(manager, kind, name)
            return
    raise _overtaken(kind, name)


def _note_change(manager: Attachment, kind: ObjectType, name: str) -> None:
    """Conditions of triggers may be met by a changed definition."""
    if kind.name in ("QLOCAL", "PROCESS") and manager.trigger_version():
        from .triggers import on_change

        on_change(manager, kind.name, name)


def _follow_limit(
    manager: Attachment, old: Mapping[int, Stored], new: Mapping[int, Stored]
) -> None:
    """Sets MAXMSGL of the SYSTEM queues that have the queue manager's old limit to the new one.

    They are lowered before the queue manager and raised after it, so that no queue is ever above
    its limit, whenever the process is killed.
    """
    for queue in LIMIT_FOLLOWERS:
        for kind, _, attrs, _, _ in _objects(manager, ("QLOCAL",), queue):
            if read(kind, attrs)[_MAX_LENGTH] == old[_MAX_LENGTH]:
                alter(manager, "QLOCAL", queue, False, {"maxmsgl": new[_MAX_LENGTH]})


def set_values(
    manager: Attachment, slot: int, generation: int, name: str, values: Mapping[int, Stored]
) -> None:
    """MQSET: stores all these values by selector at once, checked by ``settable`` before.

    Raises UnknownObjectName when the queue was deleted.
    """
    for _ in range(_ATTEMPTS):
        number, _, attrs, version, space, instance = manager.read_stamped(slot, generation)
        kind = BY_NUMBER[space, number]
        old = read(kind, attrs)
        new = {**old, **values}
        if _store(manager, kind, name, (slot, generation), version, old, new, instance):
            return
    raise _overtaken(TYPES["QLOCAL"], name)


def _store(
    manager: Attachment, kind: ObjectType, name: str, location: tuple[int, int], version: int,
    old: Mapping[int, Stored], new: Mapping[int, Stored], instance: int,
) -> bool:  # fmt: skip
    """Stores a changed definition; False when its version is no longer the one that was read."""
    resolution = any(row.resolution for row in _changed(kind, old, new))
    if not manager.alter_object(
        *location, kind.number, kind.catalog_name(name, new), encode(pruned(kind, new)), version,
        resolution, kind.name_space, instance,
    ):  # fmt: skip
        return False
    if kind.name == "QALIAS":
        _wake_target(manager, old)
    return True


def _wake_target(manager: Attachment, alias: Mapping[int, Stored]) -> None:
    """Wakes the waiters on the base of an alias, whose GET or TARGET may have changed."""
    target = str(alias.get(_TARGET, ""))
    found = manager.look_up(NAME_SPACE_QUEUES, target) if target else None
    if found is not None:
        manager.wake_object(found[0])


def _changed(
    kind: ObjectType, old: Mapping[int, Stored], new: Mapping[int, Stored]
) -> list[Attribute]:
    """The attributes whose values differ."""
    return [
        row
        for row in kind.attributes.values()
        if not row.computed
        and old.get(row.selector, row.default) != new.get(row.selector, row.default)
    ]


def _check_change(
    manager: Attachment, kind: ObjectType, name: str, location: tuple[int, int],
    old: Mapping[int, Stored], new: Mapping[int, Stored], force: bool,
) -> None:  # fmt: skip
    """Checks a change of an object that may be in use. Raises ObjectInUse, InvalidValue."""
    if kind.name == "CFSTRUCT" and int(new[_LEVEL]) < int(old[_LEVEL]):
        _refuse_used_structure(manager, name)
    if kind.name == "QMGR" and int(new[_MAX_LENGTH]) < int(old[_MAX_LENGTH]):
        _refuse_longer_queues(manager, int(old[_MAX_LENGTH]), int(new[_MAX_LENGTH]))
    needing = [row for row in _changed(kind, old, new) if row.force]
    if not needing or force or not (kind.is_queue or kind.name == "QMGR"):
        return
    for row in needing:
        use = _use(manager, row, location, name, int(new.get(row.selector, 0) == 1))
        if use:
            raise ObjectInUse(
                ReasonCode.OBJECT_IN_USE,
                f"{kind.noun} {name}: {use}; {row.keyword} changes only with FORCE",
            )


def _use(
    manager: Attachment, row: Attribute, location: tuple[int, int], name: str, enabled: int
) -> str:
    """The use of the object for which a change of the attribute needs FORCE; "" for none."""
    if row.force == "open":
        through = _handles_through(manager, location[0])
        return f"{through} handles went through it" if through else ""
    status = manager.queue_status(*location, name)
    if row.force == "inputs":
        inputs = status["open_input"]
        return f"{inputs} handles have it open for input" if inputs > 1 and not enabled else ""
    if _is_open(status):
        return "it is open"
    return f"it holds {status['depth']} messages" if status["depth"] else ""


def _handles_through(manager: Attachment, slot: int) -> int:
    """The open handles whose names were resolved through the definition in a slot."""
    return sum(slot in entry["step"] for entry in manager.handle_rows())


def _refuse_used_structure(manager: Attachment, name: str) -> None:
    """Raises ObjectInUse when a queue on the structure is open or holds messages."""
    for queue, slot, generation in _queues_on(manager, name):
        status = manager.queue_status(slot, generation, queue)
        messages = status["depth"] + status["got"]
        if _is_open(status) or messages:
            raise ObjectInUse(
                ReasonCode.OBJECT_IN_USE,
                f"structure {name}: CFLEVEL is lowered only when its queues are closed and empty; "
                f"{queue} {'is open' if _is_open(status) else f'holds {messages} messages'}",
            )


def _queues_on(manager: Attachment, structure: str) -> Iterator[tuple[str, int, int]]:
    """Name, slot and generation of each local queue on a structure."""
    for kind, queue, attrs, slot, generation in _objects(manager, ("QLOCAL",)):
        if read(kind, attrs).get(_STRUCTURE) == structure:
            yield queue, slot, generation


def _refuse_longer_queues(manager: Attachment, old: int, limit: int) -> None:
    """Raises InvalidValue when a queue's MAXMSGL is above the queue manager's new one, except for
    the SYSTEM queues that follow it.
    """
    for kind, queue, attrs, _, _ in _objects(manager, ("QLOCAL", "QMODEL")):
        longest = int(read(kind, attrs)[_MAX_LENGTH])
        if longest > limit and not (longest == old and queue in LIMIT_FOLLOWERS):
            raise InvalidValue(
                ReasonCode.OPTIONS_ERROR,
                f"MAXMSGL({limit}) of the queue manager is less than that of {kind.name} {queue}: "
                f"{longest}",
            )


def _check_against_others(
    manager: Attachment, kind: ObjectType, name: str, new: Mapping[int, Stored]
) -> None:
    """Checks that MAXMSGL is at most the queue manager's, and that the CF structure exists.

    Raises InvalidValue, UnknownObjectName.
    """
    if kind.name not in ("QLOCAL", "QMODEL"):
        return
    found = manager.look_up(TYPES["QMGR"].name_space, manager.name)
    if found is not None:
        limit = read(TYPES["QMGR"], manager.read_object(found[0], found[1])[2])[_MAX_LENGTH]
        if int(new[_MAX_LENGTH]) > int(limit):
            raise InvalidValue(
                ReasonCode.OPTIONS_ERROR,
                f"{name}: MAXMSGL({new[_MAX_LENGTH]}) is more than the queue manager's {limit}",
            )
    structure = str(new.get(_STRUCTURE, ""))
    if structure and manager.look_up(TYPES["CFSTRUCT"].name_space, structure) is None:
        raise UnknownObjectName(
            ReasonCode.UNKNOWN_OBJECT_NAME, f"{name}: there is no structure {structure}"
        )
    if new.get(_STREAM):
        _check_stream(manager, name, str(new[_STREAM]))


def _check_stream(manager: Attachment, name: str, target: str) -> None:
    """Checks that the stream queue is no model queue, and does not stream itself. One that begins
    to later is not found: copies are never copied (pyext/client/stream.pyx). Raises InvalidValue.
    """
    found = manager.look_up(NAME_SPACE_QUEUES, target)
    if found is None:
        return
    why = "is a model queue" if found[2] == TYPES["QMODEL"].number else ""
    if found[2] == TYPES["QLOCAL"].number:
        (stream,) = manager.values(found[0], found[1], (_STREAM,))
        why = f"has STREAMQ({stream}) itself: copies are not copied" if stream else ""
    if why:
        raise InvalidValue(ReasonCode.OPTIONS_ERROR, f"{name}: STREAMQ({target}) {why}")


# ---- delete, clear ----


def delete(
    manager: Attachment, kind_name: str, name: str, purge: bool, cluster_manager: str,
    identity: Mapping[str, object],
) -> None:  # fmt: skip
    """See QueueManager.delete."""
    kind = object_type(kind_name, manager.platform)
    if kind.name == "QMGR":
        raise InvalidValue(
            ReasonCode.OBJECT_TYPE_ERROR, "a queue manager is removed by penstock.delete()"
        )
    kind.check_name(name)
    if kind.name == "QCLUSTER":
        _vacate(manager, kind, name, cluster_manager)
        return
    slot, generation, _ = _find(manager, kind, name, _identity(manager, kind, identity))
    attrs = manager.read_object(slot, generation)[2]
    if kind.name == "CFSTRUCT":
        users = [queue for queue, _, _ in _queues_on(manager, name)]
        if users:
            raise ObjectInUse(
                ReasonCode.OBJECT_IN_USE, f"structure {name}: queues are on it: {', '.join(users)}"
            )
    if kind.name in _FOLLOWED:
        _refuse_followed(manager, kind, name, slot)
    manager.delete_object(slot, generation, purge, name)
    if kind.name == "QALIAS":
        _wake_target(manager, read(kind, attrs))


def _identity(
    manager: Attachment, kind: ObjectType, given: Mapping[str, object]
) -> dict[int, Stored]:
    """The values that distinguish objects of one name. Raises AttributeNameError."""
    known = {row.keyword for row in kind.identity}
    if kind.separate and kind.subtype is not None:
        known.add(kind.subtype.keyword)
    for keyword in given:
        if kind.attribute(keyword).keyword not in known:
            raise AttributeNameError(
                ReasonCode.SELECTOR_ERROR, f"{kind.name}: {keyword!r} does not identify an object"
            )
    return parse_all(kind, given, manager.platform)


def _refuse_followed(manager: Attachment, kind: ObjectType, name: str, slot: int) -> None:
    """Raises ObjectInUse when handles went through an alias or the definition of a remote queue.

    The core counts the handles of the queue at the end of the path alone. A handle that is opened
    between this check and the deletion gets 2041 at its next call.
    """
    through = _handles_through(manager, slot)
    if through:
        raise ObjectInUse(
            ReasonCode.OBJECT_IN_USE, f"{kind.noun} {name}: {through} handles went through it"
        )


def _vacate(manager: Attachment, kind: ObjectType, name: str, cluster_manager: str) -> None:
    """Deletes an instance of a cluster queue: its instance number stays, vacant."""
    row = kind.attributes["CLUSQMGR"]
    wanted = {row.selector: row.parse(cluster_manager)}
    for _ in range(_ATTEMPTS):
        slot, generation, instance = _find(manager, kind, name, wanted)
        version = manager.read_stamped(slot, generation)[3]
        if manager.alter_object(
            slot, generation, kind.number, name, b"", version, True, kind.name_space, instance
        ):
            return
    raise _overtaken(kind, name)


def clear(manager: Attachment, name: str) -> None:
    """See QueueManager.clear."""
    kind = TYPES["QLOCAL"]
    kind.check_name(name)
    slot, generation, _ = _find(manager, kind, name, {})
    status = manager.queue_status(slot, generation, name)
    if _is_open(status):
        raise ObjectInUse(
            ReasonCode.OBJECT_IN_USE,
            f"queue {name} is open: handles for input {status['open_input']}, for output "
            f"{status['open_output']}, for other uses {status['open_other']}",
        )
    manager.clear_object(slot, generation, name)


# ---- display ----


def display(
    manager: Attachment, kind_name: str, name: str, identity: Mapping[str, object]
) -> list[Definition]:
    """See QueueManager.display."""
    if identity:
        return _display_identified(manager, kind_name, name, identity)
    kinds: tuple[str, ...] = _QUEUE_KINDS
    if not isinstance(kind_name, str) or kind_name.upper() != "QUEUE":
        kinds = (object_type(kind_name, manager.platform).name,)
    if not isinstance(name, str):
        check_object_name(name)
    if kinds == ("QCLUSTER",):
        return display_instances(manager, _objects(manager, kinds, name))
    if kinds == ("QMGR",):
        name = manager.name
    found = []
    for kind, full_name, attrs, slot, generation in _objects(manager, kinds, name):
        computed: dict[str, Stored] = {}
        if kind.name == "QLOCAL":
            try:
                status = manager.queue_status(slot, generation, full_name)
            except UnknownObjectName:
                continue  # deleted concurrently
            computed = {
                "curdepth": status["depth"],
                "ipprocs": status["open_input"],
                "opprocs": status["open_output"],
            }
        found.append(describe(kind, full_name, decode(attrs), manager.platform, computed))
    return sorted(found, key=lambda shown: str(shown["name"]))


def _display_identified(
    manager: Attachment, kind_name: str, name: str, identity: Mapping[str, object]
) -> list[Definition]:
    """The one object of a name with these values, or none."""
    kind = object_type(kind_name, manager.platform)
    kind.check_name(name)
    location = location_of(manager, kind, name, _identity(manager, kind, identity))
    if location.found is None:
        return []
    try:
        attrs = manager.read_object(*location.found[:2])[2]
    except UnknownObjectName:
        return []  # deleted concurrently
    return [describe(kind, name, decode(attrs), manager.platform)]


def _objects(
    manager: Attachment, kinds: tuple[str, ...], pattern: str = "*"
) -> Iterator[tuple[ObjectType, str, bytes, int, int]]:
    """Type, name, attribute list, slot and generation of the objects that match."""
    wanted = {(TYPES[kind].name_space, TYPES[kind].number): TYPES[kind] for kind in kinds}
    one = not pattern.endswith("*") and kinds != ("QCLUSTER",)
    if one and not TYPES[kinds[0]].identity:
        yield from _one_object(manager, wanted, pattern)
        return
    fits = matcher(pattern)
    slot = 0
    while (found := manager.next_object(slot)) is not None:
        slot, generation = found
        try:
            number, name, attrs, _, space, _ = manager.read_stamped(slot, generation)
        except UnknownObjectName:
            continue  # deleted concurrently
        kind = wanted.get((space, number))
        if kind is not None and (kind.by_digest or kind.separate):
            name = kind.own_name(name, decode(attrs))
        if kind is not None and fits(name):
            yield kind, name, attrs, slot, generation


def _one_object(
    manager: Attachment, wanted: Mapping[tuple[int, int], ObjectType], name: str
) -> Iterator[tuple[ObjectType, str, bytes, int, int]]:
    """The objects of a name, when they are of one of the types."""
    first = next(iter(wanted.values()))
    first.check_name(name)
    for catalog_name in first.catalog_names(name):
        found = manager.look_up(first.name_space, catalog_name)
        if found is None or (first.name_space, found[2]) not in wanted:
            continue
        slot, generation, number, _ = found
        try:
            # on z/OS a logically deleted queue is found
            attrs = manager.read_stamped(slot, generation, deleted_too=True)[2]
        except UnknownObjectName:
            continue  # deleted concurrently
        yield wanted[first.name_space, number], name, attrs, slot, generation


# ---- helpers ----


def _find(
    manager: Attachment, kind: ObjectType, name: str, given: Mapping[int, Stored]
) -> tuple[int, int, int]:
    """Slot, generation and instance of an object that exists. Raises UnknownObjectName."""
    location = location_of(manager, kind, name, given)
    if location.found is None or location.vacant:
        raise UnknownObjectName(
            ReasonCode.UNKNOWN_OBJECT_NAME, f"there is no {kind.noun} {name}{location.what}"
        )
    if location.found[2] != kind.number:
        there = BY_NUMBER[kind.name_space, location.found[2]]
        raise UnknownObjectName(
            ReasonCode.UNKNOWN_OBJECT_NAME, f"there is no {kind.name} {name}; it is a {there.name}"
        )
    return location.found[0], location.found[1], location.instance


def _is_open(status: Mapping[str, int]) -> bool:
    """Whether any handle has the queue of this status open."""
    return bool(status["open_input"] or status["open_output"] or status["open_other"])


def _times_of(kind: ObjectType, creation: bool = False) -> dict[int, Stored]:
    """The current date and time for those timestamp attributes that the type has."""
    times = current_times(creation)
    return {selector: times[selector] for selector in times if selector in kind.by_selector}


def _overtaken(kind: ObjectType, name: str) -> ObjectInUse:
    return ObjectInUse(
        ReasonCode.OBJECT_IN_USE,
        f"{kind.noun} {name}: others changed it at each of {_ATTEMPTS} attempts",
    )

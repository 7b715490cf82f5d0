"""Name resolution of the model: section 3.4, non-cluster rows. ObjectQMgrName goes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model_state import Definition, Failure, LocalQueue, Path
from mq_numbers import R

if TYPE_CHECKING:
    from model import QueueManager

CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/%")


def check_names(queue: str, manager: str) -> None:
    """2152 and 2153: characters that no name has."""
    if not set(queue) <= CHARACTERS:
        raise Failure(R.OBJECT_NAME_ERROR)
    if not set(manager) <= CHARACTERS:
        raise Failure(R.OBJECT_Q_MGR_NAME_ERROR)


def resolve_attributes(qm: QueueManager, name: str) -> Path | None:
    """The path of a name that is opened for its attributes alone: a local definition of a remote
    queue need not lead anywhere. None: resolve as ever.
    """
    found = qm.objects.get(name)
    steps = [found] if found is not None else []
    if found is not None and found.kind == "QALIAS":
        steps.append(qm.objects.get(found["TARGET"], found))
    if not steps or steps[-1].kind != "QREMOTE":
        return None
    return Path(steps, LocalQueue("", {}), ("", ""))


def resolve(qm: QueueManager, queue: str, manager: str) -> Path | Definition:
    """The path of a name; a model queue comes back as its definition: the caller creates."""
    check_names(queue, manager)
    if manager in ("", qm.name):
        return resolve_local(qm, queue)
    named = qm.objects.get(manager)
    if named is None:
        return Path([default_transmission_queue(qm), qm.manager], *to(qm, queue, manager))
    if isinstance(named, LocalQueue) and named["USAGE"] == 1:
        return Path([named], named, (queue, manager), by_manager_name=True)
    if named.kind == "QREMOTE":
        return resolve_manager_alias(qm, named, queue)
    return Path([default_transmission_queue(qm), qm.manager], *to(qm, queue, manager))


def to(qm: QueueManager, queue: str, manager: str) -> tuple[LocalQueue, tuple[str, str], bool]:
    """The end of a path over the default transmission queue."""
    return default_transmission_queue(qm), (queue, manager), True


def resolve_manager_alias(qm: QueueManager, alias: Definition, queue: str) -> Path:
    """ObjectQMgrName is a QREMOTE with blank RNAME: RQMNAME replaces it."""
    if alias["RNAME"]:
        raise Failure(R.UNKNOWN_REMOTE_Q_MGR)
    if alias["RQMNAME"] == qm.name:  # XMITQ is ignored; only for output
        inner = resolve_local(qm, queue)
        if not isinstance(inner, Path):
            raise Failure(R.OPTION_NOT_VALID_FOR_TYPE, R.Q_TYPE_ERROR)
        return Path([alias, *inner.steps], inner.queue, inner.remote, by_manager_name=True)
    steps, xmitq = transmission_queue(qm, alias)
    return Path([alias, *steps], xmitq, (queue, alias["RQMNAME"]), by_manager_name=True)


def resolve_local(qm: QueueManager, name: str) -> Path | Definition:
    """A name of this queue manager."""
    found = find(qm, name, R.UNKNOWN_OBJECT_NAME)
    if isinstance(found, LocalQueue):
        return Path([found], found)
    if found.kind == "QALIAS":
        return resolve_alias(qm, found)
    if found.kind == "QREMOTE":
        return resolve_remote(qm, found)
    return found


def resolve_alias(qm: QueueManager, alias: Definition) -> Path:
    """Re-enter with the base name; never another alias."""
    base = find(qm, alias["TARGET"], R.UNKNOWN_ALIAS_BASE_Q)
    if isinstance(base, LocalQueue):
        return Path([alias, base], base)
    if base.kind == "QREMOTE":
        inner = resolve_remote(qm, base)
        return Path([alias, *inner.steps], inner.queue, inner.remote)
    raise Failure(R.ALIAS_BASE_Q_TYPE_ERROR)


def resolve_remote(qm: QueueManager, definition: Definition) -> Path:
    """A local definition of a remote queue."""
    if not definition["RNAME"]:
        raise Failure(R.REMOTE_Q_NAME_ERROR)
    if definition["RQMNAME"] in ("", qm.name):
        raise Failure(R.UNKNOWN_REMOTE_Q_MGR)
    steps, xmitq = transmission_queue(qm, definition)
    return Path([definition, *steps], xmitq, (definition["RNAME"], definition["RQMNAME"]))


def transmission_queue(
    qm: QueueManager, definition: Definition
) -> tuple[list[Definition], LocalQueue]:
    """XMITQ if set, else the queue called RQMNAME, else DEFXMITQ."""
    if definition["XMITQ"]:
        found = find(qm, definition["XMITQ"], R.UNKNOWN_XMIT_Q)
        xmitq = as_transmission(found, R.XMIT_Q_TYPE_ERROR, R.XMIT_Q_USAGE_ERROR)
        return [xmitq], xmitq
    named = qm.objects.get(definition["RQMNAME"])
    if isinstance(named, LocalQueue) and named["USAGE"] == 1:
        return [named], named
    xmitq = default_transmission_queue(qm)
    return [xmitq, qm.manager], xmitq


def default_transmission_queue(qm: QueueManager) -> LocalQueue:
    """DEFXMITQ of the queue manager."""
    if not qm.manager["DEFXMITQ"]:
        raise Failure(R.UNKNOWN_REMOTE_Q_MGR)
    found = find(qm, qm.manager["DEFXMITQ"], R.UNKNOWN_DEF_XMIT_Q)
    return as_transmission(found, R.DEF_XMIT_Q_TYPE_ERROR, R.DEF_XMIT_Q_USAGE_ERROR)


def as_transmission(found: Definition, wrong_type: R, wrong_usage: R) -> LocalQueue:
    if not isinstance(found, LocalQueue):
        raise Failure(wrong_type)
    if found["USAGE"] != 1:
        raise Failure(wrong_usage)
    return found


def find(qm: QueueManager, name: str, missing: R) -> Definition:
    """The queue definition of a name. z/OS: 2052 while it is only logically deleted (2.4)."""
    found = qm.objects.get(name)
    if found is None and name in qm.logically_deleted:
        raise Failure(R.Q_DELETED)
    if found is None:
        raise Failure(missing)
    return found

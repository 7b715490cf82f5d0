"""Ways from a name to a queue: every kind of first definition, and what stands behind it.

Each way is built so that the first definition says one thing and every definition behind it says
the opposite: whatever a put resolves to tells which of them was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from desk import Desk, embedded
from penstock import mqi


@dataclass
class Way:
    """From the name that an application gives to the queue where the message lies afterwards."""

    name: str  # ObjectName
    manager: str  # ObjectQMgrName
    landing: str
    kind: str  # of the first definition
    first: str  # its name
    remote: bool = False  # the landing is a transmission queue

    def send(self, desk: Desk, md: Any = None, data: bytes = b"x") -> tuple[int, int]:
        """MQPUT through a handle of its own."""
        hobj = desk.opened(self.name, mqi.MQOO_OUTPUT, ObjectQMgrName=self.manager)
        answer = desk.put(hobj, data, md)
        desk.closed(hobj)
        return answer

    def landed(self, desk: Desk) -> list[tuple[int, int]]:
        """(Priority, Persistence) of each descriptor of the next message: one, or two if remote."""
        got = desk.take(self.landing)
        found = [(got.priority, got.persistence)]
        if self.remote:
            found.append(embedded(got.data))
        return found


Attributes = dict[str, Any]


def alias(desk: Desk, first: Attributes, rest: Attributes) -> Way:
    base = desk.local(**rest)
    name = desk.define("QALIAS", target=base, **first)
    return Way(name, "", base, "QALIAS", name)


def alias_of_remote(desk: Desk, first: Attributes, rest: Attributes) -> Way:
    behind = remote(desk, rest, rest)
    name = desk.define("QALIAS", target=behind.name, **first)
    return Way(name, "", behind.landing, "QALIAS", name, True)


def local(desk: Desk, first: Attributes, rest: Attributes) -> Way:
    name = desk.local(**first)
    return Way(name, "", name, "QLOCAL", name)


def local_by_manager(desk: Desk, first: Attributes, rest: Attributes) -> Way:
    name = desk.local(**first)
    return Way(name, desk.name, name, "QLOCAL", name)


def remote(desk: Desk, first: Attributes, rest: Attributes) -> Way:
    route = desk.local(usage="XMITQ", **rest)
    name = desk.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=route, **first)
    return Way(name, "", route, "QREMOTE", name, True)


def remote_by_route_name(desk: Desk, first: Attributes, rest: Attributes) -> Way:
    route = desk.local(usage="XMITQ", **rest)
    name = desk.define("QREMOTE", rname="THERE", rqmname=route, **first)
    return Way(name, "", route, "QREMOTE", name, True)


def manager_alias(desk: Desk, first: Attributes, rest: Attributes) -> Way:
    route = desk.local(usage="XMITQ", **rest)
    name = desk.define("QREMOTE", rname="", rqmname="FAR", xmitq=route, **first)
    return Way("THERE", name, route, "QREMOTE", name, True)


def manager_alias_of_this(desk: Desk, first: Attributes, rest: Attributes) -> Way:
    here = desk.local(**rest)
    name = desk.define("QREMOTE", rname="", rqmname=desk.name, **first)
    return Way(here, name, here, "QREMOTE", name)


def transmission(desk: Desk, first: Attributes, rest: Attributes) -> Way:
    route = desk.local(usage="XMITQ", **first)
    return Way("THERE", route, route, "QLOCAL", route, True)


def default_transmission(desk: Desk, first: Attributes, rest: Attributes) -> Way:
    """Nothing matches the queue manager's name: DEFXMITQ, which `ways()` sets back."""
    route = desk.local(usage="XMITQ", **first)
    desk.qm.alter("QMGR", "", force=True, defxmitq=route)
    return Way("THERE", "NOBODY.KNOWS", route, "QLOCAL", route, True)


def model(desk: Desk, first: Attributes, rest: Attributes) -> Way:
    """A permanent dynamic queue: the definition it got from its model when it was made."""
    source = desk.model("PERMDYN", **first)
    hobj, name = desk.dynamic(source, mqi.MQOO_OUTPUT)
    desk.closed(hobj)
    desk.qm.alter("QMODEL", source, **rest)
    return Way(name, "", name, "QLOCAL", name)


KINDS: dict[str, tuple[Callable[[Desk, Attributes, Attributes], Way], ...]] = {
    "alias": (alias, alias_of_remote),
    "local": (local, local_by_manager, model),
    "remote": (remote, remote_by_route_name),
    "manager alias": (manager_alias, manager_alias_of_this),
    "transmission": (transmission, default_transmission),
}
REMOTE = (remote, remote_by_route_name, manager_alias, transmission, default_transmission)
BEHIND = (alias, alias_of_remote, remote, manager_alias, manager_alias_of_this)
ALL = tuple(build for builders in KINDS.values() for build in builders)


@contextmanager
def way(
    desk: Desk,
    build: Callable[[Desk, Attributes, Attributes], Way],
    first: Attributes,
    rest: Attributes,
) -> Iterator[Way]:
    """One way; the queue manager's DEFXMITQ is blank again afterwards."""
    try:
        yield build(desk, first, rest)
    finally:
        if build is default_transmission:
            desk.qm.alter("QMGR", "", force=True, defxmitq="")

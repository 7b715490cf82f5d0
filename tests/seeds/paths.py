"""Ways of resolving a name: every kind of first definition, and the definitions behind it.

In each way the first definition has one value and every definition behind it the opposite one: the
value of a put shows which of them supplied it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from penstock import mqi
from qmgr_fixture import QmgrFixture, embedded


@dataclass
class Way:
    """From the name that an application gives to the queue where the message lies afterwards."""

    name: str  # ObjectName
    manager: str  # ObjectQMgrName
    landing: str
    kind: str  # of the first definition
    first: str  # its name
    remote: bool = False  # the landing is a transmission queue

    def send(self, qmgr: QmgrFixture, md: Any = None, data: bytes = b"x") -> tuple[int, int]:
        """MQPUT through a new handle."""
        hobj = qmgr.opened(self.name, mqi.MQOO_OUTPUT, ObjectQMgrName=self.manager)
        answer = qmgr.put(hobj, data, md)
        qmgr.closed(hobj)
        return answer

    def landed(self, qmgr: QmgrFixture) -> list[tuple[int, int]]:
        """(Priority, Persistence) of each descriptor of the next message: one, or two if remote."""
        got = qmgr.take(self.landing)
        found = [(got.priority, got.persistence)]
        if self.remote:
            found.append(embedded(got.data))
        return found


Attributes = dict[str, Any]


def alias(qmgr: QmgrFixture, first: Attributes, rest: Attributes) -> Way:
    base = qmgr.local(**rest)
    name = qmgr.define("QALIAS", target=base, **first)
    return Way(name, "", base, "QALIAS", name)


def alias_of_remote(qmgr: QmgrFixture, first: Attributes, rest: Attributes) -> Way:
    behind = remote(qmgr, rest, rest)
    name = qmgr.define("QALIAS", target=behind.name, **first)
    return Way(name, "", behind.landing, "QALIAS", name, True)


def local(qmgr: QmgrFixture, first: Attributes, rest: Attributes) -> Way:
    name = qmgr.local(**first)
    return Way(name, "", name, "QLOCAL", name)


def local_by_manager(qmgr: QmgrFixture, first: Attributes, rest: Attributes) -> Way:
    name = qmgr.local(**first)
    return Way(name, qmgr.name, name, "QLOCAL", name)


def remote(qmgr: QmgrFixture, first: Attributes, rest: Attributes) -> Way:
    route = qmgr.local(usage="XMITQ", **rest)
    name = qmgr.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=route, **first)
    return Way(name, "", route, "QREMOTE", name, True)


def remote_by_route_name(qmgr: QmgrFixture, first: Attributes, rest: Attributes) -> Way:
    route = qmgr.local(usage="XMITQ", **rest)
    name = qmgr.define("QREMOTE", rname="THERE", rqmname=route, **first)
    return Way(name, "", route, "QREMOTE", name, True)


def manager_alias(qmgr: QmgrFixture, first: Attributes, rest: Attributes) -> Way:
    route = qmgr.local(usage="XMITQ", **rest)
    name = qmgr.define("QREMOTE", rname="", rqmname="FAR", xmitq=route, **first)
    return Way("THERE", name, route, "QREMOTE", name, True)


def manager_alias_of_this(qmgr: QmgrFixture, first: Attributes, rest: Attributes) -> Way:
    here = qmgr.local(**rest)
    name = qmgr.define("QREMOTE", rname="", rqmname=qmgr.name, **first)
    return Way(here, name, here, "QREMOTE", name)


def transmission(qmgr: QmgrFixture, first: Attributes, rest: Attributes) -> Way:
    route = qmgr.local(usage="XMITQ", **first)
    return Way("THERE", route, route, "QLOCAL", route, True)


def default_transmission(qmgr: QmgrFixture, first: Attributes, rest: Attributes) -> Way:
    """Nothing matches the queue manager's name: DEFXMITQ, which `ways()` sets back."""
    route = qmgr.local(usage="XMITQ", **first)
    qmgr.qm.alter("QMGR", "", force=True, defxmitq=route)
    return Way("THERE", "NOBODY.KNOWS", route, "QLOCAL", route, True)


def model(qmgr: QmgrFixture, first: Attributes, rest: Attributes) -> Way:
    """A permanent dynamic queue: the definition it got from its model when it was made."""
    source = qmgr.model("PERMDYN", **first)
    hobj, name = qmgr.dynamic(source, mqi.MQOO_OUTPUT)
    qmgr.closed(hobj)
    qmgr.qm.alter("QMODEL", source, **rest)
    return Way(name, "", name, "QLOCAL", name)


KINDS: dict[str, tuple[Callable[[QmgrFixture, Attributes, Attributes], Way], ...]] = {
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
    qmgr: QmgrFixture,
    build: Callable[[QmgrFixture, Attributes, Attributes], Way],
    first: Attributes,
    rest: Attributes,
) -> Iterator[Way]:
    """One way; the queue manager's DEFXMITQ is blank again afterwards."""
    try:
        yield build(qmgr, first, rest)
    finally:
        if build is default_transmission:
            qmgr.qm.alter("QMGR", "", force=True, defxmitq="")

"""Handles of every kind that Table 74 of MQCLOSE has a row for, and what closing them did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock import mqi
from qmgr_fixture import OK, QmgrFixture

NONE, DELETE, PURGE = mqi.MQCO_NONE, mqi.MQCO_DELETE, mqi.MQCO_DELETE_PURGE
USE = mqi.MQOO_INPUT_SHARED | mqi.MQOO_OUTPUT
NOT_VALID = (mqi.MQCC_FAILED, mqi.MQRC_OPTION_NOT_VALID_FOR_TYPE)
NOT_EMPTY = (mqi.MQCC_FAILED, mqi.MQRC_Q_NOT_EMPTY)
DONE = (OK, 0)


@dataclass
class Handle:
    """A handle to close, and how to see whether its object is still there."""

    hobj: Any
    queue: str = ""  # "" when it is none
    reopen: Callable[[], bool] = lambda: True

    def retained(self, qmgr: QmgrFixture) -> bool:
        return qmgr.exists(self.queue) if self.queue else self.reopen()


def other_objects(qmgr: QmgrFixture) -> list[Handle]:
    """A process, a namelist, a topic and the queue manager, each open for what it allows."""
    rows = [
        (mqi.MQOT_PROCESS, qmgr.define("PROCESS"), mqi.MQOO_INQUIRE),
        (mqi.MQOT_NAMELIST, qmgr.define("NAMELIST"), mqi.MQOO_INQUIRE),
        (mqi.MQOT_Q_MGR, "", mqi.MQOO_INQUIRE),
    ]
    found = []
    for kind, name, options in rows:

        def reopen(kind: int = kind, name: str = name, options: int = options) -> bool:
            od = mqi.MQOD(ObjectType=kind, ObjectName=name)
            hobj, cc, _ = mqi.MQOPEN(qmgr.hconn, od, options)
            return bool(cc == OK and mqi.MQCLOSE(qmgr.hconn, hobj, NONE) == DONE)

        od = mqi.MQOD(ObjectType=kind, ObjectName=name)
        hobj, cc, rc = mqi.MQOPEN(qmgr.hconn, od, options)
        assert (cc, rc) == (OK, 0), (kind, cc, rc)
        found.append(Handle(hobj, "", reopen))
    return found


def predefined(qmgr: QmgrFixture) -> Handle:
    name = qmgr.local()
    return Handle(qmgr.opened(name, USE), name)


def permanent(qmgr: QmgrFixture, options: int = USE) -> Handle:
    """A permanent dynamic queue by the handle that made it."""
    hobj, name = qmgr.dynamic(qmgr.model("PERMDYN", share="YES"), options)
    return Handle(hobj, name)


def permanent_of_others(qmgr: QmgrFixture) -> Handle:
    """A permanent dynamic queue by a handle that found it."""
    made = permanent(qmgr)
    qmgr.closed(made.hobj)
    return Handle(qmgr.opened(made.queue, USE), made.queue)


def temporary(qmgr: QmgrFixture, options: int = USE) -> Handle:
    """A temporary dynamic queue by the handle that made it."""
    hobj, name = qmgr.dynamic(qmgr.model("TEMPDYN", share="YES", defsopt="SHARED"), options)
    return Handle(hobj, name)


def temporary_of_others(qmgr: QmgrFixture, hconn: Any = None) -> tuple[Handle, Handle]:
    """A temporary dynamic queue by a handle that found it; and by that of its creator."""
    made = temporary(qmgr)
    return Handle(qmgr.opened(made.queue, USE, hconn), made.queue), made


def distribution_list(qmgr: QmgrFixture) -> tuple[Handle, list[str]]:
    """Two queues opened as one list."""
    queues = [qmgr.local(), qmgr.local()]
    od = mqi.MQOD(
        Version=mqi.MQOD_VERSION_2,
        RecsPresent=len(queues),
        ObjectRecs=[mqi.MQOR(ObjectName=name) for name in queues],
    )
    hobj, cc, rc = mqi.MQOPEN(qmgr.hconn, od, mqi.MQOO_OUTPUT)
    assert (cc, rc) == (OK, 0), (cc, rc)
    return Handle(hobj, "", lambda: all(qmgr.exists(name) for name in queues)), queues


def pending_works(qmgr: QmgrFixture, queue: str) -> list[tuple[str, Callable[[], None], Any]]:
    """(name, what makes it pending, whose unit of work): puts and gets of oneself and of others."""
    second = qmgr.other()

    def put(hconn: Any) -> Callable[[], None]:
        return lambda: void(qmgr.send(queue, b"pending", syncpoint=True, hconn=hconn))

    def get(hconn: Any) -> Callable[[], None]:
        def work() -> None:
            qmgr.send(queue, b"pending")
            qmgr.take(queue, syncpoint=True, hconn=hconn)

        return work

    return [
        ("own put", put(qmgr.hconn), qmgr.hconn),
        ("put of another", put(second), second),
        ("own get", get(qmgr.hconn), qmgr.hconn),
        ("get of another", get(second), second),
    ]


def void(_: object) -> None:
    """For lambdas that return nothing."""

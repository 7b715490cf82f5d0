"""The test vectors of the MQI reference: priority, 2045 or 2055, resolution, buffers, units.

One test a row, named after the section of the reference and the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from desk import FAILED, HEADER, OK, WARNING, Desk, embedded, transmission
from penstock import mqi

OUTPUT, INPUT, INQUIRE = mqi.MQOO_OUTPUT, mqi.MQOO_INPUT_SHARED, mqi.MQOO_INQUIRE
USE = INPUT | OUTPUT


# ---- 1.5: MaxPriority 9, DEFPRTY(3) ----

PRIORITIES = [
    # (MSGDLVSQ, put, cc, rc, field on get, queued at)
    ("PRIORITY", -1, OK, 0, 3, 3),
    ("PRIORITY", 0, OK, 0, 0, 0),
    ("PRIORITY", 9, OK, 0, 9, 9),
    ("PRIORITY", 12, WARNING, 2049, 12, 9),
    ("PRIORITY", -2, FAILED, 2050, None, None),
    ("FIFO", 7, OK, 0, 7, 3),
    ("FIFO", 12, WARNING, 2049, 12, 3),
]


@pytest.mark.parametrize(
    ("order", "put", "cc", "rc", "field", "place"),
    PRIORITIES,
    ids=[f"{row[0]}-{row[1]}" for row in PRIORITIES],
)
def test_1_5_priority(
    desk: Desk, order: str, put: int, cc: int, rc: int, field: int | None, place: int | None
) -> None:
    queue = desk.local(defprty=3, msgdlvsq=order)
    assert desk.put(queue, md=mqi.MQMD(Priority=put)) == (cc, rc)
    with desk.qm.open(queue) as opened:
        seen = [(message.priority, message.placement) for message in opened.browse()]
    assert seen == ([] if field is None else [(field, place)])
    assert [got.priority for got in desk.drain(queue)] == [row[0] for row in seen]


def test_1_5_priority_12_stands_behind_earlier_nines(desk: Desk) -> None:
    queue = desk.local(defprty=3)
    for data, value in ((b"9", 9), (b"12", 12), (b"9 later", 9)):
        desk.put(queue, data, mqi.MQMD(Priority=value))
    assert desk.bodies(queue) == [b"9", b"12", b"9 later"]


def test_1_5_priority_12_through_a_remote_definition(desk: Desk) -> None:
    route = desk.local(usage="XMITQ")
    remote = desk.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=route)
    assert desk.put(remote, md=mqi.MQMD(Priority=12)) == (WARNING, 2049)
    with desk.qm.open(route) as opened:
        assert [message.placement for message in opened.browse()] == [9]
    got = desk.take(route)
    assert got.priority == embedded(got.data)[0] == 12


def test_1_5_default_priority_of_an_alias(desk: Desk) -> None:
    queue = desk.local(defprty=3)
    desk.send(desk.define("QALIAS", target=queue, defprty=5))
    with desk.qm.open(queue) as opened:
        assert [message.placement for message in opened.browse()] == [5]
    assert desk.take(queue).priority == 5


def test_1_5_a_change_of_order_or_default_moves_nothing(desk: Desk) -> None:
    queue = desk.local(defprty=3, msgdlvsq="FIFO")
    desk.send(queue, b"a", mqi.MQMD(Priority=1))
    desk.qm.alter("QLOCAL", queue, defprty=5)
    desk.send(queue, b"b", mqi.MQMD(Priority=0))
    desk.qm.alter("QLOCAL", queue, msgdlvsq="PRIORITY")
    desk.send(queue, b"c", mqi.MQMD(Priority=4))
    assert desk.bodies(queue) == [b"b", b"c", b"a"]


# ---- 2.3: 2045 or 2055 ----


def test_2_3_the_type_does_not_permit_the_option(desk: Desk) -> None:
    hobj = desk.opened(desk.local(), USE)
    for options in (mqi.MQCO_DELETE, mqi.MQCO_DELETE_PURGE, mqi.MQCO_KEEP_SUB, mqi.MQCO_REMOVE_SUB):
        assert desk.close(hobj, options) == (FAILED, 2045), options
    desk.closed(hobj)


def test_2_3_delete_with_committed_messages(desk: Desk) -> None:
    hobj, name = desk.dynamic(desk.model("PERMDYN"), USE)
    desk.send(name)
    assert desk.close(hobj, mqi.MQCO_DELETE) == (FAILED, 2055)
    desk.closed(hobj, mqi.MQCO_DELETE_PURGE)


@pytest.mark.parametrize("option", [mqi.MQCO_DELETE, mqi.MQCO_DELETE_PURGE])
@pytest.mark.parametrize("work", ["put", "get"])
def test_2_3_uncommitted_work_of_anyone(desk: Desk, option: int, work: str) -> None:
    hobj, name = desk.dynamic(desk.model("PERMDYN", share="YES", defsopt="SHARED"), USE)
    somebody = desk.other()
    if work == "put":
        desk.send(name, syncpoint=True, hconn=somebody)
    else:
        desk.send(name)
        desk.take(name, syncpoint=True, hconn=somebody)
    assert desk.close(hobj, option) == (FAILED, 2055)
    desk.backout(somebody)
    desk.closed(hobj, mqi.MQCO_DELETE_PURGE)


def test_2_3_depth_0_with_an_uncommitted_get(desk: Desk) -> None:
    hobj, name = desk.dynamic(desk.model("PERMDYN"), USE | INQUIRE)
    desk.send(name)
    desk.take(hobj, syncpoint=True)
    assert desk.depth(name) == 0
    assert desk.close(hobj, mqi.MQCO_DELETE) == (FAILED, 2055)
    desk.commit()
    desk.closed(hobj, mqi.MQCO_DELETE)


# ---- 3.4: name resolution ----


def resolved(desk: Desk, name: str, manager: str = "", options: int = OUTPUT) -> tuple[str, str]:
    """ResolvedQName and ResolvedQMgrName of an MQOPEN."""
    od = mqi.MQOD(Version=mqi.MQOD_VERSION_3, ObjectName=name, ObjectQMgrName=manager)
    hobj, cc, rc = mqi.MQOPEN(desk.hconn, od, options)
    assert (cc, rc) == (OK, 0), (name, manager, cc, rc)
    desk.closed(hobj)
    return str(od.ResolvedQName), str(od.ResolvedQMgrName)


def lands(desk: Desk, route: str, name: str, manager: str = "") -> tuple[str, str]:
    """The names in the header of a message put to the name, from the transmission queue."""
    desk.send(name, b"data", to=manager)
    got = desk.take(route)
    assert got.data[HEADER:] == b"data" and got.md.Format == "MQXMIT"
    return transmission(got.data)


@pytest.mark.parametrize("manager", ["", "QM1"])
def test_3_4_a_local_queue(desk: Desk, manager: str) -> None:
    queue = desk.local()
    assert resolved(desk, queue, manager) == (queue, "QM1")
    desk.send(queue, to=manager)
    assert desk.depth(queue) == 1


@pytest.mark.parametrize("manager", ["", "QM1"])
def test_3_4_a_model_queue(desk: Desk, manager: str) -> None:
    od = mqi.MQOD(ObjectName=desk.model("TEMPDYN"), ObjectQMgrName=manager, DynamicQName="MADE.*")
    hobj, cc, rc = mqi.MQOPEN(desk.hconn, od, USE)
    assert (cc, rc) == (OK, 0)
    assert od.ObjectName.startswith("MADE.") and len(od.ObjectName) > len("MADE.")
    assert od.ObjectQMgrName == "QM1"
    desk.send(od.ObjectName)
    assert desk.depth(od.ObjectName) == 1
    desk.closed(hobj)


@pytest.mark.parametrize("manager", ["", "QM1"])
def test_3_4_an_alias(desk: Desk, manager: str) -> None:
    base = desk.local()
    alias = desk.define("QALIAS", target=base)
    assert resolved(desk, alias, manager) == (base, "QM1")
    desk.send(alias, to=manager)
    assert desk.depth(base) == 1


def test_3_4_an_alias_of_an_alias(desk: Desk) -> None:
    first = desk.define("QALIAS", target=desk.local())
    second = desk.define("QALIAS", target=first)
    assert desk.open(second, OUTPUT)[1:] == (FAILED, 2001)


@pytest.mark.parametrize("manager", ["", "QM1"])
def test_3_4_a_remote_definition_with_xmitq(desk: Desk, manager: str) -> None:
    route = desk.local(usage="XMITQ")
    remote = desk.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=route)
    assert resolved(desk, remote, manager) == ("THERE", "FAR")
    assert lands(desk, route, remote, manager) == ("THERE", "FAR")


def test_3_4_a_remote_definition_by_the_queue_named_rqmname(desk: Desk) -> None:
    route = desk.local(usage="XMITQ")
    remote = desk.define("QREMOTE", rname="THERE", rqmname=route)
    assert lands(desk, route, remote) == ("THERE", route)


def test_3_4_a_remote_definition_by_defxmitq(desk: Desk) -> None:
    route = desk.local(usage="XMITQ")
    remote = desk.define("QREMOTE", rname="THERE", rqmname="FAR")
    desk.qm.alter("QMGR", "", defxmitq=route)
    try:
        assert lands(desk, route, remote) == ("THERE", "FAR")
    finally:
        desk.qm.alter("QMGR", "", defxmitq="")


def test_3_4_the_local_queue_manager_and_no_object(desk: Desk) -> None:
    assert desk.open("NOT.THERE", OUTPUT, ObjectQMgrName="QM1")[1:] == (FAILED, 2085)


def test_3_4_the_name_of_a_transmission_queue(desk: Desk) -> None:
    route = desk.local(usage="XMITQ")
    assert resolved(desk, "NOT.LOOKED.UP", route) == ("NOT.LOOKED.UP", route)
    assert lands(desk, route, "NOT.LOOKED.UP", route) == ("NOT.LOOKED.UP", route)


def test_3_4_a_queue_manager_alias(desk: Desk) -> None:
    route = desk.local(usage="XMITQ")
    alias = desk.define("QREMOTE", rname="", rqmname="FAR", xmitq=route)
    assert resolved(desk, "THERE", alias) == ("THERE", "FAR")
    assert lands(desk, route, "THERE", alias) == ("THERE", "FAR")


def test_3_4_a_queue_manager_alias_without_xmitq(desk: Desk) -> None:
    route = desk.local(usage="XMITQ")
    alias = desk.define("QREMOTE", rname="", rqmname=route)
    assert lands(desk, route, "THERE", alias) == ("THERE", route)


def test_3_4_a_queue_manager_alias_of_this_one(desk: Desk) -> None:
    queue = desk.local()
    alias = desk.define("QREMOTE", rname="", rqmname="QM1", xmitq="NOT.THERE")
    assert resolved(desk, queue, alias) == (queue, "QM1")
    for options in (INPUT, mqi.MQOO_BROWSE, INQUIRE, mqi.MQOO_SET):
        answer = desk.open(queue, options, ObjectQMgrName=alias)[1:]
        assert answer == (FAILED, 2045), options


def test_3_4_anything_else_goes_by_defxmitq(desk: Desk) -> None:
    route = desk.local(usage="XMITQ")
    desk.qm.alter("QMGR", "", defxmitq=route)
    try:
        assert lands(desk, route, "THERE", "NOBODY") == ("THERE", "NOBODY")
    finally:
        desk.qm.alter("QMGR", "", defxmitq="")


def test_3_4_a_cluster_queue_without_local_definition(desk: Desk) -> None:
    name = desk.new_name("CLUSTERED")
    desk.define("QCLUSTER", name, cluster="C", clusqmgr="FAR")
    assert lands(desk, "SYSTEM.CLUSTER.TRANSMIT.QUEUE", name) == (name, "FAR")


NO_ROUTE: list[tuple[str, int, Callable[[Desk], dict[str, Any]]]] = [
    ("nothing-leads-there", 2087, lambda desk: {"rname": "Q", "rqmname": "FAR"}),
    ("rqmname-blank", 2087, lambda desk: {"rname": "Q", "rqmname": ""}),
    ("rqmname-local", 2087, lambda desk: {"rname": "Q", "rqmname": "QM1"}),
    ("rname-blank", 2184, lambda desk: {"rname": "", "rqmname": "FAR"}),
    ("xmitq-missing", 2196, lambda desk: {"rname": "Q", "rqmname": "FAR", "xmitq": "NONE"}),
    ("xmitq-normal", 2092, lambda desk: {"rname": "Q", "rqmname": "FAR", "xmitq": desk.local()}),
    (
        "xmitq-alias",
        2091,
        lambda desk: {
            "rname": "Q",
            "rqmname": "FAR",
            "xmitq": desk.define("QALIAS", target=desk.local()),
        },
    ),
]


@pytest.mark.parametrize(
    ("reason", "attributes"), [row[1:] for row in NO_ROUTE], ids=[row[0] for row in NO_ROUTE]
)
def test_3_4_a_remote_definition_that_leads_nowhere(
    desk: Desk, reason: int, attributes: Callable[[Desk], dict[str, Any]]
) -> None:
    name = desk.define("QREMOTE", **attributes(desk))
    assert desk.open(name, OUTPUT)[1:] == (FAILED, reason)
    assert desk.put(name) == (FAILED, reason)


def test_3_4_a_queue_definition_used_as_queue_manager_alias(desk: Desk) -> None:
    name = desk.define("QREMOTE", rname="SET", rqmname="FAR", xmitq=desk.local(usage="XMITQ"))
    assert desk.open("Q", OUTPUT, ObjectQMgrName=name)[1:] == (FAILED, 2087)


CHANGES: list[tuple[str, str, dict[str, Any]]] = [
    ("alias-target", "QALIAS", {"target": "OTHER"}),
    ("remote-rname", "QREMOTE", {"rname": "OTHER"}),
    ("remote-rqmname", "QREMOTE", {"rqmname": "OTHER"}),
    ("remote-xmitq", "QREMOTE", {"xmitq": "OTHER"}),
]


@pytest.mark.parametrize(("kind", "change"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_3_4_a_change_of_resolution_invalidates_handles(
    desk: Desk, kind: str, change: dict[str, Any]
) -> None:
    route = desk.local(usage="XMITQ")
    if kind == "QALIAS":
        name = desk.define(kind, target=desk.local())
    else:
        name = desk.define(kind, rname="THERE", rqmname="FAR", xmitq=route)
    hobj = desk.opened(name, OUTPUT)
    desk.send(hobj, syncpoint=True)
    desk.qm.alter(kind, name, descr="other attributes don't matter", put="ENABLED")
    desk.send(hobj, syncpoint=True)
    desk.qm.alter(kind, name, force=True, **change)
    assert desk.put(hobj) == (FAILED, 2041)
    desk.commit()
    desk.closed(hobj)


# ---- 5.6: buffer and truncation ----


def filled(desk: Desk, *messages: bytes) -> Any:
    queue = desk.local()
    for data in messages:
        desk.send(queue, data)
    return desk.opened(queue, INPUT | mqi.MQOO_BROWSE)


@pytest.mark.parametrize("length", [5, 6, None])
def test_5_6_the_message_fits(desk: Desk, length: int | None) -> None:
    hobj = filled(desk, b"12345")
    got = desk.take(hobj, length=length)
    assert (got.data, got.length) == (b"12345", 5)
    assert desk.get(hobj).rc == 2033


def test_5_6_too_long_and_not_accepted_stays(desk: Desk) -> None:
    hobj = filled(desk, b"12345", b"6")
    got = desk.get(hobj, length=3)
    assert (got.cc, got.rc, got.data, got.length) == (WARNING, 2080, b"123", 5)
    assert got.md.MsgId != bytes(24)
    got = desk.get(hobj, length=0)
    assert (got.cc, got.rc, got.length) == (WARNING, 2080, 5)
    got = desk.take(hobj)
    assert (got.data, got.md.BackoutCount) == (b"12345", 0)


def test_5_6_too_long_and_accepted_is_removed(desk: Desk) -> None:
    hobj = filled(desk, b"12345", b"6")
    got = desk.get(hobj, length=3, options=mqi.MQGMO_ACCEPT_TRUNCATED_MSG)
    assert (got.cc, got.rc, got.data, got.length) == (WARNING, 2079, b"123", 5)
    assert desk.take(hobj).data == b"6"


def test_5_6_length_0_accepted_deletes(desk: Desk) -> None:
    hobj = filled(desk, b"12345")
    got = desk.get(hobj, length=0, options=mqi.MQGMO_ACCEPT_TRUNCATED_MSG)
    assert (got.cc, got.rc, got.data, got.length) == (WARNING, 2079, b"", 5)
    assert desk.get(hobj).rc == 2033


def test_5_6_the_cursor_moves_only_when_truncation_is_accepted(desk: Desk) -> None:
    hobj = filled(desk, b"12345", b"67890")
    first = mqi.MQGMO_BROWSE_NEXT
    assert desk.get(hobj, options=first, length=3).rc == 2080
    assert desk.take(hobj, options=first).data == b"12345"
    accepted = desk.get(hobj, options=first | mqi.MQGMO_ACCEPT_TRUNCATED_MSG, length=3)
    assert (accepted.rc, accepted.data) == (2079, b"678")
    assert desk.get(hobj, options=first).rc == 2033


def test_5_6_browse_first_refused_leaves_the_cursor_before_the_first(desk: Desk) -> None:
    hobj = filled(desk, b"1", b"23456")
    assert desk.take(hobj, options=mqi.MQGMO_BROWSE_FIRST).data == b"1"
    assert desk.take(hobj, options=mqi.MQGMO_BROWSE_NEXT).data == b"23456"
    assert desk.get(hobj, options=mqi.MQGMO_BROWSE_FIRST, length=0).rc == 2080
    assert desk.take(hobj, options=mqi.MQGMO_BROWSE_NEXT).data == b"1"


# ---- 6.3: units of work ----


def test_6_3_1_puts_are_invisible_until_commit_to_the_putter_too(desk: Desk) -> None:
    queue = desk.local(maxdepth=1)
    desk.send(queue, b"1", syncpoint=True)
    assert desk.get(queue).rc == desk.get(queue, hconn=desk.other()).rc == 2033
    assert desk.put(queue) == (FAILED, 2053)
    desk.commit()
    assert desk.bodies(queue) == [b"1"]


def test_6_3_2_gets_go_back_to_their_place(desk: Desk) -> None:
    queue = desk.local()
    for data in (b"1", b"2", b"3"):
        desk.send(queue, data)
    assert desk.take(queue, syncpoint=True).data == b"1"
    assert desk.depth(queue) == 2
    desk.send(queue, b"4")
    desk.backout()
    got = [(g.data, g.md.BackoutCount) for g in desk.drain(queue)]
    assert got == [
        (b"1", 1),
        (b"2", 0),
        (b"3", 0),
        (b"4", 0),
    ]


def test_6_3_3_close_and_change_are_no_part_of_it(desk: Desk) -> None:
    queue = desk.local(descr="before")
    hobj = desk.opened(queue, OUTPUT | mqi.MQOO_SET)
    desk.send(hobj, b"1", syncpoint=True)
    assert mqi.MQSET(desk.hconn, hobj, {mqi.MQIA_INHIBIT_GET: 1}) == (OK, 0)
    desk.closed(hobj)
    desk.backout()
    assert desk.get(queue).rc == 2016


def test_6_3_5_the_limit_counts_puts_and_gets_of_one_unit(home_desk: Desk) -> None:
    desk = home_desk
    queue = desk.local()
    for _ in range(3):
        desk.send(queue)
    desk.qm.alter("QMGR", "", maxumsgs=2)
    desk.send(queue, b"mine", syncpoint=True)
    desk.take(queue, syncpoint=True)
    assert desk.put(queue, syncpoint=True) == (FAILED, 2024)
    assert desk.get(queue, syncpoint=True).rc == 2024
    desk.send(queue)
    desk.commit()
    assert desk.depth(queue) == 4


@pytest.fixture
def home_desk(desk: Desk) -> Any:
    """The desk, whose MAXUMSGS is set back."""
    before = desk.qm.display("QMGR", desk.name)[0]["maxumsgs"]
    yield desk
    desk.qm.alter("QMGR", "", maxumsgs=before)


def test_6_3_10_a_crash_backs_out_persistent_messages_of_open_units(desk: Desk) -> None:
    queue = desk.local()
    desk.send(queue, b"got", mqi.MQMD(Persistence=1))

    def work() -> None:
        desk.take(queue, syncpoint=True)
        desk.send(queue, b"put", mqi.MQMD(Persistence=1), syncpoint=True)

    desk.failure(work)
    got = [(g.data, g.md.BackoutCount) for g in desk.drain(queue)]
    assert got == [(b"got", 1)]


def test_6_1_commit_and_backout_with_nothing_pending_work(desk: Desk) -> None:
    desk.commit()
    desk.backout()


def test_6_2_disconnecting_commits(desk: Desk) -> None:
    queue = desk.local()
    somebody = desk.other()
    desk.send(queue, b"1", syncpoint=True, hconn=somebody)
    assert mqi.MQDISC(somebody) == (OK, 0)
    desk.others.remove(somebody)
    assert desk.bodies(queue) == [b"1"]

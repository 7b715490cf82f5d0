"""The test vectors of the MQI reference: priority, 2045 or 2055, resolution, buffers, units.

One test a row, named after the section of the reference and the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock import mqi
from qmgr_fixture import FAILED, HEADER, OK, WARNING, QmgrFixture, embedded, transmission

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
    qmgr: QmgrFixture, order: str, put: int, cc: int, rc: int, field: int | None, place: int | None
) -> None:
    queue = qmgr.local(defprty=3, msgdlvsq=order)
    assert qmgr.put(queue, md=mqi.MQMD(Priority=put)) == (cc, rc)
    with qmgr.qm.open(queue) as opened:
        seen = [(message.priority, message.placement) for message in opened.browse()]
    assert seen == ([] if field is None else [(field, place)])
    assert [got.priority for got in qmgr.drain(queue)] == [row[0] for row in seen]


def test_1_5_priority_12_stands_behind_earlier_nines(qmgr: QmgrFixture) -> None:
    queue = qmgr.local(defprty=3)
    for data, value in ((b"9", 9), (b"12", 12), (b"9 later", 9)):
        qmgr.put(queue, data, mqi.MQMD(Priority=value))
    assert qmgr.bodies(queue) == [b"9", b"12", b"9 later"]


def test_1_5_priority_12_through_a_remote_definition(qmgr: QmgrFixture) -> None:
    route = qmgr.local(usage="XMITQ")
    remote = qmgr.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=route)
    assert qmgr.put(remote, md=mqi.MQMD(Priority=12)) == (WARNING, 2049)
    with qmgr.qm.open(route) as opened:
        assert [message.placement for message in opened.browse()] == [9]
    got = qmgr.take(route)
    assert got.priority == embedded(got.data)[0] == 12


def test_1_5_default_priority_of_an_alias(qmgr: QmgrFixture) -> None:
    queue = qmgr.local(defprty=3)
    qmgr.send(qmgr.define("QALIAS", target=queue, defprty=5))
    with qmgr.qm.open(queue) as opened:
        assert [message.placement for message in opened.browse()] == [5]
    assert qmgr.take(queue).priority == 5


def test_1_5_a_change_of_order_or_default_moves_nothing(qmgr: QmgrFixture) -> None:
    queue = qmgr.local(defprty=3, msgdlvsq="FIFO")
    qmgr.send(queue, b"a", mqi.MQMD(Priority=1))
    qmgr.qm.alter("QLOCAL", queue, defprty=5)
    qmgr.send(queue, b"b", mqi.MQMD(Priority=0))
    qmgr.qm.alter("QLOCAL", queue, msgdlvsq="PRIORITY")
    qmgr.send(queue, b"c", mqi.MQMD(Priority=4))
    assert qmgr.bodies(queue) == [b"b", b"c", b"a"]


# ---- 2.3: 2045 or 2055 ----


def test_2_3_the_type_does_not_permit_the_option(qmgr: QmgrFixture) -> None:
    hobj = qmgr.opened(qmgr.local(), USE)
    for options in (mqi.MQCO_DELETE, mqi.MQCO_DELETE_PURGE, mqi.MQCO_KEEP_SUB, mqi.MQCO_REMOVE_SUB):
        assert qmgr.close(hobj, options) == (FAILED, 2045), options
    qmgr.closed(hobj)


def test_2_3_delete_with_committed_messages(qmgr: QmgrFixture) -> None:
    hobj, name = qmgr.dynamic(qmgr.model("PERMDYN"), USE)
    qmgr.send(name)
    assert qmgr.close(hobj, mqi.MQCO_DELETE) == (FAILED, 2055)
    qmgr.closed(hobj, mqi.MQCO_DELETE_PURGE)


@pytest.mark.parametrize("option", [mqi.MQCO_DELETE, mqi.MQCO_DELETE_PURGE])
@pytest.mark.parametrize("work", ["put", "get"])
def test_2_3_uncommitted_work_of_anyone(qmgr: QmgrFixture, option: int, work: str) -> None:
    hobj, name = qmgr.dynamic(qmgr.model("PERMDYN", share="YES", defsopt="SHARED"), USE)
    second = qmgr.other()
    if work == "put":
        qmgr.send(name, syncpoint=True, hconn=second)
    else:
        qmgr.send(name)
        qmgr.take(name, syncpoint=True, hconn=second)
    assert qmgr.close(hobj, option) == (FAILED, 2055)
    qmgr.backout(second)
    qmgr.closed(hobj, mqi.MQCO_DELETE_PURGE)


def test_2_3_depth_0_with_an_uncommitted_get(qmgr: QmgrFixture) -> None:
    hobj, name = qmgr.dynamic(qmgr.model("PERMDYN"), USE | INQUIRE)
    qmgr.send(name)
    qmgr.take(hobj, syncpoint=True)
    assert qmgr.depth(name) == 0
    assert qmgr.close(hobj, mqi.MQCO_DELETE) == (FAILED, 2055)
    qmgr.commit()
    qmgr.closed(hobj, mqi.MQCO_DELETE)


# ---- 3.4: name resolution ----


def resolved(
    qmgr: QmgrFixture, name: str, manager: str = "", options: int = OUTPUT
) -> tuple[str, str]:
    """ResolvedQName and ResolvedQMgrName of an MQOPEN."""
    od = mqi.MQOD(Version=mqi.MQOD_VERSION_3, ObjectName=name, ObjectQMgrName=manager)
    hobj, cc, rc = mqi.MQOPEN(qmgr.hconn, od, options)
    assert (cc, rc) == (OK, 0), (name, manager, cc, rc)
    qmgr.closed(hobj)
    return str(od.ResolvedQName), str(od.ResolvedQMgrName)


def lands(qmgr: QmgrFixture, route: str, name: str, manager: str = "") -> tuple[str, str]:
    """The names in the header of a message put to the name, from the transmission queue."""
    qmgr.send(name, b"data", to=manager)
    got = qmgr.take(route)
    assert got.data[HEADER:] == b"data" and got.md.Format == "MQXMIT"
    return transmission(got.data)


@pytest.mark.parametrize("manager", ["", "QM1"])
def test_3_4_a_local_queue(qmgr: QmgrFixture, manager: str) -> None:
    queue = qmgr.local()
    assert resolved(qmgr, queue, manager) == (queue, "QM1")
    qmgr.send(queue, to=manager)
    assert qmgr.depth(queue) == 1


@pytest.mark.parametrize("manager", ["", "QM1"])
def test_3_4_a_model_queue(qmgr: QmgrFixture, manager: str) -> None:
    od = mqi.MQOD(ObjectName=qmgr.model("TEMPDYN"), ObjectQMgrName=manager, DynamicQName="MADE.*")
    hobj, cc, rc = mqi.MQOPEN(qmgr.hconn, od, USE)
    assert (cc, rc) == (OK, 0)
    assert od.ObjectName.startswith("MADE.") and len(od.ObjectName) > len("MADE.")
    assert od.ObjectQMgrName == "QM1"
    qmgr.send(od.ObjectName)
    assert qmgr.depth(od.ObjectName) == 1
    qmgr.closed(hobj)


@pytest.mark.parametrize("manager", ["", "QM1"])
def test_3_4_an_alias(qmgr: QmgrFixture, manager: str) -> None:
    base = qmgr.local()
    alias = qmgr.define("QALIAS", target=base)
    assert resolved(qmgr, alias, manager) == (base, "QM1")
    qmgr.send(alias, to=manager)
    assert qmgr.depth(base) == 1


def test_3_4_an_alias_of_an_alias(qmgr: QmgrFixture) -> None:
    first = qmgr.define("QALIAS", target=qmgr.local())
    second = qmgr.define("QALIAS", target=first)
    assert qmgr.open(second, OUTPUT)[1:] == (FAILED, 2001)


@pytest.mark.parametrize("manager", ["", "QM1"])
def test_3_4_a_remote_definition_with_xmitq(qmgr: QmgrFixture, manager: str) -> None:
    route = qmgr.local(usage="XMITQ")
    remote = qmgr.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=route)
    assert resolved(qmgr, remote, manager) == ("THERE", "FAR")
    assert lands(qmgr, route, remote, manager) == ("THERE", "FAR")


def test_3_4_a_remote_definition_by_the_queue_named_rqmname(qmgr: QmgrFixture) -> None:
    route = qmgr.local(usage="XMITQ")
    remote = qmgr.define("QREMOTE", rname="THERE", rqmname=route)
    assert lands(qmgr, route, remote) == ("THERE", route)


def test_3_4_a_remote_definition_by_defxmitq(qmgr: QmgrFixture) -> None:
    route = qmgr.local(usage="XMITQ")
    remote = qmgr.define("QREMOTE", rname="THERE", rqmname="FAR")
    qmgr.qm.alter("QMGR", "", defxmitq=route)
    try:
        assert lands(qmgr, route, remote) == ("THERE", "FAR")
    finally:
        qmgr.qm.alter("QMGR", "", defxmitq="")


def test_3_4_the_local_queue_manager_and_no_object(qmgr: QmgrFixture) -> None:
    assert qmgr.open("NOT.THERE", OUTPUT, ObjectQMgrName="QM1")[1:] == (FAILED, 2085)


def test_3_4_the_name_of_a_transmission_queue(qmgr: QmgrFixture) -> None:
    route = qmgr.local(usage="XMITQ")
    assert resolved(qmgr, "NOT.LOOKED.UP", route) == ("NOT.LOOKED.UP", route)
    assert lands(qmgr, route, "NOT.LOOKED.UP", route) == ("NOT.LOOKED.UP", route)


def test_3_4_a_queue_manager_alias(qmgr: QmgrFixture) -> None:
    route = qmgr.local(usage="XMITQ")
    alias = qmgr.define("QREMOTE", rname="", rqmname="FAR", xmitq=route)
    assert resolved(qmgr, "THERE", alias) == ("THERE", "FAR")
    assert lands(qmgr, route, "THERE", alias) == ("THERE", "FAR")


def test_3_4_a_queue_manager_alias_without_xmitq(qmgr: QmgrFixture) -> None:
    route = qmgr.local(usage="XMITQ")
    alias = qmgr.define("QREMOTE", rname="", rqmname=route)
    assert lands(qmgr, route, "THERE", alias) == ("THERE", route)


def test_3_4_a_queue_manager_alias_of_this_one(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    alias = qmgr.define("QREMOTE", rname="", rqmname="QM1", xmitq="NOT.THERE")
    assert resolved(qmgr, queue, alias) == (queue, "QM1")
    for options in (INPUT, mqi.MQOO_BROWSE, INQUIRE, mqi.MQOO_SET):
        answer = qmgr.open(queue, options, ObjectQMgrName=alias)[1:]
        assert answer == (FAILED, 2045), options


def test_3_4_anything_else_goes_by_defxmitq(qmgr: QmgrFixture) -> None:
    route = qmgr.local(usage="XMITQ")
    qmgr.qm.alter("QMGR", "", defxmitq=route)
    try:
        assert lands(qmgr, route, "THERE", "NOBODY") == ("THERE", "NOBODY")
    finally:
        qmgr.qm.alter("QMGR", "", defxmitq="")


def test_3_4_a_cluster_queue_without_local_definition(qmgr: QmgrFixture) -> None:
    name = qmgr.new_name("CLUSTERED")
    qmgr.define("QCLUSTER", name, cluster="C", clusqmgr="FAR")
    assert lands(qmgr, "SYSTEM.CLUSTER.TRANSMIT.QUEUE", name) == (name, "FAR")


NO_ROUTE: list[tuple[str, int, Callable[[QmgrFixture], dict[str, Any]]]] = [
    ("nothing-leads-there", 2087, lambda qmgr: {"rname": "Q", "rqmname": "FAR"}),
    ("rqmname-blank", 2087, lambda qmgr: {"rname": "Q", "rqmname": ""}),
    ("rqmname-local", 2087, lambda qmgr: {"rname": "Q", "rqmname": "QM1"}),
    ("rname-blank", 2184, lambda qmgr: {"rname": "", "rqmname": "FAR"}),
    ("xmitq-missing", 2196, lambda qmgr: {"rname": "Q", "rqmname": "FAR", "xmitq": "NONE"}),
    ("xmitq-normal", 2092, lambda qmgr: {"rname": "Q", "rqmname": "FAR", "xmitq": qmgr.local()}),
    (
        "xmitq-alias",
        2091,
        lambda qmgr: {
            "rname": "Q",
            "rqmname": "FAR",
            "xmitq": qmgr.define("QALIAS", target=qmgr.local()),
        },
    ),
]


@pytest.mark.parametrize(
    ("reason", "attributes"), [row[1:] for row in NO_ROUTE], ids=[row[0] for row in NO_ROUTE]
)
def test_3_4_a_remote_definition_that_leads_nowhere(
    qmgr: QmgrFixture, reason: int, attributes: Callable[[QmgrFixture], dict[str, Any]]
) -> None:
    name = qmgr.define("QREMOTE", **attributes(qmgr))
    assert qmgr.open(name, OUTPUT)[1:] == (FAILED, reason)
    assert qmgr.put(name) == (FAILED, reason)


def test_3_4_a_queue_definition_used_as_queue_manager_alias(qmgr: QmgrFixture) -> None:
    name = qmgr.define("QREMOTE", rname="SET", rqmname="FAR", xmitq=qmgr.local(usage="XMITQ"))
    assert qmgr.open("Q", OUTPUT, ObjectQMgrName=name)[1:] == (FAILED, 2087)


CHANGES: list[tuple[str, str, dict[str, Any]]] = [
    ("alias-target", "QALIAS", {"target": "OTHER"}),
    ("remote-rname", "QREMOTE", {"rname": "OTHER"}),
    ("remote-rqmname", "QREMOTE", {"rqmname": "OTHER"}),
    ("remote-xmitq", "QREMOTE", {"xmitq": "OTHER"}),
]


@pytest.mark.parametrize(("kind", "change"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_3_4_a_change_of_resolution_invalidates_handles(
    qmgr: QmgrFixture, kind: str, change: dict[str, Any]
) -> None:
    route = qmgr.local(usage="XMITQ")
    if kind == "QALIAS":
        name = qmgr.define(kind, target=qmgr.local())
    else:
        name = qmgr.define(kind, rname="THERE", rqmname="FAR", xmitq=route)
    hobj = qmgr.opened(name, OUTPUT)
    qmgr.send(hobj, syncpoint=True)
    qmgr.qm.alter(kind, name, descr="other attributes don't matter", put="ENABLED")
    qmgr.send(hobj, syncpoint=True)
    qmgr.qm.alter(kind, name, force=True, **change)
    assert qmgr.put(hobj) == (FAILED, 2041)
    qmgr.commit()
    qmgr.closed(hobj)


# ---- 5.6: buffer and truncation ----


def filled(qmgr: QmgrFixture, *messages: bytes) -> Any:
    queue = qmgr.local()
    for data in messages:
        qmgr.send(queue, data)
    return qmgr.opened(queue, INPUT | mqi.MQOO_BROWSE)


@pytest.mark.parametrize("length", [5, 6, None])
def test_5_6_the_message_fits(qmgr: QmgrFixture, length: int | None) -> None:
    hobj = filled(qmgr, b"12345")
    got = qmgr.take(hobj, length=length)
    assert (got.data, got.length) == (b"12345", 5)
    assert qmgr.get(hobj).rc == 2033


def test_5_6_too_long_and_not_accepted_stays(qmgr: QmgrFixture) -> None:
    hobj = filled(qmgr, b"12345", b"6")
    got = qmgr.get(hobj, length=3)
    assert (got.cc, got.rc, got.data, got.length) == (WARNING, 2080, b"123", 5)
    assert got.md.MsgId != bytes(24)
    got = qmgr.get(hobj, length=0)
    assert (got.cc, got.rc, got.length) == (WARNING, 2080, 5)
    got = qmgr.take(hobj)
    assert (got.data, got.md.BackoutCount) == (b"12345", 0)


def test_5_6_too_long_and_accepted_is_removed(qmgr: QmgrFixture) -> None:
    hobj = filled(qmgr, b"12345", b"6")
    got = qmgr.get(hobj, length=3, options=mqi.MQGMO_ACCEPT_TRUNCATED_MSG)
    assert (got.cc, got.rc, got.data, got.length) == (WARNING, 2079, b"123", 5)
    assert qmgr.take(hobj).data == b"6"


def test_5_6_length_0_accepted_deletes(qmgr: QmgrFixture) -> None:
    hobj = filled(qmgr, b"12345")
    got = qmgr.get(hobj, length=0, options=mqi.MQGMO_ACCEPT_TRUNCATED_MSG)
    assert (got.cc, got.rc, got.data, got.length) == (WARNING, 2079, b"", 5)
    assert qmgr.get(hobj).rc == 2033


def test_5_6_the_cursor_moves_only_when_truncation_is_accepted(qmgr: QmgrFixture) -> None:
    hobj = filled(qmgr, b"12345", b"67890")
    first = mqi.MQGMO_BROWSE_NEXT
    assert qmgr.get(hobj, options=first, length=3).rc == 2080
    assert qmgr.take(hobj, options=first).data == b"12345"
    accepted = qmgr.get(hobj, options=first | mqi.MQGMO_ACCEPT_TRUNCATED_MSG, length=3)
    assert (accepted.rc, accepted.data) == (2079, b"678")
    assert qmgr.get(hobj, options=first).rc == 2033


def test_5_6_browse_first_refused_leaves_the_cursor_before_the_first(qmgr: QmgrFixture) -> None:
    hobj = filled(qmgr, b"1", b"23456")
    assert qmgr.take(hobj, options=mqi.MQGMO_BROWSE_FIRST).data == b"1"
    assert qmgr.take(hobj, options=mqi.MQGMO_BROWSE_NEXT).data == b"23456"
    assert qmgr.get(hobj, options=mqi.MQGMO_BROWSE_FIRST, length=0).rc == 2080
    assert qmgr.take(hobj, options=mqi.MQGMO_BROWSE_NEXT).data == b"1"


# ---- 6.3: units of work ----


def test_6_3_1_puts_are_invisible_until_commit_to_the_putter_too(qmgr: QmgrFixture) -> None:
    queue = qmgr.local(maxdepth=1)
    qmgr.send(queue, b"1", syncpoint=True)
    assert qmgr.get(queue).rc == qmgr.get(queue, hconn=qmgr.other()).rc == 2033
    assert qmgr.put(queue) == (FAILED, 2053)
    qmgr.commit()
    assert qmgr.bodies(queue) == [b"1"]


def test_6_3_2_gets_return_to_their_position(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    for data in (b"1", b"2", b"3"):
        qmgr.send(queue, data)
    assert qmgr.take(queue, syncpoint=True).data == b"1"
    assert qmgr.depth(queue) == 2
    qmgr.send(queue, b"4")
    qmgr.backout()
    got = [(g.data, g.md.BackoutCount) for g in qmgr.drain(queue)]
    assert got == [
        (b"1", 1),
        (b"2", 0),
        (b"3", 0),
        (b"4", 0),
    ]


def test_6_3_3_close_and_change_are_no_part_of_it(qmgr: QmgrFixture) -> None:
    queue = qmgr.local(descr="before")
    hobj = qmgr.opened(queue, OUTPUT | mqi.MQOO_SET)
    qmgr.send(hobj, b"1", syncpoint=True)
    assert mqi.MQSET(qmgr.hconn, hobj, {mqi.MQIA_INHIBIT_GET: 1}) == (OK, 0)
    qmgr.closed(hobj)
    qmgr.backout()
    assert qmgr.get(queue).rc == 2016


def test_6_3_5_the_limit_counts_puts_and_gets_of_one_unit(home_qmgr: QmgrFixture) -> None:
    qmgr = home_qmgr
    queue = qmgr.local()
    for _ in range(3):
        qmgr.send(queue)
    qmgr.qm.alter("QMGR", "", maxumsgs=2)
    qmgr.send(queue, b"mine", syncpoint=True)
    qmgr.take(queue, syncpoint=True)
    assert qmgr.put(queue, syncpoint=True) == (FAILED, 2024)
    assert qmgr.get(queue, syncpoint=True).rc == 2024
    qmgr.send(queue)
    qmgr.commit()
    assert qmgr.depth(queue) == 4


@pytest.fixture
def home_qmgr(qmgr: QmgrFixture) -> Any:
    """The qmgr, whose MAXUMSGS is set back."""
    before = qmgr.qm.display("QMGR", qmgr.name)[0]["maxumsgs"]
    yield qmgr
    qmgr.qm.alter("QMGR", "", maxumsgs=before)


def test_6_3_10_a_crash_backs_out_persistent_messages_of_open_units(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    qmgr.send(queue, b"got", mqi.MQMD(Persistence=1))

    def work() -> None:
        qmgr.take(queue, syncpoint=True)
        qmgr.send(queue, b"put", mqi.MQMD(Persistence=1), syncpoint=True)

    qmgr.failure(work)
    got = [(g.data, g.md.BackoutCount) for g in qmgr.drain(queue)]
    assert got == [(b"got", 1)]


def test_6_1_commit_and_backout_with_nothing_pending_work(qmgr: QmgrFixture) -> None:
    qmgr.commit()
    qmgr.backout()


def test_6_2_disconnecting_commits(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    second = qmgr.other()
    qmgr.send(queue, b"1", syncpoint=True, hconn=second)
    assert mqi.MQDISC(second) == (OK, 0)
    qmgr.others.remove(second)
    assert qmgr.bodies(queue) == [b"1"]

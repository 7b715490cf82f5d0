"""A local queue in a cluster is one of the instances: CLWLUSEQ, bind options, reason codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import penstock
from penstock import mqi

INPUT, OUTPUT, BROWSE, INQUIRE = 1, 16, 8, 32
ON_OPEN, NOT_FIXED = mqi.MQOO_BIND_ON_OPEN, mqi.MQOO_BIND_NOT_FIXED
TRANSMISSION = "SYSTEM.CLUSTER.TRANSMIT.QUEUE"


@pytest.fixture
def cluster(mq: Any) -> Iterator[Any]:
    """CQ here, and at QM2; puts use any of the two."""
    mq.qm.define("QLOCAL", "CQ", cluster="C", clwluseq="ANY")
    mq.qm.define("QCLUSTER", "CQ", clusqmgr="QM2", cluster="C")
    yield mq
    taken(mq, TRANSMISSION)


def taken(mq: Any, name: str) -> list[bytes]:
    """The bodies on a queue, which is empty afterwards."""
    with mq.qm.open(name, output=False) as queue:
        found = []
        while (message := queue.get(default=None)) is not None:
            found.append(message.data)
        return found


def where(mq: Any) -> tuple[int, int]:
    """How many messages are here, and how many leave."""
    return len(taken(mq, "CQ")), len(taken(mq, TRANSMISSION))


def put1(mq: Any, name: str = "CQ") -> Any:
    """The MQPMO after a put of one message that succeeds."""
    pmo = mqi.MQPMO()
    od = mqi.MQOD(ObjectName=name)
    assert mqi.MQPUT1(mq.h, od, mqi.MQMD(), pmo, b"x") == (0, 0)
    return pmo


def test_puts_that_are_not_bound_take_turns_between_here_and_there(cluster: Any) -> None:
    hobj = cluster.open("CQ", OUTPUT | NOT_FIXED)
    for _ in range(6):
        cluster.put(hobj)
    assert where(cluster) == (3, 3)
    for _ in range(4):
        put1(cluster)
    assert where(cluster) == (2, 2)


def test_a_message_that_stays_has_no_transmission_header(cluster: Any) -> None:
    hobj = cluster.open("CQ", OUTPUT | NOT_FIXED)
    for _ in range(2):
        cluster.put(hobj, b"body")
    assert taken(cluster, "CQ") == [b"body"]
    [other] = taken(cluster, TRANSMISSION)
    assert other.startswith(b"XQH ") and other.endswith(b"body")


def test_a_handle_that_is_bound_keeps_the_instance_of_its_open(cluster: Any) -> None:
    handles = [cluster.open("CQ", OUTPUT | ON_OPEN) for _ in range(2)]
    for _ in range(3):
        cluster.put(handles[0])
    one = where(cluster)
    for _ in range(3):
        cluster.put(handles[1])
    assert {one, where(cluster)} == {(3, 0), (0, 3)}


def test_the_mqpmo_says_where_the_message_went(cluster: Any) -> None:
    seen = set()
    for _ in range(2):
        pmo = put1(cluster)
        seen.add((pmo.ResolvedQName, pmo.ResolvedQMgrName, pmo.KnownDestCount))
    assert seen == {("CQ", cluster.qm.name, 1), ("CQ", "QM2", 0)}


def test_the_mqod_says_which_instance_the_handle_is_bound_to(cluster: Any) -> None:
    seen = set()
    for _ in range(2):
        od = mqi.MQOD(ObjectName="CQ", Version=4)
        hobj, *codes = mqi.MQOPEN(cluster.h, od, OUTPUT | ON_OPEN)
        assert codes == [0, 0]
        assert mqi.MQCLOSE(cluster.h, hobj, 0) == (0, 0)
        seen.add((od.ResolvedQName, od.ResolvedQMgrName, od.KnownDestCount, od.UnknownDestCount))
    assert seen == {("CQ", cluster.qm.name, 1, 0), ("CQ", "QM2", 0, 1)}


@pytest.mark.parametrize("options", [INPUT, BROWSE, INQUIRE])
def test_an_open_that_needs_the_queue_here_puts_here(cluster: Any, options: int) -> None:
    hobj = cluster.open("CQ", OUTPUT | options | NOT_FIXED)
    for _ in range(4):
        cluster.put(hobj)
    assert where(cluster) == (4, 0)


def test_the_own_queue_managers_name_means_the_queue_here(cluster: Any) -> None:
    hobj = cluster.open("CQ", OUTPUT | NOT_FIXED, ObjectQMgrName=cluster.qm.name)
    for _ in range(4):
        cluster.put(hobj)
    assert where(cluster) == (4, 0)


def test_the_queue_managers_clwluseq_counts_for_a_queue_that_has_none(cluster: Any) -> None:
    cluster.qm.alter("QLOCAL", "CQ", clwluseq="QMGR")
    hobj = cluster.open("CQ", OUTPUT | NOT_FIXED)
    for _ in range(4):
        cluster.put(hobj)
    assert where(cluster) == (4, 0)
    cluster.qm.alter("QMGR", "", clwluseq="ANY")
    try:
        for _ in range(4):
            cluster.put(hobj)
        assert where(cluster) == (2, 2)
    finally:
        cluster.qm.alter("QMGR", "", clwluseq="LOCAL")


def test_with_local_the_queue_here_wins_unless_it_is_inhibited_or_of_lower_rank(
    cluster: Any,
) -> None:
    hobj = cluster.open("CQ", OUTPUT | NOT_FIXED)
    for change, expected in (
        ({"clwluseq": "LOCAL"}, (2, 0)),
        ({"put": "DISABLED"}, (0, 2)),
        ({"put": "ENABLED"}, (2, 0)),
    ):
        cluster.qm.alter("QLOCAL", "CQ", **change)
        for _ in range(2):
            cluster.put(hobj)
        assert where(cluster) == expected
    cluster.qm.define("QCLUSTER", "CQ", clusqmgr="QM2", cluster="C", clwlrank=1, replace=True)
    for _ in range(2):
        put1(cluster)
    assert where(cluster) == (0, 2)


def test_all_instances_inhibited_is_2268_and_none_left_2270(cluster: Any) -> None:
    hobj = cluster.open("CQ", OUTPUT | NOT_FIXED)
    cluster.put(hobj)
    cluster.qm.alter("QLOCAL", "CQ", put="DISABLED")
    cluster.qm.define("QCLUSTER", "CQ", clusqmgr="QM2", cluster="C", put="DISABLED", replace=True)
    assert cluster.put_code(hobj) == 2268
    assert cluster.open_code("CQ", OUTPUT | ON_OPEN) == 2268
    cluster.qm.alter("QLOCAL", "CQ", put="ENABLED")
    assert cluster.put_code(hobj) == 0
    assert taken(cluster, "CQ")


def test_an_alias_supplies_the_defaults_wherever_the_message_goes(cluster: Any) -> None:
    cluster.qm.define("QALIAS", "CA", target="CQ", defprty=7, defpsist=True)
    hobj = cluster.open("CA", OUTPUT | NOT_FIXED)
    for _ in range(2):
        cluster.put(hobj)
    put1(cluster, "CA"), put1(cluster, "CA")
    for name in ("CQ", TRANSMISSION):
        with cluster.qm.open(name, output=False) as queue:
            for _ in range(2):
                message = queue.get()
                assert (message.priority, message.persistent) == (7, True)


def test_a_put_here_belongs_to_the_unit_of_work(cluster: Any) -> None:
    hobj = cluster.open("CQ", OUTPUT | NOT_FIXED)
    for _ in range(2):
        cluster.put(hobj, options=mqi.MQPMO_SYNCPOINT)
    assert mqi.MQBACK(cluster.h) == (0, 0)
    assert where(cluster) == (0, 0)
    for _ in range(2):
        cluster.put(hobj, options=mqi.MQPMO_SYNCPOINT)
    assert mqi.MQCMIT(cluster.h) == (0, 0)
    assert where(cluster) == (1, 1)


def test_the_queue_here_may_be_deleted_and_made_again_under_an_open_handle(cluster: Any) -> None:
    hobj = cluster.open("CQ", OUTPUT | NOT_FIXED)
    for _ in range(2):
        cluster.put(hobj)
    assert where(cluster) == (1, 1)
    with pytest.raises(penstock.ObjectInUse):
        cluster.qm.delete("QLOCAL", "CQ")  # the handle has put here
    other = cluster.open("CQ", OUTPUT | NOT_FIXED)
    assert mqi.MQCLOSE(cluster.h, hobj, 0) == (0, 0)
    cluster.qm.delete("QLOCAL", "CQ")
    for _ in range(4):
        cluster.put(other)
    assert len(taken(cluster, TRANSMISSION)) == 4
    cluster.qm.define("QLOCAL", "CQ")


def test_mqput1_sees_that_the_queue_joined_and_left_the_cluster(cluster: Any) -> None:
    cluster.qm.alter("QLOCAL", "CQ", cluster="")
    for _ in range(4):
        put1(cluster)
    assert where(cluster) == (4, 0)
    cluster.qm.alter("QLOCAL", "CQ", cluster="C")
    for _ in range(4):
        put1(cluster)
    assert where(cluster) == (2, 2)


def test_a_full_queue_here_is_2053_and_nothing_is_left_behind(cluster: Any) -> None:
    cluster.qm.alter("QLOCAL", "CQ", maxdepth=1)
    hobj = cluster.open("CQ", OUTPUT | NOT_FIXED)
    codes = sorted(cluster.put_code(hobj) for _ in range(4))
    assert codes == [0, 0, 0, 2053]
    assert where(cluster) == (1, 2)


def test_batches_of_the_python_interface_take_turns_too(cluster: Any) -> None:
    cluster.qm.alter("QLOCAL", "CQ", defbind="NOTFIXED")
    with cluster.qm.open("CQ", input=False, browse=False) as queue:
        assert queue.put_batch([b"a", b"b", b"c", b"d"]).count == 4
    assert where(cluster) == (2, 2)

"""CAPEXPRY: section 5.7 of the reference."""

from __future__ import annotations

import struct
from typing import Any

import pytest

import penstock
from penstock import mqi
from qmgr_fixture import QmgrFixture

EXPIRY_IN_XQH = 104 + 16  # of the MQMD inside an MQXQH: its field Expiry


def left(qmgr: QmgrFixture, queue: str) -> int:
    """Expiry of the next message."""
    return int(qmgr.take(queue).md.Expiry)


def put(qmgr: QmgrFixture, where: str, expiry: int = -1, **md: Any) -> None:
    qmgr.send(where, b"x", mqi.MQMD(Expiry=expiry, **md))


@pytest.mark.parametrize("persistence", [0, 1])
@pytest.mark.parametrize(("expiry", "kept"), [(-1, 600), (601, 600), (600, 600), (30, 30)])
def test_a_put_gets_the_lesser_of_its_expiry_and_the_queues(
    qmgr: QmgrFixture, expiry: int, kept: int, persistence: int
) -> None:
    queue = qmgr.local(capexpry=600)
    put(qmgr, queue, expiry, Persistence=persistence)
    assert kept - 5 <= left(qmgr, queue) <= kept


def test_the_least_of_the_whole_path_counts(qmgr: QmgrFixture) -> None:
    queue = qmgr.local(capexpry=3000)
    low = qmgr.define("QALIAS", target=queue, capexpry=500)
    high = qmgr.define("QALIAS", target=queue, capexpry=9000)
    plain = qmgr.define("QALIAS", target=qmgr.local())
    for name, kept in ((low, 500), (high, 3000)):
        put(qmgr, name)
        assert kept - 5 <= left(qmgr, queue) <= kept
    capped = qmgr.define("QALIAS", target=qmgr.local(), capexpry=70)
    put(qmgr, capped)
    assert 60 <= left(qmgr, capped) <= 70
    put(qmgr, plain)
    assert left(qmgr, plain) == -1


def test_a_change_counts_for_later_messages_of_open_handles(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    hobj = qmgr.opened(queue, mqi.MQOO_OUTPUT)
    qmgr.send(hobj)
    qmgr.qm.alter("QLOCAL", queue, capexpry=100)
    qmgr.send(hobj)
    qmgr.qm.alter("QLOCAL", queue, capexpry="NOLIMIT")
    qmgr.send(hobj)
    first, second, third = (left(qmgr, queue) for _ in range(3))
    assert (first, third) == (-1, -1)
    assert 90 <= second <= 100


def test_the_descriptor_inside_a_transmission_header_is_capped_and_the_outer_is_not(
    qmgr: QmgrFixture,
) -> None:
    route = qmgr.local(usage="XMITQ", capexpry=800)
    far = qmgr.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=route, capexpry=300)
    for expiry, kept in ((-1, 300), (200, 200)):
        put(qmgr, far, expiry)
        got = qmgr.take(route)
        assert got.md.Expiry == -1
        assert struct.unpack_from("<i", got.data, EXPIRY_IN_XQH) == (kept,)


def test_batches_and_restarts_keep_it(qmgr: QmgrFixture) -> None:
    queue = qmgr.local(capexpry=400)
    qmgr.restart()
    with qmgr.qm.queue(queue) as handle:
        handle.put_batch([b"a", b"b"])
        handle.put_batch([b"c"], persistent=True)
        expiries = handle.get_batch(3).descriptors["expiry"]
    assert [390 <= value <= 400 for value in expiries] == [True] * 3


def test_a_dynamic_queue_has_that_of_its_model(qmgr: QmgrFixture) -> None:
    model = qmgr.model("PERMDYN", capexpry=250)
    hobj, _ = qmgr.dynamic(model, mqi.MQOO_OUTPUT | mqi.MQOO_INPUT_SHARED)
    qmgr.send(hobj)
    assert 240 <= int(qmgr.take(hobj).md.Expiry) <= 250


def test_a_delay_beyond_the_cap_is_refused(qmgr: QmgrFixture) -> None:
    queue = qmgr.local(capexpry=100)
    with qmgr.qm.queue(queue) as handle:
        handle.put(b"soon", delay=5)
        with pytest.raises(penstock.MQError) as refused:
            handle.put(b"late", delay=20)
    assert refused.value.reason == mqi.MQRC_EXPIRY_ERROR


@pytest.mark.parametrize("value", [0, -2, 1000000000, "SOON"])
def test_a_value_out_of_range_is_refused(qmgr: QmgrFixture, value: Any) -> None:
    queue = qmgr.local()
    with pytest.raises(penstock.MQError):
        qmgr.qm.alter("QLOCAL", queue, capexpry=value)


def test_a_report_inherits_what_the_cap_has_left(qmgr: QmgrFixture) -> None:
    replies = qmgr.local()
    alias = qmgr.define("QALIAS", target=qmgr.local(), capexpry=500)
    report = mqi.MQRO_COA | mqi.MQRO_PASS_DISCARD_AND_EXPIRY
    put(qmgr, alias, 9000, Report=report, ReplyToQ=replies)
    assert 490 <= left(qmgr, replies) <= 500

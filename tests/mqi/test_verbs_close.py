"""MQCLOSE: Table 74 in full, 2045 against 2055, logical deletion, the options of subscriptions."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import penstock
from penstock import mqi
from penstock.mqsc import Interpreter

NONE, DELETE, PURGE = 0, 1, 2
OUTPUT, INPUT, INQUIRE = 16, 1, 32
ALL = 1 | 8 | 16


@pytest.fixture
def model(mq: Any) -> Any:
    """TEMP and PERM are model queues; D is what they make."""
    mq.qm.define("QMODEL", "TEMP", deftype="TEMPDYN", share=True, defsopt="SHARED")
    mq.qm.define("QMODEL", "PERM", deftype="PERMDYN", share=True, defsopt="SHARED")
    return mq


def exists(mq: Any, name: str = "D") -> bool:
    return mq.qm.look_up(1, name) is not None


def made(mq: Any, model: str, options: int = ALL) -> Any:
    return mq.open(model, options, DynamicQName="D")


@pytest.mark.parametrize("options", [3, 5, 6, 9, 12, 33, 34, 16, 64, -1, 1 << 20, "0", None, True])
def test_one_and_only_one_close_option(mq: Any, options: Any) -> None:
    q = mq.open("Q")
    assert mqi.MQCLOSE(mq.h, q, options) == (2, 2046)
    assert mqi.MQCLOSE(mq.h, q, NONE) == (0, 0)


@pytest.mark.parametrize("options", [DELETE, PURGE])
def test_predefined_queues_and_other_objects_cannot_be_deleted(mq: Any, options: int) -> None:
    mq.qm.define("PROCESS", "P")
    mq.qm.define("QLOCAL", "XQ", usage="XMITQ")
    mq.qm.define("QREMOTE", "R", rname="T", rqmname="QM2", xmitq="XQ")
    handles = [
        mq.open("Q"),
        mq.open("P", INQUIRE, ObjectType=3),
        mq.open("", INQUIRE, ObjectType=5),
        mq.open("R", OUTPUT),
        mq.open("R", INQUIRE),
        mq.open("", OUTPUT, Version=2, ObjectRecs=[mqi.MQOR(ObjectName="Q")]),
    ]
    for hobj in handles:
        assert mqi.MQCLOSE(mq.h, hobj, options) == (2, 2045)
        assert hobj != -1
        assert mqi.MQCLOSE(mq.h, hobj, NONE) == (0, 0)
        assert hobj == mqi.MQHO_UNUSABLE_HOBJ
    assert exists(mq, "Q") and exists(mq, "R")


@pytest.mark.parametrize("options", [mqi.MQCO_KEEP_SUB, mqi.MQCO_REMOVE_SUB])
def test_options_of_subscriptions_are_2045(model: Any, options: int) -> None:
    for hobj in (model.open("Q"), made(model, "PERM")):
        assert mqi.MQCLOSE(model.h, hobj, options) == (2, 2045)
        assert mqi.MQCLOSE(model.h, hobj, NONE) == (0, 0)
    assert exists(model)


def test_quiesce_is_as_none(model: Any) -> None:
    assert mqi.MQCLOSE(model.h, model.open("Q"), mqi.MQCO_QUIESCE) == (0, 0)
    assert mqi.MQCLOSE(model.h, made(model, "TEMP"), mqi.MQCO_QUIESCE) == (0, 0)
    assert not exists(model)


def test_none_retains_a_permanent_dynamic_queue(model: Any) -> None:
    q = made(model, "PERM")
    model.put(q)
    assert mqi.MQCLOSE(model.h, q, NONE) == (0, 0)
    assert exists(model) and model.get(model.open("D"))[0] == b"data"


@pytest.mark.parametrize("options", [DELETE, PURGE])
@pytest.mark.parametrize("by_creator", [True, False])
@pytest.mark.parametrize("opened_for", [ALL, INQUIRE, OUTPUT, INPUT])
def test_an_empty_permanent_queue_is_deleted_through_any_handle(
    model: Any, options: int, by_creator: bool, opened_for: int
) -> None:
    q = made(model, "PERM", opened_for)
    if not by_creator:
        mqi.MQCLOSE(model.h, q, NONE)
        q = model.open("D", opened_for)
    assert mqi.MQCLOSE(model.h, q, options) == (0, 0)
    assert not exists(model)


def test_committed_messages_prevent_delete_but_not_purge(model: Any) -> None:
    q = made(model, "PERM")
    model.put(q)
    assert mqi.MQCLOSE(model.h, q, DELETE) == (2, 2055)
    assert model.get(q, mqi.MQGMO_BROWSE_FIRST)[0] == b"data"
    assert mqi.MQCLOSE(model.h, q, PURGE) == (0, 0)
    assert not exists(model)


@pytest.mark.parametrize("options", [DELETE, PURGE])
@pytest.mark.parametrize("pending", ["put", "get"])
@pytest.mark.parametrize("persistence", [0, 1])
def test_uncommitted_work_prevents_both(
    model: Any, options: int, pending: str, persistence: int
) -> None:
    q = made(model, "PERM")
    if pending == "get":
        model.put(q, Persistence=persistence)
        model.get(q, mqi.MQGMO_SYNCPOINT)
    else:
        model.put(q, options=mqi.MQPMO_SYNCPOINT, Persistence=persistence)
    assert mqi.MQCLOSE(model.h, q, options) == (2, 2055)
    assert exists(model)
    assert mqi.MQBACK(model.h) == (0, 0)
    assert mqi.MQCLOSE(model.h, q, PURGE) == (0, 0)


@pytest.mark.parametrize("options", [NONE, DELETE, PURGE])
@pytest.mark.parametrize("work", ["", "message", "put", "get"])
def test_a_temporary_queue_goes_with_its_creators_handle(
    model: Any, options: int, work: str
) -> None:
    q = made(model, "TEMP")
    if work in ("message", "get"):
        model.put(q)
    if work == "get":
        model.get(q, mqi.MQGMO_SYNCPOINT)
    if work == "put":
        model.put(q, options=mqi.MQPMO_SYNCPOINT)
    assert mqi.MQCLOSE(model.h, q, options) == (0, 0)
    assert not exists(model)
    assert mqi.MQCMIT(model.h) == (0, 0)


def test_another_handle_of_a_temporary_queue_can_only_be_closed(model: Any) -> None:
    q = made(model, "TEMP")
    model.put(q)
    other = model.open("D")
    assert mqi.MQCLOSE(model.h, other, DELETE) == (2, 2045)
    assert mqi.MQCLOSE(model.h, other, PURGE) == (2, 2045)
    assert mqi.MQCLOSE(model.h, other, NONE) == (0, 0)
    assert exists(model) and model.get(q)[0] == b"data"


@pytest.mark.parametrize("options", [NONE, DELETE, PURGE])
def test_calls_with_older_handles_are_2052_and_any_close_succeeds(model: Any, options: int) -> None:
    q = made(model, "PERM")
    old = model.open("D", ALL | INQUIRE | 64)
    assert mqi.MQCLOSE(model.h, q, DELETE) == (0, 0)
    assert model.open_code("D") == 2085
    assert model.put_code(old) == model.get_code(old) == model.get_code(old, 16) == 2052
    assert mqi.MQINQ(model.h, old, [20])[2] == mqi.MQSET(model.h, old, {10: 1})[1] == 2052
    assert mqi.MQCLOSE(model.h, old, options) == (0, 0)


def test_waiting_gets_are_cancelled_with_2052(model: Any) -> None:
    q = made(model, "TEMP")
    found: list[int] = []

    def wait() -> None:
        h = mqi.MQCONN("QM1")[0]
        hobj = mqi.MQOPEN(h, mqi.MQOD(ObjectName="D"), INPUT)[0]
        gmo = mqi.MQGMO(Options=mqi.MQGMO_WAIT, WaitInterval=30000)
        found.append(mqi.MQGET(h, hobj, mqi.MQMD(), gmo)[3])
        mqi.MQCLOSE(h, hobj, NONE)
        mqi.MQDISC(h)

    thread = threading.Thread(target=wait)
    thread.start()
    deadline = time.monotonic() + 20
    while model.qm.queue_status(*q.queue.slot)["waiters"] == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert mqi.MQCLOSE(model.h, q, NONE) == (0, 0)
    thread.join()
    assert found == [2052]


def test_the_name_can_be_used_again_at_once(model: Any) -> None:
    q = made(model, "PERM")
    old = model.open("D")
    mqi.MQCLOSE(model.h, q, DELETE)
    again = made(model, "PERM")
    model.put(again)
    assert model.get_code(old) == 2052
    assert model.get(again)[0] == b"data"
    assert mqi.MQCLOSE(model.h, again, PURGE) == (0, 0)


def test_mqdisc_ends_temporary_queues_and_retains_permanent_ones(model: Any) -> None:
    made(model, "TEMP")
    model.open("PERM", ALL, DynamicQName="P")
    assert mqi.MQDISC(model.h) == (0, 0)
    assert not exists(model) and exists(model, "P")


def test_closing_does_not_end_a_unit_of_work(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q, options=mqi.MQPMO_SYNCPOINT)
    assert mqi.MQCLOSE(mq.h, q, NONE) == (0, 0)
    assert mqi.MQCMIT(mq.h) == (0, 0)
    assert mq.get(mq.open("Q"))[0] == b"data"


@pytest.mark.parametrize("options", [NONE, DELETE, PURGE])
def test_on_zos_a_deleted_name_is_in_use_until_the_last_handle_is_closed(
    zos: Any, options: int
) -> None:
    zos.qm.define("QMODEL", "PERM", deftype="PERMDYN", share=True, defsopt="SHARED")
    q = made(zos, "PERM")
    old = zos.open("D")
    assert mqi.MQCLOSE(zos.h, q, DELETE) == (0, 0)
    assert zos.open_code("PERM", ALL, DynamicQName="D") == 2201
    assert zos.open_code("D") == 2052
    assert mqi.MQPUT1(zos.h, mqi.MQOD(ObjectName="D"), mqi.MQMD(), mqi.MQPMO(Options=4), b"") == (
        2,
        2052,
    )
    assert mqi.MQCLOSE(zos.h, old, options) == (0, 0)
    again = made(zos, "PERM")
    assert mqi.MQCLOSE(zos.h, again, DELETE) == (0, 0)


def test_on_zos_a_deleted_queue_can_be_displayed_until_the_last_handle_is_closed(zos: Any) -> None:
    zos.qm.define("QMODEL", "PERM", deftype="PERMDYN", share=True, defsopt="SHARED", descr="SEEN")
    q = made(zos, "PERM")
    old = zos.open("D")
    assert mqi.MQCLOSE(zos.h, q, DELETE) == (0, 0)
    (row,) = zos.qm.display("QLOCAL", "D")
    assert (row["descr"], row["curdepth"], row["opprocs"]) == ("SEEN", 0, 1)
    reply = Interpreter(zos.qm).execute("DISPLAY QUEUE(D) DESCR")
    assert reply.ok and "DESCR(SEEN)" in " ".join(reply.lines)
    with pytest.raises(penstock.MQError):
        zos.qm.alter("QLOCAL", "D", descr="NO")
    assert mqi.MQCLOSE(zos.h, old, DELETE) == (0, 0)
    assert zos.qm.display("QLOCAL", "D") == []


@pytest.mark.parametrize("platform", ["mq", "zos"])
def test_a_deleted_queue_is_2052_also_behind_an_inhibited_alias(
    platform: str, request: pytest.FixtureRequest
) -> None:
    at = request.getfixturevalue(platform)
    at.qm.define("QMODEL", "PERM", deftype="PERMDYN", share=True, defsopt="SHARED")
    q = made(at, "PERM")
    at.qm.define("QALIAS", "A", target="D")
    alias = at.open("A", OUTPUT)
    od = mqi.MQOD(ObjectName="A")
    assert mqi.MQPUT1(at.h, od, mqi.MQMD(), mqi.MQPMO(Options=4), b"") == (0, 0)
    at.qm.alter("QALIAS", "A", put="DISABLED")
    assert mqi.MQPUT1(at.h, od, mqi.MQMD(), mqi.MQPMO(Options=4), b"") == (2, 2051)
    assert mqi.MQCLOSE(at.h, q, PURGE) == (0, 0)
    assert mqi.MQPUT(at.h, alias, mqi.MQMD(), mqi.MQPMO(Options=4), b"") == (2, 2052)
    if platform == "zos":
        assert mqi.MQPUT1(at.h, od, mqi.MQMD(), mqi.MQPMO(Options=4), b"") == (2, 2052)

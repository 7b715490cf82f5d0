"""MQINQ and MQSET on every type of object."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import penstock
from penstock import _engine, mqi

INQUIRE, SET, OUTPUT = 32, 64, 16


def test_attributes_of_a_local_queue(mq: Any) -> None:
    mq.qm.alter("QLOCAL", "Q", descr="about", maxdepth=77, defprty=5)
    q = mq.open("Q", INQUIRE | OUTPUT)
    mq.put(q)
    values, *result = mqi.MQINQ(mq.h, q, [2016, 2013, 15, 6, 3, 17, 18, 20, 7])
    assert result == [0, 0]
    assert values == {2016: "Q", 2013: "about", 15: 77, 6: 5, 3: 1, 17: 0, 18: 1, 20: 1, 7: 1}


def test_an_alias_and_a_remote_definition_report_themselves(mq: Any) -> None:
    mq.qm.define("QALIAS", "A", target="Q", defprty=8)
    mq.qm.define("QREMOTE", "R", rname="THERE", rqmname="QM2", defprty=7)
    a, r = mq.open("A", INQUIRE), mq.open("R", INQUIRE | SET)
    assert mqi.MQINQ(mq.h, a, [2016, 20, 6, 2002])[0] == {2016: "A", 20: 3, 6: 8, 2002: "Q"}
    assert mqi.MQINQ(mq.h, r, [20, 6, 2018])[0] == {20: 6, 6: 7, 2018: "THERE"}
    assert mqi.MQSET(mq.h, r, {10: 1}) == (0, 0)
    assert mqi.MQINQ(mq.h, r, [10])[0] == {10: 1}


def test_attributes_of_other_objects(mq: Any) -> None:
    mq.qm.define("PROCESS", "P", applicid="program")
    mq.qm.define("NAMELIST", "N", names=["A", "B"])
    p = mq.open("P", INQUIRE, ObjectType=3)
    n = mq.open("N", INQUIRE, ObjectType=2)
    m = mq.open("", INQUIRE, ObjectType=5)
    assert mqi.MQINQ(mq.h, p, [2012, 2001])[0] == {2012: "P", 2001: "program"}
    assert mqi.MQINQ(mq.h, n, [19])[0] == {19: 2}
    assert mqi.MQINQ(mq.h, m, [2015, 14, 11])[0] == {2015: "QM1", 14: 9, 11: 256}
    for hobj in (p, n, m):
        assert mqi.MQSET(mq.h, hobj, {}) == (2, 2040)
        assert mqi.MQGET(mq.h, hobj, mqi.MQMD(), mqi.MQGMO())[3] == 2037
        assert mqi.MQPUT(mq.h, hobj, mqi.MQMD(), mqi.MQPMO(), b"") == (2, 2039)


def test_a_selector_for_another_type_is_a_warning(mq: Any) -> None:
    mq.qm.define("QALIAS", "A", target="Q")
    a = mq.open("A", INQUIRE)
    values, *result = mqi.MQINQ(mq.h, a, [15, 2008, 6])
    assert (values, result) == ({15: -1, 2008: "*" * 48, 6: 0}, [1, 2068])


def test_wrong_selectors(mq: Any) -> None:
    q = mq.open("Q", INQUIRE | SET)
    assert mqi.MQINQ(mq.h, q, [9999])[1:] == mqi.MQINQ(mq.h, q, ["x"])[1:] == (2, 2067)
    assert mqi.MQINQ(mq.h, q, [6] * 257)[1:] == (2, 2066)
    assert mqi.MQINQ(mq.h, q, 5)[1:] == (2, 2065)
    assert mqi.MQINQ(mq.h, q, [])[1:] == (0, 0)
    assert mqi.MQINQ(mq.h, mq.open("Q", OUTPUT), [6])[1:] == (2, 2038)
    assert mqi.MQSET(mq.h, mq.open("Q", OUTPUT), {10: 1}) == (2, 2040)
    assert mqi.MQSET(mq.h, q, {9999: 1}) == mqi.MQSET(mq.h, q, {15: 1}) == (2, 2067)
    assert mqi.MQSET(mq.h, q, 5) == (2, 2065)


def test_areas_that_are_too_small(mq: Any) -> None:
    mq.qm.alter("QLOCAL", "Q", descr="a description")
    q = mq.open("Q", INQUIRE)
    assert mqi.MQINQ(mq.h, q, [6, 15], int_attr_count=1) == ({6: 0}, 1, 2022)
    assert mqi.MQINQ(mq.h, q, [2013], char_attr_length=6) == ({2013: "a desc"}, 1, 2008)
    assert mqi.MQINQ(mq.h, q, [6, 2013], 0, 0)[1:] == (1, 2022)
    assert mqi.MQINQ(mq.h, q, [6], int_attr_count=-1)[1:] == (2, 2021)
    assert mqi.MQINQ(mq.h, q, [6], char_attr_length=-1)[1:] == (2, 2006)


@pytest.mark.parametrize(
    ("selector", "bad", "code"),
    [(9, 2, 2020), (10, -1, 2020), (24, 5, 2075), (29, 0, 2076), (26, 10, 2077), (28, 9, 2078)],
)
def test_mqset_refuses_values_and_changes_nothing(
    mq: Any, selector: int, bad: int, code: int
) -> None:
    q = mq.open("Q", SET | INQUIRE)
    good = 10 if selector != 10 else 9
    assert mqi.MQSET(mq.h, q, {good: 1, selector: bad}) == (2, code)
    assert mqi.MQINQ(mq.h, q, [good])[0] == {good: 0}


def test_mqset_takes_effect_at_once(mq: Any) -> None:
    q = mq.open("Q", SET | INQUIRE | OUTPUT | 1)
    assert mqi.MQSET(mq.h, q, {9: 1, 10: 1, 24: 1, 2023: "data", 29: 5, 26: 3, 28: 3}) == (0, 0)
    assert mq.put_code(q) == 2051
    assert mq.get_code(q) == 2016
    values = mqi.MQINQ(mq.h, q, [24, 2023, 29, 26, 28])[0]
    assert values == {24: 1, 2023: "data", 29: 5, 26: 3, 28: 3}
    assert mqi.MQSET(mq.h, q, {}) == (0, 0)


def test_mqset_on_an_alias_ends_waits_through_it(mq: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[int] = []

    def wake(qm: penstock.QueueManager, slot: int) -> None:
        woken.append(slot)
        _engine.Connection.wake_object(qm, slot)

    monkeypatch.setattr(penstock.QueueManager, "wake_object", wake)
    mq.qm.define("QALIAS", "A", target="Q")
    a, base = mq.open("A", SET | 1), mq.open("Q", 1)

    def inhibit() -> None:
        deadline = time.monotonic() + 20
        while mq.qm.queue_status(*base.queue.slot)["waiters"] == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert mqi.MQSET(mq.h, a, {9: 1}) == (0, 0)

    thread = threading.Thread(target=inhibit)
    thread.start()
    assert mq.get_code(a, mqi.MQGMO_WAIT, WaitInterval=8000) == 2016
    thread.join()
    assert woken == [base.queue.slot[0]]  # woken at once, not by the bound of the wait
    assert mq.get_code(base) == 2033

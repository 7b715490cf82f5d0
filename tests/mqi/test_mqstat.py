"""MQSTAT: asynchronous puts are counted, and the first that failed is kept."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import mqi

OUTPUT = 16
ASYNC = mqi.MQPMO_ASYNC_RESPONSE


def status(mq: Any, version: int = 1) -> Any:
    sts = mqi.MQSTS(Version=version)
    assert mqi.MQSTAT(mq.h, mqi.MQSTAT_TYPE_ASYNC_ERROR, sts) == (0, 0)
    return sts


def counts(sts: Any) -> tuple[int, int, int]:
    return sts.PutSuccessCount, sts.PutWarningCount, sts.PutFailureCount


def test_asynchronous_puts_are_counted_once_and_others_never(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q)
    mq.put(q, options=mqi.MQPMO_SYNC_RESPONSE)
    for _ in range(3):
        mq.put(q, options=ASYNC)
    assert mq.put_code(q, options=ASYNC, Priority=12) == 2049
    mq.qm.alter("QLOCAL", "Q", put="DISABLED")
    assert mq.put_code(q, options=ASYNC) == 2051
    assert counts(status(mq)) == (3, 1, 1)
    again = status(mq)
    assert counts(again) == (0, 0, 0)
    assert (again.CompCode, again.Reason, again.ObjectName) == (0, 0, "")


def test_the_first_failure_is_kept_and_goes_before_a_warning(mq: Any) -> None:
    mq.qm.define("QLOCAL", "FULL", maxdepth=0)
    mq.qm.define("QALIAS", "A", target="FULL")
    q, a = mq.open("Q"), mq.open("A", OUTPUT)
    assert mq.put_code(q, options=ASYNC, Priority=12) == 2049
    sts = status(mq)
    assert (sts.CompCode, sts.Reason, sts.ObjectName) == (1, 2049, "Q")
    assert mq.put_code(q, options=ASYNC, Priority=12) == 2049
    assert mq.put_code(a, options=ASYNC) == 2053
    mq.qm.alter("QLOCAL", "Q", put="DISABLED")
    assert mq.put_code(q, options=ASYNC) == 2051
    sts = status(mq, 2)
    assert (sts.CompCode, sts.Reason, sts.ObjectType) == (2, 2053, mqi.MQOT_Q)
    assert (sts.ObjectName, sts.ObjectQMgrName) == ("A", "QM1")
    assert (sts.ResolvedObjectName, sts.ResolvedQMgrName) == ("FULL", "QM1")
    assert (sts.ObjectString, sts.SubName, sts.OpenOptions, sts.SubOptions) == ("", "", 0, 0)
    assert counts(sts) == (0, 1, 2)


def test_mqput1_and_each_destination_of_a_list_count(mq: Any) -> None:
    mq.qm.define("QLOCAL", "FULL", maxdepth=0)
    pmo = mqi.MQPMO(Options=ASYNC)
    assert mqi.MQPUT1(mq.h, mqi.MQOD(ObjectName="Q"), mqi.MQMD(), pmo, b"") == (0, 0)
    assert mqi.MQPUT1(mq.h, mqi.MQOD(ObjectName="FULL"), mqi.MQMD(), pmo, b"") == (2, 2053)
    assert counts(status(mq)) == (1, 0, 1)
    records = [mqi.MQOR(ObjectName=name) for name in ("Q", "FULL", "Q", "NONE")]
    od = mqi.MQOD(Version=2, ObjectRecs=records)
    assert mqi.MQPUT1(mq.h, od, mqi.MQMD(), pmo, b"") == (1, 2136)
    assert counts(status(mq)) == (2, 0, 2)


def test_a_connection_has_its_own_status(mq: Any) -> None:
    cno = mqi.MQCNO(Options=mqi.MQCNO_HANDLE_SHARE_BLOCK)
    other = mqi.MQCONNX("QM1", cno)[0]
    mq.put(mq.open("Q"), options=ASYNC)
    sts = mqi.MQSTS()
    assert mqi.MQSTAT(other, 0, sts) == (0, 0)
    assert counts(sts) == (0, 0, 0)
    assert mqi.MQDISC(other) == (0, 0)
    assert counts(status(mq)) == (1, 0, 0)


def test_other_types_and_structures_are_refused_and_reset_nothing(mq: Any) -> None:
    mq.put(mq.open("Q"), options=ASYNC)
    sts = mqi.MQSTS()
    reconnections = (mqi.MQSTAT_TYPE_RECONNECTION, mqi.MQSTAT_TYPE_RECONNECTION_ERROR)
    assert {mqi.MQSTAT(mq.h, kind, sts) for kind in reconnections} == {(2, 2012)}
    wrong: tuple[Any, ...] = (3, -1, "0", None)
    assert {mqi.MQSTAT(mq.h, kind, sts) for kind in wrong} == {(2, 2430)}
    assert mqi.MQSTAT(None, 0, sts) == (2, 2018)
    assert counts(status(mq)) == (1, 0, 0)


@pytest.mark.parametrize("wrong", [None, "STS", mqi.MQGMO(), mqi.MQSTS(StrucId="XX")])
def test_what_is_no_status_structure_is_2426(mq: Any, wrong: Any) -> None:
    assert mqi.MQSTAT(mq.h, 0, wrong) == (2, 2426)

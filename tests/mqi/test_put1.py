"""MQPUT1 to names whose resolution is kept: a change of a definition counts at the next call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import mqi


@pytest.fixture
def names(mq: Any) -> Iterator[Any]:
    """With queues BASE and OTHER, and an alias A of BASE."""
    mq.qm.define("QLOCAL", "BASE", replace=True, defprty=4)
    mq.qm.define("QLOCAL", "OTHER", replace=True)
    mq.qm.define("QALIAS", "A", target="BASE", defprty=6, replace=True)
    yield mq
    for name in ("A", "BASE", "OTHER", "XMIT"):
        for found in mq.qm.display("QUEUE", name):
            kind = str(found["type"])
            mq.qm.delete(kind, name, **({"purge": True} if kind == "QLOCAL" else {}))


def put1(mq: Any, name: str, options: int = 0, data: bytes = b"x", **fields: Any) -> int:
    """The reason code."""
    od = mqi.MQOD(ObjectName=name)
    result = mqi.MQPUT1(mq.h, od, mqi.MQMD(**fields), mqi.MQPMO(Options=options), data)
    assert result[0] == (0 if result[1] == 0 else 1 if result[1] in (2049, 2104) else 2)
    return int(result[1])


def depths(mq: Any) -> tuple[int, int]:
    found = {row["name"]: row["curdepth"] for row in mq.qm.display("QLOCAL")}
    return found.get("BASE", -1), found.get("OTHER", -1)


def test_an_alias_leads_to_its_new_target_at_the_next_call(names: Any) -> None:
    assert [put1(names, "A"), put1(names, "A")] == [0, 0]
    names.qm.alter("QALIAS", "A", target="OTHER")
    assert [put1(names, "A"), put1(names, "A")] == [0, 0]
    assert depths(names) == (2, 2)
    names.qm.alter("QALIAS", "A", target="NONE")
    assert put1(names, "A") == 2082


def test_defaults_are_those_of_the_alias_at_the_time_of_the_put(names: Any) -> None:
    assert put1(names, "A") == 0
    names.qm.alter("QALIAS", "A", defprty=8)
    assert put1(names, "A") == 0
    assert put1(names, "BASE") == 0
    q = names.open("BASE")
    assert [names.get(q)[1].Priority for _ in range(3)] == [8, 6, 4]
    assert mqi.MQCLOSE(names.h, q, 0) == (0, 0)


@pytest.mark.parametrize("through", ["A", "BASE"])
def test_a_queue_that_was_deleted_and_defined_again_is_the_new_one(
    names: Any, through: str
) -> None:
    assert put1(names, through) == 0
    names.qm.delete("QLOCAL", "BASE", purge=True)
    assert put1(names, through) == (2082 if through == "A" else 2085)
    names.qm.define("QLOCAL", "BASE", maxmsgl=10)
    assert put1(names, through) == 0
    assert depths(names)[0] == 1
    assert put1(names, through, data=b"longer than ten") == 2030


def test_a_name_that_becomes_another_kind_of_queue_is_resolved_again(names: Any) -> None:
    assert put1(names, "A") == 0
    names.qm.delete("QALIAS", "A")
    assert put1(names, "A") == 2085
    names.qm.define("QMODEL", "A")
    assert put1(names, "A") == 2057
    names.qm.delete("QMODEL", "A")
    names.qm.define("QLOCAL", "XMIT", usage="XMITQ")
    names.qm.define("QREMOTE", "A", rname="THERE", rqmname="QM2", xmitq="XMIT")
    assert [put1(names, "A"), put1(names, "A")] == [0, 0]
    assert names.qm.display("QLOCAL", "XMIT")[0]["curdepth"] == 2
    names.qm.delete("QREMOTE", "A")
    names.qm.define("QALIAS", "A", target="XMIT")
    assert put1(names, "A") == 0
    names.qm.delete("QLOCAL", "XMIT", purge=True)
    names.qm.delete("QALIAS", "A")
    names.qm.define("QLOCAL", "A")
    assert put1(names, "A") == 0


@pytest.mark.parametrize("through", ["A", "BASE"])
def test_usage_put_and_depth_count_at_the_next_call(names: Any, through: str) -> None:
    assert put1(names, through) == 0
    kind = "QALIAS" if through == "A" else "QLOCAL"
    names.qm.alter(kind, through, put="DISABLED")
    assert put1(names, through) == 2051
    names.qm.alter(kind, through, put="ENABLED")
    names.qm.alter("QLOCAL", "BASE", maxdepth=1)
    assert put1(names, through) == 2053
    names.qm.alter("QLOCAL", "BASE", maxdepth=10)
    assert put1(names, through, Report=mqi.MQRO_COA, ReplyToQ="OTHER") == 0
    assert depths(names) == (2, 1)
    names.qm.clear("BASE")
    assert put1(names, through, Report=mqi.MQRO_COA, ReplyToQ="OTHER") == 0


def test_a_queue_that_becomes_a_transmission_queue_takes_no_reports(names: Any) -> None:
    asked = {"Report": mqi.MQRO_COA, "ReplyToQ": "OTHER"}
    assert put1(names, "A", **asked) == 0
    with names.qm.open("BASE") as queue:
        queue.get()
    names.qm.alter("QLOCAL", "BASE", usage="XMITQ")
    assert put1(names, "A", **asked) == 0
    assert depths(names) == (1, 1)


def test_nothing_is_open_between_two_calls(names: Any) -> None:
    for name in ("A", "BASE"):
        assert put1(names, name) == 0
    assert names.h.handles == {}
    assert names.qm.display("QLOCAL", "BASE")[0]["opprocs"] == 0
    names.qm.delete("QALIAS", "A")
    names.qm.delete("QLOCAL", "BASE", purge=True)


def test_options_are_checked_at_each_call(names: Any) -> None:
    for _ in range(2):
        assert put1(names, "BASE", mqi.MQPMO_SYNCPOINT | mqi.MQPMO_NO_SYNCPOINT) == 2046
        assert put1(names, "BASE", mqi.MQPMO_LOGICAL_ORDER) == 2046
        assert put1(names, "BASE", mqi.MQPMO_NEW_MSG_ID) == 0
        assert put1(names, "BASE", mqi.MQPMO_PASS_ALL_CONTEXT) == 2097
        assert put1(names, "BASE", mqi.MQPMO_ALTERNATE_USER_AUTHORITY) == 0
        assert put1(names, "BASE", Priority=12) == 2049
        assert put1(names, "BASE", Expiry=0) == 2013


def test_puts_in_a_unit_and_asynchronous_ones_are_as_those_of_a_handle(names: Any) -> None:
    assert put1(names, "A", mqi.MQPMO_SYNCPOINT) == 0
    assert names.h.pending() == 1
    assert mqi.MQBACK(names.h) == (0, 0)
    assert put1(names, "A", mqi.MQPMO_ASYNC_RESPONSE) == 0
    names.qm.alter("QALIAS", "A", put="DISABLED")
    assert put1(names, "A", mqi.MQPMO_ASYNC_RESPONSE) == 2051
    sts = mqi.MQSTS()
    assert mqi.MQSTAT(names.h, mqi.MQSTAT_TYPE_ASYNC_ERROR, sts) == (0, 0)
    assert (sts.PutSuccessCount, sts.PutFailureCount, sts.Reason) == (1, 1, 2051)
    assert (sts.ObjectName, sts.ResolvedObjectName) == ("A", "BASE")
    names.qm.alter("QALIAS", "A", put="ENABLED")


def test_resolved_names_are_returned_from_version_3_on(names: Any) -> None:
    for version, shown in ((1, ""), (3, "BASE"), (4, "BASE")):
        for name in ("A", "BASE"):
            od = mqi.MQOD(Version=version, ObjectName=name)
            pmo = mqi.MQPMO()
            assert mqi.MQPUT1(names.h, od, mqi.MQMD(), pmo, b"x") == (0, 0)
            assert (od.ResolvedQName, pmo.ResolvedQName) == (shown, "BASE")
            assert (pmo.KnownDestCount, pmo.UnknownDestCount) == (1, 0)


def test_more_names_than_are_kept(mq: Any) -> None:
    for number in range(300):
        mq.qm.define("QALIAS", f"MANY.{number}", target="Q", replace=True)
    for number in (*range(300), 0, 299):
        assert put1(mq, f"MANY.{number}") == 0
    assert mq.qm.display("QLOCAL", "Q")[0]["curdepth"] >= 302
    for number in range(300):
        mq.qm.delete("QALIAS", f"MANY.{number}")


def test_threads_may_use_one_name_while_it_changes(names: Any) -> None:
    found: list[int] = []

    def work() -> None:
        found.extend(put1(names, "A") for _ in range(200))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(60):
        names.qm.alter("QALIAS", "A", target=("BASE", "OTHER")[number % 2])
    for thread in threads:
        thread.join()
    assert set(found) <= {0, 2041}
    assert sum(depths(names)) == found.count(0)


@pytest.mark.parametrize("through", ["A", "BASE"])
def test_a_queue_with_triggers_gets_its_trigger_message(names: Any, through: str) -> None:
    names.qm.define("QLOCAL", "INIT", replace=True)
    names.qm.define("PROCESS", "P", applicid="program", replace=True)
    assert put1(names, through) == 0  # its resolution is kept from before
    names.qm.alter(
        "QLOCAL", "BASE", trigger=True, trigtype="EVERY", process="P", initq="INIT"
    )  # fmt: skip
    waiting = names.open("INIT", mqi.MQOO_INPUT_SHARED)
    while names.get_code(waiting) == 0:  # of the message that was there
        pass
    assert put1(names, through) == 0
    data, md = names.get(waiting)
    assert (md.Format, data[8:12]) == ("MQTRIG", b"BASE")
    assert mqi.MQCLOSE(names.h, waiting, 0) == (0, 0)

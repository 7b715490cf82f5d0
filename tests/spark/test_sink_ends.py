"""The end of a write leaves none of its units prepared, whatever its driver learnt of its tasks.

Steps are taken as in test_steps.py.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from spark_steps import TEXT, Bench, Put, batch_writer, stream_writer

import penstock
from penstock.spark.base import ledger, units
from penstock.spark.sink import ending

NAMED = {"txnAppId": "app", "txnVersion": "1"}
KINDS = pytest.mark.parametrize("given", [{}, NAMED], ids=["unnamed", "named"])


def table(*values: str) -> pa.Table:
    return pa.table({"value": list(values)})


def out(bench: Bench) -> list[bytes]:
    return [message.data for message in bench.target.browse()]


@KINDS
def test_a_commit_leaves_no_unit_of_an_attempt_that_died(
    bench: Bench, put: Put, given: dict[str, str]
) -> None:
    writer = batch_writer(bench, TEXT, queue="OUT", **given)
    put(writer, table("dead"), 8)  # Spark gives each attempt an id of its own
    told = [put(writer, table("a")), put(writer, table("b"), 1)]
    writer.commit(told)
    assert out(bench) == [b"a", b"b"] and bench.qm.recover() == []


@KINDS
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_task_that_ends_after_its_job_backs_its_units_out(
    bench: Bench, put: Put, given: dict[str, str], end: str
) -> None:
    bench.qm.alter("QMGR", maxumsgs=1)
    writer = batch_writer(bench, TEXT, queue="OUT", **given)
    told = [put(writer, table("a"))]
    getattr(writer, end)(told)
    late = put(writer, table("late", "too late"), 1)
    assert late.xids == [] and bench.qm.recover() == []
    assert out(bench) == ([b"a"] if end == "commit" else [])


def test_a_task_of_a_micro_batch_that_is_committed_backs_its_units_out(
    bench: Bench, put: Put
) -> None:
    writer = stream_writer(bench)
    writer.commit([put(writer, table("a"))], 0)
    assert put(writer, table("late"), 1).xids == []
    assert out(bench) == [b"a"] and bench.qm.recover() == []
    assert len(put(writer, table("b"), batch=1).xids) == 1  # the next one is not late


@pytest.mark.parametrize("kind", ["batch", "named batch", "stream"])
def test_what_a_late_task_left_by_its_death_is_backed_out_at_the_end_of_any_other_write(
    bench: Bench, put: Put, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer: Any = stream_writer(bench)
    if kind != "stream":
        writer = batch_writer(bench, TEXT, queue="OUT", **(NAMED if "named" in kind else {}))
    ended = [put(writer, table("a"))]
    writer.commit(ended, 0) if kind == "stream" else writer.commit(ended)
    with monkeypatch.context() as patch:
        patch.setattr(ending, "has_ended", lambda *_: False)
        put(writer, table("late"), 1)  # it is killed before it looks
    assert len(bench.qm.recover()) == 1
    other = batch_writer(bench, TEXT, queue="OUT")
    living = batch_writer(bench, TEXT, queue="OUT")
    kept = put(living, table("c"))
    other.commit([put(other, table("b"))])
    assert out(bench) == [b"a", b"b"] and len(bench.qm.recover()) == 1
    living.commit([kept])
    assert out(bench) == [b"a", b"c", b"b"] and bench.qm.recover() == []  # in the order of puts


def test_a_task_that_prepares_while_the_write_ends_is_swept(
    bench: Bench, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = batch_writer(bench, TEXT, queue="OUT")
    drop = ending.drop

    def then_prepare(book: ledger.Ledger, write: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(ending, "has_ended", lambda *_: False)  # it looked before
            put(writer, table("a"))
        drop(book, write)

    monkeypatch.setattr(ending, "drop", then_prepare)
    writer.abort([None])
    assert out(bench) == [] and bench.qm.recover() == []


def test_entries_of_batch_writes_expire_and_those_of_sinks_do_not(bench: Bench, put: Put) -> None:
    for given in ({}, NAMED):
        writer = batch_writer(bench, TEXT, queue="OUT", **given)
        writer.commit([put(writer, table("a"))])
    batch_writer(bench, TEXT, queue="OUT").abort([None])
    stream = stream_writer(bench)
    stream.commit([put(stream, table("a"))], 0)
    with bench.qm.open(ledger.QUEUE, input=False, browse=True, output=False) as queue:
        found = [message.expiry for message in queue.browse()]
    assert [expiry is None for expiry in found] == [False, True, False, True]
    assert all(expiry is None or expiry <= ending.KEPT_SECONDS for expiry in found)


def test_a_commit_whose_sweep_fails_is_reported_as_done_and_warns(
    bench: Bench, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise penstock.StorageMediumFull(2192, "no room")

    writer = batch_writer(bench, TEXT, queue="OUT")
    put(writer, table("dead"), 8)  # Spark gives each attempt an id of its own
    told = [put(writer, table("a"))]
    with monkeypatch.context() as patch:
        patch.setattr(ending, "sweep", full)
        with pytest.warns(RuntimeWarning, match=r"2192.*until the end of the next write"):
            writer.commit(told)
    assert out(bench) == [b"a"] and len(bench.qm.recover()) == 1
    batch_writer(bench, TEXT, queue="OUT").abort([])
    assert bench.qm.recover() == []


def test_an_abort_that_cannot_reach_the_queue_manager_warns_though_no_unit_is_known(
    bench: Bench,
) -> None:
    writer = batch_writer(bench, TEXT, queue="OUT")
    values = {**writer.sink.options.values, "queueManager": "GONE"}
    writer.sink.options = type(writer.sink.options)(values)
    with pytest.warns(RuntimeWarning, match="may be left prepared.*there is no queue manager GONE"):
        writer.abort([None])


def test_the_name_of_a_unit_tells_its_write() -> None:
    xid = units.task_unit("s" * 32, 2**63 - 1, 999_999, 10**12, 4094, units.new_id())
    assert units.write_of(xid) == ("s" * 32, 2**63 - 1, xid.bqual[-32:].decode())
    assert units.write_of(units.ledger_unit(units.SINK, "s.1")) is None
    assert units.write_of(units.stream_unit("s", 1, units.Part("IN", 0))) is None

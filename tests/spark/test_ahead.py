"""A micro-batch that is taken while Spark writes its log and plans, step by step and cut short.

See test_steps.py for how steps are taken without Spark.
"""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest
from spark_fixture import wait_until
from spark_steps import START, Bench, plan, rows

import penstock
from penstock.spark.base.errors import SourceError
from penstock.spark.source.background import Background
from penstock.spark.source.stream import StreamReader


def first_batch(bench: Bench, reader: StreamReader) -> dict[str, Any]:
    """The offset of a first micro-batch that Spark is done with."""
    bench.fill(9000, 9002)
    end = plan(reader, START)
    assert rows(reader, START, end) == [b"9000", b"9001"]
    return end


def units_of(bench: Bench) -> list[str]:
    return sorted(xid.bqual.decode() for xid in bench.qm.recover())


def shut(reader: StreamReader) -> threading.Event:
    """Nothing that is put background is done before this is set."""
    gate = threading.Event()
    reader._background.submit(gate.wait, 30)
    return gate


def plan_behind(reader: StreamReader, start: dict[str, Any]) -> dict[str, Any]:
    """Plans without waiting for the gate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader._background, "wait_all", lambda: None)
        return plan(reader, start)


def test_the_second_micro_batch_is_taken_before_spark_asks_for_it(bench: Bench) -> None:
    reader = bench.reader()
    start = first_batch(bench, reader)
    made = bench.fill(0, 5)
    end = plan(reader, start)
    wait_until(lambda: units_of(bench) == ["2.0.IN"])  # and the first one is committed
    assert bench.left() == []
    bench.fill(5, 7)
    assert rows(reader, start, end) == made
    reader.stop()


def test_what_was_taken_before_the_log_had_the_offset_is_planned_after_a_death(
    bench: Bench,
) -> None:
    reader = bench.reader()
    start = first_batch(bench, reader)
    made = bench.fill(0, 5)
    end = plan(reader, start)
    reader.stop()  # the driver dies before its log has the offset
    assert units_of(bench) == ["2.0.IN"] and bench.left() == []
    again = bench.reader()
    assert plan(again, start) == end
    assert rows(again, start, end) == made
    assert plan(again, end) == end and units_of(bench) == []
    again.stop()


def test_parts_that_were_taken_before_a_death_are_a_micro_batch(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.qm.alter("QMGR", maxumsgs=4)
    reader = bench.reader()
    start = first_batch(bench, reader)
    made = bench.fill(0, 4) + bench.fill(4, 7)
    prepare = penstock.QueueManager.prepare

    def not_the_second_part(self: Any, xid: Any, **given: Any) -> None:
        if xid.bqual == b"2.1.IN":
            raise KeyboardInterrupt
        prepare(self, xid, **given)

    with monkeypatch.context() as patch:
        patch.setattr(penstock.QueueManager, "prepare", not_the_second_part)
        assert plan(reader, start)["parts"] == {"IN": 2}
        reader.stop()
    assert units_of(bench) == ["2.0.IN"]
    again = bench.reader()
    end = plan(again, start)
    assert end == {**start, "unit": 2, "parts": {"IN": 1}}
    assert rows(again, start, end) == made[:4]
    after = plan(again, end)
    assert rows(again, end, after) == made[4:]
    again.stop()


def test_a_reader_that_plans_what_another_took_ahead_reads_the_same_rows(bench: Bench) -> None:
    one = bench.reader()
    start = first_batch(bench, one)
    made = bench.fill(0, 4)
    end = plan(one, start)
    wait_until(lambda: "2.0.IN" in units_of(bench))  # whoever prepares it decides its contents
    two = bench.reader()
    assert rows(two, start, end) == made == rows(one, start, end)
    assert bench.left() == []
    one.stop()
    two.stop()


def test_asking_twice_for_what_comes_next_takes_it_once(bench: Bench) -> None:
    reader = bench.reader(maxMessagesPerTrigger="3")
    start = {**START, "stream": "s" * 32}
    made = bench.fill(0, 6)
    end = plan(reader, start)
    assert plan(reader, start) == end
    assert rows(reader, start, end) == made[:3]
    assert bench.left() == made[3:]
    reader.stop()


def test_an_error_of_the_taking_is_reported_when_spark_requests_the_messages(bench: Bench) -> None:
    reader = bench.reader()
    start = first_batch(bench, reader)
    bench.fill(0, 5)
    gate = shut(reader)
    end = plan_behind(reader, start)
    bench.qm.alter("QLOCAL", "IN", get=False)
    gate.set()
    with pytest.raises(SourceError, match=r"queue IN.*2016"):
        reader.partitions(start, end)
    bench.qm.alter("QLOCAL", "IN", get=True)
    assert len(bench.left()) == 5
    reader.stop()


def test_an_error_of_the_commit_is_reported_by_the_next_call_and_nothing_is_lost(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = bench.reader()
    start = first_batch(bench, reader)
    made = bench.fill(0, 5)

    def full(*_: object) -> None:
        raise penstock.QueueManagerStopping(2162, "it is stopping")

    with monkeypatch.context() as patch:
        patch.setattr(penstock.QueueManager, "commit_prepared", full)
        end = plan(reader, start)
        assert rows(reader, start, end) == made
        with pytest.raises(SourceError, match="2162"):
            plan(reader, end)
    reader.stop()
    assert "1.0.IN" in units_of(bench) and "2.0.IN" in units_of(bench)
    again = bench.reader()
    assert plan(again, end) == end
    assert units_of(bench) == [] and bench.left() == []
    again.stop()


def test_spark_does_not_wait_for_a_commit_that_is_under_way(bench: Bench) -> None:
    reader = bench.reader()
    start = first_batch(bench, reader)
    bench.fill(0, 5)
    gate = shut(reader)
    end = plan_behind(reader, start)
    reader.commit(start)  # returns though nothing can be done
    assert units_of(bench) == ["1.0.IN"]
    gate.set()
    reader.commit(end)
    assert units_of(bench) == []
    reader.stop()


def test_progress_during_the_taking_is_that_from_before_it(bench: Bench) -> None:
    reader = bench.reader()
    start = first_batch(bench, reader)
    bench.fill(0, 5)
    gate = shut(reader)
    plan_behind(reader, start)
    told = reader.reportLatestOffset()
    assert told is not None and (told["depth"], told["inDoubt"], told["lag"]) == (5, 0, 5)
    gate.set()
    wait_until(lambda: reader._background.is_idle)
    told = reader.reportLatestOffset()
    assert told is not None and (told["depth"], told["inDoubt"], told["lag"]) == (0, 5, 5)
    reader.stop()


def test_a_reader_that_takes_ahead_is_pickled_without_that(bench: Bench) -> None:
    reader = bench.reader()
    start = first_batch(bench, reader)
    made = bench.fill(0, 5)
    end = plan(reader, start)
    parts = reader.partitions(start, end)
    copy, sent = pickle.loads(pickle.dumps((reader, parts)))
    assert [row for b in copy.read(sent[0]) for row in b["body"].to_pylist()] == made
    reader.stop()


def test_stop_waits_for_the_background_thread(bench: Bench) -> None:
    reader = bench.reader()
    start = first_batch(bench, reader)
    bench.fill(0, 5)
    plan(reader, start)
    reader.stop()
    assert units_of(bench) == ["2.0.IN"]
    assert not [thread for thread in threading.enumerate() if "penstock-background" in thread.name]


# ---- the thread ----


def test_jobs_are_done_in_their_order_and_the_first_error_is_raised_once() -> None:
    done: list[int] = []

    def job(number: int) -> int:
        done.append(number)
        if number % 2:
            raise ValueError(number)
        return number

    background = Background()
    assert background.is_idle
    jobs = [background.submit(job, number) for number in range(5)]
    assert jobs[4].result() == 4
    with pytest.raises(ValueError, match="1"):
        background.wait_all()
    assert done == [0, 1, 2, 3, 4]
    background.wait_all()
    background.submit(job, 5)
    background.close()
    assert done[-1] == 5 and background.is_idle

"""minMessages and maxTriggerDelay: a micro-batch that waits for more messages."""

from __future__ import annotations

import time

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from spark_steps import START, Bench, plan, rows

from penstock.spark.base import options as o
from penstock.spark.base.errors import OptionError


def test_a_micro_batch_waits_for_enough_messages(bench: Bench) -> None:
    reader = bench.reader(minMessages="4", maxTriggerDelay="1h")
    made = bench.fill(0, 3)
    assert plan(reader, START) == START and bench.left() == made
    made += bench.fill(3, 4)
    end = plan(reader, START)
    assert rows(reader, START, end) == made
    bench.fill(4, 6)
    assert plan(reader, end) == end
    assert reader._commits.known == 1  # the micro-batch before it does not wait
    reader.stop()


def test_it_waits_so_long_and_no_longer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    reader = bench.reader(minMessages="10", maxTriggerDelay="30s")
    assert plan(reader, START) == START
    now[0] += 100  # nothing was there to wait for
    made = bench.fill(0, 1)
    assert plan(reader, START) == START
    now[0] += 29
    assert plan(reader, START) == START
    now[0] += 1
    end = plan(reader, START)
    assert rows(reader, START, end) == made
    bench.fill(1, 2)
    assert plan(reader, end) == end  # the next one waits again
    reader.stop()


def test_once_and_available_now_do_not_wait(bench: Bench) -> None:
    made = bench.fill(0, 1)
    reader = bench.reader(minMessages="10")
    with pytest.warns(RuntimeWarning, match=r"Trigger\.Once leaves"):
        end = reader.latestOffset(START, ReadAllAvailable())
    assert rows(reader, START, end) == made
    bench.fill(1, 2)
    reader.prepareForTriggerAvailableNow()
    assert plan(reader, end)["unit"] == end["unit"] + 1
    reader.stop()


def test_what_was_prepared_before_a_death_does_not_wait(bench: Bench) -> None:
    reader = bench.reader(minMessages="2")
    bench.fill(0, 2)
    end = plan(reader, START)
    rows(reader, START, end)
    made = bench.fill(2, 4)
    plan(reader, end)
    reader._background.wait_all()
    reader.stop()
    assert bench.left() == []
    again = bench.reader(minMessages="2")
    assert rows(again, end, plan(again, end)) == made
    again.stop()


def test_what_contradicts_is_refused() -> None:
    def refusal(**given: str) -> str:
        with pytest.raises(OptionError) as caught:
            o.parse({"queueManager": "QM1", "queue": "Q", **given}, o.STREAM)
        return str(caught.value)

    assert refusal(maxTriggerDelay="5s") == (
        "option maxTriggerDelay goes with minMessages, which is missing"
    )
    assert refusal(minMessages="5", maxMessagesPerTrigger="4") == (
        "option minMessages is 5, more than maxMessagesPerTrigger, which is 4"
    )
    assert refusal(minMessages="5", maxTriggerDelay="5").endswith(
        "it takes a time such as 500ms, 30s, 15m or 1h"
    )
    assert refusal(minOffsetsPerTrigger="5").endswith("is unknown: minMessages is meant?")

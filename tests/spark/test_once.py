"""The last micro-batch of a stream is committed when its query has ended."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from spark_fixture import SparkFixture, wait_until, wait_until_alone
from spark_steps import START, Bench, plan, rows

import penstock.spark
from penstock.spark.base import options
from penstock.spark.base.schema import MESSAGE, struct_type
from penstock.spark.datasource import stream_reader
from penstock.spark.source import abandoned
from penstock.spark.source.last_batch import LastBatch
from penstock.spark.source.stream import StreamReader


def source(report: Any, end: Any) -> Any:
    return SimpleNamespace(latestOffset=report, endOffset=end)


def progress(*sources: Any, run: str = "run") -> Any:
    return SimpleNamespace(progress=SimpleNamespace(sources=sources, runId=run))


def of_reader(reader: StreamReader, end: dict[str, Any]) -> Any:
    """A source in the progress of a query."""
    return source(json.dumps(reader.reportLatestOffset()), json.dumps(end))


def ended(run: str = "run") -> Any:
    return SimpleNamespace(runId=run)


def taken(bench: Bench, reader: StreamReader) -> dict[str, Any]:
    bench.fill(0, 3)
    end = plan(reader, START)
    rows(reader, START, end)
    return end


def test_a_query_that_has_ended_has_its_last_micro_batch_committed_and_no_other(
    bench: Bench,
) -> None:
    listener = LastBatch(stream_reader)
    listener.onQueryStarted(ended())
    reader = bench.reader(maxMessagesPerTrigger="2")
    first = taken(bench, reader)
    others = source(None, "17"), source("no object", json.dumps({"stream": "x"}))
    listener.onQueryProgress(progress(*others, of_reader(reader, first)))
    second = plan(reader, first)
    rows(reader, first, second)  # fails, or is not reported any more
    reader.stop()
    assert len(bench.qm.recover()) == 1  # the first one was committed when this was asked for
    listener.onQueryIdle(ended())
    listener.onQueryTerminated(ended("another"))
    listener.onQueryTerminated(ended())
    assert [xid.bqual for xid in bench.qm.recover()] == [b"2.0.IN"]
    again = bench.reader()
    listener.onQueryProgress(progress(of_reader(again, second)))
    again.stop()
    listener.onQueryTerminated(ended("another"))
    assert [xid.bqual for xid in bench.qm.recover()] == [b"2.0.IN"]
    listener.onQueryTerminated(ended())
    assert bench.qm.recover() == [] and bench.left() == []
    listener.onQueryTerminated(ended())  # nothing is known of it any more


def test_a_stream_without_eager_commit_is_left_alone(bench: Bench) -> None:
    listener = LastBatch(stream_reader)
    reader = bench.reader(eagerCommit="false")
    end = taken(bench, reader)
    listener.onQueryProgress(progress(of_reader(reader, end)))
    reader.stop()
    listener.onQueryTerminated(ended())
    assert len(bench.qm.recover()) == 1


def test_a_queue_manager_that_has_gone_is_a_warning(bench: Bench) -> None:
    listener = LastBatch(stream_reader)
    report = {"commitAtEnd": {**bench.base, "queueManager": "GONE", "queue": "IN"}}
    end = {"queue": "IN", "stream": "s", "unit": 7, "parts": {"IN": 1}}
    listener.onQueryProgress(progress(source(json.dumps(report), json.dumps(end))))
    with pytest.warns(RuntimeWarning, match="stays prepared until it starts again: .* GONE"):
        listener.onQueryTerminated(ended())


def test_a_queue_manager_that_goes_while_the_listener_commits_is_a_warning(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = LastBatch(stream_reader)
    reader = bench.reader()
    end = taken(bench, reader)
    listener.onQueryProgress(progress(of_reader(reader, end)))
    reader.stop()
    monkeypatch.setattr(abandoned, "mark", lambda path, stream: os.open(path / "gone", os.O_RDONLY))
    with pytest.warns(RuntimeWarning, match=r"stays prepared .* No such file .*gone"):
        listener.onQueryTerminated(ended())
    monkeypatch.undo()
    assert len(bench.qm.recover()) == 1


def test_once_warns_where_no_listener_commits_it(bench: Bench) -> None:
    given = options.parse({**bench.base, "queue": "IN"}, options.STREAM)
    for has_listener in (False, True):
        reader = StreamReader(given, struct_type(MESSAGE), has_listener)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            reader.latestOffset(START, reader.getDefaultReadLimit())
            assert told == []
            reader.latestOffset(START, ReadAllAvailable())
        reader.stop()
        assert ["use Trigger.AvailableNow" in str(one.message) for one in told] == (
            [] if has_listener else [True]
        )


def test_trigger_once_leaves_nothing_prepared_in_a_registered_session(
    spark_qm: SparkFixture, registered: None, tmp_path: Path
) -> None:
    penstock.spark.register(spark_qm.spark)
    spark_qm.qm.queue("OUT").close()
    for checkpoint in ("one", "one", "two"):
        spark_qm.put("IN", b"1", b"2", b"3")
        spark_qm.run(tmp_path / checkpoint, "IN", "OUT", trigger={"once": True})
        wait_until(lambda: spark_qm.qm.recover() == [])
    assert spark_qm.bodies("OUT") == [b"1", b"2", b"3"] * 3 and spark_qm.bodies("IN") == []
    wait_until_alone(spark_qm.qm)

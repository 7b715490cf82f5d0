"""``relay=true``: rows go through the driver, and tasks need no queue manager.

A task on another host is one for which connecting fails.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from journal_query import Query, linear
from spark_fixture import AVAILABLE_NOW, SparkFixture
from spark_steps import START, TEXT, Bench, Task, plan

import penstock
from penstock.spark.base import connection, options, relayed
from penstock.spark.base.errors import OptionError, SchemaError, SourceError
from penstock.spark.base.schema import MESSAGE, struct_type
from penstock.spark.datasource import PenstockDataSource
from penstock.spark.relay import rows as relay_rows

Elsewhere = Callable[[Callable[[], Any]], Any]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    """Runs the work of a task where there is no queue manager."""

    def refuse(*_: object, **__: object) -> None:
        raise SourceError("there is no queue manager here")

    def run(work: Callable[[], Any]) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(penstock, "connect", refuse)
            patch.setattr(connection, "connect", refuse)
            return work()

    return run


def source(bench: Bench, **given: str) -> PenstockDataSource:
    return PenstockDataSource({**bench.base, "relay": "true", **given})


def taken(elsewhere: Elsewhere, reader: Any, parts: Any) -> list[bytes]:
    """The bodies that the tasks have."""
    task, sent = pickle.loads(pickle.dumps(reader)), pickle.loads(pickle.dumps(list(parts)))

    def read() -> list[bytes]:
        batches = [batch for part in sent for batch in task.read(part)]
        return [body for batch in batches for body in batch.column("body").to_pylist()]

    found: list[bytes] = elsewhere(read)
    return found


# ---- reads ----


def test_a_batch_read_has_all_rows_in_tasks_without_a_queue_manager(
    bench: Bench, elsewhere: Elsewhere
) -> None:
    made = bench.fill(0, 5000)
    reader = source(bench, queue="IN", minPartitions="4").reader(struct_type(MESSAGE))
    parts = reader.partitions()
    assert len(parts) == 4
    assert taken(elsewhere, reader, parts) == made == bench.left()


def test_a_batch_read_of_too_much_is_refused_and_says_how_else(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_rows, "MOST_BYTES", 1 << 20)
    bench.fill(0, 5000)
    reader = source(bench, queue="IN").reader(struct_type(MESSAGE))
    with pytest.raises(SourceError, match="more than 1 MiB of rows; choose fewer"):
        reader.partitions()


def test_a_stream_takes_each_message_once_in_small_micro_batches(
    bench: Bench, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relayed, "_MOST_MESSAGES", 40)
    made = bench.fill(0, 100)
    reader: Any = source(bench, queue="IN").streamReader(struct_type(MESSAGE))
    start, found = START, []
    for _ in range(3):
        end = plan(reader, start)
        rows = taken(elsewhere, reader, reader.partitions(start, end))
        assert rows == taken(elsewhere, reader, reader.partitions(start, end))  # planned again
        assert len(rows) <= 40
        found += rows
        reader.commit(end)
        start = end
    assert found == made and bench.left() == [] and plan(reader, start) == start
    reader.stop()
    assert bench.qm.recover() == []


def test_long_messages_make_small_micro_batches_too(
    bench: Bench, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relayed, "MOST_BYTES", 100_000)
    bench.source.put_batch([b"x" * 30_000] * 10, persistent=True)
    reader: Any = source(bench, queue="IN").streamReader(struct_type(MESSAGE))
    end = plan(reader, START)
    assert 3 <= len(taken(elsewhere, reader, reader.partitions(START, end))) <= 4
    reader.stop()


def test_trigger_once_is_refused_before_anything_is_taken(bench: Bench) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    bench.fill(0, 3)
    reader: Any = source(bench, queue="IN").streamReader(struct_type(MESSAGE))
    with pytest.raises(SourceError, match="availableNow=True"):
        reader.latestOffset(START, ReadAllAvailable())
    reader.stop()
    assert len(bench.left()) == 3 and bench.qm.recover() == []


def test_the_journal_is_read_by_tasks_without_its_files(home: Path, elsewhere: Elsewhere) -> None:
    with linear(home) as qm:
        with qm.queue("Q") as queue:
            queue.put_batch([b"%d" % n for n in range(50)])
        query = Query(home, relay="true", startingOffsets="earliest", events="PUT")
        start = query.begin()
        reader = query.reader
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        parts = reader.partitions(start, end)
        assert taken(elsewhere, reader, parts) == [b"%d" % n for n in range(50)]
        query.die()


# ---- sinks ----


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch, elsewhere: Elsewhere) -> Iterator[Callable[..., Any]]:
    """Runs a task of a sink elsewhere; what Spark carries to the driver."""

    def run(writer: Any, table: pa.Table, partition: int = 0, batch: int = 0) -> Any:
        context = Task("query-1", batch, partition)
        monkeypatch.setattr(pyspark.TaskContext, "get", lambda: context)
        work = pickle.loads(pickle.dumps(writer))
        told = elsewhere(lambda: work.write(iter(table.to_batches())))
        return pickle.loads(pickle.dumps(told))

    yield run


def put(bench: Bench) -> list[bytes]:
    return [message.data for message in bench.target.browse()]


def test_a_batch_sink_puts_all_or_nothing(bench: Bench, task: Callable[..., Any]) -> None:
    writer = source(bench, queue="OUT").writer(struct_type(TEXT), False)
    told = [
        task(writer, pa.table({"value": ["a", "b"]})),
        task(writer, pa.table({"value": ["c"]}), 1),
        task(writer, pa.table({"value": pa.array([], pa.string())}), 2),
    ]
    assert bench.qm.recover() == []  # a task puts nothing
    writer.commit(told)
    assert put(bench) == [b"a", b"b", b"c"] and bench.qm.recover() == []
    bad = source(bench, queue="OUT").writer(struct_type(TEXT), False)
    told = [task(bad, pa.table({"value": ["d"]})), task(bad, pa.table({"value": [None]}), 1)]
    with pytest.raises(SchemaError, match="the body of a row is null"):
        bad.commit(told)
    bad.abort(told)
    assert put(bench) == [b"a", b"b", b"c"] and bench.qm.recover() == []


def test_a_micro_batch_that_is_written_again_is_put_once(
    bench: Bench, task: Callable[..., Any]
) -> None:
    for _ in range(2):
        writer: Any = source(bench, queue="OUT").streamWriter(struct_type(TEXT), False)
        told = [task(writer, pa.table({"value": ["a"]}), batch=3)]
        writer.commit(told, 3)
    assert put(bench) == [b"a"] and bench.qm.recover() == []
    bad: Any = source(bench, queue="OUT").streamWriter(struct_type(TEXT), False)
    told = [task(bad, pa.table({"value": ["b"]}), batch=4),
            task(bad, pa.table({"value": [None]}), 1, batch=4)]  # fmt: skip
    with pytest.raises(SchemaError):
        bad.commit(told, 4)
    bad.abort(told, 4)
    assert put(bench) == [b"a"] and bench.qm.recover() == []


def test_a_task_with_too_many_rows_fails_before_they_are_carried(
    bench: Bench, task: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_rows, "MOST_BYTES", 1000)
    writer = source(bench, queue="OUT").writer(struct_type(TEXT), False)
    with pytest.raises(SourceError, match=r"a task has more than 0 MiB.*repartition"):
        task(writer, pa.table({"value": ["x" * 1001]}))


# ---- Spark itself, and options ----


def test_spark_carries_the_rows_of_all_four_uses(spark_qm: SparkFixture, tmp_path: Path) -> None:
    qm = spark_qm.qm
    for name in ("IN", "OUT", "COPY"):
        qm.define("QLOCAL", name, defpsist=True)
    given = {"queueManager": "QM1", "home": str(spark_qm.home), "relay": "true"}
    rows = spark_qm.spark.createDataFrame([(f"{n:04}",) for n in range(2000)], "value string")
    rows.write.format("penstock").options(**given).mode("append").save("IN")
    read = spark_qm.spark.read.format("penstock").options(**given).load("IN")
    assert read.count() == 2000
    query = (
        spark_qm.spark.readStream.format("penstock").options(**given)
        .schema("body binary").load("IN").selectExpr("body AS value")
        .writeStream.format("penstock").options(**given, queue="OUT")
        .option("checkpointLocation", str(tmp_path / "cp")).trigger(**AVAILABLE_NOW).start()
    )  # fmt: skip
    query.awaitTermination(180)
    assert query.exception() is None
    assert sorted(spark_qm.bodies("OUT")) == [b"%04d" % n for n in range(2000)]
    assert spark_qm.bodies("IN") == [] and qm.recover() == []


def test_relay_and_endpoint_contradict_each_other() -> None:
    given = {"queueManager": "QM1", "queue": "Q", "relay": "true", "endpoint": "grpc://h:1"}
    for use in (options.READ, options.STREAM, options.WRITE, options.SINK):
        with pytest.raises(OptionError, match="options relay and endpoint"):
            options.parse(given, use)

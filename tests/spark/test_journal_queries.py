"""Queries over the journal in a session of Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from journal_query import linear
from spark_fixture import AVAILABLE_NOW, SparkFixture, failing, wait_until, wait_until_alone

import penstock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def linear_qm(spark: SparkSession, home: Path) -> Iterator[SparkFixture]:
    """QM1 with linear logging, and the session."""
    with linear(home) as qm:
        yield SparkFixture(spark, qm, home)
        wait_until_alone(qm)


def start(fixture: SparkFixture, folder: Path, trigger: dict[str, Any], **options: Any) -> Any:
    frame = fixture.set(fixture.spark.readStream, mode="journal", **options).load()
    writer = frame.select("event", "queue", "identity", "body", "commit_lsn").writeStream
    writer = writer.format("parquet").option("path", str(folder / "table"))
    return writer.option("checkpointLocation", str(folder / "ck")).trigger(**trigger).start()


def rows(fixture: SparkFixture, folder: Path) -> list[tuple[str, str, bytes | None]]:
    frame = fixture.spark.read.parquet(str(folder / "table")).orderBy("commit_lsn", "identity")
    return [(row.event, row.queue, row.body and bytes(row.body)) for row in frame.collect()]


def test_a_query_over_the_journal_goes_on_from_its_checkpoint(
    linear_qm: SparkFixture, tmp_path: Path
) -> None:
    options = {"startingOffsets": "earliest", "maxBytesPerTrigger": "500", "queuePattern": "O*"}
    linear_qm.put("Q", b"another queue")
    linear_qm.put("ORDERS", *[b"%d" % n for n in range(10)])
    query = start(linear_qm, tmp_path, AVAILABLE_NOW, **options)
    query.awaitTermination()
    assert [one["numInputRows"] for one in query.recentProgress] == [7, 3]
    linear_qm.put("ORDERS", b"10", persistent=False)
    with linear_qm.qm.queue("ORDERS") as q:
        q.get()
    query = start(linear_qm, tmp_path, AVAILABLE_NOW, **options)
    query.awaitTermination()
    assert rows(linear_qm, tmp_path) == [
        *[("PUT", "ORDERS", b"%d" % n) for n in range(10)], ("GET", "ORDERS", None),
    ]  # fmt: skip
    progress = query.lastProgress["sources"][0]
    assert json.loads(progress["latestOffset"])["behind"] >= 0


def test_a_running_query_sees_each_commit_and_ends_with_a_sentence(
    linear_qm: SparkFixture, tmp_path: Path
) -> None:
    query = start(linear_qm, tmp_path, {"processingTime": "0 seconds"})
    try:
        query.processAllAvailable()
        for n in range(3):
            linear_qm.put("Q", b"%d" % n)
            query.processAllAvailable()
        assert [body for _, _, body in rows(linear_qm, tmp_path)] == [b"0", b"1", b"2"]
        assert len(linear_qm.qm.process_list()) == 2  # the stream's process
    finally:
        query.stop()
    wait_until(lambda: linear_qm.qm.status().attached == 1)


def test_circular_logging_fails_a_query_with_the_sentence(
    linear_qm: SparkFixture, tmp_path: Path
) -> None:
    penstock.create("QM2", linear_qm.home)
    query = start(linear_qm, tmp_path, AVAILABLE_NOW, queueManager="QM2")
    assert "queue manager QM2 has circular logging" in failing(query.awaitTermination)

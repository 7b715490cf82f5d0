"""mode=journal: records of the journal as a table."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from spark_fixture import SparkFixture, column, failing

import penstock
from penstock.spark.base import options as o
from penstock.spark.base.errors import OptionError, SourceError
from penstock.spark.base.schema import struct_type
from penstock.spark.source import journal

KIB = 1024


def segments(spark_qm: SparkFixture) -> list[Path]:
    return sorted((spark_qm.qm.path / "journal").glob("0*.psj"))


def fill(spark_qm: SparkFixture, queue: str, count: int = 40) -> None:
    """Bodies of 100 KiB, so that they fill several segments of 1 MiB."""
    spark_qm.put(queue, *[b"%04d" % n + b"x" * 100 * KIB for n in range(count)])


def reader(spark_qm: SparkFixture, schema: str = "", **given: str) -> journal.JournalReader:
    base = {"queueManager": "QM1", "home": str(spark_qm.home), "mode": "journal", **given}
    columns = journal.columns()
    names = schema.split(", ") if schema else list(columns)
    wanted = struct_type({name: columns[name] for name in names})
    return journal.JournalReader(o.parse(base, o.READ), wanted)


def table(spark_qm: SparkFixture, schema: str = "", **given: str) -> list[dict[str, Any]]:
    """The partitions that Spark would get."""
    made = reader(spark_qm, schema, **given)
    batches = [batch for part in made.partitions() for batch in made.read(part)]
    return [row for batch in batches for row in batch.to_pylist()]


def values(spark_qm: SparkFixture, name: str, **given: str) -> list[Any]:
    return [row[name] for row in table(spark_qm, name, **given)]


def test_puts_gets_and_commits_are_rows_in_the_order_of_the_journal(spark_qm: SparkFixture) -> None:
    with spark_qm.qm.queue("Q") as q:
        q.put(b"one", priority=3, expiry=60)
        with spark_qm.qm.transaction():
            q.put(b"two")
            q.put(b"three")
        q.get()
        q.put(b"lost", persistent=False)
    frame = spark_qm.reader(mode="journal").load("Q")
    rows = frame.collect()
    assert [(row.event, row.body and bytes(row.body)) for row in rows] == [
        ("PUT", b"one"), ("PUT", b"two"), ("PUT", b"three"), ("GET", None),
    ]  # fmt: skip
    assert {row.queue for row in rows} == {"Q"}
    assert rows[0].priority == 3 and rows[0].commits and 59 < rows[0].expiry <= 60
    assert rows[1].expiry is None and not rows[1].commits
    assert [row.lsn for row in rows] == sorted(row.lsn for row in rows)
    assert values(spark_qm, "unit_id", events="commit") == [rows[1].unit_id]


def test_a_segment_is_a_partition_and_bodies_are_whole_across_segments(
    spark_qm: SparkFixture,
) -> None:
    fill(spark_qm, "Q")
    frame = spark_qm.reader(mode="journal", events="put").schema("body binary, segment bigint")
    made = frame.load("Q")
    assert made.rdd.getNumPartitions() == len(segments(spark_qm)) >= 4
    bodies = column(made, "body")
    assert [body[:4] for body in bodies] == [b"%04d" % n for n in range(40)]
    assert {len(body) for body in bodies} == {100 * KIB + 4}


def test_lsns_and_times_choose_segments_and_rows(spark_qm: SparkFixture) -> None:
    fill(spark_qm, "Q", 20)
    moment = datetime.datetime.now(datetime.timezone.utc)
    fill(spark_qm, "Q", 20)
    whole = values(spark_qm, "lsn", events="put", queue="Q")
    some = {"startingLsn": str(whole[25]), "endingLsn": str(whole[30])}
    assert values(spark_qm, "lsn", events="PUT", queue="Q", **some) == whole[25:30]
    assert len(reader(spark_qm, **some).partitions()) < len(segments(spark_qm))
    later = {"events": "put", "queue": "Q", "startingTime": moment.isoformat()}
    assert values(spark_qm, "lsn", **later) == whole[20:]
    sooner = {"events": "put", "queue": "Q", "endingTime": moment.isoformat()}
    assert values(spark_qm, "lsn", **sooner) == whole[:20]


def test_durable_records_are_read_from_the_segment_that_is_being_written(
    spark_qm: SparkFixture,
) -> None:
    with spark_qm.qm.queue("Q") as q:
        for number in range(5):
            q.put(b"%d" % number)
            assert len(values(spark_qm, "lsn", queue="Q")) == number + 1


def test_a_stopped_queue_manager_is_read_and_not_started(spark_qm: SparkFixture) -> None:
    with penstock.connect("QM3", spark_qm.home, create=True) as qm, qm.queue("Q") as q:
        q.put(b"kept")
        path = qm.path
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*")}
    assert values(spark_qm, "body", queueManager="QM3", queue="Q") == [b"kept"]
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*")} == before
    penstock.delete("QM3", spark_qm.home)


def damage(spark_qm: SparkFixture) -> None:
    """Spoils a byte in the middle of the second segment."""
    path = segments(spark_qm)[1]
    with path.open("r+b") as file:
        file.seek(512 * KIB)
        byte = file.read(1)
        file.seek(512 * KIB)
        file.write(bytes([byte[0] ^ 255]))


def test_damage_is_refused_with_file_and_offset_or_skipped_and_counted(
    spark_qm: SparkFixture,
) -> None:
    fill(spark_qm, "Q")
    damage(spark_qm)
    with pytest.raises(SourceError) as caught:
        table(spark_qm, "lsn", verify="true")
    name = segments(spark_qm)[1].name
    assert str(caught.value).startswith(f"journal of QM1: journal/{name} at offset ")
    rows = table(spark_qm, "event, segment, body_length", verify="true", onDamage="skip", queue="Q")
    counted = [row for row in rows if row["event"] == "DAMAGED"]
    assert len(counted) == 1 and counted[0]["body_length"] > 0
    assert counted[0]["segment"] == int(segments(spark_qm)[1].stem)
    puts = [row for row in rows if row["event"] == "PUT"]
    assert 30 < len(puts) < 40
    assert len(values(spark_qm, "body", onDamage="skip", queue="Q")) == len(puts)


def test_a_segment_that_is_gone_is_data_loss_or_counted(spark_qm: SparkFixture) -> None:
    fill(spark_qm, "Q")
    for fail in ("true", "false"):
        made = reader(spark_qm, failOnDataLoss=fail)
        parts = made.partitions()
        second = parts[1]
        assert isinstance(second, journal.Segment)
        path = spark_qm.qm.path / second.segment.file
        path.rename(path.with_suffix(".away"))
        try:
            rows = [row for batch in made.read(second) for row in batch.to_pylist()]
            assert fail == "false" and [row["event"] for row in rows] == ["LOST"]
            assert rows[0]["segment"] == second.segment.number
        except Exception as error:
            assert fail == "true" and "is not there any more" in str(error)
        finally:
            path.with_suffix(".away").rename(path)


def test_wrong_events_and_times_are_refused(spark_qm: SparkFixture) -> None:
    spark_qm.put("Q", b"1")
    with pytest.raises(OptionError, match="option events names POT; there are PUT, GET"):
        reader(spark_qm, events="put,pot")
    with pytest.raises(OptionError) as caught:
        reader(spark_qm, startingTime="soon")
    assert str(caught.value) == (
        "option startingTime is 'soon'; it takes a time such as 2026-01-31T23:59:00+01:00"
    )
    with pytest.raises(SourceError, match="there is no queue manager QM9 in"):
        reader(spark_qm, queueManager="QM9").partitions()
    assert "column prio is unknown" in failing(
        spark_qm.reader(mode="journal").schema("prio int").load("Q").collect
    )


def test_an_interval_without_segments_has_no_rows(spark_qm: SparkFixture) -> None:
    fill(spark_qm, "Q", 1)
    late = spark_qm.reader(mode="journal", startingTime="2100-01-01T00:00:00Z").load("Q")
    assert late.collect() == []

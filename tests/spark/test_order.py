"""order=arrival: rows, and what a micro-batch takes, in the order in which messages were put."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spark_fixture import SparkFixture, column
from spark_steps import START, Bench, plan

from penstock.spark.base import options
from penstock.spark.base.schema import MESSAGE, struct_type
from penstock.spark.source.arrival import cut, lowest, runs
from penstock.spark.source.browse import BrowseReader

NONE = 1 << 62


def mixed(bench: Bench, count: int, seed: int = 1, **fields: Any) -> list[bytes]:
    """Puts messages of random priorities and lengths; their bodies in the order of the puts."""
    draw = random.Random(seed)
    bodies = [b"%06d" % n + b"x" * draw.randrange(50) for n in range(count)]
    bench.source.put_batch(
        bodies, priority=[draw.randrange(10) for _ in bodies], persistent=True, **fields
    )
    return bodies


def partitions_of(reader: Any, *ends: Any) -> list[list[bytes]]:
    return [
        [body for rows in reader.read(part) for body in rows.column("body").to_pylist()]
        for part in reader.partitions(*ends)
    ]


def joined(parts: list[list[bytes]]) -> list[bytes]:
    return [body for part in parts for body in part]


def browsed(bench: Bench, **given: str) -> list[list[bytes]]:
    read = options.parse({**bench.base, "queue": "IN", **given}, options.READ)
    return partitions_of(BrowseReader(read, struct_type(MESSAGE)))


@pytest.mark.parametrize("parts", [1, 3, 40])
@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_a_batch_read_by_arrival_has_the_rows_in_the_order_of_their_puts(
    bench: Bench, parts: int, rows: int
) -> None:
    made = mixed(bench, 500)
    found = browsed(bench, order="arrival", minPartitions=str(parts), batchRows=str(rows))
    assert [body for part in found for body in part] == made
    assert len(found) <= parts and (parts == 1 or max(map(len, found)) < 2 * 500 // min(parts, 20))
    by_priority = [body for part in browsed(bench) for body in part]
    assert by_priority != made and sorted(by_priority) == made


def test_an_empty_queue_is_an_empty_table_by_arrival(bench: Bench) -> None:
    assert joined(browsed(bench, order="arrival", minPartitions="4")) == []
    mixed(bench, 3)
    while bench.left():
        bench.source.get()
    assert joined(browsed(bench, order="arrival")) == []


@pytest.mark.parametrize(
    "limit",
    [{}, {"maxMessagesPerTrigger": "70"}, {"maxBytesPerTrigger": "2000"},
     {"maxMessagesPerTrigger": "70", "maxBytesPerTrigger": "2000"}],
    ids=["all", "messages", "bytes", "both"],
)  # fmt: skip
@pytest.mark.parametrize("unit", [10_000, 33])
def test_a_stream_by_arrival_takes_the_oldest_messages_in_the_order_of_their_puts(
    bench: Bench, limit: dict[str, str], unit: int
) -> None:
    bench.qm.alter("QMGR", maxumsgs=unit)
    made = mixed(bench, 400)
    reader = bench.reader(order="arrival", minPartitions="4", batchRows="16", **limit)
    start, found = START, []
    while (end := plan(reader, start)) != start:
        parts = partitions_of(reader, start, end)
        taken = [body for part in parts for body in part]
        assert taken == made[len(found) : len(found) + len(taken)] and taken
        assert len(taken) <= int(limit.get("maxMessagesPerTrigger", 400))
        size = sum(map(len, taken[:-1]))
        assert size < int(limit.get("maxBytesPerTrigger", NONE))
        assert partitions_of(reader, start, end) == parts  # planned again: the same rows
        found += taken
        start = end
    assert found == made and bench.qm.recover() == []
    reader.stop()


def test_messages_that_come_later_are_later_whatever_their_priority(bench: Bench) -> None:
    old = bench.fill(0, 20, priority=1)
    reader = bench.reader(order="arrival", maxMessagesPerTrigger="15")
    first = plan(reader, START)
    assert joined(partitions_of(reader, START, first)) == old[:15]
    new = bench.fill(20, 40, priority=9)
    second = plan(reader, first)
    assert joined(partitions_of(reader, first, second)) == old[15:] + new[:10]
    reader.stop()


def test_a_stream_by_arrival_leaves_messages_that_are_not_persistent_if_it_shall(
    bench: Bench,
) -> None:
    made = bench.fill(0, 6, priority=3)
    bench.source.put_batch([b"np"] * 4, persistent=False, priority=9)
    made += bench.fill(6, 9, priority=1)
    reader = bench.reader(order="arrival", nonPersistent="exclude", maxMessagesPerTrigger="8")
    first = plan(reader, START)
    assert joined(partitions_of(reader, START, first)) == made[:8]
    reader.stop()


@pytest.mark.parametrize("seed", range(5))
def test_the_lowest_numbers_are_those_of_a_sort_of_all(bench: Bench, seed: int) -> None:
    draw = random.Random(seed)
    mixed(bench, 300, seed)
    found = sorted((m.number, len(m.data)) for m in bench.source.browse())
    for _ in range(20):
        most, size = draw.choice([1, 7, 299, 300, 400, NONE]), draw.choice([1, 500, 9000, NONE])
        up_to = draw.choice([None, found[100][0], found[-1][0]])
        expected, total = None, 0
        for number, length in found[:most]:
            if total >= size or (up_to is not None and number > up_to):
                break
            expected, total = number, total + length
        with bench.qm.open("IN", browse=True, output=False, input=False) as queue:
            assert lowest(queue, most, size, False, up_to) == expected, (most, size, up_to)


@pytest.mark.parametrize("seed", range(20))
def test_runs_are_cut_at_the_same_numbers(seed: int) -> None:
    draw = random.Random(seed)
    numbers = draw.sample(range(1, 1000), draw.randrange(1, 200))
    array = np.array(numbers, np.uint64)
    units = {"a": array[:50], "b": array[50:]}
    found = [run for name in units for run in runs(name, units[name])]  # type: ignore[arg-type]
    rows = draw.choice([1, 10, 500])
    last = 0
    seen: list[int] = []
    for pieces in cut(found, rows):
        part = [n for unit, first, end in pieces for n in units[str(unit)][first:end]]
        assert 0 < len(part) <= rows and min(part) > last
        last = int(max(part))
        seen += map(int, part)
    assert sorted(seen) == sorted(numbers)


# ---- in Spark ----


@pytest.mark.timeout(900)  # several queries
def test_old_rows_of_low_priority_are_dropped_behind_a_watermark_but_by_arrival(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    """2,000 old rows of priority 1 and 2,000 new ones of priority 9, 1,000 a micro-batch: Spark
    drops rows behind the watermark that the micro-batch before the last one left.
    """
    day = 86_400
    counts = {}
    for order in ("priority", "arrival"):
        name = f"IN.{order.upper()}"
        with spark_qm.qm.queue(name) as queue:
            queue.put_batch([b"%d" % n for n in range(1, 2001)], priority=1)
            queue.put_batch([b"%d" % (n + 10 * day) for n in range(2000)], priority=9)
        lines = spark_qm.set(spark_qm.spark.readStream, order=order, maxMessagesPerTrigger=1000)
        lines = lines.schema("body string").load(name)
        seen = lines.selectExpr("timestamp_seconds(bigint(body)) AS at").withWatermark(
            "at", "1 day"
        )
        query = (
            seen.dropDuplicates(["at"])
            .writeStream.format("parquet")
            .option("path", str(tmp_path / order))
            .option("checkpointLocation", str(tmp_path / f"cp-{order}"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        counts[order] = spark_qm.spark.read.parquet(str(tmp_path / order)).count()
    assert counts == {"priority": 2000, "arrival": 4000}


def test_a_table_by_arrival_is_in_the_order_of_the_puts(spark_qm: SparkFixture) -> None:
    for number in range(30):
        spark_qm.put("IN", b"%d" % number, priority=number % 10)
    frame = spark_qm.table("IN", "body string", order="arrival", minPartitions=3)
    assert column(frame, "body") == [f"{number}" for number in range(30)]
    assert column(spark_qm.table("IN", "body string"), "body")[:2] == ["9", "19"]

"""Options of a batch read that choose messages before rows are made of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType
from spark_fixture import SparkFixture
from spark_steps import Bench

from penstock.spark.base import options as o
from penstock.spark.base.errors import OptionError
from penstock.spark.base.schema import struct_type
from penstock.spark.source import browse

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def chosen(bench: Bench, schema: str = "body binary", **given: str) -> list[bytes]:
    """The bodies that the tasks give for these options."""
    base = {**bench.base, "queue": "IN", **given}
    names = dict(part.split(" ", 1) for part in schema.split(", "))
    reader = browse.BrowseReader(o.parse(base, o.READ), struct_type(names))
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert all(batch.schema.names == list(names) for batch in batches)
    return [body for batch in batches for body in batch.column("body").to_pylist()]


def test_priority_correlation_and_time_choose_messages(bench: Bench) -> None:
    for number in range(6):
        bench.source.put(b"%d" % number, priority=number % 3, correl_id=b"AB"[number % 2 :][:1])
    with bench.qm.queue("IN") as q:
        times = {message.data: message.put_time for message in q.browse()}
    assert chosen(bench, priority="2") == [b"2", b"5"]
    assert chosen(bench, correlId="41") == [b"2", b"4", b"0"]
    assert chosen(bench, correlId="42" + "00" * 23) == [b"5", b"1", b"3"]
    assert chosen(bench, priority="1", correlId="41") == [b"4"]
    assert chosen(bench, "priority int, body string", priority="0") == ["0", "3"]
    late = sorted(body for body, time in times.items() if time >= times[b"3"])
    assert sorted(chosen(bench, fromTime=times[b"3"].isoformat())) == late
    assert chosen(bench, fromTime="2100-01-01T00:00:00Z") == []
    assert chosen(bench, minPartitions="3", priority="2") == [b"2", b"5"]
    assert chosen(bench, includeProperties="true", priority="2") == [b"2", b"5"]
    assert chosen(bench, order="arrival", correlId="41") == [b"0", b"2", b"4"]


def test_a_bad_body_of_a_message_that_is_not_chosen_fails_nothing(bench: Bench) -> None:
    bench.source.put(b"\xff", priority=1)
    bench.source.put(b"text", priority=2)
    assert chosen(bench, "body string", priority="2") == ["text"]


def test_wrong_choices_are_refused(bench: Bench) -> None:
    for given, text in (
        ({"priority": "10"}, "option priority is '10'; it takes a whole number from 0 to 9"),
        ({"correlId": "xyz"}, "option correlId is 'xyz'; it takes hexadecimal digits of 1 to 24"),
        ({"correlId": "41" * 25}, "it takes hexadecimal digits of 1 to 24 bytes"),
        ({"fromTime": "now"}, "option fromTime is 'now'; it takes a time such as 2026-01-31"),
    ):
        with pytest.raises(OptionError, match=re.escape(text)):
            chosen(bench, **given)


def test_spark_keeps_the_reader_of_a_filter_for_the_whole_table(spark_qm: SparkFixture) -> None:
    """Why filters are not pushed down: a source that obeys one would lose rows of other queries."""

    class Reader(DataSourceReader):
        rows = 10

        def pushFilters(self, filters: list[Filter]) -> list[Filter]:
            self.rows = 1
            return filters

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(self.rows)]

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            yield from ((number,) for number in range(partition.value))

    class Obedient(DataSource):
        @classmethod
        def name(cls) -> str:
            return "obedient"

        def schema(self) -> str:
            return "x int"

        def reader(self, schema: StructType) -> Reader:
            return Reader()

    spark = spark_qm.spark
    spark.dataSource.register(Obedient)
    spark.conf.set(PUSHDOWN, "true")
    try:
        table = spark.read.format("obedient").load()
        assert table.filter("x = 0").count() == 1
        assert table.count() == 1  # it has ten rows: once that is so, filters can be pushed down
    finally:
        spark.conf.unset(PUSHDOWN)

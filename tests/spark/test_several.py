"""Several queue managers as one source: each has its part of the offset, and is exact by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from spark_fixture import SparkFixture, another
from spark_steps import Bench, plan

import penstock
from penstock.spark.base import options as o
from penstock.spark.base.errors import OptionError, SourceError
from penstock.spark.base.schema import MESSAGE, struct_type
from penstock.spark.datasource import PenstockDataSource
from penstock.spark.several import divided


class Two:
    """QM1 and QM2 with a queue IN each."""

    def __init__(self, first: penstock.QueueManager, second: penstock.QueueManager) -> None:
        self.queues = {qm.name: qm.queue("IN") for qm in (first, second)}
        self.managers = (first, second)

    def fill(self, name: str, *bodies: bytes) -> None:
        self.queues[name].put_batch(bodies, persistent=True)

    def left(self, name: str) -> list[bytes]:
        return [message.data for message in self.queues[name].browse()]


@pytest.fixture
def two(bench: Bench, home: Path) -> Iterator[Two]:
    penstock.create("QM2", home)
    with penstock.connect("QM2", home) as second:
        second.define("QLOCAL", "IN")
        yield Two(bench.qm, second)


def source(bench: Bench, names: str = "QM1,QM2", **given: str) -> PenstockDataSource:
    return PenstockDataSource({**bench.base, "queue": "IN", "queueManager": names, **given})


def stream(bench: Bench, names: str = "QM1,QM2", **given: str) -> Any:
    return source(bench, names, **given).streamReader(struct_type(MESSAGE))


def bodies(reader: Any, parts: Any) -> list[bytes]:
    return [b for part in parts for rows in reader.read(part)
            for b in rows.column("body").to_pylist()]  # fmt: skip


def test_a_batch_read_has_the_messages_of_all(bench: Bench, two: Two) -> None:
    two.fill("QM1", b"1", b"2")
    two.fill("QM2", b"3")
    reader = source(bench).reader(struct_type(MESSAGE))
    assert sorted(bodies(reader, reader.partitions())) == [b"1", b"2", b"3"]


def test_a_stream_takes_and_commits_on_each(bench: Bench, two: Two) -> None:
    two.fill("QM1", b"1", b"2")
    reader = stream(bench)
    start = reader.initialOffset()
    assert start == {"managers": {"QM1": {"unit": 0}, "QM2": {"unit": 0}}}
    end = plan(reader, start)
    assert end["managers"]["QM1"]["unit"] == 1 and end["managers"]["QM2"] == {"unit": 0}
    assert bodies(reader, reader.partitions(start, end)) == [b"1", b"2"]
    two.fill("QM2", b"3")
    later = plan(reader, end)
    assert bodies(reader, reader.partitions(end, later)) == [b"3"]
    reader.commit(later)
    assert [qm.recover() for qm in two.managers] == [[], []]
    assert plan(reader, later) == later
    report = reader.reportLatestOffset()
    assert report["depth"] == 0 and set(report["managers"]) == {"QM1", "QM2"}
    reader.stop()


def test_a_micro_batch_that_is_planned_again_has_the_same_rows_of_each(
    bench: Bench, two: Two
) -> None:
    two.fill("QM1", b"1")
    two.fill("QM2", b"2")
    reader = stream(bench)
    start = reader.initialOffset()
    end = plan(reader, start)
    assert sorted(bodies(reader, reader.partitions(start, end))) == [b"1", b"2"]
    reader.stop()
    two.fill("QM2", b"later")
    again = stream(bench)
    assert sorted(bodies(again, again.partitions(start, end))) == [b"1", b"2"]
    again._readers["QM1"].commit(end["managers"]["QM1"])  # a driver dies between two commits
    again.stop()
    last = stream(bench)
    last.commit(end)
    assert [qm.recover() for qm in two.managers] == [[], []]
    last.stop()


def test_a_stream_goes_on_over_more_queue_managers_and_not_over_fewer(
    bench: Bench, two: Two
) -> None:
    penstock.create("QM3", Path(bench.base["home"]))
    with penstock.connect("QM3", bench.base["home"]) as qm:
        qm.define("QLOCAL", "IN")
        reader = stream(bench)
        two.fill("QM1", b"1")
        end = plan(reader, reader.initialOffset())
        reader.partitions({"managers": {}}, end)
        reader.commit(end)
        reader.stop()
        with qm.queue("IN") as queue:
            queue.put(b"new", persistent=True)
        more = stream(bench, "QM1,QM2,QM3")
        later = plan(more, end)
        assert bodies(more, more.partitions(end, later)) == [b"new"]
        more.commit(later)
        more.stop()
        fewer = stream(bench)
        with pytest.raises(SourceError, match="over queue manager QM3, too"):
            plan(fewer, later)
        with pytest.raises(SourceError, match="a stream over one queue manager"):
            plan(fewer, {"unit": 0})
        fewer.stop()


def test_limits_are_divided(bench: Bench, two: Two) -> None:
    for name in two.queues:
        two.fill(name, *[b"x"] * 10)
    reader = stream(bench, maxMessagesPerTrigger="6")
    start = reader.initialOffset()
    end = plan(reader, start)
    assert len(bodies(reader, reader.partitions(start, end))) == 6
    assert [len(two.left(name)) for name in two.queues] == [7, 7]
    reader.stop()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"queueManager": "QM1,QM1"}, "names one twice"),
        ({"queueManager": "QM1,,QM2"}, "nothing between two commas"),
        ({"queueManager": "QM1,QM2", "endpoint": "a,b,c"}, "3 addresses for 2 queue managers"),
        ({"queueManager": "QM1,QM2", "mode": "journal"}, "one queue manager"),
    ],
)
def test_what_is_no_list_is_refused(given: dict[str, str], text: str) -> None:
    own = {"queue": "IN", **given}
    with pytest.raises(OptionError, match=text):
        divided(o.parse(own, o.READ), own)


def test_a_sink_has_one_queue_manager() -> None:
    with pytest.raises(OptionError, match="a batch sink has one queue manager"):
        o.parse({"queueManager": "QM1,QM2", "queue": "OUT"}, o.WRITE)


def test_each_has_its_endpoint_or_all_the_same() -> None:
    given = {"queueManager": "QM1, QM2", "endpoint": "grpc://a:1, grpc://b:2", "queue": "IN",
             "token": "t"}  # fmt: skip
    found = divided(o.parse(given, o.STREAM), given)
    assert {name: own["endpoint"] for name, own in found.items()} == {
        "QM1": "grpc://a:1", "QM2": "grpc://b:2",
    }  # fmt: skip
    assert all(own["token"] == "t" for own in found.values())
    given["endpoint"] = "grpc://a:1"
    found = divided(o.parse(given, o.STREAM), given)
    assert {own["endpoint"] for own in found.values()} == {"grpc://a:1"}


def test_a_query_over_two_queue_managers_moves_each_message_once(
    spark_qm: SparkFixture, tmp_path: Path, registered: None
) -> None:
    penstock.spark.register(spark_qm.spark)
    spark_qm.qm.queue("OUT").close()
    with another(spark_qm, "QM2") as second:
        expected = []
        for number in range(20):
            qm = (spark_qm, second)[number % 2]
            qm.put("IN", b"%02d" % number)
            expected.append(b"%02d" % number)
        for trigger in ({"availableNow": True}, {"once": True}):
            reader = spark_qm.set(spark_qm.spark.readStream, queueManager="QM1,QM2")
            rows = reader.schema("body binary").load("IN")
            writer = spark_qm.set(rows.writeStream, queue="OUT")
            writer = writer.option("checkpointLocation", str(tmp_path / "cp"))
            writer.trigger(**trigger).start().awaitTermination()
        assert sorted(spark_qm.bodies("OUT")) == expected
        assert spark_qm.bodies("IN") == [] == second.bodies("IN")

"""mode=browse: a queue as a table."""

from __future__ import annotations

import datetime
import re

import pytest
from spark_fixture import THROUGH_A_SERVER, SparkFixture, column, failing

import penstock
from penstock.spark.base import host
from penstock.spark.base import options as o
from penstock.spark.base.schema import MESSAGE, struct_type
from penstock.spark.source import browse


def test_a_queue_is_read_in_delivery_order_and_nothing_is_removed(spark_qm: SparkFixture) -> None:
    for number in range(30):
        spark_qm.put("Q", b"%d" % number, priority=number % 3)
    expected = [b"%d" % n for p in (2, 1, 0) for n in range(30) if n % 3 == p]
    assert column(spark_qm.table("Q"), "body") == expected
    assert spark_qm.bodies("Q") == expected


def test_every_column_has_the_descriptors_value(spark_qm: SparkFixture) -> None:
    with spark_qm.qm.queue("Q") as q:
        q.put(
            b"body", priority=4, persistent=True, msg_id=b"m" * 24, correl_id=b"c" * 24,
            expiry=600, reply_to_q="REPLIES", reply_to_qmgr="QM7", group_id=b"g" * 24,
            msg_seq_number=3, msg_flags=8, format="MQSTR", msg_type=1, ccsid=1208, encoding=273,
        )  # fmt: skip
        message = next(q.browse())
    row = spark_qm.table("Q").collect()[0].asDict()
    assert list(row) == list(MESSAGE)
    assert row["queue"] == "Q" and bytes(row["body"]) == b"body"
    for name in ("msg_id", "correl_id", "group_id"):
        assert bytes(row[name]) == getattr(message, name)
    for name in ("priority", "persistent", "format", "ccsid", "encoding", "msg_type",
                 "msg_seq_number", "reply_to_q", "reply_to_qmgr", "user_identifier",
                 "put_appl_name", "backout_count"):  # fmt: skip
        assert row[name] == getattr(message, name), name
    assert row["sequence"] == message.number
    assert row["put_time"].replace(tzinfo=datetime.timezone.utc) == message.put_time
    assert 590 < row["expiry"] <= 600
    assert row["properties"] is None


def test_what_a_message_does_not_have_is_null(spark_qm: SparkFixture) -> None:
    spark_qm.put("Q", b"", persistent=False)
    row = spark_qm.table("Q").collect()[0]
    assert row["group_id"] is None and row["expiry"] is None and row["lsn"] is None
    assert row["persistent"] is False and bytes(row["body"]) == b""


def test_only_the_columns_that_the_user_names_are_made(spark_qm: SparkFixture) -> None:
    spark_qm.put("Q", "grüße".encode())
    frame = spark_qm.table("Q", "priority int, body string")
    assert frame.columns == ["priority", "body"]
    assert [tuple(row) for row in frame.collect()] == [(0, "grüße")]


def test_a_body_that_is_no_text_is_not_given_as_a_string(spark_qm: SparkFixture) -> None:
    spark_qm.put("Q", b"\xff\xfe")
    text = failing(spark_qm.table("Q", "body string").collect)
    assert re.search(r"is not UTF-8 \(message [1-9]\d*\): read column body as binary", text), text


def test_a_dataframe_used_filtered_unfiltered_and_in_a_union_has_the_same_rows(
    spark_qm: SparkFixture,
) -> None:
    spark_qm.put("Q", *[b"%d" % n for n in range(10)], priority=1)
    spark_qm.put("Q", *[b"%d" % n for n in range(5)], priority=2)
    frame = spark_qm.table("Q")
    high = frame.filter("priority > 1")
    assert high.count() == 5
    assert frame.count() == 15
    assert high.union(frame).count() == 20
    assert frame.union(high).filter("priority = 1").count() == 10
    assert frame.select("priority").filter("priority = 1").count() == 10


def test_a_dataframe_used_again_shows_the_remaining_messages_of_its_first_use(
    spark_qm: SparkFixture,
) -> None:
    spark_qm.put("Q", b"1", b"2", b"3")
    frame = spark_qm.table("Q", "body binary, priority int")
    assert column(frame, "body") == [b"1", b"2", b"3"]
    spark_qm.put("Q", b"new", priority=9)
    assert column(frame, "body") == [b"1", b"2", b"3"]
    assert frame.union(spark_qm.table("Q", "body binary, priority int")).count() == 7
    with spark_qm.qm.open("Q") as q:
        q.get(), q.get()
    assert column(frame, "body") == [b"2", b"3"]
    assert column(frame.filter("priority = 0"), "body") == [b"2", b"3"]


def test_batches_are_cut_by_rows_and_by_bytes(spark_qm: SparkFixture) -> None:
    spark_qm.put("Q", *[b"x" * 100] * 25)

    def sizes(**given: str) -> list[int]:
        common = {"queueManager": "QM1", "home": str(spark_qm.home), "queue": "Q"}
        options = o.parse({**common, **given}, o.READ)
        reader = browse.BrowseReader(options, struct_type(MESSAGE))
        return [batch.num_rows for batch in reader.read(reader.partitions()[0])]

    assert sizes() == [25]
    assert sizes(batchRows="10") == [10, 10, 5]
    assert sizes(batchBytes="500") == [5, 5, 5, 5, 5]


def test_partitions_are_the_queue_in_order_during_concurrent_gets_and_puts(
    spark_qm: SparkFixture,
) -> None:
    for number in range(400):
        spark_qm.put("Q", b"%d" % number, priority=number % 4)
    there = spark_qm.bodies("Q")
    options = o.parse(
        {"queueManager": "QM1", "home": str(spark_qm.home), "queue": "Q", "minPartitions": "7"},
        o.READ,
    )
    reader = browse.BrowseReader(options, struct_type({"body": "binary"}))
    parts = reader.partitions()

    def rows() -> list[bytes]:
        return [body for part in parts for batch in reader.read(part)
                for body in batch.column("body").to_pylist()]  # fmt: skip

    sizes = [sum(batch.num_rows for batch in reader.read(part)) for part in parts]
    assert len(sizes) == 7 and max(sizes) - min(sizes) <= 1 and rows() == there
    spark_qm.put("Q", *[b"later"] * 50, priority=2)
    with spark_qm.qm.open("Q") as queue:
        gone = {message.data for message in queue.get_batch(60)}
    assert rows() == [body for body in there if body not in gone]


def test_a_small_queue_is_one_partition_and_a_large_one_several(spark_qm: SparkFixture) -> None:
    spark_qm.put("Q", b"1")
    reader = browse.BrowseReader(
        o.parse({"queueManager": "QM1", "home": str(spark_qm.home), "queue": "Q"}, o.READ),
        struct_type(MESSAGE),
    )
    assert len(reader.partitions()) == 1
    assert [reader._parts(n) for n in (0, 19_999, 20_000 * host.cores())] == [1, 1, host.cores()]
    assert reader._parts(400 * 500_000) == 400


def test_a_reader_that_is_left_in_the_middle_closes_its_connection(spark_qm: SparkFixture) -> None:
    spark_qm.put("Q", b"1", b"2", b"3")
    options = o.parse(
        {"queueManager": "QM1", "home": str(spark_qm.home), "queue": "Q", "batchRows": "1"}, o.READ
    )
    reader = browse.BrowseReader(options, struct_type(MESSAGE))
    rows = reader.read(reader.partitions()[0])
    next(rows)
    assert spark_qm.qm.status().handles > 0
    rows.close()  # type: ignore[attr-defined]
    assert spark_qm.qm.status().handles == 0


def test_a_task_elsewhere_ends_before_it_connects(spark_qm: SparkFixture) -> None:
    spark_qm.put("Q", b"1")
    options = o.parse({"queueManager": "QM1", "home": "/nowhere", "queue": "Q"}, o.READ)
    reader = browse.BrowseReader(options, struct_type(MESSAGE))
    far = browse.Ranges([], host.Host("far", "another boot", ""))
    text = ""
    try:
        next(reader.read(far))
    except Exception as error:
        text = str(error)
    assert "lives on far: executors on other hosts reach it through penstock serve" in text


@pytest.mark.skipif(THROUGH_A_SERVER, reason="a server has its own home")
def test_a_missing_queue_manager_queue_or_home_is_one_sentence(spark_qm: SparkFixture) -> None:
    assert failing(lambda: spark_qm.table("NONE").collect()) == (
        "queue manager QM1, queue NONE: MQRC_UNKNOWN_OBJECT_NAME (2085): there is no queue NONE"
    )
    text = failing(lambda: spark_qm.reader(queueManager="QM2").load("Q").collect())
    assert "there is no queue manager QM2 in" in text
    (spark_qm.home / "file").write_text("")
    text = failing(lambda: spark_qm.reader(home=str(spark_qm.home / "file")).load("Q").collect())
    assert "there is no queue manager QM1 in" in text


def test_wrong_options_and_columns_are_refused_when_the_table_is_made(
    spark_qm: SparkFixture,
) -> None:
    assert failing(lambda: spark_qm.reader(quue="Q").load("Q")) == (
        "option quue is unknown: queue is meant?"
    )
    assert "column bdy is unknown: body is meant?" in failing(
        lambda: spark_qm.table("Q", "bdy binary").collect()
    )


def test_several_queues_are_one_table_with_the_name_of_the_queue_in_each_row(
    spark_qm: SparkFixture,
) -> None:
    for number in range(30):
        spark_qm.put(f"Q.{number % 3}", b"%02d" % number, priority=number % 2)
    spark_qm.put("OTHER", b"x")
    expected = [
        (f"Q.{q}", b"%02d" % n)
        for q in range(3)
        for p in (1, 0)
        for n in range(q, 30, 3)
        if n % 2 == p
    ]
    for given in ({"queuePattern": "Q.*"}, {"queue": "Q.0,Q.1,Q.2"}):
        for parts in (1, 2, 5, 40):
            frame = spark_qm.reader(minPartitions=parts, **given).load()
            assert frame.rdd.getNumPartitions() < parts + 3
            assert list(zip(column(frame, "queue"), column(frame, "body"), strict=True)) == expected
    frame = spark_qm.reader(queuePattern="Q.*", order="arrival").load()
    assert column(frame, "body") == [b"%02d" % n for q in range(3) for n in range(q, 30, 3)]
    assert spark_qm.reader(queuePattern="NONE.*").load().count() == 0


def test_a_queue_of_a_queue_manager_that_is_not_running_is_read(
    spark_qm: SparkFixture,
) -> None:
    with penstock.connect("QM3", spark_qm.home, create=True) as qm, qm.queue("Q") as q:
        q.put(b"kept")
    frame = spark_qm.reader(queueManager="QM3").load("Q")
    assert column(frame, "body") == [b"kept"]
    penstock.delete("QM3", spark_qm.home)

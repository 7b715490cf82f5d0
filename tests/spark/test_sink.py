"""The sinks, through Spark."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from spark_fixture import SparkFixture, failing, wait_until, wait_until_alone

import penstock
from penstock.spark.base import ledger


def test_a_table_is_put_with_its_columns_or_not_at_all(spark_qm: SparkFixture) -> None:
    for name in ("A", "B"):
        spark_qm.qm.queue(name).close()
    rows = [("A", "one", 7, True), ("B", "two", None, None), ("A", "three", 2, False)]
    frame = spark_qm.spark.createDataFrame(
        rows, "queue string, value string, priority int, persistent boolean"
    )
    spark_qm.set(frame.write).mode("append").save()
    with spark_qm.qm.open("A") as a, spark_qm.qm.open("B") as b:
        [a_message, _] = a.browse()
        got = [(m.data, m.priority, m.persistent, m.format) for m in (a.get(), a.get(), b.get())]
    assert a_message.put_appl_name == "penstock-tests"
    assert got == [
        (b"one", 7, True, "MQSTR"), (b"three", 2, False, "MQSTR"), (b"two", 0, True, "MQSTR"),
    ]  # fmt: skip
    assert failing(lambda: spark_qm.set(frame.write, queue="NONE").mode("append").save()) == (
        "queue manager QM1, queue NONE: MQRC_UNKNOWN_OBJECT_NAME (2085): there is no queue NONE"
    )
    wrong = frame.selectExpr("'B' AS queue", "value").union(frame.selectExpr("'C'", "value"))
    assert "queue C of a row: MQRC_UNKNOWN_OBJECT_NAME" in failing(
        lambda: spark_qm.set(wrong.coalesce(1).write).mode("append").save()
    )
    assert spark_qm.bodies("B") == [] and spark_qm.qm.recover() == []


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (["cast(id AS int) AS body"], "column body must be binary or string to be put, not int"),
        (["'x' AS value", "'high' AS priority"], "column priority must be tinyint or smallint"),
        (["'x' AS value", "1 AS prioritty"], "column prioritty is unknown: priority is meant?"),
        (
            ["'x' AS value", "if(id = 9, map('a b', 'v'), null) AS properties"],
            "queue manager QM1, queue Q: MQRC_PROPERTY_NAME_ERROR (2442): property 'a b': ",
        ),
    ],
)
def test_columns_that_no_message_has_fail_and_nothing_is_put(
    spark_qm: SparkFixture, columns: list[str], text: str
) -> None:
    spark_qm.qm.queue("Q").close()
    frame = spark_qm.spark.range(0, 10, 1, 1).selectExpr(*columns)
    told = failing(lambda: spark_qm.set(frame.write, queue="Q").mode("append").save())
    assert told.startswith(text)
    assert "properties" not in columns[-1] or told.endswith(" (row 9 of partition 0)")
    assert spark_qm.bodies("Q") == [] and spark_qm.qm.recover() == []


def test_a_write_with_an_application_id_is_done_once_and_its_warnings_are_counted(
    spark_qm: SparkFixture,
) -> None:
    spark_qm.qm.queue("Q").close()
    frame = spark_qm.spark.createDataFrame([("x", 12), ("y", 3)], "value string, priority int")
    for version in (1, 1, 2):
        once = spark_qm.set(frame.write, queue="Q", txnAppId="app", txnVersion=version)
        once.mode("append").save()
    assert spark_qm.bodies("Q") == [b"x", b"x", b"y", b"y"] and spark_qm.qm.recover() == []
    [entry] = [json.loads(body) for body in spark_qm.bodies(ledger.QUEUE)]
    assert (entry["version"], entry["messages"], entry["warnings"]) == (2, 4, 2)


def test_each_batch_reports_on_stderr_how_many_messages_were_put_with_2049(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    spark_qm.qm.queue("Q").close()
    spark_qm.put("IN", b"1", b"2")
    frame = spark_qm.spark.sql("SELECT 'x' AS value, 12 AS priority")
    for _ in range(2):
        spark_qm.set(frame.write, queue="Q").mode("append").save()
    lines = spark_qm.set(spark_qm.spark.readStream, maxMessagesPerTrigger=1).load("IN")
    sunk = spark_qm.set(lines.selectExpr("body", "12 AS priority").writeStream, queue="Q")
    sunk = sunk.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True)
    sunk.start().awaitTermination()
    one = re.compile(r"RuntimeWarning: queue manager QM1, batch (.+): 1 of 1 messages .* \(2049\)")
    wait_until(
        lambda: len(one.findall(spark_qm.said())) >= 4
    )  # it comes through a thread of Spark's
    told = one.findall(spark_qm.said())
    assert len(told) == len(set(told)) == len(spark_qm.bodies("Q")) == 4


def test_a_write_is_complete_though_nobody_else_is_connected(spark_qm: SparkFixture) -> None:
    penstock.create("QM2", spark_qm.home)
    with penstock.connect("QM2", spark_qm.home) as qm:
        qm.queue("Q", defpsist=False).close()
    frame = spark_qm.spark.range(0, 1000, 1, 4).selectExpr("cast(id AS string) AS value")
    for persistence in ("persistent", "queue"):
        to = {"queueManager": "QM2", "queue": "Q", "persistence": persistence}
        spark_qm.set(frame.write, **to).mode("append").save()
    with penstock.connect("QM2", spark_qm.home) as qm, qm.queue(ledger.QUEUE) as book:
        assert [json.loads(m.data)["messages"] for m in book.browse()] == [1000, 1000]
        wait_until_alone(qm)
        with qm.open("Q") as queue:  # those of the second write ended with the queue manager
            assert queue.depth == 1000
    penstock.delete("QM2", spark_qm.home)

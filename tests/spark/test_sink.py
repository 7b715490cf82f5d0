"""The sinks, through Spark."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from spark_desk import Desk, failing, wait_until

from penstock.spark.base import ledger


def test_a_table_is_put_with_its_columns_or_not_at_all(desk: Desk) -> None:
    for name in ("A", "B"):
        desk.qm.queue(name).close()
    rows = [("A", "one", 7, True), ("B", "two", None, None), ("A", "three", 2, False)]
    frame = desk.spark.createDataFrame(
        rows, "queue string, value string, priority int, persistent boolean"
    )
    desk.set(frame.write).mode("append").save()
    with desk.qm.open("A") as a, desk.qm.open("B") as b:
        got = [(m.data, m.priority, m.persistent, m.format) for m in (a.get(), a.get(), b.get())]
    assert got == [
        (b"one", 7, True, "MQSTR"), (b"three", 2, False, "MQSTR"), (b"two", 0, True, "MQSTR"),
    ]  # fmt: skip
    assert failing(lambda: desk.set(frame.write, queue="NONE").mode("append").save()) == (
        "queue manager QM1, queue NONE: MQRC_UNKNOWN_OBJECT_NAME (2085): there is no queue NONE"
    )
    wrong = frame.selectExpr("'B' AS queue", "value").union(frame.selectExpr("'C'", "value"))
    assert "queue C of a row: MQRC_UNKNOWN_OBJECT_NAME" in failing(
        lambda: desk.set(wrong.coalesce(1).write).mode("append").save()
    )
    assert desk.bodies("B") == [] and desk.qm.recover() == []


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
    desk: Desk, columns: list[str], text: str
) -> None:
    desk.qm.queue("Q").close()
    frame = desk.spark.range(0, 10, 1, 1).selectExpr(*columns)
    told = failing(lambda: desk.set(frame.write, queue="Q").mode("append").save())
    assert told.startswith(text)
    assert desk.bodies("Q") == [] and desk.qm.recover() == []


def test_a_write_with_an_application_id_is_done_once_and_its_warnings_are_counted(
    desk: Desk,
) -> None:
    desk.qm.queue("Q").close()
    frame = desk.spark.createDataFrame([("x", 12), ("y", 3)], "value string, priority int")
    for version in (1, 1, 2):
        once = desk.set(frame.write, queue="Q", txnAppId="app", txnVersion=version)
        once.mode("append").save()
    assert desk.bodies("Q") == [b"x", b"x", b"y", b"y"] and desk.qm.recover() == []
    [entry] = [json.loads(body) for body in desk.bodies(ledger.QUEUE)]
    assert (entry["version"], entry["messages"], entry["warnings"]) == (2, 4, 2)


def test_each_batch_tells_on_the_terminal_how_many_of_its_messages_were_put_with_2049(
    desk: Desk, tmp_path: Path
) -> None:
    desk.qm.queue("Q").close()
    desk.put("IN", b"1", b"2")
    frame = desk.spark.sql("SELECT 'x' AS value, 12 AS priority")
    for _ in range(2):
        desk.set(frame.write, queue="Q").mode("append").save()
    lines = desk.set(desk.spark.readStream, maxMessagesPerTrigger=1).load("IN")
    sunk = desk.set(lines.selectExpr("body", "12 AS priority").writeStream, queue="Q")
    sunk = sunk.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True)
    sunk.start().awaitTermination()
    one = re.compile(r"RuntimeWarning: queue manager QM1, batch (.+): 1 of 1 messages .* \(2049\)")
    wait_until(lambda: len(one.findall(desk.said())) >= 4)  # it comes through a thread of Spark's
    told = one.findall(desk.said())
    assert len(told) == len(set(told)) == len(desk.bodies("Q")) == 4

"""The streaming source and the sinks, through Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from spark_desk import Desk, failing


def run(desk: Desk, checkpoint: Path, source: str, target: str, **options: Any) -> Any:
    """One run over what is on a queue, onto another one; the query when it has ended."""
    reader = desk.set(desk.spark.readStream, **options).schema("body binary, priority int")
    writer = desk.set(reader.load(source).writeStream, queue=target)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def test_a_stream_moves_every_message_once_in_delivery_order_and_goes_on_later(
    desk: Desk, tmp_path: Path
) -> None:
    desk.qm.queue("OUT").close()
    bodies = [b"%03d" % n for n in range(60)]
    for number, body in enumerate(bodies):
        desk.put("IN", body, priority=number % 3, persistent=number % 2)
    expected = desk.bodies("IN")
    query = run(desk, tmp_path / "cp", "IN", "OUT", maxMessagesPerTrigger=40, minPartitions=1)
    assert desk.bodies("OUT") == expected and desk.bodies("IN") == []
    assert [p.numInputRows for p in query.recentProgress if p.numInputRows] == [40, 20]
    assert '"depth"' in query.lastProgress.sources[0].latestOffset
    assert desk.qm.recover() == []
    desk.put("IN", b"more", priority=0)
    run(desk, tmp_path / "cp", "IN", "OUT")
    assert sorted(desk.bodies("OUT")) == sorted([*expected, b"more"])


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


def test_a_write_with_an_application_id_and_version_is_done_once(desk: Desk) -> None:
    desk.qm.queue("Q").close()
    frame = desk.spark.createDataFrame([("x",)], "value string")
    for version in (1, 1, 2):
        once = desk.set(frame.write, queue="Q", txnAppId="app", txnVersion=version)
        once.mode("append").save()
    assert desk.bodies("Q") == [b"x", b"x"] and desk.qm.recover() == []


def test_a_stream_that_may_not_get_fails_and_goes_on_from_its_checkpoint(
    desk: Desk, tmp_path: Path
) -> None:
    desk.qm.queue("OUT").close()
    desk.put("IN", b"1", b"2", persistent=True)
    desk.qm.alter("QLOCAL", "IN", get="DISABLED")
    with pytest.raises(Exception, match=r"MQRC_GET_INHIBITED \(2016\)"):
        run(desk, tmp_path / "cp", "IN", "OUT")
    desk.qm.alter("QLOCAL", "IN", get="ENABLED")
    run(desk, tmp_path / "cp", "IN", "OUT")
    assert desk.bodies("OUT") == [b"1", b"2"]

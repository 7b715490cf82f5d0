"""The streaming source, through Spark."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_fixture import SparkFixture, failing, wait_until, wait_until_alone

import penstock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


def rows_of(query: StreamingQuery) -> list[int]:
    """Rows of each micro-batch that had some."""
    return [p.numInputRows for p in query.recentProgress if p.numInputRows]


def test_a_stream_moves_every_message_once_in_delivery_order_and_continues_later(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    spark_qm.qm.queue("OUT").close()
    for number in range(60):
        spark_qm.put("IN", b"%03d" % number, priority=number % 3, persistent=number % 2)
    expected = spark_qm.bodies("IN")
    limited = {"maxMessagesPerTrigger": 40, "minPartitions": 1}
    query = spark_qm.run(tmp_path / "cp", "IN", "OUT", **limited)
    assert spark_qm.bodies("OUT") == expected and spark_qm.bodies("IN") == []
    assert rows_of(query) == [40, 20]
    told = [json.loads(p.sources[0].latestOffset) for p in query.recentProgress]
    assert {t["queue"] for t in told} == {"IN"}
    assert [t["lag"] for t in told[:2]] == [60, 20]  # on the queue, or taken a moment before
    assert told[0]["depth"] == 60  # when the micro-batch was planned
    assert 0 < told[0]["oldestMessageAgeMs"] < 3_600_000
    assert spark_qm.qm.recover() == []
    spark_qm.put("IN", *[b"%0100d" % n for n in range(7)], priority=0)
    query = spark_qm.run(tmp_path / "cp", "IN", "OUT", maxBytesPerTrigger=350)
    assert spark_qm.bodies("OUT") == [*expected, *[b"%0100d" % n for n in range(7)]]
    assert rows_of(query) == [4, 3]  # the message that passes the limit belongs to the batch


def test_the_columns_that_the_user_names_are_the_stream(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    spark_qm.qm.queue("OUT").close()
    spark_qm.put("IN", "grüße".encode(), priority=4)
    spark_qm.put("IN", b"\xff is no text", priority=3)
    seen: list[Any] = []
    narrow = spark_qm.set(spark_qm.spark.readStream).schema("priority int, queue string").load("IN")
    query = narrow.writeStream.foreachBatch(lambda frame, _: seen.extend(frame.collect()))
    query.trigger(availableNow=True).start().awaitTermination()
    assert [tuple(row) for row in seen] == [(4, "IN"), (3, "IN")]
    spark_qm.put("IN", "grüße".encode(), b"\xff is no text")
    text = failing(lambda: spark_qm.run(tmp_path / "cp", "IN", "OUT", columns="body string"))
    assert re.search(r"is not UTF-8 \(message \d+\): read column body as binary", text)
    spark_qm.run(tmp_path / "cp", "IN", "OUT")
    assert spark_qm.bodies("OUT") == ["grüße".encode(), b"\xff is no text"]


def test_available_now_takes_what_was_there_at_its_start_and_nothing_that_comes(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    old = [b"old %d" % n for n in range(6)]
    spark_qm.put("IN", *old, priority=1)
    seen: list[bytes] = []

    def take(frame: DataFrame, batch: int) -> None:
        seen.extend(bytes(row.body) for row in frame.collect())
        if batch < 9:  # so that the stream ends if it takes these
            spark_qm.put("IN", b"new", priority=9)  # it would come first

    stream = spark_qm.set(spark_qm.spark.readStream, maxMessagesPerTrigger=2).load("IN")
    stream.writeStream.foreachBatch(take).trigger(availableNow=True).start().awaitTermination()
    assert seen == old and spark_qm.bodies("IN") == [b"new"] * 3


def test_two_streams_and_a_plain_consumer_share_a_queue_and_the_union_is_exact(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    targets = ["OUT1", "OUT2"]
    trigger = {"processingTime": "100 milliseconds"}
    taken: list[bytes] = []
    made: list[bytes] = []
    outs = [spark_qm.qm.queue(name) for name in targets]
    spark_qm.qm.queue("IN").close()
    queries = [
        spark_qm.start(tmp_path / name, "IN", name, trigger=trigger, maxMessagesPerTrigger=20)
        for name in targets
    ]
    with spark_qm.qm.open("IN") as source:

        def everybody_had_some() -> bool:
            while source.depth < 60:
                made.append(b"%06d" % len(made))
                source.put(made[-1], priority=len(made) % 10)
            taken.extend(message.data for message in source.get_batch(2))
            assert all(query.exception() is None for query in queries)
            return all(queue.depth > 0 for queue in outs)

        wait_until(everybody_had_some)
        wait_until(lambda: source.depth == 0 and not spark_qm.qm.recover())
    for query in queries:
        query.stop()
        query.awaitTermination()
        assert query.exception() is None
        assert max(rows_of(query)) <= 20
    found = [spark_qm.bodies(name) for name in targets]
    assert taken and all(found)
    assert sorted([*taken, *found[0], *found[1]]) == sorted(made)
    for queue in outs:
        queue.close()
    wait_until_alone(spark_qm.qm)


def test_nonpersistent_messages_are_left_or_made_durable_by_the_option(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    with penstock.connect("QM2", spark_qm.home, create=True) as qm:
        own = SparkFixture(spark_qm.spark, qm, spark_qm.home)
        qm.queue("OUT").close()
        for number in range(6):
            own.put("IN", b"%d" % number, persistent=number % 2)
        own.run(tmp_path / "cp", "IN", "OUT", nonPersistent="exclude")
        assert own.bodies("OUT") == [b"1", b"3", b"5"]
        assert own.bodies("IN") == [b"0", b"2", b"4"]
        qm.alter("QLOCAL", "OUT", put="DISABLED")
        assert "MQRC_PUT_INHIBITED (2051)" in failing(
            lambda: own.run(tmp_path / "cp", "IN", "OUT", nonPersistent="include")
        )
        wait_until_alone(qm)
        [unit] = qm.prepared_list()
        assert (unit.gets, unit.nonpersistent) == (3, 3)
    with penstock.connect("QM2", spark_qm.home) as qm:  # no process was attached: it was stopped
        qm.alter("QLOCAL", "OUT", put="ENABLED")
        own = SparkFixture(spark_qm.spark, qm, spark_qm.home)
        assert own.bodies("IN") == []
        own.run(tmp_path / "cp", "IN", "OUT")
        assert own.bodies("OUT") == [b"1", b"3", b"5", b"0", b"2", b"4"]
        assert qm.recover() == []
        wait_until_alone(qm)
    penstock.delete("QM2", spark_qm.home)


def test_a_sink_recognises_a_batch_that_spark_does_not_know_to_be_written(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    spark_qm.qm.queue("OUT").close()
    spark_qm.put("IN", b"1", b"2", b"3")
    late = {"eagerCommit": False}  # the last micro-batch stays as it is between its two commits
    spark_qm.run(tmp_path / "cp", "IN", "OUT", **late, maxMessagesPerTrigger=2)
    assert spark_qm.bodies("OUT") == [b"1", b"2", b"3"] and len(spark_qm.qm.recover()) == 1
    for file in (tmp_path / "cp/commits").glob("*1*"):  # with its checksum file
        file.unlink()
    spark_qm.put("IN", b"4")
    query = spark_qm.run(tmp_path / "cp", "IN", "OUT", **late)
    assert rows_of(query)[0] == 1  # the third one, again
    assert spark_qm.bodies("OUT") == [b"1", b"2", b"3", b"4"]


def test_what_a_dropped_stream_holds_is_returned_by_the_command(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    bodies = [b"1", b"2", b"3"]
    spark_qm.put("IN", *bodies)
    spark_qm.qm.queue("OUT", put="DISABLED").close()
    failing(lambda: spark_qm.run(tmp_path / "cp", "IN", "OUT"))
    assert spark_qm.bodies("IN") == [] and len(spark_qm.qm.recover()) == 1
    offset = json.loads((tmp_path / "cp/offsets/0").read_text().splitlines()[-1])
    assert offset["stream"] in spark_qm.command("status", "QM1")
    assert offset["stream"] in spark_qm.command("resolve", "QM1")
    spark_qm.command("resolve", "QM1", "--stream", offset["stream"], "--backout")
    assert spark_qm.bodies("IN") == bodies and spark_qm.qm.recover() == []
    spark_qm.qm.alter("QLOCAL", "OUT", put="ENABLED")
    spark_qm.run(tmp_path / "another", "IN", "OUT")
    assert spark_qm.bodies("OUT") == bodies


def test_a_checkpoint_is_of_one_queue_and_a_new_one_does_not_pass_over_abandoned_messages(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    spark_qm.put("IN", b"1", b"2")
    spark_qm.put("IN2", b"3")
    spark_qm.qm.queue("OUT", put="DISABLED").close()
    failing(lambda: spark_qm.run(tmp_path / "cp", "IN", "OUT"))
    spark_qm.qm.alter("QLOCAL", "OUT", put="ENABLED")
    assert failing(lambda: spark_qm.run(tmp_path / "cp", "IN2", "OUT")) == (
        "the checkpoint belongs to a stream over queue IN, this one is over queue IN2: a stream "
        "over other queues needs a checkpoint of its own"
    )
    text = failing(lambda: spark_qm.run(tmp_path / "new", "IN", "OUT"))
    assert "queue IN: 2 messages are prepared for streams that do not run" in text
    assert spark_qm.bodies("OUT") == [] and spark_qm.bodies("IN2") == [b"3"]
    query = spark_qm.run(tmp_path / "new", "IN", "OUT", onAbandoned="ignore")
    assert json.loads(query.recentProgress[-1].sources[0].latestOffset)["abandoned"] == 2
    spark_qm.run(tmp_path / "newer", "IN", "OUT", onAbandoned="backout")
    assert spark_qm.bodies("OUT") == [b"1", b"2"] and spark_qm.qm.recover() == []


def workers(spark_qm: SparkFixture) -> dict[int, tuple[int, list[str]]]:
    """The session's Python processes: how many files each has open, and which of a queue manager's
    it has open or mapped.
    """
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rpartition(")")[2].split()[1]
            )
        except OSError:
            continue  # it has ended
    java = spark_qm.spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore
    found = {}
    for pid in parents:
        above = pid
        while above in parents and above != java:
            above = parents[above]
        if above == java != pid:
            try:
                opened = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
                mapped = Path(f"/proc/{pid}/maps").read_text().splitlines()
            except OSError:
                continue  # it has ended since
            ours = [name for name in (*opened, *mapped) if str(spark_qm.home) in name]
            found[pid] = len(opened), ours
    return found


def test_workers_read_one_micro_batch_after_another_and_keep_nothing_open(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    spark_qm.qm.queue("OUT").close()
    found = []
    for count in (2, 5):
        spark_qm.put("IN", *[b"%d" % n for n in range(2 * count)])
        limited = {"maxMessagesPerTrigger": 2, "minPartitions": 2}
        assert rows_of(spark_qm.run(tmp_path / "cp", "IN", "OUT", **limited)) == [2] * count
        wait_until_alone(spark_qm.qm)  # who has left closes its files a moment later
        wait_until(lambda: not any(ours for _, ours in workers(spark_qm).values()))
        found.append(workers(spark_qm))
    before, after = found
    again = before.keys() & after.keys()
    assert len(again) > 2 and len(after.keys() - again) < 5  # 20 tasks were done by these
    assert all(after[pid][0] <= before[pid][0] for pid in again)


def test_a_message_that_is_not_due_is_in_no_read_and_in_the_stream_once_it_is_due(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    spark_qm.qm.queue("OUT").close()
    with spark_qm.qm.queue("IN") as queue:
        queue.put(b"at once", persistent=True)
        queue.put(b"later", persistent=True, priority=9, delay=3600)
        soon = queue.put(b"soon", persistent=True, priority=9, delay=3600)
    read = spark_qm.set(spark_qm.spark.read).load("IN")
    assert [bytes(row.body) for row in read.collect()] == [b"at once"]
    spark_qm.run(tmp_path / "cp", "IN", "OUT")
    assert spark_qm.bodies("OUT") == [b"at once"]
    with spark_qm.qm.open("IN") as queue:
        assert (queue.depth, queue.status().delayed) == (2, 2)
        assert queue.cancel(soon.msg_id)
        queue.put(b"soon", persistent=True, priority=9, delay=0.01)
    spark_qm.run(tmp_path / "cp", "IN", "OUT")
    assert spark_qm.bodies("OUT") == [b"soon", b"at once"]
    with spark_qm.qm.open("IN") as queue:
        assert queue.status().delayed == 1

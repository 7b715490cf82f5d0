"""Errors end a stream with one sentence, and the stream continues from its checkpoint."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from spark_fixture import SparkFixture, another, failing, wait_until, wait_until_alone

import penstock
from penstock.spark.base import host, options
from penstock.spark.base.errors import SourceError
from penstock.spark.base.schema import MESSAGE, struct_type
from penstock.spark.datasource import PenstockDataSource
from penstock.spark.sink import writer as sink
from penstock.spark.source import browse, stream
from penstock.spark.source.partitions import Slice

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

KIB = 1024


def test_wrong_options_a_missing_queue_manager_and_a_missing_queue_end_a_stream(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    cp = tmp_path / "cp"
    spark_qm.qm.queue("OUT").close()
    assert failing(lambda: spark_qm.run(cp, "IN", "OUT", maxMessagePerTrigger=1)) == (
        "option maxmessagepertrigger is unknown: maxMessagesPerTrigger is meant?"
    )
    assert failing(lambda: spark_qm.run(cp, "IN", "OUT", columns="body binary, prio int")) == (
        "column prio is unknown: priority is meant?"
    )
    assert failing(lambda: spark_qm.run(cp, "IN", "OUT")) == (
        "queue manager QM1, queue IN: MQRC_UNKNOWN_OBJECT_NAME (2085): there is no queue IN"
    )
    spark_qm.put("IN", b"1", b"2")
    away = spark_qm.home.rename(tmp_path / "away")
    text = failing(lambda: spark_qm.run(cp, "IN", "OUT"))
    assert text.endswith(f"there is no queue manager QM1 in {spark_qm.home}")
    away.rename(spark_qm.home)
    spark_qm.run(cp, "IN", "OUT")
    assert spark_qm.bodies("OUT") == [b"1", b"2"] and spark_qm.qm.recover() == []


def test_a_home_that_may_not_be_read_is_one_sentence(home: Path, qm: penstock.QueueManager) -> None:
    given = options.parse({"queueManager": "QM1", "home": str(home), "queue": "Q"}, options.STREAM)
    reader = stream.StreamReader(given, struct_type(MESSAGE))
    mode, user = home.stat().st_mode, os.geteuid()
    home.chmod(0)
    try:
        if user == 0:  # root may read everything
            os.seteuid(65534)
        with pytest.raises(SourceError) as caught:
            reader.initialOffset()
    finally:
        os.seteuid(user)
        home.chmod(mode)
    print(caught.value)
    assert str(caught.value).startswith("queue manager QM1: MQRC_NOT_AUTHORIZED (2035): ")


def test_a_stream_that_may_not_get_fails_and_continues_from_its_checkpoint(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    spark_qm.qm.queue("OUT").close()
    spark_qm.put("IN", b"1", b"2", persistent=True)
    spark_qm.qm.alter("QLOCAL", "IN", get="DISABLED")
    assert "MQRC_GET_INHIBITED (2016)" in failing(
        lambda: spark_qm.run(tmp_path / "cp", "IN", "OUT")
    )
    spark_qm.qm.alter("QLOCAL", "IN", get="ENABLED")
    spark_qm.run(tmp_path / "cp", "IN", "OUT")
    assert spark_qm.bodies("OUT") == [b"1", b"2"]


# 2162 means connected before; a task that connects before all have left gets 2059
ENDED = r"2162|2059\): the queue manager QM2 has been ended; it restarts when process "


@pytest.mark.parametrize(("how", "reasons"), [("-w", "2161"), ("-i", ENDED)])
def test_a_queue_manager_that_is_ended_ends_the_stream_and_nothing_is_lost_or_doubled(
    spark_qm: SparkFixture, tmp_path: Path, how: str, reasons: str
) -> None:
    made: list[bytes] = []

    def put(own: SparkFixture) -> None:
        made.append(b"%04d" % len(made))
        own.put("IN", made[-1])

    with (
        ThreadPoolExecutor(1) as beside,
        penstock.connect("QM2", spark_qm.home, create=True) as qm,
    ):
        own = SparkFixture(spark_qm.spark, qm, spark_qm.home)
        for name in ("IN", "OUT"):
            qm.queue(name).close()
        spark_qm.command("start", "QM2")
        trigger = {"processingTime": "50 milliseconds"}
        query = own.start(tmp_path / "cp", "IN", "OUT", trigger=trigger, maxMessagesPerTrigger=10)
        with qm.open("OUT", output=False, browse=True, input=False) as out:

            def some_arrived() -> bool:
                put(own)
                return out.depth > 20

            wait_until(some_arrived)
        # it quiesces as long as this connection lasts; without it a task might start it again
        ended = beside.submit(spark_qm.command, "end", "QM2", how)
        text = failing(query.awaitTermination)
        qm.close()
        ended.result()
    assert re.match(rf"queue manager QM2.*: MQRC_[A-Z_]+ \(({reasons})", text), text
    with penstock.connect("QM2", spark_qm.home) as qm:
        own = SparkFixture(spark_qm.spark, qm, spark_qm.home)
        put(own)
        own.run(tmp_path / "cp", "IN", "OUT")
        assert own.bodies("OUT") == made and qm.recover() == []
        wait_until_alone(qm)
    penstock.delete("QM2", spark_qm.home)


def test_a_full_journal_ends_the_stream_which_continues_when_there_is_room(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    small = {"segment_size": 256 * KIB, "journal_limit": 1024 * KIB, "ring_size": 1024 * KIB}
    bodies = [b"%04d" % n + b"x" * 32 * KIB for n in range(12)]
    with another(spark_qm, "QM2", **small) as own:
        own.qm.queue("OUT", defpsist=False).close()
        own.put("IN", bodies[0], persistent=False)
        own.run(tmp_path / "cp", "IN", "OUT", persistence="queue")
        own.put("IN", *bodies[1:], persistent=False)  # they enter the journal as they are prepared
        own.put("FILLER", *[b"x" * 32 * KIB] * 18, persistent=True)
        text = failing(lambda: own.run(tmp_path / "cp", "IN", "OUT", persistence="queue"))
        assert text.startswith("queue manager QM2, queue IN: MQRC_STORAGE_MEDIUM_FULL (2192): ")
        assert own.bodies("IN") == bodies[1:] and own.qm.recover() == []
        own.qm.clear("FILLER")
        own.run(tmp_path / "cp", "IN", "OUT", persistence="queue")
        assert own.bodies("OUT") == bodies and own.qm.recover() == []


def test_where_executors_are_on_other_hosts_the_first_task_fails_and_takes_nothing(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    far = host.Host("far", "another boot", "another machine")

    class Far(PenstockDataSource):
        """A driver on the queue manager's host, with executors that are not there."""

        @classmethod
        def name(cls) -> str:
            return "far"

        def reader(self, schema: StructType) -> browse.BrowseReader:
            class Reader(browse.BrowseReader):
                def partitions(self) -> list[browse.Ranges]:
                    parts = super().partitions()
                    return [browse.Ranges(p.ranges, far) for p in parts]  # type: ignore

            return Reader(options.parse(self.options, options.READ), schema)

        def streamReader(self, schema: StructType) -> stream.StreamReader:
            class Reader(stream.StreamReader):
                def partitions(self, start: stream.Offset, end: stream.Offset) -> list[Slice]:
                    parts = super().partitions(start, end)
                    return [Slice(part.groups, far) for part in parts]  # type: ignore

            return Reader(options.parse(self.options, options.STREAM), schema)

        def writer(self, schema: StructType, overwrite: bool) -> sink.BatchWriter:
            made = sink.BatchWriter(options.parse(self.options, options.WRITE), schema)
            made.sink.where = far
            return made

    spark_qm.spark.dataSource.register(Far)
    place = {"queueManager": "QM1", "home": str(spark_qm.home)}
    expected = (
        f"this task runs on {host.here().name}, but queue manager QM1 lives on far: executors on "
        "other hosts reach it through penstock serve (option endpoint), or, with small batches, "
        "through the driver (option relay)"
    )
    spark_qm.qm.queue("OUT").close()
    spark_qm.put("IN", b"1", b"2")
    frame = spark_qm.table("IN", "body binary")
    far_frame = spark_qm.spark.read.format("far").options(**place).load("IN")
    assert failing(far_frame.collect) == expected
    write = frame.write.format("far").options(**place, queue="OUT").mode("append")
    assert failing(write.save) == expected
    cp = str(tmp_path / "cp")
    lines = (
        spark_qm.spark.readStream.format("far").options(**place).schema("body binary").load("IN")
    )
    sunk = spark_qm.set(lines.writeStream, queue="OUT").option("checkpointLocation", cp)
    query = sunk.trigger(availableNow=True).start()
    assert failing(query.awaitTermination) == expected
    assert spark_qm.bodies("OUT") == []
    spark_qm.run(tmp_path / "cp", "IN", "OUT", columns="body binary")
    assert spark_qm.bodies("OUT") == [b"1", b"2"] and spark_qm.qm.recover() == []

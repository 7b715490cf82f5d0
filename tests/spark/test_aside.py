"""BOTHRESH and BOQNAME at the take, and bodies that cannot be decoded: each message once, as a row,
on the backout queue, or on the dead-letter queue.

Steps are taken as in test_steps.py, but for the last tests, in which Spark runs.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as t
from spark_fixture import SparkFixture, column, failing, wait_until
from spark_steps import START, Bench, plan

import penstock
from penstock.headers.dlh import MQDLH
from penstock.spark.base import options
from penstock.spark.base.errors import OptionError, SchemaError, SourceError
from penstock.spark.base.ledger import look
from penstock.spark.source import stream
from penstock.spark.source.background import Background
from penstock.spark.source.browse import BrowseReader

KINDS = pytest.mark.parametrize("headers", ["false", "true"])


def reader(bench: Bench, kind: t.DataType | None = None, **given: str) -> stream.StreamReader:
    read = options.parse({**bench.base, "queue": "IN", **given}, options.STREAM)
    return stream.StreamReader(read, body_of(kind or t.StringType()))


def body_of(kind: t.DataType) -> t.StructType:
    return t.StructType([t.StructField("body", kind)])


def rows(source: stream.StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
    return [
        body
        for part in source.partitions(start, end)
        for batch in source.read(part)
        for body in batch.column("body").to_pylist()
    ]


def on(bench: Bench, name: str) -> list[penstock.Message]:
    with bench.qm.open(name, input=False, browse=True, output=False) as queue:
        return list(queue.browse())


def dead(bench: Bench, name: str = "DEAD") -> list[tuple[bytes, int, str]]:
    """Bodies, reasons and destinations of what is on a dead-letter queue."""
    found = []
    for message in on(bench, name):
        head = MQDLH().unpack(message.data[:172])
        assert message.format == "MQDEAD"
        found.append((message.data[172:], head["Reason"], str(head["DestQName"]).strip()))
    return found


@contextmanager
def told(text: str) -> Iterator[None]:
    with pytest.warns(RuntimeWarning, match=text):
        yield


def back_out(bench: Bench, times: int, count: int = 1) -> None:
    """Takes the first messages and backs them out, several times."""
    for _ in range(times):
        with pytest.raises(ZeroDivisionError), bench.qm.transaction():
            for _ in range(count):
                bench.source.get()
            raise ZeroDivisionError


KILLED_IN_THE_TAKE = """
import os, signal, sys
import penstock
from penstock.spark.base import options, schema
from penstock.spark.source.stream import StreamReader
given = dict(zip(("queueManager", "home", "queue"), sys.argv[1:]))
source = StreamReader(
    options.parse(given, options.STREAM), schema.struct_type({"body": "string"}))
end = source.latestOffset({"unit": 0}, source.getDefaultReadLimit())
penstock.QueueManager.prepare = lambda *_, **given: os.kill(os.getpid(), signal.SIGKILL)
source.partitions({"unit": 0}, end)
"""


def killed_while_it_takes(bench: Bench) -> None:
    """A driver in a process of its own, killed when it has taken the messages on IN."""
    depth = bench.source.depth
    command = [sys.executable, "-c", KILLED_IN_THE_TAKE, *bench.base.values(), "IN"]
    assert subprocess.run(command, check=False, timeout=120).returncode == -signal.SIGKILL
    bench.qm.maintain()
    wait_until(lambda: len(bench.left()) == depth > 0)


def put_poison(bench: Bench, threshold: int = 2, **attributes: Any) -> None:
    """A queue with five messages of which two have reached the threshold."""
    for name in ("POISON", "DEAD"):
        bench.qm.queue(name).close()
    bench.qm.alter("QMGR", deadq="DEAD")
    bench.qm.alter("QLOCAL", "IN", bothresh=threshold, **attributes)
    bench.fill(0, 2, priority=7, correl_id=b"c" * 24, expiry=600)
    back_out(bench, threshold, 2)
    bench.fill(2, 5)


@KINDS
def test_messages_that_have_reached_bothresh_go_to_boqname_with_their_micro_batch(
    bench: Bench, headers: str
) -> None:
    put_poison(bench, boqname="POISON")
    before = on(bench, "IN")[:2]
    source = reader(bench, includeProperties=headers)
    end = plan(source, START)
    with told("2 messages have reached BOTHRESH and were moved, 0 bodies"):
        assert rows(source, START, end) == ["0002", "0003", "0004"]
    assert on(bench, "POISON") == []  # in the unit of the take: not before that is done
    assert plan(source, end) == end
    found = on(bench, "POISON")
    for field in ("data", "msg_id", "correl_id", "priority", "persistent", "put_time",
                  "format", "ccsid", "encoding"):  # fmt: skip
        assert [getattr(m, field) for m in found] == [getattr(m, field) for m in before], field
    assert all(500 < (m.expiry or 0) <= 600 and m.backout_count == 0 for m in found)
    assert bench.left() == [] and bench.qm.recover() == []
    told_now = source.reportLatestOffset()
    assert told_now is not None and (told_now["backedOut"], told_now["badBodies"]) == (2, 0)
    source.stop()


def test_the_first_report_of_a_new_driver_has_the_counts_of_earlier_ones(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_poison(bench, boqname="POISON")
    source = reader(bench)
    end = plan(source, START)
    with told("2 messages have reached BOTHRESH"):
        source.partitions(START, end)
    assert plan(source, end) == end
    source.stop()
    bench.fill(5, 6)
    source = reader(bench)
    monkeypatch.setattr(Background, "is_idle", property(lambda _: False))  # it takes and commits
    assert plan(source, end)["unit"] == 2
    report = source.reportLatestOffset()
    assert report is not None and (report["depth"], report["backedOut"]) == (1, 2)
    source.stop()


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [({"boqname": "POISON"}, 2051), ({"boqname": "NONE"}, 2085), ({"boqname": ""}, 2362)],
)
def test_where_boqname_takes_them_not_they_go_to_the_dead_letter_queue_with_the_reason(
    bench: Bench, attributes: dict[str, str], reason: int
) -> None:
    put_poison(bench, **attributes)
    bench.qm.alter("QLOCAL", "POISON", put="DISABLED")
    source = reader(bench)
    end = plan(source, START)
    with told("2 messages have reached BOTHRESH"):
        assert rows(source, START, end) == ["0002", "0003", "0004"]
    assert plan(source, end) == end
    assert dead(bench) == [(b"0000", reason, "IN"), (b"0001", reason, "IN")]
    assert bench.left() == [] and bench.qm.recover() == []
    source.stop()


def test_where_no_queue_takes_them_the_stream_ends_and_nothing_is_moved_or_lost(
    bench: Bench,
) -> None:
    put_poison(bench, boqname="NONE")
    bench.qm.alter("QLOCAL", "DEAD", put="DISABLED")
    source = reader(bench)
    end = plan(source, START)
    with pytest.raises(
        SourceError, match=r"reason 2085, and there is no queue that takes it:.*2051"
    ):
        source.partitions(START, end)
    assert [status.gets for status in bench.qm.prepared_list()] == [5]
    source.stop()
    bench.qm.alter("QLOCAL", "DEAD", put="ENABLED")
    source = reader(bench)
    with told("2 messages have reached BOTHRESH"):
        assert rows(source, START, end) == ["0002", "0003", "0004"]
    assert plan(source, end) == end and len(dead(bench)) == 2
    source.stop()


def test_below_bothresh_and_without_one_messages_are_rows(bench: Bench) -> None:
    put_poison(bench, boqname="POISON")
    bench.qm.alter("QLOCAL", "IN", bothresh=3)
    source = reader(bench)
    end = plan(source, START)
    assert len(rows(source, START, end)) == 5 and plan(source, end) == end
    bench.qm.alter("QLOCAL", "IN", bothresh=0)
    bench.fill(5, 6)
    back_out(bench, 4)
    last = plan(source, end)
    assert rows(source, end, last) == ["0005"] and "aside" not in last
    assert on(bench, "POISON") == []
    source.stop()


def test_a_micro_batch_keeps_its_rule_when_it_is_planned_again(bench: Bench) -> None:
    put_poison(bench, boqname="POISON")
    source = reader(bench)
    end = plan(source, START)
    with told("2 messages"):
        first = rows(source, START, end)
    source.stop()  # the sink has it; killed before the commit log
    bench.qm.alter("QLOCAL", "IN", bothresh=0)
    source = reader(bench)
    assert rows(source, START, end) == first == ["0002", "0003", "0004"]
    [aside] = [one.xid for one in bench.qm.prepared_list() if one.puts]
    bench.qm.backout_prepared(aside)  # as a restart would lose what is not persistent
    with told("2 messages"):
        assert rows(source, START, end) == first
    assert plan(source, end) == end
    assert [m.data for m in on(bench, "POISON")] == [b"0000", b"0001"]
    entry = look(bench.qm, f"stream:{end['stream']}")
    assert entry is not None and entry["backedOut"] == 2 and bench.qm.recover() == []
    source.stop()


def test_a_driver_killed_while_it_takes_counts_as_a_backout_and_one_killed_later_does_not(
    bench: Bench,
) -> None:
    """So BOTHRESH 1 moves healthy messages: docs/spark.md says so."""
    for name in ("IN", "POISON"):
        bench.qm.queue(name).close()
    bench.qm.alter("QLOCAL", "IN", bothresh=2, boqname="POISON")
    bench.fill(0, 3)
    killed_while_it_takes(bench)
    assert [m.backout_count for m in on(bench, "IN")] == [1, 1, 1]
    source = reader(bench)
    end = plan(source, START)
    assert rows(source, START, end) == ["0000", "0001", "0002"]
    source.stop()  # as a driver that dies once it has prepared the micro-batch
    source = reader(bench)
    assert rows(source, START, end) == ["0000", "0001", "0002"]
    assert plan(source, end) == end and on(bench, "POISON") == []
    source.stop()


def test_a_row_that_no_query_survives_is_set_aside_by_resolve_and_bothresh(bench: Bench) -> None:
    """The recipe of docs/spark.md: the query fails at a row again and again."""
    bench.qm.queue("POISON").close()
    bench.fill(0, 6)
    source = reader(bench, maxMessagesPerTrigger="2")
    end = plan(source, START)
    assert rows(source, START, end) == ["0000", "0001"]
    source.stop()
    for _ in range(3):  # a failing query backs nothing out: the same rows each time
        source = reader(bench, maxMessagesPerTrigger="2")
        assert rows(source, START, end) == ["0000", "0001"]
        source.stop()
    bench.qm.alter("QLOCAL", "IN", bothresh=1, boqname="POISON")
    for xid in bench.qm.recover():  # penstock resolve --stream ID --backout
        bench.qm.backout_prepared(xid)
    source = reader(bench, maxMessagesPerTrigger="2")
    with told("2 messages have reached BOTHRESH"):
        assert rows(source, START, end) == []
    second = plan(source, end)
    assert rows(source, end, second) == ["0002", "0003"]
    source.commit(end)
    assert [m.data for m in on(bench, "POISON")] == [b"0000", b"0001"]
    source.stop()


def test_one_row_alone_is_set_aside_by_a_start_with_one_message_a_micro_batch(
    bench: Bench,
) -> None:
    bench.qm.queue("POISON").close()
    bench.fill(0, 4)  # 0001 is the one at which the query fails
    source = reader(bench)
    end = plan(source, START)
    assert len(rows(source, START, end)) == 4
    source.stop()

    def resolve() -> None:
        for xid in bench.qm.recover():
            bench.qm.backout_prepared(xid)

    resolve()
    source = reader(bench, maxMessagesPerTrigger="1")
    assert rows(source, START, end) == ["0000"]
    second = plan(source, end)
    assert rows(source, end, second) == ["0001"]
    source.commit(end)
    source.stop()
    bench.qm.alter("QLOCAL", "IN", bothresh=2, boqname="POISON")
    resolve()
    source = reader(bench)
    with told("1 messages have reached BOTHRESH"):
        assert rows(source, end, second) == ["0002", "0003"]
    assert plan(source, second) == second
    assert [m.data for m in on(bench, "POISON")] == [b"0001"] and bench.left() == []
    source.stop()


# ---- bad bodies ----

BAD = b"\xff\xfe bad"


def put_bad(bench: Bench) -> None:
    for name in ("DEAD", "MINE"):
        bench.qm.queue(name).close()
    bench.qm.alter("QMGR", deadq="DEAD")
    for body in (b"one", BAD, "drei \u00fc".encode(), b"\xc3"):
        bench.source.put(body)


def test_a_bad_body_ends_a_stream_whose_next_start_may_say_what_becomes_of_it(
    bench: Bench,
) -> None:
    put_bad(bench)
    source = reader(bench)
    end = plan(source, START)
    with pytest.raises(SourceError, match=r"is not UTF-8 \(message \d+\)"):
        rows(source, START, end)
    source.stop()
    source = reader(bench, onBadBody="deadLetter")
    with told("2 bodies could not be decoded and were moved to the dead-letter queue"):
        assert rows(source, START, end) == ["one", "drei \u00fc"]
    assert dead(bench) == []
    source.stop()
    source = reader(bench)  # its rule stays: its rows may have been written
    assert rows(source, START, end) == ["one", "drei \u00fc"]
    assert plan(source, end) == end
    assert dead(bench) == [(BAD, 2110, "IN"), (b"\xc3", 2110, "IN")]
    assert bench.left() == [] and bench.qm.recover() == []
    source.stop()


@KINDS
def test_bad_bodies_go_to_the_queue_of_the_option(bench: Bench, headers: str) -> None:
    put_bad(bench)
    source = reader(
        bench, onBadBody="deadLetter", deadLetterQueue="MINE", includeProperties=headers
    )
    end = plan(source, START)
    with told("2 bodies"):
        assert rows(source, START, end) == ["one", "drei \u00fc"]
    assert plan(source, end) == end
    assert [body for body, _, _ in dead(bench, "MINE")] == [BAD, b"\xc3"] and dead(bench) == []
    source.stop()


def test_bad_bodies_may_be_null_and_are_counted(bench: Bench) -> None:
    put_bad(bench)
    source = reader(bench, onBadBody="null")
    end = plan(source, START)
    with told("2 bodies could not be decoded and were null"):
        assert rows(source, START, end) == ["one", None, "drei \u00fc", None]
    assert plan(source, end) == end and dead(bench) == []
    now = source.reportLatestOffset()
    assert now is not None and now["badBodies"] == 2 and bench.qm.recover() == []
    source.stop()


JSON = t.StructType(
    [
        t.StructField("id", t.LongType()),
        t.StructField("name", t.StringType()),
        t.StructField("tags", t.ArrayType(t.StringType())),
        t.StructField("at", t.StructType([t.StructField("x", t.DoubleType())])),
    ]
)


def test_a_body_may_be_json_of_the_declared_type(bench: Bench) -> None:
    bench.qm.queue("DEAD").close()
    bench.qm.alter("QMGR", deadq="DEAD")
    good = [
        {"id": 1, "name": "a", "tags": ["x", "y"], "at": {"x": 1.5}, "more": True},
        {"id": None},
    ]
    bad: list[bytes] = [b'{"id": "one"}', b"not json", b'{"id": 1e40}', b"[1]", b"", b"\xff",
                        b'{"id": 99999999999999999999}', b'{"tags": "x"}', b'{"at": 1}',
                        b'{"id": 1.5}', b'{"id": true}', b'{"name": "\\ud800"}',
                        b"[" * 100_000]  # fmt: skip
    for body in (json.dumps(good[0]).encode(), *bad, json.dumps(good[1]).encode()):
        bench.source.put(body)
    source = reader(bench, JSON, onBadBody="deadLetter")
    end = plan(source, START)
    with told(f"{len(bad)} bodies"):
        found = rows(source, START, end)
    empty = {"name": None, "tags": None, "at": None}
    assert found == [{k: v for k, v in good[0].items() if k != "more"}, {"id": None, **empty}]
    assert plan(source, end) == end
    assert [body for body, _, _ in dead(bench)] == bad
    source.stop()


def test_another_type_of_body_waits_until_the_micro_batch_that_was_begun_is_done(
    bench: Bench,
) -> None:
    put_bad(bench)
    source = reader(bench, onBadBody="deadLetter")
    end = plan(source, START)
    with told("2 bodies"):
        rows(source, START, end)
    source.stop()
    other = reader(bench, t.BinaryType())
    with pytest.raises(SourceError, match="was begun with another type of the column body"):
        other.partitions(START, end)
    other.stop()


@pytest.mark.parametrize(
    "kind",
    [
        t.StructType([t.StructField("a", t.TimestampType())]),
        t.ArrayType(t.BinaryType()),
        t.MapType(t.StringType(), t.StringType()),
    ],
    ids=str,
)
def test_a_type_that_json_has_no_value_of_is_refused(bench: Bench, kind: t.DataType) -> None:
    with pytest.raises(SchemaError, match="column body is "):
        reader(bench, kind)


def test_a_batch_read_has_null_for_bad_bodies_and_refuses_to_take_them(bench: Bench) -> None:
    put_bad(bench)
    base = {**bench.base, "queue": "IN"}
    schema = body_of(t.StringType())
    browsing = BrowseReader(options.parse({**base, "onBadBody": "null"}, options.READ), schema)
    found = [
        body
        for part in browsing.partitions()
        for batch in browsing.read(part)
        for body in batch.column("body").to_pylist()
    ]
    assert found == ["one", None, "drei \u00fc", None] and len(bench.left()) == 4
    with pytest.raises(OptionError, match="a batch read takes none"):
        BrowseReader(options.parse({**base, "onBadBody": "deadLetter"}, options.READ), schema)


def test_more_messages_than_a_unit_holds_are_put_aside_in_several(bench: Bench) -> None:
    bench.qm.queue("DEAD").close()
    bench.qm.alter("QMGR", deadq="DEAD", maxumsgs=3)
    bodies = [b"\xff%d" % number for number in range(8)]
    for body in bodies:
        bench.source.put(body)
    source = reader(bench, onBadBody="deadLetter")
    end = plan(source, START)
    with told("8 bodies"):
        assert rows(source, START, end) == []
    assert [s.puts for s in bench.qm.prepared_list() if s.puts] == [3, 3, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows(source, START, end) == []  # they are there: nothing is put again
    assert plan(source, end) == end
    assert [body for body, _, _ in dead(bench)] == bodies and bench.qm.recover() == []
    source.stop()


# ---- in Spark ----


@pytest.mark.timeout(900)  # several queries
def test_a_query_with_poison_and_bad_bodies_has_the_other_rows_and_counts_both(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    qm = spark_qm.qm
    for name in ("OUT", "POISON", "DEAD"):
        qm.queue(name).close()
    qm.queue("IN").close()
    qm.alter("QMGR", deadq="DEAD")
    qm.alter("QLOCAL", "IN", bothresh=1, boqname="POISON")
    spark_qm.put("IN", b'{"id": 0}')
    with qm.queue("IN") as queue, pytest.raises(ZeroDivisionError), qm.transaction():
        queue.get()
        raise ZeroDivisionError
    spark_qm.put("IN", b'{"id": 1}', b"bad", b'{"id": 2}')
    lines = spark_qm.set(spark_qm.spark.readStream, onBadBody="deadLetter")
    lines = lines.schema("body struct<id:int>").load("IN").selectExpr("string(body.id) AS value")
    for number in (2, 3):
        sunk = spark_qm.set(lines.writeStream, queue="OUT")
        sunk = sunk.option("checkpointLocation", str(tmp_path / "cp"))
        query = sunk.trigger(availableNow=True).start()
        query.awaitTermination()
        assert sorted(spark_qm.bodies("OUT")) == [b"%d" % n for n in range(1, number + 1)]
        spark_qm.put("IN", b'{"id": 3}')
    assert spark_qm.bodies("POISON") == [b'{"id": 0}']
    assert [body[172:] for body in spark_qm.bodies("DEAD")] == [b"bad"]
    [progress] = [p for p in query.recentProgress if p.numInputRows]
    report = json.loads(progress.sources[0].latestOffset)
    assert (report["backedOut"], report["badBodies"]) == (1, 1) and qm.recover() == []


def test_sql_reads_json_bodies_of_a_queue_as_a_table(spark_qm: SparkFixture) -> None:
    spark_qm.put("IN", b'{"id": 1}', b"bad")
    assert failing(spark_qm.table("IN", "body struct<id:int>").collect).startswith(
        "a body on the queue is not JSON of struct<id: int32> (message "
    )
    frame = spark_qm.table("IN", "body struct<id:int>", onBadBody="null")
    assert column(frame.selectExpr("body.id AS id"), "id") == [1, None]

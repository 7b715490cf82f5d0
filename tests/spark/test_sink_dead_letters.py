"""Rows that a sink cannot put go to the queue of the option deadLetterQueue, each with its reason,
or fail the job; rows go to the queues that a column names.

Steps are taken as in test_steps.py, but for the last test.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from spark_fixture import SparkFixture
from spark_steps import TEXT, Bench, Put, batch_writer, stream_writer

import penstock
from penstock.headers.dlh import MQDLH
from penstock.spark.base.errors import SourceError
from penstock.spark.base.ledger import look

ROUTED = {**TEXT, "queue": "string"}


def dead(bench: Bench, name: str = "DEAD") -> list[tuple[str, int, bytes]]:
    """Destination, reason and body of what is on a dead-letter queue."""
    found = []
    with bench.qm.open(name, input=False, browse=True, output=False) as queue:
        for message in queue.browse():
            assert message.format == "MQDEAD"
            head = MQDLH().unpack(message.data[:172])
            found.append((str(head["DestQName"]).strip(), head["Reason"], message.data[172:]))
    return found


def bodies(bench: Bench, name: str = "OUT") -> list[bytes]:
    with bench.qm.open(name, input=False, browse=True, output=False) as queue:
        return [message.data for message in queue.browse()]


@pytest.fixture(autouse=True)
def dead_letter_queue(bench: Bench) -> None:
    bench.qm.queue("DEAD").close()


def written(bench: Bench, put: Put, table: pa.Table, expected: str, **given: str) -> None:
    """A batch write of the table; the text of its warning."""
    columns = {field.name: _type(field.type) for field in table.schema}
    writer = batch_writer(bench, columns, deadLetterQueue="DEAD", **given)
    told = [put(writer, table)]
    with pytest.warns(RuntimeWarning, match=expected):
        writer.commit(told)
    assert bench.qm.recover() == []


def _type(kind: pa.DataType) -> str:
    names = {pa.int64(): "bigint", pa.float64(): "double", pa.binary(): "binary"}
    return "map<string,string>" if pa.types.is_map(kind) else names.get(kind, "string")


def test_rows_that_are_too_long_or_have_no_body_go_there_and_all_others_to_their_queue(
    bench: Bench, put: Put
) -> None:
    bench.qm.alter("QLOCAL", "OUT", maxmsgl=10)
    values = [f"{n}" if n % 7 else "x" * (11 + n) for n in range(100)]
    rows: list[str | None] = [*values, None]
    written(
        bench, put, pa.table({"value": pa.array(rows, pa.string())}),
        "16 of 101 rows could not be put and are on DEAD: 1 with reason 2004, 15 with reason 2030",
        queue="OUT",
    )  # fmt: skip
    assert bodies(bench) == [value.encode() for value in values if len(value) <= 10]
    found = dead(bench)
    assert found[0] == ("OUT", 2004, b"")
    assert found[1:] == [("OUT", 2030, v.encode()) for v in values if len(v) > 10]


def test_rows_that_meet_a_full_queue_go_there_and_the_room_is_used(bench: Bench, put: Put) -> None:
    bench.qm.alter("QLOCAL", "OUT", maxdepth=13)
    values = [f"{n}" for n in range(40)]
    written(bench, put, pa.table({"value": values}), "27 with reason 2053", queue="OUT")
    assert bodies(bench) == [value.encode() for value in values[:13]]
    assert dead(bench) == [("OUT", 2053, value.encode()) for value in values[13:]]


def test_rows_of_queues_that_take_none_go_there_and_the_others_to_the_queues_they_name(
    bench: Bench, put: Put
) -> None:
    for name in ("A", "B", "SHUT"):
        bench.qm.queue(name).close()
    bench.qm.alter("QLOCAL", "SHUT", put="DISABLED")
    names = ["A", "NONE", "B", "SHUT", None, "not a name", "B", "A", "SHUT", "\u00fc" * 60]
    table = pa.table({"value": [f"{n}" for n in range(len(names))], "queue": names})
    written(bench, put, table, "6 of 10 rows")
    assert (bodies(bench, "A"), bodies(bench, "B")) == ([b"0", b"7"], [b"2", b"6"])
    assert sorted(dead(bench), key=lambda one: one[2]) == [
        ("NONE", 2085, b"1"), ("SHUT", 2051, b"3"), ("", 2152, b"4"), ("not a name", 2152, b"5"),
        ("SHUT", 2051, b"8"), ("?" * 48, 2152, b"9"),
    ]  # fmt: skip


def test_a_row_with_a_wrong_field_goes_there_with_the_fields_that_it_has_or_without(
    bench: Bench, put: Put
) -> None:
    properties = pa.array([None, {"": "x"}, {"a": "1"}, None], pa.map_(pa.string(), pa.string()))
    table = pa.table({
        "value": ["good", "bad property", "good too", "bad expiry"],
        "expiry": [60.0, 60.0, 60.0, -5.0],
        "priority": [1, 2, 3, 4],
        "properties": properties,
    })  # fmt: skip
    written(bench, put, table, "2 of 4 rows", queue="OUT")
    assert [body[-8:] for body in bodies(bench)] == [b"good too", b"good"]
    assert dead(bench) == [("OUT", 2442, b"bad property"), ("OUT", 2013, b"bad expiry")]
    with bench.qm.open("DEAD", input=False, browse=True, output=False) as queue:
        kept = [(message.priority, message.expiry is None) for message in queue.browse()]
    assert kept == [(2, False), (0, True)]


def test_a_header_has_the_format_encoding_and_ccsid_of_the_row(bench: Bench, put: Put) -> None:
    bench.qm.alter("QLOCAL", "OUT", maxmsgl=1)
    table = pa.table({
        "value": pa.array([b"ab", b"cd"], pa.binary()), "format": ["MINE", None],
        "ccsid": [500, None], "encoding": [785, None], "correl_id": [b"c" * 24, None],
    })  # fmt: skip
    written(bench, put, table, "2 of 2", queue="OUT")
    with bench.qm.open("DEAD", input=False, browse=True, output=False) as queue:
        first, second = queue.browse()
    head = MQDLH().unpack(first.data[:172])
    assert (str(head["Format"]).strip(), head["CodedCharSetId"], head["Encoding"]) == (
        "MINE", 500, 785,
    )  # fmt: skip
    assert first.correl_id == b"c" * 24 and second.persistent


def test_without_the_option_such_a_row_fails_the_job_and_nothing_is_put(
    bench: Bench, put: Put
) -> None:
    bench.qm.alter("QLOCAL", "OUT", maxmsgl=3)
    writer = batch_writer(bench, TEXT, queue="OUT")
    with pytest.raises(SourceError, match=r"2030.*\(row 1 of partition 0"):
        put(writer, pa.table({"value": ["a", "long"]}))
    assert bench.qm.recover() == [] and bodies(bench) == []


def test_a_row_that_the_dead_letter_queue_does_not_take_fails_the_job_and_nothing_is_put(
    bench: Bench, put: Put
) -> None:
    bench.qm.alter("QLOCAL", "OUT", maxmsgl=3)
    bench.qm.alter("QLOCAL", "DEAD", maxmsgl=175)
    writer = batch_writer(bench, TEXT, queue="OUT", deadLetterQueue="DEAD")
    with pytest.raises(
        SourceError, match="reason 2030, is not taken by the dead-letter queue DEAD"
    ):
        put(writer, pa.table({"value": ["a", "long"]}))
    assert bench.qm.recover() == [] and bodies(bench) == [] == bodies(bench, "DEAD")
    with pytest.raises(SourceError, match="there is no queue NOWHERE"):
        batch_writer(bench, TEXT, queue="OUT", deadLetterQueue="NOWHERE")


def test_an_error_that_is_of_no_row_fails_the_job_with_the_option_too(
    bench: Bench, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = batch_writer(bench, TEXT, queue="OUT", deadLetterQueue="DEAD")

    def full(*_: Any, **__: Any) -> None:
        raise penstock.StorageMediumFull(2192, "the disk is full")

    with monkeypatch.context() as patch, pytest.raises(SourceError, match="2192"):
        patch.setattr(penstock.Queue, "put_batch", full)
        put(writer, pa.table({"value": ["a"]}))
    assert bench.qm.recover() == [] and dead(bench) == []


@pytest.mark.parametrize("most", [1, 4, 10])
def test_units_hold_both_kinds_of_rows_within_maxumsgs_and_a_repeated_batch_is_put_once(
    bench: Bench, put: Put, most: int
) -> None:
    bench.qm.alter("QMGR", maxumsgs=most)
    bench.qm.alter("QLOCAL", "OUT", maxmsgl=2)
    values = [f"{n:03}" if n % 3 == 0 else f"{n}" for n in range(20)]
    for _ in range(2):  # the driver was killed after its commit: Spark repeats the batch
        writer = stream_writer(bench, deadLetterQueue="DEAD")
        told = [put(writer, pa.table({"value": values}), batch=5)]
        assert all(status.puts <= most for status in bench.qm.prepared_list())
        if bodies(bench):
            writer.commit(told, 5)
        else:
            with pytest.warns(RuntimeWarning, match="7 of 20 rows"):
                writer.commit(told, 5)
        assert bodies(bench) == [value.encode() for value in values if len(value) < 3]
        assert [body for _, _, body in dead(bench)] == [b"%03d" % n for n in range(0, 20, 3)]
        assert bench.qm.recover() == []
    entry = look(bench.qm, "sink:query-1")
    assert entry is not None and (entry["messages"], entry["deadLetters"]) == (20, 7)


def test_a_stream_routes_its_rows_and_dead_letters_in_spark(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    for name in ("A", "B", "DEAD"):
        spark_qm.qm.queue(name).close()
    spark_qm.put("IN", *[b"%d" % n for n in range(30)])
    lines = spark_qm.set(spark_qm.spark.readStream).schema("body string").load("IN")
    routed = lines.selectExpr("body AS value", "element_at(array('A','B','NO'), int(body) % 3 + 1)"
                              " AS queue")  # fmt: skip
    sunk = spark_qm.set(routed.writeStream, deadLetterQueue="DEAD")
    sunk = sunk.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True)
    sunk.start().awaitTermination()
    assert spark_qm.bodies("A") == [b"%d" % n for n in range(0, 30, 3)]
    assert spark_qm.bodies("B") == [b"%d" % n for n in range(1, 30, 3)]
    assert [body[172:] for body in spark_qm.bodies("DEAD")] == [b"%d" % n for n in range(2, 30, 3)]
    assert spark_qm.qm.recover() == [] and "10 of 30 rows could not be put" in spark_qm.said()

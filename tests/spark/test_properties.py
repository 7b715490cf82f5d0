"""Message properties: an MQRFH2 in front of the body, from the sinks and to the sources."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from spark_fixture import SparkFixture
from spark_steps import START, Bench, Put, batch_writer, plan, stream_writer

import penstock
from penstock.headers import rfh2
from penstock.spark.base import options
from penstock.spark.base.errors import SourceError
from penstock.spark.base.schema import MESSAGE, struct_type
from penstock.spark.source import arrow_from_messages as rows
from penstock.spark.source import browse

MAP = pa.map_(pa.string(), pa.string())
SHOWN = ("body", "properties", "format", "ccsid", "encoding")
PUT = {"body": "binary", "properties": "map<string,string>"}


def maps(*values: Any) -> pa.Array:
    return pa.array([None if value is None else list(value.items()) for value in values], MAP)


def browsed(bench: Bench, queue: str = "OUT", columns: Any = SHOWN, **given: str) -> list[Any]:
    """The rows of a queue; a map as a dict."""
    read = options.parse({**bench.base, "queue": queue, **given}, options.READ)
    reader = browse.BrowseReader(read, struct_type({name: MESSAGE[name] for name in columns}))
    return listed(batch for part in reader.partitions() for batch in reader.read(part))


def streamed(bench: Bench, **given: str) -> list[Any]:
    """The same of a micro-batch of the stream over queue IN."""
    reader = bench.reader(**given)
    parts = reader.partitions(START, plan(reader, START))
    found = listed(batch.select(list(SHOWN)) for part in parts for batch in reader.read(part))
    reader.stop()
    return found


def listed(batches: Any) -> list[Any]:
    found = []
    for batch in batches:
        for row in batch.to_pylist():
            if isinstance(row.get("properties"), list):
                row["properties"] = dict(row["properties"])
            found.append(tuple(row.values()))
    return found


def put_raw(bench: Bench, *bodies: bytes, **fields: Any) -> None:
    bench.source.put_batch(list(bodies), persistent=True, **fields)


# ---- sinks ----


def test_a_row_with_properties_is_put_behind_a_header_and_the_others_as_they_are(
    bench: Bench, put: Put
) -> None:
    columns = {**PUT, "queue": "string", "format": "string", "ccsid": "int", "encoding": "int"}
    table = pa.table({
        "body": [b"skipped", b"one", b"two", b"", b"four", b"five"],
        "properties": maps({"no": "x"}, {"a": "1", "jms.Dst": None}, None, {"b": "<"}, {}, None),
        "queue": ["OUT", "OUT", "OUT", "OUT", "IN", "IN"],
        "format": ["", "MQSTR", "MQSTR", None, "MQSTR", None],
        "ccsid": [1, 819, 437, None, 819, None],
        "encoding": [1, 273, 273, None, 273, None],
    })  # fmt: skip
    writer = batch_writer(bench, columns)
    writer.commit([put(writer, table.slice(1))])
    said = [(m.data, m.format, m.ccsid, m.encoding) for m in bench.target.browse()]
    assert said == [
        (rfh2.build({"a": "1", "jms.Dst": None}, "MQSTR", 819, 273) + b"one", "MQHRF2", 1208, 546),
        (b"two", "MQSTR", 437, 273),
        (rfh2.build({"b": "<"}), "MQHRF2", 1208, 546),
    ]
    said = [(m.data, m.format, m.ccsid, m.encoding) for m in bench.source.browse()]
    assert said == [(b"four", "MQSTR", 819, 273), (b"five", "", 1208, 546)]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_bodies_of_each_type_keep_the_format_that_they_have_without_properties(
    bench: Bench, put: Put, kind: Any
) -> None:
    is_text = kind in (pa.string(), pa.large_string())
    writer = stream_writer(bench, {**PUT, "body": "string" if is_text else "binary"})
    bodies = pa.array(["no", "grün", "", "rot"], pa.string()).cast(pa.binary()).cast(kind)
    table = pa.table({"body": bodies, "properties": maps({"no": "x"}, None, {"a": "b"}, {})})
    writer.commit([put(writer, table.slice(1))], 0)
    plain = pa.table({"body": bodies, "properties": maps(None, None, {}, None)})
    writer.commit([put(writer, plain.slice(1), batch=1)], 1)
    form = "MQSTR" if is_text else ""
    expected = [("grün".encode(), form), (b"", form), (b"rot", form)]
    told = [
        (m.data, m.format)
        if m.format != "MQHRF2"
        else (m.data[rfh2.parse(m.data, m.encoding).length :], rfh2.parse(m.data, 546).format)
        for m in bench.target.browse()
    ]
    assert told == expected * 2
    assert [m.format == "MQHRF2" for m in bench.target.browse()].count(True) == 1


def test_maps_with_entries_behind_a_null_are_null(bench: Bench, put: Put) -> None:
    made = pa.MapArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), pa.array(["a", "b"]), pa.array(["1", "2"])
    )
    hidden = pa.Array.from_buffers(
        MAP, 2, [pa.py_buffer(b"\x02"), made.buffers()[1]], children=[made.values]
    )
    writer = batch_writer(bench, PUT, queue="OUT")
    writer.commit([put(writer, pa.table({"body": [b"x", b"y"], "properties": hidden}))])
    shown = browsed(bench, columns=("body", "properties"), includeProperties="true")
    assert shown == [(b"x", None), (b"y", {"b": "2"})]


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        (
            {"a b": "x"},
            r"\(2442\): property 'a b': a name is of letters.* \(row 2 of partition 0\)",
        ),
        ({"JMSType": "x"}, r"\(2442\): property 'JMSType': names that begin with JMS"),
        ({"n" * 4096: "x"}, r"\(2513\): the name .* has 4096 characters; 4095 is the most"),
        ({"a": "\0"}, r"\(2466\): property 'a': .* \(row 2 of partition 0\)"),
    ],
)
def test_properties_that_cannot_be_kept_are_refused_and_nothing_is_put(
    bench: Bench, put: Put, properties: dict[str, str], text: str
) -> None:
    writer = batch_writer(bench, PUT, queue="OUT")
    table = pa.table({"body": [b"1", b"2", b"3"], "properties": maps(None, {"k": "v"}, properties)})
    with pytest.raises(SourceError, match=text):
        put(writer, table)
    assert list(bench.target.browse()) == [] and bench.qm.recover() == []


def test_a_format_that_is_too_long_is_refused_behind_a_header_too(bench: Bench, put: Put) -> None:
    writer = batch_writer(bench, {**PUT, "format": "string"}, queue="OUT")
    table = pa.table({"body": [b"1"], "properties": maps({"k": "v"}), "format": ["MQSTRINGS"]})
    with pytest.raises(
        SourceError, match=r"\(2334\): format 'MQSTRINGS' has more .* \(row 0 of partition 0"
    ):
        put(writer, table)


def test_properties_count_for_maxmsgl(bench: Bench, put: Put) -> None:
    bench.qm.alter("QLOCAL", "OUT", maxmsgl=100)
    writer = batch_writer(bench, PUT, queue="OUT")
    table = pa.table({"body": [b"x" * 20] * 2, "properties": maps(None, {"k": "v" * 60})})
    with pytest.raises(SourceError, match=r"MQRC_MSG_TOO_BIG_FOR_Q \(2030\)"):
        put(writer, table)
    assert list(bench.target.browse()) == [] and bench.qm.recover() == []


# ---- sources ----


def fill(bench: Bench) -> list[bytes]:
    """Messages with and without headers, of both byte orders, and one whose header is broken."""
    first = rfh2.build({"a": "1", "n": None}, "MQSTR", 819, 546, own_encoding=273)
    chain = rfh2.build({"a": "1"}, "MQHRF2", 500, 546) + rfh2.build({"jms.Dst": "q"}, "X", -2, 273)
    made = [b"plain", first + b"one", rfh2.build({}), chain + b"two", first[:-1], b"last"]
    put_raw(
        bench, *made, format=["MQSTR", *["MQHRF2"] * 4, ""], ccsid=[819, *[1208] * 4, 500],
        encoding=[546, 273, 546, 546, 273, 273],
    )  # fmt: skip
    return made


@pytest.mark.parametrize("mode", ["browse", "stream"])
def test_with_the_option_a_header_becomes_the_properties_and_the_body_what_follows(
    bench: Bench, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = fill(bench)
    with caplog.at_level(logging.WARNING, "penstock.spark"):
        if mode == "browse":
            shown = browsed(bench, "IN", includeProperties="true")
        else:
            shown = streamed(bench, includeProperties="true")
    assert shown == [
        (b"plain", None, "MQSTR", 819, 546),
        (b"one", {"a": "1", "n": None}, "MQSTR", 819, 546),
        (b"", {}, "", 1208, 546),
        (b"two", {"a": "1", "jms.Dst": "q"}, "X", 500, 273),
        (made[4], None, "MQHRF2", 1208, 273),
        (b"last", None, "", 500, 273),
    ]
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("1 messages have an MQRFH2 that is not valid and stays")
    assert "MQRC_RFH_ERROR (2334)" in caplog.messages[0]


@pytest.mark.parametrize("given", [{}, {"includeProperties": "false"}])
def test_without_the_option_bodies_are_as_stored_and_the_column_is_null(
    bench: Bench, given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = fill(bench)
    monkeypatch.setattr(rows, "_without_headers", None)  # not called
    for shown in (browsed(bench, "IN", **given), streamed(bench, **given)):
        assert [row[:3] for row in shown] == [
            (body, None, form)
            for body, form in zip(made, ["MQSTR", *["MQHRF2"] * 4, ""], strict=True)
        ]


def test_columns_are_the_same_whichever_of_them_are_named(bench: Bench) -> None:
    fill(bench)
    all_of_them = browsed(bench, "IN", includeProperties="true")
    for at, name in enumerate(SHOWN):
        one = browsed(bench, "IN", (name,), includeProperties="true")
        assert one == [(row[at],) for row in all_of_them]


def test_bodies_are_parsed_only_where_the_format_is_mqhrf2(bench: Bench) -> None:
    put_raw(bench, *[b"%d" % n for n in range(50)], format="MQSTR")
    batch = bench.source.browse_batch(99, first=True)[3:40]
    same, none = rows._without_headers(batch)
    assert same is batch and none is None
    schema = pa.schema([("body", pa.binary()), ("properties", MAP)])
    made = rows.Rows("IN", schema, True).made(batch)
    data = np.frombuffer(made.column("body").buffers()[2], np.uint8)
    assert np.shares_memory(data, batch.bodies)


def test_a_slice_of_a_batch_has_its_bodies_without_their_headers(bench: Bench) -> None:
    header = rfh2.build({"k": "v" * 500}, "MQSTR")
    put_raw(bench, *[header + b"x" * 10, b"y" * 10] * 10, format=["MQHRF2", "MQSTR"] * 10)
    batch = bench.source.browse_batch(99, first=True)[1:]
    schema = pa.schema([("body", pa.binary()), ("properties", MAP)])
    made = rows.Rows("IN", schema, True).made(batch)
    assert made == rows.Rows("IN", schema, True).made(batch)  # it is as it was
    assert made.column("body").to_pylist() == ([b"x" * 10, b"y" * 10] * 10)[1:]
    assert made.column("properties").to_pylist() == ([[("k", "v" * 500)], None] * 10)[1:]


def test_no_bytes_behind_the_format_end_a_read(bench: Bench) -> None:
    good = rfh2.build({"a": "1"}, "MQSTR") + b"body"
    rng = np.random.default_rng(7)
    made = [good[:at] for at in range(len(good))]
    made += [good[:at] + bytes([good[at] ^ 0x81]) + good[at + 1 :] for at in range(len(good))]
    made += [rng.bytes(int(size)) for size in rng.integers(0, 90, 50)]
    put_raw(bench, *made, format="MQHRF2")
    shown = browsed(bench, "IN", includeProperties="true")
    for body, (left, properties, form, _, _) in zip(made, shown, strict=True):
        if properties is None:
            assert (left, form) == (body, "MQHRF2")
        else:
            assert left == body[len(body) - len(left) :] and len(left) < len(body)


# ---- through Spark ----


def test_properties_go_through_a_sink_a_stream_and_another_sink(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    for name in ("A", "B", "C"):
        spark_qm.qm.queue(name).close()
    frame = spark_qm.spark.range(0, 60, 1, 1).selectExpr(
        "if(id % 2 = 0, 'A', 'B') AS queue",
        "concat('row ', id) AS value",
        "if(id % 3 = 0, map('id', cast(id AS string), 'shop.name', null), null) AS properties",
    )
    spark_qm.set(frame.write).mode("append").save()
    everything = "queue string, body string, format string, properties map<string,string>"

    def expected(queue: str, remainder: int) -> list[tuple[Any, ...]]:
        return [
            (queue, f"row {n}", "MQSTR", {"id": str(n), "shop.name": None} if n % 3 == 0 else None)
            for n in range(remainder, 60, 2)
        ]

    def shown(queue: str) -> list[tuple[Any, ...]]:
        table = spark_qm.table(queue, everything, includeProperties=True)
        return [tuple(row) for row in table.collect()]

    assert shown("A") == expected("A", 0) and shown("B") == expected("B", 1)
    spark_qm.run(
        tmp_path / "checkpoint", "A", "C", includeProperties=True,
        columns="body string, format string, properties map<string,string>",
    )  # fmt: skip
    assert shown("A") == [] and shown("C") == expected("C", 0)
    raw = spark_qm.bodies("C")
    assert raw[1] == b"row 2"
    assert raw[0] == rfh2.build({"id": "0", "shop.name": None}, "MQSTR") + b"row 0"
    row = spark_qm.table("C").collect()[0]
    assert (row["format"], row["properties"], bytes(row["body"])) == ("MQHRF2", None, raw[0])
    with spark_qm.qm.open("C") as queue:
        assert isinstance(queue.get(), penstock.Message)

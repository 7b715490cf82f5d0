"""Errors of a sink name the row; an expiry may be a decimal; messages name the application.

Steps are taken as in test_steps.py.
"""

from __future__ import annotations

import re
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DecimalType, StringType, StructField, StructType
from spark_steps import TEXT, Bench, Put, batch_writer

from penstock.spark.base import host, options
from penstock.spark.base.errors import OptionError, SourceError
from penstock.spark.sink.writer import BatchWriter

COLUMNS = {"value": "string", "queue": "string", "correl_id": "binary", "priority": "int"}
PROPERTIES = pa.map_(pa.string(), pa.string())


def rows(count: int, **fields: Any) -> dict[str, list[Any]]:
    """Columns of that many rows, for the queues OUT and IN in turn; fields by index."""
    made: dict[str, list[Any]] = {
        "value": ["x"] * count,
        "queue": ["OUT", "IN"] * (count // 2),
        "correl_id": [b"%024d" % number for number in range(count)],
        "priority": [1] * count,
    }
    for name, (index, value) in fields.items():
        made[name][index] = value
    return made


def failure(put: Put, writer: BatchWriter, table: pa.Table, partition: int) -> str:
    with pytest.raises(SourceError) as caught:
        put(writer, table, partition)
    return str(caught.value)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"priority": (17, -4)}, "MQRC_PRIORITY_ERROR (2050): priority -4 is negative"),
        ({"value": (17, None)}, "the body of a row is null; it may be empty"),
        ({"value": (17, "y" * 101)}, "MQRC_MSG_TOO_BIG_FOR_Q (2030): queue IN: "),
        ({"queue": (17, "NONE")}, "queue NONE of a row: MQRC_UNKNOWN_OBJECT_NAME (2085): "),
        ({"queue": (17, None)}, "a queue is null, and there is no option queue"),
        ({"correl_id": (17, b"z" * 25)}, "MQRC_CORREL_ID_ERROR (2207): correl_id has 25 bytes, "),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_error_names_partition_row_and_keys(
    bench: Bench, put: Put, fields: dict[str, Any], text: str
) -> None:
    bench.qm.alter("QLOCAL", "IN", maxmsgl=100)
    bench.qm.alter("QMGR", maxumsgs=2)  # rows are put in parts
    writer = batch_writer(bench, COLUMNS)
    made = rows(20, **fields)
    schema = pa.schema(
        {
            "value": pa.string(),
            "queue": pa.string(),
            "correl_id": pa.binary(),
            "priority": pa.int32(),
        }
    )
    batches = pa.Table.from_batches(
        pa.table(made, schema=schema).to_batches(max_chunksize=6)  # and come in batches
    )
    told = failure(put, writer, batches, 4)
    keys = [f"{name} {made[name][17]!r:.80}" for name in ("queue", "correl_id") if made[name][17]]
    assert text in told and told.endswith(f" ({', '.join(['row 17 of partition 4', *keys])})")
    assert re.search(r"message \d", told) is None  # what was put together is no user's business
    assert bench.qm.recover() == [] and bench.source.depth == bench.target.depth == 0


def test_an_error_of_properties_names_the_row_of_the_partition(bench: Bench, put: Put) -> None:
    writer = batch_writer(bench, {**TEXT, "properties": "map<string,string>"}, queue="OUT")
    values = [{"good": "1"}] * 7 + [{"a b": "1"}] + [None] * 4
    table = pa.table({"value": ["x"] * 12, "properties": pa.array(values, PROPERTIES)})
    told = failure(put, writer, pa.Table.from_batches(table.to_batches(max_chunksize=5)), 2)
    assert "MQRC_PROPERTY_NAME_ERROR (2442)" in told and told.endswith(" (row 7 of partition 2)")


def test_an_error_that_is_of_no_row_stays_as_it_is(bench: Bench, put: Put) -> None:
    writer = batch_writer(bench, TEXT, queue="OUT")
    bench.qm.alter("QLOCAL", "OUT", put=False)
    told = failure(put, writer, pa.table({"value": ["a", "b"]}), 0)
    assert "MQRC_PUT_INHIBITED (2051)" in told


def test_an_expiry_may_be_a_decimal_of_any_precision(bench: Bench, put: Put) -> None:
    for precision, scale, text in ((1, 1, "0.9"), (10, 2, "60.5"), (38, 18, "60.5")):
        schema = StructType(
            [
                StructField("value", StringType()),
                StructField("expiry", DecimalType(precision, scale)),
            ]
        )
        given = {**bench.base, "queue": "OUT"}
        writer = BatchWriter(options.parse(given, options.WRITE), schema)
        values = pa.array([Decimal(text), None], pa.decimal128(precision, scale))
        told = put(writer, pa.table({"value": ["a", "b"], "expiry": values}))
        writer.commit([told])
    with bench.qm.open("OUT", input=False, browse=True) as queue:
        found = [message.expiry for message in queue.browse()]
    assert found.count(None) == 3
    assert sum(60 < expiry <= 60.5 for expiry in found if expiry is not None) == 2


def test_an_expiry_of_0_is_the_shortest_one_and_a_negative_one_is_2013(
    bench: Bench, put: Put
) -> None:
    writer = batch_writer(bench, {**TEXT, "expiry": "double"}, queue="OUT")
    told = put(writer, pa.table({"value": ["a", "b"], "expiry": [60.0, 0.0]}))
    [unit] = [bench.qm.browse_prepared(xid) for xid in told.xids]
    assert unit.descriptors["expiry"].tolist()[0] > 590 and unit.descriptors["expiry"][1] <= 1
    writer.commit([told])
    time.sleep(0.2)
    assert [message.data for message in bench.target.browse()] == [b"a"]
    refused = failure(put, writer, pa.table({"value": ["a", "b"], "expiry": [1.5, -1.0]}), 1)
    assert "MQRC_EXPIRY_ERROR (2013): expiry -1.0 is not above 0" in refused
    assert refused.endswith(" (row 1 of partition 1)")


@pytest.mark.parametrize(("given", "low", "high"), [("60.5", 590, 605), ("0", 0, 1)])
def test_the_option_expiry_is_for_rows_whose_column_is_null_or_missing(
    bench: Bench, put: Put, given: str, low: int, high: int
) -> None:
    for columns, rows, chosen in (
        (TEXT, {"value": ["a"]}, 0),
        ({**TEXT, "expiry": "int"}, {"value": ["a", "b"], "expiry": [900, None]}, 1),
        ({**TEXT, "expiry": "int"}, {"value": ["a"], "expiry": pa.array([None], pa.int32())}, 0),
    ):
        writer = batch_writer(bench, columns, queue="OUT", expiry=given)
        [xid] = put(writer, pa.table(rows)).xids
        left = bench.qm.browse_prepared(xid).descriptors["expiry"]
        assert low <= left[chosen] <= high and (chosen == 0 or 8900 < left[0] <= 9000)
        bench.qm.backout_prepared(xid)


@pytest.mark.parametrize("wrong", ["-1", "soon", "nan", "1e9", ""])
def test_an_option_expiry_that_is_no_number_of_seconds_is_refused(bench: Bench, wrong: str) -> None:
    with pytest.raises(OptionError, match=re.escape("it takes seconds from 0 to 99999999.9")):
        batch_writer(bench, TEXT, queue="OUT", expiry=wrong)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["java", "--conf", "spark.app.name=nightly load", "pyspark-shell"], "nightly load"),
        (["java", "--name", "load", "/jobs/load.py", "--name", "mine"], "load"),
        (["java", "/jobs/load.py", "an argument"], "load.py"),
        (["java", "Backend", "--app-id", "app-20260101-0001", "--cores", "2"], "app-20260101-0001"),
        (["java", "Other"], None),
    ],
)
def test_the_application_is_read_from_the_command_line_of_the_jvm(
    arguments: list[str], name: str | None
) -> None:
    assert host.application_of(arguments) == name


def test_a_process_without_a_jvm_works_for_no_application() -> None:
    assert host.application() is None and host.jvm() is None

"""Options, columns and versions: refused values, and the sentences of the errors."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from penstock.spark.base import host, options, schema, versions
from penstock.spark.base.errors import OptionError, SchemaError, VersionError, WrongHost

BASE = {"queueManager": "QM1", "queue": "Q"}


def refusal(use: str, **given: str) -> str:
    with pytest.raises(OptionError) as caught:
        options.parse({**BASE, **given}, use)
    return str(caught.value)


def columns(ddl: str) -> StructType:
    return schema.struct_type(dict(part.split(" ", 1) for part in ddl.split(", ")))


def test_names_of_options_are_taken_in_any_case() -> None:
    read = options.parse({"QUEUEMANAGER": "QM1", "queue": "Q", "maxmessagespertrigger": "7"},
                         options.STREAM)  # fmt: skip
    assert read["queueManager"] == "QM1" and read["maxMessagesPerTrigger"] == 7


def test_an_unknown_option_is_refused_with_the_nearest_name() -> None:
    assert refusal(options.READ, quue="Q") == "option quue is unknown: queue is meant?"
    assert refusal(options.STREAM, maxMessagePerTriger="1") == (
        "option maxmessagepertriger is unknown: maxMessagesPerTrigger is meant?"
    )
    assert refusal(options.READ, zzz="1") == "option zzz is unknown"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("subscribe", "queue"),
        ("kafka.bootstrap.servers", "queueManager"),
        ("maxOffsetsPerTrigger", "maxMessagesPerTrigger"),
        ("includeHeaders", "includeProperties"),
    ],
)
def test_an_option_of_the_kafka_source_is_refused_with_ours(given: str, meant: str) -> None:
    assert refusal(options.STREAM, **{given: "x"}).endswith(f"is unknown: {meant} is meant?")


def test_an_option_of_another_use_is_refused_with_that_use() -> None:
    assert refusal(options.READ, maxMessagesPerTrigger="1") == (
        "option maxMessagesPerTrigger is one of a streaming source, not of a batch read"
    )
    assert refusal(options.READ, mode="journal", includeProperties="true") == (
        "option includeProperties is one of a batch read and a streaming source, not of a batch "
        "read of the journal"
    )
    assert refusal(options.SINK, txnAppId="a", txnVersion="1") == (
        "option txnAppId is one of a batch sink, not of a streaming sink"
    )


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("maxMessagesPerTrigger", "0", "a whole number of at least 1"),
        ("maxMessagesPerTrigger", "many", "a whole number of at least 1"),
        ("batchRows", "1000001", "a whole number from 1 to 1000000"),
        ("maxBytesPerTrigger", "0", "a size of at least 1 byte, such as 1048576, 64m or 2g"),
        ("maxBytesPerTrigger", "1x", "a size of at least 1 byte, such as 1048576, 64m or 2g"),
        ("failOnDataLoss", "yes", "true or false"),
        ("nonPersistent", "drop", "include or exclude"),
        ("home", "", "a value that is not empty"),
    ],
)
def test_a_wrong_value_is_refused_with_what_fits(name: str, value: str, expected: str) -> None:
    text = refusal(options.STREAM, **{name: value})
    assert text == f"option {name} is {value!r}; it takes {expected}"


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("64m", 64 << 20), ("2G", 2 << 30), ("8kb", 8192)]
)
def test_sizes_are_written_as_spark_writes_them(text: str, size: int) -> None:
    given = {**BASE, "maxBytesPerTrigger": text}
    assert options.parse(given, options.STREAM)["maxBytesPerTrigger"] == size


def test_queue_manager_and_queue_are_needed() -> None:
    with pytest.raises(OptionError, match="option queueManager is missing"):
        options.parse({"queue": "Q"}, options.READ)
    with pytest.raises(OptionError, match="option queue is missing: a streaming source reads"):
        options.parse({"queueManager": "QM1"}, options.STREAM)
    options.parse({"queueManager": "QM1"}, options.SINK)  # a column may name the queue
    options.parse({"queueManager": "QM1", "mode": "journal"}, options.READ)


def test_the_path_of_load_is_the_queue() -> None:
    assert options.parse({"queueManager": "QM1", "path": "A"}, options.READ)["queue"] == "A"
    with pytest.raises(OptionError, match="names queue A, option queue names B"):
        options.parse({"queueManager": "QM1", "path": "A", "queue": "B"}, options.READ)


def test_both_options_of_a_write_that_is_done_once_are_needed() -> None:
    assert "go together" in refusal(options.WRITE, txnAppId="a")
    assert "go together" in refusal(options.WRITE, txnVersion="1")


def test_options_that_spark_hands_through_are_let_be() -> None:
    options.parse({**BASE, "checkpointLocation": "/x", "queryName": "n"}, options.SINK)


def test_each_option_has_one_name_in_lower_case_and_a_description() -> None:
    names = [option.name.lower() for option in options.OPTIONS]
    assert len(set(names)) == len(names)
    assert all(option.text and option.uses for option in options.OPTIONS)


# ---- columns ----


def test_a_column_that_a_queue_does_not_have_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(SchemaError, match="column prority is unknown: priority is meant"):
        schema.check_read(columns("prority int"), schema.MESSAGE)
    with pytest.raises(SchemaError, match="column key is unknown; there are queue, msg_id"):
        schema.check_read(columns("key binary"), schema.MESSAGE)


def test_a_column_of_another_type_is_refused() -> None:
    with pytest.raises(SchemaError, match="column priority is int, not string"):
        schema.check_read(columns("priority string"), schema.MESSAGE)
    schema.check_read(columns("body string, priority int"), schema.MESSAGE)


def test_the_whole_schema_of_a_queue_can_be_named_by_the_user() -> None:
    whole = schema.struct_type(schema.MESSAGE)
    schema.check_read(whole, schema.MESSAGE)
    assert [f.dataType.simpleString() for f in whole] == list(schema.MESSAGE.values())


def test_a_table_of_a_read_can_be_written_as_it_is() -> None:
    schema.check_write(schema.struct_type(schema.MESSAGE), None)


@pytest.mark.parametrize(
    ("ddl", "text"),
    [
        ("body int", "column body must be binary or string to be put, not int"),
        ("value string, priority string", "column priority must be tinyint or smallint or int or"),
        ("priority int", "in a column body, or value: neither is there"),
        ("body string, value string", "in a column body, or value: both is there"),
        ("body string, correl_id string", "column correl_id must be binary to be put, not string"),
        ("body string, persistant boolean", "column persistant is unknown: persistent is meant?"),
    ],
)
def test_a_table_that_cannot_be_put_is_refused(ddl: str, text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        schema.check_write(columns(ddl), "Q")
    assert text in str(caught.value)


def test_a_table_without_a_queue_needs_the_option() -> None:
    with pytest.raises(SchemaError, match="no queue is named"):
        schema.check_write(columns("body string"), None)
    schema.check_write(columns("body string, queue string"), None)


# ---- versions, hosts ----


@pytest.mark.parametrize("feature", versions.LOWEST)
def test_below_the_lowest_version_of_a_feature_there_is_one_sentence(feature: str) -> None:
    major, minor = versions.LOWEST[feature]
    versions.require(feature, f"{major}.{minor}.0")
    versions.require(feature, "4.10.0.dev1")
    old = f"{major}.{minor - 1}.9" if minor else "3.5.6"
    with pytest.raises(VersionError) as caught:
        versions.require(feature, old)
    assert str(caught.value) == (
        f"penstock as {feature} needs PySpark {major}.{minor} or newer; this is {old}"
    )


def test_a_task_on_another_host_ends_with_one_sentence() -> None:
    here = host.here()
    here.check("QM1")
    elsewhere = dataclasses.replace(here, name="far", boot_id="another")
    with pytest.raises(WrongHost) as caught:
        elsewhere.check("QM1")
    assert str(caught.value) == (
        f"this task runs on {here.name}, but queue manager QM1 lives on far: executors on "
        "other hosts reach it through penstock serve (option endpoint), or, with small batches, "
        "through the driver (option relay)"
    )


def test_importing_the_package_loads_neither_pyspark_nor_pyarrow() -> None:
    code = "import sys, penstock.spark as s; s.register; "
    code += "sys.exit(not {'pyspark', 'pyarrow', 'numpy'}.isdisjoint(sys.modules))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_batch_reads_and_sinks_import_nothing_that_pyspark_4_0_does_not_have() -> None:
    code = (
        "import sys, importlib, pyspark.sql.datasource as d\n"
        "del d.DataSourceStreamArrowWriter\n"
        "sys.modules['pyspark.sql.streaming.datasource'] = None\n"
        "for name in sys.argv[1:]: importlib.import_module('penstock.spark.' + name)\n"
    )
    used = ("datasource", "source.browse", "source.journal", "sink.writer", "several",
            "remote.browse", "remote.journal", "remote.writers", "remote.service",
            "relay.reader", "relay.writers")  # fmt: skip
    subprocess.run([sys.executable, "-c", code, *used], check=True)


def test_the_spark_page_names_every_option_and_no_other() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "spark.md").read_text()
    table = text.split("| option | for | default | meaning |\n")[1].split("\n\n")[0]
    cells = [row.split("|")[1] for row in table.splitlines()]
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted(option.name for option in options.OPTIONS)

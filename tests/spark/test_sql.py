"""Queues in SQL: temporary views are read and written; a table cannot be made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_fixture import SparkFixture, failing

KEPT = (
    "Spark keeps a table's options from sources in Python; use CREATE TEMPORARY VIEW name USING "
    "penstock OPTIONS (queueManager 'QM1', queue 'Q')"
)
MADE = f"a table cannot use penstock: {KEPT}"
USED = (
    'option queueManager is missing: .option("queueManager", "QM1"); if this is a table of the '
    f"catalog: {KEPT}"
)


@pytest.fixture
def sql(spark_qm: SparkFixture) -> Iterator[SparkFixture]:
    """Queue Q with two messages, and no view or table afterwards."""
    spark_qm.put("Q", b"low", priority=3)
    spark_qm.put("Q", b"high", priority=7)
    yield spark_qm
    for name in ("lines", "narrow"):
        spark_qm.spark.catalog.dropTempView(name)
    spark_qm.spark.sql("DROP TABLE IF EXISTS t")


def options(sql: SparkFixture, queue: str = "Q") -> str:
    return f"USING penstock OPTIONS (queueManager 'QM1', home '{sql.home}', queue '{queue}')"


def test_a_temporary_view_is_read_and_written(sql: SparkFixture) -> None:
    run = sql.spark.sql
    run(f"CREATE TEMPORARY VIEW lines {options(sql)}")
    run(f"CREATE TEMPORARY VIEW narrow (value string, priority int) {options(sql, 'OUT')}")
    sql.qm.queue("OUT").close()
    found = run("SELECT cast(body AS string) AS text FROM lines WHERE priority > 5").collect()
    assert [row.text for row in found] == ["high"]
    run("INSERT INTO lines (body, priority) VALUES (cast('new' AS binary), 9)")
    run("INSERT INTO narrow SELECT cast(body AS string), 10 - priority FROM lines")
    assert sql.bodies("Q") == [b"new", b"high", b"low"]
    assert sql.bodies("OUT") == [b"low", b"high"] and sql.qm.recover() == []
    with sql.qm.open("Q", output=False) as queue:
        assert queue.get().persistent
    assert failing(lambda: run("INSERT OVERWRITE narrow VALUES ('x', 1)")) == (
        "a queue cannot be overwritten: write with mode append"
    )


def test_a_view_is_a_snapshot_of_its_first_use_and_another_one_is_new(sql: SparkFixture) -> None:
    run = sql.spark.sql
    run(f"CREATE TEMPORARY VIEW lines {options(sql)}")
    frame = sql.table("Q")
    assert run("SELECT 1 FROM lines").count() == frame.count() == 2
    sql.put("Q", b"later")
    assert run("SELECT 1 FROM lines").count() == frame.count() == 2
    run(f"CREATE OR REPLACE TEMPORARY VIEW lines {options(sql)}")
    assert run("SELECT 1 FROM lines").count() == sql.table("Q").count() == 3


def test_a_table_is_refused_in_one_sentence(sql: SparkFixture) -> None:
    run = sql.spark.sql
    assert failing(lambda: run(f"CREATE TABLE t {options(sql)}")) == MADE
    run(f"CREATE TABLE t (body binary) {options(sql)}")  # Spark makes it without asking
    assert failing(lambda: run("SELECT * FROM t").collect()) == USED
    assert failing(lambda: run("INSERT INTO t VALUES (cast('x' AS binary))")) == USED
    assert sql.bodies("Q") == [b"high", b"low"]

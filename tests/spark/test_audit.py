"""Audit and replay of the journal: the logic, on tables of constructed records."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.spark.base.schema import arrow_schema, struct_type
from penstock.spark.pipelines.audit import COLUMNS, Audit, audit_records
from penstock.spark.pipelines.journal import RECORD, ended_units, with_outcome
from penstock.spark.pipelines.replay import KEPT, messages_to_replay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

BEGIN = datetime(2026, 3, 1, tzinfo=timezone.utc)


@pytest.fixture(autouse=True)
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Plans of tiny tables are run as they are: compiling them takes seconds a plan."""
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name in settings:
        spark.conf.unset(name)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


class Book:
    """Records one after another, each a second later; LSNs rise by 100."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def __call__(self, event: str, unit: int = 0, queue: str | None = None, sequence: int = 0,
                 **more: Any) -> None:  # fmt: skip
        number = len(self.rows)
        self.rows.append({
            "event": event, "lsn": 100 * number, "time": at(number), "unit_id": unit,
            "commits": False, "queue": queue, "sequence": sequence, **more,
        })  # fmt: skip

    def put(self, sequence: int, unit: int = 0, queue: str = "Q", **more: Any) -> None:
        of_message = {"put_time": at(len(self.rows)), "body_length": 10, "put_appl_name": "feeder",
                      "user_identifier": "ann", "msg_id": b"%024d" % sequence, "priority": 5,
                      "persistent": True, "body": b"body %d" % sequence}  # fmt: skip
        self("PUT", unit, queue, sequence, **{**of_message, **more})

    def get(self, sequence: int, unit: int = 0, queue: str = "Q", **more: Any) -> None:
        self("GET", unit, queue, sequence, **more)

    def table(self, spark: SparkSession, columns: dict[str, str]) -> DataFrame:
        """A table that the plans contain: from a list of rows it would be a job of Python's."""
        schema = struct_type(columns)
        rows = pa.Table.from_pylist(self.rows, schema=arrow_schema(schema))
        return spark.createDataFrame(rows, schema)


def audited(spark: SparkSession, book: Book, queue: str | None = None) -> Audit:
    return audit_records(book.table(spark, dict(COLUMNS)), queue)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


def test_a_unit_has_the_outcome_of_the_record_that_ended_it(spark: SparkSession) -> None:
    book = Book()
    book.put(1)  # 0: alone
    book.put(2, unit=7)
    book("COMMIT", 7)  # 2
    book.put(3, unit=8)
    book("BACKOUT", 8)  # 4
    book.put(4, unit=9, commits=True)  # 5
    book.put(5, unit=10)
    book("PREPARE", 10)
    book("COMMIT_PREPARED", 10)  # 8
    book.put(6, unit=11)
    book("PREPARE", 11)
    book("BACKOUT_PREPARED", 11)  # 11
    book.put(7, unit=12)
    book("PREPARE", 12)
    book.put(8, unit=13)
    records = book.table(spark, dict(RECORD))
    puts = with_outcome(records.where("event = 'PUT'"), ended_units(records)).orderBy("sequence")
    found = [(row.sequence, row.outcome, row.end_time) for row in puts.collect()]
    ends = {1: 0, 2: 2, 3: 4, 4: 5, 5: 8, 6: 11}
    assert [(n, outcome) for n, outcome, _ in found] == [
        (1, "committed"), (2, "committed"), (3, "backed out"), (4, "committed"), (5, "committed"),
        (6, "backed out"), (7, None), (8, None),
    ]  # fmt: skip
    assert all(
        end is None if n not in ends else end.astimezone(timezone.utc) == at(ends[n])
        for n, _, end in found
    )


def test_the_time_from_put_to_get_ends_with_the_commit_of_the_get(spark: SparkSession) -> None:
    book = Book()
    for sequence in range(1, 101):
        book.put(sequence)
    for sequence in range(1, 101):  # message n is taken after 100 seconds, except the last
        book.get(sequence, unit=500 if sequence == 100 else 0)
    book("COMMIT", 500)
    [row] = rows_of(audited(spark, book).queues)
    assert (row["puts"], row["gets"], row["never_got"], row["bytes"]) == (100, 100, 0, 1000)
    assert (row["p50"], row["p90"], row["longest"]) == (100.0, 100.0, 101.0)


def test_percentiles_are_those_of_a_sorted_list(spark: SparkSession) -> None:
    book = Book()
    for sequence in range(1, 101):
        book.put(sequence, put_time=at(0))
    for sequence in range(1, 101):
        book.get(sequence, time=at(sequence))
    [row] = rows_of(audited(spark, book).queues)
    assert [row[name] for name in ("p50", "p90", "p99", "longest")] == [50, 90, 99, 100]


def test_messages_that_nothing_removed_are_named(spark: SparkSession) -> None:
    book = Book()
    for sequence in range(1, 9):
        book.put(sequence)
    book.put(20, queue="OTHER")
    book.put(30, queue="GONE")
    book.get(1)
    book("EXPIRE", 0, "Q", 2)
    book.get(3, unit=5)
    book("BACKOUT", 5)
    book.get(4, unit=6)  # in flight
    book.put(9, unit=7)  # never committed
    book("CLEAR", 0, "OTHER", 100)
    book.put(21, queue="OTHER")
    book("OBJECT_DELETE", 0, "GONE")
    book.put(31, queue="GONE")
    found = audited(spark, book)
    left = sorted((row["queue"], row["sequence"]) for row in rows_of(found.never_got))
    assert left == [
        ("GONE", 31), ("OTHER", 21), ("Q", 3), ("Q", 4), ("Q", 5), ("Q", 6), ("Q", 7), ("Q", 8),
    ]  # fmt: skip
    counts = {
        row["queue"]: (row["puts"], row["gets"], row["expired"], row["never_got"])
        for row in rows_of(found.queues)
    }
    assert counts == {"GONE": (2, 0, 0, 1), "OTHER": (2, 0, 0, 1), "Q": (8, 1, 1, 6)}


def test_a_clear_leaves_what_arrived_at_or_after_its_bound(spark: SparkSession) -> None:
    book = Book()
    for sequence in (1, 2, 3):
        book.put(sequence)
    book("CLEAR", 0, "Q", 3)
    assert [row["sequence"] for row in rows_of(audited(spark, book).never_got)] == [3]


def test_units_that_were_backed_out_are_listed_with_what_they_did(spark: SparkSession) -> None:
    book = Book()
    book.put(1)
    book.get(1, unit=3)
    book.put(2, unit=3, queue="R")
    book.put(3, unit=3, queue="R")
    book("BACKOUT", 3)
    book.get(1, unit=4)
    book("PREPARE", 4)
    book("BACKOUT_PREPARED", 4)
    found = audited(spark, book)
    undone = rows_of(found.backed_out)
    assert [(row["unit_id"], row["queues"], row["puts"], row["gets"]) for row in undone] == [
        (3, ["Q", "R"], 2, 1),
        (4, ["Q"], 0, 1),
    ]
    assert {r["queue"]: r["backed_out"] for r in rows_of(found.queues)} == {"Q": 2, "R": 1}


def test_a_get_whose_put_is_not_in_the_journal_any_more_is_counted(spark: SparkSession) -> None:
    book = Book()
    book.get(1)
    book.put(2)
    book.get(2)
    [row] = rows_of(audited(spark, book).queues)
    assert (row["puts"], row["gets"], row["gets_unknown"], row["longest"]) == (1, 2, 1, 1.0)


def test_those_who_put_most_come_first(spark: SparkSession) -> None:
    book = Book()
    book.put(1, put_appl_name="a", body_length=1000)
    for sequence in (2, 3, 4):
        book.put(sequence, put_appl_name="b")
    book.put(5, put_appl_name="c", unit=9)
    found = rows_of(audited(spark, book).putters)
    assert [(r["put_appl_name"], r["messages"], r["bytes"]) for r in found] == [
        ("b", 3, 30), ("a", 1, 1000),
    ]  # fmt: skip
    assert found[0]["first"].astimezone(timezone.utc) == at(1)
    assert found[0]["last"].astimezone(timezone.utc) == at(3)


@pytest.mark.parametrize(
    ("queue", "seen"), [(None, ["A", "B"]), ("A", ["A"]), ("SYSTEM.X", ["SYSTEM.X"])]
)
def test_queues_of_the_system_are_left_out_unless_named(
    spark: SparkSession, queue: str | None, seen: list[str]
) -> None:
    book = Book()
    book.put(1, queue="SYSTEM.X")
    book.put(2, queue="A", unit=4)
    book.put(3, queue="B", unit=4)
    book("COMMIT", 4)
    assert [row["queue"] for row in rows_of(audited(spark, book, queue).queues)] == seen


def test_an_empty_journal_gives_empty_tables(spark: SparkSession) -> None:
    book = Book()
    book("COMMIT", 1)
    found = audited(spark, book)
    for table in (found.queues, found.never_got, found.backed_out, found.putters):
        assert table.collect() == []


def test_a_replay_has_the_committed_messages_in_the_old_order(spark: SparkSession) -> None:
    book = Book()
    for sequence in (5, 2, 9):
        book.put(sequence, correl_id=b"c" * 24)
    book.put(10, unit=1)
    book("BACKOUT", 1)
    book.put(11, unit=2)
    book.put(12, queue="R")
    book.put(13, unit=3)  # committed after the interval
    inside = book.table(spark, {**RECORD, **KEPT})
    book("COMMIT", 3)
    book.get(5)
    units = ended_units(book.table(spark, dict(RECORD)))
    found = messages_to_replay(inside, units, "Q")
    assert found.columns == list(KEPT)
    assert [row.body for row in found.collect()] == [b"body 5", b"body 2", b"body 9", b"body 13"]
    assert found.rdd.getNumPartitions() == 1
    assert found.first().correl_id == b"c" * 24

"""WriteOnce: one DataFrame into queues and a table of a database, each micro-batch once in both,
whatever fails between.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spark_fixture import SparkFixture

from penstock.spark import once
from penstock.spark.base.errors import OptionError, SourceError
from penstock.spark.once import WriteOnce

pytestmark = pytest.mark.timeout(900)  # several jobs of Spark, on a busy machine
STEPS = ("connect", "ledger", "rows", "commit", "committed", "queues")


class Interrupted(Exception):
    """What a step fails with."""


class Database:
    """A database that counts and may fail at a step."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fails_at = ""
        with sqlite3.connect(path) as made:
            made.execute("CREATE TABLE lines (id BIGINT, name TEXT)")
        made.close()

    def connect(self) -> Any:
        self.step("connect")
        return Connection(self)

    def step(self, name: str) -> None:
        if self.fails_at == name:
            self.fails_at = ""
            raise Interrupted(name)

    def rows(self) -> list[tuple[int, str]]:
        with sqlite3.connect(self.path) as made:
            found = made.execute("SELECT id, name FROM lines ORDER BY id").fetchall()
        made.close()
        return found


class Connection:
    """A connection of sqlite3, with steps."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.own = sqlite3.connect(database.path)

    def cursor(self) -> Connection:
        return self

    def execute(self, text: str, values: Any = ()) -> Any:
        if text.startswith("INSERT"):
            self.database.step("ledger")
        self.found = self.own.execute(text, values)

    def fetchone(self) -> Any:
        return self.found.fetchone()

    def executemany(self, text: str, values: Any) -> Any:
        self.own.executemany(text, values[: len(values) // 2])
        self.database.step("rows")
        self.own.executemany(text, values[len(values) // 2 :])

    def commit(self) -> None:
        is_data = self.own.execute("SELECT count(*) FROM lines").fetchone()[0]
        if is_data:
            self.database.step("commit")
        self.own.commit()
        if is_data:
            self.database.step("committed")

    def rollback(self) -> None:
        self.own.rollback()

    def close(self) -> None:
        self.own.close()


def writer(connect: Callable[[], Any], home: Path, **given: Any) -> WriteOnce:
    wanted: dict[str, Any] = {
        "connect": connect,
        "table": "lines",
        "rows": lambda frame: frame.selectExpr("int(body) AS id", "'x' AS name"),
        "messages": lambda frame: frame.selectExpr(
            "body AS value", "if(int(body) % 2 = 0, 'EVEN', 'ODD') AS queue"
        ),
        "options": {"queueManager": "QM1", "home": str(home)},
        "paramstyle": "qmark",
    }
    return WriteOnce(**{**wanted, **given})


def test_each_micro_batch_is_once_in_the_table_and_in_the_queues_whatever_step_fails(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    for name in ("EVEN", "ODD"):
        spark_qm.qm.queue(name).close()
    database = Database(tmp_path / "db")
    both = writer(database.connect, spark_qm.home, query="lines")
    failing = writer(
        database.connect, spark_qm.home, query="lines", messages=lambda frame: frame.no_such_column
    )
    for batch, step in enumerate(STEPS):
        count = 2 * batch
        rows = [(f"{n}",) for n in range(count, count + 2)]
        frame = spark_qm.spark.createDataFrame(rows, "body string")
        database.fails_at = "" if step == "queues" else step
        with pytest.raises(AttributeError if step == "queues" else Interrupted):
            (failing if step == "queues" else both)(frame, batch)
        if step in ("connect", "ledger", "rows", "commit"):
            assert len(database.rows()) == count, step
        for _ in range(2):  # it is repeated, and its end is not seen, so that it is once more
            both(frame, batch)
        assert database.rows() == [(n, "x") for n in range(count + 2)], step
        put = Counter(spark_qm.bodies("EVEN") + spark_qm.bodies("ODD"))
        assert put == Counter(b"%d" % n for n in range(count + 2)), step
    assert sorted(map(int, spark_qm.bodies("ODD"))) == list(range(1, 2 * len(STEPS), 2))
    assert spark_qm.qm.recover() == []


def test_a_query_with_foreach_batch_that_failed_between_both_continues_with_each_row_once(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    for name in ("EVEN", "ODD"):
        spark_qm.qm.queue(name).close()
    database = Database(tmp_path / "db")
    spark_qm.put("IN", *[b"%d" % n for n in range(6)])

    def run(both: WriteOnce) -> None:
        lines = spark_qm.set(spark_qm.spark.readStream).schema("body string").load("IN")
        query = (
            lines.writeStream.foreachBatch(both)
            .option("checkpointLocation", str(tmp_path / "cp"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    failing = {"messages": lambda frame: frame.no_such_column}
    with pytest.raises(Exception, match="no_such_column"):
        run(writer(database.connect, spark_qm.home, **failing))
    assert len(database.rows()) == 6
    run(writer(database.connect, spark_qm.home))
    assert database.rows() == [(n, "x") for n in range(6)]
    assert spark_qm.bodies("EVEN") + spark_qm.bodies("ODD") == [b"0", b"2", b"4", b"1", b"3", b"5"]
    assert spark_qm.qm.recover() == []


def test_it_takes_any_connection_of_sqlite3_and_two_queries_do_not_meet(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    for name in ("EVEN", "ODD"):
        spark_qm.qm.queue(name).close()
    database = Database(tmp_path / "db")
    frame = spark_qm.spark.createDataFrame([("1",), ("2",)], "body string")
    for query in ("one", "two", "one"):
        connect = lambda: sqlite3.connect(database.path)  # noqa: E731
        writer(connect, spark_qm.home, query=query, paramstyle=None)(frame, 0)
    assert [row[0] for row in database.rows()] == [1, 1, 2, 2]
    assert len(spark_qm.bodies("EVEN") + spark_qm.bodies("ODD")) == 4
    with pytest.raises(SourceError, match="outside foreachBatch"):
        writer(database.connect, spark_qm.home)(frame, 0)
    with pytest.raises(SourceError, match="autocommit"):
        writer(
            lambda: sqlite3.connect(database.path, isolation_level=None), spark_qm.home, query="q"
        )(frame, 0)
    missing = writer(
        lambda: sqlite3.connect(database.path), spark_qm.home, query="q", ledger="none",
        create_ledger=False,
    )  # fmt: skip
    with pytest.raises(sqlite3.OperationalError, match="no such table: none"):
        missing(frame, 0)
    assert len(database.rows()) == 4 and len(spark_qm.bodies("EVEN")) == 2


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"table": "a b"}, "table 'a b': a name has"),
        ({"ledger": "x;y"}, "table 'x;y': a name has"),
        ({"paramstyle": "dollar"}, "paramstyle is one of qmark, "),
        ({"options": {"txnAppId": "x"}}, "option txnAppId is set by WriteOnce"),
    ],
)
def test_wrong_names_and_options_are_refused_when_it_is_made(
    tmp_path: Path, given: dict[str, Any], expected: str
) -> None:
    with pytest.raises(OptionError, match=expected):
        writer(lambda: None, tmp_path, **given)


@pytest.mark.parametrize(
    ("style", "places", "values"),
    [
        ("qmark", "?, ?", (1, 2)),
        ("numeric", ":1, :2", (1, 2)),
        ("named", ":a, :b", {"a": 1, "b": 2}),
        ("format", "%s, %s", (1, 2)),
        ("pyformat", "%(a)s, %(b)s", {"a": 1, "b": 2}),
    ],
)
def test_statements_have_the_parameters_of_each_style(style: str, places: str, values: Any) -> None:
    names = ["a", "b"]
    assert once._insert("s.t", names, style) == f"INSERT INTO s.t (a, b) VALUES ({places})"
    assert once._values([1, 2], names, style) == values

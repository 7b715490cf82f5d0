"""For ``foreachBatch``: one DataFrame into queues and a table of a database, each once.

    from penstock.spark.once import WriteOnce

    both = WriteOnce(
        connect=lambda: sqlite3.connect("orders.db"),
        table="orders",
        rows=lambda frame: frame.select("id", "amount"),
        messages=lambda frame: frame.selectExpr("to_json(struct(*)) AS value", "queue"),
        options={"queueManager": "QM1"},
    )
    query = stream.writeStream.foreachBatch(both).option("checkpointLocation", "cp").start()

Spark repeats a micro-batch whose end it did not see. Two places cannot be written in one step, so
each of them remembers which micro-batches it has, in the same transaction as their data:

1. The database: a row (query, batch) in the table ``penstock_batches`` (the *ledger*) is inserted
   in the transaction of the rows. A micro-batch that is there is not inserted again.
2. Then the queues: a batch write with txnAppId = the query and txnVersion = the batch, which the
   queue manager does once. All its messages become visible together.

====================================  ==========================================================
killed, or failed                     when Spark repeats the micro-batch
====================================  ==========================================================
before the database's commit          both are written
after it, before the queues' commit   the ledger has the batch; the queues are written
after that                            neither is written again
====================================  ==========================================================

So each is written once, the database first, for any Python DB-API 2.0 connection with transactions.
The DataFrame must be the same when it is repeated, which one from a queue is; a random number or
the current time would differ between the two. Rows pass through the driver, in pieces.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from .base.errors import OptionError, SchemaError, SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Select = Callable[[DataFrame], DataFrame]

__all__ = ["LEDGER", "WriteOnce"]

LEDGER = "penstock_batches"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*\Z")
_PLACES: Mapping[str, Callable[[int, str], str]] = {
    "qmark": lambda _, __: "?",
    "numeric": lambda number, _: f":{number}",
    "named": lambda _, name: f":{name}",
    "format": lambda _, __: "%s",
    "pyformat": lambda _, name: f"%({name})s",
}
_BY_NAME = ("named", "pyformat")
_QUERY = "sql.streaming.queryId"


class WriteOnce:
    """A function of (frame, batch id) that writes a micro-batch into a table and queues."""

    def __init__(
        self,
        *,
        connect: Callable[[], Any],
        table: str,
        rows: Select,
        messages: Select,
        options: Mapping[str, str],
        query: str | None = None,
        ledger: str = LEDGER,
        create_ledger: bool = True,
        paramstyle: str | None = None,
        rows_at_a_time: int = 1_000,
    ) -> None:
        """Prepares it.

        Args:
            connect: Makes a connection to the database, which is closed after each micro-batch.
            table: Name of the table, perhaps behind that of a schema and a point.
            rows: The rows of the table, from the DataFrame; columns by their names.
            messages: The messages, from the DataFrame: columns as of a batch sink.
            options: Of a batch sink, but for txnAppId and txnVersion.
            query: The name under which both places know the query; None: its id, which lasts as
                long as its checkpoint.
            ledger: Name of the table of micro-batches.
            create_ledger: Whether it is created when absent.
            paramstyle: Of the database's module; None: as the module says.
            rows_at_a_time: That are inserted by one call.

        Raises:
            OptionError: A name or an option is wrong.
        """
        for name in (table, ledger):
            for part in name.split("."):
                _check_name(part, "table")
        if paramstyle is not None and paramstyle not in _PLACES:
            raise OptionError(f"paramstyle is one of {', '.join(_PLACES)}, not {paramstyle!r}")
        for key in options:
            if key.lower() in ("txnappid", "txnversion"):
                raise OptionError(
                    f"option {key} is set by WriteOnce: give the query a name instead"
                )
        self._connect = connect
        self._table = table
        self._rows, self._messages = rows, messages
        self._options = dict(options)
        self._query = query
        self._ledger = ledger
        self._create_ledger = create_ledger
        self._paramstyle = paramstyle
        self._at_a_time = rows_at_a_time

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Writes the micro-batch, unless it is there.

        Raises:
            SourceError: The query has no id and no name; the connection commits by itself.
            Exception: Of the database, after a rollback; of the sink. Spark repeats the micro-batch
                when the query starts again.
        """
        query = self._query or frame.sparkSession.sparkContext.getLocalProperty(_QUERY)
        if not query:
            raise SourceError(
                "WriteOnce is used outside foreachBatch, or this session does not tell the id of "
                "the query: pass query='a name of its own'"
            )
        frame.persist()
        try:
            self._write_rows(self._rows(frame), query, batch_id)
            (
                self._messages(frame)
                .write.format("penstock")
                .options(
                    **self._options, txnAppId=f"foreachBatch:{query}", txnVersion=str(batch_id)
                )
                .mode("append")
                .save()
            )
        finally:
            frame.unpersist()

    def _write_rows(self, rows: DataFrame, query: str, batch: int) -> None:
        connection = self._connect()
        try:
            _check_transactions(connection)
            style = self._paramstyle or _style_of(connection)
            cursor = connection.cursor()
            if self._create_ledger and self._query_ledger(connection, style, query, batch) is None:
                cursor.execute(
                    f"CREATE TABLE {self._ledger} (query VARCHAR(200) NOT NULL, "
                    "batch BIGINT NOT NULL, PRIMARY KEY (query, batch))"
                )
                connection.commit()
            if self._query_ledger(connection, style, query, batch):
                return
            own = ["query", "batch"]
            cursor.execute(_insert(self._ledger, own, style), _values([query, batch], own, style))
            names = rows.columns
            statement = _insert(self._table, names, style)
            for some in _pieces(rows.toLocalIterator(), self._at_a_time):
                values = [[_value(value) for value in row] for row in some]
                cursor.executemany(statement, [_values(row, names, style) for row in values])
            connection.commit()
        except BaseException:
            with suppress(Exception):  # the first error is reported
                connection.rollback()
            raise
        finally:
            connection.close()

    def _query_ledger(self, connection: Any, style: str, query: str, batch: int) -> bool | None:
        """Whether the ledger has the batch; None: it cannot be read, so that there is none."""
        own = ["query", "batch"]
        conditions = " AND ".join(
            f"{name} = {_PLACES[style](number, name)}" for number, name in enumerate(own, 1)
        )
        cursor = connection.cursor()
        try:
            cursor.execute(
                f"SELECT batch FROM {self._ledger} WHERE {conditions}",
                _values([query, batch], own, style),
            )
        except Exception:
            if not self._create_ledger:
                raise
            connection.rollback()
            return None
        return cursor.fetchone() is not None


def _check_name(name: str, what: str) -> None:
    if not _NAME.match(name):
        raise OptionError(
            f"{what} {name!r}: a name has letters, digits, _ and $, and begins with none of 0 to 9"
        )


def _check_transactions(connection: Any) -> None:
    """Raises SourceError for a connection that commits each statement by itself."""
    import sqlite3

    is_alone = getattr(connection, "autocommit", False) is True
    if isinstance(connection, sqlite3.Connection):
        is_alone = is_alone or (
            connection.isolation_level is None
            and getattr(connection, "autocommit", -1) is not False
        )
    if is_alone:
        raise SourceError(
            "the connection is in autocommit mode, in which rows and ledger are not written "
            "together: connect with transactions"
        )


def _style_of(connection: Any) -> str:
    """The parameter style that the module of the connection, or a package above it, names."""
    name = type(connection).__module__
    while name:
        found = getattr(sys.modules.get(name), "paramstyle", None)
        if found in _PLACES:
            return str(found)
        name = name.rpartition(".")[0]
    raise OptionError("the database's module names no paramstyle: pass paramstyle to WriteOnce")


def _insert(table: str, names: list[str], style: str) -> str:
    for name in names:
        try:
            _check_name(name, "column")
        except OptionError as error:
            raise SchemaError(str(error)) from None
    places = ", ".join(_PLACES[style](number, name) for number, name in enumerate(names, 1))
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})"


def _values(row: Iterable[Any], names: list[str], style: str) -> Any:
    return dict(zip(names, row, strict=True)) if style in _BY_NAME else tuple(row)


def _value(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def _pieces(rows: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while some := list(islice(rows, size)):
        yield some

"""Audit of the journal: waiting times, messages that were never taken, units that were backed out,
the largest putters.

The audit covers the journal's present contents: with circular logging the recent past; with linear
logging and its archive everything. The journal contains persistent messages.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from .journal import BACKED_OUT, COMMITTED, RECORD, ended_units, read_journal, with_outcome
from .options import AuditOptions, read_options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["Audit", "audit", "audit_records"]

COLUMNS: Mapping[str, str] = {
    **RECORD,
    "segment": "bigint",
    "msg_id": "binary",
    "priority": "int",
    "put_time": "timestamp",
    "user_identifier": "string",
    "put_appl_name": "string",
    "body_length": "bigint",
}
"""Columns of the journal that an audit reads -> their types."""

ACCURACY = 10_000  # of percentiles: a rank is off by at most rows / ACCURACY
_PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


@dataclass(frozen=True)
class Audit:
    """The result of an audit: tables that are computed on use, from one reading.

    Attributes:
        queues: A row a queue: ``puts``, ``gets``, ``expired``, ``never_got`` and ``bytes`` of
            committed messages, ``gets_unknown`` (the put is no longer in the journal),
            ``backed_out`` (units that were), and the time from put to get in seconds: ``p50``,
            ``p90``, ``p99``, ``longest``.
        never_got: Messages that were put and neither taken, nor expired, nor deleted with their
            queue: ``queue``, ``msg_id``, ``sequence``, ``priority``, ``put_time``,
            ``put_appl_name``, ``body_length``.
        backed_out: Units of work: ``unit_id``, ``end_time``, ``queues``, ``puts``, ``gets``.
        putters: Programs and users: ``put_appl_name``, ``user_identifier``, ``messages``,
            ``bytes``, ``first``, ``last``; those that put most messages first.
        gaps: Parts that could not be read: ``event`` (DAMAGED, LOST), ``segment``, ``bytes``; only
            with onDamage=skip or failOnDataLoss=false; the other tables then cover the rest.
        kept: The cached tables that the others are computed from; ``release`` frees them.
    """

    queues: DataFrame
    never_got: DataFrame
    backed_out: DataFrame
    putters: DataFrame
    gaps: DataFrame
    kept: tuple[DataFrame, ...] = ()

    def release(self) -> None:
        """Frees the cached tables. Tables used later are computed from a new reading."""
        for table in self.kept:
            table.unpersist()


def audit(spark: SparkSession, options: Mapping[str, Any]) -> Audit:
    """Audits the journal as it is when the first table is used.

    The records are read once and cached, in memory and, if they are too large, on disk, until
    ``release``: so the tables are consistent while the queue manager continues to work.

    Args:
        spark: The session; its workers are on the queue manager's machine.
        options: See ``AuditOptions``.

    Raises:
        OptionError: An option is wrong.
    """
    chosen = read_options(AuditOptions, options)
    records = read_journal(spark, chosen.source, COLUMNS).persist()
    known = with_outcome(records, ended_units(records)).persist()
    return replace(_audit(known, chosen.queue), kept=(known, records))


def audit_records(records: DataFrame, queue: str | None = None) -> Audit:
    """Audits a table of records.

    Args:
        records: Columns as in ``COLUMNS``.
        queue: Only of this queue; None: of all but those named ``SYSTEM.``.
    """
    return _audit(with_outcome(records, ended_units(records)), queue)


def _audit(everything: DataFrame, queue: str | None) -> Audit:
    """Audits records that have the outcome of their units."""
    mine = F.col("queue") == queue if queue else ~F.col("queue").startswith("SYSTEM.")
    known = everything.where(mine)
    committed = known.where(F.col("outcome") == COMMITTED)
    puts = committed.where(F.col("event") == "PUT")
    gets = committed.where(F.col("event") == "GET").select(
        "queue", "sequence", F.col("end_time").alias("got_time")
    )
    never_got = _never_got(puts, gets, committed)
    backed_out = _backed_out(known)
    return Audit(
        queues=_queues(puts, gets, committed, never_got, backed_out),
        never_got=never_got.select(
            "queue", "msg_id", "sequence", "priority", "put_time", "put_appl_name", "body_length"
        ),
        backed_out=backed_out,
        putters=_putters(puts),
        gaps=everything.where(F.col("event").isin("DAMAGED", "LOST")).select(
            "event", "segment", F.col("body_length").alias("bytes")
        ),
    )


def _never_got(puts: DataFrame, gets: DataFrame, committed: DataFrame) -> DataFrame:
    """Puts whose message nothing has removed."""
    expired = committed.where(F.col("event") == "EXPIRE").select("sequence")
    # CLEAR removes all messages before the number that it carries, OBJECT_DELETE those of the queue
    cleared = committed.where(F.col("event").isin("CLEAR", "OBJECT_DELETE")).select(
        F.col("queue").alias("of"),
        F.col("lsn").alias("at"),
        F.when(F.col("event") == "CLEAR", F.col("sequence")).alias("below"),
    )
    gone = (
        (F.col("queue") == F.col("of"))
        & (F.col("lsn") < F.col("at"))
        & (F.col("below").isNull() | (F.col("sequence") < F.col("below")))
    )
    return (
        puts.join(gets.select("sequence"), "sequence", "left_anti")
        .join(expired, "sequence", "left_anti")
        .join(F.broadcast(cleared), gone, "left_anti")
    )


def _backed_out(known: DataFrame) -> DataFrame:
    def count(event: str) -> Column:
        return F.count_if(F.col("event") == event).alias(event.lower() + "s")

    return (
        known.where((F.col("outcome") == BACKED_OUT) & F.col("event").isin("PUT", "GET"))
        .groupBy("unit_id")
        .agg(
            F.first("end_time").alias("end_time"),
            F.sort_array(F.collect_set("queue")).alias("queues"),
            count("PUT"),
            count("GET"),
        )
        .orderBy("end_time", "unit_id")
    )


def _queues(
    puts: DataFrame,
    gets: DataFrame,
    committed: DataFrame,
    never_got: DataFrame,
    backed_out: DataFrame,
) -> DataFrame:
    """One row a queue that anything was done with."""
    wait = (F.col("got_time").cast("double") - F.col("put_time").cast("double")).alias("wait")
    one = F.lit(1)
    pairs = gets.join(puts.select("sequence", "put_time"), "sequence", "left")
    counted = (
        puts.select("queue", one.alias("puts"), F.col("body_length").alias("bytes")),
        pairs.select(
            "queue",
            one.alias("gets"),
            F.col("put_time").isNull().cast("int").alias("gets_unknown"),
            wait,
        ),
        committed.where(F.col("event") == "EXPIRE").select("queue", one.alias("expired")),
        never_got.select("queue", one.alias("never_got")),
        backed_out.select(F.explode("queues").alias("queue"), one.alias("backed_out")),
    )
    table = functools.reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), counted)
    names = ("puts", "gets", "expired", "never_got", "backed_out", "gets_unknown", "bytes")
    return (
        table.groupBy("queue")
        .agg(
            *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in names),
            *(
                F.percentile_approx("wait", share, ACCURACY).alias(name)
                for name, share in _PERCENTILES.items()
            ),
            F.max("wait").alias("longest"),
        )
        .orderBy("queue")
    )


def _putters(puts: DataFrame) -> DataFrame:
    return (
        puts.groupBy("put_appl_name", "user_identifier")
        .agg(
            F.count("*").alias("messages"),
            F.sum("body_length").alias("bytes"),
            F.min("put_time").alias("first"),
            F.max("put_time").alias("last"),
        )
        .orderBy(F.desc("messages"), "put_appl_name", "user_identifier")
    )

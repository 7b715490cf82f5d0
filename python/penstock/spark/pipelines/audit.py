"""The journal audited: how long messages waited, which were never taken, what was backed out, who
put most.

What is known is what the journal still holds. With circular logging that is the recent past; with
linear logging and its archive, all of it. The journal knows persistent messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
    """What an audit found: tables that are computed when they are used, from one reading.

    Attributes:
        queues: A row a queue: ``puts``, ``gets``, ``expired``, ``never_got`` and ``bytes`` of
            committed messages, ``gets_unknown`` (their put is not in the journal any more),
            ``backed_out`` (units that were), and the time from put to get in seconds: ``p50``,
            ``p90``, ``p99``, ``longest``.
        never_got: Messages that were put and neither taken, nor expired, nor deleted with their
            queue: ``queue``, ``msg_id``, ``sequence``, ``priority``, ``put_time``,
            ``put_appl_name``, ``body_length``.
        backed_out: Units of work: ``unit_id``, ``end_time``, ``queues``, ``puts``, ``gets``.
        putters: Programs and users: ``put_appl_name``, ``user_identifier``, ``messages``,
            ``bytes``, ``first``, ``last``; those that put most messages first.
        gaps: What could not be read: ``event`` (DAMAGED, LOST), ``segment``, ``bytes``; only with
            onDamage=skip or failOnDataLoss=false, and then all else is about the rest.
        records: The records that all this is made of, kept by Spark's workers; ``release`` frees
            them.
    """

    queues: DataFrame
    never_got: DataFrame
    backed_out: DataFrame
    putters: DataFrame
    gaps: DataFrame
    records: DataFrame

    def release(self) -> None:
        """Frees what is kept. Tables that are used later are computed from a new reading."""
        self.records.unpersist()


def audit(spark: SparkSession, options: Mapping[str, Any]) -> Audit:
    """Audits the journal as it is when the first table is used.

    The records are read once and kept, in memory and what does not fit there on disk, until
    ``release``: so the tables agree with one another while the queue manager goes on working.

    Args:
        spark: The session; its workers are on the queue manager's machine.
        options: See ``AuditOptions``.

    Raises:
        OptionError: An option is wrong.
    """
    chosen = read_options(AuditOptions, options)
    records = read_journal(spark, chosen.source, COLUMNS).persist()
    return audit_records(records, chosen.queue)


def audit_records(records: DataFrame, queue: str | None = None) -> Audit:
    """Audits a table of records.

    Args:
        records: Columns as in ``COLUMNS``.
        queue: Only of this queue; None: of all but those named ``SYSTEM.``.
    """
    units = ended_units(records)
    # what ends units names no queue, so it was looked at before the others are left out
    mine = F.col("queue") == queue if queue else ~F.col("queue").startswith("SYSTEM.")
    known = with_outcome(records.where(mine), units)
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
        gaps=records.where(F.col("event").isin("DAMAGED", "LOST")).select(
            "event", "segment", F.col("body_length").alias("bytes")
        ),
        records=records,
    )


def _never_got(puts: DataFrame, gets: DataFrame, committed: DataFrame) -> DataFrame:
    """Puts whose message nothing has removed."""
    expired = committed.where(F.col("event") == "EXPIRE").select("sequence")
    # CLEAR removes what arrived before the number that it carries, OBJECT_DELETE what was there
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
    put_side = puts.groupBy("queue").agg(
        F.count("*").alias("puts"), F.sum("body_length").alias("bytes")
    )
    wait = (F.col("got_time").cast("double") - F.col("put_time").cast("double")).alias("wait")
    pairs = gets.join(puts.select("sequence", "put_time"), "sequence", "left").select("*", wait)
    get_side = pairs.groupBy("queue").agg(
        F.count("*").alias("gets"),
        F.count_if(F.col("put_time").isNull()).alias("gets_unknown"),
        *(
            F.percentile_approx("wait", share, ACCURACY).alias(name)
            for name, share in _PERCENTILES.items()
        ),
        F.max("wait").alias("longest"),
    )
    expired = committed.where(F.col("event") == "EXPIRE").groupBy("queue")
    left = never_got.groupBy("queue").agg(F.count("*").alias("never_got"))
    undone = backed_out.select(F.explode("queues").alias("queue")).groupBy("queue")
    joined = put_side
    for other in (
        get_side,
        expired.agg(F.count("*").alias("expired")),
        left,
        undone.agg(F.count("*").alias("backed_out")),
    ):
        joined = joined.join(other, "queue", "full")
    counts = ("puts", "gets", "expired", "never_got", "backed_out", "gets_unknown", "bytes")
    return joined.select(
        "queue",
        *(F.coalesce(F.col(name), F.lit(0)).alias(name) for name in counts),
        *_PERCENTILES,
        "longest",
    ).orderBy("queue")


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

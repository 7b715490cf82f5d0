"""The journal as a table of records, and the outcomes of their units of work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["COMMITTED", "RECORD", "ended_units", "read_journal", "with_outcome"]

RECORD: Mapping[str, str] = {
    "event": "string",
    "lsn": "bigint",
    "time": "timestamp",
    "unit_id": "bigint",
    "commits": "boolean",
    "queue": "string",
    "sequence": "bigint",
}
"""Columns of every record that outcomes need -> their types."""

COMMITTED, BACKED_OUT = "committed", "backed out"
_OUTCOMES = {
    "COMMIT": COMMITTED,
    "COMMIT_PREPARED": COMMITTED,
    "BACKOUT": BACKED_OUT,
    "BACKOUT_PREPARED": BACKED_OUT,
}


def read_journal(
    spark: SparkSession, options: Mapping[str, str], columns: Mapping[str, str]
) -> DataFrame:
    """Records of a queue manager's journal, these columns of them and no others.

    Args:
        spark: The session.
        options: Of the source: ``queueManager`` and whatever else it takes.
        columns: Name -> Spark's type. Bodies are read only when ``body`` is among them.
    """
    from penstock.spark import register

    register(spark)
    schema = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return (
        spark.read.format("penstock")
        .schema(schema)
        .option("mode", "journal")
        .options(**options)
        .load()
    )


def ended_units(records: DataFrame) -> DataFrame:
    """One row for each unit of work that ended: ``unit_id``, ``outcome``, ``end_time``.

    A record may end its unit itself (``commits``). The unit of a prepared one is ended by the
    record that decides it, not by its preparation.
    """
    said = F.create_map(*(F.lit(text) for pair in _OUTCOMES.items() for text in pair))
    outcome = F.coalesce(F.try_element_at(said, "event"), F.when(F.col("commits"), COMMITTED))
    return (
        records.where(F.col("unit_id") != 0)
        .select("unit_id", outcome.alias("outcome"), "lsn", "time")
        .where(F.col("outcome").isNotNull())
        .groupBy("unit_id")
        .agg(F.max_by("outcome", "lsn").alias("outcome"), F.max_by("time", "lsn").alias("end_time"))
    )


def with_outcome(records: DataFrame, units: DataFrame) -> DataFrame:
    """Records with ``outcome`` and ``end_time`` of their units; both null while a unit is open.

    A record without a unit stands alone: it was committed as it was written.
    """
    alone = F.col("unit_id") == 0
    return (
        records.join(units, "unit_id", "left")
        .withColumn("outcome", F.when(alone, COMMITTED).otherwise(F.col("outcome")))
        .withColumn("end_time", F.when(alone, F.col("time")).otherwise(F.col("end_time")))
    )

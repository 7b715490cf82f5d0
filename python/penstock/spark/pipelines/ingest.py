"""Log lines from a queue into a partitioned Parquet table, and the most severe of them as alerts.

Two streams, each exactly once:

    queue --> table          lines are taken in delivery order, the most severe first, parsed and
                             written; a micro-batch is committed when it is in the table
    table --> alert queue    new rows of at least the alert level are put, all of a micro-batch in
                             one unit of work

So every row of at least that level has one alert, whatever process is killed. The table must be
read by Spark: only Spark distinguishes files of unfinished micro-batches from the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from .formats import SEVERITY
from .options import IngestOptions, OptionError, read_options
from .parse import PARSED, parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["alerts_of", "ingest", "table_of"]

TABLE = (
    "msg_id binary, sequence long, lsn long, priority int, put_time timestamp, "
    "event_time timestamp, level string, severity int, component string, message string, "
    "log_format string, day date"
)
PARTITIONS = ("log_format", "day")
MOST_CHARACTERS = {"component": 1_000, "message": 10_000}
"""Limit for long texts in an alert, which has their beginning. The table has all of them."""


def ingest(
    spark: SparkSession, options: Mapping[str, Any]
) -> tuple[StreamingQuery, StreamingQuery]:
    """Starts both streams; with trigger ``availableNow`` it returns when both are done.

    Args:
        spark: The session; its workers are on the queue manager's machine.
        options: see ``IngestOptions``.

    Returns:
        The stream into the table and the one into the alert queue.

    Raises:
        OptionError: An option is wrong.
        StreamingQueryException: A stream failed, with trigger ``availableNow``; else the queries
            have the error. A new call continues from the checkpoint.
    """
    from penstock.spark import register

    chosen = read_options(IngestOptions, options)
    level = chosen.alert_level.upper()
    if level not in SEVERITY:
        raise OptionError(f"option alertLevel is one of {', '.join(SEVERITY)}, not {level!r}")
    register(spark)
    _make_alert_queue(chosen)
    # the second stream must see from its first look on that the table has a list of its files
    Path(chosen.table, "_spark_metadata").mkdir(parents=True, exist_ok=True)
    first = _to_table(spark, chosen)
    if chosen.trigger.lower() == "availablenow":
        first.awaitTermination()
    second = _to_alerts(spark, chosen, SEVERITY[level])
    if chosen.trigger.lower() == "availablenow":
        second.awaitTermination()
    return first, second


def table_of(messages: DataFrame, zone: str = "UTC") -> DataFrame:
    """Messages of the source as rows of the table, columns as in ``TABLE``."""
    parsed = parse(messages, zone=zone).withColumn(
        "day", F.to_date(F.coalesce("event_time", "put_time"))
    )
    return parsed.select("msg_id", "sequence", "lsn", "priority", "put_time", *_rest())


def _rest() -> list[str]:
    order = ("event_time", "level", "severity", "component", "message", "log_format")
    assert set(order) == set(PARSED)
    return [*order, "day"]


def alerts_of(rows: DataFrame, severity: int) -> DataFrame:
    """Rows of the table of at least that severity as messages for the sink.

    The body is a JSON object; the correlation identifier is the line's message identifier.
    """
    names = ("event_time", "level", "component", "message", "log_format", "sequence")
    fields = (
        F.substring(name, 1, MOST_CHARACTERS[name]).alias(name) if name in MOST_CHARACTERS else name
        for name in names
    )
    return rows.where(F.col("severity") >= severity).select(
        F.to_json(F.struct(*fields)).cast("binary").alias("body"),
        F.col("severity").alias("priority"),
        F.lit(True).alias("persistent"),
        F.col("msg_id").alias("correl_id"),
    )


def _make_alert_queue(chosen: IngestOptions) -> None:
    import penstock

    with penstock.connect(chosen.queue_manager, chosen.home) as qm:
        qm.queue(chosen.alerts_to).close()


def _trigger(chosen: IngestOptions) -> dict[str, Any]:
    if chosen.trigger.lower() == "availablenow":
        return {"availableNow": True}
    return {"processingTime": chosen.trigger}


def _to_table(spark: SparkSession, chosen: IngestOptions) -> StreamingQuery:
    limits = {"maxMessagesPerTrigger": str(chosen.max_messages_per_trigger)}
    if chosen.max_bytes_per_trigger is not None:
        limits["maxBytesPerTrigger"] = str(chosen.max_bytes_per_trigger)
    messages = (
        spark.readStream.format("penstock")
        .options(**chosen.place, **limits, queue=chosen.queue)
        .load()
    )
    return (
        table_of(messages, chosen.time_zone)
        .writeStream.format("parquet")
        .partitionBy(*PARTITIONS)
        .option("path", chosen.table)
        .option("checkpointLocation", f"{chosen.checkpoint}/table")
        .queryName("penstock ingest: table")
        .trigger(**_trigger(chosen))
        .start()
    )


def _to_alerts(spark: SparkSession, chosen: IngestOptions, severity: int) -> StreamingQuery:
    rows = spark.readStream.schema(TABLE).parquet(chosen.table)
    return (
        alerts_of(rows, severity)
        .writeStream.format("penstock")
        .options(**chosen.place, queue=chosen.alerts_to)
        .option("checkpointLocation", f"{chosen.checkpoint}/alerts")
        .queryName("penstock ingest: alerts")
        .trigger(**_trigger(chosen))
        .start()
    )

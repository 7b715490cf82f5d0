"""Log lines from a queue into a partitioned Parquet table, and the most severe of them as alerts.

Two streams, each exactly once:

    queue --> table          lines are taken in delivery order, the most severe first, parsed and
                             written; a micro-batch is committed when it is in the table
    table --> alert queue    new rows of at least the alert level are put, all of a micro-batch in
                             one unit of work

So every row of at least that level has one alert, whatever process is killed. The table must be
read by Spark: only Spark distinguishes files of unfinished micro-batches from the others.

A line that no format matches is of the format ``generic``; one without a time that can be read is
of the day ``unknown``. unmatched() reports both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from .formats import FORMATS, GENERIC, SEVERITY, Format
from .options import IngestOptions, OptionError, read_options
from .parse import PARSED, check_formats, parse
from .user_formats import all_formats

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Lines", "alerts_of", "counted", "ingest", "table_of", "unmatched"]

TABLE = (
    "msg_id binary, sequence long, lsn long, priority int, put_time timestamp, "
    "event_time timestamp, level string, severity int, component string, message string, "
    "log_format string, day string"
)
PARTITIONS = ("log_format", "day")
UNKNOWN = "unknown"  # the day of lines without a time that can be read
_SHAPE = 60  # characters of a line that its shape is made of
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
    formats = all_formats(chosen.formats)
    check_formats(spark, formats[: -len(FORMATS)])
    register(spark)
    _make_alert_queue(chosen)
    for stream in ("table", "alerts"):
        _clear_beginning(Path(chosen.checkpoint, stream))
    # the second stream must see from its first look on that the table has a list of its files
    Path(chosen.table, "_spark_metadata").mkdir(parents=True, exist_ok=True)
    first = _to_table(spark, chosen, formats)
    if chosen.trigger.lower() == "availablenow":
        first.awaitTermination()
    second = _to_alerts(spark, chosen, SEVERITY[level])
    if chosen.trigger.lower() == "availablenow":
        second.awaitTermination()
    return first, second


def table_of(
    messages: DataFrame, zone: str = "UTC", formats: Sequence[Format] = FORMATS
) -> DataFrame:
    """Messages of the source as rows of the table, columns as in ``TABLE``."""
    day = F.coalesce(F.date_format("event_time", "yyyy-MM-dd"), F.lit(UNKNOWN))
    parsed = parse(messages, zone=zone, formats=formats).withColumn("day", day)
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


@dataclass(frozen=True)
class Lines:
    """Numbers of lines in a table: all, those that no format matches, those without a time."""

    all: int
    generic: int
    timeless: int


def counted(spark: SparkSession, table: str) -> Lines:
    """Counts the lines of a table; only the lists of its files are read, not the lines."""
    rows = _read_table(spark, table).groupBy(*PARTITIONS).count().collect()
    return Lines(
        sum(row["count"] for row in rows),
        sum(row["count"] for row in rows if row.log_format == GENERIC.name),
        sum(row["count"] for row in rows if row.day == UNKNOWN),
    )


def unmatched(spark: SparkSession, table: str) -> DataFrame:
    """The lines that no format matches or that have no time, by their shape, the most first.

    A shape is the beginning of a line with ``0`` for numbers and ``a`` for words: lines of one
    program have few of them.

    Returns:
        Columns ``lines`` (their number), ``log_format``, ``no_time`` (of how many no time could be
        read), ``shape``, and ``example``, one of the lines.
    """
    rows = _read_table(spark, table)
    shape = F.substring("message", 1, _SHAPE)
    for pattern, text in ((r"[0-9]+", "0"), (r"[A-Za-z]+", "a"), (r"a( a)+", "a")):
        shape = F.regexp_replace(shape, pattern, text)
    return (
        rows.where((F.col("log_format") == GENERIC.name) | (F.col("day") == UNKNOWN))
        .groupBy("log_format", shape.alias("shape"))
        .agg(
            F.count(F.lit(1)).alias("lines"),
            F.count_if(F.col("day") == UNKNOWN).alias("no_time"),
            F.min("message").alias("example"),
        )
        .select("lines", "log_format", "no_time", "shape", "example")
        .orderBy(F.desc("lines"), "shape")
    )


def _read_table(spark: SparkSession, table: str) -> DataFrame:
    return spark.read.schema(TABLE).parquet(table)


def _make_alert_queue(chosen: IngestOptions) -> None:
    import penstock

    with penstock.connect(chosen.queue_manager, chosen.home) as qm:
        qm.queue(chosen.alerts_to).close()


def _clear_beginning(checkpoint: Path) -> None:
    """Removes the half-written first offset of a stream that was stopped at that moment: Spark
    refuses a checkpoint in which it lies, although no micro-batch has begun.
    """
    offsets = list((checkpoint / "offsets").glob("*"))
    if all(path.name.startswith(".") for path in offsets):
        for path in offsets:
            path.unlink()


def _trigger(chosen: IngestOptions) -> dict[str, Any]:
    if chosen.trigger.lower() == "availablenow":
        return {"availableNow": True}
    return {"processingTime": chosen.trigger}


def _to_table(
    spark: SparkSession, chosen: IngestOptions, formats: Sequence[Format]
) -> StreamingQuery:
    limits = {"maxMessagesPerTrigger": str(chosen.max_messages_per_trigger)}
    if chosen.max_bytes_per_trigger is not None:
        limits["maxBytesPerTrigger"] = str(chosen.max_bytes_per_trigger)
    messages = (
        spark.readStream.format("penstock")
        .options(**chosen.place, **limits, queue=chosen.queue)
        .load()
    )
    return (
        table_of(messages, chosen.time_zone, formats)
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

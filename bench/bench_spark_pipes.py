"""What a user of Spark streams waits for: a small micro-batch, and rows in Parquet files.

A micro-batch of a stream over a queue against one of a source of constant batches, from its trigger
to its end: what Spark logs, plans and schedules is in both. Rows end in Spark's ``noop`` sink. A
micro-batch is the median of those of a query, without its first ones, for which Spark compiles.

Queue to Parquet against Spark's own file source: the same rows as JSON lines, in as many files as
the stream has micro-batches and tasks. The time is that of all triggers.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import workloads as w
from bench_spark import PARTITIONS, TRIGGERS, Job
from conftest import Interleave
from report import Aim

MICRO_BATCHES = 16  # of a query
FIRST = 4  # of these, which are not counted
MESSAGES = 1_000  # of the micro-batch with an aim
ROWS = 300_000
SIZE = 256
COLUMNS = "priority int, body string"
Scale = Callable[[int], int]


class Small(Job):
    """Queries of many small micro-batches."""

    def micro_batch(self, source: str, options: dict[str, str]) -> float:
        """Seconds of a micro-batch."""
        self.enter(source)
        stream = self.spark.readStream.format(source).options(**options).load()
        checkpoint = self.files / "checkpoint"
        shutil.rmtree(checkpoint, ignore_errors=True)
        query = (
            stream.writeStream.format("noop")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        each = self.rows // MICRO_BATCHES
        found = [p for p in query.recentProgress if p.numInputRows == each]
        w.expect(len(found) == MICRO_BATCHES, f"{len(found)} micro-batches of {each} rows")
        return median(p.durationMs["triggerExecution"] for p in found[FIRST:]) / 1000


@pytest.mark.parametrize("messages", [1, MESSAGES, 10 * MESSAGES])
def bench_micro_batch(interleave: Interleave, spark: Any, files: Path, messages: int) -> None:
    """From the trigger to the end of a micro-batch."""
    with w.manager(files) as qm:
        w.define(qm, "BENCH", persistent=True).close()
        job = Small(spark, qm, files, SIZE, messages * MICRO_BATCHES)
        given = {**job.penstock, "maxMessagesPerTrigger": str(messages)}
        constant = {**job.constant, "triggers": str(MICRO_BATCHES), "partitions": "1"}

        def penstock() -> float:
            job.fill()
            return job.micro_batch("penstock", given)

        interleave(
            f"Spark micro-batch of {messages:,} messages, from trigger to end",
            {
                "penstock": penstock,
                "constant": lambda: job.micro_batch("constant", constant),
            },
            [Aim("time", 1.5, "constant")] if messages == MESSAGES else [],
            3,
        )
        w.wait_until_alone(qm)


def bench_parquet(interleave: Interleave, spark: Any, files: Path, scale: Scale) -> None:
    """A stream into Parquet files, of a queue and of JSON lines."""
    rows = scale(ROWS) // (TRIGGERS * PARTITIONS) * TRIGGERS * PARTITIONS
    bodies = [w.body(number, SIZE // 2).hex() for number in range(rows)]
    lines, table = files / "lines", files / "table"
    lines.mkdir()
    each = rows // (TRIGGERS * PARTITIONS)
    for at in range(0, rows, each):
        some = (json.dumps({"priority": 4, "body": body}) for body in bodies[at : at + each])
        (lines / f"{at:09d}.json").write_text("\n".join(some) + "\n")
    with w.manager(files) as qm:
        w.define(qm, "BENCH", persistent=True).close()
        job = Job(spark, qm, files, SIZE, rows)

        def written(stream: Any) -> float:
            shutil.rmtree(table, ignore_errors=True)
            seconds = job.trigger(stream, "parquet", {"path": str(table)})
            found = spark.read.parquet(str(table)).selectExpr("count(*)", "max(body)").first()
            w.expect(tuple(found) == (rows, max(bodies)), f"the table has {found}")
            return seconds

        def penstock() -> float:
            with qm.open("BENCH") as queue:
                for at in range(0, rows, 10_000):
                    some = [body.encode() for body in bodies[at : at + 10_000]]
                    queue.put_batch(some, priority=4, persistent=True)
            stream = spark.readStream.format("penstock").schema(COLUMNS)
            return written(stream.options(**job.stream).load())

        def json_lines() -> float:
            stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", PARTITIONS)
            return written(stream.json(str(lines)))

        interleave(
            f"Spark, a queue to Parquet, {SIZE} bytes, a row",
            {"penstock": penstock, "JSON lines": json_lines},
            [Aim("rate", 0.95, "JSON lines")],
            5,
        )
        w.wait_until_alone(qm)

"""Spark jobs on queues against the same jobs on a source of constant batches and a discarding sink.

A row is one message. Reads end in Spark's ``noop`` sink; a stream takes all rows in a few
micro-batches one after the other, of which the whole triggers count, the first and the last one
that finds nothing included: planning, taking the units of work, reading, committing. Messages are
persistent; they are put outside the time. A sink writes 32 bytes of journal with each
body, where a discarding one writes nothing: beside both stands what a program needs that only
appends those bytes to a file and flushes them, unit of work by unit of work.

Each side has Python workers of its own, as in an application that has no other source or sink. A
source of constant batches feeds the sinks in the workers of their side. Where penstock is in them,
Spark's collection of garbage after each step costs next to nothing (penstock/spark/base/worker.py);
beside a short job of the others it takes a share of their time.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import limits
import workloads as w
from conftest import Interleave
from limits import PAGE, put_unit_bytes
from report import Aim

ROWS = {256: 300_000, 1024: 150_000}
PARTITIONS = 2
TRIGGERS = 3  # micro-batches of a stream that is read
ROUNDS = 9
WARM_UPS = 5  # in which the JVM compiles what it runs: 360 ms of processor time a round at first
OWN_WORKERS = "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled"  # part of a pool's key
SHARE = 10_000  # messages of a put_batch; and of a unit of work, which MAXUMSGS allows

RAW = "raw append + flush"
Scale = Callable[[int], int]


class Job:
    """One Spark session, one queue manager, rows of one size."""

    def __init__(self, spark: Any, qm: Any, files: Path, size: int, rows: int) -> None:
        self.spark, self.qm, self.files, self.size, self.rows = spark, qm, files, size, rows
        self.constant = {"rows": str(rows), "size": str(size), "partitions": str(PARTITIONS)}
        self.penstock = {
            "queueManager": w.NAME,
            "home": str(files),
            "queue": "BENCH",
        }
        self.split = {**self.penstock, "minPartitions": str(PARTITIONS)}
        a_batch = str(-(-rows // TRIGGERS))
        self.stream = {  # as many tasks as beside
            **self.split,
            "maxMessagesPerTrigger": a_batch,
            "messagesPerPartition": a_batch,
        }

    def enter(self, side: str) -> None:
        """What follows runs in the Python workers of this side: penstock, or another one."""
        self.spark.conf.set(OWN_WORKERS, str(side != "penstock").lower())

    def fill(self) -> None:
        """Puts the rows' messages on the queue, which must be empty."""
        with self.qm.open("BENCH") as queue:
            w.expect(queue.depth == 0, f"{queue.depth} messages were left")
            bodies = [w.body(number, self.size) for number in range(SHARE)]
            for begin in range(0, self.rows, SHARE):
                queue.put_batch(bodies[: self.rows - begin], persistent=True)

    def empty(self, rows: int) -> None:
        """Takes the messages on the queue and checks their number and length."""
        with self.qm.open("BENCH") as queue:
            w.expect(queue.depth == rows, f"{queue.depth} messages, not {rows}")
            while len(batch := queue.get_batch(SHARE)):
                lengths = batch.offsets[1:] - batch.offsets[:-1]
                w.expect(bool((lengths == self.size).all()), "a body of another length")

    def batch_read(self, source: str, options: dict[str, str]) -> float:
        """Reads all rows into nothing."""
        self.enter(source)
        begun = time.perf_counter()
        table = self.spark.read.format(source).options(**options).load()
        table.write.format("noop").mode("overwrite").save()
        return (time.perf_counter() - begun) / self.rows

    def trigger(self, stream: Any, sink: str, options: dict[str, str]) -> float:
        """Runs a stream once over all there is; seconds of its triggers for a row."""
        checkpoint = self.files / "checkpoint"
        shutil.rmtree(checkpoint, ignore_errors=True)
        query = (
            stream.writeStream.format(sink)
            .options(**options)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        progress = query.recentProgress
        came = sum(p.numInputRows for p in progress)
        w.expect(came == self.rows, f"{came} rows came, not {self.rows}")
        return sum(p.durationMs["triggerExecution"] for p in progress) / 1000 / self.rows

    def stream_read(self, source: str, options: dict[str, str]) -> float:
        """Streams all rows into nothing."""
        self.enter(source)
        stream = self.spark.readStream.format(source).options(**options).load()
        return self.trigger(stream, "noop", {})

    def batch_sink(self, sink: str, options: dict[str, str]) -> float:
        """Writes all rows."""
        self.enter(sink)
        table = self.spark.read.format("constant").options(**self.constant).load()
        begun = time.perf_counter()
        table.select("body", "priority").write.format(sink).options(**options).mode("append").save()
        return (time.perf_counter() - begun) / self.rows

    def stream_sink(self, sink: str, options: dict[str, str]) -> float:
        """Streams all rows into the sink."""
        self.enter(sink)
        stream = self.spark.readStream.format("constant").options(**self.constant).load()
        return self.trigger(stream.select("body", "priority"), sink, options)


@pytest.fixture(params=sorted(ROWS))
def job(request: pytest.FixtureRequest, spark: Any, files: Path, scale: Scale) -> Iterator[Job]:
    """The job at each size."""
    with w.manager(files) as qm:
        w.define(qm, "BENCH", persistent=True).close()
        job = Job(spark, qm, files, request.param, scale(ROWS[request.param]))
        yield job
        w.wait_until_alone(qm)


def bench_batch_read(interleave: Interleave, job: Job) -> None:
    """mode=browse: the messages stay."""
    job.fill()
    interleave(
        f"Spark batch read of {job.size} bytes, a row",
        {
            "penstock": lambda: job.batch_read("penstock", job.split),
            "constant": lambda: job.batch_read("constant", job.constant),
        },
        [Aim("rate", 0.9, "constant")],
        ROUNDS,
        warm_ups=WARM_UPS,
    )
    job.empty(job.rows)


def bench_stream_read(interleave: Interleave, job: Job) -> None:
    """Micro-batches: prepared units of work, read by the tasks."""
    constant = {**job.constant, "triggers": str(TRIGGERS)}

    def streamed() -> float:
        job.fill()
        seconds = job.stream_read("penstock", job.stream)
        left = job.qm.recover()
        w.expect(not left, f"{len(left)} units in doubt")
        job.empty(0)
        return seconds

    interleave(
        f"Spark stream of {job.size} bytes, a row",
        {
            "penstock": streamed,
            "constant": lambda: job.stream_read("constant", constant),
        },
        [Aim("rate", 0.9, "constant")],
        ROUNDS,
        warm_ups=WARM_UPS,
    )


@pytest.mark.parametrize("kind", ["batch", "stream"])
def bench_sink(interleave: Interleave, job: Job, files: Path, kind: str) -> None:
    """Constant rows into the queue, durable and all at once."""
    write = getattr(job, f"{kind}_sink")
    unit = min(SHARE, job.rows)
    units = -(-job.rows // unit)
    payload = put_unit_bytes(unit, job.size)

    def put() -> float:
        seconds: float = write("penstock", job.penstock)
        job.empty(job.rows)
        return seconds

    with limits.RawLog(files / "raw", units * (payload + PAGE)) as log:
        figure = interleave(
            f"Spark {kind} sink of {job.size} bytes, a row",
            {
                "penstock": put,
                "discard": lambda: write("discard", {"rows": str(job.rows)}),
                RAW: lambda: log.append(payload, units) / unit,
            },
            [Aim("rate", 0.85, "discard")],
            ROUNDS,
            warm_ups=WARM_UPS,
        )
    times = figure.medians()
    figure.notes.append(
        f"the bytes alone take {times[RAW] / times['discard']:.2f} of discard's time: "
        f"one after the other would be {times['discard'] / (times['discard'] + times[RAW]):.2f} "
        "of its rate"
    )

"""Spark jobs on queues against the same jobs on a source of constant batches and a discarding sink.

A row is one message. Reads end in Spark's ``noop`` sink; a stream is one micro-batch of all rows,
of which the whole trigger counts: planning, taking the unit of work, reading, committing. Messages
are persistent; they are put, and what a stream leaves in doubt is committed, outside the time.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
import penstock.spark
import workloads as w
from conftest import Interleave
from penstock.spark.local import local_session
from report import Aim
from spark_sources import ConstantSource, DiscardSink

ROWS = {256: 300_000, 1024: 150_000}
PARTITIONS = 2
ROUNDS = 3
SHARE = 10_000  # messages of a put_batch

Scale = Callable[[int], int]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local session of two cores that knows the sources."""
    local = str(tmp_path_factory.mktemp("spark"))
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # workers import spark_sources
    session = local_session("bench", settings={"spark.local.dir": local})
    penstock.spark.register(session)
    session.dataSource.register(ConstantSource)
    session.dataSource.register(DiscardSink)
    yield session
    session.stop()


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

    def fill(self) -> None:
        """Puts the rows' messages on the queue, which must be empty."""
        with self.qm.open("BENCH") as queue:
            w.expect(queue.depth == 0, f"{queue.depth} messages were left")
            bodies = [w.body(number, self.size) for number in range(SHARE)]
            for begin in range(0, self.rows, SHARE):
                queue.put_batch(bodies[: self.rows - begin], persistent=True)

    def empty(self, rows: int) -> None:
        """Takes what is on the queue: as many as that, whole."""
        with self.qm.open("BENCH") as queue:
            w.expect(queue.depth == rows, f"{queue.depth} messages, not {rows}")
            while len(batch := queue.get_batch(SHARE)):
                lengths = batch.offsets[1:] - batch.offsets[:-1]
                w.expect(bool((lengths == self.size).all()), "a body of another length")

    def batch_read(self, source: str, options: dict[str, str]) -> float:
        """Reads all rows into nothing."""
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
        stream = self.spark.readStream.format(source).options(**options).load()
        return self.trigger(stream, "noop", {})

    def batch_sink(self, sink: str, options: dict[str, str]) -> float:
        """Writes all rows."""
        table = self.spark.read.format("constant").options(**self.constant).load()
        begun = time.perf_counter()
        table.select("body", "priority").write.format(sink).options(**options).mode("append").save()
        return (time.perf_counter() - begun) / self.rows

    def stream_sink(self, sink: str, options: dict[str, str]) -> float:
        """Streams all rows into the sink."""
        stream = self.spark.readStream.format("constant").options(**self.constant).load()
        return self.trigger(stream.select("body", "priority"), sink, options)


@pytest.fixture(params=sorted(ROWS))
def job(request: pytest.FixtureRequest, spark: Any, files: Path, scale: Scale) -> Iterator[Job]:
    """The job at each size."""
    with w.manager(files) as qm:
        w.define(qm, "BENCH", persistent=True).close()
        yield Job(spark, qm, files, request.param, scale(ROWS[request.param]))


def bench_batch_read(interleave: Interleave, job: Job) -> None:
    """mode=browse: the messages stay."""
    job.fill()
    interleave(
        f"Spark batch read of {job.size} bytes, a row",
        {
            "penstock": lambda: job.batch_read("penstock", job.penstock),
            "constant": lambda: job.batch_read("constant", job.constant),
        },
        [Aim("rate", 0.9, "constant")],
        ROUNDS,
    )
    job.empty(job.rows)


def bench_stream_read(interleave: Interleave, job: Job) -> None:
    """A micro-batch: a prepared unit of work, read by the tasks."""

    def streamed() -> float:
        job.fill()
        split = {"minPartitions": str(PARTITIONS)}
        seconds = job.stream_read("penstock", {**job.penstock, **split})
        left = job.qm.recover()
        w.expect(not left, f"{len(left)} units in doubt")
        job.empty(0)
        return seconds

    interleave(
        f"Spark stream of {job.size} bytes, a row",
        {
            "penstock": streamed,
            "constant": lambda: job.stream_read("constant", job.constant),
        },
        [Aim("rate", 0.9, "constant")],
        ROUNDS,
    )


@pytest.mark.parametrize("kind", ["batch", "stream"])
def bench_sink(interleave: Interleave, job: Job, kind: str) -> None:
    """Constant rows into the queue, durable and all at once."""
    write = getattr(job, f"{kind}_sink")

    def put() -> float:
        seconds: float = write("penstock", job.penstock)
        job.empty(job.rows)
        return seconds

    interleave(
        f"Spark {kind} sink of {job.size} bytes, a row",
        {
            "penstock": put,
            "discard": lambda: write("discard", {"rows": str(job.rows)}),
        },
        [Aim("rate", 0.8, "discard")],
        ROUNDS,
    )

"""The cost of a micro-batch end to end, independent of its contents: a stream fed batch by batch.

A figure is the time of a trigger that found messages: checking the queue, Spark's logs, taking and
preparing a unit of work, tasks, sink, commit. The sides differ in where the checkpoint is and in
how its logs are written; there is no aim, because most of the time is Spark's own. Messages have
256 bytes and are persistent.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock
import workloads as w
from conftest import Interleave

COUNTS = (1, 1_000, 10_000)  # messages of a micro-batch
FED = 6  # micro-batches of a sample; the first one is not counted
ROUNDS = 3
LIMIT_SECONDS = 120.0
ASYNCHRONOUS = {"asyncProgressTrackingEnabled": "true"}


class Stream:
    """A queue and the stream that empties it."""

    def __init__(self, spark: Any, qm: penstock.QueueManager, home: Path) -> None:
        self.spark, self.qm, self.home = spark, qm, home

    def sample(
        self, count: int, checkpoint: Path, sink: dict[str, str], source: dict[str, str]
    ) -> float:
        """The median of some triggers with this many messages each."""
        there = {"queueManager": w.NAME, "home": str(self.home), "queue": "BENCH", **source}
        rows = self.spark.readStream.format("penstock").options(**there).load()
        folder = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir=checkpoint))
        writer = rows.writeStream.format("noop").options(**sink)
        query = writer.option("checkpointLocation", str(folder)).start()
        try:
            with self.qm.open("BENCH") as queue:
                for fed in range(1, FED + 1):
                    queue.put_batch([w.body(n, 256) for n in range(count)], persistent=True)
                    self.wait(query, fed * count)
        finally:
            query.stop()
            shutil.rmtree(folder, ignore_errors=True)
        self.wait_all()
        triggers = [p for p in query.recentProgress if p.numInputRows]
        return statistics.median(p.durationMs["triggerExecution"] / 1000 for p in triggers[1:])

    def wait(self, query: Any, rows: int) -> None:
        """Waits until this many rows have come."""
        until = time.monotonic() + LIMIT_SECONDS
        while (came := sum(p.numInputRows for p in query.recentProgress)) < rows:
            w.expect(query.isActive and time.monotonic() < until, f"{came} of {rows} rows came")
            time.sleep(0.02)
        w.expect(came == rows, f"{came} rows came, not {rows}")

    def wait_all(self) -> None:
        """The source's process has left; what the stream kept in doubt is committed."""
        until = time.monotonic() + LIMIT_SECONDS
        while len(self.qm.process_list()) > 1:
            w.expect(time.monotonic() < until, "processes are still attached")
            time.sleep(0.02)
        if left := self.qm.recover():
            self.qm.commit_prepared(*left)
        with self.qm.open("BENCH") as queue:
            w.expect(queue.depth == 0, f"{queue.depth} messages were left")


@pytest.mark.parametrize("count", COUNTS)
def bench_micro_batch(
    interleave: Interleave, spark: Any, files: Path, scale: Callable[[int], int], count: int
) -> None:
    """A stream into Spark's ``noop`` sink."""
    count = scale(count) if count > 1 else count
    memory = w.REGION_DIRECTORY
    with w.manager(files) as qm:
        w.define(qm, "BENCH", persistent=True).close()
        stream = Stream(spark, qm, files)
        interleave(
            f"a micro-batch of {count:,}",
            {
                "checkpoint on disk": lambda: stream.sample(count, files, {}, {}),
                "checkpoint on tmpfs": lambda: stream.sample(count, memory, {}, {}),
                "on disk, asynchronous progress": lambda: stream.sample(
                    count, files, ASYNCHRONOUS, {"eagerCommit": "false"}
                ),
            },
            [],
            ROUNDS,
        )
        w.wait_until_alone(qm)

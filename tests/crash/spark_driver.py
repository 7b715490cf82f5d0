"""The Spark job of spark_storm.py and spark_remote_storm.py: two streams, which run until the
supervisor stops them.

    STORM_FOLDER=... python tests/crash/spark_driver.py MANAGER HOME FOLDER

*table*: queues IN and IN.TOO into a Parquet table. *hop*: queue HOP, of which what was backed out
once goes to POISON, through the sink into the queues OUT and ODD and, of rows without a queue, into
DEAD. Both run with checkpoints and may be killed at any time. The job ends, in order, when the file
``stop`` exists, neither stream has input left, and the listener of ``register`` has committed the
last micro-batches, which the supervisor of a job on another host says by the file ``settled``.

STORM_PLACE has the options that say where the queue manager is, if it is on another host,
STORM_CLUSTER the master of a cluster and this host's address there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery
from spark_dying import DyingDataSource

import penstock
import penstock.flight
from penstock.flight.client import RemoteQueueManager
from penstock.spark import register
from penstock.spark.local import local_session

SETTINGS = {
    "spark.master": "local[2,8]",  # a task that died with its worker is tried again
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.streaming.fileSink.log.deletion": "false",  # the check reads all of them
    # what runs for seconds is not worth the best code
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
END_SECONDS = 120
SOURCES = ("IN", "IN.TOO", "HOP")


def main(manager: str, home: str, folder: Path) -> None:
    """Runs until the file ``stop`` exists."""
    settings = {**SETTINGS, **cluster(), "spark.local.dir": str(folder / "local")}
    spark = local_session("storm", settings=settings)
    register(spark)  # its listener commits the last micro-batches
    spark.dataSource.register(DyingDataSource)
    place = json.loads(os.environ.get("STORM_PLACE", "null")) or {"home": home}
    place["queueManager"] = manager

    def stream(**queues: str) -> object:
        limit = {"maxMessagesPerTrigger": "400"}
        return spark.readStream.format("penstock").options(**queues, **place, **limit).load()

    table = stream(queuePattern="IN*").select("queue", "correl_id", "body", "priority", "sequence")
    low = "int(conv(hex(substring(correl_id, 1, 1)), 16, 10))"
    to = f"element_at(array('OUT', 'ODD', 'NO.SUCH.QUEUE'), {low} % 3 + 1) AS queue"
    hop = stream(queue="HOP").selectExpr("correl_id", "body", "priority", "persistent", to)
    queries = [
        table.writeStream.format("parquet")
        .option("path", str(folder / "table"))
        .option("checkpointLocation", str(folder / "table.checkpoint"))
        .queryName("table")
        .start(),
        hop.writeStream.format("penstock")
        .options(**place, deadLetterQueue="DEAD")
        .option("checkpointLocation", str(folder / "hop.checkpoint"))
        .queryName("hop")
        .start(),
    ]
    (folder / "started").touch()
    if "endpoint" in place:
        with remote(place) as there:
            run(queries, folder, there.queues, (folder / "settled").exists)
    else:
        with penstock.connect(manager, home=home) as qm:
            sources = {name: qm.open(name) for name in SOURCES}

            def depths() -> dict[str, int]:
                return {name: queue.depth for name, queue in sources.items()}

            run(queries, folder, depths, lambda: not qm.recover())
    spark.stop()


def cluster() -> dict[str, str]:
    """Settings of a driver whose executors are elsewhere; none where it has its own."""
    if "STORM_CLUSTER" not in os.environ:
        return {}
    master, own = os.environ["STORM_CLUSTER"].split()
    return {
        "spark.master": master,
        "spark.driver.host": own,
        "spark.driver.bindAddress": own,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.task.maxFailures": "8",
        "spark.deploy.maxExecutorRetries": "-1",
    }


def remote(place: dict[str, str]) -> RemoteQueueManager:
    """The queue manager through its server."""
    token = Path(place["tokenFile"]).read_text().strip()
    return penstock.flight.connect(
        place["endpoint"], place["queueManager"], token=token, ca=place["caFile"]
    )


def run(
    queries: list[StreamingQuery],
    folder: Path,
    depths: Callable[[], dict[str, int]],
    is_settled: Callable[[], bool],
) -> None:
    """Waits until the streams are to stop and have taken all, and stops them."""
    while not (folder / "stop").exists() or any(depths()[name] for name in SOURCES):
        for query in queries:
            if query.exception() is not None:
                raise SystemExit(f"{query.name} ended: {query.exception()}")
        time.sleep(0.1)
    for query in queries:
        query.processAllAvailable()
        query.stop()
    until = time.monotonic() + END_SECONDS
    while not is_settled():
        if time.monotonic() > until:
            raise SystemExit("units of work are prepared after the end")
        time.sleep(0.1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))

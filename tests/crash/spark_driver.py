"""The Spark job of spark_storm.py: two streams, which run until the supervisor stops them.

    STORM_FOLDER=... python tests/crash/spark_driver.py MANAGER HOME FOLDER

*table*: queues IN and IN.TOO into a Parquet table. *hop*: queue HOP, of which what was backed out
once goes to POISON, through the sink into the queues OUT and ODD and, of rows without a queue, into
DEAD. Both run with checkpoints and may be killed at any time. The job ends, in order, when the file
``stop`` exists, neither stream has input left, and the listener of ``register`` has committed the
last micro-batches.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from spark_dying import DyingDataSource

import penstock
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


def main(manager: str, home: str, folder: Path) -> None:
    """Runs until the file ``stop`` exists."""
    spark = local_session("storm", settings={**SETTINGS, "spark.local.dir": str(folder / "local")})
    register(spark)  # its listener commits the last micro-batches
    spark.dataSource.register(DyingDataSource)
    common = {"queueManager": manager, "home": home, "maxMessagesPerTrigger": "400"}

    def stream(**queues: str) -> object:
        return spark.readStream.format("penstock").options(**queues, **common).load()

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
        .options(queueManager=manager, home=home, deadLetterQueue="DEAD")
        .option("checkpointLocation", str(folder / "hop.checkpoint"))
        .queryName("hop")
        .start(),
    ]
    (folder / "started").touch()
    with penstock.connect(manager, home=home) as qm:
        sources = [qm.open(name) for name in ("IN", "IN.TOO", "HOP")]
        while not (folder / "stop").exists() or any(queue.depth for queue in sources):
            for query in queries:
                if query.exception() is not None:
                    raise SystemExit(f"{query.name} ended: {query.exception()}")
            time.sleep(0.1)
        for query in queries:
            query.processAllAvailable()
            query.stop()
        until = time.monotonic() + END_SECONDS
        while left := qm.recover():
            if time.monotonic() > until:
                raise SystemExit(f"prepared after the end: {[str(xid) for xid in left]}")
            time.sleep(0.1)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))

"""The Spark job of spark_storm.py: two streams, which run until the supervisor stops them.

    STORM_FOLDER=... python tests/crash/spark_driver.py MANAGER HOME FOLDER

*table*: queue IN into a Parquet table. *hop*: queue HOP into queue OUT, through the sink. Both run
with checkpoints and may be killed at any time. The job ends, in order, when the file ``stop``
exists and neither stream has input left.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from spark_dying import DyingDataSource

import penstock
from penstock.spark.local import local_session

SETTINGS = {
    "spark.master": "local[2,8]",  # a task that died with its worker is tried again
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
}


def main(manager: str, home: str, folder: Path) -> None:
    """Runs until the file ``stop`` exists."""
    spark = local_session("storm", settings={**SETTINGS, "spark.local.dir": str(folder / "local")})
    spark.dataSource.register(DyingDataSource)
    common = {"queueManager": manager, "home": home, "maxMessagesPerTrigger": "400"}

    def stream(queue: str) -> object:
        return spark.readStream.format("penstock").options(queue=queue, **common).load()

    table = stream("IN").select("correl_id", "body", "priority", "sequence", "persistent")
    hop = stream("HOP").select("correl_id", "body", "priority", "persistent")
    queries = [
        table.writeStream.format("parquet")
        .option("path", str(folder / "table"))
        .option("checkpointLocation", str(folder / "table.checkpoint"))
        .queryName("table")
        .start(),
        hop.writeStream.format("penstock")
        .options(queueManager=manager, home=home, queue="OUT")
        .option("checkpointLocation", str(folder / "hop.checkpoint"))
        .queryName("hop")
        .start(),
    ]
    (folder / "started").touch()
    with penstock.connect(manager, home=home) as qm, qm.open("IN") as first, qm.open("HOP") as hop:
        while not ((folder / "stop").exists() and first.depth == 0 and hop.depth == 0):
            for query in queries:
                if query.exception() is not None:
                    raise SystemExit(f"{query.name} ended: {query.exception()}")
            time.sleep(0.1)
    for query in queries:
        query.processAllAvailable()
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))

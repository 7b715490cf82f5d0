"""The Spark job of spark_journal_storm.py: the journal as a stream into a Parquet table.

    STORM_FOLDER=... python tests/crash/spark_journal_driver.py MANAGER HOME FOLDER

It may be killed at any time, and goes on from its checkpoint. It ends, in order, when the file
``stop`` exists and everything was read.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from spark_driver import SETTINGS
from spark_dying import DyingDataSource

from penstock.spark.local import local_session


def main(manager: str, home: str, folder: Path) -> None:
    """Runs until the file ``stop`` exists."""
    spark = local_session("storm", settings={**SETTINGS, "spark.local.dir": str(folder / "local")})
    spark.dataSource.register(DyingDataSource)
    options = {"queueManager": manager, "home": home, "mode": "journal"}
    limits = {"startingOffsets": "earliest", "maxBytesPerTrigger": "500k", "minPartitions": "2"}
    rows = spark.readStream.format("penstock").options(**options, **limits).load()
    columns = ("commit_lsn", "lsn", "event", "queue", "identity", "unit_id", "body")
    query = (
        rows.select(*columns)
        .writeStream.format("parquet")
        .option("path", str(folder / "table"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .queryName("table")
        .start()
    )
    (folder / "started").touch()
    while not (folder / "stop").exists():
        if query.exception() is not None:
            raise SystemExit(f"{query.name} ended: {query.exception()}")
        time.sleep(0.1)
    query.processAllAvailable()
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))

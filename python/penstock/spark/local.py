"""A Spark session on this machine, for programs that need no cluster: examples, tests, small jobs.

A queue manager lives on one machine, so a job that reads and writes its queues often does, too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .java import prepare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["local_session"]


def local_session(
    name: str = "penstock", cores: int = 2, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """The session of this process, made when there is none yet.

    It has no web page and no progress bars, listens on this machine's own address only, keeps times
    in UTC, shuffles into as many partitions as it has cores, logs errors only, and needs no Java on
    the machine (``penstock.spark.java``). An existing session, such as that of ``spark-submit``,
    keeps its master, and takes over those settings that a running session can change.

    Args:
        name: Name of the application.
        cores: Worker threads, which is the number of concurrent tasks.
        settings: More of Spark's settings; they override those named above.

    Raises:
        NoJava: There is no Java for Spark.
    """
    submitted = prepare() is None
    from pyspark.sql import SparkSession

    chosen = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        **(settings or {}),
    }
    builder = SparkSession.builder.appName(name)
    if SparkSession.getActiveSession() is None and not submitted:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # read when Java starts
        builder = builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        builder = builder.config("spark.log.level", "ERROR")
    for key, value in chosen.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark

"""Queues as streams, tables and sinks of Spark, through PySpark.

Needs the extra ``spark`` (``pip install 'penstock[spark]'``). Importing this package loads no
PySpark and starts no Java.

    penstock.spark.register(spark)
    spark.read.format("penstock").option("queueManager", "QM1").load("ORDERS").show()

PySpark finds the format by itself where the package ``pyspark_penstock``, which is installed with
this one, is on the workers' path; ``register`` is for where it does not look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Makes ``format("penstock")`` known to a session.

    Raises:
        VersionError: PySpark is older than 4.0.
    """
    from .base.versions import require

    require("a batch read")
    from .datasource import PenstockDataSource

    spark.dataSource.register(PenstockDataSource)

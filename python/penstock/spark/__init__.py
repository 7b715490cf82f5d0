"""Queues as streams, tables and sinks of Spark, through PySpark.

Needs the extra ``spark`` (``pip install 'penstock[spark]'``). Importing this package loads no
PySpark and starts no Java.

    penstock.spark.register(spark)
    spark.read.format("penstock").option("queueManager", "QM1").load("ORDERS").show()

PySpark finds the format by itself where the package ``pyspark_penstock``, which is installed with
this one, is on the workers' path; ``register`` is for where it does not look, and for streams whose
last micro-batch is to be committed when the query ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQueryListener

__all__ = ["register"]

_listeners: WeakKeyDictionary[SparkSession, StreamingQueryListener] = WeakKeyDictionary()


def register(spark: SparkSession) -> None:
    """Makes ``format("penstock")`` known to a session, and commits the last micro-batch of each of
    its streams when the query has ended (source/last_batch.py).

    Raises:
        VersionError: PySpark is older than 4.0.
    """
    from .base.versions import LOWEST, is_at_least, require

    require("a batch read")
    from .datasource import PenstockDataSource, RegisteredDataSource

    if not is_at_least(LOWEST["a streaming source"]):
        from pyspark.errors import AnalysisException

        try:
            spark.dataSource.register(PenstockDataSource)
        except AnalysisException as error:  # PySpark 4.0 has found it by itself
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
        return
    if spark not in _listeners:
        from .datasource import stream_reader
        from .source.last_batch import LastBatch

        _listeners[spark] = LastBatch(stream_reader)
        spark.streams.addListener(_listeners[spark])
    spark.dataSource.register(RegisteredDataSource)

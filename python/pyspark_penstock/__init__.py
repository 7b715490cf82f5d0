"""Lets PySpark find the data source: it imports packages whose names begin with ``pyspark_``.

PySpark imports every such package when the first Python data source of a session is named. So this
one must never fail, and loads no more than the class.
"""

from __future__ import annotations

try:
    from penstock.spark.datasource import PenstockDataSource as DefaultSource
except ImportError:  # a PySpark older than data sources: there is nothing to find
    __all__: list[str] = []
else:
    __all__ = ["DefaultSource"]

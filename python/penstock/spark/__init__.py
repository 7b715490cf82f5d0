"""Queues as streams, tables and sinks of Spark, through PySpark.

Needs the extra ``spark`` (``pip install 'penstock[spark]'``). Importing this package loads no
PySpark and starts no Java.
"""

"""Pipelines over queues: functions of a Spark session and options, and a command for each.

* ``ingest``: log lines from a queue, the most severe first, into a partitioned Parquet table,
  exactly once; the most severe ones also as alerts on another queue.
* ``audit``: the journal as a table: waiting times, messages that were never taken, units that were
  backed out, the largest putters.
* ``replay``: the messages of any past interval of the journal, put back on a queue.

Each is a function for use in jobs, and so are its parts:
    from penstock.spark.pipelines.audit import audit
    found = audit(spark, {"queueManager": "LOGS", "queue": "LOG.LINES"})
    found.queues.write.mode("overwrite").parquet("waits")
    found.release()

``python -m penstock.spark.pipelines --help`` lists the commands; ``spark-submit`` runs the same
file, whose path ``python -m penstock.spark.pipelines --path`` prints.
"""

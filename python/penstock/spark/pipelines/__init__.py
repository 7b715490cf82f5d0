"""Pipelines over queues: functions of a Spark session and options, and a command for each.

* ``ingest``: log lines from a queue, the worst first, into a partitioned Parquet table, exactly
  once; the worst of them as alerts on another queue.
* ``audit``: the journal as a table: how long messages waited, which were never taken, what was
  backed out, who put most.
* ``replay``: the messages of any past interval of the journal, put back on a queue.

Each is a function for jobs of your own, whose parts can be used, too:

    from penstock.spark.pipelines.audit import audit
    found = audit(spark, {"queueManager": "LOGS", "queue": "LOG.LINES"})
    found.queues.write.mode("overwrite").parquet("waits")
    found.release()

``python -m penstock.spark.pipelines --help`` lists the commands; ``spark-submit`` runs the same
file, whose place ``python -m penstock.spark.pipelines --path`` prints.
"""

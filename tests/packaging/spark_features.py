"""What Spark does with penstock, feature by feature: run with each version of PySpark.

    python tests/packaging/spark_features.py FOLDER

Prints a line for each feature. One that this PySpark is too old for must be refused in one sentence
that names the version it needs. Ends with status 0 when all is so. See tools/spark_versions.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import penstock  # noqa: E402
from penstock.spark import register  # noqa: E402
from penstock.spark.base.errors import sentence_in  # noqa: E402
from penstock.spark.base.versions import LOWEST, is_at_least  # noqa: E402
from penstock.spark.local import local_session  # noqa: E402
from ports import free_port  # noqa: E402

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
ORDERS = [b'{"id": 1}', b'{"id": 2}', b'{"id": 3}']


class Job:
    """A session and a queue manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.qm = penstock.connect("VERSIONS", folder, create=True, logging="linear")
        settings = {**SETTINGS, "spark.sql.warehouse.dir": str(folder / "warehouse")}
        self.spark = local_session("features", settings=settings)
        register(self.spark)
        for name in ("ORDERS", "RETURNS"):
            self.put(name, *ORDERS)
        self.other = penstock.connect("OTHER", folder, create=True)
        with self.other.queue("ORDERS") as queue:
            queue.put(b"{}", persistent=True)

    def put(self, name: str, *bodies: bytes) -> None:
        with self.qm.queue(name) as queue:
            for number, body in enumerate(bodies):
                queue.put(body, priority=number, persistent=True)

    def left(self, name: str) -> list[bytes]:
        with self.qm.queue(name) as queue:
            return [message.data for message in queue.browse()]

    def set(self, maker: Any, **options: Any) -> Any:
        place = {"queueManager": "VERSIONS", "home": str(self.folder)}
        return maker.format("penstock").options(**{**place, **options})

    def run(self, frame: Any, checkpoint: str, target: str, trigger: dict[str, Any]) -> None:
        """A stream into a table of Parquet files."""
        writer = frame.writeStream.format("parquet").option("path", str(self.folder / target))
        writer = writer.option("checkpointLocation", str(self.folder / checkpoint))
        writer.trigger(**trigger).start().awaitTermination()

    def table(self, name: str, column: str) -> list[Any]:
        rows = self.spark.read.parquet(str(self.folder / name)).select(column).collect()
        return sorted(bytes(v) if isinstance(v, bytearray) else v for (v,) in rows)


@contextmanager
def through_a_server(job: Job) -> Iterator[dict[str, str]]:
    """Options as on another host."""
    from penstock.flight.server import Limits, Server
    from penstock.flight.service import Service
    from penstock.spark.remote.service import SparkService

    spark = SparkService({job.qm.name: job.folder})
    address = f"grpc://127.0.0.1:{free_port()}"
    server = Server(address, Service({}, 60, 60), None, Limits(), [spark])
    try:
        yield {"endpoint": address, "home": "/nowhere"}
    finally:
        server.shutdown()


def batch_read(job: Job) -> None:
    """A queue, two queues as JSON, by arrival, as a view of SQL; and the journal."""
    down = [bytes(row.body) for row in job.set(job.spark.read).load("ORDERS").collect()]
    assert down == ORDERS[::-1], down
    up = job.set(job.spark.read, order="arrival", queuePattern="*").load().collect()
    assert [(row.queue, bytes(row.body)) for row in up] == [
        (name, body) for name in ("ORDERS", "RETURNS") for body in ORDERS
    ]
    typed = job.set(job.spark.read, includeProperties="true")
    typed = typed.schema("body struct<id:bigint>, priority int").load("ORDERS,RETURNS")
    assert typed.selectExpr("sum(body.id)", "max(priority)").first() == (12, 2)
    several = job.set(job.spark.read, queueManager="VERSIONS,OTHER").load("ORDERS").collect()
    assert len(several) == len(ORDERS) + 1, several
    place = f"queueManager 'VERSIONS', home '{job.folder}', queue 'ORDERS'"
    job.spark.sql(f"CREATE TEMPORARY VIEW orders USING penstock OPTIONS ({place})")
    assert job.spark.sql("SELECT count(*) FROM orders WHERE priority > 0").first() == (2,)
    journal = job.set(job.spark.read, mode="journal", events="put").load("ORDERS")
    assert [bytes(row.body) for row in journal.collect()] == ORDERS
    with through_a_server(job) as place:
        far = job.set(job.spark.read, **place).load("ORDERS").collect()
        assert [bytes(row.body) for row in far] == ORDERS[::-1], far
        journal = job.set(job.spark.read, mode="journal", events="put", **place).load("ORDERS")
        assert [bytes(row.body) for row in journal.collect()] == ORDERS
    relayed = job.set(job.spark.read, relay="true").load("ORDERS").collect()
    assert [bytes(row.body) for row in relayed] == ORDERS[::-1], relayed


def batch_sink(job: Job) -> None:
    """Rows for queues that they name, one of which is not there; and a write that is done once."""
    for name in ("OUT", "DEAD"):
        job.qm.queue(name).close()
    frame = job.spark.createDataFrame(
        [(b"a", 1, "OUT"), (b"b", 7, "OUT"), (b"c", 1, "NONE")],
        "body binary, priority int, queue string",
    )
    job.set(frame.write, deadLetterQueue="DEAD").mode("append").save()
    assert job.left("OUT") == [b"b", b"a"] and len(job.left("DEAD")) == 1
    for _ in range(2):
        once = job.set(frame.drop("queue").write, txnAppId="nightly", txnVersion="1")
        once.mode("append").save("OUT")
    assert len(job.left("OUT")) == 5
    with through_a_server(job) as place:
        job.set(frame.drop("queue").write, **place).mode("append").save("OUT")
    job.set(frame.drop("queue").write, relay="true").mode("append").save("OUT")
    assert len(job.left("OUT")) == 11


def stream_sink(job: Job) -> None:
    """JSON lines of files onto a queue, each once over two runs."""
    job.qm.queue("LINES").close()
    (job.folder / "files").mkdir()
    for number in range(2):
        path = job.folder / "files" / f"{number}.json"
        path.write_text(f'{{"body": "{number}"}}\n')
        lines = job.spark.readStream.schema("body string").json(str(path.parent))
        writer = job.set(lines.writeStream, queue="LINES")
        writer = writer.option("checkpointLocation", str(job.folder / "lines.checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
    assert sorted(job.left("LINES")) == [b"0", b"1"]


def stream_source(job: Job) -> None:
    """Two queues into a table over two runs, with each trigger that ends; and the journal."""
    stream = job.set(job.spark.readStream, queue="ORDERS,RETURNS").schema("body string").load()
    job.run(stream, "orders.checkpoint", "orders", {"availableNow": True})
    job.put("ORDERS", b"late")
    job.run(stream, "orders.checkpoint", "orders", {"availableNow": True})
    expected = sorted([body.decode() for body in ORDERS * 2] + ["late"])
    assert job.table("orders", "body") == expected
    assert job.left("ORDERS") == job.left("RETURNS") == []
    journal = job.set(job.spark.readStream, mode="journal", startingOffsets="earliest")
    journal = journal.load("ORDERS,RETURNS").select("event", "body")
    job.run(journal, "journal.checkpoint", "journal", {"availableNow": True})
    assert job.table("journal", "event") == ["GET"] * 7 + ["PUT"] * 7


FEATURES: dict[str, Callable[[Job], None]] = {
    "a batch read": batch_read,
    "a batch sink": batch_sink,
    "a streaming sink": stream_sink,
    "a streaming source": stream_source,
}


def tried(job: Job, name: str) -> str:
    """What became of a feature, in words. Raises what it raised, unless it had to be refused."""
    lowest = LOWEST[name]
    if is_at_least(lowest):
        FEATURES[name](job)
        return "works"
    try:
        FEATURES[name](job)
    except Exception as error:
        text = sentence_in(error) or ""
        needed = f"penstock as {name} needs PySpark {lowest[0]}.{lowest[1]} or newer; this is "
        if text != needed + pyspark.__version__:
            raise
        return f"refused: {text}"
    raise AssertionError(f"{name} works: LOWEST says that it needs {lowest}")


def main(folder: Path) -> None:
    """All features, one after the other."""
    job = Job(folder)
    try:
        for name in FEATURES:
            print(f"PySpark {pyspark.__version__}: {name}: {tried(job, name)}", flush=True)
    finally:
        job.spark.stop()
    left = [str(xid) for xid in job.qm.recover()]
    assert not left, f"prepared after the end: {left}"
    job.qm.close()
    job.other.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Shared by the tests of the data source: a queue manager, and calls to read and write it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from ports import free_port

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

AVAILABLE_NOW = {"availableNow": True}
COMMAND_SECONDS = 120
WAIT_SECONDS = 240
NOWHERE = Path("/nowhere")  # no home of queue managers
THROUGH_A_SERVER = "PENSTOCK_THROUGH_A_SERVER" in os.environ
STDERR = "spark.penstock.tests.stderr"  # setting of the session: where its standard error goes


class SparkFixture:
    """A queue manager that this process keeps running, and a session."""

    def __init__(
        self,
        spark: SparkSession,
        qm: penstock.QueueManager,
        home: Path,
        endpoint: str | None = None,
    ) -> None:
        self.spark = spark
        self.qm = qm
        self.home = home
        self.endpoint = endpoint  # of a server, through which driver and tasks go

    def put(self, queue: str, *bodies: bytes, **fields: Any) -> None:
        with self.qm.queue(queue) as q:
            for body in bodies:
                q.put(body, **fields)

    def bodies(self, queue: str) -> list[bytes]:
        """The bodies on the queue, in delivery order."""
        with self.qm.queue(queue) as q:
            return [message.data for message in q.browse()]

    def set(self, maker: Any, **options: Any) -> Any:
        """A reader or writer of the format, with queue manager, home and these options."""
        maker = maker.format("penstock").option("queueManager", self.qm.name)
        if self.endpoint is None:
            maker = maker.option("home", str(self.home))
        else:  # as if this were another host
            maker = maker.option("endpoint", self.endpoint).option("home", str(NOWHERE))
        for name, value in options.items():
            maker = maker.option(name, str(value).lower() if value in (True, False) else value)
        return maker

    def reader(self, **options: Any) -> DataFrameReader:
        reader: DataFrameReader = self.set(self.spark.read, **options)
        return reader

    def table(self, queue: str, columns: str = "", **options: Any) -> DataFrame:
        """A queue as a DataFrame."""
        reader = self.reader(**options)
        return (reader.schema(columns) if columns else reader).load(queue)

    def start(
        self,
        checkpoint: Path,
        source: str,
        target: str,
        columns: str = "body binary, priority int",
        trigger: dict[str, Any] = AVAILABLE_NOW,
        persistence: str = "persistent",
        **options: Any,
    ) -> StreamingQuery:
        """Starts a stream from a queue, with these options, to another one, with that option."""
        reader = self.set(self.spark.readStream, **options).schema(columns)
        writer = self.set(reader.load(source).writeStream, queue=target, persistence=persistence)
        query: StreamingQuery = (
            writer.option("checkpointLocation", str(checkpoint)).trigger(**trigger).start()
        )
        return query

    def run(self, checkpoint: Path, source: str, target: str, **given: Any) -> StreamingQuery:
        """A stream over the messages on a queue; the query after its end."""
        query = self.start(checkpoint, source, target, **given)
        query.awaitTermination()
        return query

    def said(self) -> str:
        """The standard error of the session's processes."""
        return Path(self.spark.conf.get(STDERR) or "").read_text(errors="replace")

    def command(self, *arguments: str) -> str:
        """The output of ``penstock``."""
        program = Path(sys.executable).with_name("penstock")
        done = subprocess.run(
            [program, *arguments, "--home", str(self.home)],
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def served(home: Path) -> Iterator[str | None]:
    """The address of a server in this process, where the tests are to go through one."""
    if not THROUGH_A_SERVER:
        yield None
        return
    from penstock.flight.server import Limits, Server
    from penstock.flight.service import Service
    from penstock.spark.remote.service import SparkService

    spark = SparkService({f"QM{number}": home for number in range(1, 10)})
    address = f"grpc://127.0.0.1:{free_port()}"
    server = Server(address, Service({}, 3600, 60), None, Limits(), [spark])
    try:
        yield address
    finally:
        server.shutdown()


@contextmanager
def another(spark_qm: SparkFixture, name: str, **settings: int) -> Iterator[SparkFixture]:
    """A queue manager beside the one that each test has; removed afterwards."""
    penstock.create(name, spark_qm.home, **settings)
    with penstock.connect(name, spark_qm.home) as qm:
        yield SparkFixture(spark_qm.spark, qm, spark_qm.home, spark_qm.endpoint)
        wait_until_alone(qm)

    def is_deleted() -> bool:  # a server in this process leaves it when the stream's process ends
        with contextlib.suppress(penstock.ObjectInUse):
            penstock.delete(name, spark_qm.home)
            return True
        return False

    wait_until(is_deleted)


def wait_until_alone(qm: penstock.QueueManager) -> None:
    """Returns when no other process is connected: a stream's own ends a moment after its query."""
    wait_until(lambda: qm.status().attached == 1)


def wait_until(done: Callable[[], bool]) -> None:
    """Returns when it is so; fails after a bound that is generous on a busy machine."""
    end = time.monotonic() + WAIT_SECONDS
    while not done():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.05)


def sentence(error: BaseException) -> str:
    """The data source's sentence: the last line of the error of a Python worker."""
    lines = [line.strip() for line in str(error).splitlines()]
    found = {line for line in lines if line.startswith("penstock.spark.base.errors.")}
    assert len(found) == 1, str(error)
    return found.pop().split(": ", 1)[1]


def column(frame: DataFrame, name: str) -> list[Any]:
    """A column of the rows, in their order; binary as bytes."""
    values = [row[name] for row in frame.collect()]
    return [bytes(v) if isinstance(v, bytearray) else v for v in values]


def failing(call: Any) -> str:
    """The sentence with which the call fails."""
    with pytest.raises(Exception) as caught:
        call()
    return sentence(caught.value)

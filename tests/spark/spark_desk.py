"""What the tests of the data source share: a queue manager, and how to read and write it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession


class Desk:
    """A queue manager that this process keeps running, and a session."""

    def __init__(self, spark: SparkSession, qm: penstock.QueueManager, home: Path) -> None:
        self.spark = spark
        self.qm = qm
        self.home = home

    def put(self, queue: str, *bodies: bytes, **fields: Any) -> None:
        with self.qm.queue(queue) as q:
            for body in bodies:
                q.put(body, **fields)

    def bodies(self, queue: str) -> list[bytes]:
        """What is on the queue, in delivery order."""
        with self.qm.queue(queue) as q:
            return [message.data for message in q.browse()]

    def set(self, maker: Any, **options: Any) -> Any:
        """A reader or writer of the format, with queue manager, home and these options."""
        maker = maker.format("penstock").option("queueManager", self.qm.name)
        maker = maker.option("home", str(self.home))
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


def sentence(error: BaseException) -> str:
    """The last line of what a Python worker said: the data source's own sentence."""
    lines = [line.strip() for line in str(error).splitlines()]
    found = [line for line in lines if line.startswith("penstock.spark.errors.")]
    assert found, str(error)
    return found[-1].split(": ", 1)[1]


def column(frame: DataFrame, name: str) -> list[Any]:
    """A column of the rows, in their order; binary as bytes."""
    values = [row[name] for row in frame.collect()]
    return [bytes(v) if isinstance(v, bytearray) else v for v in values]


def failing(call: Any) -> str:
    """The sentence with which the call fails."""
    with pytest.raises(Exception) as caught:
        call()
    return sentence(caught.value)

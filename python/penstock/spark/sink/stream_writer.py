"""The streaming sink: see writer.py. A separate module because its base class needs PySpark 4.1.

Spark makes a writer for the tasks of a micro-batch, one for its commit and one for its abort. When
an abort fails, Spark hides why the batch did. So making a writer asks the queue manager nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from ..base import units
from .writer import Sink
from .written import Run

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ..base.options import Options

__all__ = ["StreamWriter", "run_of_task"]

_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"


def run_of_task() -> Run:
    """The micro-batch that this process writes a task of."""
    from pyspark import TaskContext

    task = TaskContext.get()
    assert task is not None
    query, batch = task.getLocalProperty(_QUERY), task.getLocalProperty(_BATCH)
    assert query is not None and batch is not None
    return Run(query, int(batch), units.new_id()[:12])


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches, each once."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises SchemaError for columns that cannot be put."""
        self.sink = Sink(options, schema)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """In a task."""
        return self.sink.put(iterator, run_of_task())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver: the micro-batch becomes visible, unless it is already."""
        self.sink.end(messages, True)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver: nothing of it does."""
        self.sink.drop(messages)

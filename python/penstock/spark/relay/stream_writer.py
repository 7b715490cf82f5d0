"""The streaming sink through the driver: see writers.py, and sink/stream_writer.py for why it is a
module of its own, and asks nothing when it is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from ..sink.stream_writer import run_of_task
from .writers import RelayedSink

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ..base.options import Options

__all__ = ["RelayedStreamWriter"]


class RelayedStreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches, each once."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises SchemaError for columns that cannot be put."""
        self._relayed = RelayedSink(options, schema)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """In a task."""
        return self._relayed.put(iterator, run_of_task())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver: the micro-batch becomes visible, unless it is already."""
        self._relayed.end(messages, True)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver: its tasks have put nothing."""

"""A stream whose rows go through the driver: see reader.py. A module of its own because its base
class needs PySpark 4.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from .reader import RelayedRows, rows_of
from .rows import packed

__all__ = ["RelayedStream"]

Offset = dict[str, Any]


class RelayedStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream; its micro-batches are cut to what is relayed when they are taken."""

    def __init__(self, here: Any) -> None:
        """here: The stream's reader, on the driver's host."""
        self._here: Any = here

    def __getstate__(self) -> dict[str, Any]:
        """The state for tasks, which have the rows."""
        return {"_here": None}

    def initialOffset(self) -> Offset:
        """As the reader."""
        found: Offset = self._here.initialOffset()
        return found

    def getDefaultReadLimit(self) -> ReadLimit:
        """As the reader."""
        found: ReadLimit = self._here.getDefaultReadLimit()
        return found

    def prepareForTriggerAvailableNow(self) -> None:
        """As the reader."""
        self._here.prepareForTriggerAvailableNow()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """As the reader."""
        found: Offset = self._here.latestOffset(start, limit)
        return found

    def reportLatestOffset(self) -> Offset | None:
        """As the reader."""
        found: Offset | None = self._here.reportLatestOffset()
        return found

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Those of the reader, with their rows."""
        return [
            RelayedRows(packed(self._here.read(part))) for part in self._here.partitions(start, end)
        ]

    def commit(self, end: Offset) -> None:
        """As the reader."""
        self._here.commit(end)

    def stop(self) -> None:
        """As the reader."""
        self._here.stop()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows that came with it."""
        return rows_of(partition)

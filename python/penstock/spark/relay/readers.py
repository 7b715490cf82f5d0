"""Readers whose rows go through the driver: it reads the partitions that a reader has planned, and
sends their rows in their place. Reading a partition again gives the same rows, as it did before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from .rows import Room, packed, unpacked

__all__ = ["RelayedReader", "RelayedStream"]

Offset = dict[str, Any]


class RelayedRows(InputPartition):
    """The rows of a partition."""

    def __init__(self, text: bytes) -> None:
        super().__init__(None)
        self.text = text


def _rows(partition: InputPartition) -> Iterator[Any]:
    if isinstance(partition, RelayedRows):  # else what Spark plans when there are no partitions
        yield from unpacked(partition.text)


class RelayedReader(DataSourceReader):
    """A batch read."""

    def __init__(self, here: DataSourceReader) -> None:
        """here: Reads on the driver's host."""
        self._here: DataSourceReader | None = here

    def __getstate__(self) -> dict[str, Any]:
        """The state for tasks, which have the rows."""
        return {"_here": None}

    def partitions(self) -> Sequence[InputPartition]:
        """Those of the reader, with their rows. Raises SourceError: there are too many."""
        assert self._here is not None, "on the driver"
        room = Room("this batch read", "choose fewer rows, or use penstock serve (option endpoint)")
        planned = self._here.partitions()
        return [RelayedRows(packed(self._here.read(part), room)) for part in planned]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows that came with it."""
        return _rows(partition)


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
        return _rows(partition)

"""A batch read whose rows go through the driver: it reads the partitions that a reader has planned,
and sends their rows in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from .rows import Room, packed, unpacked

__all__ = ["RelayedReader", "RelayedRows", "rows_of"]


class RelayedRows(InputPartition):
    """The rows of a partition."""

    def __init__(self, text: bytes) -> None:
        super().__init__(None)
        self.text = text


def rows_of(partition: InputPartition) -> Iterator[Any]:
    """The rows that came with a partition."""
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
        return rows_of(partition)

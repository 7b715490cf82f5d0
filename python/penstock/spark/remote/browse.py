"""A batch read of a queue manager on another host: the driver's call goes to the server, and so do
those of tasks, but for a task that can attach to the queue manager (place.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ..source.browse import BrowseReader, Ranges
from .place import Place

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ..base.options import Options

__all__ = ["RemoteBrowseReader"]


class RemoteBrowseReader(DataSourceReader):
    """Reads queues once, by several tasks."""

    def __init__(self, options: Options, given: Mapping[str, str], schema: StructType) -> None:
        """Raises SchemaError, OptionError, as BrowseReader does."""
        self._here = BrowseReader(options, schema)
        self._place = Place("read", options, given, schema)

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges that follow each other. Raises SourceError when a queue cannot be browsed."""
        return self._place.plan()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The messages as record batches."""
        assert isinstance(partition, Ranges)
        with self._place.attached() as qm:
            if qm is not None:
                yield from self._here.rows_of(qm, partition)
                return
        yield from self._place.rows(partition)

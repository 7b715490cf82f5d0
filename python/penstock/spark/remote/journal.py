"""A batch read of the journal of a queue manager on another host.

The server plans; tasks on its host read the files, others ask the server for the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader

from ..base import host
from ..source.journal import JournalReader
from .journal_part import JournalPart
from .place import Place

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from ..base.options import Options
    from ..source.journal_stream import JournalStreamReader

__all__ = ["RemoteJournalReader", "rows_of"]


class RemoteJournalReader(DataSourceReader):
    """Reads the journal once, by several tasks."""

    def __init__(self, options: Options, given: Mapping[str, str], schema: StructType) -> None:
        """Raises SchemaError, OptionError, as JournalReader does."""
        self._here = JournalReader(options, schema)
        self._place = Place("read", options, given, schema)

    def partitions(self) -> Sequence[InputPartition]:
        """The segments, or slices, that may have rows. Raises SourceError."""
        return self._place.plan()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a partition as record batches. Raises SourceError."""
        return rows_of(self._place, self._here, partition)


def rows_of(
    place: Place, here: JournalReader | JournalStreamReader, partition: InputPartition
) -> Iterator[Any]:
    """What a task reads; here: the reader of files."""
    if not isinstance(partition, JournalPart):  # what Spark plans when there are no partitions
        return
    directory = place.directory()
    if directory is None:
        yield from place.rows(partition)
    else:
        place.close()
        yield from here.read(partition.of(directory, host.here()))

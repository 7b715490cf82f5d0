"""A stream over the journal of a queue manager on another host (session.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..source.journal_stream import JournalStreamReader
from .journal import rows_of
from .place import Place
from .session import Offset, SessionReader

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from ..base.options import Options

__all__ = ["RemoteJournalStream"]


class RemoteJournalStream(SessionReader):
    """Reads the journal in micro-batches."""

    def __init__(self, options: Options, given: Mapping[str, str], schema: StructType) -> None:
        """Raises SchemaError, OptionError, as JournalStreamReader does."""
        self._here = JournalStreamReader(options, schema)
        super().__init__(Place("stream", options, given, schema))

    def getDefaultReadLimit(self) -> ReadLimit:
        """From maxBytesPerTrigger."""
        return self._here.getDefaultReadLimit()

    def commit(self, end: Offset) -> None:
        """Nothing: the journal does not know its readers."""

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a partition as record batches. Raises SourceError."""
        return rows_of(self._place, self._here, partition)

"""``format("penstock")``: the class that PySpark makes readers and writers with.

It is pickled from the driver to Spark's workers, so it holds nothing but its options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from .base import options as o
from .base.errors import OptionError
from .base.versions import require

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["PenstockDataSource", "RegisteredDataSource"]


class PenstockDataSource(DataSource):
    """Queues, and the journal, of a penstock queue manager."""

    has_listener = False  # the session commits the last micro-batch of a stream

    @classmethod
    def name(cls) -> str:
        """``penstock``."""
        return "penstock"

    def schema(self) -> StructType:
        """All columns. Raises OptionError: this is the first that is called."""
        from .base.schema import MESSAGE, struct_type

        options = o.parse(self.options, o.READ, o.STREAM)
        if options["mode"] == "journal":
            from .source.journal import columns

            return struct_type(columns())
        return struct_type(MESSAGE)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read. Raises SourceError."""
        require("a batch read")
        options = o.parse(self.options, o.READ)
        if options["mode"] == "journal":
            from .source.journal import JournalReader

            return JournalReader(options, schema)
        from .source.browse import BrowseReader

        return BrowseReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A streaming source. Raises SourceError."""
        require("a streaming source")
        options = o.parse(self.options, o.STREAM)
        if options["mode"] == "journal":
            from .source.journal_stream import JournalStreamReader

            return JournalStreamReader(options, schema)
        from .source.stream import StreamReader

        return StreamReader(options, schema, self.has_listener)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch sink. Raises SourceError."""
        require("a batch sink")
        if overwrite:
            raise OptionError("a queue cannot be overwritten: write with mode append")
        from .sink.writer import BatchWriter

        return BatchWriter(o.parse(self.options, o.WRITE), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """A streaming sink. Raises SourceError."""
        require("a streaming sink")
        if overwrite:
            raise OptionError("a queue cannot be overwritten: use outputMode append or update")
        from .sink.stream_writer import StreamWriter

        return StreamWriter(o.parse(self.options, o.SINK), schema)


class RegisteredDataSource(PenstockDataSource):
    """The same in a session with the listener of last_batch.py: see ``penstock.spark.register``."""

    has_listener = True

"""``format("penstock")``: the class that PySpark makes readers and writers with.

It is pickled from the driver to Spark's workers, so it holds nothing but its options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from .base import options as o
from .base import worker
from .base.errors import OptionError
from .base.versions import require

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["PenstockDataSource", "RegisteredDataSource"]


class PenstockDataSource(DataSource):
    """Queues, and the journal, of a penstock queue manager."""

    has_listener = False  # the session commits the last micro-batch of a stream

    def __init__(self, options: dict[str, str]) -> None:
        """As PySpark calls it, in one of its workers."""
        super().__init__(options)
        worker.keep_imports()

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
        if "," in options["queueManager"]:
            from .several import SeveralReaders, divided

            own = divided(options, self.options)
            return SeveralReaders({name: _reader(own[name], schema) for name in own})
        return _reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A streaming source. Raises SourceError."""
        require("a streaming source")
        options = o.parse(self.options, o.STREAM)
        if "," in options["queueManager"]:
            from .several import divided
            from .several_streams import SeveralStreams

            own = divided(options, self.options)
            readers = {name: _stream(own[name], schema, self.has_listener) for name in own}
            return SeveralStreams(readers, options)
        return _stream(self.options, schema, self.has_listener)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch sink. Raises SourceError."""
        require("a batch sink")
        if overwrite:
            raise OptionError("a queue cannot be overwritten: write with mode append")
        options = o.parse(self.options, o.WRITE)
        if options["endpoint"] is not None:
            from .remote.writers import RemoteBatchWriter

            return RemoteBatchWriter(options, self.options, schema)
        if options["relay"]:
            from .relay.writers import RelayedBatchWriter

            return RelayedBatchWriter(options, schema)
        from .sink.writer import BatchWriter

        return BatchWriter(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """A streaming sink. Raises SourceError."""
        require("a streaming sink")
        if overwrite:
            raise OptionError("a queue cannot be overwritten: use outputMode append or update")
        options = o.parse(self.options, o.SINK)
        if options["endpoint"] is not None:
            from .remote.stream_writer import RemoteStreamWriter

            return RemoteStreamWriter(options, self.options, schema)
        if options["relay"]:
            from .relay.stream_writer import RelayedStreamWriter

            return RelayedStreamWriter(options, schema)
        from .sink.stream_writer import StreamWriter

        return StreamWriter(options, schema)


def _reader(given: Mapping[str, str], schema: StructType) -> DataSourceReader:
    """The reader of one queue manager."""
    options = o.parse(given, o.READ)
    reader = _reader_of(options, given, schema)
    if not options["relay"]:
        return reader
    from .relay.reader import RelayedReader

    return RelayedReader(reader)


def _reader_of(
    options: o.Options, given: Mapping[str, str], schema: StructType
) -> DataSourceReader:
    if options["mode"] == "journal":
        if options["endpoint"] is not None:
            from .remote.journal import RemoteJournalReader

            return RemoteJournalReader(options, given, schema)
        from .source.journal import JournalReader

        return JournalReader(options, schema)
    if options["endpoint"] is not None:
        from .remote.browse import RemoteBrowseReader

        return RemoteBrowseReader(options, given, schema)
    from .source.browse import BrowseReader

    return BrowseReader(options, schema)


def _stream(
    given: Mapping[str, str], schema: StructType, has_listener: bool, is_last: bool = False
) -> Any:
    """The stream's reader of one queue manager; is_last: as RemoteStreamReader."""
    options = o.parse(given, o.STREAM)
    if not options["relay"]:
        return _stream_of(options, given, schema, has_listener, is_last)
    from .relay.stream import RelayedStream

    if "probe" in options.values:  # executors need not reach the queue manager
        options = o.Options({**options.values, "probe": "never"})
    return RelayedStream(_stream_of(options, given, schema, has_listener, is_last))


def _stream_of(
    options: o.Options,
    given: Mapping[str, str],
    schema: StructType,
    has_listener: bool,
    is_last: bool,
) -> Any:
    if options["mode"] == "journal":
        if options["endpoint"] is not None:
            from .remote.journal_stream import RemoteJournalStream

            return RemoteJournalStream(options, given, schema)
        from .source.journal_stream import JournalStreamReader

        return JournalStreamReader(options, schema)
    if options["endpoint"] is not None:
        from .remote.stream import RemoteStreamReader

        return RemoteStreamReader(options, given, schema, has_listener, is_last)
    from .source.stream import StreamReader

    return StreamReader(options, schema, has_listener)


def stream_reader(given: dict[str, str]) -> Any:
    """A stream's reader that only commits (last_batch.py). Raises SourceError."""
    from .base.schema import struct_type

    schema = struct_type({"body": "binary"})
    options = o.parse(given, o.STREAM)
    if "," not in options["queueManager"]:
        return _stream(given, schema, True, True)
    from .several import divided
    from .several_streams import SeveralStreams

    own = divided(options, given)
    return SeveralStreams({name: _stream(own[name], schema, True, True) for name in own}, options)


class RegisteredDataSource(PenstockDataSource):
    """The same in a session with the listener of last_batch.py: see ``penstock.spark.register``."""

    has_listener = True

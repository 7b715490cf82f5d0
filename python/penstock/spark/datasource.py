"""``format("penstock")``: the class that PySpark makes readers and writers with.

It is pickled from the driver to Spark's workers, so it holds nothing but its options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader

from . import options as o
from .versions import require

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["PenstockDataSource"]


class PenstockDataSource(DataSource):
    """Queues, and the journal, of a penstock queue manager."""

    @classmethod
    def name(cls) -> str:
        """``penstock``."""
        return "penstock"

    def schema(self) -> StructType:
        """All columns. Raises OptionError: this is the first that is called."""
        from .schema import MESSAGE, struct_type

        options = o.parse(self.options, o.READ, o.STREAM)
        if options["mode"] == "journal":
            from .journal import columns

            return struct_type(columns())
        return struct_type(MESSAGE)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read. Raises SourceError."""
        require("a batch read")
        options = o.parse(self.options, o.READ)
        if options["mode"] == "journal":
            from .journal import JournalReader

            return JournalReader(options, schema)
        from .browse import BrowseReader

        return BrowseReader(options, schema)

"""``mode=browse``: what is on a queue, as a table; nothing is removed.

One task walks the queue once, in delivery order, up to the newest message that was there when the
read was planned. So no message is seen twice, and none that came later. A DataFrame keeps its
plan: used again it walks again, to the same end; messages that were got meanwhile are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from . import host
from .engine import connected, open_queue
from .options import Options
from .schema import MESSAGE, arrow_schema, check_read

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["BrowseReader"]


class Walk(InputPartition):
    """The walk over a queue: up to an arrival number, on one host."""

    def __init__(self, up_to: int, where: host.Host) -> None:
        super().__init__(None)
        self.up_to = up_to
        self.where = where


class BrowseReader(DataSourceReader):
    """Reads a queue in one walk."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises SchemaError for columns that a queue does not have."""
        check_read(schema, MESSAGE)
        self.options = options
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """One partition. Raises SourceError when the queue cannot be browsed."""
        name = self.options["queue"]
        with connected(self.options) as qm, open_queue(qm, name, "browse") as queue:
            return [Walk(queue.newest_number, host.here())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The messages as record batches."""
        assert isinstance(partition, Walk)
        options = self.options
        partition.where.check(options["queueManager"])
        schema = arrow_schema(self.schema)
        from .rows import record_batches

        rows, size = options["batchRows"], options["batchBytes"]
        with connected(options) as qm, open_queue(qm, options["queue"], "browse") as queue:
            while True:
                batch = queue.browse_batch(rows, max_bytes=size, up_to=partition.up_to)
                if not len(batch):
                    return
                yield from record_batches(batch, queue.name, schema, size)

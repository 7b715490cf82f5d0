"""``mode=browse``: the messages on a queue as a table; nothing is removed.

The queue is read once, in delivery order, up to the newest message at the time of planning. So no
message is read twice, and no later one. The queue is split into ranges of about the same number of
messages, each a partition that one task reads; the ends of a range are message numbers, so it holds
the same messages whenever its task runs. A DataFrame keeps its plan: used again it reads the same
ranges again; messages that were got since are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ..base import host
from ..base.connection import connected, open_queue
from ..base.options import Options
from ..base.schema import MESSAGE, arrow_schema, check_read

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["BrowseReader"]

_FEWEST_ROWS = 10_000  # a partition of fewer rows is not worth a task
_MANY_ROWS = 500_000  # of a partition: more would make a retry long
_FIRST, _LAST = (9, 0), (0, 2**64 - 1)  # before and behind all messages


class Walk(InputPartition):
    """A range of a queue: from position to position, up to a message number, on one host."""

    def __init__(
        self, positions: tuple[tuple[int, int], tuple[int, int]], up_to: int, where: host.Host
    ) -> None:
        super().__init__(None)
        self.positions = positions
        self.up_to = up_to
        self.where = where


class BrowseReader(DataSourceReader):
    """Reads a queue once, by several tasks."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises SchemaError for columns that a queue does not have."""
        check_read(schema, MESSAGE)
        self.options = options
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges that follow each other. Raises SourceError when the queue cannot be browsed."""
        name = self.options["queue"]
        where = host.here()
        with connected(self.options) as qm, open_queue(qm, name, "browse") as queue:
            up_to = queue.newest_number
            positions = [_FIRST, *queue.split_points(self._parts(queue.depth)), _LAST]
        return [Walk(ends, up_to, where) for ends in pairwise(positions)]

    def _parts(self, messages: int) -> int:
        wanted: int | None = self.options["minPartitions"]
        if wanted is None:
            wanted = max(min(host.cores(), messages // _FEWEST_ROWS), -(-messages // _MANY_ROWS))
        return max(1, wanted)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The messages as record batches."""
        assert isinstance(partition, Walk)
        options = self.options
        partition.where.check(options["queueManager"])
        schema = arrow_schema(self.schema)
        from penstock.batch.chunks import browse_chunks

        from .arrow_from_messages import Rows

        rows, size = options["batchRows"], options["batchBytes"]
        with connected(options) as qm, open_queue(qm, options["queue"], "browse") as queue:
            build = Rows(queue.name, schema, options["includeProperties"])
            ends, up_to = partition.positions, partition.up_to
            for part in browse_chunks(queue, ends, up_to, build.fill, rows, size):
                yield build.made(part)

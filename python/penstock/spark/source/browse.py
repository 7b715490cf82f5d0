"""``mode=browse``: the messages on a queue as a table; nothing is removed.

The queue is read once, in delivery order, up to the newest message at the time of planning. So no
message is read twice, and no later one. The queue is split into ranges of about the same number of
messages, each a partition that one task reads; the ends of a range are message numbers, so it holds
the same messages whenever its task runs. A DataFrame keeps its plan: used again it reads the same
ranges again; messages that were got since are missing.

With order=arrival a partition has an interval of message numbers instead, and its rows are in their
order (arrival.py).

The options priority, correlId and fromTime choose messages before rows are made of them: the others
are passed over by the task, and what is wrong with their bodies fails nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ..base import host
from ..base.connection import connected, open_queue, served
from ..base.errors import OptionError
from ..base.options import Options
from ..base.schema import MESSAGE, arrow_schema, check_read
from .choice import Choice
from .journal_records import moment
from .rules import DEAD_LETTER, Rules

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock import Queue, QueueManager

    from .arrow_from_messages import Rows

    Ends = tuple[tuple[int, int], tuple[int, int]]

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


class Interval(InputPartition):
    """Messages behind one message number up to another, on one host, for order=arrival."""

    def __init__(self, numbers: tuple[int, int], where: host.Host) -> None:
        super().__init__(None)
        self.numbers = numbers
        self.where = where


class BrowseReader(DataSourceReader):
    """Reads a queue once, by several tasks."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises SchemaError for columns that a queue does not have, OptionError for onBadBody."""
        check_read(schema, MESSAGE)
        if options["onBadBody"] == DEAD_LETTER:
            raise OptionError(
                "option onBadBody is deadLetter, which takes messages off the queue: a batch read "
                "takes none; it has fail and null"
            )
        self.options = options
        self.schema = schema
        begin = moment(options, "fromTime")
        self.choice = Choice(
            options["priority"],
            options["correlId"],
            None if begin is None else int(begin.timestamp() * 1_000_000),
        )

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges that follow each other. Raises SourceError when the queue cannot be browsed."""
        name = self.options["queue"]
        where = host.here()
        with connected(self.options) as qm, open_queue(qm, name, "browse") as queue:
            up_to = queue.newest_number
            if self.options["order"] == "arrival":
                from .arrival import split

                numbers = split(queue, self._parts(queue.depth), up_to)
                return [Interval(ends, where) for ends in numbers]
            positions = [_FIRST, *queue.split_points(self._parts(queue.depth)), _LAST]
        return [Walk(ends, up_to, where) for ends in pairwise(positions)]

    def _parts(self, messages: int) -> int:
        wanted: int | None = self.options["minPartitions"]
        if wanted is None:
            wanted = max(min(host.cores(), messages // _FEWEST_ROWS), -(-messages // _MANY_ROWS))
        return max(1, wanted)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The messages as record batches."""
        assert isinstance(partition, Walk | Interval)
        options = self.options
        schema = arrow_schema(self.schema)
        from .arrow_from_messages import Rows

        rules = Rules(on_bad=options["onBadBody"])
        is_arrival = isinstance(partition, Interval)
        with_properties = options["includeProperties"]
        build = Rows(options["queue"], schema, with_properties, rules, is_arrival, self.choice)
        with served(options, partition.where) as qm:
            if isinstance(partition, Interval):
                yield from self._read_by_number(qm, build, partition)
            else:
                with open_queue(qm, options["queue"], "browse") as queue:
                    for part in self._chunks(queue, build, partition.positions, partition.up_to):
                        made = build.made(part)
                        if made.num_rows:
                            yield made

    def _read_by_number(self, qm: QueueManager, build: Rows, part: Interval) -> Iterator[Any]:
        from .arrival import LEVELS, level, merged

        with ExitStack() as opened:  # each level has a cursor of its own
            sources = []
            for priority in LEVELS:
                queue = opened.enter_context(open_queue(qm, self.options["queue"], "browse"))
                ends = level(priority, *part.numbers)
                chunks = self._chunks(queue, build, ends, part.numbers[1])
                sources.append(map(build.numbered, chunks))
            yield from merged(sources)

    def _chunks(self, queue: Queue, build: Rows, ends: Ends, up_to: int) -> Iterator[Any]:
        from penstock.batch.chunks import browse_chunks

        rows, size = self.options["batchRows"], self.options["batchBytes"]
        return browse_chunks(queue, ends, up_to, build.fill, rows, size)

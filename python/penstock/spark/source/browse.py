"""``mode=browse``: the messages on a queue as a table; nothing is removed.

Each queue is read once, in delivery order, up to the newest message at the time of planning. So no
message is read twice, and no later one. A queue is split into ranges of about the same number of
messages, each a partition that one task reads; the ends of a range are message numbers, so it holds
the same messages whenever its task runs. A DataFrame keeps its plan: used again it reads the same
ranges again; messages that were got since are missing.

With order=arrival a partition has an interval of message numbers instead, and its rows are in their
order (arrival.py).

The options priority, correlId and fromTime choose messages before rows are made of them: the others
are passed over by the task, and what is wrong with their bodies fails nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ..base import acting, host
from ..base.connection import connected, open_queue, reported, served
from ..base.errors import OptionError
from ..base.options import Options
from ..base.queue_choice import QueueChoice
from ..base.schema import MESSAGE, arrow_schema, check_read
from .choice import Choice
from .journal_records import moment
from .queues import fitting
from .rules import DEAD_LETTER, Rules

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock import Queue, QueueManager

    from .arrow_from_messages import Rows

__all__ = ["BrowseReader"]

_FEWEST_ROWS = 10_000  # a partition of fewer rows is not worth a task
_MANY_ROWS = 500_000  # of a partition: more would make a retry long
Ends = tuple[tuple[int, int], tuple[int, int]]  # positions
_FIRST, _LAST = (9, 0), (0, 2**64 - 1)  # before and behind all messages


class Walk(NamedTuple):
    """A range of a queue: from position to position, up to a message number."""

    queue: str
    positions: Ends
    up_to: int


class Interval(NamedTuple):
    """Messages of a queue behind one message number up to another, for order=arrival."""

    queue: str
    numbers: tuple[int, int]


class Ranges(InputPartition):
    """What one task reads, one range after the other."""

    def __init__(self, ranges: list[Walk | Interval], where: host.Host) -> None:
        super().__init__(None)
        self.ranges = ranges
        self.where = where


class BrowseReader(DataSourceReader):
    """Reads queues once, by several tasks."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises SchemaError for columns that a queue does not have, OptionError for onBadBody and
        for what is no name or pattern of queues.
        """
        check_read(schema, MESSAGE)
        if options["onBadBody"] == DEAD_LETTER:
            raise OptionError(
                "option onBadBody is deadLetter, which takes messages off the queue: a batch read "
                "takes none; it has fail and null"
            )
        self.options = options
        self.schema = schema
        self.queues = QueueChoice.of(options)
        begin = moment(options, "fromTime")
        self.choice = Choice(
            options["priority"],
            options["correlId"],
            None if begin is None else int(begin.timestamp() * 1_000_000),
        )

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges that follow each other, of each queue. Raises SourceError when one cannot be
        browsed.
        """
        with connected(self.options) as qm:
            names = fitting(qm, self.queues)
            if not names:
                text = f"queue manager {qm.name}: no queue fits queuePattern {self.queues.pattern}"
                acting.warn(text)
            with ExitStack() as opened:
                queues = [opened.enter_context(self._opened(qm, name)) for name in names]
                depths = [queue.depth for queue in queues]
                rows = max(1.0, sum(depths) / self._parts(sum(depths)))
                planned = _packed(zip(queues, depths, strict=True), rows, self._split)
                return [Ranges(ranges, host.here()) for ranges in [*planned] or [[]]]

    @contextmanager
    def _opened(self, qm: QueueManager, name: str) -> Iterator[Queue]:
        with reported(self.options, name):
            acting.check(name, "browse")
            with open_queue(qm, name, "browse") as queue:
                yield queue

    def _split(self, queue: Queue, parts: int) -> list[Walk | Interval]:
        """Ranges of a queue, of about the same size."""
        up_to = queue.newest_number
        if self.options["order"] == "arrival":
            from .arrival import split

            return [Interval(queue.name, ends) for ends in split(queue, parts, up_to)]
        ends = [_FIRST, *queue.split_points(parts), _LAST]
        return [Walk(queue.name, both, up_to) for both in pairwise(ends)]

    def _parts(self, messages: int) -> int:
        wanted: int | None = self.options["minPartitions"]
        if wanted is None:
            wanted = max(min(host.cores(), messages // _FEWEST_ROWS), -(-messages // _MANY_ROWS))
        return max(1, wanted)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The messages as record batches."""
        assert isinstance(partition, Ranges)
        with served(self.options, partition.where) as qm:
            yield from self.rows_of(qm, partition)

    def rows_of(self, qm: QueueManager, partition: Ranges) -> Iterator[Any]:
        """The same over a connection."""
        from .arrow_from_messages import Rows

        options, schema = self.options, arrow_schema(self.schema)
        rules = Rules(on_bad=options["onBadBody"])
        with_properties = options["includeProperties"]
        for part in partition.ranges:
            is_arrival = isinstance(part, Interval)
            build = Rows(part.queue, schema, with_properties, rules, is_arrival, self.choice)
            with reported(options, part.queue):
                acting.check(part.queue, "browse")
                if isinstance(part, Interval):
                    yield from self._read_by_number(qm, build, part)
                else:
                    yield from self._read_in_turn(qm, build, part)

    def _read_in_turn(self, qm: QueueManager, build: Rows, part: Walk) -> Iterator[Any]:
        with open_queue(qm, part.queue, "browse") as queue:
            for chunk in self._chunks(queue, build, part.positions, part.up_to):
                made = build.made(chunk)
                if made.num_rows:
                    yield made

    def _read_by_number(self, qm: QueueManager, build: Rows, part: Interval) -> Iterator[Any]:
        from .arrival import LEVELS, level, merged

        with ExitStack() as opened:  # each level has a cursor of its own
            sources = []
            for priority in LEVELS:
                queue = opened.enter_context(open_queue(qm, part.queue, "browse"))
                ends = level(priority, *part.numbers)
                chunks = self._chunks(queue, build, ends, part.numbers[1])
                sources.append(map(build.numbered, chunks))
            yield from merged(sources)

    def _chunks(self, queue: Queue, build: Rows, ends: Ends, up_to: int) -> Iterator[Any]:
        from penstock.batch.chunks import browse_chunks

        rows, size = self.options["batchRows"], self.options["batchBytes"]
        return browse_chunks(queue, ends, up_to, build.fill, rows, size)


def _packed(
    queues: Iterable[tuple[Queue, int]],
    rows: float,
    split: Callable[[Queue, int], list[Walk | Interval]],
) -> Iterator[list[Walk | Interval]]:
    """The ranges of each partition: small queues share one, large ones have several.

    Args:
        queues: With their depths.
        rows: Of a partition, about.
        split: Makes so many ranges of a queue, about.
    """
    some: list[Walk | Interval] = []
    size = 0
    for queue, depth in queues:
        if some and size + depth > rows:
            yield some
            some, size = [], 0
        ranges = split(queue, max(1, round(depth / rows)))
        yield from ([one] for one in ranges[:-1])  # of a large queue
        some.append(ranges[-1])
        size += depth // len(ranges)
    if some:
        yield some

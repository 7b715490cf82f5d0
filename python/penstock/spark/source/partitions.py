"""The partitions of a micro-batch: which messages each task reads, and how.

A micro-batch is a list of prepared units, each with messages of one queue. A partition has about
the same number of rows as the others, of as many queues as it takes. Its messages are *pieces* of
units, in *groups*: the groups follow each other, and the pieces of one group, which have messages
of one queue with order=arrival, are merged by message number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import InputPartition

from penstock import Xid

from ..base import host, units
from ..base.errors import SourceError
from .rules import KEEP_ALL, Rules

if TYPE_CHECKING:
    from penstock import QueueManager
    from penstock.client.status import PreparedStatus

    from ..base.options import Options
    from .arrow_from_messages import Rows

__all__ = ["Piece", "Slice", "by_arrival", "in_turn", "rows_of"]

_LEAST_ROOM = 64 << 10  # for the bodies of a record batch
_BATCH_ROWS = 4_096  # that are read at a time for their numbers
_FEWEST_ROWS = 1_000  # a partition of fewer rows is not worth a task


class Piece(NamedTuple):
    """Messages first .. last - 1 of a unit, in the order in which they were taken."""

    unit: str
    first: int
    last: int
    mean_bytes: int


Group = list[Piece]


class Slice(InputPartition):
    """The partition that one task reads.

    Attributes:
        groups: Its messages.
        where: The queue manager's machine.
        rules: Of each queue whose messages are not all rows.
    """

    def __init__(
        self, groups: list[Group], where: host.Host, rules: Mapping[str, Rules] | None = None
    ) -> None:
        super().__init__(None)
        self.groups = groups
        self.where = where
        self.rules = rules or {}


# ---- planning ----


def in_turn(statuses: list[PreparedStatus], options: Options) -> Iterator[list[Group]]:
    """The groups of each partition, in delivery order."""
    rows = _slice_rows(statuses, options)
    return _packed(_pieces(statuses, rows), rows)


def by_arrival(
    qm: QueueManager, statuses: list[PreparedStatus], options: Options
) -> Iterator[list[Group]]:
    """The same, with the messages of each queue by number."""
    from . import arrival

    rows = _slice_rows(statuses, options)
    mean = {status.xid: _mean(status) for status in statuses}

    def groups() -> Iterator[Group]:
        by_queue = sorted(statuses, key=_queue_of)
        for _, own in groupby(by_queue, _queue_of):
            runs = [run for s in own for run in arrival.runs(s.xid, _numbers(qm, s))]
            for cut in arrival.cut(runs, rows):
                yield [Piece(str(xid), first, last, mean[xid]) for xid, first, last in cut]

    return _packed(groups(), rows)


def _slice_rows(statuses: list[PreparedStatus], options: Options) -> int:
    """Rows of a partition, at most."""
    total = sum(status.gets for status in statuses)
    rows: int = options["messagesPerPartition"]
    fewest: int | None = options["minPartitions"]
    if fewest is None:
        return min(rows, max(_FEWEST_ROWS, -(-total // host.cores())))
    return min(rows, max(1, -(-total // fewest)))


def _pieces(statuses: list[PreparedStatus], rows: int) -> Iterator[Group]:
    """Groups of one piece, cut so that each ``rows`` messages end with a piece."""
    room = rows
    for status in statuses:
        at = 0
        while at < status.gets:
            last = min(status.gets, at + room)
            yield [Piece(str(status.xid), at, last, _mean(status))]
            room = room - (last - at) or rows
            at = last


def _packed(groups: Iterable[Group], rows: int) -> Iterator[list[Group]]:
    """Groups that have ``rows`` messages together, at most, except for a single larger one."""
    some: list[Group] = []
    size = 0
    for group in groups:
        own = sum(piece.last - piece.first for piece in group)
        if some and size + own > rows:
            yield some
            some, size = [], 0
        some.append(group)
        size += own
    if some:
        yield some


def _queue_of(status: PreparedStatus) -> str:
    return str(units.queue_of(status.xid))


def _mean(status: PreparedStatus) -> int:
    return status.bytes // max(1, status.gets)


def _numbers(qm: QueueManager, status: PreparedStatus) -> Any:
    """The message numbers of a unit, in the order in which it took them."""
    import numpy as np

    from penstock.batch.chunks import as_batch
    from penstock.batch.prepared import prepared_chunks

    room = _BATCH_ROWS * _mean(status) + _LEAST_ROOM
    parts = prepared_chunks(qm, status.xid, 0, status.gets, as_batch, _BATCH_ROWS, room)
    found = [part.descriptors["number"].copy() for part in parts]
    return np.concatenate(found) if found else np.empty(0, np.uint64)


# ---- what a task does ----


def rows_of(qm: QueueManager, part: Slice, schema: Any, options: Options) -> Iterator[Any]:
    """The messages of a partition as record batches. Raises SourceError when some are missing.

    Args:
        qm: A connection.
        part: The partition.
        schema: Of the rows, an Arrow schema.
        options: Of the stream.
    """
    from .arrival import merged
    from .arrow_from_messages import Rows

    by_queue: dict[tuple[str, bool], Rows] = {}
    for group in part.groups:
        queue, is_merged = str(units.queue_of(Xid.parse(group[0].unit))), len(group) > 1
        build = by_queue.get((queue, is_merged))
        if build is None:
            rules = part.rules.get(queue, KEEP_ALL)
            build = Rows(queue, schema, options["includeProperties"], rules, is_merged)
            by_queue[queue, is_merged] = build
        chunks = [_chunks(qm, build, piece, options) for piece in group]
        if is_merged:
            yield from merged([map(build.numbered, some) for some in chunks])
        else:
            yield from map(build.made, chunks[0])


def _chunks(qm: QueueManager, build: Rows, piece: Piece, options: Options) -> Iterator[Any]:
    from penstock.batch.prepared import prepared_chunks

    xid = Xid.parse(piece.unit)
    rows = min(options["batchRows"], piece.last - piece.first)
    room = min(options["batchBytes"], rows * piece.mean_bytes * 5 // 4 + _LEAST_ROOM)
    at = piece.first
    for part in prepared_chunks(qm, xid, at, piece.last, build.fill, rows, room):
        at += len(part)
        yield part
    if at != piece.last:
        raise SourceError(f"unit {xid} has lost some of its messages")

"""``order=arrival``: messages by number, in the order in which they were put, whatever their
priority.

A queue gives its messages by priority, and those of one priority by number. So does a unit of work
that took them: its messages are a few *runs* of rising numbers. This module finds the lowest
numbers of a queue, so that a micro-batch takes its oldest messages; cuts runs at the same numbers,
so that each partition has an interval of numbers; and merges the runs of an interval.

Messages of an open unit have their numbers from their puts: they may come after later ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock import _engine
from penstock.batch import DTYPE

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock import Queue, Xid

__all__ = ["LAST", "LEVELS", "Run", "cut", "level", "lowest", "merged", "runs", "split"]

LEVELS = range(10)  # placement priorities
LAST = 2**64 - 1  # behind all message numbers
_AT_A_TIME = 4_096
_SAMPLES = 50  # for each part that a queue is split into

Numbers = npt.NDArray[np.uint64]


def level(
    priority: int, first: int = 0, last: int = LAST
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Positions around the messages of a priority behind the first number, up to the last one."""
    return (priority, first), (priority, last)


# ---- which messages a micro-batch takes ----


def lowest(
    queue: Queue, most: int, most_bytes: int, persistent_only: bool, up_to: int | None
) -> int | None:
    """The message number up to which a micro-batch takes messages; None: there are none.

    Args:
        queue: Open for browse; its cursor is moved.
        most, most_bytes: Messages, and bytes of their bodies. The message that exceeds the bytes
            belongs to the micro-batch.
        persistent_only, up_to: The selection.
    """
    numbers, sizes = np.empty(0, np.uint64), np.empty(0, np.int64)
    bound = LAST if up_to is None else up_to
    for priority in LEVELS:
        found = _level_of(queue, priority, most, most_bytes, persistent_only, bound)
        numbers = np.concatenate([numbers, *(some["number"] for some in found)])
        sizes = np.concatenate([sizes, *(some["length"] for some in found)])
        order = np.argsort(numbers, kind="stable")[:most]
        fit = int(np.searchsorted(np.cumsum(sizes[order]), most_bytes)) + 1
        numbers, sizes = numbers[order][:fit], sizes[order][:fit]
        if len(numbers) == most or int(sizes.sum()) >= most_bytes:
            bound = int(numbers[-1])  # higher ones of other priorities are not wanted
    return int(numbers[-1]) if len(numbers) else None


def _level_of(
    queue: Queue, priority: int, most: int, most_bytes: int, persistent_only: bool, up_to: int
) -> list[Any]:
    """Numbers and lengths of the messages of a priority, in their order, in arrays; no more than
    exceed one of the limits.
    """
    rows = np.empty(_AT_A_TIME, DTYPE)
    found: list[Any] = []
    messages = size = 0
    while messages < most and size < most_bytes:
        count, _ = _engine.batch_browse(
            queue, rows, None, None, not found, 0, persistent_only, up_to, level(priority)
        )
        if not count:
            break
        some = np.empty(count, [("number", np.uint64), ("length", np.int64)])
        some["number"], some["length"] = rows["number"][:count], rows["length"][:count]
        found.append(some)
        messages, size = messages + count, size + int(some["length"].sum())
    return found


# ---- partitions ----


class Run(NamedTuple):
    """Messages of a unit with rising numbers; the first of them has this index in the unit."""

    xid: Xid
    first: int
    numbers: Numbers


def runs(xid: Xid, numbers: Numbers) -> list[Run]:
    """The runs of a unit whose messages have these numbers, in the order in which it took them."""
    if not len(numbers):
        return []
    falls = np.flatnonzero(numbers[1:] < numbers[:-1]) + 1
    ends = [0, *falls.tolist(), len(numbers)]
    return [Run(xid, a, numbers[a:b]) for a, b in pairwise(ends)]


def cut(found: list[Run], rows: int) -> Iterator[list[tuple[Xid, int, int]]]:
    """Cuts runs at the same numbers. Yields pieces (a unit, indices first and last) that have at
    most ``rows`` messages together, and lower numbers than those of the next ones.
    """
    if not found:
        return
    numbers = np.sort(np.concatenate([run.numbers for run in found]))
    low = np.uint64(0)
    for end in range(rows, len(numbers) + rows, rows):
        high = numbers[min(end, len(numbers)) - 1]
        ends = [np.searchsorted(run.numbers, (low, high), "right").tolist() for run in found]
        yield [
            (run.xid, run.first + a, run.first + b)
            for run, (a, b) in zip(found, ends, strict=True)
            if a < b
        ]
        low = high


def split(queue: Queue, parts: int, up_to: int) -> list[tuple[int, int]]:
    """Intervals of message numbers with about the same number of messages; the first number of
    each does not belong to it.
    """
    points = sorted(number for _, number in queue.split_points(min(parts * _SAMPLES, 100_000)))
    inner = {points[len(points) * n // parts] for n in range(1, parts)} if points else set()
    ends = [0, *sorted(number for number in inner if 0 < number < up_to), up_to]
    return list(pairwise(ends))


# ---- rows ----


def merged(sources: Sequence[Iterator[tuple[Numbers, pa.RecordBatch]]]) -> Iterator[pa.RecordBatch]:
    """Merges rows by their numbers.

    Args:
        sources: Each yields batches of rows with their numbers, which rise.
    """
    heads = [(head, source) for source in sources if (head := _filled(source)) is not None]
    while heads:
        last = min(numbers[-1] for (numbers, _), _ in heads)
        due: list[tuple[Numbers, pa.RecordBatch]] = []
        rest = []
        for (numbers, rows), source in heads:
            at = int(np.searchsorted(numbers, last, "right"))
            if at:
                due.append((numbers[:at], rows.slice(0, at)))
            head = (numbers[at:], rows.slice(at)) if at < len(numbers) else _filled(source)
            if head is not None:
                rest.append((head, source))
        heads = rest
        yield _sorted(due)


def _filled(source: Iterator[Any]) -> Any:
    """The next batch that has rows; None: there is none."""
    return next((head for head in source if len(head[0])), None)


def _sorted(due: list[tuple[Numbers, pa.RecordBatch]]) -> pa.RecordBatch:
    if len(due) == 1:
        return due[0][1]
    import pyarrow as pa

    order = np.argsort(np.concatenate([numbers for numbers, _ in due]), kind="stable")
    table = pa.Table.from_batches([rows for _, rows in due]).take(pa.array(order))
    return table.combine_chunks().to_batches()[0]

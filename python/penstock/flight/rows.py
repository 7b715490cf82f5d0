"""Rows that the server reads for clients: of queues, of units and of the journal.

Each function gives a schema and an iterator of record batches, which reads while it is asked: a
client that stops reading holds some chunks of memory (ahead.py) and no lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from penstock.constants import ReasonCode
from penstock.errors import InvalidValue, MQError, error_for
from penstock.journal.errors import DamagedFile

from .requests import Request

if TYPE_CHECKING:
    from penstock import Queue, QueueManager
    from penstock.batch.arrow_columns import Column

    from .unit_names import Run

__all__ = ["browsed", "journal_of", "journal_range", "ranges_of", "taken"]

_CHUNK_ROWS, _CHUNK_BYTES = 5_000, 4 << 20
_FIRST, _LAST = (9, 0), (0, 2**64 - 1)  # positions before and behind all messages
_ALL = 1 << 62


def browsed(qm: QueueManager, request: Request) -> tuple[Any, Iterator[Any]]:
    """The messages on a queue, or in one of its ranges; nothing is taken."""
    columns = _chosen(request.columns)
    first, last, up_to = _FIRST, _LAST, None
    if request.range:
        p1, n1, p2, n2, up_to = request.range
        first, last = (p1, n1), (p2, n2)
    queue = _to_browse(qm, request.queue)
    return _schema(columns), _browsed(queue, columns, (first, last), up_to)


def _browsed(
    queue: Queue, columns: tuple[Column, ...], ends: Any, up_to: int | None
) -> Iterator[Any]:
    import pyarrow as pa

    from penstock.batch.chunks import as_table, browse_chunks

    fill = as_table(columns)
    with queue:
        newest = queue.newest_number if up_to is None else up_to
        for part in browse_chunks(queue, ends, newest, fill, _CHUNK_ROWS, _CHUNK_BYTES):
            yield pa.record_batch(part)


def ranges_of(qm: QueueManager, request: Request) -> list[dict[str, Any]]:
    """About so many ranges of a queue, which have its messages together."""
    with _to_browse(qm, request.queue) as queue:
        newest = queue.newest_number
        points = [_FIRST, *queue.split_points(request.parts), _LAST]
    return [{"range": [*first, *last, newest]} for first, last in pairwise(points)]


def taken(qm: QueueManager, run: Run, request: Request) -> tuple[Any, Iterator[Any]]:
    """What a unit has taken, from the message of a number to that of another one."""
    columns = _chosen(request.columns)
    last = request.last or _ALL
    return _schema(columns), _taken(qm, run, columns, request.first, last)


def _taken(
    qm: QueueManager, run: Run, columns: tuple[Column, ...], first: int, last: int
) -> Iterator[Any]:
    import pyarrow as pa

    from penstock.batch.chunks import as_table
    from penstock.batch.prepared import prepared_chunks

    fill = as_table(columns)
    sizes = {one.xid: one.gets for one in qm.prepared_list()}
    begin = 0  # number of a part's first message
    for number in sorted(run.parts):
        xid = run.parts[number]
        size = sizes.get(xid, _ALL)  # of one that has just ended: reading it says so
        own = max(0, first - begin), min(size, last - begin)
        if own[0] < own[1]:
            rows = min(_CHUNK_ROWS, own[1] - own[0])
            for part in prepared_chunks(qm, xid, *own, fill, rows, _CHUNK_BYTES):
                yield pa.record_batch(part)
        begin += size


def _to_browse(qm: QueueManager, queue: str) -> Queue:
    return qm.open(queue, input=False, browse=True, output=False)


# ---- the journal ----


def journal_range(qm: QueueManager) -> dict[str, Any]:
    """From where to where the journal can be read, and of which history it is."""
    from penstock.journal.head import history_of
    from penstock.journal.segment_range import SegmentRange

    with _errors():
        journal = SegmentRange.newest(qm.path, qm.status().durable_lsn)
        return {
            "oldest": journal.oldest_lsn,
            "end": journal.end_lsn,
            "history": history_of(qm.path),
        }


def journal_of(qm: QueueManager, request: Request) -> tuple[Any, Iterator[Any]]:
    """The events that were decided from one LSN to another, once each.

    Raises:
        MQError: 2046: a column or event that there is not, another history, an end that is not
            durable. 2101: records are damaged, or not there any more.
    """
    from penstock.journal.events import COLUMNS, KINDS, event_batches, schema_of
    from penstock.journal.head import history_of
    from penstock.journal.segment_range import SegmentRange

    columns, kinds = request.columns or COLUMNS, request.events or KINDS
    _check_known("column", columns, COLUMNS)
    _check_known("event", kinds, KINDS)
    with _errors():
        own = history_of(qm.path)
        journal = SegmentRange.newest(qm.path, qm.status().durable_lsn)
    if request.history not in ("", own):
        text = f"queue manager {qm.name} has history {own}, not {request.history}: it was restored "
        raise _wrong(text + "or created anew, and LSNs of one history mean nothing in another")
    end = request.end or journal.end_lsn
    if max(request.start, end) > journal.end_lsn:
        text = f"LSN {max(request.start, end)} is beyond {journal.end_lsn}, where the journal ends"
        raise _wrong(text)
    found = event_batches(
        qm.path, columns, start=request.start, end=end, kinds=kinds,
        queues=request.queues or None, batch_rows=_CHUNK_ROWS, batch_bytes=_CHUNK_BYTES,
        journal=journal,
    )  # fmt: skip
    return schema_of(columns), _as_arrow(found)


def _as_arrow(batches: Iterator[Any]) -> Iterator[Any]:
    with _errors():
        for batch in batches:
            yield batch.to_arrow()


@contextmanager
def _errors() -> Iterator[None]:
    """Makes what is wrong with the files an error of MQ."""
    try:
        yield
    except DamagedFile as error:
        raise error_for(ReasonCode.OBJECT_DAMAGED, str(error)) from error


# ---- columns ----


def _chosen(names: tuple[str, ...]) -> tuple[Column, ...]:
    """The columns of the rows, besides the body. Raises InvalidValue, 2046: one is none."""
    from penstock.batch.arrow_columns import ARROW_COLUMNS

    _check_known("column", names, (*ARROW_COLUMNS, "body"))
    wanted = names or tuple(ARROW_COLUMNS)
    return tuple(ARROW_COLUMNS[name] for name in wanted if name != "body")


def _schema(columns: tuple[Column, ...]) -> Any:
    import numpy as np
    import pyarrow as pa

    from penstock.batch import MessageBatch
    from penstock.batch.row_layout import DTYPE

    none = MessageBatch(np.empty(0, DTYPE), np.empty(0, np.uint8), np.zeros(1, np.int64))
    return pa.record_batch(none.arrow([name for name, *_ in columns])).schema


def _check_known(kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise _wrong(f"there is no {kind} {unknown[0]}; there are {', '.join(known)}")


def _wrong(text: str) -> MQError:
    return InvalidValue(ReasonCode.OPTIONS_ERROR, text)

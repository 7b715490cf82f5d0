"""What happened to the queues, from the journal: the events of decided units of work, in order.

    for event in events("/path/to/QM1"):
        event.kind, event.queue, event.number, event.body

Each put, get and expiry whose unit of work was committed is one event, and so are CLEAR and
OBJECT_DELETE; what stands alone was committed as it was written. The order is that of the
decisions: by the LSN of the record that decided (``commit_lsn``), then by that of the record
itself. So the events of a unit follow each other, and whoever applies them in this order has the
persistent contents of the queues as they were after each commit.

* ``PUT``: the message is on the queue.
* ``GET``: it is gone: a program got it, or CLEAR QLOCAL removed it.
* ``EXPIRE``: it is gone. This version of the engine writes no such record: a message that expires
  has no event but its PUT, whose expiry_time says when.
* ``CLEAR``: all messages of the queue with a lower number are gone; likewise not written today.
* ``OBJECT_DELETE``: the queue was deleted, and what was on it is gone. Deleted objects without
  messages (aliases, for example) that are in the name space of queues have this event, too.

No event are: copies that the engine makes of a message when it frees a segment (MOVED), images of
non-persistent messages (TAKEN), definitions, and whatever belongs to a unit that was backed out or
is still open. Non-persistent messages are not in the journal; those of queues in a coupling
facility structure are, and have events.

A range is given in LSNs of decisions. A reader that ended behind the last event of a unit goes on
with ``start=event.commit_lsn + 1``; nothing is missing and nothing comes twice. A unit may have
begun long before: its first records are looked for as far back as segments are there, in journal
and archive. Linear logging keeps them all; with circular logging a reader that is slow, or that
looks back, finds holes.

Files are read as scan.py reads them, beside a queue manager at work or without one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from . import scan as table
from .event_reader import OWN_COLUMNS, Bodies, EventBatch, EventReader
from .records import utc
from .segment_range import SegmentRange
from .unit_index import EVENT_TYPES, EventReport, OnLoss, Queues, UnitIndex, Wanted

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "COLUMNS",
    "KINDS",
    "Event",
    "EventBatch",
    "EventReport",
    "event_batches",
    "events",
    "schema_of",
]

KINDS = tuple(EVENT_TYPES)
"""The events that there are."""

COLUMNS = (*table.COLUMNS, *OWN_COLUMNS)
"""Every column of an event: those of the journal, and LSN and time of the decision. commit_time:
when the flush batch with the decision was sealed."""

_DEFAULT = ("msg_id", "correl_id", "priority", "put_time", "expiry_time", "format", "body")
_OF_EVENT = ("event", "queue", "identity", "lsn", "unit_id", *OWN_COLUMNS)
_MOST_ROWS, _MOST_BYTES = 50_000, 32 << 20


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    kind: of KINDS. number: the message number; of a CLEAR the bound. queue: "" when no file says
    the name. body: None in events without a message. fields: the other columns, by name; None in
    events without a message. Texts are str, identifiers bytes, times aware datetimes.
    """

    kind: str
    queue: str
    number: int
    commit_lsn: int
    lsn: int
    commit_time: datetime | None
    unit_id: int
    body: bytes | None
    fields: Mapping[str, Any]


def events(
    directory: str | os.PathLike[str],
    columns: Iterable[str] = _DEFAULT,
    *,
    start: int = 0,
    end: int | None = None,
    kinds: Sequence[str] = KINDS,
    queues: Queues = None,
    durable_lsn: int = 0,
    on_loss: OnLoss = "refuse",
    report: EventReport | None = None,
) -> Iterator[Event]:
    """The events of a queue manager's journal and archive, one by one.

    directory: the queue manager's. columns: of COLUMNS, for Event.fields; with "body" the bodies
    are read. The rest is as of event_batches(), which is several times faster.
    """
    names = dict.fromkeys((*columns, *_OF_EVENT))
    for batch in event_batches(
        directory, names, start=start, end=end, kinds=kinds, queues=queues,
        durable_lsn=durable_lsn, on_loss=on_loss, report=report,
    ):  # fmt: skip
        yield from _rows(batch)


def event_batches(
    directory: str | os.PathLike[str],
    columns: Iterable[str],
    *,
    start: int = 0,
    end: int | None = None,
    since: int | None = None,
    kinds: Sequence[str] = KINDS,
    queues: Queues = None,
    durable_lsn: int = 0,
    on_loss: OnLoss = "refuse",
    report: EventReport | None = None,
    batch_rows: int = _MOST_ROWS,
    batch_bytes: int = _MOST_BYTES,
    journal: SegmentRange | None = None,
) -> Iterator[EventBatch]:
    """The events whose decision has an LSN from ``start`` up to, not including, ``end``.

    directory: the queue manager's. columns: of COLUMNS. start: 0 begins with the oldest segment
    from which on none is missing. end: None: what is durable; never more. since: units of work that
    began before this LSN are passed over and counted; None: 0, and with start 0 the oldest segment,
    before which nothing is known of any unit. kinds: of KINDS. queues: names, or a function that
    says of a name whether it is chosen; None: all.
    durable_lsn: what an attached caller knows of (``qm.status().durable_lsn``); without it the
    newest durable mark on disk counts, which follows a commit within a tenth of a second.
    on_loss: what happens where records in the range, or of a unit that was decided in it, are not
    there any more: "refuse" raises JournalDataLoss, "skip" passes over the units that are not
    complete and counts them in ``report``; of a unit all events are given, or none.
    batch_rows, batch_bytes: of a batch; a longer body comes in a separate one. journal: the
    segments, listed before.

    Raises ValueError for wrong arguments, DamagedFile, which names file and offset,
    JournalDataLoss.
    """
    names = tuple(columns)
    _check(names, kinds, on_loss)
    if batch_rows < 1 or batch_bytes < 0 or start < 0:
        raise ValueError(f"start {start}, batches of {batch_rows} rows and {batch_bytes} bytes")
    journal = journal or SegmentRange(directory, durable_lsn=durable_lsn)
    if start == 0:
        start = journal.oldest_lsn
        since = start if since is None else since
    end = journal.end_lsn if end is None else min(end, journal.end_lsn)
    wanted = Wanted.of_names(kinds, queues)
    index = UnitIndex(
        journal, start, wanted=wanted, since=since or 0, on_loss=on_loss, report=report
    )
    reader = EventReader(journal, names, kinds, batch_rows, batch_bytes)
    for positions in index.positions(end):
        yield from reader.batches(positions)


def schema_of(columns: Iterable[str]) -> pyarrow.Schema:
    """Of the rows that event_batches() has with these columns. Needs pyarrow."""
    names = tuple(columns)
    none = {name: table.no_rows(name) for name in names if name != "body"}
    bodies = Bodies(np.empty(0, np.uint8), np.zeros(1, np.int64), np.empty(0, np.bool_))
    return EventBatch(names, none, np.empty(0, np.bool_), bodies).to_arrow().schema


def _check(names: tuple[str, ...], kinds: Sequence[str], on_loss: str) -> None:
    for name in names:
        if name not in COLUMNS:
            raise ValueError(f"no column {name!r}; there are {', '.join(COLUMNS)}")
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"no event {kind!r}; there are {', '.join(KINDS)}")
    if on_loss not in ("refuse", "skip"):
        raise ValueError(f"on_loss is 'refuse' or 'skip', not {on_loss!r}")


def _rows(batch: EventBatch) -> Iterator[Event]:
    """The events of a batch as objects."""
    values = {name: _plain(column) for name, column in batch.columns.items()}
    others = [name for name in values if name not in _OF_EVENT]
    messages = batch.messages.tolist()
    for row in range(len(batch)):
        number = values["identity"][row]
        yield Event(
            kind=values["event"][row],
            queue=values["queue"][row],
            number=number,
            commit_lsn=values["commit_lsn"][row],
            lsn=values["lsn"][row],
            commit_time=values["commit_time"][row],
            unit_id=values["unit_id"][row],
            body=None if batch.bodies is None else batch.body(row),
            fields={name: values[name][row] if messages[row] else None for name in others},
        )


def _plain(column: Any) -> list[Any]:
    """A column as Python's values."""
    if column.dtype.kind == "S":
        return [text.decode("latin-1") for text in column.tolist()]
    if column.dtype.kind == "V":
        return [bytes(value) for value in column]
    if column.dtype.kind == "M":
        known = ~np.isnat(column)
        us = column.astype(np.int64).tolist()
        return [utc(at) if is_known else None for at, is_known in zip(us, known, strict=True)]
    values: list[Any] = column.tolist()
    return values

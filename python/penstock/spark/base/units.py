"""Names of the prepared units of work that streams and sinks leave, and how they are found again.

=======  ===================  ====================================================================
format   global id            qualifier
=======  ===================  ====================================================================
PSPK     the stream's id      ``<unit>.<part>.<queue>``: messages of a micro-batch from a queue;
                              ``<unit>.aside.<rest>``: what was put aside of it
                              (source/aside.py); ``ledger``
PSNK     ``<sink>.<version>`` ``<partition>.<attempt>.<nth>.<write>``: what a task put; ``ledger``
=======  ===================  ====================================================================

The sink's id is the query's, its version the batch's; the write is one run of a batch sink, a
random text for a streaming one. A name is used by one prepared unit at a time, which the queue
manager sees to: two processes that take the same micro-batch cannot both prepare it.

A qualifier has 64 bytes, and the name of a queue at most 48, so that ten are left for the unit and
four for the part.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import penstock
from penstock import Xid

if TYPE_CHECKING:
    from penstock import QueueManager

__all__ = [
    "MOST_UNITS",
    "SINK",
    "SOURCE",
    "Part",
    "aside_unit",
    "asides",
    "back_out",
    "ledger_unit",
    "ledgers",
    "new_id",
    "of_owner",
    "of_sink",
    "of_stream",
    "queue_of",
    "stream_of",
    "stream_unit",
    "task_unit",
    "write_of",
]

SOURCE = int.from_bytes(b"PSPK", "big")
SINK = int.from_bytes(b"PSNK", "big")
MOST_UNITS = 4095  # of one commit, beside the ledger's
_LEDGER = b"ledger"
_ASIDE = b".aside."  # where a unit of messages has the number of its part


def _is_aside(xid: Xid) -> bool:
    """Of a unit of a stream; a queue's name may have the word, too."""
    return xid.bqual.partition(b".")[2].startswith(_ASIDE[1:])


class Part(NamedTuple):
    """A part of a micro-batch: the messages of one unit of work.

    Attributes:
        queue: That they were taken from.
        number: Among the parts of that queue, from 0.
    """

    queue: str
    number: int


def new_id() -> str:
    """A unique text of 32 characters."""
    return uuid.uuid4().hex


def stream_unit(stream: str, unit: int, part: Part) -> Xid:
    """Of a part of a micro-batch."""
    return Xid(SOURCE, stream.encode(), f"{unit}.{part.number}.{part.queue}".encode())


def aside_unit(stream: str, unit: int, rest: str) -> Xid:
    """Of what is put aside of a micro-batch."""
    return Xid(SOURCE, stream.encode(), b"%d%s%s" % (unit, _ASIDE, rest.encode()))


def asides(xids: Iterable[Xid], stream: str) -> dict[int, dict[Xid, str]]:
    """Such units of a stream among those: number -> name -> rest of the qualifier."""
    found: dict[int, dict[Xid, str]] = {}
    for xid in xids:
        if xid.format_id == SOURCE and xid.gtrid == stream.encode() and _is_aside(xid):
            number, _, rest = xid.bqual.partition(_ASIDE)
            found.setdefault(int(number), {})[xid] = rest.decode("ascii")
    return found


def task_unit(sink: str, version: int, partition: int, attempt: int, nth: int, write: str) -> Xid:
    """Of what a task puts."""
    return Xid(SINK, f"{sink}.{version}".encode(), f"{partition}.{attempt}.{nth}.{write}".encode())


def ledger_unit(kind: int, gtrid: str) -> Xid:
    """Of the replacement of an entry of the ledger."""
    return Xid(kind, gtrid.encode(), _LEDGER)


def of_stream(xids: Iterable[Xid], stream: str) -> tuple[dict[int, dict[Part, Xid]], list[Xid]]:
    """Units of a stream among those: number -> part -> name, and those of the ledger."""
    numbers: dict[int, dict[Part, Xid]] = {}
    ledgers = []
    for xid in xids:
        if xid.format_id != SOURCE or xid.gtrid != stream.encode():
            continue
        if xid.bqual == _LEDGER:
            ledgers.append(xid)
        elif not _is_aside(xid):
            number, part = _parsed(xid)
            numbers.setdefault(number, {})[part] = xid
    return numbers, ledgers


def queue_of(xid: Xid) -> str | None:
    """The queue that a unit of a stream took messages from; None for any other unit."""
    if stream_of(xid) is None or _is_aside(xid):
        return None
    return _parsed(xid)[1].queue


def _parsed(xid: Xid) -> tuple[int, Part]:
    """Number and part of a unit of a micro-batch."""
    number, part, queue = xid.bqual.decode("ascii").split(".", 2)
    return int(number), Part(queue, int(part))


def of_sink(xids: Iterable[Xid], sink: str, version: int) -> list[Xid]:
    """Units of a sink among those, of that version and earlier ones, the ledger's included."""
    found = []
    for xid in xids:
        name, _, of = xid.gtrid.rpartition(b".")
        if xid.format_id == SINK and name == sink.encode() and int(of) <= version:
            found.append(xid)
    return found


def of_owner(xids: Iterable[Xid], kind: str, name: str) -> list[Xid]:
    """Units among those of an owner in the ledger: a stream, a sink, or a batch write (its id)."""
    if kind == "stream":
        return [xid for xid in xids if xid.format_id == SOURCE and xid.gtrid == name.encode()]
    if kind == "sink":
        return [
            xid
            for xid in xids
            if xid.format_id == SINK and xid.gtrid.rpartition(b".")[0] == name.encode()
        ]
    return [xid for xid in xids if (write_of(xid) or ("", 0, ""))[2] == name]


def ledgers(xids: Iterable[Xid], *kinds: int) -> list[Xid]:
    """The units among those, of sources or sinks, that replace an entry of the ledger."""
    return [xid for xid in xids if xid.format_id in kinds and xid.bqual == _LEDGER]


def stream_of(xid: Xid) -> str | None:
    """The stream that a unit's messages were taken for; None for any other unit."""
    is_taken = xid.format_id == SOURCE and xid.bqual != _LEDGER
    return xid.gtrid.decode("ascii") if is_taken else None


def write_of(xid: Xid) -> tuple[str, int, str] | None:
    """Sink, version and write of a unit of a task; None for any other."""
    if xid.format_id != SINK or xid.bqual == _LEDGER:
        return None
    sink, _, version = xid.gtrid.decode("ascii").rpartition(".")
    return sink, int(version), xid.bqual.decode("ascii").rpartition(".")[2]


def back_out(qm: QueueManager, xids: Iterable[Xid]) -> None:
    """Backs units out, except those that were resolved concurrently."""
    for xid in xids:
        try:
            qm.backout_prepared(xid)
        except penstock.UnitNotAvailable:
            continue

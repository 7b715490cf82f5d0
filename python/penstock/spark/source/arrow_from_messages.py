"""Converts messages to Arrow record batches of the requested columns. Bodies are not copied, except
where an MQRFH2 is removed from them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.batch import DTYPE, ArrowColumns, MessageBatch
from penstock.batch.arrow_columns import Column
from penstock.batch.chunks import Fill, Table, as_batch, as_table

from ..base.errors import SourceError
from .bodies import decode
from .choice import ALL, Choice
from .rules import DEAD_LETTER, FAIL, KEEP_ALL, Rules

__all__ = ["Rows"]

_log = logging.getLogger("penstock.spark")

_FIXED, _BOOL, _TEXT, _, _UNLESS_0, _SECONDS, _BYTES, _BYTES_UNLESS_0 = range(8)  # COLUMN_* (pyext)

# Column -> field of a batch's row, format and kind for arrow_array() of the engine.
_COLUMNS: Mapping[str, tuple[str, str, int]] = {
    "msg_id": ("msg_id", "z", _BYTES),
    "correl_id": ("correl_id", "z", _BYTES),
    "group_id": ("group_id", "z", _BYTES_UNLESS_0),
    "msg_seq_number": ("msg_seq_number", "i", _FIXED),
    "sequence": ("number", "l", _FIXED),
    "lsn": ("lsn", "l", _UNLESS_0),
    "priority": ("priority", "i", _FIXED),
    "persistent": ("persistence", "b", _BOOL),
    "put_time": ("put_time", "tsu:UTC", _UNLESS_0),
    "expiry": ("expiry", "g", _SECONDS),
    "format": ("format", "u", _TEXT),
    "ccsid": ("ccsid", "i", _FIXED),
    "encoding": ("encoding", "i", _FIXED),
    "msg_type": ("msg_type", "i", _FIXED),
    "reply_to_q": ("reply_to_q", "u", _TEXT),
    "reply_to_qmgr": ("reply_to_qmgr", "u", _TEXT),
    "user_identifier": ("user_identifier", "u", _TEXT),
    "put_appl_name": ("put_appl_name", "u", _TEXT),
    "backout_count": ("backout_count", "i", _FIXED),
}
_NUMBER = "arrival"  # column of message numbers, for the error about a bad body
_BACKOUTS = "backouts"  # column of BackoutCount, where a threshold is to be compared
_OWN = ("queue", "properties", "body")
_OF_HEADERS = frozenset(("properties", "body", "format", "ccsid", "encoding"))
_Properties = list["dict[str, str | None] | None"]


class Rows:
    """Converts chunks of messages to ``pyarrow.RecordBatch`` of a schema.

    Attributes:
        fill: the form of a chunk for read_chunks(): columns; a batch where headers are removed.
    """

    def __init__(
        self,
        queue: str,
        schema: Any,
        with_properties: bool,
        rules: Rules = KEEP_ALL,
        with_numbers: bool = False,
        choice: Choice = ALL,
    ) -> None:
        """Prepares the conversion.

        Args:
            queue: For the column of that name.
            schema: Of the rows.
            with_properties: Whether an MQRFH2 in front of a body (penstock.headers.rfh2) is removed
                and becomes the properties; else the body stays as it was stored. An MQRFH2 that is
                not valid stays in the body, with null properties and the format MQHRF2, and is
                reported in the log.
            rules: Which messages are no rows.
            with_numbers: Whether numbered() will be called, and not made().
            choice: Which messages are read at all.
        """
        self._queue = queue
        self._queues = pa.repeat(queue, 0)
        self._schema = schema
        self._rules, self._choice = rules, choice
        self._fields = [(field.name, field.type) for field in schema]
        self._columns = _wanted(tuple(schema.names))
        self._body = schema.field("body").type if "body" in schema.names else None
        is_binary = self._body is None or pa.types.is_binary(self._body)
        if with_numbers or not is_binary:
            self._columns += _wanted(("sequence",), _NUMBER)
        if rules.threshold:
            self._columns += _wanted(("backout_count",), _BACKOUTS)
        for name, called in choice.columns():
            self._columns += _wanted((name,), called)
        headers = with_properties and not _OF_HEADERS.isdisjoint(schema.names)
        self.fill: Fill[Any] = as_batch if headers else as_table(self._columns)

    def made(self, part: Table | MessageBatch) -> Any:
        """The rows of a part. Raises SourceError: a body is bad, and the rules say fail."""
        _, rows, _ = self._rows(part)
        return rows

    def numbered(self, part: Table | MessageBatch) -> tuple[Any, Any]:
        """The same, and the message number of each row."""
        taken, rows, keep = self._rows(part)
        numbers = taken.column(_NUMBER).to_numpy().view(np.uint64)
        return (numbers if keep is None else numbers[keep]), rows

    def _rows(self, part: Table | MessageBatch) -> tuple[Any, Any, Any]:
        """The columns of all messages, the rows, and which messages these are; None: all."""
        part, taken, properties = self._opened(part)
        bodies, aside, bad = self._decoded(part, taken)
        if bad is not None and self._rules.on_bad == FAIL:
            number = taken.column(_NUMBER)[int(np.argmax(bad))]
            what = "UTF-8" if pa.types.is_string(self._body) else f"JSON of {self._body}"
            raise SourceError(
                f"a body on the queue is not {what} (message {number}): read column body as binary,"
                " or use option onBadBody"
            )
        if bad is not None and self._rules.on_bad == DEAD_LETTER:
            aside = bad if aside is None else aside | bad
        columns = iter(taken.columns)  # in the order of the schema
        arrays = []
        for name, kind in self._fields:
            if name == "body":
                arrays.append(bodies)
            elif name == "queue":
                arrays.append(self._names(len(part)))
            elif name == "properties":
                arrays.append(_maps(properties, len(part), kind))
            else:
                arrays.append(next(columns))
        rows = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        if aside is None or not aside.any():
            return taken, rows, None
        return taken, rows.filter(pa.array(~aside)), ~aside

    def marks(self, part: Table | MessageBatch) -> tuple[Any, Any]:
        """Which messages of a part were backed out too often, and which others have bad bodies;
        each a NumPy array of bool.
        """
        part, taken, _ = self._opened(part)
        _, aside, bad = self._decoded(part, taken)
        none = np.zeros(len(part), np.bool_)
        return none if aside is None else aside, none if bad is None else bad

    def _opened(
        self, part: Table | MessageBatch
    ) -> tuple[Table | MessageBatch, Any, _Properties | None]:
        """The part without headers, its columns, and the properties of the headers."""
        properties: _Properties | None = None
        if isinstance(part, MessageBatch):
            part, properties = _without_headers(part)
        source = ArrowColumns(part, self._columns) if isinstance(part, MessageBatch) else part
        return part, pa.record_batch(source), properties

    def _decoded(self, part: Table | MessageBatch, taken: Any) -> tuple[Any, Any, Any]:
        """Bodies, or None where none are wanted, and what marks() returns; None: none of them."""
        bodies = bad = None
        aside = self._choice.others(taken)
        if self._rules.threshold:
            assert aside is None, "batch reads choose, streams have thresholds"
            aside = taken.column(_BACKOUTS).to_numpy() >= self._rules.threshold
        if self._body is not None:
            bodies, bad = decode(_raw_bodies(part), self._body)
        if bad is not None and aside is not None:
            bad &= ~aside
            bad = bad if bad.any() else None
        return bodies, aside, bad

    def _names(self, count: int) -> Any:
        """The column queue, made once for most parts."""
        if len(self._queues) < count:
            self._queues = pa.repeat(self._queue, count)
        return self._queues.slice(0, count)


def _without_headers(batch: MessageBatch) -> tuple[MessageBatch, _Properties | None]:
    """The batch with what follows an MQRFH2 as body, and the properties of each message; the same
    batch when no message has one.
    """
    from penstock.headers import rfh2

    with_header = np.flatnonzero(batch.descriptors["format"] == rfh2.FORMAT)
    if not len(with_header):
        return batch, None
    rows = batch.descriptors.copy()
    properties: _Properties = [None] * len(batch)
    ends = batch.offsets.tolist()
    at = ends[0]
    good: list[int] = []
    headers: list[rfh2.Header] = []
    kept = []
    wrong: list[tuple[int, rfh2.HeaderError]] = []
    known = rows[["encoding", "ccsid"]][with_header].tolist()
    for index, (encoding, ccsid) in zip(with_header.tolist(), known, strict=True):
        start = ends[index]
        try:
            header = rfh2.parse(batch.bodies[start : ends[index + 1]], encoding, ccsid)
        except rfh2.HeaderError as error:
            wrong.append((int(rows["number"][index]), error))
            continue
        good.append(index)
        headers.append(header)
        properties[index] = header.properties
        kept.append(batch.bodies[at:start])
        at = start + header.length
    kept.append(batch.bodies[at : ends[-1]])
    if wrong:
        _log.warning(
            "%d messages have an MQRFH2 that is not valid and stays in their bodies; message %d: "
            "%s", len(wrong), *wrong[0]
        )  # fmt: skip
    rows["format"][good] = [f"{header.format:8}" for header in headers]
    rows["ccsid"][good] = [header.ccsid for header in headers]
    rows["encoding"][good] = [header.encoding for header in headers]
    lengths = np.diff(batch.offsets)
    lengths[good] -= np.array([header.length for header in headers], np.int64)
    offsets = np.zeros(len(batch) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return MessageBatch(rows, np.concatenate(kept), offsets), properties


@cache
def _wanted(names: tuple[str, ...], called: str | None = None) -> tuple[Column, ...]:
    """Those columns that are fields of a row, by another name if it is given."""
    fields = DTYPE.fields
    assert fields is not None
    columns = []
    for name in names:
        if name not in _OWN:
            source, form, kind = _COLUMNS[name]
            size, offset = fields[source][0].itemsize, fields[source][1]
            columns.append((called or name, form, kind, offset, size))
    return tuple(columns)


def _maps(properties: _Properties | None, size: int, kind: Any) -> Any:
    if properties is None:
        return pa.nulls(size, kind)
    entries = [None if found is None else list(found.items()) for found in properties]
    return pa.array(entries, kind)


def _raw_bodies(part: Table | MessageBatch) -> Any:
    first, last = int(part.offsets[0]), int(part.offsets[-1])
    offsets = (part.offsets - first).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(part.bodies[first:last])]
    return pa.Array.from_buffers(pa.binary(), len(part), buffers)

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
_NUMBER = "arrival"  # column of message numbers, for the error about a body that is no text
_OWN = ("queue", "properties", "body")
_OF_HEADERS = frozenset(("properties", "body", "format", "ccsid", "encoding"))
_Properties = list["dict[str, str | None] | None"]


class Rows:
    """Converts chunks of messages to ``pyarrow.RecordBatch`` of a schema.

    Attributes:
        fill: the form of a chunk for read_chunks(): columns; a batch where headers are removed.
    """

    def __init__(self, queue: str, schema: Any, with_properties: bool) -> None:
        """Prepares the conversion.

        Args:
            queue: For the column of that name.
            schema: Of the rows.
            with_properties: Whether an MQRFH2 in front of a body (penstock.headers.rfh2) is removed
                and becomes the properties; else the body stays as it was stored. An MQRFH2 that is
                not valid stays in the body, with null properties and the format MQHRF2, and is
                reported in the log.
        """
        self._queue = queue
        self._queues = pa.repeat(queue, 0)
        self._schema = schema
        self._fields = [(field.name, field.type) for field in schema]
        self._columns = _wanted(tuple(schema.names))
        if "body" in schema.names and pa.types.is_string(schema.field("body").type):
            self._columns += _wanted(("sequence",), _NUMBER)
        headers = with_properties and not _OF_HEADERS.isdisjoint(schema.names)
        self.fill: Fill[Any] = as_batch if headers else as_table(self._columns)

    def made(self, part: Table | MessageBatch) -> Any:
        """The rows of a part. Raises SourceError: a body that is requested as text is not UTF-8."""
        properties: _Properties | None = None
        if isinstance(part, MessageBatch):
            part, properties = _without_headers(part)
        source = ArrowColumns(part, self._columns) if isinstance(part, MessageBatch) else part
        taken = pa.record_batch(source)
        columns = iter(taken.columns)  # in the order of the schema
        arrays = []
        for name, kind in self._fields:
            if name == "body":
                arrays.append(_bodies(part, kind, taken))
            elif name == "queue":
                arrays.append(self._names(len(part)))
            elif name == "properties":
                arrays.append(_maps(properties, len(part), kind))
            else:
                arrays.append(next(columns))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

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


def _bodies(part: Table | MessageBatch, kind: Any, taken: Any) -> Any:
    first, last = int(part.offsets[0]), int(part.offsets[-1])
    offsets = (part.offsets - first).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(part.bodies[first:last])]
    bodies = pa.Array.from_buffers(kind, len(part), buffers)
    if pa.types.is_string(kind):
        try:
            bodies.validate(full=True)
        except pa.ArrowInvalid:
            number = taken.column(_NUMBER)[_first_strange(bodies.view(pa.binary()))]
            raise SourceError(
                f"a body on the queue is not UTF-8 (message {number}): read column body as binary"
            ) from None
    return bodies


def _first_strange(bodies: Any) -> int:
    """The first one that is no text."""
    for index, body in enumerate(bodies.to_pylist()):
        try:
            body.decode()
        except UnicodeDecodeError:
            return index
    raise AssertionError("all of them are text")

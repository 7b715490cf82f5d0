"""Messages as Arrow record batches, in the columns that were asked for. Bodies are not copied, but
of a batch with properties that are wanted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.batch import DTYPE, ArrowColumns

from .errors import SourceError

if TYPE_CHECKING:
    from penstock.batch import MessageBatch

__all__ = ["record_batches"]

_log = logging.getLogger("penstock.spark")

_FIXED, _BOOL, _TEXT, _, _UNLESS_0, _SECONDS, _BYTES, _BYTES_UNLESS_0 = range(8)  # as in arrow.pxi

# Column -> field of a batch's row, format and kind as arrow_array() of the engine wants them.
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
_OWN = ("queue", "properties", "body")
_OF_HEADERS = frozenset(("properties", "body", "format", "ccsid", "encoding"))
_Properties = list["dict[str, str | None] | None"]


def record_batches(
    batch: MessageBatch, queue: str, schema: Any, most_bytes: int, with_properties: bool
) -> Iterator[Any]:
    """The messages as ``pyarrow.RecordBatch`` of that schema, cut where bodies come to so many
    bytes.

    Args:
        batch: The messages.
        queue: For the column of that name.
        schema: Of the rows.
        most_bytes: See above.
        with_properties: Whether an MQRFH2 in front of a body (penstock.rfh2) is taken off and
            becomes the properties; else the body stays as it was stored. One that is not valid
            stays in the body, with null properties and the format MQHRF2, and is told in the log.

    Raises:
        SourceError: A body that is wanted as a string is not UTF-8.
    """
    properties: _Properties | None = None
    if with_properties and not _OF_HEADERS.isdisjoint(schema.names):
        batch, properties = _without_headers(batch)
    start = 0
    while start < len(batch):
        limit = int(batch.offsets[start]) + most_bytes
        end = int(np.searchsorted(batch.offsets, limit, "right")) - 1
        end = min(len(batch), max(end, start + 1))
        known = properties[start:end] if properties is not None else None
        yield _record_batch(batch[start:end], known, queue, schema)
        start = end


def _without_headers(batch: MessageBatch) -> tuple[MessageBatch, _Properties | None]:
    """The batch with what follows an MQRFH2 as body, and the properties of each message; the same
    batch when no message has one.
    """
    from penstock import rfh2
    from penstock.batch import MessageBatch as Batch

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
    return Batch(rows, np.concatenate(kept), offsets), properties


def _record_batch(
    batch: MessageBatch, properties: _Properties | None, queue: str, schema: Any
) -> Any:
    taken = pa.record_batch(ArrowColumns(batch, _wanted(tuple(schema.names))))
    arrays = []
    for field in schema:
        if field.name == "body":
            arrays.append(_bodies(batch, field.type))
        elif field.name == "queue":
            arrays.append(pa.repeat(queue, len(batch)))
        elif field.name == "properties":
            arrays.append(_maps(properties, len(batch), field.type))
        else:
            arrays.append(taken.column(field.name))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@cache
def _wanted(names: tuple[str, ...]) -> tuple[tuple[str, str, int, int, int], ...]:
    """Those columns that are fields of a row."""
    fields = DTYPE.fields
    assert fields is not None
    columns = []
    for name in names:
        if name not in _OWN:
            source, form, kind = _COLUMNS[name]
            size, offset = fields[source][0].itemsize, fields[source][1]
            columns.append((name, form, kind, offset, size))
    return tuple(columns)


def _maps(properties: _Properties | None, size: int, kind: Any) -> Any:
    if properties is None:
        return pa.nulls(size, kind)
    entries = [None if found is None else list(found.items()) for found in properties]
    return pa.array(entries, kind)


def _bodies(batch: MessageBatch, kind: Any) -> Any:
    first, last = int(batch.offsets[0]), int(batch.offsets[-1])
    offsets = (batch.offsets - first).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(batch.bodies[first:last])]
    bodies = pa.Array.from_buffers(kind, len(batch), buffers)
    if pa.types.is_string(kind):
        try:
            bodies.validate(full=True)
        except pa.ArrowInvalid:
            raise SourceError(
                f"a body on the queue is not UTF-8 (message {_not_utf8(batch)}): read column body "
                "as binary"
            ) from None
    return bodies


def _not_utf8(batch: MessageBatch) -> int:
    """Arrival number of the first message whose body is no text."""
    for index in range(len(batch)):
        try:
            batch.body(index).decode()
        except UnicodeDecodeError:
            return int(batch.descriptors["number"][index])
    return 0

"""Messages as Arrow record batches, in the columns that were asked for. Bodies are not copied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .errors import SourceError

if TYPE_CHECKING:
    from penstock.batch import MessageBatch

__all__ = ["record_batches"]

_NO_GROUP = pa.scalar(bytes(24), pa.binary(24))


def _null_if(column: Any, nothing: Any) -> Any:
    return pc.if_else(pc.equal(column, nothing), pa.scalar(None, column.type), column)


# Column of ours -> column of a batch, and what becomes of it before it is cast to Spark's type.
_SOURCE: Mapping[str, tuple[str, Callable[[Any], Any] | None]] = {
    "sequence": ("number", None),
    "lsn": ("lsn", lambda column: _null_if(column, pa.scalar(0, column.type))),
    "expiry": ("expiry", lambda column: pc.divide(column.cast(pa.float64()), 10.0)),
    "group_id": ("group_id", lambda column: _null_if(column, _NO_GROUP)),
}
_OWN = ("queue", "properties", "body")


def record_batches(batch: MessageBatch, queue: str, schema: Any, most_bytes: int) -> Iterator[Any]:
    """The messages as ``pyarrow.RecordBatch`` of that schema, cut where bodies come to so many
    bytes.

    Raises:
        SourceError: A body that is wanted as a string is not UTF-8.
    """
    start = 0
    while start < len(batch):
        limit = int(batch.offsets[start]) + most_bytes
        end = int(np.searchsorted(batch.offsets, limit, "right")) - 1
        end = min(len(batch), max(end, start + 1))
        yield _record_batch(batch[start:end], queue, schema)
        start = end


def _record_batch(batch: MessageBatch, queue: str, schema: Any) -> Any:
    names = {
        field.name: _SOURCE.get(field.name, (field.name, None))
        for field in schema
        if field.name not in _OWN
    }
    columns = dict.fromkeys(name for name, _ in names.values())
    taken = pa.record_batch(batch.arrow(tuple(columns)))
    arrays = []
    for field in schema:
        if field.name == "body":
            arrays.append(_bodies(batch, field.type))
        elif field.name == "queue":
            arrays.append(pa.repeat(queue, len(batch)))
        elif field.name == "properties":
            arrays.append(pa.nulls(len(batch), field.type))
        else:
            name, change = names[field.name]
            column = taken.column(name)
            arrays.append(_as(change(column) if change else column, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _as(column: Any, kind: Any) -> Any:
    """The column in Spark's type, without a copy where the bytes are the same."""
    if column.type == kind:
        return column
    if pa.types.is_fixed_size_binary(column.type) and pa.types.is_binary(kind):
        assert column.offset == 0
        validity, values = column.buffers()
        width = column.type.byte_width
        offsets = np.arange(0, (len(column) + 1) * width, width, dtype=np.int32)
        buffers = [validity, pa.py_buffer(offsets), values]
        return pa.Array.from_buffers(kind, len(column), buffers, column.null_count)
    if pa.types.is_integer(column.type) and column.type.bit_width == kind.bit_width:
        return column.view(kind)
    return column.cast(kind)


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

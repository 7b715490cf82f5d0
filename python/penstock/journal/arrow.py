"""Scanned columns as Arrow arrays, over the same memory where Arrow's layout allows it.

Imported when ``to_arrow()`` is called, because it needs pyarrow. No Python object is made for a
row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

Column = npt.NDArray[Any]

# columns that every row has; all others are null but in PUT rows
_ALWAYS = frozenset(
    (
        *("event", "lsn", "time", "segment", "unit_id", "commits", "queue", "sequence"),
        *("identity", "commit_lsn", "commit_time"),
    )
)
_UTC = pa.timestamp("us", tz="UTC")


def _bitmap(valid: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    """Arrow's bitmap of the rows that are not null; None: all of them."""
    if valid is None or bool(valid.all()):
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def _text(values: Column, valid: npt.NDArray[np.bool_] | None) -> pa.Array:
    """Strings from NUL-padded fields. Bytes above 127 are taken as Latin-1, as all our readers
    do."""
    values = np.ascontiguousarray(values)
    mask = None if valid is None else ~valid
    if len(values) and values.view(np.uint8).max() > 127:
        return pa.array(np.char.decode(values, "latin-1"), type=pa.string(), mask=mask)
    return pa.array(values, type=pa.binary(), mask=mask).view(pa.string())  # ASCII is UTF-8


def _array(name: str, values: Column, valid: npt.NDArray[np.bool_] | None) -> pa.Array:
    kind = values.dtype.kind
    if kind == "S":
        return _text(values, valid)
    if kind == "b":
        packed = pa.py_buffer(np.packbits(values, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), len(values), [_bitmap(valid), packed])
    if kind == "M":
        moments = values.view(np.int64)
        known = moments != np.iinfo(np.int64).min
        valid = known if valid is None else valid & known
        data: Column = moments
        arrow_type: Any = _UTC
    elif kind == "V":
        data, arrow_type = values, pa.binary(values.dtype.itemsize)
    else:
        data, arrow_type = values, pa.from_numpy_dtype(values.dtype)
    buffer = pa.py_buffer(np.ascontiguousarray(data).view(np.uint8))
    return pa.Array.from_buffers(arrow_type, len(values), [_bitmap(valid), buffer])


def record_batch(
    names: tuple[str, ...],
    columns: Mapping[str, Column],
    messages: npt.NDArray[np.bool_],
    bodies: Column | None,
    offsets: npt.NDArray[np.int64] | None,
    has_body: npt.NDArray[np.bool_],
) -> pa.RecordBatch:
    """The columns in the order of ``names``; ``messages`` is the mask of rows with a message."""
    arrays = []
    for name in names:
        if name == "body":
            assert bodies is not None and offsets is not None
            buffers = [_bitmap(has_body), pa.py_buffer(offsets), pa.py_buffer(bodies)]
            arrays.append(pa.Array.from_buffers(pa.large_binary(), len(messages), buffers))
        elif name == "queue":  # no name: null
            valid = columns[name] != b""
            arrays.append(_text(columns[name], valid))
        else:
            arrays.append(_array(name, columns[name], None if name in _ALWAYS else messages))
    return pa.RecordBatch.from_arrays(arrays, names=list(names))

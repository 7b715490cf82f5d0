"""Message batches as Arrow struct arrays: which descriptor field becomes which column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import _engine
from .row_layout import FIELDS

_FIXED, _BOOL, _TEXT, _UNLESS_MINUS_1, _UNLESS_0 = range(5)  # COLUMN_* of pyext
_ARROW = {"<i4": "i", "<u4": "I", "<u8": "L", "u1": "C"}
Column = tuple[str, str, int, int, int]  # name, format, kind, offset, size


def _arrow_column(name: str, form: str, offset: int) -> Column:
    size = np.dtype(form).itemsize
    if name == "persistence":
        return "persistent", "b", _BOOL, offset, size
    if name in ("put_time", "due_us"):
        return name.removesuffix("_us"), "tsu:UTC", _UNLESS_0, offset, size
    if name == "expiry":
        return name, "i", _UNLESS_MINUS_1, offset, size
    if name in ("msg_id", "correl_id", "group_id", "accounting_token"):
        return name, f"w:{size}", _FIXED, offset, size
    if form.startswith("S"):
        return name, "u", _TEXT, offset, size
    return name, _ARROW[form], _FIXED, offset, size


# in expiry or body; or of a put only
_NOT_ARROW = ("expiry_us", "has_ext", "length", "reason")
ARROW_COLUMNS: dict[str, Column] = {
    column[0]: column
    for column in (_arrow_column(*field) for field in FIELDS if field[0] not in _NOT_ARROW)
}


class ArrowColumns:
    """Some columns of a batch, and its bodies, for an Arrow library: see MessageBatch.arrow()."""

    __slots__ = ("_batch", "_columns")

    def __init__(self, batch: _engine.BatchArrays, columns: Sequence[Column]) -> None:
        """Columns in the form of arrow_array() of the engine."""
        self._batch = batch
        self._columns = columns

    def __arrow_c_schema__(self) -> object:
        """The struct type."""
        return _engine.arrow_schema(self._columns)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Schema and array. The requested schema is ignored: the consumer casts."""
        batch = self._batch
        rows = np.ascontiguousarray(batch.descriptors)
        array = _engine.arrow_array(self._columns, rows, batch.bodies, batch.offsets)
        return _engine.arrow_schema(self._columns), array

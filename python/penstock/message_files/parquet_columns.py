"""Columns of a Parquet file, whoever wrote it, as values of rows.

A null means what a field left out of a line of JSON means: the value that a put gives. Nothing is
cut off, rounded or wrapped: what does not fit the field exactly is refused with its row.

| field | columns |
|---|---|
| body | binary or text |
| queue | text |
| identifiers | binary or text, NULs are added |
| characters | text or binary, blanks are added |
| numbers | integers; of expiry: tenths of a second, -1: unlimited |
| persistent | booleans, or Persistence as integers |
| put_time, due | timestamps of any unit, dates; parts of microseconds are dropped |
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .descriptor_fields import Field, WrongField

_CASTS = (np.dtype(np.int32), np.dtype(np.uint8))


class WrongColumn(ValueError):
    """A column has a type from which the field cannot be made, or stands in the file twice."""


def column_of(batch: Any, name: str) -> Any:
    """The column of that name, without dictionaries; None when there is none, or only nulls of no
    type. Raises WrongColumn.
    """
    import pyarrow as pa

    count = batch.schema.names.count(name)
    if count > 1:
        raise WrongColumn(f"there are {count} columns {name!r}")
    if not count:
        return None
    column = batch.column(name)
    if pa.types.is_null(column.type):
        return None
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _refuse(name: str, column: Any, wanted: str) -> None:
    raise WrongColumn(f"column {name!r} is of type {column.type}, not {wanted}")


def _is_text(column: Any) -> bool:
    import pyarrow as pa

    is_view = getattr(pa.types, "is_string_view", lambda kind: False)
    return bool(
        pa.types.is_string(column.type)
        or pa.types.is_large_string(column.type)
        or is_view(column.type)
    )


def _is_binary(column: Any) -> bool:
    import pyarrow as pa

    is_view = getattr(pa.types, "is_binary_view", lambda kind: False)
    return bool(
        pa.types.is_binary(column.type)
        or pa.types.is_large_binary(column.type)
        or pa.types.is_fixed_size_binary(column.type)
        or is_view(column.type)
    )


def texts_of(name: str, column: Any) -> list[str | None]:
    """Names of queues. Raises WrongColumn."""
    if not _is_text(column):
        _refuse(name, column, "text")
    try:
        found: list[str | None] = column.to_pylist()
    except UnicodeDecodeError as error:
        raise WrongColumn(f"column {name!r}: {error}") from None
    return found


def bytes_of(name: str, column: Any) -> list[bytes | None]:
    """Bodies and characters; text as UTF-8. Raises WrongColumn."""
    import pyarrow as pa

    if _is_text(column):
        column = column.cast(pa.large_binary())
    elif not _is_binary(column):
        _refuse(name, column, "binary or text")
    found: list[bytes | None] = column.to_pylist()
    return found


def _first(mask: npt.NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(mask)[0])


def _characters(field: Field, column: Any, size: int) -> npt.NDArray[Any]:
    values = bytes_of(field.name, column)
    for at, value in enumerate(values):
        if value is not None and len(value) > size:
            text = f"{value!r:.80} has {len(value)} bytes, at most {size} fit"
            raise WrongField(at, f"{field.name}: {text}")
    padded = [(value or b"").ljust(size, field.pad) for value in values]
    return np.array(padded, f"S{size}")


def _moments(field: Field, column: Any) -> npt.NDArray[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(column.type) and not pa.types.is_date(column.type):
        _refuse(field.name, column, "a timestamp")
    wanted = pc.CastOptions(target_type=pa.timestamp("us"), allow_time_truncate=True)
    try:
        cast = pc.cast(column, options=wanted)
    except pa.ArrowInvalid as error:
        raise WrongColumn(f"column {field.name!r}: {error}") from None
    found: npt.NDArray[Any] = cast.fill_null(0).to_numpy(zero_copy_only=False)
    return found


def _numbers(field: Field, column: Any, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    import pyarrow as pa

    if field.row == "persistence" and pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif not pa.types.is_integer(column.type):
        _refuse(field.name, column, "integers")
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    bounds = np.iinfo(kind)
    wrong = (values < bounds.min) | (values > bounds.max)
    if field.row == "md_version":
        wrong |= ~np.isin(values, (1, 2)) & column.is_valid().to_numpy(zero_copy_only=False)
    if wrong.any():
        at = _first(wrong)
        raise WrongField(at, f"{field.name}: {values[at]} is out of range")
    found: npt.NDArray[Any] = values.astype(kind)
    if field.row == "expiry":  # what has expired meanwhile does so at once
        found = np.where(found == 0, 1, np.maximum(found, -1))
    return found


def values_of(
    field: Field, column: Any, kind: np.dtype[Any]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
    """Which rows have a value, and the values, in rows of this type; those of the others mean
    nothing.

    Raises:
        WrongColumn: a type that the field does not take.
        WrongField: a value that it does not take.
    """
    if kind.kind == "S":
        values = _characters(field, column, kind.itemsize)
    elif kind.kind == "M":
        values = _moments(field, column)
    elif field.row == "due_us":
        values = _moments(field, column).astype("M8[us]").astype(np.int64)
        if (values < 0).any():
            raise WrongField(_first(values < 0), f"{field.name}: it is before 1970")
    else:
        assert kind in _CASTS, kind
        values = _numbers(field, column, kind)
    return column.is_valid().to_numpy(zero_copy_only=False), values

"""The fields of a message in a file: their names, and how they go into rows of a batch and back.

A field that is left out means what put() stores without it: the initial value of an MQMD, the
queue's default, the identity and origin context of the program that loads. Fields that hold one of
the initial values below are left out; the context never is, because it belongs to the program that
had put the message.

Character fields go without their padding. Bytes that are no UTF-8 are kept by surrogate escapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..batch.row_layout import DTYPE, Rows

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")
_I32 = range(-(2**31), 2**31)
_EXPIRY_MOST = 99999999.9  # seconds


@dataclass(frozen=True, slots=True)
class Field:
    """A field.

    Attributes:
        name: its key in a line.
        row: its name in a row of a batch.
        initial: the value in a row for which it is left out; None: it is always written.
        extension: whether it belongs to the extension of the descriptor.
        texts: from a column of rows to what stands in the lines.
        value: from what stands in a line to what an array of the rows takes. Raises ValueError.
        loaded: whether a put can set it.
        pad: what characters are padded with.
    """

    name: str
    row: str
    initial: Any
    extension: bool
    texts: Callable[[Any], list[Any]]
    value: Callable[[Any], Any]
    loaded: bool = True
    pad: bytes = b"\0"


def _integers(column: Any) -> list[Any]:
    found: list[Any] = column.tolist()
    return found


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in _I32:
        raise ValueError(f"{value!r:.40} is no 32-bit integer")
    return value


def _version(value: Any) -> int:
    if _integer(value) not in (1, 2):
        raise ValueError(f"{value} is not 1 or 2")
    return int(value)


def _whole(column: Any) -> list[bytes]:
    """The values of a character column in full: NumPy drops NULs at the end."""
    size = column.dtype.itemsize
    raw = np.ascontiguousarray(column).tobytes()
    return [raw[at : at + size] for at in range(0, len(raw), size)]


def _digits(column: Any) -> list[Any]:
    return [value.hex() for value in _whole(column)]


def _bytes_of(size: int) -> Callable[[Any], bytes]:
    def value(digits: Any) -> bytes:
        if not isinstance(digits, str) or len(digits) > 2 * size:
            raise ValueError(f"{digits!r:.80} is not at most {2 * size} hexadecimal digits")
        return bytes.fromhex(digits).ljust(size, b"\0")

    return value


def _characters(column: Any) -> list[Any]:
    return [value.rstrip(b" ").decode("utf-8", "surrogateescape") for value in _whole(column)]


def _characters_of(size: int) -> Callable[[Any], bytes]:
    def value(text: Any) -> bytes:
        if not isinstance(text, str):
            raise ValueError(f"{text!r:.40} is no text")
        data = text.encode("utf-8", "surrogateescape")
        if len(data) > size:
            raise ValueError(f"{text!r:.80} has {len(data)} bytes, at most {size} fit")
        return data.ljust(size)

    return value


def _times(column: Any) -> list[Any]:
    return [f"{text}Z" for text in np.datetime_as_string(column, unit="us").tolist()]


def _time(value: Any) -> np.datetime64:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise ValueError(f"{value!r:.40} is no moment like 2026-01-31T12:00:00.000000Z")
    return np.datetime64(value[:-1], "us")


def _dues(column: Any) -> list[Any]:
    return _times(column.astype("M8[us]"))


def _due(value: Any) -> int:
    moment = int(_time(value).astype(np.int64))
    if moment <= 0:
        raise ValueError(f"{value!r:.40} is before 1970")
    return moment


def _truths(column: Any) -> list[Any]:
    return [value != 0 for value in column.tolist()]


def _truth(value: Any) -> int:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r:.40} is not true or false")
    return int(value)


def _seconds(column: Any) -> list[Any]:
    return [None if tenths < 0 else max(tenths, 1) / 10 for tenths in column.tolist()]


def _tenths(value: Any) -> int:
    if value is None:
        return -1
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{value!r:.40} is no number of seconds")
    if not 0 < value <= _EXPIRY_MOST:
        raise ValueError(f"{value!r:.40} is not above 0 and at most {_EXPIRY_MOST} seconds")
    return max(1, round(value * 10))


def _number(name: str, initial: int | None = None, extension: bool = False) -> Field:
    return Field(name, name, initial, extension, _integers, _integer)


def _identifier(name: str, initial: bytes | None = b"", extension: bool = False) -> Field:
    size = DTYPE[name].itemsize
    return Field(name, name, initial, extension, _digits, _bytes_of(size))


def _text(name: str, always: bool = False, extension: bool = False) -> Field:
    size = DTYPE[name].itemsize
    initial = None if always else b" " * size
    return Field(name, name, initial, extension, _characters, _characters_of(size), pad=b" ")


FIELDS: tuple[Field, ...] = (
    _identifier("msg_id", None),
    _identifier("correl_id"),
    Field("put_time", "put_time", None, False, _times, _time),
    _number("priority"),
    Field("persistent", "persistence", None, False, _truths, _truth),
    Field("expiry", "expiry", -1, False, _seconds, _tenths),
    Field("due", "due_us", 0, False, _dues, _due),
    _text("format"),
    _number("msg_type", 8),
    _number("report", 0),
    _number("feedback", 0),
    _number("encoding", 546),
    _number("ccsid", 1208),
    _text("reply_to_q", extension=True),
    _text("reply_to_qmgr", extension=True),
    _identifier("group_id", extension=True),
    _number("msg_seq_number", 1, extension=True),
    _number("offset", 0, extension=True),
    _number("msg_flags", 0, extension=True),
    _number("original_length", -1, extension=True),
    _text("user_identifier", always=True),
    _identifier("accounting_token", None),
    _text("appl_identity_data", extension=True),
    _number("put_appl_type"),
    _text("put_appl_name", always=True),
    _text("appl_origin_data"),
    Field("md_version", "md_version", 2, False, _integers, _version),
    Field("backout_count", "backout_count", 0, False, _integers, _integer, loaded=False),
)
BY_NAME = {field.name: field for field in FIELDS}


def dicts_of(rows: Rows) -> list[dict[str, Any]]:
    """The fields of each row that are not at their initial values, in the order of FIELDS."""
    found: list[dict[str, Any]] = [{} for _ in range(len(rows))]
    for field in FIELDS:
        column = rows[field.row]
        if field.initial is None:
            for made, value in zip(found, field.texts(column), strict=True):
                made[field.name] = value
            continue
        differs = column != field.initial
        if field.extension:
            differs = differs & (rows["has_ext"] != 0)
        chosen = np.flatnonzero(differs)
        for at, value in zip(chosen.tolist(), field.texts(column[chosen]), strict=True):
            found[at][field.name] = value
    return found


class WrongField(ValueError):
    """A field of a message has a value that it cannot have."""

    def __init__(self, index: int, text: str) -> None:
        super().__init__(text)
        self.index = index


def fill_rows(rows: Rows, messages: Sequence[dict[str, Any]]) -> None:
    """Sets the fields that each message has; all others stay as the rows were begun.

    Raises:
        WrongField: the index of the message, the field, the value and the rule.
    """
    for field in FIELDS:
        given = [at for at, message in enumerate(messages) if field.name in message]
        if not given or not field.loaded:
            continue
        values = []
        for at in given:
            try:
                values.append(field.value(messages[at][field.name]))
            except ValueError as error:
                raise WrongField(at, f"{field.name}: {error}") from None
        rows[field.row][given] = np.array(values, rows.dtype[field.row])
        if field.extension:
            rows["has_ext"][given] = 1

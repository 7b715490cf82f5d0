"""Which messages: conditions on descriptors, as one mask over the rows of a batch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt

from ..batch.row_layout import Rows
from ..constants import ReasonCode
from ..errors import InvalidType, InvalidValue

_ID_SIZE, _FORMAT_SIZE = 24, 8


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions that all must hold; None: any message.

    Attributes:
        priority: lowest and highest Priority.
        msg_id, correl_id: 24 bytes.
        format: the Format, without its padding.
        put_from, put_before: microseconds since 1970; the first is included, the second not.
    """

    priority: tuple[int, int] | None = None
    msg_id: bytes | None = None
    correl_id: bytes | None = None
    format: str | None = None
    put_from: int | None = None
    put_before: int | None = None

    def __bool__(self) -> bool:
        """Whether there is any condition."""
        return any(getattr(self, field.name) is not None for field in fields(self))

    def mask(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """True for each row that meets the conditions."""
        chosen: npt.NDArray[np.bool_] = np.ones(len(rows), bool)
        if self.priority is not None:
            chosen &= (rows["priority"] >= self.priority[0]) & (
                rows["priority"] <= self.priority[1]
            )
        for name in ("msg_id", "correl_id"):
            wanted = getattr(self, name)
            if wanted is not None:
                chosen &= rows[name] == np.bytes_(wanted)
        if self.format is not None:
            chosen &= rows["format"] == np.bytes_(self.format.encode().ljust(_FORMAT_SIZE))
        if self.put_from is not None:
            chosen &= rows["put_time"].astype(np.int64) >= self.put_from
        if self.put_before is not None:
            chosen &= rows["put_time"].astype(np.int64) < self.put_before
        return chosen

    def as_json(self) -> dict[str, Any]:
        """The conditions as JSON data, for comparison."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value.hex() if isinstance(value, bytes) else value
            for name, value in found.items()
            if value is not None
        }


def selection(
    priority: int | tuple[int, int] | None = None,
    msg_id: bytes | None = None,
    correl_id: bytes | None = None,
    format: str | None = None,
    put_from: datetime | None = None,
    put_before: datetime | None = None,
) -> Selection:
    """The conditions as programs give them.

    Raises:
        InvalidType, InvalidValue: 2046: a wrong type, identifiers or formats that are too long,
            moments without a time zone.
    """
    return Selection(
        _priorities(priority),
        _identifier("msg_id", msg_id),
        _identifier("correl_id", correl_id),
        _format(format),
        _moment("put_from", put_from),
        _moment("put_before", put_before),
    )


def check_count(count: int | None) -> int | None:
    """The limit of messages. Raises InvalidType, InvalidValue: 2046."""
    if count is None:
        return None
    if not _is_number(count):
        _wrong_type("count must be an integer", count)
    if count < 1:
        _wrong(f"count {count} is not 1 or more")
    return count


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _priorities(value: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if value is None:
        return None
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or not all(map(_is_number, pair)):
        _wrong_type("priority must be an integer, or the lowest and the highest", value)
    return int(pair[0]), int(pair[1])


def _identifier(name: str, value: bytes | None) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, (bytes, bytearray, memoryview)):
        _wrong_type(f"{name} must be bytes", value)
    if len(value) > _ID_SIZE:
        _wrong(f"{name} has {len(value)} bytes, at most {_ID_SIZE} fit")
    return bytes(value).ljust(_ID_SIZE, b"\0")


def _format(value: str | None) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        _wrong_type("format must be text", value)
    if len(value.encode()) > _FORMAT_SIZE:
        _wrong(f"format {value!r} is longer than {_FORMAT_SIZE} bytes")
    return value.rstrip(" ")


def _moment(name: str, value: datetime | None) -> int | None:
    if value is None:
        return None
    if not isinstance(value, datetime):
        _wrong_type(f"{name} must be a datetime", value)
    if value.tzinfo is None:
        _wrong(f"{name} {value.isoformat()} has no time zone")
    since = value - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _wrong_type(text: str, value: object) -> None:
    raise InvalidType(ReasonCode.OPTIONS_ERROR, f"{text}, not {value!r:.60}")


def _wrong(text: str) -> None:
    raise InvalidValue(ReasonCode.OPTIONS_ERROR, text)

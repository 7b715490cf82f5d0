"""Columns of a written table as the fields of messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.types import (
    is_binary,
    is_boolean,
    is_floating,
    is_integer,
    is_large_binary,
    is_large_string,
    is_string,
)

from penstock._mqi_constants import descriptor as mq
from penstock.batch.fields import CHARACTERS
from penstock.constants import ReasonCode
from penstock.errors import InvalidValue
from penstock.names import nearest

__all__ = [
    "bodies",
    "check_columns",
    "data_fields",
    "fields",
    "null_bodies",
    "null_body",
    "with_headers",
]

_AS_Q_DEF_PRIORITY = mq.MQPRI_PRIORITY_AS_Q_DEF
_IN_GROUP = mq.MQMF_MSG_IN_GROUP
# The value for null: the default of a put.
_INTEGERS = {
    "priority": _AS_Q_DEF_PRIORITY,
    "msg_type": mq.MQMT_DATAGRAM,
    "ccsid": 1208,
    "encoding": mq.MQENC_REVERSED,
    "msg_seq_number": 1,
}
_BYTES = (is_binary, is_large_binary)
_TEXT = (is_string, is_large_string)
_KINDS: Mapping[str, tuple[Callable[[Any], bool], ...]] = {
    **dict.fromkeys(("body", "value"), (*_BYTES, *_TEXT)),
    **dict.fromkeys(_INTEGERS, (is_integer,)),
    **dict.fromkeys(("msg_id", "correl_id", "group_id"), _BYTES),
    **dict.fromkeys(("format", "reply_to_q", "reply_to_qmgr"), _TEXT),
    "persistent": (is_boolean,),
    "expiry": (is_integer, is_floating),
}
_TENTH = 0.1  # seconds: the shortest expiry
_HEADER_ENCODING, _HEADER_CCSID = mq.MQENC_REVERSED, 1208
_CHARACTERS = ("msg_id", "correl_id", "group_id", "format", "reply_to_q", "reply_to_qmgr")


def check_columns(schema: Any) -> None:
    """Raises InvalidValue, 2046, for columns that are no fields of a message, or of another type.

    schema: An Arrow schema, of rows for bodies() and fields().
    """
    names = list(schema.names)
    if ("body" in names) == ("value" in names):
        raise _unfit("there must be one column body, or value, of binary or text")
    for name in names:
        kind = schema.field(name).type
        if names.count(name) > 1:
            raise _unfit(f"there are {names.count(name)} columns {name}")
        if name not in _KINDS:
            raise _unfit(f"column {name} is no field of a message{nearest(name, _KINDS)}")
        if not any(is_kind(kind) for is_kind in _KINDS[name]):
            raise _unfit(f"column {name} is of type {kind}")


def _unfit(text: str) -> InvalidValue:
    return InvalidValue(ReasonCode.OPTIONS_ERROR, text)


def null_body(batch: Any) -> int | None:
    """The first row whose body is null, which no message can have; None: there is none."""
    body = _body(batch)
    return int(pc.index(body.is_null(), True).as_py()) if body.null_count else None


def null_bodies(batch: Any) -> Any:
    """Which rows have no body: an Arrow array of boolean."""
    return _body(batch).is_null()


def data_fields(batch: Any) -> list[tuple[int, int, str]]:
    """Encoding, ccsid and format of each row's body."""
    inner = [_inner(batch, name) for name in ("encoding", "ccsid", "format")]
    return list(zip(*inner, strict=True))


def _body(batch: Any) -> Any:
    return batch.column("body" if "body" in batch.schema.names else "value")


def bodies(batch: Any) -> Any:
    """The bodies as an Arrow array of binary."""
    body = _body(batch)
    if pa.types.is_string(body.type):
        return body.cast(pa.binary())
    if pa.types.is_large_string(body.type):
        return body.cast(pa.large_binary())
    return body


def with_headers(batch: Any) -> Any:
    """The batch without its column ``properties``: a row with properties gets an MQRFH2 in front of
    its body (penstock.headers.rfh2). The header takes over format, ccsid and encoding of the row,
    whose own become those of the header. A batch without any properties is returned as it is.

    Raises:
        InvalidValue: 2442, 2513, 2466, 2478: a property cannot be stored.
        HeaderError: 2334: format, ccsid or encoding of such a row cannot be stored. ``index`` of
            either is the row.
    """
    if "properties" not in batch.schema.names:
        return batch
    column = batch.column("properties")
    others = batch.select([name for name in batch.schema.names if name != "properties"])
    if column.null_count == batch.num_rows:
        return others
    ends = column.offsets.to_numpy()
    found = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False) & (np.diff(ends) > 0))
    if not len(found):
        return others
    first, last = int(ends[0]), int(ends[-1])
    names = column.keys.slice(first, last - first).to_pylist()
    values = column.items.slice(first, last - first).to_pylist()
    inner = {name: _inner(others, name) for name in ("format", "ccsid", "encoding")}
    headers = []
    for row in found.tolist():
        entries = slice(int(ends[row]) - first, int(ends[row + 1]) - first)
        headers.append(
            _header(
                row,
                dict(zip(names[entries], values[entries], strict=True)),
                *(inner[name][row] for name in inner),
            )
        )
    has = np.zeros(batch.num_rows, bool)
    has[found] = True
    outer = {"format": "MQHRF2", "ccsid": _HEADER_CCSID, "encoding": _HEADER_ENCODING}
    made = {name: others.column(name) for name in others.schema.names}
    for name, value in outer.items():
        own = pa.array(inner[name])
        made[name] = pc.if_else(pa.array(has), pa.scalar(value, own.type), own)
    made["body" if "body" in made else "value"] = _joined(bodies(batch), found, headers)
    return pa.RecordBatch.from_pydict(made)


def _inner(batch: Any, name: str) -> list[Any]:
    """Values of a column for the data itself: the defaults of fields() where it has none."""
    default: Any = _INTEGERS.get(name, "")
    if name in batch.schema.names:
        values = batch.column(name).to_pylist()
        return [default if value is None else value for value in values]
    is_text = name == "format" and not _is_binary(_body(batch).type)
    return ["MQSTR" if is_text else default] * batch.num_rows


def _header(
    row: int, properties: dict[str, str | None], format: str, ccsid: int, encoding: int
) -> bytes:
    from penstock.errors import MQError
    from penstock.headers import rfh2

    try:
        return rfh2.build(properties, format, ccsid, encoding)
    except MQError as error:
        error.index = row
        raise


def _joined(body: Any, rows: Any, headers: Sequence[bytes]) -> Any:
    """The bodies, those of some rows behind headers, as an array of large_binary."""
    body = body.cast(pa.large_binary())
    _, offsets, data = body.buffers()
    ends = np.frombuffer(offsets, np.int64, len(body) + 1, body.offset * 8)
    raw = memoryview(data) if data is not None else memoryview(b"")
    lengths = np.diff(ends)
    lengths[rows] += np.fromiter(map(len, headers), np.int64, len(headers))
    parts: list[Any] = []
    at = int(ends[0])
    for start, header in zip(ends[rows].tolist(), headers, strict=True):
        parts += (raw[at:start], header)
        at = start
    parts.append(raw[at : int(ends[-1])])
    made = np.zeros(len(body) + 1, np.int64)
    np.cumsum(lengths, out=made[1:])
    buffers = [None, pa.py_buffer(made), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(pa.large_binary(), len(body), buffers)


def _is_binary(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _characters(column: Any, size: int, pad: bytes) -> Any:
    """The values with their padding, as one array; as a list when one is too long, so that
    put_batch() names it.
    """
    kind = pa.string() if pa.types.is_string(column.type) else pa.binary()
    values = pc.fill_null(column, pa.scalar(b"" if kind == pa.binary() else "", column.type))
    values = values.cast(pa.large_binary())
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64, len(values) + 1, values.offset * 8)
    lengths = np.diff(ends)
    if len(lengths) and int(lengths.max()) > size:
        return column.to_pylist()
    made = np.full((len(values), size), pad[0], np.uint8)
    if data is not None:
        raw = np.frombuffer(data, np.uint8, int(ends[-1] - ends[0]), int(ends[0]))
        made[np.arange(size) < lengths[:, None]] = raw
    return made.view(f"S{size}").reshape(-1)


def _expiry(seconds: Any, default: float | None) -> Any:
    """Seconds of each row; null is NaN: the default. What a read shows as 0 seconds left is put
    with the shortest time that there is: MQ's Expiry of 0 is an error.
    """
    if default is not None:
        seconds = np.where(np.isnan(seconds), default, seconds)
    return np.where(seconds == 0, _TENTH, seconds)


def fields(batch: Any, persistence: int, expiry: float | None = None) -> dict[str, Any]:
    """Arguments of ``put_batch()``; a column that is null throughout is not among them.

    Args:
        batch: The rows.
        persistence: MQPER_* of rows whose column ``persistent`` is null or missing.
        expiry: Seconds of rows whose column ``expiry`` is; None: they do not expire.
    """
    given: dict[str, Any] = {"persistent": persistence}
    if expiry is not None:
        given["expiry"] = max(expiry, _TENTH)
    for name in batch.schema.names:
        column = batch.column(name)
        if column.null_count == batch.num_rows:
            continue
        if name in _INTEGERS:
            filled = pc.fill_null(column.cast(pa.int64()), _INTEGERS[name])
            given[name] = filled.to_numpy(zero_copy_only=False)
        elif name == "persistent":
            filled = pc.fill_null(column.cast(pa.int32()), persistence)
            given[name] = filled.to_numpy(zero_copy_only=False)
        elif name == "expiry":
            seconds = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
            given[name] = _expiry(np.asarray(seconds, np.float64), expiry)
        elif name in _CHARACTERS:
            given[name] = _characters(column, *CHARACTERS[name])
    groups = given.get("group_id")
    if isinstance(groups, np.ndarray):
        given["msg_flags"] = np.where(groups != b"", _IN_GROUP, 0)
    if "format" not in batch.schema.names and not _is_binary(_body(batch).type):
        given["format"] = "MQSTR"
    return given

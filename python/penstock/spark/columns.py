"""Columns of a written table as the fields of messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.batch import CHARACTERS

from .errors import SchemaError

__all__ = ["bodies", "check_values", "fields"]

_AS_Q_DEF_PRIORITY, _AS_Q_DEF_PERSISTENCE = -1, 2
_IN_GROUP = 8  # MQMF_MSG_IN_GROUP
# What null stands for: the default of a put.
_INTEGERS = {
    "priority": _AS_Q_DEF_PRIORITY,
    "msg_type": 8,  # a datagram
    "ccsid": 1208,
    "encoding": 546,
    "msg_seq_number": 1,
}
_CHARACTERS = ("msg_id", "correl_id", "group_id", "format", "reply_to_q", "reply_to_qmgr")


def check_values(batch: Any) -> None:
    """Raises SchemaError for values that no message can have, whatever the queue."""
    body = _body(batch)
    if body.null_count:
        raise SchemaError("the body of a row is null; it may be empty")
    names = batch.schema.names
    if "properties" in names and batch.column("properties").null_count < batch.num_rows:
        raise SchemaError(
            "column properties is not null: the queue manager does not keep message properties "
            "yet, so they would be lost; drop the column"
        )


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


def _characters(column: Any, size: int, pad: bytes) -> Any:
    """The values with their padding, as one array; as a list when one is too long: put_batch()
    tells which.
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


def fields(batch: Any) -> dict[str, Any]:
    """Arguments of ``put_batch()``; a column that is null throughout is not among them."""
    given: dict[str, Any] = {}
    for name in batch.schema.names:
        column = batch.column(name)
        if column.null_count == batch.num_rows:
            continue
        if name in _INTEGERS:
            filled = pc.fill_null(column.cast(pa.int64()), _INTEGERS[name])
            given[name] = filled.to_numpy(zero_copy_only=False)
        elif name == "persistent":
            filled = pc.fill_null(column.cast(pa.int32()), _AS_Q_DEF_PERSISTENCE)
            given[name] = filled.to_numpy(zero_copy_only=False)
        elif name == "expiry":
            seconds = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
            given[name] = np.asarray(seconds, np.float64)  # null is NaN: unlimited
        elif name in _CHARACTERS:
            given[name] = _characters(column, *CHARACTERS[name])
    groups = given.get("group_id")
    if isinstance(groups, np.ndarray):
        given["msg_flags"] = np.where(groups != b"", _IN_GROUP, 0)
    if "format" not in batch.schema.names and not pa.types.is_binary(_body(batch).type):
        given["format"] = "MQSTR"
    return given

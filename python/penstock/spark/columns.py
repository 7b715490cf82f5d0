"""Columns of a written table as the fields of messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .errors import SchemaError

__all__ = ["bodies", "check_values", "fields"]

_AS_Q_DEF_PRIORITY, _AS_Q_DEF_PERSISTENCE = -1, 2
_IN_GROUP = 8  # MQMF_MSG_IN_GROUP
_NO_ID = bytes(24)
# What null stands for: the default of a put.
_INTEGERS = {
    "priority": _AS_Q_DEF_PRIORITY,
    "msg_type": 8,  # a datagram
    "ccsid": 1208,
    "encoding": 546,
    "msg_seq_number": 1,
}
_BYTES = ("msg_id", "correl_id", "group_id")
_TEXTS = ("format", "reply_to_q", "reply_to_qmgr")


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
        elif name in _BYTES or name in _TEXTS:
            given[name] = column.to_pylist()
    if "group_id" in given:
        given["msg_flags"] = np.array(
            [_IN_GROUP if (group or _NO_ID) != _NO_ID else 0 for group in given["group_id"]]
        )
    if "format" not in batch.schema.names and not pa.types.is_binary(_body(batch).type):
        given["format"] = "MQSTR"
    return given

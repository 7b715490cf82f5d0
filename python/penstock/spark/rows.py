"""Messages as Arrow record batches, in the columns that were asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .errors import SourceError

if TYPE_CHECKING:
    from penstock import Message

__all__ = ["record_batch"]

_NO_GROUP = bytes(24)

_OF_MESSAGE: Mapping[str, Callable[[Message], Any]] = {
    "msg_id": lambda m: m.msg_id,
    "correl_id": lambda m: m.correl_id,
    "group_id": lambda m: None if m.group_id == _NO_GROUP else m.group_id,
    "msg_seq_number": lambda m: m.msg_seq_number,
    "sequence": lambda m: m.number,
    "lsn": lambda m: None,
    "priority": lambda m: m.priority,
    "persistent": lambda m: m.persistent,
    "put_time": lambda m: m.put_time,
    "expiry": lambda m: m.expiry,
    "format": lambda m: m.format,
    "ccsid": lambda m: m.ccsid,
    "encoding": lambda m: m.encoding,
    "msg_type": lambda m: m.msg_type,
    "reply_to_q": lambda m: m.reply_to_q,
    "reply_to_qmgr": lambda m: m.reply_to_qmgr,
    "user_identifier": lambda m: m.user_identifier,
    "put_appl_name": lambda m: m.put_appl_name,
    "backout_count": lambda m: m.backout_count,
    "properties": lambda m: None,
    "body": lambda m: m.data,
}


def record_batch(messages: Sequence[Message], queue: str, schema: Any) -> Any:
    """The messages as a ``pyarrow.RecordBatch`` of that schema.

    Raises:
        SourceError: A body that is wanted as a string is not UTF-8.
    """
    arrays = []
    for field in schema:
        if field.name == "queue":
            values = [queue] * len(messages)
        else:
            values = [_OF_MESSAGE[field.name](message) for message in messages]
        if field.name == "body" and pa.types.is_string(field.type):
            values = [_utf8(message) for message in messages]
        arrays.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _utf8(message: Message) -> str:
    try:
        return message.data.decode()
    except UnicodeDecodeError:
        raise SourceError(
            f"the body of message {message.number} is not UTF-8: read column body as binary"
        ) from None

"""A message as one line of JSON."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import penstock


def message_fields(message: penstock.Message) -> dict[str, Any]:
    """The fields of a message. ``data`` is text when the bytes are UTF-8, else ``data_base64``."""
    fields: dict[str, Any] = {
        "priority": message.priority,
        "persistent": message.persistent,
        "msg_id": message.msg_id.hex(),
        "correl_id": message.correl_id.hex(),
        "backout_count": message.backout_count,
        "put_time": message.put_time.isoformat(),
    }
    try:
        fields["data"] = message.data.decode()
    except UnicodeDecodeError:
        fields["data_base64"] = base64.b64encode(message.data).decode()
    return fields


def message_line(message: penstock.Message, as_json: bool) -> bytes:
    """The output of ``get`` and ``browse`` for a message: its bytes or JSON, and a newline."""
    if as_json:
        return json.dumps(message_fields(message), ensure_ascii=False).encode() + b"\n"
    data: bytes = message.data
    return data + b"\n"

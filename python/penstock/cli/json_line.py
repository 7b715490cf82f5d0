"""A message as one line of JSON."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from .terminal import json_text, printable_bytes

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


def message_line(message: penstock.Message, as_json: bool, terminal: bool = False) -> bytes:
    """The output of ``get`` and ``browse`` for a message: its bytes or JSON, and a newline. On a
    terminal its bytes as text, in which nothing acts on the terminal.
    """
    if as_json:
        return json_text(message_fields(message)).encode() + b"\n"
    data: bytes = message.data
    return (printable_bytes(data) if terminal else data) + b"\n"

"""The PCF of event messages, in the encoding of this host, CCSID 1208.

Rules: "Event message MQCFH", "MQCFST - PCF string parameter", "MQCFIN - PCF integer parameter".
"""

from __future__ import annotations

import struct

from .._mqi_constants import selectors as mq
from ..constants import NAME_LENGTH

_TYPE_EVENT, _TYPE_INTEGER, _TYPE_STRING = 7, 3, 4  # MQCFT_EVENT, _INTEGER, _STRING
_VERSION_1, _LAST, _WARNING = 1, 1, 1  # MQCFH_VERSION_1, MQCFC_LAST, MQCC_WARNING
_HEADER = struct.Struct("=9i")
_INTEGER = struct.Struct("=4i")
_STRING = struct.Struct("=5i")
_UTF8 = 1208
_LONG_MAX = 0x7FFFFFFF


def event_message(
    command: int, reason: int, manager: str, *parameters: tuple[int, int | str]
) -> bytes:
    """An MQCFH, the name of the queue manager, and the other parameters in their order.

    Args:
        command: MQCMD_* of the kind of event. reason: MQRC_* of the event.
        manager: name of the queue manager.
        parameters: MQCA_* and MQCACF_* with texts, MQIA_* and MQIACF_* with numbers, which are at
            most 2147483647. Texts have the length of names; longer ones have their own.
    """
    rows = ((mq.MQCA_Q_MGR_NAME, manager), *parameters)
    parts = [
        _HEADER.pack(
            _TYPE_EVENT, _HEADER.size, _VERSION_1, command, 1, _LAST, _WARNING, reason, len(rows)
        )
    ]
    for selector, value in rows:
        if isinstance(value, str):
            text = value.encode("utf-8").ljust(NAME_LENGTH)
            room = len(text) + -len(text) % 4
            parts += [
                _STRING.pack(_TYPE_STRING, _STRING.size + room, selector, _UTF8, len(text)),
                text.ljust(room),
            ]
        else:
            number = min(value, _LONG_MAX)
            parts.append(_INTEGER.pack(_TYPE_INTEGER, _INTEGER.size, selector, number))
    return b"".join(parts)

"""MQGMO_CONVERT of the model: section 5.1, "Conversion processing".

Text (MQSTR) of single-byte sets and UTF-8, and trigger messages; the generator asks for no other
format but the blank one, which cannot be converted.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from mq_numbers import R

NATIVE, REVERSED = 546, 273  # Encoding
Q_MGR, UTF_8, UTF_16 = 0, 1208, 1200  # CodedCharSetId
UNKNOWN = 4711
CODECS = {UTF_8: "utf-8", 819: "latin-1", 37: "cp037"}
ORDERS = {NATIVE: ("utf-16-le", "<"), REVERSED: ("utf-16-be", ">")}
TRIGGER_TEXTS = ((0, 4), (8, 48), (56, 48), (104, 64), (172, 256), (428, 128), (556, 128))
TRIGGER_NUMBERS = (4, 168)
TRIGGER_SIZE = 684


class Converted(NamedTuple):
    """What a get returns: the data, and which reasons it may have; the reason NONE: all of the data
    was converted.
    """

    data: bytes
    reasons: frozenset[R]
    changed: bool


class Refused(Exception):
    """The reasons that it may have."""

    def __init__(self, *reasons: R) -> None:
        self.reasons = frozenset(reasons)


def convert(
    data: bytes, fields: dict[str, Any], asked: dict[str, Any], room: int | None, truncated: bool,
    accept: bool,
) -> Converted:  # fmt: skip
    """The data of a message with that MQMD for a caller whose MQMD is `asked`."""
    ccsid, encoding = target(asked)
    same = (fields["CodedCharSetId"], fields["Encoding"]) == (ccsid, encoding)
    if not data or same:
        return Converted(data, frozenset({R.NONE}), False)
    try:
        if fields["Format"] == "MQSTR":
            made, cut = text(data, fields, ccsid, encoding)
        elif fields["Format"] == "MQTRIG":
            made, cut = trigger(data, fields, ccsid, encoding), 1
        else:
            raise Refused(R.FORMAT_ERROR)
    except Refused as refused:
        return Converted(data, refused.reasons, False)
    if room is None or len(made) <= room:
        return Converted(made, frozenset({R.NONE}), True)
    if not accept:
        return Converted(data, frozenset({R.CONVERTED_MSG_TOO_BIG}), False)
    end = room - room % cut
    while CODECS.get(ccsid) == "utf-8" and made[end] & 0xC0 == 0x80:  # within a character
        end -= 1
    return Converted(made[:end], frozenset({R.TRUNCATED_MSG_ACCEPTED}), True)


def target(asked: dict[str, Any]) -> tuple[int, int]:
    """CCSID and encoding that a get asks for."""
    return asked.get("CodedCharSetId", Q_MGR) or UTF_8, asked.get("Encoding", NATIVE)


def text(
    data: bytes, fields: dict[str, Any], ccsid: int, encoding: int
) -> tuple[bytes, int]:  # fmt: skip
    """The text in another character set, and the length that its characters are a multiple of."""
    if ccsid == fields["CodedCharSetId"]:
        return data, 1
    decoded = data.decode(CODECS[fields["CodedCharSetId"]])
    if ccsid == UTF_16:
        if encoding not in ORDERS:
            raise Refused(R.TARGET_INTEGER_ENC_ERROR)
        return decoded.encode(ORDERS[encoding][0]), 2
    if ccsid not in CODECS:
        raise Refused(R.TARGET_CCSID_ERROR)
    return decoded.encode(CODECS[ccsid]), 1


def trigger(data: bytes, fields: dict[str, Any], ccsid: int, encoding: int) -> bytes:
    """An MQTM of this queue manager for another machine."""
    if len(data) != TRIGGER_SIZE:
        raise Refused(R.FORMAT_ERROR)
    wrong = [R.TARGET_CCSID_ERROR] * (ccsid not in CODECS)
    wrong += [R.TARGET_INTEGER_ENC_ERROR] * (encoding not in ORDERS)
    if wrong:
        raise Refused(*wrong)
    made = bytearray(data)
    for at, size in TRIGGER_TEXTS:
        made[at : at + size] = data[at : at + size].decode("ascii").encode(CODECS[ccsid])
    for at in TRIGGER_NUMBERS:
        [number] = struct.unpack_from(ORDERS[fields["Encoding"]][1] + "i", data, at)
        struct.pack_into(ORDERS[encoding][1] + "i", made, at, number)
    return bytes(made)

"""MQXCNVC: converts characters from one character set into another.

Sources: "MQXCNVC - Convert characters", the pages of its reason codes.
"""

from __future__ import annotations

from .._engine import Hconn
from . import constants as mq
from .character_sets import CharacterSet, character_set, converted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["MQXCNVC"]

_FILL = mq.MQDCC_FILL_TARGET_BUFFER
_SOURCE_MASK, _TARGET_MASK = mq.MQDCC_SOURCE_ENC_MASK, mq.MQDCC_TARGET_ENC_MASK
_KNOWN = mq.MQDCC_DEFAULT_CONVERSION | _FILL | _SOURCE_MASK | _TARGET_MASK
_SOURCE_ORDERS = {mq.MQDCC_SOURCE_ENC_NORMAL: ">", mq.MQDCC_SOURCE_ENC_REVERSED: "<"}
_TARGET_ORDERS = {mq.MQDCC_TARGET_ENC_NORMAL: ">", mq.MQDCC_TARGET_ENC_REVERSED: "<"}


class _Refused(Exception):
    def __init__(self, reason: int, text: str) -> None:
        super().__init__(reason, text)
        self.reason, self.text = reason, text


def MQXCNVC(
    hconn: Any,
    options: int,
    source_ccsid: int,
    source: Any,
    target_ccsid: int,
    target_length: int | None = None,
) -> tuple[bytes, int, int, int]:
    """Converts a string of characters.

    Args:
        hconn: from MQCONN.
        options: MQDCC_*. MQDCC_SOURCE_ENC_* and MQDCC_TARGET_ENC_* give the byte order of UTF-16.
            MQDCC_FILL_TARGET_BUFFER makes the result ``target_length`` long: with blanks, or
            without the blanks at its end and what follows a NUL. MQDCC_DEFAULT_CONVERSION changes
            nothing: no default character sets are configured.
        source_ccsid, target_ccsid: the character sets; docs/mqi-reference.md lists them.
        source: bytes-like, the string.
        target_length: bytes of the result at most; None: as many as it has.

    Returns:
        the converted string, DataLength (its length), CompCode, Reason: 2120 with a warning when it
        was cut to ``target_length``, at the end of a character. Failures: 2018, 2046; 2111, 2115 a
        character set that is not known; 2112, 2116 no byte order for UTF-16; 2143 half a character
        of UTF-16, 2144 a length that cannot be, 2145 no buffer, 2150 bytes that are no text.
    """
    if type(hconn) is not Hconn or hconn.qm.closed:
        return b"", 0, mq.MQCC_FAILED, mq.MQRC_HCONN_ERROR
    try:
        made, reason = _convert(options, source_ccsid, source, target_ccsid, target_length)
    except _Refused as why:
        hconn.error = why.text
        return b"", 0, mq.MQCC_FAILED, why.reason
    return made, len(made), mq.MQCC_WARNING if reason else mq.MQCC_OK, reason


def _refuse(reason: int, text: str) -> None:
    raise _Refused(reason, text)


def _convert(
    options: object, source_ccsid: int, source: Any, target_ccsid: int, target_length: object
) -> tuple[bytes, int]:
    """The string and 0 or 2120. Raises _Refused."""
    chosen = _checked_options(options)
    of_source = _set_of(source_ccsid, mq.MQRC_SOURCE_CCSID_ERROR)
    data = _bytes_of(source)
    if of_source.is_wide and len(data) % 2:
        _refuse(mq.MQRC_SOURCE_LENGTH_ERROR, f"{len(data)} bytes are no UTF-16")
    of_target = _set_of(target_ccsid, mq.MQRC_TARGET_CCSID_ERROR)
    orders = (
        _order(of_source, _SOURCE_ORDERS, chosen & _SOURCE_MASK, mq.MQRC_SOURCE_INTEGER_ENC_ERROR),
        _order(of_target, _TARGET_ORDERS, chosen & _TARGET_MASK, mq.MQRC_TARGET_INTEGER_ENC_ERROR),
    )
    length = _checked_length(target_length, of_target, bool(chosen & _FILL))
    try:
        made = converted(data, of_source, orders[0], of_target, orders[1])
    except UnicodeDecodeError as error:
        text = f"byte {error.start} of the source is no character of CCSID {source_ccsid}"
        raise _Refused(mq.MQRC_DBCS_ERROR, text) from None
    if chosen & _FILL:
        return _filled(made, length, of_target, orders[1])
    if 0 <= length < len(made):
        return of_target.front(made, length, orders[1]), mq.MQRC_CONVERTED_MSG_TOO_BIG
    return made, 0


def _checked_options(options: object) -> int:
    if isinstance(options, bool) or not isinstance(options, int) or options & ~_KNOWN:
        raise _Refused(mq.MQRC_OPTIONS_ERROR, f"options {options!r}: a sum of MQDCC_*")
    return options


def _set_of(ccsid: object, reason: int) -> CharacterSet:
    """A character set; CCSID 0 is the queue manager's."""
    found = None
    if isinstance(ccsid, int) and not isinstance(ccsid, bool):
        found = character_set(ccsid or 1208)
    if found is None:
        raise _Refused(reason, f"CCSID {ccsid!r} is none that is converted")
    return found


def _bytes_of(source: Any) -> bytes:
    try:
        return bytes(memoryview(source))
    except TypeError:
        raise _Refused(
            mq.MQRC_SOURCE_BUFFER_ERROR, f"the source is no buffer: {type(source).__name__}"
        ) from None


def _order(known: CharacterSet, orders: dict[int, str], chosen: int, reason: int) -> str:
    """The byte order; a value that is none is wrong for every character set."""
    if chosen in orders:
        return orders[chosen]
    if chosen or known.is_wide:
        _refuse(reason, f"encoding {chosen:#x} gives no byte order for CCSID {known.ccsid}")
    return "<"


def _checked_length(length: object, of_target: CharacterSet, fill: bool) -> int:
    """TargetLength; -1 for none."""
    if length is None and not fill:
        return -1
    if isinstance(length, bool) or not isinstance(length, int) or not 0 <= length < 2**31:
        raise _Refused(mq.MQRC_TARGET_LENGTH_ERROR, f"target length {length!r} is none")
    if fill and of_target.is_wide and length % 2:
        _refuse(mq.MQRC_TARGET_LENGTH_ERROR, f"{length} bytes cannot be filled with UTF-16")
    return length


def _filled(made: bytes, length: int, of_target: CharacterSet, order: str) -> tuple[bytes, int]:
    """The string in exactly that many bytes, and 0 or 2120."""
    reason = 0
    if len(made) > length:
        head, nul, _ = of_target.decode(made, order).partition("\0")
        made = of_target.encode(head + nul if nul else head.rstrip(" "), order)
    if len(made) > length:
        made = of_target.front(made, length, order)
        reason = mq.MQRC_CONVERTED_MSG_TOO_BIG
    blank = of_target.encode(" ", order)
    return made + blank * ((length - len(made)) // len(blank)), reason

"""The verbs of parts of the MQI that are not here: each answers 2298 (MQRC_FUNCTION_NOT_SUPPORTED).

A program that only asks whether a verb is there gets MQ's answer instead of an AttributeError. The
connection is checked first: 2018. Results come first, as everywhere: handles are unusable ones.

Source: 8.3, 8.4 and 8.6 of the MQI reference.
"""

from __future__ import annotations

from .._engine import Hconn
from . import constants as mq

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "MQBUFMH",
    "MQCB",
    "MQCRTMH",
    "MQCTL",
    "MQDLTMH",
    "MQDLTMP",
    "MQINQMP",
    "MQMHBUF",
    "MQSETMP",
    "MQSUB",
    "MQSUBRQ",
]

_UNUSABLE_HMSG, _UNUSABLE_HOBJ = mq.MQHM_UNUSABLE_HMSG, mq.MQHO_UNUSABLE_HOBJ


def _absent(hconn: Any, verb: str, part: str) -> tuple[int, int]:
    if type(hconn) is not Hconn or hconn.qm.closed:
        return mq.MQCC_FAILED, mq.MQRC_HCONN_ERROR
    return hconn.refuse(mq.MQRC_FUNCTION_NOT_SUPPORTED, f"{verb} is not available: {part}")


# ---- message handles and properties ----


def MQCRTMH(hconn: Any, *_: Any) -> tuple[int, int, int]:
    """Message handles do not exist. Returns Hmsg, CompCode, Reason: -1, 2, 2298."""
    return _UNUSABLE_HMSG, *_absent(hconn, "MQCRTMH", "there are no message handles")


def MQDLTMH(hconn: Any, *_: Any) -> tuple[int, int]:
    """Message handles do not exist. Returns CompCode, Reason: 2, 2298."""
    return _absent(hconn, "MQDLTMH", "there are no message handles")


def MQSETMP(hconn: Any, *_: Any) -> tuple[int, int]:
    """Message handles do not exist. Returns CompCode, Reason: 2, 2298."""
    return _absent(hconn, "MQSETMP", "there are no message handles")


def MQINQMP(hconn: Any, *_: Any) -> tuple[None, int, int]:
    """Message handles do not exist. Returns the value, CompCode, Reason: None, 2, 2298."""
    return None, *_absent(hconn, "MQINQMP", "there are no message handles")


def MQDLTMP(hconn: Any, *_: Any) -> tuple[int, int]:
    """Message handles do not exist. Returns CompCode, Reason: 2, 2298."""
    return _absent(hconn, "MQDLTMP", "there are no message handles")


def MQBUFMH(hconn: Any, *_: Any) -> tuple[bytes, int, int]:
    """Message handles do not exist. Returns the buffer, CompCode, Reason: b"", 2, 2298."""
    return b"", *_absent(hconn, "MQBUFMH", "there are no message handles")


def MQMHBUF(hconn: Any, *_: Any) -> tuple[bytes, int, int]:
    """Message handles do not exist. Returns the buffer, CompCode, Reason: b"", 2, 2298."""
    return b"", *_absent(hconn, "MQMHBUF", "there are no message handles")


# ---- asynchronous consumption ----


def MQCB(hconn: Any, *_: Any) -> tuple[int, int]:
    """Nothing is consumed asynchronously. Returns CompCode, Reason: 2, 2298."""
    return _absent(hconn, "MQCB", "there is no asynchronous consumption")


def MQCTL(hconn: Any, *_: Any) -> tuple[int, int]:
    """Nothing is consumed asynchronously. Returns CompCode, Reason: 2, 2298."""
    return _absent(hconn, "MQCTL", "there is no asynchronous consumption")


# ---- publish/subscribe ----


def MQSUB(hconn: Any, *_: Any) -> tuple[int, int, int, int]:
    """There are no subscriptions. Returns Hobj, Hsub, CompCode, Reason: -1, -1, 2, 2298."""
    no_handle = _UNUSABLE_HOBJ
    return no_handle, no_handle, *_absent(hconn, "MQSUB", "there is no publish/subscribe")


def MQSUBRQ(hconn: Any, *_: Any) -> tuple[int, int]:
    """There are no subscriptions. Returns CompCode, Reason: 2, 2298."""
    return _absent(hconn, "MQSUBRQ", "there is no publish/subscribe")

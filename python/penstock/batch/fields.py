"""The fields of a batch that is put: from single values, sequences and arrays to columns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import numpy.typing as npt

from .._mqi_constants import descriptor as mq
from ..constants import ReasonCode
from ..errors import InvalidValue
from .refusals import refuse_message, wrong_length, wrong_type, wrong_value
from .row_layout import Rows

_MOST = 999999999
_LONGEST_DELAY = 3_155_760_000
_LAST_PUT_TIME_US = 253_402_300_799_999_999
_REPORT_REJECT = mq.MQRO_REJECT_UNSUP_MASK
_REPORT_NEEDS_REPLY = (
    mq.MQRO_EXCEPTION_WITH_FULL_DATA
    | mq.MQRO_EXPIRATION_WITH_FULL_DATA
    | mq.MQRO_COA_WITH_FULL_DATA
    | mq.MQRO_COD_WITH_FULL_DATA
    | mq.MQRO_PAN
    | mq.MQRO_NAN
    | mq.MQRO_ACTIVITY
)
_REPORT_KINDS = (  # without data, with some, with all of it
    (mq.MQRO_EXCEPTION, mq.MQRO_EXCEPTION_WITH_DATA, mq.MQRO_EXCEPTION_WITH_FULL_DATA),
    (mq.MQRO_EXPIRATION, mq.MQRO_EXPIRATION_WITH_DATA, mq.MQRO_EXPIRATION_WITH_FULL_DATA),
    (mq.MQRO_COA, mq.MQRO_COA_WITH_DATA, mq.MQRO_COA_WITH_FULL_DATA),
    (mq.MQRO_COD, mq.MQRO_COD_WITH_DATA, mq.MQRO_COD_WITH_FULL_DATA),
)
REPORT_KNOWN = (
    _REPORT_NEEDS_REPLY
    | mq.MQRO_PASS_CORREL_ID
    | mq.MQRO_PASS_MSG_ID
    | mq.MQRO_DISCARD_MSG
    | mq.MQRO_PASS_DISCARD_AND_EXPIRY
)
_MSG_FLAGS_KNOWN = (
    mq.MQMF_SEGMENTATION_ALLOWED
    | mq.MQMF_SEGMENT
    | mq.MQMF_LAST_SEGMENT
    | mq.MQMF_MSG_IN_GROUP
    | mq.MQMF_LAST_MSG_IN_GROUP
)


def _is_column(value: Any) -> bool:
    """Whether the value is an array or sequence, with one value a message."""
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return False
    return isinstance(value, (Sequence, np.ndarray)) and np.ndim(value) != 0


def _check_length(name: str, values: Any, count: int) -> None:
    if len(values) != count:
        wrong_length(f"{name} has {len(values)} values for {count} messages")


def _integers(
    name: str, value: Any, count: int, reason: int, none: int | None = None
) -> npt.NDArray[np.int64]:
    """A column of integers; None becomes `none` where that is given."""
    values = value if _is_column(value) else [value]
    if _is_column(value):
        _check_length(name, values, count)
    array = np.asarray(values)
    if array.dtype.kind not in "iub" or array.ndim != 1:
        known = [none if item is None and none is not None else item for item in values]
        for index, item in enumerate(known):
            if not isinstance(item, (int, np.integer, np.bool_)):
                where = f"{name} of message {index}" if _is_column(value) else name
                wrong_type(f"{where} must be an integer, not {item!r:.40}", reason)
        array = np.asarray(known, dtype=object)
    wrong = (array < -(2**31)) | (array >= 2**31)
    if wrong.any():
        wrong_value(name, array, wrong, "is outside the range of 32-bit integers", reason)
    return array.astype(np.int64)


def _padded(values: npt.NDArray[np.bytes_], size: int, pad: bytes) -> npt.NDArray[np.bytes_]:
    """Replaces the NULs at the end of the values by the padding."""
    if pad == b"\0":
        return values
    made = np.array(values).view(np.uint8).reshape(-1, size)
    nul = made == 0
    if nul.any():
        made[np.logical_and.accumulate(nul[:, ::-1], axis=1)[:, ::-1]] = pad[0]
    return made.view(f"S{size}").reshape(-1)


def _characters(name: str, value: Any, count: int, size: int, pad: bytes) -> npt.NDArray[np.bytes_]:
    """A column of character fields or identifiers, padded."""
    if isinstance(value, np.ndarray) and value.dtype == f"S{size}" and value.ndim == 1:
        _check_length(name, value, count)
        return _padded(value, size, pad)
    column = _is_column(value)
    values = list(value) if column else [value]
    if column:
        _check_length(name, values, count)
    reason = {
        "msg_id": ReasonCode.MSG_ID_ERROR,
        "correl_id": ReasonCode.CORREL_ID_ERROR,
        "group_id": ReasonCode.GROUP_ID_ERROR,
    }.get(name, ReasonCode.MD_ERROR)
    raw = []
    for index, item in enumerate(values):
        where = f"{name} of message {index}" if column else name
        if item is None:
            item = b""
        elif isinstance(item, str) and pad == b" ":
            item = item.encode()
        elif not isinstance(item, (bytes, bytearray, memoryview)):
            kind = "text" if pad == b" " else "bytes"
            wrong_type(f"{where} must be {kind}, not {type(item).__name__}: {item!r:.60}", reason)
        item = bytes(item)
        if len(item) > size:
            text = f"{where} has {len(item)} bytes, at most {size} fit: {item!r:.80}"
            refuse_message(index if column else None, reason, text)
        raw.append(item.ljust(size, pad))
    return np.array(raw, dtype=f"S{size}")


def _set_priority(rows: Rows, value: Any) -> None:
    column = _integers("priority", value, len(rows), ReasonCode.PRIORITY_ERROR, none=-1)
    if (column < -1).any():
        wrong_value("priority", column, column < -1, "is negative", ReasonCode.PRIORITY_ERROR)
    rows["priority"] = column


def _set_persistence(rows: Rows, value: Any) -> None:
    reason = ReasonCode.PERSISTENCE_ERROR
    column = _integers("persistent", value, len(rows), reason, none=2)
    wrong = (column < 0) | (column > 2)
    if wrong.any():
        wrong_value("persistent", column, wrong, "is not 0, 1 or 2", reason)
    rows["persistence"] = column


def _set_put_time(rows: Rows, value: Any) -> None:
    """Moments, or microseconds since 1970. The core refuses moments before, and after 9999."""
    moments = np.atleast_1d(np.asarray(value))
    if moments.dtype.kind != "M":
        try:
            wrong = (moments < 0) | (moments > _LAST_PUT_TIME_US)
        except TypeError:
            wrong_type(f"put_time_us must be integers, not {value!r:.40}", ReasonCode.MD_ERROR)
        if wrong.any():
            text = f"is not 0 to {_LAST_PUT_TIME_US} (year 9999)"
            wrong_value("put_time_us", moments, wrong, text, ReasonCode.MD_ERROR)
        moments = moments.astype(np.int64)
    rows["put_time"] = moments.astype("M8[us]")


def _set_expiry(rows: Rows, value: Any) -> None:
    """Seconds, tenths rounded up; None and NaN: unlimited."""
    reason = ReasonCode.EXPIRY_ERROR
    values = value if _is_column(value) else [value]
    if _is_column(value):
        _check_length("expiry", values, len(rows))
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        for index, item in enumerate(values):
            fits = isinstance(item, (int, float, np.number)) and not isinstance(item, bool)
            if item is not None and not fits:
                wrong_type(f"expiry of message {index} must be seconds, not {item!r:.40}", reason)
        array = np.asarray([np.nan if item is None else item for item in values])
    try:
        seconds = array.astype(np.float64)
    except OverflowError as error:  # an integer that no double holds
        text = f"an expiry is not above 0 and at most 99999999.9 seconds: {error}"
        raise InvalidValue(reason, text) from None
    unlimited = np.isnan(seconds)
    wrong = ~unlimited & ~((seconds > 0) & (seconds <= 99999999.9))
    if wrong.any():
        wrong_value(
            "expiry", seconds, wrong, "is not above 0 and at most 99999999.9 seconds", reason
        )
    rows["expiry"] = np.where(unlimited, -1, np.ceil(np.nan_to_num(seconds) * 10 - 1e-6))


def _column_of(name: str, value: Any, count: int) -> list[Any]:
    """One value a message, of a single value or a sequence."""
    if not _is_column(value):
        return [value] * count
    _check_length(name, value, count)
    return list(value)


def _set_delay(rows: Rows, value: Any) -> None:
    """Seconds from now; None and 0: none."""
    now = time.time_ns() // 1000
    column = _column_of("delay", value, len(rows))
    for index, seconds in enumerate(column):
        number = isinstance(seconds, (int, float, np.number)) and not isinstance(seconds, bool)
        if seconds is not None and not number:
            text = f"delay of message {index} must be seconds, not {seconds!r:.40}"
            wrong_type(text, ReasonCode.MD_ERROR)
        if seconds is not None and not 0 <= seconds <= _LONGEST_DELAY:
            text = f"delay {seconds!r} of message {index} is not 0 to {_LONGEST_DELAY} seconds"
            refuse_message(index, ReasonCode.MD_ERROR, text)
    rows["due_us"] = [now + int(seconds * 1e6) if seconds else 0 for seconds in column]


def _set_at(rows: Rows, value: Any) -> None:
    """Datetimes with a time zone; None: none."""
    column = _column_of("at", value, len(rows))
    for index, moment in enumerate(column):
        if moment is not None and not isinstance(moment, datetime):
            text = f"at of message {index} must be a datetime, not {moment!r:.60}"
            wrong_type(text, ReasonCode.MD_ERROR)
        if moment is not None and moment.utcoffset() is None:
            text = f"at {moment!r} of message {index} has no time zone"
            refuse_message(index, ReasonCode.MD_ERROR, text)
    start = datetime(1970, 1, 1, tzinfo=timezone.utc)
    rows["due_us"] = [
        0 if moment is None else max((moment - start) // timedelta(microseconds=1), 0)
        for moment in column
    ]


_INTEGERS: dict[str, int] = {
    "msg_type": ReasonCode.MSG_TYPE_ERROR,
    "report": ReasonCode.REPORT_OPTIONS_ERROR,
    "feedback": ReasonCode.FEEDBACK_ERROR,
    "encoding": ReasonCode.MD_ERROR,
    "ccsid": ReasonCode.MD_ERROR,
    "msg_seq_number": ReasonCode.MSG_SEQ_NUMBER_ERROR,
    "msg_flags": ReasonCode.MSG_FLAGS_ERROR,
}
CHARACTERS: dict[str, tuple[int, bytes]] = {
    "msg_id": (24, b"\0"),
    "correl_id": (24, b"\0"),
    "group_id": (24, b"\0"),
    "reply_to_q": (48, b" "),
    "reply_to_qmgr": (48, b" "),
    "appl_identity_data": (32, b" "),
    "format": (8, b" "),
    "user_identifier": (12, b" "),
}
_IN_EXTENSION = {
    "reply_to_q", "reply_to_qmgr", "group_id", "msg_seq_number", "msg_flags", "appl_identity_data",
}  # fmt: skip


def check_fields(rows: Rows, given: Mapping[str, Any]) -> None:
    """Checks fields whose values depend on each other, as put() does."""

    def refuse_where(wrong: Any, name: str, why: str, reason: int) -> None:
        if wrong.any():
            wrong_value(name, rows[name], wrong, why, reason)

    if "msg_type" in given or "report" in given:
        no_reply = rows["reply_to_q"] == b" " * 48
    if "msg_type" in given:
        kind = rows["msg_type"]
        refuse_where((kind < 1) | (kind > _MOST), "msg_type", f"is not 1 to {_MOST}",
                     ReasonCode.MSG_TYPE_ERROR)  # fmt: skip
        refuse_where((kind == 1) & no_reply, "msg_type", "is a request, which needs reply_to_q",
                     ReasonCode.MISSING_REPLY_TO_Q)  # fmt: skip
    if "report" in given:
        report = rows["report"]
        refuse_where((report & _REPORT_REJECT) != 0, "report", "has options that are not known",
                     ReasonCode.REPORT_OPTIONS_ERROR)  # fmt: skip
        for plain, some, whole in _REPORT_KINDS:
            kind = report & whole
            fits = (kind == 0) | (kind == plain) | (kind == some) | (kind == whole)
            refuse_where(~fits, "report", "asks for data without the report itself",
                         ReasonCode.REPORT_OPTIONS_ERROR)  # fmt: skip
        refuse_where(((report & _REPORT_NEEDS_REPLY) != 0) & no_reply, "report",
                     "needs reply_to_q", ReasonCode.MISSING_REPLY_TO_Q)  # fmt: skip
    if "msg_seq_number" in given:
        number = rows["msg_seq_number"]
        refuse_where((number < 1) | (number > _MOST), "msg_seq_number", f"is not 1 to {_MOST}",
                     ReasonCode.MSG_SEQ_NUMBER_ERROR)  # fmt: skip
    if "msg_flags" in given:
        refuse_where((rows["msg_flags"] & ~_MSG_FLAGS_KNOWN) != 0, "msg_flags", "has unknown bits",
                     ReasonCode.MSG_FLAGS_ERROR)  # fmt: skip


def fill_fields(rows: Rows, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Sets the given columns; returns them."""
    given = {name: value for name, value in columns.items() if value is not None}
    if "delay" in given and "at" in given:
        raise InvalidValue(ReasonCode.MD_ERROR, "delay and at exclude each other")
    if any(name in _IN_EXTENSION for name in given):
        rows["has_ext"] = 1
    for name, value in given.items():
        if name == "priority":
            _set_priority(rows, value)
        elif name == "persistent":
            _set_persistence(rows, value)
        elif name == "expiry":
            _set_expiry(rows, value)
        elif name == "put_time_us":
            _set_put_time(rows, value)
        elif name == "delay":
            _set_delay(rows, value)
        elif name == "at":
            _set_at(rows, value)
        elif name in _INTEGERS:
            rows[name] = _integers(name, value, len(rows), _INTEGERS[name])
        else:
            rows[name] = _characters(name, value, len(rows), *CHARACTERS[name])
    return given

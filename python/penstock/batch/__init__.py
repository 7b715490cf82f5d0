"""Batches: many messages in two arrays, put and got by one call each.

A :class:`MessageBatch` has a structured array of descriptors, one row a message, and all bodies in
one array of bytes with int64 offsets: body ``i`` is ``bodies[offsets[i]:offsets[i + 1]]``. It is an
Arrow struct array for every library that knows the Arrow C data interface
(``pyarrow.record_batch(batch)``): descriptor fields become columns, which are copied, the bodies
are the column ``body``, which is not.

``Queue.put_batch`` and ``Queue.get_batch`` come here; ``import penstock`` does not load NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np
import numpy.typing as npt

from .. import _engine
from ..constants import ReasonCode
from ..errors import InvalidType, InvalidValue

if TYPE_CHECKING:
    from .._engine import Message
    from .._engine import QueueHandle

__all__ = ["DTYPE", "ArrowColumns", "BatchResult", "MessageBatch"]

_SIZE = 416  # of struct mqe_item of the core
_FIELDS: tuple[tuple[str, str, int], ...] = (  # name, format, offset
    ("msg_id", "S24", 0),
    ("correl_id", "S24", 24),
    ("put_time", "<M8[us]", 48),
    ("expiry_us", "<u8", 56),
    ("priority", "<i4", 64),
    ("report", "<i4", 68),
    ("msg_type", "<i4", 72),
    ("feedback", "<i4", 76),
    ("encoding", "<i4", 80),
    ("ccsid", "<i4", 84),
    ("format", "S8", 88),
    ("put_appl_type", "<i4", 96),
    ("user_identifier", "S12", 100),
    ("put_appl_name", "S28", 112),
    ("appl_origin_data", "S4", 140),
    ("accounting_token", "S32", 144),
    ("persistence", "u1", 176),
    ("placement", "u1", 177),
    ("has_ext", "u1", 178),
    ("md_version", "u1", 179),
    ("backout_count", "<u4", 180),
    ("reply_to_q", "S48", 192),
    ("reply_to_qmgr", "S48", 240),
    ("appl_identity_data", "S32", 288),
    ("group_id", "S24", 320),
    ("msg_seq_number", "<i4", 344),
    ("offset", "<i4", 348),
    ("msg_flags", "<i4", 352),
    ("original_length", "<i4", 356),
    ("number", "<u8", 384),
    ("lsn", "<u8", 392),
    ("expiry", "<i4", 400),
    ("length", "<u4", 404),
    ("reason", "<i4", 408),
)

DTYPE: np.dtype[np.void] = np.dtype(
    {
        "names": [name for name, _, _ in _FIELDS],
        "formats": [form for _, form, _ in _FIELDS],
        "offsets": [offset for _, _, offset in _FIELDS],
        "itemsize": _SIZE,
    }
)
"""The row of a message: struct mqe_item. Identifiers are NUL-padded, other characters blank-padded;
``put_time`` is UTC; ``expiry`` tenths of a second left, -1 unlimited; ``expiry_us`` the moment, in
microseconds since 1970, 0 = none; ``number`` the arrival number; ``lsn`` where the journal has it,
0 = nowhere; ``reason`` 0 or 2049 (of a put)."""

_FIXED, _BOOL, _TEXT, _UNLESS_MINUS_1, _UNLESS_0 = range(5)  # as in arrow.pxi
_ARROW = {"<i4": "i", "<u4": "I", "<u8": "L", "u1": "C"}
Column = tuple[str, str, int, int, int]  # name, format, kind, offset, size


def _arrow_column(name: str, form: str, offset: int) -> Column:
    size = np.dtype(form).itemsize
    if name == "persistence":
        return "persistent", "b", _BOOL, offset, size
    if name == "put_time":
        return name, "tsu:UTC", _UNLESS_0, offset, size
    if name == "expiry":
        return name, "i", _UNLESS_MINUS_1, offset, size
    if name in ("msg_id", "correl_id", "group_id", "accounting_token"):
        return name, f"w:{size}", _FIXED, offset, size
    if form.startswith("S"):
        return name, "u", _TEXT, offset, size
    return name, _ARROW[form], _FIXED, offset, size


_NOT_ARROW = ("expiry_us", "has_ext", "length", "reason")  # said by expiry, body; or of a put
_ARROW_COLUMNS: dict[str, Column] = {
    column[0]: column
    for column in (_arrow_column(*field) for field in _FIELDS if field[0] not in _NOT_ARROW)
}


class ArrowColumns:
    """Some columns of a batch, and its bodies, for an Arrow library: see MessageBatch.arrow()."""

    __slots__ = ("_batch", "_columns")

    def __init__(self, batch: MessageBatch, columns: Sequence[Column]) -> None:
        """Columns as arrow_array() of the engine wants them."""
        self._batch = batch
        self._columns = columns

    def __arrow_c_schema__(self) -> object:
        """The struct type."""
        return _engine.arrow_schema(self._columns)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Schema and array. Another schema than its own is not made: the consumer casts."""
        batch = self._batch
        rows = np.ascontiguousarray(batch.descriptors)
        array = _engine.arrow_array(self._columns, rows, batch.bodies, batch.offsets)
        return _engine.arrow_schema(self._columns), array


class MessageBatch(_engine.BatchArrays):
    """Messages in arrays.

    Attributes:
        descriptors: one row of :data:`DTYPE` a message.
        bodies: the bytes of all bodies, uint8.
        offsets: int64, one more than messages: where each body begins and the last one ends.

    Those of a batch that was got are made when they are asked for, over its one piece of memory.
    """

    __slots__ = ()

    def __init__(
        self,
        descriptors: npt.NDArray[np.void],
        bodies: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
    ) -> None:
        """Makes a batch of these arrays; nothing is copied.

        Raises:
            InvalidType: 2004: a wrong type of array.
            InvalidValue: 2005: the lengths do not fit together.
        """
        for name, array, dtype in (
            ("descriptors", descriptors, DTYPE),
            ("bodies", bodies, np.dtype(np.uint8)),
            ("offsets", offsets, np.dtype(np.int64)),
        ):
            if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
                kind = getattr(array, "dtype", type(array).__name__)
                wanted = "DTYPE" if dtype is DTYPE else dtype.name
                _wrong_type(f"{name} must be a one-dimensional array of {wanted}, not {kind!s:.80}")
        if len(offsets) != len(descriptors) + 1:
            _wrong_length(
                f"{len(descriptors)} messages need {len(descriptors) + 1} offsets, "
                f"not {len(offsets)}"
            )
        if not bodies.flags.c_contiguous or not offsets.flags.c_contiguous:
            _wrong_type("bodies and offsets must be contiguous")
        self.descriptors = descriptors
        self.bodies = bodies
        self.offsets = offsets

    @staticmethod
    def _made(
        descriptors: npt.NDArray[np.void],
        bodies: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
    ) -> MessageBatch:
        """Of arrays that are known to fit together."""
        batch = MessageBatch.__new__(MessageBatch)
        batch.descriptors = descriptors
        batch.bodies = bodies
        batch.offsets = offsets
        return batch

    def __reduce__(self) -> tuple[Any, ...]:
        """By its arrays."""
        return type(self), (self.descriptors, self.bodies, self.offsets)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> MessageBatch: ...
    def __getitem__(self, index: int | slice) -> Message | MessageBatch:
        """A message, copied; or a batch of consecutive messages over the same memory."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ValueError(f"a batch is sliced in steps of 1, not {step}")
            stop = max(start, stop)
            return MessageBatch(
                self.descriptors[start:stop], self.bodies, self.offsets[start : stop + 1]
            )
        position = range(len(self))[index]
        row = np.ascontiguousarray(self.descriptors[position : position + 1])
        return _engine.batch_message(row, 0, self.body(position))

    def __iter__(self) -> Iterator[Message]:
        """The messages, one after the other."""
        rows = np.ascontiguousarray(self.descriptors)
        for index in range(len(self)):
            yield _engine.batch_message(rows, index, self.body(index))

    def body(self, index: int) -> bytes:
        """A copy of the body of message ``index``, counted from 0."""
        return self.bodies[self.offsets[index] : self.offsets[index + 1]].tobytes()

    def arrow(self, columns: Sequence[str] | None = None) -> ArrowColumns:
        """The batch for an Arrow library, with these columns and ``body``; None = all of them.

        Raises:
            InvalidValue: 2046: there is no such column.
        """
        if columns is None:
            return ArrowColumns(self, tuple(_ARROW_COLUMNS.values()))
        for name in columns:
            if name not in _ARROW_COLUMNS:
                raise InvalidValue(
                    ReasonCode.OPTIONS_ERROR,
                    f"no column {name!r}; there are {', '.join(_ARROW_COLUMNS)}",
                )
        return ArrowColumns(self, tuple(_ARROW_COLUMNS[name] for name in columns))

    def __arrow_c_schema__(self) -> object:
        """The struct type: one column a descriptor field, and ``body``."""
        return self.arrow().__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Schema and array; the bodies are not copied."""
        return self.arrow().__arrow_c_array__(requested_schema)

    def __repr__(self) -> str:
        """``<MessageBatch of 3 messages, 120 bytes>``."""
        size = int(self.offsets[-1] - self.offsets[0])
        return f"<MessageBatch of {len(self)} messages, {size} bytes>"


class BatchResult(_engine.BatchOutcome):
    """What put_batch() returns.

    Attributes:
        count: messages put.
        warnings: how many of them with a warning, such as 2049.
        descriptors: a row a message, as it was stored; made when it is asked for.
    """

    __slots__ = ()

    def __init__(self, count: int, warnings: int, descriptors: npt.NDArray[np.void]) -> None:
        """Made by put_batch()."""
        self.count = count
        self.warnings = warnings
        self.descriptors = descriptors

    def __reduce__(self) -> tuple[Any, ...]:
        """By what the constructor takes."""
        return type(self), (self.count, self.warnings, self.descriptors)

    def __len__(self) -> int:
        """How many messages."""
        return self.count

    @property
    def numbers(self) -> npt.NDArray[np.uint64]:
        """Their arrival numbers; 0 for messages that left for another queue manager."""
        numbers: npt.NDArray[np.uint64] = self.descriptors["number"]
        return numbers

    @property
    def msg_ids(self) -> list[bytes]:
        """Their identifiers, 24 bytes each."""
        raw = np.ascontiguousarray(self.descriptors["msg_id"]).tobytes()
        return [raw[at : at + 24] for at in range(0, len(raw), 24)]

    @property
    def reasons(self) -> npt.NDArray[np.int32]:
        """0, or the reason code of the warning of each."""
        reasons: npt.NDArray[np.int32] = self.descriptors["reason"]
        return reasons

    def __repr__(self) -> str:
        """``<BatchResult of 3 messages, 0 warnings>``."""
        return f"<BatchResult of {self.count} messages, {self.warnings} warnings>"


def _wrong_type(text: str, reason: int = ReasonCode.BUFFER_ERROR) -> NoReturn:
    raise InvalidType(reason, text)


def _wrong_length(text: str) -> NoReturn:
    raise InvalidValue(ReasonCode.BUFFER_LENGTH_ERROR, text)


# ---- bodies ----


class _Bodies:
    """Where the bodies of a put are: a buffer, offsets of our own, and what keeps the buffer."""

    __slots__ = ("buffer", "keeper", "offsets")

    def __init__(self, buffer: Any, offsets: npt.NDArray[np.int64], keeper: object = None) -> None:
        self.buffer = buffer
        self.offsets = offsets
        self.keeper = keeper


def _is_offsets(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return True
    if isinstance(value, (bytes, bytearray)):
        return False
    if isinstance(value, memoryview):
        return value.format in ("q", "<q", "l", "<l")
    return isinstance(value, Sequence) and all(isinstance(item, int) for item in value)


def _offsets_of(value: Any, size: int) -> npt.NDArray[np.int64]:
    """A copy of our own. Whether they are in order is looked at by the core, in every row; who it
    refuses is told by _check_offsets().
    """
    given = np.asarray(value)
    if given.ndim != 1 or given.dtype.kind not in "iu" or len(given) == 0:
        _wrong_type(f"offsets must be a one-dimensional array of integers, not {value!r:.80}")
    offsets = given.astype(np.int64)
    if len(offsets) == 1:
        _check_offsets(offsets, size)
    return offsets


def _check_offsets(offsets: npt.NDArray[np.int64], size: int) -> None:
    steps = np.diff(offsets)
    if offsets[0] < 0 or offsets[-1] > size or (steps < 0).any():
        at = int(np.argmax(steps < 0)) + 1 if (steps < 0).any() else 0 if offsets[0] < 0 else -1
        _wrong_length(
            f"offset {int(offsets[at])} (at {at}) is out of order, or not within "
            f"{size} bytes of bodies"
        )


def _from_pair(buffer: Any, offsets: Any) -> _Bodies:
    try:
        view = memoryview(buffer)
    except TypeError as error:
        _wrong_type(f"the buffer of the bodies must be bytes-like: {error}")
    if not view.c_contiguous:
        _wrong_type("the buffer of the bodies must be contiguous")
    return _Bodies(view, _offsets_of(offsets, view.nbytes))


def _from_sequence(source: Sequence[Any]) -> _Bodies:
    try:
        joined = b"".join(source)
        if all(type(body) is bytes for body in source):
            lengths = np.fromiter(map(len, source), np.int64, len(source))
        else:
            lengths = np.fromiter((memoryview(b).nbytes for b in source), np.int64, len(source))
    except (TypeError, BufferError):
        for index, body in enumerate(source):
            try:
                memoryview(body)
            except TypeError:
                hint = "; encode it" if isinstance(body, str) else ""
                _wrong_type(
                    f"body {index} must be bytes-like, not {type(body).__name__}: "
                    f"{body!r:.40}{hint}"
                )
        raise
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return _Bodies(joined, offsets)


def _bodies_of(source: Any) -> _Bodies:
    if isinstance(source, MessageBatch):
        return _Bodies(source.bodies, _offsets_of(source.offsets, len(source.bodies)))
    if hasattr(source, "__arrow_c_array__"):
        bodies, raw, width, keeper = _engine.arrow_bodies(source)
        offsets = np.frombuffer(raw, np.int32 if width == 4 else np.int64)
        return _Bodies(bodies, _offsets_of(offsets, bodies.nbytes), keeper)
    if isinstance(source, tuple) and len(source) == 2 and _is_offsets(source[1]):
        return _from_pair(*source)
    if isinstance(source, (str, bytes, bytearray, memoryview)) or not isinstance(source, Sequence):
        _wrong_type(
            "a batch is a MessageBatch, a sequence of bytes-like bodies, (buffer, int64 offsets) "
            f"or an Arrow array, not {type(source).__name__}"
        )
    return _from_sequence(source)


# ---- columns ----

_Rows = npt.NDArray[np.void]
_MOST = 999999999
_REPORT_REJECT, _REPORT_NEEDS_REPLY, _REPORT_KNOWN = 0x101C0000, 0x07E03F07, 0x0FE03FC7 | 0x4000
_MSG_FLAGS_KNOWN = 31


def _is_column(value: Any) -> bool:
    """An array or sequence with a value a message, not one value for all."""
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return False
    return isinstance(value, (Sequence, np.ndarray)) and np.ndim(value) != 0


def _check_length(name: str, values: Any, count: int) -> None:
    if len(values) != count:
        _wrong_length(f"{name} has {len(values)} values for {count} messages")


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
                _wrong_type(f"{where} must be an integer, not {item!r:.40}", reason)
        array = np.asarray(known, dtype=object)
    wrong = (array < -(2**31)) | (array >= 2**31)
    if wrong.any():
        _refuse(name, array, wrong, "is outside the range of 32-bit integers", reason)
    return array.astype(np.int64)


def _refuse(name: str, values: Any, wrong: Any, why: str, reason: int) -> NoReturn:
    index = int(np.argmax(wrong))
    raise InvalidValue(reason, f"{name} {values[index]!s} (message {index}) {why}")


def _padded(values: npt.NDArray[np.bytes_], size: int, pad: bytes) -> npt.NDArray[np.bytes_]:
    """An array of that width, whose NULs at the end are padding."""
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
            _wrong_type(f"{where} must be {kind}, not {type(item).__name__}: {item!r:.60}", reason)
        item = bytes(item)
        if len(item) > size:
            raise InvalidValue(
                reason, f"{where} has {len(item)} bytes, at most {size} fit: {item!r:.80}"
            )
        raw.append(item.ljust(size, pad))
    return np.array(raw, dtype=f"S{size}")


def _set_priority(rows: _Rows, value: Any) -> None:
    column = _integers("priority", value, len(rows), ReasonCode.PRIORITY_ERROR, none=-1)
    if (column < -1).any():
        _refuse("priority", column, column < -1, "is negative", ReasonCode.PRIORITY_ERROR)
    rows["priority"] = column


def _set_persistence(rows: _Rows, value: Any) -> None:
    reason = ReasonCode.PERSISTENCE_ERROR
    column = _integers("persistent", value, len(rows), reason, none=2)
    wrong = (column < 0) | (column > 2)
    if wrong.any():
        _refuse("persistent", column, wrong, "is not 0, 1 or 2", reason)
    rows["persistence"] = column


def _set_expiry(rows: _Rows, value: Any) -> None:
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
                _wrong_type(f"expiry of message {index} must be seconds, not {item!r:.40}", reason)
        array = np.asarray([np.nan if item is None else item for item in values])
    seconds = array.astype(np.float64)
    unlimited = np.isnan(seconds)
    wrong = ~unlimited & ~((seconds > 0) & (seconds <= 99999999.9))
    if wrong.any():
        _refuse("expiry", seconds, wrong, "is not between 0 and 99999999.9 seconds", reason)
    rows["expiry"] = np.where(unlimited, -1, np.ceil(np.nan_to_num(seconds) * 10 - 1e-6))


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


def _check_rows(rows: _Rows, given: Mapping[str, Any]) -> None:
    """What put() checks of fields whose values depend on each other."""

    def refuse_where(wrong: Any, name: str, why: str, reason: int) -> None:
        if wrong.any():
            _refuse(name, rows[name], wrong, why, reason)

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
        refuse_where(((report & _REPORT_NEEDS_REPLY) != 0) & no_reply, "report",
                     "needs reply_to_q", ReasonCode.MISSING_REPLY_TO_Q)  # fmt: skip
    if "msg_seq_number" in given:
        number = rows["msg_seq_number"]
        refuse_where((number < 1) | (number > _MOST), "msg_seq_number", f"is not 1 to {_MOST}",
                     ReasonCode.MSG_SEQ_NUMBER_ERROR)  # fmt: skip
    if "msg_flags" in given:
        refuse_where((rows["msg_flags"] & ~_MSG_FLAGS_KNOWN) != 0, "msg_flags", "has unknown bits",
                     ReasonCode.MSG_FLAGS_ERROR)  # fmt: skip


def _fill(rows: _Rows, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Sets the columns that are given; returns those."""
    given = {name: value for name, value in columns.items() if value is not None}
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
            rows["put_time"] = np.asarray(value).astype("M8[us]")
        elif name in _INTEGERS:
            rows[name] = _integers(name, value, len(rows), _INTEGERS[name])
        else:
            rows[name] = _characters(name, value, len(rows), *CHARACTERS[name])
    return given


# ---- put and get ----


def _rows_for(queue: QueueHandle, source: Any, count: int) -> _Rows:
    rows: _Rows
    if not isinstance(source, MessageBatch):
        rows = np.empty(count, DTYPE)
        _engine.batch_start(queue, rows)
        return rows
    rows = source.descriptors.copy()
    _engine.batch_start(queue, rows, True)
    return rows


def put_batch(
    queue: QueueHandle, source: Any, syncpoint: bool | None, columns: Mapping[str, Any]
) -> BatchResult:
    """Queue.put_batch(); ``columns`` are its fields by name, None = not given."""
    bodies = _bodies_of(source)
    rows = _rows_for(queue, source, len(bodies.offsets) - 1)
    given = _fill(rows, columns)
    if given:
        _check_rows(rows, given)
    if "reply_to_q" in given:
        _engine.batch_complete_reply(queue, rows)
    reason, count, failed, warnings = _engine.batch_put(
        queue, rows, bodies.buffer, bodies.offsets, syncpoint, "put_time_us" in given
    )
    if reason:
        if reason == ReasonCode.BUFFER_LENGTH_ERROR:
            _check_offsets(bodies.offsets, memoryview(bodies.buffer).nbytes)
        _engine.batch_fail(queue, reason, count, failed)
    if "report" not in given and not isinstance(source, MessageBatch):
        return BatchResult(count, warnings, rows)
    unknown = (rows["report"] & ~_REPORT_KNOWN != 0) & (rows["reason"] == 0)
    if unknown.any():
        rows["reason"][unknown] = ReasonCode.UNKNOWN_REPORT_OPTION
        warnings += int(unknown.sum())
    return BatchResult(count, warnings, rows)


_FIRST_ROWS = 4096  # more are not made room for than there are messages
_LEAST_ROOM = 65536
_BROWSE_ROOM = 16 << 20
_TYPICAL = 320  # bytes of a body, where nothing is known yet
_MOST_PARTS = 100_000
Place = tuple[int, int]
_Look = Callable[[Any, Any, Any], tuple[int, int]]


def _check_number(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        _wrong_type(f"{name} must be an integer, not {value!r:.40}", ReasonCode.OPTIONS_ERROR)
    if not least <= value < 2**63:
        raise InvalidValue(ReasonCode.OPTIONS_ERROR, f"{name} {value} is not {least} or more")


def _capacity(queue: QueueHandle, wanted: int) -> int:
    return wanted if wanted <= _FIRST_ROWS else min(wanted, queue.depth + _FIRST_ROWS)


def _get_once(
    queue: QueueHandle, capacity: int, room: int, wait: float | None, max_bytes: int,
    persistent_only: bool, up_to: int | None, syncpoint: bool | None,
) -> tuple[MessageBatch, int]:  # fmt: skip
    """One call of the core; again with more room when its first message needs that."""
    while True:
        rows = np.empty(capacity, DTYPE)
        bodies = np.empty(room, np.uint8)
        offsets = np.empty(capacity + 1, np.int64)
        count, needed = _engine.batch_get(
            queue, rows, bodies, offsets, wait, max_bytes, persistent_only, up_to, syncpoint
        )
        if count == 0 and needed > room:
            room = needed
            continue
        used = int(offsets[count]) if count else 0
        batch = MessageBatch._made(rows[:count], bodies[:used], offsets[: count + 1])
        if not count:
            offsets[0] = 0
        return batch, needed


def _without_bodies(rows: _Rows, count: int) -> MessageBatch:
    return MessageBatch(rows[:count], np.empty(0, np.uint8), np.zeros(count + 1, np.int64))


def _look(call: _Look, capacity: int, room: int) -> MessageBatch:
    """What a call that only looks copies; again with more room when its first message needs it."""
    while True:
        rows = np.empty(capacity, DTYPE)
        bodies = np.empty(room, np.uint8)
        offsets = np.zeros(capacity + 1, np.int64)
        count, needed = call(rows, bodies, offsets)
        if count or not needed:
            return MessageBatch(rows[:count], bodies[: int(offsets[count])], offsets[: count + 1])
        room = needed


def _check_limits(max_messages: int, max_bytes: int | None, up_to: int | None) -> None:
    _check_number("max_messages", max_messages, 1)
    if max_bytes is not None:
        _check_number("max_bytes", max_bytes, 1)
    if up_to is not None:
        _check_number("up_to", up_to, 0)


def browse_batch(
    queue: QueueHandle, max_messages: int, first: bool, max_bytes: int | None, persistent_only: bool,
    up_to: int | None, with_bodies: bool,
) -> MessageBatch:  # fmt: skip
    """Queue.browse_batch()."""
    _check_limits(max_messages, max_bytes, up_to)
    begin = first
    most = max_bytes or (_BROWSE_ROOM if with_bodies else 0)

    def call(rows: Any, bodies: Any, offsets: Any) -> tuple[int, int]:
        return _engine.batch_browse(
            queue, rows, bodies, offsets, begin, most, persistent_only, up_to
        )

    capacity = _capacity(queue, max_messages)
    if with_bodies:
        return _look(call, capacity, most)
    rows = np.empty(capacity, DTYPE)
    return _without_bodies(rows, call(rows, None, None)[0])


def places(queue: QueueHandle, parts: int) -> list[Place]:
    """Queue.places()."""
    _check_number("parts", parts, 1)
    if parts > _MOST_PARTS:
        raise InvalidValue(ReasonCode.OPTIONS_ERROR, f"parts {parts} is more than {_MOST_PARTS}")
    return _engine.queue_places(queue, parts)


def claim_batch(
    queue: QueueHandle, max_messages: int, max_bytes: int | None, persistent_only: bool, up_to: int | None
) -> tuple[int, int]:
    """Queue.claim_batch()."""
    _check_limits(max_messages, max_bytes, up_to)
    most = min(max_messages, 2**32 - 1)
    return _engine.batch_claim(queue, most, max_bytes or 0, persistent_only, up_to)


def _join(parts: list[MessageBatch]) -> MessageBatch:
    if len(parts) == 1:
        return parts[0]
    rows = np.empty(sum(len(part) for part in parts), DTYPE)  # concatenate() would repack them
    starts = np.cumsum([0] + [len(part.bodies) for part in parts])
    offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts, strict=False)]
    at = 0
    for part in parts:
        rows[at : at + len(part)] = part.descriptors
        at += len(part)
    return MessageBatch(
        rows,
        np.concatenate([part.bodies for part in parts]),
        np.concatenate([*offsets, starts[-1:]]).astype(np.int64),
    )


def get_batch(
    queue: QueueHandle, max_messages: int, wait: float | None, max_bytes: int | None,
    syncpoint: bool | None, persistent_only: bool, up_to: int | None, with_bodies: bool,
) -> MessageBatch:  # fmt: skip
    """Queue.get_batch()."""
    _check_limits(max_messages, max_bytes, up_to)
    if not with_bodies:
        rows = np.empty(_capacity(queue, max_messages), DTYPE)
        count, _ = _engine.batch_get(
            queue, rows, None, None, wait, max_bytes or 0, persistent_only, up_to, syncpoint
        )
        return _without_bodies(rows, count)
    return _get_parts(
        queue, [], max_messages, _TYPICAL, wait, max_bytes, persistent_only, up_to, syncpoint
    )


def _get_rest(
    queue: QueueHandle, part: MessageBatch, left: int, needed: int, syncpoint: bool | None,
    persistent_only: bool,
) -> MessageBatch:  # fmt: skip
    """What a first part had no room for is got as well, when it is there."""
    typical = _next_typical(part, needed, _TYPICAL)
    return _get_parts(queue, [part], left, typical, 0, None, persistent_only, None, syncpoint)


def _next_typical(part: MessageBatch, needed: int, typical: int) -> int:
    return max(typical, needed, len(part.bodies) // len(part)) * 5 // 4


def _get_parts(
    queue: QueueHandle, parts: list[MessageBatch], left: int, typical: int, wait: float | None,
    max_bytes: int | None, persistent_only: bool, up_to: int | None, syncpoint: bool | None,
) -> MessageBatch:  # fmt: skip
    """Part by part, with room for bodies of the typical size; all of them as one batch."""
    while True:
        capacity = _capacity(queue, left)
        room = max(_LEAST_ROOM, capacity * typical)
        if max_bytes is not None:
            room = min(room, max_bytes)
        try:
            part, needed = _get_once(
                queue, capacity, room, wait, max_bytes or 0, persistent_only, up_to, syncpoint
            )
        except Exception:
            if parts:  # what was got is got; the next call tells what is wrong
                break
            raise
        parts.append(part)
        left -= len(part)
        if left <= 0 or needed == 0 or max_bytes is not None:
            break
        wait = 0
        typical = _next_typical(part, needed, typical)
    return _join(parts)


def _refuse_offsets(raw: bytes, size: int) -> None:
    _check_offsets(np.frombuffer(raw, np.int64), size)


_engine.batch_classes(
    np.ndarray, DTYPE, np.dtype(np.uint8), np.dtype(np.int64), MessageBatch, BatchResult,
    _get_rest, _refuse_offsets,
)  # fmt: skip

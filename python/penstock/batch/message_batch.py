"""Arguments and results of batch calls: messages in arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from .. import _engine
from ..constants import ReasonCode
from ..errors import InvalidValue
from .arrow_columns import ARROW_COLUMNS, ArrowColumns
from .refusals import wrong_length, wrong_type
from .row_layout import DTYPE, Rows

if TYPE_CHECKING:
    from .._engine import Message


_DTYPES = {"descriptors": DTYPE, "bodies": np.dtype(np.uint8), "offsets": np.dtype(np.int64)}


def check_array(name: str, array: object) -> None:
    """Checks an array that a batch is to have. Raises InvalidType: 2004."""
    dtype = _DTYPES[name]
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
        kind = getattr(array, "dtype", type(array).__name__)
        wanted = "DTYPE" if dtype is DTYPE else dtype.name
        wrong_type(f"{name} must be a one-dimensional array of {wanted}, not {kind!s:.80}")
    if name != "descriptors" and not array.flags.c_contiguous:
        wrong_type("bodies and offsets must be contiguous")


class MessageBatch(_engine.BatchArrays):
    """Messages in arrays.

    Attributes:
        descriptors: one row of :data:`DTYPE` a message.
        bodies: the bytes of all bodies, uint8.
        offsets: int64, one more than messages: the start of each body and the end of the last one.

    The arrays of a batch that was got are created on first access, over its one block of memory.
    Each may be replaced by one of the same type; whether the three fit each other is checked when
    the batch is put or exported (2005).
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
            InvalidValue: 2005: the lengths do not match.
        """
        self.descriptors = descriptors
        self.bodies = bodies
        self.offsets = offsets
        check_lengths(self)

    @staticmethod
    def _made(
        descriptors: npt.NDArray[np.void],
        bodies: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
    ) -> MessageBatch:
        """A batch of arrays that are known to match, unchecked."""
        batch = MessageBatch.__new__(MessageBatch)
        batch.descriptors = descriptors
        batch.bodies = bodies
        batch.offsets = offsets
        return batch

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the arrays."""
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
            InvalidValue: 2046: unknown column.
        """
        if columns is None:
            return ArrowColumns(self, tuple(ARROW_COLUMNS.values()))
        for name in columns:
            if name not in ARROW_COLUMNS:
                raise InvalidValue(
                    ReasonCode.OPTIONS_ERROR,
                    f"no column {name!r}; there are {', '.join(ARROW_COLUMNS)}",
                )
        return ArrowColumns(self, tuple(ARROW_COLUMNS[name] for name in columns))

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
    """The result of put_batch().

    Attributes:
        count: messages put.
        warnings: how many of them got a warning, such as 2049.
        descriptors: a row a message, as it was stored; created on first access.
    """

    __slots__ = ()

    def __init__(self, count: int, warnings: int, descriptors: npt.NDArray[np.void]) -> None:
        """Made by put_batch()."""
        self.count = count
        self.warnings = warnings
        self.descriptors = descriptors

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the arguments of the constructor."""
        return type(self), (self.count, self.warnings, self.descriptors)

    def __len__(self) -> int:
        """The number of messages."""
        return self.count

    @property
    def numbers(self) -> npt.NDArray[np.uint64]:
        """Their message numbers; 0 for messages that are put one by one: to another queue manager,
        with reports on their arrival, and on queues that trigger or have a stream queue.
        """
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


def check_lengths(batch: MessageBatch) -> None:
    """Checks that there is one more offset than messages. Raises InvalidValue: 2005."""
    messages, offsets = len(batch.descriptors), len(batch.offsets)
    if offsets != messages + 1:
        wrong_length(f"{messages} messages need {messages + 1} offsets, not {offsets}")


def without_bodies(rows: Rows, count: int) -> MessageBatch:
    """A batch of descriptors alone."""
    return MessageBatch(rows[:count], np.empty(0, np.uint8), np.zeros(count + 1, np.int64))

"""The bodies of a batch that is put: from buffers, sequences, Arrow arrays to bytes and offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _engine
from .message_batch import MessageBatch, check_lengths
from .refusals import wrong_length, wrong_type


class _Bodies:
    """The bodies of a put: a buffer, private offsets, and the object that owns the buffer."""

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
    """A private copy. The core checks the order of the offsets row by row; check_offsets() names
    the first wrong one afterwards.
    """
    given = np.asarray(value)
    if given.ndim != 1 or given.dtype.kind not in "iu" or len(given) == 0:
        wrong_type(f"offsets must be a one-dimensional array of integers, not {value!r:.80}")
    offsets = given.astype(np.int64)
    if len(offsets) == 1:
        check_offsets(offsets, size)
    return offsets


def check_offsets(offsets: npt.NDArray[np.int64], size: int) -> None:
    """Raises InvalidValue: 2005: offsets that fall, or that leave the ``size`` bytes of bodies."""
    steps = np.diff(offsets)
    if offsets[0] < 0 or offsets[-1] > size or (steps < 0).any():
        at = int(np.argmax(steps < 0)) + 1 if (steps < 0).any() else 0 if offsets[0] < 0 else -1
        wrong_length(
            f"offset {int(offsets[at])} (at {at}) is out of order, or not within "
            f"{size} bytes of bodies"
        )


def _from_pair(buffer: Any, offsets: Any) -> _Bodies:
    try:
        view = memoryview(buffer)
    except TypeError as error:
        wrong_type(f"the buffer of the bodies must be bytes-like: {error}")
    if not view.c_contiguous:
        wrong_type("the buffer of the bodies must be contiguous")
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
                wrong_type(
                    f"body {index} must be bytes-like, not {type(body).__name__}: "
                    f"{body!r:.40}{hint}"
                )
        raise
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return _Bodies(joined, offsets)


def bodies_of(source: Any) -> _Bodies:
    """The bodies of what put_batch() takes. Raises InvalidType, InvalidValue: 2004, 2005."""
    if isinstance(source, MessageBatch):
        check_lengths(source)
        return _Bodies(source.bodies, _offsets_of(source.offsets, len(source.bodies)))
    if hasattr(source, "__arrow_c_array__"):
        bodies, raw, width, keeper = _engine.arrow_bodies(source)
        offsets = np.frombuffer(raw, np.int32 if width == 4 else np.int64)
        return _Bodies(bodies, _offsets_of(offsets, bodies.nbytes), keeper)
    if isinstance(source, tuple) and len(source) == 2 and _is_offsets(source[1]):
        return _from_pair(*source)
    if isinstance(source, (str, bytes, bytearray, memoryview)) or not isinstance(source, Sequence):
        wrong_type(
            "a batch is a MessageBatch, a sequence of bytes-like bodies, (buffer, int64 offsets) "
            f"or an Arrow array, not {type(source).__name__}"
        )
    return _from_sequence(source)


def refuse_offsets(raw: bytes, size: int) -> None:
    """check_offsets() for the binding, which has found wrong offsets in these bytes."""
    check_offsets(np.frombuffer(raw, np.int64), size)

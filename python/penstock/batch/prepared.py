"""Reading prepared units of work: their messages as a batch, in the order of the calls.

``QueueManager.browse_prepared`` imports this module; ``import penstock`` does not load NumPy.
:func:`prepared_chunks` is for programs that read much and keep nothing: the data source for Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import _engine
from ..constants import ReasonCode
from ..errors import InvalidType, InvalidValue
from .chunks import Fill, _Chunk, read_chunks
from .message_batch import MessageBatch
from .row_layout import DTYPE

if TYPE_CHECKING:
    from .._engine import Connection

__all__ = ["PreparedBatch", "browse_prepared", "prepared_chunks"]

_ROWS = 4096  # of one call, at most
_ROOM = 1 << 20  # bytes for the bodies of one call, at first
_CALL = 412  # offset of struct mqe_item.work: 1 for a message that the unit put


class PreparedBatch(MessageBatch):
    """Messages of a prepared unit.

    Attributes:
        is_put: for each message, True when the unit put it, False when it got it.
    """

    __slots__ = ("is_put",)

    def __init__(
        self,
        descriptors: npt.NDArray[np.void],
        bodies: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
    ) -> None:
        """Makes a batch of rows that the engine has filled in."""
        super().__init__(descriptors, bodies, offsets)
        raw = np.ascontiguousarray(descriptors).view(np.uint8).reshape(-1, DTYPE.itemsize)
        self.is_put: npt.NDArray[np.bool_] = raw[:, _CALL] != 0


def _bounds(first: int, last: int | None) -> int:
    """The number of messages wanted at most. Raises InvalidType, InvalidValue: 2046."""
    for name, value in (("first", first), ("last", last)):
        if value is None and name == "last":
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            text = f"{name} must be an integer, not {value!r:.40}"
            raise InvalidType(ReasonCode.OPTIONS_ERROR, text)
        if not 0 <= value < 2**63:
            raise InvalidValue(ReasonCode.OPTIONS_ERROR, f"{name} {value} is not 0 or more")
    if last is not None and last < first:
        text = f"the range of messages from {first} to {last} ends before it begins"
        raise InvalidValue(ReasonCode.OPTIONS_ERROR, text)
    return 2**63 if last is None else last - first


def browse_prepared(
    manager: Connection, xid: _engine.Xid, first: int, last: int | None
) -> PreparedBatch:
    """QueueManager.browse_prepared()."""
    left = _bounds(first, last)
    cursor = bytearray(first.to_bytes(8, "little")).ljust(_engine.PREPARED_CURSOR, b"\0")
    room = _ROOM
    rows: list[npt.NDArray[np.void]] = []
    bodies: list[npt.NDArray[np.uint8]] = []
    offsets = [np.zeros(1, np.int64)]
    while left:
        part = np.zeros(min(left, _ROWS), DTYPE)
        data, ends = np.empty(room, np.uint8), np.zeros(len(part) + 1, np.int64)
        count, needed = _engine.prepared_read(manager, xid, cursor, part, data, ends)
        if count == 0:
            if needed <= room:
                break
            room = needed
            continue
        rows.append(part[:count])
        bodies.append(data[: ends[count]])
        offsets.append(ends[1 : count + 1] + offsets[-1][-1])
        left -= count
    if not rows:
        if not left:  # an empty range: the unit must exist nevertheless
            _engine.prepared_read(manager, xid, cursor, *_no_room())
        return PreparedBatch(np.empty(0, DTYPE), np.empty(0, np.uint8), offsets[0])
    if len(rows) == 1:
        return PreparedBatch(rows[0], bodies[0], np.concatenate(offsets))
    joined = np.empty(sum(map(len, rows)), DTYPE)  # concatenate() would repack them
    at = 0
    for part in rows:
        whole = joined.view(np.uint8).reshape(-1, DTYPE.itemsize)
        whole[at : at + len(part)] = part.view(np.uint8).reshape(-1, DTYPE.itemsize)
        at += len(part)
    return PreparedBatch(joined, np.concatenate(bodies), np.concatenate(offsets))


def prepared_chunks(
    manager: Connection,
    xid: _engine.Xid,
    first: int,
    last: int,
    fill: Fill[_Chunk],
    rows: int,
    room: int,
) -> Iterator[_Chunk]:
    """Yields the messages in chunks, as :func:`.chunks.read_chunks` does.

    Args:
        manager, xid, first, last: as of QueueManager.browse_prepared().
        fill, rows: as of read_chunks().
        room: bytes of a chunk's bodies at most, except for a single longer message.

    Raises:
        UnknownXid: 2255: there is no such unit, or it was resolved during the call.
    """
    cursor = bytearray(first.to_bytes(8, "little")).ljust(_engine.PREPARED_CURSOR, b"\0")

    def read(part: Any, bodies: Any, offsets: Any) -> tuple[int, int]:
        return _engine.prepared_read(manager, xid, cursor, part, bodies, offsets)

    return read_chunks(read, fill, _bounds(first, last), rows, room, room)


def _no_room() -> tuple[npt.NDArray[np.void], npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    return np.zeros(1, DTYPE), np.empty(0, np.uint8), np.zeros(2, np.int64)

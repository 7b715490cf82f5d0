"""A queue manager's files written anew under another identity and timeline.

The identity (qm_id) is in what binds the files together: headers, the hashes of flush batches, the
checksums of a checkpoint's blocks, the tags of identifiers in it. Records do not depend on it, so
everything that a restart would find (messages with their numbers and BackoutCounts, definitions,
prepared units of work) is the same under the new one, and no file of the one identity is taken for
one of the other.

    segment      header: qm_id, timeline, crc; each batch: hash
    checkpoint   header: qm_id, crc; blocks: crc, and the tags of MESSAGES and UNIT_PUTS
    HEAD         made anew
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

from .. import _engine
from ..journal import layout as L
from ..journal.checksum import tag
from ..journal.message_columns import messages_of
from ..journal.records import descriptor_of
from ..journal.segment import Segment, round_up
from ..journal.siphash import siphash_each
from ..journal.store import View
from .backup_files import Pace, copy_file, open_source

_ID = slice(32, 48)  # of qm_id in every header
_TIMELINE = slice(120, 128)  # in a segment's header
_HASHED = L.BATCH_HEADER - 8  # bytes of a batch header before its hash
_LENGTH_AT = 4  # in a batch header
_TAGS = ("msg_id", "correl_id", "group_id")
_FIRST_TAG = 4  # of the columns of a MESSAGES block
_BLOCK_LENGTH_AT = 16  # in a block's header


def _crc(data: bytes | bytearray, seed: int = 0) -> bytes:
    return _engine.crc32c(data, seed).to_bytes(4, "little")


def _page(page: bytes, qm_id: bytes) -> bytearray:
    """A header page under the new identity, without its checksum."""
    changed = bytearray(page[: L.PAGE])
    changed[_ID] = qm_id
    return changed


def rekey_segment(
    segment: Segment,
    source: Path,
    target: Path,
    end_lsn: int,
    whole: bool,
    identity: tuple[bytes, int],
    progress: Callable[[int], None],
) -> None:
    """Copies the batches below ``end_lsn``, which are good, and writes what binds them anew.

    whole: what lies behind them too. identity: qm_id and timeline.
    """
    qm_id, timeline = identity
    end = end_lsn - segment.base_lsn
    fd = open_source(source)
    try:
        copy_file(fd, target, None if whole else end, Pace(None), progress)
        page = _page(os.pread(fd, L.PAGE, 0), qm_id)
    finally:
        os.close(fd)
    page[_TIMELINE] = struct.pack("<Q", timeline)
    page[-4:] = _crc(page[:-4])
    fd = os.open(target, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.pwrite(fd, page, 0)
        _rehash(fd, segment, end, qm_id)
        os.fsync(fd)
    finally:
        os.close(fd)


def _rehash(fd: int, segment: Segment, end: int, qm_id: bytes) -> None:
    """The hash of each batch header from the first one to ``end``, an offset."""
    where = qm_id + struct.pack("<QQ", segment.number, segment.generation)
    offsets, messages = [], []
    at = L.PAGE
    while at < end:
        header = os.pread(fd, L.BATCH_HEADER, at)
        offsets.append(at)
        messages.append(where + header[:_HASHED])
        length = int.from_bytes(header[_LENGTH_AT : _LENGTH_AT + 4], "little")
        at += round_up(max(length, L.BATCH_HEADER))
    for offset, value in zip(offsets, siphash_each(segment.salt, messages), strict=True):
        os.pwrite(fd, value.to_bytes(8, "little"), offset + _HASHED)


def rekey_checkpoint(data: bytes, view: View, qm_id: bytes) -> bytes:
    """A checkpoint, which is whole, under the new identity."""
    page = _page(data, qm_id)
    page[-4:] = _crc(page[:-4])
    begin_lsn = int(L.overlay("psc_header", data)[0].begin_lsn)
    seed = _engine.crc32c(qm_id + struct.pack("<Q", begin_lsn))
    parts: list[bytes | bytearray] = [page]
    at = L.PAGE
    while at < len(data):
        block = L.overlay("psc_block", data, at)[0]
        length, kind = int(block.length), int(block.type)
        start = at + L.BLOCK_HEADER
        payload = data[start : start + length]
        if kind in (L.BLOCK_MESSAGES, L.BLOCK_UNIT_PUTS):
            payload = _retagged_columns(payload, int(block.count), view, qm_id)
        header = bytearray(data[at:start])
        struct.pack_into("<Q", header, _BLOCK_LENGTH_AT, len(payload))
        header[4:8] = _crc(header[8:] + payload, seed)
        parts += [header, payload, bytes(-len(payload) % 8)]
        at = start + (length + 7 & ~7)
    return b"".join(parts)


def _tags_of(view: View, number: int, lsn: int, qm_id: bytes) -> list[int]:
    """The tags of MsgId, CorrelId and GroupId in the record of a message."""
    record = view.record_at(lsn, (L.PUT, L.MOVED, L.TAKEN), number)
    descriptor = descriptor_of(record.sections())
    identifiers = [getattr(descriptor, name) for name in _TAGS]
    return [tag(identifier, qm_id) if any(identifier) else 0 for identifier in identifiers]


def _retagged_columns(payload: bytes, count: int, view: View, qm_id: bytes) -> bytes:
    """A block of messages: the columns of the tags are made anew, the others are as they were."""
    rows = messages_of(payload, count)
    pairs = zip(rows["number"].tolist(), rows["lsn"].tolist(), strict=True)
    tags = list(zip(*(_tags_of(view, number, lsn, qm_id) for number, lsn in pairs), strict=True))
    header = L.overlay("psc_columns", payload)[0]
    bases, widths = list(header.base), bytearray(L.raw(header.width))
    at = L.size_of("psc_columns")
    columns: list[bytes] = []
    for column, width in enumerate(bytes(widths)):
        end = at + -(-count * width // 8) * 8
        columns.append(payload[at:end])
        at = end
        if _FIRST_TAG <= column < _FIRST_TAG + len(_TAGS):
            values = tags[column - _FIRST_TAG]
            alike = len(set(values)) == 1
            bases[column], widths[column] = (values[0], 0) if alike else (0, 8)
            columns[-1] = b"" if alike else struct.pack(f"<{count}Q", *values)
    columns.append(payload[at:])  # due times, where a message has one
    head = struct.pack(f"<{len(bases)}Q", *bases) + bytes(widths) + bytes([header.due_width])
    return head.ljust(L.size_of("psc_columns"), b"\0") + b"".join(columns)

"""Checkpoint files: header page, blocks, END block."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from . import checksum
from . import layout as L
from .errors import DamagedFile, UnsupportedFile
from .records import Record, take_record
from .segment import check_header_page

_NAME = re.compile(r"[0-9a-f]{16}\.psc")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A whole checkpoint whose CRCs hold.

    messages: NumPy records of ``struct psc_message``. image: PUT records, and CHUNK records before
    the PUT they belong to, of messages that an orderly end kept.
    """

    file: str
    qm_id: bytes
    begin_lsn: int
    begin_segment: int
    end_lsn: int
    next_number: int
    next_unit_id: int
    restart_epoch: int
    generation: int
    clean: bool
    has_image: bool
    created_us: int
    oldest_segment: int
    objects: list[Record] = field(repr=False)
    messages: npt.NDArray[Any] = field(repr=False)
    image: list[Record] = field(repr=False)

    def needs_segment(self) -> int:
        """Number of the oldest segment that must be present."""
        return min(self.begin_segment, self.oldest_segment)


def checkpoint_names(names: list[str]) -> list[str]:
    """The checkpoint files among ``names``, the newest first."""
    return sorted((name for name in names if _NAME.fullmatch(name)), reverse=True)


def read_checkpoint(file: str, data: bytes, qm_id: bytes | None) -> Checkpoint:
    """A checkpoint from the bytes of its file. Raises DamagedFile."""
    check_header_page(file, data[: L.PAGE], "psc_header", L.CHECKPOINT_MAGIC)
    h = L.overlay("psc_header", data)[0]
    own_id = L.raw(h.qm_id)
    if qm_id is not None and own_id != qm_id:
        raise DamagedFile(file, 32, "foreign", "belongs to another queue manager")
    if file.rsplit("/", 1)[-1] != f"{int(h.begin_lsn):016x}.psc":
        text = f"the name does not say its begin LSN {int(h.begin_lsn):016x}"
        raise DamagedFile(file, 48, "header", text)
    if h.end_lsn < h.begin_lsn or h.clean > 1 or h.has_image > h.clean:
        raise DamagedFile(file, 64, "header", "the header contradicts itself")
    for offset, what, value in (
        (72, "message number", int(h.next_number)),
        (80, "unit id", int(h.next_unit_id)),
    ):
        if not 0 < value < L.NUMBER_LIMIT:
            text = f"the next {what} is not between 1 and 2^63 - 1, but {value}"
            raise DamagedFile(file, offset, "header", text)
    blocks = _Blocks(file, data, own_id, int(h.begin_lsn))
    blocks.read_all()
    if blocks.end_lsn != h.end_lsn:
        raise DamagedFile(file, blocks.at, "totals", "END block and header name different end LSNs")
    if blocks.image and not h.has_image:
        raise DamagedFile(file, 108, "header", "IMAGE blocks where the header says there are none")
    return Checkpoint(
        file=file,
        qm_id=own_id,
        begin_lsn=int(h.begin_lsn),
        begin_segment=int(h.begin_segment),
        end_lsn=int(h.end_lsn),
        next_number=int(h.next_number),
        next_unit_id=int(h.next_unit_id),
        restart_epoch=int(h.restart_epoch),
        generation=int(h.generation),
        clean=bool(h.clean),
        has_image=bool(h.has_image),
        created_us=int(h.created_us),
        oldest_segment=int(h.oldest_segment),
        objects=blocks.objects,
        messages=blocks.all_messages(),
        image=blocks.image,
    )


class _Blocks:
    """Reads the blocks in order and keeps the totals that END must agree with."""

    def __init__(self, file: str, data: bytes, qm_id: bytes, begin_lsn: int) -> None:
        self.file = file
        self.data = data
        self.seed = checksum.crc32c(qm_id + struct.pack("<Q", begin_lsn))
        self.at = L.PAGE
        self.sequence = 0
        self.objects: list[Record] = []
        self.messages: list[npt.NDArray[Any]] = []
        self.image: list[Record] = []
        self.end_lsn = -1

    def all_messages(self) -> npt.NDArray[Any]:
        if not self.messages:
            return np.empty(0, dtype=L.dtype("psc_message"))
        return np.concatenate(self.messages)

    def fail(self, text: str, rule: str = "block", offset: int | None = None) -> DamagedFile:
        return DamagedFile(self.file, self.at if offset is None else offset, rule, text)

    def read_all(self) -> None:
        kind = 0
        while kind != L.BLOCK_END:
            kind = self._one()
        if self.at != len(self.data):
            raise self.fail(f"{len(self.data) - self.at} bytes after the END block", "file")

    def _one(self) -> int:
        if self.at + L.BLOCK_HEADER > len(self.data):
            raise self.fail("the file ends before its END block", "file")
        b = L.overlay("psc_block", self.data, self.at)[0]
        length, count, kind = int(b.length), int(b.count), int(b.type)
        if b.magic != L.BLOCK_MAGIC:
            raise self.fail("no block here")
        start = self.at + L.BLOCK_HEADER
        stop = start + (length + 7 & ~7)
        if length > L.BLOCK_MAX or stop > len(self.data):
            raise self.fail(f"block of {length} bytes exceeds the file or 1 MiB + 64 KiB")
        covered = memoryview(self.data)[self.at + 8 : start + length]
        if checksum.crc32c(covered, self.seed) != b.crc:
            raise self.fail("the block's CRC is wrong")
        if b.sequence != self.sequence:
            raise self.fail(f"block {int(b.sequence)} where block {self.sequence} should be")
        if any(self.data[start + length : stop]):
            raise self.fail("padding of the block is not zero", "reserved", start + length)
        self._take(kind, count, start, length)
        self.at = stop
        self.sequence += 1
        return kind

    def _take(self, kind: int, count: int, start: int, length: int) -> None:
        if kind == L.BLOCK_OBJECTS:
            self.objects += self._records(start, length, count, (L.OBJECT,))
        elif kind == L.BLOCK_MESSAGES:
            if length != count * L.size_of("psc_message"):
                raise self.fail(f"{count} messages in {length} bytes", "totals")
            part = self.data[start : start + length]
            self.messages.append(np.frombuffer(part, dtype=L.dtype("psc_message")))
        elif kind == L.BLOCK_IMAGE:
            self.image += self._records(start, length, count, (L.PUT, L.CHUNK))
        elif kind == L.BLOCK_END:
            self._check_totals(start, length)
        else:
            text = f"block type {kind} is not known to this reader"
            raise UnsupportedFile(self.file, self.at, "unsupported", text)

    def _records(self, start: int, length: int, count: int, types: tuple[int, ...]) -> list[Record]:
        starts, lengths = [], []
        at, end = start, start + length
        while at < end:
            size = int.from_bytes(self.data[at : at + 4], "little")
            if not L.RECORD_HEADER <= size <= L.RECORD_MAX or size % 8 or size > end - at:
                raise self.fail(f"record of {size} bytes does not fit its block", "record", at)
            starts.append(at)
            lengths.append(size)
            at += size
        if len(starts) != count:
            raise self.fail(f"{len(starts)} records, the block header says {count}", "totals")
        records = []
        crcs = checksum.record_crcs(self.data, starts, lengths)
        for at, size, crc in zip(starts, lengths, crcs, strict=True):
            if int.from_bytes(self.data[at + 4 : at + 8], "little") != crc:
                raise self.fail("the record's CRC is wrong", "record", at)
            record = take_record(self.file, at, 0, self.data[at : at + size])
            if record.type not in types:
                raise record.fail("does not belong into this block")
            records.append(record)
        return records

    def _check_totals(self, start: int, length: int) -> None:
        if length != L.size_of("psc_end"):
            raise self.fail(f"END block of {length} bytes")
        e = L.overlay("psc_end", self.data, start)[0]
        found = (
            self.sequence,
            len(self.objects),
            sum(len(part) for part in self.messages),
            len(self.image),
        )
        stated = (int(e.block_count), int(e.object_count), int(e.message_count), int(e.image_count))
        if stated != found:
            what = "blocks, objects, messages, image records"
            raise self.fail(f"END says {stated}, the file holds {found} ({what})", "totals")
        self.end_lsn = int(e.end_lsn)

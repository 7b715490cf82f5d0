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
from .carried import CarriedUnit, carried_units
from .errors import DamagedFile, UnsupportedFile
from .files import FileSet
from .message_columns import messages_of
from .records import Record, is_short, record_length, take_record
from .segment import check_header_page

_NAME = re.compile(r"[0-9a-f]{16}\.psc")
RESERVE = "checkpoint.reserve"  # room for one on a full disk; its bytes say nothing


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A whole checkpoint whose CRCs hold.

    messages: NumPy records of ``struct psc_message``. listed: the segments before ``begin_segment``
    that must exist, number -> generation, base LSN and end LSN. image: PUT records, and CHUNK
    records before the PUT they belong to, of messages that an orderly end kept.
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
    gone: list[Record] = field(repr=False)  # OBJECT_DELETE: generations that must not come back
    messages: npt.NDArray[Any] = field(repr=False)
    image: list[Record] = field(repr=False)
    listed: dict[int, tuple[int, int, int]] = field(repr=False)
    units_listed: bool  # units: every one that was not decided at begin_lsn
    units: list[CarriedUnit] = field(repr=False)


def checkpoint_names(names: list[str]) -> list[str]:
    """The checkpoint files among ``names``, the newest first."""
    return sorted((name for name in names if _NAME.fullmatch(name)), reverse=True)


def check_bytes(file: str, data: bytes) -> None:
    """Whether the bytes are what was written: checksums, lengths, order of blocks, padding, end.

    Raises DamagedFile when not; a restart then uses an older checkpoint. What the bytes say is not
    looked at: a file that contradicts itself is refused.
    """
    if len(data) < L.PAGE:
        raise DamagedFile(file, len(data), "file", "ends within the header page")
    h = L.overlay("psc_header", data)[0]
    if L.raw(h.magic) != L.CHECKPOINT_MAGIC:
        raise DamagedFile(file, 0, "header", f"does not begin with {L.CHECKPOINT_MAGIC.decode()}")
    if checksum.crc32c(memoryview(data)[: L.PAGE - 4]) != h.crc:
        raise DamagedFile(file, L.PAGE - 4, "header", "the header's CRC is wrong")
    blocks = _Blocks(file, data, L.raw(h.qm_id), int(h.begin_lsn))
    blocks.check_all()


def choose_checkpoint(files: FileSet) -> tuple[str, bytes, list[DamagedFile]]:
    """Path and bytes of the newest checkpoint that is whole, "" when there is none, and what is
    wrong with newer ones. Without one the replay begins with segment 1."""
    damaged: list[DamagedFile] = []
    for name in checkpoint_names(files.names("checkpoint")):
        path = f"checkpoint/{name}"
        size = files.size(path)
        try:
            data = files.read(path, 0, size)
            check_bytes(path, data)
        except DamagedFile as error:
            damaged.append(error)
        else:
            return path, data, damaged
    return "", b"", damaged


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
    if h.end_lsn < h.begin_lsn or max(h.clean, h.units_listed) > 1 or h.has_image > h.clean:
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
        gone=blocks.gone,
        messages=blocks.all_messages(),
        image=blocks.image,
        listed=_listed(file, blocks, int(h.begin_segment), int(h.begin_lsn), int(h.oldest_segment)),
        units_listed=bool(h.units_listed),
        units=carried_units(blocks.fail, h, blocks.units, blocks.operations, blocks.unit_puts),
    )


def readable_blocks(
    file: str, data: bytes, qm_id: bytes | None
) -> tuple[list[Record], list[dict[str, Any]]]:
    """OBJECT records and message lines of those blocks of a damaged checkpoint that are whole.

    Raises DamagedFile: neither its name nor its header says what its blocks' CRCs begin with.
    """
    name = file.rsplit("/", 1)[-1]
    if qm_id is None:
        raise DamagedFile(file, 32, "header", "the queue manager's id is not known")
    blocks = _Blocks(file, data, qm_id, int(name[:16], 16))
    step = L.size_of("psc_block") & 7 or 8
    while blocks.at + L.BLOCK_HEADER <= len(data):
        before = blocks.at
        blocks.sequence = int(L.overlay("psc_block", data, before)[0].sequence)
        try:
            blocks._one()
        except DamagedFile:
            blocks.at = max(before, blocks.at) + step
    names = data_names("psc_message")
    lines = [dict(zip(names, row, strict=True)) for row in blocks.all_messages().tolist()]
    return blocks.objects, lines


def data_names(struct_name: str) -> list[str]:
    """Names of the fields of a struct."""
    return [name for name, _, _ in L.fields(struct_name)]


def _listed(
    file: str, blocks: _Blocks, begin: int, begin_lsn: int, oldest: int
) -> dict[int, tuple[int, int, int]]:
    """The lines of the SEGMENTS blocks. Raises DamagedFile."""
    listed: dict[int, tuple[int, int, int]] = {}
    before = (0, 0, 0)  # number, generation, end
    for number, generation, base, end in blocks.segments:
        sound = before[0] < number < begin and generation > before[1] and base >= before[2]
        if not sound or base % L.PAGE or end % L.PAGE or not base < end <= begin_lsn:
            text = f"segment {number} is listed, which cannot be needed"
            raise DamagedFile(file, L.PAGE, "segments", text)
        before = (number, generation, end)
        listed[number] = (generation, base, end)
    if oldest != min(listed, default=begin):
        text = f"segment {oldest} is named as the oldest, {min(listed, default=begin)} is listed"
        raise DamagedFile(file, 120, "header", text)
    return listed


class _Blocks:
    """Reads the blocks in order and keeps the totals that END must agree with."""

    def __init__(self, file: str, data: bytes, qm_id: bytes, begin_lsn: int) -> None:
        self.file = file
        self.data = data
        self.seed = checksum.crc32c(qm_id + struct.pack("<Q", begin_lsn))
        self.at = L.PAGE
        self.sequence = 0
        self.objects: list[Record] = []
        self.gone: list[Record] = []
        self.messages: list[npt.NDArray[Any]] = []
        self.image: list[Record] = []
        self.segments: list[tuple[int, int, int, int]] = []
        self.units: list[bytes] = []
        self.operations: list[bytes] = []
        self.unit_puts: list[dict[str, Any]] = []
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

    def check_all(self) -> None:
        """Only the bytes of the blocks."""
        kind = 0
        while kind != L.BLOCK_END:
            kind, _, _, _, self.at = self._block()
            self.sequence += 1
        if self.at != len(self.data):
            raise self.fail(f"{len(self.data) - self.at} bytes after the END block", "file")

    def _one(self) -> int:
        kind, count, start, length, stop = self._block()
        self._take(kind, count, start, length)
        self.at = stop
        self.sequence += 1
        return kind

    def _block(self) -> tuple[int, int, int, int, int]:
        """Type, count, begin and length of the payload, and where the next block begins."""
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
        return kind, count, start, length, stop

    def _take(self, kind: int, count: int, start: int, length: int) -> None:
        if kind == L.BLOCK_OBJECTS:
            found = self._records(start, length, count, (L.OBJECT, L.OBJECT_DELETE))
            self.objects += [record for record in found if record.type == L.OBJECT]
            self.gone += [record for record in found if record.type == L.OBJECT_DELETE]
        elif kind == L.BLOCK_MESSAGES:
            self.messages.append(self._messages(start, length, count))
        elif kind == L.BLOCK_IMAGE:
            self.image += self._records(start, length, count, (L.PUT, L.CHUNK))
        elif kind == L.BLOCK_SEGMENTS:
            for raw in self._lines("psc_segment", start, length, count):
                s = L.overlay("psc_segment", raw)[0]
                line = (int(s.number), int(s.generation), int(s.base_lsn), int(s.end_lsn))
                self.segments.append(line)
        elif kind == L.BLOCK_UNITS:
            self.units += self._lines("psc_unit", start, length, count)
        elif kind == L.BLOCK_OPERATIONS:
            self.operations += self._lines("psc_operation", start, length, count)
        elif kind == L.BLOCK_UNIT_PUTS:
            names = data_names("psc_message")
            rows = self._messages(start, length, count).tolist()
            self.unit_puts += [dict(zip(names, row, strict=True)) for row in rows]
        elif kind == L.BLOCK_END:
            self._check_totals(start, length)
        else:
            text = f"block type {kind} is not known to this reader"
            raise UnsupportedFile(self.file, self.at, "unsupported", text)

    def _messages(self, start: int, length: int, count: int) -> npt.NDArray[Any]:
        try:
            return messages_of(self.data[start : start + length], count)
        except ValueError as error:
            raise self.fail(str(error), "totals") from None

    def _lines(self, name: str, start: int, length: int, count: int) -> list[bytes]:
        size = L.size_of(name)
        if length != count * size:
            raise self.fail(f"{count} lines of {name} in {length} bytes", "totals")
        return [self.data[at : at + size] for at in range(start, start + length, size)]

    def _records(self, start: int, length: int, count: int, types: tuple[int, ...]) -> list[Record]:
        starts, lengths = [], []
        at, end = start, start + length
        while at < end:
            size = record_length(self.data, at)
            whole = L.RECORD_HEADER <= size <= min(L.RECORD_MAX, end - at)
            if not whole or is_short(self.data, at):
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
            len(self.objects) + len(self.gone),
            sum(len(part) for part in self.messages),
            len(self.image),
            len(self.segments),
            len(self.units),
            len(self.operations),
            len(self.unit_puts),
        )
        stated = (
            int(e.block_count),
            int(e.object_count),
            int(e.message_count),
            int(e.image_count),
            int(e.segment_count),
            int(e.unit_count),
            int(e.operation_count),
            int(e.unit_put_count),
        )
        if stated != found:
            what = "blocks, objects, messages, image records, segments, units, operations, puts"
            raise self.fail(f"END says {stated}, the file holds {found} ({what})", "totals")
        self.end_lsn = int(e.end_lsn)

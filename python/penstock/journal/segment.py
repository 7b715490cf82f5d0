"""Segments: the header page, the chain of flush batches, and its end.

The tail scan walks the batches by their lengths first and checks all CRCs of the range together
afterwards; only the part before the first batch that fails is valid. The scan reports where the
chain ends and why, and which durable marks lie above; store.py decides between a torn tail and
damage, by the rules of FORMAT.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from . import checksum
from . import layout as L
from .errors import DamagedFile, UnsupportedFile
from .records import Record, take_record


@dataclass(frozen=True, slots=True)
class Segment:
    """The checked header of a segment file."""

    file: str
    number: int
    generation: int
    restart_epoch: int
    base_lsn: int
    size: int
    prev_end_lsn: int
    created_us: int
    qm_id: bytes
    minor: int
    compatible: int

    @property
    def end_lsn(self) -> int:
        """LSN after the last byte of the file."""
        return self.base_lsn + self.size


def segment_name(number: int) -> str:
    """``journal/0000000001.psj``."""
    return f"journal/{number:010d}.psj"


def check_header_page(file: str, page: bytes, struct_name: str, magic: bytes) -> None:
    """Checks the common part of segment and checkpoint headers. Raises DamagedFile."""
    if len(page) < L.PAGE:
        raise DamagedFile(file, len(page), "file", f"{len(page)} bytes, a header has {L.PAGE}")
    h = L.overlay(struct_name, page)[0]
    if L.raw(h.magic) != magic:
        raise DamagedFile(file, 0, "header", f"does not begin with {magic.decode()}")
    if checksum.crc32c(memoryview(page)[: L.PAGE - 4]) != h.crc:
        raise DamagedFile(file, L.PAGE - 4, "header", "the header's CRC is wrong")
    if h.major != L.MAJOR:
        text = f"format version {h.major}.{h.minor}, this reader knows {L.MAJOR}"
        raise UnsupportedFile(file, 8, "unsupported", text)
    if h.incompatible:
        text = f"incompatible features {int(h.incompatible):#x}, this reader knows none"
        raise UnsupportedFile(file, 24, "unsupported", text)
    if h.header_size != L.PAGE:
        raise DamagedFile(file, 12, "header", f"header size {h.header_size}")
    if any(L.raw(h.zero)):
        raise DamagedFile(file, 104, "reserved", "reserved bytes of the header are not zero")


def read_segment(file: str, page: bytes, file_size: int, qm_id: bytes | None) -> Segment:
    """The header of a segment from its first page. Raises DamagedFile.

    qm_id: the queue manager's; None accepts any.
    """
    check_header_page(file, page, "psj_segment", L.SEGMENT_MAGIC)
    h = L.overlay("psj_segment", page)[0]
    segment = Segment(
        file=file,
        number=int(h.segment_no),
        generation=int(h.generation),
        restart_epoch=int(h.restart_epoch),
        base_lsn=int(h.base_lsn),
        size=int(h.size),
        prev_end_lsn=int(h.prev_end_lsn),
        created_us=int(h.created_us),
        qm_id=L.raw(h.qm_id),
        minor=int(h.minor),
        compatible=int(h.compatible),
    )
    if qm_id is not None and segment.qm_id != qm_id:
        raise DamagedFile(file, 32, "foreign", "belongs to another queue manager")
    if segment.size != file_size:
        text = f"the file has {file_size} bytes, its header says {segment.size}"
        raise DamagedFile(file, 80, "file", text)
    if segment.size % L.PAGE or segment.size < L.MIN_SEGMENT:
        raise DamagedFile(file, 80, "header", f"segment size {segment.size}")
    if segment.base_lsn % L.PAGE or segment.end_lsn >= 1 << 63:
        raise DamagedFile(file, 72, "header", f"base LSN {segment.base_lsn}")
    if segment.prev_end_lsn % L.PAGE or segment.prev_end_lsn > segment.base_lsn:
        text = f"previous segment ends at {segment.prev_end_lsn}"
        raise DamagedFile(file, 88, "header", text)
    if not segment.number or (segment.number == 1) != (segment.prev_end_lsn == 0):
        raise DamagedFile(file, 48, "header", f"segment number {segment.number}")
    return segment


@dataclass(frozen=True, slots=True)
class Batch:
    """A flush batch whose CRCs hold. ``length`` is without the padding."""

    file: str
    offset: int
    lsn: int
    durable_lsn: int
    time_us: int
    length: int
    record_count: int
    crc: int

    @property
    def end_lsn(self) -> int:
        """LSN of the page after the batch."""
        return self.lsn + round_up(self.length)


def round_up(size: int) -> int:
    """To a whole page."""
    return size + L.PAGE - 1 & -L.PAGE


class Checker:
    """Computes the CRCs of a scan. Tests of damage replace it by one that remembers."""

    def record_crcs(
        self, data: bytes, starts: Sequence[int], lengths: Sequence[int]
    ) -> Sequence[int]:
        """See checksum.record_crcs."""
        return checksum.record_crcs(data, starts, lengths)

    def batch_crc(self, seed: int, header: bytes, record_crcs: bytes) -> int:
        """CRC of a batch: the header's bytes 8..63, then the CRC fields of its records."""
        return checksum.crc32c(header + record_crcs, seed)


@dataclass(slots=True)
class Scan:
    """The chain of valid batches of one segment, from ``start`` to ``end`` (offsets in ``data``).

    problem: why the page at ``end`` is not a batch; None when the chain reached its limit.
    written: True when that page belongs to this use of the file, so that something was lost there.
    """

    segment: Segment
    data: bytes
    start: int
    end: int
    limit: int
    batches: list[Batch]
    starts: list[int]
    problem: str | None
    problem_offset: int
    written: bool

    @property
    def end_lsn(self) -> int:
        """LSN where the chain ends."""
        return self.segment.base_lsn + self.end

    @property
    def records_count(self) -> int:
        """Records in the valid batches."""
        return len(self.starts)

    def record(self, start: int) -> Record:
        """The record that begins at offset ``start``, one of ``starts``."""
        (length,) = struct.unpack_from("<I", self.data, start)
        lsn = self.segment.base_lsn + start
        return take_record(self.segment.file, start, lsn, self.data[start : start + length])

    def records(self) -> Iterator[Record]:
        """All records of the valid batches, in order."""
        for start in self.starts:
            yield self.record(start)

    def by_batch(self) -> Iterator[tuple[Batch, list[int]]]:
        """Each batch with the offsets of its records."""
        at = 0
        for batch in self.batches:
            yield batch, self.starts[at : at + batch.record_count]
            at += batch.record_count


_HEADER = struct.Struct("<IIQQQIIQQQ")  # psj_batch; a test holds it against the declaration


def _walk_batch(
    segment: Segment, data: bytes, words: memoryview, offset: int, limit: int
) -> tuple[Batch, list[int], list[int]] | tuple[str, int]:
    """The batch at ``offset`` by its lengths alone: (batch, starts, lengths), or the error."""
    if offset + L.BATCH_HEADER > limit:
        return "no room for a batch", offset
    magic, crc, lsn, durable, time_us, length, count, number, generation, zero = (
        _HEADER.unpack_from(data, offset)
    )
    if magic != L.BATCH_MAGIC:
        return "no batch here", offset
    if lsn != segment.base_lsn + offset:
        return f"batch of LSN {lsn} lies at LSN {segment.base_lsn + offset}", offset
    if number != segment.number or generation != segment.generation:
        return f"batch of segment {number}, generation {generation}", offset
    if zero or durable > lsn:
        return "batch header contradicts itself", offset
    end = offset + length
    if length < L.BATCH_HEADER or length % 8 or offset + round_up(length) > limit:
        return f"batch of {length} bytes does not fit", offset
    starts, lengths = [], []
    at = offset + L.BATCH_HEADER
    while at < end:
        size = words[at >> 2]
        if not L.RECORD_HEADER <= size <= L.RECORD_MAX or size % 8 or size > end - at:
            return f"record of {size} bytes does not fit its batch", at
        starts.append(at)
        lengths.append(size)
        at += size
    if len(starts) != count:
        return f"{len(starts)} records, the batch header says {count}", offset
    batch = Batch(segment.file, offset, lsn, durable, time_us, length, count, crc)
    return batch, starts, lengths


def _seed(segment: Segment) -> int:
    tail = struct.pack("<QQ", segment.number, segment.generation)
    return checksum.crc32c(segment.qm_id + tail)


def _batch_crc_holds(
    checker: Checker, seed: int, data: bytes, batch: Batch, starts: Sequence[int]
) -> bool:
    fields = b"".join([data[at + 4 : at + 8] for at in starts])
    header = data[batch.offset + 8 : batch.offset + L.BATCH_HEADER]
    # the seed's last part, the LSN, is the header's own first field
    return checker.batch_crc(seed, header[:8] + header, fields) == batch.crc


def scan_segment(
    segment: Segment,
    data: bytes,
    start: int = L.PAGE,
    limit: int | None = None,
    checker: Checker | None = None,
) -> Scan:
    """Walks the batches of ``data`` (a copy of the whole file) from ``start`` to ``limit``.

    limit: offset that no batch may cross: the file's size, or the end that its successor gives.
    """
    checker = checker or Checker()
    limit = segment.size if limit is None else limit
    words = memoryview(data).cast("I")
    found: list[tuple[Batch, int]] = []
    starts: list[int] = []
    lengths: list[int] = []
    end, problem, problem_offset = start, None, start
    while end < limit:
        step = _walk_batch(segment, data, words, end, limit)
        if isinstance(step[0], str):
            problem, problem_offset = step[0], int(step[1])
            break
        batch, batch_starts, batch_lengths = step
        found.append((batch, len(starts)))
        starts += batch_starts
        lengths += batch_lengths
        end += round_up(batch.length)
    crcs = checker.record_crcs(data, starts, lengths)
    seed = _seed(segment)
    bad_record = next((i for i, at in enumerate(starts) if words[(at >> 2) + 1] != crcs[i]), None)
    batches: list[Batch] = []
    for batch, first in found:
        last = first + batch.record_count
        holds = _batch_crc_holds(checker, seed, data, batch, starts[first:last])
        if holds and (bad_record is None or bad_record >= last):
            batches.append(batch)
            continue
        end, problem_offset = batch.offset, batch.offset
        problem = "the batch's CRC is wrong"
        if holds and bad_record is not None:
            problem, problem_offset = "the record's CRC is wrong", starts[bad_record]
        del starts[first:]
        break
    written = problem is not None and _of_this_use(segment, data, end)
    return Scan(
        segment=segment,
        data=data,
        start=start,
        end=end,
        limit=limit,
        batches=batches,
        starts=starts,
        problem=problem,
        problem_offset=problem_offset,
        written=written,
    )


def _of_this_use(segment: Segment, data: bytes, offset: int) -> bool:
    """Whether the page at ``offset`` has a batch header of the current use of the file."""
    if offset + L.BATCH_HEADER > len(data):
        return False
    fields = _HEADER.unpack_from(data, offset)
    expected = (L.BATCH_MAGIC, segment.base_lsn + offset, segment.generation)
    return (fields[0], fields[2], fields[8]) == expected


def newest_mark(segment: Segment, data: bytes, start: int) -> tuple[int, int]:
    """(durable mark, offset of its header) among the batch headers at or after ``start``.

    Every sector is checked, because a misplaced write may have moved a header; a header counts by
    its own fields, because the records that its CRC covers may be damaged (FORMAT.md, "Durable
    marks"). (0, start) when there is none.
    """
    best = (0, start)
    first = start + (-start % L.SECTOR)
    heads = np.frombuffer(data, dtype="<u4")[first // 4 :: L.SECTOR // 4]
    for k in np.flatnonzero(heads == L.BATCH_MAGIC).tolist():
        offset = first + k * L.SECTOR
        _, _, lsn, durable, _, length, _, number, generation, zero = _HEADER.unpack_from(
            data, offset
        )
        if number != segment.number or generation != segment.generation or zero:
            continue
        if lsn % L.PAGE or not segment.base_lsn + L.PAGE <= lsn < segment.end_lsn:
            continue
        if durable > lsn or length < L.BATCH_HEADER or length % 8:
            continue
        if durable > best[0]:
            best = (durable, offset)
    return best

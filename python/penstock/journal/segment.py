"""Segments: the header page, the chain of flush batches, and its end.

The tail scan walks the batches by their lengths first and checks all CRCs of the range together
afterwards; only the part before the first batch that fails is valid. The scan reports where the
chain ends and why, and which durable marks lie above; store.py decides between a torn tail and
damage, by the rules of FORMAT.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from . import checksum
from . import layout as L
from .errors import DamagedFile, UnsupportedFile
from .records import (
    Record,
    common_distance,
    is_common,
    is_short,
    record_length,
    take_record,
    take_short,
)
from .siphash import siphash, siphash_each


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
    salt: bytes
    timeline: int
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
    """Checks the common part of headers of segments and checkpoints, and of pages of HEAD. Raises
    DamagedFile."""
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
        salt=L.raw(h.salt),
        timeline=int(h.timeline),
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
    """A flush batch whose checksums hold. ``length`` is without the padding."""

    file: str
    offset: int
    lsn: int
    durable_lsn: int
    time_us: int
    length: int
    record_count: int

    @property
    def end_lsn(self) -> int:
        """LSN of the page after the batch."""
        return self.lsn + round_up(self.length)


def round_up(size: int) -> int:
    """To a whole page."""
    return size + L.PAGE - 1 & -L.PAGE


class Checker:
    """Computes the checksums of a scan. Tests of damage replace it by one that remembers."""

    def record_crcs(
        self, data: bytes, starts: Sequence[int], lengths: Sequence[int]
    ) -> Sequence[int]:
        """See checksum.record_crcs."""
        return checksum.record_crcs(data, starts, lengths)

    def hashes(self, salt: bytes, messages: Sequence[bytes]) -> Sequence[int]:
        """The SipHash of each message."""
        return siphash_each(salt, messages)


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
        length = record_length(self.data, start)
        lsn, data = self.segment.base_lsn + start, self.data[start : start + length]
        if not is_short(data):
            return take_record(self.segment.file, start, lsn, data)
        common = start - common_distance(data)
        first = self.data[common : common + record_length(self.data, common)]
        return take_short(self.segment.file, start, lsn, data, first)

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
    magic, length, lsn, durable, time_us, count, zero, number, _, _ = _HEADER.unpack_from(
        data, offset
    )
    if magic != L.BATCH_MAGIC:
        return "no batch here", offset
    if lsn != segment.base_lsn + offset:
        return f"batch of LSN {lsn} lies at LSN {segment.base_lsn + offset}", offset
    if number != segment.number:
        return f"batch of segment {number}", offset
    if zero or durable > lsn:
        return "batch header contradicts itself", offset
    end = offset + length
    if length < L.BATCH_HEADER or length % 8 or offset + round_up(length) > limit:
        return f"batch of {length} bytes does not fit", offset
    starts, lengths = [], []
    at = offset + L.BATCH_HEADER
    while at < end:
        size = (words[at >> 2] & 0xFFFF) * 8
        short = words[at >> 2] >> 24 & L.FLAG_SHORT
        least = L.RECORD_MIN if short else L.RECORD_HEADER
        if not least <= size <= L.RECORD_MAX or size > end - at:
            return f"record of {size} bytes does not fit its batch", at
        if short and not _has_common(data, words, at, at - offset - L.BATCH_HEADER):
            return "a short record without its COMMON record", at
        starts.append(at)
        lengths.append(size)
        at += size
    if len(starts) != count:
        return f"{len(starts)} records, the batch header says {count}", offset
    batch = Batch(segment.file, offset, lsn, durable, time_us, length, count)
    return batch, starts, lengths


def _has_common(data: bytes, words: memoryview, at: int, before: int) -> bool:
    """Whether a COMMON record lies where the short one says, in the ``before`` bytes before it."""
    distance = words[(at >> 2) + 2]
    if distance % 8 or not L.RECORD_HEADER <= distance <= before:
        return False
    return is_common(data, at - distance, distance)


_HASHED = L.BATCH_HEADER - 8  # bytes of a batch header in front of its hash


def _header_message(segment: Segment, data: bytes, offset: int) -> bytes:
    """What the hash of the batch header at ``offset`` covers."""
    where = struct.pack("<QQ", segment.number, segment.generation)
    return segment.qm_id + where + data[offset : offset + _HASHED]


def _field(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _headers_hold(checker: Checker, segment: Segment, data: bytes, at: list[int]) -> list[bool]:
    """For each batch header whether its hash is right: it was written here, in this use. Without a
    salt nobody can tell (segment_from_batches)."""
    if not segment.salt:
        return [True] * len(at)
    found = checker.hashes(segment.salt, [_header_message(segment, data, k) for k in at])
    return [_field(data, k + _HASHED) == h for k, h in zip(at, found, strict=True)]


def _records_hold(
    checker: Checker, segment: Segment, data: bytes, starts: Mapping[int, Sequence[int]]
) -> list[bool]:
    """For each batch (offset -> its records) whether the CRC fields are those it was written with.

    The CRCs themselves are checked apart.
    """
    if not segment.salt:
        return [True] * len(starts)
    messages = [b"".join([data[r + 4 : r + 8] for r in records]) for records in starts.values()]
    found = checker.hashes(segment.salt, messages)
    return [_field(data, k + _HASHED - 8) == h for k, h in zip(starts, found, strict=True)]


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
    offsets = [batch.offset for batch, _ in found]
    records = {b.offset: starts[first : first + b.record_count] for b, first in found}
    whole = _headers_hold(checker, segment, data, offsets)
    bound = _records_hold(checker, segment, data, records)
    bad_record = next((i for i, at in enumerate(starts) if words[(at >> 2) + 1] != crcs[i]), None)
    batches: list[Batch] = []
    for (batch, first), header, holds in zip(found, whole, bound, strict=True):
        last = first + batch.record_count
        if header and holds and (bad_record is None or bad_record >= last):
            batches.append(batch)
            continue
        end, problem_offset = batch.offset, batch.offset
        problem = "the hash of the batch header is wrong"
        if header:
            problem = "the batch's hash of its records is wrong"
        if header and holds and bad_record is not None:
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


def _is_header(segment: Segment, data: bytes, offset: int) -> bool:
    """Whether a batch header of this use of the file lies at ``offset``, wherever it belongs.

    Only the hash proves that: the body of a message may look like a header in all else.
    """
    if offset + L.BATCH_HEADER > len(data) or not segment.salt:
        return False
    magic, length, lsn, durable, _, _, zero, number, _, stored = _HEADER.unpack_from(data, offset)
    if magic != L.BATCH_MAGIC or number != segment.number or zero:
        return False
    if lsn % L.PAGE or not segment.base_lsn + L.PAGE <= lsn < segment.end_lsn:
        return False
    if durable > lsn or length < L.BATCH_HEADER or length % 8:
        return False
    return siphash(segment.salt, _header_message(segment, data, offset)) == int(stored)


def _of_this_use(segment: Segment, data: bytes, offset: int) -> bool:
    """Whether the page at ``offset`` has the header of a batch that belongs there."""
    return (
        _is_header(segment, data, offset)
        and _HEADER.unpack_from(data, offset)[2] == segment.base_lsn + offset
    )


def newest_mark(segment: Segment, data: bytes, start: int) -> tuple[int, int]:
    """(durable mark, offset of its header) among the batch headers at or after ``start``.

    Every sector is checked, because a misplaced write may have moved a header; a header counts by
    its own hash, because the records behind it may be damaged (FORMAT.md, "Durable marks").
    (0, start) when there is none.
    """
    best = (0, start)
    first = start + (-start % L.SECTOR)
    heads = np.frombuffer(data, dtype="<u4")[first // 4 :: L.SECTOR // 4]
    for k in np.flatnonzero(heads == L.BATCH_MAGIC).tolist():
        offset = first + k * L.SECTOR
        durable = int(_HEADER.unpack_from(data, offset)[3])
        if durable > best[0] and _is_header(segment, data, offset):
            best = (durable, offset)
    return best


def segment_from_batches(
    file: str, data: bytes, number: int, qm_id: bytes | None
) -> Segment | None:
    """The header of a segment whose header page is bad; None when nothing tells it.
    ``prev_end_lsn`` and ``restart_epoch`` are 0 (not known).

    Salt and generation are those of the bad page when the hash of any batch header holds with them:
    this proves the segment. Else they are lost, ``salt`` is empty and ``generation`` 0, and the
    first batch says where the segment lies.
    """
    data = data[: len(data) & -L.PAGE]
    heads = [_HEADER.unpack_from(data, at) for at in range(L.PAGE, len(data), L.PAGE)]
    found = [
        (at * L.PAGE, int(head[2]))
        for at, head in enumerate(heads, 1)
        if head[0] == L.BATCH_MAGIC and head[7] == number and at * L.PAGE <= head[2] < 1 << 62
    ]
    if not found:
        return None
    page = L.overlay("psj_segment", data)[0]
    bare = Segment(
        file=file, number=number, generation=int(page.generation), restart_epoch=0, base_lsn=0,
        size=len(data), prev_end_lsn=0, created_us=0, qm_id=qm_id or L.raw(page.qm_id),
        salt=L.raw(page.salt), timeline=0, minor=0, compatible=0,
    )  # fmt: skip
    for offset, lsn in found[:_ATTEMPTS]:
        segment = replace(bare, base_lsn=lsn - offset)
        if _of_this_use(segment, data, offset):
            return segment
        if _of_this_use(replace(segment, qm_id=L.raw(page.qm_id)), data, offset):
            return None  # another queue manager's
    bare = replace(bare, salt=b"", generation=0, base_lsn=found[0][1] - found[0][0])
    if found[0][0] == L.PAGE and scan_segment(bare, data).batches:
        return bare
    return None


_ATTEMPTS = 100  # batches of which none holds: the salt is lost
Lost = tuple[int, int, str]  # first byte in the file, first byte behind it, why


def surviving_scan(
    segment: Segment, data: bytes, limit: int | None, known: int
) -> tuple[Scan, list[Lost]]:
    """As scan_segment(), over damage: every record that is intact and known to be written.

    limit: as of scan_segment(). known: offset below which all batches were on the medium; durable
    marks of the batches found raise it. The Scan's ``starts`` has the records that survive; its
    ``batches`` are those whose hashes and CRCs hold. Without a salt nothing behind damage counts:
    it may be the body of a message.
    """
    data = data[: segment.size]
    data = data.ljust(round_up(len(data)), b"\0")
    whole = len(data)
    stop = whole if limit is None else min(limit, whole)
    first = scan_segment(segment, data, limit=stop)
    batches, starts = list(first.batches), list(first.starts)
    mark = newest_mark(segment, data, first.end)[0] - segment.base_lsn
    known = min(max(known, mark), stop if limit is not None else segment.size)
    lost: list[Lost] = []
    at = first.end
    if not segment.salt and at < min(stop, known):
        lost.append((at, min(stop, known), "behind damage nothing counts without the salt"))
        at = min(stop, known)
    while at < min(stop, known):
        kept = _kept_of_batch(segment, data, at, stop)
        if kept is not None:
            batch, good, bad = kept
            starts += good
            lost += [(begin, end, "the record's CRC is wrong") for begin, end in bad]
            at = batch.offset + round_up(batch.length)
        else:
            lost.append((at, at + L.PAGE, "no batch can be read here"))
            at += L.PAGE
        more = scan_segment(segment, data, start=min(at, stop), limit=stop)
        if more.end_lsn <= segment.base_lsn + known:
            batches += more.batches
            starts += more.starts
            at = max(at, more.end)
    if stop < known:
        lost.append((stop, known, "the file ends before its journal"))
    scan = Scan(
        segment=segment, data=data, start=first.start, end=max(at, first.end), limit=stop,
        batches=batches, starts=starts, problem=None, problem_offset=at, written=False,
    )  # fmt: skip
    return scan, _joined(lost)


def _kept_of_batch(
    segment: Segment, data: bytes, offset: int, limit: int
) -> tuple[Batch, list[int], list[tuple[int, int]]] | None:
    """A batch that fails, whose lengths fit: the records that are intact, and the others.

    One of its two hashes holds. That of the records proves their CRC fields, so each is judged by
    itself; where only that of the header holds, lengths may be wrong behind the first bad record.
    """
    step = _walk_batch(segment, data, memoryview(data).cast("I"), offset, limit)
    if isinstance(step[0], str):
        return None
    batch, starts, lengths = step
    checker = Checker()
    (fields_hold,) = _records_hold(checker, segment, data, {offset: starts})
    if not fields_hold and not _headers_hold(checker, segment, data, [offset])[0]:
        return None
    crcs = checker.record_crcs(data, starts, lengths)
    good: dict[int, None] = {}
    bad: list[tuple[int, int]] = []
    for start, length, crc in zip(starts, lengths, crcs, strict=True):
        whole = int.from_bytes(data[start + 4 : start + 8], "little") == crc
        if is_short(data, start):
            whole &= start - common_distance(data[start : start + L.RECORD_MIN]) in good
        if whole and (fields_hold or not bad):
            good[start] = None
        else:
            bad.append((start, start + length))
    return batch, list(good), bad


def _joined(lost: list[Lost]) -> list[Lost]:
    """Neighbouring stretches as one."""
    found: list[Lost] = []
    for begin, end, text in lost:
        if found and found[-1][1] == begin and found[-1][2] == text:
            found[-1] = (found[-1][0], end, text)
        else:
            found.append((begin, end, text))
    return found

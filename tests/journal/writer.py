"""A small writer of queue-manager files in pure Python, for tests of their readers.

It packs bytes with `struct` from the tables of csrc/FORMAT.md and shares only the CRC and the hash
with the reader, so that a wrong offset in the reader's declarations cannot hide. It keeps no index
and checks nothing: tests use it to write wrong files as well as right ones.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.journal.checksum import crc32c, tag
from penstock.journal.siphash import siphash

PAGE = 4096
PUT, GET, COMMIT, BACKOUT, CHUNK, MOVED, EXPIRE = 1, 2, 3, 4, 8, 9, 10
IMAGE_CONSUMED, OBJECT, OBJECT_DELETE, CLEAR = 12, 13, 14, 18
PREPARE, COMMIT_PREPARED, BACKOUT_PREPARED, TAKEN = 5, 6, 7, 19
MUST = 0x80
COMMITS, SHORT, UNDECIDED = 1, 2, 8
COMMON = 20
TIME = 1_700_000_000_000_000  # microseconds; every time in a written file derives from it
Units = Sequence[tuple[bytes, list[tuple[bytes, bytes]]]]  # of a checkpoint
QM_ID = bytes(range(16))
SALTS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
QM_TOML = f'qm_id = "{QM_ID.hex()}"\nname = "GOLD"\n'


def pad(data: bytes, to: int = 8) -> bytes:
    return data + bytes(-len(data) % to)


def columns(lines: list[bytes]) -> bytes:
    """The payload of a MESSAGES block with the messages of these lines, made with listed()."""
    rows = [list(struct.unpack("<7Q5IBBBxII8x", line)) for line in lines]
    dues = [int.from_bytes(line[-8:], "little") for line in lines]
    for row in rows:
        row[2] = (row[1] - row[2]) % (1 << 64)
    bases, widths, data = [], [], b""
    for at in range(17):
        values = [row[at] for row in rows]
        most = max(values) - min(values)
        width = next(size for size in (0, 1, 2, 4, 8) if most < 1 << 8 * size)
        width = max(width, at == 0)  # numbers that are the same are refused elsewhere
        bases.append(0 if width == 8 else min(values))
        widths.append(width)
        data += pad(b"".join((v - bases[-1]).to_bytes(8, "little")[:width] for v in values))
    due = 8 if any(dues) else 0
    data += struct.pack(f"<{len(dues)}Q", *dues) if due else b""
    return struct.pack("<17Q18B6x", *bases, *widths, due) + data


def section(number: int, data: bytes) -> bytes:
    return pad(struct.pack("<HHI", number, 0, len(data)) + data)


def record(
    kind: int,
    sections: bytes = b"",
    *,
    unit: int = 0,
    queue: tuple[int, int] = (0, 0),
    number: int = 0,
    flags: int = 0,
    must: int = MUST,
) -> bytes:
    head = struct.pack("<HBB", (32 + len(sections)) // 8, kind | must, flags)
    rest = struct.pack("<QIIQ", unit, *queue, number) + sections
    return head + struct.pack("<I", crc32c(head + rest)) + rest


def descriptor(
    number: int,
    *,
    priority: int = 4,
    placement: int | None = None,
    persistence: int = 1,
    expiry: int = 0,
    ext: bool = False,
    backout: int = 0,
    due: int = 0,
) -> bytes:
    return struct.pack(
        "<24s24sQQ6i8si12s28s4s32s4BIQ",
        b"AMQ GOLD" + number.to_bytes(16, "big"),
        bytes(16) + number.to_bytes(8, "little"),
        TIME + number,
        expiry,
        priority,
        0,
        8,
        0,
        546,
        1208,
        b"MQSTR   ",
        28,
        b"penstock".ljust(12),
        b"writer.py".ljust(28),
        b"    ",
        bytes(32),
        persistence,
        min(max(priority, 0), 9) if placement is None else placement,
        ext,
        2,
        backout,
        due,
    )


def extension(group: bytes = b"group".ljust(24, b"\0")) -> bytes:
    names = b"REPLY.QUEUE".ljust(48) + b"GOLD".ljust(48) + b"identity".ljust(32)
    return names + group + struct.pack("<4i3Q", 1, 0, 0, -1, 0, 0, 0)


def put(
    number: int,
    body: bytes = b"",
    *,
    queue: tuple[int, int] = (1, 1),
    unit: int = 0,
    flags: int = 0,
    ext: bool = False,
    chunked: tuple[int, int, int, int] | None = None,
    **fields: int,
) -> bytes:
    parts = section(1, descriptor(number, ext=ext, **fields))
    if ext:
        parts += section(2, extension())
    if chunked is not None:
        parts += section(7, struct.pack("<QQQII", *chunked, 0))
    else:
        parts += section(6, body)
    return record(PUT, parts, unit=unit, queue=queue, number=number, flags=flags)


def moved(
    number: int,
    body: bytes = b"",
    *,
    queue: tuple[int, int] = (1, 1),
    unit: int = 0,
    ext: bool = False,
    chunked: tuple[int, int, int, int] | None = None,
    flags: int | None = None,
    **fields: int,
) -> bytes:
    """A PUT, written anew; with a unit: one that is not decided."""
    was = put(number, body, queue=queue, unit=unit, ext=ext, chunked=chunked, **fields)
    if flags is None:
        flags = UNDECIDED if unit else 0
    return record(MOVED, was[32:], unit=unit, queue=queue, number=number, flags=flags)


def chunk(
    number: int, piece: bytes, prev: int, offset: int, total: int, index: int, unit: int = 0
) -> bytes:
    head = section(8, struct.pack("<QQQII", prev, offset, total, index, 0))
    parts = head + section(6, piece)
    return record(CHUNK, parts, unit=unit, queue=(1, 1), number=number)


def get(number: int, *, unit: int = 0, queue: tuple[int, int] = (1, 1), kind: int = GET) -> bytes:
    return record(kind, unit=unit, queue=queue, number=number)


def commit(unit: int, first_lsn: int, records: list[bytes]) -> bytes:
    running = crc32c(b"".join(r[4:8] for r in records))
    return record(
        COMMIT, section(9, struct.pack("<QII", first_lsn, len(records), running)), unit=unit
    )


def xid(format_id: int, gtrid: bytes, bqual: bytes = b"") -> bytes:
    return struct.pack("<iHH64s64s", format_id, len(gtrid), len(bqual), gtrid, bqual)


def prepare(
    unit: int,
    name: bytes,
    first_lsn: int,
    records: list[bytes],
    *,
    puts: int = 0,
    gets: int = 0,
    size: int = 0,
    lost: tuple[int, int] = (0, 0),
) -> bytes:
    running = crc32c(b"".join(r[4:8] for r in records))
    parts = section(13, name)
    parts += section(17, prepared(puts=puts, gets=gets, size=size, lost=lost))
    parts += section(9, struct.pack("<QII", first_lsn, len(records), running))
    return record(PREPARE, parts, unit=unit)


def prepared(
    *, puts: int = 0, gets: int = 0, size: int = 0, lost: tuple[int, int] = (0, 0)
) -> bytes:
    """A ps_prepared."""
    return struct.pack("<QQIIII", TIME, size, puts, gets, *lost)


def end_prepared(kind: int, *units: int) -> bytes:
    return record(kind, section(16, struct.pack(f"<{len(units)}Q", *units)))


def taken(
    number: int,
    body: bytes,
    before: int,
    *,
    unit: int,
    queue: tuple[int, int] = (1, 1),
    chunked: tuple[int, int, int, int] | None = None,
) -> bytes:
    parts = section(1, descriptor(number, persistence=0, backout=1))
    parts += section(18, struct.pack("<II", before, 0))
    if chunked is not None:
        parts += section(7, struct.pack("<QQQII", *chunked, 0))
    else:
        parts += section(6, body)
    return record(TAKEN, parts, unit=unit, queue=queue, number=number)


def backout(unit: int, counts: list[tuple[int, int, int]], *dues: int) -> bytes:
    """dues: of each of the messages, 0 for none."""
    parts = section(10, b"".join(struct.pack("<QII", *count) for count in counts))
    if dues:
        parts += section(20, struct.pack(f"<{len(dues)}Q", *dues))
    return record(BACKOUT, parts, unit=unit)


def define(slot: int, generation: int, name: str, attributes: dict[int, int | str]) -> bytes:
    listed = b""
    for selector, value in attributes.items():
        if isinstance(value, int):
            listed += struct.pack("<iHHq", selector, 1, 8, value)
        else:
            data = value.encode()
            listed += pad(struct.pack("<iHH", selector, 2, len(data)) + data)
    named = section(11, struct.pack("<II48sQ", 1, 1, name.encode().ljust(48), 0))
    return record(OBJECT, named + section(12, listed), queue=(slot, generation))


def image_consumed(begin_lsn: int) -> bytes:
    return record(IMAGE_CONSUMED, section(15, struct.pack("<Q", begin_lsn)))


def header(kind: str, fields: bytes) -> bytes:
    page = kind.encode() + struct.pack("<HHIQQ", 2, 0, PAGE, 0, 0) + fields
    page = page.ljust(PAGE - 4, b"\0")
    return page + struct.pack("<I", crc32c(page))


def common(
    queue: tuple[int, int] = (1, 1), *, unit: int = 1, put: bool = True, **fields: int
) -> bytes:
    """A COMMON record, of the messages that descriptor() makes."""
    parts = b""
    if put:
        made = bytearray(descriptor(0, **fields))
        made[24:48] = bytes(24)
        made[64:68], made[177] = bytes(4), 0
        parts = section(1, bytes(made))
    return record(COMMON, parts, unit=unit, queue=queue)


def short(
    kind: int,
    shared: bytes,
    distance: int,
    number: int,
    rest: bytes = b"",
    *,
    unit: int = 0,
    flags: int = 0,
) -> bytes:
    """A short record ``distance`` bytes behind the COMMON record ``shared``; unit: relative."""
    padding = -len(rest) % 8
    size = 24 + len(rest) + padding
    head = struct.pack("<HBB", size // 8, kind | MUST, flags | SHORT | padding << 4)
    tail = struct.pack("<iQ", unit, number) + rest + bytes(padding)
    crc = crc32c(tail, crc32c(head, int.from_bytes(shared[4:8], "little")))
    return head + struct.pack("<II", crc, distance) + tail


def short_put(
    shared: bytes,
    distance: int,
    number: int,
    body: bytes,
    *,
    placement: int = 4,
    fields: dict[int, bytes] | None = None,
    unit: int = 0,
    kind: int = PUT,
) -> bytes:
    """A short PUT or MOVED; fields: bit -> bytes, in the order of the bits. CorrelId as in
    descriptor()."""
    found = {5: bytes(16) + number.to_bytes(8, "little"), **(fields or {})}
    bits = placement | sum(1 << bit for bit in found)
    time = 0 if 6 in found else number
    rest = struct.pack("<Ii", bits, time) + b"".join(found[bit] for bit in sorted(found)) + body
    return short(kind, shared, distance, number, rest, unit=unit)


@dataclass
class Store:
    """The files of one queue manager; ``files`` maps path -> bytes.

    append() writes one flush batch and returns the LSNs of its records.
    """

    size: int = 65536
    qm_id: bytes = QM_ID
    done: dict[str, bytes] = field(default_factory=dict)
    number: int = 0
    generation: int = 0
    epoch: int = 1
    base: int = 0
    used: int = 0
    durable: int = 0
    image: bytearray = field(default_factory=bytearray)
    drawn: bytes = b""  # a salt instead of the one that follows from the generation
    starts: list[int] = field(default_factory=list)  # offset of each batch in this segment

    def __post_init__(self) -> None:
        self.done["qm.toml"] = QM_TOML.encode()
        self._segment(0)

    @property
    def lsn(self) -> int:
        """The LSN of the next batch."""
        return self.base + self.used

    @property
    def salt(self) -> bytes:
        """Of the present segment. A real writer's is random."""
        if self.drawn:
            return self.drawn
        return b"".join(struct.pack("<Q", self.generation * k & (1 << 64) - 1) for k in SALTS)

    @property
    def path(self) -> str:
        return f"journal/{self.number:010d}.psj"

    @property
    def head(self) -> bytes:
        """HEAD: the newer page names this segment, the other one the segment before."""
        pages = [b"", b""]
        for back in (1, 0):
            fields = self.qm_id + struct.pack(
                "<4Q",
                self.number + 2 - back,
                max(self.number - back, 1),
                max(self.generation - back, 1),
                0,
            )
            pages[(self.number - back) % 2] = header("PSTKHEAD", fields)
        return b"".join(pages)

    @property
    def files(self) -> dict[str, bytes]:
        return {"HEAD": self.head, **self.done, self.path: bytes(self.image)}

    def _segment(self, prev_end: int) -> None:
        self.number += 1
        self.generation += 1
        self.image = bytearray(self.size)
        fields = self.qm_id + struct.pack(
            "<7Q",
            self.number,
            self.generation,
            self.epoch,
            self.base,
            self.size,
            prev_end,
            TIME + self.number,
        )
        fields += self.salt + struct.pack("<Q", 0)
        self.image[:PAGE] = header("PSTKJRNL", fields)
        self.used = PAGE
        self.durable = max(self.durable, prev_end)
        self.starts = []

    def batch(self, records: list[bytes], durable: int | None = None) -> bytes:
        """The bytes of a batch that would come next, without padding."""
        body = b"".join(records)
        marked = min(self.durable, self.lsn) if durable is None else durable
        head = struct.pack(
            "<4sIQQQIIQQ",
            b"PSBT",
            64 + len(body),
            self.lsn,
            marked,
            TIME + self.lsn,
            len(records),
            0,
            self.number,
            siphash(self.salt, b"".join(r[4:8] for r in records)),
        )
        return head + struct.pack("<Q", self.seal(head)) + body

    def seal(self, head: bytes) -> int:
        """The hash of a batch header, from its bytes in front of the hash."""
        where = struct.pack("<QQ", self.number, self.generation)
        return siphash(self.salt, self.qm_id + where + head)

    def append(self, *records: bytes, durable: int | None = None) -> list[int]:
        data = self.batch(list(records), durable)
        if self.used + len(data) > self.size:
            self.roll()
            data = self.batch(list(records), durable)
        lsns, at = [], self.lsn + 64
        for one in records:
            lsns.append(at)
            at += len(one)
        self.image[self.used : self.used + len(data)] = data
        self.starts.append(self.used)
        self.used += len(pad(data, PAGE))
        self.durable = self.lsn
        return lsns

    def copy(self) -> Store:
        """The same store; what one of the two writes the other does not have."""
        twin = Store(size=self.size, qm_id=self.qm_id)
        twin.__dict__.update(self.__dict__)
        twin.done, twin.image, twin.starts = dict(self.done), self.image[:], self.starts[:]
        return twin

    def mark(self) -> None:
        """A mark page: a batch without records."""
        self.append()

    def roll(self) -> None:
        """Goes on in a new segment."""
        end = self.lsn
        self.done[self.path] = bytes(self.image)
        self.base += self.size
        self._segment(end)

    def restart(self, torn: bytes = b"", gap: int = 0) -> None:
        """A crash that left `torn` after the last batch, and the recovery after it."""
        self.image[self.used : self.used + len(torn)] = torn
        self.epoch += 1
        end = self.lsn
        self.done[self.path] = bytes(self.image)
        self.base += self.size + gap
        self._segment(end)

    def put_chunked(self, number: int, body: bytes, piece: int, unit: int) -> list[bytes]:
        """A message in chunks, each in a separate batch; the PUT commits the unit."""
        offsets = range(0, len(body), piece)
        records, lsns = [], [0]
        for index, at in enumerate(offsets):
            data = body[at : at + piece]
            records.append(chunk(number, data, lsns[-1], at, len(body), index, unit))
            lsns += self.append(records[-1])
        listed = (lsns[1], lsns[-1], len(body), len(offsets))
        records.append(put(number, unit=unit, flags=COMMITS, chunked=listed))
        self.append(records[-1])
        return records

    def checkpoint(
        self,
        begin: int,
        *,
        objects: list[bytes] = (),  # type: ignore[assignment]
        messages: list[bytes] = (),  # type: ignore[assignment]
        image: list[bytes] = (),  # type: ignore[assignment]
        end: int | None = None,
        clean: bool = False,
        begin_segment: int | None = None,
        oldest: int = 1,
        next_number: int = 1000,
        needed: list[bytes] | None = None,
        units: Units = (),
        units_listed: bool = False,
    ) -> str:
        """Writes a checkpoint and returns its path. needed: lines of segments, made with needs();
        without it all from `oldest` to the begin segment. units: pairs of a line, made with
        carried(), and its operations, made with operation(), each with a line of listed() or b"".
        """
        oldest = min(oldest, begin_segment or self.number)
        if needed is None:
            needed = [self.needs(n) for n in range(oldest, begin_segment or self.number)]
        end = self.lsn if end is None else end
        fields = self.qm_id + struct.pack(
            "<7QIIQQI",
            begin,
            begin_segment or self.number,
            end,
            next_number,
            1000,
            self.epoch,
            self.generation,
            clean,
            bool(image),
            TIME,
            oldest,
            units_listed or bool(units),
        )
        data = header("PSTKCKPT", fields)
        operations = [one for _, several in units for one, _ in several]
        puts = [line for _, several in units for _, line in several if line]
        lines = [line for line, _ in units]
        blocks = [
            (kind, items)
            for kind, items in (
                *((1, objects), (2, messages), (3, image)),
                *((6, lines), (7, operations), (8, puts), (5, needed)),
            )
            if items
        ]
        for sequence, (kind, items) in enumerate(blocks):
            payload = columns(items) if kind in (2, 8) else b"".join(items)
            data += self.block(begin, kind, len(items), sequence, payload)
        totals = (len(blocks), len(objects), len(messages), len(image), end, len(needed))
        totals += (len(lines), len(operations), len(puts))
        data += self.block(begin, 4, 1, len(blocks), struct.pack("<9Q", *totals))
        path = f"checkpoint/{begin:016x}.psc"
        self.done[path] = data
        return path

    @staticmethod
    def carried(
        unit: int,
        first_lsn: int,
        records: list[bytes],
        *,
        operations: int | None = None,
        pieces: int = 0,
        prepare_end: int = 0,
        prepared: bytes = bytes(32),
        xid: bytes = bytes(136),
    ) -> bytes:
        """The checkpoint's line of a unit whose records so far are these."""
        crc = 0
        for record in records:
            crc = crc32c(record[4:8], crc)
        count = len(records) if operations is None else operations
        numbers = (unit, first_lsn, pieces, count, len(records), crc, prepare_end)
        return struct.pack("<4QIIQ", *numbers) + prepared + xid

    @staticmethod
    def operation(
        kind: int, number: int, lsn: int, *, queue: tuple[int, int] = (1, 1), before: int = 0
    ) -> bytes:
        """The checkpoint's line of an operation of a unit."""
        return struct.pack("<QQ4I", number, lsn, *queue, kind, before)

    def needs(self, number: int) -> bytes:
        """The checkpoint's line of an older segment; the next one still says where it ends."""
        page = self.files[f"journal/{number:010d}.psj"][:PAGE]
        after = self.files[f"journal/{number + 1:010d}.psj"][:PAGE]
        generation, base = struct.unpack_from("<Q8xQ", page, 56)
        (end,) = struct.unpack_from("<Q", after, 88)
        return struct.pack("<4Q", number, generation, base, end)

    def block(self, begin: int, kind: int, count: int, sequence: int, payload: bytes) -> bytes:
        rest = struct.pack("<IIQQ", kind, count, len(payload), sequence)
        seed = crc32c(self.qm_id + struct.pack("<Q", begin))
        return pad(b"PSBK" + struct.pack("<I", crc32c(rest + payload, seed)) + rest + payload)

    def listed(
        self,
        number: int,
        lsn: int,
        put_record: bytes,
        length: int,
        *,
        queue: tuple[int, int] = (1, 1),
        priority: int = 4,
        backouts: int = 0,
        first_lsn: int | None = None,
        chunks: int = 0,
        ext: bool = False,
        volatile: bool = False,
        due: int = 0,
    ) -> bytes:
        """The checkpoint's line of a message whose PUT record lies at ``lsn``."""
        raw = descriptor(number)
        group = tag(extension()[128:152], self.qm_id) if ext else 0
        return struct.pack(
            "<7Q4IiBBHIIQ",
            number,
            lsn,
            lsn if first_lsn is None else first_lsn,
            0,
            tag(raw[:24], self.qm_id),
            tag(raw[24:48], self.qm_id),
            group,
            *queue,
            length,
            backouts,
            priority,
            min(max(priority, 0), 9),
            ext,
            volatile,
            len(put_record),
            chunks,
            due,
        )

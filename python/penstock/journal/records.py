"""Decodes records and their sections, with every length checked before use."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from . import layout as L
from .errors import DamagedFile, UnsupportedFile

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# Types that carry a message or an object must have these sections, and only once each.
_REQUIRED = {
    L.PUT: (L.SEC_DESCRIPTOR,),
    L.MOVED: (L.SEC_DESCRIPTOR,),
    L.COMMIT: (L.SEC_COMMIT,),
    L.CHUNK: (L.SEC_CHUNK, L.SEC_BODY),
    L.OBJECT: (L.SEC_OBJECT_NAME,),
    L.IMAGE_CONSUMED: (L.SEC_IMAGE,),
    L.PREPARE: (L.SEC_XID, L.SEC_PREPARED, L.SEC_COMMIT),
    L.COMMIT_PREPARED: (L.SEC_UNITS,),
    L.BACKOUT_PREPARED: (L.SEC_UNITS,),
    L.TAKEN: (L.SEC_DESCRIPTOR, L.SEC_TAKEN),
}


def utc(microseconds: int) -> datetime | None:
    """A stored time as an aware datetime; None when it is beyond what datetime can hold."""
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None


@dataclass(frozen=True, slots=True)
class Record:
    """One journal record whose CRC holds. ``data`` is the whole record, a copy; of a short record
    what it would be if it were written in full. length: its bytes in the file.

    lsn: of its first byte (0 in a checkpoint file). type: without the must-understand bit.
    identity: the message number; in a CLEAR the bound.
    """

    file: str
    offset: int
    lsn: int
    type: int
    must_understand: bool
    flags: int
    unit_id: int
    object: int
    object_gen: int
    identity: int
    crc: int
    length: int
    data: bytes

    @property
    def type_name(self) -> str:
        """``PUT``, ``GET``, ... or ``type 77``."""
        return L.record_type_name(self.type)

    @property
    def commits(self) -> bool:
        """True when the record is also its unit's commit."""
        return bool(self.flags & L.FLAG_COMMITS)

    @property
    def known(self) -> bool:
        """False for an optional record that this reader skips."""
        return self.type in L.UNDERSTOOD

    def fail(self, text: str, rule: str = "record") -> DamagedFile:
        """The exception for something wrong in this record."""
        what = f"{self.type_name} record: {text}"
        return DamagedFile(self.file, self.offset, rule, what)

    def sections(self) -> dict[int, memoryview]:
        """Section tag -> its bytes; sections of unknown tags are left out.

        Raises DamagedFile when they do not fill the record exactly or contradict each other,
        UnsupportedFile for a reserved one.
        """
        found: dict[int, memoryview] = {}
        view = memoryview(self.data)
        at, end = L.RECORD_HEADER, len(self.data)
        while at < end:
            if end - at < L.SECTION_HEADER:
                raise self.fail(f"{end - at} bytes after the last section")
            head = L.overlay("ps_section", view, at)[0]
            tag, zero, size = int(head.tag), int(head.zero), int(head.length)
            start = at + L.SECTION_HEADER
            stop = start + (size + 7 & ~7)
            if stop > end:
                raise self.fail(f"section {tag} of {size} bytes exceeds the record")
            if zero or any(view[start + size : stop]):
                raise self.fail(f"reserved bytes of section {tag} are not zero", "reserved")
            at = stop
            if tag not in L.SECTIONS_UNDERSTOOD:
                if tag in L.SECTIONS:
                    what = f"{self.type_name} record: section {L.SECTIONS[tag]}"
                    raise UnsupportedFile(
                        self.file, self.offset, "unsupported", f"{what} is not known to this reader"
                    )
                continue
            if tag in found:
                raise self.fail(f"section {tag} appears twice")
            if L.SEC_BODY in found:
                raise self.fail("a section follows the body")
            name = L.SECTION_STRUCTS.get(tag)
            if name is not None and size != L.size_of(name):
                raise self.fail(f"section {tag} has {size} bytes, not {L.size_of(name)}")
            found[tag] = view[start : start + size]
        for tag in _REQUIRED.get(self.type, ()) if self.known else ():
            if tag not in found:
                raise self.fail(f"no {L.SECTIONS[tag]} section")
        _check_message(self, found)
        return found


def record_length(data: bytes | memoryview, at: int = 0) -> int:
    """Bytes of the record that begins at offset ``at``, by its header."""
    return int.from_bytes(data[at : at + 2], "little") * 8


def take_record(file: str, offset: int, lsn: int, data: bytes, length: int = 0) -> Record:
    """A Record from bytes whose length and CRC have been checked.

    Raises UnsupportedFile for a must-understand record this reader does not know, DamagedFile for
    reserved bytes that are not zero.
    """
    h = L.overlay("psj_record", data)[0]
    stored = int(h.type)
    record = Record(
        file=file,
        offset=offset,
        lsn=lsn,
        type=stored & ~L.MUST_UNDERSTAND,
        must_understand=bool(stored & L.MUST_UNDERSTAND),
        flags=int(h.flags),
        unit_id=int(h.unit_id),
        object=int(h.object),
        object_gen=int(h.object_gen),
        identity=int(h.number),
        crc=int(h.crc),
        length=length or len(data),
        data=data,
    )
    if not record.known and not record.must_understand:
        return record
    if record.known:
        if record.flags & ~_flags_of(record.type):
            text = f"{record.type_name} record: unknown flags {record.flags:#x}"
            raise UnsupportedFile(file, offset, "unsupported", text)
        if record.type in (L.PREPARE, L.TAKEN) and record.unit_id == 0:
            raise record.fail("belongs to no unit", "unit")
        if record.type == L.MOVED and (
            bool(record.unit_id) != bool(record.flags) or not record.identity
        ):
            raise record.fail("belongs to a unit that was decided, or names no message", "unit")
        return record
    text = f"{record.type_name} record is not known to this reader"
    raise UnsupportedFile(file, offset, "unsupported", text)


def _flags_of(kind: int) -> int:
    """Flags that a record of that type may have, whatever its form."""
    return L.FLAG_UNDECIDED if kind == L.MOVED else L.FLAG_COMMITS


def is_short(data: bytes | memoryview, at: int = 0) -> bool:
    """Whether the record at offset ``at`` refers to a COMMON record."""
    return bool(data[at + 3] & L.FLAG_SHORT)


def common_distance(data: bytes | memoryview, at: int = 0) -> int:
    """Bytes from its COMMON record to the short record at offset ``at``."""
    return int.from_bytes(data[at + 8 : at + 12], "little")


def is_common(data: bytes | memoryview, at: int, distance: int) -> bool:
    """Whether a COMMON record that ends within ``distance`` bytes begins at offset ``at``."""
    head: int = struct.unpack_from("<I", data, at)[0]
    size = (head & 0xFFFF) * 8
    return head >> 16 == L.COMMON | L.MUST_UNDERSTAND and L.RECORD_HEADER <= size <= distance


def take_short(file: str, offset: int, lsn: int, data: bytes, common: bytes) -> Record:
    """The Record of a short one, from its bytes and those of its COMMON record.

    Raises DamagedFile, UnsupportedFile.
    """

    def fail(text: str) -> DamagedFile:
        return DamagedFile(file, offset, "record", f"short record: {text}")

    s = L.overlay("psj_short", data)[0]
    c = L.overlay("psj_record", common)[0]
    kind, flags = int(s.type) & ~L.MUST_UNDERSTAND, int(s.flags)
    unit = int(c.unit_id) + int(s.unit) & (1 << 64) - 1
    known = _flags_of(kind) | L.FLAG_SHORT | L.PADDING_MASK
    if kind not in (L.PUT, L.GET, L.MOVED) or flags & ~known:
        text = f"short record of type {kind}: unknown flags {flags:#x}"
        raise UnsupportedFile(file, offset, "unsupported", text)
    end = len(data) - ((flags & L.PADDING_MASK) >> L.PADDING_SHIFT)
    if end < L.RECORD_MIN or (kind == L.GET and end != L.RECORD_MIN) or any(data[end:]):
        raise fail("padding that is none")
    alone = kind == L.MOVED and not flags & L.FLAG_UNDECIDED
    if kind == L.MOVED and not s.number:
        raise fail("names no message")
    if s.unit if alone else not unit:
        raise fail("belongs to a unit that was decided" if alone else "belongs to no unit")
    sections = _whole_sections(data[:end], common, int(s.number), fail) if kind != L.GET else b""
    head = struct.pack(
        "<HBBIQIIQ",
        (L.RECORD_HEADER + len(sections)) // 8,
        int(s.type),
        flags & (L.FLAG_COMMITS | L.FLAG_UNDECIDED),
        int(s.crc),
        0 if alone else unit,
        int(c.object),
        int(c.object_gen),
        int(s.number),
    )
    return take_record(file, offset, lsn, head + sections, len(data))


def _section(tag: int, data: bytes) -> bytes:
    return struct.pack("<HHI", tag, 0, len(data)) + data + bytes(-len(data) % 8)


def _whole_sections(
    data: bytes, common: bytes, number: int, fail: Callable[[str], DamagedFile]
) -> bytes:
    """The sections that a short PUT would have if it were written in full."""
    start = L.RECORD_HEADER + L.SECTION_HEADER
    size = L.size_of("ps_descriptor")
    if len(common) != start + size or common[L.RECORD_HEADER : start] != struct.pack(
        "<HHI", L.SEC_DESCRIPTOR, 0, size
    ):
        raise fail("its COMMON record has no descriptor")
    at = L.RECORD_MIN + L.size_of("ps_short_put")
    if len(data) < at:
        raise fail(f"{len(data)} bytes")
    fields, time = struct.unpack_from("<Ii", data, L.RECORD_MIN)
    if fields & ~(L.SHORT_PLACEMENT | sum(L.SHORT_FIELDS)):
        raise fail(f"unknown fields {fields:#x}")
    if fields & L.SHORT_PUT_TIME and time:
        raise fail("two times")
    found: dict[int, bytes] = {}
    for bit, width in L.SHORT_FIELDS.items():
        if fields & bit:
            found[bit] = data[at : at + width]
            at += width
    if at > len(data):
        raise fail("its fields exceed it")
    descriptor = bytearray(common[start:])
    _fill(L.overlay("ps_descriptor", memoryview(descriptor))[0], found, fields, time, number)
    parts = _section(L.SEC_DESCRIPTOR, bytes(descriptor))
    if L.SHORT_EXT in found:
        parts += _section(L.SEC_DESCRIPTOR_EXT, found[L.SHORT_EXT])
    return parts + (_section(L.SEC_BODY, data[at:]) if at < len(data) else b"")


def _fill(d: Any, found: dict[int, bytes], fields: int, time: int, number: int) -> None:
    """Makes the descriptor of a COMMON record that of a message."""
    tail = int.from_bytes(L.raw(d.msg_id)[16:], "big") + number & (1 << 64) - 1
    made = L.raw(d.msg_id)[:16] + tail.to_bytes(8, "big")
    d.msg_id = list(found.get(L.SHORT_MSG_ID, made))
    d.correl_id = list(found.get(L.SHORT_CORREL_ID, bytes(24)))
    d.put_time_us = d.put_time_us + time & (1 << 64) - 1
    if L.SHORT_PUT_TIME in found:
        d.put_time_us = int.from_bytes(found[L.SHORT_PUT_TIME], "little")
    d.expiry_us = int.from_bytes(found.get(L.SHORT_EXPIRY, b""), "little")
    d.placement = fields & L.SHORT_PLACEMENT
    d.priority = d.placement
    if L.SHORT_PRIORITY in found:
        d.priority = int.from_bytes(found[L.SHORT_PRIORITY], "little", signed=True)
    d.has_ext = L.SHORT_EXT in found
    d.due_us = int.from_bytes(found.get(L.SHORT_DUE, b""), "little")


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The stored message descriptor. Texts without padding, ids as 24 bytes, times in UTC."""

    msg_id: bytes
    correl_id: bytes
    put_time_us: int
    expiry_us: int
    priority: int
    report: int
    msg_type: int
    feedback: int
    encoding: int
    ccsid: int
    format: str
    put_appl_type: int
    user_identifier: str
    put_appl_name: str
    appl_origin_data: str
    accounting_token: bytes
    persistence: int
    placement: int
    md_version: int
    backout_count: int
    due_us: int
    reply_to_q: str
    reply_to_qmgr: str
    appl_identity_data: str
    group_id: bytes
    msg_seq_number: int
    offset: int
    msg_flags: int
    original_length: int

    @property
    def put_time(self) -> datetime | None:
        """When it was put, an aware UTC datetime."""
        return utc(self.put_time_us)


_EXT_INITIAL: dict[str, Any] = {
    "reply_to_q": "",
    "reply_to_qmgr": "",
    "appl_identity_data": "",
    "group_id": bytes(24),
    "msg_seq_number": 1,
    "offset": 0,
    "msg_flags": 0,
    "original_length": -1,
}
_TEXTS = frozenset(
    (
        "format",
        "user_identifier",
        "put_appl_name",
        "appl_origin_data",
        "reply_to_q",
        "reply_to_qmgr",
        "appl_identity_data",
    )
)
_NOT_SHOWN = frozenset(("zero", "has_ext"))


def _struct_values(name_of: str, data: memoryview) -> dict[str, Any]:
    at = L.overlay(name_of, data)[0]
    values: dict[str, Any] = {}
    for name, kind, _ in L.fields(name_of):
        if name in _NOT_SHOWN:
            continue
        value = getattr(at, name)
        if name in _TEXTS:
            values[name] = L.text(value)
        elif kind.kind == "array":
            values[name] = L.raw(value)
        else:
            values[name] = int(value)
    return values


def _check_message(record: Record, sections: dict[int, memoryview]) -> None:
    """Checks the sections of a message by themselves and against each other. Raises DamagedFile."""
    ext = sections.get(L.SEC_DESCRIPTOR_EXT)
    if ext is not None and any(L.overlay("ps_descriptor_ext", ext)[0].zero):
        raise record.fail("reserved bytes of the descriptor extension are not zero", "reserved")
    if L.SEC_DESCRIPTOR in sections:
        d = L.overlay("ps_descriptor", sections[L.SEC_DESCRIPTOR])[0]
        if d.due_us > L.DUE_MAX:
            raise record.fail(f"due time {int(d.due_us)} is after the year 9999")
        if d.placement >= L.PRIORITIES:
            raise record.fail(f"placement priority {d.placement} is above 9")
        if d.persistence > 1:
            raise record.fail(f"persistence {d.persistence} is neither 0 nor 1")
        if d.has_ext != (ext is not None):
            raise record.fail("has_ext does not agree with the sections")
    body = len(sections.get(L.SEC_BODY, b""))
    if L.SEC_CHUNKED in sections:
        c = L.overlay("ps_chunked", sections[L.SEC_CHUNKED])[0]
        if L.SEC_BODY in sections:
            raise record.fail("has a body and chunks")
        if c.zero or c.total > L.BODY_MAX or not c.count or c.first_lsn > c.last_lsn:
            raise record.fail(f"{int(c.total)} bytes in {int(c.count)} chunks", "chunk")
    if L.SEC_CHUNK in sections:
        piece = L.overlay("ps_chunk", sections[L.SEC_CHUNK])[0]
        if piece.zero or piece.total > L.BODY_MAX or piece.offset + body > piece.total:
            text = f"{body} bytes at {int(piece.offset)} of {int(piece.total)}"
            raise record.fail(text, "chunk")
    if L.SEC_TAKEN in sections and L.overlay("ps_taken", sections[L.SEC_TAKEN])[0].zero:
        raise record.fail("reserved bytes of the TAKEN section are not zero", "reserved")
    if len(sections.get(L.SEC_COUNTS, b"")) % L.size_of("ps_count"):
        raise record.fail(f"COUNTS section of {len(sections[L.SEC_COUNTS])} bytes")
    if L.SEC_DUE in sections:
        counted = len(sections.get(L.SEC_COUNTS, b"")) // L.size_of("ps_count")
        size = len(sections[L.SEC_DUE])
        if record.type != L.BACKOUT or size != 8 * counted:
            raise record.fail(f"DUE section of {size} bytes for {counted} counts")
        if any(due > L.DUE_MAX for due in dues_of(sections)):
            raise record.fail("a due time is after the year 9999")


def descriptor_of(sections: dict[int, memoryview]) -> Descriptor:
    """The descriptor of a PUT record, from its sections."""
    data, ext = sections[L.SEC_DESCRIPTOR], sections.get(L.SEC_DESCRIPTOR_EXT)
    values = _struct_values("ps_descriptor", data)
    values.update(_EXT_INITIAL if ext is None else _struct_values("ps_descriptor_ext", ext))
    return Descriptor(**values)


def attributes_of(record: Record, data: memoryview) -> dict[int, int | str]:
    """The attribute list of an OBJECT record: selector -> value."""
    result: dict[int, int | str] = {}
    at, head = 0, L.size_of("ps_attr")
    while at < len(data):
        if len(data) - at < head:
            raise record.fail("attribute list ends inside an attribute")
        a = L.overlay("ps_attr", data, at)[0]
        selector, kind, size = int(a.selector), int(a.kind), int(a.length)
        start = at + head
        stop = start + (size + 7 & ~7)
        if stop > len(data):
            raise record.fail(f"attribute {selector} of {size} bytes exceeds its section")
        if any(data[start + size : stop]):
            raise record.fail(f"padding of attribute {selector} is not zero", "reserved")
        value = bytes(data[start : start + size])
        if kind == 1 and size == 8:
            result[selector] = int.from_bytes(value, "little", signed=True)
        elif kind == 2:
            result[selector] = value.decode("utf-8", "backslashreplace")
        else:
            raise record.fail(f"attribute {selector} has kind {kind} and {size} bytes")
        at = stop
    return result


def dues_of(sections: dict[int, memoryview]) -> tuple[int, ...]:
    """The due time of each of the counted messages of a BACKOUT record, 0 = none; () without."""
    data = sections.get(L.SEC_DUE, memoryview(b""))
    return struct.unpack(f"<{len(data) // 8}Q", data)


def counts_of(sections: dict[int, memoryview]) -> Iterator[tuple[int, int, int]]:
    """(identity, object slot, new BackoutCount) of a BACKOUT record."""
    data = sections.get(L.SEC_COUNTS)
    if data is None:
        return
    for at in L.overlay("ps_count", data, 0, len(data) // L.size_of("ps_count")):
        yield int(at.identity), int(at.object), int(at.count)

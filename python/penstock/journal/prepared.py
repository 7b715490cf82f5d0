"""Prepared units of work: their records are complete, their outcome is not decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import layout as L
from .errors import DamagedFile
from .messages import Entry
from .records import Record

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_CAPITALS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = frozenset("0123456789")


@dataclass(frozen=True, slots=True, order=True)
class XidParts:
    """The name of a prepared unit. ``str()`` is what ``str(penstock.Xid)`` is."""

    format_id: int
    gtrid: bytes
    bqual: bytes

    def __str__(self) -> str:
        """``PSPK:7f3a-01:12``."""
        parts = [_format_text(self.format_id), _part_text(self.gtrid)]
        return ":".join([*parts, _part_text(self.bqual)] if self.bqual else parts)


def _part_text(part: bytes) -> str:
    plain = bool(part) and _PLAIN.issuperset(part) and not part.startswith(b"0x")
    return part.decode("latin-1") if plain else "0x" + part.hex()


def _format_text(number: int) -> str:
    text = number.to_bytes(4, "big", signed=True).decode("latin-1")
    named = text[0] in _CAPITALS and all(c in _CAPITALS or c in _DIGITS for c in text)
    return text if named else str(number)


def xid_of(record: Record, data: memoryview) -> XidParts:
    """The XID section of a record. Raises DamagedFile."""
    return xid_parts(record.fail, L.overlay("ps_xid", data)[0])


def xid_parts(fail: Callable[[str, str], DamagedFile], x: Any) -> XidParts:
    """The parts of a ``struct ps_xid``; ``fail`` makes the exception for a bad one."""
    gtrid, bqual = L.raw(x.gtrid), L.raw(x.bqual)
    sizes = int(x.gtrid_length), int(x.bqual_length)
    if not 1 <= sizes[0] <= len(gtrid) or sizes[1] > len(bqual):
        raise fail(f"an XID of {sizes[0]} and {sizes[1]} bytes", "xid")
    if any(gtrid[sizes[0] :]) or any(bqual[sizes[1] :]):
        raise fail("bytes beyond the lengths of an XID are not zero", "reserved")
    return XidParts(int(x.format_id), gtrid[: sizes[0]], bqual[: sizes[1]])


def unit_ids_of(record: Record, data: memoryview) -> list[int]:
    """The UNITS section of a record. Raises DamagedFile."""
    if len(data) % 8 or not len(data):
        raise record.fail(f"UNITS section of {len(data)} bytes", "unit")
    ids = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]
    if len(set(ids)) != len(ids):
        raise record.fail("a unit is named twice", "unit")
    return ids


@dataclass(frozen=True, slots=True)
class Preparation:
    """The contents of a PREPARE record, except its COMMIT section."""

    xid: XidParts
    prepared_us: int
    bytes: int
    puts: int
    gets: int
    lost_puts: int
    lost_gets: int


def preparation_of(record: Record, sections: dict[int, memoryview]) -> Preparation:
    """Decodes a PREPARE record. Raises DamagedFile."""
    p = L.overlay("ps_prepared", sections[L.SEC_PREPARED])[0]
    return preparation_parts(xid_of(record, sections[L.SEC_XID]), p)


def preparation_parts(xid: XidParts, p: Any) -> Preparation:
    """From the name and a ``struct ps_prepared``."""
    return Preparation(
        xid=xid,
        prepared_us=int(p.prepared_us),
        bytes=int(p.bytes),
        puts=int(p.puts),
        gets=int(p.gets),
        lost_puts=int(p.lost_puts),
        lost_gets=int(p.lost_gets),
    )


@dataclass(frozen=True, slots=True)
class PreparedRow:
    """A message of a prepared unit. call: "PUT", "GET", or "TAKEN" for the image of a
    non-persistent message that the unit had got."""

    call: str
    entry: Entry


@dataclass(slots=True)
class PreparedUnit:
    """A prepared unit that is not ended. rows: its messages, in the order of the calls.

    lsn, file, offset: of its PREPARE record, or of the checkpoint that carries it. complete: False
    when its first records lie before the replay; then its end must follow in the journal.
    """

    unit_id: int
    preparation: Preparation
    first_lsn: int
    record_count: int
    lsn: int
    file: str
    offset: int
    complete: bool
    operations: list[Any] = field(default_factory=list, repr=False)
    rows: list[PreparedRow] = field(default_factory=list, repr=False)

    @property
    def xid(self) -> XidParts:
        """Its name."""
        return self.preparation.xid

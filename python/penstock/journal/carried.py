"""Units of work that a checkpoint carries: those that were not decided at its begin LSN."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import layout as L
from .errors import DamagedFile

Fail = Callable[[str, str], DamagedFile]
_PREPARED, _XID = slice(48, 80), slice(80, 216)  # of a line of UNITS
_UNIT_FIELDS = ("id", "first_lsn", "pieces_lsn", "operations", "record_count", "running_crc")


@dataclass(frozen=True, slots=True)
class CarriedOperation:
    """What a record of the unit below the begin LSN will do. line: the fields of ``struct
    psc_message``, of a PUT or TAKEN."""

    type: int
    key: tuple[int, int]
    number: int
    lsn: int
    before: int
    line: dict[str, Any] | None


@dataclass(slots=True)
class CarriedUnit:
    """A unit as it was at the begin LSN. prepare_end_lsn: 0 unless it was prepared by then; xid,
    prepared: bytes of a ``struct ps_xid`` and a ``struct ps_prepared``."""

    unit_id: int
    first_lsn: int
    pieces_lsn: int
    record_count: int
    running_crc: int
    prepare_end_lsn: int
    xid: bytes = field(repr=False)
    prepared: bytes = field(repr=False)
    operations: list[CarriedOperation] = field(repr=False)


def carried_units(
    fail: Fail,
    header: Any,
    units: list[bytes],
    operations: list[bytes],
    puts: list[dict[str, Any]],
) -> list[CarriedUnit]:
    """From the lines of UNITS, OPERATIONS and UNIT_PUTS blocks. Raises DamagedFile when they
    contradict each other."""
    left, messages = iter(operations), iter(puts)
    found: list[CarriedUnit] = []
    before = 0
    for raw in units:
        unit, count = _unit_of(fail, header, raw, before)
        before = unit.unit_id
        for _ in range(count):
            unit.operations.append(_operation_of(fail, header, unit, next(left, None), messages))
        found.append(unit)
    if next(left, None) is not None or next(messages, None) is not None:
        raise fail("more operations or messages than the units have", "unit")
    return found


def _unit_of(fail: Fail, header: Any, raw: bytes, before: int) -> tuple[CarriedUnit, int]:
    """The unit, still without its operations, and how many it has."""
    u = L.overlay("psc_unit", raw)[0]
    prepared, xid = raw[_PREPARED], raw[_XID]
    number, first, pieces, count, records, crc = (int(getattr(u, name)) for name in _UNIT_FIELDS)
    begin, end = int(header.begin_lsn), int(u.prepare_end_lsn)
    sound = before < number < header.next_unit_id and 0 < first < begin and not first % 8
    sound = sound and pieces < begin and not pieces % 8 and count <= records
    if end:
        sound = sound and end < begin + L.RECORD_MAX
    else:
        sound = sound and records > 0 and not any(prepared) and not any(xid)
    if not sound:
        raise fail(f"the line of unit {number} contradicts itself or the header", "unit")
    unit = CarriedUnit(number, first, pieces, records, crc, end, xid, prepared, [])
    return unit, count


def _operation_of(
    fail: Fail, header: Any, unit: CarriedUnit, raw: bytes | None, messages: Any
) -> CarriedOperation:
    if raw is None:
        raise fail(f"operations of unit {unit.unit_id} are missing", "unit")
    o = L.overlay("psc_operation", raw)[0]
    kind, lsn, number = int(o.type), int(o.lsn), int(o.number)
    key = (int(o.object), int(o.object_gen))
    sound = kind in L.CARRIED and unit.first_lsn <= lsn < header.begin_lsn and not lsn % 8
    sound = sound and number > 0 and key[0] > 0 and (o.before == 0 or kind == L.TAKEN)
    line: dict[str, Any] | None = None
    if sound and kind in (L.PUT, L.TAKEN):
        line = next(messages, None)
        if line is None:
            raise fail(f"the message {number} of unit {unit.unit_id} is missing", "unit")
        sound = (line["number"], line["object"], line["object_gen"]) == (number, *key)
        sound = sound and _place_is_sound(kind, lsn, line["lsn"], int(header.begin_lsn))
        sound = sound and line["first_lsn"] <= line["lsn"]
        sound = sound and not line["zero"] and line["due_us"] <= L.DUE_MAX
    if not sound:
        raise fail(f"an operation of unit {unit.unit_id} contradicts it", "unit")
    return CarriedOperation(kind, key, number, lsn, int(o.before), line)


def _place_is_sound(kind: int, lsn: int, place: int, begin: int) -> bool:
    """Where the record was written, or, of a PUT, where the message was moved since."""
    return place == lsn or (kind == L.PUT and lsn < place < begin and not place % 8)

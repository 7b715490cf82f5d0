"""The second reader: what it makes of prepared units."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import writer as w
from reading import Q2, files_of, numbers, replay, severities, started

import penstock
from penstock.journal import DamagedFile, State, XidParts, iter_record_dicts

NAME = w.xid(int.from_bytes(b"PSPK", "big"), b"stream-1", b"7")
OTHER = w.xid(5, b"\0other")


def rows(state: State, at: int = 0) -> list[tuple[str, str, int, bytes]]:
    """Call, queue, number and body of each message of a prepared unit."""
    unit = state.prepared[at]
    return [(call, m.queue, m.identity, m.body()) for call, m in state.prepared_messages(unit)]


def prepared(
    store: w.Store, unit: int, *records: bytes, name: bytes = NAME, **counts: Any
) -> tuple[int, list[bytes]]:
    """Appends a unit of these records and its PREPARE; its first LSN."""
    lsns = [store.append(record)[0] for record in records]
    first = lsns[0] if lsns else 0
    store.append(w.prepare(unit, name, first, list(records), **counts))
    return first, list(records)


def two_units() -> w.Store:
    """Messages 1 and 2 on ORDERS; unit 7 got 1 and put 3, and had got the non-persistent 90 before
    and 91 after that; unit 8 got 2."""
    store = started()
    store.append(w.put(1, b"one"), w.put(2, b"two"))
    records = [
        w.get(1, unit=7),
        w.put(3, b"three", unit=7, queue=Q2),
        w.taken(91, b"later", 2, unit=7),
        w.taken(90, b"before", 0, unit=7),
        w.taken(91, b"later", 2, unit=7),
    ]
    prepared(store, 7, *records, puts=1, gets=3, size=19)
    prepared(store, 8, w.get(2, unit=8), name=OTHER, gets=1)
    return store


SEVEN = [
    ("TAKEN", "ORDERS", 90, b"before"),
    ("GET", "ORDERS", 1, b"one"),
    ("PUT", "OTHER", 3, b"three"),
    ("TAKEN", "ORDERS", 91, b"later"),
]


def test_messages_of_a_prepared_unit_are_neither_on_their_queue_nor_gone() -> None:
    state = replay(two_units())
    assert numbers(state) == [] and numbers(state, "OTHER") == [] and state.units == []
    assert [unit.unit_id for unit in state.prepared] == [7, 8]
    assert rows(state) == SEVEN and rows(state, 1) == [("GET", "ORDERS", 2, b"two")]
    p = state.prepared[0].preparation
    assert (p.puts, p.gets, p.bytes, p.prepared_us) == (1, 3, 19, w.TIME)
    assert [str(unit.xid) for unit in state.prepared] == ["PSPK:stream-1:7", "5:0x006f74686572"]
    assert state.next_number == 92


def test_prepared_units_wait_over_restarts_and_new_segments() -> None:
    store = two_units()
    store.restart(torn=b"PSBT" * 100)
    store.append(w.put(4))
    store.restart()
    store.roll()
    state = replay(store)
    assert rows(state) == SEVEN and len(state.prepared) == 2 and numbers(state) == [4]


def test_committing_several_takes_effect_for_all() -> None:
    store = two_units()
    store.append(w.end_prepared(w.COMMIT_PREPARED, 8, 7))
    state = replay(store)
    assert (numbers(state), numbers(state, "OTHER"), state.prepared) == ([], [3], [])
    assert severities(store) == set()


def test_backing_out_shows_what_was_got_but_no_images() -> None:
    store = two_units()
    store.append(w.end_prepared(w.BACKOUT_PREPARED, 7), w.backout(0, [(1, 1, 1)]))
    state = replay(store)
    assert (numbers(state), numbers(state, "OTHER")) == ([1], [])
    assert [m.backout_count for m in state.messages("ORDERS")] == [1]
    assert [unit.unit_id for unit in state.prepared] == [8]


def test_an_empty_unit_can_be_prepared_and_ended() -> None:
    store = started()
    prepared(store, 7)
    (unit,) = replay(store).prepared
    assert (unit.rows, unit.record_count, unit.complete) == ([], 0, True)
    store.append(w.end_prepared(w.COMMIT_PREPARED, 7))
    assert replay(store).prepared == []


def test_a_unit_resolved_before_the_checkpoint_began_needs_no_records() -> None:
    store = started()
    put = w.put(3, b"three", unit=7)
    (first,) = store.append(put)
    begin = store.lsn
    store.append(w.prepare(7, NAME, first, [put]))
    listed = [store.listed(3, first, put, 5)]
    definitions = [w.define(1, 1, "ORDERS", {15: 5000}), w.define(2, 1, "OTHER", {})]
    store.append(w.end_prepared(w.COMMIT_PREPARED, 6, 7))
    store.checkpoint(begin, objects=definitions, messages=listed)
    assert numbers(store) == [3] and replay(store).prepared == []
    assert severities(store) == set()


def test_the_checkpoint_lists_the_gets_of_a_prepared_unit() -> None:
    store = started()
    one = w.put(1, b"one")
    (lsn,) = store.append(one)
    get = w.get(1, unit=7)
    (first,) = store.append(get)
    store.append(w.prepare(7, NAME, first, [get], gets=1))
    definitions = [w.define(1, 1, "ORDERS", {15: 5000}), w.define(2, 1, "OTHER", {})]
    listed = [store.listed(1, lsn, one, 3)]
    store.checkpoint(first, objects=definitions, messages=listed, clean=True)
    state = replay(store)
    assert numbers(state) == [] and rows(state) == [("GET", "ORDERS", 1, b"one")]


def test_verify_names_the_units_that_wait() -> None:
    findings = files_of(two_units()).verify()
    assert {(f.severity, f.rule) for f in findings} == {("note", "prepared")}
    assert "PSPK:stream-1:7" in findings[0].text and "1 puts, 3 gets, 19 bytes" in findings[0].text


def test_the_records_of_prepared_units_are_listed_with_what_they_say() -> None:
    store = two_units()
    store.append(w.end_prepared(w.COMMIT_PREPARED, 7, 8))
    listed = {row["type"]: row for row in iter_record_dicts(files_of(store).files)}
    assert listed["PREPARE"]["xid"] == "5:0x006f74686572"
    assert listed["PREPARE"]["prepared"]["gets"] == 1
    assert listed["PREPARE"]["commit"]["record_count"] == 1
    assert listed["TAKEN"]["taken"] == {"before": 2} and listed["TAKEN"]["body_length"] == 5
    assert listed["COMMIT_PREPARED"]["units"] == [7, 8]


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda r: w.prepare(7, NAME, r[0] + 8, [r[1]]), "first LSN"),
        (lambda r: w.prepare(7, NAME, r[0], [r[1], r[1]]), "1 records"),
        (lambda r: w.prepare(7, NAME, r[0], [w.get(2, unit=7)]), "running CRC"),
        (lambda r: w.prepare(0, NAME, r[0], [r[1]]), "belongs to no unit"),
        (lambda r: w.prepare(7, w.xid(1, b""), r[0], [r[1]]), "an XID of 0 and 0 bytes"),
        (lambda r: w.prepare(7, NAME[:-1] + b"x", r[0], [r[1]]), "beyond the lengths"),
        (lambda _: w.end_prepared(w.COMMIT_PREPARED), "UNITS section of 0 bytes"),
        (lambda _: w.end_prepared(w.BACKOUT_PREPARED, 7, 7), "named twice"),
        (lambda _: w.record(w.COMMIT_PREPARED), "no UNITS section"),
        (lambda _: w.record(w.PREPARE, w.section(13, NAME), unit=7), "no PREPARED section"),
        (lambda _: w.taken(9, b"", 0, unit=0), "belongs to no unit"),
    ],
)
def test_records_that_contradict_what_was_read_are_damage(spoil: object, text: str) -> None:
    store = started()
    store.append(w.put(1))
    get = w.get(1, unit=7)
    (first,) = store.append(get)
    store.append(spoil((first, get)))  # type: ignore[operator]
    with pytest.raises(DamagedFile, match=text):
        replay(store)


def test_reserved_bytes_of_an_image_are_checked() -> None:
    parts = w.section(1, w.descriptor(9, persistence=0)) + w.section(18, struct.pack("<II", 0, 1))
    store = started()
    store.append(w.record(w.TAKEN, parts, unit=7, queue=(1, 1), number=9))
    with pytest.raises(DamagedFile, match="reserved bytes of the TAKEN section"):
        replay(store)


def test_two_prepared_units_of_one_name_are_damage() -> None:
    store = started()
    prepared(store, 7)
    prepared(store, 8)
    with pytest.raises(DamagedFile, match="name PSPK:stream-1:7 of another"):
        replay(store)


def test_the_reader_prints_names_as_the_engine_does() -> None:
    for parts in (
        (0x5053504B, b"a-b.c_d", b""),
        (0x3053504B, b"0x", b"0x12"),
        (0x5053206B, b"a b", b"\xff" * 64),
        (-2, b"Z", b"9"),
        (0x41424344, "\N{LATIN SMALL LETTER A WITH ACUTE}".encode("latin-1"), b"a"),
        (0x41C2B232, b"\xb2", b":"),
    ):
        assert str(XidParts(*parts)) == str(penstock.Xid(*parts))

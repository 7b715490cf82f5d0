"""The second reader on short records and the COMMON records that they refer to."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import writer as w
from reading import files_of, flipped, numbers, replay, started

from penstock.journal import DamagedFile, MemoryFiles, UnsupportedFile
from penstock.journal import layout as L
from penstock.journal.store import read_view


def unit_of(shared: bytes, records: list[bytes]) -> tuple[w.Store, list[int]]:
    """A store with a batch of a COMMON record and short records of unit 7, and their COMMIT."""
    store = started()
    lsns = store.append(shared, *records)
    store.append(w.commit(7, lsns[1], records))
    return store, lsns


def puts(shared: bytes, *more: bytes) -> list[bytes]:
    """Three short PUTs, each as far behind the COMMON record as it lies."""
    made: list[bytes] = list(more)
    distance = len(shared) + sum(map(len, more))
    for number in (1, 2, 3):
        made.append(w.short_put(shared, distance, number, b"body %d" % number, placement=number))
        distance += len(made[-1])
    return made


def test_short_puts_are_the_messages_that_full_ones_would_be() -> None:
    shared = w.common(unit=7)
    store, _ = unit_of(shared, puts(shared))
    full = started()
    records = [w.put(n, b"body %d" % n, unit=7, priority=n) for n in (1, 2, 3)]
    lsns = full.append(*records)
    full.append(w.commit(7, lsns[0], records))
    found, expected = (replay(s).messages() for s in (store, full))
    for one, other in zip(found, expected, strict=True):
        assert one.descriptor() == other.descriptor()
        assert (one.body(), one.identity) == (other.body(), other.identity)
    assert {f.severity for f in files_of(store).verify()} <= {"note"}


def test_every_field_of_a_short_put_replaces_the_common_one() -> None:
    shared = w.common(unit=7)
    fields = {
        4: b"i" * 24,
        5: b"c" * 24,
        6: struct.pack("<Q", w.TIME + 10**12),
        7: struct.pack("<Q", w.TIME + 10**13),
        8: struct.pack("<i", 12),
        9: w.extension(),
    }
    record = w.short_put(shared, len(shared), 9, b"x" * 13, placement=9, fields=fields)
    store, _ = unit_of(shared, [record])
    (message,) = replay(store).messages()
    d = message.descriptor()
    assert (d.msg_id, d.correl_id) == (b"i" * 24, b"c" * 24)
    assert (d.put_time_us, d.expiry_us) == (w.TIME + 10**12, w.TIME + 10**13)
    assert (d.priority, d.placement, d.reply_to_q) == (12, 9, "REPLY.QUEUE")
    assert message.body() == b"x" * 13


def test_short_gets_remove_messages() -> None:
    shared = w.common(unit=7, put=False)
    store = started()
    store.append(w.put(1), w.put(2), w.put(3))
    gets = [w.short(w.GET, shared, len(shared), 1), w.short(w.GET, shared, len(shared) + 24, 3)]
    assert [len(g) for g in gets] == [24, 24]
    lsns = store.append(shared, *gets)
    store.append(w.commit(7, lsns[1], gets))
    assert numbers(store) == [2]


@pytest.mark.parametrize(
    "distance", [0, 8, 4, 32, 240, 1 << 20, 0xFFFFFFFF], ids=lambda d: f"distance {d}"
)
def test_a_distance_that_leads_elsewhere_ends_the_journal_before_its_batch(distance: int) -> None:
    shared = w.common(unit=7)
    good = puts(shared)
    bad = bytearray(good[0])
    struct.pack_into("<I", bad, 8, distance)
    store = started()
    store.append(w.put(50))
    store.append(shared, bytes(bad), *good[1:])
    assert numbers(store) == [50]


def test_a_distance_that_leads_to_another_common_record_is_found() -> None:
    """A bit of it that flips: the CRC starts from another value then."""
    shared, other = w.common(unit=7), w.common((2, 1), unit=7)
    assert len(shared) == len(other)
    record = w.short_put(shared, len(shared), 1, b"body")
    store = started()
    store.append(w.put(50))
    store.append(other, shared, record[:8] + struct.pack("<I", 2 * len(shared)) + record[12:])
    assert numbers(store) == [50]


def test_any_flipped_bit_of_a_batch_of_short_records_is_found() -> None:
    shared = w.common(unit=7)
    records = puts(shared)
    store, _ = unit_of(shared, records)
    at = store.starts[-2]
    end = at + 64 + len(shared) + sum(map(len, records))
    for offset in range(at, end, 3):
        with pytest.raises(DamagedFile):
            replay(flipped(store, offset))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: w.short(w.PUT, s, len(s), 1, struct.pack("<Ii", 1 << 11, 0)), "unknown fields"),
        (lambda s: w.short(w.PUT, s, len(s), 1, struct.pack("<Ii", 1 << 6, 5) + bytes(8)), "times"),
        (lambda s: w.short(w.PUT, s, len(s), 1, struct.pack("<Ii", 1 << 9, 0)), "exceed"),
        (lambda s: w.short(w.PUT, s, len(s), 1), "24 bytes"),
        (lambda s: w.short(w.GET, s, len(s), 1, bytes(8)), "padding"),
        (lambda s: w.short(w.GET, s, len(s), 1, unit=-7), "no unit"),
        (lambda s: w.short(w.PUT, s, len(s), 1, struct.pack("<Ii", 10, 0)), "above 9"),
    ],
)
def test_short_records_that_contradict_themselves_are_damage(change: object, said: str) -> None:
    shared = w.common(unit=7)
    store = started()
    store.append(shared, change(shared))  # type: ignore[operator]
    with pytest.raises(DamagedFile, match=said):
        replay(store)


def test_a_put_whose_common_record_has_no_descriptor_is_damage() -> None:
    shared = w.common(unit=7, put=False)
    store = started()
    store.append(shared, w.short_put(shared, len(shared), 1, b"x"))
    with pytest.raises(DamagedFile, match="no descriptor"):
        replay(store)


@pytest.mark.parametrize("kind", [w.COMMIT, w.CHUNK, w.OBJECT, w.EXPIRE])
def test_other_short_records_are_refused(kind: int) -> None:
    shared = w.common(unit=7)
    store = started()
    store.append(shared, w.short(kind, shared, len(shared), 1))
    with pytest.raises(UnsupportedFile, match="flags"):
        replay(store)


def test_a_message_is_read_by_its_lsn_with_its_common_record() -> None:
    shared = w.common(unit=7)
    store, lsns = unit_of(shared, puts(shared))
    view = read_view(MemoryFiles(store.files), None)
    record = view.record_at(lsns[2], (L.PUT,), 2)
    assert (record.identity, record.length) == (2, lsns[3] - lsns[2])
    damaged = flipped(store, store.starts[-2] + 64 + 20)  # in the COMMON record
    with pytest.raises(DamagedFile, match="CRC"):
        read_view(MemoryFiles(damaged), None).record_at(lsns[2], (L.PUT,), 2)


def moved_short(store: w.Store, body: bytes, placement: int) -> list[int]:
    """A short MOVED of message 1, in a batch with its COMMON record."""
    shared = w.common(unit=7)
    record = w.short_put(shared, len(shared), 1, body, kind=w.MOVED, placement=placement)
    return store.append(shared, record)


def test_a_short_moved_record_is_where_its_message_lies() -> None:
    shared = w.common(unit=7)
    store, _ = unit_of(shared, puts(shared))
    _, lsn = moved_short(store, b"body 1", placement=1)
    state = replay(store)
    assert {e.identity: e.lsn for e in state.entries.values()}[1] == lsn
    assert {m.identity: m.body() for m in state.messages()}[1] == b"body 1"
    assert {f.severity for f in files_of(store).verify()} <= {"note"}


def test_a_short_moved_record_that_differs_from_its_message_is_damage() -> None:
    shared = w.common(unit=7)
    store, _ = unit_of(shared, puts(shared))
    moved_short(store, b"body 1 and more", placement=1)
    with pytest.raises(DamagedFile, match="differs from message 1"):
        replay(store)


@pytest.mark.parametrize(
    ("number", "options", "said"),
    [
        (0, {}, "names no message"),
        (1, {"unit": 3}, "that was decided"),
        (1, {"flags": w.UNDECIDED, "unit": -7}, "belongs to no unit"),
        (1, {"flags": w.COMMITS}, "unknown flags"),
    ],
)
def test_a_short_moved_record_in_a_decided_unit_or_without_a_number_is_refused(
    number: int, options: dict[str, int], said: str
) -> None:
    shared = w.common(unit=7)
    store = started()
    fields = struct.pack("<Ii", 4, 0)
    store.append(shared, w.short(w.MOVED, shared, len(shared), number, fields, **options))
    with pytest.raises((DamagedFile, UnsupportedFile), match=said):
        replay(store)

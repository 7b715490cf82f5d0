"""Messages that compaction moved, and segments that are a set: what the reader makes of them."""

from __future__ import annotations

import struct

import pytest
import writer as w
from reading import files_of, numbers, replay, segment_path, severities

from penstock.journal import DamagedFile


def with_a_hole() -> w.Store:
    """Message 1 in segment 1, message 2 moved from segment 2, which is gone, to segment 3."""
    store = w.Store(size=32768)
    definition = w.define(1, 1, "ORDERS", {15: 5000})
    one, two = w.put(1, b"one"), w.put(2, b"two")
    store.append(definition)
    (one_lsn,) = store.append(one)
    store.roll()
    store.append(two)
    store.roll()
    again = w.moved(2, b"two")
    (two_lsn,) = store.append(again)
    store.checkpoint(
        store.lsn,
        objects=[definition],
        messages=[store.listed(1, one_lsn, one, 3), store.listed(2, two_lsn, again, 3)],
        needed=[store.needs(1)],
    )
    store.append(w.put(3, b"three"))
    del store.done[segment_path(2)]
    return store


def bodies(store: w.Store) -> dict[int, bytes]:
    return {m.identity: m.body() for m in replay(store).messages()}


def test_segments_before_the_begin_segment_are_those_that_the_checkpoint_lists() -> None:
    store = with_a_hole()
    assert bodies(store) == {1: b"one", 2: b"two", 3: b"three"}
    assert severities(store) == set()


def test_listed_segment_that_is_missing_is_named_and_others_may_be_left_over() -> None:
    store = with_a_hole()
    store.done[segment_path(2)] = b"left over, and anything"
    assert numbers(store) == [1, 2, 3]
    del store.done[segment_path(1)]
    with pytest.raises(DamagedFile, match="segment 1 is missing"):
        replay(store)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ((1, 7, 0, 12288), "the checkpoint lists 7 and 0"),
        ((1, 1, 4096, 12288), "the checkpoint lists 1 and 4096"),
        ((1, 1, 0, 16384), "batches up to LSN 16384 were there"),
        ((3, 3, 65536, 73728), "cannot be needed"),
        ((1, 1, 0, 12289), "cannot be needed"),
    ],
)
def test_line_of_a_segment_that_is_wrong_is_damage(
    line: tuple[int, int, int, int], said: str
) -> None:
    store = with_a_hole()
    path = next(path for path in store.done if path.endswith(".psc"))
    begin = int(path[-20:-4], 16)
    data = store.done[path]
    right = struct.pack("<4Q", 1, 1, 0, 12288)
    at = data.index(right) - 32
    sequence = struct.unpack_from("<Q", data, at + 24)[0]
    block = store.block(begin, 5, 1, sequence, struct.pack("<4Q", *line))
    store.done[path] = data[:at] + block + data[at + len(block) :]
    assert any(said in f.text for f in files_of(store).verify() if f.severity == "damage")


def test_put_and_its_moved_records_are_one_message_where_it_was_moved_last() -> None:
    store = w.Store(size=32768)
    store.append(w.define(1, 1, "ORDERS", {}), w.put(1, b"one"), w.put(2, b"two"))
    (first,) = store.append(w.moved(1, b"one"))
    (last,) = store.append(w.moved(1, b"one"))
    state = replay(store)
    assert {e.identity: e.lsn for e in state.entries.values()}[1] == last > first
    assert numbers(store) == [1, 2]
    assert severities(store) == set()


def test_moved_record_of_a_message_that_is_gone_or_of_no_object_changes_nothing() -> None:
    store = w.Store(size=32768)
    store.append(w.define(1, 1, "ORDERS", {}), w.put(1), w.moved(1), w.get(1), w.moved(1))
    store.append(w.moved(7, b"never put"), w.moved(8, queue=(5, 5)))
    assert numbers(store) == []
    assert severities(store) == set()


@pytest.mark.parametrize("other", [b"longer", b"", b"onE" * 9])
def test_moved_record_that_differs_from_its_message_is_damage(other: bytes) -> None:
    store = w.Store(size=32768)
    store.append(w.define(1, 1, "ORDERS", {}), w.put(1, b"o" * 40), w.moved(1, other))
    with pytest.raises(DamagedFile, match="differs from message 1"):
        replay(store)


def test_moved_record_in_a_unit_or_without_a_number_is_damage() -> None:
    for record in (w.moved(1, unit=4), w.moved(0)):
        store = w.Store(size=32768)
        store.append(w.define(1, 1, "ORDERS", {}), w.put(1), record)
        with pytest.raises(DamagedFile, match="belongs to a unit, or names no message"):
            replay(store)

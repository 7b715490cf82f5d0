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


def test_moved_record_in_a_decided_unit_or_without_a_number_is_damage() -> None:
    half = w.moved(1, unit=4, flags=0), w.moved(1, flags=w.UNDECIDED)
    for record in (*half, w.moved(0), w.moved(0, unit=4)):
        store = w.Store(size=32768)
        store.append(w.define(1, 1, "ORDERS", {}), w.put(1), record)
        with pytest.raises(DamagedFile, match="that was decided, or names no message"):
            replay(store)


def test_message_of_a_unit_that_moved_before_its_commit_lies_there_after_it() -> None:
    store = w.Store(size=32768)
    store.append(w.define(1, 1, "ORDERS", {}))
    puts = w.put(1, b"one", unit=4), w.put(2, b"two", unit=4)
    first, second = store.append(*puts)
    (again,) = store.append(w.moved(1, b"one", unit=4))
    assert numbers(store) == []
    store.append(w.commit(4, first, list(puts)))
    assert {n: e.lsn for n, e in replay(store).entries.items()} == {1: again, 2: second}
    assert bodies(store) == {1: b"one", 2: b"two"} and severities(store) == set()


def carrying(*, listed: bool = False) -> tuple[w.Store, bytes]:
    """Message 1 of unit 4 was moved from segment 1, which is gone, before the checkpoint that
    carries the unit; listed: the checkpoint has it on its queue, too, in segment 1. The COMMIT."""
    store = w.Store(size=32768)
    definition = w.define(1, 1, "ORDERS", {15: 5000})
    put, other = w.put(1, b"one", unit=4), w.put(2, b"two")
    store.append(definition)
    (first,) = store.append(put)
    store.roll()
    again = w.moved(1, b"one", unit=4)
    place, other_lsn = store.append(again, other)
    at_line = store.operation(w.PUT, 1, first), store.listed(1, place, again, 3)
    old = [store.listed(1, first, put, 3)] if listed else []
    store.checkpoint(
        store.lsn,
        objects=[definition],
        messages=[*old, store.listed(2, other_lsn, other, 3)],
        units=[(store.carried(4, first, [put]), [at_line])],
        needed=[store.needs(1)] if listed else [],
        oldest=1 if listed else 2,
    )
    if not listed:
        del store.done[segment_path(1)]
    return store, w.commit(4, first, [put])


def test_checkpoint_carries_a_message_where_it_was_moved() -> None:
    store, commit = carrying()
    assert bodies(store) == {2: b"two"}
    store.append(commit)
    assert bodies(store) == {1: b"one", 2: b"two"} and severities(store) == set()


def test_of_a_message_that_is_listed_and_carried_the_later_place_holds() -> None:
    store, commit = carrying(listed=True)
    store.append(commit)
    assert replay(store).entries[1].lsn >= 32768
    assert bodies(store) == {1: b"one", 2: b"two"} and severities(store) == set()

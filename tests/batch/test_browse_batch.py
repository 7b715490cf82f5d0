"""browse_batch(), split_points() and browsing in chunks."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest

import penstock
from penstock.batch.chunks import as_batch, browse_chunks


def bodies(batch: object) -> list[bytes]:
    return [message.data for message in batch]  # type: ignore[attr-defined]


def test_a_browse_of_many_gives_what_a_get_would_and_removes_nothing(
    queue: penstock.Queue,
) -> None:
    for number in range(300):
        queue.put(b"%d" % number, priority=number % 5, persistent=number % 2)
    expected = [message.data for message in queue.browse()]
    seen: list[bytes] = []
    batch = queue.browse_batch(70, first=True)
    while len(batch):
        seen += bodies(batch)
        batch = queue.browse_batch(70)
    assert seen == expected and queue.depth == 300
    assert bodies(queue.browse_batch(3, first=True)) == expected[:3]
    assert [queue.get().data for _ in range(300)] == expected


def test_messages_behind_the_cursor_are_seen_and_the_end_is_an_empty_batch(
    queue: penstock.Queue,
) -> None:
    queue.put(b"1")
    assert bodies(queue.browse_batch(10, first=True)) == [b"1"]
    assert len(queue.browse_batch(10)) == 0
    queue.put(b"2")
    assert bodies(queue.browse_batch(10)) == [b"2"]


@pytest.mark.parametrize("persistent", [True, False])
def test_bodies_that_are_long_come_whole_and_bytes_bound_a_batch(
    queue: penstock.Queue, persistent: bool
) -> None:
    sizes = [10, 300_000, 5_000, 70_000, 0]
    for size in sizes:
        queue.put(bytes([size % 251]) * size, persistent=persistent)
    whole = queue.browse_batch(10, first=True)
    assert [len(body) for body in bodies(whole)] == sizes
    assert bodies(whole)[1] == bytes([300_000 % 251]) * 300_000
    assert [len(queue.browse_batch(10, first=n == 0, max_bytes=6_000)) for n in range(5)] == [
        1, 1, 1, 1, 1,
    ]  # fmt: skip
    assert len(queue.browse_batch(10, max_bytes=6_000)) == 0


def test_without_bodies_descriptors_alone_are_copied_and_the_cursor_moves_as_with_them(
    queue: penstock.Queue,
) -> None:
    sizes = [10, *[4 << 20] * 5, 70, 0]
    for size in sizes:
        queue.put(bytes(size), priority=5, correl_id=b"C%d" % size)
    batch = queue.browse_batch(6, first=True, bodies=False)
    assert batch.descriptors["length"].tolist() == sizes[:6]
    assert batch.descriptors["correl_id"].tolist() == [b"C%d" % size for size in sizes[:6]]
    assert batch.offsets.tolist() == [0] * 7
    assert bodies(batch) == [b""] * 6
    assert len(queue.browse_batch(9, bodies=False, max_bytes=69)) == 1
    assert len(queue.browse_batch(9, bodies=False)) == 1
    assert len(queue.browse_batch(9, bodies=False)) == 0
    assert queue.depth == 8


def test_only_messages_up_to_a_number_and_only_persistent_ones_are_seen(
    queue: penstock.Queue,
) -> None:
    for number in range(10):
        queue.put(b"%d" % number, persistent=number % 2)
    bound = queue.newest_number
    queue.put(b"late", priority=9)
    assert bodies(queue.browse_batch(99, first=True, up_to=bound)) == [b"%d" % n for n in range(10)]
    only = queue.browse_batch(99, first=True, up_to=bound, persistent_only=True)
    assert bodies(only) == [b"1", b"3", b"5", b"7", b"9"]


def test_what_units_of_work_hold_is_not_seen(
    qm: penstock.QueueManager, queue: penstock.Queue
) -> None:
    queue.put(b"1")
    queue.put(b"2")
    with qm.transaction():
        queue.get()
        queue.put(b"3")
        assert bodies(queue.browse_batch(9, first=True)) == [b"2"]
    assert bodies(queue.browse_batch(9, first=True)) == [b"2", b"3"]


def test_while_others_get_and_put_a_browse_sees_whole_messages_each_once(
    queue: penstock.Queue,
) -> None:
    for number in range(2_000):
        queue.put(b"%05d" % number * 300, persistent=number % 3 == 0)

    def work() -> None:
        for number in range(2_000, 3_000):
            queue.get()
            queue.put(b"%05d" % number * 300)

    worker = threading.Thread(target=work)
    worker.start()
    numbers: list[int] = []
    batch = queue.browse_batch(100, first=True)
    while len(batch):
        numbers += batch.descriptors["number"].tolist()
        assert all(len(body) == 1500 and body == body[:5] * 300 for body in bodies(batch))
        batch = queue.browse_batch(100)
    worker.join()
    assert len(set(numbers)) == len(numbers) and numbers == sorted(numbers)


def test_the_newest_number_separates_present_messages_from_later_ones(
    qm: penstock.QueueManager, home: object
) -> None:
    with qm.queue("A") as a, qm.queue("B") as b:
        for number in range(50):
            bound = a.newest_number
            assert (b if number % 2 else a).put(b"x").reason == 0
            batch = a.browse_batch(99, first=True)
            above = [n for n in batch.descriptors["number"].tolist() if n > bound]
            assert len(above) == (0 if number % 2 else 1)


def test_the_ranges_between_split_points_are_the_queue(queue: penstock.Queue) -> None:
    for number in range(300):
        queue.put(b"%d" % number * (1 + number % 50), priority=number % 3)
    there = bodies(queue.browse_batch(300, first=True))
    up_to = queue.newest_number
    queue.put(b"later", priority=9)
    for parts, rows, most in ((1, 1000, 1 << 20), (5, 7, 1 << 20), (3, 1000, 500), (300, 1, 1)):
        positions = [(9, 0), *queue.split_points(parts), (0, 2**64 - 1)]
        assert len(positions) == parts + 1
        seen = []
        for ends in pairwise(positions):
            for part in browse_chunks(queue, ends, up_to, as_batch, rows, most):
                assert len(part) <= rows and (len(part) == 1 or part.offsets[-1] <= most)
                seen += bodies(part)
        assert seen == there
    for wrong in (0, 100_001):
        with pytest.raises(penstock.InvalidValue):
            queue.split_points(wrong)


def test_a_browse_of_many_needs_a_handle_for_browse_and_right_arguments(
    qm: penstock.QueueManager, queue: penstock.Queue
) -> None:
    with qm.open("Q", browse=False) as other, pytest.raises(penstock.NotOpenFor):
        other.browse_batch(1)
    for wrong in ({"max_messages": 0}, {"max_messages": 1, "max_bytes": 0}):
        with pytest.raises(penstock.InvalidValue):
            queue.browse_batch(**wrong)
    with pytest.raises(penstock.InvalidType):
        queue.browse_batch(1, up_to="x")  # type: ignore[arg-type]

"""Reading part by part into memory that is used again, but never under anybody's eyes."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from penstock import Queue, QueueManager
from penstock.batch import MessageBatch
from penstock.parts import _Spares, browse_parts

EVERYTHING = ((9, 0), (0, 2**64 - 1))


@pytest.fixture
def queue(qm: QueueManager) -> Iterator[Queue]:
    qm.define("QLOCAL", "Q", replace=True)
    with qm.open("Q", browse=True, output=True) as opened:
        opened.put_batch([b"%06d" % number for number in range(1000)])
        yield opened


def parts(queue: Queue, rows: int = 100) -> Iterator[MessageBatch]:
    return browse_parts(queue, EVERYTHING, queue.newest_number, rows, 1 << 20)


def expected(first: int, last: int) -> list[bytes]:
    return [b"%06d" % number for number in range(first, last)]


def test_memory_that_nobody_refers_to_is_used_again() -> None:
    spares = _Spares()
    first = spares.take(1000)
    begin = first.ctypes.data
    del first
    again = spares.take(900)
    assert again.ctypes.data == begin and len(again) == 900
    assert spares.take(900).ctypes.data != begin


@pytest.mark.parametrize(
    "hold", [lambda a: a[3:9], memoryview, lambda a: a.view("S10"), pa.py_buffer]
)
def test_memory_that_a_slice_a_view_or_a_buffer_refers_to_is_not_used(hold: object) -> None:
    spares = _Spares()
    block = spares.take(1000)
    block[:] = 7
    held = hold(block)  # type: ignore[operator]
    del block
    other = spares.take(1000)
    other[:] = 9
    assert set(bytes(held)) == {7}


def test_the_smallest_block_that_is_large_enough_is_taken_and_few_are_kept() -> None:
    spares = _Spares()
    held = [spares.take(size) for size in (5000, 1000, 3000)]
    address = held[2].ctypes.data
    held.clear()
    assert spares.take(2000).ctypes.data == address
    held = [spares.take(10_000 + number) for number in range(9)]
    assert len(spares._blocks) == 5
    assert spares.take(17 << 20) is not None and len(spares._blocks) == 5


def test_arrow_bodies_that_are_kept_stay_as_they_are(queue: Queue) -> None:
    kept = [pa.record_batch(part.arrow(("number",))) for part in parts(queue)]
    bodies = [body for batch in kept for body in batch.column("body").to_pylist()]
    assert bodies == expected(0, 1000)


def test_batches_that_are_kept_keep_their_bodies(queue: Queue) -> None:
    kept = list(parts(queue))
    assert [part.body(at) for part in kept for at in range(len(part))] == expected(0, 1000)


def test_of_parts_that_are_dropped_the_memory_is_used_again(queue: Queue) -> None:
    list(parts(queue))
    seen = {part.bodies.ctypes.data for part in parts(queue)}
    assert len(seen) <= 3  # of ten parts


def test_threads_do_not_share_a_block() -> None:
    spares = _Spares()
    failed: list[int] = []

    def work(mark: int) -> None:
        for _ in range(2000):
            block = spares.take(4096)
            block[:] = mark
            if not bool(np.all(block == mark)):
                failed.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []

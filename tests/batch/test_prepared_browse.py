"""The messages of a prepared unit of work, read as a batch."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock import Queue, QueueManager, Xid
from penstock.batch import MessageBatch
from penstock.batch.chunks import as_batch
from penstock.batch.prepared import prepared_chunks

ONE = Xid(7, b"unit", b"1")
Row = tuple[bytes, bool, int, bool]


def rows(batch: MessageBatch) -> list[Row]:
    """Body, persistence, message number of each message, and whether the unit put it."""
    puts = batch.is_put.tolist()  # type: ignore[attr-defined]
    return [(m.data, m.persistent, m.number, put) for m, put in zip(batch, puts, strict=True)]


def mixed(qm: QueueManager, queue: Queue, count: int) -> list[bytes]:
    """Gets `count` messages of both kinds and puts others, in a unit that is prepared; the bodies
    in the order of the calls."""
    rng = random.Random(count)
    order = []
    for number in range(count):
        size = rng.choice((0, 1, 100, 3000, 70_000 * (number % 50 == 0)))
        queue.put(b"got %d" % number + bytes(size), persistent=number % 3 != 0)
    for number in range(count):
        order.append(queue.get(syncpoint=True).data)
        if number % 4 == 0:
            order.append(b"put %d" % number + bytes(rng.choice((0, 500))))
            queue.put(order[-1], persistent=number % 8 != 0, syncpoint=True)
    qm.prepare(ONE)
    return order


def test_the_messages_come_in_the_order_of_the_calls(qm: QueueManager, queue: Queue) -> None:
    order = mixed(qm, queue, 120)
    batch = qm.browse_prepared(ONE)
    assert isinstance(batch, MessageBatch)
    assert [m.data for m in batch] == order
    assert [row[0].startswith(b"put") for row in rows(batch)] == batch.is_put.tolist()
    assert batch.offsets[0] == 0 and batch.offsets[-1] == sum(map(len, order))
    assert queue.get_batch(1).descriptors.dtype == batch.descriptors.dtype
    assert rows(qm.browse_prepared(ONE)) == rows(batch)


def test_parts_are_the_same_messages_however_much_room_they_have(
    qm: QueueManager, queue: Queue
) -> None:
    mixed(qm, queue, 120)
    everything = [message.data for message in qm.browse_prepared(ONE)]
    for first, last in ((0, len(everything)), (3, 77), (5, 5), (140, 200)):
        for most, room in ((1000, 1 << 20), (7, 1 << 20), (1000, 1), (20, 4000)):
            parts = []
            for part in prepared_chunks(qm, ONE, first, last, as_batch, most, room):
                assert 0 < len(part) <= most
                assert len(part) == 1 or part.offsets[-1] <= room
                parts += [message.data for message in part]
            assert parts == everything[first:last]
    with pytest.raises(penstock.UnknownXid):
        list(prepared_chunks(qm, Xid(7, b"none", b"1"), 0, 9, as_batch, 9, 9))


def test_ranges_are_those_of_slices(qm: QueueManager, queue: Queue) -> None:
    mixed(qm, queue, 40)
    everything = rows(qm.browse_prepared(ONE))
    for first, last in (
        (0, 0),
        (0, 1),
        (7, 7),
        (3, 20),
        (0, None),
        (49, None),
        (50, 60),
        (99, None),
    ):
        assert rows(qm.browse_prepared(ONE, first, last)) == everything[first:last]


def test_many_messages_are_read_in_several_calls(qm: QueueManager, queue: Queue) -> None:
    count = 4500
    with qm.transaction() as unit:
        for number in range(count):
            queue.put(b"%d" % number * (number % 7))
        queue.put(b"x" * 3_000_000)
        unit.prepare(ONE)
    batch = qm.browse_prepared(ONE)
    assert len(batch) == count + 1 and bool(batch.is_put.all())
    assert batch.body(count) == b"x" * 3_000_000
    assert all(batch.body(n) == b"%d" % n * (n % 7) for n in range(0, count, 37))
    assert np.all(np.diff(batch.descriptors["number"].astype(np.int64)) > 0)


def test_a_unit_without_messages_is_empty(qm: QueueManager) -> None:
    qm.prepare(ONE, allow_empty=True)
    assert len(qm.browse_prepared(ONE)) == 0


@pytest.mark.parametrize("end", ["commit_prepared", "backout_prepared"])
def test_an_unknown_or_resolved_unit_is_refused(qm: QueueManager, queue: Queue, end: str) -> None:
    mixed(qm, queue, 3)
    getattr(qm, end)(ONE)
    for arguments in ((ONE,), (ONE, 2, 2), (Xid(1, b"never"),)):
        with pytest.raises(penstock.UnknownXid):
            qm.browse_prepared(*arguments)


@pytest.mark.parametrize(("first", "last"), [(-1, None), (2, 1), (0, -1), (1 << 63, None)])
def test_wrong_ranges_are_refused(
    qm: QueueManager, queue: Queue, first: int, last: int | None
) -> None:
    mixed(qm, queue, 1)
    with pytest.raises(penstock.InvalidValue):
        qm.browse_prepared(ONE, first, last)
    with pytest.raises(penstock.InvalidType):
        qm.browse_prepared(ONE, "0")  # type: ignore[arg-type]


BROWSES = """
import sys, penstock
from penstock import Xid
with penstock.connect("QM1", sys.argv[1]) as qm:
    batch = qm.browse_prepared(Xid(7, b"unit", b"1"))
    print([(m.data[:9], m.persistent, m.number) for m in batch])
"""


def test_after_a_restart_the_same_messages_are_there_but_for_nonpersistent_puts(
    qm: QueueManager, queue: Queue, home: Path, run_python: Callable[..., object]
) -> None:
    mixed(qm, queue, 60)
    before = rows(qm.browse_prepared(ONE))
    kept = [row for row in before if row[1] or not row[3]]
    assert len(kept) < len(before)
    queue.close()
    qm.close()
    for _ in range(2):
        with penstock.connect("QM1", home) as again:
            assert rows(again.browse_prepared(ONE)) == kept
            assert rows(again.browse_prepared(ONE, 5, 9)) == kept[5:9]
    done = run_python(BROWSES)
    shown = [(data[:9], persistent, number) for data, persistent, number, _ in kept]
    assert done.stdout == f"{shown}\n", done  # type: ignore[attr-defined]


def test_the_batch_is_an_arrow_array(qm: QueueManager, queue: Queue) -> None:
    order = mixed(qm, queue, 20)
    table = pa.record_batch(qm.browse_prepared(ONE, 2, 9))
    assert table.column("body").to_pylist() == order[2:9]

"""Memory comes back: what messages no longer need serves other messages, and leaves the file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import penstock
import penstock.mqsc
from surroundings import run_python, tmpfs

MIB = 1 << 20
BATCH = 500
LOAD = 24 * MIB  # of memory, in one backlog
OVERHEAD = 512  # descriptor and entry of a message
IDLE_SECONDS = 10.0


def region_bytes(region_dir: Path) -> int:
    """Bytes that the region's file occupies."""
    return sum(path.stat().st_blocks * 512 for path in region_dir.iterdir())


@contextmanager
def manager(tmp_path: Path, size: int, **settings: object) -> Iterator[penstock.QueueManager]:
    """A queue manager whose region lies on a tmpfs of its own of that size, at tmp_path/shm."""
    with tmpfs(size) as shm:
        (tmp_path / "shm").symlink_to(shm)
        penstock.create("QM", str(tmp_path / "home"), region_dir=str(shm), **settings)
        with penstock.connect("QM", str(tmp_path / "home")) as qm:
            yield qm


def queue(qm: penstock.QueueManager, name: str = "Q") -> penstock.Queue:
    return qm.queue(name, maxdepth=999_999_999, maxmsgl=8 * MIB)


def put(q: penstock.Queue, size: int, total: int = LOAD, **fields: object) -> int:
    """Puts messages of one size that take ``total`` bytes or so; how many."""
    count = total // (size + OVERHEAD)
    for first in range(0, count, BATCH):
        q.put_batch([b"x" * size] * min(BATCH, count - first), **fields)
    return count


def drain(q: penstock.Queue, in_unit: bool = False) -> int:
    """Takes all messages; how many."""
    taken = 0
    while True:
        if in_unit:
            with q.connection.transaction():
                batch = q.get_batch(BATCH)
        else:
            batch = q.get_batch(BATCH, syncpoint=False)
        if len(batch) == 0:
            return taken
        taken += len(batch)


def settles(region_dir: Path, limit: int) -> bool:
    """Does the file have at most so many bytes within the ten seconds of idleness?"""
    deadline = time.monotonic() + IDLE_SECONDS
    while region_bytes(region_dir) > limit and time.monotonic() < deadline:
        time.sleep(0.05)
    return region_bytes(region_dir) <= limit


def live_bytes(qm: penstock.QueueManager) -> int:
    """Bytes of the blocks and entries that are in use, by stretches of 128 KiB."""
    status = qm.status()
    return status.body_bytes + 128 * status.message_entries


# ---- every way out gives memory back ----


def by_short_gets(qm: penstock.QueueManager, q: penstock.Queue) -> None:
    while True:
        try:
            q.get()
        except penstock.NoMessageAvailable:
            return


def by_batches(qm: penstock.QueueManager, q: penstock.Queue) -> None:
    drain(q)


def by_units(qm: penstock.QueueManager, q: penstock.Queue) -> None:
    drain(q, in_unit=True)


def by_clear(qm: penstock.QueueManager, q: penstock.Queue) -> None:
    q.close()
    penstock.mqsc.run(qm, "CLEAR QLOCAL(Q)")


WAYS_OUT: dict[str, Callable[[penstock.QueueManager, penstock.Queue], None]] = {
    "short gets": by_short_gets,
    "batches": by_batches,
    "units": by_units,
    "clear": by_clear,
}


@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize("size", [1000, 1 * MIB])
def test_a_drained_queue_gives_its_memory_back(tmp_path: Path, way: str, size: int) -> None:
    with manager(tmp_path, 512 * MIB) as qm, queue(qm) as q:
        put(q, size, persistent=False)
        live = live_bytes(qm)
        WAYS_OUT[way](qm, q)
        assert settles(tmp_path / "shm", live * 3 // 2 + 16 * MIB)
        assert settles(tmp_path / "shm", 24 * MIB)  # what is left does not depend on the load


def test_persistent_gets_give_memory_back(tmp_path: Path) -> None:
    with manager(tmp_path, 512 * MIB) as qm, queue(qm) as q:
        put(q, 3000, persistent=True)
        by_batches(qm, q)
        assert settles(tmp_path / "shm", 24 * MIB)


def test_expiry_gives_memory_back(tmp_path: Path) -> None:
    with manager(tmp_path, 512 * MIB) as qm, queue(qm) as q:
        put(q, 3000, persistent=False, expiry=0.5)
        assert settles(tmp_path / "shm", 24 * MIB)
        assert q.depth == 0


def test_backed_out_puts_give_memory_back(tmp_path: Path) -> None:
    with manager(tmp_path, 512 * MIB) as qm, queue(qm) as q:
        for _ in range(4):
            with pytest.raises(ZeroDivisionError), qm.transaction():
                put(q, 3000, LOAD // 4, persistent=False)
                raise ZeroDivisionError
        assert q.depth == 0
        assert settles(tmp_path / "shm", 24 * MIB)


def test_deleted_queues_give_memory_back(tmp_path: Path) -> None:
    with manager(tmp_path, 512 * MIB) as qm, queue(qm) as q:
        put(q, 3000, persistent=False, correl_id=b"c" * 24)
        with pytest.raises(penstock.NoMessageAvailable):
            q.get(correl_id=b"d" * 24)  # an index is made
        q.close()
        penstock.mqsc.run(qm, "DELETE QLOCAL(Q) PURGE")
        assert settles(tmp_path / "shm", 24 * MIB)


# ---- what one load leaves behind serves the next ----


def test_queues_that_are_filled_in_turn_take_the_memory_of_one(tmp_path: Path) -> None:
    with manager(tmp_path, 512 * MIB) as qm:
        peaks = []
        for i in range(8):
            with queue(qm, f"Q{i}") as q:
                put(q, 1000, persistent=False)
                peaks.append(region_bytes(tmp_path / "shm"))
                by_units(qm, q)
        assert max(peaks) <= peaks[0] + 24 * MIB


def test_body_sizes_that_come_in_turn_share_memory(tmp_path: Path) -> None:
    sizes = [700, 1500, 3000, 5000, 9000, 15_000, 25_000, 40_000, 60_000, 200_000, 1_000_000]
    with manager(tmp_path, 512 * MIB) as qm, queue(qm) as q:
        peaks = []
        for size in sizes:
            put(q, size, persistent=False)
            peaks.append(region_bytes(tmp_path / "shm"))
            by_units(qm, q)
        assert max(peaks) <= max(peaks[0], 2 * LOAD) + 24 * MIB


def fill(q: penstock.Queue, size: int) -> int:
    """Puts non-persistent messages of one size until there is no memory for another."""
    body = b"x" * size
    count = 0
    try:
        while True:
            q.put(body, persistent=False)
            count += 1
    except penstock.StorageNotAvailable:
        return count


def test_an_empty_queue_manager_on_a_small_tmpfs_takes_messages_of_every_size(
    tmp_path: Path,
) -> None:
    with manager(tmp_path, 64 * MIB) as qm:
        for size in (60_000, 100, 9000, 1 * MIB, 500, 3000, 200_000, 0, 20_000):
            with queue(qm, f"Q{size}") as q:
                count = fill(q, size)
                assert count * (size + OVERHEAD) > 25 * MIB
                assert drain(q) == count
        assert settles(tmp_path / "shm", 24 * MIB)


def test_a_full_queue_does_not_keep_the_next_size_from_what_others_have_left(
    tmp_path: Path,
) -> None:
    with manager(tmp_path, 64 * MIB) as qm, queue(qm) as q, queue(qm, "OTHER") as other:
        count = fill(other, 3000)
        for _ in range(count // 2):
            other.get()
        assert fill(q, 100) > 100


def test_survivors_pin_no_more_than_where_they_lie(tmp_path: Path) -> None:
    with manager(tmp_path, 512 * MIB) as qm, queue(qm) as q:
        for _ in range(20):
            put(q, 3000, LOAD // 20, persistent=False, priority=5)
            q.put(b"stays" * 600, persistent=False, priority=0)
        count = q.depth - 20
        for _ in range(count):
            q.get()
        assert settles(tmp_path / "shm", 24 * MIB + 20 * 2 * (128 << 10))
        assert [message.data for message in q.get_batch(100, syncpoint=False)] == [
            b"stays" * 600
        ] * 20


# ---- memory that was given away is had again before it is used ----


def test_loads_that_come_and_go_find_their_memory_again(tmp_path: Path) -> None:
    with manager(tmp_path, 256 * MIB) as qm, queue(qm) as q:
        for _ in range(3):
            count = put(q, 3000, persistent=False)
            assert drain(q) == count
            assert settles(tmp_path / "shm", 24 * MIB)


FILLS_THE_MEDIUM = """
import os, sys
path = sys.argv[1]
fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
room = os.fstatvfs(fd)
size = 0
step = 1 << 20
while step >= 4096:
    try:
        os.posix_fallocate(fd, size, step)
        size += step
    except OSError:
        step //= 2
print(size)
"""


def test_a_medium_that_is_full_is_refused_by_a_reason_code_not_a_signal(tmp_path: Path) -> None:
    """What has been punched is gone when another file takes it: 2071, and everything else works."""
    with manager(tmp_path, 96 * MIB) as qm, queue(qm) as q, queue(qm) as cursor:
        put(q, 3000, persistent=False)
        cursor.get(browse="first")
        drain(q)
        assert settles(tmp_path / "shm", 24 * MIB)
        hog = (tmp_path / "shm").resolve() / "hog"
        run_python(FILLS_THE_MEDIUM, hog)
        with pytest.raises(penstock.NoMessageUnderCursor):
            cursor.get(under_cursor=True)  # its entry has no memory any more
        count = fill(q, 3000)  # from what is kept ahead
        assert count > 0
        assert drain(q) == count
        hog.unlink()
        assert put(q, 3000, persistent=False) == drain(q)

"""Tails: the slowest of many commits, alone and beside a checkpoint, a compaction, a backup."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

import limits
import penstock
import workloads as w
from conftest import Interleave
from limits import put_unit_bytes
from report import Aim

UNIT = 100  # messages of a unit of work
BODY = 1024
COMMITS = 1_000
ROUNDS = 9
DEEP = 5_000_000  # persistent messages that a checkpoint lists
SMALL = 256
SHARE = 10_000  # of a put_batch
BESIDE_COMMITS = 2_000
BESIDE_ROUNDS = 3
JOURNAL = "8G"

RAW = "raw append + flush"
ROCKSDB = "RocksDB, a synced batch of as many keys"
MEDIAN = "its median"
ALONE = "nothing beside"
Scale = Callable[[int], int]


def commit_times(
    qm: penstock.QueueManager, queue: penstock.Queue, bodies: list[bytes], commits: int
) -> list[float]:
    """Seconds of each commit of a unit that puts all bodies, sorted; the messages are taken."""
    times = []
    for _ in range(commits):
        with qm.unit() as unit:
            for data in bodies:
                queue.put(data, persistent=True, unit=unit)
            begun = time.perf_counter()
            unit.commit()
            times.append(time.perf_counter() - begun)
        got = queue.get_batch(len(bodies))
        w.expect(got.offsets[-1] == sum(map(len, bodies)), "other bodies than were put")
    w.expect(queue.depth == 0, f"{queue.depth} messages are left")
    return sorted(times)


def at(times: list[float], share: float) -> float:
    """The time that this share of the sorted times does not exceed."""
    return times[min(len(times) - 1, int(len(times) * share))]


class RocksDb:
    """A RocksDB whose write-ahead log is flushed with each batch; a context manager."""

    def __init__(self, path: Path) -> None:
        rocksdict = pytest.importorskip("rocksdict", reason="the peer is in the extra [bench]")
        self._new_batch = partial(rocksdict.WriteBatch, raw_mode=True)
        self._db = rocksdict.Rdict(str(path), rocksdict.Options(raw_mode=True))
        self._synced = rocksdict.WriteOptions()
        self._synced.sync = True
        self._next = 0

    def __enter__(self) -> RocksDb:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def commit(self, bodies: list[bytes]) -> float:
        """Seconds of the commit of a batch of all bodies, which are read back and deleted."""
        keys = [number.to_bytes(8, "big") for number in range(self._next, self._next + len(bodies))]
        self._next += len(bodies)
        batch, gone = self._new_batch(), self._new_batch()
        for key, data in zip(keys, bodies, strict=True):
            batch.put(key, data)
            gone.delete(key)
        begun = time.perf_counter()
        self._db.write(batch, self._synced)
        taken = time.perf_counter() - begun
        w.expect(self._db[keys] == bodies, "RocksDB has other values")
        self._db.write(gone)
        return taken


def bench_commit_tail(interleave: Interleave, files: Path, scale: Scale) -> None:
    """The 99th percentile of commits of 100 puts of 1 KiB, against their median and RocksDB's."""
    commits = scale(COMMITS)
    bodies = [w.body(number, BODY) for number in range(UNIT)]
    payload = put_unit_bytes(UNIT, BODY)
    newest: list[float] = []
    with (
        w.manager(files) as qm,
        w.define(qm, "TAIL", persistent=True) as queue,
        limits.RawLog(files / "raw") as log,
        RocksDb(files / "rocksdb") as peer,
    ):

        def median() -> float:
            newest[:] = commit_times(qm, queue, bodies, commits)
            return statistics.median(newest)

        def raw() -> float:
            return at(sorted(log.append(payload, 1) for _ in range(commits)), 0.99)

        def rocksdb() -> float:
            return at(sorted(peer.commit(bodies) for _ in range(commits)), 0.99)

        interleave(
            f"commit of {UNIT} puts of 1 KiB, 99th percentile of {commits:,}",
            {"penstock": lambda: at(newest, 0.99), MEDIAN: median, ROCKSDB: rocksdb, RAW: raw},
            [Aim("time", 2.5, MEDIAN), Aim("time", 1.0, ROCKSDB)],
            rounds=ROUNDS,
        )


# ---- beside long work ----


def long_work(qm: penstock.QueueManager, kind: str, path: Path) -> None:
    """One checkpoint, or one backup of the queue manager."""
    if kind == "backup":
        qm.backup(path)
        shutil.rmtree(path)
    else:
        qm.checkpoint()


def long_work_worker(pipe: Connection, home: str, kind: str) -> None:
    """Repeats the work from the first command until the second; answers how often it was done."""
    with penstock.connect(w.NAME, home=home) as qm:
        pipe.send("ready")
        while pipe.recv() is not None:
            done = 0
            pipe.send("begun")
            while not pipe.poll():
                long_work(qm, kind, Path(home) / "copy")
                done += 1
            pipe.recv()
            pipe.send(done)


@contextmanager
def deep_manager(files: Path, depth: int) -> Iterator[tuple[penstock.QueueManager, penstock.Queue]]:
    """A queue manager with a backlog of persistent messages, and an empty queue beside it."""
    penstock.create(w.NAME, home=str(files), journal_limit=JOURNAL)
    try:
        with penstock.connect(w.NAME, home=str(files)) as qm:
            bodies = [w.body(number, SMALL) for number in range(SHARE)]
            with w.define(qm, "BACKLOG", persistent=True) as backlog:
                for begin in range(0, depth, SHARE):
                    backlog.put_batch(bodies[: depth - begin], persistent=True)
                w.expect(backlog.depth == depth, f"{backlog.depth} messages, not {depth}")
            with w.define(qm, "TAIL", persistent=True) as queue:
                yield qm, queue
    finally:
        penstock.delete(w.NAME, home=str(files))


@pytest.mark.parametrize("kind", ["checkpoint", "backup"])
def bench_commit_beside(interleave: Interleave, files: Path, scale: Scale, kind: str) -> None:
    """The slowest of a thousand commits while another process takes checkpoints or backups."""
    commits, depth = scale(BESIDE_COMMITS), scale(DEEP)
    bodies = [w.body(number, BODY) for number in range(UNIT)]
    counts: list[int] = []
    with (
        deep_manager(files, depth) as (qm, queue),
        w.Crew(long_work_worker, [(str(files), kind)]) as crew,
    ):
        crew.answers()

        def beside() -> float:
            crew.ask("begin")
            times = commit_times(qm, queue, bodies, commits)
            counts.extend(crew.ask("end"))
            return at(times, 0.999)

        figure = interleave(
            f"commit beside a {kind} of {depth:,} messages, 99.9th percentile of {commits:,}",
            {
                "penstock": beside,
                ALONE: lambda: at(commit_times(qm, queue, bodies, commits), 0.999),
            },
            [Aim("absolute", 2e-3, either=Aim("time", 2.0, ALONE))],
            rounds=BESIDE_ROUNDS,
        )
    w.expect(min(counts) > 0, f"a round without a {kind}")
    figure.notes.append(f"{min(counts)} to {max(counts)} {kind}s a round")

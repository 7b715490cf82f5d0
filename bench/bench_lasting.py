"""What lasts: bytes on disk after an orderly end, commits beside compactions, the rate of traffic
that goes on for long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

import penstock
import workloads as w
from bench_tails import at, commit_times
from conftest import Interleave
from limits import put_unit_bytes
from report import Aim

COUNT = 1_000_000  # persistent messages on the queue at the end
BODY = 256
SHARE = 10_000  # messages of a put_batch
DISK_BYTES = 400e6

LARGE = 1024  # bytes of a message of the commits beside compactions
UNIT = 100
COMMITS = 2_000
BESIDE_ROUNDS = 5
LEFT = 50  # of SHARE messages that nobody gets
SMALL_JOURNAL = "256M"  # compactions come often

SLICE = 400  # units of a round of steady traffic
SLICES = 9
PARKED = 10_000  # messages that nobody gets, of the steady traffic

FORGOTTEN_NONE = "the same traffic, all got"
YOUNG = "a new queue manager"
Scale = Callable[[int], int]


# ---- the disk ----


def bytes_on_disk(folder: Path) -> int:
    """Blocks that the system has given the files below."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def bench_bytes_after_an_orderly_end(interleave: Interleave, files: Path, scale: Scale) -> None:
    """All files of a queue manager with a million messages: segments and two checkpoints."""
    count = scale(COUNT)

    def ended() -> float:
        w.fill_backlog(files, BODY, count, kill=False)
        found = bytes_on_disk(files)
        with penstock.connect(w.NAME, home=str(files)) as qm, qm.open("BACKLOG") as queue:
            w.expect(queue.depth == count, f"{queue.depth} of {count} messages came back")
        w.discard(files)
        return float(found)

    needed = float(put_unit_bytes(UNIT, BODY) * count // UNIT)
    interleave(
        f"files after an orderly end, {count:,} persistent messages of {BODY} bytes",
        {"penstock": ended, "their records in the journal": lambda: needed},
        [Aim("absolute", DISK_BYTES)],
        rounds=3,
        unit="B",
    )


# ---- beside a compaction ----


def traffic_worker(pipe: Connection, home: str) -> None:
    """Puts and gets batches from one command until the next, and leaves of each batch as many
    messages as the first one says. Answers how many messages compactions have moved meanwhile."""
    bodies = [w.body(number, BODY) for number in range(SHARE)]
    with (
        penstock.connect(w.NAME, home=home) as qm,
        qm.open("TRAFFIC") as traffic,
        qm.open("FORGOTTEN") as forgotten,
    ):
        pipe.send("ready")
        while (left := pipe.recv()) is not None:
            before = qm.status().moved_messages
            pipe.send("begun")
            while not pipe.poll():
                traffic.put_batch(bodies[left:], persistent=True)
                if left:
                    forgotten.put_batch(bodies[:left], persistent=True)
                w.expect(len(traffic.get_batch(SHARE)) == SHARE - left, "other messages")
            pipe.recv()
            moved = qm.status().moved_messages - before
            while len(forgotten.get_batch(SHARE)) > 0:
                pass
            pipe.send(moved)


def bench_commit_beside_compactions(interleave: Interleave, files: Path, scale: Scale) -> None:
    """The slowest of a thousand commits while traffic of another process is moved together."""
    commits = scale(COMMITS)
    bodies = [w.body(number, LARGE) for number in range(UNIT)]
    moved: list[int] = []
    with manager_of(files, SMALL_JOURNAL) as qm, w.define(qm, "TAIL", persistent=True) as queue:
        for name in ("TRAFFIC", "FORGOTTEN"):
            w.define(qm, name, persistent=True).close()
        with w.Crew(traffic_worker, [(str(files),)]) as crew:
            crew.answers()

            def beside(left: int) -> float:
                crew.ask(left)
                times = commit_times(qm, queue, bodies, commits)
                found = crew.ask("end")
                if left:
                    moved.extend(found)
                return at(times, 0.999)

            figure = interleave(
                f"commit beside compactions, 99.9th percentile of {commits:,}",
                {"penstock": lambda: beside(LEFT), FORGOTTEN_NONE: lambda: beside(0)},
                [Aim("absolute", 2e-3, either=Aim("time", 2.0, FORGOTTEN_NONE))],
                rounds=BESIDE_ROUNDS,
            )
    quick = commits < COMMITS  # too little traffic for a compaction
    w.expect(quick or max(moved) > 0, "no compaction has moved a message")
    figure.notes.append(f"{min(moved):,} to {max(moved):,} messages moved a round")


@contextmanager
def manager_of(files: Path, limit: str) -> Iterator[penstock.QueueManager]:
    """A queue manager with that limit of its journal."""
    penstock.create(w.NAME, home=str(files), journal_limit=limit)
    try:
        with penstock.connect(w.NAME, home=str(files)) as qm:
            yield qm
            w.wait_until_alone(qm)
    finally:
        penstock.delete(w.NAME, home=str(files))


# ---- steady traffic ----


def slice_of_traffic(queue: penstock.Queue, bodies: list[bytes], units: int) -> float:
    """Seconds for a message that is put and got in batches."""
    begun = time.perf_counter()
    for _ in range(units):
        queue.put_batch(bodies, persistent=True)
        w.expect(len(queue.get_batch(len(bodies))) == len(bodies), "other messages")
    return (time.perf_counter() - begun) / (units * len(bodies))


def make_old(qm: penstock.QueueManager, queue: penstock.Queue, seconds: float) -> int:
    """Traffic for so long, beside messages that nobody gets; how many messages there were."""
    bodies = [w.body(number, BODY) for number in range(UNIT)]
    with w.define(qm, "PARKED", persistent=True) as parked:
        until, count = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            slice_of_traffic(queue, bodies, SLICE)
            count += SLICE * UNIT
            if parked.depth < PARKED:
                parked.put_batch(bodies, persistent=True)
        w.expect(parked.depth > 0, "nothing is parked")
    return count


def bench_steady_traffic(
    interleave: Interleave, files: Path, scale: Scale, request: pytest.FixtureRequest
) -> None:
    """The rate after minutes of traffic (``--steady`` seconds) against that of a new one."""
    quick = bool(request.config.getoption("--quick"))
    seconds = 1.0 if quick else float(request.config.getoption("--steady"))
    units = scale(SLICE)
    bodies = [w.body(number, BODY) for number in range(UNIT)]
    (files / "old").mkdir()
    (files / "young").mkdir()
    with (
        w.manager(files / "old") as qm,
        w.define(qm, "STEADY", persistent=True) as queue,
    ):
        count = make_old(qm, queue, seconds)

        def young() -> float:
            with (
                w.manager(files / "young") as new,
                w.define(new, "STEADY", persistent=True) as empty,
            ):
                slice_of_traffic(empty, bodies, units)  # its first segments are made
                return slice_of_traffic(empty, bodies, units)

        figure = interleave(
            f"persistent put and get in units of {UNIT} after long traffic, a message",
            {"penstock": lambda: slice_of_traffic(queue, bodies, units), YOUNG: young},
            [Aim("rate", 0.95, YOUNG)],
            rounds=SLICES,
        )
    figure.notes.append(f"{count:,} messages in {seconds:.0f} s before, {PARKED:,} of others stay")

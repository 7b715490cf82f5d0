"""Soak: ordinary work for minutes or hours, whose memory, descriptors and rate must stay flat.

    python tests/soak/soak.py [--minutes 2] [--home DIRECTORY] [--seed 1] [--leak KIND]

Producers, a mover, an event loop whose tasks move messages and are cancelled, consumers, a browser,
messages that expire and a process that connects and leaves work on one queue manager with bodies of
40 bytes to 120 KB, half of them persistent. Twice a second these are sampled:

    region        bytes of the shared region that are allocated (its file's blocks)
    memory        bytes of private memory of all workers (RssAnon); the C library gives back what is
                  freed at once (it would keep up to the largest block that was ever freed, in each
                  worker, and so grow for minutes until each has met its largest batch)
    descriptors   open descriptors of all workers
    journal       bytes of the files of journal and checkpoint
    rate          messages taken from OUT, a second
    cost          processor time of all workers, us for a message taken: what a busy machine does
                  to the rate it does not do to this
    depth         messages on all queues

Each series must be flat over the run (flatness.py). At the end the queues are drained, the indexes
checked, and the error log must hold no error. `--leak` adds a worker that leaks: the run must fail
then. Prints a line a series; status 0 when all is well, 1 when not.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import multiprocessing
import os
import shutil
import struct
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flatness import Tolerance, judge, windows
from workers import LEAKS, QUEUES, ROLES, Tools, Worker, consume

import penstock

MANAGER = "SOAK"
SETTINGS = {"segment_size": 1 << 20, "journal_limit": 64 << 20}  # a checkpoint in each window
EVERY_S = 0.5
JOIN_S = 30.0
MALLOPT_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of malloc.h
MAPPED_FROM = 128 << 10  # bytes: glibc's own first value, which moves no more once it is set
MIB = 1 << 20
TOLERANCES = {
    "region": Tolerance(0.10, 8 * MIB),
    "memory": Tolerance(0.05, 4 * MIB),
    "descriptors": Tolerance(0.05, 4),
    "journal": Tolerance(0.25, 8 * MIB),
    "rate": Tolerance(0.35, 50, falling=True),
    "cost": Tolerance(0.25, 20),
    "depth": Tolerance(0.50, 300),
}


@dataclass
class Run:
    """A run under way: its queue manager, its workers and what was sampled."""

    home: Path
    memory: mmap.mmap
    workers: list[Worker]
    processes: list[multiprocessing.Process] = field(default_factory=list)
    samples: dict[str, list[float]] = field(default_factory=lambda: {k: [] for k in TOLERANCES})

    def start(self, seed: int) -> None:
        """Starts all workers; the first word of the memory is the sign to stop."""
        context = multiprocessing.get_context("fork")
        for number, worker in enumerate(self.workers, 1):
            arguments = (worker, MANAGER, str(self.home), self.memory, number, seed)
            process = context.Process(target=work, args=arguments)
            process.start()
            self.processes.append(process)

    def stop(self) -> list[str]:
        """Tells all workers to stop; which ones did not end well."""
        self.memory[0] = 1
        bad = []
        for worker, process in zip(self.workers, self.processes, strict=False):
            process.join(JOIN_S)
            if process.is_alive():
                process.kill()
                process.join()
                bad.append(f"{worker.__name__} did not stop within {JOIN_S:.0f} s")
            elif process.exitcode != 0:
                bad.append(f"{worker.__name__} ended with status {process.exitcode}")
        return bad

    def taken(self) -> int:
        """Messages that the consumers have taken so far."""
        numbers = [n for n, worker in enumerate(self.workers, 1) if worker is consume]
        return sum(struct.unpack_from("<Q", self.memory, 8 * n)[0] for n in numbers)

    def spent_us(self) -> float:
        """Processor time of all workers so far."""
        return sum(processor_us(process.pid or 0) for process in self.processes)

    def sample(self, qm: Any, seconds: float, taken: int, spent_us: float) -> None:
        """One more of each series: of the last `seconds`, with so many messages and so much
        processor time.
        """
        pids = [process.pid for process in self.processes if process.pid is not None]
        path = self.home / MANAGER
        values = {
            "region": float(region_bytes()),
            "memory": float(sum(private_bytes(pid) for pid in pids)),
            "descriptors": float(sum(descriptors(pid) for pid in pids)),
            "journal": float(files_bytes(path / "journal") + files_bytes(path / "checkpoint")),
            "rate": taken / seconds,
            "cost": spent_us / max(taken, 1),
            "depth": float(sum(depth(qm, name) for name in QUEUES)),
        }
        for name, value in values.items():
            self.samples[name].append(value)


def work(
    worker: Worker, manager: str, home: str, memory: mmap.mmap, number: int, seed: int
) -> None:
    """The main function of a worker's process."""
    worker(Tools(manager, home, memory, number, seed))


# ---- what is sampled ----


def region_bytes() -> int:
    """Allocated bytes of the shared region: the only one that this process has mapped."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    paths = {line.split(None, 5)[5] for line in lines if "/penstock-" in line}
    return sum(os.stat(path).st_blocks * 512 for path in paths if "(deleted)" not in path)


def private_bytes(pid: int) -> int:
    """Anonymous memory of a process; 0 when it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    lines = [line for line in status.splitlines() if line.startswith("RssAnon:")]
    return int(lines[0].split()[1]) * 1024 if lines else 0


def processor_us(pid: int) -> float:
    """Processor time of a process so far; 0 when it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0
    user, system = text.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) * 1e6 / os.sysconf("SC_CLK_TCK")


def descriptors(pid: int) -> int:
    """Open descriptors of a process; 0 when it has ended."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def files_bytes(folder: Path) -> int:
    """Allocated bytes of a folder's files; one that goes at this moment does not count."""
    total = 0
    for file in folder.iterdir():
        try:
            total += file.stat().st_blocks * 512
        except FileNotFoundError:
            pass
    return total


def depth(qm: Any, name: str) -> int:
    """Messages on a queue."""
    with qm.open(name, input=False, browse=False) as queue:
        return int(queue.depth)


# ---- the run ----


def watch(run: Run, seconds: float) -> None:
    """Samples until the time is over."""
    with penstock.connect(MANAGER, run.home) as qm:
        last, taken, spent = time.monotonic(), run.taken(), run.spent_us()
        end = last + seconds
        while last < end:
            time.sleep(max(last + EVERY_S - time.monotonic(), 0.01))
            now, taken_now, spent_now = time.monotonic(), run.taken(), run.spent_us()
            run.sample(qm, now - last, taken_now - taken, spent_now - spent)
            last, taken, spent = now, taken_now, spent_now
            if any(not process.is_alive() for process in run.processes):
                return


def drain(home: Path) -> list[str]:
    """Empties the queues, checks the indexes and reads the error log; what is wrong."""
    wrong = []
    with penstock.connect(MANAGER, home) as qm:
        for name in QUEUES:
            with qm.open(name) as queue:
                while len(queue.get_batch(1000)):
                    pass
        qm.check()
        woken = qm.status().woken_by_bound
        if woken:
            wrong.append(f"{woken} waits ended only by their bound")
    log = home / MANAGER / "errors" / "AMQERR01.LOG"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    wrong += [line for line in lines if " AMQ" in line and line.split(" AMQ")[1][4:5] == "E"]
    return wrong


def report(run: Run) -> list[str]:
    """Prints a line a series; those that are not flat."""
    moving = []
    for name, tolerance in TOLERANCES.items():
        verdict = judge(run.samples[name], tolerance)
        unit, scale = ("MiB", MIB) if name in ("region", "memory", "journal") else ("", 1)
        print(
            f"{name:12} level {verdict.level / scale:10.1f} {unit:3} moved "
            f"{verdict.move / scale:+9.1f}, allowed {verdict.allowed / scale:8.1f}  "
            f"{'flat' if verdict.flat else 'NOT FLAT'}",
            flush=True,
        )
        if not verdict.flat:
            medians = " ".join(f"{value / scale:.1f}" for value in windows(run.samples[name]))
            moving.append(f"{name} is not flat; its windows: {medians}")
    return moving


def soak(seconds: float, home: Path, seed: int, workers: list[Worker]) -> list[str]:
    """A whole run; what was wrong."""
    ctypes.CDLL(None).mallopt(MALLOPT_MMAP_THRESHOLD, MAPPED_FROM)
    penstock.create(MANAGER, home, **SETTINGS)
    with mmap.mmap(-1, 8 * (len(workers) + 1)) as memory, penstock.connect(MANAGER, home) as qm:
        for name in QUEUES:
            qm.queue(name).close()
        run = Run(home, memory, workers)
        run.start(seed)
        try:
            watch(run, seconds)
        finally:
            wrong = run.stop()
    if not wrong:
        wrong += report(run)
    return wrong + drain(home)


def main() -> int:
    """Runs and prints the verdict."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--home", type=Path, help="a directory on the disk to be used")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--leak", choices=sorted(LEAKS), help="plant a leak")
    options = parser.parse_args()
    workers = [*ROLES, *([LEAKS[options.leak]] if options.leak else [])]
    home = Path(tempfile.mkdtemp(prefix="penstock-soak-", dir=options.home))
    try:
        wrong = soak(options.minutes * 60, home, options.seed, workers)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    for text in wrong:
        print(f"WRONG: {text}", file=sys.stderr)
    print(
        f"soak: {options.minutes:g} minutes, {len(workers)} workers, seed {options.seed}, "
        f"verdict {'wrong' if wrong else 'flat'}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

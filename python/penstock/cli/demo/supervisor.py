"""Starts the workers, kills them, restarts the queue manager, and runs the proofs."""

from __future__ import annotations

import os
import random
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import penstock

from ...admin.settings import manager_directory
from ...journal import QueueManagerFiles
from .census import Census, ProofFailed
from .device import RawLog, compare, padded
from .plan import (
    CONSUMERS,
    LEDGER_QUEUE,
    LINES_QUEUE,
    MANAGER,
    PRODUCERS,
    Plan,
    Receipt,
    Tag,
    progress_queue,
)
from .screen import Screen

DEADLINE = 300.0  # seconds a phase may take before it counts as stuck
PUT_BODY = 1024  # bytes of the message whose durable put is compared with the disk


@dataclass(eq=False)
class Worker:
    """One process and what it has reported."""

    role: str
    number: int
    process: subprocess.Popen[bytes]
    moved: int = 0
    ready: bool = False
    killed: bool = False  # by us
    rest: bytes = b""  # of a report not yet complete

    def __str__(self) -> str:
        role = "producer" if self.role == "produce" else "consumer"
        return f"{role} {self.number + 1} (pid {self.process.pid})"


@dataclass
class Crew:
    """The workers of one phase, which report through pipes."""

    plan_path: Path
    workers: list[Worker] = field(default_factory=list)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def start(self, role: str, number: int) -> Worker:
        """Starts one worker process."""
        command = [sys.executable, "-m", "penstock.cli.demo.worker", role, str(self.plan_path)]
        process = subprocess.Popen(
            [*command, str(number)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        worker = Worker(role, number, process)
        self._selector.register(process.stdout, selectors.EVENT_READ, worker)
        self.workers.append(worker)
        return worker

    def listen(self, seconds: float = 0.05) -> None:
        """Takes in what the workers report within that time."""
        for key, _ in self._selector.select(seconds):
            worker: Worker = key.data
            data = os.read(key.fd, 65536)
            if not data:
                self._selector.unregister(key.fileobj)
            *reports, worker.rest = (worker.rest + data).split(b"\n")
            for report in reports:
                word, _, number = report.partition(b" ")
                worker.ready = True
                worker.moved += int(number) if word == b"moved" else 0

    def kill(self, worker: Worker) -> None:
        """SIGKILL; reports that made it into the pipe still count."""
        self.kill_all([worker])

    @staticmethod
    def kill_all(workers: list[Worker]) -> None:
        """SIGKILL to all of them before any is waited for."""
        for worker in workers:
            worker.killed = True
            worker.process.kill()
        for worker in workers:
            worker.process.wait()

    def moved(self, *roles: str) -> int:
        """Lines that workers of these roles reported as committed."""
        return sum(worker.moved for worker in self.workers if worker.role in roles)

    def alive(self) -> list[Worker]:
        """Workers that have not ended. Raises ProofFailed for one that ended with an error."""
        living = []
        for worker in self.workers:
            status = worker.process.poll()
            if status is None:
                living.append(worker)
            elif status != 0 and not worker.killed:
                raise ProofFailed(f"{worker} ended with status {status}")
        return living

    def close(self) -> None:
        """Ends what still runs."""
        for worker in self.workers:
            if worker.process.poll() is None:
                self.kill(worker)
            assert worker.process.stdout is not None
            worker.process.stdout.close()
        self._selector.close()


class Demonstration:
    """One run from an empty directory to the proofs."""

    def __init__(self, plan: Plan, folder: Path, screen: Screen, seed: int) -> None:
        self.plan = plan
        self.screen = screen
        self.random = random.Random(seed)
        self.census = Census(plan)
        self.plan_path = folder / "plan.json"
        self.folder = folder
        self.put = 0  # lines reported as put, up to the last phase
        self.taken = 0
        self.moving_seconds = 0.0
        self.restart_seconds = 0.0
        self.units = 0

    def run(self) -> None:
        """Runs all phases. Raises ProofFailed."""
        self.plan.save(self.plan_path)
        self.prepare()
        self.screen.rule(self.plan.rules, self.census.by_priority)
        self.until_the_crash()
        self.restart()
        self.finish_putting()
        self.drain()
        self.prove()
        self.figures()

    def prepare(self) -> None:
        """Makes the queue manager and its queues; each producer begins at position 0."""
        penstock.create(MANAGER, home=self.plan.home)
        with penstock.connect(MANAGER, home=self.plan.home) as qm:
            for name in (LINES_QUEUE, LEDGER_QUEUE):
                qm.queue(name, maxmsgl=104857600).close()
            for producer in range(PRODUCERS):
                with qm.queue(progress_queue(producer)) as queue:
                    queue.put(b"0", persistent=True)
        self.screen.event(
            f"queue manager {MANAGER} made; {self.plan.total:,} lines of "
            f"{len(self.plan.files)} files to move, {self.plan.unit} a unit of work"
        )

    def phase(self, crew: Crew, done: Callable[[], bool]) -> None:
        """Follows the workers until ``done``. Raises ProofFailed when that takes too long."""
        start = time.monotonic()
        while not done():
            crew.listen()
            living = crew.alive()
            names = f"{len(living)} processes alive"
            put = self.put + crew.moved("produce")
            taken = self.taken + crew.moved("consume", "drain")
            self.screen.counts(put, taken, self.plan.total, names)
            if time.monotonic() - start > DEADLINE:
                raise ProofFailed(f"no end after {DEADLINE:.0f} s; alive: {len(living)}")

    def until_the_crash(self) -> None:
        """Three producers, two consumers; one of each is killed, then all five at once."""
        crew = Crew(self.plan_path)
        start = time.monotonic()
        try:
            producers = [crew.start("produce", n) for n in range(PRODUCERS)]
            consumers = [crew.start("consume", n) for n in range(CONSUMERS)]
            self.screen.event(f"{PRODUCERS} producers and {CONSUMERS} consumers started")
            self.until_put(crew, 8)
            self.kill_and_replace(crew, producers[0])
            self.until_put(crew, 16)
            self.kill_and_replace(crew, consumers[1])
            self.until_put(crew, 28)  # no worker can be done before a third
            self.pause()
            living = crew.alive()
            crew.kill_all(living)
            self.screen.event(f"[red]SIGKILL to all {len(living)}[/]; no process is attached")
        finally:
            crew.close()
        self.moving_seconds += time.monotonic() - start

    def until_put(self, crew: Crew, percent: int) -> None:
        """Follows the workers until so much of the input is put, or no producer is left."""
        enough = self.plan.total * percent // 100

        def done() -> bool:
            producing = any(worker.role == "produce" for worker in crew.alive())
            return crew.moved("produce") >= enough or not producing

        self.phase(crew, done)

    def pause(self) -> None:
        """A moment of random length, so that a kill meets its process anywhere."""
        time.sleep(self.random.uniform(0, 0.01))

    def kill_and_replace(self, crew: Crew, worker: Worker) -> None:
        """Kills one worker with SIGKILL while the others continue, and replaces it."""
        self.pause()
        crew.kill(worker)
        successor = crew.start(worker.role, worker.number)
        self.screen.event(f"[red]SIGKILL[/] to {worker}; {successor} takes its place")

    def restart(self) -> None:
        """Restart recovery, and the count of everything that was committed before the crash.

        Before it the second reader predicts the result from the files alone.
        """
        directory = manager_directory(MANAGER, self.plan.home)
        state = QueueManagerFiles(directory).replay()
        foretold = [message.identity for message in state.messages(LINES_QUEUE)]
        self.screen.event(f"the second reader finds {len(foretold):,} lines on the queue")
        begin = time.perf_counter()
        with penstock.connect(MANAGER, home=self.plan.home) as qm:
            self.restart_seconds = time.perf_counter() - begin
            positions = [int(body) for body in self.bodies(qm, *map(progress_queue, range(3)))]
            with qm.open(LINES_QUEUE) as queue:
                browsed = list(queue.browse())
            queued = [Tag.unpack(message.correl_id) for message in browsed]
            receipts = [Receipt.unpack(body) for body in self.bodies(qm, LEDGER_QUEUE)]
        if foretold != [message.number for message in browsed]:
            raise ProofFailed("the restart and the second reader differ in what is on the queue")
        taken, waiting = self.census.exactly_once(receipts, queued, positions)
        self.put = sum(positions)
        self.taken = taken
        self.screen.event(
            f"[green]queue manager restarted[/] in {self.restart_seconds * 1000:.0f} ms: "
            f"{self.put:,} lines put = {waiting:,} on the queue + {taken:,} on receipts, each "
            "once, in the second reader's order"
        )

    @staticmethod
    def bodies(qm: penstock.QueueManager, *queues: str) -> list[bytes]:
        """Bodies of all messages on these queues, which stay there."""
        found = []
        for name in queues:
            with qm.open(name) as queue:
                found += [message.data for message in queue.browse()]
        return found

    def finish_putting(self) -> None:
        """Producers continue where their last committed unit ended; consumers leave them a lead."""
        crew = Crew(self.plan_path)
        start = time.monotonic()
        enough = self.plan.total * 60 // 100
        try:
            for number in range(PRODUCERS):
                crew.start("produce", number)
            consumers = [crew.start("consume", number) for number in range(CONSUMERS)]
            self.screen.event("producers resume where their last committed unit ended")

            def sated() -> bool:
                return self.taken + crew.moved("consume") >= enough

            def all_put() -> bool:
                return not any(worker.role == "produce" for worker in crew.alive())

            self.phase(crew, lambda: sated() or all_put())
            self.phase(crew, lambda: all(worker.ready for worker in consumers))
            for consumer in consumers:
                consumer.process.terminate()
            self.phase(crew, lambda: not crew.alive())
            crew.listen(0)
            self.put += crew.moved("produce")
            self.taken += crew.moved("consume")
        finally:
            crew.close()
        self.moving_seconds += time.monotonic() - start
        left = self.plan.total - self.taken
        self.screen.event(f"the last line is put; {left:,} lines wait on the queue")

    def drain(self) -> None:
        """Two new consumers take the rest. Now priorities may only fall."""
        crew = Crew(self.plan_path)
        start = time.monotonic()
        try:
            for number in range(CONSUMERS):
                crew.start("drain", number)
            self.phase(crew, lambda: not crew.alive())
        finally:
            crew.close()
        self.moving_seconds += time.monotonic() - start
        self.screen.event("the queue is drained")

    def prove(self) -> None:
        """The end check. Raises ProofFailed."""
        with penstock.connect(MANAGER, home=self.plan.home) as qm:
            positions = [int(body) for body in self.bodies(qm, *map(progress_queue, range(3)))]
            receipts = [Receipt.unpack(body) for body in self.bodies(qm, LEDGER_QUEUE)]
            with qm.open(LINES_QUEUE) as queue:
                queued = [Tag.unpack(message.correl_id) for message in queue.browse()]
        if sum(positions) != self.plan.total or queued:
            raise ProofFailed(f"{sum(positions)} lines put, {len(queued)} still on the queue")
        taken, _ = self.census.exactly_once(receipts, queued, positions)
        whole = self.census.whole(receipts)
        ordered = self.census.in_order(receipts)
        again = sum(e.backout_count > 0 for receipt in receipts for e in receipt.entries)
        self.units = len(receipts)
        self.screen.event(
            f"[green]proven[/]: {taken:,} of {self.plan.total:,} lines taken exactly once, "
            f"{whole:,} with their bytes and priority, {ordered:,} compared for order; "
            f"{again:,} had been in the hands of a process that was killed"
        )

    def figures(self) -> None:
        """Rates, compared with the raw disk in the same minute."""
        lines = self.plan.total / self.moving_seconds
        unit_bytes = self.unit_bytes()
        raw_put, our_put, raw_unit = self.measure(unit_bytes)
        units = self.units + -(-self.plan.total // self.plan.unit)
        rate = units / self.moving_seconds
        self.screen.figures(
            "figures of this run",
            [
                ("lines through the queue, process starts included", f"{lines:,.0f} /s"),
                ("durable units of work (puts and gets)", f"{rate:,.0f} /s"),
                (
                    f"raw disk: appends of {unit_bytes:,} bytes, flushed",
                    f"{1 / raw_unit:,.0f} /s",
                ),
                ("durable put of 1 KiB, one process", f"{1 / our_put:,.0f} /s"),
                ("raw disk: append of the same, padded, flushed", f"{1 / raw_put:,.0f} /s"),
                ("durable put : raw disk", f"{raw_put / our_put:.2f}"),
                ("restart after the crash", f"{self.restart_seconds * 1000:.0f} ms"),
            ],
        )

    def unit_bytes(self) -> int:
        """The approximate size of a producer's unit of work in the journal."""
        size = sum(len(line) for n in range(PRODUCERS) for _, line, _ in self.plan.lines_of(n))
        return size * self.plan.unit // max(1, self.plan.total) + 272 * self.plan.unit

    def measure(self, unit_bytes: int) -> tuple[float, float, float]:
        """Seconds of: a raw append of a 1 KiB put's record, that put, a raw append of a unit."""
        raw = RawLog(self.folder / "raw.log", 16 << 20)
        single, unit = padded(os.urandom(PUT_BODY + 320)), padded(os.urandom(unit_bytes))
        body = os.urandom(PUT_BODY)
        try:
            with penstock.connect(MANAGER, home=self.plan.home) as qm:
                with qm.queue("DEMO.FIGURES") as queue:
                    raw_put, our_put = compare(
                        lambda: raw.append(single), lambda: queue.put(body, persistent=True)
                    )
                raw_unit, _ = compare(lambda: raw.append(unit), lambda: None)
        finally:
            raw.close()
        return raw_put, our_put, raw_unit


def demonstration_folder(home: Path | None) -> Path:
    """A new directory on a disk: below ``home``, else in /var/tmp, which unlike /tmp is no
    tmpfs.
    """
    if home is not None:
        home.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="penstock-demo-", dir=home))
    var = "/var/tmp"
    usable = os.path.isdir(var) and os.access(var, os.W_OK | os.X_OK)
    return Path(tempfile.mkdtemp(prefix="penstock-demo-", dir=var if usable else None))


def remove_folder(folder: Path) -> None:
    """Deletes the queue manager in order, then the directory."""
    if MANAGER in penstock.managers(home=folder):
        penstock.delete(MANAGER, home=folder)
    shutil.rmtree(folder, ignore_errors=True)

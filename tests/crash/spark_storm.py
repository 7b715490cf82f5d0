"""Exactly once through Spark: drivers and workers killed at every phase, then all messages counted.

    python tests/crash/spark_storm.py [--random 12] [--tasks 0] [--only POINT | --part 1/3]
        [--seed 1] [--keep]

A supervisor puts messages with unique ids on the queues IN, IN.TOO and HOP, non-persistent ones
among them, while the job of spark_driver.py streams the first two, by a pattern, into a Parquet
table, and HOP, through the sink, onto the queues that its rows name: OUT, ODD, and a third one that
does not exist, so that these rows go to the dead-letter queue. HOP has a backout threshold of 1, so
that the source puts messages aside that the consumer, or the death of a driver, backed out. Beside
the streams a plain consumer takes messages from all three in units of work. The driver (with its
whole process group) or one worker is killed at each point of spark_dying.py, ``--random`` times at
any moment, and ``--tasks`` times a worker at the points of tasks in turn; the driver is started
again on its checkpoints at once, while workers of the last one may still be running.

At the end each id put on IN or IN.TOO was taken by the consumer or is in the table, once; each put
on HOP was taken or is on one of the other queues, once; every body is whole; in each file of the
table the messages of one queue and priority are in the order of their arrival, except those that
the consumer backed out; and no unit of work is left prepared.

Runs in a new PID namespace. Kills only the process groups it started, and processes of that
namespace; never a pid of 1 or less.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

import pyarrow.parquet

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from pid_namespace import inside_namespace  # noqa: E402
from spark_dying import IN_WORKERS, POINTS  # noqa: E402

import penstock  # noqa: E402
from spark_home import quick_home  # noqa: E402

MANAGER = "SPARKSTORM"
TABLED = ("IN", "IN.TOO")  # queues of one stream
SOURCES = (*TABLED, "HOP")
RESULTS = ("OUT", "ODD", "DEAD", "POISON")  # queues of the messages of HOP
HEADER = 172  # bytes of an MQDLH
START_SECONDS, POINT_SECONDS, END_SECONDS = 300, 300, 300
MOST_ENDS = 15
PAUSE = 0.004  # seconds between two units of the producer
BACKLOG = 2_000  # messages waiting; above it the producer rests


def body_of(number: int) -> bytes:
    """The body that belongs to an id: a checksum, the id, a filling."""
    length = 9_000 if number % 53 == 0 else 16 + number % 300
    content = struct.pack("<Q", number) + random.Random(number).randbytes(length)
    return struct.pack("<I", zlib.crc32(content)) + content


def number_of(correl_id: bytes, body: bytes) -> int:
    """The id of a message that is whole; AssertionError otherwise."""
    number = int(struct.unpack_from("<Q", correl_id)[0])
    assert bytes(body) == body_of(number), f"message {number} is not whole"
    return number


# ---- the plain programs beside the streams ----


@dataclass
class Ledger:
    """The messages put on a queue, and those that the plain consumer took from it."""

    queue: str
    put: list[int] = field(default_factory=list)
    taken: Counter[int] = field(default_factory=Counter)
    returned: set[int] = field(default_factory=set)  # backed out at least once


class Programs:
    """A producer and a consumer of all queues, each a thread with its own units of work."""

    def __init__(self, qm: penstock.QueueManager, seed: int) -> None:
        self.qm, self.seed = qm, seed
        self.ledgers = [Ledger(name) for name in SOURCES]
        self.stop = {"producer": threading.Event(), "consumer": threading.Event()}
        self.failed: list[BaseException] = []
        self.threads = {
            name: threading.Thread(target=self.run, args=(name,), daemon=True) for name in self.stop
        }

    def start(self) -> None:
        for thread in self.threads.values():
            thread.start()

    def end(self, name: str) -> None:
        self.stop[name].set()
        self.threads[name].join(30)
        assert not self.threads[name].is_alive(), f"the {name} does not end"

    def run(self, name: str) -> None:
        try:
            rng = random.Random(f"{self.seed} {name}")
            queues = [self.qm.open(ledger.queue) for ledger in self.ledgers]
            while not self.stop[name].is_set():
                for ledger, queue in zip(self.ledgers, queues, strict=True):
                    getattr(self, name)(rng, ledger, queue)
                time.sleep(PAUSE)
        except BaseException as error:  # raised again by the supervisor
            self.failed.append(error)

    def producer(self, rng: random.Random, ledger: Ledger, queue: penstock.Queue) -> None:
        if queue.depth > BACKLOG:
            return
        numbers = range(len(ledger.put) + 1, len(ledger.put) + 1 + rng.randint(1, 4))
        with self.qm.transaction():
            for number in numbers:
                queue.put(
                    body_of(number),
                    priority=number % 3,
                    persistent=number % 5 != 0,
                    correl_id=struct.pack("<Q", number),
                )
        ledger.put.extend(numbers)

    def consumer(self, rng: random.Random, ledger: Ledger, queue: penstock.Queue) -> None:
        if rng.random() < 0.95:
            return
        try:
            message = queue.get(syncpoint=True)
        except penstock.NoMessageAvailable:
            return
        number = number_of(message.correl_id, message.data)
        if rng.random() < 0.2:
            ledger.returned.add(number)
            self.qm.backout()
        else:
            self.qm.commit()
            ledger.taken[number] += 1


# ---- the driver and its deaths ----


class Driver:
    """The Spark job's processes, started again whenever they are gone."""

    def __init__(self, folder: Path, home: Path, program: str = "spark_driver.py") -> None:
        self.folder, self.home, self.program = folder, home, program
        self.spark_home = quick_home(folder / "spark")
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.before: list[str] = []  # of its command
        self.address = "127.0.0.1"

    def start(self) -> None:
        (self.folder / "started").unlink(missing_ok=True)
        self.starts += 1
        with (self.folder / f"driver.{self.starts}.log").open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *self.before,
                    sys.executable,
                    HERE / self.program,
                    MANAGER,
                    self.home,
                    self.folder,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={
                    **os.environ,
                    "STORM_FOLDER": str(self.folder),
                    "PYTHONPATH": str(HERE),
                    "SPARK_HOME": str(self.spark_home),
                    "SPARK_LOCAL_IP": self.address,
                    "PYSPARK_PYTHON": sys.executable,
                },
            )
        (self.folder / "driver").write_text(str(self.process.pid))
        self.wait_for(self.folder / "started", START_SECONDS)
        assert self.alive(), f"the driver ended:\n{self.log()}"

    def wait_for(self, mark: Path, seconds: float) -> None:
        """Waits until the file exists or the driver has ended; AssertionError after a limit."""
        deadline = time.monotonic() + seconds
        while self.alive() and not mark.exists():
            if time.monotonic() > deadline:
                raise AssertionError(f"no {mark.name} within {seconds} s:\n{self.log()}")
            time.sleep(0.02)

    def log(self) -> str:
        text = (self.folder / f"driver.{self.starts}.log").read_text(errors="replace")
        return text[-4_000:]

    def reason(self) -> str:
        """The last line of its log that names an error."""
        path = self.folder / f"driver.{self.starts}.log"
        lines = [line.strip() for line in path.read_text(errors="replace").splitlines()]
        return ([line for line in lines if "Error: " in line or "Exception: " in line] or [""])[-1]

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """The driver with its process group: the machine that runs Spark's JVM."""
        assert self.process is not None
        if self.process.pid <= 1:
            raise AssertionError(f"refusing to kill {self.process.pid}")
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(60)

    def workers(self) -> list[int]:
        """Python processes of Spark in this PID namespace, except their parent, the daemon."""
        parents: dict[int, int] = {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and b"pyspark" in (entry / "cmdline").read_bytes():
                    state = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                    parents[int(entry.name)] = int(state[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
        return [pid for pid, parent in parents.items() if parent in parents and pid > 1]


class Storm:
    """One queue manager, its programs, a driver, and the kills."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.rng = random.Random(seed)
        home = folder / "home"
        penstock.create(MANAGER, home=home)
        self.qm = penstock.connect(MANAGER, home=home)
        for name in (*SOURCES, *RESULTS):
            self.qm.define("QLOCAL", name, maxdepth=999_999_999)
        self.qm.alter("QLOCAL", "HOP", bothresh=1, boqname="POISON")
        self.programs = Programs(self.qm, seed)
        self.driver = self.driver_of(folder, home)
        self.kills = Counter[str]()
        self.counts: dict[str, int] = {}  # of the queues of HOP's messages
        self.ends = 0  # of drivers that were not killed

    def driver_of(self, folder: Path, home: Path) -> Driver:
        return Driver(folder, home)

    def run(self, points: list[str], in_tasks: list[str], randomly: int) -> None:
        orders = [(point, "driver") for point in points]
        orders += [(point, "worker") for point in in_tasks]
        orders += [("", "driver" if n % 2 else "worker") for n in range(randomly)]
        self.rng.shuffle(orders)
        self.programs.start()
        self.driver.start()
        for number, (point, victim) in enumerate(orders):
            if point:
                self.kill_at(point, victim, number)
            else:
                self.kill_at_random(victim)
            self.kills[victim] += 1
            if self.programs.failed:
                raise self.programs.failed[0]
        self.end()

    def kill_at(self, point: str, victim: str, number: int) -> None:
        order = {"point": point, "victim": victim, "number": number}
        (self.folder / "order.new").write_text(json.dumps(order))
        (self.folder / "order.new").rename(self.folder / "order")
        claim = self.folder / f"done.{number}"
        self.driver.wait_for(claim, POINT_SECONDS)
        while not claim.exists():  # a worker's death may end the driver only now
            self.start_again()
            self.driver.wait_for(claim, POINT_SECONDS)
        if victim == "driver":
            self.driver.kill()
            self.driver.start()
        else:
            self.survive()

    def kill_at_random(self, victim: str) -> None:
        time.sleep(self.rng.uniform(0.2, 3))
        if victim == "driver":
            self.driver.kill()
            self.driver.start()
            return
        workers = self.driver.workers()
        if workers:
            try:
                os.kill(self.rng.choice(workers), signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.survive()

    def survive(self) -> None:
        """After a worker's death the streams go on, or end because the worker was the source's."""
        time.sleep(1)
        if not self.driver.alive():
            self.start_again()

    def start_again(self) -> None:
        """A driver ended that was not killed: its stream failed, which a worker's death or a slow
        machine may cause. Exactly once holds nevertheless; too many of them hide the test's aim.
        """
        self.ends += 1
        print(f"driver {self.driver.starts} ended: {self.driver.reason()}", flush=True)
        assert self.ends <= MOST_ENDS, f"{self.ends} drivers ended unkilled:\n{self.driver.log()}"
        self.driver.start()

    def end(self) -> None:
        """No more messages, no more kills: the streams take the remaining messages and stop."""
        (self.folder / "order").unlink(missing_ok=True)
        self.programs.end("producer")
        self.programs.end("consumer")
        (self.folder / "stop").touch()
        for _ in range(3):  # a worker's death may still end the driver now
            deadline = time.monotonic() + END_SECONDS
            while self.driver.alive() and time.monotonic() < deadline:
                time.sleep(0.1)
            assert self.driver.process is not None
            if self.driver.process.poll() == 0:
                return
            if self.driver.alive():
                break
            self.start_again()
        raise AssertionError(f"the driver does not end in order:\n{self.driver.log()}")

    # ---- the end check ----

    def table(self) -> dict[str, Counter[int]]:
        """Ids of each queue in the files that the table's log names; their order is checked."""
        returned = {ledger.queue: ledger.returned for ledger in self.programs.ledgers}
        found = {name: Counter[int]() for name in TABLED}
        for path in self.files():
            last: dict[tuple[str, int], int] = {}
            for row in pyarrow.parquet.ParquetFile(path).read().to_pylist():
                number = number_of(row["correl_id"], row["body"])
                found[row["queue"]][number] += 1
                if number in returned[row["queue"]]:
                    continue  # back on the queue behind messages that were taken since
                level, sequence = (row["queue"], row["priority"]), row["sequence"]
                assert last.get(level, 0) < sequence, f"{path.name}: out of order"
                last[level] = sequence
        return found

    def files(self) -> set[Path]:
        """Committed files of the table: those of failed attempts lie beside them."""
        paths = set()
        for log in (self.folder / "table" / "_spark_metadata").iterdir():
            if log.name.startswith("."):
                continue
            for line in log.read_text().splitlines()[1:]:
                paths.add(Path(json.loads(line)["path"].removeprefix("file://")))
        return paths

    def out(self) -> Counter[int]:
        """Ids on the queues of HOP's messages, each of which is on the one that it belongs to."""
        found = Counter[int]()
        for name in RESULTS:
            skipped = HEADER if name == "DEAD" else 0
            with self.qm.open(name) as queue:
                ids = [number_of(m.correl_id, m.data[skipped:]) for m in queue.browse()]
            strange = {number for number in ids if (number & 255) % 3 != RESULTS.index(name)}
            assert name == "POISON" or not strange, f"{name}: {strange}"
            self.counts[name] = len(ids)
            found.update(ids)
        return found

    def check(self) -> str:
        """Compares all that was put with all that came out; the verdict's middle part."""
        self.qm.maintain()
        self.qm.check()
        delivered = {**self.table(), "HOP": self.out()}
        for ledger in self.programs.ledgers:
            found = delivered[ledger.queue] + ledger.taken
            want = Counter(ledger.put)
            lost, more = want - found, found - want
            assert not lost and not more, f"{ledger.queue}: lost {lost}, too often {more}"
            with self.qm.open(ledger.queue) as queue:
                assert queue.depth == 0, f"{ledger.queue}: {queue.depth} left"
        left = [str(xid) for xid in self.qm.recover()]
        assert not left, f"prepared after the end: {left}"
        put = sum(len(ledger.put) for ledger in self.programs.ledgers)
        taken = sum(ledger.taken.total() for ledger in self.programs.ledgers)
        on = ", ".join(f"{count} on {name}" for name, count in self.counts.items())
        return f"{put} messages, {taken} of them taken by others beside the streams, {on}"


def storm_parser(text: str | None, points: Sequence[str], randomly: int) -> argparse.ArgumentParser:
    """The options of a storm with kill points, by its docstring."""
    parser = argparse.ArgumentParser(description=(text or "").split("\n")[0])
    parser.add_argument("--random", type=int, default=randomly, help="accidents at any moment")
    parser.add_argument("--tasks", type=int, default=0, help="more kills of workers in tasks")
    parser.add_argument("--only", action="append", choices=points, help="of these points alone")
    parser.add_argument(
        "--part", default="1/1", help="2/3: the second, fifth, eighth… of the points"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the files where they are")
    return parser


def chosen(arguments: argparse.Namespace, points: Sequence[str]) -> list[str]:
    """The points that the options name."""
    first, parts = map(int, arguments.part.split("/"))
    if not 1 <= first <= parts:
        raise SystemExit(f"--part {arguments.part}: there is no such part")
    return list(arguments.only or points)[first - 1 :: parts]


def chosen_in_tasks(arguments: argparse.Namespace, points: Sequence[str]) -> list[str]:
    """Points of tasks, whose worker dies: those that are chosen, and --tasks of all in turn."""

    def of_tasks(some: Sequence[str]) -> list[str]:
        return [point for point in some if point.split(".")[0] in IN_WORKERS]

    more = islice(cycle(of_tasks(points)), arguments.tasks)
    return [*of_tasks(chosen(arguments, points)), *more]


def main() -> None:
    """One storm; returns the exit status."""
    arguments = storm_parser(__doc__, POINTS, 12).parse_args()
    inside_namespace()
    folder = Path(tempfile.mkdtemp(prefix="penstock-spark-storm-"))
    begin = time.monotonic()
    try:
        storm = Storm(folder, arguments.seed)
        try:
            in_tasks = chosen_in_tasks(arguments, POINTS)
            storm.run(chosen(arguments, POINTS), in_tasks, arguments.random)
            counted = storm.check()
        finally:
            if storm.driver.alive():
                storm.driver.kill()
            storm.qm.close()
    finally:
        if arguments.keep:
            print(f"kept {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    kills = ", ".join(f"{count} of a {victim}" for victim, count in sorted(storm.kills.items()))
    print(
        f"spark storm: {storm.kills.total()} kills ({kills}), {storm.driver.starts} drivers "
        f"({storm.ends} ended by themselves), {counted}: 0 lost, 0 twice, "
        f"0 prepared, in {time.monotonic() - begin:.0f} s, seed {arguments.seed}"
    )


if __name__ == "__main__":
    main()

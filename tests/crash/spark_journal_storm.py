"""Each event once through a stream over the journal: drivers and workers killed, then compared.

    python tests/crash/spark_journal_storm.py [--random 10] [--tasks 0] [--only POINT | --part 1/3]
        [--seed 1] [--keep]

A program puts and gets messages in units of work, some of which are backed out, prepared, or
prepared and decided much later, while the job of spark_journal_driver.py streams the journal into a
Parquet table; it rests when the stream is far behind. Segments are small and move into the archive
all the time. The driver (with its whole process group) or one worker is killed at each point of
spark_dying.py, ``--random`` times at any moment, and ``--tasks`` times a worker at the points of
tasks in turn; the driver is started again on its checkpoint at once.

At the end the table is what the model finds that reads all records by the cffi reader: each event
once, with its body; no unit of work is divided over two micro-batches; and in each file the rows
are in the order of the decisions.

Runs in a new PID namespace. Kills only the process groups it started, and processes of that
namespace; never a pid of 1 or less.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "journal"), str(HERE.parent), str(HERE)]

from event_model import EventModel  # noqa: E402
from pid_namespace import inside_namespace  # noqa: E402
from spark_dying import JOURNAL_POINTS  # noqa: E402
from spark_storm import (  # noqa: E402
    MANAGER,
    Driver,
    Storm,
    chosen,
    chosen_in_tasks,
    storm_parser,
)

import penstock  # noqa: E402

SMALL = {"segment_size": 256 << 10, "journal_limit": 8 << 20, "ring_size": 1 << 18}
QUEUES = ("ORDERS", "OTHER")
PAUSE = 0.04  # seconds between two units
BEHIND = 6 << 20  # bytes of journal that the stream has not read; above it the program rests
OLD_UNITS = 5  # prepared ones that wait for a decision


class Work:
    """Units of work of all kinds, in a thread, until it is stopped."""

    def __init__(self, qm: penstock.QueueManager, seed: int, checkpoint: Path) -> None:
        self.qm, self.rng, self.checkpoint = qm, random.Random(f"{seed} work"), checkpoint
        self.stop = threading.Event()
        self.failed: list[BaseException] = []
        self.prepared: list[penstock.Xid] = []
        self.units = 0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def start(self) -> None:
        self.thread.start()

    def end(self, name: str) -> None:
        """Decides what is prepared, and ends; ``name`` is ignored."""
        self.stop.set()
        self.thread.join(60)
        assert not self.thread.is_alive(), "the work does not end"

    def run(self) -> None:
        try:
            with self.qm.open(QUEUES[0]) as first, self.qm.open(QUEUES[1]) as second:
                while not self.stop.is_set():
                    if self.units % 50 or self.behind() < BEHIND:
                        self.unit((first, second))
                    time.sleep(PAUSE)
                while self.prepared:
                    self.decide()
        except BaseException as error:  # raised again by the supervisor
            self.failed.append(error)

    def behind(self) -> int:
        """Bytes of journal behind the newest offset in the stream's log."""
        durable: int = self.qm.status().durable_lsn
        logs = [path for path in self.checkpoint.glob("offsets/*") if path.name.isdigit()]
        if not logs:
            return durable
        newest = max(logs, key=lambda path: int(path.name)).read_text().splitlines()[-1]
        return durable - int(json.loads(newest)["lsn"])

    def unit(self, queues: tuple[penstock.Queue, ...]) -> None:
        rng = self.rng
        self.units += 1
        for _ in range(rng.randint(1, 4)):
            queue = rng.choice(queues)
            if queue.depth > 200 or rng.random() < 0.45:
                with suppress(penstock.NoMessageAvailable):
                    queue.get(syncpoint=True)
            else:
                body = rng.randbytes(rng.choice((0, 20, 300, 3000, 40_000 * (rng.random() < 0.1))))
                queue.put(body, persistent=rng.random() < 0.9, syncpoint=True)
        fate = rng.random()
        if fate < 0.15:
            self.qm.backout()
        elif fate < 0.3:
            xid = penstock.Xid(7, b"%d" % self.units)
            self.qm.prepare(xid, allow_empty=True)
            self.prepared.append(xid)
        else:
            self.qm.commit()
        while len(self.prepared) > OLD_UNITS:
            self.decide()
        if self.units % 50 == 0:
            self.qm.checkpoint()

    def decide(self) -> None:
        xid = self.prepared.pop(self.rng.randrange(len(self.prepared)))
        (self.qm.backout_prepared if self.rng.random() < 0.2 else self.qm.commit_prepared)(xid)


class JournalStorm(Storm):
    """One queue manager, the work on it, a driver, and the kills."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.rng = random.Random(seed)
        home = folder / "home"
        penstock.create(MANAGER, home=home, logging="linear", **SMALL)
        self.qm = penstock.connect(MANAGER, home=home)
        for name in QUEUES:
            self.qm.define("QLOCAL", name, maxdepth=999_999_999)
        self.programs = Work(self.qm, seed, folder / "checkpoint")
        self.driver = Driver(folder, home, "spark_journal_driver.py")
        self.kills = Counter[str]()
        self.ends = 0

    def batches(self) -> list[list[Path]]:
        """The committed files of the table, by micro-batch, as its log names them.

        The log of each tenth micro-batch (``9.compact``) has the files of all before it, too.
        """
        folder = self.folder / "table" / "_spark_metadata"
        logs = {
            int(number): log
            for log in folder.iterdir()
            if (number := log.name.removesuffix(".compact")).isdigit()
        }
        assert sorted(logs) == list(range(len(logs))), f"logs of {sorted(logs)}"
        found: list[list[Path]] = []
        known = set[Path]()
        for number in sorted(logs):
            lines = logs[number].read_text().splitlines()[1:]
            paths = {Path(json.loads(line)["path"].removeprefix("file://")) for line in lines}
            found.append(sorted(paths - known))
            known |= paths
        return found

    def check(self) -> str:
        """Compares the table with the model; the verdict's middle part."""
        self.qm.maintain()
        self.qm.check()
        found = Counter[tuple[object, ...]]()
        where: dict[int, int] = {}
        for number, files in enumerate(self.batches()):
            for path in files:
                order = []
                for row in pyarrow.parquet.ParquetFile(path).read().to_pylist():
                    decision = row["commit_lsn"]
                    order.append((decision, row["lsn"]))
                    assert where.setdefault(decision, number) == number, f"{decision} is divided"
                    found[tuple(row.values())] += 1
                assert order == sorted(order), f"{path.name}: out of order"
        model = EventModel(self.qm.path, self.qm.status().durable_lsn)
        want = Counter[tuple[object, ...]](tuple(event) for event in model.events)
        lost, more = want - found, found - want
        assert not lost and not more, f"lost {len(lost)}, too often {len(more)}"
        archived = len(list(self.qm.path.glob("archive/*.psj")))
        assert archived > 10 and len(where) > 100, f"{archived} segments, {len(where)} decisions"
        return f"{found.total()} events of {len(where)} decisions, {archived} archived segments"


def main() -> None:
    """One storm; returns the exit status."""
    arguments = storm_parser(__doc__, JOURNAL_POINTS, 10).parse_args()
    inside_namespace()
    folder = Path(tempfile.mkdtemp(prefix="penstock-spark-journal-storm-"))
    begin = time.monotonic()
    try:
        storm = JournalStorm(folder, arguments.seed)
        try:
            in_tasks = chosen_in_tasks(arguments, JOURNAL_POINTS)
            storm.run(chosen(arguments, JOURNAL_POINTS), in_tasks, arguments.random)
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
        f"spark journal storm: {storm.kills.total()} kills ({kills}), "
        f"{storm.driver.starts} drivers ({storm.ends} ended by themselves), {counted}: 0 lost, "
        f"0 twice, 0 divided, in {time.monotonic() - begin:.0f} s, seed {arguments.seed}"
    )


if __name__ == "__main__":
    main()

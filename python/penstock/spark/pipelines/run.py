"""All pipelines on real lines, with the stream killed on the way; counts compared with grep's.

What must be true in the end, whatever was killed when:

* the table has each line of the files exactly once, with the level that grep sees;
* the alert service has written each line of at least the alert level exactly once;
* the journal says the same: each line was put and got once, and none is left;
* a replay of a part of the journal puts exactly the messages that were put there.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import penstock

from .alerts import ids_in
from .check import Counts, WrongCount, compare, count_by_grep
from .feed import feed
from .formats import SEVERITY
from .options import ALERTS
from .show import show_audit, show_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

__all__ = ["MANAGER", "QUEUE", "Run"]

MANAGER = "LOGS"
QUEUE = "LOG.LINES"
AGAIN = "LOG.AGAIN"
ALERT_LEVEL = "ERROR"
BATCHES = 10  # micro-batches that the lines are to take, about
KILL_AFTER = 3  # micro-batches of the first stream
PATIENCE = 600  # seconds that a part of the run may take on a slow machine
_PROGRAM = (sys.executable, "-m", "penstock.spark.pipelines")


class Run:
    """One run in a folder of its own."""

    def __init__(self, folder: Path, files: list[Path], console: Console) -> None:
        """``folder``: an empty one on a real disk. ``files``: the lines."""
        self.folder = folder
        self.files = files
        self.console = console
        self.table = folder / "table"
        self.alerts = folder / "alerts.jsonl"
        self._begin = time.monotonic()

    def run(self) -> None:
        """Runs everything and prints what it found.

        Raises:
            WrongCount: Something is lost, doubled or mistaken; the text says what.
        """
        from penstock.spark.local import local_session

        total, expected = count_by_grep(self.files)
        if not total:
            raise WrongCount("the files have no lines")
        penstock.create(MANAGER, self.folder)
        with penstock.connect(MANAGER, self.folder) as qm, self._alert_service():
            fed = feed(qm, QUEUE, self.files)
            self._say(f"{fed.messages:,} lines of {fed.files} files are on {QUEUE}")
            if fed.messages != total:
                raise WrongCount(f"{fed.messages} lines were put, grep counts {total}")
            self._kill_a_stream(total)
            spark = local_session("penstock pipelines")
            try:
                self._ingest(spark, total, expected)
                self._check_queue(qm)
                self._audit(spark, total)
                self._replay(spark, qm)
            finally:
                spark.stop()
        self._say("every count agrees with grep's")

    def remove(self) -> None:
        """Deletes the queue manager, the table and all else."""
        if MANAGER in penstock.managers(home=self.folder):
            penstock.delete(MANAGER, self.folder)
        shutil.rmtree(self.folder)

    # ---- steps ----

    def _options(self, total: int) -> dict[str, str]:
        return {
            "queueManager": MANAGER,
            "home": str(self.folder),
            "queue": QUEUE,
            "table": str(self.table),
            "checkpoint": str(self.folder / "checkpoint"),
            "alertLevel": ALERT_LEVEL,
            "maxMessagesPerTrigger": str(max(1, total // BATCHES)),
        }

    def _kill_a_stream(self, total: int) -> None:
        """Runs the stream in a process, and kills that with all its own in the middle."""
        words = []
        for name, value in self._options(total).items():
            words += ["--" + _kebab(name), value]
        log = self.folder / "killed.log"
        commits = self.folder / "checkpoint" / "table" / "commits"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*_PROGRAM, "ingest", *words], stdout=out, stderr=out, start_new_session=True
            )
            try:
                _until(
                    lambda: _files_in(commits) >= KILL_AFTER or process.poll() is not None,
                    "the first stream's micro-batches",
                )
            finally:
                _kill_group(process)
        done = _files_in(commits)
        if done < KILL_AFTER:
            raise RuntimeError(f"the first stream ended by itself:\n{log.read_text()[-2000:]}")
        self._say(f"the stream was killed after {done} micro-batches")

    def _ingest(self, spark: SparkSession, total: int, expected: Counts) -> None:
        from .ingest import ingest

        ingest(spark, self._options(total))
        rows = spark.read.parquet(str(self.table))
        found = {
            (row.log_format, row.level): row["count"]
            for row in rows.groupBy("log_format", "level").count().collect()
        }
        show_rows(
            self.console,
            "lines in the table, and what grep counts",
            ("format", "level", "lines", "grep"),
            ((*key, n, expected.get(key)) for key, n in sorted(found.items())),
        )
        compare("the table", found, total, expected)
        if rows.select("msg_id").distinct().count() != total:
            raise WrongCount("the table has a message twice")
        worst = SEVERITY[ALERT_LEVEL]
        self._check_alerts(
            sum(n for (_, level), n in expected.items() if SEVERITY[level] >= worst)
            + sum(n for (form, level), n in found.items()
                  if form == "generic" and SEVERITY[level] >= worst)
        )  # fmt: skip

    def _check_alerts(self, due: int) -> None:
        """Waits for the service, and sees that no alert is there twice."""
        _until(lambda: len(ids_in(self.alerts)) >= due, f"{due} alerts")
        ids = ids_in(self.alerts)
        if len(ids) != due or len(set(ids)) != due:
            raise WrongCount(f"{len(ids)} alerts, {len(set(ids))} different, {due} lines are due")
        self._say(f"{due:,} alerts of level {ALERT_LEVEL} and worse were taken by the service")

    def _check_queue(self, qm: penstock.QueueManager) -> None:
        """Nothing is left, neither on the queue nor in prepared units."""
        with qm.open(QUEUE) as lines:
            depth = lines.depth
        prepared = qm.prepared_list()
        if depth or prepared:
            raise WrongCount(f"{depth} lines and {len(prepared)} prepared units are left")

    def _audit(self, spark: SparkSession, total: int) -> None:
        from .audit import audit

        found = audit(spark, {"queueManager": MANAGER, "home": str(self.folder)})
        show_audit(self.console, found, 10)
        [row] = found.queues.where(f"queue = '{QUEUE}'").collect()
        seen = (row.puts, row.gets, row.never_got)
        if seen != (total, total, 0):
            raise WrongCount(f"the journal says {seen}: puts, gets, left; {total} lines were put")

    def _replay(self, spark: SparkSession, qm: penstock.QueueManager) -> None:
        """Replays the middle half of the lines, by LSN; twice under one name, which is once."""
        from .replay import replay

        rows = spark.read.parquet(str(self.table))
        low, high = rows.approxQuantile("lsn", [0.25, 0.75], 0.01)
        due = rows.where((rows.lsn >= int(low)) & (rows.lsn < int(high))).count()
        qm.queue(AGAIN).close()
        for _ in range(2):
            replay(
                spark,
                {
                    "queueManager": MANAGER,
                    "home": str(self.folder),
                    "queue": QUEUE,
                    "to": AGAIN,
                    "startingLsn": str(int(low)),
                    "endingLsn": str(int(high)),
                    "name": "the middle half",
                },
            )
        with qm.open(AGAIN) as again:
            if again.depth != due:
                raise WrongCount(f"{again.depth} messages were replayed, {due} are due")
        self._say(f"{due:,} messages between LSN {int(low)} and {int(high)} are on {AGAIN} again")

    # ---- around them ----

    def _say(self, text: str) -> None:
        seconds = time.monotonic() - self._begin
        self.console.print(f"{seconds:6.1f} s  {text}", highlight=False, soft_wrap=True)

    @contextmanager
    def _alert_service(self) -> Iterator[None]:
        """The consumer of alerts, as a process of its own."""
        command = [*_PROGRAM, "alerts", "--queue-manager", MANAGER, "--home", str(self.folder)]
        command += ["--queue", QUEUE + ALERTS, "--output", str(self.alerts)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE)
        if process.returncode:
            raise RuntimeError(f"the alert service ended with {process.returncode}")


def _kebab(name: str) -> str:
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name)


def _files_in(commits: Path) -> int:
    """Micro-batches that a checkpoint says are done."""
    try:
        return sum(name.isdigit() for name in os.listdir(commits))
    except FileNotFoundError:
        return 0


def _until(true: Callable[[], bool], what: str) -> None:
    """Waits for something. Raises TimeoutError naming it."""
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE} seconds for {what}")
        time.sleep(0.05)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that leads a session, and what it started in it, at once."""
    if process.pid <= 1:
        raise AssertionError(f"refusing to kill {process.pid}")
    if process.poll() is None:  # not waited for yet: the number is still its own
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

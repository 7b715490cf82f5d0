"""Runs all pipelines on real lines, kills programs on the way, and compares every count with grep.

A stream takes the lines, most severe first, into the table, another one the table's most severe
lines onto the alert queue, and a service without Spark takes the alerts from there. In the middle
of the work the streams' driver with all its workers and the service are killed at once, and started
again. Conditions at the end:

* the table has each line of the files exactly once, with the format and level that grep finds;
* the service has written each line of at least the alert level exactly once;
* the journal agrees: each line was put and got once, none is left, by whom it was put, and how long
  the lines waited at most;
* a replay of a part of the journal puts exactly the messages that were put there, with their
  bytes, and one of the same name nothing more.

Only programs that the run has started are killed, each by its session (processes.py).
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock
from penstock.spark.pipelines.alerts import ids_in
from penstock.spark.pipelines.feed import POSITIONS, Fed, feed
from penstock.spark.pipelines.formats import SEVERITY
from penstock.spark.pipelines.options import ALERTS
from penstock.spark.pipelines.show import show_audit

from .check import Checks, Counts, count_by_grep, show_checks
from .processes import Program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

__all__ = ["MANAGER", "QUEUE", "Run"]

MANAGER = "LOGS"
QUEUE = "LOG.LINES"
AGAIN = "LOG.AGAIN"
ALERT_LEVEL = "ERROR"
LONGEST = 100 << 20  # bytes of a line
BATCHES = 20  # micro-batches that the lines are to take, about
MOST_OF_A_BATCH = 50_000  # messages
KILL_AFTER = 3  # micro-batches of the first stream
TRIES = 5  # to start streams on a machine that is
TOO_BUSY = "Python worker failed to connect back"  # ... within ten seconds, which Spark fixes
PATIENCE = 600  # seconds that a part of the run may take on a slow machine
SETTLE = 60  # seconds for the service to write the alerts that are on its queue already


class Run:
    """One run in a folder for it."""

    def __init__(
        self,
        folder: Path,
        files: list[Path],
        console: Console,
        spark: SparkSession | None = None,
    ) -> None:
        """
        Args:
            folder: An empty one on a real disk.
            files: The lines; a file given twice counts once.
            console: For the results.
            spark: The session to use; else one is started on demand, and ended.
        """
        self.folder = folder
        self.files = sorted({file.resolve() for file in files})
        self.console = console
        self.spark = spark
        self.table = folder / "table"
        self.alerts = folder / "alerts.jsonl"
        self.checks = Checks()
        self.kills = 0
        self._begin = time.monotonic()
        self._service: Program | None = None

    def run(self) -> None:
        """Runs everything, prints the results, and a verdict when all conditions hold.

        Raises:
            ValueError: There are no lines.
            WrongCount: Lines are lost, repeated or wrong; the text names them.
        """
        total, expected = count_by_grep(self.files)
        if not total:
            raise ValueError("the files have no lines that are not blank")
        penstock.create(MANAGER, self.folder, logging="linear")  # the audit wants all of it
        with penstock.connect(MANAGER, self.folder) as qm:
            fed = self._feed(qm, total)
            with self._alert_service():
                self._kill_in_the_middle(total)
                with self._session() as spark:
                    due = self._ingest(spark, total, expected)
                    self._check_queue(qm)
                    self._audit(spark, fed, due)
                    self._replay(spark, qm)
        show_checks(self.console, self.checks)
        self.checks.evaluate()
        self._say(
            f"verdict: PROVEN: {len(self.checks)} counts agree, {total:,} lines, "
            f"{due:,} alerts, {self.kills} kills"
        )

    def remove(self) -> None:
        """Deletes the queue manager, the table and all else."""
        if MANAGER in penstock.managers(home=self.folder):
            penstock.delete(MANAGER, self.folder)
        shutil.rmtree(self.folder)

    # ---- steps ----

    def _feed(self, qm: penstock.QueueManager, total: int) -> Fed:
        qm.alter("QMGR", maxmsgl=LONGEST)
        qm.queue(QUEUE, maxmsgl=LONGEST).close()
        begin = time.monotonic()
        fed = feed(qm, QUEUE, self.files)
        rate = fed.messages / (time.monotonic() - begin)
        self._say(f"{fed.messages:,} lines of {fed.files} files are on {QUEUE} ({rate:,.0f}/s)")
        self.checks.add("lines that were put", fed.messages, total)
        return fed

    @property
    def _place(self) -> dict[str, Any]:
        return {"queueManager": MANAGER, "home": str(self.folder)}

    def _options(self, total: int) -> dict[str, Any]:
        return {
            **self._place,
            "queue": QUEUE,
            "table": str(self.table),
            "checkpoint": str(self.folder / "checkpoint"),
            "alertLevel": ALERT_LEVEL,
            "maxMessagesPerTrigger": str(_per_batch(total)),
        }

    def _kill_in_the_middle(self, total: int) -> None:
        """Runs the streams in a process, and kills that and the service when both are at work."""
        words = ["ingest"]
        for name, value in {**self._options(total), "trigger": "0 seconds"}.items():
            words += ["--" + _kebab(name), value]
        batches = -(-total // _per_batch(total))
        output = self.folder / "killed.log"
        for _ in range(TRIES):
            first = Program(words, output)
            try:
                if self._gets_to_work(first, batches):
                    break
            finally:
                first.kill()
            if TOO_BUSY not in output.read_text(errors="replace"):
                raise first.failed("the first streams ended by themselves")
        else:
            raise first.failed(f"the first streams ended by themselves {TRIES} times")
        self.kills += 1
        assert self._service is not None
        self._service.kill()
        self.kills += 1
        self._service = self._start_service()
        done = [f"{self._logged(name, 'commits')} of {name}" for name in ("table", "alerts")]
        self._say(f"streams and service were killed after the micro-batches {' and '.join(done)}")

    def _gets_to_work(self, streams: Program, batches: int) -> bool:
        """Waits until it is time to kill the streams; False when they end before."""
        _until(lambda: not streams.is_running or self._is_time(batches), "the first streams")
        return streams.is_running

    def _is_time(self, batches: int) -> bool:
        """In a micro-batch of the table that is not one of the first, unless there are no more,
        when alerts were put, or it is high time.
        """
        planned = self._logged("table", "offsets")
        return planned > min(KILL_AFTER, batches - 1) and (
            self._logged("alerts", "commits") > 0 or planned >= batches - 2
        )

    def _logged(self, stream: str, log: str) -> int:
        """Micro-batches in a checkpoint: planned (offsets) or done (commits)."""
        try:
            names = os.listdir(self.folder / "checkpoint" / stream / log)
        except FileNotFoundError:
            return 0
        return sum(name.isdigit() for name in names)

    def _ingest(self, spark: SparkSession, total: int, expected: Counts) -> int:
        """Goes on from the checkpoints to the end; how many alerts there must be."""
        from pyspark.errors import StreamingQueryException

        from penstock.spark.pipelines.ingest import ingest

        begin = time.monotonic()
        for left in reversed(range(TRIES)):
            try:
                queries = ingest(spark, self._options(total))
                break
            except StreamingQueryException as error:
                if TOO_BUSY not in str(error) or not left:
                    raise
        lines = sum(progress.numInputRows for progress in queries[0].recentProgress)
        rate = lines / (time.monotonic() - begin)
        self._say(f"the streams were started again and are done ({lines:,} lines, {rate:,.0f}/s)")
        rows = spark.read.parquet(str(self.table))
        found = {
            (row.log_format, row.level): row["count"]
            for row in rows.groupBy("log_format", "level").count().collect()
        }
        self.checks.add("lines in the table", sum(found.values()), total)
        self.checks.add_lines("lines in the table", found, expected)
        ids = rows.select("msg_id").distinct().count()
        self.checks.add("different messages in the table", ids, total)
        due = sum(n for (_, level), n in expected.items() if SEVERITY[level] >= _worst())
        self._check_alerts(due)
        return due

    def _check_alerts(self, due: int) -> None:
        """Waits for the service, and checks that no alert is repeated."""
        end = time.monotonic() + SETTLE
        while len(ids_in(self.alerts)) < due and time.monotonic() < end:
            time.sleep(0.05)
        ids = ids_in(self.alerts)
        self._say(f"{len(ids):,} alerts were taken by the service")
        self.checks.add("alerts that the service wrote", len(ids), due)
        self.checks.add("different alerts", len(set(ids)), due)

    def _check_queue(self, qm: penstock.QueueManager) -> None:
        """Nothing is left, neither on the queue nor in prepared units."""
        with qm.open(QUEUE) as lines:
            self.checks.add("lines left on the queue", lines.depth, 0, "none may be")
        self.checks.add("units left prepared", len(qm.prepared_list()), 0, "none may be")

    def _audit(self, spark: SparkSession, fed: Fed, alerts: int) -> None:
        from penstock.spark.pipelines.audit import audit

        found = audit(spark, self._place)
        show_audit(self.console, found, 10)
        queues = {row.queue: row.asDict() for row in found.queues.collect()}
        putters = [row.messages for row in found.putters.limit(1).collect()]
        lines = queues.get(QUEUE, {})
        for name, due in (("puts", fed.messages), ("gets", fed.messages), ("never_got", 0),
                          ("gets_unknown", 0), ("bytes", fed.bytes)):  # fmt: skip
            self.checks.add(f"audit of the lines: {name}", lines.get(name, -1), due, "the feed")
        positions = queues.get(QUEUE + POSITIONS, {}).get("puts", 0)  # the feeder's, too
        most = putters[0] - positions if putters else 0
        self.checks.add("audit: lines of the top putter", most, fed.messages, "the feed")
        ran = time.monotonic() - self._begin
        waited = 0 < lines.get("p50", -1) <= lines["p99"] <= lines["longest"] <= ran
        self.checks.add("audit: waits lie within the run", int(waited), 1, "the clock")
        for name in ("puts", "gets") if alerts else ():
            seen = queues.get(QUEUE + ALERTS, {}).get(name, 0)
            self.checks.add(f"audit of the alerts: {name}", seen, alerts)
        found.release()

    def _replay(self, spark: SparkSession, qm: penstock.QueueManager) -> None:
        """Replays the middle half of the lines, by LSN; twice under one name, which is once."""
        from penstock.spark.pipelines.replay import replay

        rows = spark.read.parquet(str(self.table))
        low, high = (int(lsn) for lsn in rows.approxQuantile("lsn", [0.25, 0.75], 0.01))
        high = max(high, low + 1)
        due = rows.where((rows.lsn >= low) & (rows.lsn < high)).count()
        interval = {"startingLsn": low, "endingLsn": high, "name": "the middle half"}
        options = {**self._place, "queue": QUEUE, "to": AGAIN, **interval}
        qm.queue(AGAIN, maxmsgl=LONGEST).close()
        by = "the table"
        for what in ("messages replayed", "the same after a second replay of that name"):
            replay(spark, options)
            with qm.open(AGAIN) as again:
                self.checks.add(what, again.depth, due, by)
        left = Counter(hash(line) for line in _lines(self.files))
        with qm.open(AGAIN) as again:
            left.subtract(hash(message.data) for message in again.browse())
        strange = sum(-n for n in left.values() if n < 0)
        self.checks.add("replayed messages that are no line", strange, 0, "the files")
        self._say(f"{due:,} messages between LSN {low} and {high} are on {AGAIN} again")

    # ---- around them ----

    def _say(self, text: str) -> None:
        seconds = time.monotonic() - self._begin
        self.console.print(f"{seconds:6.1f} s  {text}", highlight=False, soft_wrap=True)

    @contextmanager
    def _session(self) -> Iterator[SparkSession]:
        from penstock.spark.local import local_session

        if self.spark is not None:
            yield self.spark
            return
        spark = local_session("penstock pipelines")
        try:
            yield spark
        finally:
            spark.stop()

    def _start_service(self) -> Program:
        """The consumer of alerts, as a process."""
        words = ["alerts", "--queue-manager", MANAGER, "--home", str(self.folder)]
        words += ["--queue", QUEUE + ALERTS, "--output", str(self.alerts)]
        return Program(words, self.folder / "alerts.log")

    @contextmanager
    def _alert_service(self) -> Iterator[None]:
        """The service, ended at the end."""
        self._service = self._start_service()
        try:
            yield
        except BaseException:
            self._service.kill()
            raise
        self._service.end()


def _per_batch(total: int) -> int:
    return min(MOST_OF_A_BATCH, -(-total // BATCHES))


def _worst() -> int:
    return SEVERITY[ALERT_LEVEL]


def _lines(files: list[Path]) -> Iterator[bytes]:
    for path in files:
        with path.open("rb") as file:
            yield from (line.rstrip(b"\n") for line in file)


def _kebab(name: str) -> str:
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name)


def _until(true: Callable[[], bool], what: str) -> None:
    """Waits for something. Raises TimeoutError naming it."""
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE} seconds for {what}")
        time.sleep(0.05)

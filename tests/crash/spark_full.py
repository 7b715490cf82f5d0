"""A full disk under the queue manager or under the checkpoint of a stream.

    python tests/crash/spark_full.py [--keep]

Two queue managers: FULL on a file system of 40 MiB, ROOMY on a large one. A third file system of
2 MiB has checkpoints. A Spark job streams from one to the other and writes tables, and a file
system is filled to its last page at a step of source or sink (spark_dying.py stops there until it
is); then the queue manager takes puts until it refuses them.

What takes messages, or ends units of work, goes on. What puts must end with one sentence of the
data source (or, for the checkpoint, with Spark's own error) about the lack of space; each message
must exist once, on its queue or in a prepared unit; nothing of a failed batch may be visible, and
no incomplete file left. After the filler is removed the query continues from its checkpoint: every
message once, in order, and no unit in doubt.

Runs in a new mount namespace, as root or with a user namespace; where neither is allowed it reports
that and fails.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "spark")]

import pytest  # noqa: E402
from full_namespace import inside_namespace  # noqa: E402
from spark_dying import DyingDataSource  # noqa: E402
from spark_fixture import SparkFixture, failing  # noqa: E402

import penstock  # noqa: E402
from penstock.spark.base.ledger import ledger  # noqa: E402
from penstock.spark.base.units import SOURCE  # noqa: E402
from penstock.spark.local import local_session  # noqa: E402
from spark_home import quick_home  # noqa: E402

MIB = 1 << 20
DISK = {"segment_size": MIB, "journal_limit": 64 * MIB, "ring_size": MIB}
KEPT_SEGMENTS = 8 + 2  # one for each entry of the ledger, and what two checkpoints need
FULL_SENTENCE = "queue manager FULL, queue {}: MQRC_STORAGE_MEDIUM_FULL (2192): "
LEDGER = "queue SYSTEM.SPARK.LEDGER: "
NO_SPACE = "No space left on device"
NO_ROOM = "the disk has no room for what is reserved for gets"
REACHED_SECONDS = 120
SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
}


class Room:
    """A file system in memory, which can be filled to its last page."""

    def __init__(self, path: Path, size: int) -> None:
        path.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "full", path], check=True
        )
        self.path = path

    def fill(self) -> None:
        with (self.path / "filler").open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))

    def empty(self) -> None:
        (self.path / "filler").unlink()


class Place(SparkFixture):
    """A queue manager that this process is connected to only while it looks."""

    def __init__(self, spark: Any, name: str, home: Path) -> None:
        home.mkdir(mode=0o700)
        self.spark, self.home, self.name, self.endpoint = spark, home, name, None
        penstock.create(name, home, **DISK)
        with self.connected():
            for queue in ("IN", "OUT", "FILLER"):
                self.qm.define("QLOCAL", queue, maxdepth=999_999_999, defpsist=True)

    @contextmanager
    def connected(self) -> Iterator[penstock.QueueManager]:
        """Disconnects, ignoring a failed final checkpoint: the disk may be full."""
        self.qm = penstock.connect(self.name, self.home)
        try:
            yield self.qm
        finally:
            with suppress(penstock.StorageMediumFull):
                self.qm.close()

    def put_all(self, queue: str, bodies: list[bytes], **fields: Any) -> None:
        with self.connected():
            self.put(queue, *bodies, **fields)

    def take_up(self) -> None:
        """Puts until there is room for no message any more; some is kept for ending units."""
        with self.connected() as qm, qm.open("FILLER") as filler:
            for size in (4000, 0):
                with suppress(penstock.StorageMediumFull):
                    while True:
                        filler.put(bytes(size), persistent=True)

    def there(self) -> tuple[list[bytes], list[bytes], list[bytes]]:
        """Bodies on IN and on OUT, and those that prepared units of streams have taken."""
        with self.connected() as qm:
            qm.check()
            held = [
                message.data
                for xid in qm.recover()
                if xid.format_id == SOURCE and xid.bqual != b"ledger"
                for message in qm.browse_prepared(xid)
            ]
            return self.bodies("IN"), self.bodies("OUT"), held

    def in_doubt(self) -> int:
        with self.connected() as qm:
            return len(qm.recover())

    def half_made(self) -> list[Path]:
        return list((self.home / self.name).glob("*/*.tmp"))


class Job:
    """The Spark session and what it works on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.small = Room(folder / "small", 40 * MIB)
        self.notes = Room(folder / "notes", 2 * MIB)
        os.environ["STORM_FOLDER"] = str(folder)
        os.environ["PYTHONPATH"] = str(HERE)
        os.environ["SPARK_HOME"] = str(quick_home(folder / "spark"))
        self.spark = local_session(
            "full", settings={**SETTINGS, "spark.local.dir": str(folder / "local")}
        )
        self.spark.dataSource.register(DyingDataSource)
        self.full = Place(self.spark, "FULL", self.small.path / "home")
        self.roomy = Place(self.spark, "ROOMY", folder / "home")
        self.number = 0
        self.counts = Counter[str]()

    # ---- full at a step ----

    @contextmanager
    def full_at(self, point: str, fill: Callable[[], None]) -> Iterator[None]:
        """The first process that comes to that point finds the disk full from there on."""
        self.number += 1
        order = {"point": point, "victim": "disk", "number": self.number}
        (self.folder / "order.new").write_text(json.dumps(order))
        (self.folder / "order.new").rename(self.folder / "order")
        claim = self.folder / f"done.{self.number}"
        over = threading.Event()
        failed: list[BaseException] = []

        def watch() -> None:
            while not claim.exists():
                if over.wait(0.005):
                    return
            try:
                fill()
            except BaseException as error:  # reported below
                failed.append(error)
            (self.folder / f"go.{self.number}").touch()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(REACHED_SECONDS)
            (self.folder / "order").unlink()
        assert not failed, failed
        assert claim.exists(), f"{point} was not reached"
        self.counts["full"] += 1

    def filled(self) -> None:
        self.small.fill()
        self.full.take_up()

    def refused(self, call: Callable[[], object], queue: str, at: str = "") -> None:
        """It fails for want of room, in one sentence, and where that was meant."""
        text = failing(call)
        print("   ", text, flush=True)
        said = FULL_SENTENCE.format(queue)
        assert text.startswith(said) and at in text.removeprefix(said), text
        assert NO_SPACE in text or NO_ROOM in text, text
        assert self.full.half_made() == []

    def ready(self) -> None:
        """Creates the ledger: otherwise there would be no room for its definition."""
        with self.full.connected() as qm, ledger(qm):
            pass

    # ---- what runs ----

    def stream(self, source: Place, target: Place, checkpoint: Path) -> None:
        """IN of one to OUT of the other, as far as there is something to take."""
        lines = source.set(self.spark.readStream).schema("body binary, persistent boolean")
        sunk = target.set(lines.load("IN").writeStream, queue="OUT")
        sunk = sunk.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        sunk.start().awaitTermination()

    def write(self, rows: list[bytes], **options: Any) -> None:
        frame = self.spark.createDataFrame([(row,) for row in rows], "body binary").coalesce(1)
        self.full.set(frame.write, queue="OUT", **options).mode("append").save()

    def first_start(self) -> None:
        """A disk that is full before there ever was a stream."""
        made = [b"first %04d" % n for n in range(20)]
        self.full.put_all("IN", made, persistent=True)
        self.filled()
        self.refused(lambda: self.stream(self.full, self.roomy, self.folder / "source"), "IN")
        assert self.full.there() == (made, [], [])
        self.small.empty()
        self.stream(self.full, self.roomy, self.folder / "source")
        self.delivered(self.full, self.roomy, made)

    def source(self) -> None:
        """The source's disk: full when it takes, when it commits, and when it takes ahead. None of
        that needs room."""
        made = [b"source %04d" % n + b"x" * (n * 20) for n in range(60)]
        points = ("partitions.before", "sinkCommit.after", "latestOffset.before")
        for number, point in enumerate(points):
            self.full.put_all("IN", made[number * 20 :][:20], persistent=True)
            with self.full_at(point, self.filled):
                self.stream(self.full, self.roomy, self.folder / "new")
            assert self.full.there() == ([], [], []), point
            self.small.empty()
        self.delivered(self.full, self.roomy, made)

    def draining(self) -> None:
        """A full disk on which puts fail: a stream continues to empty its queue."""
        made = [b"drain %04d" % n for n in range(60)]
        self.full.put_all("IN", made, persistent=True)
        self.filled()
        self.stream(self.full, self.roomy, self.folder / "source")
        self.small.empty()
        self.delivered(self.full, self.roomy, made)

    def stream_sink(self) -> None:
        """The sink's disk, while a task writes and when the driver commits: that needs no room."""
        made = [b"sink %04d" % n + b"x" * 60_000 for n in range(60)]
        self.roomy.put_all("IN", made, persistent=True)
        checkpoint = self.folder / "sink"

        def run() -> None:
            self.stream(self.roomy, self.full, checkpoint)

        with self.full_at("write.middle", self.filled):
            self.refused(run, "OUT", " of partition ")
        waiting, _, held = self.roomy.there()
        assert sorted(waiting + held) == made and self.full.there()[1] == []
        self.small.empty()
        with self.full_at("write.after", self.filled):
            run()
        self.small.empty()
        self.delivered(self.roomy, self.full, made)

    def batch_sink(self) -> None:
        """A table is written as a whole or not at all, and can be written again."""
        made = [b"batch %04d" % n + b"x" * 60_000 for n in range(60)]
        few = [b"few %04d" % n for n in range(60)]
        with self.full_at("write.middle", self.filled):
            self.refused(lambda: self.write(made), "OUT", " of partition ")
        assert self.full.there()[1] == [] and self.full.in_doubt() == 0
        self.small.empty()
        with self.full_at("write.after", self.filled):
            self.write(few, txnAppId="full", txnVersion=1)
        self.small.empty()
        self.write(few, txnAppId="full", txnVersion=1)  # it has been written
        self.delivered(self.roomy, self.full, few)
        self.write(made)
        self.delivered(self.roomy, self.full, made)

    def checkpoint(self) -> None:
        """The checkpoint's disk, before a micro-batch is planned and after it is written.

        Not at the first one: Spark itself refuses what that leaves in the checkpoint, with a
        sentence that says to delete it. Nothing has been taken then.
        """
        made = [b"checkpoint %04d" % n for n in range(60)]
        checkpoint = self.notes.path / "checkpoint"
        self.roomy.put_all("IN", made[:20], persistent=True)
        self.stream(self.roomy, self.roomy, checkpoint)
        for first, point in ((20, "latestOffset.after"), (40, "sinkCommit.after")):
            self.roomy.put_all("IN", made[first:][:20], persistent=True)
            with self.full_at(point, self.notes.fill), pytest.raises(Exception) as caught:
                self.stream(self.roomy, self.roomy, checkpoint)
            assert NO_SPACE in str(caught.value), caught.value
            self.notes.empty()
        self.stream(self.roomy, self.roomy, checkpoint)
        self.delivered(self.roomy, self.roomy, made)

    # ---- afterwards ----

    def delivered(self, source: Place, target: Place, made: list[bytes]) -> None:
        """Each message is on OUT of the target, in order, and nowhere else; work continues."""
        assert source.there()[0] == [] and source.in_doubt() == 0
        assert target.there()[1] == made and target.in_doubt() == 0
        with target.connected() as qm:
            qm.clear("OUT")
        with self.full.connected() as qm:
            qm.clear("FILLER")
            qm.checkpoint()
            qm.checkpoint()  # the older of the two that are kept has kept the space until now
            qm.maintain()
            status = qm.status()  # the space that was used while the disk was full is free again
            assert status.segments <= KEPT_SEGMENTS, status
            with qm.open("FILLER") as filler:  # and there is room for more than a segment
                for _ in range(4):
                    filler.put(bytes(MIB // 2), persistent=True)
            qm.clear("FILLER")
        self.counts["messages"] += len(made)


CASES = ("first_start", "source", "draining", "stream_sink", "batch_sink", "checkpoint")


def main() -> None:
    """All cases in one session; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", action="append", choices=CASES, help="these cases alone")
    parser.add_argument("--keep", action="store_true", help="leave the files where they are")
    arguments = parser.parse_args()
    inside_namespace()
    folder = Path(tempfile.mkdtemp(prefix="penstock-spark-full-"))
    begin = time.monotonic()
    try:
        job = Job(folder)
        try:
            for case in arguments.only or CASES:
                start = time.monotonic()
                print(case, flush=True)
                if case != "first_start":
                    job.ready()
                getattr(job, case)()
                print(f"    {time.monotonic() - start:.1f} s", flush=True)
        finally:
            job.spark.stop()
    finally:
        if arguments.keep:
            print(f"kept {folder}")
        else:
            for room in ("small", "notes"):
                subprocess.run(["umount", "-l", folder / room], check=False)
            shutil.rmtree(folder, ignore_errors=True)
    print(
        f"spark full disk: {job.counts['full']} times full at a step, {job.counts['messages']} "
        f"messages, verdict: 0 lost, 0 twice, 0 half made, in {time.monotonic() - begin:.0f} s"
    )


if __name__ == "__main__":
    main()

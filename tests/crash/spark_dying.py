"""The data source of penstock.spark with kill points, for the storms.

Each method of the source and the sink reports its kill points by ``reach(point)``; ``take`` and
``eagerCommit`` run in the source's background thread. The supervisor writes an *order* into the
storm's folder: a point, a victim, a number. The first process to reach the point of a new order
claims it by a file of that number and kills itself (``worker``) or the driver's whole process group
(``driver``). With the victim ``disk`` it waits until the supervisor (spark_full.py) has filled the
disk, and continues; with ``server``, until the server (spark_remote_storm.py) has died. Without an
order the points have no effect.

Workers find the folder and the driver's process group in the environment: STORM_FOLDER, and the
file ``driver`` in it.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from penstock.spark.datasource import PenstockDataSource
from penstock.spark.remote.stream import RemoteStreamReader
from penstock.spark.remote.stream_writer import RemoteStreamWriter
from penstock.spark.sink.stream_writer import StreamWriter
from penstock.spark.sink.writer import BatchWriter
from penstock.spark.source.aside import Aside
from penstock.spark.source.journal_stream import JournalStreamReader
from penstock.spark.source.stream import StreamReader
from penstock.spark.source.taking import Taker

READER = ("latestOffset", "take", "partitions", "aside", "read", "eagerCommit", "commit")
WRITER = ("write", "sinkCommit")
JOURNAL = ("latestOffset", "partitions", "read", "commit")
IN_WORKERS = ("read", "write")
_ENTERED_AND_LEFT = [f"{name}.{side}" for name in READER + WRITER for side in ("before", "after")]
POINTS = (*_ENTERED_AND_LEFT, "read.middle", "write.middle")
REMOTE = ("latestOffset", "partitions", "read", "commit", *WRITER)
REMOTE_POINTS = (*(f"{n}.{s}" for n in REMOTE for s in ("before", "after")), "read.middle",
                 "write.middle")  # fmt: skip
JOURNAL_POINTS = (*(f"{n}.{s}" for n in JOURNAL for s in ("before", "after")), "read.middle")


def reach(point: str) -> None:
    """Kills the process when there is an order for this point that was not carried out yet."""
    folder = Path(os.environ["STORM_FOLDER"])
    try:
        order = json.loads((folder / "order").read_text())
    except FileNotFoundError:
        return
    if order["point"] != point:
        return
    try:
        claim = os.open(folder / f"done.{order['number']}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return
    os.close(claim)
    if order["victim"] in ("disk", "server"):
        while not (folder / f"go.{order['number']}").exists():
            time.sleep(0.005)
        return
    if order["victim"] == "driver":
        group = int((folder / "driver").read_text())
        if group <= 1:
            raise AssertionError(f"refusing to kill the process group {group}")
        os.killpg(group, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


class DyingAside(Aside):
    """What the source puts aside, its points added."""

    def _prepare(self, *arguments: Any) -> None:
        reach("aside.before")
        super()._prepare(*arguments)
        reach("aside.after")


assert hasattr(Aside, "_prepare") and hasattr(StreamReader, "_aside")


class DyingTaker(Taker):
    """How the source takes messages, its points added."""

    def take_part(self, *arguments: Any) -> Any:
        reach("take.before")
        taken = super().take_part(*arguments)
        reach("take.after")
        return taken


def dying_source(base: Any, name: str) -> Any:
    """A stream's reader of that class, the points of what Spark calls added.

    A class of its own, not one beside the base: readers that exist become one of these.
    """

    class Dying(base):  # type: ignore[misc]
        def latestOffset(self, *arguments: Any) -> Any:
            reach("latestOffset.before")
            offset = super().latestOffset(*arguments)
            reach("latestOffset.after")
            return offset

        def partitions(self, start: Any, end: Any) -> Any:
            reach("partitions.before")
            planned = super().partitions(start, end)
            reach("partitions.after")
            return planned

        def read(self, partition: Any) -> Iterator[Any]:
            reach("read.before")
            for batch in super().read(partition):
                yield batch
                reach("read.middle")
            reach("read.after")

        def commit(self, end: Any) -> None:
            reach("commit.before")
            super().commit(end)
            reach("commit.after")

    # a method that the source has no more would never be called
    assert all(hasattr(base, method) for method in vars(Dying) if not method.startswith("__"))
    Dying.__name__ = Dying.__qualname__ = name  # tasks import it
    return Dying


DyingJournalReader = dying_source(JournalStreamReader, "DyingJournalReader")
DyingRemoteReader = dying_source(RemoteStreamReader, "DyingRemoteReader")
DyingSource = dying_source(StreamReader, "DyingSource")


class DyingReader(DyingSource):  # type: ignore[misc]
    """The source, with the points of what it does besides."""

    def _aside(self, queue: str) -> Aside:
        made: Aside = super()._aside(queue)
        made.__class__ = DyingAside
        return made

    def _commit_eagerly(self, start: Any) -> None:
        reach("eagerCommit.before")
        super()._commit_eagerly(start)
        reach("eagerCommit.after")


assert all(hasattr(StreamReader, name) for name in vars(DyingReader))


def put_all(write: Callable[[Iterator[Any]], Any], rows: Iterator[Any]) -> Any:
    """A task of a sink, its points added."""

    def watched() -> Iterator[Any]:
        for batch in rows:
            yield batch
            reach("write.middle")

    reach("write.before")
    message = write(watched())
    reach("write.after")
    return message


class DyingTableWriter(BatchWriter):
    """The batch sink, the points of its tasks added."""

    def write(self, iterator: Iterator[Any]) -> Any:
        return put_all(super().write, iterator)


def dying_sink(base: Any, name: str) -> Any:
    """A streaming sink of that class, its points added."""

    class Dying(base):  # type: ignore[misc]
        def write(self, iterator: Iterator[Any]) -> Any:
            return put_all(super().write, iterator)

        def commit(self, messages: Any, batch_id: int) -> None:
            reach("sinkCommit.before")
            super().commit(messages, batch_id)
            reach("sinkCommit.after")

    Dying.__name__ = Dying.__qualname__ = name
    return Dying


DyingWriter = dying_sink(StreamWriter, "DyingWriter")
DyingRemoteWriter = dying_sink(RemoteStreamWriter, "DyingRemoteWriter")


class DyingDataSource(PenstockDataSource):
    """The data source under the same name, with classes that report their kill points."""

    def streamReader(self, schema: Any) -> Any:
        made = super().streamReader(schema)
        if isinstance(made, JournalStreamReader):
            made.__class__ = DyingJournalReader
        elif isinstance(made, RemoteStreamReader):
            made.__class__ = DyingRemoteReader
        else:
            made.__class__ = DyingReader
            made._taker.__class__ = DyingTaker
        return made

    def writer(self, schema: Any, overwrite: bool) -> Any:
        made = super().writer(schema, overwrite)
        made.__class__ = DyingTableWriter
        return made

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        made = super().streamWriter(schema, overwrite)
        is_remote = isinstance(made, RemoteStreamWriter)
        made.__class__ = DyingRemoteWriter if is_remote else DyingWriter
        return made

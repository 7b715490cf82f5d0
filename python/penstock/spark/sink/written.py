"""What a write is called, and what its tasks tell the driver."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.datasource import WriterCommitMessage

from penstock import Xid

from ..base import units

if TYPE_CHECKING:
    from ..base.options import Options

__all__ = ["Run", "Task", "Written"]


class Run(NamedTuple):
    """One run of a write.

    Attributes:
        sink, version: Of the batch.
        write: Of this run of a batch sink; a unique text for each task of a streaming sink.
    """

    sink: str
    version: int
    write: str

    @classmethod
    def of(cls, options: Options) -> Run:
        """A new one, of a batch sink."""
        write = units.new_id()
        if options["txnAppId"] is None:
            return cls(write, 0, write)
        sink = hashlib.sha256(options["txnAppId"].encode()).hexdigest()[:32]
        return cls(sink, options["txnVersion"], write)


class Task(NamedTuple):
    """An attempt of a task; or a part of what it puts.

    Attributes:
        partition, attempt: As Spark counts them.
        units, rows: That the task has put before.
    """

    partition: int
    attempt: int
    units: int = 0
    rows: int = 0

    @classmethod
    def current(cls) -> Task:
        """Of this process."""
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        return cls(task.partitionId(), task.taskAttemptId())


class Written(WriterCommitMessage):
    """The units that a task has prepared."""

    def __init__(
        self,
        sink: str,
        version: int,
        partition: int,
        counts: dict[str, int],
        warnings: int,
        dead: dict[int, int],
    ) -> None:
        self.sink = sink
        self.version = version
        self.partition = partition
        self.counts = counts  # name of a unit -> its messages
        self.warnings = warnings  # 2049: a priority above the queue manager's highest
        self.dead = dead  # reason -> rows on the dead-letter queue

    @property
    def xids(self) -> list[Xid]:
        """The units, in the order in which they were put."""
        return [Xid.parse(text) for text in self.counts]

    @property
    def messages(self) -> int:
        """Of all units."""
        return sum(self.counts.values())

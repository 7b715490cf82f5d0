"""The probe: whether tasks can serve a stream, before it takes its first message.

A micro-batch is taken on the driver and read by tasks. Where these cannot attach to the queue
manager (another host, PID namespace or user, a region directory that is another one there, a home
that may not be written), a stream would take messages that it cannot read, and end with them in
prepared units. So the first micro-batch of each run of a stream is a *probe*, once there is
something to take: it has no rows, and its tasks attach to the queue manager as those of the others
do. When one fails, the query ends with its sentence and nothing has been taken.

The offset of a probe is that of the micro-batch before it, and a counter ``probe``: Spark runs a
micro-batch only for an offset that differs. A new run probes again, since executors may be others.

Spark starts as many tasks of a probe as this machine has processors, or as minPartitions says: an
executor that joins later was not asked. With a local master tasks are processes of the driver's own
JVM; there, ``probe=auto`` asks for none. Trigger.Once runs one micro-batch, which a probe would use
up: it is refused where a probe is due.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition

from ..base import host
from ..base.connection import open_queue, served
from ..base.errors import OptionError

if TYPE_CHECKING:
    from penstock import QueueManager

    from ..base.options import Options

__all__ = ["Probe", "State", "ask", "attach", "is_probe"]

Offset = dict[str, Any]
_QUEUES = 10  # that a task opens, at most


class Probe(InputPartition):
    """A task that attaches and reads nothing."""

    def __init__(self, number: int, where: host.Host, queues: Sequence[str]) -> None:
        super().__init__(number)
        self.where = where
        self.queues = queues


def is_probe(start: Offset, end: Offset) -> bool:
    """Whether the micro-batch takes no messages."""
    return bool(start["unit"] == end["unit"] and start.get("probe") != end.get("probe"))


def attach(options: Options, partition: Probe) -> None:
    """In a task. Raises SourceError: this process cannot use the queue manager."""
    with served(options, partition.where) as qm:
        ask(qm, partition)


def ask(qm: QueueManager, partition: Probe) -> None:
    """The same over a connection."""
    for name in partition.queues:
        with open_queue(qm, name, "browse") as queue:
            queue.status()
    qm.prepared_list()


class State:
    """What the driver knows of its executors."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._planned: Offset | None = None
        self._is_wanted: bool | None = None  # unknown
        self._is_done = False

    def is_due(self, start: Offset) -> bool:
        """Whether a probe comes before the next message is taken. An offset that Spark starts from
        has been completed: one of a probe says that tasks can serve.
        """
        if self._is_wanted is None:
            asked = self._options["probe"]
            self._is_wanted = asked == "always" or (asked == "auto" and not host.runs_tasks())
        self._is_done = self._is_done or (self._planned is not None and start == self._planned)
        return self._is_wanted and not self._is_done

    def offset(self, start: Offset, noted: Mapping[str, str], is_once: bool) -> Offset:
        """The offset of a probe after ``start``, of a stream over the queues noted. Raises
        OptionError for Trigger.Once.
        """
        if is_once:
            raise OptionError(
                "Trigger.Once has one micro-batch, and none is left for the probe of the "
                "executors: use Trigger.AvailableNow (availableNow=True), or option probe=never"
            )
        self._planned = {**start, **noted, "probe": start.get("probe", 0) + 1}
        return self._planned

    def partitions(self, end: Offset, queues: Sequence[str]) -> list[Probe]:
        """The tasks of a probe, which may be one of an earlier run that Spark repeats; each opens
        some of these queues.
        """
        self._planned = dict(end)
        tasks = max(host.cores(), self._options["minPartitions"] or 0)
        return [Probe(number, host.here(), queues[:_QUEUES]) for number in range(tasks)]

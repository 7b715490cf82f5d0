"""Several queue managers as one stream (several.py). The offset has that of each:

    {"managers": {"QM1": {"queue": "ORDERS", "stream": "5f1c...", "unit": 12, ...}, "QM2": ...}}

A micro-batch is what each of them has; limits are divided among them. It is committed on one after
the other: what was committed when a driver dies stays so, and the commit is repeated for the rest,
as each queue manager's part is exact by itself. A stream may be continued over more queue managers,
not over fewer: messages of one that is left out would stay prepared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from .base.errors import SourceError
from .base.options import Options
from .several import Of, each
from .source.stream import exit_on_sigterm

__all__ = ["SeveralStreams"]

_SUMS = ("depth", "inDoubt", "lag", "abandoned", "backedOut", "badBodies")
_MOST = ("oldestMessageAgeMs", "takeMs", "commitMs")
Offset = dict[str, Any]


class SeveralStreams(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Takes messages of several queue managers in micro-batches."""

    def __init__(self, readers: Mapping[str, Any], options: Options) -> None:
        """Makes the reader.

        Args:
            readers: The stream's reader of each queue manager.
            options: Of all.
        """
        self._readers = dict(readers)
        self._options = options

    # ---- what Spark calls on the driver ----

    def initialOffset(self) -> Offset:
        """Before the first micro-batch. Raises SourceError."""
        exit_on_sigterm()
        return _offset(each({name: one.initialOffset for name, one in self._readers.items()}))

    def getDefaultReadLimit(self) -> ReadLimit:
        """That of each; their options have the shares."""
        limit: ReadLimit = next(iter(self._readers.values())).getDefaultReadLimit()
        return limit

    def prepareForTriggerAvailableNow(self) -> None:
        """Notes the newest messages of each."""
        each({name: one.prepareForTriggerAvailableNow for name, one in self._readers.items()})

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The next offset of each that has something to take."""
        exit_on_sigterm()  # the readers are called in threads, which cannot
        starts = self._ofeach(start)
        return _offset(
            each(
                {
                    name: partial(one.latestOffset, starts[name], limit)
                    for name, one in self._readers.items()
                }
            )
        )

    def reportLatestOffset(self) -> Offset | None:
        """For the progress: what StreamReader reports, of each and in all."""
        found = each({name: one.reportLatestOffset for name, one in self._readers.items()})
        reports = [one for one in found.values() if one]
        report: Offset = {name: sum(one[name] for one in reports) for name in _SUMS}
        report |= {name: max((one[name] for one in reports), default=0) for name in _MOST}
        at_end = [one.pop("commitAtEnd", None) for one in reports]
        report["managers"] = found
        if at_end and all(at_end):
            names = ("queueManager", "endpoint")
            own = {name: self._options[name] for name in names if self._options[name]}
            report["commitAtEnd"] = {**at_end[0], **own}
        return report

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The micro-batch of each whose offset differs. Raises SourceError."""
        starts, ends = self._ofeach(start), self._ofeach(end)
        found = each(
            {
                name: partial(one.partitions, starts[name], ends[name])
                for name, one in self._readers.items()
                if starts[name] != ends[name]
            }
        )
        return [Of(name, part) for name, parts in found.items() for part in parts]

    def commit(self, end: Offset) -> None:
        """Commits the micro-batch of each. Raises SourceError."""
        ends = self._ofeach(end)
        each({name: partial(one.commit, ends[name]) for name, one in self._readers.items()})

    def stop(self) -> None:
        """Stops all."""
        with ExitStack() as stopping:
            for one in self._readers.values():
                stopping.callback(one.stop)

    # ---- what a task does ----

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a partition."""
        assert isinstance(partition, Of)
        rows: Iterator[Any] = self._readers[partition.manager].read(partition.partition)
        return rows

    # ---- how ----

    def _ofeach(self, offset: Offset) -> dict[str, Offset]:
        """The offset of each; of one that is new that of its beginning."""
        given = offset.get("managers")
        if given is None:
            raise SourceError(
                "the checkpoint belongs to a stream over one queue manager: one over several needs "
                "a checkpoint of its own"
            )
        missing = sorted(set(given) - set(self._readers))
        if missing:
            raise SourceError(
                f"the checkpoint belongs to a stream over queue manager {missing[0]}, too: option "
                "queueManager must name it"
            )
        return {
            name: given[name] if name in given else one.initialOffset()
            for name, one in self._readers.items()
        }


def _offset(found: Mapping[str, Offset]) -> Offset:
    return {"managers": dict(found)}

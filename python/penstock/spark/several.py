"""Several queue managers as one source: ``queueManager="QM1,QM2"``, each at its endpoint or all at
one.

Each has a reader of its own, which knows nothing of the others. The offset of a stream has theirs:

    {"managers": {"QM1": {"queue": "ORDERS", "stream": "5f1c...", "unit": 12, ...}, "QM2": ...}}

A micro-batch is what each of them has; limits are divided among them. It is committed on one after
the other: what was committed when a driver dies stays so, and the commit is repeated for the rest,
as each queue manager's part is exact by itself. A stream may be continued over more queue managers,
not over fewer: messages of one that is left out would stay prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from .base.acting import inherited
from .base.errors import OptionError, SourceError
from .base.options import Options
from .source.stream import exit_on_sigterm

__all__ = ["SeveralReaders", "SeveralStreams", "divided"]

_LIMITS = ("maxMessagesPerTrigger", "maxBytesPerTrigger", "minMessages", "minPartitions")
_SUMS = ("depth", "inDoubt", "lag", "abandoned", "backedOut", "badBodies")
_MOST = ("oldestMessageAgeMs", "takeMs", "commitMs")
Offset = dict[str, Any]
_Made = TypeVar("_Made")


class Of(InputPartition):
    """A partition of one of the queue managers."""

    def __init__(self, manager: str, partition: InputPartition) -> None:
        super().__init__(None)
        self.manager = manager
        self.partition = partition


def divided(options: Options, given: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The options of each queue manager.

    Args:
        options: Of all, read and checked.
        given: The same, as Spark gives them.

    Raises:
        OptionError: A queue manager is named twice, or their number is not that of the endpoints.
    """
    if options["mode"] == "journal":
        raise OptionError("mode=journal reads one queue manager, and queueManager names several")
    names = _listed("queueManager", options["queueManager"])
    endpoints = [None] if options["endpoint"] is None else _listed("endpoint", options["endpoint"])
    if len(set(names)) != len(names):
        raise OptionError("option queueManager names one twice: their names keep them apart")
    if len(endpoints) not in (1, len(names)):
        raise OptionError(
            f"option endpoint has {len(endpoints)} addresses for {len(names)} queue managers: one "
            "of each, or one for all"
        )
    if len(endpoints) == 1:
        endpoints *= len(names)
    shares = {
        limit: str(max(1, options.values[limit] // len(names)))
        for limit in _LIMITS
        if options.values.get(limit) is not None
    }
    taken = {"queuemanager", "endpoint", *(limit.lower() for limit in shares)}
    others = {name: value for name, value in given.items() if name.lower() not in taken}
    found = {}
    for name, endpoint in zip(names, endpoints, strict=True):
        own = {**others, **shares, "queueManager": name}
        found[name] = own if endpoint is None else {**own, "endpoint": endpoint}
    return found


def _listed(option: str, text: str) -> list[str]:
    found = [one.strip() for one in text.split(",")]
    if not all(found):
        raise OptionError(f"option {option} is {text!r}: there is nothing between two commas")
    return found


class SeveralReaders(DataSourceReader):
    """A batch read of several queue managers."""

    def __init__(self, readers: Mapping[str, DataSourceReader]) -> None:
        """readers: Of each queue manager."""
        self._readers = dict(readers)

    def partitions(self) -> Sequence[InputPartition]:
        """Those of all. Raises SourceError."""
        found = _each({name: one.partitions for name, one in self._readers.items()})
        return [Of(name, part) for name, parts in found.items() for part in parts]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a partition."""
        assert isinstance(partition, Of)
        return iter(self._readers[partition.manager].read(partition.partition))


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
        return _offset(_each({name: one.initialOffset for name, one in self._readers.items()}))

    def getDefaultReadLimit(self) -> ReadLimit:
        """That of each; their options have the shares."""
        limit: ReadLimit = next(iter(self._readers.values())).getDefaultReadLimit()
        return limit

    def prepareForTriggerAvailableNow(self) -> None:
        """Notes the newest messages of each."""
        _each({name: one.prepareForTriggerAvailableNow for name, one in self._readers.items()})

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The next offset of each that has something to take."""
        exit_on_sigterm()  # the readers are called in threads, which cannot
        starts = self._of_each(start)
        return _offset(
            _each(
                {
                    name: partial(one.latestOffset, starts[name], limit)
                    for name, one in self._readers.items()
                }
            )
        )

    def reportLatestOffset(self) -> Offset | None:
        """For the progress: what StreamReader reports, of each and in all."""
        found = _each({name: one.reportLatestOffset for name, one in self._readers.items()})
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
        starts, ends = self._of_each(start), self._of_each(end)
        found = _each(
            {
                name: partial(one.partitions, starts[name], ends[name])
                for name, one in self._readers.items()
                if starts[name] != ends[name]
            }
        )
        return [Of(name, part) for name, parts in found.items() for part in parts]

    def commit(self, end: Offset) -> None:
        """Commits the micro-batch of each. Raises SourceError."""
        ends = self._of_each(end)
        _each({name: partial(one.commit, ends[name]) for name, one in self._readers.items()})

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

    def _of_each(self, offset: Offset) -> dict[str, Offset]:
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


def _each(calls: Mapping[str, Callable[[], _Made]]) -> dict[str, _Made]:
    """Calls all at the same time; the results. Raises the first error, once all have ended."""
    if not calls:
        return {}
    with ThreadPoolExecutor(len(calls), "penstock-managers") as threads:
        begun = {name: threads.submit(inherited(call)) for name, call in calls.items()}
    return {name: one.result() for name, one in begun.items()}

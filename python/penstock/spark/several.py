"""Several queue managers as one source: ``queueManager="QM1,QM2"``, each at its endpoint or all at
one. Each has a reader of its own, which knows nothing of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from pyspark.sql.datasource import DataSourceReader, InputPartition

from .base.acting import inherited
from .base.errors import OptionError
from .base.options import Options

__all__ = ["Of", "SeveralReaders", "divided", "each"]

_LIMITS = ("maxMessagesPerTrigger", "maxBytesPerTrigger", "minMessages", "minPartitions")
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
        found = each({name: one.partitions for name, one in self._readers.items()})
        return [Of(name, part) for name, parts in found.items() for part in parts]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a partition."""
        assert isinstance(partition, Of)
        return iter(self._readers[partition.manager].read(partition.partition))


def each(calls: Mapping[str, Callable[[], _Made]]) -> dict[str, _Made]:
    """Calls all at the same time; the results. Raises the first error, once all have ended."""
    if not calls:
        return {}
    with ThreadPoolExecutor(len(calls), "penstock-managers") as threads:
        begun = {name: threads.submit(inherited(call)) for name, call in calls.items()}
    return {name: one.result() for name, one in begun.items()}

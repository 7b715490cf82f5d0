"""A stream over the queues of a queue manager on another host (session.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from ..base import host
from ..base.queue_choice import QueueChoice
from ..base.schema import MESSAGE, arrow_schema, check_read
from ..source import partitions, probe
from ..source.partitions import Slice
from ..source.stream import default_limit, warn_of_once
from .place import Place
from .session import Offset, SessionReader

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from ..base.options import Options

__all__ = ["RemoteStreamReader"]

_LAST_SECONDS = 5.0  # how long the last commit is repeated
_COMMITTED_AT_END = (
    "queueManager", "home", "queue", "queuePattern", "endpoint", "tokenFile", "caFile",
    "certificateFile", "keyFile",
)  # fmt: skip


class RemoteStreamReader(SessionReader):
    """Takes the messages of queues in micro-batches, through the server."""

    def __init__(
        self,
        options: Options,
        given: Mapping[str, str],
        schema: StructType,
        has_listener: bool,
        is_last: bool = False,
    ) -> None:
        """As StreamReader, with the options as Spark gives them, too.

        is_last: It only commits the last micro-batch, while the session waits for it.
        """
        check_read(schema, MESSAGE)
        self._choice = QueueChoice.of(options)
        self._options, self._schema = options, schema
        self._has_listener = has_listener and options["token"] is None
        asked = options["probe"]
        is_probed = asked == "always" or (asked == "auto" and not host.runs_tasks())
        others = {name: value for name, value in given.items() if name.lower() != "probe"}
        others["probe"] = "always" if is_probed else "never"
        super().__init__(Place("stream", options, others, schema))
        if is_last:
            self._place.retry_seconds = _LAST_SECONDS

    # ---- what Spark calls on the driver ----

    def getDefaultReadLimit(self) -> ReadLimit:
        """From maxMessagesPerTrigger, else maxBytesPerTrigger."""
        return default_limit(self._options)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The next number when there is something to take, else ``start``. Raises SourceError."""
        if isinstance(limit, ReadAllAvailable) and not self._has_listener:
            warn_of_once(self._choice.text)
        return super().latestOffset(start, limit)

    def reportLatestOffset(self) -> Offset | None:
        """For the progress of the query, as StreamReader's."""
        found = super().reportLatestOffset()
        assert found is not None, "a stream over queues has something to say"
        if found.pop("commitAtEnd", None) is not None and self._options["token"] is None:
            own = {name: self._options[name] for name in _COMMITTED_AT_END}
            found["commitAtEnd"] = {name: value for name, value in own.items() if value}
        return found

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The micro-batch ``end``, prepared now unless it is already."""
        return [] if start == end else super().partitions(start, end)

    def commit(self, end: Offset) -> None:
        """Commits the units of work up to ``end``; committed ones stay committed."""
        self._call("commit", end=end)

    # ---- what a task does ----

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The messages of a slice as record batches; of a probe none."""
        with self._place.attached() as qm:
            if qm is not None:
                if isinstance(partition, probe.Probe):
                    probe.ask(qm, partition)
                else:
                    assert isinstance(partition, Slice)
                    schema = arrow_schema(self._schema)
                    yield from partitions.rows_of(qm, partition, schema, self._options)
                return
        yield from self._place.rows(partition)

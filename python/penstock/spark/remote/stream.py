"""A stream over a queue manager on another host.

The stream's reader is in the server, in a session (service.py). What Spark calls here is passed on,
with what the session must know if it is made anew in between: the newest messages that
Trigger.AvailableNow has noted. A thread tells the server every few seconds that the driver is
there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from ..base import host, units
from ..base.errors import SourceError
from ..base.queue_choice import QueueChoice
from ..base.schema import MESSAGE, arrow_schema, check_read
from ..source import partitions, probe
from ..source.partitions import Slice
from ..source.stream import default_limit, exit_on_sigterm, warn_of_once
from .place import Place

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ..base.options import Options

__all__ = ["RemoteStreamReader"]

_ALIVE_SECONDS = 3.0
_LAST_SECONDS = 5.0  # how long the last commit is repeated
_COMMITTED_AT_END = (
    "queueManager", "home", "queue", "queuePattern", "endpoint", "tokenFile", "caFile",
    "certificateFile", "keyFile",
)  # fmt: skip
Offset = dict[str, Any]


class RemoteStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
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
        self._place = Place("stream", options, others, schema)
        if is_last:
            self._place.retry_seconds = _LAST_SECONDS
        self._session = units.new_id()
        self._newest: Mapping[str, int] | None = None
        self._ended: threading.Event | None = None  # of the thread that says we are there

    def __getstate__(self) -> dict[str, Any]:
        """The state for tasks, which call read() alone."""
        return {**self.__dict__, "_ended": None}

    # ---- what Spark calls on the driver ----

    def initialOffset(self) -> Offset:
        """Before the first micro-batch. Raises SourceError when a queue cannot be got from."""
        found: Offset = self._call("initial")
        return found

    def getDefaultReadLimit(self) -> ReadLimit:
        """From maxMessagesPerTrigger, else maxBytesPerTrigger."""
        return default_limit(self._options)

    def prepareForTriggerAvailableNow(self) -> None:
        """Notes the newest messages: later ones are not taken by this run."""
        self._newest = self._call("bind")

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The next number when there is something to take, else ``start``. Raises SourceError."""
        if isinstance(limit, ReadAllAvailable) and not self._has_listener:
            warn_of_once(self._choice.text)
        found: Offset = self._call(
            "latest", start=start, limit=_limit_json(limit), newest=self._newest
        )
        return found

    def reportLatestOffset(self) -> Offset | None:
        """For the progress of the query, as StreamReader's."""
        found: Offset = self._call("report")
        if found.pop("commitAtEnd", None) is not None and self._options["token"] is None:
            own = {name: self._options[name] for name in _COMMITTED_AT_END}
            found["commitAtEnd"] = {name: value for name, value in own.items() if value}
        return found

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The micro-batch ``end``, prepared now unless it is already."""
        if start == end:
            return []
        found = self._call("plan", start=start, end=end, newest=self._newest)
        return self._place.planned(found)

    def commit(self, end: Offset) -> None:
        """Commits the units of work up to ``end``; committed ones stay committed."""
        self._call("commit", end=end)

    def stop(self) -> None:
        """Ends the session; prepared units stay."""
        if self._ended is not None:
            self._ended.set()
            self._place.retry_seconds = 0.0
            with suppress(SourceError):  # then the server ends it a little later
                self._place.call("stop", session=self._session)
            self._ended = None
        self._place.close()

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

    # ---- how ----

    def _call(self, name: str, **fields: Any) -> Any:
        if self._ended is None:
            self._ended = threading.Event()
            exit_on_sigterm()
            threading.Thread(
                target=_say_alive, args=(self._place, self._session, self._ended), daemon=True
            ).start()
        return self._place.call(name, session=self._session, **fields)


def _say_alive(place: Place, session: str, ended: threading.Event) -> None:
    while not ended.wait(_ALIVE_SECONDS):
        with suppress(SourceError):  # the calls themselves report it
            place.call("alive", session=session)


def _limit_json(limit: ReadLimit) -> list[Any]:
    if isinstance(limit, ReadMaxRows):
        return ["rows", limit.max_rows]
    if isinstance(limit, ReadMaxBytes):
        return ["bytes", limit.max_bytes]
    assert isinstance(limit, ReadAllAvailable)
    return ["all"]

"""The driver's half of a stream that is read through a server.

The stream's reader is in the server, in a session (service.py). What Spark calls here is passed on,
with what the session must know if it is made anew in between: the newest messages, or the LSN, that
Trigger.AvailableNow has noted. A thread tells the server every few seconds that the driver is
there.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from ..base import units
from ..base.errors import SourceError
from ..source.stream import exit_on_sigterm

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition

    from .place import Place

__all__ = ["Offset", "SessionReader"]

_ALIVE_SECONDS = 3.0
Offset = dict[str, Any]


class SessionReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream's reader that has a server do the driver's calls."""

    def __init__(self, place: Place) -> None:
        """Calls nothing yet."""
        self._place = place
        self._session = units.new_id()
        self._newest: Mapping[str, int] | None = None
        self._ended: threading.Event | None = None  # of the thread that says we are there

    def __getstate__(self) -> dict[str, Any]:
        """The state for tasks, which call read() alone."""
        return {**self.__dict__, "_ended": None}

    def initialOffset(self) -> Offset:
        """Before the first micro-batch. Raises SourceError when there is nothing to read from."""
        found: Offset = self._call("initial")
        return found

    def prepareForTriggerAvailableNow(self) -> None:
        """Notes what is the newest: what comes later is not read by this run."""
        self._newest = self._call("bind")

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The end of the next micro-batch; ``start`` where there is nothing. Raises SourceError."""
        found: Offset = self._call(
            "latest", start=start, limit=_limit_json(limit), newest=self._newest
        )
        return found

    def reportLatestOffset(self) -> Offset | None:
        """For the progress of the query, as the reader in the server says it."""
        found: Offset | None = self._call("report")
        return found

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The tasks of the micro-batch ``end``. Raises SourceError."""
        found = self._call("plan", start=start, end=end, newest=self._newest)
        return self._place.planned(found)

    def stop(self) -> None:
        """Ends the session."""
        if self._ended is not None:
            self._ended.set()
            self._place.retry_seconds = 0.0
            with suppress(SourceError):  # then the server ends it a little later
                self._place.call("stop", session=self._session)
            self._ended = None
        self._place.close()

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

"""Commits the last micro-batch of a stream when its query has ended.

Spark does not tell a source that a micro-batch is done; it asks for the next one, which it does no
more after the last one of Trigger.Once, or when a query is stopped. So that one stays prepared
until the next start of the stream. This listener, which ``penstock.spark.register`` adds to a
session, knows better: Spark reports the progress of a micro-batch when its commit log has it. When
the query has ended, the listener commits up to the end offset of the last report.

It runs in the user's program. Where that ends first, or the queue manager has gone, the micro-batch
stays prepared as without the listener. A stream without eagerCommit is left alone.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.streaming import StreamingQueryListener

from ...errors import MQError
from ..base.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

__all__ = ["LastBatch"]

_Ends = list[tuple[dict[str, str], dict[str, Any]]]


class _Reader(Protocol):
    def commit(self, end: dict[str, Any]) -> None: ...

    def stop(self) -> None: ...


class LastBatch(StreamingQueryListener):
    """The end offsets of the queries of a session, until they end."""

    def __init__(self, reader_of: Callable[[dict[str, str]], _Reader]) -> None:
        """Knows of no query yet.

        reader_of: Makes a reader that commits, from the options that say what the stream reads.
        """
        self._reader_of = reader_of
        self._ends: dict[str, _Ends] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is known yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing has changed."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Notes the end offsets of the sources that are streams over queues."""
        ends: _Ends = []
        for source in event.progress.sources:
            report, end = _object(source.latestOffset), _object(source.endOffset)
            if (end.get("stream") or end.get("managers")) and "commitAtEnd" in report:
                ends.append((report["commitAtEnd"], end))
        self._ends[str(event.progress.runId)] = ends

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Commits up to these offsets."""
        for place, end in self._ends.pop(str(event.runId), []):
            try:
                reader = self._reader_of(place)
                try:
                    reader.commit(end)
                finally:
                    reader.stop()
            except (SourceError, MQError, OSError) as error:  # it may go away at this moment
                warnings.warn(
                    "the last micro-batch of a stream stays prepared until it starts again: "
                    f"{error} ({end})",
                    RuntimeWarning,
                    stacklevel=2,
                )


def _object(text: str | None) -> dict[str, Any]:
    """The JSON object; an empty one where there is none: of a source that is not ours."""
    try:
        found = json.loads(text or "")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

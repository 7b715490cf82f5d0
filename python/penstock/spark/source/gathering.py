"""The options minMessages and maxTriggerDelay: a micro-batch that waits for more messages.

A micro-batch costs about the same for one message as for a thousand. With minMessages a stream
takes nothing while fewer messages are on the queue, but for maxTriggerDelay at most, counted from
when this process saw the first of them. Both are void for the triggers ``once`` and
``availableNow``, which would wait for messages that never come, and for what an earlier process of
the stream has prepared.
"""

from __future__ import annotations

import time

from ..base.options import Options

__all__ = ["Gathering"]


class Gathering:
    """Whether the next micro-batch waits."""

    def __init__(self, options: Options) -> None:
        self._fewest: int = options["minMessages"] or 0
        self._delay: float = options["maxTriggerDelay"]
        self._since: float | None = None  # monotonic: fewer were seen first

    def waits(self, depth: int) -> bool:
        """Whether ``depth`` messages, at least one, are too few for now."""
        if depth >= self._fewest:
            self._since = None
            return False
        now = time.monotonic()
        if self._since is None:
            self._since = now
        if now - self._since < self._delay:
            return True
        self._since = None
        return False

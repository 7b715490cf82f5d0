"""Telling other event loops that messages have come: ``QueueManager.notifier()``."""

from __future__ import annotations

from .._engine import Channel, Connection, Waiting, async_marks
from .._mqi_constants.calls import MQOO_BROWSE
from ..constants import ReasonCode
from ..errors import ClosedHandle, InvalidType, TruncatedMessage
from .queue import Queue

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType


_LISTED = async_marks()[0]


class Notifier:
    """A descriptor for a selector that becomes readable when a message comes to one of the queues;
    a context manager. For one thread.

    Nothing is taken: a get that finds a message does that, and other getters are woken as if there
    were no notifier. The descriptor is readable for what has come since ``ready()``; so call that
    before the descriptor is waited for, get until there is no message, and call it again::

        with qm.notifier([q]) as notifier:
            while True:
                for queue in notifier.ready():
                    while (message := queue.get(default=None)) is not None:
                        work(message)
                select.select([notifier], [], [], 1)
    """

    def __init__(self, qm: Connection, queues: Iterable[Queue]) -> None:
        """``qm.notifier()`` makes it."""
        self._channel = Channel(qm)
        self._watched: dict[Waiting, tuple[Queue, Queue]] = {}
        try:
            for queue in queues:
                if not isinstance(queue, Queue):
                    raise InvalidType(
                        ReasonCode.OPTIONS_ERROR,
                        f"a notifier is for open queues, not {type(queue).__name__}: {queue!r}",
                    )
                cursor = Queue(qm, queue.name, MQOO_BROWSE)
                self._watched[Waiting(self._channel)] = (queue, cursor)
        except BaseException:
            self.close()
            raise
        self._due = set(self._watched)  # not listed: to be looked at by ready()

    def fileno(self) -> int:
        """The descriptor; it is not to be read.

        Raises:
            ClosedHandle: 2018: it is closed.
        """
        return self._channel.fileno()

    def ready(self) -> list[Queue]:
        """The queues on which there is a message; those without are watched from now on. To be
        called also when a second has gone by without a sign: a process that was killed in the
        moment of a put may not have given one.

        Raises:
            ClosedHandle: 2018 or 2019: the notifier or a queue's connection is closed.
            MQError: as of a browse.
        """
        self._channel.fileno()
        self._due.update(self._channel.picked(True))
        found = []
        for waiting in [one for one in self._watched if one in self._due]:
            queue, cursor = self._watched[waiting]
            if self._has_message(waiting, cursor):
                found.append(queue)
            else:
                self._due.discard(waiting)
        return found

    def due_in(self) -> float | None:
        """Seconds after which ready() finds a message that is delayed until then: the descriptor
        does not tell that. None: no watched queue has one.
        """
        known = [waiting.due_in for waiting in self._watched]
        return min((seconds for seconds in known if seconds is not None), default=None)

    @staticmethod
    def _has_message(waiting: Waiting, cursor: Queue) -> bool:
        """Looks, and is listed as a browser when there is none."""
        wait: float = waiting  # type: ignore[assignment]
        try:
            return cursor.get(wait, browse="first", max_length=0) is not _LISTED
        except TruncatedMessage:
            return True

    def close(self) -> None:
        """Ends the watch; nothing when it is closed."""
        self._channel.close()
        for _, cursor in self._watched.values():
            try:
                cursor.close()
            except ClosedHandle:
                pass
        self._watched.clear()

    def __enter__(self) -> Notifier:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes it."""
        self.close()

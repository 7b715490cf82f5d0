"""An open queue: what is not hot. ``put`` and ``get`` are in the engine."""

from __future__ import annotations

from ._engine import Message, QueueHandle
from .constants import ReasonCode
from .errors import NoMessageAvailable, OptionNotValidForType

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from .status import QueueStatus

_BROWSE, _PURGE = 8, 2  # MQOO_BROWSE, MQCO_DELETE_PURGE


class Queue(QueueHandle):
    """A queue opened by ``qm.open()`` or ``qm.queue()``; a context manager. Thread-safe."""

    __slots__ = ()

    def __enter__(self) -> Queue:
        """The queue itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the handle."""
        self.close()

    def close(self, delete: bool = False, purge: bool = False) -> None:
        """Closes the handle; nothing when it is closed already. Units of work go on.

        A temporary dynamic queue goes with the handle that made it, messages and all. ``delete``
        deletes a permanent dynamic queue that is empty, ``purge`` one with its messages.

        Raises:
            OptionNotValidForType: 2045: the queue is not dynamic, or temporary and not this
                handle's; the handle stays open.
            QueueNotEmpty: 2055: messages, or uncommitted ones, are on it; the handle stays open.
        """
        if self.is_remote and (delete or purge):
            raise OptionNotValidForType(
                ReasonCode.OPTION_NOT_VALID_FOR_TYPE,
                f"{self.name} is a remote queue: a handle can close it, not delete it",
            )
        self.shut(_PURGE if purge else int(delete))

    @property
    def depth(self) -> int:
        """Messages present, with those put by open units of work, without those got by them."""
        return self.connection.queue_status(*self.slot, self.name)["depth"]

    def status(self) -> QueueStatus:
        """Depth, open handles, waits and counts."""
        from .status import QueueStatus

        return QueueStatus(name=self.name, **self.connection.queue_status(*self.slot, self.name))

    def browse(
        self,
        *,
        msg_id: bytes | None = None,
        correl_id: bytes | None = None,
        group_id: bytes | None = None,
        wait: float | None = 0,
    ) -> Iterator[Message]:
        """Looks at the messages that match, in the order in which get() would take them.

        Each iterator has a cursor of its own. Messages that arrive behind the cursor are seen. It
        ends when nothing came within ``wait`` seconds (None = never).
        """
        with Queue(self.connection, self.name, _BROWSE) as cursor:
            while True:
                try:
                    message = cursor.get(wait, msg_id, correl_id, group_id=group_id, browse="next")
                except NoMessageAvailable:
                    return
                yield message

    def __repr__(self) -> str:
        """``<Queue ORDERS of QM1>``."""
        state = ", closed" if self.closed else ""
        return f"<Queue {self.name} of {self.connection.name}{state}>"

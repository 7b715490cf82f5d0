"""Iterating over the messages of a queue, each in a unit of work: ``Queue.consume()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..constants import ReasonCode
from ..errors import InvalidType

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from .._engine import Message
    from .unit import UnitOfWork


class Consumer:
    """An async context manager and iterator over messages.

    Each message is got in a transaction of the task. What the task puts and gets while it works on
    the message belongs to the same unit of work. It commits when the next message is asked for and
    at the end of the block, and is backed out by an exception that leaves the block.
    """

    def __init__(self, queue: Any, wait: float | None) -> None:
        self._queue = queue
        self._wait = wait
        self._transaction: UnitOfWork | None = None

    async def __aenter__(self) -> Consumer:
        """Begins the transaction."""
        if self._transaction is not None:
            raise InvalidType(ReasonCode.OPTIONS_ERROR, "consume() is for one block")
        transaction = self._queue.connection.transaction()
        await transaction.__aenter__()
        self._transaction = transaction
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commits what the last message was about, or backs it out."""
        if self._transaction is not None:
            await self._transaction.__aexit__(kind, error, trace)

    def __aiter__(self) -> Consumer:
        """Itself."""
        return self

    async def __anext__(self) -> Message:
        """Commits, and waits for the next message."""
        if self._transaction is None:
            raise InvalidType(
                ReasonCode.OPTIONS_ERROR, "consume() is entered first: async with q.consume()"
            )
        if self._transaction.count:
            await self._transaction.commit()
        message: Message | None = await self._queue.get(self._wait, default=None)
        if message is None:
            raise StopAsyncIteration
        return message

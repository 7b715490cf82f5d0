"""Consuming a queue in an event loop: ``Queue.consume()``, as an iterator and around a handler.

Retry, and what becomes of a message that has failed too often, are those of client/consume.py: the
delay is the message's own and holds no task. A cancellation is no failure: the message is
available again at once.

With a prefetch the commits of messages that are done go on behind the task, in the thread that
flushes; they are awaited at the end of the block.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING

from ..client.consume import (
    Fate,
    check_prefetch,
    check_workers,
    checked,
    set_aside,
    wait_of,
)
from ..constants import ReasonCode
from ..errors import InvalidType

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType
    from typing import Any

    from .._engine import Message
    from ..client.retry import Retry
    from .flush_thread import Job
    from .unit import UnitOfWork

_log = logging.getLogger("penstock")


class Consumer:
    """An async context manager and iterator over messages.

    Each message is got in a transaction of the task. What the task puts and gets while it works on
    the message belongs to the same unit of work. It commits when the next message is asked for and
    at the end of the block, and is backed out by an exception that leaves the block: then the
    message waits for as long as ``retry`` says.
    """

    def __init__(
        self,
        queue: Any,
        wait: float | None,
        limit: int | None = None,
        retry: Retry | None = None,
        prefetch: int = 1,
    ) -> None:
        self._retry = checked(wait, limit, retry)
        check_prefetch(prefetch)
        self._prefetch = prefetch
        self._behind: deque[Job] = deque()  # commits, none of which is known to have ended
        self._queue = queue
        self._wait = wait
        self._left = limit  # messages that may still be got
        self._transaction: UnitOfWork | None = None
        self._message: Message | None = None  # in progress
        self.stopped = False

    def stop(self) -> None:
        """Ends the consumer when the messages in progress are done: its loop, and each task of
        run(), ends instead of getting the next one. To be called in the event loop, as from a
        handler that ``loop.add_signal_handler()`` has installed.
        """
        self.stopped = True
        self._queue.runner.wake_waits()

    def _get(self, owner: Consumer) -> Awaitable[Message | None]:
        """A get that ends when the owner is stopped."""
        call: Any = self._queue.get(self._wait, default=None)
        call.ender = owner
        return call  # type: ignore[no-any-return]

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
        transaction, message = self._transaction, self._message
        self._message = None
        if transaction is None:
            return
        try:
            if isinstance(error, Exception) and message is not None and transaction._unit.is_open:
                transaction._unit.backout(wait_of(self._retry, message))  # it waits for nothing
        finally:
            try:
                await transaction.__aexit__(kind, error, trace)
            finally:
                await self._end_commits(kind is None)

    async def _end_commits(self, raises: bool) -> None:
        """Awaits the commits that are behind; the first failure is raised, or logged."""
        failures: list[Exception] = []
        while self._behind:
            try:
                await self._queue.runner.end_commit(self._behind[0])
            except Exception as error:
                failures.append(error)
            self._behind.popleft()
        if failures and raises:
            raise failures[0]
        if failures:
            _log.warning("the commit of a message that was done before failed: %r", failures[0])

    async def _commit(self, transaction: UnitOfWork) -> None:
        """What was done with the last message."""
        if self._prefetch == 1:
            await transaction.commit()
            return
        unit = transaction._unit.commit_or_split()
        if unit is not None:
            self._behind.append(self._queue.runner.begin_commit(unit))
        while len(self._behind) >= self._prefetch:
            try:
                await self._queue.runner.end_commit(self._behind[0])
            except asyncio.CancelledError:
                raise
            except BaseException:
                self._behind.popleft()
                raise
            self._behind.popleft()

    def __aiter__(self) -> Consumer:
        """Itself."""
        return self

    async def __anext__(self) -> Message:
        """Commits, and waits for the next message."""
        return await self._step(self)

    async def _step(self, owner: Consumer) -> Message:
        """The same, until the owner is stopped."""
        transaction = self._transaction
        if transaction is None:
            raise InvalidType(
                ReasonCode.OPTIONS_ERROR, "consume() is entered first: async with q.consume()"
            )
        if transaction.count:
            await self._commit(transaction)
        self._message = None
        while not owner.stopped and (self._left is None or self._left > 0):
            message = await self._get(owner)
            if message is None:
                break
            fate = set_aside(self._queue.handle, message, transaction._unit, self._retry)
            if fate is Fate.MOVED:
                await transaction.commit()
            if fate is not Fate.TRY:
                continue
            if self._left is not None:
                self._left -= 1
            self._message = message
            return message
        raise StopAsyncIteration

    async def run(self, handler: Callable[[Message], Awaitable[object]], *, tasks: int = 1) -> None:
        """Awaits the handler with each message, in so many tasks, until none came within ``wait``
        seconds, ``limit`` messages are done, or stop() ends it. What a handler raises is logged
        (logger ``penstock``), and its message is tried again. A cancellation ends all of them.

        Raises:
            InvalidType, InvalidValue: 2046: an argument that is none.
            MQError: of a get or a commit, when the other tasks have ended.
        """
        if not callable(handler):
            raise InvalidType(
                ReasonCode.OPTIONS_ERROR, f"handler is a callable, not {type(handler).__name__}"
            )
        check_workers("tasks", tasks)
        workers = [asyncio.ensure_future(self._work(handler)) for _ in range(tasks)]
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for worker in workers:
                worker.cancel()
            ended = await asyncio.gather(*workers, return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException) and not isinstance(error, asyncio.CancelledError):
                raise error

    async def _work(self, handler: Callable[[Message], Awaitable[object]]) -> None:
        """One task: a block of its own after each failure."""
        while not self.stopped and (self._left is None or self._left > 0):
            failed: Exception | None = None
            try:
                async with _Shared(self) as messages:
                    async for message in messages:
                        try:
                            await handler(message)
                        except Exception as error:
                            failed = error
                            raise
                return
            except Exception as error:
                if error is not failed:
                    raise
                name = self._queue.name
                _log.warning("queue %s: a handler failed: %r", name, error, exc_info=True)


class _Shared(Consumer):
    """A consumer of one task of run(): the limit is that of all of them."""

    def __init__(self, owner: Consumer) -> None:
        super().__init__(owner._queue, owner._wait, None, owner._retry, owner._prefetch)
        self._owner = owner

    async def __anext__(self) -> Message:
        """The next message, if the owner's limit allows one."""
        owner = self._owner
        if self._transaction is not None and self._transaction.count:
            await self._commit(self._transaction)
        self._message = None
        if owner._left is not None:
            if owner._left <= 0:
                raise StopAsyncIteration
            owner._left -= 1
        try:
            return await self._step(owner)
        except BaseException:
            if owner._left is not None:
                owner._left += 1
            raise

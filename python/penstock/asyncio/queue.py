"""An open queue. ``put`` and ``get`` are in the engine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .._engine import AsyncQueueHandle
from .._mqi_constants.calls import MQOO_BROWSE
from ..client.queue import Queue as _Handle
from ..constants import ReasonCode
from ..errors import InvalidValue
from .consumer import Consumer
from .request_reply import request, serve
from .unit import passed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from types import TracebackType
    from typing import Any

    from typing_extensions import Buffer, Self

    from .._engine import Message, Unit
    from ..batch import BatchResult, MessageBatch
    from ..client.retry import Retry
    from ..client.status import QueueStatus
    from .runner import Runner
    from .unit import UnitOfWork


class Queue(AsyncQueueHandle):
    """A queue opened by ``qm.open()`` or ``qm.queue()`` of penstock.asyncio; an async context
    manager. For the tasks of one event loop.

    ``put()`` and ``get()`` take what those of :class:`penstock.Queue` take, and return awaitables:
    arguments and unit of work are those of the moment of the call. ``async for message in q`` is
    ``q.browse()``.
    """

    handle: _Handle
    runner: Runner

    def __new__(cls, connection: Any, handle: _Handle) -> Self:
        """``qm.open()`` makes it."""
        return super().__new__(cls, handle, connection.runner)

    def __init__(self, connection: Any, handle: _Handle) -> None:
        """``qm.open()`` makes it."""
        self.connection: Any = connection  # a QueueManager of penstock.asyncio

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.handle.name

    @property
    def closed(self) -> bool:
        """Whether the handle is closed."""
        return self.handle.closed

    async def close(self, delete: bool = False, purge: bool = False) -> None:
        """Closes the handle, as :meth:`penstock.Queue.close` does; gets that wait raise 2019."""
        await self.runner.call(self.handle.close, delete, purge)
        self.runner.wake_waits()

    async def __aenter__(self) -> Queue:
        """The queue itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the handle, also when the task is cancelled while it does."""
        try:
            await self.close()
        except asyncio.CancelledError:
            self.handle.shut()
            raise

    @property
    def depth(self) -> int:
        """Messages present, with those put by open units of work, without those got by them."""
        return self.handle.depth

    async def status(self) -> QueueStatus:
        """Depth, open handles, waits and counts."""
        return await self.runner.call(self.handle.status)

    async def browse(
        self,
        *,
        msg_id: bytes | None = None,
        correl_id: bytes | None = None,
        group_id: bytes | None = None,
        wait: float | None = 0,
        delayed: bool = False,
    ) -> AsyncIterator[Message]:
        """Iterates over the matching messages without taking them, in the order of get().

        Each iterator has its own cursor. The iteration ends when no message came within ``wait``
        seconds (None = no limit). ``delayed``: messages that are not due yet are shown, too.

        Raises:
            ClosedHandle: 2019: the queue is closed.
        """
        self.handle.check_open()
        cursor = await self._cursor()
        try:
            while True:
                message = await cursor.get(
                    wait, msg_id, correl_id, group_id=group_id, browse="next", delayed=delayed,
                    default=None,
                )  # fmt: skip
                if message is None:
                    return
                yield message
        finally:
            cursor.handle.shut()

    async def cancel(self, msg_id: Buffer) -> bool:
        """Takes the message with that MsgId off the queue before anybody has got it, delayed or
        not, and says whether it was there; as :meth:`penstock.Queue.cancel` does.
        """
        return await self.runner.call(self.handle.cancel, bytes(msg_id))

    def __aiter__(self) -> AsyncIterator[Message]:
        """``browse()``: copies of the messages that are there; get() takes them."""
        return self.browse()

    def consume(
        self,
        *,
        wait: float | None = None,
        limit: int | None = None,
        retry: Retry | None = None,
        prefetch: int = 1,
    ) -> Consumer:
        """Messages one after the other, each in a unit of work of the task::

            async with q.consume() as messages:
                async for message in messages:
                    await out.put(work(message))

        Commits when the next message is asked for and at the end of the block; an exception that
        leaves the block backs out what the last message was about, which then waits for as long as
        ``retry`` says (None: 1, 2, 4, ... 300 seconds), and is set aside when it has failed too
        often, as :meth:`penstock.Queue.consume` does. A cancellation backs it out at once. The
        iteration ends when no message came within ``wait`` seconds (None = no limit), or after
        ``limit`` messages.

        With ``prefetch`` n the work of up to n messages need not be committed before the next one
        is handed out, for each task, as :meth:`penstock.Queue.consume` says.

        ``await q.consume(...).run(handler, tasks=4)`` awaits a handler with each message, and goes
        on when one fails.

        Raises:
            InvalidType, InvalidValue: 2046, 2090: an argument that is none.
        """
        return Consumer(self, wait, limit, retry, prefetch)

    async def request(
        self,
        data: Buffer | str = ...,  # type: ignore[assignment]
        *,
        timeout: float | None,
        reply_to: Queue | None = None,
        json: Any = ...,
        **fields: Any,
    ) -> Message:
        """Puts a request, waits for the reply to it, and returns that; as
        :meth:`penstock.Queue.request` does.
        """
        body = {"data": data, "json": json}
        given = {name: value for name, value in body.items() if value is not ...}
        return await request(self, timeout, reply_to, given, fields)

    async def serve(
        self,
        handler: Callable[[Message], Awaitable[Buffer | str | None]],
        *,
        wait: float | None = None,
        limit: int | None = None,
    ) -> int:
        """Answers requests until none came within ``wait`` seconds (None = no limit), or ``limit``
        of them were answered (None = no limit); returns how many. As :meth:`penstock.Queue.serve`
        with a handler that is awaited; get, reply and what the handler puts and gets are one
        transaction of the task. Several tasks may serve one queue.

        Raises:
            Whatever the handler raises, and CancelledError: the unit of work is backed out.
            MQError: as of get() and ``qm.reply()``; the unit is backed out.
        """
        return await serve(self, handler, wait, limit)

    async def put_batch(
        self, source: Any, *, unit: Unit | UnitOfWork | None = None, **fields: Any
    ) -> BatchResult:
        """Puts many messages, in the thread that flushes; arguments as those of
        :meth:`penstock.Queue.put_batch`.
        """
        result: BatchResult = await self.runner.batch(
            self.handle.put_batch, self.handle, passed(unit), fields, source
        )
        return result

    async def get_batch(
        self,
        max_messages: int,
        wait: float | None = 0,
        *,
        unit: Unit | UnitOfWork | None = None,
        **how: Any,
    ) -> MessageBatch:
        """Takes up to ``max_messages``, in the thread that flushes; arguments as those of
        :meth:`penstock.Queue.get_batch`.

        Raises:
            InvalidValue: 2046: ``wait`` with ``persistent_only`` or ``up_to``.
        """
        batch = await self._get_batch(max_messages, unit, how)
        if wait == 0 or len(batch):
            return batch
        if how.get("persistent_only") or how.get("up_to") is not None:
            raise InvalidValue(
                ReasonCode.OPTIONS_ERROR,
                "get_batch() waits for any message: wait goes without persistent_only and up_to",
            )
        end = None if wait is None else self.runner.loop.time() + wait
        async with await self._cursor() as cursor:
            while True:
                left = None if end is None else max(end - self.runner.loop.time(), 0)
                there = await cursor.get(
                    left, browse="first", max_length=0, truncate=True, default=None
                )
                batch = await self._get_batch(max_messages, unit, how)
                if there is None or len(batch):
                    return batch

    async def _get_batch(
        self, max_messages: int, unit: Unit | UnitOfWork | None, how: dict[str, Any]
    ) -> MessageBatch:
        batch: MessageBatch = await self.runner.batch(
            self.handle.get_batch, self.handle, passed(unit), how, max_messages
        )
        return batch

    async def _cursor(self) -> Queue:
        """A handle of its own for browsing."""
        sync = self.handle.connection
        return Queue(self.connection, await self.runner.call(_Handle, sync, self.name, MQOO_BROWSE))

    async def browse_batch(self, max_messages: int, **how: Any) -> MessageBatch:
        """As :meth:`penstock.Queue.browse_batch`, in the thread that flushes."""
        return await self.runner.call(self.handle.browse_batch, max_messages, **how)

    def __repr__(self) -> str:
        """``<Queue ORDERS of QM1>``."""
        return repr(self.handle)

"""Connections of event loops: ``connect()`` and the class that it returns."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..client import connection as sync
from ..client.request_reply import MODEL
from ..constants import ReasonCode
from ..errors import ClosedHandle, InvalidValue
from .queue import Queue
from .runner import Runner
from .unit import UnitOfWork, passed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType
    from typing import Any

    from typing_extensions import Buffer

    from .._engine import AsyncCall, Message, PutResult, Unit
    from ..admin.directory import Home
    from ..client.schedules import Schedule
    from ..client.status import ManagerStatus
    from ..objects import Definition


def connect(name: str, home: Home = None, create: bool = False, **settings: Any) -> QueueManager:
    """A connection for the event loop that runs, as :func:`penstock.connect` makes one for threads:
    to be awaited, or for ``async with``. Arguments and errors are those of that function.
    """
    return QueueManager(name, home, create, **settings)


class QueueManager:
    """A connection to a queue manager for the tasks of one event loop; an async context manager.

    Every method that may wait, flush or read a file is a coroutine and leaves that to the thread of
    the connection. ``transaction()`` and ``unit()`` cost nothing but their objects.
    """

    def __init__(self, name: str, home: Home = None, create: bool = False, **settings: Any) -> None:
        """``connect()`` makes it; it is connected when it has been awaited."""
        self._how = (name, home, create)
        self._settings = settings
        self._sync: sync.QueueManager | None = None
        self._runner: Runner | None = None
        self._replies: Queue | None = None

    # ---- beginning and end ----

    def __await__(self) -> Generator[Any, None, QueueManager]:
        """Connects."""
        return self._connect().__await__()

    async def __aenter__(self) -> QueueManager:
        """Connects."""
        return await self._connect()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes: commits pending work, or backs it out when an exception leaves the block."""
        await self._end(kind is None)

    async def _connect(self) -> QueueManager:
        if self._runner is not None:
            raise InvalidValue(ReasonCode.OPTIONS_ERROR, "a connection is made once")
        runner = self._runner = Runner(asyncio.get_running_loop())
        try:
            self._sync = await runner.call(sync.connect, *self._how, **self._settings)
        except BaseException:
            runner.thread.stop()
            raise
        runner.use(self._sync)
        return self

    async def close(self) -> None:
        """Closes queues and connection; nothing when it is closed already. Gets that wait raise
        2018; transactions whose blocks have not ended are backed out.
        """
        await self._end(True)

    async def _end(self, commit: bool) -> None:
        runner, qm = self._runner, self._sync
        if runner is None or qm is None or qm.closed:
            return
        runner.close_waits()
        try:
            await runner.call(qm.detach, commit)
        finally:
            runner.thread.stop()

    @property
    def runner(self) -> Runner:
        """What carries out the calls."""
        if self._runner is None:
            raise ClosedHandle(ReasonCode.HCONN_ERROR, "the connection has not been awaited")
        return self._runner

    @property
    def sync(self) -> sync.QueueManager:
        """The same connection for threads: of it, calls that block must not be made in the loop."""
        if self._sync is None:
            raise ClosedHandle(ReasonCode.HCONN_ERROR, "the connection has not been awaited")
        return self._sync

    @property
    def name(self) -> str:
        """The queue manager's name."""
        return self._how[0]

    @property
    def closed(self) -> bool:
        """Whether it is closed, or was never connected."""
        return self._sync is None or self._sync.closed

    # ---- units of work ----

    def transaction(self) -> UnitOfWork:
        """A unit of work for an ``async with`` block, to which every call of the task belongs:
        commits at its end, backs out on an exception.
        """
        return UnitOfWork(self.runner, self.sync.transaction())

    def unit(self) -> UnitOfWork:
        """A unit of work for the calls that it is passed to (``unit=``), of any task. It ends by
        commit() or backout(), or at the end of an ``async with`` block of its own.
        """
        return UnitOfWork(self.runner, self.sync.unit())

    # ---- queues ----

    async def open(self, name: str, **how: Any) -> Queue:
        """Opens a queue; arguments and errors are those of :meth:`penstock.QueueManager.open`."""
        return Queue(self, await self.runner.call(self.sync.open, name, **how))

    async def queue(self, name: str, **attributes: Any) -> Queue:
        """Opens a queue; creates it when it does not exist, as :meth:`penstock.QueueManager.queue`
        does.
        """
        return Queue(self, await self.runner.call(self.sync.queue, name, **attributes))

    async def reply_queue(self) -> Queue:
        """The connection's own queue for replies to its requests, made when first needed."""
        if self._replies is None or self._replies.closed:
            made = await self.open(
                MODEL, input=True, output=False, browse=False, dynamic_name="REPLIES.*"
            )
            if self._replies is None or self._replies.closed:
                self._replies = made
            else:  # another task was faster
                await made.close()
        return self._replies

    async def reply(
        self,
        message: Message,
        data: Buffer | str = b"",
        *,
        unit: Unit | UnitOfWork | None = None,
        **fields: Any,
    ) -> PutResult:
        """Puts a reply to a message, as :meth:`penstock.QueueManager.reply` does, in the unit of
        work of the task or the one that is passed.
        """
        name = message.reply_to_q
        if not name:
            raise InvalidValue(
                ReasonCode.MISSING_REPLY_TO_Q, "the message names no queue for replies"
            )
        there = message.reply_to_qmgr
        async with await self.open(name, input=False, browse=False, manager=there) as queue:
            return await queue.put(**message.reply(data, **fields), unit=passed(unit))

    # ---- definitions and reports ----

    async def define(self, kind: str, name: str, /, **attributes: Any) -> None:
        """As :meth:`penstock.QueueManager.define`."""
        await self.runner.call(self.sync.define, kind, name, **attributes)

    async def alter(self, kind: str, name: str = "", /, **attributes: Any) -> None:
        """As :meth:`penstock.QueueManager.alter`."""
        await self.runner.call(self.sync.alter, kind, name, **attributes)

    async def delete(self, kind: str, name: str, /, **how: Any) -> None:
        """As :meth:`penstock.QueueManager.delete`."""
        await self.runner.call(self.sync.delete, kind, name, **how)

    async def clear(self, name: str, /) -> None:
        """As :meth:`penstock.QueueManager.clear`."""
        await self.runner.call(self.sync.clear, name)

    async def display(self, kind: str, name: str = "*", /, **identity: Any) -> list[Definition]:
        """As :meth:`penstock.QueueManager.display`."""
        return await self.runner.call(self.sync.display, kind, name, **identity)

    async def status(self) -> ManagerStatus:
        """As :meth:`penstock.QueueManager.status`."""
        return await self.runner.call(self.sync.status)

    # ---- schedules ----

    async def schedule(self, name: str, queue: str, **how: Any) -> Schedule:
        """As :meth:`penstock.QueueManager.schedule`."""
        return await self.runner.call(self.sync.schedule, name, queue, **how)

    async def schedules(self) -> list[Schedule]:
        """As :meth:`penstock.QueueManager.schedules`."""
        return await self.runner.call(self.sync.schedules)

    async def delete_schedule(self, name: str) -> None:
        """As :meth:`penstock.QueueManager.delete_schedule`."""
        await self.runner.call(self.sync.delete_schedule, name)

    async def run_schedules(self, wait: float | None = None, limit: int | None = None) -> None:
        """Puts the jobs of all schedules when they are due, as
        :meth:`penstock.QueueManager.run_schedules` does, until its task is cancelled: what it has
        begun then, another runner does. Any number of tasks and processes may run them at once.
        """
        from .schedules import run

        await run(self, wait, limit)

    def __repr__(self) -> str:
        """``<penstock.asyncio.QueueManager QM1>``."""
        return f"<penstock.asyncio.QueueManager {self.name}{', closed' if self.closed else ''}>"


if TYPE_CHECKING:
    _Unused = (AsyncCall, Callable)

"""Carrying out calls that cannot be done at once: waits, flushes, turns of a unit of work.

Rules of cancellation
    1. A call that raises CancelledError has put nothing, taken nothing, ended nothing.
    2. A call whose effect could not be kept back any more returns as if it had not been cancelled,
       and the cancellation is raised when the task next waits, or by its next call. A cancellation
       that was taken back meanwhile (``Task.uncancel()``: a timeout that has seen the result) is
       not. Python 3.10 cannot tell: there the next call raises it.
    3. A get that waits has taken nothing: when it ends, a wake-up that it was given goes to another
       waiter.

Terms
    owed   said of a cancellation that rule 2 has put off.
    line   calls with one unit of work, in the order in which they were first awaited.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from .. import _engine
from .._engine import Channel, Waiting
from ..constants import ReasonCode
from ..errors import InvalidValue, MQError, WaitTimedOut
from .flush_thread import FlushThread, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, ParamSpec, TypeVar

    from .._engine import AsyncCall, QueueHandle, Unit
    from ..client.connection import QueueManager

    _P = ParamSpec("_P")
    _T = TypeVar("_T")

LISTED, NOTHING, WouldBlock = _engine.async_marks()
_BOUND = 1.0  # seconds: a waker that died, or a queue manager that stopped, is noticed (rule 21)
_COUNTS_CANCELS = sys.version_info >= (3, 11)
_owed: set[asyncio.Task[Any]] = set()
_owed_lock = threading.Lock()  # several loops in several threads


# ---- owed cancellations ----


def _is_wanted(task: asyncio.Task[Any]) -> bool:
    return not _COUNTS_CANCELS or task.cancelling() > 0  # type: ignore[attr-defined, unused-ignore]


def _settle(task: asyncio.Task[Any]) -> bool:
    """True when the task was owed a cancellation; it is not any more."""
    with _owed_lock:
        owed = task in _owed
        _owed.discard(task)
        _engine.set_owed_cancellations(len(_owed), _raise_owed)
    return owed


def _raise_owed() -> None:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return
    if task is not None and _settle(task) and _is_wanted(task):
        raise asyncio.CancelledError


def _redeliver(task: asyncio.Task[Any]) -> None:
    """The task has gone on, and waits now, or has ended."""
    if _COUNTS_CANCELS and _settle(task) and not task.done() and _is_wanted(task):
        task.cancel()
        task.uncancel()  # type: ignore[attr-defined, unused-ignore]


def _owe() -> None:
    """The task that runs is owed a cancellation."""
    task = asyncio.current_task()
    if task is None:
        return
    with _owed_lock:
        _owed.add(task)
        _engine.set_owed_cancellations(len(_owed), _raise_owed)
    if _COUNTS_CANCELS:
        task.get_loop().call_soon(_redeliver, task)
    else:
        task.add_done_callback(_settle)


# ---- waits ----


class _Waits:
    """The gets of a loop that wait, and the descriptor that tells which were picked."""

    def __init__(
        self,
        qm: QueueManager,
        loop: asyncio.AbstractEventLoop,
        make_reports: Callable[[], None],
    ) -> None:
        self._qm = qm
        self._loop = loop
        self._make_reports = make_reports
        self._futures: dict[Waiting, asyncio.Future[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.channel = Channel(qm)
        self._fd = self.channel.fileno()
        loop.add_reader(self._fd, self._answer)

    async def wait(self, waiting: Waiting, deadline: float | None) -> bool:
        """Until the get was picked, or something else may have happened to it; False: its time is
        up. Whatever this raises, the get is listed still.
        """
        if waiting.told:  # it was picked while its call was on the way back from the thread
            return True
        future = self._loop.create_future()
        self._futures[waiting] = future
        if self._timer is None:
            self._timer = self._loop.call_later(_BOUND, self._look)
        due_in = waiting.due_in
        until = deadline
        if due_in is not None:  # nobody tells that a message is due
            due = self._loop.time() + due_in
            until = due if deadline is None else min(deadline, due)
        end = None if until is None else self._loop.call_at(until, _wake, future)
        try:
            await future
        finally:
            self._futures.pop(waiting, None)
            if end is not None:
                end.cancel()
        return deadline is None or self._loop.time() < deadline

    def _answer(self) -> None:
        self._wake(self.channel.picked())

    def _wake(self, picked: list[Waiting]) -> None:
        for waiting in picked:
            future = self._futures.get(waiting)
            if future is not None:
                _wake(future)

    def _look(self) -> None:
        """Once a second: for wakers that died, for a queue manager that stopped, and for expired
        messages and events whose reports are to be made.
        """
        self._timer = None
        if not self._futures:
            return
        try:
            self._qm.is_quiescing()
            if self._qm.reports_are_due():
                self._make_reports()
        except MQError:
            self.wake_all()
        else:
            self._wake(self.channel.picked(True))
        self._timer = self._loop.call_later(_BOUND, self._look)

    def wake_all(self) -> None:
        """Every get looks again."""
        for future in list(self._futures.values()):
            _wake(future)

    def close(self) -> None:
        """Ends the waits: their calls find the connection or the queue closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
            self.wake_all()
        self.channel.close()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


# ---- the runner ----


class Runner:
    """Carries out calls of one connection for the event loop that it belongs to."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.thread = FlushThread(None, loop)
        self._qm: QueueManager | None = None
        self._waits: _Waits | None = None
        self.in_thread: set[Job] = set()  # jobs whose calls have not returned to their tasks
        self._lines: dict[Unit, deque[asyncio.Future[None]]] = {}
        self._reporting: Job | None = None

    def use(self, qm: QueueManager) -> None:
        """The connection, once there is one."""
        self._qm = qm
        self.thread.use(qm)

    def wake_waits(self) -> None:
        """A queue has been closed: gets that wait on it find that."""
        if self._waits is not None:
            self._waits.wake_all()

    def close_waits(self) -> None:
        """The connection ends."""
        waits, self._waits = self._waits, None
        if waits is not None:
            waits.close()

    def make_reports(self) -> None:
        """Has the reports and event messages made that are due, in the thread."""
        if self._qm is not None and (self._reporting is None or self._reporting.done):
            self._reporting = Job(self._qm.make_reports)
            self.thread.submit(self._reporting)

    # ---- calls of the engine ----

    def run(self, call: AsyncCall[Any]) -> Coroutine[Any, Any, Any]:
        """Carries out a call that could not be done at once."""
        self.check_loop()
        if call.unit is not None:
            return self._in_line(call)
        if not call.is_get:
            return self._in_thread(Job(call.attempt, call if call.is_put else None))
        if call.wait_us == 0:
            return self._get(call, 0)
        return self._get_waiting(call)

    async def _in_line(self, call: AsyncCall[Any]) -> Any:
        """A call with a unit of work, behind those with it that were awaited before."""
        assert call.unit is not None
        call.enter_line()
        try:
            line = self._lines.setdefault(call.unit, deque())
            turn = self.loop.create_future()
            line.append(turn)
            try:
                waits = line[0] is not turn
                if waits:
                    await turn
                return await self._with_unit(call, waits)
            finally:
                self._leave_line(call.unit, turn)
        finally:
            call.leave_line()

    def _leave_line(self, unit: Unit, turn: asyncio.Future[None]) -> None:
        line = self._lines[unit]
        first = line[0] is turn
        line.remove(turn)
        if not line:
            del self._lines[unit]
        elif first:
            _wake(line[0])

    async def _with_unit(self, call: AsyncCall[Any], has_waited: bool) -> Any:
        if not call.is_get:
            if has_waited and not call.long:  # it may only have waited for its turn
                try:
                    return call.attempt_at_once()
                except WouldBlock:
                    pass
            return await self._in_thread(
                Job(call.attempt, unit=call.unit if call.is_commit else None)
            )
        if call.wait_us == 0:
            return await self._get(call, 0)
        return await self._get_waiting(call)

    async def _get(self, call: AsyncCall[Any], wait: Waiting | int) -> Any:
        """One get, at once or in the thread."""
        if not call.long:
            try:
                return call.attempt_at_once(wait)
            except WouldBlock:
                pass
        return await self._get_in_thread(call, wait)

    async def _get_in_thread(self, call: AsyncCall[Any], wait: Waiting | int) -> Any:
        return await self._in_thread(Job(lambda: call.attempt(wait)), _is_nothing)

    async def _get_waiting(self, call: AsyncCall[Any]) -> Any:
        if self._waits is None:
            assert self._qm is not None
            self._waits = _Waits(self._qm, self.loop, self.make_reports)
        waits = self._waits
        deadline = None if call.wait_us < 0 else self.loop.time() + call.wait_us / 1e6
        waiting = Waiting(waits.channel)
        try:
            while True:
                try:  # what _get() does, without its coroutine: each wake-up comes here
                    result = WouldBlock if call.long else call.attempt_at_once(waiting)
                except WouldBlock:
                    result = WouldBlock
                if result is WouldBlock:
                    result = await self._get_in_thread(call, waiting)
                if result is not LISTED:
                    return result
                if not await waits.wait(waiting, deadline):
                    break
                if call.ender is not None and call.ender.stopped:
                    return self._time_is_up(call)
        finally:
            waiting.end()
        result = await self._get(call, 0)
        return result if result is not NOTHING else self._time_is_up(call)

    @staticmethod
    def _time_is_up(call: AsyncCall[Any]) -> Any:
        if call.has_default:
            return call.default
        raise WaitTimedOut(
            ReasonCode.NO_MSG_AVAILABLE,
            f"queue {call.target.name} has no message available, and the wait is over",
        )

    async def batch(
        self,
        function: Callable[..., Any],
        handle: QueueHandle,
        unit: Unit | None,
        how: dict[str, Any],
        *args: Any,
    ) -> Any:
        """A call for many messages, in its unit of work, in the thread."""
        return await _engine.batch_call(self, function, handle, args, dict(how, unit=unit))

    # ---- the thread ----

    async def call(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Any call, made in the thread."""
        self.check_loop()
        result: _T = await self._in_thread(Job(lambda: function(*args, **kwargs)))
        return result

    async def _in_thread(self, job: Job, is_nothing: Callable[[Any], bool] | None = None) -> Any:
        """Makes a job. `is_nothing`: of its result, that it had no effect."""
        cancelled: asyncio.CancelledError | None = None
        self.in_thread.add(job)
        self.thread.submit(job)
        try:
            while not job.done:
                waiter = job.waiter = self.loop.create_future()
                try:
                    await waiter
                except asyncio.CancelledError as error:
                    if not job.done and job.withdraw():
                        raise
                    cancelled = error  # too late to withdraw it
                except GeneratorExit:  # the loop is gone, and its tasks with it
                    if not job.withdraw():
                        self.thread.wait_for_claimed()
                    raise
        finally:
            self.in_thread.discard(job)
        if cancelled is not None:
            if job.error is not None or (is_nothing is not None and is_nothing(job.result)):
                job.error = None  # as Job.outcome()
                try:
                    raise cancelled
                finally:
                    del cancelled
            _owe()
        return job.outcome()

    def begin_commit(self, unit: Unit) -> Job:
        """Has the unit committed, together with others; for end_commit()."""
        job = Job(partial(unit.end_for_task, True), unit=unit)
        self.thread.submit(job)
        return job

    async def end_commit(self, job: Job) -> None:
        """Raises what the commit raised. A cancellation leaves the commit as it is."""
        while not job.done:
            job.waiter = self.loop.create_future()
            await job.waiter
        job.outcome()

    def check_loop(self) -> None:
        """2046 in another loop than that of connect()."""
        if asyncio.get_running_loop() is not self.loop:
            raise InvalidValue(
                ReasonCode.OPTIONS_ERROR,
                "the connection belongs to another event loop: connect in the one that uses it",
            )


def _is_nothing(result: Any) -> bool:
    return result is LISTED or result is NOTHING

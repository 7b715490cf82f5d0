"""The thread that waits and flushes for an event loop: one a connection, started when first needed.

Terms
    job      a call that is made in the thread: a function without arguments, or an AsyncCall.
    claimed  a job that the thread has begun; one that is withdrawn before is never made.
    group    durable puts outside units of work, and commits, that are queued together: the puts
             are made in one unit of work, and that and the others are committed with one flush.

Invariants
    1. A job's outcome is stored before its loop is told of it; the loop is told once for all jobs
       that ended together.
    2. Each call of a group has the outcome that it would have by itself: a put that is refused,
       or a unit of work that was backed out, leaves the others alone, and when the unit of the
       puts cannot be committed each is put by itself, or has the error after which nothing is
       known (2009).
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import TYPE_CHECKING

from .. import _engine
from ..errors import BackedOut, MQError, UnitLimitReached

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._engine import AsyncCall, Unit
    from ..client.connection import QueueManager

_GROUP = 1000  # calls: puts below the usual MAXUMSGS


class Job:
    """One call for the thread."""

    __slots__ = ("call", "claim", "done", "ended", "error", "function", "result", "unit", "waiter")

    def __init__(
        self,
        function: Callable[[], Any],
        call: AsyncCall[Any] | None = None,
        unit: Unit | None = None,
    ) -> None:
        self.function = function
        self.call = call  # a durable put outside units of work, which may join a group
        self.unit = unit  # that it commits: it may join one, too
        self.claim = threading.Lock()  # taken by the thread, or by who withdraws the job
        self.ended = False  # the call has returned
        self.done = False  # and the loop knows
        self.result: Any = None
        self.error: BaseException | None = None
        self.waiter: asyncio.Future[None] | None = None

    def withdraw(self) -> bool:
        """True: the thread has not begun it, and never will."""
        return self.claim.acquire(blocking=False)

    def run(self) -> None:
        """In the thread."""
        try:
            self.result = self.function()
        except BaseException as error:
            self.error = error
        self.ended = True

    def outcome(self) -> Any:
        """The result, or what the call raised, once: an exception that the job still knew would
        keep job, frames and unit of work until the garbage collection, as each knows the next one.
        """
        error, self.error = self.error, None
        if error is None:
            return self.result
        try:
            raise error
        finally:
            del error

    def tell(self) -> None:
        """In the loop."""
        self.done = True
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


class FlushThread:
    """Makes calls of one connection for one event loop."""

    def __init__(self, qm: QueueManager | None, loop: asyncio.AbstractEventLoop) -> None:
        self._qm = qm
        self._loop = loop
        self._jobs: deque[Job] = deque()
        self._wake = threading.Lock()  # held by who waits for jobs; released when there are some
        self._wake.acquire()
        self._working = threading.Lock()  # held from before a job is claimed until all have ended
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._waking = False

    def use(self, qm: QueueManager) -> None:
        """The connection, once there is one."""
        self._qm = qm

    def submit(self, job: Job) -> None:
        """Queues a job; the loop is told when it has ended."""
        self._jobs.append(job)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="penstock flush", daemon=True)
            self._thread.start()
        if not self._waking:  # behind the tasks that run in this turn of the loop: they may join
            self._waking = True
            self._loop.call_soon(self._wake_thread)

    def _wake_thread(self) -> None:
        self._waking = False
        self._release()

    def _release(self) -> None:
        try:
            self._wake.release()
        except RuntimeError:
            pass  # it is awake, and looks once more before it waits

    def wait_for_claimed(self) -> None:
        """Until the jobs that the thread has claimed have ended; not for the thread itself."""
        with self._working:
            pass

    def stop(self) -> None:
        """Ends the thread behind the jobs that are queued; returns when it has ended."""
        thread, self._thread = self._thread, None
        self._stopped = True
        self._release()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while True:
            self._wake.acquire()
            while self._jobs:
                with self._working:
                    ended = self._work(self._take())
                self._tell(ended)
                del ended  # a unit that a task has dropped ends now, not behind the next job
            if self._stopped:
                return

    def _take(self) -> list[Job]:
        """The jobs that are queued now, as many as fit into a group."""
        taken: list[Job] = []
        while self._jobs and len(taken) < _GROUP:
            job = self._jobs.popleft()
            if job.claim.acquire(blocking=False):
                taken.append(job)
        return taken

    def _work(self, jobs: list[Job]) -> list[Job]:
        group: list[Job] = []
        for job in jobs:  # in their order: a group ends before a call of another kind
            if job.call is not None or job.unit is not None:
                group.append(job)
                continue
            self._make_group(group)
            group = []
            job.run()
        self._make_group(group)
        return jobs

    def _tell(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        try:
            self._loop.call_soon_threadsafe(_tell, jobs)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    def _make_group(self, group: list[Job]) -> None:
        if len(group) < 2:
            for job in group:
                job.run()
            return
        try:
            self._make_together(group)
        except BaseException as error:  # no memory: the tasks must not wait for ever
            for job in group:
                if not job.ended:
                    job.error, job.ended = error, True

    def _make_together(self, group: list[Job]) -> None:
        commits = [job for job in group if job.unit is not None]
        puts = [job for job in group if job.unit is None]
        unit, made = self._put_all(puts) if len(puts) > 1 else (None, [])
        units = [job.unit for job in commits if job.unit is not None]
        outcomes = _engine.commit_together(units if unit is None else [*units, unit])
        if unit is not None:
            _store_puts(made, outcomes.pop())
        for job, error in zip(commits, outcomes, strict=True):
            job.error, job.ended = error, True
        for job in puts:
            if not job.ended:  # its group was not to be
                job.run()

    def _put_all(self, puts: list[Job]) -> tuple[Unit | None, list[tuple[Job, Any]]]:
        """The unit of work in which they are put, and what was; a put that is refused has ended.
        None: they do not fit into one.
        """
        assert self._qm is not None
        made: list[tuple[Job, Any]] = []
        try:
            unit = self._qm.unit()
        except MQError:
            return None, made
        for job in puts:
            assert job.call is not None
            try:
                made.append((job, job.call.attempt(0, unit)))
            except UnitLimitReached:
                unit.backout()
                return None, made
            except BaseException as error:
                job.error, job.ended = error, True
        return unit, made


def _store_puts(made: list[tuple[Job, Any]], error: BaseException | None) -> None:
    """The outcome of all is that of their commit. Nothing, when the unit was backed out."""
    if isinstance(error, BackedOut):
        return
    for job, result in made:
        job.result, job.error, job.ended = result, error, True


def _tell(jobs: list[Job]) -> None:
    for job in jobs:
        job.tell()

"""The thread that waits and flushes for an event loop: one a connection, started when first needed.

Terms
    job      a call that is made in the thread: a function without arguments, or an AsyncCall.
    claimed  a job that the thread has begun; one that is withdrawn before is never made.
    group    durable puts outside units of work that are queued together: they are put in one unit
             of work, whose commit is one flush for all of them.

Invariants
    1. A job's outcome is stored before its loop is told of it; the loop is told once for all jobs
       that ended together.
    2. Each put of a group has the outcome that it would have by itself: one that is refused leaves
       the others alone, and when their unit of work cannot be committed each is put by itself, or
       has the error after which nothing is known (2009).
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import TYPE_CHECKING

from ..errors import BackedOut, MQError, UnitLimitReached

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._engine import AsyncCall
    from ..client.connection import QueueManager

_GROUP = 1000  # puts, below the usual MAXUMSGS


class Job:
    """One call for the thread."""

    __slots__ = ("call", "claim", "done", "ended", "error", "function", "result", "waiter")

    def __init__(self, function: Callable[[], Any], call: AsyncCall[Any] | None = None) -> None:
        self.function = function
        self.call = call  # a durable put outside units of work, which may join a group
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
            if job.call is not None:
                group.append(job)
                continue
            self._put_group(group)
            group = []
            job.run()
        self._put_group(group)
        return jobs

    def _tell(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        try:
            self._loop.call_soon_threadsafe(_tell, jobs)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    def _put_group(self, group: list[Job]) -> None:
        if len(group) < 2:
            for job in group:
                job.run()
            return
        if not self._try_group(group):
            for job in group:
                if job.error is None and job.result is None:
                    job.run()

    def _try_group(self, group: list[Job]) -> bool:
        """False: nothing of it was put, but for what has failed."""
        assert self._qm is not None
        try:
            unit = self._qm.unit()
        except MQError:
            return False
        results: list[tuple[Job, Any]] = []
        full = False
        for job in group:
            assert job.call is not None
            try:
                results.append((job, job.call.attempt(0, unit)))
            except UnitLimitReached:
                full = True
                break
            except BaseException as error:
                job.error = error
        try:
            unit.backout() if full else unit.commit()
        except BackedOut:
            return False
        except BaseException as error:  # the outcome of all is that of the commit
            for job, _ in results:
                job.error = error
            return True
        if full:
            return False
        for job, result in results:
            job.result = result
            job.ended = True
        return True


def _tell(jobs: list[Job]) -> None:
    for job in jobs:
        job.tell()

"""A background thread that runs jobs one after the other, in the order of their submission.

It starts with the first job. ``wait_all()`` raises the first error of a job.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import ParamSpec, TypeVar

from ..base.acting import inherited

__all__ = ["Background"]

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


class Background:
    """The thread, and its jobs since the last ``wait_all()``."""

    def __init__(self) -> None:
        """Without a thread yet, so that it can be sent to another process."""
        self._thread: ThreadPoolExecutor | None = None
        self._jobs: list[Future[object]] = []

    @property
    def is_idle(self) -> bool:
        """Whether all jobs are done."""
        return all(job.done() for job in self._jobs)

    def submit(
        self, work: Callable[_Given, _Made], *given: _Given.args, **named: _Given.kwargs
    ) -> Future[_Made]:
        """Runs a job after all earlier ones, for whom this thread works."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "penstock-background")
        job = self._thread.submit(inherited(work), *given, **named)
        self._jobs.append(job)  # type: ignore[arg-type]
        return job

    def wait_all(self) -> None:
        """Waits for all jobs. Raises the first error since the last call."""
        jobs, self._jobs = self._jobs, []
        wait(jobs)
        for job in jobs:
            job.result()

    def close(self) -> None:
        """Waits for all jobs and ends the thread; errors are dropped."""
        jobs, self._jobs = self._jobs, []
        wait(jobs)
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None

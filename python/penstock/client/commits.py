"""Commits that go on behind the thread that works on messages: ``consume(prefetch=)``.

A consumer that commits after each message waits for a flush after each. Here the units of work of
messages that are done are committed by a second thread, together, while the consumer works on the
next ones: one flush for those that came meanwhile.

Terms
    behind   said of a unit of work that was given and is not committed yet.

Invariants
    1. At most ``most`` units are behind when ``give()`` returns.
    2. Units are committed in the order in which they were given. One that cannot be committed
       leaves those around it alone; the first failure is raised once, by give() or at the end.
    3. The thread ends with the block; when the interpreter exits before, with what was given.

Locks. ``_changed`` guards the attributes; it is not held during a commit.

Errors. Those of a commit, later.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from .. import _engine
from ..errors import MQError

if TYPE_CHECKING:
    from types import TracebackType

    from .._engine import Unit

_log = logging.getLogger("penstock")


class CommitThread:
    """A context manager; at the end of its block everything given is committed, or has failed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._given: deque[Unit] = deque()  # not begun
        self._behind = 0
        self._failure: BaseException | None = None
        self._ended = False
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def commit(self, transaction: Unit) -> None:
        """Commits what was done in the transaction so far, which goes on with a new unit of work:
        at once where that needs no flush, else behind the caller.

        Raises:
            MQError: as give().
        """
        unit = transaction.commit_or_split()
        if unit is not None:
            self.give(unit)

    def give(self, unit: Unit) -> None:
        """Commits the unit behind the caller, who waits while there are too many.

        Raises:
            MQError: what the commit of a unit that was given before has raised; this one is
                committed all the same.
        """
        with self._changed:
            if self._thread is None:
                self._start()
            self._given.append(unit)
            self._behind += 1
            self._changed.notify_all()
            while self._behind > self._most:
                self._changed.wait()
            self._raise_failure()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="penstock commits", daemon=True)
        self._thread.start()
        atexit.register(self._end)  # of a loop that nobody has left: before connections are ended

    def _end(self) -> None:
        """Returns when everything given is committed, or has failed."""
        atexit.unregister(self._end)
        if self._thread is None or os.getpid() != self._process:
            return  # in a forked child the units are the parent's
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join()

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _run(self) -> None:
        while units := self._next():
            outcomes = _outcomes_of(units)
            del units
            with self._changed:
                self._behind -= len(outcomes)
                for error in outcomes:
                    self._failure = self._failure or error
                self._changed.notify_all()

    def _next(self) -> list[Unit]:
        """Waits; empty at the end of the block."""
        with self._changed:
            while not self._given and not self._ended:
                self._changed.wait()
            units = list(self._given)
            self._given.clear()
            return units

    def __enter__(self) -> CommitThread:
        """Itself; the thread is started when it is needed."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Waits for the commits, and raises the first failure: where an exception leaves the block
        already, it is logged.
        """
        self._end()
        if kind is None:
            self._raise_failure()
        elif self._failure is not None:
            _log.warning("the commit of a message that was done before failed: %r", self._failure)


def _outcomes_of(units: list[Unit]) -> list[BaseException | None]:
    try:
        return _engine.commit_together(units)
    except BaseException as error:  # no memory: the consumer must not wait for ever
        for unit in units:
            with suppress(MQError):  # one that has ended
                unit.backout()
        return [error] * len(units)

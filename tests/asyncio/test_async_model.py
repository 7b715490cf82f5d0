"""The model of units of work (unit_model.py) through the tasks of an event loop.

Each call is made by a task of its own: units and their calls pass from task to task.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from face import LIMIT

import penstock
import penstock.asyncio
from penstock import Message
from unit_model import Driver, check


class Tasks(Driver):
    """Each call in a task of its own, of a loop in another thread. Prepared units have no twins."""

    ways = ("commit", "commit", "backout", "later", "block", "drop")

    def __init__(self, home: Path, seed: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        super().__init__(self.done(self.connected(home)), seed)

    async def connected(self, home: Path) -> penstock.asyncio.QueueManager:
        """A connection."""
        return await penstock.asyncio.connect("QM1", home)

    def done(self, coroutine: Any) -> Any:
        """Its result, after it ran as a task."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(LIMIT)

    def call(self, function: Any, *arguments: Any, **named: Any) -> Any:
        """The exception instead of a result."""

        async def task() -> Any:
            result = function(*arguments, **named)
            return await result if inspect.isawaitable(result) else result

        future = asyncio.run_coroutine_threadsafe(task(), self.loop)
        error = future.exception(LIMIT)
        return error if error is not None else future.result()

    def open(self, name: str) -> Any:
        """A queue."""
        return self.done(self.qm.open(name))

    def leave(self, unit: Any) -> None:
        """The end of a block."""
        assert self.call(unit.__aexit__, None, None, None) is None

    def await_dropped(self) -> None:
        """The task of its last call, and the thread that flushes, may still know it."""
        used = sum(bool(self.model.of(slot)) for slot in self.units)
        until = time.monotonic() + LIMIT
        while self.call(self.qm.status).units > used:
            assert time.monotonic() < until

    def browsed(self, queue: Any, **how: Any) -> list[Message]:
        """What a browse shows."""

        async def all_of_it() -> list[Message]:
            return [message async for message in queue.browse(**how)]

        found: list[Message] = self.done(all_of_it())
        return found

    def close(self) -> None:
        """The end."""
        for queue in self.queues.values():
            assert self.call(queue.close) is None
        assert self.call(self.qm.close) is None
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.mark.filterwarnings("ignore:a unit of work:ResourceWarning")
@pytest.mark.parametrize("seed", range(12))
def test_units_passed_between_tasks_do_what_the_model_does(home: Path, seed: int) -> None:
    check(home, lambda qm: Tasks(home, seed))

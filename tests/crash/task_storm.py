"""Crash-safety layer T7 with event loops: tasks that are cancelled, in processes that are killed.

    python tests/crash/task_storm.py [--kills 200] [--workers 10] [--seed 1] [--time SECONDS]

The storm of python_storm.py, whose producers, movers and consumers are event loops of TASKS tasks
each, through ``penstock.asyncio``: units of work of tasks, units that are passed between tasks,
durable puts outside units, ``consume()`` with and without prefetch. Each loop cancels its tasks at
random instants, and starts them again. Listers and gatherers are threads as there, and share the
queue manager with the loops.

What a task may say after a cancellation is the claim that is tested: what raised CancelledError has
had no effect, so its puts are "undone", and its message was given back. What returned has had one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from python_storm import (
    COPIES,
    DEPTH_MAX,
    MANAGER,
    REFUSALS,
    UNIT_MAX,
    Worker,
    body_of,
    correl_id,
    number_of,
    persistent,
    priority_of,
    role_of,
    storm,
    turns,
)

import penstock.asyncio
from penstock import NoMessageAvailable

TASKS = 12
WAIT = 0.02  # seconds
LOOP_ROLES = ("producer", "mover", "consumer")
LIMIT = 20  # messages of a consume()


class LoopWorker(Worker):
    """A worker whose role many tasks of one event loop do, each step on its own."""

    in_order = COPIES  # tasks of a producer pass each other
    loop_qm: penstock.asyncio.QueueManager
    loop_a: penstock.asyncio.Queue
    loop_b: penstock.asyncio.Queue

    def __init__(self, home: Any, *rest: Any) -> None:
        super().__init__(home, *rest)
        self.home = home

    def live(self, index: int, shared: Any) -> None:
        """The roles of threads are those of python_storm.py."""
        if role_of(index) in LOOP_ROLES:
            asyncio.run(self.loop(index, shared))
        else:
            super().live(index, shared)

    async def loop(self, index: int, shared: Any) -> None:
        """All tasks, until the role is over."""
        step: Callable[[], Awaitable[None]] = getattr(self, role_of(index) + "_task")
        async with penstock.asyncio.connect(MANAGER, home=self.home) as self.loop_qm:
            self.loop_a, self.loop_b = await self.loop_qm.open("A"), await self.loop_qm.open("B")
            tasks = {i: asyncio.create_task(self.repeat(step)) for i in range(TASKS)}
            cancels = asyncio.create_task(self.cancel_some(tasks))
            for _ in turns(index, shared):
                await asyncio.sleep(0.01)
                for i, task in tasks.items():
                    if task.done():
                        with contextlib.suppress(asyncio.CancelledError):
                            task.result()
                        tasks[i] = asyncio.create_task(self.repeat(step))
            for task in (cancels, *tasks.values()):
                task.cancel()
            for outcome in await asyncio.gather(*tasks.values(), return_exceptions=True):
                assert isinstance(outcome, asyncio.CancelledError), outcome

    async def cancel_some(self, tasks: dict[int, asyncio.Task[None]]) -> None:
        """Cancels at random instants: after some switches of tasks, or some time."""
        while True:
            if self.rng.random() < 0.5:
                for _ in range(self.rng.randrange(5)):
                    await asyncio.sleep(0)
            else:
                await asyncio.sleep(self.rng.random() * 0.004)
            task = self.rng.randrange(TASKS)
            tasks[task].cancel()
            self.report("cancels", [task])
            await asyncio.sleep(0)

    async def repeat(self, step: Callable[[], Awaitable[None]]) -> None:
        """One step after the other, until it is cancelled."""
        while True:
            with contextlib.suppress(NoMessageAvailable, KeyError, *REFUSALS):
                await step()
            await asyncio.sleep(0)

    async def put_by_task(self, queue: Any, number: int, **how: Any) -> None:
        """As put(), awaited."""
        await queue.put(
            body_of(number),
            priority=priority_of(number),
            persistent=persistent(number),
            correl_id=correl_id(number),
            **how,
        )

    # ---- producers ----

    async def producer_task(self) -> None:
        """A unit of the task, one that is passed between tasks, or a put outside units."""
        if self.loop_a.depth > DEPTH_MAX:
            await asyncio.sleep(0.005)
            return
        way = self.rng.choice((self.put_in_unit, self.put_in_passed_unit, self.put_alone))
        count = 1 if way == self.put_alone else self.rng.randint(1, UNIT_MAX)
        numbers = [self.base | self.counter + i + 1 for i in range(count)]
        self.counter += count
        self.report("intent", numbers)
        try:
            await way(numbers)
        except BaseException:
            self.report("undone", numbers)
            raise
        self.report("acked", numbers)

    async def put_in_unit(self, numbers: list[int]) -> None:
        """One after the other; one unit in sixteen is backed out."""
        async with self.loop_qm.transaction():
            for number in numbers:
                await self.put_by_task(self.loop_a, number)
            if self.rng.random() < 1 / 16:
                raise KeyError(numbers[0])

    async def put_in_passed_unit(self, numbers: list[int]) -> None:
        """Each put by a task of its own."""
        async with self.loop_qm.unit() as unit:
            for number in numbers:
                put = self.put_by_task(self.loop_a, number, unit=unit)
                await asyncio.create_task(put)

    async def put_alone(self, numbers: list[int]) -> None:
        """Which takes effect by itself."""
        await self.put_by_task(self.loop_a, numbers[0])

    # ---- movers and consumers ----

    async def mover_task(self) -> None:
        """From A to B: one message, or some by consume(), whose commits may be shared."""
        if self.loop_b.depth > DEPTH_MAX:
            await asyncio.sleep(0.005)
        elif self.rng.random() < 0.5:
            async with self.loop_qm.transaction():
                number = number_of(await self.loop_a.get(wait=WAIT))
                await self.put_by_task(self.loop_b, number)
                if self.rng.random() < 1 / 16:
                    raise KeyError(number)
        else:
            prefetch = self.rng.choice((1, 8))
            how = {"wait": WAIT, "limit": LIMIT, "prefetch": prefetch}
            async with self.loop_a.consume(**how) as messages:
                async for message in messages:
                    await self.put_by_task(self.loop_b, number_of(message))

    async def consumer_task(self) -> None:
        """From B: in a unit of its own, or some by consume(), which says only at its end that all
        are taken.
        """
        if self.rng.random() < 0.5:
            number = 0
            try:
                async with self.loop_qm.transaction():
                    number = number_of(await self.loop_b.get(wait=WAIT))
                    self.report("taking", [number])
                    if self.rng.random() < 1 / 8:
                        raise KeyError(number)
            except BaseException:
                if number:
                    self.report("gave", [number])
                raise
            self.report("took", [number])
            return
        numbers: list[int] = []
        prefetch = self.rng.choice((1, 8))
        async with self.loop_b.consume(wait=WAIT, limit=LIMIT, prefetch=prefetch) as messages:
            async for message in messages:
                numbers.append(number_of(message))
                self.report("taking", numbers[-1:])
        self.report("took", numbers)


if __name__ == "__main__":
    storm(__doc__ or "", LoopWorker, "processes with event loops")

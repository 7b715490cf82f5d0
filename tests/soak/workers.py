"""The workers of a soak run: each a process that does one thing until it is told to stop.

A worker counts what it has done in a word of shared memory, so that the sampler needs no call.
"""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import random
import struct
import time
from collections.abc import Callable
from typing import Any

import penstock.asyncio

SIZES = (40, 300, 1_000, 3_000, 9_000, 30_000, 120_000)
WEIGHTS = (30, 30, 20, 10, 6, 3, 1)
DEPTH_MAX = 400  # a producer pauses above it: the live amount must not grow
PAUSE_S = 0.002
TASKS = 20  # of an event loop
WAIT_S = 0.2
EXPIRY_S = 0.3
QUEUES = ("IN", "OUT", "EXPIRING", "VISITED", "LEAK")
Worker = Callable[["Tools"], None]


class Tools:
    """What a worker has: its queue manager, its random numbers, its counter, the end."""

    def __init__(self, manager: str, home: str, memory: mmap.mmap, number: int, seed: int) -> None:
        """Takes word `number` of the memory as counter; word 0 tells all to stop."""
        self.manager, self.home = manager, home
        self.memory, self.number = memory, number
        self.random = random.Random(seed * 1000 + number)
        self.bodies = [random.Random(size).randbytes(size) for size in SIZES]

    def connect(self) -> Any:
        """A connection of its own."""
        return penstock.connect(self.manager, self.home)

    def body(self) -> bytes:
        """One of the bodies, short ones more often."""
        return self.random.choices(self.bodies, WEIGHTS)[0]

    def done(self, count: int) -> None:
        """Counts."""
        at = self.number * 8
        before = struct.unpack_from("<Q", self.memory, at)[0]
        struct.pack_into("<Q", self.memory, at, before + count)

    def stops(self) -> bool:
        """Is the run over?"""
        return self.memory[0] != 0


def priority(tools: Tools, persistent: bool) -> int:
    """Persistent ones go first: one that waited behind others would keep the journal's space."""
    return 9 if persistent else tools.random.randrange(10)


def produce(tools: Tools) -> None:
    """Singles, units and batches onto IN, half of them persistent."""
    with tools.connect() as qm, qm.open("IN") as queue:
        while not tools.stops():
            if queue.depth > DEPTH_MAX:
                time.sleep(PAUSE_S)
                continue
            persistent = tools.random.random() < 0.5
            way = tools.random.randrange(3)
            bodies = [tools.body() for _ in range(1 if way == 0 else 8)]
            if way == 1:
                with qm.transaction():
                    for body in bodies:
                        level = priority(tools, persistent)
                        queue.put(body, persistent=persistent, priority=level)
            elif way == 2:
                level = priority(tools, persistent)
                queue.put_batch(bodies, persistent=persistent, priority=level)
            else:
                level = priority(tools, persistent)
                queue.put(bodies[0], persistent=persistent, priority=level)
            tools.done(len(bodies))


def move(tools: Tools) -> None:
    """From IN to OUT in units of up to 8; one in ten is backed out."""
    with tools.connect() as qm, qm.open("IN") as source, qm.open("OUT") as target:
        while not tools.stops():
            moved = 0
            with qm.transaction() as unit:
                try:
                    for _ in range(8):
                        message = source.get(WAIT_S if moved == 0 else 0)
                        target.put(
                            message.data,
                            persistent=message.persistent,
                            priority=message.priority,
                        )
                        moved += 1
                except penstock.NoMessageAvailable:
                    pass
                if tools.random.random() < 0.1:
                    unit.backout()
                    moved = 0
            tools.done(moved)


def move_in_tasks(tools: Tools) -> None:
    """From IN to OUT by the tasks of an event loop, which are cancelled at any instant."""
    asyncio.run(_move_in_tasks(tools))


async def _move_in_tasks(tools: Tools) -> None:
    connect = penstock.asyncio.connect(tools.manager, home=tools.home)
    async with connect as qm, await qm.open("IN") as source, await qm.open("OUT") as target:
        tasks: list[asyncio.Task[None]] = []
        while not tools.stops():
            tasks = [task for task in tasks if not task.done()]
            while len(tasks) < TASKS:
                tasks.append(asyncio.create_task(_move_one(tools, qm, source, target)))
            await asyncio.sleep(tools.random.random() * PAUSE_S)
            for task in tools.random.sample(tasks, 2):
                task.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _move_one(tools: Tools, qm: Any, source: Any, target: Any) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        async with qm.transaction():
            message = await source.get(wait=None)
            await target.put(message.data, persistent=message.persistent, priority=message.priority)
        tools.done(1)


def consume(tools: Tools) -> None:
    """From OUT, one by one and in batches."""
    with tools.connect() as qm, qm.open("OUT") as queue:
        while not tools.stops():
            try:
                if tools.random.random() < 0.5:
                    queue.get(WAIT_S)
                    tools.done(1)
                else:
                    tools.done(len(queue.get_batch(16, wait=WAIT_S)))
            except penstock.NoMessageAvailable:
                pass


def browse(tools: Tools) -> None:
    """Looks at OUT from its head on, again and again."""
    with tools.connect() as qm, qm.open("OUT") as queue:
        while not tools.stops():
            seen = 0
            for _ in queue.browse():
                seen += 1
                if seen == 100 or tools.stops():
                    break
            tools.done(seen)
            time.sleep(0.02)


def let_expire(tools: Tools) -> None:
    """Messages that nobody takes: they go when their time has come."""
    with tools.connect() as qm, qm.open("EXPIRING") as queue:
        while not tools.stops():
            for _ in range(20):
                queue.put(tools.body(), expiry=EXPIRY_S, persistent=tools.random.random() < 0.5)
            tools.done(20)
            time.sleep(0.05)


def visit(tools: Tools) -> None:
    """Connects, puts and gets one message, and leaves."""
    while not tools.stops():
        with tools.connect() as qm, qm.open("VISITED") as queue:
            queue.put(tools.body(), persistent=tools.random.random() < 0.5)
            queue.get(WAIT_S)
        tools.done(1)
        time.sleep(0.02)


def leak_messages(tools: Tools) -> None:
    """A planted leak: messages that nobody takes."""
    with tools.connect() as qm, qm.open("LEAK") as queue:
        while not tools.stops():
            queue.put(bytes(4_000), persistent=False)
            tools.done(1)
            time.sleep(0.0005)


def leak_descriptors(tools: Tools) -> None:
    """A planted leak: files that are never closed."""
    kept = []
    with tools.connect():
        while not tools.stops():
            kept.append(open("/dev/null"))  # noqa: SIM115
            tools.done(1)
            time.sleep(0.05)


def leak_memory(tools: Tools) -> None:
    """A planted leak: memory of one's own."""
    kept = []
    with tools.connect():
        while not tools.stops():
            kept.append(bytearray(b"x" * 100_000))
            tools.done(1)
            time.sleep(0.005)


ROLES: tuple[Worker, ...] = (
    produce,
    produce,
    move,
    move_in_tasks,
    consume,
    consume,
    browse,
    let_expire,
    visit,
)
LEAKS: dict[str, Worker] = {
    "messages": leak_messages,
    "descriptors": leak_descriptors,
    "memory": leak_memory,
}

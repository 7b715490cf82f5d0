"""penstock.asyncio beside its limits, interleaved in one run: ``python bench/bench_asyncio.py``.

pair     put + get of 256 bytes, not persistent, awaited, against the plain calls
wake-up  a request and its reply between two processes, each with an event loop, against the same
         over two pipes with add_reader()
durable  puts of 1 KiB by 100 tasks, against 8 threads
unit     two such puts and a commit, likewise
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import penstock
import penstock.asyncio

ROUNDS = int(os.environ.get("ROUNDS", "7"))
PAIRS = 20_000
TRIPS = 1_000
PUTS = 4_000
UNITS = 2_000
BODY = b"x" * 256
LONG = b"x" * 1024


# ---- pairs ----


async def _pairs(q: penstock.asyncio.Queue) -> float:
    start = time.perf_counter()
    for _ in range(PAIRS):
        await q.put(BODY)
        await q.get()
    return (time.perf_counter() - start) / PAIRS


def _plain_pairs(q: penstock.Queue) -> float:
    start = time.perf_counter()
    for _ in range(PAIRS):
        q.put(BODY)
        q.get()
    return (time.perf_counter() - start) / PAIRS


# ---- wake-ups of another process ----


def _answer_messages(home: str) -> None:
    async def main() -> None:
        async with penstock.asyncio.connect("QM1", home) as qm:
            asks, replies = await qm.queue("ASK"), await qm.queue("REPLY")
            while (message := await asks.get(wait=None)).data:
                await replies.put(message.data, persistent=False)

    asyncio.run(main())


async def _trips(asks: penstock.asyncio.Queue, replies: penstock.asyncio.Queue) -> float:
    times = []
    for _ in range(TRIPS):
        start = time.perf_counter()
        await asks.put(BODY, persistent=False)
        await replies.get(wait=None)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


class _Pipe:
    """A descriptor whose bytes a task waits for."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._future: asyncio.Future[bytes] | None = None
        asyncio.get_running_loop().add_reader(fd, self._read)

    def _read(self) -> None:
        data = os.read(self._fd, 4096)
        if self._future is not None:
            self._future.set_result(data)

    async def get(self) -> bytes:
        self._future = asyncio.get_running_loop().create_future()
        return await self._future


def _answer_pipe(source: int, target: int) -> None:
    async def main() -> None:
        pipe = _Pipe(source)
        while (data := await pipe.get()) != b"end":
            os.write(target, data)

    asyncio.run(main())


async def _pipe_trips(pipe: _Pipe, target: int) -> float:
    times = []
    for _ in range(TRIPS):
        start = time.perf_counter()
        os.write(target, BODY)
        await pipe.get()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


# ---- durable puts ----


async def _durable(q: penstock.asyncio.Queue) -> float:
    async def some() -> None:
        for _ in range(PUTS // 100):
            await q.put(LONG, persistent=True)

    start = time.perf_counter()
    await asyncio.gather(*(some() for _ in range(100)))
    return (time.perf_counter() - start) / PUTS


def _in_threads(some: Callable[[], None]) -> float:
    """Seconds until eight threads have done it."""
    threads = [threading.Thread(target=some) for _ in range(8)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def _durable_threads(q: penstock.Queue) -> float:
    def some() -> None:
        for _ in range(PUTS // 8):
            q.put(LONG, persistent=True)

    return _in_threads(some) / PUTS


async def _units(qm: penstock.asyncio.QueueManager, q: penstock.asyncio.Queue) -> float:
    async def some() -> None:
        for _ in range(UNITS // 100):
            async with qm.transaction():
                await q.put(LONG, persistent=True)
                await q.put(LONG, persistent=True)

    start = time.perf_counter()
    await asyncio.gather(*(some() for _ in range(100)))
    return (time.perf_counter() - start) / UNITS


def _unit_threads(qm: penstock.QueueManager, q: penstock.Queue) -> float:
    def some() -> None:
        for _ in range(UNITS // 8):
            with qm.transaction():
                q.put(LONG, persistent=True)
                q.put(LONG, persistent=True)

    return _in_threads(some) / UNITS


# ---- the run ----


async def _rounds(
    home: str, source: int, target: int
) -> dict[str, tuple[list[float], list[float]]]:
    found: dict[str, tuple[list[float], list[float]]] = {
        name: ([], []) for name in ("pair", "wake-up", "durable", "unit")
    }
    async with penstock.asyncio.connect("QM1", home) as qm:
        q, asks, replies = [await qm.queue(name) for name in ("FAST", "ASK", "REPLY")]
        store = await qm.queue("STORE")
        pipe = _Pipe(source)
        steps: list[tuple[str, Callable[[], Awaitable[float]], Callable[[], Any]]] = [
            ("pair", lambda: _pairs(q), lambda: _plain_pairs(q.handle)),
            ("wake-up", lambda: _trips(asks, replies), lambda: _pipe_trips(pipe, target)),
            ("durable", lambda: _durable(store), lambda: _durable_threads(store.handle)),
            ("unit", lambda: _units(qm, store), lambda: _unit_threads(qm.sync, store.handle)),
        ]
        for _ in range(ROUNDS):
            for name, ours, limit in steps:
                found[name][0].append(await ours())
                other = limit()
                found[name][1].append(await other if asyncio.iscoroutine(other) else other)
            put = 2 * PUTS + 4 * UNITS
            if store.depth != put:
                raise SystemExit(f"{store.depth} of {put} messages are there")
            await store.close()
            await qm.clear("STORE")
            store = await qm.queue("STORE")
        await asks.put(b"", persistent=False)
        for queue in (q, asks, replies, store):
            await queue.close()
    return found


def main() -> None:
    """Prints a line a figure, and all samples as JSON."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        home = str(Path(folder, "home"))
        os.mkdir(home, 0o700)
        with penstock.connect("QM1", home, create=True) as qm:
            qm.define("QLOCAL", "FAST", defpsist=False)
        there, back = os.pipe(), os.pipe()
        context = multiprocessing.get_context("fork")
        workers = [
            context.Process(target=_answer_messages, args=(home,)),
            context.Process(target=_answer_pipe, args=(there[0], back[1])),
        ]
        for worker in workers:
            worker.start()
        found = asyncio.run(_rounds(home, back[0], there[1]))
        os.write(there[1], b"end")
        for worker in workers:
            worker.join()
    for name, (ours, limit) in found.items():
        mine, other = statistics.median(ours), statistics.median(limit)
        print(
            f"{name:8} {mine * 1e6:9.2f} µs  limit {other * 1e6:9.2f} µs  "
            f"{mine / other:5.2f} x its time, {other / mine:5.2f} x its rate"
        )
    print(json.dumps(found))


if __name__ == "__main__":
    main()

"""The loop's thread makes no call of the system that blocks: seen in /proc while calls are made."""

from __future__ import annotations

import asyncio
import platform
import threading
from collections import Counter
from pathlib import Path

from face import in_loop

from penstock.asyncio import Queue, QueueManager

BLOCKING = {  # numbers of calls that write, flush or sleep
    "x86_64": {
        18: "pwrite64", 26: "msync", 35: "nanosleep", 74: "fsync", 75: "fdatasync",
        230: "clock_nanosleep", 277: "sync_file_range", 285: "fallocate", 296: "pwritev",
        328: "pwritev2",
    },
    "aarch64": {
        47: "fallocate", 68: "pwrite64", 70: "pwritev", 82: "fsync", 83: "fdatasync",
        84: "sync_file_range", 101: "nanosleep", 115: "clock_nanosleep", 227: "msync",
        287: "pwritev2",
    },
}[platform.machine()]  # fmt: skip


class Watch:
    """Looks at the call that a thread is in, over and over, until the end of its block."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.looks = 0
        self._file = f"/proc/self/task/{threading.get_native_id()}/syscall"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._ended.is_set():
            word = Path(self._file).read_text().split()[0]
            self.looks += 1
            if word.isdigit() and int(word) in BLOCKING:
                self.seen[BLOCKING[int(word)]] += 1

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()


async def _work(qm: QueueManager, q: Queue) -> None:
    """Durable puts, commits and gets, with a ring that fills and segments that end meanwhile."""
    for i in range(40):
        await q.put(b"x" * 40_000, persistent=True)
        async with qm.transaction():
            await q.put(b"x" * 60_000, persistent=True)
            await q.put(b"x" * 100_000, persistent=True)
        unit = qm.unit()
        await q.get(wait=5, unit=unit)
        await unit.commit()
        await q.get(wait=0 if i % 2 else 5)


def test_the_thread_of_the_loop_neither_flushes_nor_writes_nor_sleeps(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> Watch:
        with Watch() as watch:
            await asyncio.gather(*(_work(qm, q) for _ in range(5)))
        return watch

    watch = in_loop(home, body)
    assert watch.looks > 500
    assert not watch.seen


def test_the_watch_sees_a_flush_on_the_thread_of_the_loop(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> Watch:
        with Watch() as watch:
            while not watch.seen and watch.looks < 200_000:
                q.handle.put(b"x" * 40_000, persistent=True)
                q.handle.get()
        return watch

    assert in_loop(home, body).seen


def test_durable_puts_of_tasks_share_flushes(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> int:
        await q.put(b"", persistent=True)  # the thread is there
        before = (await qm.status()).flushes
        await asyncio.gather(*(q.put(str(i), persistent=True) for i in range(500)))
        return int((await qm.status()).flushes) - before

    assert in_loop(home, body) <= 5

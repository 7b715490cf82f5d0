"""What consumers and producers of delayed messages pay beyond plain puts and gets."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import workloads as w
from conftest import Interleave
from penstock import Queue, QueueManager
from report import Aim

BODY = b"x" * 256
MESSAGES = 20_000  # consumed in a round
BATCH = 1_000
HUNDRED = 100  # with one due time
WAITING = 100_000  # delayed messages before the first round
DELAYED = 10_000  # put in a round
DURABLE = 300  # those of them that are persistent
DELAY = 3600.0  # seconds
ROUNDS = 31

Scale = Callable[[int], int]


def fill(queue: Queue, count: int) -> None:
    """Messages to be consumed."""
    for begin in range(0, count, BATCH):
        queue.put_batch([BODY] * min(BATCH, count - begin))


def consume(queue: Queue, count: int) -> float:
    """Seconds a message of a loop over ``consume()``."""
    fill(queue, count)
    seen = 0
    begun = time.perf_counter()
    for message in queue.consume(wait=0):
        seen += len(message.data) == len(BODY)
    seconds = time.perf_counter() - begun
    w.expect(seen == count and queue.depth == 0, f"{seen} of {count}")
    return seconds / count


def get_and_commit(qm: QueueManager, queue: Queue, count: int) -> float:
    """The same by hand: what ``consume()`` does for messages that do not fail."""
    fill(queue, count)
    seen, get = 0, queue.get
    begun = time.perf_counter()
    with qm.transaction() as unit:
        while (message := get(0, default=None)) is not None:
            seen += len(message.data) == len(BODY)
            unit.commit()
    seconds = time.perf_counter() - begun
    w.expect(seen == count and queue.depth == 0, f"{seen} of {count}")
    return seconds / count


def put(queue: Queue, count: int) -> float:
    """Seconds a put of messages that stay."""
    before, one = queue.depth, queue.put
    begun = time.perf_counter()
    for _ in range(count):
        one(BODY)
    seconds = time.perf_counter() - begun
    w.expect(queue.depth == before + count, f"{queue.depth - before} of {count} are there")
    return seconds / count


def touch(queue: Queue, count: int) -> None:
    """Memory of so many messages, as a queue manager has it that has run for a while: what is put
    later pays for no new pages.
    """
    queue.put_batch([BODY] * count, persistent=False)
    while len(queue.get_batch(BATCH)):
        pass


def put_later(queue: Queue, count: int) -> float:
    """The same with a delay."""
    before, one = queue.depth, queue.put
    begun = time.perf_counter()
    for _ in range(count):
        one(BODY, delay=DELAY)
    seconds = time.perf_counter() - begun
    w.expect(queue.depth == before + count, f"{queue.depth - before} of {count} are there")
    return seconds / count


def bench_consume(interleave: Interleave, files: Path, scale: Scale) -> None:
    """Messages that are not persistent, each committed when the next one is asked for."""
    count = scale(MESSAGES)
    with w.manager(files) as qm, w.define(qm, "JOBS", persistent=False) as queue:
        interleave(
            "consume() of 256 bytes, non-persistent, a message",
            {
                "penstock": lambda: consume(queue, count),
                "get and commit by hand": lambda: get_and_commit(qm, queue, count),
            },
            [Aim("rate", 0.9, "get and commit by hand")],
            rounds=ROUNDS,
        )


def consume_durably(queue: Queue, count: int, prefetch: int) -> float:
    """Seconds a message of a loop that commits behind its messages."""
    fill(queue, count)
    seen = 0
    begun = time.perf_counter()
    for message in queue.consume(wait=0, prefetch=prefetch):
        seen += len(message.data) == len(BODY)
    seconds = time.perf_counter() - begun
    w.expect(seen == count and queue.depth == 0, f"{seen} of {count}")
    return seconds / count


@pytest.mark.parametrize("prefetch", [10, 100])
def bench_prefetch(interleave: Interleave, files: Path, scale: Scale, prefetch: int) -> None:
    """Durable messages, whose commits share flushes, against a flush for each."""
    count = scale(DURABLE)
    with w.manager(files) as qm, w.define(qm, "JOBS", persistent=True) as queue:
        interleave(
            f"consume(prefetch={prefetch}) of 256 bytes, durable, a message",
            {
                "penstock": lambda: consume_durably(queue, count, prefetch),
                "consume()": lambda: consume_durably(queue, count, 1),
            },
            [Aim("rate", 3 if prefetch == 10 else 8, "consume()")],
            rounds=ROUNDS,
        )


@pytest.mark.parametrize("persistent", [False, True])
def bench_put_with_delay(
    interleave: Interleave, files: Path, scale: Scale, persistent: bool
) -> None:
    """One delay for all, as retries and timeouts have it."""
    count = scale(DURABLE if persistent else DELAYED)
    kind = "persistent" if persistent else "non-persistent"
    with (
        w.manager(files) as qm,
        w.define(qm, "LATER", persistent=persistent) as later,
        w.define(qm, "NOW", persistent=persistent) as now,
    ):
        touch(now, 2 * (ROUNDS + 1) * count)
        for _ in range(scale(WAITING) // HUNDRED):
            later.put_batch([BODY] * HUNDRED, persistent=False, delay=DELAY)
            now.put_batch([BODY] * HUNDRED, persistent=False)
        interleave(
            f"put with a delay among {WAITING:,} that wait, {kind}, {len(BODY)} bytes",
            {
                "penstock": lambda: put_later(later, count),
                "put without": lambda: put(now, count),
            },
            [Aim("time", 1.3, "put without")],
            rounds=ROUNDS,
        )
        w.expect(len(later.get_batch(1)) == 0, "a delayed message was got")

"""Cancelling loses nothing and takes nothing, at any point."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from face import in_loop, until

from penstock.asyncio import Queue, QueueManager

CANCELS = int(os.environ.get("PENSTOCK_CANCELS", "50000"))


class Account:
    """What consumers got, and how often they were cancelled."""

    def __init__(self) -> None:
        self.got: Counter[str] = Counter()
        self.cancels = 0


async def _take(q: Queue, account: Account) -> None:
    """One call; what it returned is counted, also when a cancellation is owed."""
    account.got[(await q.get(wait=None)).text] += 1


async def _cancelling(q: Queue, account: Account, chance: random.Random, count: int) -> None:
    while account.cancels < count:
        task = asyncio.create_task(_take(q, account))
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        if chance.random() < 0.3:
            await asyncio.sleep(chance.random() * 0.001)
        if task.cancel():
            account.cancels += 1
        try:
            await task
        except asyncio.CancelledError:
            pass


def test_every_message_is_got_exactly_once_beside_cancellations(home: Path) -> None:
    seed = int(os.environ.get("PENSTOCK_SEED", "1"))
    account = Account()
    total = 0

    async def body(qm: QueueManager, q: Queue) -> None:
        nonlocal total
        chance = random.Random(seed)
        consumers = [
            asyncio.create_task(_cancelling(q, account, random.Random(seed + k), CANCELS))
            for k in range(20)
        ]
        while account.cancels < CANCELS:
            start, total = total, total + 50
            for i in range(start, total):
                await q.put(str(i), persistent=chance.random() < 0.3)
                if chance.random() < 0.2:
                    await asyncio.sleep(0)
        await asyncio.gather(*consumers)
        while (message := await q.get(default=None)) is not None:
            account.got[message.text] += 1
        assert (await q.status()).waiters == 0
        assert (await q.status()).uncommitted == 0

    in_loop(home, body)
    wrong = {str(i): account.got[str(i)] for i in range(total) if account.got[str(i)] != 1}
    assert not wrong, (seed, account.cancels, wrong)


def test_a_put_that_raises_the_cancellation_has_put_nothing(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        chance = random.Random(1)
        done: set[str] = set()

        async def put(text: str) -> None:
            await q.put(text, persistent=True)
            done.add(text)

        for round_ in range(100):
            tasks = [asyncio.create_task(put(f"{round_}.{k}")) for k in range(5)]
            await asyncio.sleep(chance.random() * 0.0005)
            for task in chance.sample(tasks, 3):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        there = [message.text async for message in q]
        assert len(there) == len(set(there))
        assert set(there) == done

    in_loop(home, body)


@pytest.mark.parametrize("in_own_call", [True, False])
def test_a_call_that_has_its_effect_returns_and_the_cancellation_comes_after_it(
    home: Path, in_own_call: bool
) -> None:
    if not in_own_call and sys.version_info < (3, 11):
        pytest.skip("Python 3.10 does not say whether a cancellation is still wanted")

    async def body(qm: QueueManager, q: Queue) -> None:
        steps: list[Any] = []

        async def work() -> None:
            steps.append((await q.put(b"1", persistent=True)).reason)
            steps.append("between")
            await (q.get(wait=60, correl_id=b"never") if in_own_call else asyncio.sleep(60))
            steps.append("never")

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        runner = q.runner
        job = None
        while job is None:
            await asyncio.sleep(0)
            job = next(iter(runner.in_thread), None)
        await asyncio.sleep(0)  # behind which the thread is woken
        while not job.ended:  # then the flush is done, and the loop does not know
            time.sleep(0.001)
        task.cancel()
        await asyncio.wait([task], timeout=30)
        assert task.cancelled()
        assert steps == [0, "between"]
        assert q.depth == 1

    in_loop(home, body)


def test_a_timeout_that_comes_with_the_message_returns_the_message(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        got = 0
        for i in range(300):
            waiter = asyncio.ensure_future(asyncio.wait_for(q.get(wait=None), 0.001))
            if i % 3:
                await asyncio.sleep(0.0005)
            await q.put(str(i), persistent=i % 2 == 0)
            try:
                assert (await waiter).text == str(i)
                got += 1
            except (asyncio.TimeoutError, TimeoutError):
                assert (await q.get()).text == str(i)
        assert q.depth == 0

    in_loop(home, body)


def test_a_cancelled_transaction_is_backed_out(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        async def work() -> None:
            async with qm.transaction():
                await q.put(b"1", persistent=True)
                await q.get(wait=None, correl_id=b"never")

        task = asyncio.create_task(work())
        await until(lambda: q.handle.status().waiters == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert q.depth == 0
        assert (await q.status()).waiters == 0

    in_loop(home, body)


def test_a_block_closes_its_queue_though_it_is_cancelled_twice(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        kept: list[Queue] = []

        async def hold() -> None:
            async with await qm.open("Q") as queue:
                kept.append(queue)
                await asyncio.sleep(60)

        for _ in range(20):
            task = asyncio.create_task(hold())
            await until(lambda: bool(kept))
            task.cancel()
            await asyncio.sleep(0)  # the close waits for the thread
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert kept.pop().closed
        assert (await q.status()).open_input == 1

    in_loop(home, body)


def test_movers_that_are_cancelled_beside_shared_commits_lose_and_double_nothing(
    home: Path,
) -> None:
    chance = random.Random(int(os.environ.get("PENSTOCK_SEED", "1")))
    count = 2000

    async def body(qm: QueueManager, q: Queue) -> None:
        await qm.define("QLOCAL", "OUT", defpsist=True)
        await q.put_batch([b"%d" % n for n in range(count)], persistent=True)
        cancels = 0

        async def move(out: Queue) -> None:
            async with qm.transaction():
                message = await q.get(default=None)
                if message is not None:
                    await out.put(message.text, persistent=True)

        async with await qm.queue("OUT") as out:
            while q.depth:
                tasks = [asyncio.create_task(move(out)) for _ in range(20)]
                tasks += [asyncio.create_task(out.put("put", persistent=True)) for _ in range(2)]
                await asyncio.sleep(chance.random() * 0.0005)
                cancels += sum(task.cancel() for task in chance.sample(tasks, 6))
                for ended in await asyncio.gather(*tasks, return_exceptions=True):
                    assert ended is None or not isinstance(ended, Exception), ended
            moved = Counter([m.text async for m in out])
            del moved["put"]
            while (message := await q.get(default=None)) is not None:
                moved[message.text] += 1
            assert cancels > 100
            assert moved == Counter({str(n): 1 for n in range(count)})

    in_loop(home, body)

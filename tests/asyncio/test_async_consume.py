"""Consumers of event loops: what waits, what is set aside, and many tasks at once."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from face import in_loop, until

import penstock
from penstock import Message, Retry
from penstock.asyncio import Queue, QueueManager


def test_a_message_that_waits_for_its_retry_blocks_nobody_and_holds_no_unit(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        await q.put("bad")
        await q.put("good")
        with pytest.raises(ZeroDivisionError):
            async with q.consume(retry=Retry(3600)) as messages:
                async for message in messages:
                    if message.text == "bad":
                        raise ZeroDivisionError
        status = await q.status()
        assert (status.delayed, status.got, q.depth) == (1, 0, 2)
        async with q.consume(wait=0) as messages:
            assert [message.text async for message in messages] == ["good"]
        assert (await q.status()).delayed == 1

    in_loop(home, body)


def test_without_a_policy_a_failed_message_waits_a_second(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        await q.put("x")
        with pytest.raises(ZeroDivisionError):
            async with q.consume() as messages:
                async for _ in messages:
                    raise ZeroDivisionError
        assert (await q.status()).delayed == 1

    in_loop(home, body)


def test_a_cancellation_is_no_failure(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        await q.put("x")
        began = asyncio.Event()

        async def work() -> None:
            async with q.consume(retry=Retry(3600)) as messages:
                async for _ in messages:
                    began.set()
                    await asyncio.sleep(60)

        task = asyncio.create_task(work())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await q.status()).delayed == 0
        assert (await q.get()).backout_count == 1

    in_loop(home, body)


@pytest.mark.parametrize("place", ["BOQNAME", "DEADQ", "neither"])
def test_a_message_that_failed_too_often_is_set_aside_and_never_lost(
    home: Path, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        await (await qm.queue("ASIDE")).close()
        if place == "BOQNAME":
            await qm.alter("QLOCAL", "Q", boqname="ASIDE")
        if place == "DEADQ":
            await qm.alter("QMGR", deadq="ASIDE")
        await q.put("bad", correl_id=b"c" * 24)
        await q.put("good")
        calls: Counter[str] = Counter()

        async def handler(message: Message) -> None:
            calls[message.text] += 1
            if message.text == "bad":
                raise KeyError("as planned")

        policy = Retry(0, longest=3600, most=2)
        await q.consume(wait=0.2, retry=policy).run(handler)
        assert calls == {"bad": 3, "good": 1}
        async with await qm.open("ASIDE") as aside:
            if place == "neither":
                assert aside.depth == 0 and (await q.status()).delayed == 1
                assert "neither BOQNAME nor DEADQ takes it" in caplog.text
                return
            message = await aside.get()
            assert message.data.endswith(b"bad") and message.correl_id == b"c" * 24
            assert q.depth == 0
        assert (await q.status()).got == 0

    with caplog.at_level(logging.WARNING, "penstock"):
        in_loop(home, body)
    assert caplog.text.count("as planned") >= 3


def test_many_tasks_take_each_message_once_and_what_they_put_is_of_its_unit(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        async with await qm.queue("OUT") as out:
            for number in range(100):
                await q.put(str(number), persistent=number % 2 == 0)
            at_once = most = 0
            failed: set[str] = set()

            async def handler(message: Message) -> None:
                nonlocal at_once, most
                at_once += 1
                most = max(most, at_once)
                try:
                    await out.put(message.data, persistent=False)
                    await asyncio.sleep(0.001)
                    if message.text.endswith("7") and message.text not in failed:
                        failed.add(message.text)
                        raise ValueError(message.text)
                finally:
                    at_once -= 1

            await q.consume(wait=0.3, retry=Retry(0.01)).run(handler, tasks=8)
            assert most == 8 and len(failed) == 10
            async with out.consume(wait=0) as messages:
                got = Counter([message.text async for message in messages])
            assert got == Counter(map(str, range(100)))

    in_loop(home, body)


def test_the_limit_is_that_of_all_tasks_together(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        for number in range(20):
            await q.put(str(number))
        seen: list[str] = []

        async def handler(message: Message) -> None:
            seen.append(message.text)
            await asyncio.sleep(0)

        await q.consume(limit=7).run(handler, tasks=3)
        assert len(seen) == 7 and q.depth == 13
        async with q.consume(limit=2) as messages:
            assert len([message async for message in messages]) == 2
        assert q.depth == 11

    in_loop(home, body)


def test_a_cancelled_run_leaves_no_task_and_no_unit(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        async def handler(message: Message) -> None:
            await asyncio.sleep(60)

        await q.put("x")
        before = len(asyncio.all_tasks())
        task = asyncio.create_task(q.consume().run(handler, tasks=5))
        await until(lambda: q.handle.status().got == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == before
        status = await q.status()
        assert (status.got, status.waiters, status.delayed, q.depth) == (0, 0, 0, 1)

    in_loop(home, body)


def test_an_error_of_the_queue_ends_all_tasks_and_is_raised(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        async def handler(message: Message) -> None:
            raise AssertionError("nothing comes")

        task = asyncio.create_task(q.consume().run(handler, tasks=3))
        await until(lambda: q.handle.status().waiters == 3)
        await qm.alter("QLOCAL", "Q", get="DISABLED")
        with pytest.raises(penstock.GetInhibited):
            await task

    in_loop(home, body)


@pytest.mark.parametrize(
    "how", [{"wait": -1}, {"wait": "5"}, {"limit": -1}, {"limit": True}, {"retry": 5}]
)
def test_arguments_that_are_none_are_refused(home: Path, how: dict[str, Any]) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        with pytest.raises((penstock.InvalidValue, penstock.InvalidType)):
            q.consume(**how)
        with pytest.raises(penstock.InvalidValue, match="tasks 0"):
            await q.consume().run(print, tasks=0)  # type: ignore[arg-type]

    in_loop(home, body)


def test_stop_ends_a_loop_that_waits_and_takes_nothing(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        consumer = q.consume()

        async def work() -> list[str]:
            async with consumer as messages:
                return [message.text async for message in messages]

        task = asyncio.create_task(work())
        await until(lambda: q.depth == 0)
        await asyncio.sleep(0.05)
        consumer.stop()
        assert await asyncio.wait_for(task, 5) == []
        await q.put("stays")
        assert (await q.get()).text == "stays"

    in_loop(home, body)


def test_stop_lets_the_handlers_in_progress_return_and_commits_their_messages(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        for number in range(6):
            await q.put(str(number))
        consumer, begun, go = q.consume(), Counter[str](), asyncio.Event()

        async def handler(message: Message) -> None:
            begun[message.text] += 1
            await go.wait()

        run = asyncio.create_task(consumer.run(handler, tasks=2))
        await until(lambda: len(begun) == 2)
        consumer.stop()
        await asyncio.sleep(0.02)
        assert not run.done()
        go.set()
        await asyncio.wait_for(run, 5)
        assert sorted(begun) == ["0", "1"] and q.depth == 4

    in_loop(home, body)


def test_a_cancelled_consumer_that_is_stopped_too_is_cancelled(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        consumer = q.consume()

        async def work() -> None:
            async with consumer as messages:
                async for _ in messages:
                    pass

        task = asyncio.create_task(work())
        await asyncio.sleep(0.02)
        consumer.stop()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    in_loop(home, body)


def test_commits_behind_the_messages_share_flushes_and_end_with_the_block(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        await q.put_batch([b"%d" % n for n in range(200)], persistent=True)
        before = qm.sync.status().flushes
        async with q.consume(wait=0, prefetch=20) as messages:
            seen = [message.text async for message in messages]
        assert seen == [str(n) for n in range(200)]
        assert qm.sync.status().flushes - before < 50
        status = await q.status()
        assert (q.depth, status.got) == (0, 0)

    in_loop(home, body)


def test_a_failure_or_a_cancellation_backs_out_the_message_in_progress_alone(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        await q.put_batch([b"%d" % n for n in range(10)], persistent=True)
        with pytest.raises(KeyError):
            async with q.consume(prefetch=100, retry=Retry(0)) as messages:
                async for message in messages:
                    if message.text == "3":
                        raise KeyError
        assert [m.text async for m in q.browse()] == [str(n) for n in range(3, 10)]

        async def work() -> None:
            async with q.consume(prefetch=100) as messages:
                async for message in messages:
                    if message.text == "7":
                        await asyncio.sleep(3600)

        task = asyncio.create_task(work())
        await until(lambda: (q.depth, q.handle.status().got) == (2, 1))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [(m.text, m.backout_count) async for m in q.browse()] == [
            ("7", 1), ("8", 0), ("9", 0)
        ]  # fmt: skip

    in_loop(home, body)

"""Units of work of tasks: transactions, units that are passed, consume(), batches, requests."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest
from face import in_loop, until

import penstock
from penstock import Message
from penstock.asyncio import Queue, QueueManager


def test_a_transaction_commits_at_its_end_and_backs_out_on_an_exception(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        for persistent in (False, True):
            async with qm.transaction():
                await q.put(b"kept", persistent=persistent)
                assert await q.get(default=None, syncpoint=False) is None
            with pytest.raises(ZeroDivisionError):
                async with qm.transaction():
                    await q.put(b"gone", persistent=persistent)
                    assert (await q.get(wait=1)).data == b"kept"
                    raise ZeroDivisionError
            message = await q.get(wait=1)
            assert (message.data, message.backout_count) == (b"kept", 1)
            assert await q.get(default=None) is None

    in_loop(home, body)


def test_a_call_belongs_to_the_unit_of_the_moment_of_the_call(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        before = q.put(b"outside", persistent=False)
        async with qm.transaction() as unit:
            await asyncio.gather(
                asyncio.create_task(q.put(b"a", persistent=True)),
                asyncio.wait_for(q.put(b"b", persistent=False), 10),
            )
            await before
            assert unit.count == 2
            assert (await q.get(syncpoint=False)).data == b"outside"

            async def child() -> None:
                await q.put(b"inherited")

            with pytest.raises(penstock.UnitNotAvailable):
                await asyncio.create_task(child())
        assert q.depth == 2

    in_loop(home, body)


def test_a_unit_that_is_passed_takes_calls_of_any_task_one_at_a_time(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        unit = qm.unit()
        getter = asyncio.create_task(q.get(wait=None, unit=unit))
        await until(lambda: q.handle.status().waiters == 1)
        puts = [asyncio.create_task(q.put(str(i), unit=unit)) for i in range(20)]
        await asyncio.sleep(0.02)
        assert not any(task.done() for task in puts)  # behind the get
        await q.put(b"first", persistent=False)
        assert (await getter).data == b"first"
        await asyncio.gather(*puts)
        assert unit.count == 21
        await unit.commit()
        assert [(await q.get()).text for _ in range(20)] == [str(i) for i in range(20)]
        with pytest.raises(penstock.UnitNotAvailable):
            await q.put(b"", unit=unit)

    in_loop(home, body)


def test_a_cancelled_call_leaves_the_line_of_its_unit(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        async with qm.unit() as unit:
            getter = asyncio.create_task(q.get(wait=None, unit=unit))
            await until(lambda: q.handle.status().waiters == 1)
            second = asyncio.create_task(q.put(b"2", unit=unit))
            third = asyncio.create_task(q.put(b"3", unit=unit))
            await asyncio.sleep(0)
            second.cancel()
            getter.cancel()
            await third
            assert (getter.cancelled(), second.cancelled(), unit.count) == (True, True, 1)
        assert (await q.get()).data == b"3"

    in_loop(home, body)


def test_consume_commits_on_normal_progress_and_backs_out_on_an_exception(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        async with await qm.queue("OUT") as out:
            for i in range(5):
                await q.put(str(i), persistent=True)
            with pytest.raises(ZeroDivisionError):
                async with q.consume(wait=0, retry=penstock.Retry(0)) as messages:
                    async for message in messages:
                        await out.put(message.data)
                        if message.text == "3":
                            raise ZeroDivisionError
            assert (out.depth, q.depth) == (3, 2)
            async with q.consume(wait=0.01) as messages:
                async for message in messages:
                    await out.put(message.data)
            assert (out.depth, q.depth) == (5, 0)
            await q.put(b"last")
            async with q.consume() as messages:
                async for _ in messages:
                    break
            assert q.depth == 0

    in_loop(home, body)


def test_batches_are_put_and_got_in_their_unit(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        async with qm.transaction():
            assert (await q.put_batch([b"1", b"2", b"3"])).count == 3
            assert len(await q.get_batch(10, syncpoint=False)) == 0
        assert len(await q.browse_batch(10, first=True)) == 3
        with pytest.raises(ZeroDivisionError):
            async with qm.transaction():
                assert len(await q.get_batch(2)) == 2
                raise ZeroDivisionError
        assert len(await q.get_batch(10)) == 3
        later = asyncio.create_task(q.get_batch(10, wait=None))
        await until(lambda: q.handle.status().waiters == 1)
        await q.put(b"late", persistent=False)
        assert len(await later) == 1
        assert len(await q.get_batch(10, wait=0.01)) == 0

    in_loop(home, body)


def test_browsing_takes_nothing(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        for i in range(3):
            await q.put(str(i), persistent=False)
        assert [message.text async for message in q] == ["0", "1", "2"]
        seen = []

        async def watch() -> None:
            async for message in q.browse(wait=None):
                seen.append(message.text)

        task = asyncio.create_task(watch())
        await until(lambda: len(seen) == 3)
        await q.put(b"3", persistent=False)
        await until(lambda: len(seen) == 4)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert q.depth == 4

    in_loop(home, body)


def test_a_request_gets_its_reply(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        async def server() -> None:
            async with q.consume() as messages:
                async for message in messages:
                    await qm.reply(message, message.text.upper())

        task = asyncio.create_task(server())
        replies = await asyncio.gather(*(q.request(f"r{i}", timeout=30) for i in range(20)))
        assert [reply.text for reply in replies] == [f"R{i}" for i in range(20)]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(penstock.WaitTimedOut):
            await q.request("nobody", timeout=0.1)

    in_loop(home, body)


def test_durable_puts_of_many_tasks_share_a_flush(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        before = (await qm.status()).flushes
        await asyncio.gather(*(q.put(str(i), persistent=True) for i in range(500)))
        assert (await qm.status()).flushes - before < 100
        assert [(await q.get()).text for _ in range(500)] == [str(i) for i in range(500)]

    in_loop(home, body)


def test_a_put_that_is_refused_leaves_others_of_its_flush_alone(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        await qm.alter("QLOCAL", "Q", maxdepth=30)
        puts = [q.put(str(i), persistent=True) for i in range(50)]
        done = await asyncio.gather(*puts, return_exceptions=True)
        assert [isinstance(one, penstock.QueueFull) for one in done] == [False] * 30 + [True] * 20
        assert q.depth == 30

    in_loop(home, body)


@pytest.mark.filterwarnings("ignore:a unit of work:ResourceWarning")
def test_a_unit_that_is_dropped_after_a_failed_call_ends_without_the_garbage_collector(
    home: Path,
) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        unit = qm.unit()
        await q.put(b"x", unit=unit)
        with pytest.raises(penstock.UnitLimitReached):
            await q.put_batch([b"x"] * 9, persistent=True, unit=unit)
        assert qm.sync.status().units == 1
        del unit
        await until(lambda: qm.sync.status().units == 0)

    gc.disable()
    try:
        in_loop(home, body, max_uncommitted_messages=8)
    finally:
        gc.enable()


def test_a_unit_that_is_backed_out_with_a_delay_gives_its_messages_back_later(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        await q.put(b"x")
        unit = qm.unit()
        assert (await q.get(unit=unit)).data == b"x"
        await unit.backout(delay=0.2)
        assert await q.get(default=None) is None
        assert (await q.status()).delayed == 1
        assert (await q.get(wait=10)).backout_count == 1
        async with qm.transaction() as block:
            await q.put(b"y", syncpoint=False)
            await q.get(wait=10)
            with pytest.raises(penstock.InvalidValue, match="-1"):
                await block.backout(delay=-1)
            await block.backout(delay=3600)
        assert (await q.status()).delayed == 1

    in_loop(home, body)


def test_commits_and_puts_of_tasks_share_flushes(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        async def commit(n: int) -> None:
            async with qm.transaction():
                await q.put(f"unit {n}", persistent=True)

        before = qm.sync.status().flushes
        await asyncio.gather(
            *(commit(n) for n in range(100)),
            *(q.put(f"put {n}", persistent=True) for n in range(100)),
        )
        assert qm.sync.status().flushes - before < 20
        assert q.depth == 200

    in_loop(home, body)


def test_a_common_commit_gives_each_task_its_own_outcome(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        units = [qm.unit() for _ in range(3)]
        for n, unit in enumerate(units):
            await q.put(str(n), persistent=True, unit=unit)
        calls = [units[0].commit(), units[1].backout(), units[1].commit(), units[2].commit()]
        put = q.put(b"x" * 5_000_000, persistent=True)  # longer than MAXMSGL
        outcomes = await asyncio.gather(*calls, put, return_exceptions=True)
        reasons = [e.reason if isinstance(e, penstock.MQError) else e for e in outcomes]
        assert reasons == [None, None, 2255, None, 2030]
        assert [(await q.get()).text for _ in range(2)] == ["0", "2"]

    in_loop(home, body)


def test_tasks_that_serve_answer_each_request_once_within_its_unit(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        await qm.define("QLOCAL", "LOG")
        log = await qm.queue("LOG")

        async def handler(message: Message) -> str | None:
            await log.put(message.text)
            await asyncio.sleep(0)
            return message.text.upper() if message.text != "silent" else None

        servers = [asyncio.create_task(q.serve(handler, wait=0.5)) for _ in range(4)]
        replies = await asyncio.gather(*(q.request(f"r{i}", timeout=30) for i in range(40)))
        assert [reply.text for reply in replies] == [f"R{i}" for i in range(40)]
        with pytest.raises(penstock.WaitTimedOut):
            await q.request("silent", timeout=0.1)
        await q.put("nobody asks")
        assert sum(await asyncio.gather(*servers)) == 42
        assert log.depth == 42
        await log.close()

    in_loop(home, body)


def test_a_request_whose_handler_fails_or_is_cancelled_is_there_again(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        async def fails(message: Message) -> str:
            await q.put("of the handler", syncpoint=True)
            raise KeyError

        async def sleeps(message: Message) -> str:
            await asyncio.sleep(3600)
            return "never"

        await q.put("x")
        with pytest.raises(KeyError):
            await q.serve(fails)
        task = asyncio.create_task(q.serve(sleeps))
        await until(lambda: q.handle.status().got == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [(m.text, m.backout_count) async for m in q.browse()] == [("x", 2)]
        for bad in ({"limit": -1}, {"limit": True}):
            with pytest.raises(penstock.MQError) as caught:
                await q.serve(sleeps, **bad)
            assert caught.value.reason == 2046
        with pytest.raises(penstock.InvalidType):
            await q.serve("no handler")  # type: ignore[arg-type]

    in_loop(home, body)


def test_without_memory_for_a_common_commit_no_task_waits_for_ever(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(units: object) -> list[BaseException | None]:
        raise MemoryError

    async def body(qm: QueueManager, q: Queue) -> None:
        async def commit() -> None:
            async with qm.transaction():
                await q.put("x", persistent=True)

        with monkeypatch.context() as patch:
            patch.setattr("penstock._engine.commit_together", no_memory)
            outcomes = await asyncio.gather(*(commit() for _ in range(9)), return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} <= {MemoryError, type(None)}
        assert MemoryError in {type(outcome) for outcome in outcomes}
        await commit()
        assert q.depth == outcomes.count(None) + 1

    in_loop(home, body)

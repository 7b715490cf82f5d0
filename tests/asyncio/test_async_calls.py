"""put() and get() of penstock.asyncio: what they do, when, and for whom."""

from __future__ import annotations

import ast
import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path

import pytest
from face import in_loop, until

import penstock
import penstock.asyncio
from penstock.asyncio import Queue, QueueManager


def test_what_is_put_is_got(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        put = await q.put("3 bolts", priority=7, persistent=False, correl_id=b"c")
        message = await q.get()
        assert (message.text, message.priority, message.msg_id) == ("3 bolts", 7, put.msg_id)
        await q.put(b"durable", persistent=True)
        assert (await q.get()).data == b"durable"

    in_loop(home, body)


def test_a_get_that_waits_is_served_by_a_later_put(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        for persistent in (False, True):
            getter = asyncio.create_task(q.get(wait=None))
            await until(lambda: q.handle.status().waiters == 1)
            await q.put(b"late", persistent=persistent)
            assert (await getter).data == b"late"

    in_loop(home, body)


def test_a_get_in_vain_ends_when_its_time_is_up(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        with pytest.raises(penstock.WaitTimedOut):
            await q.get(wait=0.02)
        assert await q.get(wait=0.02, default="none") == "none"
        with pytest.raises(penstock.NoMessageAvailable):
            await q.get()
        assert (await q.status()).waiters == 0

    in_loop(home, body)


def test_waits_are_matched_and_served_in_order(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        by_id = asyncio.create_task(q.get(wait=None, correl_id=b"mine"))
        first = asyncio.create_task(q.get(wait=None))
        second = asyncio.create_task(q.get(wait=None))
        await until(lambda: q.handle.status().waiters == 3)
        for text, correl_id in (("1", b"other"), ("2", b"mine"), ("3", b"third")):
            await q.put(text, persistent=False, correl_id=correl_id)
        assert [(await task).text for task in (by_id, first, second)] == ["2", "1", "3"]

    in_loop(home, body)


def test_a_put_of_a_thread_wakes_a_task(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        getter = asyncio.create_task(q.get(wait=None))
        await until(lambda: q.handle.status().waiters == 1)

        def put() -> None:
            with qm.sync.open("Q") as sync:
                sync.put(b"from a thread", persistent=False)

        thread = threading.Thread(target=put)
        thread.start()
        assert (await getter).data == b"from a thread"
        thread.join()

    in_loop(home, body)


def test_a_call_that_is_not_awaited_does_nothing(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        q.put(b"never", persistent=False)
        await q.put(b"once", persistent=False)
        q.get()
        call = q.get()
        call.close()
        assert q.depth == 1
        task = asyncio.create_task(q.get())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert q.depth == 1

    in_loop(home, body)


def test_a_call_is_a_coroutine_for_asyncio(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        assert isinstance(q.get(), Coroutine)
        await asyncio.wait_for(q.put(b"1", persistent=True), 10)
        await asyncio.shield(q.put(b"2", persistent=False))
        await asyncio.gather(q.put(b"3"), q.put(b"4", persistent=False))
        got = [(await asyncio.wait_for(q.get(wait=1), 10)).data for _ in range(4)]
        assert sorted(got) == [b"1", b"2", b"3", b"4"]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(q.get(wait=None), 0.02)
        assert (await q.status()).waiters == 0

    in_loop(home, body)


def test_a_changed_buffer_changes_no_call(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        data = bytearray(b"before")
        call = q.put(data, persistent=False)
        data[:] = b"after!"
        await call
        assert (await q.get()).data == b"before"

    in_loop(home, body)


def test_long_messages_are_put_and_got(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        for size in (60_000, 70_000, 3_000_000):
            for persistent in (False, True):
                await q.put(b"x" * size, persistent=persistent)
                assert len((await q.get(wait=1)).data) == size
        getter = asyncio.create_task(q.get(wait=None))
        await until(lambda: q.handle.status().waiters == 1)
        await q.put(b"y" * 100_000, persistent=False)
        assert len((await getter).data) == 100_000

    in_loop(home, body)


def test_bad_arguments_are_refused_and_change_nothing(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        for call in (
            lambda: q.put(3),  # type: ignore[arg-type]
            lambda: q.put(b"", priority=-5),
            lambda: q.put(b"", unit="unit"),  # type: ignore[arg-type]
            lambda: q.put(b"", syncpoint="yes"),  # type: ignore[arg-type]
            lambda: q.get(wait=-1),
            lambda: q.get(wait="long"),  # type: ignore[call-overload]
            lambda: q.get(browse="first", syncpoint=True),
        ):
            with pytest.raises(penstock.MQError):
                await call()
        with pytest.raises(TypeError):
            await q.put(b"", colour="red")  # type: ignore[call-arg]
        assert q.depth == 0

    in_loop(home, body)


def test_importing_penstock_imports_no_asyncio() -> None:
    import subprocess
    import sys

    program = "import sys, penstock; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_get_that_waits_takes_a_delayed_message_when_it_is_due(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        await q.put("before", delay=0.2)  # there when the get begins to wait
        assert (await asyncio.wait_for(q.get(wait=None), 4)).text == "before"
        getter = asyncio.create_task(q.get(wait=None))
        await until(lambda: q.handle.status().waiters == 1)
        await q.put("later", delay=30)
        await q.put("sooner", delay=0.2)  # due before what the wait knows of
        assert (await asyncio.wait_for(getter, 4)).text == "sooner"

    in_loop(home, body)


def test_a_delayed_message_is_browsed_on_request_and_cancelled(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        later = await q.put("later", delay=3600)
        await q.put("now")
        assert [m.text async for m in q.browse()] == ["now"]
        assert [m.text async for m in q.browse(delayed=True)] == ["later", "now"]
        assert await q.cancel(later.msg_id) and not await q.cancel(later.msg_id)
        assert q.depth == 1

    in_loop(home, body)


@pytest.mark.parametrize("name", ["put", "get"])
def test_calls_of_event_loops_are_typed_as_those_of_threads(name: str) -> None:
    stub = Path(penstock.__file__).with_name("_engine.pyi").read_text("utf-8")
    classes = {node.name: node for node in ast.parse(stub).body if isinstance(node, ast.ClassDef)}

    def arguments(of: str) -> list[str]:
        return [
            ast.unparse(node.args)
            for node in classes[of].body
            if isinstance(node, ast.FunctionDef) and node.name == name
        ]

    with_units = [
        text.replace("unit: Unit | None", "unit: Any") for text in arguments("QueueHandle")
    ]
    assert arguments("AsyncQueueHandle") == with_units

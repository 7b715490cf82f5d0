"""Schedules that event loops run: each job once, whatever is cancelled or killed."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from face import in_loop, until

from penstock import UnknownObjectName
from penstock.asyncio import Queue, QueueManager
from penstock.client.schedules import DEFINITIONS, TICKS


def due_at_once(interval: float) -> dict[str, Any]:
    """Arguments of a schedule whose first occurrence is in a moment."""
    start = datetime.now(timezone.utc) + timedelta(seconds=0.05)
    return {"every": interval, "start": start, "missed": "all"}


def test_a_loop_puts_each_job_when_it_is_due_until_its_task_is_cancelled(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        runner = asyncio.create_task(qm.run_schedules())
        await qm.schedule("often", "Q", put={"json": {"n": 1}}, every=0.01)
        await until(lambda: q.depth >= 5)
        runner.cancel()
        with pytest.raises(asyncio.CancelledError):
            await runner
        before = q.depth
        await asyncio.sleep(0.05)
        assert q.depth == before and len(await qm.schedules()) == 1
        message = await q.get()
        assert (message.json(), message.persistent) == ({"n": 1}, True)
        async with await qm.open(TICKS) as ticks:
            assert (await ticks.status()).got == 0  # no unit holds a tick

    in_loop(home, body)


def test_it_ends_after_so_many_occurrences_or_when_nothing_is_due(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        await qm.schedule("often", "Q", put="x", **due_at_once(0.001))
        await qm.run_schedules(limit=3)
        assert q.depth >= 3
        await qm.delete_schedule("often")
        await qm.run_schedules(wait=0)
        with pytest.raises(UnknownObjectName, match="has no schedule often"):
            await qm.delete_schedule("often")

    in_loop(home, body)


def test_a_job_that_cannot_be_put_waits_and_the_loop_goes_on(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        await qm.define("QLOCAL", "CLOSED")
        await qm.schedule("bad", "CLOSED", put="x", **due_at_once(3600))
        await qm.alter("QLOCAL", "CLOSED", put="DISABLED")
        await qm.schedule("good", "Q", put="y", every=0.01)
        await qm.run_schedules(limit=12)
        assert q.depth >= 3
        async with await qm.open("CLOSED") as closed, await qm.open(TICKS) as ticks:
            assert closed.depth == 0 and ticks.depth == 2  # the bad one's tick waits

    in_loop(home, body)


def test_a_runner_waits_while_another_process_has_the_definitions(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        await qm.schedule("s", "Q", put="x", **due_at_once(3600))
        alone = await qm.open(DEFINITIONS, exclusive=True, browse=True)
        runner = asyncio.create_task(qm.run_schedules(limit=1))
        for _ in range(5):  # the loop and the connection's thread go on meanwhile
            await q.put(b"other", persistent=True)
            await asyncio.sleep(0.01)
        assert not runner.done() and q.depth == 5
        await alone.close()
        await runner
        assert q.depth == 6

    in_loop(home, body)

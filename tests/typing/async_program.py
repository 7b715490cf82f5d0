"""A user's program of tasks, checked by mypy --strict and pyright and never run."""

from __future__ import annotations

import asyncio

import penstock.asyncio
from penstock.asyncio import Queue, QueueManager, UnitOfWork
from penstock.batch import BatchResult, MessageBatch


async def answer(asked: penstock.Message) -> str:
    await asyncio.sleep(0)
    return asked.text.upper()


async def move(qm: QueueManager, source: Queue, target: Queue) -> bytes | None:
    unit: UnitOfWork = qm.unit()
    async with unit:
        message: penstock.Message | None = await source.get(wait=1.5, default=None, unit=unit)
        if message is None:
            return None
        put: penstock.PutResult = await target.put(message.data, priority=3, unit=unit)
        await target.put(json={"n": unit.count}, delay=5, unit=unit)
    return put.msg_id


async def consume(q: Queue, out: Queue) -> int:
    seen: int = 0
    retry = penstock.Retry(0.5, factor=2, most=3)
    async with q.consume(wait=0, limit=10, retry=retry, prefetch=4) as messages:
        async for message in messages:
            text: str = message.text
            await out.put(text)
            seen += 1
    return seen


async def work(home: str) -> list[str]:
    async with (
        penstock.asyncio.connect("QM1", home=home, create=True) as qm,
        await qm.queue("ORDERS", maxdepth=10) as q,
        await qm.open("OUT") as out,
    ):
        async with qm.transaction() as unit:
            await q.put("3 bolts", priority=7, persistent=True)
            await unit.commit()
            await unit.backout(delay=0.5)
        found: list[str] = [message.text async for message in q]
        seen: list[str] = [message.text async for message in q.browse(delayed=True)]
        first = asyncio.create_task(move(qm, q, out))
        second = asyncio.ensure_future(q.get(wait=None))
        taken: penstock.Message = await asyncio.wait_for(second, 1)
        await asyncio.gather(q.put(b"x"), first, asyncio.shield(q.put(taken.data)))
        batch: MessageBatch = await q.get_batch(10, wait=0.5)
        result: BatchResult = await out.put_batch([b"x", b"y"])
        answered: int = await q.serve(answer, wait=0, limit=2)
        reply: penstock.Message = await q.request("?", timeout=1.5)
        depth: int = q.depth + len(batch) + len(result) + answered + await consume(q, out)
        status = await q.status()
        await qm.run_schedules(wait=0, limit=1)
        return [*found, *seen, reply.text, str(depth), str(status.depth)]

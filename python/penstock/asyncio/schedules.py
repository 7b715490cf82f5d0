"""Running schedules in an event loop: client/schedules.py has the terms and the rules."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from ..client.schedules import RETRY, TICKS, Attempts, Occurrence, occurrence, open_ticks
from ..errors import ObjectInUse
from .queue import Queue

if TYPE_CHECKING:
    from typing import Any

    from .._engine import Message


async def run(qm: Any, wait: float | None, limit: int | None) -> None:
    """See QueueManager.run_schedules(), whose connection it is."""
    ticks = Queue(qm, await qm.runner.call(open_ticks, qm.sync))
    async with ticks:
        await ticks.consume(wait=wait, limit=limit, retry=RETRY).run(partial(_handle, qm))


async def _handle(qm: Any, message: Message) -> None:
    """Handles a due tick in the unit of work of the task, in which it was got."""
    due = await _occurrence(qm, message.data)
    if due is None:
        return
    async with await qm.open(due.queue, input=False, browse=False) as target:
        for _ in range(due.jobs):
            await target.put(**due.put)
    async with await qm.open(TICKS, input=False, browse=False) as ticks:
        await ticks.put(**due.tick)


async def _occurrence(qm: Any, body: bytes) -> Occurrence | None:
    """What the tick asks for. Raises ObjectInUse: 2042, after a minute."""
    attempts = Attempts()
    while True:
        try:
            found: Occurrence | None = await qm.runner.call(occurrence, qm.sync, body)
            return found
        except ObjectInUse as error:
            attempts.check(error)
            await asyncio.sleep(attempts.pause)

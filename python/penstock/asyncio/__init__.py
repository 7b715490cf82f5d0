"""penstock for asyncio: the calls of :mod:`penstock` as awaitables, without a thread for each.

::

    import penstock.asyncio

    async with penstock.asyncio.connect("QM1", create=True) as qm:
        orders = await qm.queue("ORDERS")
        async with qm.transaction():
            await orders.put("3 bolts", priority=7)
        print((await orders.get(wait=5)).text)

A get that waits is a waiter of its queue like any other, and costs an object. Durable puts and
commits are flushed by one thread of the connection; those that wait together share a flush. What
neither waits nor flushes is done without a switch of tasks.
"""

from __future__ import annotations

from .connection import QueueManager, connect
from .consumer import Consumer
from .queue import Queue
from .unit import UnitOfWork

__all__ = ["Consumer", "Queue", "QueueManager", "UnitOfWork", "connect"]

"""A service of asyncio that takes orders by TCP, and a worker that is killed over and over.

The service answers a line with ``accepted`` when the order is durable; orders of many connections
share a flush. The worker gets each order and puts what became of it in one unit of work, so that
a worker that is killed (``kill -9``) has done an order whole or not at all. The next one goes on.

    python examples/asyncio_service.py

has 20 clients send 25 orders each, kills four workers, and prints

    accepted: 500, worked: 500, twice: 0, lost: 0, workers killed: 4
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
from collections import Counter

import penstock.asyncio

CLIENTS, ORDERS, KILLS = 20, 25, 4


async def serve(
    orders: penstock.asyncio.Queue, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """One connection: an order a line."""
    while line := await reader.readline():
        await orders.put(line.strip(), persistent=True)  # durable when it returns
        writer.write(b"accepted\n")
        await writer.drain()
    writer.close()


async def work(name: str) -> None:
    """Works on orders for ever: the order and its outcome are one unit of work."""
    async with penstock.asyncio.connect(name) as qm:
        orders, done = await qm.open("ORDERS"), await qm.open("DONE")
        async with orders.consume() as messages:
            async for message in messages:
                await asyncio.sleep(0.001)  # the work
                await done.put(message.data, persistent=True)


def worker(name: str) -> None:
    """The worker's process."""
    asyncio.run(work(name))


async def send(port: int, client: int) -> list[bytes]:
    """A client: sends its orders, and returns those that were accepted."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    accepted = []
    for number in range(ORDERS):
        order = b"order %d of client %d" % (number, client)
        writer.write(order + b"\n")
        if await reader.readline() == b"accepted\n":
            accepted.append(order)
    writer.close()
    return accepted


async def kill_workers(name: str, done: penstock.asyncio.Queue, expected: int) -> int:
    """Runs workers until everything is done; kills some of them in the middle. Returns how many."""
    context = multiprocessing.get_context("spawn")
    for round_ in range(KILLS + 1):
        process = context.Process(target=worker, args=(name,))
        process.start()
        last = round_ == KILLS
        goal = expected if last else done.depth + 30
        while done.depth < goal or (last and (await done.status()).uncommitted):
            await asyncio.sleep(0.005)
        await asyncio.sleep(random.random() * 0.005)
        process.kill()  # the last one, too, which waits for orders
        await asyncio.to_thread(process.join)
    return KILLS


async def main() -> None:
    """Runs service, clients and workers, and counts."""
    name = "SERVICE"
    async with penstock.asyncio.connect(name, create=True) as qm:
        orders, done = await qm.queue("ORDERS"), await qm.queue("DONE")
        server = await asyncio.start_server(lambda r, w: serve(orders, r, w), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        killing = asyncio.create_task(kill_workers(name, done, CLIENTS * ORDERS))
        sent = await asyncio.gather(*(send(port, client) for client in range(CLIENTS)))
        killed = await killing
        server.close()
        accepted = {order for orders_ in sent for order in orders_}
        worked: Counter[bytes] = Counter()
        while (message := await done.get(default=None)) is not None:
            worked[message.data] += 1
        twice = sum(count - 1 for count in worked.values())
        lost = len(accepted - set(worked)) + orders.depth
        print(
            f"accepted: {len(accepted)}, worked: {len(worked)}, twice: {twice}, lost: {lost}, "
            f"workers killed: {killed}"
        )
        await orders.close()
        await done.close()


if __name__ == "__main__":
    asyncio.run(main())

"""A web service of FastAPI that takes orders, and a worker: both are killed over and over.

``POST /orders`` answers 202 when the order is durable; orders of many requests share a flush. The
worker gets each order and puts what became of it in one unit of work, so that a worker that is
killed (``kill -9``) has done an order whole or not at all. The next one goes on. A service that is
killed has kept what it had answered for. Whether it has kept an order whose answer got lost, a
client cannot know: it sends the order again, as another attempt.

    pip install fastapi uvicorn httpx
    python examples/fastapi_service.py

has 20 clients send 25 orders each, kills four workers and two services, and prints

    accepted: 500, lost: 0, done twice: 0, never sent: 0, killed: 4 workers, 2 services
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI, Request
from pydantic import BaseModel

import penstock.asyncio

CLIENTS, ORDERS = 20, 25
WORKERS, SERVICES = 4, 2  # that are killed
PROCESSES = multiprocessing.get_context("spawn")


class Order(BaseModel, frozen=True):
    """What a client sends."""

    client: int
    number: int
    attempt: int


# ---- the service ----


def service(name: str) -> FastAPI:
    """The application: connected to the queue manager for as long as it runs."""

    @asynccontextmanager
    async def connected(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        async with penstock.asyncio.connect(name) as qm, await qm.open("ORDERS") as orders:
            yield {"orders": orders}

    app = FastAPI(lifespan=connected)

    @app.post("/orders", status_code=202)
    async def take(order: Order, request: Request) -> dict[str, str]:
        put = await request.state.orders.put(json=order.model_dump(), persistent=True)
        return {"message": put.msg_id.hex()}  # durable

    return app


def serve(name: str, listening: socket.socket) -> None:
    """The service's process."""
    server = uvicorn.Server(uvicorn.Config(service(name), log_level="warning"))
    server.run(sockets=[listening])


# ---- the worker ----


async def work(name: str) -> None:
    """Works on orders for ever: the order and its outcome are one unit of work."""
    async with penstock.asyncio.connect(name) as qm:
        orders, done = await qm.open("ORDERS"), await qm.open("DONE")
        async with orders.consume() as messages:
            async for message in messages:
                await asyncio.sleep(0.001)  # the work
                await done.put(message.data, persistent=True)


def run_worker(name: str) -> None:
    """The worker's process."""
    asyncio.run(work(name))


# ---- those who use and kill them ----


class Account:
    """What the clients have sent, and what of it was accepted."""

    def __init__(self) -> None:
        self.sent: set[Order] = set()
        self.accepted: set[Order] = set()


async def send(url: str, client: int, account: Account) -> None:
    """A client: its orders one after the other, over connections that may end at any moment."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as http:
        for number in range(ORDERS):
            accepted, attempt = False, 0
            while not accepted:
                attempt += 1
                order = Order(client=client, number=number, attempt=attempt)
                account.sent.add(order)
                with suppress(httpx.TransportError):
                    accepted = (await http.post("/orders", json=order.model_dump())).is_success
            account.accepted.add(order)


async def kill_now_and_then(
    target: Callable[..., None], args: tuple[Any, ...], kills: int, count: Callable[[], int]
) -> Any:
    """Runs a process; kills it each time that so many more orders are counted, and starts the
    next one. Returns the last one, which lives.
    """
    every = CLIENTS * ORDERS // (kills + 2)
    for kill in range(kills):
        process = PROCESSES.Process(target=target, args=args)
        process.start()
        while count() < every * (kill + 1):
            await asyncio.sleep(0.005)
        await asyncio.sleep(random.random() * 0.005)
        process.kill()
        await asyncio.to_thread(process.join)
    process = PROCESSES.Process(target=target, args=args)
    process.start()
    return process


async def run(name: str, orders: penstock.asyncio.Queue, done: penstock.asyncio.Queue) -> None:
    """Runs service, clients and workers, and counts."""
    account = Account()
    with socket.create_server(("127.0.0.1", 0), backlog=CLIENTS) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        served = asyncio.create_task(
            kill_now_and_then(serve, (name, listening), SERVICES, lambda: len(account.accepted))
        )
        worked_on = asyncio.create_task(
            kill_now_and_then(run_worker, (name,), WORKERS, lambda: done.depth)
        )
        await asyncio.gather(*(send(url, client, account) for client in range(CLIENTS)))
        last = [await served, await worked_on]
        while orders.depth or (await orders.status()).uncommitted:
            await asyncio.sleep(0.01)
        for process in last:
            process.kill()
            await asyncio.to_thread(process.join)
    worked: Counter[Order] = Counter()
    while (message := await done.get(default=None)) is not None:
        worked[Order.model_validate_json(message.data)] += 1
    print(
        f"accepted: {len(account.accepted)}, lost: {len(account.accepted - set(worked))}, "
        f"done twice: {sum(times - 1 for times in worked.values())}, "
        f"never sent: {len(set(worked) - account.sent)}, "
        f"killed: {WORKERS} workers, {SERVICES} services"
    )


async def main() -> None:
    """Makes the queue manager, if there is none yet."""
    name = "SERVICE"
    async with (
        penstock.asyncio.connect(name, create=True) as qm,
        await qm.queue("ORDERS") as orders,
        await qm.queue("DONE") as done,
    ):
        await run(name, orders, done)


if __name__ == "__main__":
    asyncio.run(main())

"""A queue manager and an event loop for the tests of penstock.asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import penstock
import penstock.asyncio

_T = TypeVar("_T")

SMALL = {"segment_size": 1 << 20, "journal_limit": 64 << 20, "ring_size": 1 << 20}
LIMIT = 60  # seconds: for what never comes


def in_loop(
    home: Path,
    body: Callable[[penstock.asyncio.QueueManager, penstock.asyncio.Queue], Awaitable[_T]],
    **settings: Any,
) -> _T:
    """Runs `body` with a connection to QM1, which is made when there is none, and its queue Q."""

    async def main() -> _T:
        if "QM1" not in penstock.managers(home):
            penstock.create("QM1", home, **{**SMALL, **settings})
        async with penstock.asyncio.connect("QM1", home) as qm, await qm.queue("Q") as q:
            return await body(qm, q)

    return asyncio.run(asyncio.wait_for(main(), LIMIT))


async def until(condition: Callable[[], bool]) -> None:
    """Lets other tasks run until the condition holds."""
    while not condition():
        await asyncio.sleep(0.001)

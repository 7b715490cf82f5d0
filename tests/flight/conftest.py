"""A server in the process of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.flight.access import Access
from penstock.flight.server import Limits, Server
from penstock.flight.service import Service
from ports import free_port

Serve = Callable[..., str]
LIMITS = Limits()


@pytest.fixture
def serve(qm: penstock.QueueManager, home: Path) -> Iterator[Serve]:
    """Starts a server for QM1, which has a queue Q, in this process; returns its address."""
    qm.define("QLOCAL", "Q", maxdepth=1_000_000)
    made: list[Server] = []

    def start(tokens: dict[str, Access] | None = None, limits: Limits = LIMITS, **tls: Any) -> str:
        connect = {"QM1": lambda: penstock.connect("QM1", home)}
        scheme = "grpc+tls" if tls else "grpc"
        service = Service(connect, 3600, 60)
        server = Server(f"{scheme}://127.0.0.1:{free_port()}", service, tokens, limits, **tls)
        made.append(server)
        name = "localhost" if tls else "127.0.0.1"
        return f"{scheme}://{name}:{server.port}"

    yield start
    for server in made:
        server.shutdown()

"""A server in the process of a test, and readers and writers that go through it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from spark_fixture import NOWHERE
from spark_steps import TEXT

from penstock.flight.access import Access
from penstock.flight.server import Limits, Server
from penstock.flight.service import Service
from penstock.spark.base import options
from penstock.spark.base.schema import MESSAGE, struct_type
from penstock.spark.remote.browse import RemoteBrowseReader
from penstock.spark.remote.service import SparkService
from penstock.spark.remote.stream import RemoteStreamReader
from penstock.spark.remote.stream_writer import RemoteStreamWriter
from penstock.spark.remote.writers import RemoteBatchWriter
from ports import free_port

RIGHTS = ("browse", "get", "put")
TOKEN = "a token of the tests"


class Remote:
    """A server for QM1 in this process, and readers and writers that go through it."""

    def __init__(self, home: Path, accesses: Mapping[str, Access] | None = None) -> None:
        self.home = home
        self.tokens = None if accesses is None else {
            hashlib.sha256(token.encode()).hexdigest(): one for token, one in accesses.items()
        }  # fmt: skip
        self.base = {"queueManager": "QM1", "home": str(NOWHERE)}
        self.address = f"grpc://127.0.0.1:{free_port()}"
        self.base["endpoint"] = self.address
        self.start()

    def start(self) -> None:
        self.spark = SparkService({"QM1": self.home})
        plain = Service({}, 3600, 60)
        self.server = Server(self.address, plain, self.tokens, Limits(), [self.spark])

    def end(self) -> None:
        self.server.shutdown()

    def parsed(self, use: str, **given: str) -> tuple[options.Options, dict[str, str]]:
        own = {**self.base, **given}
        return options.parse(own, use), own

    def browser(self, **given: str) -> RemoteBrowseReader:
        own = given if "queuePattern" in given else {"queue": "IN", **given}
        return RemoteBrowseReader(*self.parsed(options.READ, **own), struct_type(MESSAGE))

    def reader(self, **given: str) -> RemoteStreamReader:
        own = given if "queuePattern" in given else {"queue": "IN", **given}
        read = self.parsed(options.STREAM, **own)
        return RemoteStreamReader(*read, struct_type(MESSAGE), False)

    def batch_writer(self, columns: dict[str, str] = TEXT, **given: str) -> RemoteBatchWriter:
        return RemoteBatchWriter(*self.parsed(options.WRITE, **given), struct_type(columns))

    def stream_writer(self, **given: str) -> RemoteStreamWriter:
        own = self.parsed(options.SINK, queue="OUT", **given)
        return RemoteStreamWriter(*own, struct_type(TEXT))


Allowed = Callable[..., Remote]
"""A server whose client has a token with these queues and rights: (queues, rights)."""


@contextmanager
def with_tokens(home: Path) -> Iterator[Allowed]:
    """Makes such servers for QM1."""
    made: list[Remote] = []

    def start(queues: tuple[str, ...] = ("*",), rights: tuple[str, ...] = RIGHTS) -> Remote:
        made.append(Remote(home, {TOKEN: Access("etl", ("QM1",), queues, rights)}))
        made[-1].base["token"] = TOKEN
        return made[-1]

    yield start
    for one in made:
        one.end()

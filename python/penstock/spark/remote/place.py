"""A queue manager on another host, as driver and tasks of a job reach it.

The driver calls the server alone. A task that runs on the queue manager's host attaches to it
directly, where it can: host and id of the queue manager are compared with what the server has said.
Others ask the server.

A process connects to the server when it calls for the first time, never before a fork, and a place
is sent to tasks without its connection.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import penstock
from penstock.journal.errors import DamagedFile

from ..base import host, worker
from ..base.connection import connect, leave, reported
from ..base.errors import OptionError, SourceError
from . import protocol
from .protocol import OF_PLACE, Call

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from penstock import QueueManager
    from penstock.flight.link import Link

    from ..base.host import Host
    from ..base.options import Options

__all__ = ["Place"]

_CALL_SECONDS = 60.0
_RETRY_SECONDS = 180.0  # longer: a large micro-batch may be taken while its call is repeated


class Place:
    """The queue manager of a reader or writer, and the server that has it."""

    def __init__(
        self, use: str, options: Options, given: Mapping[str, str], schema: StructType
    ) -> None:
        """Asks nothing yet.

        Args:
            use: Of protocol.USES.
            options: Of the use.
            given: The same, as Spark gives them.
            schema: Of the rows.
        """
        self.use, self.options = use, options
        self.schema = schema.json()
        self.given = {name: value for name, value in given.items() if name.lower() not in OF_PLACE}
        self.application = host.application() or ""
        self.retry_seconds = _RETRY_SECONDS  # how long a call is repeated when the server is away
        self.where: Host | None = None  # the queue manager's host
        self.identity = ""  # of the queue manager, or of the history of its journal
        self._link: Link | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The state for tasks: without the connection."""
        return {**self.__dict__, "_link": None}

    # ---- calls ----

    def call(self, name: str, **fields: Any) -> Any:
        """The result of a call. Raises SourceError."""
        with self._errors():
            (answer,) = self._connected().act(
                protocol.OP, self._text(name, fields), self.retry_seconds
            )
        return _result(answer)

    def rows(self, partition: Any) -> Iterator[Any]:
        """The rows of a partition as record batches; then it disconnects. Raises SourceError."""
        text = self._text("rows", {"partition": protocol.partition_json(partition)})
        try:
            with self._errors():
                yield from self._connected().read(text)
        finally:
            self.close()

    def planned(self, found: Sequence[Mapping[str, Any]]) -> list[InputPartition]:
        """The partitions that the server has planned."""
        self.find()
        assert self.where is not None
        return [protocol.partition_from(one, self.where) for one in found]

    def plan(self) -> list[InputPartition]:
        """The partitions of a batch read; then it disconnects. Raises SourceError."""
        try:
            return self.planned(self.call("plan"))
        finally:
            self.close()

    def write(self, table: Any, **fields: Any) -> Any:
        """Sends rows; the result. Raises SourceError, also when the connection is lost."""
        with self._errors():
            answer = self._connected().put_once(self._text("write", fields), table)
        return _result(answer)

    def find(self) -> None:
        """Asks where the queue manager is, unless it is known. Raises SourceError."""
        if self.where is None:
            found = self.call("hello")
            self.where, self.identity = protocol.host_of(found["host"]), found["id"]

    def close(self) -> None:
        """Ends the connection to the server."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    # ---- without the server ----

    def directory(self) -> Path | None:
        """The queue manager's, in a task on its host; None: it is elsewhere, or not to be read."""
        self.find()
        if not self._is_here():
            return None
        from penstock.journal.head import history_of

        from ..source.journal import directory_of

        try:
            path = directory_of(self.options)
            return path if history_of(path) == self.identity else None
        except (SourceError, DamagedFile, OSError):  # another user or home
            return None

    @contextmanager
    def attached(self) -> Iterator[QueueManager | None]:
        """The queue manager, in a task on its host; None: this process cannot attach to it."""
        self.find()
        qm = self._attach()
        if qm is None:
            yield None
            return
        try:
            with reported(self.options, self.options["queue"]):
                yield qm
        finally:
            leave(qm)

    def _attach(self) -> QueueManager | None:
        if not self._is_here():
            return None
        try:
            qm = connect(self.options)
        except SourceError:  # another user, PID namespace or home
            return None
        if str(qm.display("QMGR")[0]["qmid"]) == self.identity:
            return qm
        leave(qm)
        return None

    def _is_here(self) -> bool:
        here, there = host.here(), self.where
        assert there is not None
        return (here.boot_id, here.machine_id) == (there.boot_id, there.machine_id)

    # ---- how ----

    def _text(self, name: str, fields: Mapping[str, Any]) -> bytes:
        manager = self.options["queueManager"]
        call = Call(
            manager, self.use, name, self.application, self.given, self.schema, dict(fields)
        )
        return call.text()

    def _connected(self) -> Link:
        if self._link is None:
            worker.keep_imports()
            try:
                from penstock.flight.link import Link
            except ImportError as error:
                raise SourceError(
                    f"option endpoint needs pyarrow with Flight: {error}: pip install "
                    "'penstock[serve]'"
                ) from error
            own = self.options
            pair = own["certificateFile"], own["keyFile"]
            try:
                self._link = Link(
                    own["endpoint"],
                    token=_token(own),
                    ca=own["caFile"],
                    certificate=None if pair[0] is None else pair,
                    call_seconds=_CALL_SECONDS,
                    retry_seconds=_RETRY_SECONDS,
                )
            except OSError as error:
                raise OptionError(f"{error.filename}: {error.strerror} ({host.here().name})") from (
                    error
                )
        return self._link

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Makes errors of the server and of the connection those of the data source."""
        from penstock.flight.requests import Refusal

        try:
            yield
        except Refusal as error:
            raise protocol.error_named(error.kind, error.text) from error
        except penstock.MQError as error:
            manager, endpoint = self.options["queueManager"], self.options["endpoint"]
            text = f"queue manager {manager} at {endpoint}: {error}"
            raise SourceError(text) from error


def _result(answer: Mapping[str, Any]) -> Any:
    for text in answer["warnings"]:
        warnings.warn(text, RuntimeWarning, stacklevel=4)
    return answer["result"]


def _token(options: Options) -> str | None:
    """The bearer token. Raises OSError: its file cannot be read."""
    if options["tokenFile"] is None:
        token: str | None = options["token"]
        return token
    path = os.fspath(options["tokenFile"])
    with open(path, encoding="ascii") as file:
        return file.read().strip()

"""Programs on other hosts: a queue manager of a server (penstock.flight.connect).

Calls that change something name a unit and an attempt, so that they can be repeated. They are, by
this client, while the server cannot be reached; and by the program, with the same names, when it
was ended in between.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.constants import ReasonCode
from penstock.errors import InvalidType

from .link import Link
from .requests import Request, parse, written

__all__ = ["RemoteQueueManager", "Result", "Taken"]


class Result(NamedTuple):
    """What has become of a unit.

    Attributes:
        unit, attempt: Its names.
        state: ``prepared``, ``committed`` or ``backed out``.
        messages: That it has put or taken.
    """

    unit: str
    attempt: int
    state: str
    messages: int


class RemoteQueueManager:
    """A queue manager of a server; a context manager. Threads may share it."""

    def __init__(
        self,
        endpoint: str,
        manager: str,
        *,
        token: str | None,
        ca: str | None,
        certificate: tuple[str, str] | None,
        call_seconds: float,
        retry_seconds: float,
    ) -> None:
        """As penstock.flight.connect()."""
        self.endpoint, self.name = endpoint, manager
        _checked(Request("units", manager))  # the name is one
        self._link = Link(
            endpoint,
            token=token,
            ca=ca,
            certificate=certificate,
            call_seconds=call_seconds,
            retry_seconds=retry_seconds,
        )
        try:
            self.units()  # the server is there, and the token allows it
        except BaseException:
            self._link.close()
            raise

    def __enter__(self) -> RemoteQueueManager:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()

    def __repr__(self) -> str:
        """``<RemoteQueueManager QM1 at grpc+tls://host:8815>``."""
        return f"<RemoteQueueManager {self.name} at {self.endpoint}>"

    def close(self) -> None:
        """Ends the connection; units that are prepared stay."""
        self._link.close()

    # ---- reading ----

    def queues(self) -> dict[str, int]:
        """Depth of each local queue that the token allows, by name."""
        found = self._acted(Request("queues", self.name))
        return {str(one["queue"]): int(one["depth"]) for one in found}

    def browse(self, queue: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """The messages on a queue as record batches, highest priority first; nothing is taken.

        Args:
            queue: Its name.
            columns: Of MessageBatch.arrow(), besides the body; None: all. Fewer are faster.

        Raises:
            MQError: 2085: there is no such queue; 2035: the token does not allow it. Reading the
                batches raises 2009 when the connection is lost.
        """
        return self._link.read(
            _checked(Request("browse", self.name, queue, columns=tuple(columns or ())))
        )

    # ---- units of work ----

    def put_batch(
        self, queue: str, rows: Any, *, unit: str | None = None, attempt: int = 1
    ) -> Result:
        """Puts messages, once however often it is called with the same unit.

        Args:
            queue: Its name.
            rows: A ``pyarrow.Table`` or ``RecordBatch`` with a column ``body`` and those of other
                fields that are wanted, or a sequence of bytes or str. Messages are persistent where
                no column ``persistent`` says otherwise.
            unit: The name of the unit, up to 40 of ``A-Z a-z 0-9 . _ : -``; None: a new one, so
                that only this call is safe against lost connections, not a second one.
            attempt: Above that of an earlier try whose rows were others.

        Raises:
            MQError: As Queue.put_batch(): nothing was put. 2046: the unit was put with other rows.
                2003: a later attempt was begun. 2009: the server was not reached in time; calling
                again with the same names finds out what became of it.
        """
        found = self.prepare_put(queue, rows, unit=unit or uuid.uuid4().hex, attempt=attempt)
        return self.commit(found.unit, attempt)

    def prepare_put(self, queue: str, rows: Any, *, unit: str, attempt: int = 1) -> Result:
        """As put_batch(), but the messages stay invisible until commit()."""
        request = Request("put", self.name, queue, unit, attempt)
        return _result(request, self._link.put(_checked(request), _table(rows)))

    def take(
        self,
        queue: str,
        *,
        unit: str,
        attempt: int = 1,
        max_messages: int | None = None,
        max_bytes: int | None = None,
    ) -> Taken:
        """Takes messages, highest priority first, into a unit that commit() removes and backout()
        returns. Called again with the same unit and attempt, it has the same messages.

        Args:
            queue: Its name.
            unit, attempt: As put_batch(). A later attempt returns the messages of an earlier one.
            max_messages, max_bytes: None: no limit. The message that exceeds the bytes is taken.

        Raises:
            MQError: As Queue.get_batch(), and 2003, 2009 as put_batch().
        """
        request = Request(
            "take", self.name, queue, unit, attempt, max_messages or 0, max_bytes or 0
        )
        (answer,) = self._acted(request)
        return Taken(self, _result(request, answer))

    def commit(self, unit: str, attempt: int = 1) -> Result:
        """Commits a prepared unit; one that is committed stays so.

        Raises:
            MQError: 2255: it is not prepared: it was backed out, fenced, or its lease is over.
        """
        request = Request("commit", self.name, unit=unit, attempt=attempt)
        (answer,) = self._acted(request)
        return _result(request, answer)

    def backout(self, unit: str, attempt: int = 1) -> Result:
        """Backs a prepared unit out, with what earlier attempts left; one that is not there is
        backed out.

        Raises:
            MQError: 2046: it was committed.
        """
        request = Request("backout", self.name, unit=unit, attempt=attempt)
        (answer,) = self._acted(request)
        return _result(request, answer)

    def units(self) -> list[Result]:
        """The prepared units of this token."""
        found = self._acted(Request("units", self.name))
        return [Result(o["unit"], o["attempt"], o["state"], o["messages"]) for o in found]

    # ---- calls ----

    def _text_of(self, result: Result, columns: Sequence[str] | None) -> bytes:
        names = tuple(columns or ())
        return _checked(Request("read", self.name, "", result.unit, result.attempt, columns=names))

    def _acted(self, request: Request) -> list[dict[str, Any]]:
        return self._link.act(request.op, _checked(request))


class Taken:
    """Messages that were taken and are neither committed nor backed out; a context manager, which
    backs out what was not committed when its block ends with an exception.
    """

    def __init__(self, manager: RemoteQueueManager, result: Result) -> None:
        """Made by RemoteQueueManager.take()."""
        self._manager = manager
        self.result = result

    def __len__(self) -> int:
        """The number of messages."""
        return self.result.messages

    def __enter__(self) -> Taken:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Backs out after an exception; without one, what was not committed stays prepared."""
        if kind is not None and self.result.state == "prepared":
            self.backout()

    @property
    def is_committed(self) -> bool:
        """Whether an earlier call has committed it: there is nothing to read then."""
        return self.result.state == "committed"

    def read(self, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """The messages as record batches; as often as wanted. Columns as browse() has them.

        Raises:
            MQError: 2255: it is committed or backed out. 2009, while the batches are read: the
                connection is lost; they can be read again.
        """
        return self._manager._link.read(self._manager._text_of(self.result, columns))

    def read_all(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All messages as a table; read anew when the connection is lost in between."""
        return self._manager._link.read_all(self._manager._text_of(self.result, columns))

    def commit(self) -> Result:
        """Removes the messages from their queue."""
        self.result = self._manager.commit(self.result.unit, self.result.attempt)
        return self.result

    def backout(self) -> Result:
        """Returns the messages to their queue."""
        self.result = self._manager.backout(self.result.unit, self.result.attempt)
        return self.result


def _result(request: Request, answer: dict[str, Any]) -> Result:
    attempt = answer.get("attempt", request.attempt)
    return Result(request.unit, attempt, answer["state"], answer["messages"])


def _checked(request: Request) -> bytes:
    """The request as it is sent. Raises InvalidValue, 2046: it would be refused."""
    text = written(request)
    parse(text, (request.op,))
    return text


def _table(rows: Any) -> Any:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes):
        bodies = list(rows)
        if all(isinstance(body, bytes) for body in bodies):
            return pa.table({"body": pa.array(bodies, pa.large_binary())})
        if all(isinstance(body, str) for body in bodies):
            return pa.table({"body": pa.array(bodies, pa.large_string())})
    text = f"rows are a pyarrow.Table, a RecordBatch, or bytes or str, not {rows!r:.80}"
    raise InvalidType(ReasonCode.OPTIONS_ERROR, text)

"""Programs on other hosts: a queue manager of a server (penstock.flight.connect).

Calls that change something name a unit and an attempt, so that they can be repeated. They are, by
this client, while the server cannot be reached; and by the program, with the same names, when it
was ended in between.

A connection belongs to the process that made it: a gRPC client that is used after a fork hangs, so
it is refused.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

try:
    import pyarrow as pa
    from pyarrow import flight
except ImportError as error:
    raise ImportError("penstock.flight needs pyarrow: pip install 'penstock[serve]'") from error

from penstock.constants import ReasonCode
from penstock.errors import InvalidType, InvalidValue, MQError, error_for

from .requests import Request, error_of, parse, written, written_end

__all__ = ["RemoteQueueManager", "Result", "Taken"]

_Made = TypeVar("_Made")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds between two tries
_CHUNK_ROWS = 10_000  # of a record batch that is sent
_SLOWEST = 1 << 20  # bytes a second that a put moves, at least
_OPTIONS = [
    # Frequent pings would be answered by servers with the end of the connection (too_many_pings,
    # after some seconds without rows), so there are hardly any: what is not acknowledged by the
    # other host within the timeout is noticed by TCP, what is not answered by the deadlines.
    ("grpc.keepalive_time_ms", 600_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.use_local_subchannel_pool", 1),  # a new client is a new connection
]
_LOST = (flight.FlightUnavailableError, flight.FlightTimedOutError, flight.FlightCancelledError)


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
        self._call_seconds, self._retry_seconds = call_seconds, retry_seconds
        self._headers = []
        if token is not None:
            self._headers.append((b"authorization", b"Bearer " + token.encode("ascii")))
        self._pid = os.getpid()
        self._tls = _tls(ca, certificate)
        self._lock = threading.Lock()
        _checked(Request("units", manager))  # the name is one
        try:
            self._client = self._connected()
        except pa.ArrowInvalid as error:
            raise InvalidValue(ReasonCode.OPTIONS_ERROR, f"{endpoint!r}: {error}") from None
        try:
            self.units()  # the server is there, and the token allows it
        except BaseException:
            self._client.close()
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
        if self._pid == os.getpid():
            self._client.close()

    # ---- reading ----

    def queues(self) -> dict[str, int]:
        """Depth of each local queue that the token allows, by name."""
        found = self._acted(Request("queues", self.name))
        return {str(one["queue"]): int(one["depth"]) for one in found}

    def browse(self, queue: str) -> pa.RecordBatchReader:
        """The messages on a queue as record batches, highest priority first; nothing is taken.

        Columns: those of MessageBatch.arrow().

        Raises:
            MQError: 2085: there is no such queue; 2035: the token does not allow it. Reading the
                batches raises 2009 when the connection is lost.
        """
        return self._got(Request("browse", self.name, queue))

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
        return _result(request, self._again(lambda: self._put(request, _table(rows))))

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

    def _read(self, unit: str, attempt: int) -> pa.RecordBatchReader:
        return self._got(Request("read", self.name, unit=unit, attempt=attempt))

    def _read_all(self, unit: str, attempt: int) -> pa.Table:
        """The same as a table, begun anew when the connection is lost."""
        text = _checked(Request("read", self.name, unit=unit, attempt=attempt))

        def call() -> pa.Table:
            schema, batches = self._opened(text)
            return pa.Table.from_batches(list(batches), schema)

        return self._again(call)

    def _opened(self, text: bytes) -> tuple[Any, Iterator[Any]]:
        """Schema and record batches of a call; waiting for one of them ends after call_seconds."""
        client, ticket = self._client, flight.Ticket(text)

        def opened() -> Any:
            reader = client.do_get(ticket, self._options(None))
            return reader, reader.schema

        reader, schema = _within(self._call_seconds, opened)
        watch = _Watch(reader.cancel, self._call_seconds)
        return schema, _chunks(reader, watch)

    def _acted(self, request: Request) -> list[dict[str, Any]]:
        text = _checked(request)

        def call() -> list[dict[str, Any]]:
            action = flight.Action(request.op, text)
            answers = self._client.do_action(action, self._options(self._call_seconds))
            return [json.loads(one.body.to_pybytes()) for one in answers]

        return self._again(call)

    def _got(self, request: Request) -> pa.RecordBatchReader:
        text = _checked(request)

        def call() -> pa.RecordBatchReader:
            schema, batches = self._opened(text)
            return pa.RecordBatchReader.from_batches(schema, _of_mq(batches))

        return self._again(call)

    def _put(self, request: Request, table: Any) -> dict[str, Any]:
        descriptor = flight.FlightDescriptor.for_command(_checked(request))
        options = self._options(self._call_seconds + table.nbytes / _SLOWEST)
        writer, answers = self._client.do_put(descriptor, table.schema, options)
        with writer:
            writer.write_table(table, max_chunksize=_CHUNK_ROWS)
            writer.write_metadata(written_end(table.num_rows))
            writer.done_writing()
            answer = answers.read()
        if answer is None:
            raise flight.FlightUnavailableError("the server gave no answer")
        found: dict[str, Any] = json.loads(answer.to_pybytes())
        return found

    def _options(self, seconds: float | None) -> Any:
        """Of a call with that deadline."""
        return flight.FlightCallOptions(timeout=seconds, headers=self._headers)

    def _connected(self) -> Any:
        return flight.FlightClient(self.endpoint, generic_options=_OPTIONS, **self._tls)

    def _renew(self, lost: Any) -> None:
        """Connects anew, unless another thread has; calls of others end with the old connection."""
        with self._lock:
            if self._client is lost:
                self._client = self._connected()

    def _again(self, call: Callable[[], _Made]) -> _Made:
        """Calls until the server answers; raises the errors of MQ."""
        if self._pid != os.getpid():
            raise MQError(
                ReasonCode.ENVIRONMENT_ERROR,
                "this connection was made before a fork, and gRPC hangs behind one: connect anew",
            )
        end, pause = time.monotonic() + self._retry_seconds, _FIRST_PAUSE
        while True:
            used = self._client
            try:
                return call()
            except _LOST as error:
                if time.monotonic() + pause > end:
                    text = f"{self.endpoint}: the server is not reached: {_first_line(error)}"
                    raise error_for(ReasonCode.CONNECTION_BROKEN, text) from error
            except flight.FlightUnauthenticatedError as error:
                text = f"{self.endpoint}: {_first_line(error)}"
                raise MQError(ReasonCode.NOT_AUTHORIZED, text) from None
            except pa.ArrowException as error:
                raise _of_flight(self.endpoint, error) from error
            time.sleep(pause)
            self._renew(used)
            pause = min(2 * pause, _LONGEST_PAUSE)


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

    def read(self) -> pa.RecordBatchReader:
        """The messages as record batches; as often as wanted.

        Raises:
            MQError: 2255: it is committed or backed out. 2009, while the batches are read: the
                connection is lost; they can be read again.
        """
        return self._manager._read(self.result.unit, self.result.attempt)

    def read_all(self) -> pa.Table:
        """All messages as a table; read anew when the connection is lost in between."""
        return self._manager._read_all(self.result.unit, self.result.attempt)

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


def _within(seconds: float, call: Callable[[], Any]) -> Any:
    """The result of a call that has no deadline of its own, and cannot be cancelled yet."""
    done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            done.put((call(), None))
        except BaseException as error:
            done.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        result, error = done.get(timeout=seconds)
    except Empty:
        raise flight.FlightTimedOutError(f"no answer within {seconds} s") from None
    if error is not None:
        raise error
    return result


class _Watch:
    """Ends a call that is waited for too long; counts the time in its blocks alone."""

    def __init__(self, cancel: Callable[[], object], seconds: float) -> None:
        self._cancel, self._seconds = cancel, seconds
        self._since: float | None = None
        self._ended = threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def __enter__(self) -> None:
        self._since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._since = None

    def end(self) -> None:
        """Looks no more."""
        self._ended.set()

    def _look(self) -> None:
        while not self._ended.wait(min(1.0, self._seconds / 4)):
            since = self._since
            if since is not None and time.monotonic() - since > self._seconds:
                self._cancel()
                return


def _chunks(reader: Any, watch: _Watch) -> Iterator[Any]:
    """The record batches of a call."""
    try:
        while True:
            with watch:
                try:
                    chunk = reader.read_chunk()
                except StopIteration:
                    return
            yield chunk.data
    finally:
        watch.end()


def _of_mq(batches: Iterator[Any]) -> Iterator[Any]:
    """The same, with errors of MQ."""
    try:
        yield from batches
    except pa.ArrowException as error:
        raise _of_flight("reading", error) from error


def _of_flight(where: str, error: Any) -> MQError:
    """An error of MQ for one of Flight."""
    own = error_of(getattr(error, "extra_info", b"") or b"")
    if own is not None:
        return own
    return error_for(ReasonCode.CONNECTION_BROKEN, f"{where}: {_first_line(error)}")


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:500]


def _tls(ca: str | None, certificate: tuple[str, str] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if ca is not None:
        found["tls_root_certs"] = _file(ca)
    if certificate is not None:
        found["cert_chain"], found["private_key"] = map(_file, certificate)
    return found


def _file(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()

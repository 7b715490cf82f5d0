"""The connection to a server: calls with deadlines, repeated while the server cannot be reached.

What is called must have its effect once however often it is called. put_once() alone is for rows
that are not kept to be sent again; it is called once.

A connection belongs to the process that made it: a gRPC client that is used after a fork hangs, so
it is refused.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import flight

from penstock.constants import ReasonCode
from penstock.errors import InvalidValue, MQError, error_for

from .requests import Refusal, error_of, written_end

__all__ = ["Link"]

_Made = TypeVar("_Made")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds between two tries
_CHUNK_ROWS, _CHUNK_BYTES = 10_000, 8 << 20  # of a record batch that is sent, but for a longer row
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
_WRONG_CERTIFICATE = "certificate verify failed"  # by OpenSSL; it will not become right
_LOST = (flight.FlightUnavailableError, flight.FlightTimedOutError, flight.FlightCancelledError)


class Link:
    """A connection that is made anew when it is lost. Threads may share it."""

    def __init__(
        self,
        endpoint: str,
        *,
        token: str | None,
        ca: str | None,
        certificate: tuple[str, str] | None,
        call_seconds: float,
        retry_seconds: float,
    ) -> None:
        """As penstock.flight.connect(); asks the server nothing yet."""
        self.endpoint = endpoint
        self._call_seconds, self._retry_seconds = call_seconds, retry_seconds
        self._headers = []
        if token is not None:
            if not token.isascii() or not token.isprintable():
                text = "the token has characters that no token has"  # and is not shown
                raise InvalidValue(ReasonCode.OPTIONS_ERROR, text)
            self._headers.append((b"authorization", b"Bearer " + token.encode("ascii")))
        self._pid = os.getpid()
        self._tls = _tls(ca, certificate)
        self._lock = threading.Lock()
        try:
            self._client = self._connected()
        except pa.ArrowException as error:
            raise InvalidValue(ReasonCode.OPTIONS_ERROR, f"{endpoint!r}: {error}") from None

    def close(self) -> None:
        """Ends the connection."""
        if self._pid == os.getpid():
            self._client.close()

    # ---- calls ----

    def act(
        self, kind: str, text: bytes, retry_seconds: float | None = None
    ) -> list[dict[str, Any]]:
        """The answers of an action; retry_seconds: of this call."""

        def call() -> list[dict[str, Any]]:
            action = flight.Action(kind, text)
            answers = self._client.do_action(action, self._options(self._call_seconds))
            return [json.loads(one.body.to_pybytes()) for one in answers]

        return self._again(call, retry_seconds)

    def read(self, text: bytes) -> pa.RecordBatchReader:
        """The rows of a ticket. Reading raises 2009 when the connection is lost."""

        def call() -> pa.RecordBatchReader:
            schema, batches = self._opened(text)
            return pa.RecordBatchReader.from_batches(schema, _of_mq(batches))

        return self._again(call)

    def read_all(self, text: bytes) -> pa.Table:
        """The same as a table, begun anew when the connection is lost."""

        def call() -> pa.Table:
            schema, batches = self._opened(text)
            return pa.Table.from_batches(list(batches), schema)

        return self._again(call)

    def put(self, text: bytes, table: pa.Table) -> dict[str, Any]:
        """Sends rows; the server's answer."""
        return self._again(lambda: self._put(text, table))

    def put_once(self, text: bytes, table: pa.Table) -> dict[str, Any]:
        """The same, but a call whose connection is lost is not repeated: 2009."""
        self._check_process()
        try:
            return self._put(text, table)
        except pa.ArrowException as error:
            raise self._of_flight(error) from error

    # ---- how ----

    def _opened(self, text: bytes) -> tuple[Any, Iterator[Any]]:
        """Schema and record batches of a call; waiting for one of them ends after call_seconds."""
        client, ticket = self._client, flight.Ticket(text)

        def opened() -> Any:
            reader = client.do_get(ticket, self._options(None))
            return reader, reader.schema

        reader, schema = _within(self._call_seconds, opened)
        watch = _Watch(reader.cancel, self._call_seconds)
        return schema, _chunks(reader, watch)

    def _put(self, text: bytes, table: pa.Table) -> dict[str, Any]:
        descriptor = flight.FlightDescriptor.for_command(text)
        options = self._options(self._call_seconds + table.nbytes / _SLOWEST)
        writer, answers = self._client.do_put(descriptor, table.schema, options)
        with writer:
            for batch in _batches_of(table):
                writer.write_batch(batch)
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

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise MQError(
                ReasonCode.ENVIRONMENT_ERROR,
                "this connection was made before a fork, and gRPC hangs behind one: connect anew",
            )

    def _again(self, call: Callable[[], _Made], retry_seconds: float | None = None) -> _Made:
        """Calls until the server answers; raises the errors of MQ."""
        self._check_process()
        retry = self._retry_seconds if retry_seconds is None else retry_seconds
        end, pause = time.monotonic() + retry, _FIRST_PAUSE
        while True:
            used = self._client
            try:
                return call()
            except _LOST as error:
                if time.monotonic() + pause > end or _WRONG_CERTIFICATE in str(error):
                    text = f"{self.endpoint}: the server is not reached: {_first_line(error)}"
                    raise error_for(ReasonCode.CONNECTION_BROKEN, text) from error
            except pa.ArrowException as error:
                raise self._of_flight(error) from error
            time.sleep(pause)
            self._renew(used)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _of_flight(self, error: Any) -> MQError | Refusal:
        if isinstance(error, flight.FlightUnauthenticatedError):
            text = f"{self.endpoint}: {_first_line(error)}"
            return MQError(ReasonCode.NOT_AUTHORIZED, text)
        return _of_flight(self.endpoint, error)


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


def _batches_of(table: pa.Table) -> Iterator[Any]:
    pending = table.to_batches(max_chunksize=_CHUNK_ROWS)[::-1]
    while pending:
        batch = pending.pop()
        if batch.nbytes > _CHUNK_BYTES and batch.num_rows > 1:
            half = batch.num_rows // 2
            pending += [batch.slice(half), batch.slice(0, half)]
        else:
            yield batch


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


def _of_flight(where: str, error: Any) -> MQError | Refusal:
    """An error of MQ, or of an extension, for one of Flight."""
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

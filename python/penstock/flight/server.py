"""The Arrow Flight server: requests and rows over gRPC, on a service (service.py).

Who calls is known from a bearer token (access.py), or from the certificate that mutual TLS wants.
A call that is refused is logged with the caller's address and the reason. More calls at a time than
allowed are refused as unavailable, which clients try again.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, Protocol

from pyarrow import flight

from penstock.constants import ReasonCode
from penstock.errors import MQError, error_for

from .access import ANYBODY, Access, access_of
from .ahead import Ahead
from .requests import FIELDS, Refusal, op_of, parse, written_end, written_error
from .service import Service

__all__ = ["Extension", "Limits", "Server"]

_log = logging.getLogger("penstock.flight")

_HEADER = "authorization"
_ACCESS = "access"  # the middleware
_ACTIONS = {
    "take": "takes messages into a unit",
    "commit": "commits a unit",
    "backout": "backs a unit out",
    "units": "lists the client's prepared units",
    "queues": "lists the queues that the client may use",
    "ranges": "divides a queue for browses side by side",
    "journal_range": "says from where to where the journal can be read",
}
_LOOK_SECONDS = 1.0  # between two looks at leases


class _Caller(flight.ServerMiddleware):  # type: ignore[misc]
    """What the caller of a call may do; None: nothing."""

    def __init__(self, access: Access | None) -> None:
        super().__init__()
        self.access = access


class _Callers(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Finds out who calls."""

    def __init__(self, tokens: Mapping[str, Access] | None) -> None:
        super().__init__()
        self._tokens = tokens

    def start_call(self, info: Any, headers: Mapping[str, list[str]]) -> _Caller:
        """Reads the header; the call itself refuses, which knows the caller's address."""
        if self._tokens is None:
            return _Caller(ANYBODY)
        given = [value for name, values in headers.items() if name.lower() == _HEADER
                 for value in values]  # fmt: skip
        return _Caller(access_of(self._tokens, given[0] if len(given) == 1 else None))


class Limits(NamedTuple):
    """What clients may ask for at a time.

    Attributes:
        calls: All of them together.
        batch_bytes: A record batch of a put.
    """

    calls: int = 64
    batch_bytes: int = 128 << 20


def _rows(reader: Any, most_bytes: int) -> Iterator[Any]:
    """The record batches of a put. A stream whose client or link is gone ends like any other for
    its reader, so the client says at its end how many rows it has sent.

    Raises MQError: 2009: it does not, or others have come. 2218: a record batch is too large.
    """
    rows, promised = 0, None
    for chunk in reader:
        if chunk.data is not None:
            size = chunk.data.get_total_buffer_size()
            if size > most_bytes:
                text = f"a record batch of {size} bytes is too large: {most_bytes} are allowed"
                raise error_for(ReasonCode.MSG_TOO_BIG_FOR_CHANNEL, text)
            rows += chunk.data.num_rows
            yield chunk.data
        if chunk.app_metadata is not None:
            promised = chunk.app_metadata.to_pybytes()
    if promised != written_end(rows):
        text = f"the client's stream ended early, behind {rows} rows"
        raise error_for(ReasonCode.CONNECTION_BROKEN, text)


class _Place:
    """One of the calls that the server has at a time."""

    def __init__(self, calls: threading.BoundedSemaphore) -> None:
        self._calls: threading.BoundedSemaphore | None = calls
        self.is_kept = False  # beyond the method that answers

    def leave(self) -> None:
        """Lets another call in; once."""
        calls, self._calls = self._calls, None
        if calls is not None:
            calls.release()


class _Admitted(NamedTuple):
    """A call whose caller is known."""

    access: Access
    place: _Place


class _Sending:
    """Record batches of an answer, which are read while it is sent. The call lasts, and what reads
    them is open, until the last one has been sent, or the client has gone.
    """

    def __init__(
        self, batches: Iterator[Any], place: _Place, refused: Callable[[str], None]
    ) -> None:
        place.is_kept = True
        self._batches, self._place, self._refused = Ahead(batches), place, refused

    def __iter__(self) -> _Sending:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._batches)
        except (MQError, Refusal) as error:
            self._refused(str(error))
            raise flight.FlightServerError(str(error), extra_info=written_error(error)) from None

    def __del__(self) -> None:
        self._batches.close()
        self._place.leave()


class Extension(Protocol):
    """Answers requests of another op: its name. Its errors are MQError and Refusal."""

    name: str

    def act(self, access: Access, text: bytes) -> list[dict[str, Any]]:
        """An action of that name."""

    def read(self, access: Access, text: bytes) -> tuple[Any, Iterator[Any]]:
        """Schema and record batches."""

    def put(
        self, access: Access, text: bytes, batches: Iterator[Any], schema: Any
    ) -> dict[str, Any]:
        """Takes rows."""

    def look(self) -> None:
        """Called each second."""

    def close(self) -> None:
        """The server ends."""


class Server(flight.FlightServerBase):  # type: ignore[misc]
    """Serves until it is shut down."""

    def __init__(
        self,
        location: str,
        service: Service,
        tokens: Mapping[str, Access] | None,
        limits: Limits,
        extensions: Iterable[Extension] = (),
        looks: Iterable[Callable[[], None]] = (),
        **tls: Any,
    ) -> None:
        """Listens.

        Args:
            location: ``grpc://host:port`` or ``grpc+tls://host:port``; port 0: any.
            service: What it serves.
            tokens: Of access.read(); None: everybody who can connect may do everything.
            limits: Of clients.
            extensions: That answer other requests.
            looks: Called each second, besides those of the service and the extensions.
            tls: As of FlightServerBase.

        Raises:
            pyarrow.ArrowException: It cannot listen there.
        """
        self._service = service
        self._extensions = {one.name: one for one in extensions}
        self._calls = threading.BoundedSemaphore(limits.calls)
        self._most_bytes = limits.batch_bytes
        own = [service.look, *(one.look for one in self._extensions.values())]
        self._looks = [*own, *looks]
        self._ended = threading.Event()
        super().__init__(location, middleware={_ACCESS: _Callers(tokens)}, **tls)
        self._leases = threading.Thread(target=self._look_at_leases, daemon=True)
        self._leases.start()

    # ---- what clients call ----

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Rows of a queue, a unit or the journal."""
        with self._answered(context, "do_get") as caller:
            access = caller.access
            extension = self._extension(ticket.ticket)
            if extension is not None:
                call, (schema, batches) = extension.name, extension.read(access, ticket.ticket)
            else:
                request = parse(ticket.ticket, ("browse", "read", "journal"))
                call, reading = request.op, getattr(self._service, request.op)
                schema, batches = reading(access, request)
            peer = context.peer()
            refused = partial(self._log_refusal, peer, call)
            sending = _Sending(batches, caller.place, refused)
            return flight.GeneratorStream(schema, sending)

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Rows for a unit."""
        with self._answered(context, "do_put") as caller:
            access = caller.access
            text = descriptor.command or b""
            extension = self._extension(text)
            batches = _rows(reader, self._most_bytes)
            if extension is not None:
                answer = extension.put(access, text, batches, reader.schema)
            else:
                answer = self._service.put(access, parse(text, ("put",)), batches, reader.schema)
            writer.write(json.dumps(answer).encode())

    def do_action(self, context: Any, action: Any) -> list[bytes]:
        """An action of _ACTIONS, or of an extension."""
        with self._answered(context, f"action {action.type:.20}") as caller:
            access = caller.access
            text = action.body.to_pybytes()
            if action.type in self._extensions:
                answers = self._extensions[action.type].act(access, text)
            else:
                request = parse(text, tuple(_ACTIONS), action.type)
                answer = getattr(self._service, request.op)(access, request)
                answers = answer if isinstance(answer, list) else [answer]
            return [json.dumps(one).encode() for one in answers]

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """The actions, with the fields of their requests."""
        with self._answered(context, "list_actions"):
            return [(name, f"{text}; {', '.join(FIELDS[name])}") for name, text in _ACTIONS.items()]

    def shutdown(self) -> None:
        """Ends the calls, and what they have begun."""
        self._ended.set()
        for one in self._extensions.values():
            one.close()
        self._service.close()
        super().shutdown()

    # ---- around each call ----

    @contextmanager
    def _answered(self, context: Any, call: str) -> Iterator[_Admitted]:
        """Checks the caller; makes errors of MQ those of Flight, and logs them."""
        if not self._calls.acquire(blocking=False):
            self._refused(context, call, "too many calls")
            raise flight.FlightUnavailableError("the server has too many calls at the moment")
        place = _Place(self._calls)
        try:
            access = context.get_middleware(_ACCESS).access
            if access is None:
                self._refused(context, call, "no token, or a wrong one")
                raise flight.FlightUnauthenticatedError("a bearer token of this server is needed")
            yield _Admitted(access, place)
        except (MQError, Refusal) as error:
            self._refused(context, call, str(error))
            raise flight.FlightServerError(str(error), extra_info=written_error(error)) from None
        finally:
            if not place.is_kept:
                place.leave()

    def _refused(self, context: Any, call: str, reason: str) -> None:
        self._log_refusal(context.peer(), call, reason)

    def _log_refusal(self, peer: str, call: str, reason: str) -> None:
        _log.warning("%s: %s refused: %s", peer, call, reason)

    def _extension(self, text: bytes) -> Extension | None:
        """That answers a request; None: the server itself does."""
        return self._extensions.get(op_of(text) or "") if self._extensions else None

    def _look_at_leases(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            for look in self._looks:
                try:
                    look()
                except Exception:
                    _log.exception("a look at leases")

"""The Arrow Flight server: requests and rows over gRPC, on a service (service.py).

Who calls is known from a bearer token (access.py), or from the certificate that mutual TLS wants.
A call that is refused is logged with the caller's address and the reason. More calls at a time than
allowed are refused as unavailable, which clients try again.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyarrow import flight

from penstock.constants import ReasonCode
from penstock.errors import MQError, error_for

from .access import ANYBODY, Access, access_of
from .requests import FIELDS, Request, parse, written_end, written_error
from .service import Service

__all__ = ["Server"]

_log = logging.getLogger("penstock.flight")

_HEADER = "authorization"
_ACCESS = "access"  # the middleware
_ACTIONS = {
    "take": "takes messages into a unit",
    "commit": "commits a unit",
    "backout": "backs a unit out",
    "units": "lists the client's prepared units",
    "queues": "lists the queues that the client may use",
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


def _rows(reader: Any) -> Iterator[Any]:
    """The record batches of a put. A stream whose client or link is gone ends like any other for
    its reader, so the client says at its end how many rows it has sent.

    Raises MQError, 2009: it does not, or others have come.
    """
    rows, promised = 0, None
    for chunk in reader:
        if chunk.data is not None:
            rows += chunk.data.num_rows
            yield chunk.data
        if chunk.app_metadata is not None:
            promised = chunk.app_metadata.to_pybytes()
    if promised != written_end(rows):
        text = f"the client's stream ended early, behind {rows} rows"
        raise error_for(ReasonCode.CONNECTION_BROKEN, text)


class Server(flight.FlightServerBase):  # type: ignore[misc]
    """Serves until it is shut down."""

    def __init__(
        self,
        location: str,
        service: Service,
        tokens: Mapping[str, Access] | None,
        most_calls: int,
        **tls: Any,
    ) -> None:
        """Listens.

        Args:
            location: ``grpc://host:port`` or ``grpc+tls://host:port``; port 0: any.
            service: What it serves.
            tokens: Of access.read(); None: everybody who can connect may do everything.
            most_calls: At a time.
            tls: As of FlightServerBase.

        Raises:
            pyarrow.ArrowException: It cannot listen there.
        """
        self._service = service
        self._calls = threading.BoundedSemaphore(most_calls)
        self._ended = threading.Event()
        super().__init__(location, middleware={_ACCESS: _Callers(tokens)}, **tls)
        self._leases = threading.Thread(target=self._look_at_leases, daemon=True)
        self._leases.start()

    # ---- what clients call ----

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Rows of a queue or a unit."""
        with self._answered(context, "do_get") as access:
            request = parse(ticket.ticket, ("browse", "read"))
            reading = self._service.browse if request.op == "browse" else self._service.read
            schema, batches = reading(access, request)
            return flight.GeneratorStream(schema, self._sent(context, request, batches))

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Rows for a unit."""
        with self._answered(context, "do_put") as access:
            request = parse(descriptor.command or b"", ("put",))
            answer = self._service.put(access, request, _rows(reader), reader.schema)
            writer.write(json.dumps(answer).encode())

    def do_action(self, context: Any, action: Any) -> list[bytes]:
        """An action of _ACTIONS."""
        with self._answered(context, f"action {action.type:.20}") as access:
            request = parse(action.body.to_pybytes(), tuple(_ACTIONS), action.type)
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
        self._service.close()
        super().shutdown()

    # ---- around each call ----

    @contextmanager
    def _answered(self, context: Any, call: str) -> Iterator[Access]:
        """Checks the caller; makes errors of MQ those of Flight, and logs them."""
        if not self._calls.acquire(blocking=False):
            self._refused(context, call, "too many calls")
            raise flight.FlightUnavailableError("the server has too many calls at the moment")
        try:
            access = context.get_middleware(_ACCESS).access
            if access is None:
                self._refused(context, call, "no token, or a wrong one")
                raise flight.FlightUnauthenticatedError("a bearer token of this server is needed")
            yield access
        except MQError as error:
            self._refused(context, call, str(error))
            raise flight.FlightServerError(str(error), extra_info=written_error(error)) from None
        finally:
            self._calls.release()

    def _sent(self, context: Any, request: Request, batches: Iterator[Any]) -> Iterator[Any]:
        """Record batches of an answer, which are read while it is sent."""
        try:
            yield from batches
        except MQError as error:
            self._refused(context, request.op, str(error))
            raise flight.FlightServerError(str(error), extra_info=written_error(error)) from None

    def _refused(self, context: Any, call: str, reason: str) -> None:
        _log.warning("%s: %s refused: %s", context.peer(), call, reason)

    def _look_at_leases(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            try:
                self._service.look()
            except Exception:
                _log.exception("a look at leases")

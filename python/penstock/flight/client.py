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
from penstock.errors import InvalidType, InvalidValue

from .link import Link
from .requests import Request, parse, written

__all__ = ["JournalRange", "Range", "RemoteQueueManager", "Result", "Taken"]


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


class JournalRange(NamedTuple):
    """What of a journal can be read.

    Attributes:
        oldest: LSN of the first record from which on none is missing.
        end: LSN behind the last one that is durable.
        history: Of which history of which queue manager: what LSNs are about.
    """

    oldest: int
    end: int
    history: str


Range = tuple[int, ...]


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

    def browse(
        self, queue: str, columns: Sequence[str] | None = None, part: Range | None = None
    ) -> pa.RecordBatchReader:
        """The messages on a queue as record batches, highest priority first; nothing is taken.

        Args:
            queue: Its name.
            columns: Of MessageBatch.arrow(), besides the body; None: all. Fewer are faster.
            part: Of ranges(); None: all messages that are there now.

        Raises:
            MQError: 2085: there is no such queue; 2035: the token does not allow it. Reading the
                batches raises 2009 when the connection is lost.
        """
        names, own = tuple(columns or ()), tuple(part or ())
        return self._link.read(
            _checked(Request("browse", self.name, queue, columns=names, range=own))
        )

    def ranges(self, queue: str, parts: int) -> list[Range]:
        """Divides a queue into about so many parts of equal size, for browses side by side, in
        processes or on hosts of their own. Together they have each message that is there now and
        not taken meanwhile, and no later one.

        Raises:
            MQError: As browse(); 2046: parts is not 1 to 100,000.
        """
        found = self._acted(Request("ranges", self.name, queue, parts=parts))
        return [tuple(one["range"]) for one in found]

    # ---- the journal ----

    def journal_range(self) -> JournalRange:
        """From where to where journal() can read now."""
        (found,) = self._acted(Request("journal_range", self.name))
        return JournalRange(int(found["oldest"]), int(found["end"]), str(found["history"]))

    def journal(
        self,
        queues: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        *,
        events: Sequence[str] | None = None,
        start: int = 0,
        end: int | None = None,
        history: str | None = None,
    ) -> pa.RecordBatchReader:
        """What has happened to the queues: each put, get and deletion of a decided unit of work
        once, as record batches in the order of the decisions.

        Who reads from ``start=0`` to the end of journal_range(), and then from there to its end of
        a later time, misses nothing and has nothing twice. Give the history that the numbers are
        of: where a queue manager was restored they mean something else. With circular logging old
        events go as the journal is written over.

        Args:
            queues: Their names; None: all, for which the token needs the queues ``*``.
            columns: Of penstock.journal.events.COLUMNS; None: all.
            events: Of penstock.journal.events.KINDS; None: all.
            start: The first LSN of a decision; 0: the oldest that is there.
            end: The LSN where it ends; None: what is durable now.
            history: Of journal_range(); None: any.

        Raises:
            MQError: 2035: the token does not allow it. 2046: a column, event or LSN that there is
                not, or another history. 2101: what is to be read is damaged or not there any more.
                Reading the batches raises 2101, too, and 2009 when the connection is lost.
        """
        return self._link.read(
            _checked(
                Request(
                    "journal",
                    self.name,
                    queues=tuple(queues or ()),
                    columns=tuple(columns or ()),
                    events=tuple(events or ()),
                    start=start,
                    end=end or 0,
                    history=history or "",
                )
            )
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

    def _text_of(
        self, result: Result, columns: Sequence[str] | None, first: int = 0, last: int | None = None
    ) -> bytes:
        if last is not None and last <= first:
            text = f"the range of messages from {first} to {last} has none"
            raise InvalidValue(ReasonCode.OPTIONS_ERROR, text)
        own = Request(
            "read", self.name, "", result.unit, result.attempt, columns=tuple(columns or ()),
            first=first, last=last or 0,
        )  # fmt: skip
        return _checked(own)

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

    def read(
        self, columns: Sequence[str] | None = None, first: int = 0, last: int | None = None
    ) -> pa.RecordBatchReader:
        """The messages as record batches; as often as wanted. Columns as browse() has them.

        first, last: messages first .. last - 1 of the unit, for reads side by side; None: to its
        end.

        Raises:
            MQError: 2255: it is committed or backed out. 2009, while the batches are read: the
                connection is lost; they can be read again.
        """
        text = self._manager._text_of(self.result, columns, first, last)
        return self._manager._link.read(text)

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

"""Spark's half of the server: readers and writers of the data source that work for clients.

Each call makes its reader or writer anew, but for a stream's reader, which stays from call to call
in a *session*. A session that its driver leaves alone for a while is closed, as the process of a
driver ends: what it has prepared stays, for the next start from the checkpoint.

A client may do what its token allows: browse for batch reads, get for streams, put for sinks, on
each queue that it names, that a row names, or that a partition or an offset names. Streams by
pattern have the queues that the token allows. The journal is browsed: of queues that are named, or
of a pattern that stands in the token. Whose stream or write a prepared unit is, is known by
its id, a random number that checkpoints and drivers have; and the units of a stream are committed
for a client only when it may use all of its queues.

Rows of a task come in pieces that are complete before the first of them is put, so a slow client
holds no unit of work.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import penstock
from penstock.constants import ReasonCode
from penstock.flight.requests import Refusal
from penstock.journal.errors import DamagedFile

from ..base import acting, host, units
from ..base import options as o
from ..base.acting import Acting
from ..base.connection import connected
from ..base.errors import SourceError
from ..base.queue_choice import QueueChoice
from ..base.schema import arrow_schema
from ..base.versions import require
from . import protocol
from .journal_part import JournalPart
from .protocol import OF_PLACE, Call, WrongRequest

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from ..base.options import Options
    from ..sink.writer import Sink
    from ..source.journal_stream import JournalStreamReader
    from ..source.stream import StreamReader

__all__ = ["IDLE_SECONDS", "SparkService"]

IDLE_SECONDS = 15.0  # of a session; its driver says every few seconds that it is there
_MOST_SESSIONS = 1_000
_MOST_PIECE = 256 << 20  # bytes of rows that a task sends at a time
_MOST = {"batchRows": 100_000, "batchBytes": 64 << 20}  # of record batches that are read
_BAD = (KeyError, TypeError, AttributeError, ValueError, IndexError)  # of values that were sent
_Made = TypeVar("_Made")


class Access(Protocol):
    """What a client may do (penstock.flight.access)."""

    def check(self, manager: str, queue: str | None = None, right: str | None = None) -> None:
        """Raises MQError, 2035, unless it may use the queue so."""

    def sees(self, queue: str) -> bool:
        """Whether a queue is one of its own."""

    def check_journal(self, manager: str, queues: Iterable[str], pattern: str = "*") -> None:
        """Raises MQError, 2035, unless it may browse these queues, or all of a pattern."""


class SparkService:
    """The data source for clients."""

    name = protocol.OP

    def __init__(self, homes: Mapping[str, Path | None]) -> None:
        """Connects to nothing yet.

        homes: The directory of each queue manager that is served; None: PENSTOCK_HOME.
        """
        self._homes = dict(homes)
        self._sessions: dict[tuple[str, Access], _Session] = {}
        self._lock = threading.Lock()

    # ---- what the server calls ----

    def act(self, access: Access, text: bytes) -> list[dict[str, Any]]:
        """Answers a call that has no rows. Raises Refusal, MQError."""
        with _refusals():
            call = protocol.parse(text, tuple(_ACTIONS))
            client = self._client(access, call)
            with acting.acting_for(client):
                result = _sent(lambda: _ACTIONS[call.call](self, access, call))
        return [{"result": result, "warnings": client.warnings}]

    def read(self, access: Access, text: bytes) -> tuple[Any, Iterator[Any]]:
        """Schema and rows of a partition. Raises Refusal, MQError."""
        with _refusals():
            call = protocol.parse(text, ("rows",))
            with acting.acting_for(self._client(access, call)):
                options, schema = self._options(access, call), _schema(call)
                partition = _partition(access, call, options)
                rows = _reader(call.use, options, schema).read(partition)
                return arrow_schema(schema), _rows(acting.steps(rows))

    def put(
        self, access: Access, text: bytes, batches: Iterator[Any], schema: Any
    ) -> dict[str, Any]:
        """Puts a piece of a task's rows. Raises Refusal, MQError."""
        with _refusals():
            call = protocol.parse(text, ("write",))
            client = self._client(access, call)
            run = protocol.run_from(call.fields["run"])
            task = protocol.task_from(call.fields["task"])
            rows = _piece(batches)
            with acting.acting_for(client):
                options = self._options(access, call)
                sink = _sink(options, _schema(call))
                with connected(options) as qm:
                    written = _sent(lambda: sink.put_into(qm, iter(rows), run, task))
        return {"result": protocol.written_json(written), "warnings": client.warnings}

    def look(self) -> None:
        """Closes sessions whose drivers are gone."""
        now = time.monotonic()
        with self._lock:
            idle = {
                key: one for key, one in self._sessions.items() if now - one.used > IDLE_SECONDS
            }
            for key in idle:
                del self._sessions[key]
        for session in idle.values():
            session.close()

    def close(self) -> None:
        """Closes all sessions."""
        with self._lock:
            sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            session.close()

    # ---- calls ----

    def _hello(self, access: Access, call: Call) -> Any:
        """Where the queue manager is, and which one."""
        here, options = host.here(), self._options(access, call)
        if _is_of_journal(call, options):
            from penstock.journal.head import history_of

            from ..source.journal import directory_of

            own = history_of(directory_of(options))  # not started for it
        else:
            with connected(options) as qm:
                own = str(qm.display("QMGR")[0]["qmid"])
        return {"host": [here.name, here.boot_id, here.machine_id], "id": own}

    def _plan(self, access: Access, call: Call) -> Any:
        options, schema = self._options(access, call), _schema(call)
        if call.use == "read":
            return _plan_of(_reader(call.use, options, schema).partitions())
        start, end = call.fields["start"], call.fields["end"]
        self._check_streams(access, call, start, end)
        with self._session(access, call) as reader:
            return _plan_of(reader.partitions(start, end))

    def _initial(self, access: Access, call: Call) -> Any:
        with self._session(access, call) as reader:
            return reader.initialOffset()

    def _latest(self, access: Access, call: Call) -> Any:
        start = call.fields["start"]
        self._check_streams(access, call, start)
        with self._session(access, call) as reader:
            return reader.latestOffset(start, _limit(call.fields["limit"]))

    def _report(self, access: Access, call: Call) -> Any:
        with self._session(access, call) as reader:
            return reader.reportLatestOffset()

    def _commit(self, access: Access, call: Call) -> Any:
        end = call.fields["end"]
        self._check_streams(access, call, end)
        with self._session(access, call) as reader:
            reader.commit(end)

    def _bind(self, access: Access, call: Call) -> Any:
        with self._session(access, call) as reader:
            return dict(reader.bind(None))

    def _alive(self, access: Access, call: Call) -> Any:
        with self._lock:
            session = self._sessions.get((call.fields["session"], access))
            if session is not None:
                session.used = time.monotonic()

    def _stop(self, access: Access, call: Call) -> Any:
        with self._lock:
            session = self._sessions.pop((call.fields["session"], access), None)
        if session is not None:
            session.close()

    def _check(self, access: Access, call: Call) -> Any:
        options = self._options(access, call)
        with connected(options) as qm:
            _sink(options, _schema(call)).check(qm)

    def _end(self, access: Access, call: Call) -> Any:
        written = [protocol.written_from(one) for one in call.fields["written"]]
        run = protocol.run_from(call.fields["run"])
        access.check(call.manager, None, "put")
        sink = _sink(self._options(access, call), _schema(call))
        sink.end(written, call.fields["once"], run.write)

    def _drop(self, access: Access, call: Call) -> Any:
        written = [protocol.written_from(one) for one in call.fields["written"]]
        given = call.fields["run"]
        run = None if given is None else protocol.run_from(given)
        access.check(call.manager, None, "put")
        _sink(self._options(access, call), _schema(call)).drop(written, run)

    # ---- how ----

    def _client(self, access: Access, call: Call) -> Acting:
        access.check(call.manager)
        return Acting(
            call.application,
            lambda queue, right: access.check(call.manager, queue, right),
            access.sees,
        )

    def _options(self, access: Access, call: Call) -> Options:
        """The options on this host. Raises OptionError, MQError."""
        if call.manager not in self._homes:
            text = f"this server has no queue manager {call.manager}"
            raise penstock.QueueManagerNameError(ReasonCode.Q_MGR_NAME_ERROR, text)
        given = {name: value for name, value in call.given.items() if name.lower() not in OF_PLACE}
        given["queueManager"] = call.manager
        home = self._homes[call.manager]
        if home is not None:
            given["home"] = str(home)
        read = o.parse(given, protocol.USES[call.use]).values
        # what a client asks for at a time is memory of the server
        sizes = {name: min(read[name], most) for name, most in _MOST.items() if name in read}
        options = o.Options({**read, **sizes})
        if _is_of_journal(call, options):
            choice = QueueChoice.of(options)
            access.check_journal(call.manager, choice.names or (), choice.given)
        elif call.use == "stream" and options["deadLetterQueue"] is not None:
            access.check(call.manager, options["deadLetterQueue"], "put")
        return options

    def _session(self, access: Access, call: Call) -> AbstractContextManager[Any]:
        key = call.fields["session"], access
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                if len(self._sessions) >= _MOST_SESSIONS:
                    raise SourceError(f"the server has {_MOST_SESSIONS} streams, and takes no more")
                reader = _reader("stream", self._options(access, call), _schema(call))
                session = self._sessions[key] = _Session(reader)
        session.newest = call.fields.get("newest") or session.newest
        return session

    def _check_streams(self, access: Access, call: Call, *offsets: Mapping[str, Any]) -> None:
        """Raises MQError, 2035, for a stream that has taken from a queue that is another's."""
        streams = {str(offset.get("stream")) for offset in offsets if offset.get("stream")}
        if not streams:
            return
        with connected(self._options(access, call)) as qm:
            for xid in qm.recover():
                queue = units.queue_of(xid)
                if queue is not None and units.stream_of(xid) in streams:
                    access.check(call.manager, queue, "get")


class _Session:
    """A stream's reader; one call at a time."""

    def __init__(self, reader: StreamReader | JournalStreamReader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._is_bound = False
        self.newest: Mapping[str, int] | None = None  # that Trigger.AvailableNow has noted
        self.used = time.monotonic()

    def __enter__(self) -> StreamReader | JournalStreamReader:
        self._lock.acquire()
        try:
            if self.newest is not None and not self._is_bound:
                self._reader.bind(self.newest)
                self._is_bound = True
        except BaseException:
            self._lock.release()
            raise
        return self._reader

    def __exit__(self, *_: object) -> None:
        self.used = time.monotonic()
        self._lock.release()

    def close(self) -> None:
        """Disconnects, behind a call that is under way."""
        with self._lock:
            self._reader.stop()


def _is_of_journal(call: Call, options: Options) -> bool:
    return call.use in ("read", "stream") and bool(options["mode"] == "journal")


def _partition(access: Access, call: Call, options: Options) -> InputPartition:
    """The partition that is asked for. Raises MQError, 2035; WrongRequest."""
    where = host.here()
    partition = protocol.partition_from(call.fields["partition"], where)
    if isinstance(partition, JournalPart) != _is_of_journal(call, options):
        raise WrongRequest("the partition is of another mode")
    if isinstance(partition, JournalPart):
        from ..source.journal import directory_of

        return partition.of(directory_of(options), where)
    right = "browse" if call.use == "read" else "get"
    for queue in protocol.queues_of(partition):
        access.check(call.manager, queue, right)
    return partition


def _reader(use: str, options: Options, schema: StructType) -> Any:
    """Raises VersionError: the server's PySpark is too old for a stream."""
    if use == "read" and options["mode"] == "journal":
        from ..source.journal import JournalReader

        return JournalReader(options, schema)
    if use == "read":
        from ..source.browse import BrowseReader

        return BrowseReader(options, schema)
    require("a streaming source")
    if options["mode"] == "journal":
        from ..source.journal_stream import JournalStreamReader

        return JournalStreamReader(options, schema)
    from ..source.stream import StreamReader

    return StreamReader(options, schema, has_listener=True)  # the client warns


def _sink(options: Options, schema: StructType) -> Sink:
    from ..sink.writer import Sink

    return Sink(options, schema)


def _schema(call: Call) -> StructType:
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(call.schema))


def _limit(found: list[Any]) -> Any:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

    match found:
        case ["all"]:
            return ReadAllAvailable()
        case ["rows", int(most)] if most > 0:
            return ReadMaxRows(most)
        case ["bytes", int(most)] if most > 0:
            return ReadMaxBytes(most)
    raise WrongRequest(f"limit is {found!r:.80}")


def _plan_of(partitions: Any) -> list[dict[str, Any]]:
    return [protocol.partition_json(one) for one in partitions]


def _piece(batches: Iterator[Any]) -> list[Any]:
    """The rows of a piece, once it is complete. Raises SourceError: it is too large."""
    found, size = [], 0
    for batch in batches:
        size += batch.nbytes
        if size > _MOST_PIECE:
            raise SourceError(f"a task sends more than {_MOST_PIECE} bytes at a time")
        found.append(batch)
    return found


@contextmanager
def _refusals() -> Iterator[None]:
    """Makes errors of the data source those of an extension."""
    try:
        yield
    except SourceError as error:
        raise Refusal(protocol.kind_of(error), str(error)) from error
    except DamagedFile as error:
        raise Refusal(SourceError.__name__, f"the journal: {error}") from error


def _rows(batches: Iterator[Any]) -> Iterator[Any]:
    with _refusals():
        yield from batches


def _sent(work: Callable[[], _Made]) -> _Made:
    """The result; what is wrong with values that were sent is an error of the request."""
    try:
        return work()
    except (SourceError, penstock.MQError):
        raise
    except _BAD as error:
        raise WrongRequest(f"the request has values that do not fit: {error!r:.100}") from error


_ACTIONS: Mapping[str, Callable[[SparkService, Any, Call], Any]] = {
    "hello": SparkService._hello,
    "plan": SparkService._plan,
    "initial": SparkService._initial,
    "latest": SparkService._latest,
    "report": SparkService._report,
    "commit": SparkService._commit,
    "bind": SparkService._bind,
    "alive": SparkService._alive,
    "stop": SparkService._stop,
    "check": SparkService._check,
    "end": SparkService._end,
    "drop": SparkService._drop,
}

"""What the server does on its queue managers, without the transport.

Exactly once. A unit is named by its client, and an attempt of it by a number. What a call leaves is
found by these names, so a call that is repeated finds what the first one did:

* *put* and *take* prepare the unit; repeated, they say ``prepared``, and a put is refused when its
  rows are others (count and checksum). After the commit they say ``committed`` and do nothing.
* *commit* commits all parts and an entry of the ledger in one atomic call. Repeated, it finds the
  entry.
* *backout* returns or drops the messages; repeated, it finds nothing to do. A unit that was
  committed is refused.
* A later attempt *fences* an earlier one: it backs out what that one has prepared, and from then on
  its calls are refused.
* A put whose client is believed lost may still arrive through a link that is slow to end. When
  another call has prepared, committed or backed out the unit, it puts nothing more and leaves
  nothing.
* Once an attempt is committed, calls of any attempt say ``committed``, for a week: the ledger's
  entry expires then.

States after a death of the server, the client or the queue manager: parts without an end are backed
out by the next call for the unit, or when their lease is over; a whole run stays prepared until it
is committed, backed out, fenced, or its lease is over; a unit of the ledger that is left prepared
is backed out by the next commit.

Leases. What is prepared and not committed within the lease is backed out. A put whose client sends
nothing for a while is backed out before it is prepared.

Locks: one for each unit's name, which no call holds while it waits for a client.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import penstock
from penstock.arrow.messages_from_arrow import bodies, check_columns, fields, null_body
from penstock.client import ledger as ledgers
from penstock.constants import ReasonCode
from penstock.errors import BackedOut, InvalidValue, MQError, UnknownXid

from . import rows
from .access import Access
from .requests import Request
from .unit_names import GET, PUT, End, Run, Unit, new_word, owner_of

if TYPE_CHECKING:
    from penstock import Queue, QueueManager

__all__ = ["LEDGER", "Service"]

LEDGER = "SYSTEM.FLIGHT.LEDGER"
_DESCRIPTION = "what units of work of remote clients were committed"
_KEPT_SECONDS = 7 * 86_400.0  # an entry of the ledger
_UNIT_MESSAGES = 50_000  # of a part, however high MAXUMSGS is
_MOST_PARTS = 4_000  # of a run: one commit takes them all
_PERSISTENT = 1  # MQPER_PERSISTENT
_LOCKS = 64
_MOST_REMEMBERED = 100_000  # attempts that have begun
_SYSTEM = "SYSTEM."


class Service:
    """The queue managers that are served, and what is under way."""

    def __init__(
        self,
        connect: Mapping[str, Callable[[], QueueManager]],
        lease_seconds: float,
        stall_seconds: float,
    ) -> None:
        """Connects to nothing yet.

        Args:
            connect: Makes a connection, by the name of the queue manager.
            lease_seconds: After which what is prepared is backed out.
            stall_seconds: After which a put is backed out whose client sends nothing.
        """
        self._connect = dict(connect)
        self._lease, self._stall = lease_seconds, stall_seconds
        self._managers: dict[str, QueueManager] = {}
        self._lock = threading.Lock()
        self._locks = [threading.Lock() for _ in range(_LOCKS)]
        self._newest: dict[tuple[str, Unit], int] = {}  # attempts that have begun
        self._puts: set[_Put] = set()  # whose clients send

    # ---- reading ----

    def browse(self, access: Access, request: Request) -> tuple[Any, Iterator[Any]]:
        """Schema, and record batches of the messages on a queue; nothing is taken."""
        access.check(request.manager, request.queue, "browse")
        return rows.browsed(self._manager(request.manager), request)

    def ranges(self, access: Access, request: Request) -> list[dict[str, Any]]:
        """Ranges of a queue for browses side by side."""
        access.check(request.manager, request.queue, "browse")
        return rows.ranges_of(self._manager(request.manager), request)

    def read(self, access: Access, request: Request) -> tuple[Any, Iterator[Any]]:
        """Schema, and record batches of what a unit has taken."""
        access.check(request.manager, None, "get")
        unit = Unit(access.name, request.unit)
        qm = self._manager(request.manager)
        run = self._whole(qm, unit, request.attempt)
        if run.end is None or run.end.kind != GET:
            raise _wrong(f"unit {unit.name} puts: there is nothing to read")
        return rows.taken(qm, run, request)

    def journal(self, access: Access, request: Request) -> tuple[Any, Iterator[Any]]:
        """Schema, and record batches of the events of decided units of work."""
        access.check_journal(request.manager, request.queues)
        return rows.journal_of(self._manager(request.manager), request)

    def journal_range(self, access: Access, request: Request) -> dict[str, Any]:
        """From where to where the journal can be read."""
        access.check(request.manager, None, "browse")
        return rows.journal_range(self._manager(request.manager))

    def queues(self, access: Access, request: Request) -> list[dict[str, Any]]:
        """Name and depth of each local queue that the client may use."""
        access.check(request.manager)
        found = self._manager(request.manager).display("QLOCAL")
        return [
            {"queue": own["name"], "depth": own["curdepth"]}
            for own in found
            if access.sees(str(own["name"])) and not str(own["name"]).startswith(_SYSTEM)
        ]

    def units(self, access: Access, request: Request) -> list[dict[str, Any]]:
        """The client's units that are prepared."""
        access.check(request.manager)
        qm = self._manager(request.manager)
        xids = qm.recover()
        owners = {unit for xid in xids if (unit := owner_of(xid)) and unit.client == access.name}
        return [
            {"unit": unit.name, "attempt": run.attempt, **_answer(run)}
            for unit in sorted(owners)
            for run in unit.runs(xids)
            if run.is_whole
        ]

    # ---- putting ----

    def put(
        self, access: Access, request: Request, batches: Iterator[Any], schema: Any
    ) -> dict[str, Any]:
        """Puts rows in a unit, and prepares it.

        Raises:
            MQError: As put_batch(); 2046: the rows are others than those of the same attempt, or
                have a column that no message has.
        """
        access.check(request.manager, request.queue, "put")
        check_columns(schema)
        unit = Unit(access.name, request.unit)
        qm = self._manager(request.manager)
        with self._locked(request.manager, unit):
            known = self._begin(qm, request, unit)
            if known is None or known["state"] == "prepared":
                put = self._begin_put(_Put(qm, request, unit), is_prepared=known is not None)
                known = None
        if known is not None:
            for _ in batches:  # a client that is answered while it sends takes that for an error
                pass
            return known
        try:
            for batch in batches:
                put.add(batch)
            with self._locked(request.manager, unit):
                return self._end_put(qm, request, unit, put)
        finally:
            with self._lock:
                self._puts.discard(put)
            put.close()

    def _begin_put(self, put: _Put, is_prepared: bool) -> _Put:
        if is_prepared:
            put.step_aside()
        with self._lock:
            self._puts.add(put)
        return put

    def _end_put(self, qm: QueueManager, request: Request, unit: Unit, put: _Put) -> dict[str, Any]:
        known = self._known(qm, request, unit)
        if known is None:
            self._sweep(qm, unit, keep=put)
            return put.prepare()
        if known["state"] == "prepared" and known.get("sum") != put.sum:
            raise _wrong(
                f"unit {unit.name}, attempt {request.attempt}, was put with {known['messages']} "
                f"messages of another content: a call is repeated with the same rows, new ones "
                "need another attempt"
            )
        return known

    # ---- taking ----

    def take(self, access: Access, request: Request) -> dict[str, Any]:
        """Takes messages into a unit, highest priority first, and prepares it.

        messages and bytes of the request are its limits; 0: none.
        """
        access.check(request.manager, request.queue, "get")
        unit = Unit(access.name, request.unit)
        qm = self._manager(request.manager)
        with self._locked(request.manager, unit):
            known = self._begin(qm, request, unit)
            if known is None:
                self._sweep(qm, unit)
                return _take(qm, request, unit)
        if "sum" in known:
            raise _wrong(f"unit {unit.name} puts: it cannot take")
        return known

    # ---- deciding ----

    def commit(self, access: Access, request: Request) -> dict[str, Any]:
        """Commits a unit; one of its attempts. Raises UnknownXid, 2255: it is not prepared."""
        access.check(request.manager)
        unit = Unit(access.name, request.unit)
        qm = self._manager(request.manager)
        with self._locked(request.manager, unit):
            with ledgers.ledger(qm, LEDGER, _DESCRIPTION) as book:
                with suppress(UnknownXid):  # of a process that was killed in a commit
                    qm.backout_prepared(unit.ledger)
                done = _committed(book.read(unit.owner))
                if done is not None:
                    return done
                run = self._whole(qm, unit, request.attempt)
                messages = int(_answer(run)["messages"])
                entry = {"attempt": run.attempt, "messages": messages, "time": int(time.time())}
                book.prepare(unit.owner, entry, unit.ledger, _KEPT_SECONDS)
                qm.commit_prepared(*run.xids(), unit.ledger)
            return {"state": "committed", "messages": messages, "attempt": run.attempt}

    def backout(self, access: Access, request: Request) -> dict[str, Any]:
        """Backs a unit out, with what is left of earlier attempts. Raises InvalidValue, 2046: it
        was committed.
        """
        access.check(request.manager)
        unit = Unit(access.name, request.unit)
        qm = self._manager(request.manager)
        with self._locked(request.manager, unit):
            if ledgers.look(qm, LEDGER, unit.owner) is not None:
                raise _wrong(f"unit {unit.name} was committed")
            self._sweep(qm, unit, newest=request.attempt)
        return {"state": "backed out", "messages": 0}

    # ---- names ----

    def _begin(self, qm: QueueManager, request: Request, unit: Unit) -> dict[str, Any] | None:
        """What is known of an attempt that begins; from now on earlier ones are refused. The unit's
        lock is held.
        """
        known = self._known(qm, request, unit)
        with self._lock:
            self._newest.pop((request.manager, unit), None)  # so that the newest are the last
            self._newest[request.manager, unit] = request.attempt
            while len(self._newest) > _MOST_REMEMBERED:
                del self._newest[next(iter(self._newest))]
        return known

    def _known(self, qm: QueueManager, request: Request, unit: Unit) -> dict[str, Any] | None:
        """The answer of an attempt that is prepared or committed; None: it is neither.

        Raises:
            MQError: 2003: a later attempt has fenced it.
        """
        done = _committed(ledgers.look(qm, LEDGER, unit.owner))
        if done is not None:
            return done
        runs = unit.runs(qm.recover())
        newest = max([run.attempt for run in runs if run.is_whole], default=0)
        with self._lock:
            newest = max(newest, self._newest.get((request.manager, unit), 0))
        if newest > request.attempt:
            raise _fenced(unit, request.attempt, newest)
        whole = [run for run in runs if run.is_whole and run.attempt == request.attempt]
        return _answer(whole[0]) if whole else None

    def _whole(self, qm: QueueManager, unit: Unit, attempt: int) -> Run:
        """The prepared run of an attempt. Raises UnknownXid, 2255: there is none."""
        for run in unit.runs(qm.recover()):
            if run.attempt == attempt and run.is_whole:
                return run
        text = f"unit {unit.name}, attempt {attempt}, is not prepared: it was never complete, was "
        text += "backed out or fenced, or its lease is over"
        raise UnknownXid(ReasonCode.UOW_NOT_AVAILABLE, text)

    def _sweep(
        self, qm: QueueManager, unit: Unit, keep: _Put | None = None, newest: int | None = None
    ) -> None:
        """Backs out a unit but for one put: all attempts, or those up to one. What other puts of it
        have done is backed out by themselves, and they do no more.
        """

        def is_swept(attempt: int, word: str) -> bool:
            is_kept = keep is not None and word == keep.run.word
            return not is_kept and (newest is None or attempt <= newest)

        with self._lock:
            own = [put for put in self._puts if (put.manager, put.unit) == (qm.name, unit)]
        for put in own:
            if is_swept(put.run.attempt, put.run.word):
                put.step_aside()
        for run in unit.runs(qm.recover()):
            if is_swept(run.attempt, run.word):
                _back_out(qm, run)

    # ---- now and then ----

    def look(self) -> None:
        """Ends leases, and leaves queue managers that are ending."""
        now = time.monotonic()
        with self._lock:
            stalled = [put for put in self._puts if now - put.moved > self._stall]
            managers = list(self._managers.values())
        for put in stalled:
            put.stall()
        for qm in managers:
            with suppress(MQError):  # it has ended
                if qm.status().quiescing:
                    self._leave(qm)
                else:
                    self._end_leases(qm)

    def _leave(self, qm: QueueManager) -> None:
        """Disconnects, so that ``penstock end`` need not wait; what is not prepared is backed out.
        Later calls say that it is ending, and connect once it has been started again.
        """
        with self._lock:
            self._managers.pop(qm.name, None)
        qm.detach(commit=False)

    def _end_leases(self, qm: QueueManager) -> None:
        oldest = (time.time() - self._lease) * 1_000_000
        due = {one.xid for one in qm.prepared_list() if one.prepared_us < oldest}
        for unit in {unit for xid in due if (unit := owner_of(xid))}:
            with self._locked(qm.name, unit):
                for run in unit.runs(qm.recover()):
                    if due.issuperset(run.xids()):
                        self._end_lease(qm, run)
                if unit.ledger in due:  # of a commit that was interrupted
                    with suppress(UnknownXid):
                        qm.backout_prepared(unit.ledger)

    def _end_lease(self, qm: QueueManager, run: Run) -> None:
        with self._lock:
            own = [put for put in self._puts if put.run.word == run.word]
        for put in own:
            put.step_aside()
        _back_out(qm, run)

    def close(self) -> None:
        """Backs out what is being put, and disconnects."""
        with self._lock:
            puts, managers = list(self._puts), list(self._managers.values())
            self._managers = {}
        for put in puts:
            put.close()
        for qm in managers:
            with suppress(MQError):
                qm.detach(commit=False)

    # ---- connections ----

    def _manager(self, name: str) -> QueueManager:
        """The connection to a queue manager, made anew when it has ended."""
        with self._lock:
            if name not in self._connect:
                text = f"this server has no queue manager {name}"
                raise penstock.QueueManagerNameError(ReasonCode.Q_MGR_NAME_ERROR, text)
            qm = self._managers.get(name)
            if qm is None or qm.closed or not _is_alive(qm):
                qm = self._managers[name] = self._connect[name]()
            return qm

    @contextmanager
    def _locked(self, manager: str, unit: Unit) -> Iterator[None]:
        with self._locks[hash((manager, unit)) % _LOCKS]:
            yield


class _Put:
    """Rows of a client in an open unit of work, with prepared parts behind it.

    Other threads end it (stall, step_aside, close) while its own waits for the client. Its lock is
    around all that is done to its units of work.
    """

    def __init__(self, qm: QueueManager, request: Request, unit: Unit) -> None:
        self.manager, self.unit = request.manager, unit
        self.run = Run(request.attempt, new_word())  # of what is prepared and not backed out
        self.moved = time.monotonic()  # when the client has sent something
        self._is_stalled = self._is_aside = self._is_whole = False
        self._lock = threading.Lock()
        self._qm = qm
        self._queue: Queue = qm.open(request.queue, input=False, browse=False)
        self._work = qm.unit()
        self._most = min(_UNIT_MESSAGES, int(str(qm.display("QMGR")[0]["maxumsgs"])))
        self._in_part = self._messages = 0
        self._sums = [0, 0]  # of bodies, of their lengths

    @property
    def sum(self) -> str:
        """Of the rows so far."""
        return "".join(f"{one:08x}" for one in self._sums)

    def add(self, batch: Any) -> None:
        """Puts the rows of a record batch."""
        self.moved = time.monotonic()
        at = 0
        while at < batch.num_rows:
            part = batch.slice(at, self._most - self._in_part)
            self._add(part)
            at += part.num_rows
            if self._in_part == self._most:
                self._prepare_part()

    def _add(self, part: Any) -> None:
        null = null_body(part)
        if null is not None:
            raise _wrong(f"row {self._messages + null} has no body")
        raw = bodies(part)
        with self._lock:
            self._check()
            if not self._is_aside:
                self._queue.put_batch(raw, unit=self._work, **fields(part, _PERSISTENT))
        self._sums = _added(self._sums, raw)
        self._messages += part.num_rows
        self._in_part += part.num_rows

    def _prepare_part(self) -> None:
        self._in_part = 0
        with self._lock:
            self._check()
            if self._is_aside:
                return
            number = len(self.run.parts)
            if number == _MOST_PARTS:
                text = f"a unit has at most {_MOST_PARTS * self._most} messages here"
                raise MQError(ReasonCode.SYNCPOINT_LIMIT_REACHED, text)
            xid = self.unit.part(self.run.attempt, self.run.word, number)
            self._work.prepare(xid, allow_empty=True, wait=False)
            self.run.parts[number] = xid
            self._work = self._qm.unit()

    def prepare(self) -> dict[str, Any]:
        """Prepares the rest, and the end; all of it is durable on return."""
        if self._in_part or not self.run.parts:
            self._prepare_part()
        end = End(PUT, len(self.run.parts), self._messages, self.sum)
        with self._lock:
            self._check()
            if self._is_aside:
                text = f"unit {self.unit.name} was backed out while its messages were put"
                raise BackedOut(ReasonCode.BACKED_OUT, text)
            xid = self.unit.end(self.run.attempt, self.run.word, end)
            self._work.prepare(xid, allow_empty=True)
            self._is_whole = True
        return {"state": "prepared", "messages": end.messages, "sum": end.sum}

    def _check(self) -> None:
        if self._is_stalled:
            text = f"unit {self.unit.name}: its client sent nothing for too long"
            raise BackedOut(ReasonCode.BACKED_OUT, text)

    def stall(self) -> None:
        """Backs it out because the client sends nothing: what it sends later is refused."""
        with self._lock:
            self._is_stalled = True
            self._back_out()

    def step_aside(self) -> None:
        """Backs it out because another call decides what becomes of the unit. What the client sends
        later is only counted: a call that is repeated is answered as the first one.
        """
        with self._lock:
            self._is_aside = True
            self._back_out()

    def close(self) -> None:
        """Backs out what is not a whole run."""
        with self._lock:
            self._back_out()
            self._queue.close()

    def _back_out(self) -> None:
        with suppress(MQError):
            self._work.backout()
        if not self._is_whole:
            with suppress(MQError):  # else the unit's next call does it
                _back_out(self._qm, self.run)
            self.run.parts.clear()


# ---- messages ----


def _take(qm: QueueManager, request: Request, unit: Unit) -> dict[str, Any]:
    most = request.messages or 1 << 62
    room = request.bytes or 1 << 62
    size = min(_UNIT_MESSAGES, int(str(qm.display("QMGR")[0]["maxumsgs"])))
    run, messages, taken = Run(request.attempt, new_word()), 0, 0
    work = qm.unit()
    try:
        with qm.open(request.queue, input=True, output=False) as queue:
            while messages < most and taken < room and len(run.parts) < _MOST_PARTS:
                got, got_bytes = queue.take_batch_uncopied(
                    min(size, most - messages), max_bytes=room - taken, unit=work
                )
                if not got and run.parts:
                    break
                number = len(run.parts)
                xid = unit.part(run.attempt, run.word, number)
                work.prepare(xid, allow_empty=True, wait=False)
                run.parts[number] = xid
                work = qm.unit()
                messages, taken = messages + got, taken + got_bytes
                if not got:
                    break
        end = End(GET, len(run.parts), messages, str(taken))
        work.prepare(unit.end(run.attempt, run.word, end), allow_empty=True)
    except BaseException:
        with suppress(MQError):  # else the unit's next call does it
            work.backout()
            _back_out(qm, run)
        raise
    return {"state": "prepared", "messages": messages, "bytes": taken}


def _added(sums: list[int], raw: Any) -> list[int]:
    """Checksums of bodies and of their lengths, however they are divided into batches."""
    import numpy as np
    import pyarrow as pa

    raw = raw.cast(pa.large_binary())
    _, offsets, data = raw.buffers()
    ends = np.frombuffer(offsets, np.int64, len(raw) + 1, raw.offset * 8)
    body = memoryview(data)[int(ends[0]) : int(ends[-1])] if data is not None else b""
    return [zlib.crc32(body, sums[0]), zlib.crc32(np.diff(ends).tobytes(), sums[1])]


# ---- answers and errors ----


def _answer(run: Run) -> dict[str, Any]:
    assert run.end is not None
    answer: dict[str, Any] = {"state": "prepared", "messages": run.end.messages}
    if run.end.kind == PUT:
        return {**answer, "sum": run.end.sum}
    return {**answer, "bytes": int(run.end.sum)}


def _committed(entry: dict[str, Any] | None) -> dict[str, Any] | None:
    """The answer of a unit that was committed; None: it was not."""
    if entry is None:
        return None
    return {"state": "committed", "messages": entry["messages"], "attempt": entry["attempt"]}


def _back_out(qm: QueueManager, run: Run) -> None:
    for xid in reversed(run.xids()):  # the end first: what has none is no run any more
        with suppress(UnknownXid):
            qm.backout_prepared(xid)


def _is_alive(qm: QueueManager) -> bool:
    try:
        qm.status()
    except MQError:
        return False
    return True


def _wrong(text: str) -> InvalidValue:
    return InvalidValue(ReasonCode.OPTIONS_ERROR, text)


def _fenced(unit: Unit, attempt: int, newest: int) -> MQError:
    text = f"unit {unit.name}: attempt {newest} has fenced attempt {attempt}"
    return BackedOut(ReasonCode.BACKED_OUT, text)

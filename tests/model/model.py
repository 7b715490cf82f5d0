"""A reference model of one queue manager: the result of each call of the MQI, and the state of the
queue manager, in plain Python and as short as possible. It is written from the reference, not from
the engine: an executable specification, which the tests compare the engine with.

It has no files, processes' memory or time. Where no document fixes an outcome, it allows every
plausible one (Failure with several reasons, Anything).

Modules: `model_state` (the state), `model_names` (name resolution), `model_open` (MQOPEN, MQCLOSE),
`model_put`, `model_get`, `model_triggers`, `model_attributes` (MQINQ, MQSET), `model_session` (the
Python interface: batches, prepared units of work). Numbers of sections are those of the reference.
"""

from __future__ import annotations

from typing import Any

import model_get
import model_put
import model_reports
import model_session
import model_triggers
from model_attributes import inquire, set_attributes
from model_open import close_object, delete_queue, let_go, open_object
from model_state import (
    Answer,
    Connection,
    Definition,
    Failure,
    LocalQueue,
    Near,
    Unit,
    answer,
    refuse_if,
)
from mq_numbers import R

NPMCLASS_HIGH = 10


class QueueManager:
    """The model. Connections and handles are known by numbers that the caller chooses.

    surroundings: what the queue manager takes from where it runs: CodedCharSetId, UserIdentifier,
    AccountingToken, PutApplType, PutApplName.
    """

    def __init__(self, name: str, surroundings: dict[str, Any], zos: bool = False) -> None:
        self.name = name
        self.zos = zos
        self.surroundings = surroundings
        self.manager = Definition("QMGR", name, {})
        self.objects: dict[str, Definition] = {}
        self.logically_deleted: dict[str, LocalQueue] = {}  # z/OS: names still in use
        self.connections: dict[int, Connection] = {}
        self.sessions: dict[int, model_session.Session] = {}  # by process
        self.prepared: dict[int, Unit] = {}  # by name, oldest first
        self._number = 0

    def next_number(self) -> int:
        """Arrival: rises with each put."""
        self._number += 1
        return self._number

    def newest(self) -> int:
        """The highest number that a message may have by now."""
        return self._number

    def queues(self) -> list[LocalQueue]:
        return [queue for queue in self.objects.values() if isinstance(queue, LocalQueue)]

    def forget_deleted(self) -> None:
        """Physical deletion: no handle and no unit of work knows the queue any more."""
        for name, queue in list(self.logically_deleted.items()):
            if not queue.handles and not queue.busy():
                del self.logically_deleted[name]

    # ---- the calls ----

    def connect(self, process: int, hconn: int) -> Answer:
        """MQCONNX for a new handle."""
        self.connections[hconn] = Connection(process)
        return answer()

    def call(self, verb: str, hconn: int, **arguments: Any) -> Answer:
        """A verb on a connection."""
        try:
            if hconn not in self.connections:
                raise Failure(R.HCONN_ERROR)
            return getattr(self, verb.lower())(self.connections[hconn], **arguments)
        except Failure as failure:
            return Answer(failure.reasons, {})

    def session_call(self, do: str, process: int, **arguments: Any) -> Answer:
        """A call at the Python interface."""
        session = self.sessions.setdefault(process, model_session.Session(process))
        try:
            return model_session.CALLS[do](self, session, **arguments)
        except Failure as failure:
            return Answer(failure.reasons, {})

    def mqopen(self, connection: Connection, hobj: int, od: dict, options: int) -> Answer:
        return open_object(self, connection, hobj, od, options)

    def mqclose(self, connection: Connection, hobj: int, options: int) -> Answer:
        self._handle(connection, hobj)
        return close_object(self, connection, hobj, options)

    def mqput(self, connection: Connection, hobj: int, **arguments: Any) -> Answer:
        handle = self._handle(connection, hobj)
        return model_put.put(self, connection, handle, **arguments)

    def mqput1(self, connection: Connection, **arguments: Any) -> Answer:
        return model_put.put1(self, connection, **arguments)

    def mqget(self, connection: Connection, hobj: int, **arguments: Any) -> Answer:
        handle = self._handle(connection, hobj)
        return model_get.get(self, connection, handle, **arguments)

    def mqinq(self, connection: Connection, hobj: int, selectors: list[int]) -> Answer:
        return inquire(self._handle(connection, hobj), selectors)

    def mqset(self, connection: Connection, hobj: int, values: dict[int, Any]) -> Answer:
        handle = self._handle(connection, hobj)
        result = set_attributes(handle, values)
        if isinstance(handle.definition, LocalQueue):
            model_triggers.changed(self, handle.definition.name)
        return result

    def mqcmit(self, connection: Connection) -> Answer:
        whole = connection.unit.commit()
        self.forget_deleted()
        return answer() if whole else answer(R.BACKED_OUT)

    def mqback(self, connection: Connection) -> Answer:
        connection.unit.back_out()
        self.forget_deleted()
        return answer()

    def mqdisc(self, connection: Connection) -> Answer:
        """Commits, and closes everything with MQCO_NONE (6.1)."""
        whole = connection.unit.commit()
        self._let_go_of_all(connection)
        return answer() if whole else answer(R.BACKED_OUT)

    def _handle(self, connection: Connection, hobj: int) -> Any:
        refuse_if((hobj not in connection.handles, R.HOBJ_ERROR))
        return connection.handles[hobj]

    def _let_go_of_all(self, connection: Connection) -> None:
        for hobj in list(connection.handles):
            let_go(self, connection, hobj)
        self.connections = {k: v for k, v in self.connections.items() if v is not connection}
        self.sessions = {k: v for k, v in self.sessions.items() if v is not connection}
        self.forget_deleted()

    # ---- ends (6.2, 1.4) ----

    def process_ends(self, process: int, normally: bool = False) -> None:
        """A process ends without MQDISC: its units of work are backed out, on z/OS committed unless
        it was killed.
        """
        for connection in [*self.connections.values(), *self.sessions.values()]:
            if connection.process == process:
                if normally and self.zos:
                    connection.unit.commit()
                connection.unit.back_out()
                self._let_go_of_all(connection)

    def restart(self, orderly: bool) -> None:
        """Everybody is gone, in order or killed; the next one to connect finds this."""
        for connection in [*self.connections.values(), *self.sessions.values()]:
            self.process_ends(connection.process)
        for unit in self.prepared.values():
            model_session.survive_restart(unit)
        for queue in self.queues():
            if queue.temporary:
                delete_queue(self, queue)
            kept = orderly and queue["NPMCLASS"] == NPMCLASS_HIGH
            queue.messages = [m for m in queue.messages if m.persistent or m.taken or kept]
            queue.trigger_due = False
        self.logically_deleted.clear()

    # ---- administration ----

    def define(self, kind: str, name: str, attrs: dict[str, Any]) -> Answer:
        if name in self.objects:
            return answer(R.OBJECT_ALREADY_EXISTS)
        if self.zos and kind in ("QLOCAL", "QMODEL"):
            attrs = {"MAXDEPTH": 999999999, **attrs}  # the default there (7.2)
        make = LocalQueue(name, attrs) if kind == "QLOCAL" else Definition(kind, name, attrs)
        self.objects[name] = make
        return answer()

    def alter(self, kind: str, name: str, attrs: dict[str, Any]) -> Answer:
        if kind == "QMGR":
            self.manager.alter(attrs)
            return answer()
        if name not in self.objects:
            return answer(R.UNKNOWN_OBJECT_NAME)
        self.objects[name].alter(attrs)
        if kind in ("QLOCAL", "PROCESS"):
            model_triggers.changed(self, name)
        return answer()

    def delete(self, kind: str, name: str, purge: bool) -> Answer:
        found = self.objects.get(name)
        if found is None:
            return answer(R.UNKNOWN_OBJECT_NAME)
        if isinstance(found, LocalQueue):
            try:
                refuse_if(
                    (found.handles, R.OBJECT_IN_USE),
                    (found.busy() or (found.messages and not purge), R.Q_NOT_EMPTY),
                )
            except Failure as failure:
                return Answer(failure.reasons, {})
            delete_queue(self, found)
        else:
            del self.objects[name]
            found.deleted = True
        return answer()

    def sleep(self) -> Answer:
        """A fifth of a second passes: the shortest Expiry is over."""
        for queue in self.queues():
            for message in queue.messages:
                expiry = message.md["Expiry"]
                message.expired |= isinstance(expiry, Near) and expiry.given == 1
        return answer()

    # ---- a full picture ----

    def dump(self) -> dict[str, dict[str, Any]]:
        """Every queue as another process browses it with a new handle; `messages` is None when
        gets are inhibited.
        """
        for queue in self.queues():
            for message in list(queue.messages) if not queue["GET"] else ():
                if message.expired and message.available(None):
                    model_reports.expire(self, queue, message)
        return {queue.name: self._picture(queue) for queue in self.queues()}

    def _picture(self, queue: LocalQueue) -> dict[str, Any]:
        if queue["GET"]:
            return {"depth": queue.depth(), "messages": None}
        queue.messages = [m for m in queue.messages if not (m.expired and m.available(None))]
        visible = [m for m in queue.messages if m.available(None)]
        shown = [{"md": {**m.md, "BackoutCount": m.backout_count}, "data": m.data} for m in visible]
        return {"depth": queue.depth(), "messages": shown}

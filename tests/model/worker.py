"""A process that makes MQI calls on request: it reads operations from a socket and answers.

Run as a program it forks workers: it has imported the package, attaches to nothing, and forks a
worker for each request, which takes a millisecond instead of the start of an interpreter.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from worker_session import SessionWorker

import penstock
from penstock import mqi

LENGTH = struct.Struct("<I")
NOBODY = 7777777  # an Hobj that no MQOPEN returned
HANDLES_SHARED = 64  # MQCNO_HANDLE_SHARE_BLOCK: a new connection handle
MD_NAMES = (
    "Report MsgType Expiry Feedback Encoding CodedCharSetId Format Priority Persistence MsgId "
    "CorrelId BackoutCount ReplyToQ ReplyToQMgr UserIdentifier AccountingToken ApplIdentityData "
    "PutApplType PutApplName PutDate PutTime ApplOriginData"
)
MD_FIELDS = MD_NAMES.split()
MD_FIELDS_2 = ["GroupId", "MsgSeqNumber", "Offset", "MsgFlags", "OriginalLength"]
INQUIRE, BROWSE, BROWSE_NEXT, CURRENT_Q_DEPTH = 32, 8, 32, 3


def send(channel: socket.socket, value: object) -> None:
    raw = pickle.dumps(value)
    channel.sendall(LENGTH.pack(len(raw)) + raw)


def receive(channel: socket.socket) -> Any:
    """The next value. Raises EOFError when the other side is gone."""
    (length,) = LENGTH.unpack(_exactly(channel, LENGTH.size))
    return pickle.loads(_exactly(channel, length))


def _exactly(channel: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        try:
            part = channel.recv(length - len(parts))
        except ConnectionResetError:
            part = b""
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def describe_md(md: Any) -> dict[str, Any]:
    names = MD_FIELDS + (MD_FIELDS_2 if md.Version >= 2 else [])
    return {name: getattr(md, name) for name in names}


class Worker:
    """Connections and handles of one process, by the numbers that the caller chose."""

    def __init__(self, home: str, name: str) -> None:
        self.name = name
        self.connections: dict[int, Any] = {}
        self.handles: dict[int, Any] = {}
        # A process that lives is attached: with the last one that is, the queue manager ends.
        self.manager = penstock.connect(name, home)
        self.own: Any = None
        self.session = SessionWorker(self.manager)

    def run(self, op: dict[str, Any]) -> Any:
        """One operation: (completion code, reason code, values)."""
        arguments = {key: value for key, value in op.items() if key not in ("do", "at")}
        if hasattr(SessionWorker, "do_" + op["do"]):
            return self.session.run(op["do"], arguments)
        call: Callable[..., Any] = getattr(self, "do_" + op["do"].lower())
        return call(**arguments)

    def _connection(self, hconn: int) -> Any:
        return self.connections.get(hconn, mqi.MQHC_UNUSABLE_HCONN)

    def _handle(self, hobj: int) -> Any:
        return self.handles.get(hobj, NOBODY)

    # ---- the calls ----

    def do_connect(self, hconn: int) -> Any:
        options = mqi.MQCNO(Options=HANDLES_SHARED)
        self.connections[hconn], cc, rc = mqi.MQCONNX(self.name, options)
        return cc, rc, {}

    def do_mqdisc(self, hconn: int) -> Any:
        cc, rc = mqi.MQDISC(self._connection(hconn))
        return cc, rc, {}

    def do_mqopen(self, hconn: int, hobj: int, od: dict[str, Any], options: int) -> Any:
        made = self._od(od)
        handle, cc, rc = mqi.MQOPEN(self._connection(hconn), made, options)
        if cc != 2:
            self.handles[hobj] = handle
        names = ["ObjectName", "ObjectQMgrName"]
        if made.Version >= 3:
            names += ["ResolvedQName", "ResolvedQMgrName"]
        values = {name: getattr(made, name) for name in names}
        return cc, rc, {**values, **self._responses(made)}

    def _od(self, od: dict[str, Any]) -> Any:
        fields = dict(od)
        records = fields.pop("ObjectRecs", None)
        made = mqi.MQOD(**fields)
        if records:
            made.RecsPresent = len(records)
            made.ObjectRecs = [mqi.MQOR(ObjectName=q, ObjectQMgrName=m) for q, m in records]
            made.ResponseRecs = [mqi.MQRR(CompCode=-9, Reason=-9) for _ in records]
        return made

    def _responses(self, made: Any) -> dict[str, Any]:
        if made.Version < 2 or not getattr(made, "ResponseRecs", None):
            return {}
        reasons = [record.Reason for record in made.ResponseRecs]
        return {"ResponseRecs": None if set(reasons) == {-9} else reasons}

    def do_mqclose(self, hconn: int, hobj: int, options: int) -> Any:
        cc, rc = mqi.MQCLOSE(self._connection(hconn), self._handle(hobj), options)
        return cc, rc, {}

    def do_mqput(self, hconn: int, hobj: int, md: Any, pmo: Any, data: bytes) -> Any:
        made_md, made_pmo = mqi.MQMD(**md), self._pmo(pmo)
        connection, handle = self._connection(hconn), self._handle(hobj)
        cc, rc = mqi.MQPUT(connection, handle, made_md, made_pmo, data)
        return cc, rc, {**self._put_values(made_md, made_pmo), **self._responses(made_pmo)}

    def do_mqput1(self, hconn: int, od: Any, md: Any, pmo: Any, data: bytes) -> Any:
        made_od, made_md, made_pmo = self._od(od), mqi.MQMD(**md), self._pmo(pmo)
        cc, rc = mqi.MQPUT1(self._connection(hconn), made_od, made_md, made_pmo, data)
        return cc, rc, {**self._put_values(made_md, made_pmo), **self._responses(made_od)}

    def _pmo(self, pmo: dict[str, Any]) -> Any:
        fields = dict(pmo)
        records = fields.pop("ResponseRecs", 0)
        if "Context" in fields:
            fields["Context"] = self._handle(fields["Context"])
        made = mqi.MQPMO(**{k: v for k, v in fields.items() if k != "Context"})
        if "Context" in fields:
            made.Context = fields["Context"]
        if records:
            made.RecsPresent = records
            made.ResponseRecs = [mqi.MQRR(CompCode=-9, Reason=-9) for _ in range(records)]
        return made

    def _put_values(self, md: Any, pmo: Any) -> dict[str, Any]:
        return {
            "MsgId": md.MsgId,
            "CorrelId": md.CorrelId,
            "ResolvedQName": pmo.ResolvedQName,
            "ResolvedQMgrName": pmo.ResolvedQMgrName,
        }

    def do_mqget(self, hconn: int, hobj: int, md: Any, gmo: Any, room: int | None) -> Any:
        made_md, made_gmo = mqi.MQMD(**md), mqi.MQGMO(**gmo)
        data, length, cc, rc = mqi.MQGET(
            self._connection(hconn), self._handle(hobj), made_md, made_gmo, room
        )
        values = {"data": data, "length": length, "md": describe_md(made_md)}
        if made_gmo.Version >= 3:
            values["ReturnedLength"] = made_gmo.ReturnedLength
        return cc, rc, values

    def do_mqcmit(self, hconn: int) -> Any:
        return (*mqi.MQCMIT(self._connection(hconn)), {})

    def do_mqback(self, hconn: int) -> Any:
        return (*mqi.MQBACK(self._connection(hconn)), {})

    def do_mqinq(self, hconn: int, hobj: int, selectors: list[int]) -> Any:
        values, cc, rc = mqi.MQINQ(self._connection(hconn), self._handle(hobj), selectors)
        return cc, rc, {"attributes": values}

    def do_mqset(self, hconn: int, hobj: int, values: dict[int, Any]) -> Any:
        return (*mqi.MQSET(self._connection(hconn), self._handle(hobj), values), {})

    # ---- administration ----

    def _attempt(self, call: Callable[..., Any], *given: Any, **attrs: Any) -> Any:
        try:
            call(*given, **{key.lower(): value for key, value in attrs.items()})
        except penstock.MQError as error:
            return 2, int(error.reason), {"text": str(error)}
        return 0, 0, {}

    def do_define(self, kind: str, name: str, attrs: dict[str, Any]) -> Any:
        return self._attempt(self.manager.define, kind, name, **attrs)

    def do_alter(self, kind: str, name: str, attrs: dict[str, Any]) -> Any:
        return self._attempt(self.manager.alter, kind, name, force=True, **attrs)

    def do_delete(self, kind: str, name: str, purge: bool) -> Any:
        return self._attempt(self.manager.delete, kind, name, purge=purge)

    def do_sleep(self) -> Any:
        time.sleep(0.2)
        return 0, 0, {}

    def do_check(self) -> Any:
        return self._attempt(self.manager.check)

    def do_settle(self, pid: int) -> Any:
        """Waits until nothing of a killed process is left."""
        manager = self.manager
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            rows = [*manager.processes(), *manager.unit_rows(), *manager.handle_rows()]
            if all(row["pid"] != pid for row in rows):
                return 0, 0, {}
            time.sleep(0.01)
        return 2, 0, {"left": rows}

    # ---- a full picture ----

    def do_dump(self, queues: list[str]) -> Any:
        if self.own is None:
            self.own, _, rc = mqi.MQCONNX(self.name, mqi.MQCNO(Options=HANDLES_SHARED))
            assert rc == 0, rc
        for name in queues:  # reports on expired messages come first, wherever they go
            self._picture(name)
        return 0, 0, {name: self._picture(name) for name in queues}

    def _picture(self, name: str) -> dict[str, Any]:
        od = mqi.MQOD(ObjectName=name)
        handle, _, rc = mqi.MQOPEN(self.own, od, INQUIRE | BROWSE)
        if rc:
            return {"depth": f"MQOPEN {rc}", "messages": None}
        messages: list[dict[str, Any]] | None = []
        while True:
            md = mqi.MQMD(Version=2)
            gmo = mqi.MQGMO(Version=2, Options=BROWSE_NEXT, MatchOptions=0)
            data, _, _, rc = mqi.MQGET(self.own, handle, md, gmo)
            if rc:
                break
            assert messages is not None
            messages.append({"md": describe_md(md), "data": data})
        if rc == 2016:
            messages = None
        depth, _, inquired = mqi.MQINQ(self.own, handle, [CURRENT_Q_DEPTH])
        mqi.MQCLOSE(self.own, handle, 0)
        ended = rc in (2016, 2033) and inquired == 0
        shown = depth[CURRENT_Q_DEPTH] if ended else f"MQGET {rc} MQINQ {inquired}"
        return {"depth": shown, "messages": messages}


def serve(channel: socket.socket, home: str, name: str) -> None:
    """Answers operations until the request to leave; then ends as an interpreter does."""
    os.environ["PENSTOCK_HOME"] = home
    worker = Worker(home, name)
    while True:
        try:
            op = receive(channel)
        except EOFError:
            break
        if op["do"] == "leave":
            break
        try:
            result = worker.run(op)
        except Exception:
            result = (2, -1, {"exception": traceback.format_exc()})
        send(channel, result)
    atexit._run_exitfuncs()
    channel.close()


def forker(control: socket.socket) -> None:
    """Forks a worker for each request (home, name, with the worker's socket); answers its pid."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        request, fds, _, _ = socket.recv_fds(control, 4096, 1)
        if not request:
            return
        home, name = pickle.loads(request)
        channel = socket.socket(fileno=fds[0])
        pid = os.fork()
        if pid == 0:
            control.close()
            try:
                serve(channel, home, name)
            finally:
                os._exit(0)
        channel.close()
        control.sendall(LENGTH.pack(pid))


if __name__ == "__main__":
    forker(socket.socket(fileno=int(sys.argv[1])))

"""Random operations, chosen with an eye on the model's state so that most of them do something.

Operations are plain dictionaries: `do` (verb), `at` (worker) and the verb's arguments.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import model_reports
import model_triggers
from generator_session import IN_FLIGHT as SESSION_IN_FLIGHT
from generator_session import SessionOps
from model_state import Connection, Handle, LocalQueue
from mq_numbers import (
    CO,
    GMO,
    INPUT,
    MO,
    NO_ID,
    OO,
    OT,
    PMO,
    SELECTORS,
)

from model import QueueManager

Op = dict[str, Any]
BODIES = (b"", b"a", b"ten bytes.", b"x" * 40, b"y" * 300)
EXPIRATION = 0x200000  # Report
IDS = [NO_ID, *(bytes([n]) * 24 for n in (1, 2, 3))]
OUTPUTS = (
    OO.SET_ALL_CONTEXT,
    OO.SET_IDENTITY_CONTEXT,
    OO.PASS_ALL_CONTEXT,
    OO.PASS_IDENTITY_CONTEXT,
)
CONTEXT = {
    "UserIdentifier": "somebody",
    "AccountingToken": bytes(range(32)),
    "ApplIdentityData": "identity",
}
ORIGIN = {
    "PutApplType": 28,
    "PutApplName": "another program",
    "PutDate": "20200102",
    "PutTime": "03040567",
    "ApplOriginData": "orig",
}
TRIGGERED = ("L.TRIG", "L.TRIG5")
LOCAL = (
    "L.PRTY", "L.FIFO", "L.HIGH", "L.SMALL", "L.ONE", "L.STREAM", "L.COPY", "INIT.Q", *TRIGGERED,
)  # fmt: skip
SPARE = ("S.1", "S.2")
TRANSMISSION = ("XMIT.A", "XMIT.B")
ALIASES = ("A.PRTY", "A.SMALL", "A.REMOTE", "A.DYNAMIC")
REMOTES = ("R.ONE", "R.TWO", "R.DEFAULT")
MODELS = ("M.TEMP", "M.PERM", "M.FIFO")
BROKEN = (
    "A.MISSING",
    "A.ALIAS",
    "R.LOCAL",
    "R.BLANK",
    "R.NOXMIT",
    "R.WRONGXMIT",
    "R.ALIASXMIT",
    "QMA.FAR",
    "NO.SUCH",
    "bad name!",
)
MANAGERS = ("QMA.FAR", "QMA.LOCAL", "XMIT.A", "UNKNOWN", "QM1", "R.ONE", "bad+name")

SET_UP: list[tuple[str, str, dict[str, Any]]] = [
    ("QLOCAL", "L.PRTY", {"DEFPRTY": 3}),
    ("QLOCAL", "L.FIFO", {"DEFPRTY": 4, "DEFPSIST": 1, "MSGDLVSQ": 1}),
    ("QLOCAL", "L.HIGH", {"NPMCLASS": 10}),
    ("QLOCAL", "L.SMALL", {"MAXDEPTH": 4, "MAXMSGL": 50, "DEFPRTY": 9}),
    ("QLOCAL", "L.ONE", {"SHARE": 0, "DEFSOPT": 4}),
    ("QLOCAL", "L.COPY", {"MAXDEPTH": 9, "DEFPRTY": 5}),
    ("QLOCAL", "L.STREAM", {"STREAMQ": "L.COPY", "DEFPRTY": 2}),
    ("QLOCAL", "INIT.Q", {"DEFPRTY": 6}),
    ("PROCESS", "P.ONE", {"APPLTYPE": 6, "APPLICID": "program", "ENVRDATA": "e", "USERDATA": "u"}),
    ("QLOCAL", "L.TRIG", {"TRIGGER": 1, "INITQ": "INIT.Q", "PROCESS": "P.ONE", "TRIGDATA": "data"}),
    (
        "QLOCAL",
        "L.TRIG5",
        {
            "TRIGGER": 1,
            "TRIGTYPE": 3,
            "TRIGDPTH": 2,
            "TRIGMPRI": 5,
            "DEFPRTY": 5,
            "INITQ": "INIT.Q",
            "PROCESS": "P.ONE",
        },
    ),
    ("QLOCAL", "XMIT.A", {"USAGE": 1, "DEFPRTY": 1, "MAXMSGL": 4000}),
    ("QLOCAL", "XMIT.B", {"USAGE": 1, "DEFPRTY": 2, "DEFPSIST": 1}),
    ("QALIAS", "A.PRTY", {"TARGET": "L.PRTY", "DEFPRTY": 5, "DEFPSIST": 1}),
    ("QALIAS", "A.SMALL", {"TARGET": "L.SMALL"}),
    ("QALIAS", "A.REMOTE", {"TARGET": "R.ONE", "DEFPRTY": 6}),
    ("QALIAS", "A.DYNAMIC", {"TARGET": "D.FIXED", "DEFPRTY": 8, "DEFPSIST": 1}),
    ("QALIAS", "A.MISSING", {"TARGET": "NO.SUCH"}),
    ("QALIAS", "A.ALIAS", {"TARGET": "A.PRTY"}),
    ("QREMOTE", "R.ONE", {"RNAME": "FAR.Q", "RQMNAME": "FAR", "XMITQ": "XMIT.A", "DEFPRTY": 7}),
    ("QREMOTE", "R.TWO", {"RNAME": "FAR.Q", "RQMNAME": "XMIT.B", "DEFPSIST": 1}),
    ("QREMOTE", "R.DEFAULT", {"RNAME": "FAR.Q", "RQMNAME": "FARTHER", "DEFPRTY": 4}),
    ("QREMOTE", "R.LOCAL", {"RNAME": "L.PRTY", "RQMNAME": "QM1"}),
    ("QREMOTE", "R.BLANK", {"RQMNAME": "FAR", "XMITQ": "XMIT.A"}),
    ("QREMOTE", "R.NOXMIT", {"RNAME": "FAR.Q", "RQMNAME": "FAR", "XMITQ": "NO.SUCH"}),
    ("QREMOTE", "R.WRONGXMIT", {"RNAME": "FAR.Q", "RQMNAME": "FAR", "XMITQ": "L.PRTY"}),
    ("QREMOTE", "R.ALIASXMIT", {"RNAME": "FAR.Q", "RQMNAME": "FAR", "XMITQ": "A.PRTY"}),
    ("QREMOTE", "QMA.FAR", {"RQMNAME": "FAR", "XMITQ": "XMIT.B", "DEFPRTY": 2, "DEFPSIST": 1}),
    ("QREMOTE", "QMA.LOCAL", {"RQMNAME": "QM1", "DEFPRTY": 1, "DEFPSIST": 1}),
    ("QMODEL", "M.TEMP", {"DEFTYPE": 3, "DEFPRTY": 2, "SHARE": 1}),
    ("QMODEL", "M.PERM", {"DEFTYPE": 2, "DEFPSIST": 1, "SHARE": 1, "DEFSOPT": 2}),
    ("QMODEL", "M.FIFO", {"DEFTYPE": 2, "MSGDLVSQ": 1, "DEFPRTY": 6, "NPMCLASS": 10}),
]

# Changes of definitions that are made during a run: kind, names, keyword, values.
CHANGES: list[tuple[str, tuple[str, ...], str, tuple[Any, ...]]] = [
    ("QLOCAL", (*LOCAL, *TRANSMISSION), "DEFPRTY", tuple(range(10))),
    ("QLOCAL", (*LOCAL, *TRANSMISSION), "DEFPSIST", (0, 1)),
    ("QLOCAL", LOCAL, "MSGDLVSQ", (0, 1)),
    ("QLOCAL", LOCAL, "MAXDEPTH", (0, 2, 6, 5000)),
    ("QLOCAL", (*LOCAL, *TRANSMISSION), "MAXMSGL", (0, 20, 450, 4194304)),
    ("QLOCAL", (*LOCAL, *TRANSMISSION), "PUT", (0, 0, 1)),
    ("QLOCAL", (*LOCAL, *TRANSMISSION), "GET", (0, 0, 1)),
    ("QLOCAL", LOCAL, "NPMCLASS", (0, 10)),
    ("QLOCAL", ("L.STREAM",), "STREAMQ", ("L.COPY", "L.COPY", "")),
    ("QLOCAL", ("L.STREAM",), "STRMQOS", (0, 1)),
    ("QLOCAL", (*LOCAL, *TRANSMISSION), "CAPEXPRY", (-1, 70000, 90000000)),
    ("QLOCAL", TRIGGERED, "TRIGGER", (0, 1, 1, 1)),
    ("QLOCAL", TRIGGERED, "TRIGTYPE", (0, 1, 2, 3, 1, 3)),
    ("QLOCAL", TRIGGERED, "TRIGDPTH", (1, 2, 3)),
    ("QLOCAL", TRIGGERED, "INITQ", (*["INIT.Q"] * 4, "")),
    ("QLOCAL", TRIGGERED, "PROCESS", (*["P.ONE"] * 4, "P.TWO")),
    ("PROCESS", ("P.ONE",), "USERDATA", ("u", "other")),
    ("QALIAS", ALIASES, "CAPEXPRY", (-1, 80000, 500000000)),
    ("QREMOTE", (*REMOTES, "QMA.FAR", "QMA.LOCAL"), "CAPEXPRY", (-1, 60000, 70000000)),
    ("QLOCAL", LOCAL, "SHARE", (0, 1, 1)),
    ("QLOCAL", LOCAL, "DEFSOPT", (2, 4)),
    ("QALIAS", ALIASES, "DEFPRTY", tuple(range(10))),
    ("QALIAS", ALIASES, "DEFPSIST", (0, 1)),
    ("QALIAS", ALIASES, "PUT", (0, 0, 1)),
    ("QALIAS", ALIASES, "GET", (0, 0, 1)),
    ("QALIAS", ("A.PRTY", "A.SMALL"), "TARGET", ("L.PRTY", "L.FIFO", "L.SMALL", "R.ONE", "S.1")),
    ("QREMOTE", (*REMOTES, "QMA.FAR", "QMA.LOCAL"), "DEFPRTY", tuple(range(10))),
    ("QREMOTE", (*REMOTES, "QMA.FAR", "QMA.LOCAL"), "DEFPSIST", (0, 1)),
    ("QREMOTE", REMOTES, "PUT", (0, 0, 1)),
    ("QREMOTE", ("R.ONE",), "XMITQ", ("XMIT.A", "XMIT.B")),
    ("QREMOTE", ("R.ONE", "R.TWO"), "RNAME", ("FAR.Q", "OTHER.Q")),
    ("QREMOTE", ("R.DEFAULT",), "RQMNAME", ("FARTHER", "XMIT.B", "ELSEWHERE")),
    ("QMODEL", MODELS, "DEFPRTY", tuple(range(10))),
    ("QMODEL", ("M.PERM", "M.FIFO"), "DEFPSIST", (0, 1)),
    ("QMGR", ("",), "DEFXMITQ", ("", "XMIT.A", "XMIT.B", "NO.SUCH", "L.PRTY", "A.PRTY")),
    ("QMGR", ("",), "MAXUMSGS", (3, 8, 10000)),
]
RESTORED = {"PUT", "GET"}
# Calls that a process may be killed in: what they have done shows in a picture of the queues.
IN_FLIGHT = (
    "MQPUT", "MQPUT1", "MQGET", "MQCMIT", "MQBACK", "MQDISC", "MQCLOSE", *SESSION_IN_FLIGHT,
)  # fmt: skip


# Of these: what may be killed between its effect and the trigger message.
TRIGGERING = ("MQPUT", "MQPUT1", "MQCLOSE", "put_batch")


def converts(handle: Handle | None) -> bool:
    """Whether the model converts what is on the queue of a handle."""
    if handle is None or handle.path is None or handle.path.remote:
        return False
    return handle.queue.name not in TRANSMISSION


class Generator(SessionOps):
    """Draws operations for a model."""

    def __init__(self, rng: random.Random, model: QueueManager) -> None:
        self.rng = rng
        self.model = model
        self.numbers = 0
        self.tags = 0
        self.ended: list[int] = []  # Hobj of handles that were closed
        self.drawn = [
            (30, self.put),
            (26, self.get),
            (13, self.browse),
            (11, self.open),
            (6, self.close),
            (6, self.put1),
            (6, self.commit),
            (4, self.backout),
            (3, self.inquire),
            (2, self.set),
            (3, self.alter),
            (0.7, self.spare),
            (1.2, self.connect),
            (0.7, self.disconnect),
            (0.06, self.expire),
            (9, self.trigger),
            (0.5, self.end),
            *self.session_calls(),
        ]

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def next(self, workers: list[int]) -> list[Op]:
        """One operation, or a few that belong together."""
        if not workers:
            return [{"do": "spawn", "at": 1}, self.connect_at(1)]
        if not self.model.connections:
            return [self.connect_at(workers[0])]
        self.workers = workers
        weights = [weight for weight, _ in self.drawn]
        for _ in range(50):
            (chosen,) = self.rng.choices([call for _, call in self.drawn], weights)
            ops: list[Op] | Op | None = chosen()
            if ops:
                return ops if isinstance(ops, list) else [ops]
        return [self.connect_at(workers[0])]

    # ---- callers ----

    def connection(self) -> tuple[int, Connection]:
        return self.rng.choice(list(self.model.connections.items()))

    def handle(self, fits: Callable[[Handle], Any]) -> tuple[Op, Handle | None] | None:
        """Arguments that name a handle; sometimes one that is not to be used like this."""
        rng = self.rng
        handles = [
            (hconn, hobj, handle)
            for hconn, connection in self.model.connections.items()
            for hobj, handle in connection.handles.items()
        ]
        if not handles:
            return None
        if rng.random() < 0.03:
            return self.wrong_handle(handles), None
        if rng.random() < 0.9:
            handles = [row for row in handles if fits(row[2])]
            if not handles:
                return None
        hconn, hobj, handle = rng.choice(handles)
        at = self.model.connections[hconn].process
        return {"at": at, "hconn": hconn, "hobj": hobj}, handle

    def wrong_handle(self, handles: list[Any]) -> Op:
        """A handle of another connection of the process, a closed one, or none at all."""
        hconn, connection = self.connection()
        hobj = self.rng.choice([*self.ended[-5:], 999999, self.rng.choice(handles)[1]])
        return {"at": connection.process, "hconn": hconn, "hobj": hobj}

    # ---- connections, processes ----

    def connect_at(self, at: int) -> Op:
        return {"do": "connect", "at": at, "hconn": self.number()}

    def connect(self) -> list[Op] | Op | None:
        if len(self.workers) < 3 and self.rng.random() < 0.6:
            at = max(self.workers) + 1
            return [{"do": "spawn", "at": at}, self.connect_at(at)]
        if len(self.model.connections) < 6:
            return self.connect_at(self.rng.choice(self.workers))
        return None

    def disconnect(self) -> Op | None:
        if len(self.model.connections) < 2:
            return None
        hconn, connection = self.connection()
        return {"do": "MQDISC", "at": connection.process, "hconn": hconn}

    def end(self) -> list[Op]:
        """One process or all of them end, in order or killed, perhaps in the middle of a call."""
        how = self.rng.choice(("leave", "kill", "kill", "kill in", "kill in"))
        ends = self.workers if self.rng.random() < 0.4 else [self.rng.choice(self.workers)]
        if how == "kill in":
            op = self.next([ends[-1]])[-1]
            while op["do"] not in IN_FLIGHT:
                op = self.next([ends[-1]])[-1]
            if (
                op.get("at") in self.workers
                and not self.owes_reports()
                and not (op["do"] in TRIGGERING and model_triggers.is_armed(self.model))
            ):
                return [{"do": "kill", "at": op["at"], "during": op}, {"do": "dump"}]
            how = "kill"
        return [*({"do": how, "at": at} for at in ends), {"do": "dump"}]

    def owes_reports(self) -> bool:
        """Some call may make several reports on expiration, and be killed between two of them."""
        queues = self.model.queues()
        return any(model_reports.owes(queue, m) for queue in queues for m in queue.messages)

    # ---- opening and closing ----

    def open(self) -> Op | None:
        rng = self.rng
        hconn, connection = self.connection()
        if len(connection.handles) > 9:
            return None
        od: dict[str, Any] = {"Version": rng.choice((1, 1, 3, 4))}
        kind = rng.random()
        if kind < 0.5:
            od["ObjectName"] = rng.choice((*LOCAL, *SPARE, *LOCAL))
        elif kind < 0.65:
            od["ObjectName"] = rng.choice((*ALIASES, *REMOTES, *TRANSMISSION))
        elif kind < 0.8:
            od |= {"ObjectName": rng.choice(MODELS), "DynamicQName": self.dynamic_name()}
        elif kind < 0.86:
            od["ObjectName"] = rng.choice(BROKEN)
        elif kind < 0.92:
            od["ObjectQMgrName"] = rng.choice(MANAGERS)
            od["ObjectName"] = rng.choice((*LOCAL, "FAR.Q", "A.PRTY", "NO.SUCH"))
        elif kind < 0.94:
            od["ObjectType"] = OT.Q_MGR
        elif kind < 0.96:
            return self.open_list(hconn, connection)
        else:
            od["ObjectName"] = self.name_of_dynamic()
        options = self.open_options()
        if od.get("ObjectType") == OT.Q_MGR and rng.random() < 0.8:
            options = OO.INQUIRE
        return {
            "do": "MQOPEN",
            "at": connection.process,
            "hconn": hconn,
            "hobj": self.number(),
            "od": od,
            "options": int(options),
        }

    def open_list(self, hconn: int, connection: Connection) -> Op:
        names = (*LOCAL, *ALIASES, *REMOTES, *BROKEN[:3], "M.TEMP")
        records = [(self.rng.choice(names), "") for _ in range(self.rng.randint(1, 3))]
        options = OO.OUTPUT | (OO.INQUIRE if self.rng.random() < 0.1 else 0)
        return {
            "do": "MQOPEN",
            "at": connection.process,
            "hconn": hconn,
            "hobj": self.number(),
            "od": {"Version": 2, "ObjectRecs": records},
            "options": int(options),
        }

    def dynamic_name(self) -> str:
        return self.rng.choice(
            ("D.*", "D.*", "*", "D.FIXED", "D.FIXED", "D.OTHER", "", "D*X", "D." + "Y" * 33 + "*")
        )

    def name_of_dynamic(self) -> Any:
        dynamic = [queue for queue in self.model.queues() if queue["DEFTYPE"] != 1]
        if not dynamic:
            return "D.FIXED"
        name = self.rng.choice(dynamic).name
        return name

    def open_options(self) -> int:
        rng = self.rng
        options = 0
        if rng.random() < 0.6:
            options |= rng.choice((OO.INPUT_AS_Q_DEF, OO.INPUT_SHARED, OO.INPUT_SHARED, 4))
            options |= OO.SAVE_ALL_CONTEXT if rng.random() < 0.3 else 0
        if rng.random() < 0.7:
            options |= OO.OUTPUT
            options |= rng.choice(OUTPUTS) if rng.random() < 0.4 else 0
        options |= OO.BROWSE if rng.random() < 0.6 else 0
        options |= OO.INQUIRE if rng.random() < 0.4 else 0
        options |= OO.SET if rng.random() < 0.2 else 0
        options |= OO.FAIL_IF_QUIESCING if rng.random() < 0.3 else 0
        if rng.random() < 0.06:
            options ^= 1 << rng.randrange(31)
        return int(options)

    def close(self) -> Op | None:
        found = self.handle(lambda handle: True)
        if found is None:
            return None
        where, _ = found
        self.ended.append(where["hobj"])
        options = self.rng.choice((0, 0, 0, 1, 1, 2, 2, 4, 8, 32, 3, 16))
        return {"do": "MQCLOSE", **where, "options": int(CO(options))}

    # ---- messages ----

    def put(self) -> list[Op] | Op | None:
        found = self.handle(lambda handle: handle.options & OO.OUTPUT)
        if found is None:
            return None
        where, handle = found
        remote = handle is None or handle.path is None or handle.path.remote is not None
        md, pmo = self.md(groups=not remote), self.pmo()
        if handle is not None and handle.members is not None:
            pmo |= {"Version": 2, "ResponseRecs": len(handle.members)}
        if self.rng.random() < 0.15:
            self.add_context(md, pmo, where["hconn"], handle)
        return {"do": "MQPUT", **where, "md": md, "pmo": pmo, "data": self.rng.choice(BODIES)}

    def put1(self) -> Op:
        hconn, connection = self.connection()
        rng = self.rng
        od: dict[str, Any] = {"ObjectName": rng.choice((*LOCAL, *ALIASES, *REMOTES, *SPARE))}
        kind = rng.random()
        if kind < 0.1:
            od["ObjectName"] = rng.choice((*BROKEN, *MODELS))
        elif kind < 0.25:
            od["ObjectQMgrName"] = rng.choice(MANAGERS)
        return {
            "do": "MQPUT1",
            "at": connection.process,
            "hconn": hconn,
            "od": od,
            "md": self.md(groups=False),
            "pmo": self.pmo(),
            "data": rng.choice(BODIES),
        }

    def md(self, groups: bool) -> dict[str, Any]:
        rng = self.rng
        md: dict[str, Any] = {"Version": rng.choice((1, 2))}
        if rng.random() < 0.8:
            md["Persistence"] = rng.choice((0, 1, 2, 2))
        if rng.random() < 0.7:
            md["Priority"] = rng.choice((-1, *range(10), 3, 3, 9, 12))
        md["MsgId"] = rng.choice(IDS)
        md["CorrelId"] = rng.choice(IDS)
        if rng.random() < 0.2:
            md |= {"MsgType": 1, "ReplyToQ": rng.choice(("L.PRTY", "R.ONE", "MY.Q"))}
            md |= {"ReplyToQMgr": "ELSEWHERE"} if rng.random() < 0.3 else {}
        if rng.random() < 0.2:
            md |= {"Format": "MQSTR", "CodedCharSetId": 1208, "Encoding": 273, "Feedback": 65537}
            md |= {
                "CodedCharSetId": rng.choice((1208, 819, 37)),
                "Encoding": rng.choice((546, 273)),
            }
        if rng.random() < 0.1:
            md["Expiry"] = 999999999
        if rng.random() < 0.1:
            md["Report"] = rng.choice((128, 64, 16384, 0x08000000, 8))
        if rng.random() < 0.15:
            md["Report"] = rng.choice((256, 1792, 2048, 14336, 256 | 2048, 768 | 6144, EXPIRATION))
            md["Report"] |= rng.choice((0, 0, 64, 128, 16384, 0x08000000))
            md["ReplyToQ"] = rng.choice(("L.PRTY", "L.FIFO", "L.SMALL", "M.TEMP", "R.TWO", "NO.Q"))
        # a report to another queue manager would take an MQMDE
        groups = groups and md.get("ReplyToQ") != "R.TWO" and "ReplyToQMgr" not in md
        if groups and md["Version"] == 2 and rng.random() < 0.2:
            md |= {
                "MsgFlags": 8,
                "GroupId": rng.choice(IDS[1:]),
                "MsgSeqNumber": rng.choice((1, 2)),
            }
        if rng.random() < 0.05:
            md |= rng.choice(
                (
                    {"Persistence": 3},
                    {"Priority": -2},
                    {"MsgType": 0},
                    {"MsgType": 1, "ReplyToQ": ""},
                    {"Expiry": 0},
                    {"Report": 0x00100000},
                    {"Version": 3},
                )
            )
        return md

    def pmo(self) -> dict[str, Any]:
        rng = self.rng
        options = rng.choice((0, PMO.SYNCPOINT, PMO.SYNCPOINT, PMO.NO_SYNCPOINT))
        options |= PMO.NEW_MSG_ID if rng.random() < 0.1 else 0
        options |= PMO.NEW_CORREL_ID if rng.random() < 0.1 else 0
        options |= PMO.FAIL_IF_QUIESCING if rng.random() < 0.2 else 0
        options |= PMO.RESOLVE_LOCAL_Q if rng.random() < 0.05 else 0
        options |= rng.choice((PMO.SYNC_RESPONSE, PMO.ASYNC_RESPONSE)) if rng.random() < 0.1 else 0
        if rng.random() < 0.02:
            options |= rng.choice((6, PMO.LOGICAL_ORDER | 6, 1, 1 << 30))
        return {"Options": int(options), "Version": rng.choice((1, 1, 2, 3))}

    def add_context(self, md: Op, pmo: Op, hconn: int, handle: Handle | None) -> None:
        rng = self.rng
        option = rng.choice((32, 16384, 256, 512, 1024, 2048))
        if handle is not None and handle.options & OO.SET_ALL_CONTEXT:
            option = rng.choice((2048, 1024, option))
        pmo["Options"] |= option
        if option in (256, 512):
            handles = self.model.connections.get(hconn, Connection(0)).handles
            pmo["Context"] = rng.choice([*handles, 999999])
        if option in (1024, 2048):
            md |= CONTEXT
        if option == 2048:
            md |= ORIGIN

    def get(self) -> Op | None:
        found = self.handle(lambda handle: handle.options & INPUT)
        if found is None:
            return None
        where, handle = found
        rng = self.rng
        options = rng.choice((0, GMO.SYNCPOINT, GMO.SYNCPOINT, 4, GMO.SYNCPOINT_IF_PERSISTENT))
        if rng.random() < 0.2 and handle is not None and handle.options & OO.BROWSE:
            options |= GMO.MSG_UNDER_CURSOR
        if handle is not None and handle.locked is not None:  # its own lock: not specified
            options |= GMO.MSG_UNDER_CURSOR
        elif rng.random() < 0.03:
            options |= 1 << rng.randrange(14)
        return self.read(where, handle, int(options))

    def browse(self) -> list[Op] | Op | None:
        found = self.handle(lambda handle: handle.options & OO.BROWSE)
        if found is None:
            return None
        where, handle = found
        rng = self.rng
        if rng.random() < 0.1:
            return self.read(where, handle, int(GMO.UNLOCK))
        browse = rng.choice((16, 32, 32, 32, 2048))
        lock = GMO.LOCK if rng.random() < 0.25 else 0
        return self.read(where, handle, int(browse | lock))

    def read(self, where: Op, handle: Handle | None, options: int) -> Op:
        rng = self.rng
        gmo: dict[str, Any] = {"Version": rng.choice((1, 2, 2, 3, 4))}
        md: dict[str, Any] = {"Version": rng.choice((1, 2, 2))}
        if gmo["Version"] >= 2:
            gmo["MatchOptions"] = int(rng.choice((0, 0, 0, 1, 2, 3, 4, 12, 8)))
            if md["Version"] == 1 and rng.random() < 0.95:
                gmo["MatchOptions"] &= 3
            if options & (GMO.MSG_UNDER_CURSOR | GMO.BROWSE_MSG_UNDER_CURSOR | GMO.UNLOCK):
                gmo["MatchOptions"] &= 3
        wanted = rng.random() < (0.5 if gmo.get("MatchOptions", 3) else 0.2)
        if wanted:
            md["MsgId"] = self.some_id(handle)
            md["CorrelId"] = rng.choice(IDS)
            if md["Version"] == 2:
                md |= {"GroupId": rng.choice(IDS), "MsgSeqNumber": rng.choice((1, 2))}
        if options & GMO.UNLOCK == 0:
            if rng.random() < 0.1:
                options |= GMO.WAIT
                gmo["WaitInterval"] = 0 if rng.random() < 0.95 else -2
            options |= GMO.FAIL_IF_QUIESCING if rng.random() < 0.2 else 0
            options |= GMO.ACCEPT_TRUNCATED_MSG if rng.random() < 0.3 else 0
        if rng.random() < 0.25 and not options & GMO.UNLOCK and converts(handle):
            options |= GMO.CONVERT
            md |= {"Version": 2, "Encoding": rng.choice((546, 546, 273, 0))}
            md["CodedCharSetId"] = rng.choice((1208, 0, 819, 37, 1200, 4711))
        room = rng.choice((None, None, None, None, 0, 5, 30, 75, 1000))
        return {
            "do": "MQGET",
            **where,
            "md": md,
            "gmo": {**gmo, "Options": int(options)},
            "room": room,
        }

    def some_id(self, handle: Handle | None) -> Any:
        """An id of the pool, or the generated one of a message on the queue."""
        if handle is not None and handle.path is not None and self.rng.random() < 0.5:
            ids = [message.md["MsgId"] for message in handle.queue.messages]
            ids = [known for known in ids if isinstance(known, bytes)]
            if ids:
                return self.rng.choice(ids)
        return self.rng.choice(IDS)

    def expire(self) -> list[Op] | None:
        """A message that expires before anything else happens."""
        found = self.handle(
            lambda handle: handle.options & OO.OUTPUT and handle.path and not handle.path.remote
        )
        if found is None or found[1] is None or found[1].members or found[1].path is None:
            return None
        queue = found[1].queue
        if queue["MAXDEPTH"] < 5000 or queue["DEFTYPE"] != 1 or queue.name in (*SPARE, *TRIGGERED):
            return None
        md = {**self.md(groups=False), "Expiry": 1}
        if self.rng.random() < 0.6:
            md["Report"] = self.rng.choice((1, 3, 7)) * EXPIRATION
            md["Report"] |= self.rng.choice((0, 0, 64, 128, 16384, 0x08000000))
            md["ReplyToQ"] = self.rng.choice(("L.PRTY", "L.FIFO", "L.SMALL", "R.ONE", "NO.Q"))
            md.pop("ReplyToQMgr", None)
        put = {"do": "MQPUT", **found[0], "md": md, "pmo": self.pmo(), "data": b"late"}
        return [put, {"do": "sleep", "at": found[0]["at"]}]

    def trigger(self) -> list[Op] | Op:
        """What a trigger message needs, or the put that causes it."""
        rng = self.rng
        hconn, connection = self.connection()
        where = {"at": connection.process, "hconn": hconn}
        queue = self.model.objects[rng.choice(TRIGGERED)]
        assert isinstance(queue, LocalQueue)
        if not model_triggers.is_watched(self.model, queue) and rng.random() < 0.8:
            return self.open_one(where, "INIT.Q", int(OO.INPUT_SHARED | OO.BROWSE))[0]
        if not queue["TRIGGER"] and rng.random() < 0.8:
            attrs = {"TRIGGER": 1}
            return {"do": "alter", "at": where["at"], "kind": "QLOCAL", "name": queue.name,
                    "attrs": attrs}  # fmt: skip
        if rng.random() < 0.3:  # a program that is started drains the queue, more or less
            opened, handle = self.open_one(where, queue.name, int(OO.INPUT_SHARED))
            gets = [
                self.read(handle, None, int(GMO.NO_SYNCPOINT)) for _ in range(rng.randint(0, 4))
            ]
            return [opened, *gets, {"do": "MQCLOSE", **handle, "options": 0}]
        od = {"ObjectName": queue.name}
        return {
            "do": "MQPUT1", **where, "od": od, "md": self.md(groups=False), "pmo": self.pmo(),
            "data": rng.choice(BODIES),
        }  # fmt: skip

    def open_one(self, where: Op, name: str, options: int) -> tuple[Op, Op]:
        """An open, and the arguments that name its handle."""
        handle = {**where, "hobj": self.number()}
        return {"do": "MQOPEN", **handle, "od": {"ObjectName": name}, "options": options}, handle

    def commit(self) -> Op:
        hconn, connection = self.busy_connection()
        return {"do": "MQCMIT", "at": connection.process, "hconn": hconn}

    def backout(self) -> Op:
        hconn, connection = self.busy_connection()
        return {"do": "MQBACK", "at": connection.process, "hconn": hconn}

    def busy_connection(self) -> tuple[int, Connection]:
        busy = [row for row in self.model.connections.items() if row[1].unit.count]
        return self.rng.choice(busy) if busy and self.rng.random() < 0.9 else self.connection()

    # ---- attributes, definitions ----

    def inquire(self) -> Op | None:
        found = self.handle(lambda handle: handle.options & OO.INQUIRE and handle.path)
        if found is None or (found[1] is not None and found[1].path is None):
            return None
        known = [*SELECTORS, 3, 17, 20, 2016]
        if found[1] is not None and found[1].queue["USAGE"] == 0:
            known.append(18)
        chosen = self.rng.sample(known, self.rng.randint(1, 6))
        if self.rng.random() < 0.05:
            chosen.append(self.rng.choice((0, 1999, 3999, 4001)))
        return {"do": "MQINQ", **found[0], "selectors": chosen}

    def set(self) -> Op | None:
        found = self.handle(lambda handle: handle.options & OO.SET and handle.path)
        if found is None or (found[1] is not None and found[1].path is None):
            return None
        rng = self.rng
        values: dict[int, Any] = {rng.choice((9, 10)): rng.choice((0, 0, 1))}
        if rng.random() < 0.3:
            values |= {
                24: rng.choice((0, 1, 1)),
                29: rng.choice((1, 2, 5)),
                2023: "some data",
                28: rng.choice((0, 1, 2, 3)),
            }
        if rng.random() < 0.1:
            values |= rng.choice(({9: 2}, {10: -1}, {26: 10}, {28: 4}, {29: 0}))
        return {"do": "MQSET", **found[0], "values": values}

    def alter(self) -> Op | None:
        rng = self.rng
        kind, names, keyword, values = rng.choice(CHANGES)
        inhibited = [
            (definition.kind, definition.name, word)
            for definition in self.model.objects.values()
            for word in RESTORED
            if definition.attrs.get(word)
        ]
        if inhibited and rng.random() < 0.3:
            kind, name, keyword = rng.choice(inhibited)
            value: Any = 0
        else:
            name, value = rng.choice(names), rng.choice(values)
        definition = self.model.objects.get(name, self.model.manager)
        if definition.attrs.get(keyword) == value:
            return None
        at = rng.choice(self.workers)
        return {"do": "alter", "at": at, "kind": kind, "name": name, "attrs": {keyword: value}}

    def spare(self) -> Op:
        rng = self.rng
        name = rng.choice(SPARE)
        op: Op = {"do": "define", "at": rng.choice(self.workers), "kind": "QLOCAL", "name": name}
        if name in self.model.objects and rng.random() < 0.9:
            return {**op, "do": "delete", "purge": rng.random() < 0.7}
        return {**op, "attrs": {"DEFPRTY": rng.randrange(10), "DEFPSIST": rng.randrange(2)}}


__all__ = ["SET_UP", "Generator", "LocalQueue", "MO"]

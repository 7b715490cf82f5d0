"""Runs operations on model and engine, compares every result, and shrinks what differs."""

from __future__ import annotations

import copy
import pprint
import random
import struct
import tempfile
import time
from pathlib import Path
from typing import Any

from generator import SET_UP, Generator, Op
from model_session import CALLS, separate
from model_state import Answer, Fresh, Transmitted, answer
from mq_numbers import NO_ID
from workers_fixture import SETTINGS, WorkerForker, WorkersFixture

import penstock
from model import QueueManager

NAME = "QM1"
DUMP_EVERY = 60  # operations between two full comparisons
SEND_MORE = 0.3  # seconds that a killed call had at most
XQH = struct.Struct("<4si48s48s")
MD1 = struct.Struct("<4s7i8s2i24s24si48s48s12s32s32si28s8s8s4s")
MD1_FIELDS = [
    "StrucId",
    "Version",
    "Report",
    "MsgType",
    "Expiry",
    "Feedback",
    "Encoding",
    "CodedCharSetId",
    "Format",
    "Priority",
    "Persistence",
    "MsgId",
    "CorrelId",
    "BackoutCount",
    "ReplyToQ",
    "ReplyToQMgr",
    "UserIdentifier",
    "AccountingToken",
    "ApplIdentityData",
    "PutApplType",
    "PutApplName",
    "PutDate",
    "PutTime",
    "ApplOriginData",
]
BINARY = {"MsgId", "CorrelId", "AccountingToken"}


class Difference(AssertionError):
    """Engine and model disagree."""


def text(raw: bytes) -> str:
    return raw.rstrip(b" \0").decode("latin-1")


def fits(expected: Any, actual: Any) -> bool:
    """Whether an actual value is the expected one; binds fresh ids."""
    if isinstance(expected, Transmitted):
        return fits_transmitted(expected, actual)
    if hasattr(expected, "fits"):
        return bool(expected.fits(actual))
    if isinstance(expected, dict) and isinstance(actual, dict):
        return all(key in actual and fits(expected[key], actual[key]) for key in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(fits, expected, actual))
    if isinstance(expected, str) and isinstance(actual, str):
        return expected.rstrip(" *") == actual.rstrip(" *")
    if isinstance(expected, bytes):
        return bytes(actual) == expected if isinstance(actual, (bytes, bytearray)) else False
    return bool(expected == actual)


def fits_transmitted(expected: Transmitted, actual: Any) -> bool:
    """The bytes on a transmission queue against MQXQH, embedded MQMD and data (8.8)."""
    if not isinstance(actual, (bytes, bytearray)) or len(actual) != len(expected):
        return False
    eye, version, queue, manager = XQH.unpack_from(actual)
    raw = dict(zip(MD1_FIELDS, MD1.unpack_from(actual, XQH.size), strict=True))
    fields = {
        key: value if key in BINARY or isinstance(value, int) else text(value)
        for key, value in raw.items()
    }
    wanted = {key: value for key, value in expected.md.items() if key in fields}
    return (
        (eye, version) == (b"XQH ", 1)
        and (text(queue), text(manager)) == (expected.queue, expected.manager)
        and (fields["StrucId"], fields["Version"]) == ("MD", 1)
        and fits(wanted, fields)
        and actual[428:] == expected.data
    )


def bind(expected: Any, actual: Any) -> None:
    """Tells the model ids and names that the engine made."""
    if isinstance(expected, Fresh):
        expected.tell(actual)
    elif isinstance(expected, dict):
        for key, value in list(expected.items()):
            bind(value, actual[key])
    elif isinstance(expected, list):
        for one, other in zip(expected, actual, strict=True):
            bind(one, other)


class Run:
    """One queue manager, its model, and the operations so far."""

    def __init__(self, forker: WorkerForker, platform: str = "unix") -> None:
        self.directory = tempfile.TemporaryDirectory(prefix="penstock-model-")
        self.home = Path(self.directory.name)
        penstock.create(NAME, self.home, platform=platform, **SETTINGS)
        self.workers = WorkersFixture(forker, self.home, NAME)
        self.history: list[Op] = []
        self.fresh: set[bytes] = set()
        self.workers.spawn(1)
        self.model = QueueManager(NAME, self._surroundings(), platform == "zos")
        for kind, name, attrs in SET_UP:
            self.apply({"do": "define", "at": 1, "kind": kind, "name": name, "attrs": attrs})
        self.history.clear()

    def _surroundings(self) -> dict[str, Any]:
        """The default context and CCSID on this machine: those of a message put for this."""
        self.workers.ask(1, {"do": "define", "kind": "QLOCAL", "name": "PROBE", "attrs": {}})
        self.workers.ask(1, {"do": "connect", "hconn": 0})
        od = {"ObjectName": "PROBE"}
        pmo = {"Options": 4}
        self._sure({"do": "MQPUT1", "hconn": 0, "od": od, "md": {}, "pmo": pmo, "data": b""})
        self._sure({"do": "MQOPEN", "hconn": 0, "hobj": 0, "od": od, "options": 1})
        get = {"do": "MQGET", "hconn": 0, "hobj": 0, "md": {}, "gmo": {"Options": 4}, "room": None}
        values = self._sure(get)
        self._sure({"do": "MQDISC", "hconn": 0})
        self._sure({"do": "delete", "kind": "QLOCAL", "name": "PROBE", "purge": False})
        return dict(values["md"])

    def _sure(self, op: Op) -> dict[str, Any]:
        cc, rc, values = self.workers.ask(1, op)
        if cc:
            raise Difference(f"setting up: {op} gave {cc}, {rc}, {values}")
        return values

    # ---- operations ----

    def apply(self, op: Op) -> None:
        """One operation on both sides. Raises Difference."""
        self.history.append(op)
        do, at = op["do"], op.get("at")
        if do == "spawn":
            if at not in self.workers.by_number:
                self.workers.spawn(op["at"])
        elif do == "dump":
            self.compare_dumps()
        elif at not in self.workers.by_number:
            return  # an operation that shrinking left without its process
        elif do in ("kill", "leave"):
            self._end(op)
        elif self._is_undecided(op) or (do in ("MQOPEN", "connect") and self._number_used(op)):
            return
        else:
            self._compare(op, self.expect(self.model, op), self.workers.ask(op["at"], op))

    def _is_undecided(self, op: Op) -> bool:
        """The model knows attributes of queues only."""
        connection = self.model.connections.get(op.get("hconn", -1))
        handle = connection.handles.get(op.get("hobj", -1)) if connection is not None else None
        if handle is None:
            return False
        return op["do"] == "MQINQ" and handle.definition.kind == "QMGR"

    def _number_used(self, op: Op) -> bool:
        return op["do"] == "connect" and op["hconn"] in self.model.connections

    def expect(self, model: QueueManager, op: Op) -> Answer:
        """The model's result."""
        arguments = {key: value for key, value in op.items() if key not in ("do", "at")}
        do = op["do"]
        if do == "connect":
            return model.connect(op["at"], op["hconn"])
        if do in CALLS:
            return model.session_call(do, op["at"], **arguments)
        if do in ("define", "alter", "delete", "sleep"):
            return getattr(model, do)(**arguments)  # type: ignore[no-any-return]
        connection = model.connections.get(op["hconn"])
        if connection is not None and connection.process != op["at"]:
            return answer()  # happens only while shrinking
        return model.call(do, **arguments)

    def _compare(self, op: Op, expected: Answer, actual: Any) -> None:
        cc, rc, values = actual
        known_code = cc in expected.completion_codes() or "ResponseRecs" in expected.values
        if rc not in expected.reasons or not known_code:
            self._differ(op, expected, actual)
        for key, value in expected.values.items():
            if key == "ResponseRecs" and key not in values:
                continue  # the caller gave no room for them
            if key not in values or not fits(value, values[key]):
                self._differ(op, expected, actual, key)
            self._note_fresh(key, value, values[key])
            bind(value, values[key])

    def _note_fresh(self, key: str, expected: Any, actual: Any) -> None:
        """No identifier is given twice."""
        if isinstance(expected, list) and key == "msg_ids":
            for one, other in zip(expected, actual, strict=True):
                self._note_fresh("msg_id", one, other)
        if isinstance(expected, Fresh) and isinstance(actual, bytes):
            if actual in self.fresh:
                raise Difference(f"{key} {actual!r} was given before")
            self.fresh.add(actual)

    def _differ(self, op: Op, expected: Answer, actual: Any, key: str = "") -> None:
        cc, rc, values = actual
        reasons = sorted(int(reason) for reason in expected.reasons)
        lines = [f"operation {len(self.history)}: {op}"]
        if key:
            lines += [f"{key}: expected {expected.values[key]!r}", f"got {values.get(key)!r}"]
            if isinstance(values.get(key), dict):
                odd = [
                    name
                    for name, value in expected.values[key].items()
                    if not fits(value, values[key].get(name))
                ]
                lines.append(f"differing: {odd}")
        else:
            lines += [f"expected reason {reasons}, got {cc}, {rc}"]
            lines += [values["exception"]] if "exception" in values else []
        raise Difference("\n".join(lines))

    def _end(self, op: Op) -> None:
        """A process ends; with the last one the queue manager does."""
        at, during = op["at"], op.get("during")
        twins: list[QueueManager] = []
        if during is not None:
            twins = self._outcomes(during)
            self.workers.post(at, during)
        if op["do"] == "kill":
            self.workers.kill(at)
        else:
            self.workers.leave(at)
        for model in (self.model, *twins):
            model.process_ends(at, normally=op["do"] == "leave")
            if not self.workers.by_number:
                model.restart(orderly=op["do"] == "leave")
        if twins:
            self._settle_on(twins)

    def _outcomes(self, op: Op) -> list[QueueManager]:
        """The model after a call that was killed in the middle: all of it, or of a put to a
        distribution list the first destinations, each of which is a separate put (3.6), and of a
        batch the first messages.
        """
        whole = copy.deepcopy(self.model)
        self.expect(whole, op)
        if op["do"] in ("put_batch", "get_batch"):
            return [whole, *(self._begun(op, count) for count in range(1, self._separate(op)))]
        return [whole, *(self._cut_short(op, count) for count in range(1, self._members(op)))]

    def _separate(self, op: Op) -> int:
        """The number of messages of a batch that take effect one by one, plus one."""
        arguments = {key: value for key, value in op.items() if key not in ("do", "at")}
        return separate(copy.deepcopy(self.model), op["do"], op["at"], arguments) + 1

    def _begun(self, op: Op, count: int) -> QueueManager:
        """The model after the first `count` messages of a batch."""
        twin = copy.deepcopy(self.model)
        fewer = {"rows": op["rows"][:count]} if "rows" in op else {"most": count}
        self.expect(twin, {**op, **fewer})
        return twin

    def _members(self, op: Op) -> int:
        connection = self.model.connections.get(op.get("hconn", -1))
        handle = connection.handles.get(op.get("hobj", -1)) if connection is not None else None
        return len(handle.members or ()) if handle is not None and op["do"] == "MQPUT" else 0

    def _cut_short(self, op: Op, count: int) -> QueueManager:
        """The model after a put to the first `count` destinations of a list."""
        twin = copy.deepcopy(self.model)
        members = twin.connections[op["hconn"]].handles[op["hobj"]].members
        assert members is not None
        rest = members[count:]
        del members[count:]
        self.expect(twin, op)
        members += rest
        return twin

    def _settle_on(self, twins: list[QueueManager]) -> None:
        """A call that was killed has happened as a whole or not at all, or is one of `twins`."""
        undone, told = self.model, []
        for model in (undone, *twins):
            self.model = model
            try:
                return self.compare_dumps()
            except Difference as difference:
                told.append(str(difference))
        self.model = undone
        raise Difference("\nand: ".join([f"neither done nor undone: {told[0]}", *told[1:]]))

    # ---- full pictures ----

    def compare_dumps(self) -> None:
        """Every queue: order, every field of every message, depth."""
        if not self.workers.by_number:
            self.workers.spawn(1)
        at = min(self.workers.by_number)
        expected = self.model.dump()
        _, _, actual = self.workers.ask(at, {"do": "dump", "queues": list(expected)})
        for name, picture in expected.items():
            if "exception" in actual:
                raise Difference(actual["exception"])
            self._compare_queue(name, picture, actual[name])
        recover = {"do": "recover", "at": at}
        self._compare(recover, self.expect(self.model, recover), self.workers.ask(at, recover))
        cc, rc, values = self.workers.ask(at, {"do": "check"})
        if cc:
            raise Difference(f"the engine's own check: {rc} {values}")

    def _compare_queue(self, name: str, expected: dict[str, Any], actual: dict[str, Any]) -> None:
        where = f"operation {len(self.history)}: dump of {name}"
        mine, theirs = expected["messages"], actual["messages"]
        if mine is not None and theirs is not None:
            for number, (message, other) in enumerate(zip(mine, theirs, strict=False)):
                if not fits(message["md"], other["md"]):
                    odd = {
                        key: (value, other["md"].get(key))
                        for key, value in message["md"].items()
                        if not fits(value, other["md"].get(key))
                    }
                    raise Difference(f"{where}: message {number}: (expected, got) {odd}")
                if not fits(message["data"], other["data"]):
                    raise Difference(
                        f"{where}: message {number}: {message['data']!r}, got {other['data']!r}"
                    )
                bind(message["md"], other["md"])
        counts = [None if one is None else len(one) for one in (mine, theirs)]
        if counts[0] != counts[1] or not fits(expected["depth"], actual["depth"]):
            raise Difference(
                f"{where}: expected {counts[0]} messages, depth {expected['depth']}; "
                f"got {counts[1]}, depth {actual['depth']}"
            )

    def close(self) -> None:
        self.workers.close()
        self.directory.cleanup()


# ---- whole runs ----


def play(forker: WorkerForker, ops: list[Op], platform: str = "unix") -> Difference | None:
    """Runs given operations on a new queue manager."""
    run = Run(forker, platform)
    try:
        for op in ops:
            run.apply(op)
        run.compare_dumps()
    except (Difference, EOFError, TimeoutError) as error:
        return error if isinstance(error, Difference) else Difference(repr(error))
    finally:
        run.close()
    return None


def explore(forker: WorkerForker, seed: int, steps: int, platform: str = "unix") -> int:
    """Random operations on a new queue manager; the number of them that ran.

    Raises Difference with a short list of operations that shows it.
    """
    run = Run(forker, platform)
    generator = Generator(random.Random(seed), run.model)
    try:
        while len(run.history) < steps:
            generator.model = run.model
            for op in generator.next(sorted(run.workers.by_number)):
                run.apply(op)
            if len(run.history) % DUMP_EVERY == 0:
                run.compare_dumps()
        run.compare_dumps()
        return len(run.history)
    except (Difference, EOFError, TimeoutError) as error:
        found, history = error, run.history
    finally:
        run.close()
    raise Difference(explain(forker, seed, platform, history, found))


def explain(
    forker: WorkerForker, seed: int, platform: str, history: list[Op], found: BaseException
) -> str:
    """The difference, and the shortest list of operations that was found to show one."""
    if isinstance(found, TimeoutError):  # each attempt would take as long
        at = f"seed {seed}, platform {platform}, operation {len(history)}"
        return f"{at}: no answer to the last of {history[-4:]}"
    short, last = shrink(forker, history, platform)
    return "\n".join(
        [
            f"seed {seed}, platform {platform}, after {len(history)} operations: {found!r}",
            f"{len(short)} operations show it: {last or found}",
            "ops = " + pprint.pformat(short, width=150, sort_dicts=False),
        ]
    )


def shrink(
    forker: WorkerForker, ops: list[Op], platform: str, seconds: float = 40
) -> tuple[list[Op], Difference | None]:
    """Leaves out operations as long as a difference remains."""
    deadline = time.monotonic() + seconds
    last = play(forker, ops, platform)
    if last is None:
        return ops, None
    size = max(1, len(ops) // 2)
    while size and time.monotonic() < deadline:
        at, progress = 0, False
        while at < len(ops) and time.monotonic() < deadline:
            fewer = ops[:at] + ops[at + size :]
            difference = play(forker, fewer, platform)
            if difference is not None:
                ops, last, progress = fewer, difference, True
            else:
                at += size
        if size == 1 and not progress:
            break
        size = max(1, size // 2) if not progress or size > 1 else 1
    return ops, last


__all__ = ["NO_ID", "Difference", "Run", "explore", "play", "shrink"]

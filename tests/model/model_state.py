"""The state of the model: objects, queues, messages, handles, units of work."""

from __future__ import annotations

import bisect
from typing import Any, NamedTuple

from mq_numbers import CC, OO, WARNINGS, R

LOCAL_DEFAULTS: dict[str, Any] = {
    "CAPEXPRY": -1,
    "DESCR": "",
    "DEFPRTY": 0,
    "DEFPSIST": 0,
    "DEFSOPT": 2,
    "DEFTYPE": 1,
    "GET": 0,
    "INITQ": "",
    "PROCESS": "",
    "PUT": 0,
    "MAXDEPTH": 5000,
    "MAXMSGL": 4194304,
    "MSGDLVSQ": 0,
    "NPMCLASS": 0,
    "SHARE": 1,
    "STREAMQ": "",
    "STRMQOS": 0,
    "TRIGDATA": "",
    "TRIGDPTH": 1,
    "TRIGGER": 0,
    "TRIGMPRI": 0,
    "TRIGTYPE": 1,
    "USAGE": 0,
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "QLOCAL": LOCAL_DEFAULTS,
    "QMODEL": {**LOCAL_DEFAULTS, "DEFTYPE": 3, "DEFSOPT": 4, "SHARE": 0},
    "QALIAS": {
        "CAPEXPRY": -1,
        "DESCR": "",
        "DEFPRTY": 0,
        "DEFPSIST": 0,
        "GET": 0,
        "PUT": 0,
        "TARGET": "",
    },
    "QREMOTE": {
        "CAPEXPRY": -1,
        "DESCR": "",
        "DEFPRTY": 0,
        "DEFPSIST": 0,
        "PUT": 0,
        "RNAME": "",
        "RQMNAME": "",
        "XMITQ": "",
    },
    "PROCESS": {"APPLICID": "", "APPLTYPE": 0, "ENVRDATA": "", "USERDATA": ""},
    "QMGR": {"DEFXMITQ": "", "MAXUMSGS": 10000, "MAXMSGL": 4194304, "MAXHANDS": 256},
}
# Changing one of these marks the handles that were resolved through the definition (2041).
RESOLUTION = frozenset({"TARGET", "RNAME", "RQMNAME", "XMITQ", "USAGE", "DEFXMITQ"})
TYPE_NUMBERS = {"QLOCAL": 1, "QMODEL": 2, "QALIAS": 3, "QREMOTE": 6}
PERMANENT_DYNAMIC, TEMPORARY_DYNAMIC = 2, 3


class Failure(Exception):
    """A call that fails and changes nothing. More than one reason: several errors apply and no
    document fixes which one is reported.
    """

    def __init__(self, *reasons: R) -> None:
        super().__init__(*reasons)
        self.reasons = frozenset(reasons)


def refuse_if(*causes: tuple[object, R]) -> None:
    """Fails when a cause holds, with any of those that do."""
    reasons = [reason for holds, reason in causes if holds]
    if reasons:
        raise Failure(*reasons)


class Answer(NamedTuple):
    """The result of a call: one of the reasons, and the required values."""

    reasons: frozenset[int]
    values: dict[str, Any]

    def completion_codes(self) -> frozenset[int]:
        codes = {completion_code(reason) for reason in self.reasons}
        if R.BACKED_OUT in self.reasons:
            codes.add(CC.WARNING)  # of an end of the unit; of a put or get it is a failure (6.1)
        return frozenset(codes)


def completion_code(reason: int) -> int:
    if reason == R.NONE:
        return CC.OK
    return CC.WARNING if reason in WARNINGS else CC.FAILED


def answer(reason: R = R.NONE, **values: Any) -> Answer:
    return Answer(frozenset({reason}), values)


# ---- expected values that are known in part ----


class Anything:
    """A value that the model does not predict."""

    def fits(self, actual: object) -> bool:
        return True

    def __repr__(self) -> str:
        return "anything"


class Either:
    """One of some values."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def fits(self, actual: object) -> bool:
        return actual in self.values

    def __repr__(self) -> str:
        return " or ".join(map(repr, self.values))


class Near:
    """The rest of an Expiry (tenths of a second) that was `given` at most an hour ago."""

    def __init__(self, given: int) -> None:
        self.given = given

    def fits(self, actual: object) -> bool:
        return isinstance(actual, int) and self.given - 36000 <= actual <= self.given

    def __repr__(self) -> str:
        return f"about {self.given}"


class Fresh:
    """An id that the queue manager generates: unique. The engine's value, once returned, replaces
    it in the message's MQMD.
    """

    def __init__(self, holder: dict[str, Any], field: str) -> None:
        self.holder, self.field = holder, field

    def fits(self, actual: object) -> bool:
        return isinstance(actual, bytes) and len(actual) == 24 and actual != bytes(24)

    def tell(self, actual: Any) -> None:
        self.holder[self.field] = actual

    def __repr__(self) -> str:
        return "a new id"


class SameId:
    """The id of another message, which the queue manager may have generated."""

    def __init__(self, fields: dict[str, Any], name: str) -> None:
        self.fields, self.name = fields, name

    def __eq__(self, other: object) -> bool:
        return bool(self.fields[self.name] == other)

    __hash__ = None  # type: ignore[assignment]

    def fits(self, actual: object) -> bool:
        known = self.fields[self.name]
        return bool(known == actual if isinstance(known, bytes) else known.fits(actual))

    def __repr__(self) -> str:
        return f"the same as {self.fields[self.name]!r}"


class FreshName(Fresh):
    """The generated name of a dynamic queue: the requested prefix, and more."""

    def __init__(self, objects: dict[str, Definition], queue: LocalQueue, prefix: str) -> None:
        self.objects, self.queue, self.prefix = objects, queue, prefix

    def fits(self, actual: object) -> bool:
        return (
            isinstance(actual, str)
            and actual.startswith(self.prefix)
            and len(self.prefix) < len(actual) <= 48
            and actual not in self.objects
        )

    def tell(self, actual: Any) -> None:
        del self.objects[self.queue.name]
        self.queue.name = actual
        self.objects[actual] = self.queue

    def __repr__(self) -> str:
        return f"a new name that begins with {self.prefix!r}"


class Between:
    """A count that depends on which expired messages were removed already."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def fits(self, actual: object) -> bool:
        return isinstance(actual, int) and self.low <= actual <= self.high

    def __repr__(self) -> str:
        return f"{self.low} to {self.high}"


class Transmitted:
    """The body of a message on a transmission queue: MQXQH with an embedded MQMD, then the data."""

    def __init__(self, queue: str, manager: str, md: dict[str, Any], data: bytes) -> None:
        self.queue, self.manager, self.md, self.data = queue, manager, md, data

    def __len__(self) -> int:
        return 428 + len(self.data)

    def __repr__(self) -> str:
        return f"<MQXQH for {self.queue!r} at {self.manager!r}, {self.md!r}, then {self.data!r}>"


# ---- objects and messages ----


class Definition:
    """An object. `version` rises when an attribute changes that name resolution used."""

    def __init__(self, kind: str, name: str, attrs: dict[str, Any]) -> None:
        self.kind = kind
        self.name = name
        self.attrs = {**DEFAULTS[kind], **attrs}
        self.version = 0
        self.deleted = False

    def __getitem__(self, keyword: str) -> Any:
        return self.attrs[keyword]

    def alter(self, attrs: dict[str, Any]) -> None:
        self.version += bool(RESOLUTION & attrs.keys())
        self.attrs.update(attrs)

    def __repr__(self) -> str:
        return f"{self.kind}({self.name})"


class Message:
    """A message on a queue. `md` is the result of MQGET, except for BackoutCount.

    Its position is fixed when it is put: placement priority, then arrival (4.2, 5.3). It is
    available when no unit of work has put or got it and no other handle has it locked.
    """

    def __init__(self, number: int, placement: int, md: dict[str, Any], data: Any) -> None:
        self.number = number
        self.placement = placement
        self.md = md
        self.data = data
        self.put_by: Unit | None = None
        self.got_by: Unit | None = None
        self.locked_by: Handle | None = None
        self.backout_count = 0
        self.expired = False
        self.stays = False  # a backout of the unit that has put it leaves it
        self.taken = False  # got by a prepared unit before a restart that would have lost it

    @property
    def place(self) -> tuple[int, int]:
        return (-self.placement, self.number)

    @property
    def persistent(self) -> bool:
        return self.md["Persistence"] == 1

    def available(self, handle: Handle | None) -> bool:
        return self.put_by is None and self.got_by is None and self.locked_by in (None, handle)


class LocalQueue(Definition):
    """A local queue with its messages in queue order, and the handles open on it."""

    def __init__(self, name: str, attrs: dict[str, Any], creator: Handle | None = None) -> None:
        super().__init__("QLOCAL", name, attrs)
        self.messages: list[Message] = []
        self.handles: list[Handle] = []
        self.creator = creator
        self.trigger_due = False

    @property
    def temporary(self) -> bool:
        return bool(self["DEFTYPE"] == TEMPORARY_DYNAMIC)

    def place(self, message: Message) -> None:
        """Links a message after the last one of its placement priority."""
        places = [other.place for other in self.messages]
        self.messages.insert(bisect.bisect(places, message.place), message)

    def depth(self) -> int | Between:
        """CURDEPTH: with uncommitted puts, without uncommitted gets (6.3 rules 1, 2); an expired
        message counts until a get finds it (5.7).
        """
        counted = [message for message in self.messages if message.got_by is None]
        live = sum(not message.expired for message in counted)
        return live if live == len(counted) else Between(live, len(counted))

    def busy(self) -> bool:
        """Some unit of work has put or got here and has not ended."""
        return any(message.put_by or message.got_by for message in self.messages)

    def open_count(self, options: int) -> int:
        return sum(bool(handle.options & options) for handle in self.handles)


class Handle:
    """An Hobj. `queue` is the target queue, also a transmission queue; `definition` is the opened
    object, which MQINQ and MQSET work on.
    """

    def __init__(self, connection: Connection, options: int, definition: Definition) -> None:
        self.connection = connection
        self.options = OO(options)
        self.definition = definition
        self.path: Path | None = None
        self.members: list[Handle | R] | None = None  # of a distribution list
        self.versions: list[tuple[Definition, int]] = []
        self.exclusive = False
        self.created = False  # this handle's MQOPEN made the temporary dynamic queue
        self.cursor: tuple[int, int] | None = None  # position of the message browsed last
        self.locked: Message | None = None
        self.context: dict[str, Any] | None = None  # of the message got last

    @property
    def queue(self) -> LocalQueue:
        assert self.path is not None
        return self.path.queue

    def spoilt(self) -> list[tuple[bool, R]]:
        """2052 for a deleted queue, 2041 when a definition changed that the name went through."""
        deleted = self.path is not None and self.queue.deleted
        changed = any(definition.version != version for definition, version in self.versions)
        return [(deleted, R.Q_DELETED), (changed and not deleted, R.OBJECT_CHANGED)]

    def check_usable(self, *others: R) -> None:
        """Refuses with what spoils the handle, or with one of `others`, which apply anyway."""
        causes = self.spoilt()
        if any(holds for holds, _ in causes):
            refuse_if(*causes, *((True, reason) for reason in others))

    def unlock(self) -> None:
        if self.locked is not None:
            self.locked.locked_by = None
        self.locked = None


class Path(NamedTuple):
    """The result of resolving a name: the definitions used, of which the first one supplies DEFPRTY
    and DEFPSIST, and the last one is the queue; `remote` is (queue, queue manager) for a message to
    be transmitted.
    """

    steps: list[Definition]
    queue: LocalQueue
    remote: tuple[str, str] | None = None
    by_manager_name: bool = False  # ObjectQMgrName decided, not a local definition


class Unit:
    """A unit of work: what it has put (True) and got (False), in the order of the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[bool, LocalQueue, Message]] = []
        self.failed = False  # a persistent report had no place: it can only be backed out

    def add(self, queue: LocalQueue, message: Message, put: bool) -> None:
        self.calls.append((put, queue, message))

    @property
    def puts(self) -> list[tuple[LocalQueue, Message]]:
        return [(queue, message) for put, queue, message in self.calls if put]

    @property
    def gets(self) -> list[tuple[LocalQueue, Message]]:
        return [(queue, message) for put, queue, message in self.calls if not put]

    @property
    def count(self) -> int:
        return len(self.calls)

    def commit(self) -> bool:
        """Whether it was committed; one that failed is backed out."""
        if self.failed:
            self.back_out()
            return False
        for _, message in self.puts:
            message.put_by = None
        for queue, message in self.gets:
            _remove(queue.messages, message)
        self.__init__()  # type: ignore[misc]
        return True

    def back_out(self) -> int:
        """Puts disappear; gets return to their positions, BackoutCount one higher (5.8), except
        those that a restart has discarded, whose number is returned.
        """
        for queue, message in self.puts:
            message.put_by = None
            if not message.stays:
                _remove(queue.messages, message)
        discarded = 0
        for queue, message in self.gets:
            if message.taken:
                _remove(queue.messages, message)
                discarded += 1
            message.got_by = None
            message.backout_count += 1
        self.__init__()  # type: ignore[misc]
        return discarded


class Connection:
    """An Hconn: handles and its own unit of work."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.handles: dict[int, Handle] = {}
        self.unit = Unit()


def _remove(messages: list[Message], message: Message) -> None:
    if message in messages:  # a deleted queue has lost its messages already
        messages.remove(message)

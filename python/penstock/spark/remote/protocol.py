"""What the data source and the server say to each other: requests of op ``spark``.

The server has the readers and writers of penstock.spark.source and sink, and calls them for the
driver and the tasks of a job on other hosts. So a request is a call of one of them; option mode
says whether of queues or of the journal:

===========  ==========  ======================  ==================================================
call         sent as     fields besides          answer
===========  ==========  ======================  ==================================================
hello        do_action                           host, and the queue manager's id
plan         do_action   session, start, end;    partitions; of a batch read without the fields
                         newest
initial      do_action   session                 offset
latest       do_action   session, start, limit;  offset
                         newest
report       do_action   session                 progress
commit       do_action   session, end            nothing
bind         do_action   session                 newest message of each queue, by number
alive, stop  do_action   session                 nothing
rows         do_get      partition               rows
check        do_action                           nothing: the queues can be written
write        do_put      run, task               what was written
end          do_action   written, once, run      nothing: all of it is committed
drop         do_action   written, run            nothing: all of it is backed out
===========  ==========  ======================  ==================================================

All have manager, use (read, stream, write or sink), application, options (those of the data source
as they are given, but for those that say where it is) and schema (Spark's, as JSON). An answer is
``{"result": ..., "warnings": [...]}``. A call can be repeated, but for a write, whose rows are sent
once: its task is repeated by Spark, under another attempt.

A session is a stream's reader in the server. Like the process of a driver it keeps nothing that
must outlive it: where it is gone, the next call has another one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock import MQError, Xid

from ..base import errors, units
from ..base.errors import SourceError
from ..base.host import Host
from ..sink.written import Run, Task, Written

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition

__all__ = [
    "OF_PLACE",
    "OP",
    "USES",
    "Call",
    "WrongRequest",
    "error_named",
    "host_of",
    "kind_of",
    "parse",
    "partition_from",
    "partition_json",
    "queues_of",
    "run_from",
    "task_from",
    "written_from",
    "written_json",
]

OP = "spark"
USES = {"read": "batch read", "stream": "streaming source", "write": "batch sink",
        "sink": "streaming sink"}  # fmt: skip
OF_PLACE = frozenset(
    ("queuemanager", "home", "endpoint", "token", "tokenfile", "cafile", "certificatefile",
     "keyfile")
)  # fmt: skip
"""Options, in lower case, that say where the queue manager is: the client's own."""
_MOST_BYTES = 8 << 20  # of a request: 4,095 units of a batch are 0.6 MB
_NEEDED = {"manager": str, "use": str, "call": str, "application": str, "options": dict,
           "schema": str}  # fmt: skip
_FIELDS: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "hello": {},
    "plan": {"session": (str,), "start": (dict,), "end": (dict,), "newest": (dict, type(None))},
    "initial": {"session": (str,)},
    "latest": {"session": (str,), "start": (dict,), "limit": (list,),
               "newest": (dict, type(None))},
    "report": {"session": (str,)},
    "commit": {"session": (str,), "end": (dict,)},
    "bind": {"session": (str,)},
    "alive": {"session": (str,)},
    "stop": {"session": (str,)},
    "rows": {"partition": (dict,)},
    "check": {},
    "write": {"run": (list,), "task": (list,)},
    "end": {"written": (list,), "once": (bool,), "run": (list,)},
    "drop": {"written": (list,), "run": (list, type(None))},
}  # fmt: skip
_OF_READ = ("hello", "plan", "rows")
_CALLS = {
    "read": _OF_READ,
    "stream": (*_OF_READ, "initial", "latest", "report", "commit", "bind", "alive", "stop"),
    "write": ("hello", "check", "write", "end", "drop"),
    "sink": ("hello", "check", "write", "end", "drop"),
}
_SESSION = re.compile(r"[0-9a-f]{32}")
_ID = re.compile(r"[A-Za-z0-9-]{1,36}")
_TYPE = re.compile(r"[a-z0-9_(), ]{1,40}")
_MOST = (1 << 63) - 1


class WrongRequest(SourceError):
    """A request that no client of this version sends."""


class Call(NamedTuple):
    """A request that has been checked.

    Attributes:
        given: The options.
        schema: As JSON.
        fields: Those of the call.
    """

    manager: str
    use: str
    call: str
    application: str
    given: dict[str, str]
    schema: str
    fields: dict[str, Any]

    def text(self) -> bytes:
        """As it is sent."""
        own = {
            "op": OP, "manager": self.manager, "use": self.use, "call": self.call,
            "application": self.application, "options": self.given, "schema": self.schema,
        }  # fmt: skip
        return json.dumps({**own, **self.fields}).encode()


def parse(text: bytes, calls: Sequence[str]) -> Call:
    """Reads and checks a request.

    Args:
        text: As it came.
        calls: That it may be.

    Raises:
        WrongRequest: It is none.
    """
    if len(text) > _MOST_BYTES:
        raise WrongRequest(f"a request of {len(text)} bytes, more than {_MOST_BYTES}")
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise WrongRequest("a request that is not JSON") from None
    if not isinstance(given, dict) or given.pop("op", None) != OP:
        raise WrongRequest("a request that is none of Spark")
    own = {name: given.pop(name, None) for name in _NEEDED}
    for name, kind in _NEEDED.items():
        if not isinstance(own[name], kind):
            raise WrongRequest(f"{name} is {own[name]!r:.80}")
    use, call = own["use"], own["call"]
    if use not in _CALLS or call not in _CALLS[use] or call not in calls:
        raise WrongRequest(f"call {call!r:.40} of use {use!r:.40} is not one of these")
    fields = _FIELDS[call]
    if call == "plan" and use == "read":
        fields = {}
    if set(given) != set(fields):
        raise WrongRequest(f"call {call} has the fields {', '.join(fields) or 'of every call'}")
    for name, kinds in fields.items():
        if not isinstance(given[name], kinds):
            raise WrongRequest(f"{name} is {given[name]!r:.80}")
    _check_texts(own["options"])
    _check_schema(own["schema"])
    if "session" in given and not _SESSION.fullmatch(given["session"]):
        raise WrongRequest("session is no session")
    return Call(
        own["manager"], use, call, own["application"][:200], own["options"], own["schema"], given
    )


def _check_texts(found: dict[Any, Any]) -> None:
    for name, value in found.items():
        if not isinstance(value, str):
            raise WrongRequest(f"option {name!r:.40} is {value!r:.80}, no text")


def _check_schema(text: str) -> None:
    """Raises WrongRequest for what is none of Spark's own types: a name of a class, which Spark
    would import.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise WrongRequest("schema is not JSON") from None
    if not isinstance(found, dict) or found.get("type") != "struct":
        raise WrongRequest("schema is no struct")
    pending: list[Any] = [found]
    while pending:
        kind = pending.pop()
        if isinstance(kind, str):
            if not _TYPE.fullmatch(kind):
                raise WrongRequest(f"schema has the type {kind!r:.80}")
        elif not isinstance(kind, dict):
            raise WrongRequest(f"schema has {kind!r:.80}")
        elif kind.get("type") == "struct" and isinstance(kind.get("fields"), list):
            for one in kind["fields"]:
                if not isinstance(one, dict) or not isinstance(one.get("name"), str):
                    raise WrongRequest(f"schema has the field {one!r:.80}")
                pending.append(one.get("type"))
        elif kind.get("type") == "array":
            pending.append(kind.get("elementType"))
        elif kind.get("type") == "map":
            pending += [kind.get("keyType"), kind.get("valueType")]
        else:
            raise WrongRequest(f"schema has {kind!r:.80}")


# ---- partitions ----


def partition_json(partition: InputPartition) -> dict[str, Any]:
    """A partition as it is sent."""
    from ..source.browse import Ranges, Walk
    from ..source.journal_events import EventSlice
    from ..source.journal_records import Segment
    from ..source.partitions import Slice
    from ..source.probe import Probe
    from .journal_part import JournalPart, part_of

    if isinstance(partition, Slice):
        return {
            "kind": "slice",
            "groups": [[list(piece) for piece in group] for group in partition.groups],
            "rules": {queue: list(rules) for queue, rules in partition.rules.items()},
        }
    if isinstance(partition, Probe):
        return {"kind": "probe", "number": partition.value, "queues": list(partition.queues)}
    if isinstance(partition, (Segment, EventSlice)):
        partition = part_of(partition)
    if isinstance(partition, JournalPart):
        return partition.to_json()
    assert isinstance(partition, Ranges)
    ranges = [["walk" if isinstance(one, Walk) else "interval", *one] for one in partition.ranges]
    return {"kind": "ranges", "ranges": ranges}


def partition_from(found: Mapping[str, Any], where: Host) -> InputPartition:
    """The partition that was sent. Raises WrongRequest: it is none."""
    from ..source.partitions import Slice
    from ..source.probe import Probe
    from .journal_part import JournalPart

    kind = found.get("kind")
    try:
        if kind == "slice":
            return Slice(_groups(found["groups"]), where, _rules(found["rules"]))
        if kind == "probe":
            queues = [_of(str, queue) for queue in found["queues"]]
            return Probe(_of(int, found["number"]), where, queues)
        if kind == "ranges":
            return _ranges(found["ranges"], where)
        if kind in ("events", "records"):
            return JournalPart(kind, found)
    except (KeyError, TypeError, ValueError, MQError) as error:
        raise WrongRequest(f"a partition is wrong: {error!r:.80}") from None
    raise WrongRequest(f"a partition of kind {kind!r:.40}")


def _groups(found: Any) -> list[Any]:
    from ..source.partitions import Piece

    groups = [[Piece(*piece) for piece in group] for group in found]
    for piece in (piece for group in groups for piece in group):
        if units.queue_of(Xid.parse(_of(str, piece.unit))) is None:
            raise ValueError(f"unit {piece.unit}")
        _number(piece.first), _number(piece.last), _number(piece.mean_bytes)
    if not all(groups):
        raise ValueError("an empty group")
    return groups


def _rules(found: Any) -> dict[str, Any]:
    from ..source.rules import DEAD_LETTER, FAIL, NULL, Rules

    rules = {_of(str, queue): Rules(*one) for queue, one in _of(dict, found).items()}
    for one in rules.values():
        _number(one.threshold)
        if one.on_bad not in (FAIL, NULL, DEAD_LETTER):
            raise ValueError(one.on_bad)
    return rules


def _ranges(found: Any, where: Host) -> InputPartition:
    from ..source.browse import Interval, Ranges, Walk

    ranges: list[Walk | Interval] = []
    for kind, queue, *rest in found:
        if kind == "walk":
            ((a, b), (c, d)), up_to = rest
            ends = (_number(a), _number(b)), (_number(c), _number(d))
            ranges.append(Walk(_of(str, queue), ends, _number(up_to)))
        else:
            ((a, b),) = rest
            ranges.append(Interval(_of(str, queue), (_number(a), _number(b))))
    return Ranges(ranges, where)


def queues_of(partition: InputPartition) -> set[str]:
    """The queues whose messages it has; none where it is a part of the journal."""
    from ..source.partitions import Slice
    from ..source.probe import Probe
    from .journal_part import JournalPart

    if isinstance(partition, Slice):
        pieces = [piece for group in partition.groups for piece in group]
        return {units.queue_of(Xid.parse(piece.unit)) or "" for piece in pieces}
    if isinstance(partition, Probe):
        return set(partition.queues)
    if isinstance(partition, JournalPart):
        return set()
    return {one.queue for one in partition.ranges}


def _of(kind: Callable[..., Any], value: Any) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{value!r:.40} is no {getattr(kind, '__name__', kind)}")
    return value


def _number(value: Any) -> int:
    if not 0 <= _of(int, value) < 1 << 64:
        raise ValueError(f"{value} is no number of messages")
    return int(value)


# ---- writes ----


def run_from(found: Sequence[Any]) -> Run:
    """The run that was sent. Raises WrongRequest."""
    if len(found) == 3 and all(isinstance(one, str) and _ID.fullmatch(one) for one in found[::2]):
        sink, version, write = found
        if type(version) is int and 0 <= version <= _MOST:
            return Run(sink, version, write)
    raise WrongRequest(f"run is {found!r:.80}")


def task_from(found: Sequence[Any]) -> Task:
    """The task that was sent. Raises WrongRequest."""
    if len(found) == 4 and all(type(one) is int and 0 <= one <= _MOST for one in found):
        return Task(*found)
    raise WrongRequest(f"task is {found!r:.80}")


def written_json(written: Written) -> dict[str, Any]:
    """What a task has written as it is sent."""
    return {
        "sink": written.sink,
        "version": written.version,
        "partition": written.partition,
        "counts": written.counts,
        "warnings": written.warnings,
        "dead": {str(reason): count for reason, count in written.dead.items()},
    }


def written_from(found: Any) -> Written:
    """What was sent. Raises WrongRequest: it has units that are none of its batch."""
    try:
        sink, version = _of(str, found["sink"]), _of(int, found["version"])
        counts = {_of(str, xid): _number(count) for xid, count in found["counts"].items()}
        for xid in counts:
            if (units.write_of(Xid.parse(xid)) or ("",))[:2] != (sink, version):
                raise ValueError(f"unit {xid} is none of the batch")
        dead = {int(reason): _number(count) for reason, count in found["dead"].items()}
        number, count = _of(int, found["partition"]), _number(found["warnings"])
        return Written(sink, version, number, counts, count, dead)
    except (KeyError, TypeError, AttributeError, ValueError, MQError) as error:
        raise WrongRequest(f"what was written is wrong: {error!r:.80}") from None


# ---- answers ----


def host_of(found: Sequence[str]) -> Host:
    """A host as it is sent."""
    name, boot_id, machine_id = found
    return Host(name, boot_id, machine_id)


def kind_of(error: SourceError) -> str:
    """The name by which an error is sent."""
    return type(error).__name__


def error_named(kind: str, text: str) -> SourceError:
    """The error that was sent; SourceError where this version has no such one."""
    found = getattr(errors, kind, SourceError) if kind in errors.__all__ else SourceError
    is_error = isinstance(found, type) and issubclass(found, SourceError)
    return found(text) if is_error else SourceError(text)

"""What clients and the server of penstock.flight say to each other.

A ticket, the command of a descriptor and the body of an action are a JSON object, a *request*:

=========  ==========  ===================================  =======================================
op         sent as     fields                               answer
=========  ==========  ===================================  =======================================
browse     do_get      manager, queue, columns, range       rows; nothing is taken
read       do_get      manager, unit, attempt, columns,     rows of what was taken
                       first, last
journal    do_get      manager, queues, columns, events,    rows: events of decided units
                       start, end, history
put        do_put      manager, queue, unit, attempt        state, messages
take       do_action   manager, queue, unit, attempt,       state, messages, bytes
                       messages, bytes
commit     do_action   manager, unit, attempt               state, messages
backout    do_action   manager, unit, attempt               state
units      do_action   manager                              one of each unit that is prepared
queues     do_action   manager                              one of each queue: name, depth
ranges     do_action   manager, queue, parts                one of each: range
journal_   do_action   manager                              oldest, end, history
range
=========  ==========  ===================================  =======================================

A *unit* is a unit of work with a name that the client gives; its *attempt* counts the client's
tries. The *state* is ``prepared``, ``committed`` or ``backed out``. A *range* is two positions in a
queue's order and the newest message that counts; none: the whole queue as it is now. first and last
number the messages of a unit, from 0 on; last 0: all. start and end are LSNs of the journal; end 0:
what is durable. The rows of a put are followed by metadata, ``{"rows": 17}``: how many there were.
Errors carry a JSON object in their extra information: the reason code of MQ, or the kind of a
Refusal, and the text.

Requests of other ops are those of the server's extensions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..constants import ReasonCode
from ..errors import InvalidValue, MQError, error_for

__all__ = [
    "MOST_BYTES",
    "Refusal",
    "Request",
    "error_of",
    "op_of",
    "parse",
    "written",
    "written_end",
    "written_error",
]

MOST_BYTES = 64 << 10  # of a request
_MOST = (1 << 63) - 1
_UNIT = re.compile(r"[A-Za-z0-9._:-]{1,40}")
_NAME = re.compile(r"[A-Za-z0-9./_%]{1,48}")
_HISTORY = re.compile(r"(?:[0-9a-f]{32} [0-9]{1,10})?")
_RANGE = 5  # numbers: two positions, and a message's
_HIGHEST = 9  # priority

_OF_UNIT = ("manager", "unit", "attempt")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "browse": ("manager", "queue", "columns", "range"),
    "read": (*_OF_UNIT, "columns", "first", "last"),
    "journal": ("manager", "queues", "columns", "events", "start", "end", "history"),
    "put": ("manager", "queue", "unit", "attempt"),
    "take": ("manager", "queue", "unit", "attempt", "messages", "bytes"),
    "commit": _OF_UNIT,
    "backout": _OF_UNIT,
    "units": ("manager",),
    "queues": ("manager",),
    "ranges": ("manager", "queue", "parts"),
    "journal_range": ("manager",),
}


@dataclass(frozen=True)
class Request:
    """A request that has been checked; fields that its op does not have are empty."""

    op: str
    manager: str = ""
    queue: str = ""
    unit: str = ""
    attempt: int = 0
    messages: int = 0
    bytes: int = 0
    columns: tuple[str, ...] = ()  # none: all
    range: tuple[int, ...] = ()
    first: int = 0
    last: int = 0
    parts: int = 0
    queues: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    start: int = 0
    end: int = 0
    history: str = ""


def written(request: Request) -> bytes:
    """As it is sent."""
    names = ("op", *FIELDS[request.op])
    return json.dumps({name: getattr(request, name) for name in names}).encode()


def parse(text: bytes, ops: tuple[str, ...], op: str | None = None) -> Request:
    """Reads and checks a request.

    Args:
        text: As it came.
        ops: That it may be.
        op: That it is, where the call says it, too.

    Raises:
        InvalidValue: 2046: it is none.
    """
    if len(text) > MOST_BYTES:
        raise _refused(f"it has {len(text)} bytes, more than {MOST_BYTES}")
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise _refused("it is not JSON") from None
    if not isinstance(given, dict):
        raise _refused("it is no JSON object")
    found = given.pop("op", None)
    if found not in ops or (op is not None and found != op):
        raise _refused(f"its op is {_shown(found)}, not {op or ' or '.join(ops)}")
    wanted = FIELDS[found]
    unknown = sorted(set(given) - set(wanted))
    missing = [name for name in wanted if name not in given]
    if unknown or missing:
        raise _refused(f"fields {', '.join(wanted)} are wanted, not {_shown(sorted(given))}")
    for name, value in given.items():
        _check(name, value)
    own: dict[str, Any] = {
        name: tuple(one) if isinstance(one, list) else one for name, one in given.items()
    }
    return Request(found, **own)


def _check(name: str, value: object) -> None:
    kinds = {field.name: field.type for field in fields(Request)}
    if kinds[name] == "int":
        least = 1 if name in ("attempt", "parts") else 0
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
            raise _refused(f"{name} is {_shown(value)}, not a whole number of at least {least}")
        return
    if kinds[name] == "tuple[str, ...]":
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise _refused(f"{name} is {_shown(value)}, no list of names")
        return
    if name == "range":
        if value != [] and not _is_range(value):
            raise _refused(f"range is {_shown(value)}, not one that was given")
        return
    pattern = {"unit": _UNIT, "history": _HISTORY}.get(name, _NAME)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise _refused(f"{name} is {_shown(value)}, which must match {pattern.pattern}")


def _is_range(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == _RANGE
        and all(type(one) is int and 0 <= one < 1 << 64 for one in value)
        and value[0] <= _HIGHEST >= value[2]
    )


def _shown(value: object) -> str:
    return f"{value!r:.80}"


def _refused(text: str) -> InvalidValue:
    return InvalidValue(ReasonCode.OPTIONS_ERROR, f"the request is refused: {text}")


def written_end(rows: int) -> bytes:
    """What ends the rows of a put: their number."""
    return json.dumps({"rows": rows}).encode()


def op_of(text: bytes) -> str | None:
    """The op of a request of any kind; None: it has none."""
    try:
        found = json.loads(text).get("op")
    except (ValueError, RecursionError, AttributeError):
        return None
    return found if isinstance(found, str) else None


# ---- errors ----


class Refusal(Exception):
    """An error of an extension, which is none of MQ.

    Attributes:
        kind: Which one, for the extension's client.
        text: A sentence.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text


def written_error(error: MQError | Refusal) -> bytes:
    """An error as it is sent."""
    if isinstance(error, Refusal):
        return json.dumps({"kind": error.kind, "text": error.text}).encode()
    return json.dumps({"reason": int(error.reason), "text": error.text}).encode()


def error_of(text: bytes) -> MQError | Refusal | None:
    """The error that was sent; None: none of ours."""
    try:
        found = json.loads(text)
        said = found["text"]
        which = found["kind"] if "kind" in found else found["reason"]
    except (ValueError, TypeError, KeyError):
        return None
    if not isinstance(said, str):
        return None
    if isinstance(which, str):
        return Refusal(which, said)
    return error_for(which, said) if isinstance(which, int) else None

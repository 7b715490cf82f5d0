"""Schedules: durable objects that put a job on a queue again and again.

Terms
    definition   what a schedule is: a persistent message on SYSTEM.PENSTOCK.SCHEDULES, JSON, with
                 a version that each change raises. Its CorrelId is a hash of the name.
    tick         the promise of its next occurrence: a persistent delayed message on
                 SYSTEM.PENSTOCK.TICKS, with the version of the definition that it was made for.
    occurrence   a moment at which a job is due (occurrences.py).

Once each. Whoever gets a due tick puts the jobs and the next tick in the unit of work with that
get: however many processes run schedules, and whenever one is killed, each occurrence is handled
once. A failure (2053, 2085, ...) backs the unit out, and the tick waits as a message of a consumer
does (consume.py); what was due meanwhile is then missed, and the policy says what becomes of it.

Changes. A definition is replaced, and its new tick put, in one unit; the tick of an earlier version
is dropped when it is due, and taken away at once where that is possible. Who changes definitions,
or reads one to act on it, has their queue open exclusively, for some milliseconds. So one that is
not found does not exist; while a unit of a killed process still holds one, the reader tries again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ..constants import ReasonCode
from ..errors import (
    InvalidType,
    InvalidValue,
    ObjectAlreadyExists,
    ObjectInUse,
    PutInhibited,
    QueueFull,
    UnknownObjectName,
)
from ..names import check_object_name
from .occurrences import MISSED, Times, due_jobs, microseconds, moment_of, slack_of, times_of
from .retry import Retry

if TYPE_CHECKING:
    from .._engine import Message, Unit
    from .consume import Consumer
    from .queue import Queue

__all__ = [
    "RETRY", "Attempts",
    "DEFINITIONS", "TICKS", "Schedule", "delete", "every_schedule", "occurrence", "open_ticks",
    "runner", "set_schedule",
]  # fmt: skip
_Result = TypeVar("_Result")

DEFINITIONS = "SYSTEM.PENSTOCK.SCHEDULES"
TICKS = "SYSTEM.PENSTOCK.TICKS"
_ATTRIBUTES: dict[str, Any] = {"defpsist": True, "maxdepth": 999999999}
_WAIT_SECONDS = 60.0  # for others that have the definitions open, and for the sweep of killed ones
_NAME_LENGTH = 100  # characters
_FIELDS = frozenset(
    ("data", "json", "priority", "persistent", "expiry", "correl_id", "format", "reply_to_q")
)  # of put() that a schedule keeps


@dataclass(frozen=True)
class Schedule:
    """A schedule as it is.

    Attributes:
        name, queue: its name, and the queue of its jobs.
        put: the arguments of the put of a job.
        every: the interval; None: ``cron`` and ``zone`` say when.
        missed: "one", "all" or "skip".
        grace: how late a job may be with "skip".
        due: its next occurrence, UTC; None: it is being handled, or waits after a failure.
    """

    name: str
    queue: str
    put: dict[str, Any]
    every: timedelta | None
    cron: str | None
    zone: str | None
    missed: str
    grace: timedelta
    due: datetime | None


class Manager(Protocol):
    """What is used of a QueueManager."""

    @property
    def name(self) -> str: ...

    def open(self, name: str, **how: Any) -> Queue: ...

    def define(self, kind: str, name: str, **attributes: Any) -> object: ...

    def unit(self) -> Unit: ...

    def advanced_us(self) -> int: ...


# ---- what is stored ----


def _key(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()[:24]


def _stored(value: Any) -> Any:
    """bytes as JSON has them."""
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _given(value: Any) -> Any:
    """The same back."""
    is_bytes = isinstance(value, dict) and value.keys() == {"base64"}
    return base64.b64decode(value["base64"]) if is_bytes else value


def _arguments(stored: dict[str, Any]) -> dict[str, Any]:
    """Of the put of a job."""
    return {name: value if name == "json" else _given(value) for name, value in stored.items()}


def _checked_put(put: Any) -> dict[str, Any]:
    """The arguments of a job's put. Raises InvalidType, InvalidValue: 2046."""
    fields = dict(put) if isinstance(put, Mapping) else {"data": put}
    unknown = sorted(str(name) for name in fields.keys() - _FIELDS)
    if unknown:
        raise InvalidValue(
            ReasonCode.OPTIONS_ERROR,
            f"put has {', '.join(unknown)}; a schedule keeps {', '.join(sorted(_FIELDS))}",
        )
    for name, value in fields.items():
        if isinstance(value, (bytearray, memoryview)):
            fields[name] = bytes(value)
    fields.setdefault("persistent", True)
    return fields


def _check_name(name: Any) -> str:
    if not isinstance(name, str):
        raise InvalidType(ReasonCode.OPTIONS_ERROR, f"the name is a text, not {name!r:.60}")
    if not 0 < len(name) <= _NAME_LENGTH or not name.isprintable() or name != name.strip():
        raise InvalidValue(
            ReasonCode.OPTIONS_ERROR,
            f"schedule name {name!r:.120}: it takes 1 to {_NAME_LENGTH} printable characters "
            "without blanks at its ends",
        )
    return name


# ---- the two queues ----


def _opened(qm: Manager, name: str, **how: Any) -> Queue:
    """Opens one of the two queues; the first use makes it."""
    while True:
        try:
            return qm.open(name, **how)
        except UnknownObjectName:
            with suppress(ObjectAlreadyExists):  # another process was faster
                qm.define("QLOCAL", name, descr="of schedules", **_ATTRIBUTES)


def _alone(qm: Manager) -> Queue:
    """The definitions, open for the caller alone. Raises ObjectInUse: 2042: another has them."""
    return _opened(qm, DEFINITIONS, exclusive=True, browse=True)


def _find(queue: Queue, name: str) -> dict[str, Any] | None:
    """The definition; the queue is open exclusively. Raises ObjectInUse: 2042: a unit of work of a
    killed process, which is not backed out yet, may have it.
    """
    for message in queue.browse(correl_id=_key(name)):
        found: dict[str, Any] = json.loads(message.data)
        return found
    if queue.status().uncommitted:
        raise ObjectInUse(ReasonCode.OBJECT_IN_USE, f"schedule {name} is in a unit of work")
    return None


class Attempts:
    """What is tried again while it raises ObjectInUse: for a minute, with pauses."""

    pause = 0.01  # seconds

    def __init__(self) -> None:
        self._end = time.monotonic() + _WAIT_SECONDS

    def check(self, error: ObjectInUse) -> None:
        """After a failure: raises it when the minute is over."""
        if time.monotonic() > self._end:
            raise error


def _patiently(call: Callable[..., _Result], *given: Any) -> _Result:
    """Calls until others let it. Raises ObjectInUse: 2042, after a minute."""
    attempts = Attempts()
    while True:
        try:
            return call(*given)
        except ObjectInUse as error:
            attempts.check(error)
            time.sleep(attempts.pause)


def _tick(name: str, version: int, due: int) -> dict[str, Any]:
    """The arguments of the put of a tick."""
    return {
        "json": {"name": name, "version": version, "time": due},
        "correl_id": _key(name),
        "persistent": True,
        "at": moment_of(due),
    }


# ---- changes ----


def set_schedule(
    qm: Manager,
    name: str,
    queue: str,
    put: Any,
    times: tuple[Any, Any, Any, Any],
    missed: str,
    grace: Any,
) -> Schedule:
    """QueueManager.schedule(); times: every, cron, zone, start."""
    _check_name(name)
    check_object_name(queue)
    when = times_of(*times)
    if missed not in MISSED:
        raise InvalidValue(
            ReasonCode.OPTIONS_ERROR, f"missed is one of {', '.join(MISSED)}, not {missed!r}"
        )
    slack = slack_of(grace)
    arguments = _checked_put(put)
    _try_put(qm, queue, arguments)
    definition = {
        "name": name, "queue": queue, "missed": missed, "grace": slack,
        "put": {key: v if key == "json" else _stored(v) for key, v in arguments.items()},
        **when._asdict(),
    }  # fmt: skip
    now = microseconds(datetime.now(timezone.utc)) + qm.advanced_us()
    _patiently(_replace, qm, name, definition, when.first(now, times[-1] is not None))
    return next(one for one in every_schedule(qm) if one.name == name)


def _try_put(qm: Manager, queue: str, arguments: dict[str, Any]) -> None:
    """Raises what the put of a job would raise, but for a queue that is full or closed now."""
    with qm.open(queue, input=False, browse=False) as target, qm.unit() as unit:
        with suppress(QueueFull, PutInhibited):
            target.put(**arguments, unit=unit)
        unit.backout()


def _replace(qm: Manager, name: str, definition: dict[str, Any], due: int) -> None:
    """One attempt. Raises ObjectInUse: 2042."""
    with _alone(qm) as queue, _opened(qm, TICKS, browse=True) as ticks:
        before = _find(queue, name)
        version = 1 if before is None else before["version"] + 1
        with qm.unit() as unit:
            if before is not None:
                queue.get(correl_id=_key(name), unit=unit)
            queue.put(
                json={**definition, "version": version}, correl_id=_key(name), persistent=True,
                unit=unit,
            )  # fmt: skip
            ticks.put(**_tick(name, version, due), unit=unit)
            unit.commit()
        _cancel(ticks, name, version)


def delete(qm: Manager, name: str) -> None:
    """QueueManager.delete_schedule()."""
    _check_name(name)
    _patiently(_delete, qm, name)


def _delete(qm: Manager, name: str) -> None:
    """One attempt. Raises ObjectInUse: 2042."""
    with _alone(qm) as queue, _opened(qm, TICKS, browse=True) as ticks:
        if _find(queue, name) is None:
            raise UnknownObjectName(
                ReasonCode.UNKNOWN_OBJECT_NAME, f"{qm.name} has no schedule {name}"
            )
        queue.get(correl_id=_key(name), syncpoint=False)
        _cancel(ticks, name, None)


def _cancel(ticks: Queue, name: str, version: int | None) -> None:
    """Takes ticks away, but for those of a version. One that a runner has got is dropped by it."""
    for message in list(ticks.browse(delayed=True)):
        if message.correl_id == _key(name) and json.loads(message.data)["version"] != version:
            ticks.cancel(message.msg_id)


# ---- looking ----


def every_schedule(qm: Manager) -> list[Schedule]:
    """QueueManager.schedules()."""
    try:
        with qm.open(DEFINITIONS, input=False, output=False, browse=True) as queue:
            stored = [json.loads(message.data) for message in queue.browse()]
        with qm.open(TICKS, input=False, output=False, browse=True) as ticks:
            due = {
                (tick["name"], tick["version"]): moment_of(tick["time"])
                for tick in (json.loads(message.data) for message in ticks.browse(delayed=True))
            }
    except UnknownObjectName:
        return []
    return sorted(
        (_shown(one, due.get((one["name"], one["version"]))) for one in stored),
        key=lambda one: one.name,
    )


def _shown(stored: dict[str, Any], due: datetime | None) -> Schedule:
    every = stored["every"]
    return Schedule(
        name=stored["name"],
        queue=stored["queue"],
        put=_arguments(stored["put"]),
        every=timedelta(microseconds=every) if every else None,
        cron=stored["cron"] or None,
        zone=stored["zone"] or None,
        missed=stored["missed"],
        grace=timedelta(microseconds=stored["grace"]),
        due=due,
    )


# ---- running ----


class Occurrence(NamedTuple):
    """What a due tick asks for: so many jobs, and the next tick.

    Attributes:
        queue, put: where the jobs go, and the arguments of their puts.
        jobs: how many.
        tick: the arguments of the put of the next tick.
    """

    queue: str
    put: dict[str, Any]
    jobs: int
    tick: dict[str, Any]


RETRY = Retry(1.0, factor=2.0, longest=60.0, jitter=0.1)  # of a tick that could not be handled


def open_ticks(qm: Manager) -> Queue:
    """The queue of the ticks, open for input."""
    return _opened(qm, TICKS)


def occurrence(qm: Manager, body: bytes) -> Occurrence | None:
    """What a tick asks for; None: the schedule was changed or deleted since. One attempt.

    Raises:
        ObjectInUse: 2042: another process has the definitions at this moment.
    """
    tick: dict[str, Any] = json.loads(body)
    name = tick["name"]
    with _alone(qm) as queue:
        definition = _find(queue, name)
    if definition is None or definition["version"] != tick["version"]:
        return None
    times = Times(*(definition[field] for field in Times._fields))
    now = microseconds(datetime.now(timezone.utc)) + qm.advanced_us()
    jobs, following = due_jobs(
        times, definition["missed"], definition["grace"], tick["time"], max(now, tick["time"])
    )
    return Occurrence(
        definition["queue"],
        _arguments(definition["put"]),
        len(jobs),
        _tick(name, tick["version"], following),
    )


def runner(qm: Manager, ticks: Queue, wait: float | None, limit: int | None) -> Consumer:
    """The consumer of the ticks; ticks: their queue, open for input."""
    from .consume import Consumer

    consumer = Consumer(ticks, wait, limit, RETRY, 1)
    consumer(lambda message: handle(qm, message))
    return consumer


def handle(qm: Manager, message: Message) -> int:
    """Handles a due tick in the unit of work in which it was got; the number of jobs put."""
    due = _patiently(occurrence, qm, message.data)
    if due is None:
        return 0
    with qm.open(due.queue, input=False, browse=False) as target:
        for _ in range(due.jobs):
            target.put(**due.put, syncpoint=True)
    with qm.open(TICKS, input=False, browse=False) as ticks:
        ticks.put(**due.tick, syncpoint=True)
    return due.jobs

"""Triggers: when a trigger message is made, and what is in it.

The binding asks at each moment that counts (pyext/client/trigger.pyx); the core knows how many
messages count, and which queues somebody has to look at (csrc/queue/trigger.h).

Moments
    a put                    each TRIGTYPE; ``on_put``
    input closed             FIRST, DEPTH: the last handle for input of the queue; ``on_close``, or,
                             when the connection or the process ended with it, ``on_wait``
    a definition changes     the queue, its process, its initiation queue; ``on_change``
    input of INITQ opened    every queue that names it; ``on_open``
    a get waits on INITQ     queues that a process left behind when it was killed; ``on_wait``

A failure here never fails the call that caused it: the queue is looked at again at the next moment.

Rules: "Conditions for a trigger event", "Properties of trigger messages", "TriggerInterval".
"""

from __future__ import annotations

import struct
import time
from weakref import WeakKeyDictionary

from .._mqi_constants import selectors as mq
from .._mqi_constants.calls import MQOT_PROCESS
from .._mqi_constants.values import (
    MQQT_LOCAL,
    MQTC_OFF,
    MQTC_ON,
    MQTT_DEPTH,
    MQTT_EVERY,
    MQTT_FIRST,
    MQUS_TRANSMISSION,
)
from ..constants import NAME_SPACE_OTHERS, NAME_SPACE_QUEUE_MANAGERS, NAME_SPACE_QUEUES
from ..errors import MQError
from ..objects.codec import read
from ..objects.types import TYPES
from .own_changes import change

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._engine import Connection
    from ..objects.attribute import Stored

_PROCESSES = NAME_SPACE_OTHERS + MQOT_PROCESS
_MQTM = struct.Struct("<4si48s48s64si256s128s128s")
_ENCODING = "utf-8"

# what is known of the queues with TRIGGER: version, and (slot, generation) by initiation queue
_known: WeakKeyDictionary[Connection, tuple[int, dict[str, list[tuple[int, int]]]]] = (
    WeakKeyDictionary()
)


# ---- moments ----


def on_put(
    qm: Connection, slot: int, generation: int, before: int, priority: int
) -> tuple[str, bytes] | None:
    """The initiation queue and the trigger message of a put, None for no trigger event.

    Args:
        slot, generation: the queue.
        before: messages that counted before this one.
        priority: of the message.
    """
    try:
        queue = _attributes(qm, slot, generation)
        if priority < int(queue[mq.MQIA_TRIGGER_MSG_PRIORITY]):
            return None
        kind = queue[mq.MQIA_TRIGGER_TYPE]
        if kind != MQTT_EVERY:
            _, inputs, last_us = qm.trigger_state(slot, generation)
            if inputs:
                return None
            if kind == MQTT_FIRST and before and not _interval_is_over(qm, last_us):
                return None
            if kind == MQTT_DEPTH and before + 1 != queue[mq.MQIA_TRIGGER_DEPTH]:
                return None
        return _message(qm, queue)
    except MQError:
        return None


def made(qm: Connection, slot: int, generation: int) -> None:
    """A trigger message has been put: TRIGTYPE(DEPTH) sets NOTRIGGER."""
    try:
        qm.trigger_note(slot, generation)
        queue = _attributes(qm, slot, generation)
        if queue[mq.MQIA_TRIGGER_TYPE] == MQTT_DEPTH:
            armed = {mq.MQIA_TRIGGER_CONTROL: MQTC_ON}
            change(qm, slot, generation, {mq.MQIA_TRIGGER_CONTROL: MQTC_OFF}, armed)
    except MQError:
        return


def on_open(qm: Connection, name: str) -> None:
    """A queue was opened for input: is it an initiation queue?"""
    for slot, generation in _queues_of(qm, name):
        _evaluate(qm, slot, generation, every=True)


def on_close(qm: Connection, slot: int, generation: int) -> None:
    """A handle for input was closed."""
    try:
        if qm.trigger_due(slot, generation):
            _evaluate(qm, slot, generation, every=False)
            qm.trigger_settle(slot, generation)
    except MQError:
        return


def on_wait(qm: Connection, name: str) -> None:
    """A get waits on a queue: does an application queue of it wait for an evaluation?"""
    for slot, generation in _queues_of(qm, name):
        on_close(qm, slot, generation)


def on_change(qm: Connection, kind: str, name: str) -> None:
    """A definition was made or changed."""
    try:
        if kind not in ("QLOCAL", "PROCESS") or qm.trigger_version() == 0:
            return
        for slot, generation in qm.trigger_queues():
            queue = _attributes(qm, slot, generation)
            if name in (
                queue[mq.MQCA_Q_NAME],
                queue[mq.MQCA_PROCESS_NAME],
                queue[mq.MQCA_INITIATION_Q_NAME],
            ):
                _evaluate(qm, slot, generation, every=True)
    except MQError:
        return


# ---- conditions ----


def _evaluate(qm: Connection, slot: int, generation: int, *, every: bool) -> None:
    """Makes a trigger message when the conditions are met by the messages that are there."""
    try:
        queue = _attributes(qm, slot, generation)
        kind = queue[mq.MQIA_TRIGGER_TYPE]
        least = int(queue[mq.MQIA_TRIGGER_DEPTH]) if kind == MQTT_DEPTH else 1
        count, inputs, _ = qm.trigger_state(slot, generation)
        if count < least or (inputs if kind != MQTT_EVERY else not every):
            return
        message = _message(qm, queue)
        if message is not None:
            qm.put_trigger(*message)
            made(qm, slot, generation)
    except MQError:
        return


def _interval_is_over(qm: Connection, last_us: int) -> bool:
    """Whether TRIGINT has passed since the last trigger message of a queue."""
    own = qm.look_up(NAME_SPACE_QUEUE_MANAGERS, qm.name)
    if own is None or last_us == 0:
        return False
    (interval,) = qm.values(own[0], own[1], (mq.MQIA_TRIGGER_INTERVAL,))
    if interval is None:
        interval = TYPES["QMGR"].defaults[mq.MQIA_TRIGGER_INTERVAL]
    return time.time_ns() // 1000 - last_us >= int(interval) * 1000


def _message(qm: Connection, queue: Mapping[int, Stored]) -> tuple[str, bytes] | None:
    """The initiation queue and the trigger message, None when a condition on the definitions is not
    met.
    """
    if queue[mq.MQIA_INHIBIT_GET]:
        return None
    initiation = str(queue[mq.MQCA_INITIATION_Q_NAME])
    if not initiation or not _is_watched(qm, initiation):
        return None
    process = _process(qm, queue)
    if process is None:
        return None
    fields = (
        queue[mq.MQCA_Q_NAME], queue[mq.MQCA_PROCESS_NAME], queue[mq.MQCA_TRIGGER_DATA],
        process[mq.MQCA_APPL_ID], process[mq.MQCA_ENV_DATA], process[mq.MQCA_USER_DATA],
    )  # fmt: skip
    name, process_name, data, program, environment, user = (str(text) for text in fields)
    return initiation, trigger_message(
        name, process_name, data, int(process[mq.MQIA_APPL_TYPE]), program, environment, user
    )


def _process(qm: Connection, queue: Mapping[int, Stored]) -> Mapping[int, Stored] | None:
    """The process definition; an empty one for a transmission queue whose channel TRIGDATA names;
    None: there is none.
    """
    kind = TYPES["PROCESS"]
    name = str(queue[mq.MQCA_PROCESS_NAME])
    if not name:
        starts_channel = queue[mq.MQIA_USAGE] == MQUS_TRANSMISSION and queue[mq.MQCA_TRIGGER_DATA]
        return {**kind.defaults, mq.MQIA_APPL_TYPE: 0} if starts_channel else None
    found = qm.look_up(_PROCESSES, name)
    return None if found is None else read(kind, qm.read_object(found[0], found[1])[2])


def _is_watched(qm: Connection, name: str) -> bool:
    """Whether a queue can be an initiation queue, and somebody has it open for input."""
    found = qm.look_up(NAME_SPACE_QUEUES, name)
    if found is None or found[2] != MQQT_LOCAL:
        return False
    inhibited = mq.MQIA_INHIBIT_GET, mq.MQIA_INHIBIT_PUT
    if any(qm.values(found[0], found[1], (*inhibited, mq.MQIA_USAGE))):
        return False
    return bool(qm.queue_status(found[0], found[1], name)["open_input"])


# ---- definitions ----


def _attributes(qm: Connection, slot: int, generation: int) -> dict[int, Stored]:
    """The attributes of a queue. Raises MQError."""
    _, name, attrs = qm.read_object(slot, generation)
    return {**read(TYPES["QLOCAL"], attrs), mq.MQCA_Q_NAME: name}


def _queues_of(qm: Connection, initiation: str) -> list[tuple[int, int]]:
    """Slot and generation of the queues with TRIGGER that name the initiation queue."""
    try:
        version = qm.trigger_version()
        known = _known.get(qm)
        if known is None or known[0] != version:
            by_name: dict[str, list[tuple[int, int]]] = {}
            for location in qm.trigger_queues():
                queue = _attributes(qm, *location)
                by_name.setdefault(str(queue[mq.MQCA_INITIATION_Q_NAME]), []).append(location)
            known = _known[qm] = version, by_name
        return known[1].get(initiation, [])
    except MQError:
        return []


# ---- the message ----


def trigger_message(
    name: str, process: str, data: str, kind: int, program: str, environment: str, user: str
) -> bytes:
    """An MQTM: 684 bytes in the encoding of this host, CCSID 1208.

    Args:
        name: QName. process: ProcessName. data: TriggerData. kind: ApplType. program: ApplId.
        environment: EnvData. user: UserData.
    """
    texts = [
        _padded(text, size)
        for text, size in (
            (name, 48), (process, 48), (data, 64), (program, 256), (environment, 128), (user, 128),
        )
    ]  # fmt: skip
    return _MQTM.pack(b"TM  ", 1, *texts[:3], kind, *texts[3:])


def _padded(text: str, size: int) -> bytes:
    """The text in that many bytes, with blanks; a longer one loses whole characters."""
    raw = text.encode(_ENCODING)[:size]
    return raw.decode(_ENCODING, "ignore").encode(_ENCODING).ljust(size)

"""Salvage: a new queue manager with everything that can be proven of damaged files.

The reading is :mod:`penstock.journal.salvage`. The new queue manager is made of its definitions and
messages by ordinary calls; the damaged directory is only read. Definitions of local queues are
stored with the largest limits while their messages are put, and as they were afterwards. It is made
in a temporary directory of the home, ended in order, and gets its name then: a salvage that fails,
or is killed, leaves no queue manager that has a part of the messages.

What a put cannot set is lost: BackoutCounts, and message numbers. Messages that have expired are
left out. Prepared units are not made again: they are in the list.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .. import _engine
from .._mqi_constants import selectors as S
from .._mqi_constants.calls import MQOO_OUTPUT
from ..admin.create import create
from ..admin.directory import Home, directory_of, settings_of
from ..admin.new_directory import NewDirectory, check_free
from ..admin.settings import SEGMENTS_MAX, Settings, write_settings
from ..batch import DTYPE
from ..constants import MAX_DEPTH, NAME_SPACE_QUEUE_MANAGERS, ReasonCode
from ..errors import MQError, ObjectInUse
from ..journal.messages import Message
from ..journal.replay import ObjectDefinition
from ..journal.salvage import Loss, Salvage, SalvageFiles
from ..objects.codec import encode
from .connection import QueueManager, connect
from .queue import Queue

_UNIT_MESSAGES = 1000
_UNIT_BYTES = 16 << 20
_MANAGERS = NAME_SPACE_QUEUE_MANAGERS
_STRUCTURES = 110  # name space; queues name them, so they come first
_BODY_MAX = 104_857_600
_KEPT_SETTINGS = (
    "platform", "segment_size", "journal_limit", "logging", "ring_size", "region_size",
    "region_bodies", "max_uncommitted_messages", "max_message_length",
    "max_unit_age",
)  # fmt: skip
_OF_ONE_MESSAGE = frozenset(
    (
        ReasonCode.MSG_TOO_BIG_FOR_Q,
        ReasonCode.MSG_TOO_BIG_FOR_Q_MGR,
        ReasonCode.PERSISTENT_NOT_ALLOWED,
        ReasonCode.MD_ERROR,
        ReasonCode.PRIORITY_ERROR,
        ReasonCode.EXPIRY_ERROR,
    )
)
Progress = Callable[[int], None]


@dataclass
class Salvaged:
    """What was salvaged: counts; losses: what was not, JSON-able (penstock.journal.salvage.Loss);
    expired: messages whose time had passed.
    """

    messages: int = 0
    bytes: int = 0
    definitions: int = 0
    expired: int = 0
    losses: list[dict[str, Any]] = field(default_factory=list)


def salvage(
    directory: str | os.PathLike[str], name: str, home: Home = None,
    progress: Progress = lambda messages: None,
) -> Salvaged:  # fmt: skip
    """Makes the queue manager ``name`` of what can be read in a damaged directory.

    Args:
        directory: of the damaged queue manager, which is not changed and may be read-only.
        name, home: of the new queue manager, as for penstock.create().
        progress: called with the messages put so far.

    Raises:
        ObjectInUse: 2042: processes are attached to the damaged queue manager, or another one makes
            ``name``.
        ObjectAlreadyExists: 2100: there is a queue manager ``name``.
        penstock.journal.DamagedFile: nothing can be read.
    """
    target = directory_of(name, home)
    check_free(target)  # before all is read
    _check_unattached(directory)
    found = Salvage(SalvageFiles(directory)).run()
    kept = {key: getattr(found.settings, key) for key in _KEPT_SETTINGS if found.settings}
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NewDirectory(target, ".salvage-tmp") as made:
        create(name, made.work, **kept | _room(found.settings))
        with connect(name, made.work) as qm:
            result = _Writer(qm, found, progress).run()
        if found.settings:
            _set_limit(name, made.work, found.settings.journal_limit)
        made.finish(directory_of(name, made.work))
    result.losses = [loss.as_dict() for loss in found.losses]
    return result


def _room(damaged: Settings | None) -> dict[str, int]:
    """The limit while messages are put: a journal that was full would take them a second time only
    in part, because they were put in other units of work.
    """
    most = 0 if damaged is None else SEGMENTS_MAX * damaged.segment_size
    return {"journal_limit": most} if most else {}


def _set_limit(name: str, home: Home, limit: int) -> None:
    """The limit of the damaged queue manager, from the next start on."""
    path = directory_of(name, home)
    write_settings(path, replace(settings_of(name, path), journal_limit=limit))


def _check_unattached(directory: str | os.PathLike[str]) -> None:
    try:
        pids = _engine.attached_processes(directory)
    except (MQError, OSError):
        return  # damaged as well
    if pids:
        text = ", ".join(map(str, pids))
        raise ObjectInUse(
            ReasonCode.OBJECT_IN_USE, f"{directory}: processes are attached: {text}; end them first"
        )


class _Writer:
    """Puts what was found into the new queue manager."""

    def __init__(self, qm: QueueManager, found: Salvage, progress: Progress) -> None:
        self._qm, self._found, self._progress = qm, found, progress
        self._result = Salvaged()
        self._now = time.time_ns() // 1000
        self._queue: Queue | None = None
        self._messages: list[tuple[Message, Any, bytes]] = []
        self._bytes = 0

    def run(self) -> Salvaged:
        """Definitions, messages, definitions as they were."""
        definitions = self._found.definitions()
        definitions.sort(key=lambda one: (one.name_space != _STRUCTURES, one.name_space, one.name))
        stored = [one for one in definitions if self._define(one)]
        self._result.definitions = len(stored)
        for message, queue in self._found.messages():
            self._take(message, queue)
        self._flush()
        if self._queue is not None:
            self._queue.close()
        for one in stored:
            if one.is_local_queue:
                self._store(one, self._attributes(one))
        return self._result

    def _lose(self, kind: str, text: str, **where: Any) -> None:
        self._found.losses.append(Loss(kind, text, **where))

    # ---- definitions ----

    def _attributes(self, one: ObjectDefinition) -> dict[int, int | str]:
        attributes = dict(one.attributes)
        if one.name_space == _MANAGERS:
            attributes.pop(S.MQCA_Q_MGR_IDENTIFIER, None)
        return attributes

    def _define(self, one: ObjectDefinition) -> bool:
        attributes = self._attributes(one)
        if one.is_local_queue:
            attributes |= {
                S.MQIA_INHIBIT_PUT: 0,
                S.MQIA_MAX_Q_DEPTH: MAX_DEPTH,
                S.MQIA_MAX_MSG_LENGTH: _BODY_MAX,
            }
        return self._store(one, attributes)

    def _store(self, one: ObjectDefinition, attributes: dict[int, int | str]) -> bool:
        """Defines the object, or changes the one that every queue manager has."""
        name = self._qm.name if one.name_space == _MANAGERS else one.name
        try:
            there = self._qm.look_up(one.name_space, name, one.instance)
            if there is None:
                row = (one.name_space, one.type, name, one.instance, encode(attributes))
                self._qm.define_objects([row])
                return True
            slot, generation = there[:2]
            if one.name_space == _MANAGERS:
                own = self._qm.values(slot, generation, (S.MQCA_Q_MGR_IDENTIFIER,))[0]
                attributes = {**attributes, S.MQCA_Q_MGR_IDENTIFIER: str(own)}
            self._qm.alter_object(
                slot, generation, one.type, name, encode(attributes),
                name_space=one.name_space, instance=one.instance,
            )  # fmt: skip
            return True
        except MQError as error:
            self._lose("definition", f"{one.name}: {error}", file=one.file, offset=one.offset)
            return False

    # ---- messages ----

    def _take(self, message: Message, queue: ObjectDefinition) -> None:
        descriptor = message.descriptor()
        if descriptor.expiry_us and descriptor.expiry_us <= self._now:
            self._result.expired += 1
            return
        if self._queue is None or self._queue.name != queue.name:
            self._flush()
            if self._queue is not None:
                self._queue.close()
            self._queue = None
            try:
                self._queue = Queue(self._qm, queue.name, MQOO_OUTPUT)
            except MQError as error:
                text = f"the queue cannot be opened: {error}"
                self._lose("message", text, number=message.identity, queue=queue.name)
                return
        body = message.body()
        self._messages.append((message, descriptor, body))
        self._bytes += len(body)
        if len(self._messages) >= _UNIT_MESSAGES or self._bytes >= _UNIT_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._messages:
            self._put(self._messages)
            self._messages, self._bytes = [], 0
            self._progress(self._result.messages)

    def _put(self, messages: list[tuple[Message, Any, bytes]]) -> None:
        """Puts all of them at once; when one is refused, the others without it."""
        assert self._queue is not None
        bodies = [body for _, _, body in messages]
        offsets = np.zeros(len(bodies) + 1, np.int64)
        np.cumsum([len(body) for body in bodies], out=offsets[1:])
        rows = self._rows(messages)
        reason, count, failed, _ = _engine.batch_put(
            self._queue, rows, b"".join(bodies), offsets, False, True
        )
        self._result.messages += count
        self._result.bytes += int(offsets[count])
        if not reason:
            return
        try:
            _engine.batch_fail(self._queue, reason, count, failed)
        except MQError as error:
            if reason not in _OF_ONE_MESSAGE:
                raise
            number = messages[failed][0].identity
            self._lose("message", str(error), number=number, queue=self._queue.name)
        self._put_if_any(messages[count:failed])
        self._put_if_any(messages[failed + 1 :])

    def _put_if_any(self, messages: list[tuple[Message, Any, bytes]]) -> None:
        if messages:
            self._put(messages)

    def _rows(self, messages: list[tuple[Message, Any, bytes]]) -> Any:
        rows = np.empty(len(messages), DTYPE)
        _engine.batch_start(self._queue, rows)  # type: ignore[arg-type]
        for at, (message, d, _) in enumerate(messages):
            row = rows[at]
            for name in _SAME:
                value = getattr(d, name)
                if isinstance(value, str):
                    value = value.encode("latin-1").ljust(DTYPE[name].itemsize)
                row[name] = value
            row["put_time"] = np.datetime64(d.put_time_us, "us")
            # one that would expire before is due at once: a put refuses it otherwise
            expires_before = 0 < d.expiry_us <= message.due_us
            row["due_us"] = 0 if expires_before else message.due_us
            row["persistence"] = int(message.persistent)
            row["has_ext"] = any(getattr(d, name) != _INITIAL[name] for name in _INITIAL)
            row["expiry"] = -1
            if d.expiry_us:
                row["expiry"] = max(1, min((d.expiry_us - self._now) // 100_000, 999_999_999))
        return rows


_INITIAL = {
    "reply_to_q": "", "reply_to_qmgr": "", "appl_identity_data": "", "group_id": bytes(24),
    "msg_seq_number": 1, "offset": 0, "msg_flags": 0, "original_length": -1,
}  # fmt: skip
_SAME = (
    "msg_id", "correl_id", "priority", "report", "msg_type", "feedback", "encoding", "ccsid",
    "format", "put_appl_type", "user_identifier", "put_appl_name", "appl_origin_data",
    "accounting_token", "md_version", *_INITIAL,
)  # fmt: skip

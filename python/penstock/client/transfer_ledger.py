"""How far unloads and loads have come, in the queue manager itself.

Queue SYSTEM.TRANSFER.LEDGER has a persistent message for each file that is being unloaded to or
loaded from, found by its CorrelId, a hash of the file's identity. The body is a JSON object:

    kind       "unload" or "load"
    file       the path, for administrators
    options    what must be the same when the command is repeated with ``resume``
    run        a random word of the process that works on it
    position   how far the file's messages are committed
    finished   true once a load is complete

An entry is replaced in the unit of work that gets, or puts, the messages: both are committed, or
neither. The queue is open for exclusive input while an entry is looked for, and from the
replacement to the commit. So an entry that is not found does not exist, and of two processes that
work on one file the one that came first is refused (its run is no longer the entry's). When a
process dies in between, its unit is backed out before its handle is closed.

An unload's entry may use the room that the journal keeps for ending units of work: unloading is
how a journal that accepts no more messages is emptied. A load's may not.

A finished load's entry stays for a week, to refuse a second load by ``resume``. An unload's entry
goes when the file has its end line, which says the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._engine import Unit
from .._mqi_constants.calls import MQOO_BROWSE, MQOO_INPUT_EXCLUSIVE, MQOO_OUTPUT
from ..constants import MAX_DEPTH, NAME_SPACE_QUEUES
from ..errors import NoMessageAvailable, ObjectAlreadyExists, ObjectInUse
from ..message_files import MessageFileError
from . import object_commands
from .attachment import Attachment
from .queue import Queue

QUEUE = "SYSTEM.TRANSFER.LEDGER"
_WAIT_SECONDS = 60.0  # for other processes, and for the sweep of one that was killed
_PAUSE_SECONDS = 0.005
_KEPT_SECONDS = 7 * 86_400
_OPTIONS = MQOO_INPUT_EXCLUSIVE | MQOO_BROWSE | MQOO_OUTPUT


class Ledger:
    """The entry of one file."""

    def __init__(self, qm: Attachment, kind: str, file_id: str, path: str) -> None:
        """Looks for nothing yet; defines the queue when it does not exist."""
        self._qm = qm
        self._key = hashlib.sha256(f"{kind}:{file_id}".encode()).digest()[:24]
        self._entry: dict[str, Any] = {
            "kind": kind,
            "file": path,
            "run": os.urandom(8).hex(),
        }
        self._define()

    def _define(self) -> None:
        if self._qm.look_up(NAME_SPACE_QUEUES, QUEUE) is not None:
            return
        attributes = {
            "descr": "how far penstock unload and load have come",
            "defpsist": True,
            "maxdepth": MAX_DEPTH,
        }
        try:
            object_commands.define(self._qm, "QLOCAL", QUEUE, None, False, attributes)
        except ObjectAlreadyExists:
            pass  # another process was faster

    @contextmanager
    def _opened(self, unit: Unit) -> Iterator[Queue]:
        """The queue, opened exclusively. Whatever leaves the block early backs the unit out while
        the queue is still closed to others."""
        end = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                queue = Queue(self._qm, QUEUE, _OPTIONS)
                break
            except ObjectInUse:
                if time.monotonic() > end:
                    raise
                time.sleep(_PAUSE_SECONDS)
        if self._entry["kind"] == "unload":
            queue.put_from_reserve()  # else nothing could be unloaded from a full journal
        with queue:
            try:
                yield queue
            except BaseException:
                unit.backout()
                raise

    def read(self, unit: Unit) -> dict[str, Any] | None:
        """The entry of an earlier run; None: there is none."""
        with self._opened(unit) as queue:
            return self._take(queue, browse=True)

    def _take(self, queue: Queue, browse: bool = False) -> dict[str, Any] | None:
        try:
            if browse:
                message = queue.get(correl_id=self._key, browse="first", syncpoint=False)
            else:
                message = queue.get(correl_id=self._key)
        except NoMessageAvailable:
            return None
        entry: dict[str, Any] = json.loads(message.data)
        return entry

    def begin(
        self, unit: Unit, options: dict[str, Any], position: dict[str, Any], expected: int | None
    ) -> None:
        """Makes or takes over the entry; durable on return.

        Args:
            unit: of this call, empty.
            options, position: of the entry.
            expected: the messages of the entry that is taken over; None: there is to be none.

        Raises:
            MessageFileError: another process has begun or continued meanwhile.
        """
        self._entry |= {"options": options, "position": position}
        with self._opened(unit) as queue:
            found = self._take(queue)
            messages = None if found is None else found["position"]["messages"]
            if messages != expected:
                raise MessageFileError(f"{self._entry['file']}: another process works on it")
            self._put(queue)
            unit.commit()

    def _put(self, queue: Queue, expiry: float | None = None) -> None:
        text = json.dumps(self._entry).encode()
        queue.put(text, correl_id=self._key, persistent=True, format="MQSTR", expiry=expiry)

    def commit(self, unit: Unit, position: dict[str, Any], finished: bool = False) -> None:
        """Commits the unit together with the new position.

        Raises:
            MessageFileError: another process has taken the work over; the unit is backed out.
        """
        with self._opened(unit) as queue:
            self._replace(queue)
            self._entry["position"] = position
            if finished:
                self._entry["finished"] = True
            self._put(queue, _KEPT_SECONDS if finished else None)
            unit.commit()

    def remove(self, unit: Unit) -> None:
        """Removes the entry; durable on return."""
        with self._opened(unit) as queue:
            self._replace(queue)
            unit.commit()

    def _replace(self, queue: Queue) -> None:
        found = self._take(queue)
        if found is None or found["run"] != self._entry["run"]:
            text = f"{self._entry['file']}: another process has taken over"
            raise MessageFileError(f"{text}; the last unit of work was backed out")

    def remove_finished(self, unit: Unit) -> None:
        """Removes the entry of a file that has its end line, if there is one."""
        with self._opened(unit) as queue:
            if self._take(queue) is not None:
                unit.commit()

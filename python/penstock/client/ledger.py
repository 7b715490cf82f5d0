"""Ledgers: what work under a name has committed, stored in the queue manager itself.

A ledger is a queue with one persistent message, an *entry*, for each owner: a stream or a sink of
Spark, a unit of work of a remote client. Its CorrelId is a hash of the owner, its body a JSON
object. An entry is replaced in a unit of work that is prepared and then committed together with the
units whose commit it records, in one atomic call: either the messages are gone (or visible) and the
ledger records it, or neither.

The ledger is open for exclusive input while it is read to be replaced, so two processes never
change the same entry at once. An entry that is not found does not exist: a unit that holds it can
only be of the process that has the queue open, or a prepared one, which is backed out before.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..constants import MAX_DEPTH
from ..errors import NoMessageAvailable, ObjectAlreadyExists, ObjectInUse, UnknownObjectName

if TYPE_CHECKING:
    from .._engine import Xid
    from .connection import QueueManager
    from .queue import Queue

__all__ = ["Ledger", "entries", "ledger", "look"]

_WAIT_SECONDS = 60.0  # for others, and for the sweep of a killed one
_PAUSE_SECONDS = 0.01


class Ledger:
    """The ledger, opened exclusively by this process."""

    def __init__(self, qm: QueueManager, queue: Queue) -> None:
        self._qm = qm
        self._queue = queue

    def read(self, owner: str) -> dict[str, Any] | None:
        """The entry; None: there is none."""
        for message in self._queue.browse(correl_id=_key(owner)):
            entry: dict[str, Any] = json.loads(message.data)
            return entry
        return None

    def prepare(
        self, owner: str, entry: dict[str, Any], xid: Xid, seconds: float | None = None
    ) -> None:
        """Prepares a unit of work that replaces the entry; its commit makes both durable.

        Args:
            owner, entry: Of the ledger.
            xid: Name of the unit.
            seconds: After which the entry expires; None: never.
        """
        try:
            try:
                self._queue.get(correl_id=_key(owner), syncpoint=True)
            except NoMessageAvailable:
                pass  # the first one
            self._put(owner, entry, seconds, True)
            self._qm.prepare(xid, wait=False)
        except BaseException:
            self._qm.backout()
            raise

    def add(self, owner: str, entry: dict[str, Any], seconds: float | None = None) -> None:
        """Adds the entry of an owner that has none; it is durable on return."""
        self._put(owner, entry, seconds, False)

    def remove(self, owner: str) -> None:
        """Removes the entry, if there is one; that is durable on return."""
        try:
            self._queue.get(correl_id=_key(owner), syncpoint=False)
        except NoMessageAvailable:
            pass  # another process was faster

    def _put(
        self, owner: str, entry: dict[str, Any], seconds: float | None, syncpoint: bool
    ) -> None:
        self._queue.put(
            json.dumps({"owner": owner, **entry}).encode(),
            correl_id=_key(owner),
            persistent=True,
            expiry=seconds,
            syncpoint=syncpoint,
            format="MQSTR",
        )


@contextmanager
def ledger(qm: QueueManager, name: str, description: str) -> Iterator[Ledger]:
    """Opens a ledger exclusively; waits until other processes have closed it.

    Args:
        qm: A connection.
        name: Of the queue, which is defined when it is not there.
        description: Its DESCR then.

    Raises:
        ObjectInUse: 2042: another process keeps it open for longer than a minute.
    """
    queue = _open(qm, name, description)
    try:
        yield Ledger(qm, queue)
    finally:
        queue.close()


def look(qm: QueueManager, name: str, owner: str) -> dict[str, Any] | None:
    """The entry as it is, without waiting for other processes; one that a process is replacing at
    this moment is not found.
    """
    try:
        queue = qm.open(name, input=False, browse=True, output=False)
    except UnknownObjectName:
        return None  # there is no ledger yet
    with queue:
        return Ledger(qm, queue).read(owner)


def entries(qm: QueueManager, name: str) -> list[dict[str, Any]]:
    """All entries, each with its owner, oldest first, without waiting for other processes; one that
    is being replaced now is not found.
    """
    try:
        queue = qm.open(name, input=False, browse=True, output=False)
    except UnknownObjectName:
        return []
    with queue:
        return [json.loads(message.data) for message in queue.browse()]


def _open(qm: QueueManager, name: str, description: str) -> Queue:
    end = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            queue = qm.open(name, exclusive=True, browse=True)
            queue.put_from_reserve()  # else nobody could empty a full journal by it
            return queue
        except UnknownObjectName:
            try:
                qm.define("QLOCAL", name, descr=description, defpsist=True, maxdepth=MAX_DEPTH)
            except ObjectAlreadyExists:
                continue  # another process was faster
        except ObjectInUse:
            if time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)


def _key(owner: str) -> bytes:
    return hashlib.sha256(owner.encode()).digest()[:24]

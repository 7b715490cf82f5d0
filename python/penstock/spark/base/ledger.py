"""The ledger: the last commit of each stream and sink, stored in the queue manager itself.

Queue SYSTEM.SPARK.LEDGER holds one persistent message for each stream and sink, and for a week one
for each batch write that has ended (sink/ending.py); its CorrelId is a
hash of the owner, its body a JSON object. An entry is replaced in a unit of work that is prepared
and then committed together with the units whose commit it records, in one atomic call: either the
messages are gone (or visible) and the ledger records it, or neither.

The ledger is open for exclusive input while it is read to be replaced, so two drivers never change
the same entry at once. An entry that is not found does not exist: a unit that holds it could only
belong to the process that has the queue open, or be a prepared one, which is backed out before.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import penstock

if TYPE_CHECKING:
    from penstock import Queue, QueueManager, Xid

__all__ = ["QUEUE", "Ledger", "entries", "ledger", "look"]

QUEUE = "SYSTEM.SPARK.LEDGER"
_WAIT_SECONDS = 60.0  # for others, and for the sweep of a killed one
_PAUSE_SECONDS = 0.01
_ATTRIBUTES: dict[str, Any] = {
    "descr": "what Spark's streams and sinks have committed",
    "defpsist": True,
    "maxdepth": 999999999,
}


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
            except penstock.NoMessageAvailable:
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
        except penstock.NoMessageAvailable:
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
def ledger(qm: QueueManager) -> Iterator[Ledger]:
    """Opens the ledger exclusively; waits until other processes have closed it.

    Raises:
        ObjectInUse: 2042: another process keeps it open for longer than a minute.
    """
    queue = _open(qm)
    try:
        yield Ledger(qm, queue)
    finally:
        queue.close()


def look(qm: QueueManager, owner: str) -> dict[str, Any] | None:
    """The entry as it is, without waiting for other processes; one that a process is replacing at
    this moment is not found.
    """
    try:
        queue = qm.open(QUEUE, input=False, browse=True, output=False)
    except penstock.UnknownObjectName:
        return None  # there is no ledger yet
    with queue:
        return Ledger(qm, queue).read(owner)


def entries(qm: QueueManager) -> list[dict[str, Any]]:
    """All entries, each with its owner (``stream:``, ``sink:`` or ``write:`` and an id), oldest
    first, without waiting for other processes; one that is being replaced now is not found.
    """
    try:
        queue = qm.open(QUEUE, input=False, browse=True, output=False)
    except penstock.UnknownObjectName:
        return []
    with queue:
        return [json.loads(message.data) for message in queue.browse()]


def _open(qm: QueueManager) -> Queue:
    end = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            queue = qm.open(QUEUE, exclusive=True, browse=True)
            queue.put_from_reserve()  # else no stream could empty a full journal
            return queue
        except penstock.UnknownObjectName:
            try:
                qm.define("QLOCAL", QUEUE, **_ATTRIBUTES)
            except penstock.ObjectAlreadyExists:
                continue  # another process was faster
        except penstock.ObjectInUse:
            if time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)


def _key(owner: str) -> bytes:
    return hashlib.sha256(owner.encode()).digest()[:24]

"""The end of a write: none of its units stays prepared, whatever its driver learnt of its tasks.

A *write* is one run of a batch sink, or the micro-batch of a streaming one. Its driver is told of
the units of tasks that succeeded. Others are prepared as well: by an attempt that died before it
reported, by tasks that Spark stops, or forgets, when another one failed, and by tasks that still
run when the driver is done.

1. The driver records the end of the write in the ledger: with the commit (an entry of the sink
   whose version is the write's, or of the write itself), or when it drops the write.
2. Then it *sweeps*: it backs out the prepared units of all writes that have ended.
3. A task that has prepared its units looks into the ledger before it reports them. When its write
   has ended, it backs them out.

So a unit that is prepared before the sweep is found by it, and a task that prepares a unit later
finds the end of its write. A task that dies between the two leaves its unit to the next sweep, by
any write to the queue manager. Entries of writes expire after a week: no task runs longer than that
after the end of its job.

A micro-batch that failed does not end in this sense: the query repeats it under the same version,
and the commit then sweeps the units of the earlier try, too.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..base import units
from ..base.errors import SourceError
from ..base.ledger import Ledger, look

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock import QueueManager, Xid

    Read = Callable[[str], dict[str, Any] | None]

__all__ = ["KEPT_SECONDS", "check_committed", "drop", "has_ended", "owner_of", "sweep"]

KEPT_SECONDS = 7 * 86_400.0


def owner_of(write: str) -> str:
    """The owner of a write's entry in the ledger."""
    return f"write:{write}"


def drop(book: Ledger, write: str) -> None:
    """Records that a write has ended and that nothing of it is to be committed."""
    if book.read(owner_of(write)) is None:
        book.add(owner_of(write), {"version": 0, "time": int(time.time())}, KEPT_SECONDS)


def check_committed(entry: dict[str, Any]) -> None:
    """For the entry of a batch write whose commit is asked for again, because its driver is on
    another host and did not hear the answer. Raises SourceError: the write was dropped.
    """
    if "messages" not in entry:
        raise SourceError("the write was dropped before its commit: nothing of it was put")


def sweep(qm: QueueManager, book: Ledger) -> None:
    """Backs out the units of tasks whose writes have ended."""
    found: dict[tuple[str, int, str], list[Xid]] = {}
    for xid in qm.recover():
        write = units.write_of(xid)
        if write is not None:
            found.setdefault(write, []).append(xid)
    for write, xids in found.items():
        if _has_ended(book.read, *write):
            units.back_out(qm, xids)


def has_ended(qm: QueueManager, xid: Xid) -> bool:
    """Whether the write of a task's unit has ended. Asked without waiting for other processes."""
    write = units.write_of(xid)
    assert write is not None
    return _has_ended(lambda owner: look(qm, owner), *write)


def _has_ended(read: Read, sink: str, version: int, write: str) -> bool:
    if read(owner_of(write)) is not None:
        return True
    entry = read(f"sink:{sink}")
    return entry is not None and bool(entry["version"] >= version)

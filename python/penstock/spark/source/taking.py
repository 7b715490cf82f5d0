"""Takes the messages of a micro-batch into prepared units of work.

A micro-batch has one or more *parts* of each queue, as many as the planned messages need; a part is
the messages of one unit. The plan, ``{"ORDERS": 2, "RETURNS": 1}``, is made when messages are seen
and stands in the offset. What is taken is what is there later, in these parts: a queue that other
programs have emptied, or that is deleted, leaves empty units. Parts that are prepared already are
kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import penstock

from ..base import units
from ..base.units import Part
from .queues import shares, turns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock import Queue, QueueManager, Xid

    from ..base.options import Options
    from .queues import Queues

    Parts = dict[str, int]  # queue -> number of its parts
    Limits = tuple[int, int]  # messages, bytes of bodies

__all__ = ["NO_LIMIT", "Taker", "planned"]

NO_LIMIT = 1 << 62  # messages or bytes
_UNIT_MESSAGES = 50_000  # of one unit at most, however high MAXUMSGS is
_MOST_PARTS = units.MOST_UNITS // 2  # each may have one of messages that are put aside


def planned(found: Mapping[Part, Xid], parts: Parts) -> dict[Part, Xid]:
    """Those units that are in the plan; others of the micro-batch are of a late driver."""
    return {part: xid for part, xid in found.items() if part.number < parts.get(part.queue, 0)}


class Taker:
    """Takes messages for a stream.

    Attributes:
        newest: Number of the micro-batch of which this process took messages last.
    """

    def __init__(self, options: Options, queues: Queues) -> None:
        """Takes nothing yet."""
        self._options = options
        self._queues = queues
        self.newest = 0

    # ---- planning ----

    def plan(self, qm: QueueManager, limits: Limits, turn: int) -> Parts:
        """The parts of the next micro-batch, by the messages that are there now; none without any.

        Args:
            qm: The connection.
            limits: Of the micro-batch.
            turn: Its number.
        """
        found = self._queues.each(self._messages)
        waiting = sorted(name for name, messages in found.items() if messages)
        names = turns(waiting, min(limits[0], _MOST_PARTS), turn)
        if not names:
            return {}
        size, most = self._unit_messages(qm), _MOST_PARTS // len(names)
        wanted = shares({name: found[name] for name in names}, limits[0])
        return {name: min(-(-wanted[name] // size), most) for name in names}

    def _messages(self, queue: Queue) -> int:
        """How many messages are on the queue, at most; 0: there is none to take."""
        depth = queue.depth
        if depth and len(queue.browse_batch(1, first=True, max_bytes=1, **self._wanted(queue))):
            return depth
        return 0

    # ---- taking ----

    def take(
        self,
        qm: QueueManager,
        batch: tuple[str, int],
        parts: Parts,
        there: dict[Part, Xid],
        limits: Limits,
    ) -> dict[Part, Xid]:
        """Takes the parts that are not there, and prepares them; returns all.

        Args:
            qm: The connection.
            batch: Stream and number of the micro-batch.
            parts: The plan.
            there: Parts that are prepared.
            limits: Of the micro-batch.
        """
        messages, size = limits
        for status in qm.prepared_list():
            if status.xid in there.values():
                messages, size = messages - status.gets, size - status.bytes
        queues = {name: self._queues.queue(qm, name) for name in parts}
        depth = {name: queue.depth if queue else 0 for name, queue in queues.items()}
        result = dict(there)
        self.newest = batch[1]
        for done, name in enumerate(sorted(parts, key=lambda name: depth[name])):
            left = len(parts) - done
            missing = [
                Part(name, number)
                for number in range(parts[name])
                if Part(name, number) not in there
            ]
            share = -(-messages // left), -(-size // left)
            got = self._take_parts(qm, queues[name], batch, missing, share)
            messages, size = messages - got[0], size - got[1]
            result |= {part: units.stream_unit(*batch, part) for part in missing}
        return result

    def _take_parts(
        self,
        qm: QueueManager,
        queue: Queue | None,
        batch: tuple[str, int],
        missing: list[Part],
        limits: Limits,
    ) -> Limits:
        """Takes parts of one queue; returns their messages and bytes."""
        messages, size = limits
        up_to = self._queues.bound(queue.name) if queue else None
        if queue and self._options["order"] == "arrival":
            room = min(messages, len(missing) * self._unit_messages(qm))
            up_to = self._up_to_by_arrival(queue, room, size)
            messages, size = (room if up_to is not None else 0), NO_LIMIT
        taken = taken_bytes = 0
        for part in missing:
            xid = units.stream_unit(*batch, part)
            left = (messages - taken, size - taken_bytes)
            got, got_bytes = self.take_part(qm, queue, xid, left, up_to)
            taken, taken_bytes = taken + got, taken_bytes + got_bytes
        return taken, taken_bytes

    def take_part(
        self,
        qm: QueueManager,
        queue: Queue | None,
        xid: Xid,
        limits: Limits,
        up_to: int | None,
    ) -> Limits:
        """Takes messages into one unit and prepares it; returns their number and bytes."""
        messages, size = limits
        most = min(messages, self._unit_messages(qm))
        got = got_bytes = 0
        try:
            while queue and got < most and got_bytes < size:
                more, more_bytes = queue.take_batch_uncopied(
                    most - got,
                    max_bytes=size - got_bytes,
                    **{**self._wanted(queue), "up_to": up_to},
                )
                if not more:
                    break
                got += more
                got_bytes += more_bytes
            qm.prepare(xid, allow_empty=True, wait=False)
        except penstock.XidInUse:  # another process took this part: its messages are the rows
            qm.backout()
            status = next((s for s in qm.prepared_list() if s.xid == xid), None)
            return (status.gets, status.bytes) if status is not None else (0, 0)
        except BaseException:
            qm.backout()
            raise
        return got, got_bytes

    def _up_to_by_arrival(self, queue: Queue, room: int, size: int) -> int | None:
        """The number of the newest message that is taken, where units have room for so many
        messages; None: there is none.
        """
        from .arrival import LAST, lowest

        bound = self._queues.bound(queue.name)
        up_to = min(LAST if bound is None else bound, queue.newest_number)
        if room <= 0 or size <= 0 or up_to == 0:
            return None
        if size >= NO_LIMIT and queue.depth <= room:
            return up_to
        return lowest(queue, room, size, self._is_persistent_only, up_to)

    @property
    def _is_persistent_only(self) -> bool:
        return bool(self._options["nonPersistent"] == "exclude")

    def _wanted(self, queue: Queue) -> dict[str, Any]:
        """The selection of messages."""
        return {
            "persistent_only": self._is_persistent_only,
            "up_to": self._queues.bound(queue.name),
        }

    def _unit_messages(self, qm: QueueManager) -> int:
        return min(_UNIT_MESSAGES, int(str(qm.display("QMGR")[0]["maxumsgs"])))

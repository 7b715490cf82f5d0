"""Reports on a queue manager: counts, processes, units of work, handles."""

from __future__ import annotations

import contextlib

from .._mqi_constants.values import MQQT_LOCAL
from ..constants import NAME_SPACE_QUEUES, ReasonCode
from ..errors import InvalidValue, UnknownObjectName
from .attachment import Attachment

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from .status import (
        HandleStatus,
        HeldLock,
        ManagerStatus,
        ProcessStatus,
        QueueStatistics,
        UnitStatus,
    )


class Reports(Attachment):
    """The part of :class:`penstock.QueueManager` that reports its state."""

    def status(self) -> ManagerStatus:
        """Counters of the queue manager."""
        from .status import ManagerStatus

        return ManagerStatus(**self.manager_status())

    def reset_queue_statistics(self, name: str) -> QueueStatistics:
        """The statistics of a local queue, which begin anew, as RESET QSTATS of MQ does. They begin
        anew by a restart and by each performance event of the queue, too.

        Args:
            name: of the queue.

        Raises:
            UnknownObjectName: 2085: there is no such queue. QueueDeleted: 2052: just now.
            InvalidValue: 2057: it is no local queue.
        """
        from .status import QueueStatistics

        found = self.look_up(NAME_SPACE_QUEUES, name)
        if found is None:
            raise UnknownObjectName(ReasonCode.UNKNOWN_OBJECT_NAME, f"queue {name} is not defined")
        if found[2] != MQQT_LOCAL:
            raise InvalidValue(ReasonCode.Q_TYPE_ERROR, f"queue {name} is not a local queue")
        return QueueStatistics(name, *self.reset_statistics(found[0], found[1]))

    def lock_list(self) -> list[HeldLock]:
        """The locks for which processes have waited a second or longer, with their owners."""
        from .status import HeldLock

        return [HeldLock(**row) for row in self.held_locks()]

    def process_list(self) -> list[ProcessStatus]:
        """The attached processes."""
        from .status import ProcessStatus

        return [ProcessStatus(**row) for row in self.processes()]

    def unit_list(self) -> list[UnitStatus]:
        """The open units of work."""
        from .status import UnitStatus

        return [UnitStatus(**row) for row in self.unit_rows()]

    def handle_list(self) -> list[HandleStatus]:
        """The open handles of queues."""
        from .status import HandleStatus

        names = {}
        others = set()  # slots of processes and namelists
        slot = 0
        while (found := self.next_object(slot)) is not None:
            slot = found[0]
            with contextlib.suppress(UnknownObjectName):  # deleted concurrently
                _, names[slot], _, _, space, _ = self.read_stamped(*found)
                if space != NAME_SPACE_QUEUES:
                    others.add(slot)
        return [
            HandleStatus(row["pid"], names.get(row["object"], ""), row["options"], row["opened_us"])
            for row in self.handle_rows()
            if row["object"] not in others
        ]

"""Reports on a queue manager: counts, processes, units of work, handles."""

from __future__ import annotations

import contextlib

from ..constants import NAME_SPACE_QUEUES
from ..errors import UnknownObjectName
from .attachment import Attachment

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from .status import HandleStatus, HeldLock, ManagerStatus, ProcessStatus, UnitStatus


class Reports(Attachment):
    """The part of :class:`penstock.QueueManager` that reports its state."""

    def status(self) -> ManagerStatus:
        """Counters of the queue manager."""
        from .status import ManagerStatus

        return ManagerStatus(**self.manager_status())

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

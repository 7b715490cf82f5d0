"""Instances of cluster queues in this queue manager's catalog, and a simulated channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock import mqi
from qmgr_fixture import EMBEDDED, HEADER, QmgrFixture, embedded, transmission

ROUTE = "SYSTEM.CLUSTER.TRANSMIT.QUEUE"
CONFLICT = "AMQ9407"


@dataclass
class Sent:
    """A message on the cluster transmission queue."""

    manager: str  # whose instance was chosen
    separate: tuple[int, int]  # (Priority, Persistence) of the descriptor that MQGET returns
    application: tuple[int, int]  # ... of the embedded one
    message: bytes

    def place(self, qmgr: QmgrFixture, queue: str) -> None:
        """The channel's put at the destination: the message with its own descriptor."""
        inner = mqi.MQMD.unpack(self.message[EMBEDDED:HEADER])
        assert (inner.Priority, inner.Persistence) == self.application
        md = mqi.MQMD(Priority=inner.Priority, Persistence=inner.Persistence)
        assert qmgr.put(queue, self.message[HEADER:], md)[0] < 2


class Cluster:
    """A cluster queue with instances at other queue managers."""

    def __init__(self, qmgr: QmgrFixture, **instances: dict[str, Any]) -> None:
        self.qmgr = qmgr
        self.name = qmgr.new_name("CLUSTERED")
        for manager, attributes in instances.items():
            qmgr.define("QCLUSTER", self.name, cluster="DEMO", clusqmgr=manager, **attributes)

    def put(self, md: Any = None, data: bytes = b"x") -> Sent:
        """MQPUT to whichever instance the queue manager chooses."""
        hobj = self.qmgr.opened(self.name, mqi.MQOO_OUTPUT | mqi.MQOO_BIND_NOT_FIXED)
        answer = self.qmgr.put(hobj, data, md)
        assert answer[0] < 2, answer
        self.qmgr.closed(hobj)
        return self.sent()

    def sent(self) -> Sent:
        got = self.qmgr.take(ROUTE)
        queue, manager = transmission(got.data)
        assert queue == self.name
        return Sent(manager, (got.priority, got.persistence), embedded(got.data), got.data)

    def complaints(self) -> int:
        """Lines of the error log about differing instances of this queue."""
        lines = self.qmgr.log().splitlines()
        return sum(CONFLICT in line and self.name in line for line in lines)

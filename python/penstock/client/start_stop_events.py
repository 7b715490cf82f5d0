"""Start and stop events (STRSTPEV): "Queue Manager Active" and "Queue Manager Not Active".

The process whose connection restarts the queue manager puts the first, the one that asks all others
to leave the second. Their queue is not among the SYSTEM objects that a new queue manager has:
whoever wants the events defines SYSTEM.ADMIN.QMGR.EVENT, with DEFPSIST(YES) to find the stop events
after the restart. Platform z/OS has no stop event, and no qualifiers.

Rules: "Queue Manager Active", "Queue Manager Not Active".
"""

from __future__ import annotations

import os

from .._mqi_constants.reason_codes import MQRC_Q_MGR_ACTIVE, MQRC_Q_MGR_NOT_ACTIVE
from ..errors import MQError
from .event_messages import event_message
from .report_messages import log_lost

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from .._engine import Connection

_COMMAND = 44  # MQCMD_Q_MGR_EVENT
_HOST_NAME, _REASON_QUALIFIER = 3191, 1020  # MQCACF_HOST_NAME, MQIACF_REASON_QUALIFIER
_STOPPING, _QUIESCING = 5, 6  # MQRQ_Q_MGR_STOPPING, MQRQ_Q_MGR_QUIESCING
_NO_FAILOVER = 31  # MQRQ_FAILOVER_NOT_PERMITTED: there are no standby instances
_QUIESCES = ("controlled", "wait")


def started(qm: Connection, platform: str, queue: str) -> None:
    """Puts the event of a start on the queue. One that has no place is logged."""
    parameters: tuple[tuple[int, int | str], ...] = ()
    if platform != "zos":
        parameters = (_REASON_QUALIFIER, _NO_FAILOVER), (_HOST_NAME, os.uname().nodename)
    _put(qm, queue, event_message(_COMMAND, MQRC_Q_MGR_ACTIVE, qm.name, *parameters))


def ending(qm: Connection, platform: str, queue: str, mode: str) -> None:
    """The same of a stop. mode: as of Attachment.end()."""
    if platform == "zos":
        return
    qualifier = _QUIESCING if mode in _QUIESCES else _STOPPING
    _put(
        qm,
        queue,
        event_message(_COMMAND, MQRC_Q_MGR_NOT_ACTIVE, qm.name, (_REASON_QUALIFIER, qualifier)),
    )


def _put(qm: Connection, queue: str, message: bytes) -> None:
    try:
        qm.put_event(queue, message)
    except MQError as error:
        log_lost(qm, queue, "", error.reason)

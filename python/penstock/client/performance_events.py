"""Event messages of performance events: what is in them, and which events are enabled by them.

The core knows when an event occurs (csrc/queue/performance.h); the binding asks here for its
message (pyext/client/performance.pyx). An event disables its own kind and enables the opposite
ones: the definition of the queue changes with it.

Rules: "Performance events", "Queue Depth High", "Queue Depth Low", "Queue Full", "Queue Service
Interval High", "Queue Service Interval OK", "Event message MQMD".
"""

from __future__ import annotations

from .._mqi_constants import selectors as mq
from .._mqi_constants.values import MQEVR_DISABLED, MQEVR_ENABLED, MQQSIE_HIGH, MQQSIE_OK
from ..constants import ReasonCode
from ..errors import MQError
from ..objects.system import EVENT_QUEUE
from .event_messages import event_message
from .own_changes import change
from .report_messages import log_lost

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from .._engine import Connection

_COMMAND = 45  # MQCMD_PERFM_EVENT
_STATISTICS = 35  # MQIA_TIME_SINCE_RESET, _HIGH_Q_DEPTH, _MSG_ENQ_COUNT, _MSG_DEQ_COUNT

# by MQE_EVENT_*: the reason code, and the attributes that the event changes
_EVENTS: dict[int, tuple[int, dict[int, int]]] = {
    1: (
        ReasonCode.Q_FULL,
        {
            mq.MQIA_Q_DEPTH_MAX_EVENT: MQEVR_DISABLED,
            mq.MQIA_Q_DEPTH_LOW_EVENT: MQEVR_ENABLED,
        },
    ),
    2: (
        ReasonCode.Q_DEPTH_HIGH,
        {
            mq.MQIA_Q_DEPTH_HIGH_EVENT: MQEVR_DISABLED,
            mq.MQIA_Q_DEPTH_LOW_EVENT: MQEVR_ENABLED,
            mq.MQIA_Q_DEPTH_MAX_EVENT: MQEVR_ENABLED,
        },
    ),
    4: (
        ReasonCode.Q_DEPTH_LOW,
        {
            mq.MQIA_Q_DEPTH_LOW_EVENT: MQEVR_DISABLED,
            mq.MQIA_Q_DEPTH_HIGH_EVENT: MQEVR_ENABLED,
            mq.MQIA_Q_DEPTH_MAX_EVENT: MQEVR_ENABLED,
        },
    ),
    8: (ReasonCode.Q_SERVICE_INTERVAL_HIGH, {mq.MQIA_Q_SERVICE_INTERVAL_EVENT: MQQSIE_OK}),
    16: (ReasonCode.Q_SERVICE_INTERVAL_OK, {mq.MQIA_Q_SERVICE_INTERVAL_EVENT: MQQSIE_HIGH}),
}


def make(
    qm: Connection,
    slot: int,
    generation: int,
    event: int,
    seconds: int,
    high_depth: int,
    puts: int,
    gets: int,
) -> None:
    """Puts the event message, of which one that has no place is logged, and changes the definition
    of the queue. The message comes first: a full journal has no room for the change.

    Args:
        slot, generation: the queue.
        event: MQE_EVENT_*.
        seconds: since the statistics were reset.
        high_depth: the most messages since then. puts, gets: since then.

    Raises:
        QueueDeleted: the queue is gone. Others: the connection has ended.
    """
    reason, changes = _EVENTS[event]
    name = qm.read_object(slot, generation)[1]
    if name != EVENT_QUEUE:  # who takes event messages would cause the next one with each get
        statistics = enumerate((seconds, high_depth, puts, gets), _STATISTICS)
        message = event_message(_COMMAND, reason, qm.name, (mq.MQCA_BASE_Q_NAME, name), *statistics)
        try:
            qm.put_event(EVENT_QUEUE, message)
        except MQError as error:
            log_lost(qm, EVENT_QUEUE, "", error.reason)
    change(qm, slot, generation, changes, {})

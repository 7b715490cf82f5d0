"""Stream queues: where a put on a queue with STREAMQ puts a copy.

The binding puts the copy (pyext/client/stream.pyx); which definitions are refused is in
objects/rules.py and client/object_commands.py.

Rules: "Streaming queues", "Streaming queue restrictions".
"""

from __future__ import annotations

from .._engine import reason_name
from .._mqi_constants import selectors as mq
from .report_messages import NOT_DELIVERED, is_to_log

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from .._engine import Connection

_SELECTORS = mq.MQCA_STREAM_QUEUE_NAME, mq.MQIA_STREAM_QUEUE_QOS


def stream_of(qm: Connection, slot: int, generation: int) -> tuple[str, bool] | None:
    """The stream queue of a queue, and whether a put must duplicate (STRMQOS(MUSTDUP)); None: it
    has none.

    Args:
        qm: the connection.
        slot, generation: the queue.

    Raises:
        MQError: 2052: it has been deleted.
    """
    name, quality = qm.values(slot, generation, _SELECTORS)
    return (str(name), bool(quality)) if name else None


def log_lost(qm: Connection, queue: str, reason: int) -> None:
    """Logs AMQ9544 for copies that have no place: once an hour and process for each stream queue
    and reason.
    """
    if is_to_log((qm.name, "stream", queue, reason)):
        qm.log(
            NOT_DELIVERED,
            "W",
            f"a copy for stream queue {queue} was not put: {reason} {reason_name(reason)}; the "
            f"message is on its own queue (STRMQOS(BESTEF))",
        )

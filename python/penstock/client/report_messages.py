"""What the queue manager does with a report message that cannot be put on its queue.

The binding makes and puts reports (client/report.pyx); here is the dead-letter header of one that
its queue refuses, and the log line of one that no queue takes.

Rules: "MQDLH - Dead-letter header"; "Report options and message flags".
"""

from __future__ import annotations

import time

from .._engine import reason_name
from .._mqi_constants.descriptor import MQAT_QMGR
from .._mqi_constants.lengths import MQ_PUT_APPL_NAME_LENGTH
from .dead_letters import dead_letter_queue, header

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from .._engine import Connection

NOT_DELIVERED = 9544  # AMQ9544: messages not put to their destination queue
_AGAIN_S = 3600.0  # a queue that takes no reports is logged once an hour
_LOGGED_MOST = 1024


def dead_letter(
    qm: Connection, reason: int, queue: str, manager: str, encoding: int, ccsid: int, format: str
) -> tuple[str, bytes]:
    """The dead-letter queue, and the header of a report that could not be put.

    Args:
        qm: the connection.
        reason: MQRC_* why not.
        queue, manager: ReplyToQ and ReplyToQMgr; a blank manager is the local one.
        encoding, ccsid, format: of the report's data.

    Raises:
        UnknownObjectName: 2085: DEADQ is blank.
    """
    text = header(
        reason,
        (queue, manager or qm.name),
        (encoding, ccsid, format),
        (MQAT_QMGR, qm.name[:MQ_PUT_APPL_NAME_LENGTH]),
    )
    return dead_letter_queue(qm), text


_logged: dict[tuple[str, str, str, int], float] = {}


def is_to_log(key: tuple[str, str, str, int]) -> bool:
    """Whether an hour has passed since this process logged that; notes it."""
    now = time.monotonic()
    if now - _logged.get(key, -_AGAIN_S) < _AGAIN_S:
        return False
    if len(_logged) >= _LOGGED_MOST:
        _logged.clear()
    _logged[key] = now
    return True


def log_lost(qm: Connection, queue: str, manager: str, reason: int) -> None:
    """Logs AMQ9544 for a report that was discarded: once an hour and process for each queue and
    reason, since every message may ask for a report.
    """
    if not is_to_log((qm.name, queue, manager, reason)):
        return
    qm.log(
        NOT_DELIVERED,
        "W",
        f"a message of the queue manager for queue {queue} at {manager or qm.name} was discarded: "
        f"{reason} {reason_name(reason)}, and there is no dead-letter queue that takes it",
    )

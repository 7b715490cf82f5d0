"""The dead-letter queue, which receives messages that could not be delivered.

Rules of "MQDLH - Dead-letter header": encoding, character set and format of the data move into the
header, which precedes the data; the message keeps its other fields, its context included. The
header's PutAppl* and Put* fields describe the put to the dead-letter queue.
"""

from __future__ import annotations

from .._mqi_constants.calls import MQOO_OUTPUT
from .._mqi_constants.descriptor import MQAT_UNIX, MQFMT_DEAD_LETTER_HEADER
from .._mqi_constants.selectors import MQCA_DEAD_LETTER_Q_NAME
from ..constants import NAME_SPACE_QUEUE_MANAGERS, ReasonCode
from ..errors import UnknownObjectName
from .identity_context import identity
from .queue import Queue

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from .._engine import Connection, Message, PutResult, Unit

_OUTPUT, _UNIX = MQOO_OUTPUT, MQAT_UNIX
_FORMAT = MQFMT_DEAD_LETTER_HEADER


def header(
    reason: int,
    destination: tuple[str, str],
    data: tuple[int, int, str],
    origin: tuple[int, str],
) -> bytes:
    """A dead-letter header, 172 bytes.

    Args:
        reason: MQRC_* or MQFB_*: why the message was not delivered.
        destination: DestQName and DestQMgrName.
        data: Encoding, CodedCharSetId and Format of what follows the header.
        origin: PutApplType and PutApplName of the put to the dead-letter queue.
    """
    from time import gmtime, strftime, time

    from ..headers.dlh import MQDLH

    now = time()
    moment = gmtime(now)
    return MQDLH(
        Reason=reason,
        DestQName=destination[0],
        DestQMgrName=destination[1],
        Encoding=data[0],
        CodedCharSetId=data[1],
        Format=data[2],
        PutApplType=origin[0],
        PutApplName=origin[1],
        PutDate=strftime("%Y%m%d", moment),
        PutTime=strftime("%H%M%S", moment) + f"{int(now * 100) % 100:02d}",
    ).pack()


def put_dead_letter(
    qm: Connection, message: Message, reason: int, queue: str, manager: str, unit: Unit | None
) -> PutResult:
    """See :meth:`penstock.QueueManager.dead_letter`."""
    name = dead_letter_queue(qm)
    text = header(
        reason,
        (queue, manager or qm.name),
        (message.encoding, message.ccsid, message.format),
        (_UNIX, identity()[1]),
    )
    with Queue(qm, name, _OUTPUT) as target:
        return target.put_again(message, text + message.data, _FORMAT, unit)


def dead_letter_queue(qm: Connection) -> str:
    """Name of the dead-letter queue. Raises UnknownObjectName when none is defined."""
    own = qm.look_up(NAME_SPACE_QUEUE_MANAGERS, qm.name)
    name = qm.values(own[0], own[1], (MQCA_DEAD_LETTER_Q_NAME,))[0] if own is not None else None
    if not name:
        raise UnknownObjectName(
            ReasonCode.UNKNOWN_OBJECT_NAME,
            f"queue manager {qm.name} has no dead-letter queue: DEADQ is blank",
        )
    return str(name)

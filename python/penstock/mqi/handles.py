"""What MQOPEN, MQPUT1 and distribution lists share: engine handles of queues, structures."""

from __future__ import annotations

from .._engine import Hconn, QueueHandle, Structure
from ..constants import NAME_SPACE_QUEUES
from ..errors import MQError
from . import constants as mq

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._engine import Connection

_MODEL = mq.MQQT_MODEL
_OUTPUT, _BIND_NOT_FIXED = mq.MQOO_OUTPUT, mq.MQOO_BIND_NOT_FIXED


def structure_in(given: Any) -> Any:
    """The structure of a view of penstock.rpg; anything else as it is."""
    return given if isinstance(given, Structure) else getattr(given, "structure", given)


def open_handle(hconn: Hconn, od: Any, options: int, name: str, manager: str) -> QueueHandle:
    """The engine's handle of a queue. Raises MQError as name resolution does."""
    return QueueHandle(
        hconn.qm, name, options, False, manager=manager, dynamic_name=od.DynamicQName
    )


def open_output(hconn: Hconn, od: Any, name: str, manager: str) -> QueueHandle:
    """The engine's handle of a queue for one put. Raises MQError, for a model queue 2057."""
    qm: Connection = hconn.qm
    if not manager:
        found = qm.look_up(NAME_SPACE_QUEUES, name) if name else None
        if found is not None and found[2] == _MODEL:
            raise MQError(mq.MQRC_Q_TYPE_ERROR, f"{name} is a model queue")
    return open_handle(hconn, od, _OUTPUT | _BIND_NOT_FIXED, name, manager)

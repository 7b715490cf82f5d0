"""Engine handles of queues for MQOPEN, MQPUT1 and distribution lists."""

from __future__ import annotations

from .._engine import Hconn, QueueHandle
from ..errors import MQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._engine import Connection

_QUEUES = 1  # name space
_MODEL = 2
_OUTPUT, _BIND_NOT_FIXED = 16, 32768


def open_handle(hconn: Hconn, od: Any, options: int, name: str, manager: str) -> QueueHandle:
    """The engine's handle of a queue. Raises MQError as name resolution does."""
    return QueueHandle(
        hconn.qm, name, options, False, manager=manager, dynamic_name=od.DynamicQName
    )


def open_output(hconn: Hconn, od: Any, name: str, manager: str) -> QueueHandle:
    """The engine's handle of a queue for one put. Raises MQError, for a model queue 2057."""
    qm: Connection = hconn.qm
    if not manager:
        found = qm.look_up(_QUEUES, name) if name else None
        if found is not None and found[2] == _MODEL:
            raise MQError(2057, f"{name} is a model queue")
    return open_handle(hconn, od, _OUTPUT | _BIND_NOT_FIXED, name, manager)

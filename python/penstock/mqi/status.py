"""MQSTAT: what became of asynchronous puts.

A put with MQPMO_ASYNC_RESPONSE is done when it returns, and returns its own result; MQSTAT counts
it all the same. A put that leaves the choice to DEFPRESP is not counted.

Sources: "MQSTAT - Retrieve status information", "MQSTS - Status reporting structure".
"""

from __future__ import annotations

from .._engine import Hconn, Structure, has_identity
from . import constants as mq
from .handles import structure_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["MQSTAT"]

_NEWEST = 2
_RECONNECTIONS = (mq.MQSTAT_TYPE_RECONNECTION, mq.MQSTAT_TYPE_RECONNECTION_ERROR)
_NOTHING = (mq.MQCC_OK, mq.MQRC_NONE, "", "", "", "")


def MQSTAT(hconn: Any, status_type: int, sts: Any) -> tuple[int, int]:
    """Returns the status of asynchronous puts since the connection or the last MQSTAT.

    Args:
        hconn: from MQCONN.
        status_type: MQSTAT_TYPE_ASYNC_ERROR.
        sts: MQSTS; on return the numbers of puts that ended well, with a warning, and failed, and
            the first one that failed, else the first one with a warning.

    Returns:
        CompCode, Reason: 2018; 2426 for a wrong MQSTS; 2012 for the types of reconnection, which
        are for clients; 2430 for another type.
    """
    if type(hconn) is not Hconn or hconn.qm.closed:
        return mq.MQCC_FAILED, mq.MQRC_HCONN_ERROR
    sts = structure_in(sts)
    if not isinstance(sts, Structure) or not has_identity(sts, b"STAT", _NEWEST):
        return hconn.refuse(mq.MQRC_STS_ERROR, f"no MQSTS: {sts!r}")
    if isinstance(status_type, int) and status_type in _RECONNECTIONS:
        return hconn.refuse(mq.MQRC_ENVIRONMENT_ERROR, "reconnection is for client connections")
    if status_type != mq.MQSTAT_TYPE_ASYNC_ERROR:
        return hconn.refuse(mq.MQRC_STAT_TYPE_ERROR, f"type {status_type!r}: one of MQSTAT_TYPE_*")
    _fill(sts, *hconn.take_async())
    return mq.MQCC_OK, mq.MQRC_NONE


def _fill(
    sts: Any,
    counts: tuple[int, int, int],
    worst: tuple[int, int, str, str, str, str] | None,
) -> None:
    sts.PutSuccessCount, sts.PutWarningCount, sts.PutFailureCount = counts
    comp_code, reason, name, manager, resolved, resolved_manager = worst or _NOTHING
    sts.CompCode, sts.Reason = comp_code, reason
    sts.ObjectType = mq.MQOT_Q
    sts.ObjectName, sts.ObjectQMgrName = name, manager
    sts.ResolvedObjectName, sts.ResolvedQMgrName = resolved, resolved_manager
    if sts.Version == _NEWEST:
        sts.ObjectString = sts.SubName = ""
        sts.OpenOptions = sts.SubOptions = 0

"""MQDLH: the dead-letter header, 172 bytes before the data of an undelivered message.

Source: "MQDLH - Dead-letter header".
"""

from __future__ import annotations

from .._engine import CharField, LongField, Structure, layout
from .._mqi_constants.reason_codes import MQRC_DLH_ERROR

__all__ = ["MQDLH"]


# generated: MQDLH
@layout("DLH", {1: 172}, MQRC_DLH_ERROR)
class MQDLH(Structure):
    """Dead-letter header: the reason, and the destination, of a failed delivery."""

    __slots__ = ()
    StrucId = CharField(0, 4, "DLH")
    Version = LongField(4, 1)
    Reason = LongField(8)
    DestQName = CharField(12, 48)
    DestQMgrName = CharField(60, 48)
    Encoding = LongField(108)
    CodedCharSetId = LongField(112)
    Format = CharField(116, 8)
    PutApplType = LongField(124)
    PutApplName = CharField(128, 28)
    PutDate = CharField(156, 8)
    PutTime = CharField(164, 8)


# end of generated: MQDLH

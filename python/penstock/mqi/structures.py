"""MQ's structures, declared as data: each field with its offset, size and initial value.

The layouts are those of a 64-bit queue manager, the initial values those of the C initialisers
(``MQMD_DEFAULT`` and so on). A class lists ``lengths``: bytes of each version; ``reason``: the
reason code that a verb gives for a wrong structure. Attributes have MQ's names. Integers outside 32
bits, text that is too long and wrong types raise :class:`penstock.InvalidValue` and
:class:`penstock.InvalidType` with that reason code.

Fields that are pointers in MQ are Python objects here: lists of records (``ObjectRecs``,
``ResponseRecs``, ``PutMsgRecs``) and strings (``ObjectString``). ``pack`` writes them behind the
structure, at the offsets in its offset fields, as MQ allows. Pointer fields are plain numbers that
are never dereferenced.

Sources: "MQMD - Message descriptor", "MQOD - Object descriptor", "MQPMO - Put-message options",
"MQGMO - Get-message options", "MQDLH - Dead-letter header", "MQXQH - Transmission-queue header",
"MQMDE - Message descriptor extension", "MQCNO - Connect options", "MQBO - Begin options",
"MQOR - Object record", "MQRR - Response record", "MQPMR - Put-message record".
"""

from __future__ import annotations

from .._engine import (
    ByteField,
    CharField,
    Int64Field,
    ListField,
    LongField,
    PartField,
    StringField,
    Structure,
    layout,
)
from ..headers.dlh import MQDLH
from .constants.descriptor import MQENC_NATIVE

__all__ = [
    "MQBO",
    "MQCNO",
    "MQDLH",
    "MQGMO",
    "MQMD",
    "MQMDE",
    "MQOD",
    "MQOR",
    "MQPMO",
    "MQPMR",
    "MQRR",
    "MQXQH",
]


@layout("MD", {1: 324, 2: 364}, 2026)
class MQMD(Structure):
    """Message descriptor: all of a message but its data."""

    __slots__ = ()
    StrucId = CharField(0, 4, "MD")
    Version = LongField(4, 1)
    Report = LongField(8)
    MsgType = LongField(12, 8)
    Expiry = LongField(16, -1)
    Feedback = LongField(20)
    Encoding = LongField(24, MQENC_NATIVE)
    CodedCharSetId = LongField(28)
    Format = CharField(32, 8)
    Priority = LongField(40, -1)
    Persistence = LongField(44, 2)
    MsgId = ByteField(48, 24)
    CorrelId = ByteField(72, 24)
    BackoutCount = LongField(96)
    ReplyToQ = CharField(100, 48)
    ReplyToQMgr = CharField(148, 48)
    UserIdentifier = CharField(196, 12)
    AccountingToken = ByteField(208, 32)
    ApplIdentityData = CharField(240, 32)
    PutApplType = LongField(272)
    PutApplName = CharField(276, 28)
    PutDate = CharField(304, 8)
    PutTime = CharField(312, 8)
    ApplOriginData = CharField(320, 4)
    # version 2
    GroupId = ByteField(324, 24)
    MsgSeqNumber = LongField(348, 1)
    Offset = LongField(352)
    MsgFlags = LongField(356)
    OriginalLength = LongField(360, -1)


@layout("MDE", {2: 72}, 2248)
class MQMDE(Structure):
    """Message descriptor extension: the fields of version 2 in front of the data."""

    __slots__ = ()
    StrucId = CharField(0, 4, "MDE")
    Version = LongField(4, 2)
    StrucLength = LongField(8, 72)
    Encoding = LongField(12, MQENC_NATIVE)
    CodedCharSetId = LongField(16)
    Format = CharField(20, 8)
    Flags = LongField(28)
    GroupId = ByteField(32, 24)
    MsgSeqNumber = LongField(56, 1)
    Offset = LongField(60)
    MsgFlags = LongField(64)
    OriginalLength = LongField(68, -1)


@layout("", {0: 96}, 2155)
class MQOR(Structure):
    """Object record: one destination of a distribution list."""

    __slots__ = ()
    ObjectName = CharField(0, 48)
    ObjectQMgrName = CharField(48, 48)


@layout("", {0: 8}, 2156)
class MQRR(Structure):
    """Response record: the outcome of a call for one destination."""

    __slots__ = ()
    CompCode = LongField(0)
    Reason = LongField(4)


@layout("", {0: 108}, 2159)
class MQPMR(Structure):
    """Put-message record: descriptor fields of one destination.

    MQ has no fixed layout for it: ``MQPMO.PutMsgRecFields`` selects the fields of a record, in this
    order, and :class:`MQPMO` packs its records accordingly. Packed alone, a record has all fields.
    """

    __slots__ = ()
    MsgId = ByteField(0, 24)
    CorrelId = ByteField(24, 24)
    GroupId = ByteField(48, 24)
    Feedback = LongField(72)
    AccountingToken = ByteField(76, 32)


@layout("OD", {1: 168, 2: 208, 3: 344, 4: 424}, 2044)
class MQOD(Structure):
    """Object descriptor: the object to open.

    ``ObjectRecs`` is a list of :class:`MQOR`; to set it sets ``RecsPresent`` too. ``ResponseRecs``
    is a list of :class:`MQRR`.
    """

    __slots__ = ()
    StrucId = CharField(0, 4, "OD")
    Version = LongField(4, 1)
    ObjectType = LongField(8, 1)
    ObjectName = CharField(12, 48)
    ObjectQMgrName = CharField(60, 48)
    DynamicQName = CharField(108, 48, "AMQ.*")
    AlternateUserId = CharField(156, 12)
    # version 2
    RecsPresent = LongField(168)
    KnownDestCount = LongField(172)
    UnknownDestCount = LongField(176)
    InvalidDestCount = LongField(180)
    ObjectRecOffset = LongField(184)
    ResponseRecOffset = LongField(188)
    ObjectRecPtr = Int64Field(192)
    ResponseRecPtr = Int64Field(200)
    ObjectRecs = ListField(ObjectRecOffset, RecsPresent, MQOR, 2155, counts=True)
    ResponseRecs = ListField(ResponseRecOffset, RecsPresent, MQRR, 2156)
    # version 3
    AlternateSecurityId = ByteField(208, 40)
    ResolvedQName = CharField(248, 48)
    ResolvedQMgrName = CharField(296, 48)
    # version 4
    ObjectString = StringField(344)
    SelectionString = StringField(368)
    ResObjectString = StringField(392)
    ResolvedType = LongField(416)


@layout("PMO", {1: 128, 2: 160, 3: 184}, 2173)
class MQPMO(Structure):
    """Put-message options.

    ``PutMsgRecs`` is a list of :class:`MQPMR`; to set it sets ``RecsPresent`` too. ``ResponseRecs``
    is a list of :class:`MQRR`. ``Context`` takes an object handle.
    """

    __slots__ = ()
    StrucId = CharField(0, 4, "PMO")
    Version = LongField(4, 1)
    Options = LongField(8)
    Timeout = LongField(12, -1)
    Context = LongField(16)
    KnownDestCount = LongField(20)
    UnknownDestCount = LongField(24)
    InvalidDestCount = LongField(28)
    ResolvedQName = CharField(32, 48)
    ResolvedQMgrName = CharField(80, 48)
    # version 2
    RecsPresent = LongField(128)
    PutMsgRecFields = LongField(132)
    PutMsgRecOffset = LongField(136)
    ResponseRecOffset = LongField(140)
    PutMsgRecPtr = Int64Field(144)
    ResponseRecPtr = Int64Field(152)
    PutMsgRecs = ListField(PutMsgRecOffset, RecsPresent, MQPMR, 2159, True, PutMsgRecFields)
    ResponseRecs = ListField(ResponseRecOffset, RecsPresent, MQRR, 2156)
    # version 3
    OriginalMsgHandle = Int64Field(160)
    NewMsgHandle = Int64Field(168)
    Action = LongField(176)
    PubLevel = LongField(180, 9)


@layout("GMO", {1: 72, 2: 80, 3: 100, 4: 112}, 2186)
class MQGMO(Structure):
    """Get-message options. ``WaitInterval`` is in milliseconds."""

    __slots__ = ()
    StrucId = CharField(0, 4, "GMO")
    Version = LongField(4, 1)
    Options = LongField(8)
    WaitInterval = LongField(12)
    Signal1 = LongField(16)
    Signal2 = LongField(20)
    ResolvedQName = CharField(24, 48)
    # version 2
    MatchOptions = LongField(72, 3)
    GroupStatus = CharField(76, 1, " ")
    SegmentStatus = CharField(77, 1, " ")
    Segmentation = CharField(78, 1, " ")
    Reserved1 = CharField(79, 1, " ")
    # version 3
    MsgToken = ByteField(80, 16)
    ReturnedLength = LongField(96, -1)
    # version 4
    Reserved2 = LongField(100)
    MsgHandle = Int64Field(104)


@layout("XQH", {1: 428}, 2260)
class MQXQH(Structure):
    """Transmission-queue header: the destination of a message, and its descriptor.

    ``MsgDesc`` reads as an :class:`MQMD` of version 1 that shares the header's memory: to set one
    of its fields sets it in the header. Fields of version 2 are not there.
    """

    __slots__ = ()
    StrucId = CharField(0, 4, "XQH")
    Version = LongField(4, 1)
    RemoteQName = CharField(8, 48)
    RemoteQMgrName = CharField(56, 48)
    MsgDesc = PartField(104, 324, MQMD)


@layout("BO", {1: 12}, 2134)
class MQBO(Structure):
    """Begin options."""

    __slots__ = ()
    StrucId = CharField(0, 4, "BO")
    Version = LongField(4, 1)
    Options = LongField(8)


@layout("CNO", {1: 12, 2: 24, 3: 152, 4: 168, 5: 200, 6: 224, 7: 256, 8: 272}, 2139)
class MQCNO(Structure):
    """Connect options."""

    __slots__ = ()
    StrucId = CharField(0, 4, "CNO")
    Version = LongField(4, 1)
    Options = LongField(8)
    # version 2
    ClientConnOffset = LongField(12)
    ClientConnPtr = Int64Field(16)
    # version 3
    ConnTag = ByteField(24, 128)
    # version 4
    SSLConfigPtr = Int64Field(152)
    SSLConfigOffset = LongField(160)
    # version 5
    ConnectionId = ByteField(164, 24)
    SecurityParmsOffset = LongField(188)
    SecurityParmsPtr = Int64Field(192)
    # version 6
    CCDTUrlPtr = Int64Field(200)
    CCDTUrlOffset = LongField(208)
    CCDTUrlLength = LongField(212)
    Reserved = ByteField(216, 8)
    # version 7
    ApplName = CharField(224, 28)
    Reserved2 = LongField(252)
    # version 8
    BalanceParmsPtr = Int64Field(256)
    BalanceParmsOffset = LongField(264)
    Reserved3 = LongField(268)

"""The ILE RPG names of the MQI: fields and constants as in the copy files CMQ*G.

A structure is read and written by its RPG names through a view: :func:`view` makes one over a
structure of :mod:`penstock.mqi`; ``MSGDSC()`` and the like make the structure too. Constants are
names of this module, among them ``RCnnnn`` for each reason code, ``RCNONE`` for 0.

    md = rpg.MSGDSC(MDPER=rpg.PEPER, MDPRI=rpg.PRQDEF)
    mqi.MQPUT(hconn, hobj, md.structure, pmo, data)

``POSITIONS`` has the first and last byte of each field, counted from 1. The fields behind the
pointers in MQOD and MQPMO have the positions of this package's 64-bit layout: IBM i itself has
pointers of 16 bytes.

Sources: "IBM i Application Programming Reference (ILE/RPG)", "MDPER (10-digit signed integer)".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from penstock import mqi

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

    from .._engine import ByteField, CharField, Field, Int64Field, LongField, StringField, Structure

    def __getattr__(name: str) -> int: ...  # RCnnnn, set at the end of this module


_Value = TypeVar("_Value")


class View:
    """A structure under its RPG names.

    Attributes:
        structure: the structure of :mod:`penstock.mqi`; the view itself holds no data.
    """

    __slots__ = ("structure",)
    of: ClassVar[type[Structure]]
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, structure: Structure | None = None, **fields: Any) -> None:
        """A view over the given structure, or a new one, with some fields set.

        Raises:
            TypeError: a structure of another class, or a name that is no field.
        """
        if structure is None:
            structure = self.of()
        elif not isinstance(structure, self.of):
            raise TypeError(f"{type(self).__name__} is of {self.of.__name__}, not {structure!r}")
        self.structure = structure
        for name, value in fields.items():
            if name not in POSITIONS or not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} has no field {name!r}")
            setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        """Whether the structures have the same values."""
        if type(self) is not type(other):
            return NotImplemented
        return isinstance(other, View) and self.structure == other.structure

    def __repr__(self) -> str:
        """The fields that differ from their initial values."""
        blank = type(self)()
        shown = [
            f"{name}={getattr(self, name)!r}"
            for name, at in vars(type(self)).items()
            if isinstance(at, _Name)
            and hasattr(self, name)  # a part may be of an early version
            and getattr(self, name) != getattr(blank, name)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


class _Name(Generic[_Value]):
    """The RPG name of a field: a descriptor that goes to the structure's."""

    __slots__ = ("field",)

    def __init__(self, field: Field) -> None:
        self.field = field

    def __set_name__(self, owner: type, name: str) -> None:
        POSITIONS[name] = (self.field.offset + 1, self.field.offset + self.field.size)

    @overload
    def __get__(self, view: None, owner: type) -> Self: ...
    @overload
    def __get__(self, view: View, owner: type) -> _Value: ...
    def __get__(self, view: View | None, owner: type) -> Any:
        if view is None:
            return self
        return getattr(view.structure, self.field.name)

    def __set__(self, view: View, value: Any) -> None:
        setattr(view.structure, self.field.name, value)


class _Part(_Name["MSGDSC"]):
    """XQMD: the message descriptor inside a transmission-queue header."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(mqi.MQXQH.MsgDesc)

    def __get__(self, view: View | None, owner: type) -> Any:
        if view is None:
            return self
        return MSGDSC(view.structure.MsgDesc)  # type: ignore[attr-defined]

    def __set__(self, view: View, value: Any) -> None:
        given = value.structure if isinstance(value, View) else value
        view.structure.MsgDesc = given  # type: ignore[attr-defined]


@overload
def _name(field: LongField | Int64Field) -> _Name[int]: ...
@overload
def _name(field: CharField | StringField) -> _Name[str]: ...
@overload
def _name(field: ByteField) -> _Name[bytes]: ...
def _name(field: Field) -> _Name[Any]:
    return _Name(field)


POSITIONS: dict[str, tuple[int, int]] = {}


# generated: views
class MSGDSC(View):
    """Message descriptor: MQMD."""

    __slots__ = ()
    of = mqi.MQMD
    MDSID = _name(mqi.MQMD.StrucId)
    MDVER = _name(mqi.MQMD.Version)
    MDREP = _name(mqi.MQMD.Report)
    MDMT = _name(mqi.MQMD.MsgType)
    MDEXP = _name(mqi.MQMD.Expiry)
    MDFB = _name(mqi.MQMD.Feedback)
    MDENC = _name(mqi.MQMD.Encoding)
    MDCSI = _name(mqi.MQMD.CodedCharSetId)
    MDFMT = _name(mqi.MQMD.Format)
    MDPRI = _name(mqi.MQMD.Priority)
    MDPER = _name(mqi.MQMD.Persistence)
    MDMID = _name(mqi.MQMD.MsgId)
    MDCID = _name(mqi.MQMD.CorrelId)
    MDBOC = _name(mqi.MQMD.BackoutCount)
    MDRQ = _name(mqi.MQMD.ReplyToQ)
    MDRM = _name(mqi.MQMD.ReplyToQMgr)
    MDUID = _name(mqi.MQMD.UserIdentifier)
    MDACC = _name(mqi.MQMD.AccountingToken)
    MDAID = _name(mqi.MQMD.ApplIdentityData)
    MDPAT = _name(mqi.MQMD.PutApplType)
    MDPAN = _name(mqi.MQMD.PutApplName)
    MDPD = _name(mqi.MQMD.PutDate)
    MDPT = _name(mqi.MQMD.PutTime)
    MDAOD = _name(mqi.MQMD.ApplOriginData)
    MDGID = _name(mqi.MQMD.GroupId)
    MDSEQ = _name(mqi.MQMD.MsgSeqNumber)
    MDOFF = _name(mqi.MQMD.Offset)
    MDMFL = _name(mqi.MQMD.MsgFlags)
    MDOLN = _name(mqi.MQMD.OriginalLength)


class MDE(View):
    """Message descriptor extension: MQMDE."""

    __slots__ = ()
    of = mqi.MQMDE
    MESID = _name(mqi.MQMDE.StrucId)
    MEVER = _name(mqi.MQMDE.Version)
    MELEN = _name(mqi.MQMDE.StrucLength)
    MEENC = _name(mqi.MQMDE.Encoding)
    MECSI = _name(mqi.MQMDE.CodedCharSetId)
    MEFMT = _name(mqi.MQMDE.Format)
    MEFLG = _name(mqi.MQMDE.Flags)
    MEGID = _name(mqi.MQMDE.GroupId)
    MESEQ = _name(mqi.MQMDE.MsgSeqNumber)
    MEOFF = _name(mqi.MQMDE.Offset)
    MEMFL = _name(mqi.MQMDE.MsgFlags)
    MEOLN = _name(mqi.MQMDE.OriginalLength)


class OBJDSC(View):
    """Object descriptor: MQOD."""

    __slots__ = ()
    of = mqi.MQOD
    ODSID = _name(mqi.MQOD.StrucId)
    ODVER = _name(mqi.MQOD.Version)
    ODOT = _name(mqi.MQOD.ObjectType)
    ODON = _name(mqi.MQOD.ObjectName)
    ODMN = _name(mqi.MQOD.ObjectQMgrName)
    ODDN = _name(mqi.MQOD.DynamicQName)
    ODAU = _name(mqi.MQOD.AlternateUserId)
    ODREC = _name(mqi.MQOD.RecsPresent)
    ODKDC = _name(mqi.MQOD.KnownDestCount)
    ODUDC = _name(mqi.MQOD.UnknownDestCount)
    ODIDC = _name(mqi.MQOD.InvalidDestCount)
    ODORO = _name(mqi.MQOD.ObjectRecOffset)
    ODRRO = _name(mqi.MQOD.ResponseRecOffset)
    ODORP = _name(mqi.MQOD.ObjectRecPtr)
    ODRRP = _name(mqi.MQOD.ResponseRecPtr)
    ODASI = _name(mqi.MQOD.AlternateSecurityId)
    ODRQN = _name(mqi.MQOD.ResolvedQName)
    ODRMN = _name(mqi.MQOD.ResolvedQMgrName)
    ODOS = _name(mqi.MQOD.ObjectString)
    ODSS = _name(mqi.MQOD.SelectionString)
    ODRO = _name(mqi.MQOD.ResObjectString)
    ODRT = _name(mqi.MQOD.ResolvedType)


class PMO(View):
    """Put-message options: MQPMO."""

    __slots__ = ()
    of = mqi.MQPMO
    PMSID = _name(mqi.MQPMO.StrucId)
    PMVER = _name(mqi.MQPMO.Version)
    PMOPT = _name(mqi.MQPMO.Options)
    PMTO = _name(mqi.MQPMO.Timeout)
    PMCT = _name(mqi.MQPMO.Context)
    PMKDC = _name(mqi.MQPMO.KnownDestCount)
    PMUDC = _name(mqi.MQPMO.UnknownDestCount)
    PMIDC = _name(mqi.MQPMO.InvalidDestCount)
    PMRQN = _name(mqi.MQPMO.ResolvedQName)
    PMRMN = _name(mqi.MQPMO.ResolvedQMgrName)
    PMREC = _name(mqi.MQPMO.RecsPresent)
    PMPRF = _name(mqi.MQPMO.PutMsgRecFields)
    PMPRO = _name(mqi.MQPMO.PutMsgRecOffset)
    PMRRO = _name(mqi.MQPMO.ResponseRecOffset)
    PMPRP = _name(mqi.MQPMO.PutMsgRecPtr)
    PMRRP = _name(mqi.MQPMO.ResponseRecPtr)
    PMOMH = _name(mqi.MQPMO.OriginalMsgHandle)
    PMNMH = _name(mqi.MQPMO.NewMsgHandle)
    PMACT = _name(mqi.MQPMO.Action)
    PMPL = _name(mqi.MQPMO.PubLevel)


class GMO(View):
    """Get-message options: MQGMO."""

    __slots__ = ()
    of = mqi.MQGMO
    GMSID = _name(mqi.MQGMO.StrucId)
    GMVER = _name(mqi.MQGMO.Version)
    GMOPT = _name(mqi.MQGMO.Options)
    GMWI = _name(mqi.MQGMO.WaitInterval)
    GMSG1 = _name(mqi.MQGMO.Signal1)
    GMSG2 = _name(mqi.MQGMO.Signal2)
    GMRQN = _name(mqi.MQGMO.ResolvedQName)
    GMMO = _name(mqi.MQGMO.MatchOptions)
    GMGST = _name(mqi.MQGMO.GroupStatus)
    GMSST = _name(mqi.MQGMO.SegmentStatus)
    GMSEG = _name(mqi.MQGMO.Segmentation)
    GMRE1 = _name(mqi.MQGMO.Reserved1)
    GMTOK = _name(mqi.MQGMO.MsgToken)
    GMRL = _name(mqi.MQGMO.ReturnedLength)
    GMRE2 = _name(mqi.MQGMO.Reserved2)
    GMMH = _name(mqi.MQGMO.MsgHandle)


class XQH(View):
    """Transmission-queue header: MQXQH. ``XQMD`` is a :class:`MSGDSC` over the header's memory."""

    __slots__ = ()
    of = mqi.MQXQH
    XQSID = _name(mqi.MQXQH.StrucId)
    XQVER = _name(mqi.MQXQH.Version)
    XQRQ = _name(mqi.MQXQH.RemoteQName)
    XQRQM = _name(mqi.MQXQH.RemoteQMgrName)
    XQMD = _Part()


class DLH(View):
    """Dead-letter header: MQDLH."""

    __slots__ = ()
    of = mqi.MQDLH
    DLSID = _name(mqi.MQDLH.StrucId)
    DLVER = _name(mqi.MQDLH.Version)
    DLREA = _name(mqi.MQDLH.Reason)
    DLDQ = _name(mqi.MQDLH.DestQName)
    DLDM = _name(mqi.MQDLH.DestQMgrName)
    DLENC = _name(mqi.MQDLH.Encoding)
    DLCSI = _name(mqi.MQDLH.CodedCharSetId)
    DLFMT = _name(mqi.MQDLH.Format)
    DLPAT = _name(mqi.MQDLH.PutApplType)
    DLPAN = _name(mqi.MQDLH.PutApplName)
    DLPD = _name(mqi.MQDLH.PutDate)
    DLPT = _name(mqi.MQDLH.PutTime)


_VIEWS: Mapping[type, type[View]] = {
    view.of: view for view in (MSGDSC, MDE, OBJDSC, PMO, GMO, XQH, DLH)
}
# end of generated: views


@overload
def view(structure: mqi.MQMD) -> MSGDSC: ...
@overload
def view(structure: mqi.MQMDE) -> MDE: ...
@overload
def view(structure: mqi.MQOD) -> OBJDSC: ...
@overload
def view(structure: mqi.MQPMO) -> PMO: ...
@overload
def view(structure: mqi.MQGMO) -> GMO: ...
@overload
def view(structure: mqi.MQDLH) -> DLH: ...
@overload
def view(structure: mqi.MQXQH) -> XQH: ...
def view(structure: Structure) -> View:
    """The view of a structure under its RPG names; assignments change the structure.

    Raises:
        TypeError: the class of the structure has no RPG names.
    """
    for cls in type(structure).__mro__:
        if cls in _VIEWS:
            return _VIEWS[cls](structure)
    raise TypeError(f"no RPG names for {structure!r}")


# ---- constants ----

# generated: constants
# completion codes
CCOK = mqi.MQCC_OK
CCWARN = mqi.MQCC_WARNING
CCFAIL = mqi.MQCC_FAILED

# handles
HCUNUH = mqi.MQHC_UNUSABLE_HCONN
HOUNUH = mqi.MQHO_UNUSABLE_HOBJ

# persistence
PENPER = mqi.MQPER_NOT_PERSISTENT
PEPER = mqi.MQPER_PERSISTENT
PEQDEF = mqi.MQPER_PERSISTENCE_AS_Q_DEF

# priority
PRQDEF = mqi.MQPRI_PRIORITY_AS_Q_DEF

# delivery sequence
MSPRIO = mqi.MQMDS_PRIORITY
MSFIFO = mqi.MQMDS_FIFO

# options of MQCLOSE
CONONE = mqi.MQCO_NONE
COIMM = mqi.MQCO_IMMEDIATE
CODEL = mqi.MQCO_DELETE
COPURG = mqi.MQCO_DELETE_PURGE
COKPSB = mqi.MQCO_KEEP_SUB
CORMSB = mqi.MQCO_REMOVE_SUB
COQSC = mqi.MQCO_QUIESCE

# how a queue was defined
QDPRE = mqi.MQQDT_PREDEFINED
QDPERM = mqi.MQQDT_PERMANENT_DYNAMIC
QDTEMP = mqi.MQQDT_TEMPORARY_DYNAMIC

# types of queue
QTLOC = mqi.MQQT_LOCAL
QTMOD = mqi.MQQT_MODEL
QTALS = mqi.MQQT_ALIAS
QTREM = mqi.MQQT_REMOTE
QTCLUS = mqi.MQQT_CLUSTER

# types of object
OTQ = mqi.MQOT_Q
OTNLST = mqi.MQOT_NAMELIST
OTPRO = mqi.MQOT_PROCESS
OTQM = mqi.MQOT_Q_MGR
OTTOP = mqi.MQOT_TOPIC

# options of MQOPEN
OOINPQ = mqi.MQOO_INPUT_AS_Q_DEF
OOINPS = mqi.MQOO_INPUT_SHARED
OOINPX = mqi.MQOO_INPUT_EXCLUSIVE
OOBRW = mqi.MQOO_BROWSE
OOOUT = mqi.MQOO_OUTPUT
OOINQ = mqi.MQOO_INQUIRE
OOSET = mqi.MQOO_SET
OOSAVA = mqi.MQOO_SAVE_ALL_CONTEXT
OOPASI = mqi.MQOO_PASS_IDENTITY_CONTEXT
OOPASA = mqi.MQOO_PASS_ALL_CONTEXT
OOSETI = mqi.MQOO_SET_IDENTITY_CONTEXT
OOSETA = mqi.MQOO_SET_ALL_CONTEXT
OOALTU = mqi.MQOO_ALTERNATE_USER_AUTHORITY
OOFIQ = mqi.MQOO_FAIL_IF_QUIESCING
OOBNDO = mqi.MQOO_BIND_ON_OPEN
OOBNDN = mqi.MQOO_BIND_NOT_FIXED
OOBNDQ = mqi.MQOO_BIND_AS_Q_DEF

# default binding
BNDOPN = mqi.MQBND_BIND_ON_OPEN
BNDNOT = mqi.MQBND_BIND_NOT_FIXED

# put-message options
PMNONE = mqi.MQPMO_NONE
PMSYP = mqi.MQPMO_SYNCPOINT
PMNSYP = mqi.MQPMO_NO_SYNCPOINT
PMDEFC = mqi.MQPMO_DEFAULT_CONTEXT
PMNMID = mqi.MQPMO_NEW_MSG_ID
PMNCID = mqi.MQPMO_NEW_CORREL_ID
PMPASI = mqi.MQPMO_PASS_IDENTITY_CONTEXT
PMPASA = mqi.MQPMO_PASS_ALL_CONTEXT
PMSETI = mqi.MQPMO_SET_IDENTITY_CONTEXT
PMSETA = mqi.MQPMO_SET_ALL_CONTEXT
PMALTU = mqi.MQPMO_ALTERNATE_USER_AUTHORITY
PMFIQ = mqi.MQPMO_FAIL_IF_QUIESCING
PMNOC = mqi.MQPMO_NO_CONTEXT
PMLOGO = mqi.MQPMO_LOGICAL_ORDER

# fields that the put-message records have
PFNONE = mqi.MQPMRF_NONE
PFMID = mqi.MQPMRF_MSG_ID
PFCID = mqi.MQPMRF_CORREL_ID
PFGID = mqi.MQPMRF_GROUP_ID
PFFB = mqi.MQPMRF_FEEDBACK
PFACC = mqi.MQPMRF_ACCOUNTING_TOKEN

# get-message options
GMNONE = mqi.MQGMO_NONE
GMNWT = mqi.MQGMO_NO_WAIT
GMWT = mqi.MQGMO_WAIT
GMSYP = mqi.MQGMO_SYNCPOINT
GMNSYP = mqi.MQGMO_NO_SYNCPOINT
GMBRWF = mqi.MQGMO_BROWSE_FIRST
GMBRWN = mqi.MQGMO_BROWSE_NEXT
GMATM = mqi.MQGMO_ACCEPT_TRUNCATED_MSG
GMMUC = mqi.MQGMO_MSG_UNDER_CURSOR
GMLK = mqi.MQGMO_LOCK
GMUNLK = mqi.MQGMO_UNLOCK
GMBRWC = mqi.MQGMO_BROWSE_MSG_UNDER_CURSOR
GMPSYP = mqi.MQGMO_SYNCPOINT_IF_PERSISTENT
GMFIQ = mqi.MQGMO_FAIL_IF_QUIESCING
GMPRIH = mqi.MQGMO_PROPERTIES_IN_HANDLE
GMCONV = mqi.MQGMO_CONVERT
GMLOGO = mqi.MQGMO_LOGICAL_ORDER
GMCMPM = mqi.MQGMO_COMPLETE_MSG
GMAMSA = mqi.MQGMO_ALL_MSGS_AVAILABLE
GMASGA = mqi.MQGMO_ALL_SEGMENTS_AVAILABLE

# match options
MONONE = mqi.MQMO_NONE
MOMSGI = mqi.MQMO_MATCH_MSG_ID
MOCORI = mqi.MQMO_MATCH_CORREL_ID
MOGRPI = mqi.MQMO_MATCH_GROUP_ID
MOSEQN = mqi.MQMO_MATCH_MSG_SEQ_NUMBER
MOOFFS = mqi.MQMO_MATCH_OFFSET

# group and segment status of a get
GSNIG = mqi.MQGS_NOT_IN_GROUP
GSMIG = mqi.MQGS_MSG_IN_GROUP
GSLMIG = mqi.MQGS_LAST_MSG_IN_GROUP
SSNSEG = mqi.MQSS_NOT_A_SEGMENT
SSSEG = mqi.MQSS_SEGMENT
SSLSEG = mqi.MQSS_LAST_SEGMENT
SEGIHB = mqi.MQSEG_INHIBITED
SEGALW = mqi.MQSEG_ALLOWED

# values that mean none or no limit
WIULIM = mqi.MQWI_UNLIMITED
EIULIM = mqi.MQEI_UNLIMITED
MINONE = mqi.MQMI_NONE
CINONE = mqi.MQCI_NONE
GINONE = mqi.MQGI_NONE
ACNONE = mqi.MQACT_NONE
MTKNON = mqi.MQMTOK_NONE
RLUNDF = mqi.MQRL_UNDEFINED
OLUNDF = mqi.MQOL_UNDEFINED

# report options
RONONE = mqi.MQRO_NONE
ROEXC = mqi.MQRO_EXCEPTION
ROEXCD = mqi.MQRO_EXCEPTION_WITH_DATA
ROEXCF = mqi.MQRO_EXCEPTION_WITH_FULL_DATA
ROEXP = mqi.MQRO_EXPIRATION
ROEXPD = mqi.MQRO_EXPIRATION_WITH_DATA
ROEXPF = mqi.MQRO_EXPIRATION_WITH_FULL_DATA
ROCOA = mqi.MQRO_COA
ROCOAD = mqi.MQRO_COA_WITH_DATA
ROCOAF = mqi.MQRO_COA_WITH_FULL_DATA
ROCOD = mqi.MQRO_COD
ROCODD = mqi.MQRO_COD_WITH_DATA
ROCODF = mqi.MQRO_COD_WITH_FULL_DATA
ROPAN = mqi.MQRO_PAN
RONAN = mqi.MQRO_NAN
RONMI = mqi.MQRO_NEW_MSG_ID
ROPMI = mqi.MQRO_PASS_MSG_ID
ROCMTC = mqi.MQRO_COPY_MSG_ID_TO_CORREL_ID
ROPCI = mqi.MQRO_PASS_CORREL_ID
RODLQ = mqi.MQRO_DEAD_LETTER_Q
RODISC = mqi.MQRO_DISCARD_MSG
ROPDAE = mqi.MQRO_PASS_DISCARD_AND_EXPIRY

# message types
MTRQST = mqi.MQMT_REQUEST
MTRPLY = mqi.MQMT_REPLY
MTRPRT = mqi.MQMT_REPORT
MTDGRM = mqi.MQMT_DATAGRAM

# feedback
FBNONE = mqi.MQFB_NONE
FBQUIT = mqi.MQFB_QUIT
FBEXP = mqi.MQFB_EXPIRATION
FBCOA = mqi.MQFB_COA
FBCOD = mqi.MQFB_COD
FBPAN = mqi.MQFB_PAN
FBNAN = mqi.MQFB_NAN

# encoding and character set
ENNAT = mqi.MQENC_NATIVE
CSQM = mqi.MQCCSI_Q_MGR
CSEMBD = mqi.MQCCSI_EMBEDDED
CSINHT = mqi.MQCCSI_INHERIT

# formats
FMNONE = mqi.MQFMT_NONE
FMSTR = mqi.MQFMT_STRING
FMDLH = mqi.MQFMT_DEAD_LETTER_HEADER
FMXQH = mqi.MQFMT_XMIT_Q_HEADER
FMMDE = mqi.MQFMT_MD_EXTENSION
FMDH = mqi.MQFMT_DIST_HEADER
FMTM = mqi.MQFMT_TRIGGER
FMADMN = mqi.MQFMT_ADMIN
FMEVNT = mqi.MQFMT_EVENT
FMPCF = mqi.MQFMT_PCF

# types of putting application
ATNCON = mqi.MQAT_NO_CONTEXT
ATUNIX = mqi.MQAT_UNIX
ATQM = mqi.MQAT_QMGR
ATUNK = mqi.MQAT_UNKNOWN

# flags of group and segment
MFNONE = mqi.MQMF_NONE
MFSEGI = mqi.MQMF_SEGMENTATION_INHIBITED
MFSEGA = mqi.MQMF_SEGMENTATION_ALLOWED
MFSEG = mqi.MQMF_SEGMENT
MFLSEG = mqi.MQMF_LAST_SEGMENT
MFMIG = mqi.MQMF_MSG_IN_GROUP
MFLMIG = mqi.MQMF_LAST_MSG_IN_GROUP

# values of attributes
QAPUTA = mqi.MQQA_PUT_ALLOWED
QAPUTI = mqi.MQQA_PUT_INHIBITED
QAGETA = mqi.MQQA_GET_ALLOWED
QAGETI = mqi.MQQA_GET_INHIBITED
USNORM = mqi.MQUS_NORMAL
USTRAN = mqi.MQUS_TRANSMISSION
TCOFF = mqi.MQTC_OFF
TCON = mqi.MQTC_ON
TTNONE = mqi.MQTT_NONE
TTFRST = mqi.MQTT_FIRST
TTEVRY = mqi.MQTT_EVERY
TTDPTH = mqi.MQTT_DEPTH
NPNORM = mqi.MQNPMS_NORMAL
NPFAST = mqi.MQNPMS_FAST

# selectors
IADINP = mqi.MQIA_DEF_INPUT_OPEN_OPTION
IADPER = mqi.MQIA_DEF_PERSISTENCE
IADPRI = mqi.MQIA_DEF_PRIORITY
IAIPUT = mqi.MQIA_INHIBIT_PUT
IAIGET = mqi.MQIA_INHIBIT_GET
IACDEP = mqi.MQIA_CURRENT_Q_DEPTH
IAOIC = mqi.MQIA_OPEN_INPUT_COUNT
IAMPRI = mqi.MQIA_MAX_PRIORITY
IAMDS = mqi.MQIA_MSG_DELIVERY_SEQUENCE
IAQTYP = mqi.MQIA_Q_TYPE
IABTHR = mqi.MQIA_BACKOUT_THRESHOLD
IATRGI = mqi.MQIA_TRIGGER_INTERVAL
IAMUNC = mqi.MQIA_MAX_UNCOMMITTED_MSGS
IADBND = mqi.MQIA_DEF_BIND
CABASQ = mqi.MQCA_BASE_Q_NAME
CAQD = mqi.MQCA_Q_DESC
CAQN = mqi.MQCA_Q_NAME
CABRQN = mqi.MQCA_BACKOUT_REQ_Q_NAME
CAXQN = mqi.MQCA_XMIT_Q_NAME
CAALTD = mqi.MQCA_ALTERATION_DATE
CAALTT = mqi.MQCA_ALTERATION_TIME
CACFSN = mqi.MQCA_CF_STRUC_NAME

# lengths
LNQN = mqi.MQ_Q_NAME_LENGTH
LNQMN = mqi.MQ_Q_MGR_NAME_LENGTH
LNDATE = mqi.MQ_DATE_LENGTH
LNTIME = mqi.MQ_TIME_LENGTH

# eye-catchers and versions
MDSIDV = mqi.MQMD_STRUC_ID
MDVER1 = mqi.MQMD_VERSION_1
MDVER2 = mqi.MQMD_VERSION_2
MESIDV = mqi.MQMDE_STRUC_ID
MEVER2 = mqi.MQMDE_VERSION_2
ODSIDV = mqi.MQOD_STRUC_ID
ODVER1 = mqi.MQOD_VERSION_1
ODVER2 = mqi.MQOD_VERSION_2
ODVER3 = mqi.MQOD_VERSION_3
ODVER4 = mqi.MQOD_VERSION_4
PMSIDV = mqi.MQPMO_STRUC_ID
PMVER1 = mqi.MQPMO_VERSION_1
PMVER2 = mqi.MQPMO_VERSION_2
PMVER3 = mqi.MQPMO_VERSION_3
GMSIDV = mqi.MQGMO_STRUC_ID
GMVER1 = mqi.MQGMO_VERSION_1
GMVER2 = mqi.MQGMO_VERSION_2
GMVER3 = mqi.MQGMO_VERSION_3
GMVER4 = mqi.MQGMO_VERSION_4
DLSIDV = mqi.MQDLH_STRUC_ID
DLVER1 = mqi.MQDLH_VERSION_1
XQSIDV = mqi.MQXQH_STRUC_ID
XQVER1 = mqi.MQXQH_VERSION_1
BOSIDV = mqi.MQBO_STRUC_ID
BOVER1 = mqi.MQBO_VERSION_1
# end of generated: constants


# reason codes: RCnnnn
RCNONE = mqi.MQRC_NONE
globals().update({f"RC{code}": code for code in mqi.REASONS if code})

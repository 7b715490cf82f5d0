"""Attributes of objects other than queues: processes, namelists, topics, channels, structures, the
queue manager.
"""

from __future__ import annotations

from ..constants import MAX_MESSAGE_LENGTH, MAX_PRIORITY, NAME_LENGTH, ReasonCode
from .attribute import EVENT, YES_NO, Attribute

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .attribute import Stored

_MOST = 999999999
_A = Attribute


def _name(keyword: str, selector: int, help: str, default: Stored = "", **more: Any) -> Attribute:
    """An attribute that is the name of an object."""
    return Attribute(keyword, selector, help, default, length=NAME_LENGTH, name=True, **more)


def _altered() -> list[Attribute]:
    """The time of the last change of the definition."""
    return [
        _A("ALTDATE", 2027, "Date of the last change", "", length=12, display_only=True),
        _A("ALTTIME", 2028, "Time of the last change", "", length=8, display_only=True),
    ]


# ---- processes, namelists ----

_APPLICATIONS: Mapping[str, int] = {
    "CICS": 1, "MVS": 2, "IMS": 3, "OS2": 4, "DOS": 5, "UNIX": 6, "OS400": 8, "WINDOWS": 9,
    "WINDOWSNT": 11, "VMS": 12, "NSK": 13,
}  # fmt: skip
PROCESS = [
    _A("DESCR", 2011, "Text about the process", "", length=64),
    _A("APPLTYPE", 1, "Type of application", 6, high=_MOST, words=_APPLICATIONS, default_zos=2),
    _A("APPLICID", 2001, "What to start", "", length=256),
    _A("ENVRDATA", 2007, "Environment for the starter", "", length=128),
    _A("USERDATA", 2021, "Data for the application", "", length=128),
    *_altered(),
]
NAMELIST = [
    _A("DESCR", 2009, "Text about the namelist", "", length=64),
    _A("NAMES", 2020, "The names", "", length=NAME_LENGTH, name=True, many=256),
    _A("NAMCOUNT", 19, "How many names there are", computed="count", display_only=True),
    _A("NLTYPE", 72, "What the names are", platform="zos",
       words={"NONE": 0, "QUEUE": 1, "CLUSTER": 2, "AUTHINFO": 4}),
    *_altered(),
]  # fmt: skip

# ---- topics ----

_PARENT = "; ASPARENT: as the topic above"
_INHIBITED: Mapping[str, int] = {"ASPARENT": 0, "DISABLED": 1, "ENABLED": 2}
_DELIVERY: Mapping[str, int] = {"ASPARENT": 0, "ALL": 1, "ALLDUR": 2, "ALLAVAIL": 3}
_SCOPE: Mapping[str, int] = {"ALL": 0, "ASPARENT": 1, "QMGR": 4}
TOPIC = [
    _A("DESCR", 2093, "Text about the topic", "", length=64),
    _A("TOPICSTR", 2094, "The topic string", "", length=10240, fixed=True),
    _A("DEFPSIST", 185, "Persistence of publications put as topic definition" + _PARENT, -1,
       words={"ASPARENT": -1, "NO": 0, "YES": 1}, reason=ReasonCode.PERSISTENCE_ERROR),
    _A("DEFPRTY", 6, "Priority of publications put as topic definition" + _PARENT, -1,
       high=MAX_PRIORITY, words={"ASPARENT": -1}, reason=ReasonCode.PRIORITY_ERROR),
    _A("DEFPRESP", 184, "Put response" + _PARENT, words={"ASPARENT": 0, "SYNC": 1, "ASYNC": 2}),
    _A("PUB", 181, "Whether messages can be published" + _PARENT, words=_INHIBITED),
    _A("SUB", 182, "Whether applications can subscribe" + _PARENT, words=_INHIBITED),
    _A("DURSUB", 175, "Whether durable subscriptions are allowed" + _PARENT,
       words={"ASPARENT": 0, "YES": 1, "NO": 2}),
    _A("PMSGDLV", 195, "Which subscribers must get a persistent publication" + _PARENT,
       words=_DELIVERY),
    _A("NPMSGDLV", 196, "Which subscribers must get a non-persistent publication" + _PARENT,
       words=_DELIVERY),
    _A("PUBSCOPE", 219, "How far publications go" + _PARENT, 1, words=_SCOPE),
    _A("SUBSCOPE", 218, "How far subscriptions go" + _PARENT, 1, words=_SCOPE),
    _A("WILDCARD", 216, "Whether wildcard subscriptions above reach below", 2,
       words={"BLOCK": 1, "PASSTHRU": 2}),
    _A("PROXYSUB", 199, "When subscriptions are sent to other queue managers", 2,
       words={"FORCE": 1, "FIRSTUSE": 2}),
    _A("USEDLQ", 234, "Whether undeliverable publications are dead letters" + _PARENT,
       words={"ASPARENT": 0, "NO": 1, "YES": 2}),
    _A("CAPEXPRY", 276, "Most tenths of a second before a publication expires" + _PARENT, -2, low=1,
       high=_MOST, words={"ASPARENT": -2, "NOLIMIT": -1}),
    _name("MDURMDL", 2096, "Model of queues for durable subscriptions"),
    _name("MNDURMDL", 2097, "Model of queues for non-durable subscriptions"),
    _name("CLUSTER", 2029, "Cluster that knows the topic"),
    *_altered(),
]  # fmt: skip

# ---- channels ----

CHANNEL_TYPES: Mapping[str, int] = {
    "SDR": 1, "SVR": 2, "RCVR": 3, "RQSTR": 4, "SVRCONN": 7, "CLUSRCVR": 8, "CLUSSDR": 9,
}  # fmt: skip
_SENDING = ("SDR", "SVR", "CLUSSDR", "CLUSRCVR")
_CLUSTER = ("CLUSSDR", "CLUSRCVR")
_CALLING = ("SDR", "SVR", "RQSTR", "CLUSSDR", "CLUSRCVR")
_RECEIVING = ("RCVR", "RQSTR", "CLUSRCVR")
_MESSAGE = ("SDR", "SVR", "RCVR", "RQSTR", "CLUSSDR", "CLUSRCVR")


def _channel(keyword: str, selector: int, help: str, default: Stored = 0, **more: Any) -> Attribute:
    """An attribute of channels: MQINQ does not know it."""
    return Attribute(keyword, selector, help, default, inquirable=False, **more)


CHANNEL = [
    _channel("CHLTYPE", 1511, "Type of channel", 1, words=CHANNEL_TYPES, fixed=True, always=True),
    _channel("DESCR", 3502, "Text about the channel", "", length=64),
    _channel("TRPTYPE", 1501, "Transport", 2, words={"TCP": 2}),
    _channel("CONNAME", 3506, "Where the partner is: host(port), more after commas", "", length=264,
             kinds=_CALLING),
    _channel("LOCLADDR", 3520, "Local address", "", length=48, kinds=_CALLING),
    _channel("XMITQ", 3505, "Transmission queue that the channel empties", "", length=NAME_LENGTH,
             name=True, kinds=("SDR", "SVR")),
    _channel("CLUSTER", 2029, "Cluster of the channel", "", length=NAME_LENGTH, name=True,
             kinds=_CLUSTER),
    _channel("CLUSNL", 2030, "Namelist of the channel's clusters", "", length=NAME_LENGTH,
             name=True, kinds=_CLUSTER),
    _channel("BATCHSZ", 1502, "Most messages in a batch", 50, low=1, high=9999, kinds=_MESSAGE),
    _channel("BATCHINT", 1564, "Milliseconds that a batch is kept open", high=_MOST,
             kinds=_SENDING),
    _channel("BATCHLIM", 1624, "Most kilobytes in a batch; 0: no limit", 5000, high=999999,
             kinds=_SENDING),
    _channel("BATCHHB", 1567, "Milliseconds before a batch's partner is asked for life",
             high=999999, kinds=_SENDING),
    _channel("DISCINT", 1503, "Seconds without messages before the channel ends; 0: never", 6000,
             high=999999, kinds=(*_SENDING, "SVRCONN"), kind_defaults={"SVRCONN": 0}),
    _channel("HBINT", 1563, "Seconds between heartbeats", 300, high=999999),
    _channel("KAINT", 1566, "Seconds between keep-alives of the transport", -1, high=99999,
             words={"AUTO": -1}),
    _channel("SHORTRTY", 1505, "Short retries", 10, high=_MOST, kinds=_SENDING),
    _channel("SHORTTMR", 1504, "Seconds between short retries", 60, high=_MOST, kinds=_SENDING),
    _channel("LONGRTY", 1507, "Long retries", _MOST, high=_MOST, kinds=_SENDING),
    _channel("LONGTMR", 1506, "Seconds between long retries", 1200, high=_MOST, kinds=_SENDING),
    _channel("SEQWRAP", 1509, "Sequence number after which 1 follows", _MOST, low=100, high=_MOST,
             kinds=_MESSAGE),
    _channel("NPMSPEED", 1562, "Whether non-persistent messages go outside the batch", 2,
             words={"NORMAL": 1, "FAST": 2}, kinds=_MESSAGE),
    _channel("MRRTY", 1544, "Retries of a put that failed", 10, high=_MOST, kinds=_RECEIVING),
    _channel("MRTMR", 1545, "Milliseconds between these retries", 1000, high=_MOST,
             kinds=_RECEIVING),
    _channel("MAXMSGL", 1510, "Longest message, in bytes", 4194304, high=MAX_MESSAGE_LENGTH),
    _channel("CLWLRANK", 1577, "Rank in workload balancing", high=9, kinds=_CLUSTER),
    _channel("CLWLPRTY", 1578, "Priority in workload balancing", high=9, kinds=_CLUSTER),
    _channel("CLWLWGHT", 1579, "Weight in workload balancing", 50, low=1, high=99, kinds=_CLUSTER),
    _channel("NETPRTY", 1565, "Priority of the network connection", high=9, kinds=("CLUSRCVR",)),
    _channel("PUTAUT", 1508, "Whose authority puts need: the channel's or the context's", 1,
             words={"DEF": 1, "CTX": 2}, kinds=_RECEIVING),
    _channel("CONVERT", 1515, "Whether the sender converts the data", words=YES_NO, kinds=_SENDING),
    _channel("MCATYPE", 1517, "How the channel's program runs", 1,
             words={"PROCESS": 1, "THREAD": 2}, kinds=_CALLING,
             kind_defaults={"CLUSSDR": 2, "CLUSRCVR": 2}),
    _channel("MCAUSER", 3527, "User of the channel's program", "", length=64),
    _channel("USEDLQ", 234, "Whether undeliverable messages are dead letters", 2,
             words={"NO": 1, "YES": 2}, kinds=_MESSAGE),
    _channel("PROPCTL", 190, "How message properties are sent",
             words={"COMPAT": 0, "NONE": 1, "ALL": 2}, kinds=_SENDING),
    _channel("MAXINST", 1618, "Most instances", _MOST, high=_MOST, kinds=("SVRCONN",)),
    _channel("MAXINSTC", 1619, "Most instances of one client", _MOST, high=_MOST,
             kinds=("SVRCONN",)),
    _channel("SHARECNV", 1615, "Most conversations of one instance", 10, high=_MOST,
             kinds=("SVRCONN",)),
    *_altered(),
]  # fmt: skip

# ---- structures of the coupling facility ----

CFSTRUCT = [
    _A("DESCR", 2052, "Text about the structure", "", length=64, inquirable=False),
    _A("CFLEVEL", 70, "Level: 1 and 2 without persistent messages", 3, low=1, high=5, always=True,
       inquirable=False),
    _A("RECOVER", 71, "Whether persistent messages are allowed and recovered", words=YES_NO,
       always=True, inquirable=False),
    *_altered(),
]  # fmt: skip

# ---- the queue manager ----


def _event(keyword: str, selector: int, help: str, default: int = 0) -> Attribute:
    return Attribute(keyword, selector, "Events of " + help, default, words=EVENT)


QMGR = [
    _A("QMNAME", 2015, "Name of the queue manager", "", length=NAME_LENGTH, computed="name",
       display_only=True),
    _A("QMID", 2032, "Identifier that no other queue manager has", "", length=NAME_LENGTH,
       display_only=True),
    _A("DESCR", 2014, "Text about the queue manager", "", length=64),
    _A("MAXPRTY", 14, "Highest priority", MAX_PRIORITY, high=MAX_PRIORITY, display_only=True),
    _A("MAXHANDS", 11, "Most handles of a connection", 256, high=_MOST),
    _A("MAXMSGL", 13, "Longest message, in bytes", 4194304, low=32768, high=MAX_MESSAGE_LENGTH,
       always=True),
    _A("MAXUMSGS", 33, "Most messages in a unit of work", 10000, low=1, high=_MOST, always=True),
    _A("MAXPROPL", 192, "Most bytes of message properties", -1, high=MAX_MESSAGE_LENGTH,
       words={"NOLIMIT": -1}),
    _name("DEADQ", 2006, "Dead-letter queue"),
    _name("DEFXMITQ", 2025, "Transmission queue where nothing else fits", resolution=True,
          force="open"),
    _name("COMMANDQ", 2003, "Queue for commands", "SYSTEM.ADMIN.COMMAND.QUEUE", display_only=True),
    _A("TRIGINT", 25, "Milliseconds after which TRIGTYPE(FIRST) triggers again", _MOST, high=_MOST),
    _A("MARKINT", 68, "Milliseconds that a browse mark stays", 5000, high=_MOST,
       words={"NOLIMIT": -1}),
    _A("EXPRYINT", 39, "Seconds between searches for expired messages", low=1, high=99999999,
       words={"OFF": 0}, platform="zos"),
    _A("SYNCPT", 30, "Whether there are units of work", 1, high=1, display_only=True),
    _A("DISTL", 34, "Whether distribution lists are supported", 1, words=YES_NO, display_only=True),
    _A("CCSID", 2, "Coded character set", 1208, low=1, high=65535),
    _A("CMDLEVEL", 31, "Level of commands", 930, high=_MOST, display_only=True),
    _A("PLATFORM", 32, "Platform", 3, words={"MVS": 1, "UNIX": 3}, default_zos=1,
       display_only=True),
    _A("DEFCLXQ", 250, "Transmission queues of cluster channels",
       words={"SCTQ": 0, "CHANNEL": 1}),
    _A("CLWLUSEQ", 98, "Whether puts prefer a local instance of a cluster queue",
       words={"LOCAL": 0, "ANY": 1}),
    _A("CLWLMRUC", 97, "Most outbound cluster channels in use", _MOST, low=1, high=_MOST),
    _A("PSMODE", 187, "Publish/subscribe", 2, words={"DISABLED": 0, "COMPAT": 1, "ENABLED": 2}),
    _event("AUTHOREV", 47, "refused authority"),
    _event("INHIBTEV", 48, "inhibited puts and gets"),
    _event("LOCALEV", 49, "unknown local names"),
    _event("REMOTEEV", 50, "unknown remote names"),
    _event("STRSTPEV", 52, "start and stop", 1),
    _event("PERFMEV", 53, "depth and service"),
    _A("CRDATE", 2004, "Date of creation", "", length=12, display_only=True),
    _A("CRTIME", 2005, "Time of creation", "", length=8, display_only=True),
    *_altered(),
]  # fmt: skip

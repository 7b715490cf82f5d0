"""Attributes of objects other than queues: processes, namelists, topics, channels, structures, the
queue manager.
"""

from __future__ import annotations

from .._mqi_constants import selectors as mq
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
        _A(
            "ALTDATE",
            mq.MQCA_ALTERATION_DATE,
            "Date of the last change",
            "",
            length=12,
            display_only=True,
        ),
        _A(
            "ALTTIME",
            mq.MQCA_ALTERATION_TIME,
            "Time of the last change",
            "",
            length=8,
            display_only=True,
        ),
    ]


# ---- processes, namelists ----

_APPLICATIONS: Mapping[str, int] = {
    "CICS": 1, "MVS": 2, "IMS": 3, "OS2": 4, "DOS": 5, "UNIX": 6, "OS400": 8, "WINDOWS": 9,
    "WINDOWSNT": 11, "VMS": 12, "NSK": 13,
}  # fmt: skip
PROCESS = [
    _A("DESCR", mq.MQCA_PROCESS_DESC, "Text about the process", "", length=64),
    _A(
        "APPLTYPE",
        mq.MQIA_APPL_TYPE,
        "Type of application",
        6,
        high=_MOST,
        words=_APPLICATIONS,
        default_zos=2,
    ),
    _A("APPLICID", mq.MQCA_APPL_ID, "What to start", "", length=256),
    _A("ENVRDATA", mq.MQCA_ENV_DATA, "Environment for the starter", "", length=128),
    _A("USERDATA", mq.MQCA_USER_DATA, "Data for the application", "", length=128),
    *_altered(),
]
NAMELIST = [
    _A("DESCR", mq.MQCA_NAMELIST_DESC, "Text about the namelist", "", length=64),
    _A("NAMES", mq.MQCA_NAMES, "The names", "", length=NAME_LENGTH, name=True, many=256),
    _A("NAMCOUNT", mq.MQIA_NAME_COUNT, "How many names there are", computed="count",
       display_only=True),
    _A("NLTYPE", mq.MQIA_NAMELIST_TYPE, "What the names are", platform="zos",
       words={"NONE": 0, "QUEUE": 1, "CLUSTER": 2, "AUTHINFO": 4}),
    *_altered(),
]  # fmt: skip

# ---- topics ----

_PARENT = "; ASPARENT: as the topic above"
_INHIBITED: Mapping[str, int] = {"ASPARENT": 0, "DISABLED": 1, "ENABLED": 2}
_DELIVERY: Mapping[str, int] = {"ASPARENT": 0, "ALL": 1, "ALLDUR": 2, "ALLAVAIL": 3}
_SCOPE: Mapping[str, int] = {"ALL": 0, "ASPARENT": 1, "QMGR": 4}
TOPIC = [
    _A("DESCR", mq.MQCA_TOPIC_DESC, "Text about the topic", "", length=64),
    _A("TOPICSTR", mq.MQCA_TOPIC_STRING, "The topic string", "", length=10240, fixed=True),
    _A("DEFPSIST", mq.MQIA_TOPIC_DEF_PERSISTENCE,
       "Persistence of publications put as topic definition" + _PARENT, -1,
       words={"ASPARENT": -1, "NO": 0, "YES": 1}, reason=ReasonCode.PERSISTENCE_ERROR),
    _A("DEFPRTY", mq.MQIA_DEF_PRIORITY,
       "Priority of publications put as topic definition" + _PARENT, -1, high=MAX_PRIORITY,
       words={"ASPARENT": -1}, reason=ReasonCode.PRIORITY_ERROR),
    _A("DEFPRESP", mq.MQIA_DEF_PUT_RESPONSE_TYPE, "Put response" + _PARENT,
       words={"ASPARENT": 0, "SYNC": 1, "ASYNC": 2}),
    _A("PUB", mq.MQIA_INHIBIT_PUB, "Whether messages can be published" + _PARENT, words=_INHIBITED),
    _A("SUB", mq.MQIA_INHIBIT_SUB, "Whether applications can subscribe" + _PARENT,
       words=_INHIBITED),
    _A("DURSUB", mq.MQIA_DURABLE_SUB, "Whether durable subscriptions are allowed" + _PARENT,
       words={"ASPARENT": 0, "YES": 1, "NO": 2}),
    _A("PMSGDLV", mq.MQIA_PM_DELIVERY,
       "Which subscribers must get a persistent publication" + _PARENT, words=_DELIVERY),
    _A("NPMSGDLV", mq.MQIA_NPM_DELIVERY,
       "Which subscribers must get a non-persistent publication" + _PARENT, words=_DELIVERY),
    _A("PUBSCOPE", mq.MQIA_PUB_SCOPE, "How far publications go" + _PARENT, 1, words=_SCOPE),
    _A("SUBSCOPE", mq.MQIA_SUB_SCOPE, "How far subscriptions go" + _PARENT, 1, words=_SCOPE),
    _A("WILDCARD", mq.MQIA_WILDCARD_OPERATION, "Whether wildcard subscriptions above reach below",
       2, words={"BLOCK": 1, "PASSTHRU": 2}),
    _A("PROXYSUB", mq.MQIA_PROXY_SUB, "When subscriptions are sent to other queue managers", 2,
       words={"FORCE": 1, "FIRSTUSE": 2}),
    _A("USEDLQ", mq.MQIA_USE_DEAD_LETTER_Q,
       "Whether undeliverable publications are dead letters" + _PARENT,
       words={"ASPARENT": 0, "NO": 1, "YES": 2}),
    _A("CAPEXPRY", mq.MQIA_CAP_EXPIRY,
       "Most tenths of a second before a publication expires" + _PARENT, -2, low=1, high=_MOST,
       words={"ASPARENT": -2, "NOLIMIT": -1}),
    _name("MDURMDL", mq.MQCA_MODEL_DURABLE_Q, "Model of queues for durable subscriptions"),
    _name("MNDURMDL", mq.MQCA_MODEL_NON_DURABLE_Q, "Model of queues for non-durable subscriptions"),
    _name("CLUSTER", mq.MQCA_CLUSTER_NAME, "Cluster that knows the topic"),
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
    _channel("CHLTYPE", mq.MQIACH_CHANNEL_TYPE, "Type of channel", 1, words=CHANNEL_TYPES,
             fixed=True, always=True),
    _channel("DESCR", mq.MQCACH_DESC, "Text about the channel", "", length=64),
    _channel("TRPTYPE", mq.MQIACH_XMIT_PROTOCOL_TYPE, "Transport", 2, words={"TCP": 2}),
    _channel("CONNAME", mq.MQCACH_CONNECTION_NAME,
             "Where the partner is: host(port), more after commas", "", length=264, kinds=_CALLING),
    _channel("LOCLADDR", mq.MQCACH_LOCAL_ADDRESS, "Local address", "", length=48, kinds=_CALLING),
    _channel("XMITQ", mq.MQCACH_XMIT_Q_NAME, "Transmission queue that the channel empties", "",
             length=NAME_LENGTH, name=True, kinds=("SDR", "SVR")),
    _channel("CLUSTER", mq.MQCA_CLUSTER_NAME, "Cluster of the channel", "", length=NAME_LENGTH,
             name=True, kinds=_CLUSTER),
    _channel("CLUSNL", mq.MQCA_CLUSTER_NAMELIST, "Namelist of the channel's clusters", "",
             length=NAME_LENGTH, name=True, kinds=_CLUSTER),
    _channel("BATCHSZ", mq.MQIACH_BATCH_SIZE, "Most messages in a batch", 50, low=1, high=9999,
             kinds=_MESSAGE),
    _channel("BATCHINT", mq.MQIACH_BATCH_INTERVAL, "Milliseconds that a batch is kept open",
             high=_MOST, kinds=_SENDING),
    _channel("BATCHLIM", mq.MQIACH_BATCH_DATA_LIMIT, "Most kilobytes in a batch; 0: no limit", 5000,
             high=999999, kinds=_SENDING),
    _channel("BATCHHB", mq.MQIACH_BATCH_HB,
             "Milliseconds before a batch's partner is asked for life", high=999999,
             kinds=_SENDING),
    _channel("DISCINT", mq.MQIACH_DISC_INTERVAL,
             "Seconds without messages before the channel ends; 0: never", 6000, high=999999,
             kinds=(*_SENDING, "SVRCONN"), kind_defaults={"SVRCONN": 0}),
    _channel("HBINT", mq.MQIACH_HB_INTERVAL, "Seconds between heartbeats", 300, high=999999),
    _channel("KAINT", mq.MQIACH_KEEP_ALIVE_INTERVAL, "Seconds between keep-alives of the transport",
             -1, high=99999, words={"AUTO": -1}),
    _channel("SHORTRTY", mq.MQIACH_SHORT_RETRY, "Short retries", 10, high=_MOST, kinds=_SENDING),
    _channel("SHORTTMR", mq.MQIACH_SHORT_TIMER, "Seconds between short retries", 60, high=_MOST,
             kinds=_SENDING),
    _channel("LONGRTY", mq.MQIACH_LONG_RETRY, "Long retries", _MOST, high=_MOST, kinds=_SENDING),
    _channel("LONGTMR", mq.MQIACH_LONG_TIMER, "Seconds between long retries", 1200, high=_MOST,
             kinds=_SENDING),
    _channel("SEQWRAP", mq.MQIACH_SEQUENCE_NUMBER_WRAP, "Sequence number after which 1 follows",
             _MOST, low=100, high=_MOST, kinds=_MESSAGE),
    _channel("NPMSPEED", mq.MQIACH_NPM_SPEED,
             "Whether non-persistent messages go outside the batch", 2,
             words={"NORMAL": 1, "FAST": 2}, kinds=_MESSAGE),
    _channel("MRRTY", mq.MQIACH_MR_COUNT, "Retries of a put that failed", 10, high=_MOST,
             kinds=_RECEIVING),
    _channel("MRTMR", mq.MQIACH_MR_INTERVAL, "Milliseconds between these retries", 1000, high=_MOST,
             kinds=_RECEIVING),
    _channel("MAXMSGL", mq.MQIACH_MAX_MSG_LENGTH, "Longest message, in bytes", 4194304,
             high=MAX_MESSAGE_LENGTH),
    _channel("CLWLRANK", mq.MQIACH_CLWL_CHANNEL_RANK, "Rank in workload balancing", high=9,
             kinds=_CLUSTER),
    _channel("CLWLPRTY", mq.MQIACH_CLWL_CHANNEL_PRIORITY, "Priority in workload balancing", high=9,
             kinds=_CLUSTER),
    _channel("CLWLWGHT", mq.MQIACH_CLWL_CHANNEL_WEIGHT, "Weight in workload balancing", 50, low=1,
             high=99, kinds=_CLUSTER),
    _channel("NETPRTY", mq.MQIACH_NETWORK_PRIORITY, "Priority of the network connection", high=9,
             kinds=("CLUSRCVR",)),
    _channel("PUTAUT", mq.MQIACH_PUT_AUTHORITY,
             "Whose authority puts need: the channel's or the context's", 1,
             words={"DEF": 1, "CTX": 2}, kinds=_RECEIVING),
    _channel("CONVERT", mq.MQIACH_DATA_CONVERSION, "Whether the sender converts the data",
             words=YES_NO, kinds=_SENDING),
    _channel("MCATYPE", mq.MQIACH_MCA_TYPE, "How the channel's program runs", 1,
             words={"PROCESS": 1, "THREAD": 2}, kinds=_CALLING,
             kind_defaults={"CLUSSDR": 2, "CLUSRCVR": 2}),
    _channel("MCAUSER", mq.MQCACH_MCA_USER_ID, "User of the channel's program", "", length=64),
    _channel("USEDLQ", mq.MQIA_USE_DEAD_LETTER_Q, "Whether undeliverable messages are dead letters",
             2, words={"NO": 1, "YES": 2}, kinds=_MESSAGE),
    _channel("PROPCTL", mq.MQIA_PROPERTY_CONTROL, "How message properties are sent",
             words={"COMPAT": 0, "NONE": 1, "ALL": 2}, kinds=_SENDING),
    _channel("MAXINST", mq.MQIACH_MAX_INSTANCES, "Most instances", _MOST, high=_MOST,
             kinds=("SVRCONN",)),
    _channel("MAXINSTC", mq.MQIACH_MAX_INSTS_PER_CLIENT, "Most instances of one client", _MOST,
             high=_MOST, kinds=("SVRCONN",)),
    _channel("SHARECNV", mq.MQIACH_SHARING_CONVERSATIONS, "Most conversations of one instance", 10,
             high=_MOST, kinds=("SVRCONN",)),
    *_altered(),
]  # fmt: skip

# ---- structures of the coupling facility ----

CFSTRUCT = [
    _A("DESCR", mq.MQCA_CF_STRUC_DESC, "Text about the structure", "", length=64, inquirable=False),
    _A("CFLEVEL", mq.MQIA_CF_LEVEL, "Level: 1 and 2 without persistent messages", 3, low=1, high=5,
       always=True, inquirable=False),
    _A("RECOVER", mq.MQIA_CF_RECOVER, "Whether persistent messages are allowed and recovered",
       words=YES_NO, always=True, inquirable=False),
    *_altered(),
]  # fmt: skip

# ---- the queue manager ----


def _event(keyword: str, selector: int, help: str, default: int = 0) -> Attribute:
    return Attribute(keyword, selector, "Events of " + help, default, words=EVENT)


QMGR = [
    _A("QMNAME", mq.MQCA_Q_MGR_NAME, "Name of the queue manager", "", length=NAME_LENGTH,
       computed="name", display_only=True),
    _A("QMID", mq.MQCA_Q_MGR_IDENTIFIER, "Identifier that no other queue manager has", "",
       length=NAME_LENGTH, display_only=True),
    _A("DESCR", mq.MQCA_Q_MGR_DESC, "Text about the queue manager", "", length=64),
    _A("MAXPRTY", mq.MQIA_MAX_PRIORITY, "Highest priority", MAX_PRIORITY, high=MAX_PRIORITY,
       display_only=True),
    _A("MAXHANDS", mq.MQIA_MAX_HANDLES, "Most handles of a connection", 256, high=_MOST),
    _A("MAXMSGL", mq.MQIA_MAX_MSG_LENGTH, "Longest message, in bytes", 4194304, low=32768,
       high=MAX_MESSAGE_LENGTH, always=True),
    _A("MAXUMSGS", mq.MQIA_MAX_UNCOMMITTED_MSGS, "Most messages in a unit of work", 10000, low=1,
       high=_MOST, always=True),
    _A("MAXPROPL", mq.MQIA_MAX_PROPERTIES_LENGTH, "Most bytes of message properties", -1,
       high=MAX_MESSAGE_LENGTH, words={"NOLIMIT": -1}),
    _name("DEADQ", mq.MQCA_DEAD_LETTER_Q_NAME, "Dead-letter queue"),
    _name("DEFXMITQ", mq.MQCA_DEF_XMIT_Q_NAME, "Transmission queue where nothing else fits",
          resolution=True, force="open"),
    _name("COMMANDQ", mq.MQCA_COMMAND_INPUT_Q_NAME, "Queue for commands",
          "SYSTEM.ADMIN.COMMAND.QUEUE", display_only=True),
    _A("TRIGINT", mq.MQIA_TRIGGER_INTERVAL,
       "Milliseconds after which TRIGTYPE(FIRST) triggers again", _MOST, high=_MOST),
    _A("MARKINT", mq.MQIA_MSG_MARK_BROWSE_INTERVAL, "Milliseconds that a browse mark stays", 5000,
       high=_MOST, words={"NOLIMIT": -1}),
    _A("EXPRYINT", mq.MQIA_EXPIRY_INTERVAL, "Seconds between searches for expired messages", low=1,
       high=99999999, words={"OFF": 0}, platform="zos"),
    _A("SYNCPT", mq.MQIA_SYNCPOINT, "Whether there are units of work", 1, high=1,
       display_only=True),
    _A("DISTL", mq.MQIA_DIST_LISTS, "Whether distribution lists are supported", 1, words=YES_NO,
       display_only=True),
    _A("CCSID", mq.MQIA_CODED_CHAR_SET_ID, "Coded character set", 1208, low=1, high=65535),
    _A("CMDLEVEL", mq.MQIA_COMMAND_LEVEL, "Level of commands", 930, high=_MOST, display_only=True),
    _A("PLATFORM", mq.MQIA_PLATFORM, "Platform", 3, words={"MVS": 1, "UNIX": 3}, default_zos=1,
       display_only=True),
    _A("DEFCLXQ", mq.MQIA_DEF_CLUSTER_XMIT_Q_TYPE, "Transmission queues of cluster channels",
       words={"SCTQ": 0, "CHANNEL": 1}),
    _A("CLWLUSEQ", mq.MQIA_CLWL_USEQ, "Whether puts prefer a local instance of a cluster queue",
       words={"LOCAL": 0, "ANY": 1}),
    _A("CLWLMRUC", mq.MQIA_CLWL_MRU_CHANNELS, "Most outbound cluster channels in use", _MOST, low=1,
       high=_MOST),
    _A("PSMODE", mq.MQIA_PUBSUB_MODE, "Publish/subscribe", 2,
       words={"DISABLED": 0, "COMPAT": 1, "ENABLED": 2}),
    _event("AUTHOREV", mq.MQIA_AUTHORITY_EVENT, "refused authority"),
    _event("INHIBTEV", mq.MQIA_INHIBIT_EVENT, "inhibited puts and gets"),
    _event("LOCALEV", mq.MQIA_LOCAL_EVENT, "unknown local names"),
    _event("REMOTEEV", mq.MQIA_REMOTE_EVENT, "unknown remote names"),
    _event("STRSTPEV", mq.MQIA_START_STOP_EVENT, "start and stop", 1),
    _event("PERFMEV", mq.MQIA_PERFORMANCE_EVENT, "depth and service"),
    _A("CRDATE", mq.MQCA_CREATION_DATE, "Date of creation", "", length=12, display_only=True),
    _A("CRTIME", mq.MQCA_CREATION_TIME, "Time of creation", "", length=8, display_only=True),
    *_altered(),
]  # fmt: skip

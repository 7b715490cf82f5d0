"""Attributes of the queue manager.

Sources: "ALTER QMGR (alter queue manager settings)", "DISPLAY QMGR (display queue manager
settings)". Defaults are those of a new queue manager of MQ, but CHLAUTH and CONNAUTH, which ask for
what this release lacks.
"""

from __future__ import annotations

from .._mqi_constants import selectors as mq
from ..constants import MAX_MESSAGE_LENGTH, MAX_PRIORITY, NAME_LENGTH
from .attribute import EVENT, YES_NO, Attribute
from .common_rows import AS_MANAGER, CONTROL, LEVELS, MOST, NEVER, ON, altered, name_row

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .attribute import Stored

_A = Attribute
_OBJECTS_ON: Mapping[str, int] = {**NEVER, **ON}
_OBJECTS_LEVELS: Mapping[str, int] = {**NEVER, **LEVELS}
_AUTO_LEVELS: Mapping[str, int] = {"QMGR": AS_MANAGER, **NEVER, **LEVELS}
_RECORDING: Mapping[str, int] = {"DISABLED": 0, "QUEUE": 1, "MSG": 2}
_EXCEPTION: Mapping[str, int] = {**EVENT, "EXCEPTION": 2}
_UNDELIVERED: Mapping[str, int] = {"NORMAL": 0, "SAFE": 1, "DISCARD": 2, "KEEP": 3}
_SUITE_B = ("NONE", "128_BIT", "192_BIT")
_WEEK = 604800  # seconds
_EXIT = 999  # bytes of the name of an exit
_TLS, _CLUSTERS, _IMAGES = "TLS", "clusters", "media images"
_ACCOUNTING, _STATISTICS, _MONITORING = "accounting", "statistics messages", "online monitoring"
_TREE = "publish/subscribe"


def _event(
    keyword: str,
    selector: int,
    help: str,
    default: int = 0,
    words: Mapping[str, int] = EVENT,
    built: bool = False,
) -> Attribute:
    """Event messages of a kind."""
    return Attribute(keyword, selector, "Events of " + help, default, words=words,
                     unbuilt="" if built else "these event messages")  # fmt: skip


def _text(keyword: str, selector: int, help: str, length: int, **more: Any) -> Attribute:
    """A text, blank by default."""
    return Attribute(keyword, selector, help, "", length=length, **more)


def _zos(keyword: str, selector: int, help: str, default: Stored = 0, **more: Any) -> Attribute:
    """An attribute of platform z/OS, about its channel initiator or its queue-sharing group."""
    return Attribute(keyword, selector, help, default, platform="zos", inquirable=False, **more)


_IDENTITY = [
    _A("QMNAME", mq.MQCA_Q_MGR_NAME, "Name of the queue manager", "", length=NAME_LENGTH,
       computed="name", display_only=True),
    _A("QMID", mq.MQCA_Q_MGR_IDENTIFIER, "Identifier that no other queue manager has", "",
       length=NAME_LENGTH, display_only=True),
    _A("DESCR", mq.MQCA_Q_MGR_DESC, "Text about the queue manager", "", length=64),
    _A("CMDLEVEL", mq.MQIA_COMMAND_LEVEL, "Level of commands", 930, high=MOST, display_only=True),
    _A("VERSION", mq.MQCA_VERSION, "Version, release, modification and fix, two digits each",
       "09030000", length=8, display_only=True),
    _A("PLATFORM", mq.MQIA_PLATFORM, "Platform", 3, words={"MVS": 1, "UNIX": 3}, default_zos=1,
       display_only=True),
    _A("CRDATE", mq.MQCA_CREATION_DATE, "Date of creation", "", length=12, display_only=True),
    _A("CRTIME", mq.MQCA_CREATION_TIME, "Time of creation", "", length=8, display_only=True),
    *altered(),
]  # fmt: skip

_MESSAGES = [
    _A("MAXPRTY", mq.MQIA_MAX_PRIORITY, "Highest priority", MAX_PRIORITY, high=MAX_PRIORITY,
       display_only=True),
    _A("MAXHANDS", mq.MQIA_MAX_HANDLES, "Most handles of a connection", 256, high=MOST),
    _A("MAXMSGL", mq.MQIA_MAX_MSG_LENGTH, "Longest message, in bytes", 4194304, low=32768,
       high=MAX_MESSAGE_LENGTH, always=True),
    _A("MAXUMSGS", mq.MQIA_MAX_UNCOMMITTED_MSGS, "Most messages in a unit of work", 10000, low=1,
       high=MOST, always=True),
    _A("MAXPROPL", mq.MQIA_MAX_PROPERTIES_LENGTH, "Most bytes of message properties", -1,
       high=MAX_MESSAGE_LENGTH, words={"NOLIMIT": -1}, unbuilt="message properties"),
    name_row("DEADQ", mq.MQCA_DEAD_LETTER_Q_NAME, "Dead-letter queue"),
    name_row("DEFXMITQ", mq.MQCA_DEF_XMIT_Q_NAME, "Transmission queue where nothing else fits",
             resolution=True, force="open"),
    name_row("COMMANDQ", mq.MQCA_COMMAND_INPUT_Q_NAME, "Queue for commands",
             "SYSTEM.ADMIN.COMMAND.QUEUE", display_only=True),
    _A("TRIGINT", mq.MQIA_TRIGGER_INTERVAL,
       "Milliseconds after which TRIGTYPE(FIRST) triggers again", MOST, high=MOST),
    _A("MARKINT", mq.MQIA_MSG_MARK_BROWSE_INTERVAL, "Milliseconds that a browse mark stays", 5000,
       high=MOST, words={"NOLIMIT": -1}),
    _A("EXPRYINT", mq.MQIA_EXPIRY_INTERVAL, "Seconds between searches for expired messages", low=1,
       high=99999999, words={"OFF": 0}, platform="zos"),
    _A("SYNCPT", mq.MQIA_SYNCPOINT, "Whether there are units of work", 1, high=1,
       display_only=True),
    _A("DISTL", mq.MQIA_DIST_LISTS, "Whether distribution lists are supported", 1, words=YES_NO,
       display_only=True),
    _A("CCSID", mq.MQIA_CODED_CHAR_SET_ID, "Coded character set", 1208, low=1, high=65535),
    _text("CUSTOM", mq.MQCA_CUSTOM, "Attributes of later releases, as text", 128,
          unbuilt="custom attributes"),
]  # fmt: skip

_CLUSTER = [
    _A("DEFCLXQ", mq.MQIA_DEF_CLUSTER_XMIT_Q_TYPE, "Transmission queues of cluster channels",
       words={"SCTQ": 0, "CHANNEL": 1}),
    _A("CLWLUSEQ", mq.MQIA_CLWL_USEQ, "Whether puts prefer a local instance of a cluster queue",
       words={"LOCAL": 0, "ANY": 1}),
    _A("CLWLMRUC", mq.MQIA_CLWL_MRU_CHANNELS, "Most outbound cluster channels in use", MOST, low=1,
       high=MOST, unbuilt=_CLUSTERS),
    _text("CLWLEXIT", mq.MQCA_CLUSTER_WORKLOAD_EXIT, "Exit that chooses instances", _EXIT,
          unbuilt="exits"),
    _text("CLWLDATA", mq.MQCA_CLUSTER_WORKLOAD_DATA, "Data for that exit", 32),
    _A("CLWLLEN", mq.MQIA_CLUSTER_WORKLOAD_LENGTH, "Bytes of a message that the exit sees", 100,
       high=MOST),
    name_row("REPOS", mq.MQCA_REPOSITORY_NAME, "Cluster whose repository this is",
             unbuilt=_CLUSTERS),
    name_row("REPOSNL", mq.MQCA_REPOSITORY_NAMELIST, "Namelist of such clusters",
             unbuilt=_CLUSTERS),
    _A("MONACLS", mq.MQIA_MONITORING_AUTO_CLUSSDR,
       "Monitoring of cluster-sender channels that define themselves", AS_MANAGER,
       words=_AUTO_LEVELS, unbuilt=_MONITORING, inactive=(-1, 0)),
    _A("STATACLS", mq.MQIA_STATISTICS_AUTO_CLUSSDR,
       "Statistics of cluster-sender channels that define themselves", AS_MANAGER,
       words={"QMGR": AS_MANAGER, **LEVELS}, unbuilt=_STATISTICS, inactive=(0,)),
]  # fmt: skip

_PUBLISH = [
    _A("PSMODE", mq.MQIA_PUBSUB_MODE, "Publish/subscribe", 2,
       words={"DISABLED": 0, "COMPAT": 1, "ENABLED": 2}),
    _A("PSCLUS", mq.MQIA_PUBSUB_CLUSTER, "Whether clusters may have topics", 1, words=EVENT),
    _A("PSNPMSG", mq.MQIA_PUBSUB_NP_MSG, "Undelivered non-persistent publications", 2,
       words={word: _UNDELIVERED[word] for word in ("DISCARD", "KEEP")}),
    _A("PSNPRES", mq.MQIA_PUBSUB_NP_RESP, "Undelivered non-persistent replies", words=_UNDELIVERED),
    _A("PSRTYCNT", mq.MQIA_PUBSUB_MAXMSG_RETRY_COUNT, "Retries of a failed command message", 5,
       high=MOST),
    _A("PSSYNCPT", mq.MQIA_PUBSUB_SYNC_PT, "Whether command messages are in units of work", 1,
       words={"YES": 0, "IFPER": 1}),
    name_row("PARENT", mq.MQCA_PARENT, "Queue manager above in a hierarchy", unbuilt=_TREE),
    _A("TREELIFE", mq.MQIA_TREE_LIFE_TIME, "Seconds that an unused topic stays", 1800, high=604000),
]  # fmt: skip

_COLLECTED = [
    _A("ACCTMQI", mq.MQIA_ACCOUNTING_MQI, "Accounting of connections", words=ON,
       unbuilt=_ACCOUNTING),
    _A("ACCTQ", mq.MQIA_ACCOUNTING_Q, "Accounting of queues", words=_OBJECTS_ON,
       unbuilt=_ACCOUNTING, inactive=(-1,)),
    _A("ACCTINT", mq.MQIA_ACCOUNTING_INTERVAL, "Seconds between accounting records", 1800,
       high=_WEEK),
    _A("ACCTCONO", mq.MQIA_ACCOUNTING_CONN_OVERRIDE, "Whether applications decide about it",
       words=EVENT, unbuilt=_ACCOUNTING),
    _A("STATMQI", mq.MQIA_STATISTICS_MQI, "Statistics of the queue manager", words=ON,
       unbuilt=_STATISTICS),
    _A("STATQ", mq.MQIA_STATISTICS_Q, "Statistics of queues", words=_OBJECTS_ON,
       unbuilt=_STATISTICS, inactive=(-1,)),
    _A("STATCHL", mq.MQIA_STATISTICS_CHANNEL, "Statistics of channels", words=_OBJECTS_LEVELS,
       unbuilt=_STATISTICS, inactive=(-1,)),
    _A("STATINT", mq.MQIA_STATISTICS_INTERVAL, "Seconds between statistics messages", 1800,
       high=_WEEK),
    _A("MONQ", mq.MQIA_MONITORING_Q, "Online monitoring of queues", words=_OBJECTS_LEVELS,
       unbuilt=_MONITORING, inactive=(-1,)),
    _A("MONCHL", mq.MQIA_MONITORING_CHANNEL, "Online monitoring of channels",
       words=_OBJECTS_LEVELS, unbuilt=_MONITORING, inactive=(-1,)),
    _A("ACTVTRC", mq.MQIA_ACTIVITY_TRACE, "Trace of the calls of applications", words=ON,
       unbuilt="activity trace"),
    _A("ACTVCONO", mq.MQIA_ACTIVITY_CONN_OVERRIDE, "Whether applications decide about it",
       words=EVENT, unbuilt="activity trace"),
    _A("ACTIVREC", mq.MQIA_ACTIVITY_RECORDING, "Where activity reports go", 2, words=_RECORDING,
       unbuilt="activity reports", inactive=(0,)),
    _A("ROUTEREC", mq.MQIA_TRACE_ROUTE_RECORDING, "Where reports on routes go", 2,
       words=_RECORDING, unbuilt="reports on routes", inactive=(0,)),
    _A("OTELTRAC", mq.MQIA_OTEL_TRACE, "Whether messages are traced by OpenTelemetry", words=ON,
       unbuilt="tracing", inquirable=False),
    _A("OTELPCTL", mq.MQIA_OTEL_PROPAGATION_CONTROL,
       "Whether the queue manager adds the context of the trace", words={"MANUAL": 0, "AUTO": 1},
       unbuilt="tracing", inquirable=False),
]  # fmt: skip

_EVENTS = [
    _event("AUTHOREV", mq.MQIA_AUTHORITY_EVENT, "refused authority"),
    _event("INHIBTEV", mq.MQIA_INHIBIT_EVENT, "inhibited puts and gets"),
    _event("LOCALEV", mq.MQIA_LOCAL_EVENT, "unknown local names"),
    _event("REMOTEEV", mq.MQIA_REMOTE_EVENT, "unknown remote names"),
    _event("STRSTPEV", mq.MQIA_START_STOP_EVENT, "start and stop", 1, built=True),
    _event("PERFMEV", mq.MQIA_PERFORMANCE_EVENT, "depth and service", built=True),
    _event("CONFIGEV", mq.MQIA_CONFIGURATION_EVENT, "changed definitions"),
    _event("CMDEV", mq.MQIA_COMMAND_EVENT, "commands", words={**EVENT, "NODISPLAY": 2}),
    _event("CHLEV", mq.MQIA_CHANNEL_EVENT, "channels", words=_EXCEPTION),
    _event("CHADEV", mq.MQIA_CHANNEL_AUTO_DEF_EVENT, "channels that define themselves"),
    _event("SSLEV", mq.MQIA_SSL_EVENT, "TLS"),
    _event("LOGGEREV", mq.MQIA_LOGGER_EVENT, "the log"),
]  # fmt: skip

_CHANNELS = [
    _A("CHAD", mq.MQIA_CHANNEL_AUTO_DEF, "Whether receivers define themselves", words=EVENT,
       unbuilt="running channels"),
    _text("CHADEXIT", mq.MQCA_CHANNEL_AUTO_DEF_EXIT, "Exit for channels that define themselves",
          _EXIT, unbuilt="exits"),
    _A("CHLAUTH", mq.MQIA_CHLAUTH_RECORDS, "Whether channel authentication records count",
       words=EVENT, unbuilt="channel authentication"),
    name_row("CONNAUTH", mq.MQCA_CONN_AUTH, "Authentication information for connections",
             unbuilt="checks of passwords"),
    _A("SCHINIT", mq.MQIA_CHINIT_CONTROL, "Whether the channel initiator starts by itself",
       CONTROL["QMGR"], words={word: CONTROL[word] for word in ("QMGR", "MANUAL")}),
    _A("SCMDSERV", mq.MQIA_CMD_SERVER_CONTROL, "Whether the command server starts by itself",
       CONTROL["QMGR"], words={word: CONTROL[word] for word in ("QMGR", "MANUAL")}),
    _A("IPADDRV", mq.MQIA_IP_ADDRESS_VERSION, "Protocol where host names have both", words={
       "IPV4": 0, "IPV6": 1}),
    _A("REVDNS", mq.MQIA_REVERSE_DNS_LOOKUP, "Whether names of callers are looked up",
       words={"ENABLED": 0, "DISABLED": 1}),
    _text("CERTLABL", mq.MQCA_CERT_LABEL, "Certificate of the queue manager", 64, unbuilt=_TLS),
    _A("CERTVPOL", mq.MQIA_CERT_VAL_POLICY, "Rules for certificates",
       words={"ANY": 0, "RFC5280": 1}, unbuilt=_TLS),
    name_row("SSLCRLNL", mq.MQCA_SSL_CRL_NAMELIST, "Namelist of authentication information",
             unbuilt=_TLS),
    _text("SSLCRYP", mq.MQCA_SSL_CRYPTO_HARDWARE, "Cryptographic hardware", 256, unbuilt=_TLS),
    _A("SSLFIPS", mq.MQIA_SSL_FIPS_REQUIRED, "Whether only certified algorithms are used",
       words=YES_NO, unbuilt=_TLS),
    _text("SSLKEYR", mq.MQCA_SSL_KEY_REPOSITORY, "Key repository", 256, unbuilt=_TLS),
    _text("KEYRPWD", mq.MQCA_SSL_KEY_REPO_PASSWORD, "Password of the key repository", 128,
          secret=True),
    _text("INITKEY", mq.MQCA_INITIAL_KEY, "Key by which passwords are encrypted", 256, secret=True),
    _A("SSLRKEYC", mq.MQIA_SSL_RESET_COUNT, "Bytes after which keys are renewed; 0: never",
       high=MOST, unbuilt=_TLS),
    _A("SUITEB", mq.MQIA_SUITE_B_STRENGTH, "Strengths of Suite B", "NONE", length=7,
       many=len(_SUITE_B), choices=_SUITE_B, unbuilt=_TLS, inquirable=False),
]  # fmt: skip

_MEDIA_IMAGES = [
    _A("IMGSCHED", mq.MQIA_MEDIA_IMAGE_SCHEDULING, "Whether media images are made by themselves",
       words={"MANUAL": 0, "AUTO": 1}, unbuilt=_IMAGES),
    _A("IMGINTVL", mq.MQIA_MEDIA_IMAGE_INTERVAL, "Minutes between media images", 60, low=1,
       high=MOST, words={"OFF": 0}),
    _A("IMGLOGLN", mq.MQIA_MEDIA_IMAGE_LOG_LENGTH, "Megabytes of log between media images", low=1,
       high=MOST, words={"OFF": 0}),
    _A("IMGRCOVO", mq.MQIA_MEDIA_IMAGE_RECOVER_OBJ, "Whether objects have media images", 1,
       words=YES_NO),
    _A("IMGRCOVQ", mq.MQIA_MEDIA_IMAGE_RECOVER_Q, "Whether queues have media images", 1,
       words=YES_NO),
]  # fmt: skip

_MOST_CHANNELS = {"low": 1, "high": 9999}
_PORTS = {"high": 65535}
_ZOS = [
    _zos("ACTCHL", mq.MQIA_ACTIVE_CHANNELS, "Most active channels", 200, **_MOST_CHANNELS),
    _zos("MAXCHL", mq.MQIA_MAX_CHANNELS, "Most channels", 200, **_MOST_CHANNELS),
    _zos("TCPCHL", mq.MQIA_TCP_CHANNELS, "Most channels of TCP", 200, high=9999),
    _zos("LU62CHL", mq.MQIA_LU62_CHANNELS, "Most channels of LU 6.2", 200, high=9999),
    _zos("ADOPTCHK", mq.MQIA_ADOPTNEWMCA_CHECK, "What an orphaned channel is compared by", 1,
         words={"NONE": 0, "ALL": 1, "QMNAME": 2, "NETADDR": 4}),
    _zos("ADOPTMCA", mq.MQIA_ADOPTNEWMCA_TYPE, "Whether orphaned channels are adopted", 1,
         words={"NO": 0, "ALL": 1}),
    _zos("CHIADAPS", mq.MQIA_CHINIT_ADAPTERS, "Adapter tasks", 8, high=9999),
    _zos("CHIDISPS", mq.MQIA_CHINIT_DISPATCHERS, "Dispatchers", 5, low=1, high=9999),
    _zos("SSLTASKS", mq.MQIA_SSL_TASKS, "TLS tasks", high=9999),
    _zos("LSTRTMR", mq.MQIA_LISTENER_TIMER, "Seconds between restarts of a listener", 60, low=5,
         high=9999),
    _zos("OPORTMAX", mq.MQIA_OUTBOUND_PORT_MAX, "Highest port of outbound channels", **_PORTS),
    _zos("OPORTMIN", mq.MQIA_OUTBOUND_PORT_MIN, "Lowest port of outbound channels", **_PORTS),
    _zos("RCVTIME", mq.MQIA_RECEIVE_TIMEOUT, "How long a channel waits for data", high=999999),
    _zos("RCVTMIN", mq.MQIA_RECEIVE_TIMEOUT_MIN, "Least seconds of that", high=999999),
    _zos("RCVTTYPE", mq.MQIA_RECEIVE_TIMEOUT_TYPE, "How the heartbeat counts for it",
         words={"MULTIPLY": 0, "ADD": 1, "EQUAL": 2}),
    _zos("TCPKEEP", mq.MQIA_TCP_KEEP_ALIVE, "Whether connections are kept alive", words=YES_NO),
    _zos("TCPSTACK", mq.MQIA_TCP_STACK_TYPE, "TCP stacks in use",
         words={"SINGLE": 0, "MULTIPLE": 1}),
    _zos("TCPNAME", mq.MQCA_TCP_NAME, "Name of the TCP stack", "TCPIP", length=8),
    _zos("DNSWLM", mq.MQIA_DNS_WLM, "Whether the listener is known to the workload manager",
         words=YES_NO),
    _zos("DNSGROUP", mq.MQCA_DNS_GROUP, "Group that it joins", "", length=18),
    _zos("LUGROUP", mq.MQCA_LU_GROUP_NAME, "Generic name of the LU 6.2 listener", "", length=8),
    _zos("LUNAME", mq.MQCA_LU_NAME, "Logical unit for outbound LU 6.2", "", length=8),
    _zos("LU62ARM", mq.MQCA_LU62_ARM_SUFFIX, "Suffix of its member", "", length=2),
    _zos("TRAXSTR", mq.MQIA_CHINIT_TRACE_AUTO_START, "Whether the trace starts by itself", 1,
         words=YES_NO),
    _zos("TRAXTBL", mq.MQIA_CHINIT_TRACE_TABLE_SIZE, "Megabytes of the trace", 2, low=2,
         high=2 * 1024),
    _zos("BRIDGEEV", mq.MQIA_BRIDGE_EVENT, "Events of the IMS bridge", words=EVENT,
         unbuilt="event messages"),
    _zos("SCYCASE", mq.MQIA_SECURITY_CASE, "Case of security profiles",
         words={"UPPER": 0, "MIXED": 1}),
    _zos("GROUPUR", mq.MQIA_GROUP_UR, "Whether clients may have units of work of the group",
         words=EVENT, unbuilt="units of work of a group"),
    _zos("IGQ", mq.MQIA_INTRA_GROUP_QUEUING, "Whether the group transfers messages itself",
         words=EVENT, unbuilt="intra-group queuing"),
    _zos("IGQAUT", mq.MQIA_IGQ_PUT_AUTHORITY, "Whose authority its puts need", 1,
         words={"DEF": 1, "CTX": 2, "ONLYIGQ": 3, "ALTIGQ": 4}),
    _zos("IGQUSER", mq.MQCA_IGQ_USER_ID, "User of these puts", "", length=12),
    _zos("SQQMNAME", mq.MQIA_SHARED_Q_Q_MGR_NAME, "Treatment of names of members of the group",
         words={"USE": 0, "IGNORE": 1}),
    _zos("CFCONLOS", mq.MQIA_QMGR_CFCONLOS, "What is done when a structure cannot be reached",
         words={"TERMINATE": 0, "TOLERATE": 1}),
    _zos("CERTQSGL", mq.MQCA_QSG_CERT_LABEL, "Certificate of the group", "", length=64,
         unbuilt=_TLS),
]  # fmt: skip

QMGR = [
    *_IDENTITY, *_MESSAGES, *_CLUSTER, *_PUBLISH, *_COLLECTED, *_EVENTS, *_CHANNELS,
    *_MEDIA_IMAGES, *_ZOS,
]  # fmt: skip

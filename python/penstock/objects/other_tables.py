"""Attributes of processes, namelists, topics and structures of the coupling facility."""

from __future__ import annotations

from .._mqi_constants import selectors as mq
from ..constants import MAX_PRIORITY, NAME_LENGTH, ReasonCode
from .attribute import YES_NO, Attribute
from .common_rows import MOST, altered, name_row

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from collections.abc import Mapping

_A = Attribute

# ---- processes, namelists ----

_APPLICATIONS: Mapping[str, int] = {
    "CICS": 1, "MVS": 2, "IMS": 3, "OS2": 4, "DOS": 5, "UNIX": 6, "OS400": 8, "WINDOWS": 9,
    "WINDOWSNT": 11, "VMS": 12, "NSK": 13, "NOTESAGENT": 22,
}  # fmt: skip
PROCESS = [
    _A("DESCR", mq.MQCA_PROCESS_DESC, "Text about the process", "", length=64),
    _A(
        "APPLTYPE",
        mq.MQIA_APPL_TYPE,
        "Type of application",
        6,
        high=MOST,
        words=_APPLICATIONS,
        default_zos=2,
    ),
    _A("APPLICID", mq.MQCA_APPL_ID, "What to start", "", length=256),
    _A("ENVRDATA", mq.MQCA_ENV_DATA, "Environment for the starter", "", length=128),
    _A("USERDATA", mq.MQCA_USER_DATA, "Data for the application", "", length=128),
    *altered(),
]
NAMELIST = [
    _A("DESCR", mq.MQCA_NAMELIST_DESC, "Text about the namelist", "", length=64),
    _A("NAMES", mq.MQCA_NAMES, "The names", "", length=NAME_LENGTH, name=True, many=256),
    _A("NAMCOUNT", mq.MQIA_NAME_COUNT, "How many names there are", computed="count",
       display_only=True),
    _A("NLTYPE", mq.MQIA_NAMELIST_TYPE, "What the names are", platform="zos",
       words={"NONE": 0, "QUEUE": 1, "CLUSTER": 2, "AUTHINFO": 4}),
    *altered(),
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
       "Most tenths of a second before a publication expires" + _PARENT, -2, low=1, high=MOST,
       words={"ASPARENT": -2, "NOLIMIT": -1}),
    name_row("MDURMDL", mq.MQCA_MODEL_DURABLE_Q, "Model of queues for durable subscriptions"),
    name_row("MNDURMDL", mq.MQCA_MODEL_NON_DURABLE_Q,
             "Model of queues for non-durable subscriptions"),
    name_row("CLUSTER", mq.MQCA_CLUSTER_NAME, "Cluster that knows the topic", unbuilt="clusters"),
    _A("CLROUTE", mq.MQIA_CLUSTER_PUB_ROUTE, "How publications travel in the cluster",
       words={"DIRECT": 0, "TOPICHOST": 1, "NONE": 2}),
    _A("MCAST", mq.MQIA_MULTICAST, "Whether subscribers may use multicast" + _PARENT,
       words={"ASPARENT": 0, "ENABLED": 1, "DISABLED": 2, "ONLY": 3}, unbuilt="multicast",
       inactive=(2,)),
    name_row("COMMINFO", mq.MQCA_COMM_INFO_NAME, "Communication information for multicast"),
    _A("CUSTOM", mq.MQCA_CUSTOM, "Attributes of later releases, as text", "", length=128,
       unbuilt="custom attributes"),
    *altered(),
]  # fmt: skip

# ---- structures of the coupling facility ----

CFSTRUCT = [
    _A("DESCR", mq.MQCA_CF_STRUC_DESC, "Text about the structure", "", length=64, inquirable=False),
    _A("CFLEVEL", mq.MQIA_CF_LEVEL, "Level: 1 and 2 without persistent messages", 3, low=1, high=5,
       always=True, inquirable=False),
    _A("RECOVER", mq.MQIA_CF_RECOVER, "Whether persistent messages are allowed and recovered",
       words=YES_NO, always=True, inquirable=False),
    _A("RECAUTO", mq.MQIA_CF_RECAUTO, "Whether it is recovered by itself", 1, words=YES_NO,
       inquirable=False),
    _A("CFCONLOS", mq.MQIA_CF_CFCONLOS, "What is done when it cannot be reached", 2,
       words={"TERMINATE": 0, "TOLERATE": 1, "ASQMGR": 2}, inquirable=False),
    _A("OFFLOAD", mq.MQIA_CF_OFFLOAD, "Where large messages are", 2,
       words={"NONE": 0, "SMDS": 1, "DB2": 2}, inquirable=False),
    _A("OFFLD1TH", mq.MQIA_CF_OFFLOAD_THRESHOLD1, "Percentage of use of the first rule", 70,
       high=100, inquirable=False),
    _A("OFFLD2TH", mq.MQIA_CF_OFFLOAD_THRESHOLD2, "Percentage of use of the second rule", 80,
       high=100, inquirable=False),
    _A("OFFLD3TH", mq.MQIA_CF_OFFLOAD_THRESHOLD3, "Percentage of use of the third rule", 90,
       high=100, inquirable=False),
    *altered(),
]  # fmt: skip

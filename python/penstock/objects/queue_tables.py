"""Attributes of queues, each declared once for the types of queue that have it.

A type is a letter: L local, M model, A alias, R definition of a remote queue, C instance of a
cluster queue. Selectors, values and defaults as in "MQINQ, MQSET and attributes" of the MQI
reference.
"""

from __future__ import annotations

from .._mqi_constants import selectors as mq
from .._mqi_constants.values import MQQT_ALIAS, MQQT_CLUSTER, MQQT_LOCAL, MQQT_MODEL, MQQT_REMOTE
from ..constants import MAX_DEPTH, MAX_MESSAGE_LENGTH, MAX_PRIORITY, NAME_LENGTH, ReasonCode
from .attribute import EVENT, INHIBIT, YES_NO, Attribute

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .attribute import Stored

_MOST = 999999999
_NAME_LISTED = "at most one of CLUSTER and CLUSNL is set"
QUEUE_TYPES: Mapping[str, int] = {
    "QLOCAL": MQQT_LOCAL, "QMODEL": MQQT_MODEL, "QALIAS": MQQT_ALIAS, "QREMOTE": MQQT_REMOTE,
    "QCLUSTER": MQQT_CLUSTER,
}  # fmt: skip
_USE_QUEUE: Mapping[str, int] = {"LOCAL": 0, "ANY": 1, "QMGR": -3}
_PROPERTIES: Mapping[str, int] = {"COMPAT": 0, "NONE": 1, "ALL": 2, "FORCE": 3, "V6COMPAT": 4}
_INDEX: Mapping[str, int] = {"NONE": 0, "MSGID": 1, "CORRELID": 2, "MSGTOKEN": 4, "GROUPID": 5}
_DEFINED: Mapping[str, int] = {"PREDEFINED": 1, "PERMDYN": 2, "TEMPDYN": 3, "SHAREDYN": 4}
_CLUSTER_TYPES: Mapping[str, int] = {"QLOCAL": 1, "QALIAS": 2, "QREMOTE": 3, "QMGR": 4}
# MONQ, STATQ and ACCTQ of a queue: as the queue manager says, or its own
_AS_MANAGER = -3
_COLLECT: Mapping[str, int] = {"QMGR": _AS_MANAGER, "OFF": 0, "ON": 1}
_MONITOR: Mapping[str, int] = {
    "QMGR": _AS_MANAGER, "OFF": 0, "LOW": 17, "MEDIUM": 33, "HIGH": 65,
}  # fmt: skip

_ROWS: list[tuple[str, str, Attribute]] = []  # types, those of them that MQSET can set, the row
_OTHER_DEFAULTS: dict[tuple[str, str], Stored] = {}  # by keyword and type


def _row(
    types: str,
    keyword: str,
    selector: int,
    help: str,
    default: Stored = 0,
    *,
    set_on: str = "",
    per: Mapping[str, Stored] | None = None,
    **more: Any,
) -> None:
    """Declares an attribute: the types that have it, those where MQSET sets it, other defaults."""
    _ROWS.append((types, set_on, Attribute(keyword, selector, help, default, **more)))
    _OTHER_DEFAULTS.update({(keyword, letter): value for letter, value in (per or {}).items()})


def rows(letter: str) -> list[Attribute]:
    """The attributes of a type of queue."""
    found = []
    for types, set_on, row in _ROWS:
        if letter not in types:
            continue
        default = _OTHER_DEFAULTS.get((row.keyword, letter))
        changes: dict[str, Any] = {}
        if default is not None:
            changes = {"default": default, "default_zos": default}
        if letter in set_on:
            changes["settable"] = True
        if row.resolution and letter in "MC":
            changes |= {"resolution": False, "force": ""}
        if letter == "C":  # values of a queue of another queue manager
            changes["unbuilt"] = ""
        found.append(row.with_changes(**changes) if changes else row)
    return found


# ---- what a put or a get reads ----

_row("LMARC", "DESCR", mq.MQCA_Q_DESC, "Text about the queue", "", length=64)
_row("LMARC", "PUT", mq.MQIA_INHIBIT_PUT, "Whether messages can be put", words=INHIBIT,
     set_on="LAR", reason=ReasonCode.INHIBIT_VALUE_ERROR)  # fmt: skip
_row("LMA", "GET", mq.MQIA_INHIBIT_GET, "Whether messages can be got", words=INHIBIT, set_on="LA",
     reason=ReasonCode.INHIBIT_VALUE_ERROR)  # fmt: skip
_row("LMARC", "DEFPRTY", mq.MQIA_DEF_PRIORITY,
     "Priority of messages put with priority as queue definition", high=MAX_PRIORITY,
     reason=ReasonCode.PRIORITY_ERROR)  # fmt: skip
_row("LMARC", "DEFPSIST", mq.MQIA_DEF_PERSISTENCE,
     "Persistence of messages put with persistence as queue definition", words=YES_NO,
     reason=ReasonCode.PERSISTENCE_ERROR)  # fmt: skip
_row("LMARC", "DEFPRESP", mq.MQIA_DEF_PUT_RESPONSE_TYPE,
     "Put response when the application leaves it to the definition", 1,
     words={"SYNC": 1, "ASYNC": 2})  # fmt: skip
_row("LM", "MAXDEPTH", mq.MQIA_MAX_Q_DEPTH, "Most messages on the queue", 5000, high=MAX_DEPTH,
     default_zos=_MOST)  # fmt: skip
_row("LM", "MAXMSGL", mq.MQIA_MAX_MSG_LENGTH, "Longest message, in bytes", 4194304,
     high=MAX_MESSAGE_LENGTH)  # fmt: skip
_row("LM", "MSGDLVSQ", mq.MQIA_MSG_DELIVERY_SEQUENCE,
     "Order of delivery: by priority, or first in first out",
     words={"PRIORITY": 0, "FIFO": 1})  # fmt: skip
_row("LM", "NPMCLASS", mq.MQIA_NPM_CLASS,
     "Whether non-persistent messages survive a normal restart",
     words={"NORMAL": 0, "HIGH": 10})  # fmt: skip
_row("LM", "INDXTYPE", mq.MQIA_INDEX_TYPE, "Index for gets by identifier", words=_INDEX,
     platform="zos")  # fmt: skip
_row("LMARC", "CAPEXPRY", mq.MQIA_CAP_EXPIRY, "Most tenths of a second before a message expires",
     -1, low=1, high=_MOST, words={"NOLIMIT": -1})  # fmt: skip

# ---- how it is opened and resolved ----

_row("LMA", "DEFREADA", mq.MQIA_DEF_READ_AHEAD, "Read ahead for clients",
     words={"NO": 0, "YES": 1, "DISABLED": 2})  # fmt: skip
_row("LM", "DEFSOPT", mq.MQIA_DEF_INPUT_OPEN_OPTION,
     "Input option when the application leaves it to the definition", 2,
     words={"SHARED": 2, "EXCL": 4}, per={"M": 4})  # fmt: skip
_row("LM", "SHARE", mq.MQIA_SHAREABILITY, "Whether several handles may have it open for input", 1,
     words=YES_NO, per={"M": 0}, force="inputs")  # fmt: skip
_row("L", "DEFTYPE", mq.MQIA_DEFINITION_TYPE, "How the queue came to be", 1, words=_DEFINED,
     display_only=True)  # fmt: skip
_row("M", "DEFTYPE", mq.MQIA_DEFINITION_TYPE, "Which dynamic queues opening the model makes", 3,
     always=True, words={w: n for w, n in _DEFINED.items() if n > 1},
     zos_words=("SHAREDYN",))  # fmt: skip
_row("LM", "USAGE", mq.MQIA_USAGE, "Normal queue, or transmission queue for another queue manager",
     words={"NORMAL": 0, "XMITQ": 1}, resolution=True, force="messages")  # fmt: skip
_row("A", "TARGET", mq.MQCA_BASE_Q_NAME, "Name that the alias stands for", "", length=NAME_LENGTH,
     name=True, synonyms=("TARGQ",), resolution=True, force="open")  # fmt: skip
_row("A", "TARGTYPE", mq.MQIA_BASE_TYPE, "What the alias stands for", 1,
     words={"QUEUE": 1, "TOPIC": 8}, resolution=True, force="open",
     unbuilt="publish/subscribe")  # fmt: skip
_row("R", "RNAME", mq.MQCA_REMOTE_Q_NAME,
     "Name of the queue at the remote queue manager; blank: an alias of one", "",
     length=NAME_LENGTH, name=True, resolution=True, force="open")  # fmt: skip
_row("R", "RQMNAME", mq.MQCA_REMOTE_Q_MGR_NAME, "Name of the remote queue manager", "",
     length=NAME_LENGTH, name=True, resolution=True, force="open")  # fmt: skip
_row("R", "XMITQ", mq.MQCA_XMIT_Q_NAME,
     "Transmission queue; blank: the one named like the queue manager", "", length=NAME_LENGTH,
     name=True, resolution=True, force="open")  # fmt: skip
_row("L", "QSGDISP", mq.MQIA_QSG_DISP, "Whether the queue is shared by the queue-sharing group",
     words={"QMGR": 0, "SHARED": 2}, platform="zos", fixed=True)  # fmt: skip
_row("LM", "CFSTRUCT", mq.MQCA_CF_STRUC_NAME, "Coupling-facility structure of a shared queue", "",
     length=12, name=True, platform="zos")  # fmt: skip
_row("LM", "STGCLASS", mq.MQCA_STORAGE_CLASS, "Storage class", "DEFAULT", length=8, platform="zos")
_row("L", "PSID", mq.MQIA_PAGESET_ID, "Page set", platform="zos", display_only=True)

# ---- clusters ----

for _types, _resolved in (("L", True), ("ARC", False)):  # a local queue: one of the instances
    _row(_types, "CLUSTER", mq.MQCA_CLUSTER_NAME, "Cluster that knows the queue; " + _NAME_LISTED,
         "", length=NAME_LENGTH, name=True, unbuilt="clusters", resolution=_resolved)  # fmt: skip
    _row(_types.rstrip("C"), "CLUSNL", mq.MQCA_CLUSTER_NAMELIST,
         "Namelist of clusters that know the queue; " + _NAME_LISTED, "",
         length=NAME_LENGTH, name=True, unbuilt="clusters", resolution=_resolved)  # fmt: skip
_row("LARC", "DEFBIND", mq.MQIA_DEF_BIND,
     "When an instance is chosen: at open, per message, per group",
     words={"OPEN": 0, "NOTFIXED": 1, "GROUP": 2})  # fmt: skip
_row("LARC", "CLWLRANK", mq.MQIA_CLWL_Q_RANK, "Rank in workload balancing", high=9)
_row("LARC", "CLWLPRTY", mq.MQIA_CLWL_Q_PRIORITY, "Priority in workload balancing", high=9)
_row("L", "CLWLUSEQ", mq.MQIA_CLWL_USEQ, "Whether puts prefer the local instance", -3,
     words=_USE_QUEUE)  # fmt: skip
_row("C", "CLUSQMGR", mq.MQCA_CLUSTER_Q_MGR_NAME, "Queue manager of the instance", "",
     length=NAME_LENGTH, name=True, fixed=True)  # fmt: skip
_row("C", "CLUSQT", mq.MQIA_CLUSTER_Q_TYPE, "Type of the queue at its queue manager", 1,
     words=_CLUSTER_TYPES)  # fmt: skip
_row("C", "QMID", mq.MQCA_Q_MGR_IDENTIFIER, "Identifier of the queue manager of the instance", "",
     length=NAME_LENGTH)  # fmt: skip

# ---- backout, triggers, events ----

_row("LM", "BOTHRESH", mq.MQIA_BACKOUT_THRESHOLD,
     "Backouts after which applications set a message aside", high=_MOST)  # fmt: skip
_row("LM", "BOQNAME", mq.MQCA_BACKOUT_REQ_Q_NAME,
     "Queue for messages that were backed out too often", "",
     length=NAME_LENGTH, name=True)  # fmt: skip
_row("LM", "HARDENBO", mq.MQIA_HARDEN_GET_BACKOUT, "Whether backout counts survive a restart", 1,
     words=YES_NO, per={"M": 0})  # fmt: skip
_row("LM", "RETINTVL", mq.MQIA_RETENTION_INTERVAL,
     "Hours that the queue may be needed; for information", _MOST, high=_MOST)  # fmt: skip
_row("LM", "TRIGGER", mq.MQIA_TRIGGER_CONTROL, "Whether trigger messages are made", words=YES_NO,
     set_on="L", reason=ReasonCode.TRIGGER_CONTROL_ERROR)  # fmt: skip
_row("LM", "TRIGTYPE", mq.MQIA_TRIGGER_TYPE, "When a trigger message is made", 1, set_on="L",
     words={"NONE": 0, "FIRST": 1, "EVERY": 2, "DEPTH": 3},
     reason=ReasonCode.TRIGGER_TYPE_ERROR)  # fmt: skip
_row("LM", "TRIGDPTH", mq.MQIA_TRIGGER_DEPTH, "Messages that trigger with TRIGTYPE(DEPTH)", 1,
     low=1, high=_MOST, set_on="L", reason=ReasonCode.TRIGGER_DEPTH_ERROR)  # fmt: skip
_row("LM", "TRIGMPRI", mq.MQIA_TRIGGER_MSG_PRIORITY,
     "Lowest priority of a message that counts for triggers", high=MAX_PRIORITY, set_on="L",
     reason=ReasonCode.TRIGGER_MSG_PRIORITY_ERR)  # fmt: skip
_row("LM", "TRIGDATA", mq.MQCA_TRIGGER_DATA, "Text for the trigger message", "", length=64,
     set_on="L")  # fmt: skip
_row("LM", "PROCESS", mq.MQCA_PROCESS_NAME, "Process definition that a trigger starts", "",
     length=NAME_LENGTH, name=True)  # fmt: skip
_row("LM", "INITQ", mq.MQCA_INITIATION_Q_NAME, "Initiation queue for trigger messages", "",
     length=NAME_LENGTH, name=True)  # fmt: skip
_row("LM", "QDEPTHHI", mq.MQIA_Q_DEPTH_HIGH_LIMIT,
     "Depth that counts as high, in percent of MAXDEPTH", 80, high=100)  # fmt: skip
_row("LM", "QDEPTHLO", mq.MQIA_Q_DEPTH_LOW_LIMIT,
     "Depth that counts as low, in percent of MAXDEPTH", 20, high=100, default_zos=40)  # fmt: skip
_row("LM", "QDPMAXEV", mq.MQIA_Q_DEPTH_MAX_EVENT, "Event when the queue is full", 1, words=EVENT)
_row("LM", "QDPHIEV", mq.MQIA_Q_DEPTH_HIGH_EVENT, "Event when the depth gets high", words=EVENT)
_row("LM", "QDPLOEV", mq.MQIA_Q_DEPTH_LOW_EVENT, "Event when the depth gets low", words=EVENT)
_row("LM", "QSVCINT", mq.MQIA_Q_SERVICE_INTERVAL,
     "Milliseconds between gets that service events judge", _MOST, high=_MOST)  # fmt: skip
_row("LM", "QSVCIEV", mq.MQIA_Q_SERVICE_INTERVAL_EVENT, "Service interval events",
     words={"NONE": 0, "HIGH": 1, "OK": 2})  # fmt: skip

# ---- the rest ----

_row("LM", "DISTL", mq.MQIA_DIST_LISTS, "Whether the partner takes distribution lists",
     words=YES_NO, set_on="L")  # fmt: skip
_row("LMA", "PROPCTL", mq.MQIA_PROPERTY_CONTROL, "How message properties are given to a get",
     words=_PROPERTIES)  # fmt: skip
_row("LM", "STREAMQ", mq.MQCA_STREAM_QUEUE_NAME, "Queue that gets a copy of each message", "",
     length=NAME_LENGTH, name=True)  # fmt: skip
_row("LM", "STRMQOS", mq.MQIA_STREAM_QUEUE_QOS, "Whether a put may fail for want of the copy",
     words={"BESTEF": 0, "MUSTDUP": 1})  # fmt: skip
_row("LM", "MAXFSIZE", mq.MQIA_MAX_Q_FILE_SIZE, "Largest queue file, in MB", -1, low=20,
     high=267386880, words={"DEFAULT": -1}, unbuilt="files of single queues")  # fmt: skip
_row("LM", "ACCTQ", mq.MQIA_ACCOUNTING_Q, "Whether accounting data is collected", _AS_MANAGER,
     words=_COLLECT, unbuilt="accounting", inactive=(0,))  # fmt: skip
_row("LM", "MONQ", mq.MQIA_MONITORING_Q, "How often online monitoring data is collected",
     _AS_MANAGER, words=_MONITOR, unbuilt="online monitoring", inactive=(0,))  # fmt: skip
_row("LM", "STATQ", mq.MQIA_STATISTICS_Q, "Whether statistics data is collected", _AS_MANAGER,
     words=_COLLECT, unbuilt="statistics messages", inactive=(0,))  # fmt: skip
_row("LM", "OTELTRAC", mq.MQIA_OTEL_TRACE, "Whether messages are traced by OpenTelemetry",
     _AS_MANAGER, words=_COLLECT, unbuilt="tracing", inactive=(0,), inquirable=False)  # fmt: skip
_row("LM", "OTELPCTL", mq.MQIA_OTEL_PROPAGATION_CONTROL,
     "Whether the queue manager adds the context of the trace", _AS_MANAGER,
     words={"QMGR": _AS_MANAGER, "MANUAL": 0, "AUTO": 1}, unbuilt="tracing", inactive=(0,),
     inquirable=False)  # fmt: skip
_row("LAR", "SCOPE", mq.MQIA_SCOPE, "Where the name is known: at the queue manager, in the cell", 1,
     words={"QMGR": 1, "CELL": 2}, unbuilt="cell directories")  # fmt: skip
_row("LMAR", "CUSTOM", mq.MQCA_CUSTOM, "Attributes of later releases, as text", "", length=128,
     unbuilt="custom attributes")  # fmt: skip
_row("LM", "CLCHNAME", mq.MQCA_CLUS_CHL_NAME, "Cluster-sender channels that take from the queue",
     "", length=20, unbuilt="clusters")  # fmt: skip
_row("LM", "IMGRCOVQ", mq.MQIA_MEDIA_IMAGE_RECOVER_Q, "Whether media images are made of the queue",
     2, words={"NO": 0, "YES": 1, "QMGR": 2}, unbuilt="media images", inactive=(0,))  # fmt: skip
_row("L", "CURDEPTH", mq.MQIA_CURRENT_Q_DEPTH, "Messages on the queue now", computed="depth",
     display_only=True)  # fmt: skip
_row("L", "IPPROCS", mq.MQIA_OPEN_INPUT_COUNT, "Handles open for input", computed="open_input",
     display_only=True)  # fmt: skip
_row("L", "OPPROCS", mq.MQIA_OPEN_OUTPUT_COUNT, "Handles open for output", computed="open_output",
     display_only=True)  # fmt: skip
_row("L", "CRDATE", mq.MQCA_CREATION_DATE, "Date of definition", "", length=12, display_only=True)
_row("L", "CRTIME", mq.MQCA_CREATION_TIME, "Time of definition", "", length=8, display_only=True)
_row("LMARC", "ALTDATE", mq.MQCA_ALTERATION_DATE, "Date of the last change", "", length=12,
     display_only=True)  # fmt: skip
_row("LMARC", "ALTTIME", mq.MQCA_ALTERATION_TIME, "Time of the last change", "", length=8,
     display_only=True)  # fmt: skip

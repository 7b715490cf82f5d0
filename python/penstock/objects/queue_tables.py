"""Attributes of queues, each declared once for the types of queue that have it.

A type is a letter: L local, M model, A alias, R definition of a remote queue, C instance of a
cluster queue. Selectors, values and defaults as in "MQINQ, MQSET and attributes" of the MQI
reference.
"""

from __future__ import annotations

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
    "QLOCAL": 1, "QMODEL": 2, "QALIAS": 3, "QREMOTE": 6, "QCLUSTER": 7,
}  # fmt: skip
_USE_QUEUE: Mapping[str, int] = {"LOCAL": 0, "ANY": 1, "QMGR": -3}
_PROPERTIES: Mapping[str, int] = {"COMPAT": 0, "NONE": 1, "ALL": 2, "FORCE": 3, "V6COMPAT": 4}
_INDEX: Mapping[str, int] = {"NONE": 0, "MSGID": 1, "CORRELID": 2, "MSGTOKEN": 4, "GROUPID": 5}
_DEFINED: Mapping[str, int] = {"PREDEFINED": 1, "PERMDYN": 2, "TEMPDYN": 3, "SHAREDYN": 4}
_CLUSTER_TYPES: Mapping[str, int] = {"QLOCAL": 1, "QALIAS": 2, "QREMOTE": 3, "QMGR": 4}

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
        found.append(row.with_changes(**changes) if changes else row)
    return found


# ---- what a put or a get reads ----

_row("LMARC", "DESCR", 2013, "Text about the queue", "", length=64)
_row("LMARC", "PUT", 10, "Whether messages can be put", words=INHIBIT, set_on="LAR",
     reason=ReasonCode.INHIBIT_VALUE_ERROR)  # fmt: skip
_row("LMA", "GET", 9, "Whether messages can be got", words=INHIBIT, set_on="LA",
     reason=ReasonCode.INHIBIT_VALUE_ERROR)  # fmt: skip
_row("LMARC", "DEFPRTY", 6, "Priority of messages put with priority as queue definition",
     high=MAX_PRIORITY, reason=ReasonCode.PRIORITY_ERROR)  # fmt: skip
_row("LMARC", "DEFPSIST", 5, "Persistence of messages put with persistence as queue definition",
     words=YES_NO, reason=ReasonCode.PERSISTENCE_ERROR)  # fmt: skip
_row("LMARC", "DEFPRESP", 184, "Put response when the application leaves it to the definition", 1,
     words={"SYNC": 1, "ASYNC": 2})  # fmt: skip
_row("LM", "MAXDEPTH", 15, "Most messages on the queue", 5000, high=MAX_DEPTH, default_zos=_MOST)
_row("LM", "MAXMSGL", 13, "Longest message, in bytes", 4194304, high=MAX_MESSAGE_LENGTH)
_row("LM", "MSGDLVSQ", 16, "Order of delivery: by priority, or first in first out",
     words={"PRIORITY": 0, "FIFO": 1})  # fmt: skip
_row("LM", "NPMCLASS", 78, "Whether non-persistent messages survive a normal restart",
     words={"NORMAL": 0, "HIGH": 10})  # fmt: skip
_row("LM", "INDXTYPE", 57, "Index for gets by identifier", words=_INDEX, platform="zos")
_row("LMARC", "CAPEXPRY", 276, "Most tenths of a second before a message expires", -1, low=1,
     high=_MOST, words={"NOLIMIT": -1})  # fmt: skip

# ---- how it is opened and resolved ----

_row("LMA", "DEFREADA", 188, "Read ahead for clients", words={"NO": 0, "YES": 1, "DISABLED": 2})
_row("LM", "DEFSOPT", 4, "Input option when the application leaves it to the definition", 2,
     words={"SHARED": 2, "EXCL": 4}, per={"M": 4})  # fmt: skip
_row("LM", "SHARE", 23, "Whether several handles may have it open for input", 1, words=YES_NO,
     per={"M": 0}, force="inputs")  # fmt: skip
_row("L", "DEFTYPE", 7, "How the queue came to be", 1, words=_DEFINED, display_only=True)
_row("M", "DEFTYPE", 7, "Which dynamic queues opening the model makes", 3, always=True,
     words={w: n for w, n in _DEFINED.items() if n > 1}, zos_words=("SHAREDYN",))  # fmt: skip
_row("LM", "USAGE", 12, "Normal queue, or transmission queue for another queue manager",
     words={"NORMAL": 0, "XMITQ": 1}, resolution=True, force="messages")  # fmt: skip
_row("A", "TARGET", 2002, "Name that the alias stands for", "", length=NAME_LENGTH, name=True,
     synonyms=("TARGQ",), resolution=True, force="open")  # fmt: skip
_row("A", "TARGTYPE", 193, "What the alias stands for", 1, words={"QUEUE": 1, "TOPIC": 8},
     resolution=True, force="open")  # fmt: skip
_row("R", "RNAME", 2018, "Name of the queue at the remote queue manager; blank: an alias of one",
     "", length=NAME_LENGTH, name=True, resolution=True, force="open")  # fmt: skip
_row("R", "RQMNAME", 2017, "Name of the remote queue manager", "", length=NAME_LENGTH, name=True,
     resolution=True, force="open")  # fmt: skip
_row("R", "XMITQ", 2024, "Transmission queue; blank: the one named like the queue manager", "",
     length=NAME_LENGTH, name=True, resolution=True, force="open")  # fmt: skip
_row("L", "QSGDISP", 63, "Whether the queue is shared by the queue-sharing group",
     words={"QMGR": 0, "SHARED": 2}, platform="zos", fixed=True)  # fmt: skip
_row("LM", "CFSTRUCT", 2039, "Coupling-facility structure of a shared queue", "", length=12,
     name=True, platform="zos")  # fmt: skip
_row("LM", "STGCLASS", 2022, "Storage class", "DEFAULT", length=8, platform="zos")
_row("L", "PSID", 62, "Page set", platform="zos", display_only=True)

# ---- clusters ----

_row("LARC", "CLUSTER", 2029, "Cluster that knows the queue; " + _NAME_LISTED, "",
     length=NAME_LENGTH, name=True)  # fmt: skip
_row("LAR", "CLUSNL", 2030, "Namelist of clusters that know the queue; " + _NAME_LISTED, "",
     length=NAME_LENGTH, name=True)  # fmt: skip
_row("LARC", "DEFBIND", 61, "When an instance is chosen: at open, per message, per group",
     words={"OPEN": 0, "NOTFIXED": 1, "GROUP": 2})  # fmt: skip
_row("LARC", "CLWLRANK", 95, "Rank in workload balancing", high=9)
_row("LARC", "CLWLPRTY", 96, "Priority in workload balancing", high=9)
_row("L", "CLWLUSEQ", 98, "Whether puts prefer the local instance", -3, words=_USE_QUEUE)
_row("C", "CLUSQMGR", 2031, "Queue manager of the instance", "", length=NAME_LENGTH, name=True,
     fixed=True)  # fmt: skip
_row("C", "CLUSQT", 59, "Type of the queue at its queue manager", 1, words=_CLUSTER_TYPES)
_row("C", "QMID", 2032, "Identifier of the queue manager of the instance", "", length=NAME_LENGTH)

# ---- backout, triggers, events ----

_row("LM", "BOTHRESH", 22, "Backouts after which applications set a message aside", high=_MOST)
_row("LM", "BOQNAME", 2019, "Queue for messages that were backed out too often", "",
     length=NAME_LENGTH, name=True)  # fmt: skip
_row("LM", "HARDENBO", 8, "Whether backout counts survive a restart", 1, words=YES_NO,
     per={"M": 0})  # fmt: skip
_row("LM", "RETINTVL", 21, "Hours that the queue may be needed; for information", _MOST, high=_MOST)
_row("LM", "TRIGGER", 24, "Whether trigger messages are made", words=YES_NO, set_on="L",
     reason=ReasonCode.TRIGGER_CONTROL_ERROR)  # fmt: skip
_row("LM", "TRIGTYPE", 28, "When a trigger message is made", 1, set_on="L",
     words={"NONE": 0, "FIRST": 1, "EVERY": 2, "DEPTH": 3},
     reason=ReasonCode.TRIGGER_TYPE_ERROR)  # fmt: skip
_row("LM", "TRIGDPTH", 29, "Messages that trigger with TRIGTYPE(DEPTH)", 1, low=1, high=_MOST,
     set_on="L", reason=ReasonCode.TRIGGER_DEPTH_ERROR)  # fmt: skip
_row("LM", "TRIGMPRI", 26, "Lowest priority of a message that counts for triggers",
     high=MAX_PRIORITY, set_on="L", reason=ReasonCode.TRIGGER_MSG_PRIORITY_ERR)  # fmt: skip
_row("LM", "TRIGDATA", 2023, "Text for the trigger message", "", length=64, set_on="L")
_row("LM", "PROCESS", 2012, "Process definition that a trigger starts", "", length=NAME_LENGTH,
     name=True)  # fmt: skip
_row("LM", "INITQ", 2008, "Initiation queue for trigger messages", "", length=NAME_LENGTH,
     name=True)  # fmt: skip
_row("LM", "QDEPTHHI", 40, "Depth that counts as high, in percent of MAXDEPTH", 80, high=100)
_row("LM", "QDEPTHLO", 41, "Depth that counts as low, in percent of MAXDEPTH", 20, high=100,
     default_zos=40)  # fmt: skip
_row("LM", "QDPMAXEV", 42, "Event when the queue is full", 1, words=EVENT)
_row("LM", "QDPHIEV", 43, "Event when the depth gets high", words=EVENT)
_row("LM", "QDPLOEV", 44, "Event when the depth gets low", words=EVENT)
_row("LM", "QSVCINT", 54, "Milliseconds between gets that service events judge", _MOST, high=_MOST)
_row("LM", "QSVCIEV", 46, "Service interval events", words={"NONE": 0, "HIGH": 1, "OK": 2})

# ---- the rest ----

_row("LM", "DISTL", 34, "Whether the partner takes distribution lists", words=YES_NO, set_on="L")
_row("LMA", "PROPCTL", 190, "How message properties are given to a get", words=_PROPERTIES)
_row("LM", "STREAMQ", 2138, "Queue that gets a copy of each message", "", length=NAME_LENGTH,
     name=True)  # fmt: skip
_row("LM", "STRMQOS", 275, "Whether a put may fail for want of the copy",
     words={"BESTEF": 0, "MUSTDUP": 1})  # fmt: skip
_row("LM", "MAXFSIZE", 274, "Largest queue file, in MB", -1, low=20, high=267386880,
     words={"DEFAULT": -1})  # fmt: skip
_row("L", "CURDEPTH", 3, "Messages on the queue now", computed="depth", display_only=True)
_row("L", "IPPROCS", 17, "Handles open for input", computed="open_input", display_only=True)
_row("L", "OPPROCS", 18, "Handles open for output", computed="open_output", display_only=True)
_row("L", "CRDATE", 2004, "Date of definition", "", length=12, display_only=True)
_row("L", "CRTIME", 2005, "Time of definition", "", length=8, display_only=True)
_row("LMARC", "ALTDATE", 2027, "Date of the last change", "", length=12, display_only=True)
_row("LMARC", "ALTTIME", 2028, "Time of the last change", "", length=8, display_only=True)

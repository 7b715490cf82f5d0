"""The verbs and nouns of MQSC, their short forms, and the numbers of the messages about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# verb -> its short forms
VERBS: Mapping[str, tuple[str, ...]] = {
    "ALTER": ("ALT",),
    "CLEAR": (),
    "DEFINE": ("DEF",),
    "DELETE": (),
    "DISPLAY": ("DIS",),
    "END": (),
    "PING": (),
    "ARCHIVE": ("ARC",),
    "BACKUP": (),
    "MOVE": (),
    "PURGE": (),
    "RECOVER": ("REC",),
    "REFRESH": ("REF",),
    "RESET": (),
    "RESOLVE": ("RES",),
    "RESUME": (),
    "SET": (),
    "START": ("STA",),
    "STOP": (),
    "SUSPEND": (),
}

_OBJECT = ("DEFINE", "ALTER", "DELETE", "DISPLAY")


class Noun(NamedTuple):
    """A noun of MQSC.

    short: short forms. verbs: the verbs it takes. title: name for users. kinds: types of object,
    in the order of DISPLAY; none for nouns that are not objects. named: 2 a name is required, 1 it
    is optional, 0 there is none. created, changed, deleted, details: numbers of the messages.
    """

    short: tuple[str, ...]
    verbs: tuple[str, ...]
    title: str
    kinds: tuple[str, ...] = ()
    named: int = 2
    created: str = "AMQ8006"
    changed: str = "AMQ8008"
    deleted: str = "AMQ8007"
    details: str = "AMQ8409"

    @property
    def heading(self) -> str:
        """The title before each object of a DISPLAY."""
        as_it_is = ("queue status", "queue statistics")
        return self.title if self.title in as_it_is else self.title.title()


_ZOS = ("CSQ9022I", "CSQ9022I", "CSQ9022I", "CSQM201I")  # z/OS has no numbers of its own kinds
NOUNS: Mapping[str, Noun] = {
    "QLOCAL": Noun(("QL",), (*_OBJECT, "CLEAR"), "queue", ("QLOCAL",)),
    "QALIAS": Noun(("QA",), _OBJECT, "queue", ("QALIAS",)),
    "QREMOTE": Noun(("QR",), _OBJECT, "queue", ("QREMOTE",)),
    "QMODEL": Noun(("QM",), _OBJECT, "queue", ("QMODEL",)),
    "QUEUE": Noun(("Q",), ("DISPLAY",), "queue", ("QLOCAL", "QALIAS", "QREMOTE", "QMODEL")),
    # MQ has DISPLAY alone: its instances come from other queue managers, ours are defined.
    "QCLUSTER": Noun(("QC",), _OBJECT, "queue", ("QCLUSTER",)),
    "PROCESS": Noun(
        ("PRO",), _OBJECT, "process", ("PROCESS",), 2, "AMQ8010", "AMQ8012", "AMQ8011", "AMQ8407"
    ),
    "NAMELIST": Noun(
        ("NL",), _OBJECT, "namelist", ("NAMELIST",), 2, "AMQ8552", "AMQ8551", "AMQ8553", "AMQ8550"
    ),
    "TOPIC": Noun(
        (), _OBJECT, "topic", ("TOPIC",), 2, "AMQ8690", "AMQ8691", "AMQ8692", "AMQ8633"
    ),
    "CHANNEL": Noun(
        ("CHL",), _OBJECT, "channel", ("CHANNEL",), 2, "AMQ8014", "AMQ8016", "AMQ8015", "AMQ8414"
    ),
    "CFSTRUCT": Noun((), _OBJECT, "structure", ("CFSTRUCT",), 2, *_ZOS),
    "LISTENER": Noun(
        ("LSTR",), _OBJECT, "listener", ("LISTENER",), 2, "AMQ8626", "AMQ8628", "AMQ8627",
        "AMQ8630",
    ),
    "SERVICE": Noun(
        (), _OBJECT, "service", ("SERVICE",), 2, "AMQ8625", "AMQ8624", "AMQ8623", "AMQ8629"
    ),
    "AUTHINFO": Noun(
        (), _OBJECT, "authentication information", ("AUTHINFO",), 2, "AMQ8563", "AMQ8567",
        "AMQ8564", "AMQ8566",
    ),
    "COMMINFO": Noun(
        (), _OBJECT, "comminfo", ("COMMINFO",), 2, "AMQ8858", "AMQ8859", "AMQ8860", "AMQ8861"
    ),
    "SUB": Noun((), _OBJECT, "subscription", ("SUB",), 2, "AMQ8094", "AMQ8095", "AMQ8097",
                "AMQ8096"),
    "CHLAUTH": Noun((), ("SET", "DISPLAY"), "channel authentication record", ("CHLAUTH",), 2,
                    "AMQ8877", "AMQ8877", "AMQ8877", "AMQ8878"),
    "AUTHREC": Noun((), ("SET", "DELETE", "DISPLAY"), "authority record", ("AUTHREC",), 0,
                    "AMQ8862", "AMQ8862", "AMQ8863", "AMQ8864"),
    "QMGR": Noun(
        (), ("ALTER", "DISPLAY", "PING"), "queue manager", ("QMGR",), 0, "", "AMQ8005", "",
        "AMQ8408",
    ),
    "QSTATUS": Noun(("QS",), ("DISPLAY",), "queue status", details="AMQ8450"),
    "CONN": Noun((), ("DISPLAY",), "connection", named=1, details="AMQ8276"),
    # MQ has it as a PCF command on Unix, as MQSC on z/OS alone.
    "QSTATS": Noun((), ("RESET",), "queue statistics", details="CSQM201I"),
    "QMSTATUS": Noun((), ("DISPLAY",), "queue manager status", named=0, details="AMQ8705"),
}  # fmt: skip

# Verbs and nouns of MQSC whose subject this release does not have, and what that is.
LATER_VERBS: Mapping[str, str] = {
    "ARCHIVE": "archive logs",
    "BACKUP": "backups of structures",
    "MOVE": "moving of messages",
    "PURGE": "telemetry channels",
    "RECOVER": "recovery of structures",
    "REFRESH": "cluster repositories and caches to refresh",
    "RESET": "running channels and clusters",
    "RESOLVE": "running channels and indoubt units of work",
    "RESUME": "clusters",
    "SET": "settings of logs and policies",
    "START": "running channels, listeners and services",
    "STOP": "running channels, listeners and services",
    "SUSPEND": "clusters",
}
LATER_NOUNS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "APSTATUS": ((), "clusters that balance applications"),
    "ARCHIVE": ((), "archive logs"),
    "AUTHSERV": ((), "authorities"),
    "BUFFPOOL": ((), "buffer pools and page sets"),
    "CFSTATUS": ((), "status of structures"),
    "CHINIT": ((), "running channels"),
    "CHSTATUS": (("CHS",), "running channels"),
    "CLUSQMGR": ((), "clusters"),
    "CLUSTER": ((), "clusters"),
    "CMDSERV": ((), "command servers"),
    "ENTAUTH": ((), "authorities"),
    "INDOUBT": ((), "indoubt units of work"),
    "LOG": ((), "archive logs"),
    "LSSTATUS": (("LSS",), "listeners"),
    "POLICY": ((), "policies of message protection"),
    "PSID": ((), "buffer pools and page sets"),
    "PUBSUB": ((), "subscriptions"),
    "SBSTATUS": (("SBS",), "subscriptions"),
    "SECURITY": ((), "authorities"),
    "SMDS": ((), "shared message data sets"),
    "SMDSCONN": ((), "shared message data sets"),
    "STGCLASS": (("STC",), "storage classes"),
    "SVSTATUS": (("SVS",), "services"),
    "SYSTEM": ((), "settings of platform z/OS"),
    "TCLUSTER": ((), "clusters"),
    "THREAD": ((), "threads of platform z/OS"),
    "TOPICSTR": ((), "topics"),
    "TPIPE": ((), "bridges"),
    "TPSTATUS": (("TPS",), "subscriptions"),
    "TRACE": ((), "traces of platform z/OS"),
    "USAGE": ((), "buffer pools and page sets"),
}

# Nouns whose names are profiles or free text: a * is a character like others.
PROFILED = ("CHLAUTH", "SUB")

# Commands that would change nothing that there is: they are answered with a warning, and scripts go
# on. What they name must be defined where the table has a type of object for it.
WITHOUT_EFFECT: Mapping[tuple[str, str], str] = {
    ("START", "CHANNEL"): "CHANNEL",
    ("STOP", "CHANNEL"): "CHANNEL",
    ("RESET", "CHANNEL"): "CHANNEL",
    ("START", "LISTENER"): "LISTENER",
    ("STOP", "LISTENER"): "LISTENER",
    ("START", "SERVICE"): "SERVICE",
    ("STOP", "SERVICE"): "SERVICE",
    ("START", "CHINIT"): "",
    ("STOP", "CHINIT"): "",
    ("START", "CMDSERV"): "",
    ("STOP", "CMDSERV"): "",
    ("REFRESH", "SECURITY"): "",
    ("REFRESH", "QMGR"): "",
    ("REFRESH", "CLUSTER"): "",
    ("RESET", "CLUSTER"): "",
    ("RESET", "QMGR"): "",
    ("SUSPEND", "QMGR"): "",
    ("RESUME", "QMGR"): "",
    ("SET", "LOG"): "",
    ("SET", "ARCHIVE"): "",
    ("SET", "SYSTEM"): "",
}

# Attributes that are written without a value: KEYWORD or NOKEYWORD.
BARE = ("SHARE", "TRIGGER", "HARDENBO")

VERB_OF: Mapping[str, str] = {
    word: verb for verb, short in VERBS.items() for word in (verb, *short)
}
NOUN_OF: Mapping[str, str] = {
    **{word: noun for noun, row in NOUNS.items() for word in (noun, *row.short)},
    **{word: noun for noun, (short, _) in LATER_NOUNS.items() for word in (noun, *short)},
}

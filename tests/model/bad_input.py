"""Bad input as data: the wrong fields, and the reason codes in the documents, with their sections.

A row is (structure, fields, reasons, section): the fields are set in an otherwise good structure of
a good call. Sections are those of the reference. Where the documents allow two reasons, both are
listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

Row = tuple[str, dict[str, Any], frozenset[int], str]
LOW, HIGH = -(2**31), 2**31 - 1
GROUP = {"MsgFlags": 8, "GroupId": b"g" * 24}
REPLY_BITS = 0x07E03F07  # Report bits that need a reply queue
DEFINED_BITS = REPLY_BITS | 0x80 | 0x40 | 0x08000000 | 0x4000
ACCEPTED_BITS = 0xEFE000FF  # MQRO_ACCEPT_UNSUP_MASK
REJECTED = 2061


def signed(bit: int) -> int:
    return bit - 2**32 if bit >= 2**31 else bit


def rows(structure: str, field: str, values: Any, reasons: Any, section: str) -> Iterator[Row]:
    """One field with several wrong values."""
    codes = frozenset({reasons} if isinstance(reasons, int) else reasons)
    for value in values:
        yield structure, {field: value}, codes, section


def descriptor() -> Iterator[Row]:
    """MQMD on MQPUT and MQPUT1."""
    yield from rows("md", "StrucId", ("", "XX", "OD", "md"), 2026, "1.1")
    yield from rows("md", "Version", (0, 3, -1, LOW, HIGH), 2026, "1.1")
    yield from rows("md", "MsgType", (0, -1, LOW, 1000000000, HIGH), 2029, "1.2")
    yield from rows("md", "Expiry", (0, -2, LOW, 1000000000, HIGH), 2013, "1.2")
    yield from rows("md", "Feedback", (-1, LOW, 1000000000, HIGH), 2014, "1.2")
    yield from rows("md", "Persistence", (-1, 3, 4, LOW, HIGH), 2047, "1.4")
    yield from rows("md", "Priority", (-2, -3, LOW), 2050, "1.5")
    yield from rows("md", "OriginalLength", (-2, LOW), 2252, "1.3")
    for bit in (1 << n for n in range(32)):
        if bit & REPLY_BITS:
            yield "md", {"Report": signed(bit)}, frozenset({2027, REJECTED}), "1.3"
        elif bit & ~DEFINED_BITS & ~ACCEPTED_BITS:
            yield "md", {"Report": signed(bit)}, frozenset({REJECTED}), "1.2"
    yield "md", {"MsgType": 1}, frozenset({2027}), "1.3"
    for bit in (1 << n for n in range(5, 32)):
        yield "md", {"MsgFlags": signed(bit)}, frozenset({2249}), "1.2"
    for flags in (2, 4, 6):
        yield "md", {"MsgFlags": flags}, frozenset({2365, 2443, 2249}), "8.2"
    for number in (0, -1, LOW, 1000000000, HIGH):
        yield "md", {**GROUP, "MsgSeqNumber": number}, frozenset({2250}), "11"
    for offset in (-1, LOW, 1000000000, HIGH):
        yield "md", {**GROUP, "Offset": offset}, frozenset({2251}), "11"


def put_options() -> Iterator[Row]:
    """MQPMO on MQPUT and MQPUT1; the handle has no context rights."""
    yield from rows("pmo", "StrucId", ("", "MD", "pmo"), 2173, "4.4")
    yield from rows("pmo", "Version", (0, 4, -1, LOW, HIGH), 2173, "4.4")
    unknown = (1, 8, 16, 0x100000, 0x400000, 0x1000000, 0x2000000, 0x20000000, 0x40000000, LOW)
    yield from rows("pmo", "Options", unknown, 2046, "4.1")
    yield from rows("pmo", "Options", (2 | 4, 65536 | 131072), 2046, "4.1")
    contexts = (32, 16384, 256, 512, 1024, 2048)
    yield from rows("pmo", "Options", (a | b for a, b in combinations(contexts, 2)), 2046, "4.1")
    topics = (2097152, 67108864, 134217728, 268435456, 524288)
    yield from rows("pmo", "Options", topics, 2046, "4.1")
    yield from rows("pmo", "Options", (32768, 8388608), 2046, "4.1")
    for option in (256, 512):
        for context in (0, -1, 12345, HIGH):
            wanted = {"Options": option, "Context": context}
            yield "pmo", wanted, frozenset({2097, 2093, 2094}), "4.3"


PUT_ONLY: list[Row] = [
    ("pmo", {"Options": 4096}, frozenset({2046}), "4.1"),
    ("pmo", {"Options": 256}, frozenset({2094}), "4.4"),
    ("pmo", {"Options": 512}, frozenset({2093}), "4.4"),
    ("pmo", {"Options": 1024}, frozenset({2096}), "4.4"),
    ("pmo", {"Options": 2048}, frozenset({2095}), "4.4"),
]


def get_options() -> Iterator[Row]:
    """MQGMO and MQMD on MQGET with a handle for input and browse; nothing is locked or browsed."""
    yield from rows("md", "StrucId", ("", "XX"), 2026, "11")
    yield from rows("md", "Version", (0, 3, -1), 2026, "11")
    yield from rows("gmo", "StrucId", ("", "PMO", "gmo"), 2186, "11")
    yield from rows("gmo", "Version", (0, 5, -1, LOW, HIGH), 2186, "11")
    yield from rows("gmo", "Options", (0x80000, 0x20000000, 0x40000000, LOW), 2046, "5.1")
    later = (8, 128, 32768, 65536, 131072, 262144)
    marks = (0x100000, 0x200000, 0x400000, 0x800000, 0x1000000)
    yield from rows("gmo", "Options", (*later, *marks), 2046, "5.1")
    yield from rows(
        "gmo", "Options", (a | b for a, b in combinations((2, 4, 4096), 2)), 2046, "5.1"
    )
    cursors = (16, 32, 2048, 256)
    yield from rows("gmo", "Options", (a | b for a, b in combinations(cursors, 2)), 2046, "5.1")
    in_unit = [2 | one for one in (16, 32, 2048, 1024, 512 | 16)]
    in_unit += [4096 | one for one in (16, 32, 2048, 1024)]
    yield from rows("gmo", "Options", in_unit, 2046, "5.1")
    yield from rows("gmo", "Options", (512, 512 | 256, 1024 | 1, 1024 | 16, 1024 | 64), 2046, "5.1")
    for interval in (-2, -3, LOW):
        yield "gmo", {"Options": 1, "WaitInterval": interval}, frozenset({2090}), "5.5"
    for bit in (1 << n for n in range(6, 32)):
        yield "gmo", {"MatchOptions": signed(bit)}, frozenset({2247}), "5.2"
    yield "gmo", {"Options": 256}, frozenset({2034}), "5.4"
    yield "gmo", {"Options": 2048}, frozenset({2034}), "5.4"


def object_descriptor() -> Iterator[Row]:
    """MQOD on MQOPEN and MQPUT1."""
    yield from rows("od", "StrucId", ("", "MD", "od"), 2044, "11")
    yield from rows("od", "Version", (0, 5, -1, LOW, HIGH), 2044, "11")
    yield from rows("od", "ObjectType", (0, -1, 4, 99, LOW, HIGH), 2043, "11")
    names = (" Q", "Q Q", "Q!", "Q*", "*", "q-q", "Q\t", "Qä")
    yield from rows("od", "ObjectName", names, 2152, "3.4")
    yield from rows("od", "ObjectName", ("NO.SUCH", "q", "Q.", ""), (2085, 2152), "3.4")
    yield from rows("od", "ObjectQMgrName", (" QM1", "Q M", "QM!", "QM*"), 2153, "3.4")
    yield from rows("od", "ObjectQMgrName", ("UNKNOWN", "qm1"), (2086, 2087), "3.4")
    yield from rows("od", "RecsPresent", (-1, LOW), 2154, "3.6")
    yield from rows("od", "RecsPresent", (1, 1000, HIGH), (2152, 2154, 2155), "3.6")
    for count in (1, 3, HIGH):
        wanted = {"ObjectName": "", "RecsPresent": count}
        yield "od", wanted, frozenset({2154, 2155}), "3.6"


def dynamic_names() -> Iterator[Row]:
    """DynamicQName when a model queue is opened."""
    wrong = ("", " A", "*A", "A*B", "A**", "bad!", "bad!*", "D" * 33 + "*", "D" * 47 + "*", "A B*")
    for name in wrong:
        yield "od", {"ObjectName": "M", "DynamicQName": name}, frozenset({2011}), "3.3"


OPEN_OPTIONS: list[tuple[Any, int, str]] = [
    (0, 2046, "3.2 rule 1, trap 22"),
    *((signed(1 << n), 2046, "3.2 rule 1") for n in range(23, 32)),
    *((16 | signed(1 << n), 2046, "3.2 rule 1") for n in range(23, 32)),
    *((a | b, 2046, "3.2 rule 1") for a, b in combinations((1, 2, 4), 2)),
    *((16 | a | b, 2046, "3.2 rule 1") for a, b in combinations((16384, 32768, 4194304), 2)),
    (1 | 524288 | 1048576, 2046, "3.2 rule 1"),
    (16 | 128, 2046, "3.2 rule 7"),
    *((8 | one, 2046, "3.2 rule 1") for one in (256, 512, 1024, 2048, 2097152)),
    (16 | 131072, 2046, "3.2 rule 6"),
    *((one, 2046, "3.2 rule 1") for one in (128, 4096, 8192, 65536, 262144, 524288)),
    *((one, 2046, "not a number of 32 bits") for one in (2**32, 2**64, -(2**40))),
    *((one, 2046, "not an integer") for one in (None, "16", 16.0, b"", [], True)),
]

CLOSE_OPTIONS: list[tuple[Any, int, str]] = [
    *((one, 2046, "2.1") for one in (3, 5, 6, 7, 9, 10, 12, 33, 34, 36, 40, 48, 63)),
    *((signed(1 << n), 2046, "2.1") for n in (4, *range(6, 32))),
    *((one, 2046, "not a number of 32 bits") for one in (2**32, 2**64, -(2**40))),
    *((one, 2046, "not an integer") for one in (None, "0", 0.0, b"", [])),
    (1, 2045, "2.2: predefined queue"),
    (2, 2045, "2.2: predefined queue"),
    (4, 2045, "2.1: no subscription"),
    (8, 2045, "2.1: no subscription"),
]

INQUIRED: list[tuple[Any, frozenset[int], str]] = [
    *(([one], frozenset({2067}), "7.1") for one in (0, -1, 1999, 4001, LOW, HIGH, 2**40)),
    *(([10, one], frozenset({2067}), "7.1") for one in (0, 4000)),
    ([10] * 257, frozenset({2066}), "7.1"),
    *(([one], frozenset({2067}), "not an integer") for one in (None, "10", 10.0)),
    *((one, frozenset({2065, 2067}), "no list") for one in (None, 10)),
]

SET_VALUES: list[tuple[Any, frozenset[int], str]] = [
    *(({one: bad}, frozenset({2020}), "7.1") for one in (9, 10) for bad in (2, -1, LOW, HIGH)),
    *(({24: bad}, frozenset({2075}), "7.1") for bad in (2, -1)),
    *(({29: bad}, frozenset({2076}), "7.1") for bad in (0, -1, LOW, 1000000000)),
    *(({26: bad}, frozenset({2077}), "7.1") for bad in (10, -1)),
    *(({28: bad}, frozenset({2078}), "7.1") for bad in (4, -1)),
    *(({one: 1}, frozenset({2067}), "7.1") for one in (3, 15, 20, 0, -1, 999, 2016, 4001)),
    ({10: 1, 9: 2}, frozenset({2020}), "7.1: all or nothing"),
    ({9: 1, 3: 1}, frozenset({2067}), "7.1: all or nothing"),
    *(({9: bad}, frozenset({2020, 2067}), "not an integer") for bad in (None, "1", 0.5)),
    *((one, frozenset({2065, 2067}), "no mapping") for one in (None, 9)),
]

# Versions of each structure; those without StrucId have none.
VERSIONS: dict[str, tuple[int, ...]] = {
    "MQMD": (1, 2),
    "MQMDE": (2,),
    "MQOD": (1, 2, 3, 4),
    "MQOR": (0,),
    "MQRR": (0,),
    "MQPMR": (0,),
    "MQPMO": (1, 2, 3),
    "MQGMO": (1, 2, 3, 4),
    "MQDLH": (1,),
    "MQXQH": (1,),
    "MQCNO": (1, 2, 3, 4, 5, 6, 7, 8),
    "MQBO": (1,),
    "MQSTS": (1, 2),
}

# What is no Hconn, no Hobj: made from those of the test by name.
CONNECTIONS = ("None", "0", "-1", "7", "text", "ended", "Hobj")
HANDLES = ("None", "0", "-1", "7", "large", "text", "closed", "of another connection", "Hconn")

PUTS: list[Row] = [*descriptor(), *put_options()]
GETS: list[Row] = list(get_options())
OPENS: list[Row] = list(object_descriptor())
DYNAMIC: list[Row] = list(dynamic_names())

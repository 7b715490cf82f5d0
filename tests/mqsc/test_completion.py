"""Completions of the shell, and the help about attributes."""

from __future__ import annotations

import pytest

from penstock.mqsc.completion import suggest
from penstock.mqsc.guide import guide
from penstock.mqsc.words import NOUNS
from penstock.objects import TYPES

OBJECTS = {
    "QLOCAL": ["ORDERS", "orders.lower"],
    "QALIAS": ["O.ALIAS"],
    "PROCESS": ["START.ME"],
    "CHANNEL": ["TO.QM2"],
}


def names(kinds: tuple[str, ...], prefix: str) -> list[str]:
    return [name for kind in kinds for name in OBJECTS.get(kind, ()) if name.startswith(prefix)]


def words(text: str, platform: str = "unix") -> list[str]:
    return [one.word for one in suggest(text, names, platform)[1]]


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("de", ["DEFINE", "DELETE"]),
        ("p", ["PING"]),
        ("DEFINE QL", ["QLOCAL"]),
        ("clear ", ["QLOCAL"]),
        ("DIS QM", ["QMGR", "QMODEL", "QMSTATUS"]),
        ("DIS QL(O", ["ORDERS"]),
        ("DIS QL(o", ["'orders.lower'", "ORDERS"]),
        ("DIS QL('ord", ["'orders.lower'", "ORDERS"]),
        ("DIS QUEUE(o.", ["O.ALIAS"]),
        ("DEF QL(NEW) LIKE(ORDERS", ["ORDERS"]),
        ("DEF QL(A) MAXD", ["MAXDEPTH("]),
        ("DEF QL(A) NOS", ["NOSHARE"]),
        ("DEF QL(A) REP", ["REPLACE"]),
        ("DEF QL(A) REPLACE REP", []),
        ("DEF QL(A) CURD", []),
        ("DIS QL(A) CURD", ["CURDEPTH"]),
        ("DEF QL(A) PUT(", ["DISABLED", "ENABLED"]),
        ("DEF QL(A) PUT(d", ["DISABLED"]),
        ("DEF QL(A) PROCESS(", ["START.ME"]),
        ("DEF QA(A) TARGQ(ORD", ["ORDERS"]),
        ("DIS QL(*) WHERE(CURD", ["CURDEPTH"]),
        ("DIS QL(*) WHERE(CURDEPTH G", ["GE", "GT"]),
        ("DIS QL(*) WHERE(PUT EQ ", ["DISABLED", "ENABLED"]),
        ("DIS QS(ORD", ["ORDERS"]),
        ("DIS QS(ORDERS) UN", ["UNCOM"]),
        ("DIS Q(*) TYPE(QA", ["QALIAS"]),
        ("DIS CHL(", ["TO.QM2"]),
        ("FROB ", []),
        ("START CHANNEL(", []),
    ],
)
def test_completion_offers_what_can_stand_there(text: str, offered: list[str]) -> None:
    assert words(text) == offered


def test_completion_replaces_the_typed_part_of_the_word() -> None:
    assert suggest("DEF QL(A) maxd", names)[0] == 4
    assert suggest("DEF QL(A) ", names)[0] == 0


def test_completion_knows_the_platform() -> None:
    assert words("DEF QL(A) INDX", "zos") == ["INDXTYPE("]
    assert words("DEF QL(A) INDX", "unix") == []


def test_the_guide_has_every_attribute_of_every_kind() -> None:
    for noun, row in NOUNS.items():
        text = "\n".join(guide(noun.lower()))
        for kind in row.kinds:
            for keyword, attribute in TYPES[kind].attributes.items():
                assert f"  {keyword} " in text, (noun, keyword)
                if noun != "QUEUE":  # its types explain DEFTYPE in two ways
                    assert attribute.help in text, (noun, keyword)
        assert all(len(line) <= 110 for line in text.splitlines())


def test_the_guide_shows_range_and_default() -> None:
    assert guide("ql", "maxdepth") == [
        "  MAXDEPTH   Most messages on the queue",
        "             a number from 0 to 999999999; default 5000",
    ]
    assert "default NOSHARE" in "\n".join(guide("QMODEL", "SHARE"))
    assert guide("QLOCAL", "COLOUR") == guide("FROB") == []

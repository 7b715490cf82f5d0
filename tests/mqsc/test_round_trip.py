"""The output of DISPLAY, written as DEFINE, gives the same definition again."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock
from penstock.mqsc import as_command, parse, read_commands, run
from penstock.mqsc.source import LINE_LENGTH_MAX
from penstock.objects import TYPES, Attribute, Definition

KINDS = (
    "QLOCAL", "QALIAS", "QREMOTE", "QMODEL", "PROCESS", "NAMELIST", "TOPIC", "CHANNEL", "LISTENER",
    "SERVICE", "AUTHINFO", "COMMINFO", "SUB", "CHLAUTH",
)  # fmt: skip
# What some types and subtypes need.
NEEDED = {
    "CONNAME": "X", "XMITQ": "X", "OCSPURL": "X", "ADDRESS": "X", "CLNTUSER": "X", "QMNAME": "X",
    "SSLPEER": "X",
}  # fmt: skip
STAMPS = {"crdate", "crtime", "altdate", "alttime"}
NAMES = st.text("ABCz09._/%", min_size=1, max_size=20)
NASTY = st.text("aZ'*+-; ,()\u00e4\u20ac", max_size=40)


def values(row: Attribute) -> st.SearchStrategy[Any]:
    """Values that an attribute takes on platform UNIX."""
    if row.choices:
        return st.lists(st.sampled_from(row.choices), min_size=1, max_size=row.many)
    if row.many and not row.name:
        return st.lists(NASTY.map(lambda text: text[: row.length // 4]), max_size=5)
    if row.many:
        return st.lists(NAMES, max_size=5) | st.lists(NAMES, min_size=60, max_size=60)
    if row.hexadecimal:
        return st.text("0123456789ABCDEFabcdef", max_size=row.length)
    if row.name:
        return NAMES.map(lambda text: text[: row.length])
    if row.keyword == "TOPICSTR":
        return st.sampled_from(["a/b", "*" * 5000, " " * 1895 + "* ;'" * 1000 + "x", "'" * 3333])
    if row.is_text:
        return NASTY.filter(lambda text: len(text.encode()) <= row.length)
    words = list(row.words_on("unix"))
    numbers = st.integers(row.low, row.high) if row.high >= row.low else st.nothing()
    return st.sampled_from(words) | numbers if words else numbers


@st.composite
def definitions(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A type and attributes that define() takes."""
    kind = TYPES[draw(st.sampled_from(KINDS))]
    subtype = draw(st.sampled_from(list(kind.subtype.words))) if kind.subtype is not None else ""
    chosen: dict[str, Any] = {}
    for row in kind.attributes.values():
        if row.display_only or row.secret or not row.applies("unix", subtype):
            continue
        if draw(st.booleans()):
            chosen[row.keyword.lower()] = draw(values(row))
        if subtype and row.keyword in NEEDED:
            chosen[row.keyword.lower()] = NEEDED[row.keyword]
    if kind.subtype is not None:
        chosen[kind.subtype.keyword.lower()] = subtype
    if subtype.startswith("BLOCK"):  # a list without items is no record
        chosen[{"BLOCKUSER": "userlist", "BLOCKADDR": "addrlist"}[subtype]] = ["X"]
    if kind.name in ("TOPIC", "SUB"):
        chosen["topicstr"] = chosen.get("topicstr") or "a/b"
    if "cluster" in chosen:
        chosen.pop("clusnl", None)
    if chosen.get("usage") == "XMITQ":
        chosen.pop("streamq", None)
    if kind.name == "QMODEL":
        chosen["deftype"] = "PERMDYN"
    return kind.name, chosen


def content(definition: Definition) -> dict[str, Any]:
    """The attributes that must be equal: all except the times."""
    return {key: value for key, value in definition.items() if key not in STAMPS}


def identity(definition: Definition) -> dict[str, Any]:
    """What tells an object from others of its name."""
    rows = TYPES[str(definition["type"])].identity
    return {
        row.keyword.lower(): definition[row.keyword] for row in rows if row.keyword in definition
    }


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(example=definitions())
def test_a_definition_written_as_a_command_defines_the_same_object(
    shared: penstock.QueueManager, example: tuple[str, dict[str, Any]]
) -> None:
    kind, attributes = example
    shared.define(kind, "ROUND.TRIP", replace=False, **attributes)
    (before,) = shared.display(kind, "ROUND.TRIP")
    try:
        text = as_command(before)
        assert all(len(line) <= LINE_LENGTH_MAX for line in text.splitlines())
    finally:
        shared.delete(kind, "ROUND.TRIP", **identity(before))
    (reply,) = run(shared, text)
    try:
        assert reply.ok, (reply.lines, text)
        (after,) = shared.display(kind, "ROUND.TRIP")
    finally:
        shared.delete(kind, "ROUND.TRIP", **identity(before))
    assert content(after) == content(before)
    (source,) = read_commands(as_command(after).splitlines())
    assert parse(source.text) == parse(reply.command)


def test_the_queue_manager_and_structures_round_trip_too(home: Any) -> None:
    penstock.create("ZOS1", home, platform="zos")
    with penstock.connect("ZOS1", home) as zos:
        text = "ALTER QMGR DEADQ(D) EXPRYINT(60)\nDEF CFSTRUCT(S) RECOVER(YES)\n"
        text += "DEF QL(Q) QSGDISP(SHARED) CFSTRUCT(S) INDXTYPE(GROUPID)"
        assert all(reply.ok for reply in run(zos, text))
        for kind, name in (("QMGR", "ZOS1"), ("CFSTRUCT", "S"), ("QLOCAL", "Q")):
            (before,) = zos.display(kind, name)
            (reply,) = run(zos, as_command(before))
            assert reply.ok, reply.lines
            (after,) = zos.display(kind, name)
            assert content(after) == content(before)

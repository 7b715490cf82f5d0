"""The tables of attributes: what each type has, its defaults, ranges, words, and the codec."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from penstock import MQError, objects
from penstock.objects import TYPES, Attribute, ObjectType

ROWS = [(kind, row) for kind in TYPES.values() for row in kind.attributes.values()]
SETTABLE = [(kind, row) for kind, row in ROWS if not row.display_only]


def name_of(value: object) -> str:
    """The id of a row in the name of a test."""
    return value.name if isinstance(value, ObjectType) else getattr(value, "keyword", "")


def good_values(row: Attribute) -> Iterator[object]:
    """Values that an attribute takes: the ends of its range, each word, a text of full length."""
    if row.choices:
        yield list(row.choices)
        yield [row.choices[-1].lower()]
    elif row.many:
        yield ["A", "B.C"]
        yield ["N" * row.length] * row.many
    elif row.secret:
        yield ""
    elif row.length:
        yield ""
        yield ("F" if row.hexadecimal else "N") * row.length
    else:
        if row.high >= row.low:
            yield from (row.low, row.high, str(row.high))
        yield from row.words
        yield from (word.lower() for word in row.words)


def bad_values(row: Attribute) -> Iterator[object]:
    """Values that an attribute refuses: beside each end of its range, wrong words, wrong types."""
    yield from (None, 1.5, b"x")
    if row.choices:
        yield [row.choices[0]] * (row.many + 1)
        yield ["NOSUCHWORD"]
    elif row.many:
        yield ["A"] * (row.many + 1)
        yield ["A B"] if row.name else ["A\nB"]
    elif row.secret:
        yield "x"
    elif row.length:
        if row.hexadecimal:
            yield "0G"
        yield "N" * (row.length + 1)
        yield "a\0b"
        yield 1
        if row.name:
            yield "a b"
    else:
        numbers = set(row.words.values())
        ends = {row.low, row.high} if row.high >= row.low else set()
        beside = {number + step for number in numbers | ends for step in (-1, 1)}
        yield from (n for n in beside if n not in numbers and not row.low <= n <= row.high)
        yield from ("NOSUCHWORD", "", "-1", "1.0")


def test_every_selector_and_keyword_is_declared_once_in_a_type() -> None:
    for kind in TYPES.values():
        rows = list(kind.attributes.values())
        assert len({row.selector for row in rows}) == len(rows), kind
        words = [word for row in rows for word in (row.keyword, *row.synonyms)]
        assert len(set(words)) == len(words), kind
        assert set(kind.by_selector) >= {row.selector for row in rows}


def test_a_selector_means_one_keyword_in_all_queues() -> None:
    keywords: dict[int, str] = {}
    for kind in TYPES.values():
        if kind.is_queue or kind.name == "QCLUSTER":
            for row in kind.attributes.values():
                assert keywords.setdefault(row.selector, row.keyword) == row.keyword


@pytest.mark.parametrize(("kind", "row"), ROWS, ids=name_of)
def test_an_attribute_is_declared_whole(kind: ObjectType, row: Attribute) -> None:
    assert row.help and row.help[0].isupper() and not row.help.endswith(".")
    assert bool(row.length) == isinstance(row.default, str)
    family = (2001, 4000) if row.length else (1, 2000)
    if row.hexadecimal:
        family = (7001, 8000)  # MQBACF_*: bytes
    elif row.choices:
        family = (1, 2000)  # lists of integers
    assert family[0] <= row.selector <= family[1]
    if not row.display_only:
        assert row.parse(row.show(row.default)) == row.default
        assert row.parse(row.show(row.default_zos)) == row.default_zos
    assert row.keyword.isupper() and row.keyword.isalnum()
    assert not (row.settable and row.display_only)
    assert row.force in ("", "open", "inputs", "messages")


@pytest.mark.parametrize(("kind", "row"), SETTABLE, ids=name_of)
def test_an_attribute_takes_the_ends_of_its_range_and_each_word(
    kind: ObjectType, row: Attribute
) -> None:
    for value in good_values(row):
        stored = row.parse(value)
        assert row.parse(row.show(stored)) == stored
        assert objects.parse_all(kind, {row.keyword.lower(): value}) == {row.selector: stored}


@pytest.mark.parametrize(("kind", "row"), SETTABLE, ids=name_of)
def test_an_attribute_refuses_what_lies_beside_its_range_and_every_wrong_word(
    kind: ObjectType, row: Attribute
) -> None:
    for value in bad_values(row):
        with pytest.raises(MQError) as caught:
            row.parse(value)
        assert row.keyword in str(caught.value)
        assert isinstance(caught.value, (ValueError, TypeError))


@pytest.mark.parametrize(
    ("kind", "keyword", "value", "reason"),
    [
        ("QLOCAL", "PUT", 2, 2020),
        ("QALIAS", "GET", 2, 2020),
        ("QLOCAL", "TRIGGER", 2, 2075),
        ("QLOCAL", "TRIGDPTH", 0, 2076),
        ("QLOCAL", "TRIGMPRI", 10, 2077),
        ("QLOCAL", "TRIGTYPE", 4, 2078),
        ("QLOCAL", "DEFPSIST", 2, 2047),
        ("QLOCAL", "DEFPRTY", 10, 2050),
        ("QREMOTE", "RNAME", "a b", 2152),
    ],
)
def test_a_bad_value_has_the_reason_code_of_its_attribute(
    kind: str, keyword: str, value: object, reason: int
) -> None:
    with pytest.raises(MQError) as caught:
        TYPES[kind].attributes[keyword].parse(value)
    assert caught.value.reason == reason


def test_display_only_attributes_cannot_be_set() -> None:
    for kind, row in ROWS:
        if row.display_only:
            with pytest.raises(ValueError, match="display-only"):
                objects.parse_all(kind, {row.keyword: row.show(row.default)})


def test_attributes_and_words_of_zos_are_refused_elsewhere() -> None:
    for kind, row in SETTABLE:
        value = next(good_values(row))
        if row.platform == "zos":
            with pytest.raises(ValueError, match="platform z/OS"):
                objects.parse_all(kind, {row.keyword: value}, "unix")
        for word in row.zos_words:
            with pytest.raises(ValueError, match="platform z/OS"):
                objects.parse_all(kind, {row.keyword: word}, "unix")
            assert objects.parse_all(kind, {row.keyword: word}, "zos")


@pytest.mark.parametrize(
    ("kind", "keyword", "stored", "on_zos"),
    [
        ("QLOCAL", "DEFPSIST", 0, 0),
        ("QLOCAL", "DEFPRTY", 0, 0),
        ("QLOCAL", "MAXDEPTH", 5000, 999999999),
        ("QLOCAL", "MAXMSGL", 4194304, 4194304),
        ("QLOCAL", "QDEPTHHI", 80, 80),
        ("QLOCAL", "QDEPTHLO", 20, 40),
        ("QLOCAL", "DEFSOPT", 2, 2),
        ("QMODEL", "DEFSOPT", 4, 4),
        ("QLOCAL", "SHARE", 1, 1),
        ("QMODEL", "SHARE", 0, 0),
        ("QMODEL", "DEFTYPE", 3, 3),
        ("QLOCAL", "DEFTYPE", 1, 1),
        ("QMODEL", "HARDENBO", 0, 0),
        ("QALIAS", "TARGTYPE", 1, 1),
        ("QREMOTE", "DEFBIND", 0, 0),
        ("CFSTRUCT", "CFLEVEL", 3, 3),
        ("CFSTRUCT", "RECOVER", 0, 0),
        ("CHANNEL", "BATCHSZ", 50, 50),
        ("CHANNEL", "BATCHLIM", 5000, 5000),
        ("CHANNEL", "SEQWRAP", 999999999, 999999999),
        ("CHANNEL", "NPMSPEED", 2, 2),
        ("CHANNEL", "CLWLWGHT", 50, 50),
        ("QMGR", "MAXPRTY", 9, 9),
        ("QMGR", "MAXUMSGS", 10000, 10000),
        ("QMGR", "PLATFORM", 3, 1),
        ("PROCESS", "APPLTYPE", 6, 2),
    ],
)
def test_shipped_defaults_are_the_references(
    kind: str, keyword: str, stored: int, on_zos: int
) -> None:
    row = TYPES[kind].attributes[keyword]
    assert (row.default_on("unix"), row.default_on("zos")) == (stored, on_zos)


def test_attribute_lists_come_back_from_their_encoding() -> None:
    stored = dict(TYPES["QLOCAL"].defaults) | {2013: "Ä description", 15: 7, 2004: "", 61: -3}
    raw = objects.encode(stored)
    assert len(raw) % 8 == 0
    assert objects.decode(raw) == stored
    with pytest.raises(struct.error):
        objects.decode(raw[:20])


def test_a_list_leaves_out_the_defaults_and_reading_brings_them_back() -> None:
    for kind in TYPES.values():
        whole = dict(kind.defaults)
        assert set(objects.pruned(kind, whole)) == kind.always
        raw = objects.encode(objects.pruned(kind, whole))
        assert objects.read(kind, raw) == whole
        assert objects.read(kind, b"") == whole


def test_a_namelist_of_256_names_comes_back() -> None:
    row = TYPES["NAMELIST"].attributes["NAMES"]
    names = [f"{number:048d}" for number in range(256)]
    stored = {row.selector: row.parse(names)}
    assert objects.names_of(objects.decode(objects.encode(stored))) == names
    assert objects.names_of({}) == []


def test_keywords_are_found_in_any_case_and_by_synonym() -> None:
    assert TYPES["QALIAS"].attribute("targq") is TYPES["QALIAS"].attributes["TARGET"]
    with pytest.raises(ValueError, match="do you mean maxdepth"):
        TYPES["QLOCAL"].attribute("MAXDEPHT")

"""The name of a prepared unit of work: a value that can be compared, printed, read and pickled."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest

import penstock
from penstock import Xid

SPARK = int.from_bytes(b"PSPK", "big")


def random_xid(rng: random.Random) -> Xid:
    gtrid = rng.randbytes(rng.choice((1, 2, 16, 64)))
    bqual = rng.choice((b"", b"0", b"0x", b"a-b_c.d", rng.randbytes(rng.randrange(65))))
    return Xid(rng.randrange(1 << 31) - rng.randrange(2) * (1 << 31), gtrid, bqual)


@pytest.mark.parametrize(
    ("xid", "text"),
    [
        (Xid(SPARK, b"7f3a-01", b"12"), "PSPK:7f3a-01:12"),
        (Xid(0, b"x"), "0:x"),
        (Xid(-7, b"\0\xff"), "-7:0x00ff"),
        (Xid(5, b"a:b", b"c d"), "5:0x613a62:0x632064"),
        (Xid(5, b"0x41"), "5:0x30783431"),
        (Xid(1 << 30, b"Z" * 64, b"9" * 64), f"{1 << 30}:{'Z' * 64}:{'9' * 64}"),
    ],
)
def test_the_text_is_readable_and_reads_back(xid: Xid, text: str) -> None:
    assert str(xid) == text
    assert Xid.parse(text) == xid


def test_every_xid_survives_its_text_its_repr_and_a_pickle() -> None:
    rng = random.Random(5)
    for _ in range(500):
        xid = random_xid(rng)
        copies = (Xid.parse(str(xid)), eval(repr(xid)), pickle.loads(pickle.dumps(xid)))
        assert all(copy == xid and hash(copy) == hash(xid) for copy in copies)
        assert str(xid).isascii() and str(xid).isprintable() and " " not in str(xid)


def test_order_and_equality_are_those_of_format_global_id_and_qualifier() -> None:
    rng = random.Random(6)
    xids = [random_xid(rng) for _ in range(200)]
    parts = sorted((x.format_id, x.gtrid, x.bqual) for x in xids)
    assert [(x.format_id, x.gtrid, x.bqual) for x in sorted(xids)] == parts
    one, other = Xid(1, b"a"), Xid(1, b"a", b"b")
    assert one < other and one <= other and other > one and other >= one and one != other
    assert len({one, other, Xid(1, b"a")}) == 2
    assert (one == (1, b"a", b"")) is False
    with pytest.raises(TypeError):
        assert one < (1, b"a", b"c")  # type: ignore[operator]


def test_an_xid_cannot_be_changed() -> None:
    xid = Xid(1, bytearray(b"a"), memoryview(b"b"))
    for name in ("format_id", "gtrid", "bqual", "more"):
        with pytest.raises(AttributeError):
            setattr(xid, name, 1)
    assert (xid.format_id, xid.gtrid, xid.bqual) == (1, b"a", b"b")


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ((1, b""), penstock.InvalidValue),
        ((1, b"a" * 65), penstock.InvalidValue),
        ((1, b"a", b"b" * 65), penstock.InvalidValue),
        ((1 << 31, b"a"), penstock.InvalidValue),
        ((-1, b"a"), penstock.InvalidValue),
        ((1, "a"), penstock.InvalidType),
        (("1", b"a"), penstock.InvalidType),
        ((True, b"a"), penstock.InvalidType),
    ],
)
def test_wrong_parts_are_refused(arguments: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        Xid(*arguments)


OTHER_TEXTS = [
    "a",
    "PSPK",
    "PSPK:",
    "1:0x",
    "1:0x1",
    "1:0xAG",
    "1_0:a",
    "pspk:a",
    "9999999999:a",
    "1:a:b:c",
    "-1:a",
    "--1:a",
    "1:a:",
]


@pytest.mark.parametrize(
    "text", ["", "1: a", " 1:a", "1:" + "a" * 65, "\N{SUPERSCRIPT TWO}:a", *OTHER_TEXTS]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(penstock.InvalidValue):
        Xid.parse(text)

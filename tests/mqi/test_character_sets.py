"""Character sets by CCSID, and MQXCNVC."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import mqi
from penstock.mqi.character_sets import CODECS, character_set, converted, known_ccsids

EVERYTHING = bytes(range(256))
MADE = [
    ccsid for ccsid in known_ccsids() if ccsid not in CODECS and ccsid not in (1200, 13488, 17584)
]
FILL = mqi.MQDCC_FILL_TARGET_BUFFER
SOURCE_BIG, TARGET_LITTLE = mqi.MQDCC_SOURCE_ENC_NORMAL, mqi.MQDCC_TARGET_ENC_REVERSED


def made(ccsid: int) -> Any:
    found = character_set(ccsid)
    assert found is not None
    return found


@pytest.mark.parametrize("ccsid", known_ccsids())
def test_every_listed_set_has_the_characters_of_names(ccsid: int) -> None:
    known, utf_8 = made(ccsid), made(1208)
    name = b"ABCXYZabcxyz0123456789./_% "
    there = converted(name, utf_8, "<", known, "<")
    assert converted(there, known, "<", utf_8, "<") == name
    assert len(there) == len(name) * (2 if known.is_wide else 1)


@pytest.mark.parametrize("ccsid", MADE)
def test_a_table_of_ours_is_a_permutation_of_256_characters(ccsid: int) -> None:
    text = made(ccsid).decode(EVERYTHING, "<")
    assert len(set(text)) == 256
    assert made(ccsid).encode(text, "<") == EVERYTHING
    assert text[:0x40] == EVERYTHING.decode("cp037")[:0x40]  # the control characters of EBCDIC


# Characters that tell the pages apart: byte -> character, from the published tables.
LANDMARKS = {
    277: {0x5B: "Å", 0x7B: "Æ", 0x7C: "Ø", 0x5A: "¤"},
    278: {0x7B: "Ä", 0x7C: "Ö", 0x71: "\\", 0xE0: "É"},
    280: {0x90: "[", 0x51: "]", 0x7B: "£", 0x9F: "¤"},
    284: {0x7B: "Ñ", 0x4A: "[", 0x5A: "]"},
    285: {0x5B: "£", 0x4A: "$", 0xA1: "¯"},
    297: {0x44: "@", 0x7C: "à", 0x90: "["},
    871: {0x4A: "Þ", 0xC0: "þ", 0x5A: "Æ"},
    1047: {0xAD: "[", 0xBD: "]", 0x5F: "^", 0xB0: "¬", 0xBA: "Ý", 0xBB: "¨"},
    1141: {0x9F: "€", 0x4A: "Ä", 0xE0: "Ö"},
    1143: {0x5A: "€", 0x7B: "Ä"},
    1148: {0x9F: "€", 0x4A: "["},
    1149: {0x9F: "€", 0x4A: "Þ"},
}


@pytest.mark.parametrize("ccsid", LANDMARKS)
def test_the_landmarks_of_a_page_are_in_place(ccsid: int) -> None:
    text = made(ccsid).decode(EVERYTHING, "<")
    assert {at: text[at] for at in LANDMARKS[ccsid]} == LANDMARKS[ccsid]


def test_a_page_with_the_euro_sign_differs_from_its_older_one_in_that_alone() -> None:
    pairs = {1141: 273, 1142: 277, 1143: 278, 1144: 280, 1145: 284, 1146: 285, 1147: 297,
             1148: 500, 1149: 871, 1140: 37}  # fmt: skip
    for newer, older in pairs.items():
        texts = made(newer).decode(EVERYTHING, "<"), made(older).decode(EVERYTHING, "<")
        differing = {(a, b) for a, b in zip(*texts, strict=True) if a != b}
        assert differing == {("€", "¤")}, newer


@pytest.mark.parametrize("ccsid", [-4, -1, 0, 1, 99999, 1 << 40])
def test_another_ccsid_is_none(ccsid: int) -> None:
    assert character_set(ccsid) is None


# ---- MQXCNVC ----


def test_characters_are_converted(mq: Any) -> None:
    assert mqi.MQXCNVC(mq.h, 0, 37, b"\xc1\x15", 819) == (b"A\n", 2, 0, 0)
    assert mqi.MQXCNVC(mq.h, 0, 1047, bytearray(b"\xad"), 0) == (b"[", 1, 0, 0)
    both = SOURCE_BIG | TARGET_LITTLE
    assert mqi.MQXCNVC(mq.h, both, 1200, b"\0A", 1200) == (b"A\0", 2, 0, 0)
    assert mqi.MQXCNVC(mq.h, mqi.MQDCC_DEFAULT_CONVERSION, 819, b"", 500) == (b"", 0, 0, 0)


def test_a_string_that_is_too_long_is_cut_with_2120(mq: Any) -> None:
    assert mqi.MQXCNVC(mq.h, 0, 819, b"\xe4\xe4", 1208, 3) == ("ä".encode(), 2, 1, 2120)
    assert mqi.MQXCNVC(mq.h, 0, 819, b"\xe4\xe4", 1208, 4) == ("ää".encode(), 4, 0, 0)


def test_a_target_is_filled(mq: Any) -> None:
    assert mqi.MQXCNVC(mq.h, FILL, 819, b"A", 37, 3) == (b"\xc1\x40\x40", 3, 0, 0)
    assert mqi.MQXCNVC(mq.h, FILL, 819, b"\xe4  ", 1208, 2) == ("ä".encode(), 2, 0, 0)
    assert mqi.MQXCNVC(mq.h, FILL, 819, b"\xe4\0xyz", 1208, 3) == ("ä\0".encode(), 3, 0, 0)
    assert mqi.MQXCNVC(mq.h, FILL, 819, b"\xe4\xe4", 1208, 3) == ("ä ".encode(), 3, 1, 2120)
    wide = FILL | TARGET_LITTLE
    assert mqi.MQXCNVC(mq.h, wide, 819, b"A", 1200, 4) == (b"A\0 \0", 4, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((4, 819, b"", 37), 2046),
        ((1 << 20, 819, b"", 37), 2046),
        (("", 819, b"", 37), 2046),
        ((True, 819, b"", 37), 2046),
        ((0, 99999, b"", 37), 2111),
        ((0, -2, b"", 37), 2111),
        ((0, "819", b"", 37), 2111),
        ((0, 819, b"", 99999), 2115),
        ((0, 1200, b"AB", 37), 2112),
        ((48, 819, b"AB", 37), 2112),
        ((0, 819, b"AB", 1200), 2116),
        ((16, 1200, b"ABC", 37), 2143),
        ((0, 819, b"", 37, -1), 2144),
        ((0, 819, b"", 37, "5"), 2144),
        ((0, 819, b"", 37, 2**31), 2144),
        ((FILL, 819, b"", 37), 2144),
        ((FILL | 512, 819, b"", 1200, 3), 2144),
        ((0, 819, "text", 37), 2145),
        ((0, 819, None, 37), 2145),
        ((0, 1208, b"\xff", 37), 2150),
        ((16, 1200, b"\xd8\x00", 37), 2150),
    ],
)
def test_what_cannot_be_converted_fails(mq: Any, arguments: tuple[Any, ...], reason: int) -> None:
    assert mqi.MQXCNVC(mq.h, *arguments) == (b"", 0, 2, reason)
    assert mq.h.error


def test_without_a_connection_it_is_2018(mq: Any) -> None:
    assert mqi.MQXCNVC(None, 0, 819, b"", 37) == (b"", 0, 2, 2018)

"""MQRFH2: literal bytes, in both directions; names; and no other exception for any input."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import InvalidValue, MQError
from penstock.headers import rfh2
from penstock.headers.rfh2 import Header, HeaderError

LITTLE, BIG = 546, 273

HAND_LITTLE = (
    b"RFH "
    b"\x02\x00\x00\x00"  # Version
    b"\x60\x00\x00\x00"  # StrucLength: 36 + 4 + 56
    b"\x11\x01\x00\x00"  # Encoding 273
    b"\xb8\x04\x00\x00"  # CodedCharSetId 1208
    b"MQSTR   "
    b"\x00\x00\x00\x00"  # Flags
    b"\xb8\x04\x00\x00"  # NameValueCCSID 1208
    b"\x38\x00\x00\x00"  # NameValueLength
    b"<usr><n dt='i4'>5</n><t>a &lt; b</t><u></u></usr>       "
)
HAND_BIG = (
    b"RFH "
    b"\x00\x00\x00\x02"
    b"\x00\x00\x00\x84"  # 36 + 4 + 44 + 4 + 44
    b"\x00\x00\x02\x22"  # Encoding 546
    b"\x00\x00\x03\x33"  # CodedCharSetId 819
    b"        "
    b"\x00\x00\x00\x00"
    b"\x00\x00\x04\xb8"
    b"\x00\x00\x00\x2c"
    b"<jms><Dst>queue:///A</Dst><Dlv>2</Dlv></jms>"
    b"\x00\x00\x00\x2c"
    b'<usr><x xsi:nil="true"></x><y>\xc3\xbc</y></usr>  '
)


def one(*folders: bytes, order: str = "<", ccsid: int = 1208, **fields: Any) -> bytes:
    """A header of these folders, which are padded; fields by their names."""
    pairs = b""
    for folder in folders:
        folder += b" " * (-len(folder) % 4)
        pairs += struct.pack(f"{order}i", len(folder)) + folder
    known = {"id": b"RFH ", "version": 2, "length": 36 + len(pairs), "encoding": LITTLE,
             "inner": 1208, "format": b"MQSTR   ", "flags": 0, "ccsid": ccsid}  # fmt: skip
    return struct.pack(f"{order}4s4i8s2i", *{**known, **fields}.values()) + pairs


def refused(body: bytes, encoding: int = LITTLE) -> HeaderError:
    with pytest.raises(HeaderError) as caught:
        rfh2.parse(body, encoding)
    return caught.value


def properties(*folders: bytes) -> dict[str, str | None]:
    return rfh2.parse(one(*folders), LITTLE).properties


# ---- literal bytes ----


def test_a_literal_header_with_the_low_byte_first() -> None:
    assert len(HAND_LITTLE) == 0x60
    assert rfh2.parse(HAND_LITTLE + b"body", LITTLE) == Header(
        {"n": "5", "t": "a < b", "u": ""}, "MQSTR", 1208, 273, 0x60
    )


def test_a_literal_header_with_the_high_byte_first() -> None:
    assert len(HAND_BIG) == 0x84
    assert rfh2.parse(memoryview(HAND_BIG + b"body"), BIG) == Header(
        {"jms.Dst": "queue:///A", "jms.Dlv": "2", "x": None, "y": "ü"}, "", 819, LITTLE, 0x84
    )


@pytest.mark.parametrize(("own", "order"), [(LITTLE, "<"), (BIG, ">")])
def test_a_written_header_is_exactly_these_bytes(own: int, order: str) -> None:
    made = rfh2.build(
        {"a": "1 & 2", "f.g.h": "x", "b": None, "jms.Dst": "q", "f.i": "<\r>"},
        "MQSTR", 819, BIG, own_encoding=own,
    )  # fmt: skip
    assert made == one(
        b"<usr><a>1 &amp; 2</a><b xsi:nil='true'></b></usr>",
        b"<f content='properties'><g><h>x</h></g><i>&lt;&#13;&gt;</i></f>",
        b"<jms><Dst>q</Dst></jms>",
        order=order, encoding=BIG, inner=819,
    )  # fmt: skip


@pytest.mark.parametrize("ccsid", [1200, 13488, 17584])
def test_utf_16_is_read_in_the_order_of_the_integers(ccsid: int) -> None:
    text = "<usr><größe>€ 𝄞</größe></usr>"
    for order, encoding, mark in (("<", LITTLE, ""), (">", BIG, "\ufeff")):
        codec = "utf-16-le" if order == "<" else "utf-16-be"
        folder = (mark + text).encode(codec)
        folder += " ".encode(codec) * (len(folder) % 4 // 2)
        body = one(folder, order=order, ccsid=ccsid)
        assert rfh2.parse(body, encoding).properties == {"größe": "€ 𝄞"}


def test_headers_in_a_row_are_read_each_in_the_byte_order_given_by_the_previous_one() -> None:
    first = one(b"<usr><a>1</a><b>1</b></usr>", format=rfh2.FORMAT, encoding=BIG, inner=819)
    second = one(b"<usr><b>2</b></usr><mcd><Msd>none</Msd></mcd>", order=">", inner=-2)
    assert rfh2.parse(first + second + b"RFH body", LITTLE) == Header(
        {"a": "1", "b": "1", "mcd.Msd": "none"}, "MQSTR", 819, LITTLE, len(first + second)
    )
    assert rfh2.parse(one(inner=-2), LITTLE, 437).ccsid == 437
    error = refused(first + b"no header")
    assert error.reason == 2334 and "9 bytes at byte" in str(error)


# ---- folders ----


def test_names_say_the_folder_but_for_usr() -> None:
    assert properties(
        b"<usr><a>1</a></usr> <mq_usr><g><h><b>2</b></h></g></mq_usr>\0\0",
        b"\n<usr><g><c>3</c></g><d.e>4</d.e></usr>",
        b"<empty/>",
        b"",
    ) == {"a": "1", "mq_usr.g.h.b": "2", "usr.g.c": "3", "usr.d.e": "4"}


def test_of_a_property_that_is_repeated_the_first_one_counts() -> None:
    assert properties(
        b"<usr><a>1</a><b>x</b><a>2</a></usr>", b"<usr><b xsi:nil='1'>y</b></usr>"
    ) == {"a": "1", "b": "x"}


def test_values_keep_their_blanks_and_lose_their_escapes() -> None:
    assert properties(
        b"<usr><a> &lt;&gt;&amp;&apos;&quot;&#65;&#13; </a><b><![CDATA[<&>]]></b>"
        b"<c>1<!-- no -->2</c><d xsi:nil='false'>v</d></usr>"
    ) == {"a": " <>&'\"A\r ", "b": "<&>", "c": "12", "d": "v"}


@pytest.mark.parametrize(
    "folder",
    [
        b"<usr><a>1</a>",
        b"<usr><a>1</b></usr>",
        b"<<jms><Dst>q</Dst></jms>",
        b"<!DOCTYPE usr [<!ENTITY a 'b'>]><usr><c>&a;</c></usr>",
        b"<?xml version='1.0'?><usr><a>1</a></usr>",
        b"<usr><a>&unknown;</a></usr>",
        b"<usr>text</usr>",
        b"<usr><a>1</a>text</usr>",
        b"<usr><g>text<a>1</a></g></usr>",
        b"text",
        b"</root><root>",
        b"<usr><a>\xff</a></usr>",
        b"<usr><a>\x01</a></usr>",
        b"<usr><a>&#0;</a></usr>",
        b"<usr><" + b"a" * 4096 + b">1</" + b"a" * 4096 + b"></usr>",
    ],
)
def test_a_folder_that_is_not_well_formed_or_declares_something_is_2421(folder: bytes) -> None:
    error = refused(one(folder))
    assert error.reason == 2421 and str(error).startswith("MQRC_RFH_FORMAT_ERROR (2421): ")


def test_groups_do_not_make_more_of_a_header_than_it_is() -> None:
    prefix = b"<g" + b"g" * 3900 + b">"
    many = b"".join(b"<a%d/>" % number for number in range(3000))
    error = refused(one(b"<f>" + prefix + many + b"</g" + b"g" * 3900 + b"></f>"))
    assert error.reason == 2421 and "groups" in str(error)
    deep = b"<a>" * 3000 + b"</a>" * 3000
    assert refused(one(deep)).reason == 2421
    assert len(properties(b"<f><g>" + many + b"</g></f>")) == 3000


# ---- fields ----


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": b"RFH\0"}, "StrucId b'RFH\\x00' and Version 2"),
        ({"version": 1}, "Version 1"),
        ({"length": 32}, "StrucLength 32"),
        ({"length": 37}, "StrucLength 37"),
        ({"length": 1 << 30}, "StrucLength 1073741824"),
        ({"length": -4}, "StrucLength -4"),
        ({"ccsid": 819}, "NameValueCCSID 819"),
        ({"format": b"\xd4\xd8    \0\0"}, "Format"),
    ],
)
def test_a_field_that_is_wrong_is_2334(fields: dict[str, Any], said: str) -> None:
    error = refused(one(b"<usr></usr>", **fields))
    assert error.reason == 2334 and said in str(error)
    assert str(error).startswith("MQRC_RFH_ERROR (2334): ")


def test_lengths_of_folders_stay_within_the_header() -> None:
    good = one(b"<usr></usr>")
    for length in (-4, 3, 16, 1 << 30):
        error = refused(good[:36] + struct.pack("<i", length) + good[40:] + b"more of the body")
        assert error.reason == 2334 and f"NameValueLength {length} " in str(error)


def test_an_encoding_without_an_order_is_2334() -> None:
    assert refused(HAND_LITTLE, 0).reason == 2334
    with pytest.raises(HeaderError, match="encoding 15 has no order"):
        rfh2.build({}, own_encoding=15)


# ---- any bytes ----


@pytest.mark.parametrize("valid", [HAND_LITTLE, HAND_BIG])
def test_no_truncation_is_read_and_none_fails_otherwise(valid: bytes) -> None:
    encoding = LITTLE if valid is HAND_LITTLE else BIG
    for size in range(len(valid)):
        assert refused(valid[:size], encoding).reason == 2334


@pytest.mark.parametrize("valid", [HAND_LITTLE, HAND_BIG])
def test_no_byte_that_is_changed_fails_otherwise(valid: bytes) -> None:
    encoding = LITTLE if valid is HAND_LITTLE else BIG
    seen = {0}
    for at in range(len(valid)):
        for value in range(256):
            try:
                rfh2.parse(valid[:at] + bytes([value]) + valid[at + 1 :], encoding)
            except HeaderError as error:
                seen.add(error.reason)
    assert seen == {0, 2334, 2421}


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([LITTLE, BIG]), st.sampled_from([1208, 1200]))
def test_no_folder_of_any_bytes_fails_otherwise(raw: bytes, encoding: int, ccsid: int) -> None:
    order = "<" if encoding == LITTLE else ">"
    for body in (raw, one(raw, order=order, ccsid=ccsid), one(order=order) + raw):
        try:
            assert rfh2.parse(body, encoding).length <= len(body)
        except HeaderError:
            continue


# ---- names and values ----


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("", "joined by dots"),
        ("a b", "joined by dots"),
        ("1a", "joined by dots"),
        ("a.", "joined by dots"),
        (".a", "joined by dots"),
        ("a..b", "joined by dots"),
        ("a-b", "joined by dots"),
        ("a:b", "joined by dots"),
        ("a$", "joined by dots"),
        ("ª", "joined by dots"),  # a letter, but none of XML
        ("JMSType", "JMS"),
        ("usr.JMSx", "JMS"),
        ("Null", "selection strings"),
        ("usr.between", "selection strings"),
        ("mq.x", "queue manager"),
        ("Root.MQMD.Priority", "queue manager"),
        ("usr.a.b", "no groups"),
        ("MQext.a.b", "one dot"),
    ],
)
def test_a_name_that_breaks_a_rule_is_2442(name: str, rule: str) -> None:
    with pytest.raises(InvalidValue, match=rule) as caught:
        rfh2.check_name(name)
    assert str(caught.value).startswith(f"MQRC_PROPERTY_NAME_ERROR (2442): property {name!r}: ")
    with pytest.raises(InvalidValue, match=rule):
        rfh2.build({name: "x"})


def test_names_that_keep_the_rules() -> None:
    for name in ("a", "_9", "größe", "a.b.c", "usr.a", "jms.Dst", "mqext.Grp", "mq_usr.a.b.c",
                 "jmsx", "nulls", "in.a", "mqx", "n" * 4095, ".".join("a" * 2048)):  # fmt: skip
        made = rfh2.build({name: name})
        assert rfh2.parse(made, LITTLE).properties == {name.removeprefix("usr."): name}
    with pytest.raises(InvalidValue, match=r"\(2513\): .* has 4096 characters; 4095 is the most"):
        rfh2.check_name("n" * 4096)


@pytest.mark.parametrize(
    "pair", [("a.b", "a.b.c"), ("a.b.c", "a.b"), ("x", "usr.x"), ("a.b.c", "a.b.c.d")]
)
def test_a_property_that_is_a_group_too_is_2442(pair: tuple[str, str]) -> None:
    with pytest.raises(InvalidValue, match=r"\(2442\).*another one has this name, or is a group"):
        rfh2.build(dict.fromkeys(pair, "v"))


def test_a_value_that_xml_cannot_have_is_2466() -> None:
    for value in ("\0", "a\x1f", "\ufffe", "\ud800"):
        with pytest.raises(InvalidValue, match=r"\(2466\): property 'k': .* XML does not have"):
            rfh2.build({"k": value})


def test_fields_that_do_not_fit_are_2334(monkeypatch: pytest.MonkeyPatch) -> None:
    for fields in ({"format": "MQSTRINGS"}, {"format": "ü"}, {"ccsid": 1 << 31}):
        with pytest.raises(HeaderError, match=r"MQRC_RFH_ERROR \(2334\): format"):
            rfh2.build({}, **fields)  # type: ignore[arg-type]
    monkeypatch.setattr(rfh2, "_MOST_PROPERTIES", 60)
    with pytest.raises(MQError, match=r"\(2478\): .* come to 72 bytes; 60 is the most"):
        rfh2.build({"key": "value" * 2})


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}(\.[a-z_][a-z0-9_]{0,3}){0,3}", fullmatch=True)
VALUES = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(NAMES, VALUES, max_size=6),
    st.sampled_from([LITTLE, BIG]),
    st.sampled_from(["", "MQSTR", "MQHRF", "12345678"]),
    st.integers(-(2**31), 2**31 - 1).filter(lambda ccsid: ccsid != -2),
    st.integers(-(2**31), 2**31 - 1),
    st.binary(max_size=8),
)
def test_a_built_header_is_read_back_or_refused(
    given: dict[str, str | None], own: int, form: str, ccsid: int, encoding: int, body: bytes
) -> None:
    try:
        made = rfh2.build(given, form, ccsid, encoding, own_encoding=own)
    except InvalidValue as error:
        assert error.reason in (2442, 2466)
        return
    assert len(made) % 4 == 0
    plain = {name.removeprefix("usr."): value for name, value in given.items()}
    assert rfh2.parse(made + body, own) == Header(plain, form, ccsid, encoding, len(made))


# ---- how much ----


def test_blank_folders_are_no_properties_and_too_many_folders_are_refused() -> None:
    assert properties(b"", b"    ", b"<usr><a>1</a></usr>", b"\0\0\0\0") == {"a": "1"}
    most = [b""] * 4095
    assert properties(*most) == {}
    million = one(length=36 + 4_000_000) + bytes(4_000_000)
    for body in (one(*most, b""), million, one(*[b"<a/>"] * 5000)):
        assert "more than 4096 headers and folders" in str(refused(body))
    chain = one(format=rfh2.FORMAT) * 4095
    assert rfh2.parse(chain + one(), LITTLE).length == 36 * 4096
    assert refused(chain + one(format=rfh2.FORMAT) + one()).reason == 2334


def test_what_could_not_be_read_is_not_written() -> None:
    folders = {f"f{number}.a": "x" for number in range(4096)}
    with pytest.raises(HeaderError, match="more than 4096"):
        rfh2.build(folders)
    del folders["f0.a"]
    assert rfh2.parse(rfh2.build(folders), LITTLE).properties == folders

"""MQGMO_CONVERT: text and headers in another character set and encoding, or as they are."""

from __future__ import annotations

import functools
import struct
from typing import Any

import pytest

from penstock import _engine, mqi, rpg
from penstock.headers import rfh2
from penstock.mqi import conversion

OUTPUT, INPUT, BROWSE, SAVE = 16, 1, 8, 128
CONVERT, ACCEPT = mqi.MQGMO_CONVERT, mqi.MQGMO_ACCEPT_TRUNCATED_MSG
BIG, LITTLE = 273, 546
TEXT = "Grüße, 3 ¢"


def get(
    mq: Any, hobj: Any, ccsid: int, encoding: int = LITTLE, length: int | None = None, **more: Any
) -> tuple[bytes, int, int, int, Any]:
    """Data, DataLength, CompCode, Reason and MQMD of a get with conversion."""
    options = CONVERT | more.pop("options", 0)
    md = mqi.MQMD(Version=more.pop("version", 2), CodedCharSetId=ccsid, Encoding=encoding)
    data, full, cc, rc = mqi.MQGET(mq.h, hobj, md, mqi.MQGMO(Options=options, **more), length)
    return data, full, cc, rc, md


def text(mq: Any, hobj: Any, data: bytes, ccsid: int, encoding: int = LITTLE, **md: Any) -> None:
    mq.put(hobj, data, Format="MQSTR", CodedCharSetId=ccsid, Encoding=encoding, **md)


# ---- text ----


@pytest.mark.parametrize(
    ("source", "target", "codecs"),
    [
        (1208, 819, ("utf-8", "latin-1")),
        (819, 37, ("latin-1", "cp037")),
        (500, 1208, ("cp500", "utf-8")),
        (1252, 850, ("cp1252", "cp850")),
        (1200, 1208, ("utf-16-le", "utf-8")),
        (1208, 1200, ("utf-8", "utf-16-le")),
        (1208, 13488, ("utf-8", "utf-16-le")),
    ],
)
def test_text_is_converted(mq: Any, source: int, target: int, codecs: tuple[str, str]) -> None:
    q = mq.open("Q")
    text(mq, q, TEXT.encode(codecs[0]), source)
    data, full, cc, rc, md = get(mq, q, target)
    assert (data, cc, rc) == (TEXT.encode(codecs[1]), 0, 0)
    assert full == len(data)
    assert (md.CodedCharSetId, md.Encoding, md.Format) == (target, LITTLE, "MQSTR")


def test_utf_16_has_the_byte_order_of_the_integers(mq: Any) -> None:
    q = mq.open("Q")
    text(mq, q, TEXT.encode("utf-16-be"), 1200, BIG)
    data, _, cc, rc, md = get(mq, q, 1200, LITTLE)
    assert (data, cc, rc, md.Encoding) == (TEXT.encode("utf-16-le"), 0, 0, LITTLE)


def test_ccsid_0_asks_for_the_queue_managers(mq: Any) -> None:
    q = mq.open("Q")
    text(mq, q, b"\xe4", 819)
    data, _, cc, rc, md = get(mq, q, mqi.MQCCSI_Q_MGR)
    assert (data, cc, rc, md.CodedCharSetId) == ("ä".encode(), 0, 0, 1208)


def test_a_put_replaces_inherit_by_the_queue_managers_set(mq: Any) -> None:
    q = mq.open("Q")
    text(mq, q, b"x", mqi.MQCCSI_INHERIT)
    assert mq.get(q)[1].CodedCharSetId == 1208


def test_a_character_that_the_target_lacks_is_substituted(mq: Any) -> None:
    q = mq.open("Q")
    text(mq, q, "3 € \U0001f600!".encode(), 1208)
    text(mq, q, "3 €!".encode(), 1208)
    assert get(mq, q, 819)[0] == b"3 \x1a \x1a!"
    assert get(mq, q, 500)[0] == "3 \x1a!".encode("cp500") == b"\xf3\x40\x3f\x4f"


def test_a_new_line_of_ebcdic_becomes_a_line_feed_outside_it(mq: Any) -> None:
    q = mq.open("Q")
    for _ in range(3):
        text(mq, q, b"\xc1\x15\xc2\x25", 37)
    assert get(mq, q, 819)[0] == get(mq, q, 1208)[0] == b"A\nB\n"
    assert get(mq, q, 500)[0] == b"\xc1\x15\xc2\x25"


# ---- nothing to do ----


def test_what_agrees_is_returned_as_it_is(mq: Any) -> None:
    q = mq.open("Q")
    for name in ("", "MQSTR", "MYFORMAT", "MQDEAD"):
        mq.put(q, b"\xff", Format=name, CodedCharSetId=819, Encoding=BIG)
        data, full, cc, rc, md = get(mq, q, 819, BIG)
        assert (data, full, cc, rc) == (b"\xff", 1, 0, 0), name
        assert (md.CodedCharSetId, md.Encoding) == (819, BIG)


def test_no_data_needs_no_conversion_and_the_descriptor_keeps_its_values(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q, b"", Format="MYFORMAT", CodedCharSetId=500)
    mq.put(q, b"data", Format="MYFORMAT", CodedCharSetId=500)
    for length in (None, 0):
        data, _, cc, rc, md = get(mq, q, 819, length=length, options=ACCEPT)
        assert (data, md.CodedCharSetId) == (b"", 500)
        assert (cc, rc) == ((0, 0) if length is None else (1, 2079))


def test_without_the_option_nothing_is_converted(mq: Any) -> None:
    q = mq.open("Q")
    text(mq, q, b"\xc1", 37)
    data, md = mq.get(q, md=mqi.MQMD(CodedCharSetId=819))
    assert (data, md.CodedCharSetId) == (b"\xc1", 37)


def test_what_the_data_does_not_need_is_not_looked_at(mq: Any) -> None:
    q = mq.open("Q")
    text(mq, q, b"\xc1", 37, 0x999)
    data, _, cc, rc, md = get(mq, q, 819, 0xFFF)
    assert (data, cc, rc, md.Encoding) == (b"A", 0, 0, 0xFFF)
    text(mq, q, b"x", 99999, BIG)
    assert get(mq, q, 99999)[::3] == (b"x", 0)


# ---- the message as it is ----


@pytest.mark.parametrize(
    ("data", "md", "ccsid", "encoding", "reason"),
    [
        (b"x", {"Format": ""}, 500, LITTLE, 2110),
        (b"x", {"Format": "MYFORMAT"}, 500, LITTLE, 2110),
        (b"x", {"Format": "MQDEAD"}, 500, LITTLE, 2110),
        (b"x", {"Format": "MQSTR", "CodedCharSetId": 99999}, 819, LITTLE, 2111),
        (b"x", {"Format": "MQSTR", "CodedCharSetId": -1}, 819, LITTLE, 2111),
        (b"xx", {"Format": "MQSTR", "CodedCharSetId": 1200, "Encoding": 0}, 819, LITTLE, 2112),
        (b"x", {"Format": "MQSTR"}, 99999, LITTLE, 2115),
        (b"x", {"Format": "MQSTR"}, -2, LITTLE, 2115),
        (b"x", {"Format": "MQSTR"}, 1200, 0x110, 2116),
        (b"\xff", {"Format": "MQSTR"}, 819, LITTLE, 2119),
        (b"x" * 36, {"Format": "MQPCF"}, 819, LITTLE, 2119),
        (b"x" * 36, {"Format": "MQADMIN"}, 819, LITTLE, 2119),
    ],
)
def test_a_message_that_cannot_be_converted_is_returned_as_it_is(
    mq: Any, data: bytes, md: dict[str, Any], ccsid: int, encoding: int, reason: int
) -> None:
    q = mq.open("Q")
    sent = {"CodedCharSetId": 1208, "Encoding": LITTLE, **md}
    mq.put(q, data, **sent)
    got, full, cc, rc, out = get(mq, q, ccsid, encoding)
    assert (got, full, cc, rc) == (data, len(data), 1, reason)
    assert (out.CodedCharSetId, out.Encoding) == (sent["CodedCharSetId"], sent["Encoding"])
    assert mq.h.error  # says what is wrong
    assert mq.get_code(q) == 2033  # it was removed


# ---- buffers ----


def test_converted_data_that_does_not_fit_is_2120_and_the_message_is_gone(mq: Any) -> None:
    q = mq.open("Q")
    text(mq, q, b"\xe4\xe4\xe4", 819)
    data, full, cc, rc, md = get(mq, q, 1208, length=5)
    assert (data, full, cc, rc) == (b"\xe4\xe4\xe4", 3, 1, 2120)
    assert md.CodedCharSetId == 819
    assert mq.get_code(q) == 2033


def test_with_accept_truncated_it_is_cut_at_the_end_of_a_character(mq: Any) -> None:
    q = mq.open("Q")
    text(mq, q, b"\xe4\xe4\xe4", 819)
    data, full, cc, rc, md = get(mq, q, 1208, length=5, options=ACCEPT)
    assert (data, full, cc, rc) == ("ää".encode(), 3, 1, 2079)
    assert md.CodedCharSetId == 1208


def test_a_longer_message_stays_unconverted_on_the_queue(mq: Any) -> None:
    q = mq.open("Q")
    text(mq, q, b"\xe4\xe4\xe4", 819)
    data, full, cc, rc, md = get(mq, q, 1208, length=2)
    assert (data, full, cc, rc, md.CodedCharSetId) == (b"\xe4\xe4", 3, 1, 2080, 819)
    assert get(mq, q, 1208, length=6)[:4] == ("äää".encode(), 6, 0, 0)


def test_truncation_before_the_conversion_leaves_half_characters_out(mq: Any) -> None:
    q = mq.open("Q")
    text(mq, q, "aää".encode(), 1208)
    data, full, cc, rc, md = get(mq, q, 819, length=4, options=ACCEPT)
    assert (data, full, cc, rc, md.CodedCharSetId) == (b"a\xe4", 5, 1, 2079, 819)


def test_truncation_goes_before_a_conversion_that_fails(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q, b"xyz", Format="MYFORMAT", CodedCharSetId=500)
    data, full, cc, rc, md = get(mq, q, 819, length=2, options=ACCEPT)
    assert (data, full, cc, rc, md.CodedCharSetId) == (b"xy", 3, 1, 2079, 500)


# ---- ways of getting ----


def test_a_browse_converts_and_changes_nothing(mq: Any) -> None:
    q = mq.open("Q")
    text(mq, q, b"\xc1", 37)
    for _ in range(2):
        assert get(mq, q, 819, options=mqi.MQGMO_BROWSE_FIRST)[::3] == (b"A", 0)
    assert mq.get(q)[0] == b"\xc1"


def test_a_backed_out_message_is_as_it_was_put(mq: Any) -> None:
    q = mq.open("Q")
    text(mq, q, b"\xc1", 37)
    assert get(mq, q, 819, options=mqi.MQGMO_SYNCPOINT)[::3] == (b"A", 0)
    assert mqi.MQBACK(mq.h) == (0, 0)
    data, md = mq.get(q)
    assert (data, md.CodedCharSetId, md.BackoutCount) == (b"\xc1", 37, 1)


def test_returned_length_is_what_is_returned(mq: Any) -> None:
    q = mq.open("Q")
    text(mq, q, b"\xe4", 819)
    gmo = mqi.MQGMO(Version=3, Options=CONVERT)
    data, *_ = mqi.MQGET(mq.h, q, mqi.MQMD(CodedCharSetId=1208), gmo)
    assert (data, gmo.ReturnedLength) == ("ä".encode(), 2)


def test_a_view_of_rpg_asks_like_its_structure(mq: Any) -> None:
    q = mq.open("Q")
    text(mq, q, b"\xc1", 37)
    md, gmo = rpg.MSGDSC(MDCSI=819), rpg.GMO(GMOPT=rpg.GMCONV)
    assert mqi.MQGET(mq.h, q, md, gmo)[::3] == (b"A", 0)
    assert md.MDCSI == 819


def test_a_confirmation_of_delivery_has_the_data_as_it_was_put(mq: Any) -> None:
    mq.qm.define("QLOCAL", "R")
    q, r = mq.open("Q"), mq.open("R")
    confirmed = {"Report": mqi.MQRO_COD_WITH_FULL_DATA, "ReplyToQ": "R"}
    text(mq, q, b"\xc4", 37, BIG, **confirmed)
    assert get(mq, q, 1208)[::3] == (b"D", 0)
    text(mq, q, b"\x43", 37, BIG, **confirmed)
    assert get(mq, q, 1208, length=1)[:4] == (b"\x43", 1, 1, 2120)
    for put in (b"\xc4", b"\x43"):
        data, md = mq.get(r)
        assert (data, md.Feedback) == (put, mqi.MQFB_COD)
        assert (md.CodedCharSetId, md.Encoding) == (37, BIG)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, TimeoutError, MemoryError])
def test_an_interrupted_conversion_loses_no_message(mq: Any, interruption: Any) -> None:
    def interrupted(*_: Any) -> Any:
        raise interruption

    q = mq.open("Q")
    text(mq, q, b"\xc1", 37)
    call = functools.partial(
        mqi.MQGET, mq.h, q, mqi.MQMD(CodedCharSetId=819), mqi.MQGMO(Options=CONVERT)
    )
    results: list[Any] = []
    _engine.register_conversion(interrupted)
    try:
        results.extend(map(call, [None]))  # C code keeps the result before Python goes on
    except (KeyboardInterrupt, TimeoutError) as error:
        assert type(error) is interruption
    else:
        assert interruption is MemoryError
    finally:
        _engine.register_conversion(conversion.convert_data)
    assert results == [(b"\xc1", 1, 1, 2119)]


# ---- headers ----


def dead_letter(codec: str, order: str, ccsid: int, encoding: int, name: str) -> bytes:
    """An MQDLH in a character set and a byte order, over data of another one."""

    def chars(value: str, size: int) -> bytes:
        return value.ljust(size).encode(codec)

    return b"".join(
        (
            chars("DLH", 4), struct.pack(f"{order}2i", 1, 2053), chars("ORDERS", 48),
            chars("QM1", 48), struct.pack(f"{order}2i", encoding, ccsid), chars(name, 8),
            struct.pack(f"{order}i", 6), chars("prog", 28), chars("20260101", 8),
            chars("12000000", 8),
        )
    )  # fmt: skip


def test_a_dead_letter_header_and_its_text_are_converted(mq: Any) -> None:
    q = mq.open("Q")
    body = dead_letter("cp500", ">", 37, BIG, "MQSTR") + "Größe".encode("cp037")
    mq.put(q, body, Format="MQDEAD", CodedCharSetId=500, Encoding=BIG)
    data, full, cc, rc, md = get(mq, q, 1208)
    assert (cc, rc, full) == (0, 0, len(data)), mq.h.error
    assert data == dead_letter("utf-8", "<", 1208, LITTLE, "MQSTR") + "Größe".encode()
    assert (md.Format, md.CodedCharSetId, md.Encoding) == ("MQDEAD", 1208, LITTLE)
    header = mqi.MQDLH.unpack(data[:172])
    assert (header.Reason, header.DestQName, header.Format) == (2053, "ORDERS", "MQSTR")


def test_data_without_a_format_behind_a_header_stays_and_is_described(mq: Any) -> None:
    q = mq.open("Q")
    for inner, described in ((37, 37), (mqi.MQCCSI_INHERIT, 500)):
        body = dead_letter("cp500", ">", inner, BIG, "") + b"\x00\xff"
        mq.put(q, body, Format="MQDEAD", CodedCharSetId=500, Encoding=BIG)
        data, _, cc, rc, _ = get(mq, q, 1208)
        assert (cc, rc) == (0, 0), mq.h.error
        assert data == dead_letter("utf-8", "<", described, BIG, "") + b"\x00\xff"


def test_text_behind_a_header_may_inherit_its_character_set(mq: Any) -> None:
    q = mq.open("Q")
    body = dead_letter("cp500", ">", mqi.MQCCSI_INHERIT, BIG, "MQSTR") + b"\xc1"
    mq.put(q, body, Format="MQDEAD", CodedCharSetId=500, Encoding=BIG)
    assert get(mq, q, 819)[0] == dead_letter("latin-1", "<", 819, LITTLE, "MQSTR") + b"A"


@pytest.mark.parametrize(
    ("body", "md", "ccsid", "reason"),
    [
        (dead_letter("cp500", ">", 37, BIG, "MYFORMAT") + b"x", {}, 1208, 2110),
        (dead_letter("cp500", ">", 37, BIG, "MQPCF") + b"x", {}, 1208, 2119),
        (dead_letter("cp500", ">", 0, BIG, "MQSTR") + b"x", {}, 1208, 2111),
        (dead_letter("cp500", ">", 37, BIG, "")[:-1], {}, 1208, 2110),
        (dead_letter("cp500", ">", 37, BIG, "").replace(b"\0\0\0\1", b"\0\0\0\2"), {}, 1208, 2110),
        (dead_letter("cp500", ">", 37, BIG, "").replace(b"\xc4\xd3\xc8", b"\xe7\xd8\xc8"),
         {}, 1208, 2110),
        (dead_letter("cp500", ">", 37, BIG, ""), {"Encoding": 0}, 1208, 2112),
        (dead_letter("cp500", ">", 37, BIG, ""), {"CodedCharSetId": 1200}, 1208, 2111),
        (dead_letter("cp500", ">", 37, BIG, ""), {}, 1200, 2115),
        (dead_letter("latin-1", ">", 819, BIG, "").replace(b"ORDERS" + b" " * 42, b"\xe4" * 48),
         {"CodedCharSetId": 819}, 1208, 2190),
    ],
)  # fmt: skip
def test_a_header_that_cannot_be_converted_leaves_the_message_as_it_is(
    mq: Any, body: bytes, md: dict[str, Any], ccsid: int, reason: int
) -> None:
    q = mq.open("Q")
    sent = {"CodedCharSetId": 500, "Encoding": BIG, **md}
    mq.put(q, body, Format="MQDEAD", **sent)
    data, full, cc, rc, out = get(mq, q, ccsid)
    assert (data, full, cc, rc) == (body, len(body), 1, reason), mq.h.error
    assert (out.CodedCharSetId, out.Encoding) == (sent["CodedCharSetId"], sent["Encoding"])


def test_a_field_that_grows_gives_up_its_blanks(mq: Any) -> None:
    q = mq.open("Q")
    body = dead_letter("latin-1", "<", 819, LITTLE, "").replace(b"prog" + b" " * 24, b"\xe4" * 14
                                                                + b" " * 14)  # fmt: skip
    mq.put(q, body, Format="MQDEAD", CodedCharSetId=819)
    data, _, cc, rc, _ = get(mq, q, 1208)
    assert (cc, rc, len(data)) == (0, 0, 172)
    assert mqi.MQDLH.unpack(data).PutApplName == "ä" * 14


def test_a_field_that_shrinks_is_filled_with_the_targets_blanks(mq: Any) -> None:
    q = mq.open("Q")
    body = dead_letter("utf-8", "<", 1208, LITTLE, "")
    body = body.replace(b"prog" + b" " * 24, "\u00e4".encode() + b" " * 26)
    mq.put(q, body, Format="MQDEAD", CodedCharSetId=1208)
    data, _, cc, rc, _ = get(mq, q, 500)
    assert (cc, rc, len(data)) == (0, 0, 172)
    assert data[128:156] == ("\u00e4" + " " * 27).encode("cp500")


def test_names_and_values_keep_their_set_and_take_the_byte_order(mq: Any) -> None:
    q = mq.open("Q")
    folder = "<usr><a>\u00e4</a></usr> "
    for ccsid, codec in ((1208, "utf-8"), (1200, "utf-16-{}e")):
        wide = {order: folder.encode(codec.format(letter)) for order, letter in (">b", "<l")}
        headers = {}
        for order, value in wide.items():
            value += b" " * (-len(value) % 4)
            headers[order] = value
        body = rfh2_of(">", "cp500", headers[">"], ccsid, (37, BIG, "MQSTR")) + b"\xc1"
        mq.put(q, body, Format="MQHRF2", CodedCharSetId=500, Encoding=BIG)
        data, _, cc, rc, md = get(mq, q, 1208)
        assert (cc, rc, md.Format) == (0, 0, "MQHRF2"), mq.h.error
        value = headers[">"] if ccsid == 1208 else headers["<"]
        assert data == rfh2_of("<", "utf-8", value, ccsid, (1208, LITTLE, "MQSTR")) + b"A"
        assert rfh2.parse(data, md.Encoding).properties == {"a": "\u00e4"}


def rfh2_of(order: str, codec: str, pair: bytes, ccsid: int, inner: tuple[int, int, str]) -> bytes:
    """An MQRFH2 with one folder, over data of another form."""
    length = 36 + 4 + len(pair)
    return b"".join(
        (
            "RFH ".encode(codec), struct.pack(f"{order}4i", 2, length, inner[1], inner[0]),
            inner[2].ljust(8).encode(codec), struct.pack(f"{order}3i", 0, ccsid, len(pair)), pair,
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("offset", "number"), [(8, 35), (8, 400), (8, 42), (32, 819), (36, -4), (36, 3), (36, 400)]
)
def test_an_mqrfh2_with_wrong_lengths_is_2110(mq: Any, offset: int, number: int) -> None:
    q = mq.open("Q")
    body = bytearray(rfh2_of(">", "cp500", b"<usr></usr> ", 1208, (1208, BIG, "")))
    struct.pack_into(">i", body, offset, number)
    mq.put(q, bytes(body), Format="MQHRF2", CodedCharSetId=500, Encoding=BIG)
    assert get(mq, q, 1208)[:4] == (bytes(body), len(body), 1, 2110), mq.h.error


def test_several_headers_are_converted_in_a_row(mq: Any) -> None:
    q = mq.open("Q")
    pair = b"<usr></usr> "
    body = (
        dead_letter("cp500", ">", 37, LITTLE, "MQHRF2")
        + rfh2_of("<", "cp037", pair, 1208, (819, BIG, "MQHRF2"))
        + rfh2_of(">", "latin-1", pair, 1208, (37, LITTLE, "MQSTR"))
        + b"\xc1"
    )
    mq.put(q, body, Format="MQDEAD", CodedCharSetId=500, Encoding=BIG)
    data, _, cc, rc, _ = get(mq, q, 850, BIG)
    assert (cc, rc) == (0, 0), mq.h.error
    assert data == (
        dead_letter("cp850", ">", 850, BIG, "MQHRF2")
        + rfh2_of(">", "cp850", pair, 1208, (850, BIG, "MQHRF2"))
        + rfh2_of(">", "cp850", pair, 1208, (850, BIG, "MQSTR"))
        + b"A"
    )


def test_a_transmission_header_is_converted_with_its_descriptor(mq: Any) -> None:
    q = mq.open("Q")
    embedded = mqi.MQMD(
        Format="MQSTR", CodedCharSetId=500, Encoding=BIG, Priority=3, MsgId=b"\xc1" * 24,
        ReplyToQ="REPLIES",
    )  # fmt: skip
    header = mqi.MQXQH(RemoteQName="FAR", RemoteQMgrName="QM2", MsgDesc=embedded)
    mq.put(q, header.pack() + b"\xc1", Format="MQXMIT")
    data, _, cc, rc, md = get(mq, q, 37, BIG)
    assert (cc, rc, md.Format, md.CodedCharSetId) == (0, 0, "MQXMIT", 37), mq.h.error
    assert data[:4] == "XQH ".encode("cp037")
    assert data[8:104] == ("FAR".ljust(48) + "QM2".ljust(48)).encode("cp037")
    assert struct.unpack_from(">2i", data, 104 + 24) == (BIG, 37)
    assert struct.unpack_from(">i", data, 104 + 40) == (3,)
    assert data[104 + 48 : 104 + 72] == b"\xc1" * 24  # bytes are no characters
    assert data[104 + 100 : 104 + 148] == "REPLIES".ljust(48).encode("cp037")
    assert data[428:] == b"\xc1"


def test_the_extension_in_front_of_the_data_is_converted_with_it(mq: Any) -> None:
    q = mq.open("Q")
    group = {"Version": 2, "GroupId": b"g" * 24, "MsgSeqNumber": 7, "MsgFlags": 8}
    text(mq, q, b"\xc1", 37, BIG, **group)
    data, full, cc, rc, md = get(mq, q, 500, BIG, version=1)
    assert (cc, rc, full) == (0, 0, 73), mq.h.error
    assert (md.Format, md.CodedCharSetId, md.Encoding) == ("MQHMDE", 500, BIG)
    assert data[:4] == "MDE ".encode("cp500")
    assert struct.unpack_from(">4i", data, 4) == (2, 72, BIG, 500)
    assert (data[20:28], data[32:56]) == ("MQSTR   ".encode("cp500"), b"g" * 24)
    assert struct.unpack_from(">i", data, 56) == (7,)
    assert data[72:] == b"\xc1"


def test_a_trigger_message_is_converted(mq: Any) -> None:
    q = mq.open("Q")
    sizes = (48, 48, 64)

    def trigger(codec: str, order: str) -> bytes:
        names = "".join(name.ljust(size) for name, size in zip("QPT", sizes, strict=True))
        return b"".join(
            (
                "TM  ".encode(codec), struct.pack(f"{order}i", 1), names.encode(codec),
                struct.pack(f"{order}i", 6), "prog".ljust(512).encode(codec),
            )
        )  # fmt: skip

    mq.put(q, trigger("cp500", ">"), Format="MQTRIG", CodedCharSetId=500, Encoding=BIG)
    mq.put(q, trigger("cp500", ">") + b"x", Format="MQTRIG", CodedCharSetId=500, Encoding=BIG)
    assert get(mq, q, 819)[::3] == (trigger("latin-1", "<"), 0)
    assert get(mq, q, 819)[3] == 2110


def test_context_is_saved_by_a_get_that_converts(mq: Any) -> None:
    mq.qm.define("QLOCAL", "R")
    q = mq.open("Q", INPUT | OUTPUT | SAVE)
    text(mq, q, b"\xc1", 37)
    assert get(mq, q, 819)[3] == 0
    r = mq.open("R", OUTPUT | mqi.MQOO_PASS_ALL_CONTEXT)
    pmo = mqi.MQPMO(Options=mqi.MQPMO_PASS_ALL_CONTEXT, Context=int(q))
    assert mqi.MQPUT(mq.h, r, mqi.MQMD(), pmo, b"") == (0, 0)

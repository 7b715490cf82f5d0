"""MQGMO_NO_PROPERTIES and MQGMO_PROPERTIES_COMPATIBILITY: what goes, what is left."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from penstock import mqi
from penstock.headers import rfh2
from penstock.mqi.properties import without_properties

NONE, COMPATIBLE = mqi.MQGMO_NO_PROPERTIES, mqi.MQGMO_PROPERTIES_COMPATIBILITY
RED = "<usr><colour>red</colour></usr>"
OTHER = "<shop><till>3</till></shop>"
PROPERTIES = '<shop content="properties"><till>3</till></shop>'


def header(
    *folders: str, encoding: int = 546, ccsid: int = 1208, name: str = "MQSTR", order: str = "<"
) -> bytes:
    """An MQRFH2 in front of data of that description."""
    raw = b""
    for folder in folders:
        data = folder.encode()
        data += b" " * (-len(data) % 4)
        raw += struct.pack(f"{order}i", len(data)) + data
    fixed = struct.pack(
        f"{order}4s4i8s2i", b"RFH ", 2, 36 + len(raw), encoding, ccsid, name.encode().ljust(8),
        0, 1208,
    )  # fmt: skip
    return fixed + raw


def got(mq: Any, data: bytes, options: int, **given: Any) -> Any:
    """What a get with these options gives of a message with that data."""
    q = mq.open("Q")
    given.setdefault("Format", "MQHRF2")
    length = given.pop("length", None)
    mq.put(q, data, **given)
    md = mqi.MQMD(Version=2)
    result = mqi.MQGET(mq.h, q, md, mqi.MQGMO(Options=options), length)
    return result[0], result[1], md, result[2:]


@pytest.mark.parametrize("options", [NONE, NONE | mqi.MQGMO_FAIL_IF_QUIESCING])
def test_the_header_goes_and_what_it_described_is_in_the_mqmd(mq: Any, options: int) -> None:
    whole = header(RED, encoding=273, ccsid=819) + b"body"
    data, length, md, codes = got(mq, whole, options)
    assert (data, length, codes) == (b"body", 4, (0, 0))
    assert (md.Format, md.Encoding, md.CodedCharSetId) == ("MQSTR", 273, 819)


@pytest.mark.parametrize(
    ("folders", "left"),
    [
        ([RED, OTHER], [OTHER]), ([OTHER, RED, OTHER], [OTHER, OTHER]), ([OTHER], [OTHER]),
        ([PROPERTIES], None), ([PROPERTIES, "<jms><Dst>q</Dst></jms>", "<mcd/>"], None), ([], []),
        ([RED + OTHER], [RED + OTHER]), (["<mq_usr><a>1</a></mq_usr>", "<mqext/>"], None),
    ],
)  # fmt: skip
def test_folders_that_are_no_properties_stay(
    mq: Any, folders: list[str], left: list[str] | None
) -> None:
    data, length, md, codes = got(mq, header(*folders) + b"body", NONE)
    assert (data, codes) == (b"body" if left is None else header(*left) + b"body", (0, 0))
    assert (length, md.Format) == (len(data), "MQSTR" if left is None else "MQHRF2")


def test_headers_in_a_row_each_describe_what_is_left_behind_them(mq: Any) -> None:
    first = header(OTHER, encoding=273, ccsid=1208, name="MQHRF2")
    second = header(RED, encoding=546, ccsid=819, name="MQHRF2", order=">")
    third = header(RED, OTHER, encoding=273, ccsid=-2, name="MQSTR")
    data, _, md, codes = got(mq, first + second + third + b"body", NONE)
    assert codes == (0, 0)
    assert md.Format == "MQHRF2"
    assert data == (
        header(OTHER, encoding=546, ccsid=819, name="MQHRF2")
        + header(OTHER, encoding=273, ccsid=819, name="MQSTR")
        + b"body"
    )
    found = rfh2.parse(data, md.Encoding, md.CodedCharSetId)
    assert (found.format, found.encoding, found.ccsid) == ("MQSTR", 273, 819)


def test_compatibility_keeps_all_when_one_is_of_jms(mq: Any) -> None:
    for folder, stays in ((RED, True), ("<mcd/>", True), (PROPERTIES, False)):
        whole = header(folder, PROPERTIES) + b"body"
        data, _, md, codes = got(mq, whole, COMPATIBLE)
        assert codes == (0, 0)
        assert data == (whole if stays else b"body")
        assert md.Format == ("MQHRF2" if stays else "MQSTR")


@pytest.mark.parametrize(
    "data",
    [b"", b"RFH ", header(RED)[:50], header("<usr>"), header("<!DOCTYPE a><a/>"), b"\0" * 99],
)
def test_what_is_no_header_stays_as_it_is(mq: Any, data: bytes) -> None:
    found, length, md, codes = got(mq, data, NONE)
    assert (found, length, md.Format, codes) == (data, len(data), "MQHRF2", (0, 0))
    assert without_properties(data, 546, 1208, False) is None


def test_a_message_of_another_format_stays_as_it_is(mq: Any) -> None:
    whole = header(RED) + b"body"
    assert got(mq, whole, NONE, Format="MQSTR")[0] == whole
    assert got(mq, b"plain", COMPATIBLE, Format="")[0] == b"plain"


def test_a_buffer_takes_the_message_without_its_properties_truncated(mq: Any) -> None:
    whole = header(RED) + b"0123456789"
    accept = NONE | mqi.MQGMO_ACCEPT_TRUNCATED_MSG
    assert got(mq, whole, accept, length=10)[::3] == (b"0123456789", (0, 0))
    data, length, _, codes = got(mq, whole, accept, length=4)
    assert (data, length, codes) == (b"0123", 10, (1, 2079))
    assert mq.get_code(mq.open("Q")) == 2033  # each was taken


def test_a_buffer_that_is_too_short_for_all_keeps_the_message(mq: Any) -> None:
    whole = header(RED) + b"0123456789"
    _, length, md, codes = got(mq, whole, NONE, length=20)
    assert (length, md.Format, codes) == (len(whole), "MQHRF2", (1, 2080))
    data, md = mq.get(mq.open("Q"), NONE)
    assert (data, md.Format) == (b"0123456789", "MQSTR")


def test_the_rest_is_converted(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q, header(RED) + "Grüße".encode(), Format="MQHRF2")
    md = mqi.MQMD(Version=2, CodedCharSetId=819)
    data, md = mq.get(q, NONE | mqi.MQGMO_CONVERT, md)
    assert (data, md.CodedCharSetId, md.Format) == ("Grüße".encode("latin-1"), 819, "MQSTR")


def test_the_rest_is_converted_and_then_truncated(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q, header(RED, ccsid=819) + b"\xe4\xe4\xe4", Format="MQHRF2")
    gmo = mqi.MQGMO(Options=NONE | mqi.MQGMO_CONVERT | mqi.MQGMO_ACCEPT_TRUNCATED_MSG)
    md = mqi.MQMD(Version=2, CodedCharSetId=1208)
    assert mqi.MQGET(mq.h, q, md, gmo, 5) == ("ää".encode(), 3, 1, 2079)


def test_a_browse_leaves_the_message_with_its_properties(mq: Any) -> None:
    q = mq.open("Q")
    whole = header(RED) + b"body"
    mq.put(q, whole, Format="MQHRF2")
    assert mq.get(q, NONE | mqi.MQGMO_BROWSE_FIRST)[0] == b"body"
    assert mq.get(q)[0] == whole


def test_a_version_1_mqmd_has_its_extension_in_front_of_what_is_left(mq: Any) -> None:
    q = mq.open("Q")
    md = mqi.MQMD(Version=2, Format="MQHRF2", GroupId=b"g" * 24, MsgFlags=mqi.MQMF_MSG_IN_GROUP)
    pmo = mqi.MQPMO()
    for _ in range(2):
        assert mqi.MQPUT(mq.h, q, md, pmo, header(RED) + b"0123456789") == (0, 0)
    one = mqi.MQMD()
    data, length, *codes = mqi.MQGET(mq.h, q, one, mqi.MQGMO(Options=NONE))
    extension = mqi.MQMDE.unpack(data)
    assert (codes, length, one.Format) == ([0, 0], 82, "MQHMDE")
    assert (extension.Format, extension.GroupId, data[72:]) == ("MQSTR", b"g" * 24, b"0123456789")
    accept = mqi.MQGMO(Options=NONE | mqi.MQGMO_ACCEPT_TRUNCATED_MSG)
    data, length, *codes = mqi.MQGET(mq.h, q, mqi.MQMD(), accept, 76)
    assert (data[72:], length, codes) == (b"0123", 82, [1, 2079])


def test_property_options_exclude_each_other(mq: Any) -> None:
    q = mq.open("Q")
    assert mq.get_code(q, NONE | COMPATIBLE) == 2046
    assert mq.get_code(q, NONE | mqi.MQGMO_PROPERTIES_FORCE_MQRFH2) == 2046


@pytest.mark.parametrize(
    ("control", "of_own", "of_jms"),
    [("COMPAT", False, True), ("NONE", False, False), ("ALL", True, True), ("FORCE", True, True),
     ("V6COMPAT", True, True)],
)  # fmt: skip
def test_without_an_option_propctl_of_the_definition_counts(
    mq: Any, control: str, of_own: bool, of_jms: bool
) -> None:
    mq.qm.alter("QLOCAL", "Q", propctl=control)
    for folder, stays in ((PROPERTIES, of_own), (RED, of_jms), ("<jms><Dst/></jms>", of_jms)):
        whole = header(folder) + b"body"
        data, _, md, codes = got(mq, whole, 0)
        assert codes == (0, 0)
        assert data == (whole if stays else b"body")
        assert md.Format == ("MQHRF2" if stays else "MQSTR")
    assert got(mq, header(OTHER) + b"body", 0)[0] == header(OTHER) + b"body"


def test_an_option_of_the_get_goes_before_propctl(mq: Any) -> None:
    mq.qm.alter("QLOCAL", "Q", propctl="NONE")
    whole = header(PROPERTIES) + b"body"
    assert got(mq, whole, mqi.MQGMO_PROPERTIES_FORCE_MQRFH2)[0] == whole
    mq.qm.alter("QLOCAL", "Q", propctl="ALL")
    assert got(mq, whole, NONE)[0] == b"body"


def test_an_alias_has_a_propctl_of_its_own(mq: Any) -> None:
    mq.qm.alter("QLOCAL", "Q", propctl="NONE")
    mq.qm.define("QALIAS", "QA", target="Q", propctl="ALL")
    whole = header(RED) + b"body"
    q, alias = mq.open("Q"), mq.open("QA")
    mq.put(q, whole, Format="MQHRF2")
    assert mq.get(alias, mqi.MQGMO_BROWSE_FIRST)[0] == whole
    assert mq.get(q)[0] == b"body"


def test_a_folder_of_jms_keeps_all_wherever_it_stands(mq: Any) -> None:
    """A header is known by its first folder, or looked through: both must say the same."""
    for folders in ([PROPERTIES, RED], [RED, PROPERTIES], [RED + OTHER, PROPERTIES]):
        whole = header(*folders) + b"body"
        assert got(mq, whole, COMPATIBLE)[0] == whole
        assert without_properties(whole, 546, 1208, True) is None

"""MQPUT and MQPUT1: options, order of checks, context, identifiers, both descriptor versions."""

from __future__ import annotations

import re
from typing import Any

import pytest

from penstock import mqi

OUTPUT, INPUT, BROWSE, SAVE = 16, 1, 8, 128
NONE = bytes(24)


@pytest.mark.parametrize(
    "options",
    [
        2 | 4,
        32 | 16384,
        256 | 512,
        1024 | 2048,
        32 | 2048,
        65536 | 131072,
        4096,
        32768,
        8388608,
        2097152,
        67108864,
        134217728,
        268435456,
        524288,
        1,
        8,
        16,
        1 << 22,
        -(1 << 31),
    ],
)
def test_put_options_that_do_not_fit_are_2046(mq: Any, options: int) -> None:
    q = mq.open("Q", OUTPUT | 2048)
    assert mq.put_code(q, options=options) == 2046
    assert mq.qm.display("QLOCAL", "Q")[0]["curdepth"] == 0


@pytest.mark.parametrize("options", [0, 2, 4, 32, 16384, 64 | 128, 65536, 131072, 8192, 262144])
def test_put_options_that_fit(mq: Any, options: int) -> None:
    assert mq.put_code(mq.open("Q", OUTPUT), options=options) == 0


def test_mqput1_takes_an_alternate_user_but_no_logical_order(mq: Any) -> None:
    od, md = mqi.MQOD(ObjectName="Q"), mqi.MQMD()
    assert mqi.MQPUT1(mq.h, od, md, mqi.MQPMO(Options=4096), b"") == (0, 0)
    assert mqi.MQPUT1(mq.h, od, md, mqi.MQPMO(Options=32768), b"") == (2, 2046)


FIELDS = [
    (2029, {"MsgType": 0}),
    (2029, {"MsgType": -1}),
    (2029, {"MsgType": 1000000000}),
    (2013, {"Expiry": 0}),
    (2013, {"Expiry": -2}),
    (2013, {"Expiry": 1000000000}),
    (2014, {"Feedback": -1}),
    (2014, {"Feedback": 1000000000}),
    (2047, {"Persistence": 3}),
    (2047, {"Persistence": -1}),
    (2047, {"Persistence": 256}),
    (2050, {"Priority": -2}),
    (2061, {"Report": 0x00040000}),
    (2061, {"Report": 0x10000000}),
    (2061, {"Report": 0x00008000}),
    (2061, {"Report": 512, "ReplyToQ": "R"}),
    (2061, {"Report": 0x04000000, "ReplyToQ": "R"}),
    (2027, {"MsgType": 1}),
    (2027, {"Report": 256}),
    (2027, {"Report": 0x01000000}),
    (2249, {"Version": 2, "MsgFlags": 64}),
    (2250, {"Version": 2, "MsgSeqNumber": 0}),
    (2250, {"Version": 2, "MsgSeqNumber": 1000000000}),
    (2251, {"Version": 2, "Offset": -1}),
    (2252, {"Version": 2, "OriginalLength": 0}),
    (2252, {"Version": 2, "OriginalLength": -2}),
    (2443, {"Version": 2, "MsgFlags": 2}),
    (2365, {"Version": 2, "MsgFlags": 1 | 2}),
    (2365, {"Version": 2, "MsgFlags": 1 | 2 | 4}),
    (2026, {"Version": 0}),
    (2026, {"Version": 3}),
    (2026, {"StrucId": "OD"}),
]


@pytest.mark.parametrize(("code", "fields"), FIELDS)
def test_each_field_that_does_not_fit_has_its_reason_code(
    mq: Any, code: int, fields: dict[str, Any]
) -> None:
    q = mq.open("Q", OUTPUT)
    md = mqi.MQMD(**fields)
    before = md.pack() if fields.get("Version", 1) in (1, 2) and "StrucId" not in fields else None
    assert mqi.MQPUT(mq.h, q, md, mqi.MQPMO(), b"") == (2, code)
    assert mqi.MQPUT1(mq.h, mqi.MQOD(ObjectName="Q"), md, mqi.MQPMO(), b"") == (2, code)
    assert before is None or md.pack() == before
    assert mq.qm.display("QLOCAL", "Q")[0]["curdepth"] == 0


class Text(str):
    """A kind of text."""

    __slots__ = ()


@pytest.mark.parametrize("ccsid", [0, 1208])
def test_text_is_put_in_utf_8_when_format_and_character_set_say_so(mq: Any, ccsid: int) -> None:
    q = mq.open("Q")
    for text in ("", "Grüße, 3 €", Text("of a subclass")):
        mq.put(q, text, Format="MQSTR", CodedCharSetId=ccsid)
        data, md = mq.get(q)
        assert (data.decode("utf-8"), md.Format, md.CodedCharSetId) == (text, "MQSTR", 1208)


def test_text_without_its_format_or_character_set_is_2004(mq: Any) -> None:
    q = mq.open("Q")
    assert mq.put_code(q, "text") == mq.put_code(q, "text", Format="MQADMIN") == 2004
    assert mq.put_code(q, "text", Format="MQSTR", CodedCharSetId=819) == 2004
    assert mq.put_code(q, "\ud800", Format="MQSTR") == 2004
    assert mq.get_code(q) == 2033


def test_version_1_ignores_the_fields_of_version_2(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q, MsgFlags=64, MsgSeqNumber=0, Offset=-1, OriginalLength=0, GroupId=b"g")
    assert mq.get(q)[1].GroupId == NONE


def test_checks_come_in_the_order_of_the_reference(mq: Any) -> None:
    q, inp = mq.open("Q", OUTPUT), mq.open("Q", INPUT)
    bad_md, bad_pmo = mqi.MQMD(MsgType=0, Expiry=0), mqi.MQPMO(Options=6)
    setting = mqi.MQPMO(Options=mqi.MQPMO_SET_ALL_CONTEXT)
    mq.qm.alter("QLOCAL", "Q", put="DISABLED")
    assert mqi.MQPUT(None, q, "md", "pmo", 5) == (2, 2018)
    assert mqi.MQPUT(mq.h, None, "md", "pmo", 5) == (2, 2019)
    assert mqi.MQPUT(mq.h, inp, "md", "pmo", 5) == (2, 2039)
    assert mqi.MQPUT(mq.h, q, "md", "pmo", 5) == (2, 2173)
    assert mqi.MQPUT(mq.h, q, "md", bad_pmo, 5) == (2, 2046)
    assert mqi.MQPUT(mq.h, q, "md", setting, 5) == (2, 2095)
    assert mqi.MQPUT(mq.h, q, "md", mqi.MQPMO(), 5) == (2, 2026)
    assert mqi.MQPUT(mq.h, q, bad_md, mqi.MQPMO(), 5) == (2, 2029)
    assert mqi.MQPUT(mq.h, q, mqi.MQMD(), mqi.MQPMO(), 5) == (2, 2004)
    assert mqi.MQPUT(mq.h, q, mqi.MQMD(), mqi.MQPMO(), b"") == (2, 2051)


@pytest.mark.parametrize("data", ["text", 5, object(), [1], memoryview(b"abcd")[::2]])
def test_data_without_bytes_is_2004(mq: Any, data: Any) -> None:
    assert mq.put_code(mq.open("Q", OUTPUT), data) == 2004


@pytest.mark.parametrize("data", [b"", bytearray(b"x"), memoryview(b"yz"), None])
def test_any_bytes_will_do(mq: Any, data: Any) -> None:
    q = mq.open("Q")
    assert mq.put_code(q, data) == 0
    assert mq.get(q)[0] == bytes(data or b"")


def test_limits_of_queue_and_queue_manager(mq: Any) -> None:
    mq.qm.alter("QLOCAL", "Q", maxmsgl=10, maxdepth=1)
    q = mq.open("Q", OUTPUT)
    assert mq.put_code(q, b"x" * 11) == 2030
    assert mq.put_code(q, b"x" * 10) == 0
    assert mq.put_code(q, b"") == 2053


VECTORS = [  # Priority, MSGDLVSQ, reason, field on get
    (-1, "PRIORITY", 0, 3),
    (0, "PRIORITY", 0, 0),
    (9, "PRIORITY", 0, 9),
    (12, "PRIORITY", 2049, 12),
    (7, "FIFO", 0, 7),
    (12, "FIFO", 2049, 12),
]


@pytest.mark.parametrize(("priority", "sequence", "code", "field"), VECTORS)
def test_priority_vectors(mq: Any, priority: int, sequence: str, code: int, field: int) -> None:
    mq.qm.alter("QLOCAL", "Q", defprty=3, msgdlvsq=sequence)
    q = mq.open("Q")
    md = mqi.MQMD(Priority=priority)
    assert mqi.MQPUT(mq.h, q, md, mqi.MQPMO(), b"") == (1 if code else 0, code)
    assert md.Priority == priority  # input only
    assert mq.get(q)[1].Priority == field


def test_a_priority_above_the_maximum_stands_behind_earlier_nines(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q, b"nine", Priority=9)
    assert mq.put_code(q, b"twelve", Priority=12) == 2049
    mq.put(q, b"nine again", Priority=9)
    assert [mq.get(q)[0] for _ in range(3)] == [b"nine", b"twelve", b"nine again"]


def test_unknown_report_bits_warn_or_fail(mq: Any) -> None:
    q = mq.open("Q")
    assert mq.put_code(q, Report=0x40000000) == 2104
    assert mq.put_code(q, Report=0x40000000, Priority=12) == 2049
    mq.qm.define("QLOCAL", "XQ", usage="XMITQ")
    x = mq.open("ANY", OUTPUT, ObjectQMgrName="XQ")
    assert mq.put_code(x, Report=0x00008000) == 2104
    assert mq.put_code(x, Report=0x00040000) == 2061


# ---- identifiers ----


def test_msg_id_is_made_when_there_is_none_and_returned(mq: Any) -> None:
    q = mq.open("Q")
    md = mq.put(q)
    assert re.fullmatch(rb"AMQ QM1 {9}.{8}", md.MsgId, re.DOTALL)
    mine = bytes(range(24))
    assert mq.put(q, MsgId=mine).MsgId == mine
    made = mq.put(q, options=mqi.MQPMO_NEW_MSG_ID, MsgId=mine).MsgId
    assert made not in (mine, NONE, md.MsgId)
    assert [mq.get(q)[1].MsgId for _ in range(3)] == [md.MsgId, mine, made]


def test_a_reused_descriptor_reuses_its_msg_id(mq: Any) -> None:
    q = mq.open("Q")
    md = mq.put(q)
    first = md.MsgId
    assert mqi.MQPUT(mq.h, q, md, mqi.MQPMO(), b"again") == (0, 0)
    assert md.MsgId == first
    assert {mq.get(q)[1].MsgId for _ in range(2)} == {first}


def test_correl_id_is_kept_unless_a_new_one_is_requested(mq: Any) -> None:
    q = mq.open("Q")
    assert mq.put(q, CorrelId=b"c").CorrelId == b"c".ljust(24, b"\0")
    made = mq.put(q, options=mqi.MQPMO_NEW_CORREL_ID, CorrelId=b"c")
    assert made.CorrelId[:1] != b"c" and made.CorrelId != made.MsgId
    assert mq.get(q)[1].CorrelId[:1] == b"c"
    assert mq.get(q)[1].CorrelId == made.CorrelId


def test_a_group_without_identifier_gets_one(mq: Any) -> None:
    q = mq.open("Q")
    md = mq.put(q, Version=2, MsgFlags=8)
    assert md.GroupId != NONE
    assert mq.get(q)[1].GroupId == md.GroupId
    assert mq.put(q, Version=2, MsgFlags=16, GroupId=b"g").GroupId[:1] == b"g"


# ---- context ----


def test_default_context_is_the_connections(mq: Any) -> None:
    q = mq.open("Q")
    md = mq.put(q, UserIdentifier="IGNORED", PutApplName="IGNORED", PutDate="19990101")
    _, got = mq.get(q)
    assert got.UserIdentifier not in ("", "IGNORED")
    assert got.AccountingToken[31] == 6
    assert (got.PutApplType, got.ApplIdentityData, got.ApplOriginData) == (6, "", "")
    assert re.fullmatch(r"20\d{6}", got.PutDate) and re.fullmatch(r"\d{8}", got.PutTime)
    for field in ("UserIdentifier", "PutApplName", "PutDate", "PutTime", "AccountingToken"):
        assert getattr(md, field) == getattr(got, field)


def test_no_context(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q, options=mqi.MQPMO_NO_CONTEXT, UserIdentifier="X")
    _, md = mq.get(q)
    assert (md.UserIdentifier, md.AccountingToken, md.PutApplType) == ("", bytes(32), 0)
    assert (md.PutApplName, md.PutDate, md.PutTime) == ("", "", "")


CONTEXT = {
    "UserIdentifier": "SOMEBODY",
    "AccountingToken": b"token",
    "ApplIdentityData": "identity data",
    "PutApplType": 25,
    "PutApplName": "another program",
    "PutDate": "20240229",
    "PutTime": "23595999",
    "ApplOriginData": "ORIG",
}
IDENTITY = ("UserIdentifier", "AccountingToken", "ApplIdentityData")


def test_set_identity_and_set_all_context(mq: Any) -> None:
    q = mq.open("Q", INPUT | OUTPUT | mqi.MQOO_SET_ALL_CONTEXT)
    mq.put(q, options=mqi.MQPMO_SET_ALL_CONTEXT, **CONTEXT)
    mq.put(q, options=mqi.MQPMO_SET_IDENTITY_CONTEXT, **CONTEXT)
    _, everything = mq.get(q)
    _, identity = mq.get(q)
    sent = mqi.MQMD(**CONTEXT)
    for field in CONTEXT:
        assert getattr(everything, field) == getattr(sent, field)
        assert (getattr(identity, field) == getattr(sent, field)) == (field in IDENTITY)


@pytest.mark.parametrize("date", ["", "20241301", "yyyymmdd", "19690101"])
def test_a_put_date_that_is_none_reads_as_blanks(mq: Any, date: str) -> None:
    q = mq.open("Q", INPUT | OUTPUT | mqi.MQOO_SET_ALL_CONTEXT)
    mq.put(q, options=mqi.MQPMO_SET_ALL_CONTEXT, PutDate=date, PutTime="10101010")
    assert (mq.get(q)[1].PutDate) == ""


@pytest.mark.parametrize("date", ["19700101", "20000229", "20001231", "20991231", "21000301"])
def test_dates_come_back_as_they_were_set(mq: Any, date: str) -> None:
    q = mq.open("Q", INPUT | OUTPUT | mqi.MQOO_SET_ALL_CONTEXT)
    mq.put(q, options=mqi.MQPMO_SET_ALL_CONTEXT, PutDate=date, PutTime="12345678")
    _, md = mq.get(q)
    assert (md.PutDate, md.PutTime) == (date, "12345678")


def test_context_is_passed_from_the_message_got_last(mq: Any) -> None:
    mq.qm.define("QLOCAL", "TO")
    source = mq.open("Q", INPUT | OUTPUT | BROWSE | SAVE | mqi.MQOO_SET_ALL_CONTEXT)
    target = mq.open("TO", INPUT | OUTPUT | mqi.MQOO_PASS_ALL_CONTEXT)
    mq.put(source, options=mqi.MQPMO_SET_ALL_CONTEXT, **CONTEXT)
    mq.get(source, mqi.MQGMO_BROWSE_FIRST)
    pass_all = mqi.MQPMO(Options=mqi.MQPMO_PASS_ALL_CONTEXT, Context=source)
    assert mqi.MQPUT(mq.h, target, mqi.MQMD(), pass_all, b"") == (2, 2098)
    mq.get(source)
    for option in (mqi.MQPMO_PASS_ALL_CONTEXT, mqi.MQPMO_PASS_IDENTITY_CONTEXT):
        pmo = mqi.MQPMO(Options=option, Context=source)
        assert mqi.MQPUT(mq.h, target, mqi.MQMD(UserIdentifier="X"), pmo, b"") == (0, 0)
        _, md = mq.get(target)
        for field in CONTEXT:
            same = getattr(md, field) == getattr(mqi.MQMD(**CONTEXT), field)
            assert same == (option == mqi.MQPMO_PASS_ALL_CONTEXT or field in IDENTITY)


@pytest.mark.parametrize(
    ("opened", "option", "code"),
    [
        (0, mqi.MQPMO_PASS_ALL_CONTEXT, 2093),
        (256, mqi.MQPMO_PASS_ALL_CONTEXT, 2093),
        (0, mqi.MQPMO_PASS_IDENTITY_CONTEXT, 2094),
        (1024, mqi.MQPMO_SET_ALL_CONTEXT, 2095),
        (512, mqi.MQPMO_SET_IDENTITY_CONTEXT, 2096),
        (2048, mqi.MQPMO_PASS_ALL_CONTEXT, 2097),
        (1024, mqi.MQPMO_PASS_IDENTITY_CONTEXT, 2097),
        (2048, mqi.MQPMO_SET_IDENTITY_CONTEXT, 0),
    ],
)
def test_context_needs_its_right(mq: Any, opened: int, option: int, code: int) -> None:
    q = mq.open("Q", OUTPUT | opened)
    assert mqi.MQPUT(mq.h, q, mqi.MQMD(), mqi.MQPMO(Options=option), b"")[1] == code


def test_the_context_handle_must_save_context(mq: Any) -> None:
    plain, q = mq.open("Q", INPUT), mq.open("Q", OUTPUT | 512)
    for context in (plain, 99, -1):
        pmo = mqi.MQPMO(Options=mqi.MQPMO_PASS_ALL_CONTEXT, Context=context)
        assert mqi.MQPUT(mq.h, q, mqi.MQMD(), pmo, b"") == (2, 2097)


# ---- version 2 and its extension ----


def test_an_mqmde_in_front_of_the_data_supplies_the_fields_of_version_2(mq: Any) -> None:
    q = mq.open("Q")
    mde = mqi.MQMDE(Format="MQSTR", GroupId=b"group", MsgSeqNumber=3, MsgFlags=8, CodedCharSetId=37)
    mq.put(q, mde.pack() + b"body", Format="MQHMDE")
    data, md = mq.get(q)
    assert (data, md.Format, md.CodedCharSetId) == (b"body", "MQSTR", 37)
    assert (md.GroupId[:5], md.MsgSeqNumber, md.MsgFlags) == (b"group", 3, 8)


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (2248, {"StrucId": "XX"}),
        (2248, {"Version": 1}),
        (2248, {"StrucLength": 71}),
        (2250, {"MsgSeqNumber": 0}),
        (2249, {"MsgFlags": 1 << 20}),
    ],
)
def test_a_wrong_mqmde_is_refused(mq: Any, code: int, fields: dict[str, Any]) -> None:
    q = mq.open("Q")
    raw = bytearray(mqi.MQMDE().pack())
    for field, value in fields.items():
        at = {"StrucId": 0, "Version": 4, "StrucLength": 8, "MsgSeqNumber": 56, "MsgFlags": 64}
        new = value.encode().ljust(4) if isinstance(value, str) else value.to_bytes(4, "little")
        raw[at[field] : at[field] + 4] = new
    assert mq.put_code(q, bytes(raw), Format="MQHMDE") == code
    assert mq.put_code(q, bytes(raw)[:71], Format="MQHMDE") == 2248


def test_a_version_2_descriptor_leaves_the_data_alone(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q, b"no extension", Version=2, Format="MQHMDE")
    assert mq.get(q)[0] == b"no extension"


def test_a_version_1_get_has_the_fields_of_version_2_in_an_mqmde(mq: Any) -> None:
    q = mq.open("Q")
    for length in (None, 200, 76):
        mq.put(q, b"body", Version=2, Format="MQSTR", GroupId=b"g", MsgSeqNumber=2, MsgFlags=8)
        md = mqi.MQMD()
        data, size, *result = mqi.MQGET(mq.h, q, md, mqi.MQGMO(), length)
        assert (size, result, md.Format) == (76, [0, 0], "MQHMDE")
        mde = mqi.MQMDE.unpack(data[:72])
        assert (mde.Format, mde.MsgSeqNumber, mde.MsgFlags, data[72:]) == ("MQSTR", 2, 8, b"body")
    mq.put(q, b"body", Version=2, MsgSeqNumber=2)
    assert mqi.MQGET(mq.h, q, mqi.MQMD(), mqi.MQGMO(), 75)[2:] == (1, 2080)
    data, size, *result = mqi.MQGET(mq.h, q, mqi.MQMD(), mqi.MQGMO(Options=64), 75)
    assert (len(data), size, result) == (75, 76, [1, 2079])


@pytest.mark.parametrize("persistent", [0, 1])
@pytest.mark.parametrize(("body", "room"), [(b"", 0), (b"", 71), (b"", 40), (b"x", 72), (b"x", 1)])
def test_a_buffer_too_short_for_the_mqmde_is_too_short_for_the_message(
    mq: Any, body: bytes, room: int, persistent: int
) -> None:
    q = mq.open("Q")
    mq.put(q, body, Version=2, MsgSeqNumber=2, Persistence=persistent)
    length = 72 + len(body)
    data, size, *result = mqi.MQGET(mq.h, q, mqi.MQMD(), mqi.MQGMO(), room)
    assert (len(data), size, result) == (room, length, [1, 2080])
    assert mqi.MQGET(mq.h, q, mqi.MQMD(Version=2), mqi.MQGMO(Options=16), 1)[1:] == (
        len(body),
        0,
        0,
    )
    gmo = mqi.MQGMO(Options=64, Version=3)
    data, size, *result = mqi.MQGET(mq.h, q, mqi.MQMD(), gmo, room)
    assert (len(data), size, result) == (room, length, [1, 2079])
    assert gmo.ReturnedLength == room
    assert data == b"MDE \2\0\0\0"[:room] + data[8:]
    assert mq.get_code(q) == 2033


def test_a_message_without_fields_of_version_2_has_the_whole_buffer(mq: Any) -> None:
    q = mq.open("Q")
    for fields in ({}, {"ReplyToQ": "R"}):
        mq.put(q, b"body", **fields)
        assert mqi.MQGET(mq.h, q, mqi.MQMD(), mqi.MQGMO(), 4) == (b"body", 4, 0, 0)
        mq.put(q, b"body", **fields)
        assert mqi.MQGET(mq.h, q, mqi.MQMD(), mqi.MQGMO(Options=64), 3) == (b"bod", 4, 1, 2079)


# ---- reply queues ----


def test_reply_to_qmgr_is_filled_in(mq: Any) -> None:
    mq.qm.define("QREMOTE", "REPLY.ALIAS", rname="ANSWERS", rqmname="QM5")
    q = mq.open("Q")
    for given, queue, manager in (
        ({"ReplyToQ": "R"}, "R", "QM1"),
        ({"ReplyToQ": "R", "ReplyToQMgr": "QM7"}, "R", "QM7"),
        ({"ReplyToQ": "REPLY.ALIAS"}, "ANSWERS", "QM5"),
        ({"ReplyToQ": "REPLY.ALIAS", "ReplyToQMgr": "QM7"}, "REPLY.ALIAS", "QM7"),
        ({}, "", "QM1"),
    ):
        md = mq.put(q, **given)
        assert (md.ReplyToQ, md.ReplyToQMgr) == (given.get("ReplyToQ", ""), md.ReplyToQMgr)
        _, got = mq.get(q)
        assert (got.ReplyToQ, got.ReplyToQMgr) == (queue, manager)


# ---- z/OS ----


def test_without_a_syncpoint_option_zos_puts_and_gets_in_the_unit_of_work(zos: Any) -> None:
    q = zos.open("Q")
    zos.put(q)
    assert mqi.MQBACK(zos.h) == (0, 0)
    assert zos.get_code(q) == 2033
    zos.put(q, options=mqi.MQPMO_NO_SYNCPOINT)
    zos.get(q)
    assert mqi.MQBACK(zos.h) == (0, 0)
    assert zos.get(q)[1].BackoutCount == 1
    assert mqi.MQCMIT(zos.h) == (0, 0)


def test_generated_ids_begin_with_the_product_of_the_platform(zos: Any) -> None:
    assert zos.put(zos.open("Q")).MsgId[:16] == b"CSQ CSQ1        "

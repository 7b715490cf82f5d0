"""MQGET: options, match options, waits, truncation, browse cursor and lock, outputs."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from penstock import mqi
from penstock.headers import rfh2

OUTPUT, INPUT, BROWSE = 16, 1, 8
FIRST, NEXT, CURSOR, UNDER = 16, 32, 2048, 256
LOCK, UNLOCK, SYNC, NO_SYNC, IF_PERSISTENT = 512, 1024, 2, 4, 4096


@pytest.mark.parametrize(
    "options",
    [
        SYNC | NO_SYNC,
        SYNC | IF_PERSISTENT,
        NO_SYNC | IF_PERSISTENT,
        FIRST | NEXT,
        FIRST | CURSOR,
        NEXT | UNDER,
        CURSOR | UNDER,
        SYNC | FIRST,
        SYNC | NEXT,
        SYNC | CURSOR,
        SYNC | LOCK | FIRST,
        SYNC | UNLOCK,
        IF_PERSISTENT | FIRST,
        IF_PERSISTENT | UNLOCK,
        LOCK,
        LOCK | UNDER,
        UNLOCK | 1,
        UNLOCK | FIRST,
        UNLOCK | 64,
        8,
        8 | 1,
        128,
        128 | SYNC,
        0x8000000,
        0x100010,
        0x80000,
        1 << 29,
        -(1 << 31),
    ],
)
def test_get_options_that_do_not_fit_are_2046(mq: Any, options: int) -> None:
    q = mq.open("Q")
    mq.put(q)
    assert mq.get_code(q, options, Version=2) == 2046
    assert mq.get(q)[0] == b"data"


@pytest.mark.parametrize("options", [32768, 65536, 131072, 262144, 0x100000, 0x400000])
def test_options_of_version_2_with_a_version_1_structure_are_2256(mq: Any, options: int) -> None:
    q = mq.open("Q")
    assert mq.get_code(q, options | FIRST) == 2256
    assert mq.get_code(q, options | FIRST, Version=2) == 2046


def test_gets_need_the_right_open_option(mq: Any) -> None:
    out, inp, bro = mq.open("Q", OUTPUT), mq.open("Q", INPUT), mq.open("Q", BROWSE)
    mq.put(out)
    assert mq.get_code(out) == mq.get_code(bro) == 2037
    assert mq.get_code(inp, FIRST) == mq.get_code(inp, CURSOR) == mq.get_code(inp, UNLOCK) == 2036
    assert mq.get_code(inp, UNDER) == 2036
    assert mq.get_code(bro, UNDER) == 2037
    assert mq.get(bro, FIRST)[0] == mq.get(inp)[0] == b"data"


@pytest.mark.parametrize("wrong", [None, "GMO", mqi.MQPMO(), object()])
def test_what_are_no_get_options_is_2186(mq: Any, wrong: Any) -> None:
    q = mq.open("Q")
    assert mqi.MQGET(mq.h, q, mqi.MQMD(), wrong)[2:] == (2, 2186)
    for fields in ({"Version": 0}, {"Version": 5}, {"StrucId": "XX"}):
        assert mq.get_code(q, **fields) == 2186


@pytest.mark.parametrize("wrong", [None, "MD", mqi.MQGMO(), mqi.MQMD(Version=3)])
def test_a_wrong_type_of_descriptor_is_2026(mq: Any, wrong: Any) -> None:
    q = mq.open("Q")
    assert mqi.MQGET(mq.h, q, wrong, mqi.MQGMO())[2:] == (2, 2026)


@pytest.mark.parametrize("length", [-1, "5", 2.5, -(1 << 40)])
def test_a_wrong_buffer_length_is_2005(mq: Any, length: Any) -> None:
    assert mqi.MQGET(mq.h, mq.open("Q"), mqi.MQMD(), mqi.MQGMO(), length)[2:] == (2, 2005)


def test_every_field_comes_back(mq: Any) -> None:
    q = mq.open("Q")
    fields = {
        "Report": 192, "MsgType": 65536, "Expiry": 6000, "Feedback": 70000, "Encoding": 273,
        "CodedCharSetId": 500, "Format": "MYFORMAT", "Priority": 4, "Persistence": 1,
        "MsgId": b"m", "CorrelId": b"c", "ReplyToQ": "R", "ReplyToQMgr": "QMR", "GroupId": b"g",
        "MsgSeqNumber": 7, "Offset": 5, "MsgFlags": 8, "OriginalLength": 9, "Version": 2,
    }  # fmt: skip
    mq.put(q, **fields)
    _, md = mq.get(q)
    sent = mqi.MQMD(**fields)
    for field in fields:
        if field == "Expiry":
            assert 5900 < md.Expiry <= 6000
        else:
            assert getattr(md, field) == getattr(sent, field), field


def test_special_values_are_never_returned(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q)
    _, md = mq.get(q)
    assert (md.Priority, md.Persistence, md.CodedCharSetId, md.Expiry) == (0, 0, 1208, -1)


def test_outputs_of_the_get_options(mq: Any) -> None:
    mq.qm.define("QALIAS", "A", target="Q")
    q = mq.open("A")
    for flags, group, allowed in ((0, " ", " "), (8, "G", " "), (24, "L", " "), (9, "G", "A")):
        mq.put(q, b"four", Version=2, MsgFlags=flags, GroupId=b"g" if flags else b"")
        gmo = mqi.MQGMO(Version=4)
        assert mqi.MQGET(mq.h, q, mqi.MQMD(Version=2), gmo)[2:] == (0, 0)
        assert (gmo.ResolvedQName, gmo.GroupStatus, gmo.Segmentation) == ("Q", group, allowed)
        assert (gmo.ReturnedLength, gmo.SegmentStatus) == (4, " ")
        assert gmo.MsgToken != bytes(16)


# ---- match options ----


def test_match_options(mq: Any) -> None:
    q = mq.open("Q")
    for n in range(1, 5):
        mq.put(
            q, b"%d" % n, Version=2, MsgId=b"m%d" % n, CorrelId=b"c%d" % (n % 2), GroupId=b"g",
            MsgSeqNumber=n, Offset=10 * n, MsgFlags=8,
        )  # fmt: skip
    cases = (
        (1, {"MsgId": b"m3"}, b"3"),
        (2, {"CorrelId": b"c0"}, b"2"),
        (3, {"MsgId": b"m4", "CorrelId": b"c0"}, b"4"),
        (3, {"MsgId": b"m4", "CorrelId": b"c1"}, None),
        (4, {"GroupId": b"g"}, b"1"),
        (4, {"GroupId": b"other"}, None),
        (12, {"GroupId": b"g", "MsgSeqNumber": 2}, b"2"),
        (16, {"Offset": 30}, b"3"),
        (0, {"MsgId": b"none", "CorrelId": b"none", "GroupId": b"none"}, b"1"),
        (7, {}, b"1"),
    )
    for match, fields, expected in cases:
        md = mqi.MQMD(Version=2, **fields)
        gmo = mqi.MQGMO(Version=2, Options=FIRST, MatchOptions=match)
        data, _, _, code = mqi.MQGET(mq.h, q, md, gmo)
        assert (data or None, code) == (expected, 0 if expected else 2033), (match, fields)


def test_version_1_matches_both_identifiers(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q, b"1", MsgId=b"a")
    mq.put(q, b"2", MsgId=b"b")
    assert mq.get(q, md=mqi.MQMD(MsgId=b"b"), MatchOptions=0)[0] == b"2"
    md = mqi.MQMD()
    mq.get(q, md=md)
    mq.put(q, b"3")
    assert mq.get_code(q, md=md) == 2033  # the classic trap: the returned ids select
    assert mq.get(q, md=md, Version=2, MatchOptions=0)[0] == b"3"


def test_wrong_match_options(mq: Any) -> None:
    q = mq.open("Q")
    for match in (64, -1, 1 << 20):
        assert mq.get_code(q, Version=2, MatchOptions=match) == 2247
    for match in (4, 8, 16):
        assert mq.get_code(q, md=mqi.MQMD(), Version=2, MatchOptions=match) == 2257
    assert mq.get_code(q, Version=2, MatchOptions=32) == 2256
    assert mq.get_code(q, Version=3, MatchOptions=32) == 2331


def test_a_message_is_got_by_its_token(mq: Any) -> None:
    mq.qm.define("QLOCAL", "OTHER")
    q, other = mq.open("Q"), mq.open("OTHER")
    for n in range(3):
        mq.put(q, b"%d" % n)
    mq.put(other)
    tokens = []
    for _ in range(3):
        gmo = mqi.MQGMO(Version=3, Options=NEXT, MatchOptions=0)
        mqi.MQGET(mq.h, q, mqi.MQMD(), gmo)
        tokens.append(gmo.MsgToken)
    want = {"Version": 3, "MatchOptions": 32}
    assert mq.get(q, MsgToken=tokens[1], **want)[0] == b"1"
    assert mq.get_code(q, MsgToken=tokens[1], **want) == 2033
    assert mq.get_code(other, MsgToken=tokens[0], **want) == 2033
    assert mq.get(q, MsgToken=tokens[2], **want)[0] == b"2"


# ---- truncation ----


@pytest.mark.parametrize("version", [1, 2])
def test_truncation(mq: Any, version: int) -> None:
    q = mq.open("Q")
    mq.put(q, b"0123456789", MsgId=b"id")
    md = mqi.MQMD(Version=version)
    assert mqi.MQGET(mq.h, q, md, mqi.MQGMO(), 4) == (b"0123", 10, 1, 2080)
    assert md.MsgId[:2] == b"id"
    assert mqi.MQGET(mq.h, q, mqi.MQMD(Version=version), mqi.MQGMO(), 10)[2:] == (0, 0)
    mq.put(q, b"0123456789")
    gmo = mqi.MQGMO(Version=3, Options=64)
    assert mqi.MQGET(mq.h, q, mqi.MQMD(Version=version), gmo, 4) == (b"0123", 10, 1, 2079)
    assert gmo.ReturnedLength == 4
    mq.put(q, b"0123456789")
    md = mqi.MQMD(Version=version)
    assert mqi.MQGET(mq.h, q, md, mqi.MQGMO(Options=64), 0) == (b"", 10, 1, 2079)
    assert mq.get_code(q) == 2033


def test_without_a_length_a_message_of_any_size_comes_whole(mq: Any) -> None:
    q = mq.open("Q")
    for size in (0, 1, 5000, 200_000, 10):
        mq.put(q, b"x" * size)
        assert len(mq.get(q)[0]) == size


# ---- waiting ----


def test_a_wait_ends_with_2033_when_its_time_is_up(mq: Any) -> None:
    q = mq.open("Q")
    begun = time.monotonic()
    assert mq.get_code(q, mqi.MQGMO_WAIT, WaitInterval=120) == 2033
    assert time.monotonic() - begun >= 0.1
    assert mq.get_code(q, mqi.MQGMO_WAIT, WaitInterval=0) == 2033
    assert mq.get_code(q, 0, WaitInterval=-7) == 2033  # ignored without WAIT
    assert mq.get_code(q, mqi.MQGMO_WAIT, WaitInterval=-2) == 2090


def test_a_wait_is_ended_by_a_put(mq: Any) -> None:
    q = mq.open("Q")

    def put() -> None:
        time.sleep(0.1)
        h = mqi.MQCONN("QM1")[0]
        mqi.MQPUT1(h, mqi.MQOD(ObjectName="Q"), mqi.MQMD(), mqi.MQPMO(), b"late")
        mqi.MQDISC(h)

    thread = threading.Thread(target=put)
    thread.start()
    assert mq.get(q, mqi.MQGMO_WAIT, WaitInterval=-1)[0] == b"late"
    thread.join()


def test_get_inhibited_is_2016_at_once_and_in_a_wait(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q)

    def inhibit() -> None:
        time.sleep(0.1)
        mq.qm.alter("QLOCAL", "Q", get="DISABLED")

    mq.get(q)
    thread = threading.Thread(target=inhibit)
    thread.start()
    assert mq.get_code(q, mqi.MQGMO_WAIT, WaitInterval=20000) == 2016
    thread.join()
    assert mq.get_code(q) == 2016


# ---- browsing ----


def test_browse_cursor(mq: Any) -> None:
    q = mq.open("Q")
    assert mq.get_code(q, CURSOR) == mq.get_code(q, UNDER) == 2034
    for n in range(3):
        mq.put(q, b"%d" % n)
    assert mq.get(q, NEXT)[0] == b"0"
    assert mq.get(q, NEXT)[0] == mq.get(q, CURSOR)[0] == b"1"
    assert mq.get(q, UNDER)[0] == b"1"
    assert mq.get_code(q, CURSOR) == 2034
    assert mq.get(q, NEXT)[0] == b"2"
    assert mq.get_code(q, NEXT) == 2033
    assert mq.get(q, FIRST)[0] == b"0"


def test_browse_lock(mq: Any) -> None:
    q, other = mq.open("Q"), mq.open("Q")
    mq.put(q, b"1")
    assert mq.get_code(q, UNLOCK) == 2209
    assert mqi.MQGET(mq.h, q, mqi.MQMD(), mqi.MQGMO(Options=UNLOCK))[2:] == (1, 2209)
    assert mq.get(q, FIRST | LOCK)[0] == b"1"
    assert mq.get_code(other) == mq.get_code(other, FIRST) == 2033
    assert mq.get_code(q, UNLOCK) == 0
    assert mq.get(other, FIRST)[0] == b"1"
    mq.get(q, FIRST | LOCK)
    assert mq.get(q, UNDER)[0] == b"1"


@pytest.mark.parametrize("persistent", [0, 1])
@pytest.mark.parametrize("how", ["plain", "unit", "match", "token", "sequence number", "cursor"])
def test_a_get_through_the_locking_handle_takes_the_locked_message(
    mq: Any, persistent: int, how: str
) -> None:
    q, other = mq.open("Q"), mq.open("Q")
    group = {"Version": 2, "GroupId": b"g", "MsgFlags": 8, "Persistence": persistent}
    for number in (1, 2):
        mq.put(q, b"%d" % number, CorrelId=b"c%d" % number, MsgSeqNumber=number, **group)
    gmo = mqi.MQGMO(Version=3, Options=FIRST | LOCK, MatchOptions=0)
    assert mqi.MQGET(mq.h, q, mqi.MQMD(), gmo)[2:] == (0, 0)
    md, options, match = mqi.MQMD(Version=2), 0, 0
    if how == "match":
        md.CorrelId, match = b"c1", mqi.MQMO_MATCH_CORREL_ID
    elif how == "sequence number":
        md.MsgSeqNumber, match = 1, mqi.MQMO_MATCH_MSG_SEQ_NUMBER
    elif how == "token":
        match = mqi.MQMO_MATCH_MSG_TOKEN
    else:
        options = {"plain": 0, "unit": SYNC, "cursor": UNDER}[how]
    fields = {"Version": 3, "MatchOptions": match, "MsgToken": gmo.MsgToken}
    if match:
        assert mq.get_code(other, md=mqi.MQMD(Version=2, CorrelId=b"c1"), **fields) == 2033
    assert mq.get(q, options, md, **fields)[0] == b"1"
    assert mq.get_code(q, UNLOCK) == 2209
    if how == "unit":
        assert mqi.MQBACK(mq.h) == (0, 0)
        assert mq.get(other)[0] == b"1"  # the lock ended with the get, not with its unit
    assert mq.get(other)[0] == b"2"
    assert mq.get_code(other) == 2033


def test_a_get_that_does_not_take_the_locked_message_leaves_it_locked(mq: Any) -> None:
    q, other = mq.open("Q"), mq.open("Q")
    mq.put(q, b"low", Priority=1)
    assert mq.get(q, FIRST | LOCK)[0] == b"low"
    mq.put(q, b"high", Priority=7)
    wanted = mqi.MQMD(Version=2, CorrelId=b"another")
    assert mq.get_code(q, md=wanted) == 2033
    assert mq.get(q)[0] == b"high"
    for options in (0, UNDER):
        result = mqi.MQGET(mq.h, q, mqi.MQMD(), mqi.MQGMO(Options=options), 2)
        assert result == (b"lo", 3, 1, 2080)
    assert mq.get_code(other) == mq.get_code(other, FIRST) == 2033
    assert mq.get(q, UNDER)[0] == b"low"


def test_syncpoint_if_persistent(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q, b"np", Persistence=0)
    mq.put(q, b"p", Persistence=1)
    assert [mq.get(q, IF_PERSISTENT)[0] for _ in range(2)] == [b"np", b"p"]
    assert mqi.MQBACK(mq.h) == (0, 0)
    assert mq.get(q)[0] == b"p"
    assert mq.get_code(q) == 2033


def test_a_backed_out_message_returns_to_its_position(mq: Any) -> None:
    q = mq.open("Q")
    for n in range(3):
        mq.put(q, b"%d" % n)
    mq.get(q, SYNC)
    mqi.MQBACK(mq.h)
    assert [mq.get(q)[0] for _ in range(3)] == [b"0", b"1", b"2"]


def test_a_browse_on_zos_is_outside_any_unit_of_work(zos: Any) -> None:
    q = zos.open("Q")
    zos.put(q, options=mqi.MQPMO_NO_SYNCPOINT)
    zos.get(q, FIRST)
    assert zos.h.pending() == 0
    zos.get(q)
    assert zos.h.pending() == 1
    assert mqi.MQCMIT(zos.h) == (0, 0)


def test_properties_are_in_an_mqrfh2_as_force_asks(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q, rfh2.build({"colour": "red"}) + b"body", Format="MQHRF2")
    mq.put(q, b"plain")
    data, md = mq.get(q, mqi.MQGMO_PROPERTIES_FORCE_MQRFH2)
    header = rfh2.parse(data, md.Encoding)
    assert (md.Format, header.properties) == ("MQHRF2", {"colour": "red"})
    assert data[header.length :] == b"body"
    assert mq.get(q, mqi.MQGMO_PROPERTIES_FORCE_MQRFH2)[0] == b"plain"

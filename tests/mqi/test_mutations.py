"""Claims about MQPUT and MQGET that faults planted in the binding had got past."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import mqi

FIRST, UNDER, LOCK, UNLOCK = 16, 256, 512, 1024
INPUT, BROWSE, OUTPUT, SAVE_ALL = 1, 8, 16, 128
PASS_IDENTITY, PASS_ALL, SET_IDENTITY, SET_ALL = 256, 512, 1024, 2048
CONTEXTS = OUTPUT | PASS_ALL | SET_ALL


def passed(mq: Any, option: int, source: Any, **fields: Any) -> Any:
    """The MQMD of a message that was put with the context of the message got last."""
    to = mq.open("Q", CONTEXTS)
    pmo = mqi.MQPMO(Options=option, Context=int(source))
    assert mqi.MQPUT(mq.h, to, mqi.MQMD(**fields), pmo, b"") == (0, 0), mq.h.error
    return mq.get(mq.open("Q", INPUT))[1]


def test_a_handle_for_browse_alone_unlocks(mq: Any) -> None:
    q = mq.open("Q", BROWSE)
    mq.put(mq.open("Q", OUTPUT))
    assert mq.get(q, FIRST | LOCK)[0] == b"data"
    assert mq.get_code(q, UNLOCK) == 0


def test_a_get_under_the_cursor_needs_browse_before_input(mq: Any) -> None:
    assert mq.get_code(mq.open("Q", OUTPUT), UNDER) == 2036


@pytest.mark.parametrize("wait", [-2, -1000, -(1 << 31)])
def test_each_wait_below_minus_1_is_2090(mq: Any, wait: int) -> None:
    assert mq.get_code(mq.open("Q"), 1, WaitInterval=wait) == 2090


def test_the_identity_that_is_passed_replaces_what_the_message_has(mq: Any) -> None:
    source = mq.open("Q", INPUT | OUTPUT | SAVE_ALL)
    mq.put(source)
    mq.get(source)
    md = passed(mq, PASS_IDENTITY, source, ReplyToQ="R", ApplIdentityData="of the caller")
    assert md.ApplIdentityData == ""


def test_a_saved_identity_is_that_of_the_newest_message(mq: Any) -> None:
    source = mq.open("Q", INPUT | OUTPUT | SET_ALL | SAVE_ALL)
    for fields in ({"options": SET_IDENTITY, "ApplIdentityData": "the first one's"}, {}):
        mq.put(source, **fields)
        mq.get(source)
    assert passed(mq, PASS_ALL, source).ApplIdentityData == ""


def test_every_character_of_a_context_is_passed(mq: Any) -> None:
    source = mq.open("Q", INPUT | OUTPUT | SET_ALL | SAVE_ALL)
    fields = {"UserIdentifier": "ABCDEFGHIJKL", "ApplOriginData": "WXYZ", "PutApplName": "N" * 28}
    mq.put(source, options=SET_ALL, PutApplType=6, **fields)
    mq.get(source)
    md = passed(mq, PASS_ALL, source)
    assert {name: getattr(md, name) for name in fields} == fields


@pytest.mark.parametrize("how", ["nothing", "browse", "2080"])
def test_only_a_message_that_was_got_leaves_its_context(mq: Any, how: str) -> None:
    source = mq.open("Q", INPUT | BROWSE | OUTPUT | SAVE_ALL)
    mq.put(source)
    if how != "nothing":
        gmo = mqi.MQGMO(Options=FIRST if how == "browse" else 0)
        room = None if how == "browse" else 1
        assert mqi.MQGET(mq.h, source, mqi.MQMD(), gmo, room)[2] == (how == "2080")
    pmo = mqi.MQPMO(Options=PASS_ALL, Context=int(source))
    result = mqi.MQPUT(mq.h, mq.open("Q", CONTEXTS), mqi.MQMD(), pmo, b"")
    assert result == (2, 2098)


def test_a_buffer_is_let_go_of(mq: Any) -> None:
    data = bytearray(b"x")
    assert mq.put_code(mq.open("Q"), data) == 0
    data.extend(b"y")  # fails while a buffer is exported


def test_the_counts_of_destinations_are_set_by_each_put(mq: Any) -> None:
    pmo = mqi.MQPMO(KnownDestCount=5, UnknownDestCount=6, InvalidDestCount=7)
    assert mqi.MQPUT(mq.h, mq.open("Q"), mqi.MQMD(), pmo, b"") == (0, 0)
    assert (pmo.KnownDestCount, pmo.UnknownDestCount, pmo.InvalidDestCount) == (1, 0, 0)


@pytest.mark.parametrize("field", ["OriginalMsgHandle", "NewMsgHandle"])
def test_a_message_handle_is_2460(mq: Any, field: str) -> None:
    pmo = mqi.MQPMO(Version=3, **{field: 1})
    assert mqi.MQPUT(mq.h, mq.open("Q"), mqi.MQMD(), pmo, b"")[1] == mqi.MQRC_HMSG_ERROR


@pytest.mark.parametrize("handle", [1, 12345, -1])
def test_a_message_handle_in_mqgmo_is_2460_and_nothing_is_got(mq: Any, handle: int) -> None:
    q = mq.open("Q")
    mq.put(q)
    assert mq.get_code(q, Version=4, MsgHandle=handle) == mqi.MQRC_HMSG_ERROR
    assert mq.get_code(q, mqi.MQGMO_BROWSE_FIRST, Version=4, MsgHandle=handle) == 2460
    assert mq.get(q, Version=3, MsgHandle=handle)[0] == b"data"  # no field of version 3


def test_a_warning_does_not_stand_for_a_failure(mq: Any) -> None:
    mq.qm.alter("QLOCAL", "Q", maxdepth=1)
    q = mq.open("Q")
    assert mq.put_code(q, Report=8) == mqi.MQRC_UNKNOWN_REPORT_OPTION
    assert mq.put_code(q, Report=8) == mqi.MQRC_Q_FULL


def test_a_message_without_a_group_gets_no_group_id(mq: Any) -> None:
    q = mq.open("Q")
    assert mq.put(q, Version=2, ReplyToQ="R").GroupId == bytes(24)
    assert mq.get(q)[1].GroupId == bytes(24)


def test_an_offset_is_matched_by_itself(mq: Any) -> None:
    q = mq.open("Q")
    for offset in (0, 7):
        mq.put(q, b"%d" % offset, Version=2, Offset=offset, MsgFlags=8, GroupId=b"g")
    want = {"Version": 2, "MatchOptions": mqi.MQMO_MATCH_OFFSET}
    assert mq.get_code(q, md=mqi.MQMD(), **want) == 2257
    md = mqi.MQMD(Version=2, Offset=7, GroupId=b"of another group")
    assert mq.get(q, md=md, **want)[0] == b"7"


@pytest.mark.parametrize(
    ("flags", "group", "segmentation"),
    [(0, " ", " "), (8, "G", " "), (24, "L", " "), (1, " ", "A"), (25, "L", "A")],
)
def test_the_get_options_return_group_and_segmentation(
    mq: Any, flags: int, group: str, segmentation: str
) -> None:
    q = mq.open("Q")
    mq.put(q, Version=2, MsgFlags=flags, GroupId=b"g" if flags else b"")
    gmo = mqi.MQGMO(Version=3)
    assert mqi.MQGET(mq.h, q, mqi.MQMD(Version=2), gmo)[3] == 0
    assert (gmo.GroupStatus or " ", gmo.Segmentation or " ") == (group, segmentation)


def test_the_options_of_a_remote_put_return_one_unknown_destination_and_its_names(mq: Any) -> None:
    mq.qm.define("QLOCAL", "XQ", usage="XMITQ")
    mq.qm.define("QREMOTE", "R", rname="FAR.Q", rqmname="FAR", xmitq="XQ")
    pmo = mqi.MQPMO(KnownDestCount=5)
    assert mqi.MQPUT(mq.h, mq.open("R", OUTPUT), mqi.MQMD(), pmo, b"") == (0, 0)
    assert (pmo.KnownDestCount, pmo.UnknownDestCount, pmo.InvalidDestCount) == (0, 1, 0)
    assert (pmo.ResolvedQName, pmo.ResolvedQMgrName) == ("FAR.Q", "FAR")

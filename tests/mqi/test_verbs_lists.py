"""Distribution lists."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import mqi

OUTPUT = 16
NONE = bytes(24)


def od(*names: str, **fields: Any) -> Any:
    """A list of queues, with response records."""
    fields.setdefault("Version", 2)
    fields.setdefault("ResponseRecs", [mqi.MQRR(CompCode=7, Reason=7) for _ in names])
    return mqi.MQOD(ObjectRecs=[mqi.MQOR(ObjectName=name) for name in names], **fields)


def answers(records: Any) -> list[tuple[int, int]]:
    return [(record.CompCode, record.Reason) for record in records]


@pytest.fixture
def three(mq: Any) -> Any:
    """Queues Q, Q2 and Q3."""
    mq.qm.define("QLOCAL", "Q2", defprty=5, defpsist=True)
    mq.qm.define("QLOCAL", "Q3")
    return mq


def depths(mq: Any) -> list[int]:
    return [mq.qm.display("QLOCAL", name)[0]["curdepth"] for name in ("Q", "Q2", "Q3")]


def test_a_put_goes_to_every_destination_with_its_defaults(three: Any) -> None:
    given = od("Q", "Q2", "Q3")
    hobj, *result = mqi.MQOPEN(three.h, given, OUTPUT)
    assert result == [0, 0] and answers(given.ResponseRecs) == [(7, 7)] * 3
    assert (given.KnownDestCount, given.UnknownDestCount, given.InvalidDestCount) == (3, 0, 0)
    md, pmo = mqi.MQMD(), mqi.MQPMO(Version=2)
    assert mqi.MQPUT(three.h, hobj, md, pmo, b"to all") == (0, 0)
    assert pmo.KnownDestCount == 3 and md.MsgId == NONE
    got = [three.get(three.open(name))[1] for name in ("Q", "Q2", "Q3")]
    assert [(m.Priority, m.Persistence) for m in got] == [(0, 0), (5, 1), (0, 0)]
    assert len({m.MsgId for m in got}) == 3
    assert mqi.MQCLOSE(three.h, hobj, 0) == (0, 0)


def test_outcomes_that_differ_are_2136_with_response_records(three: Any) -> None:
    given = od("Q", "NONE", "Q3")
    hobj, *result = mqi.MQOPEN(three.h, given, OUTPUT)
    assert result == [1, 2136]
    assert answers(given.ResponseRecs) == [(0, 0), (2, 2085), (0, 0)]
    assert (given.KnownDestCount, given.InvalidDestCount) == (2, 1)
    three.qm.alter("QLOCAL", "Q3", put="DISABLED")
    records = [mqi.MQRR() for _ in range(3)]
    pmo = mqi.MQPMO(Version=2, ResponseRecs=records, RecsPresent=3)
    assert mqi.MQPUT(three.h, hobj, mqi.MQMD(), pmo, b"") == (1, 2136)
    assert answers(pmo.ResponseRecs) == [(0, 0), (2, 2137), (2, 2051)]
    assert (pmo.KnownDestCount, pmo.InvalidDestCount) == (1, 2)
    assert depths(three) == [1, 0, 0]


def test_all_failing_alike_is_that_reason_and_writes_no_records(three: Any) -> None:
    given = od("NO.1", "NO.2")
    assert mqi.MQOPEN(three.h, given, OUTPUT)[1:] == (2, 2085)
    assert answers(given.ResponseRecs) == [(7, 7)] * 2


def test_all_failing_differently_is_2136_failed(three: Any) -> None:
    given = od("NO.1", "bad name")
    assert mqi.MQOPEN(three.h, given, OUTPUT)[1:] == (2, 2136)
    assert answers(given.ResponseRecs) == [(2, 2085), (2, 2152)]


def test_a_warning_everywhere_is_the_common_result(three: Any) -> None:
    hobj = mqi.MQOPEN(three.h, od("Q", "Q3"), OUTPUT)[0]
    assert mqi.MQPUT(three.h, hobj, mqi.MQMD(Priority=11), mqi.MQPMO(), b"") == (1, 2049)


def test_mqput1_gives_the_reason_of_the_open_in_the_records_of_the_descriptor(three: Any) -> None:
    given = od("Q", "NONE")
    assert mqi.MQPUT1(three.h, given, mqi.MQMD(), mqi.MQPMO(), b"x") == (1, 2136)
    assert answers(given.ResponseRecs) == [(0, 0), (2, 2085)]
    three.qm.define("QMODEL", "M")
    given = od("Q", "M")
    assert mqi.MQPUT1(three.h, given, mqi.MQMD(), mqi.MQPMO(), b"x") == (1, 2136)
    assert answers(given.ResponseRecs)[1] == (2, 2057)
    assert depths(three)[0] == 2


def test_put_message_fieldss_give_values_for_each_destination(three: Any) -> None:
    hobj = mqi.MQOPEN(three.h, od("Q", "Q2"), OUTPUT)[0]
    records = [mqi.MQPMR(CorrelId=b"one"), mqi.MQPMR(CorrelId=b"two")]
    pmo = mqi.MQPMO(Version=2, PutMsgRecFields=1 | 2, PutMsgRecs=records)
    assert mqi.MQPUT(three.h, hobj, mqi.MQMD(), pmo, b"") == (0, 0)
    got = [three.get(three.open(name))[1] for name in ("Q", "Q2")]
    assert [m.CorrelId[:3] for m in got] == [b"one", b"two"]
    assert [record.MsgId for record in pmo.PutMsgRecs] == [m.MsgId for m in got]


def test_each_destination_counts_in_the_unit_of_work(three: Any) -> None:
    hobj = mqi.MQOPEN(three.h, od("Q", "Q2", "Q3"), OUTPUT)[0]
    assert mqi.MQPUT(three.h, hobj, mqi.MQMD(), mqi.MQPMO(Options=2), b"") == (0, 0)
    assert three.h.pending() == 3
    assert mqi.MQBACK(three.h) == (0, 0)
    assert depths(three) == [0, 0, 0]


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (2154, {"RecsPresent": -1}),
        (2155, {"RecsPresent": 3}),
        (2155, {"RecsPresent": 1}),
        (2152, {"ObjectName": "Q"}),
        (2153, {"ObjectQMgrName": "QM1"}),
        (2155, {"ObjectRecOffset": 8, "ObjectRecPtr": 8}),
        (2156, {"ResponseRecOffset": 8, "ResponseRecPtr": 8}),
        (2156, {"ResponseRecs": [mqi.MQRR()]}),
    ],
)
def test_a_wrong_list_is_refused(three: Any, code: int, fields: dict[str, Any]) -> None:
    given = od("Q", "Q2")
    for name, value in fields.items():
        setattr(given, name, value)
    assert mqi.MQOPEN(three.h, given, OUTPUT)[1:] == (2, code)
    assert mqi.MQPUT1(three.h, given, mqi.MQMD(), mqi.MQPMO(), b"") == (2, code)


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (2158, {"PutMsgRecFields": 32}),
        (2159, {"PutMsgRecFields": 1, "RecsPresent": 2}),
        (2154, {"RecsPresent": -1}),
        (2156, {"ResponseRecs": [mqi.MQRR()], "RecsPresent": 2}),
        (2046, {"Options": 6}),
        (2095, {"Options": 2048}),
    ],
)
def test_wrong_put_options_are_refused_for_the_whole_list(
    three: Any, code: int, fields: dict[str, Any]
) -> None:
    hobj = mqi.MQOPEN(three.h, od("Q", "Q2"), OUTPUT)[0]
    pmo = mqi.MQPMO(Version=2)
    for name, value in fields.items():
        setattr(pmo, name, value)
    assert mqi.MQPUT(three.h, hobj, mqi.MQMD(), pmo, b"") == (2, code)
    assert depths(three) == [0, 0, 0]


def test_a_group_needs_an_identifier_of_each_destination(three: Any) -> None:
    hobj = mqi.MQOPEN(three.h, od("Q", "Q2"), OUTPUT)[0]
    md = mqi.MQMD(Version=2, MsgFlags=8)
    assert mqi.MQPUT(three.h, hobj, md, mqi.MQPMO(Version=2), b"") == (2, 2258)


@pytest.mark.parametrize("options", [1, 8, 32, 64, 16 | 65536, 16 | 524288])
def test_a_list_is_opened_for_output_only(three: Any, options: int) -> None:
    assert mqi.MQOPEN(three.h, od("Q", "Q2"), options)[1:] == (2, 2045)


def test_a_list_has_no_attributes_and_gives_no_messages(three: Any) -> None:
    hobj = mqi.MQOPEN(three.h, od("Q", "Q2"), OUTPUT)[0]
    assert mqi.MQGET(three.h, hobj, mqi.MQMD(), mqi.MQGMO())[3] == 2037
    assert mqi.MQINQ(three.h, hobj, [6])[2] == 2038
    assert mqi.MQSET(three.h, hobj, {10: 1}) == (2, 2040)

"""Faults that the comparison with the model has found, each as a separate case."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import mqi

SMALL = {"segment_size": 1 << 20, "journal_limit": 64 << 20, "ring_size": 1 << 20}
ALL = mqi.MQOO_INPUT_SHARED | mqi.MQOO_OUTPUT | mqi.MQOO_BROWSE


class Bench:
    """A queue manager with a queue Q and one connection handle."""

    def __init__(self) -> None:
        self.qm = penstock.connect("QM1")
        self.hconn = mqi.MQCONNX("QM1", mqi.MQCNO(Options=mqi.MQCNO_HANDLE_SHARE_BLOCK))[0]

    def open(self, name: str = "Q", options: int = ALL, **od: Any) -> Any:
        hobj, cc, rc = mqi.MQOPEN(self.hconn, mqi.MQOD(ObjectName=name, **od), options)
        assert (cc, rc) == (0, 0)
        return hobj

    def put(self, hobj: Any, data: bytes = b"", options: int = 0, **md: Any) -> int:
        pmo = mqi.MQPMO(Options=options)
        return mqi.MQPUT(self.hconn, hobj, mqi.MQMD(Version=2, **md), pmo, data)[1]

    def get(self, hobj: Any, options: int, room: int | None = None) -> tuple[bytes, int, int, int]:
        md, gmo = mqi.MQMD(Version=2), mqi.MQGMO(Options=options)
        return mqi.MQGET(self.hconn, hobj, md, gmo, room)

    def close(self) -> None:
        mqi.MQDISC(self.hconn)
        self.qm.close()


@pytest.fixture
def bench(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("PENSTOCK_HOME", str(home))
    penstock.create("QM1", **SMALL)
    made = Bench()
    made.qm.define("QLOCAL", "Q")
    yield made
    made.close()
    penstock.delete("QM1")


def test_a_get_without_a_buffer_length_truncates_nothing(bench: Bench) -> None:
    hobj = bench.open()
    bench.put(hobj, b"x" * 5000)
    got = bench.get(hobj, mqi.MQGMO_ACCEPT_TRUNCATED_MSG)
    assert got == (b"x" * 5000, 5000, 0, 0)


def test_unlock_returns_no_message_and_the_next_get_works(bench: Bench) -> None:
    hobj = bench.open()
    bench.put(hobj, b"body")
    bench.get(hobj, mqi.MQGMO_BROWSE_FIRST | mqi.MQGMO_LOCK)
    assert bench.get(hobj, mqi.MQGMO_UNLOCK) == (b"", 0, 0, 0)
    assert bench.get(hobj, mqi.MQGMO_MSG_UNDER_CURSOR) == (b"body", 4, 0, 0)


def test_a_browse_by_a_handle_for_output_only_gives_2036(bench: Bench) -> None:
    hobj = bench.open(options=mqi.MQOO_OUTPUT)
    assert bench.get(hobj, mqi.MQGMO_BROWSE_NEXT)[3] == mqi.MQRC_NOT_OPEN_FOR_BROWSE
    assert bench.get(hobj, 0)[3] == mqi.MQRC_NOT_OPEN_FOR_INPUT


def test_resolve_local_q_returns_the_transmission_queue(bench: Bench) -> None:
    bench.qm.define("QLOCAL", "X", usage="XMITQ")
    bench.qm.define("QREMOTE", "R", rname="FAR.Q", rqmname="FAR", xmitq="X")
    pmo = mqi.MQPMO(Options=mqi.MQPMO_RESOLVE_LOCAL_Q)
    od = mqi.MQOD(ObjectName="R")
    assert mqi.MQPUT1(bench.hconn, od, mqi.MQMD(), pmo, b"") == (0, 0)
    assert (pmo.ResolvedQName, pmo.ResolvedQMgrName) == ("X", "QM1")


def test_a_full_unit_lets_a_non_persistent_message_by_with_syncpoint_if_persistent(
    bench: Bench,
) -> None:
    bench.qm.alter("QMGR", "QM1", maxumsgs=1)
    hobj = bench.open()
    bench.put(hobj, b"not persistent", Priority=5, Persistence=0)
    bench.put(hobj, b"persistent", Priority=1, Persistence=1)
    bench.put(hobj, b"fills the unit", mqi.MQPMO_SYNCPOINT)
    option = mqi.MQGMO_SYNCPOINT_IF_PERSISTENT
    assert bench.get(hobj, option) == (b"not persistent", 14, 0, 0)
    assert bench.get(hobj, option)[3] == mqi.MQRC_SYNCPOINT_LIMIT_REACHED


def test_a_full_queue_goes_before_a_full_unit(bench: Bench) -> None:
    bench.qm.alter("QMGR", "QM1", maxumsgs=1)
    bench.qm.alter("QLOCAL", "Q", maxdepth=1)
    hobj = bench.open()
    assert bench.put(hobj, options=mqi.MQPMO_SYNCPOINT) == 0
    assert bench.put(hobj, options=mqi.MQPMO_SYNCPOINT) == mqi.MQRC_Q_FULL
    bench.qm.alter("QLOCAL", "Q", maxdepth=5)
    assert bench.put(hobj, options=mqi.MQPMO_SYNCPOINT) == mqi.MQRC_SYNCPOINT_LIMIT_REACHED


def test_a_deleted_queue_goes_before_a_bad_descriptor(bench: Bench) -> None:
    bench.qm.define("QMODEL", "M", deftype="PERMDYN", share=True)
    creator = bench.open("M", DynamicQName="D")
    other = bench.open("D")
    assert bench.put(other, Persistence=3) == mqi.MQRC_PERSISTENCE_ERROR
    assert mqi.MQCLOSE(bench.hconn, creator, mqi.MQCO_DELETE) == (0, 0)
    assert bench.put(other, Persistence=3) == mqi.MQRC_Q_DELETED
    assert bench.put(other, options=1) == mqi.MQRC_Q_DELETED


def test_a_changed_alias_goes_before_its_inhibition(bench: Bench) -> None:
    bench.qm.define("QLOCAL", "OTHER")
    bench.qm.define("QALIAS", "A", target="Q", put="DISABLED")
    hobj = bench.open("A", mqi.MQOO_OUTPUT)
    assert bench.put(hobj) == mqi.MQRC_PUT_INHIBITED
    bench.qm.alter("QLOCAL", "Q", usage="XMITQ", force=True)
    assert bench.put(hobj) == mqi.MQRC_OBJECT_CHANGED


def test_a_changed_alias_goes_before_the_inhibition_of_its_queue(bench: Bench) -> None:
    bench.qm.define("QLOCAL", "OTHER")
    bench.qm.define("QALIAS", "A", target="Q")
    hobj = bench.open("A")
    bench.qm.alter("QLOCAL", "Q", get="DISABLED", put="DISABLED")
    assert bench.get(hobj, 0)[3] == mqi.MQRC_GET_INHIBITED
    bench.qm.alter("QALIAS", "A", target="OTHER", force=True)
    assert bench.get(hobj, 0)[3] == mqi.MQRC_OBJECT_CHANGED
    assert bench.put(hobj) == mqi.MQRC_OBJECT_CHANGED


def test_an_unlock_through_a_changed_alias_gives_2041(bench: Bench) -> None:
    bench.qm.define("QLOCAL", "OTHER")
    bench.qm.define("QALIAS", "A", target="Q")
    hobj = bench.open("A")
    bench.put(hobj, b"body")
    assert bench.get(hobj, mqi.MQGMO_BROWSE_FIRST | mqi.MQGMO_LOCK)[0] == b"body"
    bench.qm.alter("QLOCAL", "Q", get="DISABLED")
    assert bench.get(hobj, mqi.MQGMO_UNLOCK) == (b"", 0, 0, 0)
    assert bench.get(hobj, mqi.MQGMO_UNLOCK)[3] == mqi.MQRC_NO_MSG_LOCKED
    bench.qm.alter("QALIAS", "A", target="OTHER", force=True)
    assert bench.get(hobj, mqi.MQGMO_UNLOCK)[3] == mqi.MQRC_OBJECT_CHANGED


def test_a_get_that_finds_the_unit_full_keeps_the_browse_lock(bench: Bench) -> None:
    bench.qm.alter("QMGR", "QM1", maxumsgs=1)
    hobj, other = bench.open(), bench.open()
    bench.put(hobj, b"locked", Persistence=1)
    assert bench.get(hobj, mqi.MQGMO_BROWSE_FIRST | mqi.MQGMO_LOCK)[0] == b"locked"
    bench.put(hobj, b"fills the unit", mqi.MQPMO_SYNCPOINT)
    for option in (mqi.MQGMO_SYNCPOINT, mqi.MQGMO_SYNCPOINT_IF_PERSISTENT):
        under_cursor = bench.get(hobj, option | mqi.MQGMO_MSG_UNDER_CURSOR)
        assert under_cursor[3] == mqi.MQRC_SYNCPOINT_LIMIT_REACHED
        assert bench.get(other, 0)[3] == mqi.MQRC_NO_MSG_AVAILABLE
    assert bench.get(hobj, mqi.MQGMO_MSG_UNDER_CURSOR)[0] == b"locked"


def test_mqput1_checks_its_options_before_the_descriptor(bench: Bench) -> None:
    hobj = bench.open()
    for names in ({"ObjectName": "Q"}, {"Version": 2, "ObjectRecs": [mqi.MQOR(ObjectName="Q")]}):
        od, pmo = mqi.MQOD(**names), mqi.MQPMO(Options=1)
        assert mqi.MQPUT1(bench.hconn, od, mqi.MQMD(Version=3), pmo, b"")[1] == 2046
        pmo.Options = mqi.MQPMO_PASS_ALL_CONTEXT
        assert mqi.MQPUT1(bench.hconn, od, mqi.MQMD(Version=3), pmo, b"")[1] == 2097
        pmo.Options = 0
        assert mqi.MQPUT1(bench.hconn, od, mqi.MQMD(Version=3), pmo, b"")[1] == 2026
        assert mqi.MQPUT1(bench.hconn, od, None, pmo, b"")[1] == 2026
        assert mqi.MQPUT1(bench.hconn, od, mqi.MQMD(), mqi.MQMD(), b"")[1] == 2173
    assert bench.get(hobj, 0)[3] == mqi.MQRC_NO_MSG_AVAILABLE


def test_mqinq_of_an_alias_over_a_remote_definition_returns_the_aliass_values(bench: Bench) -> None:
    bench.qm.define("QREMOTE", "R", rname="FAR.Q", rqmname="FAR")
    bench.qm.define("QALIAS", "A", target="R", defprty=6)
    hobj = bench.open("A", mqi.MQOO_INQUIRE)
    assert mqi.MQINQ(bench.hconn, hobj, [mqi.MQIA_DEF_PRIORITY]) == ({6: 6}, 0, 0)
    bench.qm.alter("QALIAS", "A", target="Q", force=True)
    assert mqi.MQINQ(bench.hconn, hobj, [6])[2] == mqi.MQRC_OBJECT_CHANGED


def test_mqinq_of_a_remote_definition_marks_selectors_of_other_types(bench: Bench) -> None:
    bench.qm.define("QREMOTE", "R", rname="FAR.Q", rqmname="FAR")
    hobj = bench.open("R", mqi.MQOO_INQUIRE)
    values, cc, rc = mqi.MQINQ(bench.hconn, hobj, [mqi.MQIA_MAX_Q_DEPTH, mqi.MQCA_REMOTE_Q_NAME])
    assert (cc, rc) == (1, mqi.MQRC_SELECTOR_NOT_FOR_TYPE)
    assert values[mqi.MQIA_MAX_Q_DEPTH] == -1
    assert values[mqi.MQCA_REMOTE_Q_NAME].rstrip() == "FAR.Q"


@pytest.mark.parametrize("browse", [False, True])
def test_a_get_by_sequence_number_passes_over_many_messages_whose_bodies_are_on_disk(
    bench: Bench, browse: bool
) -> None:
    hobj = bench.open()
    for number in range(1, 41):
        group = {"GroupId": b"g" * 24, "MsgSeqNumber": number, "MsgFlags": mqi.MQMF_MSG_IN_GROUP}
        bench.put(hobj, str(number).encode(), Persistence=1, **group)
    bench.close()
    bench.__init__()  # type: ignore[misc]
    hobj = bench.open()
    options = mqi.MQGMO_BROWSE_FIRST if browse else 0
    for match in (mqi.MQMO_MATCH_MSG_SEQ_NUMBER, 8 | mqi.MQMO_MATCH_GROUP_ID):
        gmo = mqi.MQGMO(Version=2, Options=options, MatchOptions=match)
        md = mqi.MQMD(Version=2, GroupId=b"g" * 24, MsgSeqNumber=35 if match == 8 else 39)
        found = mqi.MQGET(bench.hconn, hobj, md, gmo)
        assert found[0] == (b"35" if match == 8 else b"39")
        md = mqi.MQMD(Version=2, GroupId=b"g" * 24, MsgSeqNumber=99)
        assert mqi.MQGET(bench.hconn, hobj, md, gmo)[3] == mqi.MQRC_NO_MSG_AVAILABLE


@pytest.mark.parametrize("match", [8, 8 | 2])
def test_a_full_unit_refuses_no_message_on_disk_that_is_not_meant(bench: Bench, match: int) -> None:
    bench.put(bench.open(), b"on disk", Persistence=1, Priority=9, CorrelId=b"c" * 24)
    bench.close()
    bench.__init__()  # type: ignore[misc]
    bench.qm.alter("QMGR", "QM1", maxumsgs=1)
    hobj = bench.open()
    group = {"GroupId": b"g" * 24, "MsgSeqNumber": 2, "MsgFlags": mqi.MQMF_MSG_IN_GROUP}
    bench.put(hobj, b"meant", Persistence=0, Priority=1, CorrelId=b"c" * 24, **group)
    bench.put(hobj, b"fills the unit", mqi.MQPMO_SYNCPOINT)
    gmo = mqi.MQGMO(Version=2, Options=mqi.MQGMO_SYNCPOINT_IF_PERSISTENT, MatchOptions=match)
    for sequence, found in ((1, (b"", 2024)), (2, (b"meant", 0)), (2, (b"", 2033))):
        md = mqi.MQMD(Version=2, CorrelId=b"c" * 24, MsgSeqNumber=sequence)
        got = mqi.MQGET(bench.hconn, hobj, md, gmo)
        assert (got[0], got[3]) == found


def test_the_number_of_uncommitted_messages_limits_no_batch_outside_syncpoint(bench: Bench) -> None:
    bench.qm.define("QLOCAL", "X", usage="XMITQ")
    bench.qm.define("QREMOTE", "R", rname="FAR.Q", rqmname="FAR", xmitq="X")
    bench.qm.alter("QMGR", "QM1", maxumsgs=2)
    for name, queue in (("Q", "Q"), ("R", "X")):
        with bench.qm.open(name) as q, bench.qm.open(queue) as end:
            assert q.put_batch([b"body"] * 5, persistent=[True, False, True, True, True]).count == 5
            assert end.depth == 5
            with pytest.raises(penstock.MQError) as caught:
                q.put_batch([b"body"] * 5, syncpoint=True)
            assert caught.value.reason == mqi.MQRC_SYNCPOINT_LIMIT_REACHED
            bench.qm.backout()
            assert end.depth == 5


def test_a_deleted_queue_has_no_newest_number(bench: Bench) -> None:
    bench.qm.define("QMODEL", "M", deftype="PERMDYN", share=True)
    creator = bench.open("M", DynamicQName="D")
    with bench.qm.open("D") as other:
        assert other.newest_number >= 0
        assert mqi.MQCLOSE(bench.hconn, creator, mqi.MQCO_DELETE) == (0, 0)
        with pytest.raises(penstock.MQError) as caught:
            _ = other.newest_number
        assert caught.value.reason == mqi.MQRC_Q_DELETED


@pytest.mark.parametrize("option", [mqi.MQOO_RESOLVE_NAMES, mqi.MQOO_BIND_NOT_FIXED])
def test_an_option_of_queues_does_not_fit_the_queue_manager(bench: Bench, option: int) -> None:
    od = mqi.MQOD(ObjectType=mqi.MQOT_Q_MGR)
    options = mqi.MQOO_INQUIRE | mqi.MQOO_FAIL_IF_QUIESCING
    assert mqi.MQOPEN(bench.hconn, od, options)[1:] == (0, 0)
    assert mqi.MQOPEN(bench.hconn, od, options | option)[1:] == (2, 2045)

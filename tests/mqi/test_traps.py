"""The traps of the MQI reference: rules that implementers usually get wrong. One test a trap.

The number in the name is the trap's. tests/README.md lists them, with those of later issues.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock import mqi
from qmgr_fixture import FAILED, OK, WARNING, QmgrFixture

OUTPUT, INPUT, INQUIRE, BROWSE = (
    mqi.MQOO_OUTPUT, mqi.MQOO_INPUT_SHARED, mqi.MQOO_INQUIRE, mqi.MQOO_BROWSE,
)  # fmt: skip
USE = INPUT | OUTPUT


def md(**fields: Any) -> Any:
    return mqi.MQMD(**fields)


def test_01_priority_10_is_a_warning_and_the_field_is_not_clamped(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    qmgr.send(queue, b"9", md(Priority=9))
    assert qmgr.put(queue, b"10", md(Priority=10)) == (WARNING, 2049)
    assert [(g.data, g.priority) for g in qmgr.drain(queue)] == [(b"9", 9), (b"10", 10)]


def test_02_a_fifo_queue_uses_the_default_priority_of_the_arrival(qmgr: QmgrFixture) -> None:
    queue = qmgr.local(msgdlvsq="FIFO", defprty=2)
    qmgr.send(queue, b"1", md(Priority=0))
    qmgr.send(queue, b"2", md(Priority=9))
    qmgr.qm.alter("QLOCAL", queue, defprty=6)
    qmgr.send(queue, b"3", md(Priority=0))
    assert [(g.data, g.priority) for g in qmgr.drain(queue)] == [(b"3", 0), (b"1", 0), (b"2", 9)]


def test_03_as_q_def_looks_at_the_opened_definition_at_put_time(qmgr: QmgrFixture) -> None:
    base = qmgr.local(defpsist="YES", defprty=1)
    alias = qmgr.define("QALIAS", target=base, defpsist="YES", defprty=1)
    hobj = qmgr.opened(alias, OUTPUT)
    qmgr.qm.alter("QALIAS", alias, defpsist="NO", defprty=7)
    qmgr.send(hobj)
    got = qmgr.take(base)
    assert (got.persistence, got.priority) == (0, 7)


def test_04_get_returns_no_specials_and_put_keeps_the_callers(qmgr: QmgrFixture) -> None:
    queue = qmgr.local(defpsist="YES", defprty=4)
    mine = qmgr.send(queue)
    assert (mine.Persistence, mine.Priority) == (2, -1)
    assert mine.MsgId != bytes(24)
    got = qmgr.take(queue)
    assert (got.persistence, got.priority, got.md.MsgId) == (1, 4, mine.MsgId)


def test_05_2048_is_checked_after_as_q_def(qmgr: QmgrFixture) -> None:
    _, name = qmgr.dynamic(qmgr.model("TEMPDYN"), USE)
    alias = qmgr.define("QALIAS", target=name, defpsist="YES")
    assert qmgr.put(alias) == (FAILED, 2048)
    base = qmgr.local(defpsist="YES")
    qmgr.send(qmgr.define("QALIAS", target=base, defpsist="NO"))
    assert qmgr.take(base).persistence == 0


def test_06_not_persistent_means_discarded_at_restart(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    qmgr.send(queue, b"1", md(Persistence=0))
    qmgr.restart()
    assert qmgr.depth(queue) == 0


@pytest.mark.parametrize(
    ("mode", "kept"), [("controlled", 1), ("wait", 1), ("immediate", 1), ("preemptive", 0)]
)
def test_07_npmclass_high_survives_every_end_but_a_preemptive_one(
    qmgr: QmgrFixture, mode: str, kept: int
) -> None:
    queue = qmgr.local(npmclass="HIGH")
    qmgr.send(queue, b"1", md(Persistence=0))
    qmgr.qm.end(mode)
    qmgr.stop()
    qmgr.start()
    assert qmgr.depth(queue) == kept


def test_07_npmclass_high_does_not_survive_a_crash(qmgr: QmgrFixture) -> None:
    queue = qmgr.local(npmclass="HIGH")
    qmgr.failure(lambda: qmgr.send(queue, b"1", md(Persistence=0)))
    assert qmgr.depth(queue) == 0


def test_08_the_creating_handle_counts_not_the_creating_application(qmgr: QmgrFixture) -> None:
    hobj, name = qmgr.dynamic(qmgr.model("TEMPDYN", share="YES", defsopt="SHARED"), USE)
    second = qmgr.opened(name, USE)  # of the same application
    for option in (mqi.MQCO_DELETE, mqi.MQCO_DELETE_PURGE):
        assert qmgr.close(second, option) == (FAILED, 2045)
    qmgr.closed(second)
    assert qmgr.exists(name)
    qmgr.closed(hobj)
    assert not qmgr.exists(name)


def test_09_purge_fails_on_ones_own_uncommitted_work(qmgr: QmgrFixture) -> None:
    hobj, name = qmgr.dynamic(qmgr.model("PERMDYN"), USE)
    qmgr.send(hobj, b"1", syncpoint=True)
    assert qmgr.close(hobj, mqi.MQCO_DELETE_PURGE) == (FAILED, 2055)
    qmgr.commit()
    assert qmgr.depth(name) == 1
    qmgr.closed(hobj, mqi.MQCO_DELETE_PURGE)


def test_10_a_temporary_queue_goes_with_uncommitted_work_and_the_unit_lives(
    qmgr: QmgrFixture,
) -> None:
    queue = qmgr.local()
    hobj, name = qmgr.dynamic(qmgr.model("TEMPDYN"), USE)
    qmgr.send(hobj, b"lost", syncpoint=True)
    qmgr.send(queue, b"kept", syncpoint=True)
    qmgr.closed(hobj)
    assert not qmgr.exists(name)
    qmgr.commit()
    assert qmgr.bodies(queue) == [b"kept"]


def test_11_deletion_is_logical_first(qmgr: QmgrFixture) -> None:
    hobj, name = qmgr.dynamic(qmgr.model("PERMDYN", share="YES", defsopt="SHARED"), USE)
    second = qmgr.other()
    other = qmgr.opened(name, USE, second)
    answers: list[int] = []
    waiter = threading.Thread(
        target=lambda: answers.append(qmgr.get(other, wait=20000, hconn=second).rc)
    )
    waiter.start()
    qmgr.until(lambda: qmgr.waiting(name))
    qmgr.closed(hobj, mqi.MQCO_DELETE)
    waiter.join(30)
    assert answers == [2052]
    assert qmgr.put(other, hconn=second) == (FAILED, 2052)
    qmgr.closed(other, hconn=second)


def test_12_disconnecting_commits_and_ending_without_it_backs_out(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()

    def put(data: bytes) -> None:
        qmgr.send(queue, data, md(Persistence=1), syncpoint=True)

    def disconnect() -> None:
        put(b"committed")
        assert mqi.MQDISC(qmgr.hconn) == (OK, 0)

    qmgr.failure(disconnect)
    qmgr.failure(lambda: put(b"killed"))
    program = (
        "from penstock import mqi\n"
        "import sys\n"
        "hconn = mqi.MQCONN('QM1')[0]\n"
        "pmo = mqi.MQPMO(Options=mqi.MQPMO_SYNCPOINT)\n"
        "md = mqi.MQMD(Persistence=1)\n"
        "od = mqi.MQOD(ObjectName=sys.argv[1])\n"
        "print(mqi.MQPUT1(hconn, od, md, pmo, b'ended'))\n"
    )
    qmgr.stop()
    ended = subprocess.run(
        [sys.executable, "-c", program, queue], capture_output=True, text=True, timeout=60
    )
    qmgr.start()
    assert ended.stdout == "(0, 0)\n", ended.stderr
    assert qmgr.bodies(queue) == [b"committed"]


def test_13_order_is_put_order_not_commit_order(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    second = qmgr.other()
    qmgr.send(queue, b"first", syncpoint=True, hconn=second)
    qmgr.send(queue, b"second")
    qmgr.send(queue, b"third")
    assert qmgr.take(queue).data == b"second"
    qmgr.commit(second)
    assert qmgr.bodies(queue) == [b"first", b"third"]


def test_15_a_browse_misses_arrivals_of_higher_priority_until_it_restarts(
    qmgr: QmgrFixture,
) -> None:
    queue = qmgr.local()
    qmgr.send(queue, b"5", md(Priority=5))
    hobj = qmgr.opened(queue, BROWSE)
    following = mqi.MQGMO_BROWSE_NEXT
    assert qmgr.take(hobj, options=following).data == b"5"
    qmgr.send(queue, b"9", md(Priority=9))
    qmgr.send(queue, b"4", md(Priority=4))
    assert qmgr.bodies(hobj, options=following) == [b"4"]
    assert qmgr.take(hobj, options=mqi.MQGMO_BROWSE_FIRST).data == b"9"


def test_16_both_truncations_warn_and_only_2079_removes(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    qmgr.send(queue, b"12345")
    kept = qmgr.get(queue, length=2)
    assert (kept.cc, kept.rc, kept.length, qmgr.depth(queue)) == (WARNING, 2080, 5, 1)
    gone = qmgr.get(queue, length=2, options=mqi.MQGMO_ACCEPT_TRUNCATED_MSG)
    assert (gone.cc, gone.rc, gone.length, qmgr.depth(queue)) == (WARNING, 2079, 5, 0)


def test_17_expired_messages_count_until_a_get_runs_over_them(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    qmgr.send(queue, b"expires", md(Expiry=1))
    qmgr.send(queue, b"stays")
    hobj = qmgr.opened(queue, BROWSE)
    assert qmgr.depth(queue) == 2
    qmgr.until(lambda: qmgr.take(hobj, options=mqi.MQGMO_BROWSE_FIRST).data == b"stays")
    assert qmgr.depth(queue) == 1


def test_18_a_backout_threshold_does_nothing_here(qmgr: QmgrFixture) -> None:
    aside = qmgr.local()
    queue = qmgr.local(bothresh=1, boqname=aside)
    qmgr.send(queue)
    for count in range(3):
        assert qmgr.take(queue, syncpoint=True).md.BackoutCount == count
        qmgr.backout()
    assert (qmgr.depth(queue), qmgr.depth(aside)) == (1, 0)


def test_19_ids_left_in_the_descriptor_select_the_next_get(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    first = qmgr.send(queue, b"1")
    qmgr.send(queue, b"2")
    mine = mqi.MQMD()
    assert qmgr.take(queue, md=mine).data == b"1"
    assert qmgr.get(queue, md=mine).rc == 2033
    mine.MsgId, mine.CorrelId = bytes(24), bytes(24)
    assert qmgr.take(queue, md=mine).data == b"2"
    again = qmgr.send(queue, b"3", first)
    assert again.MsgId == qmgr.take(queue).md.MsgId == first.MsgId


def test_20_no_syncpoint_option_means_a_unit_on_zos_only(
    qmgr: QmgrFixture, zos_qmgr: QmgrFixture
) -> None:
    for one, pending in ((qmgr, False), (zos_qmgr, True)):
        queue = one.local()
        hobj = one.opened(queue, USE)
        assert mqi.MQPUT(one.hconn, hobj, mqi.MQMD(), mqi.MQPMO(), b"1") == (OK, 0)
        one.backout()
        assert one.depth(queue) == (0 if pending else 1)
        one.send(queue, b"2")
        depth = one.depth(queue)
        _, _, cc, rc = mqi.MQGET(one.hconn, hobj, mqi.MQMD(), mqi.MQGMO())
        assert (cc, rc) == (OK, 0)
        one.backout()
        assert one.depth(queue) == (depth if pending else depth - 1)


def test_21_inhibits_are_checked_per_call_on_every_queue_of_the_path(qmgr: QmgrFixture) -> None:
    base = qmgr.local()
    alias = qmgr.define("QALIAS", target=base)
    qmgr.send(base)
    hobj = qmgr.opened(alias, USE)
    for kind, name in (("QLOCAL", base), ("QALIAS", alias)):
        qmgr.qm.alter(kind, name, put="DISABLED", get="DISABLED")
        assert qmgr.put(hobj) == (FAILED, 2051)
        assert qmgr.get(hobj).rc == 2016
        again = qmgr.opened(alias, USE)  # opening works nevertheless
        qmgr.closed(again)
        qmgr.qm.alter(kind, name, put="ENABLED", get="ENABLED")
    qmgr.send(hobj)
    assert len(qmgr.drain(hobj)) == 2


def test_22_bind_options_alone_pass_and_0_does_not(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    assert qmgr.open(queue, 0)[1:] == (FAILED, 2046)
    hobj, cc, rc = qmgr.open(queue, mqi.MQOO_BIND_ON_OPEN)
    assert (cc, rc) == (OK, 0)
    qmgr.closed(hobj)


def test_23_a_reply_to_a_persistent_request_fails_on_a_temporary_queue(qmgr: QmgrFixture) -> None:
    requests = qmgr.local()
    hobj, answers = qmgr.dynamic(qmgr.model("TEMPDYN"), INPUT)
    qmgr.send(requests, b"?", md(Persistence=1, MsgType=mqi.MQMT_REQUEST, ReplyToQ=answers))
    request = qmgr.take(requests)
    reply = md(Persistence=request.persistence, MsgType=mqi.MQMT_REPLY)
    assert qmgr.put(request.md.ReplyToQ, b"!", reply) == (FAILED, 2048)
    assert qmgr.get(hobj).rc == 2033


def test_25_2136_warns_when_one_succeeded_and_fails_when_all_differ(qmgr: QmgrFixture) -> None:
    good, full = qmgr.local(), qmgr.local(maxdepth=1)
    small, other = qmgr.local(maxmsgl=1), qmgr.local()
    qmgr.send(full)

    def put(*names: str) -> tuple[tuple[int, int], list[int]]:
        records = [mqi.MQRR(CompCode=77, Reason=77) for _ in names]
        od = mqi.MQOD(
            Version=mqi.MQOD_VERSION_2,
            RecsPresent=len(names),
            ObjectRecs=[mqi.MQOR(ObjectName=name) for name in names],
            ResponseRecs=records,
        )
        pmo = mqi.MQPMO(Options=mqi.MQPMO_NO_SYNCPOINT)
        answer = mqi.MQPUT1(qmgr.hconn, od, mqi.MQMD(), pmo, b"xx")
        return answer, [record.Reason for record in records]

    assert put(good, full) == ((WARNING, 2136), [0, 2053])
    assert put(small, full) == ((FAILED, 2136), [2030, 2053])
    assert put(good, other) == ((OK, 0), [77, 77])
    assert put(full, full) == ((FAILED, 2053), [77, 77])


def test_the_table_has_every_trap_with_its_test_or_why_there_is_none() -> None:
    text = (Path(__file__).resolve().parent.parent / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| (?:`(\w+)`|later: .+) \|$", text, re.MULTILINE)
    tests = {name for name in globals() if re.match(r"test_\d", name)}
    assert {int(number) for number, _ in rows} == set(range(1, 26))
    assert {name for _, name in rows if name} == tests

"""MQCONN, MQCONNX, MQDISC, MQBEGIN, MQCMIT, MQBACK, and what ends with a connection."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import mqi, mqsc
from penstock.mqi import absent

SYNCPOINT = mqi.MQPMO_SYNCPOINT


def test_a_second_mqconn_of_a_thread_is_a_warning_with_the_same_handle(mq: Any) -> None:
    again, comp_code, reason = mqi.MQCONN("QM1")
    assert (again is mq.h, comp_code, reason) == (True, 1, 2002)


def test_another_thread_has_its_own_handle(mq: Any) -> None:
    found: list[Any] = []

    def connect() -> None:
        found.append(mqi.MQCONN("QM1"))
        mqi.MQDISC(found[0][0])

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    assert found[0][1:] == (0, 0) and found[0][0] is not mq.h


@pytest.mark.parametrize("option", [mqi.MQCNO_HANDLE_SHARE_BLOCK, mqi.MQCNO_HANDLE_SHARE_NO_BLOCK])
def test_a_shared_handle_is_a_new_one(mq: Any, option: int) -> None:
    other, comp_code, reason = mqi.MQCONNX("QM1", mqi.MQCNO(Options=option))
    assert (comp_code, reason) == (0, 0) and other is not mq.h
    assert mqi.MQDISC(other) == (0, 0)


@pytest.mark.parametrize("name", ["NONE", "", "no such name", "N" * 60, b"NONE"])
def test_an_unknown_queue_manager_is_2058(mq: Any, name: Any) -> None:
    hconn, comp_code, reason = mqi.MQCONN(name)
    assert (hconn, comp_code, reason) == (mqi.MQHC_UNUSABLE_HCONN, 2, 2058)


def test_the_name_may_be_padded_and_ends_at_a_nul(mq: Any) -> None:
    assert mqi.MQCONN("QM1  ")[1:] == (1, 2002)
    assert mqi.MQCONN(b"QM1\0\0x")[1:] == (1, 2002)


def test_mqconnx_returns_the_connection_id_that_display_conn_shows(mq: Any) -> None:
    cno = mqi.MQCNO(Version=5, Options=mqi.MQCNO_HANDLE_SHARE_BLOCK)
    hconn, comp_code, reason = mqi.MQCONNX("QM1", cno)
    assert (comp_code, reason) == (0, 0)
    (shown,) = mqsc.run(mq.qm, "DISPLAY CONN(*) ALL")[0].objects
    assert cno.ConnectionId.hex().upper() == f"{shown['extconn']}{shown['name']}"
    assert mqi.MQDISC(hconn) == (0, 0)
    old = mqi.MQCNO(Version=4, Options=mqi.MQCNO_HANDLE_SHARE_BLOCK)
    hconn = mqi.MQCONNX("QM1", old)[0]
    assert old.ConnectionId == bytes(24) and mqi.MQDISC(hconn) == (0, 0)


def test_the_application_name_of_mqconnx_is_put_into_messages(mq: Any) -> None:
    for version, name in ((7, "ORDERS"), (6, None)):
        cno = mqi.MQCNO(
            Version=version, ApplName="ORDERS", Options=mqi.MQCNO_HANDLE_SHARE_BLOCK
        )  # fmt: skip
        hconn, comp_code, reason = mqi.MQCONNX("QM1", cno)
        assert (comp_code, reason) == (0, 0)
        od = mqi.MQOD(ObjectName="Q")
        assert mqi.MQPUT1(hconn, od, mqi.MQMD(), mqi.MQPMO(), b"") == (0, 0)
        assert mqi.MQDISC(hconn) == (0, 0)
        put_by = mq.get(mq.open("Q"))[1].PutApplName
        assert put_by == name or (name is None and put_by != "ORDERS")


def test_mqconn_takes_a_home(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qm: Any
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "none"))
    assert mqi.MQCONN("QM1")[1:] == (2, 2058)
    for given in (home, str(home)):
        hconn, comp_code, reason = mqi.MQCONN("QM1", home=given)
        assert (comp_code, reason) == (0, 0)
        assert mqi.MQCONNX("QM1", home=given) == (hconn, 1, 2002)
        assert mqi.MQDISC(hconn) == (0, 0)
    assert mqi.MQCONN("QM1", home=tmp_path)[1:] == (2, 2058)
    assert mqi.MQCONN("QM1", home=5)[1:] == (2, 2058)  # type: ignore[arg-type]


@pytest.mark.parametrize("verb", absent.__all__)
def test_a_verb_of_a_missing_part_answers_2298(mq: Any, verb: str) -> None:
    call = getattr(mqi, verb)
    assert call(mq.h)[-2:] == call(mq.h, 1, mqi.MQMD(), b"")[-2:] == (2, 2298)
    assert verb in mq.h.error
    assert call(mqi.MQHC_UNUSABLE_HCONN)[-2:] == call(None)[-2:] == (2, 2018)


def test_handles_of_missing_verbs_are_unusable(mq: Any) -> None:
    assert mqi.MQCRTMH(mq.h)[0] == mqi.MQHM_UNUSABLE_HMSG
    assert mqi.MQSUB(mq.h)[:2] == (mqi.MQHO_UNUSABLE_HOBJ, mqi.MQHO_UNUSABLE_HOBJ)


def test_wrong_connect_options(mq: Any) -> None:
    assert mqi.MQCONNX("QM1", mqi.MQMD())[1:] == (2, 2139)
    assert mqi.MQCONNX("QM1", "options")[1:] == (2, 2139)
    both = mqi.MQCNO_HANDLE_SHARE_BLOCK | mqi.MQCNO_HANDLE_SHARE_NO_BLOCK
    assert mqi.MQCONNX("QM1", mqi.MQCNO(Options=both))[1:] == (2, 2046)
    assert mqi.MQCONNX("QM1", mqi.MQCNO(Options=1 << 30))[1:] == (2, 2046)


@pytest.mark.parametrize(
    "option",
    [
        mqi.MQCNO_NO_CONV_SHARING,
        mqi.MQCNO_ALL_CONVS_SHARE,
        mqi.MQCNO_ACCOUNTING_MQI_ENABLED,
        mqi.MQCNO_ACCOUNTING_MQI_DISABLED,
        mqi.MQCNO_ACCOUNTING_Q_ENABLED | mqi.MQCNO_ACCOUNTING_MQI_DISABLED,
        mqi.MQCNO_ACCOUNTING_Q_DISABLED,
        mqi.MQCNO_ACTIVITY_TRACE_ENABLED,
        mqi.MQCNO_ACTIVITY_TRACE_DISABLED,
        mqi.MQCNO_RECONNECT_DISABLED | mqi.MQCNO_LOCAL_BINDING,
    ],
)
def test_what_an_embedded_queue_manager_meets_is_accepted(mq: Any, option: int) -> None:
    cno = mqi.MQCNO(Options=option | mqi.MQCNO_HANDLE_SHARE_BLOCK)
    hconn, comp_code, reason = mqi.MQCONNX("QM1", cno)
    assert (comp_code, reason) == (0, 0)
    assert mqi.MQDISC(hconn) == (0, 0)


@pytest.mark.parametrize(
    "option",
    [
        mqi.MQCNO_CLIENT_BINDING,
        mqi.MQCNO_RECONNECT,
        mqi.MQCNO_RECONNECT_Q_MGR,
        mqi.MQCNO_CD_FOR_OUTPUT_ONLY,
        mqi.MQCNO_USE_CD_SELECTION,
        mqi.MQCNO_GENERATE_CONN_TAG,
        mqi.MQCNO_SERIALIZE_CONN_TAG_Q_MGR,
        mqi.MQCNO_RESTRICT_CONN_TAG_QSG,
        mqi.MQCNO_NO_CONV_SHARING | mqi.MQCNO_ALL_CONVS_SHARE,
        mqi.MQCNO_ACCOUNTING_MQI_ENABLED | mqi.MQCNO_ACCOUNTING_MQI_DISABLED,
        mqi.MQCNO_ACCOUNTING_Q_ENABLED | mqi.MQCNO_ACCOUNTING_Q_DISABLED,
        mqi.MQCNO_ACTIVITY_TRACE_ENABLED | mqi.MQCNO_ACTIVITY_TRACE_DISABLED,
    ],
)
def test_what_it_does_not_meet_is_2046(mq: Any, option: int) -> None:
    assert mqi.MQCONNX("QM1", mqi.MQCNO(Options=option))[1:] == (2, 2046)


@pytest.mark.parametrize("blank", ["", "   ", "\0QM9", b"", b" "])
def test_a_blank_name_is_the_default_queue_manager(
    own: Any, monkeypatch: pytest.MonkeyPatch, blank: Any
) -> None:
    assert mqi.MQCONN(blank)[1:] == (2, 2058)
    monkeypatch.setenv("PENSTOCK_QMGR", "QM1")
    assert mqi.MQCONN(blank) == (own.h, 1, 2002)
    assert mqi.MQCONN() == (own.h, 1, 2002)
    monkeypatch.setenv("PENSTOCK_QMGR", "NOT.THERE")
    assert mqi.MQCONN(blank)[1:] == (2, 2058)


def test_after_mqdisc_every_verb_is_2018(mq: Any) -> None:
    q = mq.open("Q")
    assert mqi.MQDISC(mq.h) == (0, 0)
    md, od = mqi.MQMD(), mqi.MQOD(ObjectName="Q")
    assert mqi.MQDISC(mq.h) == (2, 2018)
    assert mqi.MQOPEN(mq.h, od, 16)[1:] == (2, 2018)
    assert mqi.MQPUT(mq.h, q, md, mqi.MQPMO(), b"") == (2, 2018)
    assert mqi.MQPUT1(mq.h, od, md, mqi.MQPMO(), b"") == (2, 2018)
    assert mqi.MQGET(mq.h, q, md, mqi.MQGMO())[2:] == (2, 2018)
    assert mqi.MQCLOSE(mq.h, q, 0) == (2, 2018)
    assert mqi.MQCMIT(mq.h) == mqi.MQBACK(mq.h) == mqi.MQBEGIN(mq.h) == (2, 2018)
    assert mqi.MQINQ(mq.h, q, [])[1:] == mqi.MQSET(mq.h, q, {}) == (2, 2018)
    assert mq.h == mqi.MQHC_UNUSABLE_HCONN and q == mqi.MQHO_UNUSABLE_HOBJ


@pytest.mark.parametrize("wrong", [None, 0, -1, 7, "QM1", object()])
def test_an_invalid_connection_handle_is_2018(mq: Any, wrong: Any) -> None:
    assert mqi.MQOPEN(wrong, mqi.MQOD(), 16)[1:] == (2, 2018)
    assert mqi.MQCMIT(wrong) == mqi.MQDISC(wrong) == (2, 2018)


@pytest.mark.parametrize("wrong", [None, 0, -1, 99, "Q", object(), True])
def test_an_invalid_object_handle_is_2019(mq: Any, wrong: Any) -> None:
    assert mqi.MQPUT(mq.h, wrong, mqi.MQMD(), mqi.MQPMO(), b"") == (2, 2019)
    assert mqi.MQGET(mq.h, wrong, mqi.MQMD(), mqi.MQGMO())[2:] == (2, 2019)
    assert mqi.MQCLOSE(mq.h, wrong, 0) == mqi.MQSET(mq.h, wrong, {}) == (2, 2019)
    assert mqi.MQINQ(mq.h, wrong, [])[1:] == (2, 2019)


def test_an_object_handle_of_another_connection_is_2019(mq: Any) -> None:
    other = mqi.MQCONNX("QM1", mqi.MQCNO(Options=mqi.MQCNO_HANDLE_SHARE_BLOCK))[0]
    q = mq.open("Q")
    assert mqi.MQPUT(other, q, mqi.MQMD(), mqi.MQPMO(), b"") == (2, 2019)
    mqi.MQDISC(other)


def test_an_object_handle_can_be_named_by_its_number(mq: Any) -> None:
    q = mq.open("Q")
    assert mqi.MQPUT(mq.h, int(q), mqi.MQMD(), mqi.MQPMO(), b"by number") == (0, 0)
    assert mq.get(int(q))[0] == b"by number"


def test_mqdisc_commits(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q, options=SYNCPOINT)
    assert mq.qm.display("QLOCAL", "Q")[0]["curdepth"] == 1
    assert mqi.MQDISC(mq.h) == (0, 0)
    with mq.qm.open("Q") as queue:
        assert queue.get().data == b"data"


def test_commit_and_backout_end_the_unit_of_work(mq: Any) -> None:
    q = mq.open("Q")
    mq.put(q, b"gone", SYNCPOINT)
    assert mq.get_code(q) == 2033
    assert mqi.MQBACK(mq.h) == (0, 0)
    mq.put(q, b"stays", SYNCPOINT)
    assert mqi.MQCMIT(mq.h) == (0, 0)
    assert mq.get(q, mqi.MQGMO_SYNCPOINT)[0] == b"stays"
    assert mqi.MQBACK(mq.h) == (0, 0)
    data, md = mq.get(q)
    assert (data, md.BackoutCount) == (b"stays", 1)
    assert mqi.MQCMIT(mq.h) == mqi.MQBACK(mq.h) == (0, 0)


def test_each_connection_handle_has_its_own_unit_of_work(mq: Any) -> None:
    other = mqi.MQCONNX("QM1", mqi.MQCNO(Options=mqi.MQCNO_HANDLE_SHARE_BLOCK))[0]
    q = mq.open("Q")
    mq.put(q, b"mine", SYNCPOINT)
    assert mqi.MQCMIT(other) == (0, 0)
    assert mq.get_code(q) == 2033
    assert mqi.MQBACK(mq.h) == (0, 0)
    mqi.MQDISC(other)


def test_the_limit_of_a_unit_of_work_is_2024_and_leaves_it_usable(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(home))
    penstock.create(
        "QM1", home, segment_size=1 << 20, ring_size=1 << 20, max_uncommitted_messages=2
    )
    with penstock.connect("QM1", home) as qm:
        qm.define("QLOCAL", "Q")
    h = mqi.MQCONN("QM1")[0]
    q = mqi.MQOPEN(h, mqi.MQOD(ObjectName="Q"), 1 | 16)[0]
    pmo = mqi.MQPMO(Options=SYNCPOINT)
    assert [mqi.MQPUT(h, q, mqi.MQMD(), pmo, b"%d" % n)[1] for n in range(3)] == [0, 0, 2024]
    assert mqi.MQCMIT(h) == (0, 0)
    assert [mqi.MQGET(h, q, mqi.MQMD(), mqi.MQGMO())[0] for _ in range(2)] == [b"0", b"1"]
    assert mqi.MQDISC(h) == (0, 0)
    penstock.delete("QM1", home)


def test_mqbegin_has_no_external_participants(mq: Any) -> None:
    q = mq.open("Q")
    assert mqi.MQBEGIN(mq.h) == (1, 2121)
    assert mqi.MQBEGIN(mq.h, mqi.MQBO()) == (2, 2128)
    mq.put(q, options=SYNCPOINT)
    assert mqi.MQBACK(mq.h) == (0, 0)
    mq.put(q, options=SYNCPOINT)
    assert mqi.MQBEGIN(mq.h) == (2, 2128)
    assert mqi.MQCMIT(mq.h) == (0, 0)
    assert mqi.MQBEGIN(mq.h, mqi.MQMD()) == (2, 2134)
    assert mqi.MQBEGIN(mq.h, mqi.MQBO(Options=1)) == (2, 2046)


def test_mqbegin_is_not_for_zos(zos: Any) -> None:
    assert mqi.MQBEGIN(zos.h) == (2, 2012)


def test_the_error_of_a_connection_names_the_wrong_value(mq: Any) -> None:
    assert mq.open_code("NONE") == 2085
    assert "NONE" in mq.h.error
    q = mq.open("Q")
    assert mq.put_code(q, options=SYNCPOINT | mqi.MQPMO_NO_SYNCPOINT) == 2046
    assert "exclude" in mq.h.error


@pytest.mark.parametrize(("platform", "left"), [("unix", 0), ("zos", 1)])
@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "raise KeyError('x')"])
def test_an_end_without_mqdisc_backs_out_but_a_normal_one_commits_on_zos(
    home: Path, platform: str, left: int, end: str
) -> None:
    penstock.create("QM1", home, segment_size=1 << 20, ring_size=1 << 20, platform=platform)
    with penstock.connect("QM1", home) as qm:
        qm.define("QLOCAL", "Q", defpsist=True)
        program = (
            "from penstock import mqi\n"
            "h = mqi.MQCONN('QM1')[0]\n"
            "q = mqi.MQOPEN(h, mqi.MQOD(ObjectName='Q'), 16)[0]\n"
            "assert mqi.MQPUT(h, q, mqi.MQMD(), mqi.MQPMO(Options=2), b'x') == (0, 0)\n" + end
        )
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PENSTOCK_HOME": str(home)},
            capture_output=True,
            timeout=60,
            check=False,
        )
        with qm.open("Q") as queue:
            assert queue.depth == (0 if "KeyError" in end else left)
    penstock.delete("QM1", home)


def test_quiescing_stops_calls_with_fail_if_quiescing(own: Any) -> None:
    q = own.open("Q")
    own.qm.end("controlled")
    assert own.open_code("Q", 16 | mqi.MQOO_FAIL_IF_QUIESCING) == 2161
    assert own.open_code("Q", 16) == 0
    assert own.put_code(q, options=mqi.MQPMO_FAIL_IF_QUIESCING) == 2161
    assert own.put_code(q, options=0) == 0
    assert own.get_code(q, mqi.MQGMO_FAIL_IF_QUIESCING) == 2161
    assert own.get_code(q) == 0
    assert mqi.MQPUT1(
        own.h, mqi.MQOD(ObjectName="Q"), mqi.MQMD(), mqi.MQPMO(Options=8192), b""
    ) == (2, 2161)


def test_a_quiescing_queue_manager_refuses_new_connections_only(own: Any) -> None:
    own.qm.end("controlled")
    assert mqi.MQCONN("QM1")[1:] == (1, 2002)  # this thread is connected
    shared = mqi.MQCNO(Options=mqi.MQCNO_HANDLE_SHARE_BLOCK)
    assert mqi.MQCONNX("QM1", shared) == (mqi.MQHC_UNUSABLE_HCONN, 2, 2161)
    assert own.open_code("Q", 16) == 0


def test_errors_of_the_connection_precede_those_of_the_call(own: Any) -> None:
    q, output = own.open("Q"), own.open("Q", 16)
    for options in (1, 8):  # no WAIT below 2090; 8 is no option of this platform
        assert own.get_code(q, options, WaitInterval=-2) in (2090, 2046)
    own.qm.end("controlled")
    quiescing = mqi.MQGMO_FAIL_IF_QUIESCING
    assert own.get_code(q, 1, WaitInterval=-2) == 2090
    assert own.get_code(q, 1 | quiescing, WaitInterval=-2) == 2161
    assert own.get_code(q, 8 | quiescing) == own.get_code(output, quiescing) == 2161
    assert own.get_code(q, quiescing, Version=2, MatchOptions=64) == 2161
    assert mqi.MQGET(own.h, q, None, mqi.MQGMO(Options=quiescing))[2:] == (2, 2161)
    assert mqi.MQGET(own.h, q, mqi.MQMD(), mqi.MQGMO(Options=quiescing), -1)[2:] == (2, 2161)
    assert own.put_code(q, options=8192 | 6) == 2161
    assert own.put_code(q, options=8192, Persistence=9) == 2161
    assert (
        own.put_code(q, 5, options=8192) == own.put_code(q, Format="MQHMDE", options=8192) == 2161
    )
    assert (own.put_code(q, 5), own.put_code(q, Format="MQHMDE")) == (2004, 2248)
    assert own.open_code("Q", 1 | 2 | mqi.MQOO_FAIL_IF_QUIESCING) == 2161
    assert own.open_code("NONE", 16 | mqi.MQOO_FAIL_IF_QUIESCING) == 2161
    assert own.open_code("Q", 1 | 2) == 2046
    assert own.open_code("NONE", 16) == 2085


def test_a_stopped_queue_manager_is_2162_for_every_call(own: Any) -> None:
    q = own.open("Q")
    program = "import penstock; qm = penstock.connect('QM1'); qm.end('immediate'); qm.close()"
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL) as other:
        deadline = time.monotonic() + 30
        while own.put_code(q) != 2162 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert own.open_code("Q") == 2162
        assert own.put_code(q) == own.get_code(q) == 2162
        assert own.put_code(q, options=2 | 4) == 2162  # the connection is checked first
        assert own.get_code(q, 2 | 4) == own.open_code("Q", 1 | 2) == own.open_code("", 16) == 2162
        for handle in (q, 99):
            assert mqi.MQGET(own.h, handle, mqi.MQMD(), None)[2:] == (2, 2162)
            assert mqi.MQPUT(own.h, handle, mqi.MQMD(), None, b"") == (2, 2162)
            assert mqi.MQCLOSE(own.h, handle, 3) == (2, 2162)
            assert mqi.MQINQ(own.h, handle, [-1])[1:] == (2, 2162)
            assert mqi.MQSET(own.h, handle, {-1: 0}) == (2, 2162)
        assert mqi.MQPUT1(own.h, None, mqi.MQMD(), mqi.MQPMO(), b"") == (2, 2162)
        assert mqi.MQCMIT(own.h) == (2, 2162)
        assert mqi.MQDISC(own.h)[0] in (0, 2)
        own.qm.close()
        assert other.wait(60) == 0


def test_threads_that_share_a_handle_have_one_unit_of_work_from_their_first_calls_on(
    mq: Any,
) -> None:
    mq.qm.define("QLOCAL", "SHARED.UNIT")
    for _ in range(20):
        h = mqi.MQCONNX("QM1", mqi.MQCNO(Options=mqi.MQCNO_HANDLE_SHARE_BLOCK))[0]
        hobj, _, reason = mqi.MQOPEN(h, mqi.MQOD(ObjectName="SHARED.UNIT"), mqi.MQOO_OUTPUT)
        assert reason == 0
        start = threading.Barrier(6)
        results: list[tuple[int, int]] = []

        def put(h: Any = h, hobj: Any = hobj, start: Any = start, results: Any = results) -> None:
            pmo = mqi.MQPMO(Options=mqi.MQPMO_SYNCPOINT)
            start.wait(10)
            results.append(mqi.MQPUT(h, hobj, mqi.MQMD(), pmo, b""))

        threads = [threading.Thread(target=put) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert results == [(0, 0)] * 6
        assert h.pending() == 6
        assert mqi.MQBACK(h) == (0, 0)
        mqi.MQDISC(h)
    assert mq.qm.display("QLOCAL", "SHARED.UNIT")[0]["curdepth"] == 0

"""DISPLAY QSTATUS, CONN and QMSTATUS."""

from __future__ import annotations

import os
import re
import time

import pytest
from mqsc_fixture import done, names, refused

import penstock
from penstock.mqsc import Interpreter


@pytest.fixture
def filled(mqsc: Interpreter, qm: penstock.QueueManager) -> Interpreter:
    """With queue Q, on which one message is, and EMPTY."""
    done(mqsc, "DEFINE QLOCAL(Q)")
    done(mqsc, "DEFINE QLOCAL(EMPTY)")
    done(mqsc, "DEFINE QALIAS(A) TARGET(Q)")
    with qm.open("Q") as queue:
        queue.put(b"1")
        queue.put(b"2")
        queue.get()
    return mqsc


def test_qstatus_shows_depth_times_and_age(filled: Interpreter) -> None:
    before = time.time()
    (found,) = filled.execute("DISPLAY QSTATUS(Q)").objects
    assert (found["curdepth"], found["uncom"], found["ipprocs"]) == (1, "NO", 0)
    for kind in ("LGET", "LPUT"):
        stamp = f"{found[kind + 'DATE']} {found[kind + 'TIME']}"
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d\.\d\d\.\d\d", stamp)
        told = time.strptime(stamp, "%Y-%m-%d %H.%M.%S")
        assert abs(time.mktime(told) - time.mktime(time.gmtime(before))) < 3700
    text = done(filled, "DIS QS(EMPTY) ALL")
    for part in ("CURDEPTH(0)", "LGETDATE( )", "LPUTTIME( )", "MSGAGE(0)", "QTIME( , )"):
        assert part in text
    assert text.startswith("AMQ8450")


def test_qstatus_shows_the_age_of_the_oldest_message(
    filled: Interpreter, qm: penstock.QueueManager
) -> None:
    now = int(time.time() * 1e6)
    with qm.open("EMPTY") as queue:
        with qm.transaction() as unit:
            queue.put(b"of a unit", put_time_us=now - 900_000_000)
            assert filled.execute("DISPLAY QSTATUS(EMPTY)").objects[0]["msgage"] == ""
            assert queue.status().oldest_us == 0
            unit.backout()
        for age, priority in ((100, 9), (7200, 2), (60, 0)):
            queue.put(b"", priority=priority, put_time_us=now - age * 1_000_000)
        assert queue.status().oldest_us == now - 7_200_000_000
    (found,) = filled.execute("DISPLAY QSTATUS(EMPTY) MSGAGE").objects
    assert 7200 <= found["msgage"] < 7260
    assert names(filled, "DISPLAY QSTATUS(*) WHERE(MSGAGE GT 7000)") == ["EMPTY"]
    with qm.open("EMPTY") as queue:
        for _ in range(3):
            queue.get()
        queue.put(b"long ago", put_time_us=1)
    assert filled.execute("DISPLAY QSTATUS(EMPTY)").objects[0]["msgage"] == 999_999_999


def test_qstatus_shows_uncommitted_work(filled: Interpreter, qm: penstock.QueueManager) -> None:
    with qm.open("Q") as queue, qm.transaction():
        queue.put(b"3")
        (found,) = filled.execute("DISPLAY QSTATUS(Q) UNCOM IPPROCS OPPROCS").objects
        assert (found["uncom"], found["ipprocs"], found["opprocs"]) == ("YES", 1, 1)
        assert names(filled, "DISPLAY QSTATUS(*) WHERE(UNCOM EQ YES)") == ["Q"]


def test_qstatus_takes_generic_names_and_where(filled: Interpreter) -> None:
    assert names(filled, "DISPLAY QSTATUS(*) WHERE(CURDEPTH GT 0)") == ["Q"]
    assert names(filled, "DISPLAY QSTATUS(E*)") == ["EMPTY"]
    assert refused(filled, "DISPLAY QSTATUS(A)").code == "AMQ8147"
    assert refused(filled, "DISPLAY QSTATUS(Q) COLOUR").syntax
    assert refused(filled, "DISPLAY QSTATUS(Q) TYPE(PROCESS)").syntax


def test_qstatus_handles_show_the_processes_and_options_of_a_queues_handles(
    filled: Interpreter, qm: penstock.QueueManager
) -> None:
    assert refused(filled, "DISPLAY QSTATUS(Q) TYPE(HANDLE)").code == "AMQ8565"
    with qm.open("Q", exclusive=True, output=False), qm.open("EMPTY", input=False, browse=False):
        (found,) = filled.execute("DISPLAY QSTATUS(Q) TYPE(HANDLE) ALL").objects
        assert (found["input"], found["output"], found["browse"]) == ("EXCL", "NO", "YES")
        assert (found["pid"], found["set"], found["inquire"]) == (os.getpid(), "NO", "NO")
        assert found["appltag"]
        assert names(filled, "DIS QS(*) TYPE(HANDLE) WHERE(OUTPUT EQ YES)") == ["EMPTY"]
        assert names(filled, f"DIS QS(*) TYPE(HANDLE) WHERE(PID EQ {os.getpid()})") == [
            "EMPTY",
            "Q",
        ]


def test_conn_shows_the_processes_and_their_units_of_work(
    filled: Interpreter, qm: penstock.QueueManager
) -> None:
    (found,) = filled.execute("DISPLAY CONN(*) ALL").objects
    assert (found["pid"], found["uowstate"], found["appltype"]) == (os.getpid(), "NONE", "USER")
    assert re.fullmatch("[0-9A-F]{16}", str(found["name"]))
    assert bytes.fromhex(str(found["extconn"])) == b"AMQCQM1         "
    with qm.open("Q") as queue, qm.transaction():
        queue.put(b"3")
        (found,) = filled.execute("DISPLAY CONN(*) WHERE(UOWSTATE EQ ACTIVE)").objects
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", str(found["uowstda"]))
        name = found["name"]
        text = done(filled, f"DISPLAY CONN({name}) TYPE(ALL) ALL")
        assert text.count("AMQ8276") == 2
        assert "OBJNAME(Q)" in text and "MQOO_OUTPUT" in text
        assert done(filled, "DIS CONN(*) TYPE(HANDLE) OBJNAME").count("OBJNAME(Q)") == 1
    assert refused(filled, "DISPLAY CONN(00*)").code == "AMQ8147"


def test_qmstatus_shows_the_queue_manager_at_work(filled: Interpreter) -> None:
    (found,) = filled.execute("DISPLAY QMSTATUS").objects
    assert (found["status"], found["conns"]) == ("RUNNING", 1)
    text = done(filled, "DISPLAY QMSTATUS STATUS")
    assert text.splitlines()[1] == "   QMNAME(QM1)                             STATUS(RUNNING)"

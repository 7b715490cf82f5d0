"""Connections: restarts and what they report, attachments, the cost of an import."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_persistent_messages_survive_a_restart_and_others_are_counted(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    penstock.create("QM1", home)
    with penstock.connect("QM1", home) as qm, qm.queue("Q") as q:
        for number in range(20):
            q.put(b"%d" % number, priority=number % 10, persistent=number % 2 == 0)
    assert qm.np_discarded == 10
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "10 non-persistent messages" in caplog.text and "QM1" in caplog.text
    with penstock.connect("QM1", home) as qm, qm.open("Q") as q:
        expected = sorted(range(0, 20, 2), key=lambda n: (-(n % 10), n))
        assert [int(m.data) for m in q.browse()] == expected
        assert qm.attach_info["messages"] == 10


def test_npmclass_high_keeps_messages_over_an_orderly_end(home: Path) -> None:
    with penstock.connect("QM1", home, create=True) as qm:
        qm.define("QLOCAL", "H", npmclass="HIGH")
        with qm.open("H") as q:
            q.put(b"kept", persistent=False)
    with penstock.connect("QM1", home) as qm, qm.open("H") as q:
        assert (m := q.get()).data == b"kept" and not m.persistent


def test_after_traffic_an_orderly_end_leaves_at_most_one_spare_segment(home: Path) -> None:
    penstock.create("QM1", home, segment_size=1 << 20, journal_limit=64 << 20)
    bodies = [b"%08d" % number * 128 for number in range(100)]
    with penstock.connect("QM1", home) as qm, qm.queue("Q") as q:
        q.put_batch(bodies, persistent=True)
        journal = Path(qm.path) / "journal"
        for _ in range(5000):  # how many there are depends on the maintenance
            q.put_batch(bodies, persistent=True)
            assert len(q.get_batch(100)) == 100
            if len(list(journal.glob("spare-*"))) > 1:
                break
        else:
            raise AssertionError("there was never more than one")
    assert len(list(journal.glob("spare-*"))) <= 1
    with penstock.connect("QM1", home) as qm, qm.open("Q") as q:
        assert [m.data for m in q.browse()] == bodies


def test_a_killed_process_loses_only_what_was_not_committed(home: Path, run_python: Run) -> None:
    ended = run_python(
        """
import os, signal, sys, penstock
qm = penstock.connect("QM1", sys.argv[1], create=True)
q = qm.queue("Q")
q.put(b"committed")
q.put(b"uncommitted", syncpoint=True)
q.put(b"not persistent", persistent=False)
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    assert ended.returncode == -9
    with penstock.connect("QM1", home) as qm, qm.open("Q") as q:
        assert [m.data for m in q.browse()] == [b"committed"]
        assert qm.attach_info["first"] and not qm.attach_info["clean"]


def test_connections_of_one_process_share_one_attachment(home: Path) -> None:
    with penstock.connect("QM1", home, create=True) as one, penstock.connect("QM1", home) as two:
        assert one.status().attached == 1
        assert not two.attach_info["first"]
        with one.queue("Q") as q, two.open("Q") as same:
            q.put(b"x")
            assert same.get().data == b"x"


def test_a_manager_that_was_ended_at_once_by_another_process_can_be_connected_again(
    home: Path, run_python: Run
) -> None:
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as q:
        q.put(b"x")
        ended = run_python(
            "import sys, penstock\n"
            "with penstock.connect('QM1', sys.argv[1]) as qm: qm.end('immediate')"
        )
        assert ended.stderr == ""
        for call in (lambda: q.put(b"y"), q.get, lambda: q.get(wait=5)):
            with pytest.raises(penstock.QueueManagerStopping) as caught:
                call()
            assert caught.value.reason == 2162
    with penstock.connect("QM1", home) as qm, qm.open("Q") as q:
        assert q.get().data == b"x"


def test_import_loads_neither_numpy_nor_cffi_nor_the_commands_libraries(run_python: Run) -> None:
    ended = run_python(
        """
import sys
import penstock
heavy = {"numpy", "cffi", "click", "rich", "logging", "asyncio", "dataclasses", "tomllib",
         "typing", "threading", "inspect", "difflib", "lark", "prompt_toolkit",
         "pyexpat", "penstock.cli", "penstock.admin.settings", "penstock.journal",
         "penstock.headers.rfh2", "penstock.objects", "penstock.batch"}
print(sorted(heavy & set(sys.modules)))
"""
    )
    assert ended.stdout == "[]\n", ended.stdout + ended.stderr


def test_discarded_messages_are_reported_on_stderr_without_any_logging_set_up(
    home: Path, run_python: Run
) -> None:
    ended = run_python(
        """
import sys, penstock
with penstock.connect("QM1", sys.argv[1], create=True) as qm, qm.queue("Q") as q:
    q.put(b"x", persistent=False)
"""
    )
    assert "1 non-persistent message discarded" in ended.stderr


def test_the_logger_is_called_penstock(caplog: pytest.LogCaptureFixture) -> None:
    from penstock import _logging as notices

    with caplog.at_level(logging.WARNING, "penstock"):
        notices.discarded_at_restart("QM1", 3)
    assert caplog.record_tuples == [
        (
            "penstock",
            logging.WARNING,
            "queue manager QM1: the restart discarded 3 non-persistent messages",
        )
    ]

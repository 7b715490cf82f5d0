"""Lifetimes: references between objects, warnings about leaks, the interpreter's exit."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock import Queue, QueueManager

Run = Callable[..., "subprocess.CompletedProcess[str]"]

EXIT = """
import sys, penstock
qm = penstock.connect("QM1", sys.argv[1], create=True)
q = qm.queue("Q")
q.put(b"committed")
q.put(b"uncommitted", syncpoint=True)
"""


def test_a_queue_keeps_its_connection_alive(home: Path) -> None:
    q = penstock.connect("QM1", home, create=True).queue("Q")
    gc.collect()
    q.put(b"x")
    assert q.get().data == b"x"
    connection = q.connection
    q.close()
    connection.detach()


def test_a_queue_that_was_not_closed_is_warned_of_and_closed(
    qm: QueueManager, queue: Queue
) -> None:
    with pytest.warns(ResourceWarning, match="queue Q was not closed"):
        leaked = qm.open("Q")
        assert queue.status().open_input == 2
        del leaked
        gc.collect()
    assert queue.status().open_input == 1


def test_closed_queues_and_connections_are_collected_without_a_warning(home: Path) -> None:
    qm = penstock.connect("QM1", home, create=True)
    q = qm.queue("Q")
    one, other = weakref.ref(qm), weakref.ref(q)
    qm.close()
    del qm, q
    gc.collect()
    assert one() is None and other() is None


def test_a_failed_open_or_connect_leaves_nothing_behind(qm: QueueManager, home: Path) -> None:
    handles = qm.status().handles
    for _ in range(10):
        with pytest.raises(penstock.UnknownObjectName):
            qm.open("NONE")
        with pytest.raises(penstock.QueueManagerNameError):
            penstock.connect("NONE", home)
    assert qm.status().handles == handles


def test_many_opens_and_closes_leave_no_handle(qm: QueueManager, queue: Queue) -> None:
    for _ in range(500):
        qm.open("Q").close()
    assert qm.status().handles == 1
    assert queue.status().open_input == 1


def test_messages_and_results_outlive_everything(home: Path) -> None:
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as q:
        result = q.put(b"x" * 1000, group_id=b"g")
        message = q.get()
    del qm, q
    gc.collect()
    assert message.data == b"x" * 1000 and message.group_id[:1] == b"g"
    assert message.msg_id == result.msg_id


def test_bodies_are_ordinary_bytes(queue: Queue) -> None:
    for size in (0, 1, 5, 200, 250, 256, 10000, 100):
        body = b"z" * size
        queue.put(body)
        got = queue.get().data
        assert type(got) is bytes and got == body and hash(got) == hash(body)
        assert got + b"!" == body + b"!" and (got + b"").endswith(b"z" * (size > 0))
        assert sys.getsizeof(got) == sys.getsizeof(body)


def test_put_and_get_leak_no_memory(queue: Queue) -> None:
    def rounds(count: int) -> int:
        for _ in range(count):
            queue.put(b"x" * 300, priority=3, msg_id=b"id", reply_to_q="R")
            message = queue.get()
            assert message.reply_to_q == "R"
            with pytest.raises(penstock.MQError):
                queue.put(b"x", priority=-7)
        gc.collect()
        return sys.getallocatedblocks()

    rounds(50)
    before = rounds(50)
    assert rounds(500) - before < 50


def test_the_exit_of_the_interpreter_backs_out_and_detaches_in_order(
    run_python: Run, home: Path
) -> None:
    ended = run_python(EXIT)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    with penstock.connect("QM1", home) as qm, qm.open("Q") as q:
        assert qm.attach_info["clean"]
        assert [m.data for m in q.browse()] == [b"committed"]


@pytest.mark.parametrize(
    "end", ["raise SystemExit(3)", "raise KeyError('x')", "import os; sys.exit(0)"]
)
def test_however_a_program_ends_only_what_was_committed_stays(
    run_python: Run, home: Path, end: str
) -> None:
    run_python(EXIT + end)
    with penstock.connect("QM1", home) as qm, qm.open("Q") as q:
        assert qm.attach_info["clean"]
        assert [m.data for m in q.browse()] == [b"committed"]


def test_an_exit_inside_a_transaction_backs_it_out(run_python: Run, home: Path) -> None:
    run_python(EXIT + "qm.commit()\nwith qm.transaction():\n    q.put(b'in it')\n    sys.exit(0)\n")
    with penstock.connect("QM1", home) as qm, qm.open("Q") as q:
        assert [m.data for m in q.browse()] == [b"committed", b"uncommitted"]


def test_an_exit_while_a_daemon_thread_waits_is_in_order(run_python: Run, home: Path) -> None:
    ended = run_python(
        EXIT
        + "import threading, time\n"
        + "qm.commit(); q.get(); q.get()\n"
        + "threading.Thread(target=lambda: q.get(wait=None), daemon=True).start()\n"
        + "while not q.status().waiters: time.sleep(0.001)\n"
    )
    assert ended.returncode == 0
    with penstock.connect("QM1", home) as qm:
        assert qm.attach_info["clean"]

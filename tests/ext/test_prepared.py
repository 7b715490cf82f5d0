"""Prepared units of work from Python: whose they are, how they end, what a restart does to them."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from in_thread import in_thread
from penstock import Queue, QueueManager, Xid
from penstock.admin.settings import manager_directory

Run = Callable[..., "object"]
ONE, TWO, THREE = (Xid(7, b"unit", bytes([n])) for n in (1, 2, 3))


def bodies(queue: Queue) -> list[bytes]:
    return [m.data for m in queue.browse()]


def restarted(qm: QueueManager, home: Path) -> QueueManager:
    """The queue manager after an orderly end."""
    qm.close()
    return penstock.connect("QM1", home)


def moved(qm: QueueManager, queue: Queue, xid: Xid) -> None:
    """Gets b"old" and puts b"new" in a unit that is prepared."""
    queue.put(b"old", persistent=True)
    assert queue.get(syncpoint=True).data == b"old"
    queue.put(b"new", persistent=True, syncpoint=True)
    qm.prepare(xid)


# ---- preparing ----


def test_a_prepared_unit_is_neither_committed_nor_backed_out(
    qm: QueueManager, queue: Queue
) -> None:
    moved(qm, queue, ONE)
    qm.commit()
    qm.backout()
    assert bodies(queue) == [] and queue.depth == 1
    with pytest.raises(penstock.NoMessageAvailable):
        queue.get()
    assert qm.recover() == [ONE]


def test_committing_it_shows_what_it_put_and_removes_what_it_got(
    qm: QueueManager, queue: Queue
) -> None:
    moved(qm, queue, ONE)
    qm.commit_prepared(ONE)
    assert bodies(queue) == [b"new"] and qm.recover() == []


def test_backing_it_out_returns_its_gets_to_their_positions(qm: QueueManager, queue: Queue) -> None:
    for data in (b"1", b"2", b"3"):
        queue.put(data, persistent=data != b"2")
    for _ in range(2):
        queue.get(syncpoint=True)
    queue.put(b"gone", syncpoint=True)
    qm.prepare(ONE)
    assert bodies(queue) == [b"3"]
    assert qm.backout_prepared(ONE) == 0
    assert [(m.data, m.backout_count) for m in queue.browse()] == [
        (b"1", 1), (b"2", 1), (b"3", 0),
    ]  # fmt: skip


def test_the_thread_continues_with_a_new_unit(qm: QueueManager, queue: Queue) -> None:
    queue.put(b"a", syncpoint=True)
    qm.prepare(ONE)
    queue.put(b"b", syncpoint=True)
    qm.backout()
    queue.put(b"c", syncpoint=True)
    qm.commit()
    qm.commit_prepared(ONE)
    assert bodies(queue) == [b"a", b"c"]


def test_a_transaction_that_prepared_ends_without_committing(
    qm: QueueManager, queue: Queue
) -> None:
    with qm.transaction() as unit:
        queue.put(b"x")
        unit.prepare(ONE)
        assert unit.count == 0
    assert bodies(queue) == [] and qm.recover() == [ONE]
    with qm.transaction():
        queue.put(b"y")
        qm.prepare(TWO)
    assert bodies(queue) == [] and qm.recover() == [ONE, TWO]
    qm.commit_prepared(TWO, ONE)
    assert bodies(queue) == [b"x", b"y"]


def test_an_exception_after_the_preparation_leaves_the_unit_prepared(
    qm: QueueManager, queue: Queue
) -> None:
    with pytest.raises(KeyError), qm.transaction() as unit:
        queue.put(b"prepared")
        unit.prepare(ONE)
        queue.put(b"backed out")
        raise KeyError
    qm.commit_prepared(ONE)
    assert bodies(queue) == [b"prepared"]


def test_a_unit_without_messages_is_prepared_only_when_that_is_allowed(qm: QueueManager) -> None:
    with pytest.raises(penstock.UnitNotAvailable) as caught:
        qm.prepare(ONE)
    assert caught.value.reason == 2255 and qm.recover() == []
    qm.prepare(ONE, allow_empty=True)
    with qm.transaction() as unit:
        unit.prepare(TWO, allow_empty=True)
    assert qm.recover() == [ONE, TWO]
    assert [(u.puts, u.gets, u.bytes) for u in qm.prepared_list()] == [(0, 0, 0)] * 2
    qm.commit_prepared(ONE)
    assert qm.backout_prepared(TWO) == 0


def test_a_name_that_is_in_use_is_refused_and_changes_nothing(
    qm: QueueManager, queue: Queue
) -> None:
    queue.put(b"first", syncpoint=True)
    qm.prepare(ONE)
    queue.put(b"second", syncpoint=True)
    with pytest.raises(penstock.XidInUse, match=str(ONE)) as caught:
        qm.prepare(ONE)
    assert caught.value.reason == 2128 and isinstance(caught.value, penstock.UnitInProgress)
    qm.commit()
    assert bodies(queue) == [b"second"]
    qm.commit_prepared(ONE)
    queue.put(b"third", syncpoint=True)
    qm.prepare(ONE)
    assert qm.recover() == [ONE]


def test_only_the_unit_of_this_thread_or_task_is_prepared(qm: QueueManager, queue: Queue) -> None:
    with qm.transaction() as unit:
        queue.put(b"main")
        assert isinstance(in_thread(lambda: unit.prepare(ONE)), penstock.UnitNotAvailable)
        assert isinstance(in_thread(lambda: qm.prepare(ONE)), penstock.UnitNotAvailable)

        async def task() -> None:
            with pytest.raises(penstock.UnitNotAvailable):
                unit.prepare(ONE)
            with qm.transaction():
                queue.put(b"task")
                qm.prepare(TWO)

        asyncio.run(task())
    assert bodies(queue) == [b"main"] and qm.recover() == [TWO]
    with pytest.raises(penstock.UnitNotAvailable):
        unit.prepare(ONE)


def test_other_python_threads_run_while_a_preparation_flushes(
    qm: QueueManager, queue: Queue
) -> None:
    stop, beats = threading.Event(), [0]

    def count() -> None:
        while not stop.is_set():
            beats[0] += 1

    other = threading.Thread(target=count)
    other.start()
    try:
        for number in range(50):
            queue.put(b"x", persistent=True, syncpoint=True)
            before = beats[0]
            qm.prepare(Xid(1, b"%d" % number))
            while beats[0] == before:
                time.sleep(0)
    finally:
        stop.set()
        other.join()
    assert len(qm.recover()) == 50


# ---- listing ----


def test_the_list_has_the_contents_of_each_unit_oldest_first(
    qm: QueueManager, queue: Queue
) -> None:
    queue.put(b"12345", persistent=True)
    queue.put(b"123", persistent=False)
    before = time.time_ns() // 1000
    queue.get(syncpoint=True)
    queue.get(syncpoint=True)
    queue.put(b"1234567", persistent=True, syncpoint=True)
    qm.prepare(TWO)
    queue.put(b"1", persistent=False, syncpoint=True)
    qm.prepare(ONE)
    first, second = qm.prepared_list()
    assert (first.xid, first.puts, first.gets, first.nonpersistent, first.bytes) == (
        TWO,
        1,
        2,
        1,
        15,
    )
    assert (second.xid, second.puts, second.gets, second.nonpersistent) == (ONE, 1, 0, 1)
    assert before - 1_000_000 <= first.prepared_us <= second.prepared_us
    assert first.unit_id < second.unit_id
    assert qm.unit_list() == []


def test_the_list_is_whole_however_many_there_are(qm: QueueManager, queue: Queue) -> None:
    names = [Xid(3, b"many", b"%d" % number) for number in range(200)]
    for name in names:
        queue.put(b"x", syncpoint=True)
        qm.prepare(name)
    assert qm.recover() == names
    qm.commit_prepared(*names)
    assert queue.depth == 200 and qm.recover() == []


# ---- ending ----


def test_several_end_together_or_not_at_all(qm: QueueManager, queue: Queue) -> None:
    for name in (ONE, TWO):
        queue.put(str(name).encode(), persistent=True, syncpoint=True)
        qm.prepare(name)
    for end in (qm.commit_prepared, qm.backout_prepared):
        with pytest.raises(penstock.UnknownXid) as caught:
            end(ONE, THREE, TWO)
        assert caught.value.reason == 2255 and isinstance(caught.value, LookupError)
        assert qm.recover() == [ONE, TWO] and bodies(queue) == []
    qm.commit_prepared(TWO, ONE)
    assert bodies(queue) == [str(ONE).encode(), str(TWO).encode()]


def test_an_unknown_name_is_reported_as_it_is_written(qm: QueueManager) -> None:
    rng = random.Random(3)
    for _ in range(100):
        gtrid = rng.randbytes(rng.randint(1, 64)) if rng.random() < 0.5 else b"a.B_c-%d" % _
        bqual = rng.choice((b"", b"0x12", b"7", rng.randbytes(64)))
        format_id = rng.choice((0, -2, 5, 1 << 30, int.from_bytes(b"PSPK", "big"), 0x50535020))
        name = Xid(format_id, gtrid, bqual)
        with pytest.raises(penstock.UnknownXid) as caught:
            qm.commit_prepared(name)
        assert str(name) in caught.value.text.replace(",", " ").split()


@pytest.mark.parametrize("end", ["commit_prepared", "backout_prepared"])
def test_wrong_arguments_are_refused(qm: QueueManager, queue: Queue, end: str) -> None:
    queue.put(b"x", syncpoint=True)
    qm.prepare(ONE)
    call = getattr(qm, end)
    for arguments in ((), (ONE, ONE), tuple(Xid(1, b"%d" % n) for n in range(4097))):
        with pytest.raises(penstock.InvalidValue) as caught:
            call(*arguments)
        assert caught.value.reason == 2046
    with pytest.raises(penstock.InvalidType):
        call(ONE, "7:unit")
    with pytest.raises(TypeError):
        qm.prepare("7:unit")  # type: ignore[arg-type]
    assert qm.recover() == [ONE]


def test_a_closed_connection_is_refused(qm: QueueManager) -> None:
    qm.close()
    for call in (qm.recover, qm.prepared_list, lambda: qm.prepare(ONE),
                 lambda: qm.commit_prepared(ONE), lambda: qm.backout_prepared(ONE)):  # fmt: skip
        with pytest.raises(penstock.ClosedHandle):
            call()


def test_a_queue_of_a_prepared_unit_cannot_be_deleted_or_cleared(
    qm: QueueManager, queue: Queue
) -> None:
    queue.put(b"x", syncpoint=True)
    qm.prepare(ONE)
    queue.close()
    for call in (lambda: qm.delete("QLOCAL", "Q", purge=True), lambda: qm.clear("Q")):
        with pytest.raises(penstock.MQError) as caught:
            call()
        assert caught.value.reason == 2055
    qm.backout_prepared(ONE)
    qm.delete("QLOCAL", "Q")


# ---- other processes, restarts ----

PREPARES_AND_DIES = """
import os, signal, sys, penstock
from penstock import Xid
qm = penstock.connect("QM1", sys.argv[1])
q = qm.open("Q")
if sys.argv[2:] == ["fill"]:
    q.put(b"p", persistent=True)
    q.put(b"n", persistent=False)
assert q.get(syncpoint=True).data == b"p"
assert q.get(syncpoint=True).data == b"n"
q.put(b"put p", persistent=True, syncpoint=True)
q.put(b"put n", persistent=False, syncpoint=True)
qm.prepare(Xid(7, b"unit", b"\\1"))
os.kill(os.getpid(), signal.SIGKILL)
"""


def prepared_elsewhere(queue: Queue, run_python: Callable[..., object]) -> None:
    """A process gets and puts a message of each kind, prepares, and is killed."""
    queue.put(b"p", persistent=True)
    queue.put(b"n", persistent=False)
    done = run_python(PREPARES_AND_DIES)
    assert done.returncode == -signal.SIGKILL, done  # type: ignore[attr-defined]


def test_a_unit_outlives_the_process_that_prepared_it(
    qm: QueueManager, queue: Queue, run_python: Callable[..., object]
) -> None:
    prepared_elsewhere(queue, run_python)
    qm.maintain()
    assert qm.recover() == [ONE] and bodies(queue) == []
    assert qm.backout_prepared(ONE) == 0
    assert [(m.data, m.backout_count) for m in queue.browse()] == [(b"p", 1), (b"n", 1)]


def test_another_process_commits(
    qm: QueueManager, queue: Queue, run_python: Callable[..., object]
) -> None:
    prepared_elsewhere(queue, run_python)
    qm.commit_prepared(*qm.recover())
    assert bodies(queue) == [b"put p", b"put n"]


@pytest.mark.parametrize("how", ["orderly", "killed"])
def test_after_a_restart_a_commit_is_as_before_but_for_nonpersistent_puts(
    home: Path, run_python: Callable[..., object], how: str
) -> None:
    with after_a_restart(home, run_python, how) as qm, qm.open("Q") as queue:
        assert qm.recover() == [ONE] and bodies(queue) == []
        qm.commit_prepared(ONE)
        assert bodies(queue) == [b"put p"] and qm.recover() == []
    with penstock.connect("QM1", home) as qm, qm.open("Q") as queue:
        assert bodies(queue) == [b"put p"] and qm.recover() == []


@pytest.mark.parametrize("how", ["orderly", "killed"])
def test_after_a_restart_a_backout_discards_nonpersistent_messages_and_counts_them(
    home: Path, run_python: Callable[..., object], how: str
) -> None:
    with after_a_restart(home, run_python, how) as qm, qm.open("Q") as queue:
        assert qm.backout_prepared(ONE) >= 1
        assert [(m.data, m.backout_count) for m in queue.browse()] == [(b"p", 1)]
    with penstock.connect("QM1", home) as qm, qm.open("Q") as queue:
        assert [(m.data, m.backout_count) for m in queue.browse()] == [(b"p", 1)]


def after_a_restart(home: Path, run_python: Callable[..., object], how: str) -> QueueManager:
    """A unit was prepared; then all processes left or were killed; a new start."""
    penstock.create("QM1", home, segment_size=1 << 20, journal_limit=64 << 20, ring_size=1 << 20)
    with penstock.connect("QM1", home) as qm:
        qm.define("QLOCAL", "Q", npmclass="HIGH")
    if how == "orderly":
        with penstock.connect("QM1", home) as qm, qm.open("Q") as queue:
            prepared_elsewhere(queue, run_python)
    else:
        done = run_python(PREPARES_AND_DIES, "fill")
        assert done.returncode == -signal.SIGKILL, done  # type: ignore[attr-defined]
    return penstock.connect("QM1", home)


def test_units_in_doubt_survive_restart_after_restart_and_checkpoints(
    qm: QueueManager, queue: Queue, home: Path
) -> None:
    moved(qm, queue, ONE)
    queue.put(b"1" * 200_000, persistent=True, syncpoint=True)
    qm.prepare(TWO)
    queue.close()
    for _ in range(3):
        qm = restarted(qm, home)
        with qm.open("Q") as again:
            qm.checkpoint()
            again.put(b"between", persistent=True)
            assert again.get().data == b"between"
        assert qm.recover() == [ONE, TWO]
        assert not list(manager_directory("QM1", home).glob("journal/*.tmp"))
    with qm, qm.open("Q") as again:
        qm.commit_prepared(TWO)
        assert qm.backout_prepared(ONE) == 0
        assert [(len(m.data), m.backout_count) for m in again.browse()] == [(3, 1), (200_000, 0)]


def test_the_status_after_a_restart_is_as_before(
    qm: QueueManager, queue: Queue, home: Path
) -> None:
    moved(qm, queue, ONE)
    before = qm.prepared_list()
    queue.close()
    with restarted(qm, home) as again:
        assert again.prepared_list() == before


def test_a_forked_child_is_refused(qm: QueueManager, queue: Queue) -> None:
    queue.put(b"x", syncpoint=True)
    qm.prepare(ONE)
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        refused = 0
        for call in (qm.recover, lambda: qm.prepare(TWO), lambda: qm.commit_prepared(ONE)):
            try:
                call()
            except penstock.WrongEnvironment:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    assert qm.recover() == [ONE]

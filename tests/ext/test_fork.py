"""A forked child owns nothing: calls are refused, closing does nothing, it may connect again."""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock import Queue, QueueManager

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def in_child(call: Callable[[], object]) -> int:
    """Runs `call` in a forked child that leaves without clean-up; exit code 0 when it returned."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        code = 1
        try:
            call()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(penstock.WrongEnvironment) as caught:
        call()
    assert caught.value.reason == 2012


def test_every_call_of_a_child_is_refused(qm: QueueManager, queue: Queue) -> None:
    queue.put(b"x")

    def child() -> None:
        for call in (
            lambda: queue.put(b"y"),
            queue.get,
            lambda: queue.get(wait=10),
            lambda: queue.depth,
            lambda: list(queue.browse()),
            lambda: qm.open("Q"),
            lambda: qm.define("QLOCAL", "B"),
            qm.transaction,
            qm.commit,
            qm.status,
        ):
            refused(call)

    assert in_child(child) == 0
    assert queue.get().data == b"x"


def test_closing_in_a_child_does_nothing_to_the_parent(qm: QueueManager, queue: Queue) -> None:
    def child() -> None:
        queue.close()
        qm.close()

    assert in_child(child) == 0
    queue.put(b"x")
    assert queue.get().data == b"x"
    assert queue.status().open_input == 1


def test_collecting_in_a_child_does_nothing_to_the_parent(home: Path) -> None:
    import gc

    objects = {"qm": penstock.connect("QM1", home, create=True)}
    objects["q"] = objects["qm"].queue("Q")  # type: ignore[assignment, attr-defined]

    def child() -> None:
        objects.clear()
        gc.collect()

    assert in_child(child) == 0
    queue = objects["q"]
    queue.put(b"x")  # type: ignore[attr-defined]
    assert queue.get().data == b"x"  # type: ignore[attr-defined]
    objects["qm"].close()


def test_a_child_inside_a_transaction_leaves_it_to_the_parent(
    qm: QueueManager, queue: Queue
) -> None:
    def child() -> None:
        refused(lambda: queue.put(b"child"))
        refused(unit.commit)
        refused(unit.backout)
        refused(lambda: unit.__exit__(None, None, None))

    with qm.transaction() as unit:
        queue.put(b"parent")
        assert in_child(child) == 0
    assert queue.depth == 1


def test_units_that_a_child_has_inherited_stay_the_parents(qm: QueueManager, queue: Queue) -> None:
    import gc

    units = {"empty": qm.unit(), "used": qm.unit(), "dropped": qm.unit()}
    for name in ("used", "dropped"):
        queue.put(name.encode(), unit=units[name])

    def child() -> None:
        for name in ("empty", "used"):
            unit = units[name]
            refused(lambda u=unit: queue.put(b"child", unit=u))  # type: ignore[misc]
            refused(lambda u=unit: queue.get(unit=u))  # type: ignore[misc]
            refused(unit.commit)
            refused(unit.backout)
            refused(unit.__enter__)
        refused(qm.unit)
        refused(lambda: units["used"].__exit__(None, None, None))
        units.clear()  # neither ended nor warned of
        gc.collect()

    assert in_child(child) == 0
    for unit in units.values():
        unit.commit()
    assert sorted(queue.get().data for _ in range(2)) == [b"dropped", b"used"]


def test_a_child_may_connect_again(qm: QueueManager, queue: Queue, home: Path) -> None:
    def child() -> None:
        with penstock.connect("QM1", home) as mine, mine.open("Q") as q:
            assert q.get(wait=10).data == b"to the child"
            with mine.transaction():
                q.put(b"from the child")

    with qm.transaction():
        queue.put(b"to the child")
    assert in_child(child) == 0
    assert queue.get(wait=10).data == b"from the child"


def test_a_fork_while_other_threads_wait_leaves_a_usable_child(
    qm: QueueManager, queue: Queue
) -> None:
    import threading

    thread = threading.Thread(target=lambda: queue.get(wait=None))
    thread.start()
    for _ in range(10000):
        if queue.status().waiters:
            break

    def child() -> None:
        refused(lambda: queue.put(b"x"))
        queue.close()
        qm.close()

    assert in_child(child) == 0
    queue.put(b"x")
    thread.join()


def _work(home: Path, number: int) -> None:
    with penstock.connect("QM1", home) as qm, qm.open("Q") as q, qm.transaction():
        q.put(b"%d" % number)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_works_with_every_start_method(
    qm: QueueManager, queue: Queue, home: Path, method: str
) -> None:
    context = multiprocessing.get_context(method)
    processes = [context.Process(target=_work, args=(home, n)) for n in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert sorted(queue.get().data for _ in range(2)) == [b"0", b"1"]

"""Units of work as objects: unit(), the argument `unit`, and transactions that are passed on."""

from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock
from in_thread import in_thread
from penstock import Queue, QueueManager, Unit, Xid

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def get_all(queue: Queue) -> list[bytes]:
    """Takes every message that is available."""
    found = []
    while (m := queue.get(default=None, syncpoint=False)) is not None:
        found.append(m.data)
    return found


def calls(qm: QueueManager, queue: Queue, unit: Unit) -> list[Callable[[], object]]:
    """Every call that takes a unit, and every end of one."""
    return [
        lambda: queue.put(b"x", unit=unit),
        lambda: queue.put(bytearray(b"x"), unit=unit),
        lambda: queue.get(unit=unit),
        lambda: queue.get(default=None, unit=unit, wait=0.01),
        lambda: queue.get(syncpoint_if_persistent=True, unit=unit),
        lambda: queue.put_batch([b"x"], unit=unit),
        lambda: queue.put_batch([b"x"], priority=3, unit=unit),
        lambda: queue.get_batch(2, unit=unit),
        lambda: queue.get_batch(2, max_bytes=10, unit=unit),
        lambda: queue.get_batch(2, bodies=False, unit=unit),
        lambda: queue.take_batch_uncopied(2, unit=unit),
        lambda: unit.prepare(Xid(1, b"x")),
        unit.commit,
        unit.backout,
    ]


class Waiting:
    """A thread that waits for a message in a unit of work; the block gives it one at its end."""

    def __init__(self, queue: Queue, **arguments: Any) -> None:
        self.queue = queue
        self.outcome: list[object] = []
        self.thread = threading.Thread(target=self.work, kwargs=arguments)

    def work(self, **arguments: Any) -> None:
        try:
            self.outcome.append(self.queue.get(wait=60, **arguments).data)
        except penstock.MQError as error:
            self.outcome.append(error.reason)

    def __enter__(self) -> Waiting:
        self.thread.start()
        while not self.queue.status().waiters and self.thread.is_alive():
            pass
        return self

    def __exit__(self, *_: object) -> None:
        self.queue.put(b"to the waiter", syncpoint=False)
        self.thread.join()


# ---- what a unit does ----


def test_calls_that_are_passed_a_unit_belong_to_it_until_commit(
    qm: QueueManager, queue: Queue
) -> None:
    queue.put(b"old")
    unit = qm.unit()
    assert queue.get(unit=unit).data == b"old"
    queue.put(b"1", unit=unit)
    queue.put(bytearray(b"2"), persistent=True, unit=unit)
    assert unit.count == 3
    queue.put(b"outside")
    assert get_all(queue) == [b"outside"]
    unit.commit()
    assert get_all(queue) == [b"1", b"2"]


def test_backout_undoes_what_was_done_in_the_unit_and_nothing_else(
    qm: QueueManager, queue: Queue
) -> None:
    for data in (b"0", b"1", b"2"):
        queue.put(data)
    one, two = qm.unit(), qm.unit()
    assert queue.get(unit=one).data == b"0"
    assert queue.get(unit=two).data == b"1"
    queue.put(b"of one", unit=one)
    queue.put(b"of two", unit=two)
    one.backout()
    two.commit()
    assert [(m.data, m.backout_count) for m in queue.browse()] == [
        (b"0", 1), (b"2", 0), (b"of two", 0),
    ]  # fmt: skip


def test_a_block_commits_at_its_end_and_backs_out_on_an_exception(
    qm: QueueManager, queue: Queue
) -> None:
    with qm.unit() as unit:
        queue.put(b"kept", unit=unit)
        queue.put(b"outside")
    with pytest.raises(KeyError), qm.unit() as unit:
        queue.put(b"lost", unit=unit)
        raise KeyError
    assert get_all(queue) == [b"kept", b"outside"]


@pytest.mark.parametrize("end", ["commit", "backout"])
def test_a_unit_that_has_ended_within_its_block_leaves_nothing_to_the_end(
    qm: QueueManager, queue: Queue, end: str
) -> None:
    with qm.unit() as unit:
        queue.put(b"x", unit=unit)
        getattr(unit, end)()
    assert get_all(queue) == ([b"x"] if end == "commit" else [])


def test_a_unit_goes_from_thread_to_thread(qm: QueueManager, queue: Queue) -> None:
    unit = qm.unit()
    for number in range(5):
        in_thread(lambda n=number: queue.put(b"%d" % n, unit=unit))
    assert queue.get(default=None) is None
    assert in_thread(unit.commit) is None
    assert get_all(queue) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_unit_is_in_no_context_and_beside_every_other_unit(
    qm: QueueManager, queue: Queue
) -> None:
    unit = qm.unit()
    queue.put(b"implicit", syncpoint=True)
    queue.put(b"held", unit=unit)
    queue.put(b"outside")
    qm.commit()
    with pytest.raises(KeyError), qm.transaction() as block:
        queue.put(b"in the block")
        queue.put(b"held, too", unit=unit)
        assert (block.count, unit.count) == (1, 2)
        raise KeyError
    assert get_all(queue) == [b"implicit", b"outside"]
    unit.commit()
    assert get_all(queue) == [b"held", b"held, too"]


def test_batches_belong_to_the_unit_that_they_are_passed(qm: QueueManager, queue: Queue) -> None:
    unit = qm.unit()
    queue.put_batch([b"1", b"2"], unit=unit)
    queue.put_batch([b"3"], priority=[3], unit=unit)
    assert queue.get_batch(10).bodies.tobytes() == b""
    unit.commit()
    unit = qm.unit()
    assert len(queue.get_batch(1, unit=unit)) == 1
    assert len(queue.get_batch(1, max_bytes=10, unit=unit)) == 1
    assert queue.take_batch_uncopied(1, unit=unit) == (1, 1)
    assert unit.count == 3
    unit.backout()
    assert [m.backout_count for m in queue.browse()] == [1, 1, 1]


def test_a_reply_and_a_dead_letter_can_be_put_in_a_unit(qm: QueueManager, queue: Queue) -> None:
    qm.define("QLOCAL", "DEAD")
    qm.alter("QMGR", "QM1", deadq="DEAD")
    queue.put(b"request", msg_type=1, reply_to_q="Q")
    unit = qm.unit()
    m = queue.get(unit=unit)
    qm.reply(m, b"reply", unit=unit)
    qm.dead_letter(m, 2053, unit=unit)
    assert unit.count == 3
    unit.backout()
    with qm.open("DEAD") as dead:
        assert (queue.depth, dead.depth) == (1, 0)


def test_messages_that_are_not_persistent_are_outside_with_syncpoint_if_persistent(
    qm: QueueManager, queue: Queue
) -> None:
    queue.put(b"p", persistent=True)
    queue.put(b"n", persistent=False)
    unit = qm.unit()
    assert queue.get(syncpoint_if_persistent=True, unit=unit).data == b"p"
    assert queue.get(syncpoint_if_persistent=True, unit=unit).data == b"n"
    unit.backout()
    assert get_all(queue) == [b"p"]


# ---- ends ----


@pytest.mark.parametrize("end", ["commit", "backout", "prepare", "block", "empty"])
def test_a_unit_that_has_ended_refuses_every_call_with_2255(
    qm: QueueManager, queue: Queue, end: str
) -> None:
    unit = qm.unit()
    if end != "empty":
        queue.put(b"x", unit=unit)
    if end == "prepare":
        unit.prepare(Xid(1, b"4711"))
    elif end == "block":
        with unit:
            pass
    elif end == "backout":
        unit.backout()
    else:
        unit.commit()
    for call in [*calls(qm, queue, unit), unit.__enter__]:
        with pytest.raises(penstock.UnitNotAvailable) as caught:
            call()
        assert caught.value.reason == 2255
    assert unit.count == 0
    if end == "prepare":
        qm.commit_prepared(Xid(1, b"4711"))
    assert get_all(queue) == ([b"x"] if end in ("commit", "prepare", "block") else [])


def test_a_unit_that_is_dropped_before_its_end_is_backed_out_with_a_warning(
    qm: QueueManager, queue: Queue
) -> None:
    queue.put(b"x")
    unit = qm.unit()
    queue.get(unit=unit)
    with pytest.warns(ResourceWarning, match="unit of work of queue manager QM1 was not ended"):
        del unit
        gc.collect()
    assert queue.get().backout_count == 1
    with pytest.warns(ResourceWarning, match="was not ended"):
        qm.unit()
    cycle: list[object] = [qm.unit()]
    cycle.append(cycle)
    with pytest.warns(ResourceWarning, match="was not ended"):
        del cycle
        gc.collect()
    assert qm.status().units == 0


def test_close_backs_open_units_out_and_their_programs_learn_of_it_once(home: Path) -> None:
    with penstock.connect("QM1", home, create=True) as keep:
        qm = penstock.connect("QM1", home)
        units = [qm.unit() for _ in range(6)]
        with qm.queue("Q") as queue:
            for unit in units[:5]:
                queue.put(b"x", unit=unit)
        qm.close()
        for call in (units[0].commit, units[1].backout, units[2].__enter__, units[5].commit):
            with pytest.raises(penstock.BackedOut) as caught:
                call()
            assert caught.value.reason == 2003
        with pytest.raises(penstock.BackedOut):
            units[3].__exit__(None, None, None)
        assert units[4].__exit__(KeyError, None, None) is None
        for unit in units:
            with pytest.raises(penstock.UnitNotAvailable):
                unit.commit()
        with pytest.raises(penstock.ClosedHandle):
            qm.unit()
        with keep.open("Q") as queue:
            assert queue.depth == 0


def test_an_end_of_the_connection_within_the_block_raises_at_the_end_of_the_block(
    home: Path,
) -> None:
    with penstock.connect("QM1", home, create=True) as keep:
        qm = penstock.connect("QM1", home)
        with pytest.raises(penstock.BackedOut), qm.unit() as unit:
            with qm.queue("Q") as queue:
                queue.put(b"x", unit=unit)
            qm.close()
        with keep.open("Q") as queue:
            assert queue.depth == 0


def test_the_end_of_an_empty_unit_tells_that_the_queue_manager_has_ended(
    home: Path, run_python: Run
) -> None:
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as queue:
        empty, used = qm.unit(), qm.unit()
        queue.put(b"x", unit=used)
        ended = run_python(
            "import sys, penstock\n"
            "with penstock.connect('QM1', sys.argv[1]) as qm: qm.end('immediate')"
        )
        assert ended.stderr == ""
        for unit in (empty, used):
            with pytest.raises(penstock.QueueManagerStopping):
                unit.commit()
            with pytest.raises(penstock.UnitNotAvailable):
                unit.commit()


def test_maxumsgs_counts_for_each_unit(home: Path) -> None:
    penstock.create("QM1", home, max_uncommitted_messages=3)
    with penstock.connect("QM1", home) as qm, qm.queue("Q") as queue:
        units = [qm.unit() for _ in range(3)]
        for unit in units:
            queue.put_batch([b"x"] * 3, unit=unit)
        for unit in units:
            with pytest.raises(penstock.UnitLimitReached) as caught:
                queue.put(b"x", unit=unit)
            assert caught.value.reason == 2024
            unit.commit()
        assert queue.depth == 9


def test_4_096_units_are_committed_in_one_step_and_no_more(qm: QueueManager, queue: Queue) -> None:
    xids = [Xid(1, b"%d" % number) for number in range(4097)]
    for number, xid in enumerate(xids):
        unit = qm.unit()
        queue.put(b"%d" % number, persistent=False, unit=unit)
        unit.prepare(xid, wait=False)
    with pytest.raises(penstock.InvalidValue) as caught:
        qm.commit_prepared(*xids)
    assert caught.value.reason == 2046
    assert queue.get(default=None) is None
    qm.commit_prepared(*xids[:4096])
    assert len(queue.get_batch(5000)) == 4096
    qm.backout_prepared(xids[4096])


def test_an_empty_unit_is_prepared_when_that_is_allowed(qm: QueueManager) -> None:
    unit = qm.unit()
    with pytest.raises(penstock.UnitNotAvailable):
        unit.prepare(Xid(1, b"empty"))
    unit.prepare(Xid(1, b"empty"), allow_empty=True)
    qm.commit_prepared(Xid(1, b"empty"))


# ---- one call at a time ----


def test_a_second_call_while_one_waits_in_the_unit_raises_2219(
    qm: QueueManager, queue: Queue
) -> None:
    unit = qm.unit()
    queue.put(b"before", unit=unit)
    with Waiting(queue, unit=unit) as waiting:
        for call in [*calls(qm, queue, unit), unit.__enter__]:
            with pytest.raises(penstock.CallInProgress) as caught:
                call()
            assert caught.value.reason == 2219
    assert waiting.outcome == [b"to the waiter"]
    assert unit.count == 2
    unit.commit()
    assert get_all(queue) == [b"before"]


def test_a_call_of_the_owner_while_another_thread_waits_in_its_transaction_raises_2219(
    qm: QueueManager, queue: Queue
) -> None:
    with qm.transaction() as unit:
        with Waiting(queue, unit=unit) as waiting:
            for call in (
                lambda: queue.put(b"x"),
                lambda: queue.get_batch(1),
                qm.commit,
                qm.backout,
                unit.commit,
                lambda: qm.prepare(Xid(1, b"x")),
            ):
                with pytest.raises(penstock.CallInProgress):
                    call()
        assert waiting.outcome == [b"to the waiter"]
        assert unit.count == 1
    assert queue.depth == 0


@pytest.mark.parametrize("kind", ["unit", "transaction"])
def test_a_block_that_ends_during_a_call_of_another_thread_backs_out_and_raises_2219(
    qm: QueueManager, queue: Queue, kind: str
) -> None:
    waiting: Waiting
    with pytest.raises(penstock.CallInProgress), getattr(qm, kind)() as unit:
        queue.put(b"lost", unit=unit)
        waiting = Waiting(queue, unit=unit).__enter__()
    waiting.__exit__()
    assert waiting.outcome == [2255]
    assert get_all(queue) == [b"to the waiter"]


def test_a_signal_handler_in_the_middle_of_a_call_gets_2219(qm: QueueManager, queue: Queue) -> None:
    unit = qm.unit()
    seen: list[int] = []

    def handle(*_: object) -> None:
        try:
            queue.put(b"x", unit=unit)
        except penstock.CallInProgress as error:
            seen.append(error.reason)
        queue.put(b"outside")

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert queue.get(wait=60, unit=unit).data == b"outside"
    finally:
        signal.signal(signal.SIGALRM, before)
    assert seen == [2219]
    unit.commit()


def test_a_signal_handler_still_works_in_the_transaction_around_it(
    qm: QueueManager, queue: Queue
) -> None:
    def handle(*_: object) -> None:
        queue.put(b"in the block")
        queue.put(b"outside", syncpoint=False)

    before = signal.signal(signal.SIGALRM, handle)
    try:
        with pytest.raises(KeyError), qm.transaction() as unit:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            assert queue.get(wait=60).data == b"outside"
            assert unit.count == 2
            raise KeyError
    finally:
        signal.signal(signal.SIGALRM, before)
    assert get_all(queue) == [b"outside"]


# ---- transactions that are passed, and asyncio ----


def test_a_transaction_can_be_passed_to_threads_and_tasks_on_purpose(
    qm: QueueManager, queue: Queue
) -> None:
    async def child(unit: Unit) -> None:
        with pytest.raises(penstock.UnitNotAvailable, match="unit="):
            queue.put(b"without")
        queue.put(b"child", unit=unit)

    async def main(fail: bool) -> None:
        with qm.transaction() as unit:
            queue.put(b"parent")
            await asyncio.create_task(child(unit))
            await asyncio.gather(child(unit))
            await asyncio.to_thread(queue.put, b"thread", unit=unit)
            assert unit.count == 4
            if fail:
                raise KeyError

    with pytest.raises(KeyError):
        asyncio.run(main(True))
    assert queue.depth == 0
    asyncio.run(main(False))
    assert get_all(queue) == [b"parent", b"child", b"child", b"thread"]


def test_a_unit_waits_in_a_thread_under_wait_for_and_shield(qm: QueueManager, queue: Queue) -> None:
    async def main() -> None:
        unit = qm.unit()
        get = asyncio.to_thread(queue.get, wait=60, unit=unit)
        waiter = asyncio.ensure_future(asyncio.wait_for(asyncio.shield(get), 60))
        while not queue.status().waiters:
            await asyncio.sleep(0)
        queue.put(b"x")
        assert (await waiter).data == b"x"
        unit.backout()

    asyncio.run(main())
    assert queue.get().backout_count == 1


def test_tasks_have_units_of_their_own_over_every_await(qm: QueueManager, queue: Queue) -> None:
    async def work(number: int, unit: Unit) -> None:
        for step in range(3):
            queue.put(b"%d.%d" % (number, step), unit=unit)
            await asyncio.sleep(0)

    async def main() -> None:
        units = [qm.unit() for _ in range(6)]
        await asyncio.gather(*(work(number, unit) for number, unit in enumerate(units)))
        for number, unit in enumerate(units):
            unit.commit() if number % 2 else unit.backout()

    asyncio.run(main())
    assert sorted(get_all(queue)) == [b"%d.%d" % (n, s) for n in (1, 3, 5) for s in range(3)]


def test_another_thread_cannot_end_the_transaction_that_it_was_passed(
    qm: QueueManager, queue: Queue
) -> None:
    with qm.transaction() as unit:
        for call in (unit.commit, unit.backout, lambda: unit.prepare(Xid(1, b"x"))):
            assert isinstance(in_thread(call), penstock.UnitNotAvailable)
        queue.put(b"x")
    assert queue.depth == 1


# ---- what is refused ----


def test_arguments_that_do_not_go_together_are_refused_with_2046(
    qm: QueueManager, queue: Queue
) -> None:
    unit = qm.unit()
    queue.put(b"x")
    for value in (1, True, "unit", qm, queue, Unit):
        with pytest.raises(penstock.InvalidType, match="unit must be") as wrong:
            queue.put(b"x", unit=value)  # type: ignore[arg-type]
        assert wrong.value.reason == 2046
    for call in (
        lambda: queue.put(b"x", syncpoint=False, unit=unit),
        lambda: queue.get(syncpoint=False, unit=unit),
        lambda: queue.put_batch([b"x"], syncpoint=False, unit=unit),
        lambda: queue.get_batch(1, syncpoint=False, unit=unit),
        lambda: queue.get(browse="first", unit=unit),
        lambda: queue.get(unlock=True, unit=unit),
    ):
        with pytest.raises(penstock.InvalidValue, match="unit") as caught:
            call()
        assert caught.value.reason == 2046
    queue.put(b"y", syncpoint=True, unit=unit)
    unit.commit()
    assert get_all(queue) == [b"x", b"y"]


def test_a_unit_of_another_connection_is_refused(
    qm: QueueManager, queue: Queue, home: Path
) -> None:
    with penstock.connect("QM1", home) as other, other.unit() as unit:
        with pytest.raises(penstock.UnitNotAvailable, match="another connection"):
            queue.put(b"x", unit=unit)
        with other.open("Q") as same:
            same.put(b"x", unit=unit)
    assert queue.depth == 1


def test_a_transaction_takes_no_calls_outside_its_block(qm: QueueManager, queue: Queue) -> None:
    unit = qm.transaction()
    with pytest.raises(penstock.UnitNotAvailable, match="has not been entered"):
        queue.put(b"x", unit=unit)
    with unit:
        pass
    with pytest.raises(penstock.UnitNotAvailable, match="has ended"):
        queue.put(b"x", unit=unit)
    assert queue.depth == 0


def test_an_argument_that_ends_the_unit_in_the_middle_of_the_call_is_refused_and_harmless(
    qm: QueueManager, queue: Queue
) -> None:
    class Ending:
        def __bool__(self) -> bool:
            units[-1].backout()
            return False

    ending: Any = Ending()
    units: list[Unit] = []
    for call in (
        lambda unit: queue.get(max_length=10, truncate=ending, unit=unit),
        lambda unit: queue.get(syncpoint_if_persistent=ending, unit=unit),
        lambda unit: queue.get_batch(1, persistent_only=ending, unit=unit),
        lambda unit: queue.take_batch_uncopied(1, persistent_only=ending, unit=unit),
    ):
        units.append(qm.unit())
        queue.put(b"lost", unit=units[-1])
        with pytest.raises(penstock.UnitNotAvailable):
            call(units[-1])
    assert queue.depth == 0


def test_a_backout_with_the_shortest_delay_gives_the_message_back_at_once(
    qm: QueueManager, queue: Queue
) -> None:
    queue.put(b"x", persistent=False)
    for count in range(200):
        unit = qm.unit()
        assert queue.get(wait=1, unit=unit).backout_count == count
        unit.backout(delay=1e-6)

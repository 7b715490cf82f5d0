"""Units of work: transaction(), the implicit unit, and whose they are (crash-safety rule 49)."""

from __future__ import annotations

import asyncio
import contextvars
import gc

import pytest

import penstock
from in_thread import in_thread
from penstock import Queue, QueueManager


def get_all(queue: Queue) -> list[bytes]:
    found = []
    while queue.depth:
        found.append(queue.get(syncpoint=False).data)
    return found


def put(qm: QueueManager, data: bytes, syncpoint: bool | None = None) -> None:
    """Puts through a new handle."""
    with qm.queue("Q") as q:
        q.put(data, syncpoint=syncpoint)


def test_a_transaction_commits_at_its_end(qm: QueueManager, queue: Queue) -> None:
    with qm.transaction() as unit:
        queue.put(b"1")
        queue.put(b"2", persistent=True)
        assert unit.count == 2
        with pytest.raises(penstock.NoMessageAvailable):
            queue.get(syncpoint=False)
    assert get_all(queue) == [b"1", b"2"]


def test_a_transaction_backs_out_when_an_exception_leaves_it(
    qm: QueueManager, queue: Queue
) -> None:
    queue.put(b"old")
    with pytest.raises(KeyError), qm.transaction():
        assert queue.get().backout_count == 0
        queue.put(b"new")
        raise KeyError("x")
    m = queue.get()
    assert (m.data, m.backout_count) == (b"old", 1)
    assert queue.depth == 0


def test_a_backed_out_message_returns_to_its_position(qm: QueueManager, queue: Queue) -> None:
    for number in range(4):
        queue.put(b"%d" % number, priority=5)
    with qm.transaction() as unit:
        assert queue.get().data == b"0"
        assert queue.get().data == b"1"
        unit.backout()
    assert [m.data for m in queue.browse()] == [b"0", b"1", b"2", b"3"]
    assert [m.backout_count for m in queue.browse()] == [1, 1, 0, 0]


def test_syncpoint_false_is_outside_even_inside_a_transaction(
    qm: QueueManager, queue: Queue
) -> None:
    with pytest.raises(KeyError), qm.transaction():
        queue.put(b"kept", syncpoint=False)
        queue.put(b"lost")
        raise KeyError
    assert get_all(queue) == [b"kept"]


def test_syncpoint_none_is_outside_without_a_transaction(qm: QueueManager, queue: Queue) -> None:
    queue.put(b"x")
    qm.backout()
    assert queue.depth == 1


def test_syncpoint_true_is_the_implicit_unit_until_commit_or_backout(
    qm: QueueManager, queue: Queue
) -> None:
    queue.put(b"1", syncpoint=True)
    with pytest.raises(penstock.NoMessageAvailable):
        queue.get()
    qm.commit()
    assert queue.get(syncpoint=True).data == b"1"
    qm.backout()
    m = queue.get(syncpoint=True)
    assert m.backout_count == 1
    qm.commit()
    qm.commit()
    qm.backout()
    assert queue.depth == 0


def test_syncpoint_true_inside_a_transaction_is_that_transaction(
    qm: QueueManager, queue: Queue
) -> None:
    with qm.transaction() as unit:
        queue.put(b"1", syncpoint=True)
        assert unit.count == 1
    qm.backout()
    assert queue.depth == 1


def test_qm_commit_and_backout_inside_a_transaction_act_on_it(
    qm: QueueManager, queue: Queue
) -> None:
    with qm.transaction() as unit:
        queue.put(b"1")
        qm.commit()
        queue.put(b"2")
        qm.backout()
        queue.put(b"3")
        assert unit.count == 1
    assert get_all(queue) == [b"1", b"3"]


def test_nested_transactions_are_an_error_and_harm_nothing(qm: QueueManager, queue: Queue) -> None:
    with qm.transaction():
        queue.put(b"1")
        with pytest.raises(penstock.UnitInProgress) as caught, qm.transaction():
            pytest.fail("entered")
        assert caught.value.reason == 2128
        queue.put(b"2")
    assert get_all(queue) == [b"1", b"2"]


def test_a_pending_implicit_unit_excludes_a_transaction(qm: QueueManager, queue: Queue) -> None:
    queue.put(b"1", syncpoint=True)
    with pytest.raises(penstock.UnitInProgress), qm.transaction():
        pytest.fail("entered")
    qm.commit()
    with qm.transaction():
        queue.put(b"2")
    assert get_all(queue) == [b"1", b"2"]


def test_a_unit_can_be_entered_once_only(qm: QueueManager) -> None:
    unit = qm.transaction()
    with unit:
        pass
    with pytest.raises(penstock.UnitInProgress), unit:
        pytest.fail("entered")


def test_an_ended_unit_cannot_be_used(qm: QueueManager) -> None:
    with qm.transaction() as unit:
        pass
    assert unit.count == 0
    for call in (unit.commit, unit.backout):
        with pytest.raises(penstock.UnitNotAvailable):
            call()


def test_a_unit_counts_in_its_own_thread_only(qm: QueueManager, queue: Queue) -> None:
    with pytest.raises(KeyError), qm.transaction():
        queue.put(b"mine")
        context = contextvars.copy_context()
        in_thread(lambda: queue.put(b"other thread"))
        error = in_thread(lambda: context.run(queue.put, b"inherited context"))
        assert isinstance(error, penstock.UnitNotAvailable)
        raise KeyError
    assert get_all(queue) == [b"other thread"]


def test_threads_have_their_own_units_at_the_same_time(qm: QueueManager, queue: Queue) -> None:
    def work() -> None:
        with qm.transaction():
            queue.put(b"thread")

    with pytest.raises(KeyError), qm.transaction():
        queue.put(b"main")
        assert in_thread(work) is None
        raise KeyError
    assert get_all(queue) == [b"thread"]


def test_a_unit_cannot_be_ended_by_another_thread(qm: QueueManager, queue: Queue) -> None:
    with qm.transaction() as unit:
        queue.put(b"x")
        assert isinstance(in_thread(unit.commit), penstock.UnitNotAvailable)
        assert isinstance(in_thread(unit.backout), penstock.UnitNotAvailable)
    assert queue.depth == 1


def test_the_implicit_unit_of_a_thread_that_ends_is_backed_out(
    qm: QueueManager, queue: Queue
) -> None:
    in_thread(lambda: queue.put(b"x", syncpoint=True))
    gc.collect()
    assert queue.depth == 0
    qm.commit()
    assert queue.depth == 0


def test_tasks_have_their_own_units(qm: QueueManager, queue: Queue) -> None:
    async def work(number: int, fail: bool) -> None:
        with qm.transaction():
            for step in range(3):
                queue.put(b"%d.%d" % (number, step))
                await asyncio.sleep(0)
            if fail:
                raise KeyError

    async def main() -> None:
        await asyncio.gather(
            *(work(number, number % 2 == 1) for number in range(4)), return_exceptions=True
        )

    asyncio.run(main())
    assert sorted(get_all(queue)) == [b"0.0", b"0.1", b"0.2", b"2.0", b"2.1", b"2.2"]


def test_a_child_task_or_thread_that_inherited_the_context_is_refused_the_unit(
    qm: QueueManager, queue: Queue
) -> None:
    async def child() -> None:
        with pytest.raises(penstock.UnitNotAvailable):
            queue.put(b"child")
        with qm.transaction():
            queue.put(b"child's unit")

    async def main() -> None:
        with qm.transaction():
            queue.put(b"parent")
            await asyncio.create_task(child())
            with pytest.raises(penstock.UnitNotAvailable):
                await asyncio.to_thread(queue.put, b"to_thread")
            await asyncio.to_thread(queue.put, b"outside", syncpoint=False)
            raise KeyError

    with pytest.raises(KeyError):
        asyncio.run(main())
    assert get_all(queue) == [b"child's unit", b"outside"]


def test_a_task_inside_a_threads_transaction_is_refused_the_unit(
    qm: QueueManager, queue: Queue
) -> None:
    async def main() -> None:
        with pytest.raises(penstock.UnitNotAvailable):
            queue.put(b"task")

    with pytest.raises(KeyError), qm.transaction():
        queue.put(b"thread")
        asyncio.run(main())
        raise KeyError
    assert queue.depth == 0


def test_the_implicit_unit_of_a_task_is_its_own(qm: QueueManager, queue: Queue) -> None:
    async def work(number: int, commit: bool) -> None:
        queue.put(b"%d" % number, syncpoint=True)
        await asyncio.sleep(0)
        qm.commit() if commit else qm.backout()

    async def main() -> None:
        await asyncio.gather(*(work(number, number != 1) for number in range(3)))

    asyncio.run(main())
    assert sorted(get_all(queue)) == [b"0", b"2"]


def test_transactions_of_two_queue_managers_can_be_nested(
    qm: QueueManager, queue: Queue, home: object
) -> None:
    with penstock.connect("QM2", str(home), create=True) as other, other.queue("Q") as far:
        with qm.transaction() as near_unit, other.transaction() as far_unit:
            queue.put(b"near")
            far.put(b"far")
            assert (near_unit.count, far_unit.count) == (1, 1)
        assert (queue.depth, far.depth) == (1, 1)


def test_two_connections_to_one_queue_manager_have_units_of_their_own(
    qm: QueueManager, queue: Queue, home: object
) -> None:
    with penstock.connect("QM1", str(home)) as other, other.open("Q") as same:
        with qm.transaction():
            queue.put(b"1")
            same.put(b"2")
            assert same.get().data == b"2"
        assert same.get().data == b"1"


def test_close_commits_the_implicit_unit(home: object) -> None:
    with penstock.connect("QM3", str(home), create=True) as keep:
        qm = penstock.connect("QM3", str(home))
        put(qm, b"x", syncpoint=True)
        qm.close()
        with keep.open("Q") as q:
            assert q.get().data == b"x"


def test_an_exception_that_leaves_connect_backs_out(home: object) -> None:
    with penstock.connect("QM3", str(home), create=True) as keep:
        with pytest.raises(KeyError), penstock.connect("QM3", str(home)) as qm:
            put(qm, b"x", syncpoint=True)
            raise KeyError
        with keep.open("Q") as q:
            assert q.depth == 0


def test_close_inside_a_transaction_commits_it(home: object) -> None:
    with penstock.connect("QM3", str(home), create=True) as keep:
        qm = penstock.connect("QM3", str(home))
        with qm.transaction():
            put(qm, b"x")
            qm.close()
        with keep.open("Q") as q:
            assert q.get().data == b"x"


def test_close_backs_out_the_transaction_of_another_thread_whose_end_raises(
    home: object,
) -> None:
    with penstock.connect("QM3", str(home), create=True) as keep:
        qm = penstock.connect("QM3", str(home))

        def work() -> None:
            with qm.transaction():
                put(qm, b"x")
                in_thread(qm.close)

        assert isinstance(in_thread(work), penstock.BackedOut)
        with keep.open("Q") as q:
            assert q.depth == 0


def test_an_abandoned_connection_backs_out(home: object) -> None:
    with penstock.connect("QM3", str(home), create=True) as keep:
        with pytest.warns(ResourceWarning, match="queue manager QM3 was not closed"):
            qm = penstock.connect("QM3", str(home))
            put(qm, b"x", syncpoint=True)
            del qm
            gc.collect()
        with keep.open("Q") as q:
            assert q.depth == 0


def test_the_limit_of_a_unit_is_reported_and_the_unit_continues(home: object) -> None:
    penstock.create("QM4", str(home), max_uncommitted_messages=3)
    with penstock.connect("QM4", str(home)) as qm, qm.queue("Q") as q:
        with qm.transaction():
            for number in range(3):
                q.put(b"%d" % number)
            with pytest.raises(penstock.UnitLimitReached):
                q.put(b"3")
        assert q.depth == 3


def test_syncpoint_if_persistent_takes_only_persistent_messages_into_the_unit(
    qm: QueueManager, queue: Queue
) -> None:
    queue.put(b"p", persistent=True)
    queue.put(b"n", persistent=False)
    assert queue.get(syncpoint_if_persistent=True).data == b"p"
    assert queue.get(syncpoint_if_persistent=True).data == b"n"
    qm.backout()
    assert get_all(queue) == [b"p"]

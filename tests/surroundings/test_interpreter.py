"""What a program's own objects, threads and tasks do in the middle of a call: it raises, and the
interpreter, the queue manager and the messages stay whole.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
import reentrant
from reentrant import TARGETS

import penstock
from penstock import Queue, QueueManager, _engine, mqi
from penstock.admin.settings import read_settings
from penstock.admin.sizes import parse_size
from penstock.batch import DTYPE, MessageBatch
from thorough import one_in

PROGRAM = Path(reentrant.__file__)
SECONDS = 600.0  # the longest that the program runs for one target
SMALL = {"segment_size": 1 << 20, "journal_limit": 16 << 20, "region_size": 256 << 20}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own."""
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def qm(home: Path) -> Iterator[QueueManager]:
    """A queue manager with small files."""
    penstock.create("QM1", home, **SMALL)
    with penstock.connect("QM1", home) as manager:
        yield manager


@pytest.fixture
def queue(qm: QueueManager) -> Iterator[Queue]:
    """An empty queue."""
    with qm.queue("Q") as opened:
        yield opened


def in_thread(work: Callable[[], object]) -> object:
    """What the call returns or raises in another thread."""
    outcome: list[object] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert outcome, "the thread did not end"
    return outcome[0]


def get_all(queue: Queue) -> list[bytes]:
    """The bodies of all messages, taken."""
    return [message.data for message in queue.get_batch(1000)]


# ---- 17: callbacks in the middle of a call ----


@pytest.mark.parametrize("target", TARGETS)
def test_no_callback_of_an_argument_ends_the_interpreter(target: str, tmp_path: Path) -> None:
    log = tmp_path / "call"
    done = subprocess.run(
        [sys.executable, PROGRAM, target, str(SECONDS), str(one_in(4))],
        capture_output=True,
        text=True,
        timeout=SECONDS + 30,
        env={**os.environ, "REENTRANT_LOG": str(log)},
        check=False,
    )
    call = log.read_text().strip() if log.exists() else "none"
    assert done.returncode == 0, f"in {call}: {done.returncode} {done.stderr[-3000:]}"
    if target in ("Queue", "QueueManager", "mqi", "_engine", "penstock"):
        assert int(done.stdout.split()[-1]) > 100 // one_in(4), "no object was asked for anything"


BARE = [
    getattr(_engine, name)
    for name in dir(_engine)
    if isinstance(getattr(_engine, name), type)
    and getattr(_engine, name).__module__ == "penstock._engine"
]


@pytest.mark.parametrize("kind", [*BARE, Queue, QueueManager, MessageBatch], ids=repr)
def test_an_object_whose_constructor_never_ran_refuses_every_method(
    kind: Any, queue: Queue
) -> None:
    world = reentrant.World(Path())
    world.qm = queue.connection
    world.queue, world.unit = world.qm.open("Q"), world.qm.transaction()
    world.hconn = _engine.Hconn(queue.connection)
    world.hobj = _engine.Hobj(world.hconn, 16)
    with world.queue:
        call_every_method_of_bare_objects(kind, world)
    queue.put(b"x")
    assert get_all(queue) == [b"x"]


def call_every_method_of_bare_objects(kind: Any, world: reentrant.World) -> None:
    """Each method of a new object each, with ordinary arguments."""
    for name in dir(kind):
        try:
            bare = kind.__new__(kind)
        except TypeError:
            return  # cannot be made without its arguments
        if name in ("__class__", "__init_subclass__", "__subclasshook__", "__del__"):
            continue
        try:
            method = getattr(bare, name)
            if callable(method):
                given = reentrant.parameters(method)
                positional, named = reentrant.arguments(world, given, "", None)
                method(*positional, **named)
        except (penstock.MQError, TypeError, ValueError, AttributeError, RuntimeError, LookupError):
            pass


def test_a_signal_handler_that_ends_the_unit_ends_the_wait(qm: QueueManager, queue: Queue) -> None:
    unit = qm.transaction()
    unit.__enter__()
    queue.put(b"x")
    before = signal.signal(signal.SIGALRM, lambda *_: unit.__exit__(None, None, None))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(penstock.UnitNotAvailable):
            queue.get(wait=30)
    finally:
        signal.signal(signal.SIGALRM, before)
    queue.put(b"y")
    assert get_all(queue) == [b"x", b"y"]


def test_a_signal_handler_that_calls_the_unit_of_an_interrupted_mqget_gets_2219(
    qm: QueueManager, queue: Queue
) -> None:
    hconn, _, reason = mqi.MQCONN("QM1")
    assert reason == 0
    hobj, _, reason = mqi.MQOPEN(hconn, mqi.MQOD(ObjectName="Q"), mqi.MQOO_INPUT_SHARED)
    assert reason == 0
    seen: list[Any] = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(mqi.MQCMIT(hconn)))
    gmo = mqi.MQGMO(Options=mqi.MQGMO_WAIT | mqi.MQGMO_SYNCPOINT, WaitInterval=1500)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert mqi.MQGET(hconn, hobj, mqi.MQMD(), gmo)[3] == mqi.MQRC_NO_MSG_AVAILABLE
    finally:
        signal.signal(signal.SIGALRM, before)
        assert mqi.MQDISC(hconn) == (0, 0)
    assert seen in ([(2, mqi.MQRC_CALL_IN_PROGRESS)], [(0, 0)])


def test_objects_that_the_collector_finds_together_are_closed_in_order(home: Path) -> None:
    """A cycle of connection, queues and pending work, whose weak references are gone first."""
    with penstock.connect("QM1", home, create=True) as keeper, keeper.queue("Q") as queue:
        for _ in range(20):
            qm = penstock.connect("QM1", home)
            opened = [qm.open("Q") for _ in range(3)]
            opened[0].put(b"implicit", syncpoint=True)
            cycle: list[Any] = [qm, opened]
            cycle.append(cycle)
            gone = weakref.ref(qm)
            with pytest.warns(ResourceWarning):
                del qm, opened, cycle
                gc.collect()
            assert gone() is None
        assert queue.depth == 0 and queue.status().open_input == 1
        keeper.check()


def test_a_warning_filter_that_closes_the_connection_does_no_harm(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with penstock.connect("QM1", home, create=True) as keeper, keeper.queue("Q"):
        qm = penstock.connect("QM1", home)
        queue = qm.open("Q")
        monkeypatch.setattr(warnings, "showwarning", lambda *_, **__: qm.close())
        warnings.simplefilter("always")
        del queue
        gc.collect()
        assert qm.closed
        keeper.check()


def test_threads_that_open_and_put_while_another_closes_get_2018_or_succeed(home: Path) -> None:
    with penstock.connect("QM1", home, create=True) as keeper, keeper.queue("Q"):
        for _ in range(30):
            qm = penstock.connect("QM1", home)
            wrong: list[BaseException] = []

            def work(qm: QueueManager = qm, wrong: list[BaseException] = wrong) -> None:
                try:
                    while True:
                        with qm.open("Q") as queue:
                            queue.put(b"x", syncpoint=True)
                            with qm.transaction():
                                pass
                except (penstock.ClosedHandle, penstock.UnitInProgress, penstock.BackedOut):
                    pass
                except penstock.UnitNotAvailable:
                    pass
                except BaseException as error:
                    wrong.append(error)

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            with keeper.open("Q") as queue:
                # what is there may be in units of work that nobody ends
                queue.get(wait=0.1, browse="first", default=None) if queue.depth else None
            qm.close()
            for thread in threads:
                thread.join(60)
            assert not wrong and not any(thread.is_alive() for thread in threads)
        assert keeper.status().units == 0
        keeper.check()


# ---- 18: arrays of batches, Arrow arrays ----


def batch_of(*bodies: bytes) -> MessageBatch:
    """A batch with these bodies."""
    rows = np.zeros(len(bodies), DTYPE)
    rows["expiry"] = -1
    ends = np.cumsum([0, *map(len, bodies)]).astype(np.int64)
    return MessageBatch(rows, np.frombuffer(b"".join(bodies), np.uint8), ends)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("descriptors", np.zeros(2, np.int64)),
        ("descriptors", np.zeros((2, 1), DTYPE)),
        ("descriptors", b"x"),
        ("bodies", np.zeros(4, np.int8)),
        ("bodies", np.zeros(8, np.uint8)[::2]),
        ("bodies", None),
        ("offsets", np.zeros(3, np.int32)),
        ("offsets", np.zeros(6, np.int64)[::2]),
        ("offsets", [0, 1, 2]),
    ],
)
def test_a_batch_refuses_an_array_of_a_wrong_kind(name: str, array: Any) -> None:
    batch = batch_of(b"a", b"bb")
    with pytest.raises(penstock.InvalidType, match=name if name != "bodies" else "bodies"):
        setattr(batch, name, array)
    assert [message.data for message in batch] == [b"a", b"bb"]


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("offsets", np.array([0, 1], np.int64)),
        ("offsets", np.array([0, 1, 3, 3], np.int64)),
        ("offsets", np.array([0, 1, 1 << 40], np.int64)),
        ("offsets", np.array([0, 1 << 40, 3], np.int64)),
        ("offsets", np.array([-5, 1, 3], np.int64)),
        ("offsets", np.array([2, 1, 3], np.int64)),
        ("offsets", np.empty(0, np.int64)),
        ("bodies", np.zeros(2, np.uint8)),
        ("descriptors", np.zeros(1, DTYPE)),
        ("descriptors", np.zeros(5, DTYPE)),
    ],
)
def test_arrays_that_do_not_fit_each_other_are_refused_where_they_are_used(
    name: str, array: Any, queue: Queue
) -> None:
    batch = batch_of(b"a", b"bb")
    setattr(batch, name, array)
    for use in (batch.__arrow_c_array__, batch.arrow(["priority"]).__arrow_c_array__):
        with pytest.raises(penstock.InvalidValue) as caught:
            use()
        assert caught.value.reason == 2005
    with pytest.raises(penstock.InvalidValue) as caught:
        queue.put_batch(batch)
    assert caught.value.reason == 2005
    assert queue.depth == 0


def test_offsets_changed_after_an_export_do_not_change_what_was_exported() -> None:
    batch = batch_of(b"a", b"bb")
    table = pyarrow.record_batch(batch)
    batch.offsets[1] = 1 << 40
    table.validate(full=True)
    assert table.column("body").to_pylist() == [b"a", b"bb"]


class Producer:
    """Hands over an Arrow array of binary that was made before."""

    def __init__(self, capsules: Any) -> None:
        self.capsules = capsules

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        """The same capsules each time."""
        return self.capsules


def test_a_released_arrow_array_is_refused(queue: Queue) -> None:
    array = pyarrow.array([b"a", b"bb"], pyarrow.large_binary())
    producer = Producer(array.__arrow_c_array__())
    assert queue.put_batch(producer).count == 2
    for _ in range(2):
        with pytest.raises(penstock.InvalidType, match="released") as caught:
            queue.put_batch(producer)
        assert caught.value.reason == 2004
    taken = Producer(array.__arrow_c_array__())
    assert len(pyarrow.array(taken)) == 2
    with pytest.raises(penstock.InvalidType, match="released"):
        queue.put_batch(taken)
    assert get_all(queue) == [b"a", b"bb"]


def test_an_arrow_producer_that_closes_the_connection_gets_2018(
    qm: QueueManager, queue: Queue
) -> None:

    class Closing:
        def __arrow_c_array__(self, requested_schema: object = None) -> Any:
            capsules = pyarrow.array([b"a"], pyarrow.binary()).__arrow_c_array__()
            qm.close()
            return capsules

    with pytest.raises(penstock.ClosedHandle):
        queue.put_batch(Closing())


# ---- 19 and 20: whose unit of work a call belongs to ----


def test_the_end_of_a_unit_in_another_thread_waits_for_the_calls_inside(home: Path) -> None:
    penstock.create("QM1", home, **{**SMALL, "journal_limit": 256 << 20})
    for _ in range(10):
        with penstock.connect("QM1", home) as qm, qm.queue("Q") as queue:
            assert put_while_ended(qm, queue) == 2255
            assert queue.depth == 0
            qm.close()  # does not raise: no unit is left in flight


def put_while_ended(qm: QueueManager, queue: Queue) -> int:
    """A thread puts in a unit of work, which this thread ends; why the last put of it failed."""
    body = bytes(4 << 20)  # long enough to be inside the core
    units: list[penstock.Unit] = []
    begun = threading.Event()
    reasons: list[int] = []

    def work() -> None:
        units.append(qm.transaction())
        units[0].__enter__()
        begun.set()
        try:
            while True:
                queue.put(body, persistent=False)
                units[0].backout()  # so that memory never runs out
        except penstock.MQError as error:
            reasons.append(error.reason)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(60)
    with pytest.raises(penstock.UnitNotAvailable):
        units[0].__exit__(None, None, None)
    thread.join(60)
    assert not thread.is_alive()
    return reasons[0]


def test_calls_in_a_block_whose_unit_another_thread_has_ended_are_not_outside(
    qm: QueueManager, queue: Queue
) -> None:
    with pytest.raises(penstock.BackedOut), qm.transaction() as unit:
        queue.put(b"lost")
        assert isinstance(
            in_thread(lambda: unit.__exit__(None, None, None)), penstock.UnitNotAvailable
        )
        for call in (lambda: queue.put(b"outside"), queue.get, qm.commit, qm.backout):
            with pytest.raises(penstock.UnitNotAvailable):
                call()
    assert queue.depth == 0
    queue.put(b"after")
    assert get_all(queue) == [b"after"]


def calls(qm: QueueManager, queue: Queue) -> list[Callable[[], object]]:
    """Every call that may belong to a unit of work."""
    return [
        lambda: queue.put(b"x"),
        lambda: queue.put(b"x", syncpoint=True),
        lambda: queue.put_batch([b"x"]),
        lambda: queue.put_batch([b"x"], priority=3),
        lambda: queue.get(),
        lambda: queue.get(wait=0, syncpoint=True),
        lambda: queue.get(syncpoint_if_persistent=True),
        lambda: queue.get_batch(2),
        lambda: queue.get_batch(2, max_bytes=10),
        lambda: queue.take_batch_uncopied(2),
        lambda: qm.commit(),
        lambda: qm.backout(),
        lambda: qm.prepare(penstock.Xid(1, b"x")),
    ]


def refused(call: Callable[[], object]) -> None:
    """2255, with what to do."""
    with pytest.raises(penstock.UnitNotAvailable, match="syncpoint=False"):
        call()


def test_asyncio_to_thread_inside_a_transaction_raises(qm: QueueManager, queue: Queue) -> None:
    async def main() -> None:
        with qm.transaction():
            queue.put(b"parent")
            for call in calls(qm, queue):
                await asyncio.to_thread(refused, call)
            await asyncio.to_thread(queue.put, b"outside", syncpoint=False)

    asyncio.run(main())
    assert get_all(queue) == [b"parent", b"outside"] or sorted(get_all(queue)) == []


@pytest.mark.parametrize("way", ["gather", "create_task", "wait_for", "shield", "TaskGroup"])
def test_a_child_task_inside_a_transaction_raises(way: str, qm: QueueManager, queue: Queue) -> None:
    async def put() -> None:
        queue.put(b"child")

    async def child() -> None:
        if way == "gather":
            await asyncio.gather(put())
        elif way == "create_task":
            await asyncio.create_task(put())
        elif way == "wait_for":
            await asyncio.wait_for(asyncio.ensure_future(put()), 60)
        elif way == "shield":
            await asyncio.shield(put())
        elif sys.version_info >= (3, 11):
            async with asyncio.TaskGroup() as group:
                group.create_task(put())
        else:
            await asyncio.gather(put())

    async def main() -> None:
        with pytest.raises((penstock.UnitNotAvailable, Exception)) as caught, qm.transaction():
            queue.put(b"parent")
            await child()
        found = caught.value
        if hasattr(found, "exceptions"):
            (found,) = found.exceptions
        assert isinstance(found, penstock.UnitNotAvailable), found

    asyncio.run(main())
    assert queue.depth == 0


def test_an_executor_that_copies_the_context_raises(qm: QueueManager, queue: Queue) -> None:
    with ThreadPoolExecutor(1) as pool, qm.transaction():
        for call in calls(qm, queue):
            pool.submit(contextvars.copy_context().run, refused, call).result(60)
        pool.submit(queue.put, b"no context").result(60)
    assert get_all(queue) == [b"no context"]


def test_a_task_run_within_a_threads_transaction_raises(qm: QueueManager, queue: Queue) -> None:
    async def main() -> None:
        for call in calls(qm, queue):
            refused(call)

    with qm.transaction():
        queue.put(b"thread")
        asyncio.run(main())
    assert get_all(queue) == [b"thread"]


def test_a_child_may_enter_a_transaction_of_its_own(qm: QueueManager, queue: Queue) -> None:
    async def child(body: bytes, fail: bool) -> None:
        with qm.transaction():
            queue.put(body)
            if fail:
                raise KeyError

    async def main() -> None:
        with qm.transaction():
            queue.put(b"parent")
            await asyncio.gather(child(b"1", False), child(b"2", True), return_exceptions=True)
            await asyncio.to_thread(lambda: asyncio.run(child(b"3", False)))
            raise KeyError

    with pytest.raises(KeyError):
        asyncio.run(main())
    assert get_all(queue) == [b"1", b"3"]


def test_a_context_that_outlives_the_transaction_is_outside(qm: QueueManager, queue: Queue) -> None:
    with qm.transaction():
        context = contextvars.copy_context()
    assert in_thread(lambda: context.run(queue.put, b"later")) is not None
    assert get_all(queue) == [b"later"]


# ---- 21: what a handle, a value and an error say ----


def test_a_closed_queue_refuses_everything_but_its_name(queue: Queue) -> None:
    queue.put(b"x")
    queue.close()
    for call in (
        lambda: queue.depth,
        queue.status,
        queue.browse,
        lambda: queue.browse_batch(1),
        lambda: queue.split_points(2),
        lambda: queue.newest_number,
        lambda: queue.get_batch(1),
        lambda: queue.get_batch(100000),
        lambda: queue.put_batch([b"x"]),
        lambda: queue.take_batch_uncopied(1),
    ):
        with pytest.raises(penstock.ClosedHandle) as caught:
            call()
        assert caught.value.reason == 2019
    assert queue.name == "Q" and "closed" in repr(queue)


def test_messages_and_results_pickle_and_copy(queue: Queue) -> None:
    result = queue.put(
        b"body", priority=7, persistent=True, correl_id=b"c", group_id=b"g", expiry=100,
        reply_to_q="R", format="MQSTR", msg_type=1, user_identifier="me",
    )  # fmt: skip
    queue.put(b"plain body")
    first, second = queue.get(), queue.get(max_length=5, truncate=True)
    names = [n for n in dir(first) if not n.startswith("_") and not callable(getattr(first, n))]
    assert len(names) > 25
    for message in (first, second):
        for other in (
            pickle.loads(pickle.dumps(message)), copy.copy(message), copy.deepcopy(message)
        ):  # fmt: skip
            for name in names:
                assert getattr(other, name) == getattr(message, name), name
            assert bytes(other) == bytes(message) and len(other) == len(message)
    same = pickle.loads(pickle.dumps(result))
    assert (same.msg_id, same.reason, same.comp_code) == (first.msg_id, 0, 0)
    queue.put(**pickle.loads(pickle.dumps(first)).reply(b"r", msg_type=8))


@pytest.mark.parametrize(
    "value", [0, 0.0, -1, 1e9, 99999999.95, float("inf"), pytest.param(10**400, id="huge")]
)
def test_the_error_of_a_wrong_expiry_does_not_contradict_itself(queue: Queue, value: Any) -> None:
    for call in (
        lambda: queue.put(b"x", expiry=value),
        lambda: queue.put_batch([b"x"], expiry=value),
    ):
        with pytest.raises(penstock.InvalidValue) as caught:
            call()
        assert caught.value.reason == 2013
        assert "between 0" not in str(caught.value) and "above 0" in str(caught.value)


def test_dir_shows_the_interface(qm: QueueManager, queue: Queue) -> None:
    for it, wanted, hidden in (
        (qm, {"open", "queue", "transaction", "commit", "name", "closed", "status", "define"},
         {"define_object", "look_up", "values", "manager_status", "read_stamped", "detach"}),
        (queue, {"put", "get", "browse", "depth", "name", "closed", "connection", "put_batch"},
         {"shut", "slot", "route", "options", "counts", "put_again", "inquired"}),
        (penstock, {"connect", "Queue", "MQError"}, {"_engine", "admin", "client", "annotations"}),
    ):  # fmt: skip
        shown = set(dir(it))
        assert wanted <= shown, wanted - shown
        assert not hidden & shown, hidden & shown
        assert not [name for name in shown if name.startswith("_") and not name.endswith("__")]


SIZES = [
    ("65536", 65536), ("64k", 1 << 16), ("64K", 1 << 16), ("64 KiB", 1 << 16), ("3m", 3 << 20),
    ("1G", 1 << 30), ("1gb", 1 << 30), (" 2 GiB ", 2 << 30), ("1T", 1 << 40), ("100b", 100),
]  # fmt: skip


@pytest.mark.parametrize(("text", "size"), SIZES)
def test_a_size_may_be_text(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "G", "1X", "-1", "1.5G", "1e9", "0x10", "1 2", "ib", "\u0661"]
)
def test_a_text_that_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no size in bytes"):
        parse_size(text)


def test_sizes_are_understood_wherever_a_queue_manager_is_made(home: Path) -> None:
    penstock.create("A", home, segment_size="1M", journal_limit="1G", max_message_length="2 MiB")
    penstock.connect("B", home, create=True, segment_size="1M", journal_limit="1G").close()
    run = [sys.executable, "-m", "penstock.cli", "create", "C", "--home", str(home)]
    options = ["--segment-size", "1M", "--journal-limit", "1G", "--log-files", "5"]
    subprocess.run([*run, *options], check=True, timeout=120, capture_output=True)
    for name in ("A", "B", "C"):
        settings = read_settings(home / name)
        assert (settings.segment_size, settings.journal_limit) == (1 << 20, 1 << 30)
    assert read_settings(home / "A").max_message_length == 2 << 20
    assert read_settings(home / "C").log_files == 5
    file = home / "A" / "qm.toml"
    file.write_text(file.read_text().replace("limit = 1073741824", 'limit = "512M"'))
    assert read_settings(home / "A").journal_limit == 512 << 20
    penstock.connect("A", home).close()


def test_an_unknown_setting_is_named_with_the_nearest(home: Path) -> None:
    for call in (
        lambda: penstock.create("A", home, jurnal_limit=1),
        lambda: penstock.connect("A", home, create=True, jurnal_limit=1),
    ):
        with pytest.raises(penstock.InvalidType, match=r"jurnal_limit.*do you mean journal_limit"):
            call()
    with pytest.raises(penstock.InvalidValue, match=r"journal\.limit is 1\.5, not int"):
        penstock.create("A", home, journal_limit=1.5)
    with pytest.raises(penstock.InvalidValue, match="no size in bytes"):
        penstock.create("A", home, journal_limit="much")
    with pytest.raises(penstock.InvalidType, match="settings are for create=True"):
        penstock.connect("A", home, journal_limit="1G")
    assert penstock.managers(home) == []


def test_settings_that_an_existing_queue_manager_ignores_are_named(home: Path) -> None:
    penstock.create("A", home, **SMALL)
    text = "queue manager A exists.*journal_limit='1G'.*it has 16777216"
    with pytest.warns(UserWarning, match=text) as told:
        penstock.connect("A", home, create=True, journal_limit="1G", segment_size="1M").close()
    assert len(told) == 1 and "segment_size" not in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        penstock.connect("A", home, create=True, **SMALL).close()


def test_attributes_that_an_existing_queue_ignores_are_named(qm: QueueManager) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        qm.queue("Q", maxdepth=10, defpsist=False).close()
        qm.queue("Q", maxdepth=10, DEFPSIST="NO").close()
        qm.queue("Q").close()
    with pytest.warns(UserWarning, match="queue Q exists.*maxdepth=5 .it has 10.*alter") as told:
        qm.queue("Q", maxdepth=5, defpsist=False).close()
    assert len(told) == 1 and "defpsist" not in str(told[0].message)
    assert told[0].filename == __file__
    with pytest.raises(penstock.AttributeNameError, match="maxdepht"):
        qm.queue("Q", maxdepht=5)
    qm.define("QALIAS", "ALIAS", target="Q")
    with pytest.warns(UserWarning, match="maxdepth=5 .it is no local queue"):
        qm.queue("ALIAS", maxdepth=5).close()
    assert qm.display("QLOCAL", "Q")[0]["maxdepth"] == 10

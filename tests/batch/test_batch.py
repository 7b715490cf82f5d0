"""Batches do what the same single calls do; their arrays are rows of the core, and Arrow arrays."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock
from penstock import _engine
from penstock.batch import DTYPE, MessageBatch

Run = Callable[..., Any]


def bodies(batch: MessageBatch) -> list[bytes]:
    return [message.data for message in batch]


# ---- the row ----


def test_every_field_of_the_dtype_lies_where_the_core_has_it_and_none_is_left_out() -> None:
    size, fields = _engine.batch_layout()
    assert DTYPE.itemsize == size
    assert DTYPE.fields is not None
    seen = {name: (field[1], field[0].itemsize) for name, field in DTYPE.fields.items()}
    assert seen == fields


def test_importing_penstock_loads_neither_numpy_nor_pyarrow(run_python: Run) -> None:
    done = run_python(
        "import sys, penstock\n"
        "print([m for m in ('numpy', 'pyarrow', 'penstock.batch') if m in sys.modules])"
    )
    assert done.stdout == "[]\n", done.stderr


# ---- a batch is the same single calls ----

MESSAGE = st.fixed_dictionaries(
    {
        "body": st.binary(max_size=40) | st.integers(4000, 9000),  # bytes() of it
        "priority": st.none() | st.integers(-1, 14) | st.just(2**31 - 1),
        "persistent": st.none() | st.booleans() | st.integers(0, 2),
        "msg_id": st.none() | st.binary(min_size=1, max_size=24),
        "correl_id": st.none() | st.binary(max_size=24),
        "expiry": st.none() | st.floats(1000, 2000),
    }
)
EXTRA = st.fixed_dictionaries(
    {},
    optional={
        "reply_to_q": st.sampled_from(["", "REPLY", "R" * 48]),
        "group_id": st.binary(max_size=24),
        "format": st.sampled_from(["", "MQSTR", "MQHRF2"]),
        "msg_seq_number": st.integers(1, 99),
        "ccsid": st.integers(0, 2000),
        "feedback": st.integers(0, 9),
        "appl_identity_data": st.text("abc", max_size=32),
        "user_identifier": st.text("abc", max_size=12),
        "msg_flags": st.integers(0, 31),
        "encoding": st.integers(0, 2**31 - 1),
        "put_time_us": st.integers(10**15, 10**15 + 10**9),
    },
)
QUEUE = st.fixed_dictionaries(
    {
        "DEFPRTY": st.integers(0, 9),
        "DEFPSIST": st.sampled_from(["YES", "NO"]),
        "MSGDLVSQ": st.sampled_from(["PRIORITY", "FIFO"]),
        "MAXDEPTH": st.sampled_from([5, 999999]),
        "MAXMSGL": st.sampled_from([8000, 100000]),
    }
)


def as_told(message: penstock.Message) -> tuple[Any, ...]:
    """Everything that does not differ from call to call."""
    return (
        message.data, message.priority, message.placement, message.persistent,
        message.msg_id.startswith(b"AMQ QM1 ") or message.msg_id, message.correl_id,
        message.group_id, message.expiry is None, message.format, message.reply_to_q,
        message.reply_to_qmgr,
        message.msg_seq_number, message.ccsid, message.encoding, message.feedback,
        message.appl_identity_data, message.user_identifier, message.msg_flags, message.msg_type,
        message.original_length, message.put_appl_name, message.backout_count, message.length,
    )  # fmt: skip


def put_single(
    qm: penstock.QueueManager, queue: penstock.Queue, rows: list[dict[str, Any]],
    extra: dict[str, Any],
) -> int:  # fmt: skip
    """Puts them one by one in a unit that the first one refused backs out; its reason."""
    try:
        with qm.transaction():
            for row in rows:
                columns = {name: value for name, value in row.items() if name != "body"}
                queue.put(bytes(row["body"]), **columns, **extra)
    except penstock.MQError as error:
        return error.reason
    return 0


def put_many(queue: penstock.Queue, rows: list[dict[str, Any]], extra: dict[str, Any]) -> int:
    columns = {name: [row[name] for row in rows] for name in rows[0] if name != "body"}
    try:
        queue.put_batch([bytes(row["body"]) for row in rows], **columns, **extra)
    except penstock.MQError as error:
        return error.reason
    return 0


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.lists(MESSAGE, min_size=1, max_size=12), extra=EXTRA, attributes=QUEUE)
def test_a_batch_is_the_same_single_calls(
    qm: penstock.QueueManager, rows: list[dict[str, Any]], extra: dict[str, Any],
    attributes: dict[str, Any],
) -> None:  # fmt: skip
    for name in ("ONE", "MANY"):
        qm.define("QLOCAL", name, replace=True, **attributes)
    with qm.open("ONE") as one, qm.open("MANY") as many:
        reason = put_single(qm, one, rows, extra)
        refused = put_many(many, rows, extra)
        if {reason, refused} != {2030, 2053}:  # two errors: lengths are checked first
            assert refused == reason
        assert many.depth == one.depth == (0 if reason else len(rows))
        single = [as_told(m) for m in one.browse()]
        assert [as_told(m) for m in many.browse()] == single
        got = many.get_batch(len(rows) + 1)
        assert [as_told(m) for m in got] == single
        assert len(one.get_batch(100)) == len(single)


# ---- sources ----


def test_every_source_gives_the_same_bodies(queue: penstock.Queue) -> None:
    texts = [b"", b"a", b"bc" * 3000, b"d"]
    joined, offsets = b"".join(texts), [0, *np.cumsum([len(t) for t in texts])]
    binary = pa.array([b"cut off", *texts], pa.binary())[1:]
    for source in (
        texts,
        [bytearray(t) if t else memoryview(t) for t in texts],
        (joined, np.array(offsets)),
        (np.frombuffer(b"xx" + joined, np.uint8), np.array(offsets, np.uint32) + 2),
        (joined, [int(o) for o in offsets]),
        binary,
        pa.array(texts, pa.large_binary()),
    ):
        assert queue.put_batch(source).count == 4
        got = queue.get_batch(10)
        assert bodies(got) == texts
        assert queue.put_batch(got).count == 4
        assert bodies(queue.get_batch(10)) == texts
    for nothing in ([], (b"", [0]), pa.array([], pa.binary()), got[:0]):
        assert queue.put_batch(nothing).count == 0
    assert queue.depth == 0


@pytest.mark.parametrize(
    ("source", "columns", "reason", "text"),
    [
        ([b"a", "b"], {}, 2004, "body 1 must be bytes-like, not str: 'b'; encode it"),
        ([b"a", None], {}, 2004, "body 1 must be bytes-like, not NoneType"),
        ("text", {}, 2004, "a batch is a MessageBatch"),
        (b"bytes", {}, 2004, "a batch is a MessageBatch"),
        ((b"abc", np.array([0, 2, 1])), {}, 2005, "offset 1 (at 2) is out of order"),
        ((b"abc", np.array([0, 4])), {}, 2005, "offset 4 (at -1)"),
        ((b"abc", np.array([-1, 2])), {}, 2005, "offset -1 (at 0)"),
        ((b"abc", np.array([0.0, 3.0])), {}, 2004, "offsets must be"),
        (pa.array([b"a", None]), {}, 2004, "body 1 of the Arrow array is null"),
        (pa.array(["a"]), {}, 2004, "not of type 'u'"),
        ([b"a", b"b"], {"priority": [1]}, 2005, "priority has 1 values for 2 messages"),
        ([b"a", b"b"], {"priority": [1, -2]}, 2050, "priority -2 (message 1) is negative"),
        ([b"a", b"b"], {"priority": [1, 2**31]}, 2050, "priority 2147483648 (message 1)"),
        ([b"a", b"b"], {"priority": [1, 1.5]}, 2050, "priority of message 1 must be an integer"),
        ([b"a"], {"priority": "high"}, 2050, "priority must be an integer, not 'high'"),
        ([b"a", b"b"], {"persistent": [1, 3]}, 2047, "persistent 3 (message 1)"),
        ([b"a", b"b"], {"expiry": [None, 0]}, 2013, "expiry 0.0 (message 1)"),
        ([b"a", b"b"], {"expiry": [1, "x"]}, 2013, "expiry of message 1 must be seconds"),
        ([b"a", b"b"], {"msg_id": [b"", bytes(25)]}, 2206, "msg_id of message 1 has 25 bytes"),
        ([b"a", b"b"], {"correl_id": [b"", "x"]}, 2207, "correl_id of message 1 must be bytes"),
        ([b"a"], {"format": "MUCHTOOLONG"}, 2026, "format has 11 bytes, at most 8 fit"),
        ([b"a"], {"msg_type": 1}, 2027, "needs reply_to_q"),
        ([b"a"], {"report": 0x01000000}, 2027, "needs reply_to_q"),
        ([b"a"], {"msg_flags": 32}, 2249, "has unknown bits"),
        ([b"a", b"x" * 101], {}, 2030, "message 1 of the batch"),
        ([b"a"] * 6, {}, 2053, "MAXDEPTH is 5"),
    ],
)
def test_a_wrong_value_is_named_before_anything_is_put(
    qm: penstock.QueueManager, source: Any, columns: dict[str, Any], reason: int, text: str
) -> None:
    qm.define("QLOCAL", "SMALL", MAXMSGL=100, MAXDEPTH=5)
    with qm.open("SMALL") as queue:
        with pytest.raises(penstock.MQError) as caught:
            queue.put_batch(source, **columns)
        assert (caught.value.reason, caught.value.count) == (reason, 0)
        assert text in caught.value.text
        assert queue.depth == 0


def test_a_result_has_numbers_ids_and_warnings(queue: penstock.Queue) -> None:
    result = queue.put_batch([b"a", b"b", b"c"], priority=[0, 10, None], msg_id=[None, b"me", None])
    assert (result.count, result.warnings, len(result)) == (3, 1, 3)
    assert list(result.reasons) == [0, 2049, 0]
    assert (np.diff(result.numbers.astype(np.int64)) > 0).all()
    got = {m.data: m for m in queue.get_batch(3)}
    assert [got[d].msg_id for d in (b"a", b"b", b"c")] == result.msg_ids
    assert result.msg_ids[1] == b"me".ljust(24, b"\0")
    assert [got[d].number for d in (b"a", b"b", b"c")] == list(result.numbers)


# ---- gets ----


def test_order_limits_and_filters_of_a_get(queue: penstock.Queue) -> None:
    first = queue.put_batch([b"%03d" % i for i in range(200)], priority=[i % 3 for i in range(200)])
    queue.put_batch([b"kept"] * 3, persistent=True, priority=9)
    assert bodies(queue.get_batch(5, persistent_only=True)) == [b"kept"] * 3
    limit = int(first.numbers[99])
    some = queue.get_batch(1000, up_to=limit)
    expected = sorted(range(100), key=lambda i: (-(i % 3), i))
    assert bodies(some) == [b"%03d" % i for i in expected]
    assert len(queue.get_batch(1000, max_bytes=10)) == 3
    assert len(queue.get_batch(1000, max_bytes=1)) == 1
    assert len(queue.get_batch(7)) == 7
    assert len(queue.get_batch(1000)) == 89
    assert len(queue.get_batch(1000)) == 0
    for wrong in (0, -1, 2**63, True, 1.5, None):
        with pytest.raises(penstock.MQError):
            queue.get_batch(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("persistent", [False, True])
def test_bodies_larger_than_the_room_are_got_whole(
    qm: penstock.QueueManager, persistent: bool
) -> None:
    qm.define("QLOCAL", "BIG", MAXMSGL=1 << 20)
    sizes = [10, 300_000, 5000, 1 << 20, 0, 70_000]
    texts = [os.urandom(size) for size in sizes]
    with qm.open("BIG") as queue:
        queue.put_batch(texts, persistent=persistent)
        assert bodies(queue.get_batch(6)) == texts
        queue.put_batch(texts, persistent=persistent)
        got: list[bytes] = []
        for _ in texts:
            got += bodies(queue.get_batch(1, max_bytes=1))
        assert got == texts
        assert queue.depth == 0


def test_a_batch_in_a_unit_of_work_counts_commits_and_backs_out(qm: penstock.QueueManager) -> None:
    qm.define("QLOCAL", "Q")
    with qm.open("Q") as queue:
        with qm.transaction() as unit:
            queue.put_batch([b"a", b"b"], persistent=[True, False])
            assert unit.count == 2
            queue.put_batch([b"outside"], syncpoint=False)
            assert len(queue.get_batch(9)) == 1
            unit.backout()
            assert queue.depth == 1
            queue.put_batch([b"c"] * 3)
        with qm.transaction() as unit:
            assert bodies(queue.get_batch(9)) == [b"outside", b"c", b"c", b"c"]
            unit.backout()
        again = queue.get_batch(9)
        assert [m.backout_count for m in again] == [2, 1, 1, 1]


def test_a_unit_takes_messages_without_their_bodies_and_they_are_read_once_it_is_prepared(
    qm: penstock.QueueManager,
) -> None:
    qm.define("QLOCAL", "Q", MAXMSGL=1 << 20)
    texts = [b"%05d" % i + bytes(40_000 * (i % 40 == 0)) for i in range(300)]
    with qm.open("Q") as queue:
        queue.put_batch(texts, persistent=[i % 3 > 0 for i in range(300)], group_id=b"G")
        taken = queue.get_batch(100, syncpoint=True, bodies=False)
        assert taken.descriptors["length"].tolist() == [len(text) for text in texts[:100]]
        assert set(taken.descriptors["group_id"].tolist()) == {b"G"}
        assert [taken[0].length, taken[0].data, len(taken.bodies)] == [40_005, b"", 0]
        bounded = queue.get_batch(100, syncpoint=True, bodies=False, max_bytes=60)
        assert len(bounded) == 12
        assert queue.take_batch_uncopied(100) == (100, sum(map(len, texts[112:212])))
        assert queue.take_batch_uncopied(100, max_bytes=15, persistent_only=True) == (3, 15)
        assert queue.take_batch_uncopied(500, up_to=int(taken.descriptors["number"][0])) == (0, 0)
        qm.prepare(penstock.Xid(7, b"unit"))
        there = bodies(qm.browse_prepared(penstock.Xid(7, b"unit")))
        assert there[:212] == texts[:212]
        assert len(there) == 215
        qm.backout_prepared(penstock.Xid(7, b"unit"))
        assert bodies(queue.get_batch(300)) == texts


def test_a_get_without_bodies_outside_a_unit_is_refused_and_takes_nothing(
    queue: penstock.Queue,
) -> None:
    queue.put_batch([b"a", b"b"], persistent=[True, False])
    for syncpoint in (None, False):
        with pytest.raises(penstock.InvalidValue, match="needs room for") as refused:
            queue.get_batch(9, syncpoint=syncpoint, bodies=False)
        assert refused.value.reason == 2046
    for wrong in (0, -1, 2**63, True, None):
        with pytest.raises(penstock.MQError):
            queue.take_batch_uncopied(wrong)  # type: ignore[arg-type]
    assert bodies(queue.get_batch(9)) == [b"a", b"b"]


def test_a_batch_waits_for_its_first_message(queue: penstock.Queue) -> None:
    assert len(queue.get_batch(5, 0.01)) == 0
    got: list[MessageBatch] = []
    thread = threading.Thread(target=lambda: got.append(queue.get_batch(5, None)))
    thread.start()
    while queue.status().waiters == 0:
        time.sleep(0.001)
    queue.put_batch([b"one", b"two"], persistent=True)
    thread.join()
    assert bodies(got[0]) == [b"one", b"two"]


def test_a_signal_handler_that_raises_ends_a_wait_that_has_taken_nothing(
    queue: penstock.Queue,
) -> None:
    def interrupt(*_: object) -> None:
        raise InterruptedError("by the test")

    before = signal.signal(signal.SIGUSR1, interrupt)
    main = threading.main_thread().ident
    assert main is not None

    def knock() -> None:
        while queue.status().waiters == 0:
            time.sleep(0.001)
        signal.pthread_kill(main, signal.SIGUSR1)

    thread = threading.Thread(target=knock)
    thread.start()
    try:
        with pytest.raises(InterruptedError):
            queue.get_batch(5, None)
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    queue.put_batch([b"still"])
    assert bodies(queue.get_batch(5)) == [b"still"]


def test_closed_and_wrong_handles_refuse(qm: penstock.QueueManager) -> None:
    qm.define("QLOCAL", "Q")
    with qm.open("Q", output=False) as reader, pytest.raises(penstock.NotOpenFor):
        reader.put_batch([b"a"])
    with qm.open("Q", input=False) as writer, pytest.raises(penstock.NotOpenFor):
        writer.get_batch(1)
    for call in (lambda: reader.get_batch(1), lambda: writer.put_batch([b"a"])):
        with pytest.raises(penstock.ClosedHandle):
            call()


# ---- the arrays ----


def test_slices_share_memory_and_messages_are_copies(queue: penstock.Queue) -> None:
    queue.put_batch([b"%d" % i for i in range(10)], correl_id=[b"%d" % i for i in range(10)])
    batch = queue.get_batch(10)
    part = batch[3:7]
    assert np.shares_memory(part.bodies, batch.bodies)
    assert np.shares_memory(part.descriptors, batch.descriptors)
    assert bodies(part) == [b"3", b"4", b"5", b"6"]
    assert part[0].correl_id == b"3".ljust(24, b"\0")
    assert (batch[-1].data, part[-1].data, len(batch[8:2])) == (b"9", b"6", 0)
    assert bodies(part[1:3]) == [b"4", b"5"]
    assert (batch.descriptors["correl_id"] == b"4").sum() == 1
    with pytest.raises(IndexError):
        batch[10]
    with pytest.raises(ValueError, match="steps of 1"):
        batch[::2]
    with pytest.raises(penstock.InvalidValue):
        MessageBatch(batch.descriptors, batch.bodies, batch.offsets[1:])
    with pytest.raises(penstock.InvalidType):
        MessageBatch(batch.descriptors, batch.offsets, batch.offsets)  # type: ignore[arg-type]


def test_arrow_has_every_field_and_the_bodies_without_a_copy(queue: penstock.Queue) -> None:
    queue.put_batch(
        [b"one", b"", b"three"], persistent=[True, False, True], priority=[12, 3, 1],
        correl_id=b"c", expiry=[None, 60, None], reply_to_q="REPLY", group_id=b"g",
        user_identifier=["\u00e4", "b", ""],
    )  # fmt: skip
    whole = queue.get_batch(3)
    for batch, first in ((whole, 0), (whole[1:], 1)):
        record = pa.record_batch(batch)
        record.validate(full=True)
        assert record.schema.field("body").type == pa.large_binary()
        body = record.column("body")
        assert body.buffers()[2].address == whole.bodies.ctypes.data
        rows = record.to_pylist()
        for row, message in zip(rows, list(whole)[first:], strict=True):
            assert row.pop("body") == message.data
            assert row.pop("put_time") == message.put_time
            expiry = row.pop("expiry")
            assert (expiry is None) == (message.expiry is None)
            assert row.pop("lsn") != 0 or not message.persistent
            assert row == {name: getattr(message, name) for name in row}
    some = pa.record_batch(whole.arrow(["priority", "number"]))
    assert some.schema.names == ["priority", "number", "body"]
    with pytest.raises(penstock.InvalidValue, match="no column 'colour'"):
        whole.arrow(["colour"])


def test_arrays_of_the_width_of_a_field_are_taken_with_nuls_behind_as_padding(
    queue: penstock.Queue,
) -> None:
    formats, ids = [b"MQSTR", b"", b"A", b"ABCDEFGH"], [b"i" * 24, b"", b"\0x", b"y"]
    queue.put_batch(
        [b"1"] * 4, format=np.array(formats, "S8"), correl_id=np.array(ids, "S24")
    )  # fmt: skip
    batch = queue.get_batch(4)
    assert batch.descriptors["format"].tolist() == [one.ljust(8) for one in formats]
    assert [m.correl_id for m in batch] == [one.ljust(24, b"\0") for one in ids]
    with pytest.raises(penstock.InvalidValue):
        queue.put_batch([b"1"], format=np.array(formats, "S8"))


def test_arrow_columns_are_right_for_values_that_repeat_from_row_to_row(
    queue: penstock.Queue,
) -> None:
    names = ["", "\u00e4", "\u00e4", "b", "b", "bc", "bc", "", "", "\u00e4\u00f6"] * 41
    bits = [bool(n % 3) for n in range(len(names))]
    lives = [60 if bit else None for bit in bits]
    queue.put_batch(
        [b"x"] * len(names), user_identifier=names, persistent=bits, expiry=lives, priority=4
    )
    batch = queue.get_batch(len(names))
    for begin in (0, 1, 63, 64, 65, 200):
        part = batch[begin:]
        record = pa.record_batch(part)
        record.validate(full=True)
        messages = list(part)
        for name in ("user_identifier", "format", "persistent", "number", "msg_id"):
            assert record.column(name).to_pylist() == [getattr(m, name) for m in messages]
        expiry = record.column("expiry")
        assert expiry.is_valid().to_pylist() == bits[begin:]
        assert expiry.null_count == bits[begin:].count(False)


def test_arrow_data_outlives_its_batch_its_parent_and_its_thread(queue: penstock.Queue) -> None:
    queue.put_batch([b"%d" % i for i in range(100)])
    column = pa.record_batch(queue.get_batch(100)).column("body")
    gc.collect()
    holder = [column]
    del column
    thread = threading.Thread(target=holder.clear)
    assert holder[0].to_pylist()[42] == b"42"
    thread.start()
    thread.join()
    assert pa.record_batch(queue.get_batch(1)).num_rows == 0


def test_capsules_leak_nothing_whether_they_are_used_or_not(queue: penstock.Queue) -> None:
    queue.put_batch([bytes(1000)] * 100)
    batch = queue.get_batch(100)
    offsets = batch.offsets
    before = sys.getrefcount(offsets)

    def use() -> None:
        batch.__arrow_c_array__()
        batch.__arrow_c_schema__()
        pa.record_batch(batch).column("format")
        queue.put_batch(pa.record_batch(batch).column("body"))
        queue.get_batch(100)

    use()
    gc.collect()
    tracemalloc.start()
    try:
        use()
        start = tracemalloc.get_traced_memory()[0]
        for _ in range(50):
            use()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - start
    finally:
        tracemalloc.stop()
    assert sys.getrefcount(offsets) == before
    assert grown < 50_000, grown  # one array leaked is 100 kB


# ---- threads, processes, other queue managers ----


def test_threads_and_batches_lose_and_double_nothing(qm: penstock.QueueManager) -> None:
    qm.define("QLOCAL", "Q", MAXDEPTH=1000000)
    puts, rounds, size = 3, 20, 97
    got: list[bytes] = []
    lock = threading.Lock()
    total = puts * rounds * size

    def putter(which: int) -> None:
        with qm.open("Q", input=False) as queue:
            for turn in range(rounds):
                queue.put_batch(
                    [b"%d %d %d" % (which, turn, i) for i in range(size)],
                    persistent=[i % 5 == 0 and turn % 4 == 0 for i in range(size)],
                )

    def getter() -> None:
        with qm.open("Q", output=False) as queue:
            while len(got) < total:
                some = bodies(queue.get_batch(50, 0.05))
                with lock:
                    got.extend(some)

    threads = [threading.Thread(target=putter, args=(i,)) for i in range(puts)]
    threads += [threading.Thread(target=getter) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == len(set(got)) == total


def test_a_batch_of_another_process_comes_with_everything(
    qm: penstock.QueueManager, run_python: Run
) -> None:
    qm.define("QLOCAL", "Q")
    done = run_python(
        "import sys, penstock\n"
        "with penstock.connect('QM1', sys.argv[1]) as qm, qm.open('Q') as q:\n"
        "    q.put_batch([b'%d' % i for i in range(500)], persistent=[i % 2 for i in range(500)])\n"
    )
    assert done.returncode == 0, done.stderr
    with qm.open("Q") as queue:
        assert bodies(queue.get_batch(1000)) == [b"%d" % i for i in range(500)]


def test_batches_through_an_alias_and_to_another_queue_manager_are_as_single_puts(
    qm: penstock.QueueManager,
) -> None:
    qm.define("QLOCAL", "TARGET", DEFPRTY=2)
    qm.define("QALIAS", "ALIAS", TARGET="TARGET", DEFPRTY=7)
    qm.define("QLOCAL", "XMIT", USAGE="XMITQ")
    qm.define("QREMOTE", "FAR", RNAME="THERE", RQMNAME="QM2", XMITQ="XMIT", DEFPRTY=4)
    with qm.open("ALIAS") as alias:
        alias.put_batch([b"a"])
        assert alias.get_batch(1)[0].priority == 7
    with qm.open("FAR") as far, qm.open("XMIT") as xmit:
        result = far.put_batch([b"a", b"b"], msg_id=b"m", persistent=True, reply_to_q="R")
        assert result.count == 2
        for body in (b"a", b"b"):
            far.put(body, msg_id=b"m", persistent=True, reply_to_q="R")
        sent = xmit.get_batch(9)
        assert len(sent) == 4
        for many, one in zip(sent[:2], sent[2:], strict=True):
            assert many.data[:350] == one.data[:350]
            assert (many.data[-1:], many.format, many.priority) == (one.data[-1:], "MQXMIT", 4)
        qm.alter("QREMOTE", "FAR", RNAME="ELSEWHERE", force=True)
        with pytest.raises(penstock.MQError) as caught:
            far.put_batch([b"a", b"b"])
        assert (caught.value.reason, caught.value.count) == (2041, 0)
        assert xmit.get_batch(9).descriptors.size == 0


def test_a_batch_that_was_killed_half_way_is_whole_or_not_there(
    qm: penstock.QueueManager, home: Path, run_python: Run
) -> None:
    qm.define("QLOCAL", "Q", MAXDEPTH=1000000)
    done = run_python(
        "import os, signal, sys, threading, time, penstock\n"
        "qm = penstock.connect('QM1', sys.argv[1]); q = qm.open('Q')\n"
        "n = 0\n"
        "while True:\n"
        "    q.put_batch([b'%d' % n] * 100, persistent=True); n += 1\n"
        "    if n == 1:\n"
        "        kill = lambda: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        threading.Timer(0.4, kill).start()\n"
        "    q.put_batch([b'%d' % n] * 100, persistent=True); n += 1\n"
        "    q.get_batch(100)\n"
    )
    assert done.returncode == -signal.SIGKILL
    with qm.open("Q") as queue:
        end = time.monotonic() + 60
        while (status := queue.status()).got or status.uncommitted:  # until it is cleared away
            assert time.monotonic() < end
            time.sleep(0.01)
        seen: dict[bytes, int] = {}
        while batch := queue.get_batch(10000):
            for body in bodies(batch):
                seen[body] = seen.get(body, 0) + 1
    assert set(seen.values()) == {100}

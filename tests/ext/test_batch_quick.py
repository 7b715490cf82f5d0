"""The quick paths of put_batch() and get_batch(): the same results as the general ones, in memory
that is reused only when nothing refers to it.
"""

from __future__ import annotations

import copy
import gc
import pickle
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest

import penstock
from penstock import _engine
from penstock.batch import DTYPE, MessageBatch
from penstock.batch.put import put_batch

NO_FIELDS = (None,) * 19
TEXTS = [b"", b"a", b"bc" * 3000, b"d" * 37]


def bodies(got: MessageBatch) -> list[bytes]:
    return [message.data for message in got]


def pair(texts: list[bytes]) -> tuple[Any, Any]:
    return (
        np.frombuffer(b"".join(texts), np.uint8),
        np.array([0, *np.cumsum([len(text) for text in texts])], np.int64),
    )


def decorated(queue: penstock.Queue) -> MessageBatch:
    """A batch of messages with fields and extensions, some with unknown report options."""
    queue.put_batch(
        TEXTS, priority=[1, 3, 3, 3], correl_id=[b"c", None, b"e", None], expiry=1000,
        reply_to_q="REPLY", feedback=[0, 5, 6, 7], user_identifier="somebody", format="MQSTR",
    )  # fmt: skip
    got = queue.get_batch(10)
    got.descriptors["report"][1] = 0x8
    return got


def stored(queue: penstock.Queue) -> list[tuple[Any, ...]]:
    """Everything that does not differ from call to call."""
    rows = []
    got = queue.get_batch(100)
    for row, message in zip(got.descriptors, got, strict=True):
        same = [name for name in DTYPE.names or () if name not in (
            "number", "lsn", "put_time", "expiry_us", "expiry", "msg_id",
        )]  # fmt: skip
        rows.append((message.data, bytes(message.msg_id)[:8], *(row[name] for name in same)))
    return rows


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("kind", ["list", "tuple", "two", "pair", "views", "batch"])
def test_the_quick_way_is_taken_and_stores_what_the_general_one_does(
    qm: penstock.QueueManager, kind: str, persistent: bool
) -> None:
    qm.define("QLOCAL", "ONE", DEFPRTY=4, defpsist=persistent, MAXMSGL=10_000)
    with qm.open("ONE") as queue:
        joined, offsets = pair(TEXTS)
        source: Any = {
            "list": TEXTS,
            "tuple": tuple(TEXTS),
            "two": (b"one", b"other"),
            "pair": (joined, offsets),
            "views": (memoryview(joined), memoryview(offsets)),
            "batch": None,
        }[kind]
        if source is None:
            source = decorated(queue)
        quick = _engine.batch_put_quick(queue, source, None, NO_FIELDS)
        assert quick is not None and quick.descriptors.dtype == DTYPE
        seen = stored(queue)
        general = put_batch(queue, source, None, {})
        assert stored(queue) == seen and len(seen) == (2 if kind == "two" else 4)
        assert (quick.count, quick.warnings) == (general.count, general.warnings)
        assert list(quick.reasons) == list(general.reasons)
        assert quick.warnings == (kind == "batch")
        numbers = quick.numbers.astype(np.int64)
        assert (np.diff(numbers) == 1).all() and general.numbers[0] > numbers[-1]
        assert (quick.descriptors["lsn"] != 0).all() == persistent
        assert len(set(quick.msg_ids)) == len(seen)


@pytest.mark.parametrize(
    "source",
    [
        [b"a", bytearray(b"b")],
        [],
        (b"ab", [0, 1, 2]),
        (b"ab", np.array([0, 1, 2], np.int32)),
        (b"ab", np.array([0, 1, 2], np.uint64)),
        (b"ab", np.array([[0, 1]])),
        (b"ab", np.arange(0, 6)[::2]),
        (b"ab", np.array([0])),
        (np.zeros((4, 4), np.uint8)[:, :2], np.array([0, 1])),
        ("text", np.array([0, 1])),
        "text",
        None,
    ],
)
def test_the_quick_way_leaves_other_sources_alone(queue: penstock.Queue, source: Any) -> None:
    assert _engine.batch_put_quick(queue, source, None, NO_FIELDS) is None
    assert _engine.batch_put_quick(queue, [b"a"], None, (*NO_FIELDS[1:], 0)) is None
    assert queue.depth == 0


def test_wrong_offsets_are_refused_and_nothing_is_put(queue: penstock.Queue) -> None:
    for wrong, text in (
        ([0, 2, 1], "offset 1 \\(at 2\\)"), ([0, 4], "offset 4 \\(at -1\\)"),
        ([-1, 2], "offset -1 \\(at 0\\)"), ([2**62, 2**62 + 1], "at -1"),
    ):  # fmt: skip
        with pytest.raises(penstock.InvalidValue, match=text) as caught:
            queue.put_batch((b"abc", np.array(wrong)))
        assert caught.value.reason == 2005
    queue.put_batch(TEXTS)
    got = queue.get_batch(4)
    got.offsets[4] = 2**40
    with pytest.raises(penstock.InvalidValue, match="offset 1099511627776"):
        queue.put_batch(got)
    assert len(got.bodies) == sum(map(len, TEXTS))
    assert queue.depth == 0


def test_a_full_queue_and_a_wrong_handle_refuse_the_quick_ways(qm: penstock.QueueManager) -> None:
    qm.define("QLOCAL", "SMALL", MAXDEPTH=3)
    with qm.open("SMALL") as queue:
        with pytest.raises(penstock.MQError) as caught:
            queue.put_batch(TEXTS)
        assert (caught.value.reason, caught.value.count, caught.value.index) == (2053, 0, 3)
        with pytest.raises(penstock.InvalidType, match="syncpoint"):
            queue.put_batch([b"a"], syncpoint=1)  # type: ignore[arg-type]
        with pytest.raises(penstock.InvalidType, match="wait"):
            queue.get_batch(1, "x")  # type: ignore[arg-type]
        for wrong in (0, -1, True, 1.5):
            with pytest.raises(penstock.MQError, match="max_messages"):
                queue.get_batch(wrong)  # type: ignore[arg-type]
    for call in (lambda: queue.put_batch([b"a"]), lambda: queue.get_batch(1)):
        with pytest.raises(penstock.ClosedHandle):
            call()


def test_a_unit_of_work_takes_quick_batches_and_gives_them_back(qm: penstock.QueueManager) -> None:
    qm.define("QLOCAL", "ONE")
    with qm.open("ONE") as queue:
        with pytest.raises(ZeroDivisionError), qm.transaction():
            queue.put_batch(TEXTS)
            raise ZeroDivisionError
        assert queue.depth == 0
        queue.put_batch(TEXTS, syncpoint=False)
        with pytest.raises(ZeroDivisionError), qm.transaction():
            assert bodies(queue.get_batch(3)) == TEXTS[:3]
            raise ZeroDivisionError
        assert bodies(queue.get_batch(9)) == TEXTS


# ---- memory ----


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def test_arrays_keep_their_memory_and_unreferenced_memory_is_reused(
    queue: penstock.Queue,
) -> None:
    texts = [b"%d" % i * 50 for i in range(50)]

    def turn(number: int) -> MessageBatch:
        queue.put_batch([b"%d-%d" % (number, i) * 50 for i in range(50)])
        return queue.get_batch(50)

    queue.put_batch(texts)
    first = queue.get_batch(50)
    rows, data, offsets = first.descriptors, first.bodies, first.offsets
    assert first.descriptors is rows and first.bodies is data and first.offsets is offsets
    before = rows.copy(), data.copy(), offsets.copy()
    for keep in (data, offsets, rows):
        del first
        first = MessageBatch(rows, data, offsets)
        rest = [keep]
        for number in range(20):
            other = turn(number)
            assert not np.shares_memory(other.bodies, rest[0])
            assert bodies(other)[49] == b"%d-49" % number * 50
    for array, copied in zip((rows, data, offsets), before, strict=True):
        assert (array == copied).all()
    assert bodies(first) == texts
    seen = {address(turn(number).bodies) for number in range(20)}
    assert len(seen) <= 4


def test_rows_of_a_result_have_nothing_of_the_batch_whose_memory_they_took(
    queue: penstock.Queue,
) -> None:
    for _ in range(5):
        rows = decorated(queue).descriptors
        rows[:] = np.frombuffer(b"\x55" * rows.nbytes, DTYPE)
        del rows
        result = queue.put_batch(TEXTS)
        general = put_batch(queue, TEXTS, None, {})
        for name in DTYPE.names or ():
            if name not in ("number", "put_time", "msg_id"):
                assert list(result.descriptors[name]) == list(general.descriptors[name]), name
        queue.get_batch(100)


def test_a_result_keeps_its_rows_after_later_puts(queue: penstock.Queue) -> None:
    results = [queue.put_batch([b"%d" % i] * (i + 1)) for i in range(30)]
    for i, result in enumerate(results):
        assert len(result) == len(result.descriptors) == i + 1
    numbers = np.concatenate([result.numbers for result in results])
    assert [m.number for m in queue.get_batch(1000)] == list(numbers)


def test_replaced_or_changed_arrays_are_put(queue: penstock.Queue) -> None:
    queue.put_batch(TEXTS)
    got = queue.get_batch(4)
    got.bodies[:] = ord("z")
    got.descriptors["correl_id"][1] = b"mine"
    queue.put_batch(got)
    other = queue.get_batch(4)
    assert bodies(other) == [b"z" * len(text) for text in TEXTS]
    assert other[1].correl_id == b"mine".ljust(24, b"\0")
    other.bodies = np.frombuffer(b"0123456789", np.uint8)
    other.offsets = np.array([0, 1, 3, 6, 10])
    assert len(other) == 4 and other.body(3) == b"6789"
    queue.put_batch(other)
    last = queue.get_batch(4)
    assert bodies(last) == [b"0", b"12", b"345", b"6789"]
    last.descriptors = last.descriptors[:2]
    assert len(last) == 2


def test_copies_and_pickles_are_equal_and_their_own(queue: penstock.Queue) -> None:
    result = queue.put_batch(TEXTS)
    got = queue.get_batch(4)
    for other in (pickle.loads(pickle.dumps(got)), copy.deepcopy(got)):
        assert bodies(other) == TEXTS and not np.shares_memory(other.bodies, got.bodies)
    assert np.shares_memory(copy.copy(got).bodies, got.bodies)
    again = pickle.loads(pickle.dumps(result))
    assert (again.count, again.warnings, again.msg_ids) == (4, 0, result.msg_ids)


def test_a_batch_without_arrays_has_none_of_them() -> None:
    empty = MessageBatch.__new__(MessageBatch)
    for name in ("descriptors", "bodies", "offsets"):
        with pytest.raises(AttributeError):
            getattr(empty, name)


@pytest.mark.parametrize("count", [1, 100, 5000])
def test_batches_leak_nothing(queue: penstock.Queue, count: int) -> None:
    texts = [bytes(100)] * count
    pairs = pair(texts)

    def use() -> None:
        for source in (texts, pairs):
            queue.put_batch(source)
            queue.put_batch(queue.get_batch(count))
            assert len(queue.get_batch(count).bodies) == count * 100

    use()
    gc.collect()
    tracemalloc.start()
    try:
        use()
        start = tracemalloc.get_traced_memory()[0]
        for _ in range(30):
            use()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - start
    finally:
        tracemalloc.stop()
    assert grown < 4 * count * 100 + 100_000, grown


def test_a_first_body_larger_than_the_room_is_got_whole(queue: penstock.Queue) -> None:
    texts = [b"x" * 200_000, b"y", b"z" * 150_000]
    queue.put_batch(texts)
    assert bodies(queue.get_batch(3)) == texts
    assert len(queue.get_batch(3)) == 0 == len(queue.get_batch(3, 0.01).bodies)


def test_all_of_a_batch_are_put_at_the_time_of_the_call(queue: penstock.Queue) -> None:
    before = time.time() - 0.1  # the clock of put times moves in ticks
    results = [queue.put_batch([b"x"] * 200), queue.put_batch([b"y"] * 50, expiry=30)]
    after = time.time()
    for result in results:
        (moment,) = set(result.descriptors["put_time"])
        assert before <= moment.astype(np.int64) / 1e6 <= after
    rows = results[1].descriptors
    assert set(rows["expiry_us"] - rows["put_time"].astype(np.uint64)) == {30_000_000}

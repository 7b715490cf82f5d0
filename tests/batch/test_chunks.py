"""Reading in chunks into memory that is reused, but never while a chunk refers to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock import InvalidValue, Queue, QueueManager, Xid, _engine
from penstock.batch import DTYPE, MessageBatch
from penstock.batch import chunks as chunks_module
from penstock.batch.arrow_columns import ARROW_COLUMNS
from penstock.batch.chunks import Fill, Table, _Spares, as_batch, as_table, browse_chunks
from penstock.batch.prepared import prepared_chunks

EVERYTHING = ((9, 0), (0, 2**64 - 1))
COLUMNS = tuple(ARROW_COLUMNS.values())
NUMBER = (ARROW_COLUMNS["number"],)


@pytest.fixture
def queue(qm: QueueManager) -> Iterator[Queue]:
    qm.define("QLOCAL", "Q", replace=True)
    with qm.open("Q", browse=True, output=True) as opened:
        opened.put_batch([b"%06d" % number for number in range(1000)])
        yield opened


def parts(queue: Queue, rows: int = 100) -> Iterator[MessageBatch]:
    return browse_chunks(queue, EVERYTHING, queue.newest_number, as_batch, rows, 1 << 20)


def tables(queue: Queue, rows: int = 100, most: int = 1 << 20, columns: Any = NUMBER) -> list[Any]:
    fill: Fill[Table] = as_table(columns)
    found = browse_chunks(queue, EVERYTHING, queue.newest_number, fill, rows, most)
    return [pa.record_batch(part) for part in found]


def expected(first: int, last: int) -> list[bytes]:
    return [b"%06d" % number for number in range(first, last)]


def test_unreferenced_memory_is_reused() -> None:
    spares = _Spares()
    first = spares.take(1000)
    begin = first.ctypes.data
    del first
    again = spares.take(900)
    assert again.ctypes.data == begin and len(again) == 900
    assert spares.take(900).ctypes.data != begin


@pytest.mark.parametrize(
    "hold", [lambda a: a[3:9], memoryview, lambda a: a.view("S10"), pa.py_buffer]
)
def test_memory_that_a_slice_a_view_or_a_buffer_refers_to_is_not_used(hold: object) -> None:
    spares = _Spares()
    block = spares.take(1000)
    block[:] = 7
    held = hold(block)  # type: ignore[operator]
    del block
    other = spares.take(1000)
    other[:] = 9
    assert set(bytes(held)) == {7}


def test_the_smallest_block_that_is_large_enough_is_taken_and_few_are_kept() -> None:
    spares = _Spares()
    held = [spares.take(size) for size in (5000, 1000, 3000)]
    address = held[2].ctypes.data
    held.clear()
    assert spares.take(2000).ctypes.data == address
    held = [spares.take(10_000 + number) for number in range(9)]
    assert len(spares._blocks) == 5
    assert spares.take(17 << 20) is not None and len(spares._blocks) == 5


def test_arrow_bodies_that_are_kept_stay_as_they_are(queue: Queue) -> None:
    kept = [pa.record_batch(part.arrow(("number",))) for part in parts(queue)]
    bodies = [body for batch in kept for body in batch.column("body").to_pylist()]
    assert bodies == expected(0, 1000)


def test_batches_that_are_kept_keep_their_bodies(queue: Queue) -> None:
    kept = list(parts(queue))
    assert [part.body(at) for part in kept for at in range(len(part))] == expected(0, 1000)


def test_of_parts_that_are_dropped_the_memory_is_used_again(queue: Queue) -> None:
    list(parts(queue))
    seen = {part.bodies.ctypes.data for part in parts(queue)}
    assert len(seen) <= 3  # of ten parts


@pytest.fixture
def mixed(queue: Queue) -> Queue:
    """Messages with several values in every column, non-ASCII ones included."""
    queue.get_batch(1000)
    for number in range(150):
        queue.put(
            b"%d" % number * (number % 7),
            priority=number // 40,
            persistent=number % 3 == 0,
            msg_id=bytes([number]) * 24,
            correl_id=b"" if number % 5 else b"c%d" % number,
            group_id=b"group" if number % 4 == 0 else b"",
            msg_seq_number=number + 1 if number % 4 == 0 else 1,
            format=("MQSTR", "", "caf\xe9")[number // 10 % 3],
            reply_to_q="" if number < 30 else f"REPLY.{number // 9}",
            expiry=None if number % 2 else 5000.0,
        )
    return queue


@pytest.mark.parametrize("chunk", [1, 7, 64, 65, 1000])
def test_a_table_has_the_columns_of_the_batch_however_few_rows_it_passes_through(
    mixed: Queue, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(chunks_module, "_GATHERED", chunk)
    columns = [column for column in COLUMNS if column[0] != "expiry"]  # it decreases
    names = [column[0] for column in columns]
    whole = mixed.browse_batch(1000, first=True)
    assert len(whole) == 150 and len(set(whole.descriptors["format"])) == 3
    for rows in (1000, 150, 149, 40):
        found = tables(mixed, rows, columns=columns)
        at = 0
        for table in found:
            table.validate(full=True)
            assert table == pa.record_batch(whole[at : at + rows].arrow(names))
            at += table.num_rows
        assert at == 150 and max(table.num_rows for table in found) == min(rows, 150)
    [table] = tables(mixed, columns=[ARROW_COLUMNS["expiry"]], rows=1000)
    left = table.column("expiry").to_pylist()
    known = whole.descriptors["expiry"].tolist()
    pairs = list(zip(left, known, strict=True))
    assert all(now is None if then == -1 else then - 600 < now <= then for now, then in pairs)
    assert left.count(None) == 75 == table.column("expiry").null_count


def test_a_table_ends_where_its_bodies_do_and_a_long_one_stands_alone(
    mixed: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks_module, "_GATHERED", 4)
    mixed.put(b"x" * 5000, priority=3)
    bodies = [message.data for message in mixed.browse()]
    found = tables(mixed, 50, most=90)
    assert [body for table in found for body in table.column("body").to_pylist()] == bodies
    sizes = [sum(map(len, table.column("body").to_pylist())) for table in found]
    assert max(sizes) == 5000 and sorted(sizes)[-2] <= 90
    assert [table.num_rows for table in found if table.column("body").nbytes >= 5000] == [1]


def test_tables_of_a_prepared_unit_are_its_messages(
    qm: QueueManager, mixed: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks_module, "_GATHERED", 9)
    bodies = [message.data for message in mixed.browse()]
    with qm.open("Q", input=True) as source:
        assert source.take_batch_uncopied(150)[0] == 150
    unit = Xid(7, b"unit", b"1")
    qm.prepare(unit)
    fill: Fill[Table] = as_table(NUMBER)
    for first, last in ((0, 150), (3, 77), (77, 150)):
        found = prepared_chunks(qm, unit, first, last, fill, 40, 1000)
        seen = [pa.record_batch(part).column("body").to_pylist() for part in found]
        assert [body for part in seen for body in part] == bodies[first:last]
    qm.backout_prepared(unit)


def test_tables_that_are_kept_stay_as_they_are_and_dropped_ones_give_their_memory(
    queue: Queue,
) -> None:
    columns = [ARROW_COLUMNS[name] for name in ("number", "msg_id", "format")]
    kept = tables(queue, columns=columns)
    first = kept[0].column("number")[0].as_py()
    assert [n for table in kept for n in table.column("number").to_pylist()] == list(
        range(first, first + 1000)
    )
    assert [b for table in kept for b in table.column("body").to_pylist()] == expected(0, 1000)
    one = kept[3].column("msg_id")
    kept.clear()
    before = one.to_pylist()
    fill: Fill[Table] = as_table(columns)
    seen = set()
    for part in browse_chunks(queue, EVERYTHING, queue.newest_number, fill, 100, 1 << 20):
        seen.add(pa.record_batch(part).column("number").buffers()[1].address)
    assert len(seen) <= 3  # of ten tables
    assert one.to_pylist() == before  # a column that outlives its table


def test_a_table_refuses_what_it_has_no_room_for() -> None:
    room = _engine.arrow_room(COLUMNS, 10)
    rows = np.zeros(12, DTYPE)
    with pytest.raises(InvalidValue, match="too few"):
        _engine.ArrowTable(COLUMNS, 10, bytearray(room - 1))
    with pytest.raises(InvalidValue, match="-1 rows"):
        _engine.ArrowTable(COLUMNS, -1, bytearray(room))
    with pytest.raises(BufferError):
        _engine.ArrowTable(COLUMNS, 10, bytes(room))
    table = _engine.ArrowTable(COLUMNS, 10, bytearray(room))
    for count in (11, -1):
        with pytest.raises(InvalidValue, match=f"no room for {count} rows"):
            table.append(rows, count)
    with pytest.raises(InvalidValue, match="fewer rows than 3"):
        table.append(rows[:2], 3)
    table.append(rows, 6)
    with pytest.raises(InvalidValue, match="no room for 5 rows"):
        table.append(rows, 5)
    offsets = np.zeros(7, np.int64)
    table.finish(b"", offsets)
    with pytest.raises(InvalidValue, match="finished"):
        table.finish(b"", offsets)
    with pytest.raises(InvalidValue, match="no room"):
        table.append(rows, 1)


def test_threads_do_not_share_a_block() -> None:
    spares = _Spares()
    failed: list[int] = []

    def work(mark: int) -> None:
        for _ in range(2000):
            block = spares.take(4096)
            block[:] = mark
            if not bool(np.all(block == mark)):
                failed.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []

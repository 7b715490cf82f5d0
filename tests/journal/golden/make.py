"""Makes the golden files: small queue managers as format 2.0 writes them.

    python tests/journal/golden/make.py

They are made once for a format version and then kept: every later version must read them with the
same result (`expected.json`). The bytes follow from this script alone; a test remakes them and
compares, so that a change of the writer, or of the format, cannot pass unseen.

The history of `v2/`: four segments of 32 KiB; single puts, a unit over two segments, a backed-out
and an undecided unit, a body in chunks, an altered and a deleted queue, a crash with a torn tail
and a recovery, a checkpoint, work after it, a mark page, a torn batch at the very end.

The history of `v2-prepared/`: prepared units with puts, gets and images of non-persistent messages
(one in chunks), one without messages; some ended, two in one record, some that wait over a restart;
a checkpoint that they keep from moving on.

The history of `v2-moved/`: messages moved out of a segment that is gone, one in pieces, two in
short records; one moved twice, one that a process moved without noting it, one that was got after
it was moved; a checkpoint that lists a segment far before its begin segment.

The history of `v2-carried/`: a checkpoint that carries three units, which began in the segment
before: one that goes on, with a body of which the second piece follows, and is committed; one that
a restart drops; a prepared one with a put, a get and an image, which waits.

The history of `v2-delayed/`: messages with due times a century ahead, in a full and in a short
record; a retry that is delayed, twice, of which the later one holds; one that a second backout
shows at once; a checkpoint with a column of due times; after it a delayed put in a unit, and a
delay of a message that the checkpoint has.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parents[2] / "python"))

import writer as w  # noqa: E402

from penstock.journal import MemoryFiles, QueueManagerFiles, iter_record_dicts  # noqa: E402


def golden() -> dict[str, bytes]:
    """The files of the golden queue manager."""
    store = w.Store(size=32768)
    store.append(
        w.define(1, 1, "ORDERS", {15: 5000, 2013: "golden orders"}),
        w.define(2, 1, "SHORT.LIVED", {}),
    )
    first = w.put(1, b"the first message")
    (first_lsn,) = store.append(first)
    store.append(w.put(2, b"on a queue that will go", queue=(2, 1)))
    store.append(w.record(w.OBJECT_DELETE, queue=(2, 1)))
    unit = [w.put(3, b"a" * 9000, unit=10, priority=9, ext=True), w.put(4, b"b", unit=10)]
    lsns = [store.append(record)[0] for record in unit]
    store.append(w.put(5, b"dropped by its unit", unit=11), w.get(1, unit=11))
    store.append(w.backout(11, [(1, 1, 1)]))
    store.append(w.commit(10, lsns[0], unit))
    store.restart(torn=store.batch([w.put(99, b"never acknowledged" * 300)])[:4096])
    store.append(w.define(1, 1, "ORDERS", {15: 7, 2013: "altered", 77: "kept, though unknown"}))
    store.checkpoint(
        store.lsn,
        objects=[w.define(1, 1, "ORDERS", {15: 7, 2013: "altered", 77: "kept, though unknown"})],
        messages=[
            store.listed(3, lsns[0], unit[0], 9000, priority=9, ext=True),
            store.listed(1, first_lsn, first, 17, backouts=1),
            store.listed(4, lsns[1], unit[1], 1),
        ],
    )
    store.append(w.get(4), w.put(6, b"twelve", priority=12), w.record(77, b"12345678", must=0))
    store.put_chunked(7, bytes(range(256)) * 40, 4000, unit=12)
    store.append(w.put(8, b"in no decided unit", unit=13))
    store.mark()
    torn = store.batch([w.put(9, b"torn" * 2000)])
    store.image[store.used : store.used + 4096] = torn[:4096]
    return store.files


def golden_prepared() -> dict[str, bytes]:
    """The files of a queue manager with prepared units."""
    store = w.Store(size=32768)
    definition = w.define(1, 1, "ORDERS", {15: 5000})
    store.append(definition)
    puts = [w.put(n, b"message %d" % n, priority=n % 10) for n in range(1, 7)]
    lsns = store.append(*puts)
    waits = [w.get(1, unit=10), w.put(7, b"seven", unit=10), w.taken(50, b"np", 1, unit=10)]
    first, before = store.append(*waits)[0], 0
    chunks = []
    for number in range(3):
        waits.append(w.chunk(51, bytes([number]) * 2500, before, number * 2500, 7500, number, 10))
        (before,) = store.append(waits[-1])
        chunks.append(before)
    waits.append(w.taken(51, b"", 2, unit=10, chunked=(chunks[0], chunks[-1], 7500, 3)))
    store.append(waits[-1])
    name = w.xid(int.from_bytes(b"PSPK", "big"), b"golden-stream", b"41")
    store.append(w.prepare(10, name, first, waits, puts=1, gets=3, size=7516))
    for unit, number in ((11, 2), (12, 3), (13, 4)):
        got = w.get(number, unit=unit)
        (at,) = store.append(got)
        store.append(w.prepare(unit, w.xid(unit, b"\0\1", b"b"), at, [got], gets=1, size=9))
    store.append(w.end_prepared(w.COMMIT_PREPARED, 11, 12))
    store.append(w.end_prepared(w.BACKOUT_PREPARED, 13), w.backout(0, [(4, 1, 1)]))
    store.checkpoint(
        first,
        objects=[definition],
        messages=[
            store.listed(n, lsns[n - 1], puts[n - 1], 9, priority=n, backouts=int(n == 4))
            for n in (6, 5, 4, 1)
        ],
        clean=True,
        begin_segment=1,
    )
    store.restart()
    store.append(w.prepare(14, w.xid(-2, b"x" * 64, b"y" * 64), 0, []))
    store.append(w.get(6), w.put(8, b"eight"))
    return store.files


def short_moves(shared: bytes, *numbers: int) -> list[bytes]:
    """Short MOVED records, to stand behind their COMMON record."""
    made: list[bytes] = []
    for number in numbers:
        distance = len(shared) + sum(map(len, made))
        made.append(w.short_put(shared, distance, number, b"short", kind=w.MOVED))
    return made


def golden_moved() -> dict[str, bytes]:
    """The files of a queue manager with MOVED records and a hole between its segments."""
    store = w.Store(size=32768)
    definition = w.define(1, 1, "ORDERS", {15: 5000})
    store.append(definition)
    kept = w.put(1, b"k" * 20000)
    (kept_lsn,) = store.append(kept)
    store.roll()
    puts = [w.put(n, b"message %d" % n, priority=n) for n in (2, 3, 4)]
    lsns = store.append(*puts)
    store.append(w.chunk(5, b"a" * 900, 0, 0, 1800, 0))  # moved with its message below
    store.roll()
    store.append(w.put(6, b"x" * 9000), w.get(6))
    store.roll()
    moves = [w.moved(n, b"message %d" % n, priority=n) for n in (2, 3, 4)]
    moved = store.append(*moves)
    (first,) = store.append(w.chunk(5, b"a" * 900, 0, 0, 1800, 0))
    (last,) = store.append(w.chunk(5, b"b" * 900, first, 900, 1800, 1))
    pieces = w.moved(5, chunked=(first, last, 1800, 2))
    (five,) = store.append(pieces)
    shared = w.common(unit=9)
    shorts = short_moves(shared, 10, 11)
    ten, eleven = store.append(shared, *shorts)[1:]
    begin = store.lsn
    store.checkpoint(
        begin,
        objects=[definition],
        messages=[
            store.listed(1, kept_lsn, kept, 20000),
            store.listed(4, moved[2], moves[2], 9),
            store.listed(5, five, pieces, 1800, first_lsn=first, chunks=2),
            store.listed(10, ten, shorts[0], 5),
            store.listed(11, eleven, shorts[1], 5),
            store.listed(3, moved[1], moves[1], 9, priority=3),
            store.listed(2, moved[0], moves[0], 9, priority=2),
        ],
        needed=[store.needs(1)],
    )
    store.append(moves[0], w.put(7, b"seven"), w.moved(7, b"seven"))
    store.append(moves[1], w.get(3), w.moved(6, b"gone before"), w.moved(8, b"z", queue=(9, 9)))
    (again,) = short_moves(shared, 11)
    got = w.short(w.GET, shared, len(shared) + len(again), 10)
    got_lsn = store.append(shared, again, got)[2]
    store.append(w.commit(9, got_lsn, [got]))
    for number in (2, 3):
        del store.done[f"journal/{number:010d}.psj"]
    assert lsns[0] < moved[0]
    return store.files


BODIES = {10: 3, 12: 6, 13: 8, 50: 2}  # bytes of messages that carried units hold


def done_by(
    store: w.Store, lsns: list[int], records: list[bytes], *numbers: int
) -> list[tuple[bytes, bytes]]:
    """Operations of a unit: a PUT, a GET, and the images behind them."""
    lines = [
        (
            store.operation(w.PUT, numbers[0], lsns[0]),
            store.listed(numbers[0], lsns[0], records[0], BODIES[numbers[0]]),
        ),
        (store.operation(w.GET, numbers[1], lsns[1]), b""),
    ]
    for number, lsn, record in zip(numbers[2:], lsns[2:], records[2:], strict=True):
        line = store.listed(number, lsn, record, BODIES[number], volatile=True)
        lines.append((store.operation(w.TAKEN, number, lsn, before=1), line))
    return lines


def golden_carried() -> dict[str, bytes]:
    """The files of a queue manager whose checkpoint carries units."""
    store = w.Store(size=32768)
    definition = w.define(1, 1, "ORDERS", {15: 5000})
    store.append(definition)
    puts = [w.put(n, b"message %d" % n) for n in range(1, 6)]
    lsns = store.append(*puts)
    goes_on = [w.put(10, b"ten", unit=20), w.get(1, unit=20)]
    at20 = [store.append(record)[0] for record in goes_on]
    pieces = w.chunk(11, b"a" * 900, 0, 0, 1800, 0, unit=20)
    (first,) = store.append(pieces)
    lost = [w.put(12, b"twelve", unit=21), w.get(2, unit=21)]
    at21 = [store.append(record)[0] for record in lost]
    waits = [w.put(13, b"thirteen", unit=22), w.get(3, unit=22), w.taken(50, b"np", 1, unit=22)]
    at22 = [store.append(record)[0] for record in waits]
    name = w.xid(int.from_bytes(b"PSPK", "big"), b"golden-stream", b"7")
    prepare = w.prepare(22, name, at22[0], waits, puts=1, gets=2, size=19)
    end = store.append(prepare)[0] + len(prepare)
    facts = w.prepared(puts=1, gets=2, size=19)
    store.roll()
    store.append(w.put(6, b"six"))
    begin = store.lsn
    store.checkpoint(
        begin,
        objects=[definition],
        messages=[
            *(store.listed(n, lsns[n - 1], puts[n - 1], 9) for n in range(1, 6)),
            store.listed(6, begin - 4096 + 64, w.put(6, b"six"), 3),
        ],
        units=[
            (
                store.carried(20, at20[0], [*goes_on, pieces], operations=2, pieces=first),
                done_by(store, at20, goes_on, 10, 1),
            ),
            (store.carried(21, at21[0], lost), done_by(store, at21, lost, 12, 2)),
            (
                store.carried(22, at22[0], waits, prepare_end=end, prepared=facts, xid=name),
                done_by(store, at22, waits, 13, 3, 50),
            ),
        ],
    )
    rest = w.chunk(11, b"b" * 900, first, 900, 1800, 1, unit=20)
    (last,) = store.append(rest)
    eleven = w.put(11, unit=20, chunked=(first, last, 1800, 2))
    store.append(eleven)
    store.append(w.commit(20, at20[0], [*goes_on, pieces, rest, eleven]))
    store.restart()
    store.append(w.put(14, b"fourteen"))
    return store.files


def golden_delayed() -> dict[str, bytes]:
    """The files of a queue manager with delayed messages."""
    store = w.Store(size=32768)
    definition = w.define(1, 1, "ORDERS", {15: 5000})
    store.append(definition)
    hour = 3_600_000_000
    day = w.TIME + 100 * 8766 * hour
    puts = [w.put(1, b"at once"), w.put(2, b"got", due=day), w.put(3, b"fails twice")]
    lsns = store.append(*puts)
    shared = w.common(unit=9)
    fields = {10: (day + hour).to_bytes(8, "little")}
    short = w.short_put(shared, len(shared), 4, b"an hour later", fields=fields)
    (short_lsn,) = store.append(shared, short)[1:]
    store.append(w.backout(0, [(3, 1, 1)], day + 2 * hour))
    store.append(w.backout(0, [(3, 1, 2), (1, 1, 1)], day + 3 * hour, day + 4 * hour))
    store.append(w.backout(0, [(1, 1, 2)]))
    store.checkpoint(
        store.lsn,
        objects=[definition],
        messages=[
            store.listed(1, lsns[0], puts[0], 7, backouts=2),
            store.listed(2, lsns[1], puts[1], 3, due=day),
            store.listed(3, lsns[2], puts[2], 11, backouts=2, due=day + 3 * hour),
            store.listed(4, short_lsn, short, 13, due=day + hour),
        ],
    )
    unit = [w.put(5, b"in a unit", unit=20, due=day + 5 * hour), w.get(2, unit=20)]
    at = [store.append(one)[0] for one in unit]
    store.append(w.commit(20, at[0], unit))
    store.append(w.backout(0, [(4, 1, 1)], day + 6 * hour))
    store.restart()
    store.append(w.put(6, b"six"))
    return store.files


HISTORIES = {
    "v2": golden,
    "v2-prepared": golden_prepared,
    "v2-moved": golden_moved,
    "v2-carried": golden_carried,
    "v2-delayed": golden_delayed,
}


def expected(files: dict[str, bytes]) -> dict[str, object]:
    """The expected contents."""
    reader = QueueManagerFiles(MemoryFiles(files))
    state = reader.replay()
    tail = state.torn_tail
    dues = [[m.identity, m.due_us] for m in state.messages("ORDERS") if m.due_us != 0]
    return {
        **({"due": dues} if dues else {}),
        "objects": [
            [slot, generation, o.name, {str(k): v for k, v in o.attributes.items()}]
            for (slot, generation), o in state.objects.items()
        ],
        "messages": [
            [m.identity, m.priority, m.placement, m.backout_count, m.length, m.body()[:20].hex()]
            for m in state.messages("ORDERS")
        ],
        "open_units": [unit.unit_id for unit in state.units],
        "prepared": [
            [
                str(unit.xid),
                [
                    [call, m.identity, m.length, m.body()[:20].hex()]
                    for call, m in state.prepared_messages(unit)
                ],
            ]
            for unit in state.prepared
        ],
        "end_lsn": state.end_lsn,
        "torn_tail": None if tail is None else [tail.file, tail.offset],
        "records": [[row["lsn"], row["type"]] for row in iter_record_dicts(MemoryFiles(files))],
        "findings": [[f.severity, f.rule, f.file, f.offset] for f in reader.verify()],
    }


def main() -> None:
    """Writes the folders, each with its expected.json."""
    for folder, history in HISTORIES.items():
        files = history()
        shutil.rmtree(HERE / folder, ignore_errors=True)
        for path, data in files.items():
            target = HERE / folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        text = json.dumps(expected(files), indent=1)
        (HERE / folder / "expected.json").write_text(text + "\n")
        print(f"{folder}: {len(files)} files, {sum(map(len, files.values()))} bytes")


if __name__ == "__main__":
    main()

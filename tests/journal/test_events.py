"""Events of decided units of work: what a model finds that reads everything, from any LSN on."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import writer as w
from event_model import Decided, EventModel
from reading import Q1, Q2, started
from test_core_agrees import directory, work
from test_scan import forget_names, on_disk

import penstock
from penstock.journal import DamagedFile
from penstock.journal.events import KINDS, Event, EventReport, event_batches, events
from penstock.journal.scan import JournalDataLoss, SegmentFile, list_segments, scan

__all__ = ["directory", "forget_names"]


def decided(event: Event) -> Decided:
    return Decided(
        event.commit_lsn, event.lsn, event.kind, event.queue, event.number, event.unit_id,
        event.body,
    )  # fmt: skip


def found(root: Path, **options: Any) -> list[Decided]:
    return [decided(event) for event in events(root, **options)]


def numbers(root: Path, **options: Any) -> list[tuple[str, int]]:
    return [(event.kind, event.number) for event in events(root, (), **options)]


def written(store: w.Store, root: Path) -> Path:
    store.mark()
    return on_disk(store, root)


# ---- what is an event ----


def test_events_come_when_their_unit_is_decided_and_follow_each_other(tmp_path: Path) -> None:
    store = started()
    one, two, three = (w.put(n, b"%d" % n, unit=5) for n in (1, 2, 3))
    first = store.append(one)[0]
    other = w.put(4, b"4", unit=6)
    later = store.append(other)[0]
    store.append(two, w.put(5, b"5"), three)
    store.append(w.commit(6, later, [other]), w.commit(5, first, [one, two, three]))
    store.append(w.get(5, unit=7, kind=w.GET))
    store.append(w.put(6, b"6", unit=8, flags=w.COMMITS))
    root = written(store, tmp_path)
    assert numbers(root) == [("PUT", n) for n in (5, 4, 1, 2, 3, 6)]
    assert found(root) == EventModel(root).events
    assert [event.body for event in events(root)] == [b"5", b"4", b"1", b"2", b"3", b"6"]


def test_backed_out_open_and_dropped_units_have_no_events(tmp_path: Path) -> None:
    store = started()
    store.append(w.put(1, unit=5), w.put(2, unit=6), w.put(3, unit=7))
    store.append(w.backout(5, []))
    store.restart()
    store.append(w.put(4, unit=8), w.put(5))
    assert numbers(written(store, tmp_path)) == [("PUT", 5)]


def test_copies_images_definitions_and_pieces_are_no_events(tmp_path: Path) -> None:
    store = started()
    store.append(w.put(1, b"one"), w.moved(1, b"one"), w.image_consumed(4096))
    put, image = w.put(2, b"two", unit=5), w.taken(9, b"image", 1, unit=5)
    first = store.append(put, image)[0]
    store.append(w.moved(2, b"two", unit=5))
    store.append(w.prepare(5, w.xid(1, b"name"), first, [put, image], puts=1, gets=1))
    store.append(w.end_prepared(w.COMMIT_PREPARED, 5))
    store.put_chunked(3, bytes(range(250)) * 40, 3000, unit=6)
    root = written(store, tmp_path)
    assert numbers(root) == [("PUT", 1), ("PUT", 2), ("PUT", 3)]
    assert [event.body for event in events(root)][2] == bytes(range(250)) * 40


def test_expiry_clear_and_deletion_are_events_that_name_the_queue(tmp_path: Path) -> None:
    store = started()
    store.append(w.put(1), w.put(2, queue=Q2), w.get(1, kind=w.EXPIRE))
    store.append(w.record(w.CLEAR, queue=Q2, number=7), w.record(w.OBJECT_DELETE, queue=Q1))
    store.append(w.record(w.OBJECT_DELETE, queue=(9, 1)))  # no queue
    root = written(store, tmp_path)
    assert [(e.kind, e.queue, e.number) for e in events(root)] == [
        ("PUT", "ORDERS", 1), ("PUT", "OTHER", 2), ("EXPIRE", "ORDERS", 1),
        ("CLEAR", "OTHER", 7), ("OBJECT_DELETE", "ORDERS", 0),
    ]  # fmt: skip


def test_kinds_and_queues_are_chosen_before_anything_is_read(tmp_path: Path) -> None:
    store = started()
    for n in (1, 3):
        store.append(w.put(n), w.put(n + 1, queue=Q2), w.get(n), w.get(n + 1, queue=Q2))
    root = written(store, tmp_path)
    assert numbers(root, kinds=("GET",)) == [("GET", n) for n in (1, 2, 3, 4)]
    assert numbers(root, queues=["OTHER"]) == [(k, n) for n in (2, 4) for k in ("PUT", "GET")]
    assert numbers(root, queues=["OTHER", "ORDERS"]) == numbers(root)
    assert numbers(root, queues=["NONE"]) == []


def test_columns_of_a_message_are_none_in_other_events(tmp_path: Path) -> None:
    store = started()
    store.append(w.put(1, b"one", priority=7), w.get(1))
    put, get = events(written(store, tmp_path), ("priority", "msg_id", "put_time", "body"))
    assert put.fields["priority"] == 7 and put.fields["msg_id"].startswith(b"AMQ GOLD")
    assert put.fields["put_time"].year == 2023 and put.commit_time is not None
    assert get.body is None and set(get.fields.values()) == {None}
    assert set(put.fields) == {"priority", "msg_id", "put_time"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"columns": ["nonsense"]}, "no column 'nonsense'; there are event, "),
        ({"kinds": ["TAKEN"]}, "no event 'TAKEN'; there are PUT, GET, "),
        ({"on_loss": "ignore"}, "on_loss is 'refuse' or 'skip', not 'ignore'"),
        ({"batch_rows": 0}, "start 0, batches of 0 rows"),
        ({"start": -1}, "start -1, batches of"),
    ],
)
def test_wrong_arguments_are_refused_by_name(
    tmp_path: Path, arguments: dict[str, Any], text: str
) -> None:
    root = written(started(), tmp_path)
    with pytest.raises(ValueError, match=text):
        list(event_batches(root, **{"columns": ["lsn"], **arguments}))


# ---- units that began before ----


def prepared_over_restarts(store: w.Store, *units: int) -> None:
    """Prepares units of two puts each, with other records and a restart between."""
    made: dict[int, list[bytes]] = {}
    firsts = {}
    for unit in units:
        made[unit] = [w.put(unit * 10 + n, b"%d.%d" % (unit, n), unit=unit) for n in range(2)]
        firsts[unit] = store.append(made[unit][0])[0]
    store.roll()
    for unit in units:
        store.append(w.put(unit * 10 + 5, unit=unit + 100, flags=w.COMMITS))
        store.append(made[unit][1])
        name = w.xid(1, b"unit %d" % unit)
        store.append(w.prepare(unit, name, firsts[unit], made[unit], puts=2))
    store.restart()


def test_prepared_units_take_effect_where_a_later_run_decides_them(tmp_path: Path) -> None:
    store = started()
    prepared_over_restarts(store, 20, 21, 22, 23)
    at = store.append(w.end_prepared(w.COMMIT_PREPARED, 22, 20))[0]
    store.append(w.end_prepared(w.BACKOUT_PREPARED, 21))
    root = written(store, tmp_path)
    decided_late = [(e.commit_lsn, e.number) for e in events(root) if e.commit_lsn >= at]
    assert decided_late == [(at, n) for n in (200, 220, 201, 221)]
    assert found(root) == EventModel(root).events
    # one who begins there finds them, too, though COMMIT_PREPARED does not say where they began
    assert found(root, start=at) == [e for e in EventModel(root).events if e.commit_lsn >= at]


def test_an_empty_prepared_unit_has_no_events(tmp_path: Path) -> None:
    store = started()
    store.append(w.prepare(5, w.xid(1, b"nothing"), 0, []))
    at = store.append(w.end_prepared(w.COMMIT_PREPARED, 5), w.put(1))[0]
    root = written(store, tmp_path)
    for start in (0, at):
        assert numbers(root, start=start) == [("PUT", 1)]


def test_units_that_began_before_since_are_passed_over_and_counted(tmp_path: Path) -> None:
    store = started()
    old = w.put(1, unit=5)
    first = store.append(old)[0]
    since = store.append(w.put(2))[0]
    young = w.put(3, unit=6)
    begun = store.append(young)[0]
    store.append(w.commit(5, first, [old]))
    at = store.append(w.commit(6, begun, [young]))[0]
    root = written(store, tmp_path)
    for start, wanted in ((since, [2, 3]), (at, [3])):
        report = EventReport()
        batches = list(event_batches(root, ["identity"], start=start, since=since, report=report))
        assert [n for b in batches for n in b.columns["identity"].tolist()] == wanted
        assert report.begun_before == (start == since) and not report.incomplete


# ---- from any LSN on ----


def scribble(rng: random.Random, steps: int) -> w.Store:
    """A store with units of all kinds that overlap, over several segments and restarts."""
    store = started()
    open_units: dict[int, list[bytes]] = {}
    prepared: dict[int, None] = {}
    firsts: dict[int, int] = {}
    number, unit = 0, 0
    for _ in range(steps):
        choice, number = rng.random(), number + 1
        queue = rng.choice((Q1, Q2))
        if choice < 0.15:
            store.append(w.put(number, rng.randbytes(rng.randrange(900)), queue=queue))
        elif choice < 0.5:
            if len(open_units) < 6 or choice < 0.2:
                unit += 1
                open_units[unit] = []
            of = rng.choice(list(open_units))
            if rng.random() < 0.6:
                record = w.put(number, rng.randbytes(rng.randrange(2000)), unit=of, queue=queue)
            else:
                record = w.get(rng.randrange(1, number + 1), unit=of, queue=queue)
            lsn = store.append(record, *([w.put(10_000 + number)] * (rng.random() < 0.2)))[0]
            firsts.setdefault(of, lsn)
            open_units[of].append(record)
        elif choice < 0.75 and (done := [u for u, r in open_units.items() if r]):
            of = rng.choice(done)
            records = open_units.pop(of)
            if choice < 0.62:
                store.append(w.commit(of, firsts[of], records))
            elif choice < 0.67:
                store.append(w.backout(of, []))
            else:
                store.append(w.prepare(of, w.xid(1, b"u%d" % of), firsts[of], records))
                prepared[of] = None
        elif choice < 0.85 and prepared:
            some = rng.sample(list(prepared), rng.randint(1, len(prepared)))
            kind = w.COMMIT_PREPARED if rng.random() < 0.7 else w.BACKOUT_PREPARED
            store.append(w.end_prepared(kind, *some))
            for of in some:
                del prepared[of]
        elif choice < 0.9:
            unit += 1
            store.append(w.put(number, b"alone", unit=unit, flags=w.COMMITS))
        elif choice < 0.93:
            unit += 1
            store.put_chunked(number, rng.randbytes(9000), 4000, unit)
        elif choice < 0.95:
            store.append(w.moved(rng.randrange(1, number + 1), b"copy"))
        elif choice < 0.97:
            store.roll()
        else:
            store.restart(gap=rng.choice((0, 4096 * 8)))
            open_units.clear()
    return store


@pytest.mark.parametrize("seed", range(6))
def test_a_reader_that_begins_at_any_lsn_finds_what_the_model_finds(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    root = written(scribble(rng, 220), tmp_path)
    model = EventModel(root)
    assert found(root) == model.events and len(model.events) > 80
    for _ in range(25):
        start, end = sorted(rng.choice(model.lsns) + rng.choice((0, 1)) for _ in range(2))
        wanted = [event for event in model.events if start <= event.commit_lsn < end]
        assert found(root, start=start, end=end) == wanted


@pytest.mark.parametrize("seed", range(2))
def test_ranges_that_follow_each_other_hold_every_event_once(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed + 100)
    root = written(scribble(rng, 150), tmp_path)
    model = EventModel(root)
    cuts = [0, *sorted(rng.sample(model.lsns, 12)), None]
    parts = [found(root, start=a or 0, end=b) for a, b in itertools.pairwise(cuts)]
    assert [event for part in parts for event in part] == model.events


def test_batches_of_any_size_hold_the_same_events(tmp_path: Path) -> None:
    root = written(scribble(random.Random(7), 150), tmp_path)
    wanted = EventModel(root).events
    columns = ["commit_lsn", "lsn", "identity", "body"]
    for rows, size in ((1, 1 << 20), (3, 1 << 20), (1000, 1), (1000, 2500)):
        options: dict[str, Any] = {"batch_rows": rows, "batch_bytes": size}
        got = []
        for batch in event_batches(root, columns, **options):
            assert 0 < len(batch) <= rows
            assert len(batch) == 1 or len(batch.bodies) <= size
            got += [
                (*(batch.columns[name][i] for name in columns[:3]), batch.body(i))
                for i in range(len(batch))
            ]
        assert got == [(e.commit_lsn, e.lsn, e.number, e.body) for e in wanted]


def test_arrow_batches_hold_the_same_events(tmp_path: Path) -> None:
    root = written(scribble(random.Random(3), 120), tmp_path)
    names = ("commit_lsn", "lsn", "event", "queue", "identity", "unit_id", "body")
    batches = event_batches(root, [*names, "commit_time", "priority"])
    rows = [row for batch in batches for row in batch.to_arrow().to_pylist()]
    wanted = EventModel(root).events
    assert [Decided(*(row[name] for name in names)) for row in rows] == wanted
    assert all((row["priority"] is None) == (row["event"] != "PUT") for row in rows)
    assert all(row["commit_time"].tzinfo is not None for row in rows)


# ---- holes and damage ----


def with_hole(tmp_path: Path) -> tuple[Path, list[int], int]:
    """Five segments, the third of which is gone; LSNs where each began. A unit began in the first
    and ended in the second, others from the second to the fourth and from the fourth to the
    fifth."""
    store = started()
    made = {unit: [w.put(unit * 10 + n, unit=unit) for n in range(2)] for unit in (5, 6, 7)}
    bases, firsts = [store.base], {}
    for segment, (begins, ends) in enumerate([(5, 0), (6, 5), (0, 0), (7, 6), (0, 7)], 1):
        if segment > 1:
            store.mark()  # without its successor a segment is read to its newest mark
            store.roll()
            bases.append(store.base)
        if begins:
            firsts[begins] = store.append(made[begins][0])[0]
        store.append(w.put(segment))
        if ends:
            store.append(made[ends][1], w.commit(ends, firsts[ends], made[ends]))
    root = written(store, tmp_path)
    (root / "journal" / "0000000003.psj").rename(root / "journal" / "0000000003.away")
    (root / "archive").mkdir()
    for number in (1, 2):
        name = f"{number:010d}.psj"
        (root / "journal" / name).rename(root / "archive" / f"0000000000-{name}")
    return root, bases, firsts[6]


def test_a_hole_is_refused_with_its_lsns(tmp_path: Path) -> None:
    root, bases, _ = with_hole(tmp_path)
    with pytest.raises(JournalDataLoss) as caught:
        found(root, start=bases[1])
    assert "are not there any more" in str(caught.value)
    assert f"records from LSN {bases[1] + 4096 * 4} to " in str(caught.value)
    # without a start the reader begins behind the hole, and says nothing of a unit from before it
    assert numbers(root) == [("PUT", n) for n in (4, 5, 70, 71)]


def test_of_a_unit_with_records_in_a_hole_nothing_is_given(tmp_path: Path) -> None:
    root, bases, first = with_hole(tmp_path)
    report = EventReport()
    got = numbers(root, start=bases[0] + 4096, on_loss="skip", report=report)
    assert got == [("PUT", n) for n in (1, 2, 50, 51, 4, 5, 70, 71)]
    assert report.incomplete == 1 and len(report.lost) == 2
    assert f"of unit of work 6, which began at LSN {first}, the records before" in report.lost[1]
    with pytest.raises(JournalDataLoss, match="of unit of work 6, which began at"):
        numbers(root, start=bases[3])


def test_a_prepared_unit_whose_records_are_gone_is_refused_or_counted(tmp_path: Path) -> None:
    store = started()
    prepared_over_restarts(store, 20)
    at = store.append(w.end_prepared(w.COMMIT_PREPARED, 20), w.put(1))[0]
    root = written(store, tmp_path)
    (root / "journal" / "0000000001.psj").unlink()
    with pytest.raises(JournalDataLoss, match="of unit of work 20, which began at LSN"):
        numbers(root, start=at)
    (root / "journal" / "0000000002.psj").unlink()
    with pytest.raises(JournalDataLoss, match="of unit of work 20 the records before LSN"):
        numbers(root, start=at)
    report = EventReport()
    assert numbers(root, start=at, on_loss="skip", report=report) == [("PUT", 1)]
    assert report.incomplete == 1
    report = EventReport()
    assert numbers(root, report=report) == [("PUT", 1)] and report.begun_before == 1


def test_damage_is_refused_by_file_and_offset(tmp_path: Path) -> None:
    store = started()
    where = store.append(w.put(1, bytes(100)))[0] - store.base
    store.append(w.put(2))
    root = written(store, tmp_path)
    path = root / store.path
    data = bytearray(path.read_bytes())
    data[where + 4] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(DamagedFile) as caught:
        numbers(root)
    assert caught.value.file == store.path and caught.value.offset > 0


# ---- the engine ----


@pytest.mark.parametrize("seed", range(2))
def test_events_of_a_random_workload_are_those_of_the_model(directory: Path, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(2):
        with penstock.connect("QM1", home=directory.parent) as qm:
            work(qm, rng, 150)
            durable = qm.status().durable_lsn
            model = EventModel(directory, durable)
            assert found(directory, durable_lsn=durable) == model.events
            for start in rng.sample(model.lsns, 5):
                wanted = [event for event in model.events if event.commit_lsn >= start]
                assert found(directory, start=start, durable_lsn=durable) == wanted
        assert found(directory) == EventModel(directory).events


SMALL = {"segment_size": 128 << 10, "journal_limit": 1 << 20, "ring_size": 1 << 18}


def test_journal_and_archive_are_one_and_moved_messages_come_once(home: Path) -> None:
    penstock.create("QM1", home, logging="linear", **SMALL)
    put, got, committed = [], [], []
    with penstock.connect("QM1", home) as qm:
        qm.define("QLOCAL", "KEPT", defpsist=True)
        qm.define("QLOCAL", "Q", defpsist=True)
        with qm.open("KEPT") as kept, qm.open("Q") as queue:
            with qm.transaction():
                queue.put(b"prepared")
                qm.prepare(penstock.Xid(7, b"early"))
            for n in range(300):
                if n % 30 == 0:
                    kept.put(b"kept %d" % n)
                    committed.append(b"kept %d" % n)
                queue.put(b"%06d" % n * 1500)
                put.append(b"%06d" % n * 1500)
                got.append(queue.get().data)
                if n % 40 == 39:
                    qm.checkpoint()
            qm.commit_prepared(penstock.Xid(7, b"early"))
    root = home / "QM1"
    assert list(root.glob("archive/*.psj")) and got == put
    model = EventModel(root)
    types = [event for segment in list_segments(root) for event in types_in(segment)]
    assert b"MOVED" in types and b"COMMIT_PREPARED" in types
    assert found(root) == model.events
    assert [event.body for event in events(root, queues=["KEPT"])] == committed
    last = list(events(root, queues=["Q"]))[-1]
    assert (last.kind, last.body) == ("PUT", b"prepared")
    assert found(root, start=last.commit_lsn) == model.events[-1:]


def types_in(segment: SegmentFile) -> list[bytes]:
    return [event for batch in scan(segment, ["event"]) for event in batch.columns["event"]]


def test_every_kind_has_a_name() -> None:
    assert KINDS == ("PUT", "GET", "EXPIRE", "OBJECT_DELETE", "CLEAR")

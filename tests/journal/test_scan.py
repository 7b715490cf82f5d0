"""The journal as a table: scanned columns are what the cffi reader finds, and nothing else."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import random
import shutil
import socket
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import writer as w
from reading import Q1, started
from scanning import Reference, assert_agrees
from test_core_agrees import directory, work

import penstock
from penstock.journal import DamagedFile, UnsupportedFile
from penstock.journal import scan as module
from penstock.journal.scan import (
    COLUMNS,
    EVENTS,
    JournalDataLoss,
    ScanReport,
    list_segments,
    scan,
    unit_outcomes,
)
from penstock.journal.store import archived_name

__all__ = ["directory"]
FLIPS = 400  # each is two scans of a file; test_scan.c flips every bit of a segment
GOLDEN = Path(__file__).resolve().parent / "golden" / "v2"


@pytest.fixture(autouse=True)
def forget_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores that tests write have one id; what a name meant in another one is forgotten."""
    monkeypatch.setattr(module, "_names_of", {})


def on_disk(store: w.Store | dict[str, bytes], root: Path) -> Path:
    files = store.files if isinstance(store, w.Store) else store
    for path, data in {**files, "qm.toml": w.QM_TOML.encode()}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


def rows_of(directory: Path, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for segment in list_segments(directory):
        for batch in scan(segment, columns, **options):
            found += zip(*(batch.columns[name].tolist() for name in columns), strict=True)
    return found


# ---- agreement with the second reader ----


def test_every_column_of_the_golden_files_is_what_the_other_reader_finds(tmp_path: Path) -> None:
    root = Path(shutil.copytree(GOLDEN, tmp_path / "qm"))
    assert assert_agrees(root, list_segments(root)) > 10
    assert assert_agrees(root, list_segments(root), batch_rows=1, batch_bytes=0) > 10


@pytest.mark.parametrize("seed", range(3))
def test_every_column_of_a_random_workload_is_what_the_other_reader_finds(
    directory: Path, seed: int
) -> None:
    rng = random.Random(seed)
    rows = 0
    for turn in range(2):
        with penstock.connect("QM1", home=directory.parent) as qm:
            work(qm, rng, 200)
            durable = qm.status().durable_lsn
            rows += assert_agrees(directory, list_segments(directory, durable_lsn=durable))
        rows += assert_agrees(directory, list_segments(directory), batch_rows=7, verify=bool(turn))
    assert rows > 1000


def test_expiry_is_given_in_tenths_and_as_a_time(qm: penstock.QueueManager, home: Path) -> None:
    qm.define("QLOCAL", "Q")
    with qm.open("Q") as queue:
        queue.put(b"x", persistent=True, expiry=12.5)
        queue.put(b"y", persistent=True)
    segments = list_segments(home / "QM1", durable_lsn=qm.status().durable_lsn)
    assert_agrees(home / "QM1", segments)
    (batch,) = scan(segments[-1], ["expiry", "expiry_time", "put_time"], events=("PUT",))
    assert batch.columns["expiry"].tolist() == [125, -1]
    life = batch.columns["expiry_time"][0] - batch.columns["put_time"][0]
    assert life == np.timedelta64(12_500_000, "us") and np.isnat(batch.columns["expiry_time"][1])


# ---- choosing ----


def test_columns_come_in_the_requested_order_and_no_others() -> None:
    (segment, *_) = list_segments(GOLDEN)
    (batch, *_) = scan(segment, ["lsn", "event"])
    assert list(batch.columns) == ["lsn", "event"] and batch.bodies is None
    with pytest.raises(ValueError, match="body was not asked for"):
        batch.body(0)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"columns": ["nonsense"]}, "no column 'nonsense'; there are event, lsn"),
        ({"columns": ["object"]}, "no column 'object'"),
        ({"columns": [], "events": ["CHUNK"]}, "no event 'CHUNK'; there are PUT"),
        ({"columns": [], "on_damage": "ignore"}, "on_damage is 'refuse' or 'skip'"),
        ({"columns": [], "batch_rows": 0}, "batches of 0 rows"),
        ({"columns": [], "start_time": datetime(2026, 1, 1)}, "has no time zone"),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        scan(list_segments(GOLDEN)[0], **arguments)


def test_lsns_and_times_cut_out_the_same_rows_as_a_filter(directory: Path) -> None:
    with penstock.connect("QM1", home=directory.parent) as qm:
        work(qm, random.Random(5), 120)
    everything = rows_of(directory, "lsn", "time", "event")
    low, high = everything[len(everything) // 3], everything[2 * len(everything) // 3]
    assert rows_of(directory, "lsn", start_lsn=low[0], end_lsn=high[0]) == [
        (lsn,) for lsn, _, _ in everything if low[0] <= lsn < high[0]
    ]
    start, end = (moment[1].replace(tzinfo=timezone.utc) for moment in (low, high))
    assert rows_of(directory, "lsn", start_time=start, end_time=end) == [
        (lsn,) for lsn, time, _ in everything if low[1] <= time < high[1]
    ]
    assert rows_of(directory, "lsn", events=("GET", "COMMIT")) == [
        (lsn,) for lsn, _, event in everything if event in (b"GET", b"COMMIT")
    ]


# ---- segments ----


def test_segments_are_listed_in_order_with_their_times_and_can_be_sent_to_another_process(
    directory: Path,
) -> None:
    with penstock.connect("QM1", home=directory.parent) as qm, qm.open("ORDERS") as orders:
        for _ in range(300):
            orders.put(bytes(10_000))
        segments = list_segments(directory, durable_lsn=qm.status().durable_lsn)
        sent = pickle.loads(pickle.dumps(segments))
        assert sent == segments and len(segments) > 2
        assert [s.closed for s in segments] == [True] * (len(segments) - 1) + [False]
        for one, after in itertools.pairwise(segments):
            assert one.end_lsn == after.prev_end_lsn <= after.base_lsn
            assert one.first_us is not None and one.last_us == after.first_us
            assert one.first_us <= one.last_us
        assert assert_agrees(directory, sent) >= 300


def test_the_open_segment_is_read_to_the_newest_mark_and_not_beyond(tmp_path: Path) -> None:
    store = started()
    store.append(w.put(1))
    store.append(w.put(2))  # its mark records that 1 was durable, none records that of 2
    root = on_disk(store, tmp_path)
    assert rows_of(root, "sequence") == [(1,)]
    store.mark()
    assert rows_of(on_disk(store, tmp_path), "sequence") == [(1,), (2,)]
    store.append(w.put(3))
    on_disk(store, tmp_path)
    (segment,) = list_segments(root, durable_lsn=store.lsn)
    (batch,) = scan(segment, ["sequence"])
    assert batch.columns["sequence"].tolist() == [1, 2, 3]


def test_bytes_beyond_the_successors_word_are_never_rows(tmp_path: Path) -> None:
    store = started()
    store.append(w.put(1))
    store.restart(torn=store.batch([w.put(2)]))
    store.append(w.put(3))
    store.mark()
    assert rows_of(on_disk(store, tmp_path), "sequence") == [(1,), (3,)]


def test_a_leftover_of_a_retirement_that_was_cut_short_is_not_listed(tmp_path: Path) -> None:
    store = started()
    for number in (1, 2, 3):
        store.append(w.put(number))
        store.restart()
    root = on_disk(store, tmp_path)
    assert [s.number for s in list_segments(root)] == [1, 2, 3, 4]
    (root / "journal" / "0000000002.psj").unlink()
    assert [s.number for s in list_segments(root)] == [3, 4]


# ---- archives, and segments that go away ----


def archived(store: w.Store, root: Path, *numbers: int) -> Path:
    on_disk(store, root)
    (root / "archive").mkdir()
    for number in numbers:
        to_archive(root, number)
    return root


def to_archive(root: Path, number: int) -> None:
    """What a retirement does."""
    (root / "journal" / f"{number:010d}.psj").rename(root / "archive" / archived_name(0, number))


def four_segments() -> w.Store:
    store = started()
    for number in (1, 2, 3):
        store.append(w.put(number, b"body %d" % number))
        store.restart()
    store.append(w.put(4))
    store.mark()
    return store


def test_archives_are_read_as_if_they_had_stayed(tmp_path: Path) -> None:
    store = four_segments()
    root = archived(store, tmp_path, 1, 2)
    segments = list_segments(root)
    assert [(s.number, s.archived, s.closed) for s in segments] == [
        (1, True, True),
        (2, True, True),
        (3, False, True),
        (4, False, False),
    ]
    assert rows_of(root, "sequence", "queue") == [(n, b"ORDERS") for n in (1, 2, 3, 4)]
    assert_agrees(root, segments)


def test_a_segment_that_moves_to_the_archive_after_it_was_listed_is_followed(
    tmp_path: Path,
) -> None:
    root = archived(four_segments(), tmp_path)
    segments = list_segments(root)
    for number in (1, 2):
        to_archive(root, number)
    found = [b.columns["sequence"].tolist() for s in segments for b in scan(s, ["sequence"])]
    assert found == [[1], [2], [3], [4]]


def test_a_segment_that_is_gone_after_it_was_listed_is_reported_as_data_loss(
    tmp_path: Path,
) -> None:
    root = archived(four_segments(), tmp_path)
    first, second, *_ = list_segments(root)
    (root / first.file).unlink()
    with pytest.raises(JournalDataLoss, match=r"journal/0000000001.psj .*not there any more"):
        list(scan(first, ["lsn"], on_damage="skip"))
    # the name exists, for another use of the file
    page = bytearray((root / second.file).read_bytes())
    page[56:64] = (second.generation + 9).to_bytes(8, "little")
    page[4092:4096] = w.crc32c(bytes(page[:4092])).to_bytes(4, "little")
    (root / second.file).write_bytes(page)
    with pytest.raises(JournalDataLoss, match="recycled"):
        list(scan(second, ["lsn"]))


def test_a_segment_that_is_recycled_while_it_is_read_gives_no_rows_of_the_new_use(
    tmp_path: Path,
) -> None:
    store = started()
    for number in range(1, 7):
        store.append(w.put(number))
    store.mark()
    root = on_disk(store, tmp_path)
    (segment,) = list_segments(root)
    batches = scan(segment, ["sequence"], batch_rows=2)
    assert next(batches).columns["sequence"].tolist() == [1, 2]
    with open(root / segment.file, "r+b") as file:  # the writer's first step, in place
        file.seek(56)
        file.write((segment.generation + 1).to_bytes(8, "little"))
    with pytest.raises(JournalDataLoss, match="recycled while it was read"):
        next(batches)


def test_a_body_in_pieces_over_several_segments_is_put_together_or_counted_as_lost(
    tmp_path: Path,
) -> None:
    penstock.create("QM1", home=tmp_path, segment_size=128 << 10, journal_limit=8 << 20)
    body = random.Random(3).randbytes(700_000)
    with penstock.connect("QM1", home=tmp_path) as qm:
        qm.define("QLOCAL", "Q")
        with qm.open("Q") as queue:
            queue.put(bytes(120_000), persistent=True)
            queue.put(body, persistent=True)
    root = tmp_path / "QM1"
    segments = list_segments(root)
    assert len(segments) > 5
    bodies = [
        batch.body(i)
        for segment in segments
        for batch in scan(segment, ["body"], events=("PUT",), batch_bytes=1000)
        for i in range(len(batch))
    ]
    assert bodies[-1] == body
    (root / segments[-3].file).unlink()
    with pytest.raises(JournalDataLoss, match="in a segment that is gone"):
        list(scan(segments[-1], ["body"], events=("PUT",)))
    report = ScanReport()
    options: dict[str, Any] = {"events": ("PUT",), "on_damage": "skip", "report": report}
    (batch,) = scan(segments[-1], ["body", "body_length"], **options)
    assert batch.body(len(batch) - 1) is None and report.bodies_lost == 1
    assert batch.columns["body_length"][-1] == len(body)
    assert batch.to_arrow().column("body")[len(batch) - 1].as_py() is None


# ---- names ----


def test_the_name_of_a_queue_is_found_before_its_deletion_and_after(tmp_path: Path) -> None:
    store = started()
    store.append(w.put(1))
    store.restart()
    store.append(w.put(2), w.record(w.OBJECT_DELETE, queue=Q1))
    store.restart()
    store.append(w.define(1, 2, "LATER", {}), w.put(3, queue=(1, 2)), w.put(4, queue=(9, 1)))
    store.mark()
    root = on_disk(store, tmp_path)
    found = [
        batch.columns["queue"].tolist()
        for segment in reversed(list_segments(root))
        for batch in scan(segment, ["queue"], events=("PUT",))
    ]
    assert found == [[b"LATER", b""], [b"ORDERS"], [b"ORDERS"]]


def test_names_that_only_the_checkpoint_contains_are_found(directory: Path) -> None:
    with penstock.connect("QM1", home=directory.parent) as qm, qm.open("ORDERS") as orders:
        for _ in range(400):
            orders.put(bytes(10_000))
            orders.get()
        qm.checkpoint()
        orders.put(b"between")
        orders.get()
        qm.checkpoint()  # the older of the two does not need the first segment
        orders.put(b"last")
    segments = list_segments(directory)
    assert segments[0].number > 1  # the definitions were in the first one
    assert set(rows_of(directory, "queue", events=("PUT",))) == {(b"ORDERS",)}


# ---- Arrow ----


def test_arrow_batches_hold_the_same_rows_and_null_where_there_is_no_message(
    directory: Path,
) -> None:
    with penstock.connect("QM1", home=directory.parent) as qm:
        work(qm, random.Random(9), 100)
    reference = Reference(directory)
    rows = 0
    for segment in list_segments(directory):
        wanted = list(reference.rows(segment))
        got = [row for b in scan(segment, COLUMNS) for row in b.to_arrow().to_pylist()]
        assert len(got) == len(wanted)
        for row, want in zip(got, wanted, strict=True):
            for name, value in row.items():
                expected = want.get(name)
                if name == "queue" and not expected:
                    expected = None
                elif isinstance(expected, np.datetime64):
                    at = None if np.isnat(expected) else expected.item()
                    expected = at and at.replace(tzinfo=timezone.utc)
                elif isinstance(value, str):
                    expected = expected.decode()
                assert value == expected, name
        rows += len(got)
    assert rows > 100


def test_bodies_and_identifiers_in_arrow_are_the_same_memory(directory: Path) -> None:
    with penstock.connect("QM1", home=directory.parent) as qm:
        work(qm, random.Random(2), 50)
    segment = list_segments(directory)[-1]
    (batch,) = scan(segment, ["msg_id", "body"])
    assert batch.bodies is not None
    arrow = batch.to_arrow()
    assert arrow.column("body").buffers()[2].address == batch.bodies.ctypes.data
    assert arrow.column("msg_id").buffers()[1].address == batch.columns["msg_id"].ctypes.data


def test_texts_beyond_ascii_become_the_characters_that_the_other_reader_shows(
    tmp_path: Path,
) -> None:
    store = started()
    record = bytearray(w.put(1))
    at = record.index(b"MQSTR   ")
    record[at : at + 8] = b"\xe4\xf6\xfc     "
    record[4:8] = w.crc32c(bytes(record[8:]), w.crc32c(bytes(record[:4]))).to_bytes(4, "little")
    store.append(bytes(record))
    store.mark()
    (segment,) = list_segments(on_disk(store, tmp_path))
    (batch,) = scan(segment, ["format"], events=("PUT",))
    assert batch.to_arrow().to_pylist() == [{"format": "\xe4\xf6\xfc"}]


# ---- units ----


def test_outcomes_distinguish_committed_backed_out_dropped_and_open_units(tmp_path: Path) -> None:
    store = started()
    at = store.append(w.put(1, unit=5), w.put(2, unit=6))
    store.append(w.put(3, unit=7), w.put(4, unit=8, flags=w.COMMITS))
    store.append(w.backout(6, []))
    store.restart()
    store.append(w.put(5, unit=9), w.put(6))
    store.append(w.commit(5, at[0], [w.put(1, unit=5)]))
    store.mark()
    segments = list_segments(on_disk(store, tmp_path))
    outcomes = unit_outcomes(segments)
    states = {}
    for segment in segments:
        for batch in scan(segment, ["unit_id", "sequence"], events=("PUT",)):
            found = outcomes.states(batch.columns["unit_id"], segment.restart_epoch)
            states.update(zip(batch.columns["sequence"].tolist(), found.tolist(), strict=True))
    assert states == {
        1: b"committed",
        2: b"backed out",
        3: b"backed out",  # dropped by the restart
        4: b"committed",
        5: b"open",
        6: b"committed",
    }
    one, two = (unit_outcomes([segment]) for segment in segments)
    for name in ("committed", "backed_out", "prepared"):
        assert getattr(one + two, name).tolist() == getattr(outcomes, name).tolist()


def test_each_prepared_unit_that_a_record_ends_is_a_row_and_has_its_outcome(tmp_path: Path) -> None:
    store = started()
    for unit in range(5, 10):
        put = w.put(unit, unit=unit)
        store.append(w.prepare(unit, w.xid(1, b"g%d" % unit), store.append(put)[0], [put], puts=1))
    committed = store.append(w.end_prepared(w.COMMIT_PREPARED, 5, 7, 8))[0]
    undone = store.append(w.end_prepared(w.BACKOUT_PREPARED, 6))[0]
    store.append(w.put(20))
    store.mark()
    root = on_disk(store, tmp_path)
    events = ("COMMIT_PREPARED", "BACKOUT_PREPARED", "PUT")
    wanted = [(n, n) for n in range(5, 10)]
    ends = [(5, committed), (7, committed), (8, committed), (6, undone)]
    for rows in (1, 2, 3, 50):  # of a batch: a record's rows may be spread over several
        found = rows_of(root, "event", "unit_id", "lsn", "sequence", events=events, batch_rows=rows)
        assert [(unit, n) for event, unit, _, n in found if event == b"PUT"] == [*wanted, (0, 20)]
        assert [(unit, lsn) for event, unit, lsn, _ in found if event != b"PUT"] == ends
    segments = list_segments(root)
    states = unit_outcomes(segments).states(np.arange(5, 10), segments[0].restart_epoch)
    assert states.tolist() == [b"committed", b"backed out", b"committed", b"committed", b"prepared"]
    assert_agrees(root, segments)


def test_prepared_units_are_prepared_until_a_row_decides_each_of_them(tmp_path: Path) -> None:
    store = started()
    records = {unit: w.put(unit, b"x%d" % unit, unit=unit) for unit in (4, 5, 6, 7)}
    for unit, put in records.items():
        (lsn,) = store.append(put)
        image = w.taken(unit + 100, b"image", 0, unit=unit)
        store.append(image)
        name = w.xid(1, b"unit %d" % unit)
        store.append(w.prepare(unit, name, lsn, [put, image], puts=1, gets=1))
    store.restart()
    store.append(w.end_prepared(w.COMMIT_PREPARED, 4, 6), w.end_prepared(w.BACKOUT_PREPARED, 5))
    store.mark()
    root = on_disk(store, tmp_path)
    segments = list_segments(root)
    for rows in (1, 2, 100):
        assert assert_agrees(root, segments, batch_rows=rows) == 15
    assert rows_of(root, "event", "unit_id", events=("COMMIT_PREPARED", "BACKOUT_PREPARED")) == [
        (b"COMMIT_PREPARED", 4),
        (b"COMMIT_PREPARED", 6),
        (b"BACKOUT_PREPARED", 5),
    ]
    outcomes = unit_outcomes(segments)
    units = np.array([4, 5, 6, 7], dtype=np.uint64)
    found = outcomes.states(units, segments[0].restart_epoch).tolist()
    assert found == [b"committed", b"backed out", b"committed", b"prepared"]


def test_prepared_units_of_the_engine_are_rows(directory: Path) -> None:
    with penstock.connect("QM1", home=directory.parent) as qm, qm.open("ORDERS") as orders:
        orders.put(b"not persistent", persistent=False)
        for n in range(3):
            with qm.transaction():
                orders.put(b"%d" % n * 100_000)
                if n == 0:
                    orders.get(wait=0)
                qm.prepare(penstock.Xid(7, b"%d" % n))
        qm.commit_prepared(penstock.Xid(7, b"0"), penstock.Xid(7, b"1"))
        segments = list_segments(directory, durable_lsn=qm.status().durable_lsn)
        assert assert_agrees(directory, segments) >= 3 + 1 + 3 + 2
    events = [event for (event,) in rows_of(directory, "event")]
    assert events.count(b"PREPARE") == 3 and events.count(b"COMMIT_PREPARED") == 2
    assert events.count(b"TAKEN") == 1


# ---- damage ----


def test_damage_is_refused_by_file_and_offset_after_the_rows_before_it(tmp_path: Path) -> None:
    store = started()
    where = {n: store.append(w.put(n, bytes(100)))[0] - store.base for n in (1, 2, 3)}
    store.mark()
    files = store.files
    data = bytearray(files[store.path])
    data[where[2] + 300] ^= 4
    root = on_disk({**files, store.path: bytes(data)}, tmp_path)
    (segment,) = list_segments(root)
    seen = []
    with pytest.raises(DamagedFile) as raised:
        for batch in scan(segment, ["sequence"], events=("PUT",)):
            seen += batch.columns["sequence"].tolist()
    assert seen == [1] and raised.value.file == store.path
    assert raised.value.offset == where[2] and "CRC" in raised.value.text
    report = ScanReport()
    options: dict[str, Any] = {"events": ("PUT",), "on_damage": "skip", "report": report}
    kept = [b.columns["sequence"].tolist() for b in scan(segment, ["sequence"], **options)]
    assert [n for part in kept for n in part] == [1, 3]
    assert [error.offset for error in report.damage] == [where[2]]
    assert report.damaged_bytes == 4096


def test_a_damaged_header_is_refused_or_left_out_and_counted(tmp_path: Path) -> None:
    root = on_disk(four_segments(), tmp_path)
    path = root / "journal" / "0000000002.psj"
    whole = path.read_bytes()
    before = list_segments(root)
    for damaged in (b"", whole[:5000], whole[:-4096], b"\0" + whole[1:]):
        path.write_bytes(damaged)
        with pytest.raises(DamagedFile, match=r"0000000002\.psj"):
            list_segments(root)
        report = ScanReport()
        assert len(list_segments(root, on_damage="skip", report=report)) == 3
        assert len(report.damage) == 1
        with pytest.raises(DamagedFile, match=r"0000000002\.psj"):
            list(scan(before[1], ["lsn"]))
        report = ScanReport()
        assert not list(scan(before[1], ["lsn"], on_damage="skip", report=report))
        assert len(report.damage) == 1 and report.damaged_bytes > 0


def changed_header(path: Path, at: int, value: int) -> None:
    """Changes a field of a segment's header, whose CRC holds again."""
    data = bytearray(path.read_bytes())
    data[at : at + 8] = value.to_bytes(8, "little")
    data[4092:4096] = w.crc32c(bytes(data[:4092])).to_bytes(4, "little")
    path.write_bytes(data)


# its generation; the end of the segment before it, which lies in another one
@pytest.mark.parametrize(("at", "value"), [(56, 1), (88, 4096)])
def test_a_segment_that_does_not_follow_is_left_out_when_damage_is_skipped(
    tmp_path: Path, at: int, value: int
) -> None:
    root = on_disk(four_segments(), tmp_path)
    changed_header(root / "journal" / "0000000003.psj", at, value)
    with pytest.raises(DamagedFile, match=r"0000000003\.psj"):
        list_segments(root)
    report = ScanReport()
    found = list_segments(root, on_damage="skip", report=report)
    assert [(s.number, s.closed) for s in found] == [(1, True), (2, False), (4, False)]
    assert [error.rule for error in report.damage] == ["chain"]
    rows = [b.columns["sequence"].tolist() for s in found for b in scan(s, ["sequence"])]
    assert rows == [[1], [4]]  # of the second, whose end is not known, no batch is known durable


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "socket", "short", "half", "bytes"])
def test_no_file_makes_a_listing_that_skips_damage_fail(
    tmp_path: Path, kind: str, number: int
) -> None:
    root = on_disk(four_segments(), tmp_path)
    path = root / "journal" / f"{number:010d}.psj"
    whole = path.read_bytes()
    path.unlink()
    if kind == "link":
        path.symlink_to("elsewhere")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(os.path.relpath(path))
        bound.close()
    else:
        path.write_bytes(
            {"short": b"", "half": whole[: len(whole) // 2], "bytes": whole[::-1]}[kind]
        )
    report = ScanReport()
    found = list_segments(root, on_damage="skip", report=report)
    assert [s.number for s in found] == [n for n in (1, 2, 3, 4) if n != number]
    assert len(report.damage) == 1
    with pytest.raises(DamagedFile):
        list_segments(root)


def test_a_damaged_checkpoint_is_passed_over_when_damage_is_skipped(tmp_path: Path) -> None:
    root = on_disk(four_segments(), tmp_path)
    whole = list_segments(root)
    (root / "checkpoint").mkdir(exist_ok=True)
    (root / "checkpoint" / "0fffffffffffffff.psc").write_bytes(b"no checkpoint")
    with pytest.raises(DamagedFile, match="checkpoint"):
        list_segments(root)
    report = ScanReport()
    assert list_segments(root, on_damage="skip", report=report) == whole
    assert [error.file for error in report.damage] == ["checkpoint/0fffffffffffffff.psc"]


def test_a_record_of_a_newer_version_is_refused_even_when_damage_is_skipped(
    tmp_path: Path,
) -> None:
    store = started()
    store.append(w.record(w.GET, flags=64))
    store.mark()
    (segment,) = list_segments(on_disk(store, tmp_path))
    with pytest.raises(UnsupportedFile, match="flags 64"):
        list(scan(segment, ["lsn"], on_damage="skip"))


def test_flipped_bits_in_the_files_are_found_or_change_no_row(tmp_path: Path) -> None:
    root = Path(shutil.copytree(GOLDEN, tmp_path / "qm"))
    clean = [list(s_rows) for s_rows in map(list, _all_rows(root))]
    rng = random.Random(11)
    segments = list_segments(root)
    found = harmless = 0
    for _ in range(FLIPS):
        segment = rng.choice(segments)
        path = root / segment.file
        data = bytearray(path.read_bytes())
        at = rng.randrange(segment.end_lsn - segment.base_lsn)
        data[at] ^= 1 << rng.randrange(8)
        original = bytes(path.read_bytes())
        path.write_bytes(data)
        try:
            rows = list(_rows(segment))
            assert rows == clean[segments.index(segment)]
            harmless += 1
        except DamagedFile as error:
            assert error.file == segment.file and error.offset <= at + 4096 * 16
            found += 1
        kept = list(_rows(segment, on_damage="skip"))
        assert set(kept) <= set(clean[segments.index(segment)])
        path.write_bytes(original)
    print(f"{found} of {FLIPS} found, {harmless} in padding")
    assert found > FLIPS // 6


def _rows(segment: Any, **options: Any) -> Any:
    for batch in scan(segment, COLUMNS, batch_rows=100, **options):
        for i in range(len(batch)):
            values = [bytes(batch.columns[name][i].tobytes()) for name in batch.columns]
            yield (*values, batch.body(i))


def _all_rows(root: Path) -> list[Any]:
    return [_rows(segment) for segment in list_segments(root)]


# ---- beside a queue manager at work ----


def test_scans_beside_a_writer_that_recycles_give_true_rows_or_data_loss(tmp_path: Path) -> None:
    penstock.create("QM1", home=tmp_path, segment_size=256 << 10, journal_limit=4 << 20)
    program = (
        "import penstock, sys\n"
        "with penstock.connect('QM1', home=sys.argv[1]) as qm:\n"
        "    qm.define('QLOCAL', 'Q')\n"
        "    with qm.open('Q') as q:\n"
        "        for i in range(3000):\n"
        "            q.put(b'%08d' % i * 100, persistent=True, correl_id=b'%08d' % i)\n"
        "            q.get()\n"
        "            if i % 100 == 0: qm.checkpoint()\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])
    lost = rows = 0
    try:
        while writer.poll() is None:
            try:
                for segment in list_segments(tmp_path / "QM1"):
                    for batch in scan(segment, ["correl_id", "body", "event"]):
                        rows += _check_bodies(batch)
            except JournalDataLoss:
                lost += 1
    finally:
        assert writer.wait(timeout=60) == 0
    print(f"{rows} rows, {lost} times a segment was recycled meanwhile")
    assert rows > 0


def _check_bodies(batch: Any) -> int:
    puts = np.flatnonzero(batch.columns["event"] == b"PUT").tolist()
    for i in puts:
        assert batch.body(i) == bytes(batch.columns["correl_id"][i])[:8] * 100
    return len(puts)


def test_every_event_that_may_be_chosen_is_a_record_type() -> None:
    segment = list_segments(GOLDEN)[0]
    assert json.dumps(EVENTS)
    for event in EVENTS:
        for batch in scan(segment, ["event"], events=(event,)):
            assert set(batch.columns["event"].tolist()) == {event.encode()}
    assert os.path.isabs(segment.directory)

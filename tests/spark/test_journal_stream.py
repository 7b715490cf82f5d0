"""readStream over the journal: each event of a decided unit once, whatever triggers and deaths."""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from journal_query import DEATHS, Query, decided, linear

import penstock
from penstock.client.restore import restore
from penstock.journal import archive, scan
from penstock.spark.base import options as o
from penstock.spark.base.errors import DataLoss, OptionError, SourceError
from penstock.spark.base.schema import struct_type
from penstock.spark.source import journal_events
from penstock.spark.source.journal import JournalReader
from penstock.spark.source.journal_records import columns

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "journal"))

from event_model import EventModel
from test_core_agrees import work
from test_events import scribble, written

KIB = 1024


@pytest.fixture(autouse=True)
def forget_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores that tests write have one id."""
    monkeypatch.setattr(scan, "_names_of", {})


@pytest.fixture
def qm(home: Path) -> Iterator[penstock.QueueManager]:
    """QM1 with linear logging."""
    manager = linear(home)
    yield manager
    manager.close()


def put(qm: penstock.QueueManager, queue: str, *bodies: bytes, **fields: Any) -> None:
    with qm.queue(queue) as q:
        for body in bodies:
            q.put(body, **fields)


def fill(qm: penstock.QueueManager, count: int = 60) -> list[bytes]:
    """Puts and gets of 10 KiB, with checkpoints: most segments go into the archive."""
    bodies = [b"%06d" % n + b"x" * 10 * KIB for n in range(count)]
    with qm.queue("Q") as q:
        for n, body in enumerate(bodies):
            q.put(body)
            q.get()
            if n % 10 == 9:
                qm.checkpoint()
    return bodies


# ---- against the model ----


@pytest.mark.parametrize("seed", range(6))
def test_micro_batches_of_any_size_with_deaths_hold_every_event_once_in_order(
    home: Path, seed: int
) -> None:
    rng = random.Random(seed)
    root = written(scribble(rng, 220), home / "QM1")
    toml = root / "qm.toml"
    toml.write_text(toml.read_text() + '[journal]\nlogging = "linear"\n')
    model = EventModel(root)
    most = str(rng.choice((1, 300, 3000, 1 << 30)))
    query = Query(home, startingOffsets="earliest", maxBytesPerTrigger=most, minPartitions="3")
    for _ in range(2 * len(model.events)):
        query.trigger(rng.choice(DEATHS) if rng.random() < 0.4 else "")
    query.run()
    assert [decided(row) for row in query.rows] == [tuple(event) for event in model.events]
    assert len(model.events) > 80 and len(query.done) > 0
    if most == "1":
        assert all(len({row["commit_lsn"] for row in rows}) <= 1 for rows in query.done)


@pytest.mark.parametrize("seed", range(4))
def test_a_stream_beside_work_archive_and_restarts_holds_what_the_model_finds(
    home: Path, qm: penstock.QueueManager, seed: int
) -> None:
    rng = random.Random(seed)
    query = Query(home, startingOffsets="earliest", maxBytesPerTrigger="20k")
    for round_ in range(12):
        if round_ == 6:
            qm.commit()
            qm.close()
            qm = penstock.connect("QM1", home)
        xid = penstock.Xid(7, b"%d" % round_)
        with qm.transaction(), qm.queue("ORDERS") as orders:
            orders.put(b"prepared in round %d" % round_)
            qm.prepare(xid)
        work(qm, rng, 12)
        qm.checkpoint()
        if round_ % 3:
            (qm.commit_prepared if rng.random() < 0.7 else qm.backout_prepared)(xid)
        for _ in range(rng.randrange(4)):
            query.trigger(rng.choice(DEATHS) if rng.random() < 0.3 else "")
    put(qm, "Q", b"the last")
    query.run()
    model = EventModel(qm.path, qm.status().durable_lsn)
    assert list(qm.path.glob("archive/*.psj"))
    assert [decided(row) for row in query.rows] == [tuple(event) for event in model.events]
    query.die()
    qm.close()


def test_slices_cut_between_units_and_each_event_is_in_one(
    home: Path, qm: penstock.QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_events, "_STRETCH", 5000)
    work(qm, random.Random(3), 150)
    query = Query(home, startingOffsets="earliest", minPartitions="7")
    query.reader.initialOffset()
    start = query.begin()
    end = query.reader.latestOffset(start, query.reader.getDefaultReadLimit())
    parts = query.reader.partitions(start, end)
    assert len(parts) > 4
    read = [
        [decided(row) for batch in query.reader.read(part) for row in batch.to_pylist()]
        for part in parts
    ]
    assert [row for rows in read for row in rows] == [
        tuple(event) for event in EventModel(qm.path, qm.status().durable_lsn).events
    ]
    decisions = [{row[0] for row in rows} for rows in read]
    assert not any(a & b for n, a in enumerate(decisions) for b in decisions[n + 1 :])


# ---- what is read ----


def test_without_isolation_the_rows_are_the_records_by_lsn(
    home: Path, qm: penstock.QueueManager
) -> None:
    query = Query(home, startingOffsets="earliest", isolation="none", maxBytesPerTrigger="3000")
    work(qm, random.Random(1), 60)
    query.run()
    durable = qm.status().durable_lsn
    lsns = [row["lsn"] for row in query.rows]
    every = [
        lsn
        for segment in scan.list_segments(qm.path, durable_lsn=durable)
        for batch in scan.scan(segment, ["lsn"])
        for lsn in batch.columns["lsn"].tolist()
    ]
    assert lsns == every and len(query.done) > 20
    assert {row["commit_lsn"] for row in query.rows} == {None}
    assert "BACKOUT" in {row["event"] for row in query.rows}


def test_non_persistent_messages_copies_and_undone_work_are_no_rows(
    home: Path, qm: penstock.QueueManager
) -> None:
    query = Query(home, startingOffsets="earliest")
    put(qm, "Q", b"lost", persistent=False)
    put(qm, "OTHER", b"kept")
    with qm.queue("Q") as q:
        q.put(b"undone", syncpoint=True)
        qm.backout()
    fill(qm)  # the kept message is copied on the way
    query.run()
    assert query.bodies.count(b"kept") == 1
    assert b"lost" not in query.bodies and b"undone" not in query.bodies
    types = {row["event"] for row in query.rows}
    assert types == {"PUT", "GET"}


def test_a_unit_is_read_when_it_is_decided_and_not_before(
    home: Path, qm: penstock.QueueManager
) -> None:
    query = Query(home)
    assert query.trigger() == 0  # an empty micro-batch notes where the stream began
    with qm.queue("Q") as q:
        q.put(b"one", syncpoint=True)
        put_beside(home, b"beside")
        query.run()
        assert query.bodies == [b"beside"]
        q.put(b"two", syncpoint=True)
        qm.commit()
    query.run()
    assert query.bodies == [b"beside", b"one", b"two"]
    assert query.rows[1]["commit_lsn"] == query.rows[2]["commit_lsn"] > query.rows[2]["lsn"]


def put_beside(home: Path, body: bytes) -> None:
    """From a connection of its own."""
    with penstock.connect("QM1", home) as other, other.queue("Q") as q:
        q.put(body)


def test_a_deleted_queue_and_clear_are_rows_that_say_so(
    home: Path, qm: penstock.QueueManager
) -> None:
    query = Query(home, startingOffsets="earliest")
    put(qm, "OTHER", b"1", b"2")
    qm.clear("OTHER")
    qm.delete("QLOCAL", "OTHER")
    put(qm, "Q", b"3")
    query.run()
    assert [(row["event"], row["queue"]) for row in query.rows] == [
        ("PUT", "OTHER"), ("PUT", "OTHER"), ("GET", "OTHER"), ("GET", "OTHER"),
        ("OBJECT_DELETE", "OTHER"), ("PUT", "Q"),
    ]  # fmt: skip


def test_events_and_queues_are_chosen(home: Path, qm: penstock.QueueManager) -> None:
    for queue in ("ORDERS", "OTHER", "Q"):
        put(qm, queue, queue.encode())
    with qm.queue("Q") as q:
        q.get()

    def found(**given: str) -> list[tuple[str, str]]:
        query = Query(home, startingOffsets="earliest", **given)
        query.run()
        query.die()
        return [(row["event"], row["queue"]) for row in query.rows]

    assert found(events="get") == [("GET", "Q")]
    assert found(queue="Q, OTHER", events="put") == [("PUT", "OTHER"), ("PUT", "Q")]
    assert found(queuePattern="O*", events="put") == [("PUT", "ORDERS"), ("PUT", "OTHER")]
    assert found(queuePattern="?") == [("PUT", "Q"), ("GET", "Q")]
    assert found(queue="NONE") == []
    assert found(queue="Q,OTHER", isolation="none", events="put") == [
        ("PUT", "OTHER"), ("PUT", "Q"),
    ]  # fmt: skip


def test_journal_and_archive_are_one_also_when_segments_move_before_a_task_reads(
    home: Path, qm: penstock.QueueManager
) -> None:
    query = Query(home, startingOffsets="earliest", events="put")
    bodies = fill(qm, 12)
    start = query.begin()
    end = query.reader.latestOffset(start, query.reader.getDefaultReadLimit())
    parts = query.reader.partitions(start, end)
    before = len(list(qm.path.glob("archive/*.psj")))
    fill(qm, 60)
    assert len(list(qm.path.glob("archive/*.psj"))) > before
    found = [
        row["body"]
        for part in parts
        for batch in query.reader.read(part)
        for row in batch.to_pylist()
    ]
    assert found == bodies


# ---- where a stream begins ----


def test_a_new_stream_begins_where_starting_offsets_says(
    home: Path, qm: penstock.QueueManager
) -> None:
    put(qm, "Q", b"1")
    qm.maintain()
    moment = datetime.now(timezone.utc) + timedelta(milliseconds=1)
    while datetime.now(timezone.utc) < moment:
        pass
    lsn = qm.status().durable_lsn
    put(qm, "Q", b"2")
    starts = [
        {"startingOffsets": "earliest"}, {}, {"startingOffsets": "latest"},
        {"startingTime": moment.isoformat()}, {"startingLsn": str(lsn)},
        {"startingOffsets": "lsn", "startingLsn": str(lsn)},
        {"startingOffsets": "time", "startingTime": "2100-01-01T00:00"},
    ]  # fmt: skip
    queries = [Query(home, **given) for given in starts]
    for query in queries:
        query.run()
    put(qm, "Q", b"3")
    for query in queries:
        query.run()
        query.die()
    assert [query.bodies for query in queries] == [
        [b"1", b"2", b"3"], [b"3"], [b"3"], [b"2", b"3"], [b"2", b"3"], [b"2", b"3"], [b"3"],
    ]  # fmt: skip


@pytest.mark.parametrize("death", DEATHS[1:])
def test_the_first_micro_batch_keeps_its_begin_over_a_death(
    home: Path, qm: penstock.QueueManager, death: str
) -> None:
    query = Query(home)
    first = query.begin()
    put(qm, "Q", b"1")
    end = query.reader.latestOffset(first, query.reader.getDefaultReadLimit())
    query.log.append(query.again(end))
    query.die()
    put(qm, "Q", b"2")
    query.trigger(death)
    query.run()
    assert query.bodies == [b"1", b"2"]


def test_available_now_reads_what_was_there(home: Path, qm: penstock.QueueManager) -> None:
    put(qm, "Q", b"1", b"2", b"3")
    query = Query(home, startingOffsets="earliest", maxBytesPerTrigger="1")
    query.reader.prepareForTriggerAvailableNow()
    put(qm, "Q", b"later")
    query.run()
    assert query.bodies == [b"1", b"2", b"3"] and len(query.done) == 3
    query.die()
    query.run()
    assert query.bodies == [b"1", b"2", b"3", b"later"]


def test_a_stopped_queue_manager_is_read_and_neither_started_nor_kept_running(
    home: Path, qm: penstock.QueueManager
) -> None:
    query = Query(home, startingOffsets="earliest")
    put(qm, "Q", b"1")
    query.run()
    assert qm.status().attached == 1  # this process has one slot
    put(qm, "Q", b"2")
    qm.close()
    before = {file: file.stat().st_mtime_ns for file in (home / "QM1").rglob("*")}
    query.die()
    query.run()
    assert query.bodies == [b"1", b"2"]
    assert {file: file.stat().st_mtime_ns for file in (home / "QM1").rglob("*")} == before


# ---- what is refused, and what is lost ----


def test_circular_logging_is_refused_in_a_sentence(home: Path) -> None:
    penstock.create("QM1", home)
    with pytest.raises(SourceError, match="QM1 has circular logging, which writes over segments"):
        Query(home).begin()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"startingOffsets": "lsn"}, "startingOffsets=lsn goes with startingLsn"),
        ({"startingOffsets": "time", "startingLsn": "5"}, "goes with startingTime"),
        ({"startingOffsets": "latest", "startingLsn": "5"}, "goes with neither startingLsn nor"),
        ({"startingTime": "2026-01-01", "startingLsn": "5"}, "goes with neither"),
        ({"startingTime": "soon"}, "it takes a time such as"),
        ({"endingLsn": "5"}, "is one of a batch read of the journal, not of a stream over the"),
        ({"queue": "A", "queuePattern": "B*"}, "only one of them chooses the queues"),
        ({"queue": "A,,B"}, "option queue names '', which is no name of a queue"),
        ({"queuePattern": "A[B]"}, "option queuePattern is 'A\\[B\\]'; it takes a name"),
        ({"events": "put,commit"}, "events names COMMIT; there are PUT, GET, EXPIRE"),
        ({"isolation": "some"}, "it takes committed or none"),
        ({"maxMessagesPerTrigger": "5"}, "is one of a streaming source, not of a stream over the"),
    ],
)
def test_options_that_do_not_fit_are_refused(home: Path, given: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        Query(home, **given)


def test_a_start_behind_the_end_is_refused(home: Path, qm: penstock.QueueManager) -> None:
    with pytest.raises(SourceError, match="startingLsn is 123456789, but the journal of QM1 ends"):
        Query(home, startingLsn="123456789").begin()


def test_another_history_under_the_same_checkpoint_is_refused(
    home: Path, qm: penstock.QueueManager, tmp_path: Path
) -> None:
    query = Query(home, startingOffsets="earliest")
    put(qm, "Q", b"1")
    query.run()
    query.die()
    qm.backup(tmp_path / "copy")
    qm.close()
    penstock.delete("QM1", home)
    restore(tmp_path / "copy", "QM1", home)
    with pytest.raises(SourceError, match=r"timeline 0; QM1 has id [0-9a-f]+, timeline 1: it was"):
        query.trigger()
    penstock.delete("QM1", home)
    linear(home).close()
    with pytest.raises(SourceError, match="was created anew or restored, and a stream over it"):
        query.trigger()


def test_an_older_copy_of_the_directory_is_refused_however_far_it_has_come(
    home: Path, qm: penstock.QueueManager, tmp_path: Path
) -> None:
    qm.close()
    shutil.copytree(home / "QM1", tmp_path / "older")
    queries = [Query(home, startingOffsets="earliest", isolation=i) for i in ("committed", "none")]
    with penstock.connect("QM1", home) as again:
        fill(again, 5)
        for query in queries:
            query.run()
            query.die()
    penstock.delete("QM1", home)
    shutil.copytree(tmp_path / "older", home / "QM1")
    for query in queries:
        with pytest.raises(SourceError, match=r"ends at LSN \d+: its directory is an older copy"):
            query.trigger()
    with penstock.connect("QM1", home) as again:
        fill(again, 60)
        for query in queries:
            with pytest.raises(SourceError, match=r"other records there: its directory is an old"):
                query.trigger()
            query.die()


def prune(qm: penstock.QueueManager) -> None:
    removed = archive.prune(qm.path, datetime.now(timezone.utc))
    assert removed


@pytest.mark.parametrize("isolation", ["committed", "none"])
def test_pruned_records_are_data_loss_with_their_lsns_or_counted(
    home: Path, qm: penstock.QueueManager, isolation: str
) -> None:
    given = {"startingOffsets": "earliest", "events": "put", "isolation": isolation}
    bodies = fill(qm, 3)
    query, careless = Query(home, **given), Query(home, failOnDataLoss="false", **given)
    for one in (query, careless):
        one.run()
    bodies += fill(qm, 80)
    prune(qm)
    with pytest.raises(DataLoss, match=r"records from LSN \d+ to \d+ are not there any more"):
        query.run()
    careless.run()
    found = careless.bodies
    assert found[:3] == bodies[:3] and found[3:] == bodies[-len(found) + 3 :] and len(found) < 83
    progress = careless.reader.reportLatestOffset()
    assert progress is not None and progress["lost"] == 1 and progress["behind"] >= 0
    for one in (query, careless):
        one.die()


def test_what_was_pruned_before_the_stream_began_is_no_loss(
    home: Path, qm: penstock.QueueManager
) -> None:
    xid = penstock.Xid(7, b"early")
    with qm.transaction(), qm.queue("OTHER") as other:
        other.put(b"early")
        qm.prepare(xid)
    fill(qm)
    prune(qm)
    query = Query(home, startingOffsets="earliest", events="put", queue="OTHER")
    qm.commit_prepared(xid)
    put(qm, "OTHER", b"late")
    query.run()
    assert query.bodies == [b"late"]
    progress = query.reader.reportLatestOffset()
    assert progress is not None and progress["unitsBegunBefore"] == 1 and progress["lost"] == 0


def test_a_long_way_without_events_is_noted_in_the_checkpoint(
    home: Path, qm: penstock.QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_events, "_FAR", 100 * KIB)
    query = Query(home, startingOffsets="earliest", queue="OTHER")
    query.run()
    before = query.log[-1]["lsn"]
    fill(qm)
    query.run()
    assert query.log[-1]["lsn"] > before + 500 * KIB and not query.rows
    prune(qm)  # nothing that the stream needs
    query.die()
    put(qm, "OTHER", b"1")
    query.run()
    assert query.bodies == [b"1"]


# ---- the same in a batch read ----


def batch(home: Path, **given: str) -> list[dict[str, Any]]:
    base = {"queueManager": "QM1", "home": str(home), "mode": "journal", **given}
    reader = JournalReader(o.parse(base, o.READ), struct_type(columns()))
    read = [batch for part in reader.partitions() for batch in reader.read(part)]
    return [row for batch in read for row in batch.to_pylist()]


def test_a_batch_read_with_isolation_committed_has_the_same_events(
    home: Path, qm: penstock.QueueManager
) -> None:
    work(qm, random.Random(5), 80)
    model = EventModel(qm.path, qm.status().durable_lsn).events
    rows = batch(home, isolation="committed")
    assert [decided(row) for row in rows] == [tuple(event) for event in model]
    first, last = model[20].commit_lsn, model[60].commit_lsn
    some = batch(home, isolation="committed", startingLsn=str(first), endingLsn=str(last))
    assert [decided(row) for row in some] == [
        tuple(event) for event in model if first <= event.commit_lsn < last
    ]
    moment = rows[40]["commit_time"]
    later = batch(home, isolation="committed", startingTime=moment.isoformat())
    assert [row["lsn"] for row in later] == [r["lsn"] for r in rows if r["commit_time"] >= moment]
    with pytest.raises(OptionError, match="onDamage=skip and verify=true are of isolation=none"):
        batch(home, isolation="committed", onDamage="skip")

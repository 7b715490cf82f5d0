"""The journal through the server: the same rows as from the files, for those who may browse.

No Spark runs here; with Spark the tests of the journal run through a server with
``make spark-remote REMOTE="journal journal_queries"``.
"""

from __future__ import annotations

import json
import pickle
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from journal_query import DEATHS, Query, decided, linear
from remote_fixture import TOKEN, Allowed, Remote, with_tokens
from spark_fixture import NOWHERE

import penstock
from penstock import _engine
from penstock.journal import archive
from penstock.spark.base import options as o
from penstock.spark.base.errors import DataLoss, SourceError
from penstock.spark.base.schema import struct_type
from penstock.spark.datasource import PenstockDataSource
from penstock.spark.remote import place
from penstock.spark.source.journal import JournalReader
from penstock.spark.source.journal_records import columns

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "journal"))

from event_model import EventModel
from test_core_agrees import work

KIB = 1024
Rows = list[dict[str, Any]]


@pytest.fixture
def qm(home: Path) -> Iterator[penstock.QueueManager]:
    """QM1 with linear logging."""
    manager = linear(home)
    yield manager
    manager.close()


@pytest.fixture
def remote(qm: penstock.QueueManager, home: Path) -> Iterator[Remote]:
    made = Remote(home)
    yield made
    made.end()


@pytest.fixture
def allowed(qm: penstock.QueueManager, home: Path) -> Iterator[Allowed]:
    with with_tokens(home) as start:
        yield start


def fill(qm: penstock.QueueManager, queue: str = "Q", count: int = 60) -> None:
    """Puts and gets of 10 KiB, with checkpoints: most segments go into the archive."""
    with qm.queue(queue) as q:
        for n in range(count):
            q.put(b"%06d" % n + b"x" * 10 * KIB)
            if n % 3:
                q.get()
            if n % 10 == 9:
                qm.checkpoint()


def read(reader: Any) -> Rows:
    """The rows of a batch read, each partition by a task of its own."""
    found: Rows = []
    for part in reader.partitions():
        task = pickle.loads(pickle.dumps(reader))
        for batch in task.read(pickle.loads(pickle.dumps(part))):
            found += batch.to_pylist()
    return found


def far(remote: Remote, **given: str) -> Any:
    maker = PenstockDataSource({**remote.base, "mode": "journal", **given})
    return maker.reader(struct_type(columns()))


def near(home: Path, **given: str) -> JournalReader:
    own = {"queueManager": "QM1", "home": str(home), "mode": "journal", **given}
    return JournalReader(o.parse(own, o.READ), struct_type(columns()))


# ---- the same rows ----


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"isolation": "committed"},
        {"queue": "Q", "events": "PUT,GET"},
        {"startingLsn": "200000", "endingLsn": "400000"},
        {"verify": "true", "onDamage": "skip"},
    ],
    ids=["records", "events", "chosen", "range", "verified"],
)
def test_a_batch_read_has_the_rows_that_the_files_have(
    home: Path, qm: penstock.QueueManager, remote: Remote, given: dict[str, str]
) -> None:
    fill(qm)
    work(qm, random.Random(1), 40)
    assert list(qm.path.glob("archive/*.psj"))
    found = read(far(remote, **given))
    assert found == read(near(home, **given)) and len(found) > 15


@pytest.mark.parametrize("seed", range(3))
def test_a_stream_with_deaths_of_drivers_and_servers_has_each_event_once(
    home: Path, qm: penstock.QueueManager, remote: Remote, seed: int
) -> None:
    rng = random.Random(seed)
    query = Query(home, remote.base["endpoint"], startingOffsets="earliest",
                  maxBytesPerTrigger="20k", minPartitions="3")  # fmt: skip
    for round_ in range(8):
        work(qm, rng, 12)
        qm.checkpoint()
        for _ in range(rng.randrange(1, 4)):
            query.trigger(rng.choice(DEATHS) if rng.random() < 0.4 else "")
        if round_ % 3 == 2:
            remote.end()
            remote.start()
    query.run()
    model = EventModel(qm.path, qm.status().durable_lsn)
    assert [decided(row) for row in query.rows] == [tuple(event) for event in model.events]
    assert len(query.rows) > 50
    query.die()


def test_available_now_ends_where_it_was_begun_also_behind_a_restart_of_the_server(
    home: Path, qm: penstock.QueueManager, remote: Remote
) -> None:
    fill(qm, count=6)
    query = Query(home, remote.base["endpoint"], startingOffsets="earliest",
                  maxBytesPerTrigger="20k", events="PUT")  # fmt: skip
    query.reader.prepareForTriggerAvailableNow()
    assert query.trigger()
    fill(qm, count=3)
    remote.end()
    remote.start()
    query.run()
    assert len(query.rows) == 6
    query.die()


def test_a_stopped_queue_manager_is_read_and_not_started(
    home: Path, qm: penstock.QueueManager, remote: Remote
) -> None:
    fill(qm, count=6)
    rows = read(near(home))
    qm.close()
    assert read(far(remote)) == rows or not _engine.attached_processes(qm.path)
    assert not _engine.attached_processes(qm.path)


# ---- who reads what ----


def test_a_task_on_the_queue_managers_host_reads_the_files(
    home: Path, qm: penstock.QueueManager, remote: Remote
) -> None:
    fill(qm)
    reader = far(remote, home=str(home))
    parts = reader.partitions()
    remote.end()
    found = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    assert found == read(near(home))
    remote.start()


def test_a_task_beside_another_history_of_that_name_asks_the_server(
    home: Path, qm: penstock.QueueManager, remote: Remote, tmp_path: Path
) -> None:
    fill(qm, count=6)
    penstock.create("QM1", tmp_path)
    assert read(far(remote, home=str(tmp_path))) == read(near(home))


def test_no_path_is_sent_in_either_direction(
    home: Path, qm: penstock.QueueManager, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[bytes] = []
    written = place.Place._text
    monkeypatch.setattr(
        place.Place, "_text", lambda *given: said.append(written(*given)) or said[-1]
    )
    fill(qm)
    for given in ({}, {"isolation": "committed"}):
        reader = far(remote, **given)
        assert read(reader)
        said.append(json.dumps([part.to_json() for part in reader.partitions()]).encode())
    assert len(said) > 6
    assert not [text for text in said if str(home).encode() in text or b".psj" in text]


# ---- rights ----


def test_events_of_named_queues_need_the_right_to_browse_them(
    qm: penstock.QueueManager, allowed: Allowed
) -> None:
    fill(qm, "Q", 6)
    fill(qm, "OTHER", 6)
    own = allowed(("Q", "APP.*"))
    assert {row["queue"] for row in read(far(own, queue="Q", isolation="committed"))} == {"Q"}
    assert read(far(own, queuePattern="APP.*")) == []
    for given in ({}, {"queue": "Q,OTHER"}, {"queuePattern": "*"}, {"queuePattern": "APP.A*"}):
        with pytest.raises(SourceError, match="2035"):
            read(far(own, **given))
        with pytest.raises(SourceError, match="2035"):
            Query(NOWHERE, token=TOKEN, endpoint=own.base["endpoint"], **given).run()
    with pytest.raises(SourceError, match="no right to browse"):
        read(far(allowed(("*",), ("get", "put"))))


def test_rows_need_the_rights_that_their_plan_needed(
    qm: penstock.QueueManager, allowed: Allowed
) -> None:
    fill(qm, "OTHER", 6)
    parts = far(allowed()).partitions()
    with pytest.raises(SourceError, match="2035"):
        list(far(allowed(("Q",))).read(parts[0]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "records", "number": 1},
        {"kind": "records", "number": "../1", "generation": 1, "base_lsn": 0, "size": 1,
         "end_lsn": 1, "start": 0, "end": None, "closed": True},
        {"kind": "events", "start": 0, "end": -1, "since": 0, "first": 1, "durable_lsn": 9},
        {"kind": "events", "start": True, "end": 1, "since": 0, "first": 1, "durable_lsn": 9},
        {"kind": "ranges", "ranges": [["interval", "Q", [0, 9]]]},
    ],
    ids=["missing", "text", "negative", "bool", "of queues"],
)  # fmt: skip
def test_parts_that_are_none_are_refused(
    qm: penstock.QueueManager, remote: Remote, wrong: dict[str, Any]
) -> None:
    reader = far(remote)
    text = reader._place._text("rows", {"partition": wrong})
    with pytest.raises(Exception, match="partition"):
        list(reader._place._connected().read(text))


def test_a_part_beyond_the_end_of_its_file_has_no_more_than_the_file(
    home: Path, qm: penstock.QueueManager, remote: Remote
) -> None:
    fill(qm)
    reader = far(remote)
    parts = reader.partitions()
    parts[-1].numbers.update(size=1 << 60, end_lsn=1 << 61, base_lsn=7)
    with pytest.raises(SourceError, match="no batch here"):
        list(reader.read(parts[-1]))
    assert list(reader.read(parts[0]))


# ---- what is gone ----


def test_segments_that_were_removed_are_data_loss_or_a_row_that_says_so(
    home: Path, qm: penstock.QueueManager, remote: Remote
) -> None:
    fill(qm)
    firm, loose = far(remote), far(remote, failOnDataLoss="false")
    parts = firm.partitions()
    for one in archive.segments(qm.path):
        shutil.move(one.file, home / one.file.name)
    with pytest.raises(DataLoss, match="not there any more"):
        list(firm.read(parts[0]))
    (lost,) = [row for batch in loose.read(parts[0]) for row in batch.to_pylist()]
    assert (lost["event"], lost["segment"]) == ("LOST", parts[0].numbers["number"])
    query = Query(home, remote.base["endpoint"], startingOffsets="lsn", startingLsn="4096")
    with pytest.raises(DataLoss):
        query.run()
    query.die()

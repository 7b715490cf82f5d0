"""Parts of queues and units for reads side by side, and the journal, over a server."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock import flight
from penstock.errors import MQError
from penstock.flight.access import Access
from penstock.flight.client import RemoteQueueManager
from penstock.flight.server import Limits
from penstock.journal.events import COLUMNS, KINDS, event_batches, schema_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "journal"))

from test_core_agrees import work

Serve = Callable[..., str]


@pytest.fixture
def remote(serve: Serve) -> Iterator[RemoteQueueManager]:
    with flight.connect(serve(), "QM1", retry_seconds=10) as made:
        yield made


@pytest.fixture
def worked(qm: penstock.QueueManager, remote: RemoteQueueManager) -> penstock.QueueManager:
    """With the queues that work() uses."""
    for name in ("ORDERS", "OTHER"):
        qm.define("QLOCAL", name, defpsist=True)
    return qm


def fill(qm: penstock.QueueManager, count: int, queue: str = "Q") -> list[bytes]:
    """Messages in delivery order."""
    bodies = [b"%06d" % n for n in range(count)]
    with qm.open(queue) as q:
        q.put_batch(bodies, persistent=True, priority=[9 - n * 10 // count for n in range(count)])
    return bodies


def bodies_of(reader: pa.RecordBatchReader) -> list[bytes]:
    found: list[bytes] = reader.read_all().column("body").to_pylist()
    return found


# ---- parts ----


def test_ranges_have_each_message_once_and_none_that_came_later(
    qm: penstock.QueueManager, remote: RemoteQueueManager
) -> None:
    bodies = fill(qm, 5000)
    parts = remote.ranges("Q", 7)
    assert len(parts) == 7
    fill(qm, 100)
    read = [bodies_of(remote.browse("Q", ["priority"], part)) for part in parts]
    assert [body for some in read for body in some] == bodies
    assert max(map(len, read)) < 1500
    assert remote.ranges("Q", 1) and len(bodies_of(remote.browse("Q"))) == 5100
    for wrong in (0, -1, 100_001, 1.5):
        with pytest.raises(penstock.InvalidValue):
            remote.ranges("Q", wrong)  # type: ignore[arg-type]


def test_an_empty_queue_has_one_range_without_messages(
    qm: penstock.QueueManager, remote: RemoteQueueManager
) -> None:
    (part,) = remote.ranges("Q", 4)
    assert bodies_of(remote.browse("Q", part=part)) == []


def test_a_unit_is_read_in_parts_across_its_prepared_units(
    qm: penstock.QueueManager, remote: RemoteQueueManager
) -> None:
    bodies = fill(qm, 1000)
    qm.alter("QMGR", maxumsgs=300)
    with remote.take("Q", unit="t") as taken:
        for first, last in ((0, 1), (0, 300), (299, 301), (300, 600), (250, 950), (999, 1000)):
            assert bodies_of(taken.read(first=first, last=last)) == bodies[first:last]
        assert bodies_of(taken.read(first=990)) == bodies[990:]
        assert bodies_of(taken.read(first=1000)) == bodies_of(taken.read(first=5000)) == []
        assert bodies_of(taken.read(["priority"])) == bodies
        with pytest.raises(penstock.InvalidValue, match="from 5 to 5 has none"):
            taken.read(first=5, last=5)
        taken.commit()


# ---- the journal ----


def test_the_journal_has_the_events_of_the_files_with_every_column(
    worked: penstock.QueueManager, remote: RemoteQueueManager
) -> None:
    work(worked, random.Random(5), 150)
    found = remote.journal().read_all()
    lsn = worked.status().durable_lsn  # the files say it a moment later
    batches = [b.to_arrow() for b in event_batches(worked.path, COLUMNS, durable_lsn=lsn)]
    assert found == pa.Table.from_batches(batches) and found.num_rows > 100
    assert found.schema == schema_of(COLUMNS)
    assert set(found.column("event").to_pylist()) <= set(KINDS)


def test_reads_from_end_to_end_have_each_event_once(
    worked: penstock.QueueManager, remote: RemoteQueueManager
) -> None:
    at, rng, rows = remote.journal_range(), random.Random(6), []
    begun, whole = at.end, []
    for _ in range(8):
        work(worked, rng, 15)
        now = remote.journal_range()
        part = remote.journal(start=at.end, end=now.end, history=at.history).read_all()
        rows += part.column("lsn").to_pylist()
        at = now
    whole = remote.journal(start=begun, end=at.end).read_all().column("lsn").to_pylist()
    assert rows == whole and len(rows) > 50


def test_events_are_chosen_by_queue_kind_and_column(
    qm: penstock.QueueManager, remote: RemoteQueueManager
) -> None:
    qm.define("QLOCAL", "R")
    fill(qm, 5)
    fill(qm, 3, "R")
    with qm.open("Q") as queue:
        queue.get()
    names = ["event", "queue", "body"]
    rows = remote.journal(["R"], names).read_all().to_pylist()
    assert [(r["event"], r["queue"], r["body"]) for r in rows] == [
        ("PUT", "R", b"%06d" % n) for n in range(3)
    ]
    assert remote.journal(events=["GET"], columns=["queue"]).read_all().num_rows == 1


def test_what_the_journal_does_not_have_is_refused(
    qm: penstock.QueueManager, remote: RemoteQueueManager
) -> None:
    fill(qm, 1)
    end = remote.journal_range().end
    for given, text in (
        ({"columns": ["colour"]}, "there is no column colour"),
        ({"events": ["BOIL"]}, "there is no event BOIL"),
        ({"start": end + (1 << 20)}, "is beyond"),
        ({"end": end + (1 << 20)}, "is beyond"),
        ({"history": "0" * 32 + " 0"}, "it was restored or created anew"),
    ):
        with pytest.raises(penstock.InvalidValue, match=text):
            remote.journal(**given)  # type: ignore[arg-type]
    for segment in (qm.path / "journal").glob("*.psj"):
        with segment.open("r+b") as file:
            file.seek(8192)
            file.write(b"\xff" * 4096)
    with pytest.raises(MQError) as caught:
        remote.journal().read_all()
    assert caught.value.reason == 2101 and ".psj" in str(caught.value)


def test_the_journal_needs_the_right_to_browse_its_queues(
    serve: Serve, qm: penstock.QueueManager
) -> None:
    fill(qm, 2)
    digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"  # of "test"
    cases: list[tuple[str, list[str] | None, bool]] = [
        ("browse", ["Q"], True),
        ("browse", None, False),
        ("browse", ["Q", "R"], False),
        ("get", ["Q"], False),
        ("get", None, False),
    ]
    for right, queues, allowed in cases:
        mine = ("*",) if right == "get" else ("Q",)
        address = serve({digest: Access("me", ("QM1",), mine, (right,))})
        with flight.connect(address, "QM1", token="test") as remote:
            if allowed:
                assert remote.journal(queues).read_all().num_rows == 2
            else:
                with pytest.raises(MQError, match="2035"):
                    remote.journal(queues)
            if right != "browse":
                with pytest.raises(MQError, match="2035"):
                    remote.journal_range()


# ---- limits ----


def test_a_record_batch_beyond_the_limit_is_refused_and_smaller_ones_are_sent(
    serve: Serve, qm: penstock.QueueManager
) -> None:
    qm.alter("QLOCAL", "Q", maxmsgl=8 << 20)
    limits = Limits(batch_bytes=4 << 20)
    with flight.connect(serve(limits=limits), "QM1", retry_seconds=5) as remote:
        with pytest.raises(MQError, match=r"2218.*too large"):
            remote.put_batch("Q", [b"x" * (5 << 20)])
        assert qm.recover() == []
    with flight.connect(serve(limits=Limits(batch_bytes=9 << 20)), "QM1") as remote:
        many: list[Any] = [b"%d" % n * 1000 for n in range(5_000)]
        assert remote.put_batch("Q", many).messages == 5_000
        assert bodies_of(remote.browse("Q")) == many

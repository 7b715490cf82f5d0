"""Commits that share a flush: each unit has the outcome that its own commit would have had."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock import Queue, QueueManager
from penstock._engine import commit_together

MIB = 1 << 20


@pytest.fixture
def two(home: Path) -> Iterator[tuple[QueueManager, Queue]]:
    """A queue manager with a small journal, and a queue of it."""
    penstock.create("QM1", home, segment_size=MIB, journal_limit=8 * MIB, ring_size=MIB)
    with penstock.connect("QM1", home) as qm:
        qm.define("QLOCAL", "Q", defpsist=True)
        with qm.queue("Q") as q:
            yield qm, q


def test_units_that_are_committed_together_share_a_flush(two: tuple[QueueManager, Queue]) -> None:
    qm, q = two
    units = [qm.unit() for _ in range(300)]  # more than one call of the core takes
    for n, unit in enumerate(units):
        q.put(str(n), unit=unit)
    before = qm.status().flushes
    assert commit_together(units) == [None] * 300
    assert 1 <= qm.status().flushes - before <= 4
    assert not any(unit.is_open for unit in units)
    assert [m.text for m in q.browse()] == [str(n) for n in range(300)]


def test_a_unit_that_cannot_be_committed_leaves_those_around_it_alone(
    two: tuple[QueueManager, Queue],
) -> None:
    qm, q = two
    ended, empty, idle = qm.unit(), qm.unit(), qm.unit()
    ended.commit()
    q.put("idle", unit=idle)
    other = qm.unit()
    for _ in range(400):  # what `idle` holds has to be freed
        q.put(bytes(40_000), syncpoint=False)
        q.get(syncpoint=False)
    end = time.monotonic() + 30
    while qm.status().units and time.monotonic() < end:
        time.sleep(0.02)
    first, last = qm.unit(), qm.unit()
    q.put("first", unit=first)
    q.put("last", unit=last)
    outcomes = commit_together([first, ended, idle, empty, last, last])
    reasons = [error.reason if isinstance(error, penstock.MQError) else error for error in outcomes]
    assert reasons == [None, 2255, 2003, None, None, 2255]
    assert [m.text for m in q.browse()] == ["first", "last"]
    other.backout()


def test_a_transaction_goes_on_behind_the_work_that_it_has_split_off(
    two: tuple[QueueManager, Queue],
) -> None:
    qm, q = two
    with qm.transaction() as unit:
        assert unit.split().commit() is None  # nothing was done
        q.put("a")
        first = unit.split()
        assert (first.count, unit.count) == (1, 0)
        q.put("b")
        second = unit.split()
        q.put("c")
        assert commit_together([first]) == [None]
        assert [m.text for m in q.browse()] == ["a"]
        second.backout()
    assert [m.text for m in q.browse()] == ["a", "c"]
    with pytest.raises(penstock.UnitNotAvailable):
        unit.split()


def test_what_was_split_off_and_dropped_is_backed_out(two: tuple[QueueManager, Queue]) -> None:
    qm, q = two
    q.put("there")
    with qm.transaction() as unit:
        assert q.get().text == "there"
        with pytest.warns(ResourceWarning, match="was not ended"):
            unit.split()
    assert [(m.text, m.backout_count) for m in q.browse()] == [("there", 1)]

"""Rows that are not persistent: kept until the commit, or the batch fails; none is lost in silence.

Steps are taken as in test_steps.py. Queue manager QM2 runs only while somebody is connected: no
test stays connected between the steps.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from spark_fixture import wait_until_alone
from spark_steps import TEXT, Bench, Put, batch_writer, stream_writer

import penstock
from penstock.spark.base import units
from penstock.spark.base.errors import DataLoss, SourceError
from penstock.spark.sink import keeper

Ends = tuple[Any, Callable[[list[Any]], None], Callable[[list[Any]], None]]


@pytest.fixture
def idle(bench: Bench, home: Path) -> Iterator[None]:
    """QM2 with a queue OUT whose messages are not persistent; nobody is connected."""
    penstock.create("QM2", home)
    with penstock.connect("QM2", home) as qm:
        qm.queue("OUT", defpsist=False).close()
    yield
    with penstock.connect("QM2", home) as qm:
        wait_until_alone(qm)
    penstock.delete("QM2", home)


def ends(bench: Bench, kind: str, **given: str) -> Ends:
    """A writer to OUT of QM2, its commit and its abort."""
    given = {"queue": "OUT", "queueManager": "QM2", **given}
    if kind == "batch":
        batch = batch_writer(bench, TEXT, **given)
        return batch, batch.commit, batch.abort
    stream = stream_writer(bench, **given)
    return stream, lambda told: stream.commit(told, 0), lambda told: stream.abort(told, 0)


def table(*values: str) -> pa.Table:
    return pa.table({"value": list(values)})


def on_queue(home: Path) -> list[tuple[bytes, bool]]:
    """Messages on OUT of QM2: body, whether it is persistent. Nothing is left prepared."""
    with penstock.connect("QM2", home) as qm, qm.queue("OUT") as queue:
        assert qm.recover() == []
        return [(message.data, message.persistent) for message in queue.browse()]


KINDS = pytest.mark.parametrize("kind", ["batch", "stream"])


@KINDS
def test_rows_without_a_persistence_are_persistent_whatever_the_queue_says(
    bench: Bench, home: Path, put: Put, idle: None, kind: str
) -> None:
    writer, commit, _ = ends(bench, kind)
    commit([put(writer, table("a"), 0), put(writer, table("b"), 1)])
    assert on_queue(home) == [(b"a", True), (b"b", True)]


def test_a_column_decides_for_its_rows_and_the_default_for_its_nulls(
    bench: Bench, put: Put
) -> None:
    bench.qm.alter("QLOCAL", "OUT", defpsist=False)
    rows = pa.table({"value": ["a", "b", "c"], "persistent": [True, False, None]})
    for persistence, of_null in (("persistent", True), ("queue", False)):
        columns = {"value": "string", "persistent": "boolean"}
        writer = batch_writer(bench, columns, queue="OUT", persistence=persistence)
        writer.commit([put(writer, rows)])
        assert [m.persistent for m in bench.target.get_batch(9)] == [True, False, of_null]


@KINDS
def test_rows_that_are_not_persistent_live_until_the_commit_though_nobody_else_is_connected(
    bench: Bench, home: Path, put: Put, idle: None, kind: str
) -> None:
    writer, commit, _ = ends(bench, kind, persistence="queue")
    told = [put(writer, table("a"), 0), put(writer, table("b", "c"), 1)]
    with penstock.connect("QM2", home):  # from the commit on it is the user who keeps them
        commit(told)
        assert on_queue(home) == [(b"a", False), (b"b", False), (b"c", False)]


@KINDS
def test_a_batch_of_which_messages_were_lost_before_its_commit_fails_and_none_is_visible(
    bench: Bench, home: Path, put: Put, idle: None, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "keep", lambda *_: None)
    writer, commit, abort = ends(bench, kind, persistence="queue")
    lost = put(writer, table("a", "b"), 0)
    kept = put(ends(bench, kind)[0], table("c"), 1)
    kept.sink, told = lost.sink, [lost, kept]
    with pytest.raises(DataLoss, match=r"2 of 3 messages are not persistent and were lost when"):
        commit(told)
    assert on_queue(home) == []
    abort(told)
    assert on_queue(home) == []


@KINDS
def test_the_process_that_keeps_the_queue_manager_running_leaves_when_the_batch_is_dropped(
    bench: Bench, home: Path, put: Put, idle: None, kind: str
) -> None:
    writer, _, abort = ends(bench, kind, persistence="queue")
    told = [put(writer, table("a"), 0), put(writer, table("b"), 1)]
    with penstock.connect("QM2", home) as qm:
        assert len(qm.process_list()) == 2  # one for both tasks
        abort(told)
        wait_until_alone(qm)
    assert on_queue(home) == []


def test_it_leaves_a_queue_manager_that_is_ending(
    bench: Bench, home: Path, put: Put, idle: None
) -> None:
    writer, commit, _ = ends(bench, "batch", persistence="queue")
    told = put(writer, table("a"))
    with penstock.connect("QM2", home, control=True) as qm:
        qm.end("controlled")
        wait_until_alone(qm)
    with pytest.raises(DataLoss, match="1 of 1 messages"):
        commit([told])


def test_it_leaves_when_the_process_above_has_ended(qm: penstock.QueueManager, home: Path) -> None:
    above = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    address = units.new_id()
    command = [sys.executable, "-m", keeper.__name__, "QM1", str(home), address, str(above.pid)]
    assert subprocess.check_output(command) == b"connected\n"
    assert qm.status().attached == 2
    above.communicate(b"\n")
    wait_until_alone(qm)


def test_a_task_whose_messages_nobody_keeps_fails_and_leaves_nothing(
    bench: Bench, home: Path, put: Put, idle: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, _, _ = ends(bench, "batch", persistence="queue")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(SourceError, match="QM2: no process could be started that keeps it running"):
        put(writer, table("a"))
    assert on_queue(home) == []

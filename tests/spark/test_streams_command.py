"""The ledger's entries on the command line: shown, and forgotten only when nobody needs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import penstock as library
from penstock.spark.base import units
from penstock.spark.base.ledger import ledger, look
from penstock.spark.source.abandoned import mark

NOW = int(time.time())
OLD = NOW - 10 * 86_400


class Command:
    """The command ``streams`` over QM1."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def run(self, *arguments: str, answer: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "penstock.spark.pipelines", "streams"]
        command += ["--queue-manager", "QM1", "--home", str(self.home), *arguments]
        return subprocess.run(command, input=answer, capture_output=True, check=False)

    def ok(self, *arguments: str) -> bytes:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def qm1(tmp_path: Path) -> Command:
    """QM1 with the queue Q."""
    with library.connect("QM1", tmp_path, create=True) as qm:
        qm.queue("Q").close()
    return Command(tmp_path)


@pytest.fixture
def known(qm1: Command) -> Command:
    """QM1 with the entries of two streams, a sink and a batch write."""
    with library.connect("QM1", qm1.home) as qm, ledger(qm) as book:
        book.add("stream:old", {"unit": 7, "queue": "Q", "time": OLD})
        book.add("stream:new", {"unit": 2, "queue": "Q", "time": NOW})
        book.add("sink:s1", {"version": 3, "messages": 30, "warnings": 0, "time": OLD})
        book.add("write:w1", {"version": 0, "time": OLD})
    return qm1


def shown(command: Command) -> dict[str, dict[str, object]]:
    rows = [json.loads(line) for line in command.ok("--json").splitlines()]
    return {row["id"]: row for row in rows}


def test_entries_are_shown_with_what_they_committed_and_left(known: Command) -> None:
    with library.connect("QM1", known.home) as qm, qm.open("Q") as queue:
        queue.put(b"1", persistent=True)
        queue.get(syncpoint=True)
        qm.prepare(units.stream_unit("old", 8, units.Part("IN", 0)))
    rows = shown(known)
    assert list(rows) == ["old", "new", "s1", "w1"]
    assert rows["old"] == {
        "kind": "stream", "id": "old", "unit": 7, "queue": "Q", "time": OLD,
        "running": False, "prepared": 1,
    }  # fmt: skip
    assert (rows["s1"]["messages"], rows["s1"]["running"], rows["s1"]["prepared"]) == (30, None, 0)
    text = known.ok().decode()
    assert "1 prepared" in text and time.strftime("%Y-%m-%d", time.gmtime(OLD)) in text


def test_a_queue_manager_without_a_ledger_has_none(qm1: Command) -> None:
    done = qm1.run()
    assert (done.returncode, done.stdout) == (1, b"")


def test_the_named_ones_are_forgotten_and_the_others_stay(known: Command) -> None:
    done = known.ok("--yes", "--forget", "old", "--forget", "s1").decode()
    assert done.splitlines() == ["forgotten: stream old", "forgotten: sink s1"]
    assert list(shown(known)) == ["new", "w1"]
    with library.connect("QM1", known.home) as qm:
        assert look(qm, "stream:old") is None and look(qm, "stream:new") is not None


def test_old_ones_are_forgotten_but_for_those_that_run_or_have_something_left(
    known: Command,
) -> None:
    with library.connect("QM1", known.home) as qm, qm.open("Q") as queue:
        queue.put(b"1", persistent=True, syncpoint=True)
        qm.prepare(units.task_unit("s1", 4, 0, 0, 0, "w2"))
        descriptor = mark(qm.path, "old")
    try:
        done = known.ok("--yes", "--forget-older-than", "5").decode()
    finally:
        os.close(descriptor)
    assert done == "forgotten: write w1\n"
    assert list(shown(known)) == ["old", "new", "s1"]


@pytest.mark.parametrize("name", ["old", "nobody"])
def test_nothing_is_done_when_a_named_one_is_running_or_unknown(known: Command, name: str) -> None:
    with library.connect("QM1", known.home) as qm:
        descriptor = mark(qm.path, "old")
    try:
        done = known.run("--yes", "--forget", "new", "--forget", name)
    finally:
        os.close(descriptor)
    assert done.returncode == 2 and done.stderr.endswith(b"nothing was done\n")
    assert name.encode() in done.stderr
    assert list(shown(known)) == ["old", "new", "s1", "w1"]


def test_without_yes_the_command_asks(known: Command) -> None:
    done = known.run("--forget", "old", answer=b"n\n")
    assert done.returncode != 0 and b"Forget 1 of 4 entries" in done.stdout
    assert len(shown(known)) == 4


def status(home: Path, *arguments: str) -> bytes:
    command = [sys.executable, "-m", "penstock.cli", "status", "QM1", *arguments]
    environment = {**os.environ, "PENSTOCK_HOME": str(home), "COLUMNS": "200"}
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout


def test_penstock_status_shows_the_streams_and_sinks_of_a_running_queue_manager(
    known: Command,
) -> None:
    with library.connect("QM1", known.home) as qm, qm.open("Q") as queue:
        queue.put(b"1", persistent=True)
        queue.get(syncpoint=True)
        qm.prepare(units.stream_unit("old", 8, units.Part("IN", 0)))
        descriptor = mark(qm.path, "new")
        try:
            rows = {row["id"]: row for row in json.loads(status(known.home, "--json"))["streams"]}
            text = status(known.home).decode()
        finally:
            os.close(descriptor)
    assert list(rows) == ["old", "new", "s1"]
    assert (rows["old"]["prepared"], rows["new"]["running"]) == (1, True)
    lines = {line.split()[1]: line for line in text.splitlines() if line.startswith("│ ")}
    assert "1 prepared" in lines["old"] and "10 d" in lines["old"]
    assert "running" in lines["new"] and " sink " in lines["s1"]


def test_penstock_status_of_a_queue_manager_without_spark_has_no_streams(qm1: Command) -> None:
    with library.connect("QM1", qm1.home):
        assert json.loads(status(qm1.home, "--json"))["streams"] == []
        assert b"streams" not in status(qm1.home)

"""The pipelines on a queue manager: their results match what was put, got and backed out."""

from __future__ import annotations

import io
import json
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from rich.console import Console

import penstock
from penstock.spark.pipelines.__main__ import main
from penstock.spark.pipelines.alerts import serve
from penstock.spark.pipelines.audit import COLUMNS, audit
from penstock.spark.pipelines.feed import feed
from penstock.spark.pipelines.formats import SEVERITY
from penstock.spark.pipelines.ingest import MOST_CHARACTERS, ingest
from penstock.spark.pipelines.journal import RECORD
from penstock.spark.pipelines.replay import KEPT, Replayed, replay
from penstock.spark.source.journal import columns
from pipeline_proof import run as running
from pipeline_proof.__main__ import run_command
from pipeline_proof.check import WrongCount, count_by_grep
from pipeline_proof.generate import generate
from pipeline_proof.run import Run

if TYPE_CHECKING:
    from spark_fixture import SparkFixture


WHOLE_SECONDS = 900  # of a test that runs several streams or jobs, on a busy machine


def test_the_columns_that_are_read_have_the_types_that_the_journal_gives_them() -> None:
    known = columns()
    for wanted in (COLUMNS, RECORD, KEPT):
        assert {name: known[name] for name in wanted} == dict(wanted)


def place(spark_qm: SparkFixture, **more: Any) -> dict[str, Any]:
    return {"queueManager": "QM1", "home": str(spark_qm.home), **more}


def test_an_audit_of_a_queue_manager_finds_what_was_done(spark_qm: SparkFixture) -> None:
    qm = spark_qm.qm
    with qm.queue("A") as a, qm.queue("B") as b:
        for number in range(10):
            a.put(b"%d" % number, priority=number)
        a.put(b"not in the journal", persistent=False, priority=9)
        for _ in range(4):  # 9 comes before the one that is not persistent
            a.get()
        with pytest.raises(ZeroDivisionError), qm.transaction():
            a.get()
            b.put(b"never")
            raise ZeroDivisionError
        xids = [penstock.Xid(1, b"audit", bytes([n])) for n in range(3)]
        for xid in xids:
            a.get(syncpoint=True)
            b.put(b"prepared", syncpoint=True)
            qm.prepare(xid)
        qm.commit_prepared(xids[0], xids[1])
        qm.backout_prepared(xids[2])
        found = audit(spark_qm.spark, place(spark_qm))
        assert [table.is_cached for table in found.kept] == [True, True]
        rows = {row.queue: row for row in found.queues.collect()}
        assert (rows["A"].puts, rows["A"].gets, rows["A"].never_got, rows["A"].bytes) == (
            10,
            5,
            5,
            10,
        )
        assert (rows["B"].puts, rows["B"].gets, rows["B"].never_got) == (2, 0, 2)
        assert rows["A"].backed_out == rows["B"].backed_out == 2
        assert 0 <= rows["A"].p50 <= rows["A"].p99 <= rows["A"].longest < 3600
        left = [(row.queue, row.priority) for row in found.never_got.collect()]
        assert sorted(left) == [("A", n) for n in range(5)] + [("B", 0)] * 2
        assert [(row.puts, row.gets) for row in found.backed_out.collect()] == [(1, 1), (1, 1)]
        [putter] = found.putters.collect()
        program = sys.executable if sys.argv[0] == "-c" else sys.argv[0]
        assert putter.messages == 12 and program.endswith(putter.put_appl_name)
        assert found.gaps.collect() == []
        a.get()  # nothing that happens later is in tables of the same reading
        assert [row.gets for row in found.queues.where("queue = 'A'").collect()] == [5]
        found.release()
        assert [table.is_cached for table in found.kept] == [False, False]


# ---- ingest ----


@pytest.mark.timeout(WHOLE_SECONDS)
def test_an_ingest_that_is_stopped_and_called_again_has_each_line_and_alert_once(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    files = generate(tmp_path, 40, seed=5)
    long = tmp_path / "long"
    long.write_bytes(b"26/03/01 20:10:40 ERROR a.B: " + b"x" * 100_000)
    total, expected = count_by_grep([*files, long])
    feed(spark_qm.qm, "L", [*files, long])
    options = place(spark_qm, queue="L", table=tmp_path / "table", checkpoint=tmp_path / "marks",
                    maxMessagesPerTrigger=30)  # fmt: skip
    first, second = ingest(spark_qm.spark, {**options, "trigger": "0 seconds"})
    try:
        while not first.recentProgress and first.isActive:
            time.sleep(0.2)
    finally:
        first.stop()
        second.stop()
    ingest(spark_qm.spark, options)
    table = spark_qm.spark.read.parquet(str(tmp_path / "table"))
    counts = table.groupBy("log_format", "level").count().collect()
    assert {(row.log_format, row.level): row["count"] for row in counts} == expected
    assert table.select("msg_id").distinct().count() == total == 201
    assert max(row.m for row in table.selectExpr("length(message) m").collect()) == 100_000
    alerts = tmp_path / "alerts"
    serve(spark_qm.qm, "L.ALERTS", alerts, threading.Event(), leave_when_empty=True)
    found = [json.loads(line) for line in alerts.read_text().splitlines()]
    due = {key: n for key, n in expected.items() if SEVERITY[key[1]] >= SEVERITY["ERROR"]}
    assert Counter((alert["log_format"], alert["level"]) for alert in found) == due
    assert max(len(alert["message"]) for alert in found) == MOST_CHARACTERS["message"]
    with spark_qm.qm.open("L") as lines:
        assert lines.depth == 0 and spark_qm.qm.recover() == []


def test_an_ingest_that_was_stopped_while_it_wrote_its_first_offset_begins_again(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    files = generate(tmp_path, 2, seed=5)
    total, _ = count_by_grep(files)
    feed(spark_qm.qm, "L", files)
    for stream in ("table", "alerts"):
        offsets = tmp_path / "marks" / stream / "offsets"
        offsets.mkdir(parents=True)
        (offsets / ".0.6e2c8c51.tmp").write_text("v1\n")
        (offsets / "..0.6e2c8c51.tmp.crc").write_bytes(b"crc")
    options = place(spark_qm, queue="L", table=tmp_path / "table", checkpoint=tmp_path / "marks")
    for _ in range(2):  # the second time the streams have begun
        ingest(spark_qm.spark, options)
        assert spark_qm.spark.read.parquet(str(tmp_path / "table")).count() == total


# ---- replay ----


def test_a_replay_puts_what_was_committed_in_the_interval_once_a_name(
    spark_qm: SparkFixture,
) -> None:
    qm = spark_qm.qm
    with qm.queue("A") as a:
        for number in range(10):
            a.put(b"%d" % number, priority=number, correl_id=b"%024d" % number)
        with pytest.raises(ZeroDivisionError), qm.transaction():
            a.put(b"never")
            raise ZeroDivisionError
        a.put(b"not in the journal", persistent=False)
        while a.depth:  # what became of a message later does not matter
            a.get()
    qm.queue("AGAIN").close()
    puts = spark_qm.table("A", "event string, lsn long", mode="journal").where("event = 'PUT'")
    lsns = sorted(row.lsn for row in puts.collect())
    middle = place(
        spark_qm, queue="A", to="AGAIN", name="x", startingLsn=lsns[2], endingLsn=lsns[7]
    )
    for _ in range(2):
        assert replay(spark_qm.spark, middle) == Replayed(5, 5)
        with qm.open("AGAIN") as again:
            found = [(m.data, m.priority, m.correl_id, m.persistent) for m in again.browse()]
        assert found == [(b"%d" % n, n, b"%024d" % n, True) for n in range(6, 1, -1)]
    replay(spark_qm.spark, {**middle, "name": "another"})
    with qm.open("AGAIN") as again:
        assert again.depth == 10
    late = {"queue": "A", "startingTime": "2100-01-01T00:00:00Z"}
    assert replay(spark_qm.spark, place(spark_qm, **late)) == Replayed(0, 0)


def test_a_replay_onto_a_queue_that_there_is_not_ends_before_the_journal_is_read(
    spark_qm: SparkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_qm.qm.queue("A").close()
    monkeypatch.setattr("penstock.spark.pipelines.replay.read_journal", None)
    with pytest.raises(penstock.UnknownObjectName, match="there is no queue NONE"):
        replay(spark_qm.spark, place(spark_qm, queue="A", to="NONE"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["audit", "--queue-manager", "NONE"], "there is no queue manager NONE in "),
        (["audit", "--queue-manager", "QM1", "--on-damage", "x"], "option onDamage "),
        (
            ["replay", "--queue-manager", "QM1", "--queue", "A", "--to", "NONE"],
            "MQRC_UNKNOWN_OBJECT_NAME (2085): there is no queue NONE",
        ),
    ],
)
def test_a_command_that_fails_reports_the_reason_in_one_line(
    spark_qm: SparkFixture,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    sentence: str,
) -> None:
    monkeypatch.setattr(sys, "argv", ["pipelines", *words, "--home", str(spark_qm.home)])
    with pytest.raises(SystemExit) as caught:
        main()
    said = capsys.readouterr().err
    assert caught.value.code == 2
    assert said.startswith("penstock: ") and said.count("\n") == 1 and sentence in said, said


# ---- all of them ----


class Quick(Run):
    """A run in the tests' session, without the first driver, which would start another Java."""

    def _kill_in_the_middle(self, total: int) -> None:
        assert self._service is not None
        self._service.kill()
        self.kills += 1
        self._service = self._start_service()


@pytest.mark.timeout(WHOLE_SECONDS)
def test_a_run_proves_its_counts(spark_qm: SparkFixture, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    output = io.StringIO()
    run = Quick(
        tmp_path / "run", generate(tmp_path, 20), Console(file=output, width=200), spark_qm.spark
    )
    run.run()
    last = output.getvalue().splitlines()[-1]
    assert f"verdict: PROVEN: {len(run.checks)} counts agree, 100 lines, " in last
    assert len(run.checks) > 20 and "DIFFERS" not in output.getvalue()
    run.remove()
    assert not (tmp_path / "run").exists()


def test_a_run_that_proves_nothing_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"\n \n")
    runner = CliRunner()
    arguments = ["--home", str(tmp_path / "home"), str(file)]
    done = runner.invoke(run_command, arguments)
    assert isinstance(done.exception, ValueError) and "no lines" in str(done.exception)

    def differs(self: Run) -> None:
        self.checks.add("lines", 1, 2)
        self.checks.evaluate()

    monkeypatch.setattr(running.Run, "run", differs)
    done = runner.invoke(run_command, arguments)
    assert done.exit_code == 2
    assert "verdict: NOT PROVEN: lines: 1; grep: 2; everything is kept in" in done.output
    with pytest.raises(WrongCount):
        Run(tmp_path, [file], Console(file=io.StringIO())).run()

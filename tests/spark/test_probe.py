"""Executors that cannot serve are found out before the first message is taken.

The tasks of most tests are processes in real namespaces, as those of a container would be; they are
given what Spark gives to a task, the pickled reader and partition.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType
from spark_fixture import SparkFixture, failing
from spark_steps import START, Bench, plan, rows

from penstock.spark.base import host, options
from penstock.spark.base.errors import OptionError
from penstock.spark.datasource import PenstockDataSource
from penstock.spark.source import stream
from penstock.spark.source.probe import Probe

TASK = """
import pickle, sys
reader, partition = pickle.load(open(sys.argv[1], "rb"))
try:
    print(sum(batch.num_rows for batch in reader.read(partition)), "rows")
except Exception as error:
    print(type(error).__name__, error)
"""
ELSEWHERE = {
    "a PID namespace": (["unshare", "--pid", "--fork", "--mount-proc"], "in another PID namespace"),
    "a /dev/shm": (
        ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/shm; exec "$@"', "x"],
        "is gone while process",
    ),
    "a user": (["setpriv", "--reuid", "65534", "--clear-groups"], "(2035)"),
    "a home that may not be written": (
        ["unshare", "--mount", "sh", "-c",
         'mount --bind "$PLACE" "$PLACE" && mount -o remount,ro,bind "$PLACE"; exec "$@"', "x"],
        "Read-only file system",
    ),
    "no home": (
        ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$PLACE"; exec "$@"', "x"],
        "there is no queue manager QM1 in",
    ),
}  # fmt: skip


def as_root(command: list[str]) -> list[str]:
    """The command with the rights to make namespaces: those of a user namespace for others."""
    if os.geteuid() == 0:
        return command
    return [command[0], "--map-root-user", *command[1:]] if command[0] == "unshare" else []


def run_task(
    home: Path, folder: Path, reader: Any, part: Any, command: list[str]
) -> subprocess.CompletedProcess[str]:
    file = folder / "task"
    file.write_bytes(pickle.dumps((reader, part)))
    for path in (folder, *folder.parents[:3]):
        path.chmod(path.stat().st_mode | 0o055)
    return subprocess.run(
        [*command, sys.executable, "-c", TASK, str(file)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PLACE": str(home), "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_a_task_that_cannot_attach_ends_the_probe_with_one_sentence_and_nothing_is_taken(
    bench: Bench, home: Path, tmp_path: Path, kind: str
) -> None:
    command, cause = ELSEWHERE[kind]
    bench.fill(0, 20)
    reader = bench.reader(probe="always")
    end = plan(reader, START)
    parts = reader.partitions(START, end)
    assert parts and all(isinstance(part, Probe) for part in parts)
    here = run_task(home, tmp_path, reader, parts[0], [])
    assert here.stdout == "0 rows\n", here.stderr
    if as_root(command):
        there = run_task(home, tmp_path, reader, parts[0], as_root(command))
        assert there.stdout.startswith("CannotServe queue manager QM1: MQRC_"), there
        assert cause in there.stdout and there.stdout.count("\n") == 1
        assert "executors need the PID namespace" in there.stdout
    assert len(bench.left()) == 20 and bench.qm.recover() == []
    reader.stop()


def test_a_probe_comes_once_a_run_and_before_the_first_message_that_is_taken(bench: Bench) -> None:
    reader = bench.reader(probe="always", maxMessagesPerTrigger="3")
    assert plan(reader, START) == START  # there is nothing to take: nobody is asked
    made = bench.fill(0, 6)
    end = plan(reader, START)
    assert end == {"unit": 0, "queue": "IN", "probe": 1} == plan(reader, START)
    assert rows_of_probe(reader, START, end) == [] and bench.left() == made
    first = plan(reader, end)
    assert rows(reader, end, first) == made[:3] and first["unit"] == 1 and "probe" not in first
    second = plan(reader, first)
    assert rows(reader, first, second) == made[3:]
    reader.stop()

    reader = bench.reader(probe="always")  # the query starts again: its executors may be others
    assert rows(reader, first, second) == made[3:]
    assert plan(reader, second) == second
    made = bench.fill(6, 8)
    end = plan(reader, second)
    assert end == {**second, "probe": 1} and bench.left() == made
    reader.stop()

    reader = bench.reader(probe="always")  # killed in the probe: Spark repeats it
    assert rows_of_probe(reader, second, end) == [] and bench.left() == made
    third = plan(reader, end)
    assert rows(reader, end, third) == made and third["unit"] == 3
    assert plan(reader, third) == third and bench.qm.recover() == []
    reader.stop()


def rows_of_probe(
    reader: stream.StreamReader, start: dict[str, Any], end: dict[str, Any]
) -> list[Any]:
    return [batch for part in reader.partitions(start, end) for batch in reader.read(part)]


def test_a_trigger_once_is_refused_where_a_probe_is_due_and_takes_nothing(bench: Bench) -> None:
    made = bench.fill(0, 2)
    reader = bench.reader(probe="always")
    reader._has_listener = True  # else it warns of something else
    with pytest.raises(OptionError, match=r"use Trigger.AvailableNow .* or option probe=never"):
        reader.latestOffset(START, ReadAllAvailable())
    assert bench.left() == made
    reader.stop()


@pytest.mark.parametrize(
    ("master", "is_local"),
    [("local", True), ("local[2]", True), ("local[*, 3]", True), ("local-cluster[1,1,1024]", False),
     ("spark://host:7077", False), ("yarn", False), (None, False)],
)  # fmt: skip
def test_a_probe_is_left_out_where_tasks_are_processes_of_the_same_jvm(
    master: str | None, is_local: bool
) -> None:
    for given in (["--conf", f"spark.master={master}"], ["--master", f"{master}"]):
        arguments = ["java", "SparkSubmit", *(given if master else []), "pyspark-shell"]
        assert host.runs_tasks_of(arguments) == is_local


def test_a_stream_whose_executors_are_on_another_host_fails_with_nothing_taken(
    spark_qm: SparkFixture, tmp_path: Path
) -> None:
    far = host.Host("far", "another boot", "another machine")

    class Far(PenstockDataSource):
        """A driver on the queue manager's host, with executors that are not there."""

        @classmethod
        def name(cls) -> str:
            return "faraway"

        def streamReader(self, schema: StructType) -> stream.StreamReader:
            class Reader(stream.StreamReader):
                def partitions(self, start: Any, end: Any) -> Any:
                    parts = super().partitions(start, end)
                    for part in parts:
                        part.where = far  # type: ignore[attr-defined]
                    return parts

            return Reader(options.parse(self.options, options.STREAM), schema)

    spark_qm.spark.dataSource.register(Far)
    spark_qm.qm.queue("OUT").close()
    bodies = [b"%d" % number for number in range(2000)]
    with spark_qm.qm.queue("IN") as queue:
        queue.put_batch(bodies)
        lines = spark_qm.spark.readStream.format("faraway").schema("body binary")
        lines = lines.options(queueManager="QM1", home=str(spark_qm.home), probe="always")
        sunk = spark_qm.set(lines.load("IN").writeStream, queue="OUT")
        sunk = sunk.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True)
        query = sunk.start()
        assert failing(query.awaitTermination).startswith("this task runs on ")
        assert queue.depth == 2000 and spark_qm.qm.recover() == []
    query = spark_qm.run(tmp_path / "cp", "IN", "OUT", columns="body binary", probe="always")
    assert sorted(spark_qm.bodies("OUT")) == sorted(bodies) and spark_qm.qm.recover() == []
    assert [progress.numInputRows for progress in query.recentProgress][:2] == [0, 2000]

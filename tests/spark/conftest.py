"""One Spark session for all tests of this folder: starting one takes seconds to a minute."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from remote_fixture import Allowed, Remote, with_tokens
from spark_fixture import STDERR, SparkFixture, served
from spark_steps import Bench, Put, Task

import penstock
import penstock.spark
from penstock.spark.datasource import PenstockDataSource
from penstock.spark.local import local_session
from spark_home import quick_home

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

LEAVE_SECONDS = 60
START_SECONDS = 400  # of a test that may have to start the session, on a busy machine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives each test of this folder that uses Spark the time to start the session."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(START_SECONDS))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session: two cores, few partitions, UTC, no web page, errors only in the log."""
    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch, _standard_error_in(folder / "stderr"):
        patch.setenv("SPARK_HOME", str(quick_home(folder / "home")))
        session = local_session(
            "penstock-tests",
            settings={
                # what runs for seconds is not worth the best code
                "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                "spark.ui.showConsoleProgress": "false",
                "spark.local.dir": str(folder / "local"),
                "spark.sql.warehouse.dir": str(folder / "warehouse"),
                STDERR: str(folder / "stderr"),
            },
        )
    yield session
    session.stop()


@contextmanager
def _standard_error_in(path: Path) -> Iterator[None]:
    """The standard error of processes started during the session, as a user would see it."""
    kept = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@pytest.fixture
def spark_qm(spark: SparkSession, qm: penstock.QueueManager, home: Path) -> Iterator[SparkFixture]:
    """The session with a new queue manager QM1, which Spark's processes have left afterwards."""
    with served(home) as endpoint:
        yield SparkFixture(spark, qm, home, endpoint)
    until = time.monotonic() + LEAVE_SECONDS
    while not qm.closed and len(others := qm.process_list()) > 1:  # Spark ends them unawaited
        assert time.monotonic() < until, f"still attached: {others}"
        time.sleep(0.02)


@pytest.fixture
def registered(spark: SparkSession) -> Iterator[None]:
    """Undoes what ``register`` does to the session, which other tests share."""
    yield
    spark.streams.removeListener(penstock.spark._listeners.pop(spark))
    spark.dataSource.register(PenstockDataSource)


@pytest.fixture
def bench(qm: penstock.QueueManager, home: Path) -> Iterator[Bench]:
    made = Bench(qm, home)
    yield made
    made.source.close()
    made.target.close()


@pytest.fixture
def remote(bench: Bench, home: Path) -> Iterator[Remote]:
    made = Remote(home)
    yield made
    made.end()


@pytest.fixture
def allowed(bench: Bench, home: Path) -> Iterator[Allowed]:
    with with_tokens(home) as start:
        yield start


@pytest.fixture
def put(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Runs a task: puts one table as a partition of a batch of a query."""

    def run(writer: Any, table: pa.Table, partition: int = 0, batch: int = 0) -> Any:
        task = Task("query-1", batch, partition)
        monkeypatch.setattr(pyspark.TaskContext, "get", lambda: task)
        return writer.write(iter(table.to_batches()))

    return run

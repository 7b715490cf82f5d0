"""The workers of Spark: what they have imported is not looked at by each collection of garbage."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from spark_fixture import SparkFixture

from penstock.spark.base import worker
from penstock.spark.base.schema import MESSAGE, struct_type
from penstock.spark.datasource import PenstockDataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

STEP_SECONDS = 60
_AS_A_WORKER = """
    import gc, sys
    from types import SimpleNamespace

    sys.modules["__main__"].__spec__ = SimpleNamespace(name="pyspark.daemon")
    from penstock.spark.base import worker

    class Cycle:
        def __init__(self):
            self.me = self

    def step(times=1):
        for _ in range(times):
            worker.keep_imports()
        frozen = gc.get_freeze_count()
        gc.collect()  # as pyspark/daemon.py does at the end of a step
        return frozen
"""


def _of_a_worker(program: str) -> list[str]:
    """What the program prints in a process that takes itself for a worker."""
    text = textwrap.dedent(_AS_A_WORKER) + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        check=True,
        text=True,
        timeout=STEP_SECONDS,
    )
    return done.stdout.split()


def test_a_worker_passes_over_what_it_has_imported() -> None:
    first, second = map(int, _of_a_worker("print(step()); import decimal; print(step())"))
    assert first > 1_000
    assert second > first


def test_only_the_first_steps_of_a_worker_make_anything_permanent() -> None:
    counts = _of_a_worker(
        """
        kept = []
        for n in range(12):
            kept.append([[] for _ in range(1000)])
            print(step())
        """
    )
    assert len(set(counts)) == worker._MOST
    assert len(set(counts[worker._MOST :])) == 1


def test_a_step_makes_its_own_garbage_permanent_never() -> None:
    counts = _of_a_worker(
        """
        import weakref

        step()
        worker.keep_imports()
        cycle = Cycle()
        gone = weakref.ref(cycle)
        del cycle
        step(times=3)  # the same step of Spark: a connection, then another one
        print(gone() is None)
        """
    )
    assert counts == ["True"]


def test_a_process_of_the_user_is_left_alone() -> None:
    before = gc.get_freeze_count()
    assert not worker.is_worker()
    worker.keep_imports()
    assert gc.get_freeze_count() == before


def test_sparks_own_workers_are_such(spark_qm: SparkFixture) -> None:
    class Counted(DataSourceReader):
        """Reads as usual; what comes out is the number of permanent objects afterwards."""

        def __init__(self, reader: DataSourceReader) -> None:
            self.reader = reader

        def partitions(self) -> Sequence[InputPartition]:
            return self.reader.partitions()

        def read(self, partition: InputPartition) -> Iterator[Any]:
            list(self.reader.read(partition))
            yield (gc.get_freeze_count(),)

    body = struct_type({"body": MESSAGE["body"]})

    class CountedSource(PenstockDataSource):
        @classmethod
        def name(cls) -> str:
            return "counted"

        def reader(self, schema: StructType) -> DataSourceReader:
            return Counted(super().reader(body))

    spark_qm.put("Q", b"one")
    spark_qm.spark.dataSource.register(CountedSource)
    table = spark_qm.reader().format("counted").schema("frozen long").load("Q")
    assert table.collect()[0].frozen > 10_000

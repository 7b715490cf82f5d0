"""Fixtures of the benchmarks: interleaved rounds, a folder for files, a queue manager.

Sides of a workload run in turn, A B A B ..., within one test, so that a machine that becomes slower
slows all of them. pytest-benchmark times the first side; the others run in its setup phase.
"""

from __future__ import annotations

import datetime
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import environment
import limits
import report

Side = Callable[[], float]
_FIGURES = pytest.StashKey[list[report.Figure]]()
_FACTS = pytest.StashKey[dict[str, str]]()
FILES = limits.BUILD / "files"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the benchmarks."""
    group = parser.getgroup("penstock benchmarks")
    group.addoption("--quick", action="store_true", help="small counts: checks results only")
    group.addoption("--at-most", type=int, metavar="N", help="rounds of each workload at the most")
    group.addoption("--steady", type=float, default=45, metavar="SECONDS", help="of long traffic")
    group.addoption("--results", help="write a dated result file into this directory")


def pytest_configure(config: pytest.Config) -> None:
    """Builds the limits and describes the machine before anything runs."""
    config.stash[_FIGURES] = []
    FILES.mkdir(parents=True, exist_ok=True)
    with limits.RawLog(FILES / "probe", 1 << 20) as log:
        log.append(1024, 1)
        mode = "pwritev2(RWF_DSYNC)" if log.uses_dsync else "pwrite + fdatasync"
    (FILES / "probe").unlink()
    config.stash[_FACTS] = environment.describe(FILES, mode)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the table and writes the result file."""
    config = terminalreporter.config
    figures = config.stash[_FIGURES]
    if not figures:
        return
    facts = config.stash[_FACTS]
    warnings = environment.warnings(facts)
    if config.getoption("--quick"):
        warnings.append("quick run: the counts are too small for figures")
    failed = sum(len(terminalreporter.stats.get(kind, ())) for kind in ("failed", "error"))
    terminalreporter.write_line("\n" + report.table(facts, warnings, figures, failed))
    directory = config.getoption("--results")
    if directory:
        moment = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H%M%SZ")
        path = Path(directory) / f"{moment}.json"
        report.save(path, facts, warnings, figures, failed)
        terminalreporter.write_line(f"written to {path.name}")


@pytest.fixture
def scale(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """Turns a full count into the count for this run."""
    quick = bool(request.config.getoption("--quick"))
    return lambda count: max(2, count // 20) if quick else count


@pytest.fixture
def files() -> Iterator[Path]:
    """An empty directory on the disk that holds the project; removed afterwards."""
    path = FILES / "run"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(mode=0o700, parents=True)
    yield path
    shutil.rmtree(path, ignore_errors=True)


class Interleave:
    """Runs the sides of one workload in turn and keeps the figure."""

    def __init__(self, benchmark: BenchmarkFixture, config: pytest.Config) -> None:
        self._benchmark = benchmark
        self._config = config

    def __call__(
        self,
        workload: str,
        sides: dict[str, Side],
        aims: list[report.Aim],
        rounds: int = 15,
        unit: report.Unit = "s",
        warm_ups: int = 1,
    ) -> report.Figure:
        """Some untimed rounds of each side, then `rounds` rounds of all in turn.

        A side is a function without arguments that does its workload, verifies the outcome and
        returns seconds for one operation, or bytes where `unit` says so.
        """
        first, *others = sides
        if self._config.getoption("--quick"):
            rounds, warm_ups = 2, 1
        rounds = min(rounds, self._config.getoption("--at-most") or rounds)
        samples: dict[str, list[float]] = {side: [] for side in sides}

        def run(side: str) -> None:
            samples[side].append(sides[side]())

        def run_others() -> None:
            for side in others:
                run(side)

        pedantic: Callable[..., object] = self._benchmark.pedantic
        pedantic(run, args=(first,), setup=run_others, rounds=rounds, warmup_rounds=warm_ups)
        kept = {side: times[warm_ups : warm_ups + rounds] for side, times in samples.items()}
        figure = report.Figure(workload, kept, aims, unit=unit)
        self._benchmark.extra_info["figure"] = figure.as_json()
        self._config.stash[_FIGURES].append(figure)
        return figure


@pytest.fixture
def interleave(benchmark: BenchmarkFixture, request: pytest.FixtureRequest) -> Interleave:
    """See :class:`Interleave`."""
    return Interleave(benchmark, request.config)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local session of two cores that knows the sources to compare with."""
    import penstock.spark
    from penstock.spark.local import local_session
    from spark_sources import ConstantSource, DiscardSink

    local = str(tmp_path_factory.mktemp("spark"))
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # workers import spark_sources
    session = local_session("bench", settings={"spark.local.dir": local})
    penstock.spark.register(session)
    session.dataSource.register(ConstantSource)
    session.dataSource.register(DiscardSink)
    yield session
    session.stop()

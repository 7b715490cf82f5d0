"""Fixtures of all Python tests: a home for queue managers, and one that is connected."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import _engine
from qmgr_fixtures import (
    ask_zos,
    environment,
    home_of_module,
    qmgr,
    qmgr_of_module,
    zos_qmgr,
    zos_qmgr_of_module,
)

__all__ = [
    "ask_zos", "qmgr", "qmgr_of_module", "environment", "home_of_module", "zos_qmgr",
    "zos_qmgr_of_module",
]  # fmt: skip

SMALL = {  # bytes: quick to make, large enough for the tests
    "segment_size": 1 << 20,
    "journal_limit": 64 << 20,
    "ring_size": 1 << 20,
}
Run = Callable[..., "subprocess.CompletedProcess[str]"]
# Who starts the tests in a shell's background ignores SIGINT for them and, by inheritance, for the
# programs that they interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """With ``-n``, a file's tests run in one process, and so do those of a folder that shares a
    session of Spark or what it builds.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            folder = str(Path(path).parent)
            return folder if folder in {"tests/spark", "tests/durability"} else path

    return ByFile(config, log)


@pytest.fixture(scope="session", autouse=True)
def regions_of_killed_processes_go(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Their queue managers, of which nobody is attached, keep 8 MB of memory each until they are
    started again, which none of them is.
    """
    yield
    for lock in tmp_path_factory.getbasetemp().rglob("lock"):
        if lock.is_file():
            with contextlib.suppress(penstock.MQError):  # of damaged ones, and of other formats
                _engine.Exclusion(lock.parent, {"name": lock.parent.name}).end()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home."""
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def qm(home: Path) -> Iterator[penstock.QueueManager]:
    """A new queue manager QM1, connected; closed and removed afterwards."""
    penstock.create("QM1", home, **SMALL)
    manager = penstock.connect("QM1", home)
    yield manager
    manager.check() if not manager.closed else None
    manager.close()
    penstock.delete("QM1", home)


@pytest.fixture
def queue(qm: penstock.QueueManager) -> Iterator[penstock.Queue]:
    """A local queue with MQ's defaults, open."""
    qm.define("QLOCAL", "Q")
    with qm.open("Q") as opened:
        yield opened


@pytest.fixture
def run_python(home: Path) -> Run:
    """Runs a Python program given as text in a new process; its argument is the home."""

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-X", "dev", "-c", program, str(home), *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "PYTHONWARNINGS": "error"},
        )

    return run

"""Close of the last connection, on disk and on a memory file system."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import workloads as w
from conftest import Interleave
from report import Aim

MESSAGES = 10


@pytest.fixture
def memory_files() -> Iterator[Path]:
    """An empty directory on the file system of the shared regions; removed afterwards."""
    path = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir=w.REGION_DIRECTORY))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def bench_close_of_the_last_connection_on_disk(interleave: Interleave, files: Path) -> None:
    """The orderly end of a new queue manager with a few durable messages: a checkpoint."""
    interleave(
        "close of the last connection, on disk",
        {"penstock": lambda: w.close_last(files, MESSAGES)},
        [Aim("absolute", 8e-3)],
    )


def bench_close_of_the_last_connection_on_tmpfs(interleave: Interleave, memory_files: Path) -> None:
    """The same where files cost no flush: what is left is the engine's own work."""
    interleave(
        "close of the last connection, on tmpfs",
        {"penstock": lambda: w.close_last(memory_files, MESSAGES)},
        [Aim("absolute", 2e-3)],
    )

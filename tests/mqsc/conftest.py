"""Queue managers to run commands on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.mqsc import Interpreter

SMALL = {"segment_size": 1 << 20, "journal_limit": 64 << 20, "ring_size": 1 << 20}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[penstock.QueueManager]:
    """One queue manager for all tests of a module, which leave it as it is."""
    with penstock.connect("QM1", tmp_path_factory.mktemp("home"), create=True) as manager:
        yield manager


@pytest.fixture
def mqsc(qm: penstock.QueueManager) -> Interpreter:
    """Runs commands on QM1."""
    return Interpreter(qm)


@pytest.fixture
def zos(home: Path) -> Iterator[Interpreter]:
    """Runs commands on ZOS1, a queue manager of platform z/OS."""
    penstock.create("ZOS1", home, platform="zos", **SMALL)
    with penstock.connect("ZOS1", home) as manager:
        yield Interpreter(manager)
    penstock.delete("ZOS1", home)

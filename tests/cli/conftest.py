"""A home for queue managers, and the command as a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_process import Command


@pytest.fixture
def penstock(tmp_path: Path) -> Iterator[Command]:
    """The command with an empty home; what still runs is ended afterwards."""
    command = Command(tmp_path / "home")
    yield command
    for name in command.run("list").stdout.decode().split():
        if name not in ("running", "ended"):
            command.run("end", "-p", name)


@pytest.fixture
def qm1(penstock: Command) -> Command:
    """With queue manager QM1 and the persistent queue Q."""
    penstock.ok("create", "QM1")
    penstock.ok("mqsc", "QM1", "DEFINE QLOCAL(Q) DEFPSIST(YES) MAXDEPTH(999999) MAXMSGL(104857600)")
    return penstock

"""``penstock trigger-monitor``: programs started by trigger messages."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_process import Command

SCRIPT = """#!/bin/sh
printf '%s\\n' "$#" "$1" >> OUT
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that appends how many arguments it has, and the first, to the file beside it."""
    path = tmp_path / "program.sh"
    path.write_text(SCRIPT.replace("OUT", str(tmp_path / "out")))
    path.chmod(0o755)
    return path


def define(qm1: Command, program: str, extra: str = "") -> None:
    qm1.ok(
        "mqsc", "QM1",
        f"DEFINE QLOCAL(INIT)\n"
        f"DEFINE PROCESS(P) APPLTYPE(UNIX) APPLICID('{program}') USERDATA('it''s $HOME') {extra}\n"
        f"ALTER QLOCAL(Q) TRIGGER TRIGTYPE(EVERY) PROCESS(P) INITQ(INIT) TRIGDATA('d')",
    )  # fmt: skip


@contextmanager
def monitor(qm1: Command) -> Iterator[subprocess.Popen[bytes]]:
    with qm1.running("trigger-monitor", "QM1", "--initq", "INIT") as process:
        assert process.stderr is not None
        assert b"waits for trigger messages" in process.stderr.readline()
        yield process


def lines_of(path: Path, count: int) -> list[str]:
    """The lines of a file, when there are that many."""
    deadline = time.monotonic() + 60
    while not path.exists() or len(path.read_text().splitlines()) < count:
        assert time.monotonic() < deadline, path
        time.sleep(0.01)
    return path.read_text().splitlines()


def test_a_program_is_started_with_the_mqtmc2_as_one_argument(
    qm1: Command, program: Path, tmp_path: Path
) -> None:
    define(qm1, str(program))
    with monitor(qm1) as process:
        qm1.ok("put", "QM1", "Q", data=b"one\ntwo\n")
        count, data, *_ = lines_of(tmp_path / "out", 4)
        assert count == "1"
        assert len(data) == 732
        assert data.startswith("TMC    2" + "Q".ljust(48) + "P".ljust(48) + "d".ljust(64) + "    ")
        assert "it's $HOME" in data
        assert data[684:732].rstrip() == "QM1"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_what_cannot_be_started_is_logged_and_the_monitor_goes_on(
    qm1: Command, program: Path, tmp_path: Path
) -> None:
    define(qm1, "/no/such/program")
    with monitor(qm1) as process:
        qm1.ok("put", "QM1", "Q", data=b"x\n")
        assert process.stderr is not None
        said = process.stderr.readline()
        while b"was not started (status 127" not in said:
            assert process.poll() is None
            said = process.stderr.readline()
        qm1.ok("mqsc", "QM1", f"ALTER PROCESS(P) APPLICID('{program}')")
        qm1.ok("put", "QM1", "Q", data=b"x\n")
        lines_of(tmp_path / "out", 2)
    assert b"AMQ7930W" in qm1.ok("errors", "QM1")


def test_a_message_that_names_no_program_becomes_a_dead_letter(qm1: Command) -> None:
    define(qm1, "")
    qm1.ok("mqsc", "QM1", "DEFINE QLOCAL(DLQ)\nALTER QMGR DEADQ(DLQ)")
    with monitor(qm1) as process:
        qm1.ok("put", "QM1", "INIT", data=b"no trigger message\n")
        qm1.ok("put", "QM1", "Q", data=b"x\n")
        qm1.ok("mqsc", "QM1", "ALTER PROCESS(P) APPLTYPE(WINDOWS) APPLICID('x')")
        qm1.ok("put", "QM1", "Q", data=b"x\n")
        deadline = time.monotonic() + 60
        while qm1.depth("DLQ") < 3:
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    text = qm1.ok("errors", "QM1").decode()
    for what in ("this is no trigger message", "names no program", "has application type 9"):
        assert what in text


def test_the_monitor_ends_with_its_queue_manager(qm1: Command) -> None:
    define(qm1, "/bin/true")
    with monitor(qm1) as process:
        qm1.ok("end", "QM1")
        assert process.wait(30) == 0


def test_an_initiation_queue_that_is_not_there_is_an_error(qm1: Command) -> None:
    done = qm1.run("trigger-monitor", "QM1", "--initq", "NO.SUCH.QUEUE")
    assert done.returncode == 2
    assert b"2085" in done.stderr

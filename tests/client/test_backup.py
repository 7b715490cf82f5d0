"""Backup: a verified copy of a queue manager that works, and what is left when it fails."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.client.backup import backup_of_stopped
from penstock.client.backup_check import check_copy
from penstock.journal import DamagedFile, QueueManagerFiles

SMALL = {"segment_size": 128 << 10, "journal_limit": 4 << 20, "ring_size": 1 << 18}


@pytest.fixture
def qm1(home: Path) -> Any:
    """A connection to a queue manager with 40 messages of 5,000 bytes in several segments."""
    penstock.create("QM1", home, **SMALL)
    with penstock.connect("QM1", home) as qm:
        fill(qm, 0, 40)
        yield qm


def fill(qm: Any, start: int, end: int, queue: str = "Q") -> None:
    with qm.queue(queue) as opened:
        for i in range(start, end):
            opened.put(b"%06d" % i * 800, persistent=True)


def take(qm: Any, count: int, queue: str = "Q") -> None:
    with qm.open(queue) as opened:
        for _ in range(count):
            opened.get()


def numbers(directory: Path, queue: str = "Q") -> list[int]:
    """The messages of a directory by the second reader."""
    return [int(m.body()[:6]) for m in QueueManagerFiles(directory).replay().messages(queue)]


def opened_as_copy(copy: Path, home: Path) -> list[int]:
    """The messages that the core finds in the copy."""
    shutil.copytree(copy, home / "QM1")
    with penstock.connect("QM1", home) as qm, qm.open("Q") as queue:
        return [int(m.data[:6]) for m in queue.browse()]


def test_a_copy_of_a_working_queue_manager_holds_what_was_committed_before(
    qm1: Any, tmp_path: Path
) -> None:
    take(qm1, 5)
    unit = qm1.transaction()
    with unit, qm1.open("Q") as queue:
        queue.put(b"999999", persistent=True)  # not decided when the backup begins
        report = qm1.backup(tmp_path / "copy")
    fill(qm1, 40, 45)
    assert report.path == tmp_path / "copy" and report.bytes > 40 * 4800
    assert report.slowest_flush < 60 and report.files >= 4
    assert {finding.severity for finding in QueueManagerFiles(report.path).verify()} <= {"note"}
    assert numbers(report.path) == list(range(5, 40))
    assert qm1.status().backup_pid == 0
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    assert opened_as_copy(report.path, other) == list(range(5, 40))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy", "home", "other"]


def test_what_is_retired_while_it_is_copied_is_in_the_copy(qm1: Any, tmp_path: Path) -> None:
    seen: list[int] = []

    def drain(done: int, total: int) -> None:
        if not seen:
            status = qm1.status()
            seen.append(status.backup_bytes)
            assert status.backup_pid == os.getpid()
            take(qm1, 40)
            fill(qm1, 100, 140)
            for _ in range(3):
                qm1.checkpoint()
        assert done <= total

    report = qm1.backup(tmp_path / "copy", progress=drain)
    assert seen[0] > 40 * 4800
    assert numbers(report.path) == list(range(40))
    qm1.checkpoint()
    assert numbers(Path(qm1.path)) == list(range(100, 140))


def test_a_backup_that_would_fill_the_journal_is_broken_off_and_can_be_tried_again(
    qm1: Any, tmp_path: Path
) -> None:
    fill(qm1, 40, 500)  # 57 % of the limit
    put: list[int] = []

    def flood(done: int, total: int) -> None:
        if not put:
            take(qm1, 500)
            for i in range(600):
                fill(qm1, i, i + 1)
                take(qm1, 1)
                put.append(i)

    with pytest.raises(penstock.StorageMediumFull, match=r"broken off.* try again"):
        qm1.backup(tmp_path / "copy", progress=flood)
    assert len(put) == 600  # no put was refused
    assert sorted(p.name for p in tmp_path.iterdir()) == ["home"]
    assert qm1.status().backup_pid == 0
    fill(qm1, 0, 40)
    assert numbers(qm1.backup(tmp_path / "copy").path) == list(range(40))


def test_nothing_is_replaced_and_there_is_one_backup_at_a_time(qm1: Any, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(penstock.ObjectAlreadyExists, match="there exists already"):
        qm1.backup(tmp_path / "there")
    refused: list[str] = []

    def second(done: int, total: int) -> None:
        if not refused:
            for path in ("copy", "another"):
                with pytest.raises(penstock.ObjectInUse) as error:
                    qm1.backup(tmp_path / path)
                refused.append(str(error.value))

    qm1.backup(tmp_path / "copy", progress=second)
    assert "another process is writing it" in refused[0] and "is under way" in refused[1]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy", "home", "there"]


KILLED = """
import os, signal, sys, penstock
def die(done, total):
    if done > total // 2:
        os.kill(os.getpid(), signal.SIGKILL)
with penstock.connect("QM1", sys.argv[1]) as qm:
    qm.backup(sys.argv[2], progress=die)
"""


def test_a_killed_backup_leaves_a_directory_that_the_next_one_removes(
    qm1: Any, home: Path, tmp_path: Path
) -> None:
    target = tmp_path / "copy"
    child = subprocess.run([sys.executable, "-c", KILLED, home, target], check=False)
    assert child.returncode == -signal.SIGKILL
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy.backup-tmp", "home"]
    deadline = time.monotonic() + 30
    while qm1.status().backup_pid and time.monotonic() < deadline:
        time.sleep(0.05)
    assert numbers(qm1.backup(target).path) == list(range(40))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy", "home"]


def test_a_copy_with_a_wrong_byte_or_without_its_end_is_found(qm1: Any, tmp_path: Path) -> None:
    report = qm1.backup(tmp_path / "copy")
    check_copy(report.path, report.end_lsn)
    segments = sorted((report.path / "journal").iterdir())
    checkpoint = max((report.path / "checkpoint").iterdir())
    places = ((segments[0], b"000005000005"), (segments[-1], b"PSBT"), (checkpoint, b"Q  "))
    for file, text in places:
        data = file.read_bytes()
        at = data.index(text)
        file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(DamagedFile):
            check_copy(report.path, report.end_lsn)
        file.write_bytes(data)
    check_copy(report.path, report.end_lsn)
    with pytest.raises(DamagedFile):
        check_copy(report.path, report.end_lsn + 4096)
    shutil.move(segments[1], tmp_path / "away")
    with pytest.raises(DamagedFile):
        check_copy(report.path, report.end_lsn)


def test_a_queue_manager_that_ended_is_copied_without_starting_it(
    home: Path, tmp_path: Path
) -> None:
    penstock.create("QM1", home, **SMALL)
    with penstock.connect("QM1", home) as qm:
        fill(qm, 0, 10)
        assert backup_of_stopped("QM1", tmp_path / "none", home) is None
    before = QueueManagerFiles(home / "QM1").files.fingerprint()
    report = backup_of_stopped("QM1", tmp_path / "copy", home)
    assert report is not None and report.slowest_flush == 0
    assert QueueManagerFiles(home / "QM1").files.fingerprint() == before
    assert numbers(report.path) == list(range(10))
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    assert opened_as_copy(report.path, other) == list(range(10))


def test_a_queue_manager_whose_processes_were_killed_is_left_to_a_connection(
    home: Path, tmp_path: Path
) -> None:
    penstock.create("QM1", home, **SMALL)
    code = (
        "import os, sys, penstock; qm = penstock.connect('QM1', sys.argv[1]); "
        "qm.queue('Q').put(b'000007', persistent=True); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, home], check=False)
    assert backup_of_stopped("QM1", tmp_path / "copy", home) is None
    with penstock.connect("QM1", home) as qm:
        assert numbers(qm.backup(tmp_path / "copy").path) == [7]


def test_segments_that_move_to_the_archive_meanwhile_are_copied(home: Path, tmp_path: Path) -> None:
    penstock.create("QM1", home, logging="linear", **SMALL)
    with penstock.connect("QM1", home) as qm:
        fill(qm, 0, 40)
        report = qm.backup(
            tmp_path / "copy",
            progress=lambda done, total: [take(qm, 2), qm.checkpoint()] if done < 40000 else None,
        )
    assert numbers(report.path) == list(range(40))
    assert QueueManagerFiles(report.path).verify() == []

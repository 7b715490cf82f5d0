"""Restore: what a copy holds, under a new identity and timeline; nothing when it fails."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.admin.settings import read_settings
from penstock.client.restore import restore
from penstock.journal import QueueManagerFiles
from penstock.journal.head import read_head
from penstock.journal.scan import list_segments

SMALL = {"segment_size": 128 << 10, "journal_limit": 4 << 20, "ring_size": 1 << 18}


@pytest.fixture
def copy(home: Path, tmp_path: Path) -> Path:
    """A backup of a queue manager with all kinds of things in it."""
    penstock.create("QM1", home, **SMALL)
    with penstock.connect("QM1", home) as qm:
        make_contents(qm)
        return qm.backup(tmp_path / "copy").path


def make_contents(qm: Any) -> None:
    with qm.queue("Q") as queue, qm.queue("OTHER", descr="kept") as other:
        for i in range(60):
            queue.put(b"%06d" % i * 700, persistent=True, priority=i % 10, correl_id=b"C%d" % i)
        other.put(os.urandom(300_000), persistent=True, msg_id=b"long")
        qm.checkpoint()  # some in the checkpoint, some behind it
        for i in range(60, 80):
            queue.put(b"%06d" % i * 700, persistent=True, group_id=b"G")
        with qm.transaction() as unit:
            for _ in range(3):
                queue.get()
            unit.backout()
        with qm.transaction():
            queue.put(b"prepared", persistent=True)
            queue.get(msg_id=None)
            qm.prepare(penstock.Xid(1, b"branch", b"x"))


def contents(qm: Any, *queues: str) -> list[Any]:
    """Everything that can be seen of the messages, and the definitions."""
    found: list[Any] = []
    for name in queues:
        with qm.open(name) as queue:
            for m in queue.browse():
                ids = (m.msg_id, m.correl_id, m.group_id)
                found.append((name, *ids, m.priority, m.backout_count, m.put_time, m.data))
    found += [q for q in qm.display("QLOCAL", "*") if not str(q["name"]).startswith("SYSTEM")]
    found += qm.recover()
    return found


def opened(copy: Path, home: Path) -> list[Any]:
    """The contents of the copy as the core finds them when it is started as it is."""
    home.mkdir(mode=0o700)
    shutil.copytree(copy, home / "QM1")
    with penstock.connect("QM1", home) as qm:
        return contents(qm, "Q", "OTHER")


def test_everything_is_there_under_a_new_identity_and_timeline(
    copy: Path, home: Path, tmp_path: Path
) -> None:
    before = {file: file.read_bytes() for file in copy.rglob("*") if file.is_file()}
    result = restore(copy, "QM2", home)
    assert (result.name, result.timeline, result.prepared) == ("QM2", 1, 1)
    assert result.messages >= 80 and result.path == home / "QM2"
    assert read_settings(home / "QM2").qm_id != read_settings(copy).qm_id
    assert {f.severity for f in QueueManagerFiles(home / "QM2").verify()} <= {"note"}
    with penstock.connect("QM2", home) as qm:
        assert contents(qm, "Q", "OTHER") == opened(copy, tmp_path / "as it is")
        identifier = qm.display("QMGR")[0]["qmid"]
        assert identifier == "QM2_" + read_settings(home / "QM2").qm_id.hex()
        assert qm.look_up(105, "QM1") is None
        qm.commit_prepared(*qm.recover())
        with qm.open("Q") as queue:
            assert [m.data for m in queue.browse()].count(b"prepared") == 1
            made = queue.put(b"new", persistent=True).msg_id
        assert made[:16] == b"AMQ QM2       01"
    assert before == {file: file.read_bytes() for file in copy.rglob("*") if file.is_file()}
    assert sorted(p.name for p in home.iterdir()) == ["QM1", "QM2"]
    assert penstock.managers(home) == ["QM1", "QM2"]


def test_a_restore_of_a_restore_has_the_next_timeline_in_all_its_files(
    copy: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home 2"
    assert restore(copy, None, home).name == "QM1"
    with penstock.connect("QM1", home) as qm:
        with qm.open("Q") as queue:
            queue.put(bytes(200_000), persistent=True)
        again = qm.backup(tmp_path / "again").path
    assert restore(again, "QM3", home).timeline == 2
    for name, timeline in (("QM1", 1), ("QM3", 2)):
        files = QueueManagerFiles(home / name)
        assert {segment.timeline for segment in files.segments} == {timeline}
        assert read_head(files.files, files.qm_id()).timeline == timeline


def test_a_copy_of_files_that_ended_in_order_is_restored_with_its_image(
    home: Path, tmp_path: Path
) -> None:
    penstock.create("QM1", home, **SMALL)
    with penstock.connect("QM1", home) as qm, qm.queue("NP", npmclass="HIGH") as queue:
        queue.put(b"kept over an orderly end", persistent=False)
    restore(home / "QM1", "QM2", home)
    with penstock.connect("QM2", home) as qm, qm.open("NP") as queue:
        assert [m.data for m in queue.browse()] == [b"kept over an orderly end"]


def test_a_copy_that_is_damaged_makes_nothing(copy: Path, home: Path) -> None:
    text = b"000070000070"
    segment = next(f for f in (copy / "journal").iterdir() if text in f.read_bytes())
    data = bytearray(segment.read_bytes())
    data[data.index(text)] ^= 1
    segment.write_bytes(data)
    with pytest.raises(penstock.ObjectDamaged, match="is not whole"):
        restore(copy, "QM2", home)
    assert [p.name for p in home.iterdir()] == ["QM1"]


def test_nothing_that_exists_is_replaced(copy: Path, home: Path) -> None:
    with pytest.raises(penstock.ObjectAlreadyExists):
        restore(copy, None, home)
    with pytest.raises(penstock.QueueManagerNameError):
        restore(copy, "no name", home)
    assert [p.name for p in home.iterdir()] == ["QM1"]


def linear_with_moments(home: Path, tmp_path: Path) -> tuple[Path, list[datetime]]:
    """A backup, and the moments after which messages 40, 60, ... were put, while others were got;
    segments turn over into the archive."""
    penstock.create("QM1", home, logging="linear", **SMALL)
    moments = []
    with penstock.connect("QM1", home) as qm, qm.queue("Q") as queue:
        for i in range(240):
            if i == 40:
                copy = qm.backup(tmp_path / "copy").path
            if i % 20 == 0 and i >= 40:
                time.sleep(0.01)
                moments.append(datetime.now(timezone.utc))
                time.sleep(0.01)
                qm.checkpoint()
            queue.put(b"%06d" % i * 3000, persistent=True)
            if i >= 40:
                queue.get()
    return copy, moments


def restored_numbers(name: str, home: Path) -> list[int]:
    with penstock.connect(name, home) as qm, qm.open("Q") as queue:
        status = qm.status()
        assert status.journal_limit == SMALL["journal_limit"]
        assert status.journal_bytes < status.journal_limit
        return [int(m.data[:6]) for m in queue.browse()]


def test_a_copy_is_continued_by_the_archive_up_to_a_moment(home: Path, tmp_path: Path) -> None:
    copy, moments = linear_with_moments(home, tmp_path)
    root = home / "QM1"
    assert len(list((root / "archive").iterdir())) > 10
    for at, moment in list(enumerate(moments))[::3]:
        made = restore(copy, f"AT{at}", home, to=moment, archive=root)
        assert restored_numbers(made.name, home) == list(range(20 * at, 20 * at + 40))
        assert {f.severity for f in QueueManagerFiles(made.path).verify()} <= {"note"}
    restore(copy, "LAST", home, to=datetime(2099, 1, 1, tzinfo=timezone.utc), archive=root)
    assert restored_numbers("LAST", home) == list(range(200, 240))
    segments = [s for s in list_segments(root) if s.archived]
    restore(copy, "LSN", home, to=segments[-1].base_lsn, archive=root)
    assert restored_numbers("LSN", home)[0] in range(1, 200)


def test_an_archive_that_does_not_continue_the_copy_is_refused(home: Path, tmp_path: Path) -> None:
    copy, moments = linear_with_moments(home, tmp_path)
    root = home / "QM1"
    early = moments[0] - timedelta(hours=1)
    with pytest.raises(penstock.InvalidValue, match="before the copy was made"):
        restore(copy, "QM2", home, to=early, archive=root)
    with pytest.raises(penstock.InvalidValue, match="together"):
        restore(copy, "QM2", home, to=early)
    missing = [s for s in list_segments(root) if s.archived][-2]
    (root / missing.file).unlink()
    with pytest.raises(penstock.ObjectDamaged, match=f"segment {missing.number} is neither"):
        restore(copy, "QM2", home, to=moments[-1], archive=root)
    with pytest.raises(penstock.ObjectDamaged, match="does not continue it"):
        penstock.create("OTHER", home)
        restore(copy, "QM2", home, to=moments[-1], archive=home / "OTHER")
    assert sorted(p.name for p in home.iterdir()) == ["OTHER", "QM1"]


KILLED = """
import os, signal, sys
from penstock.client import restore as module
def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(module, sys.argv[3], die)
module.restore(sys.argv[1], "QM2", sys.argv[2])
"""


@pytest.mark.parametrize("step", ["head_file", "write_settings", "check_copy", "_make_own"])
def test_a_restore_that_is_killed_leaves_no_queue_manager_and_can_be_repeated(
    copy: Path, home: Path, step: str
) -> None:
    child = subprocess.run([sys.executable, "-c", KILLED, copy, home, step], check=False)
    assert child.returncode == -signal.SIGKILL
    assert penstock.managers(home) == ["QM1"]
    assert restore(copy, "QM2", home).messages >= 80
    assert sorted(p.name for p in home.iterdir()) == ["QM1", "QM2"]

"""Delayed messages in copies, salvaged files and unloads, and for the MQI: none comes early."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

import penstock
from penstock import mqi
from penstock.client.restore import restore
from penstock.client.salvage import salvage

HOUR = 3600
MAKER = """
import os, sys, penstock
qm = penstock.connect("QM1", sys.argv[1], create=True)
q = qm.queue("Q")
for number in range(6):
    q.put(b"%d" % number, delay=3600 if number % 2 else None)
unit = qm.unit()
assert q.get(unit=unit).data == b"0"
unit.backout(delay=7200)
qm.queue("OTHER").put(b"")  # its flush has the backout, too
if sys.argv[2] == "checkpoint":
    qm.checkpoint()
os.kill(os.getpid(), 9)
"""
DELAYED = [b"1", b"3", b"5"]  # and b"0", by its backout


@pytest.fixture(params=["checkpoint", "journal"])
def killed(request: pytest.FixtureRequest, home: Path) -> Path:
    """QM1 with six messages, four of them delayed, whose process was killed."""
    done = subprocess.run([sys.executable, "-c", MAKER, home, request.param], check=False)
    assert done.returncode == -signal.SIGKILL
    return home


def due_times(qm: penstock.QueueManager) -> dict[bytes, datetime | None]:
    with qm.open("Q") as queue:
        assert [m.data for m in queue.browse()] == [b"2", b"4"]
        assert queue.status().delayed == 1 + len(DELAYED) and queue.depth == 6
        found = {m.data: m.due for m in queue.browse(delayed=True) if m.data in DELAYED}
    assert len(found) == len(DELAYED) and all(found.values())
    return found


def from_backup(home: Path, to: Path) -> Path:
    with penstock.connect("QM1", home) as qm:
        qm.backup(to / "copy")
    return restore(to / "copy", "QM2", to / "restored").path.parent


def from_files(home: Path, to: Path) -> Path:
    return restore(home / "QM1", "QM2", to / "restored").path.parent


def from_salvage(home: Path, to: Path) -> Path:
    salvage(home / "QM1", "QM2", to)
    return to


@pytest.mark.parametrize("way", [from_backup, from_files, from_salvage])
def test_what_was_delayed_is_delayed_in_a_copy_until_the_same_moment(
    killed: Path, tmp_path: Path, way: Callable[[Path, Path], Path]
) -> None:
    place = way(killed, tmp_path)
    with penstock.connect("QM2", place) as qm:
        copied = due_times(qm)
    with penstock.connect("QM1", killed) as qm:
        assert due_times(qm) == copied


def test_a_message_that_would_expire_before_its_retry_is_salvaged_as_one_that_is_due(
    home: Path,
) -> None:
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as queue:
        queue.put(b"x", expiry=HOUR)
        with qm.unit() as unit:
            queue.get(unit=unit)
            unit.backout(delay=2 * HOUR)
        assert queue.status().delayed == 1
    salvage(home / "QM1", "QM2", home)
    with penstock.connect("QM2", home) as qm, qm.open("Q") as queue:
        assert queue.get().data == b"x"


@pytest.mark.parametrize("remove", [False, True])
def test_an_unload_leaves_delayed_messages_where_they_are(
    home: Path, tmp_path: Path, remove: bool
) -> None:
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as queue:
        queue.put(b"now")
        queue.put(b"later", delay=HOUR)
        assert qm.unload(tmp_path / "file", "Q", remove=remove) == 1
        assert queue.status().delayed == 1 and queue.depth == (1 if remove else 2)


def test_the_command_says_how_many_delayed_messages_an_unload_leaves(
    home: Path, tmp_path: Path
) -> None:
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as queue:
        queue.put_batch([b"a", b"b", b"c"], delay=[None, HOUR, HOUR])
    command = [sys.executable, "-m", "penstock.cli", "unload", "QM1", "Q", "--home", str(home)]
    done = subprocess.run(
        [*command, "--to", str(tmp_path / "file")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout.endswith("1 message of 1 queue\n")
    assert "2 delayed messages" in done.stderr


def test_the_mqi_counts_delayed_messages_and_finds_none_before_it_is_due(home: Path) -> None:
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as queue:
        queue.put(b"x", delay=HOUR)
        hconn, cc, _ = mqi.MQCONN("QM1", home=home)
        od = mqi.MQOD(ObjectName="Q")
        options = mqi.MQOO_INPUT_SHARED | mqi.MQOO_BROWSE | mqi.MQOO_INQUIRE
        hobj, cc, _ = mqi.MQOPEN(hconn, od, options)
        assert cc == 0
        for option in (mqi.MQGMO_NO_WAIT, mqi.MQGMO_BROWSE_FIRST):
            found = mqi.MQGET(hconn, hobj, mqi.MQMD(), mqi.MQGMO(Options=option), 10)
            assert 2033 in found
        values, *_ = mqi.MQINQ(hconn, hobj, [mqi.MQIA_CURRENT_Q_DEPTH])
        assert values == {mqi.MQIA_CURRENT_Q_DEPTH: 1}
        mqi.MQDISC(hconn)

"""Delayed messages in copies, salvaged files and unloads, and for the MQI: none comes early."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import penstock
from penstock import mqi
from penstock.client.restore import restore
from penstock.client.salvage import salvage
from penstock.message_files import MessageFileError

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
DELAYED = [b"0", b"1", b"3", b"5"]  # b"0" by its backout, an hour later


@pytest.fixture(params=["checkpoint", "journal"])
def killed(request: pytest.FixtureRequest, home: Path) -> Path:
    """QM1 with six messages, four of them delayed, whose process was killed."""
    done = subprocess.run([sys.executable, "-c", MAKER, home, request.param], check=False)
    assert done.returncode == -signal.SIGKILL
    return home


def due_times(qm: penstock.QueueManager) -> dict[bytes, datetime | None]:
    with qm.open("Q") as queue:
        assert [m.data for m in queue.browse()] == [b"2", b"4"]
        assert queue.status().delayed == len(DELAYED) and queue.depth == 6
        found = {m.data: m.due for m in queue.browse(delayed=True) if m.data in DELAYED}
    times = [found[data] for data in DELAYED]
    assert None not in times and times[0] > max(times[1:])
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


def test_an_unload_that_removes_leaves_delayed_messages_where_they_are(
    home: Path, tmp_path: Path
) -> None:
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as queue:
        queue.put(b"now")
        queue.put(b"later", delay=HOUR)
        assert qm.unload(tmp_path / "file", "Q", remove=True) == 1
        assert queue.status().delayed == 1 and queue.depth == 1


@pytest.mark.parametrize("parquet", [False, True])
def test_an_unload_that_copies_and_a_load_keep_due_times(
    killed: Path, tmp_path: Path, parquet: bool
) -> None:
    if parquet:
        pytest.importorskip("pyarrow")
    with penstock.connect("QM1", killed) as qm:
        before = due_times(qm)
        assert qm.unload(tmp_path / "file", "Q", parquet=parquet) == 6
        qm.clear("Q")
        assert qm.load(tmp_path / "file", parquet=parquet) == 6
        assert due_times(qm) == before


def test_a_due_time_of_a_file_that_has_passed_is_no_delay_and_none_is_none(
    home: Path, tmp_path: Path
) -> None:
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as queue:
        queue.put(b"soon", delay=0.2)
        queue.put(b"now")
        qm.unload(tmp_path / "file", "Q")
        assert (tmp_path / "file").read_text().count('"due"') == 1
        time.sleep(0.25)
        assert len(queue.get_batch(9)) == 2
        qm.load(tmp_path / "file")
        assert [message.data for message in queue.browse()] == [b"soon", b"now"]


@pytest.mark.parametrize("due", ["1969-12-31T23:59:59Z", "tomorrow", 5])
def test_a_due_time_that_is_none_is_refused_with_its_line(
    home: Path, tmp_path: Path, due: object
) -> None:
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as queue:
        queue.put(b"later", delay=HOUR)
        qm.unload(tmp_path / "file", "Q")
        lines = [json.loads(line) for line in (tmp_path / "file").read_text().splitlines()]
        lines[1]["due"] = due
        (tmp_path / "file").write_text("".join(json.dumps(line) + "\n" for line in lines))
        with pytest.raises(MessageFileError, match=r"line 2: due: "):
            qm.load(tmp_path / "file")
        assert queue.depth == 1


def test_a_delayed_message_of_a_file_does_not_go_to_a_remote_queue(
    home: Path, tmp_path: Path
) -> None:
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as queue:
        queue.put(b"later", delay=HOUR)
        qm.unload(tmp_path / "file", "Q")
        qm.define("QLOCAL", "XQ", usage="XMITQ")
        qm.define("QREMOTE", "AWAY", rname="Q", rqmname="FAR", xmitq="XQ")
        with pytest.raises(penstock.OptionNotValidForType, match="a delay is for queues"):
            qm.load(tmp_path / "file", queue="AWAY")
        with qm.open("XQ") as sent:
            assert sent.depth == 0


def test_a_batch_shows_due_times_on_request(home: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as queue:
        queue.put(b"later", priority=9, delay=HOUR)
        queue.put(b"now")
        assert [m.data for m in queue.browse_batch(9, first=True)] == [b"now"]
        batch = queue.browse_batch(9, first=True, delayed=True)
        [due] = [m.due for m in queue.browse(delayed=True) if m.due]
        assert [m.data for m in batch] == [b"later", b"now"]
        assert pa.record_batch(batch.arrow(["due"])).column("due").to_pylist() == [due, None]


def test_the_command_says_how_many_delayed_messages_an_unload_leaves(
    home: Path, tmp_path: Path
) -> None:
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as queue:
        queue.put_batch([b"a", b"b", b"c"], delay=[None, HOUR, HOUR])
    command = [sys.executable, "-m", "penstock.cli", "unload", "QM1", "Q", "--home", str(home)]
    copy, move = (
        subprocess.run(
            [*command, "--to", str(tmp_path / name), *options],
            capture_output=True, text=True, check=False,
        )
        for name, options in (("copy", []), ("file", ["--remove"]))
    )  # fmt: skip
    assert copy.returncode == 0 and copy.stdout.endswith("3 messages of 1 queue\n")
    assert "delayed" not in copy.stderr
    assert move.returncode == 0 and move.stdout.endswith("1 message of 1 queue\n")
    assert "2 delayed messages" in move.stderr


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


def test_a_browse_says_until_when_a_long_message_waits_for_its_retry(home: Path) -> None:
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as queue:
        for persistent in (False, True):
            queue.put(bytes(300_000), delay=0.01, persistent=persistent)
        before = datetime.now(timezone.utc)
        for _ in range(2):
            with qm.unit() as unit:
                assert queue.get(wait=10, unit=unit).backout_count == 0
                unit.backout(delay=HOUR)
        for message in queue.browse(delayed=True):
            assert message.due is not None
            assert timedelta() <= message.due - before - timedelta(hours=1) < timedelta(minutes=5)

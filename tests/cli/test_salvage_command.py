"""A new queue manager of damaged files: salvage."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_process import Command

import penstock

SETTINGS = ("--segment-size", "64k", "--journal-limit", "8M", "--ring-size", "256k")


@pytest.fixture
def damaged(penstock: Command) -> Command:
    """QM1 with messages on two queues, ended."""
    penstock.ok("create", "QM1", *SETTINGS)
    penstock.ok(
        "mqsc", "QM1", "DEFINE QLOCAL(A) DEFPSIST(YES) MAXDEPTH(77) DESCR('it is') PUT(ENABLED)"
    )
    penstock.ok("mqsc", "QM1", "DEFINE QLOCAL(B) DEFPSIST(YES) MAXMSGL(100000)")
    penstock.ok("mqsc", "QM1", "DEFINE QALIAS(C) TARGET(A)")
    penstock.ok("mqsc", "QM1", "ALTER QMGR DEADQ(B)")
    penstock.ok("put", "QM1", "A", "--priority-map", "high=9", data=b"one\ntwo\nhigh\n")
    penstock.ok("put", "QM1", "B", data=b"\n".join(b"%03d" % n + b"x" * 900 for n in range(60)))
    penstock.ok("mqsc", "QM1", "ALTER QLOCAL(A) PUT(DISABLED) MAXDEPTH(2)")
    return penstock


def losses(out: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines()]


def test_a_whole_queue_manager_comes_over_with_definitions_and_fields(damaged: Command) -> None:
    home = damaged.home
    with penstock.connect("QM1", home) as qm, qm.open("A") as queue:
        before = [(m.data, m.msg_id, m.put_time, m.priority) for m in queue.browse()]
        attributes = {one["name"]: dict(one) for one in qm.display("QUEUE")}
    assert b"nothing is lost" in damaged.ok("salvage", "QM1", "--to", "QM2")
    with penstock.connect("QM2", home) as qm, qm.open("A") as queue:
        assert [(m.data, m.msg_id, m.put_time, m.priority) for m in queue.browse()] == before
        after = {one["name"]: dict(one) for one in qm.display("QUEUE")}
        for name in ("A", "B", "C"):
            for key in ("crdate", "crtime", "altdate", "alttime"):
                attributes[name].pop(key, None)
                after[name].pop(key, None)
            assert after[name] == attributes[name]
        assert qm.display("QMGR")[0]["deadq"] == "B"
        with qm.open("B") as other:
            assert [m.data[:3] for m in other.browse()] == [b"%03d" % n for n in range(60)]
        with pytest.raises(penstock.PutInhibited):
            queue.put(b"x")


def test_without_settings_and_checkpoints_the_journal_is_enough(damaged: Command) -> None:
    directory = damaged.home / "QM1"
    (directory / "qm.toml").write_bytes(b"\xff")
    shutil.rmtree(directory / "checkpoint")
    done = damaged.run("salvage", "QM1", "--to", "QM2", "--json")
    assert done.returncode == 2
    *lost, counts = losses(done.stdout)
    assert counts["messages"] == 63
    assert {loss["kind"] for loss in lost} == {"file"}
    assert damaged.ok("get", "QM2", "A") == b"high\none\ntwo\n"


def test_a_lost_segment_is_listed_with_its_messages(damaged: Command) -> None:
    directory = damaged.home / "QM1"
    first, *_ = sorted((directory / "journal").glob("0*.psj"))
    first.unlink()
    done = damaged.run("salvage", "QM1", "--to", "QM2", "--json")
    *lost, counts = losses(done.stdout)
    named = {loss["queue"] for loss in lost if loss["kind"] == "message"}
    assert done.returncode == 2 and "A" in named
    assert sum(loss["kind"] == "message" for loss in lost) + int(str(counts["messages"])) == 63
    assert any(loss["kind"] == "file" and str(loss["file"]).endswith(first.name) for loss in lost)
    text = damaged.run("salvage", "QM1", "--to", "QM3").stdout.decode()
    assert "of A" in text and first.name in text


def test_the_damaged_directory_is_not_changed_and_may_be_read_only(damaged: Command) -> None:
    directory = damaged.home / "QM1"
    (directory / "checkpoint").chmod(0o700)
    newest = max((directory / "checkpoint").glob("*.psc"))
    newest.write_bytes(newest.read_bytes()[:-100])

    def picture() -> list[tuple[str, int, bytes]]:
        files = sorted(path for path in directory.rglob("*") if path.is_file())
        return [(str(path), path.stat().st_mtime_ns, path.read_bytes()) for path in files]

    before = picture()
    folders = [directory, *(path for path in directory.rglob("*") if path.is_dir())]
    for path in (*folders, *(Path(name) for name, _, _ in before)):
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        done = damaged.run("salvage", "QM1", "--to", "QM2")
        assert done.returncode == 2 and b"63 messages" in done.stdout, done
        assert picture() == before
    finally:
        for path in folders:
            path.chmod(0o700)


def test_another_directory_may_be_salvaged_by_its_path(damaged: Command, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(damaged.home / "QM1", copy, copy_function=os.link)  # names more do no harm
    out = damaged.ok("salvage", "QM1", "--to", "QM2", "--directory", str(copy))
    assert b"63 messages" in out


def test_a_running_queue_manager_and_an_existing_one_are_refused(damaged: Command) -> None:
    with penstock.connect("QM1", damaged.home):
        done = damaged.run("salvage", "QM1", "--to", "QM2")
        assert done.returncode == 2 and b"(2042)" in done.stderr
    damaged.ok("create", "QM2", *SETTINGS)
    done = damaged.run("salvage", "QM1", "--to", "QM2")
    assert done.returncode == 2 and b"(2100)" in done.stderr
    assert damaged.run("salvage", "NONE", "--to", "QM3").returncode == 2
    (damaged.home / "EMPTY").mkdir()
    done = damaged.run("salvage", "EMPTY", "--to", "QM3")
    assert done.returncode == 2 and b"no segment and no checkpoint" in done.stderr


def test_a_copy_of_a_running_queue_manager_is_not_running(damaged: Command, tmp_path: Path) -> None:
    elsewhere = Command(tmp_path / "elsewhere")
    with penstock.connect("QM1", damaged.home):
        shutil.copytree(damaged.home / "QM1", elsewhere.home / "QM1")
        assert elsewhere.ok("list").split() == [b"QM1", b"ended"]
        assert elsewhere.ok("status", "QM1") == b"QM1: not running\n"
        assert b"63 messages" in elsewhere.ok("salvage", "QM1", "--to", "QM2")
        elsewhere.ok("delete", "QM1")
        assert damaged.ok("list").split() == [b"QM1", b"running"]


def test_a_journal_that_was_full_comes_over_and_has_its_limit_again(penstock: Command) -> None:
    penstock.ok("create", "QM1", "--segment-size", "256k", "--journal-limit", "4M")
    penstock.ok("mqsc", "QM1", "DEFINE QLOCAL(Q) DEFPSIST(YES) MAXDEPTH(77777)")
    lines = b"".join(b"%d\n" % n for n in range(30000))
    full = penstock.run("put", "QM1", "Q", data=lines)
    assert full.returncode == 2 and b"(2192)" in full.stderr
    count = int(full.stderr.split(b"; ")[-1].split()[0])
    assert b"nothing is lost" in penstock.ok("salvage", "QM1", "--to", "QM2")
    assert b"limit = 4194304\n" in (penstock.home / "QM2" / "qm.toml").read_bytes()
    assert b"MAXDEPTH(77777)" in penstock.ok("mqsc", "QM2", "DISPLAY QLOCAL(Q) MAXDEPTH")
    taken = penstock.ok("get", "QM2", "Q")
    assert count and taken == b"".join(lines.splitlines(keepends=True)[:count])
    penstock.ok("put", "QM2", "Q", data=b"there is room again\n")


KILLED = """
import os, signal, sys
from penstock.client import salvage as module
def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
owner, _, name = sys.argv[2].rpartition(".")
setattr(getattr(module, owner) if owner else module, name, die)
module.salvage(sys.argv[1] + "/QM1", "QM2", sys.argv[1])
"""


@pytest.mark.parametrize("step", ["connect", "_Writer._flush", "_set_limit"])
def test_a_salvage_that_is_killed_leaves_no_queue_manager_and_can_be_repeated(
    damaged: Command, step: str
) -> None:
    child = subprocess.run([sys.executable, "-c", KILLED, damaged.home, step], check=False)
    assert child.returncode == -signal.SIGKILL
    assert damaged.ok("list").split() == [b"QM1", b"ended"]
    lock = damaged.home / "QM2.salvage-tmp" / "QM2" / "lock"
    found = re.search(rb"region=(\S+)", lock.read_bytes()) if lock.exists() else None
    region = Path("/dev/shm", found[1].decode()) if found else None
    assert step != "_Writer._flush" or (region and region.exists())
    assert b"63 messages" in damaged.ok("salvage", "QM1", "--to", "QM2")
    assert sorted(path.name for path in damaged.home.iterdir()) == ["QM1", "QM2"]
    assert region is None or not region.exists()  # nor shared memory

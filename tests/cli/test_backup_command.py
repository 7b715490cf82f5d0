"""penstock backup: copies of a queue manager that works, and of one that was ended."""

from __future__ import annotations

import json
from pathlib import Path

from command_process import Command

from penstock.journal import QueueManagerFiles


def test_a_working_and_an_ended_queue_manager_are_copied(qm1: Command, tmp_path: Path) -> None:
    qm1.ok("put", "QM1", "Q", data=b"one\ntwo\n")
    said = qm1.ok("backup", "QM1", str(tmp_path / "ended")).decode()
    assert "copied to" in said and "verified" in said and "slowest flush" not in said
    qm1.ok("start", "QM1")
    figures = json.loads(qm1.ok("backup", "QM1", str(tmp_path / "working"), "--json"))
    assert figures["path"] == str(tmp_path / "working") and figures["bytes"] > 4096
    for name in ("ended", "working"):
        files = QueueManagerFiles(tmp_path / name)
        assert files.verify() == []
        assert [m.body() for m in files.replay().messages("Q")] == [b"one", b"two"]
    refused = qm1.run("backup", "QM1", str(tmp_path / "ended"))
    assert refused.returncode == 2 and b"exists already" in refused.stderr
    assert not list(tmp_path.glob("*.backup-tmp"))


def test_a_backup_is_restored_under_its_name_and_another_one(qm1: Command, tmp_path: Path) -> None:
    qm1.ok("put", "QM1", "Q", data=b"one\ntwo\n")
    qm1.ok("backup", "QM1", str(tmp_path / "copy"))
    refused = qm1.run("restore", str(tmp_path / "copy"))
    assert refused.returncode == 2 and b"exists already" in refused.stderr
    said = qm1.ok("restore", str(tmp_path / "copy"), "--as", "QM2").decode()
    assert said.startswith("QM2: 2 messages restored to ") and said.endswith("timeline 1\n")
    qm1.ok("delete", "QM1")
    qm1.ok("restore", str(tmp_path / "copy"))
    for name in ("QM1", "QM2"):
        assert qm1.ok("get", name, "Q", "--count", "9") == b"one\ntwo\n"
    root = str(qm1.home / "QM1")
    continued = ("restore", str(tmp_path / "copy"), "--as", "QM3", "--archive", root)
    refused = qm1.run(*continued)
    assert refused.returncode == 2 and b"given together" in refused.stderr
    refused = qm1.run(*continued, "--to", "2020-01-01")
    assert refused.returncode == 2 and b"does not continue it" in refused.stderr  # another QM1
    nothing = qm1.run("restore", str(tmp_path))
    assert nothing.returncode == 2 and b"is not whole: qm.toml" in nothing.stderr

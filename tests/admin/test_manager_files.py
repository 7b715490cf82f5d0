"""The files of a queue manager, and who is attached to it, without attaching."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import _engine
from penstock.admin import manager_files

Run = Callable[..., Any]


def test_attached_processes_are_listed_this_one_included(home: Path, run_python: Run) -> None:
    penstock.create("QM1", home)
    assert _engine.attached_processes(home / "QM1") == ()  # no lock file yet
    with penstock.connect("QM1", home):
        assert _engine.attached_processes(home / "QM1") == (os.getpid(),)
        asked = run_python(
            "import sys, pathlib\n"
            "from penstock import _engine\n"
            "print(*_engine.attached_processes(pathlib.Path(sys.argv[1]) / 'QM1'))\n"
        )
        assert asked.stdout == f"{os.getpid()}\n" and asked.stderr == ""
    assert _engine.attached_processes(home / "QM1") == ()


def test_an_exclusion_keeps_its_own_process_out_too_until_it_ends(home: Path) -> None:
    penstock.create("QM1", home)
    exclusion = _engine.Exclusion(home / "QM1", {"name": "QM1"})
    exclusion.end()
    exclusion.end()  # again, to no effect
    with (
        penstock.connect("QM1", home),
        pytest.raises(penstock.ObjectInUse, match=f"process {os.getpid()} is connected"),
    ):
        _engine.Exclusion(home / "QM1", {"name": "QM1"})


def test_deleting_removes_no_file_that_a_forged_lock_file_names(home: Path, tmp_path: Path) -> None:
    penstock.create("QM1", home)
    penstock.connect("QM1", home).close()
    kept = tmp_path / "penstock-kept"
    kept.write_bytes(b"x")
    (home / "QM1" / "lock").write_text(f"penstock=1\nregion={kept.name}\ndirectory={tmp_path}\n")
    penstock.delete("QM1", home)
    assert kept.is_file()


@pytest.mark.parametrize("length", [48, 5000])
def test_a_segment_of_another_queue_manager_is_damage(tmp_path: Path, length: int) -> None:
    segment = tmp_path / "journal" / "0000000001.psj"
    segment.parent.mkdir()
    header = b"PSTKJRNL" + bytes(24) + b"A" * 16
    segment.write_bytes(header.ljust(length, b"\0"))
    manager_files.check_journal_belongs(tmp_path, b"A" * 16)
    with pytest.raises(penstock.ObjectDamaged, match=r"0000000001\.psj"):
        manager_files.check_journal_belongs(tmp_path, b"B" * 16)

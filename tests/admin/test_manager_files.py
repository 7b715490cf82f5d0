"""The files of a queue manager and the registry of connections, without attaching."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.admin import connections, directory, manager_files

Run = Callable[..., Any]


def test_the_registry_has_open_connections_of_this_process_only(home: Path) -> None:
    penstock.create("QM1", home)
    penstock.create("QM2", home)
    first, second = (directory.identity_of(home / name) for name in ("QM1", "QM2"))
    assert not connections.is_connected(first)
    qm = penstock.connect("QM1", home)
    assert connections.is_connected(first) and not connections.is_connected(second)
    qm.close()
    assert not connections.is_connected(first)


def test_the_lock_file_names_another_process_while_it_is_attached(
    home: Path, run_python: Run
) -> None:
    penstock.create("QM1", home)
    assert manager_files.attached_pid(home / "QM1") == 0  # no lock file yet
    ended = run_python(
        "import os, subprocess, sys, penstock\n"
        "with penstock.connect('QM1', sys.argv[1]):\n"
        "    code = 'import sys, pathlib; from penstock.admin import manager_files as m; '\n"
        "    code += 'print(m.attached_pid(pathlib.Path(sys.argv[1]) / \"QM1\"))'\n"
        "    done = subprocess.run([sys.executable, '-c', code, sys.argv[1]],\n"
        "                          capture_output=True, text=True, check=True)\n"
        "    assert int(done.stdout) == os.getpid()\n"
    )
    assert ended.stderr == ""
    assert manager_files.attached_pid(home / "QM1") == 0


def test_a_region_outside_its_directory_is_not_removed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(b"x")
    for name in ("../kept", "kept", f"penstock-/../{kept.name}"):
        (tmp_path / "lock").write_text(f"region={name}\ndirectory={tmp_path}\n")
        manager_files.remove_region(tmp_path)
    assert kept.is_file()


def test_the_region_that_the_lock_file_names_is_removed(tmp_path: Path) -> None:
    manager_files.remove_region(tmp_path)  # no lock file
    region = tmp_path / "penstock-1"
    region.write_bytes(b"x")
    (tmp_path / "lock").write_text(f"region={region.name}\ndirectory={tmp_path}\n")
    manager_files.remove_region(tmp_path)
    assert not region.exists()


@pytest.mark.parametrize("length", [48, 5000])
def test_a_segment_of_another_queue_manager_is_damage(tmp_path: Path, length: int) -> None:
    segment = tmp_path / "journal" / "0000000001.psj"
    segment.parent.mkdir()
    header = b"PSTKJRNL" + bytes(24) + b"A" * 16
    segment.write_bytes(header.ljust(length, b"\0"))
    manager_files.check_journal_belongs(tmp_path, b"A" * 16)
    with pytest.raises(penstock.ObjectDamaged, match=r"0000000001\.psj"):
        manager_files.check_journal_belongs(tmp_path, b"B" * 16)

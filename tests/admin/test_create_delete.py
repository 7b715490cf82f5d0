"""Queue managers as directories: create, list, delete, and what refuses them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_create_list_delete(home: Path) -> None:
    assert penstock.managers(home) == []
    penstock.create("QM.B/1", home)
    penstock.create("QM1", home)
    assert penstock.managers(home) == ["QM.B/1", "QM1"]
    assert (home / "QM!B&1" / "qm.toml").is_file()
    assert (home / "QM1").stat().st_mode & 0o777 == 0o700
    penstock.delete("QM.B/1", home)
    assert penstock.managers(home) == ["QM1"]
    assert os.listdir(home) == ["QM1"]


def test_a_manager_can_be_created_once_only(home: Path) -> None:
    penstock.create("QM1", home)
    with penstock.connect("QM1", home) as qm, qm.queue("Q") as q:
        q.put(b"kept")
    with pytest.raises(penstock.ObjectAlreadyExists) as caught:
        penstock.create("QM1", home)
    assert caught.value.reason == 2100 and "QM1" in str(caught.value)
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as q:
        assert q.get().data == b"kept"


def test_an_unknown_manager_is_reported_with_its_home(home: Path) -> None:
    for call in (penstock.connect, penstock.delete):
        with pytest.raises(penstock.QueueManagerNameError, match="NONE") as caught:
            call("NONE", home)
        assert caught.value.reason == 2058 and str(home) in str(caught.value)


@pytest.mark.parametrize("name", ["", "x" * 49, "a b", "a-b", "a\0", "ä"])
def test_a_wrong_manager_name_is_refused(home: Path, name: str) -> None:
    for call in (penstock.create, penstock.connect, penstock.delete):
        with pytest.raises(penstock.QueueManagerNameError) as caught:
            call(name, home)
        assert caught.value.reason == 2058
    assert os.listdir(home) == []


@pytest.mark.parametrize("name", [None, b"QM1", 5])
def test_a_manager_name_that_is_no_str_is_a_type_error(home: Path, name: object) -> None:
    for call in (penstock.create, penstock.connect, penstock.delete):
        with pytest.raises(TypeError) as caught:
            call(name, home)  # type: ignore[arg-type, operator]
        assert isinstance(caught.value, penstock.MQError)


def test_settings_are_checked_before_anything_is_made(home: Path) -> None:
    with pytest.raises(penstock.InvalidValue, match="segment_size"):
        penstock.create("QM1", home, segment_size=5)
    with pytest.raises(penstock.InvalidType, match="nonsense"):
        penstock.create("QM1", home, nonsense=1)
    assert penstock.managers(home) == []


def test_the_home_comes_from_the_environment_when_it_is_not_given(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(home))
    with penstock.connect("QM1", create=True) as qm:
        assert qm.path == home / "QM1"
    assert penstock.managers() == ["QM1"]
    penstock.delete("QM1")


def test_a_connected_manager_cannot_be_deleted(home: Path, run_python: Run) -> None:
    with penstock.connect("QM1", home, create=True):
        with pytest.raises(penstock.ObjectInUse):
            penstock.delete("QM1", home)
        other = run_python("import sys, penstock; penstock.delete('QM1', sys.argv[1])")
        assert "ObjectInUse" in other.stderr and f"process {os.getpid()}" in other.stderr
    penstock.delete("QM1", home)


def test_delete_leaves_foreign_files_and_names_them(home: Path) -> None:
    penstock.create("QM1", home)
    (home / "QM1" / "mine.txt").write_text("x")
    with pytest.raises(penstock.ObjectInUse, match=r"mine\.txt"):
        penstock.delete("QM1", home)
    assert (home / "QM1" / "mine.txt").read_text() == "x"


def test_delete_refuses_the_journal_of_another_manager(home: Path) -> None:
    penstock.create("QM1", home)
    penstock.create("QM2", home)
    text = (home / "QM2" / "qm.toml").read_text().replace('name = "QM2"', 'name = "QM1"')
    (home / "QM1" / "qm.toml").write_text(text)
    with pytest.raises(penstock.ObjectDamaged):
        penstock.delete("QM1", home)


def test_a_damaged_settings_file_is_refused_with_its_name(home: Path) -> None:
    penstock.create("QM1", home)
    (home / "QM1" / "qm.toml").write_text("name = 5")
    with pytest.raises(penstock.ObjectDamaged, match=r"qm\.toml"):
        penstock.connect("QM1", home)


def test_a_directory_that_others_may_write_is_refused(home: Path) -> None:
    penstock.create("QM1", home)
    (home / "QM1").chmod(0o777)
    with pytest.raises(penstock.MQError, match="QM1"):
        penstock.connect("QM1", home)

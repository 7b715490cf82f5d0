"""Queue managers: create, list, delete, connect; the cost of an import; reports of a restart."""

from __future__ import annotations

import logging
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


def test_persistent_messages_survive_a_restart_and_others_are_counted(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    penstock.create("QM1", home)
    with penstock.connect("QM1", home) as qm, qm.queue("Q") as q:
        for number in range(20):
            q.put(b"%d" % number, priority=number % 10, persistent=number % 2 == 0)
    assert qm.np_discarded == 10
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "10 non-persistent messages" in caplog.text and "QM1" in caplog.text
    with penstock.connect("QM1", home) as qm, qm.open("Q") as q:
        expected = sorted(range(0, 20, 2), key=lambda n: (-(n % 10), n))
        assert [int(m.data) for m in q.browse()] == expected
        assert qm.attach_info["messages"] == 10


def test_npmclass_high_keeps_messages_over_an_orderly_end(home: Path) -> None:
    with penstock.connect("QM1", home, create=True) as qm:
        qm.define("QLOCAL", "H", npmclass="HIGH")
        with qm.open("H") as q:
            q.put(b"kept", persistent=False)
    with penstock.connect("QM1", home) as qm, qm.open("H") as q:
        assert (m := q.get()).data == b"kept" and not m.persistent


def test_a_killed_process_loses_only_what_was_not_committed(home: Path, run_python: Run) -> None:
    ended = run_python(
        """
import os, signal, sys, penstock
qm = penstock.connect("QM1", sys.argv[1], create=True)
q = qm.queue("Q")
q.put(b"committed")
q.put(b"uncommitted", syncpoint=True)
q.put(b"not persistent", persistent=False)
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    assert ended.returncode == -9
    with penstock.connect("QM1", home) as qm, qm.open("Q") as q:
        assert [m.data for m in q.browse()] == [b"committed"]
        assert qm.attach_info["first"] and not qm.attach_info["clean"]


def test_connections_of_one_process_share_one_attachment(home: Path) -> None:
    with penstock.connect("QM1", home, create=True) as one, penstock.connect("QM1", home) as two:
        assert one.status().attached == 1
        assert not two.attach_info["first"]
        with one.queue("Q") as q, two.open("Q") as same:
            q.put(b"x")
            assert same.get().data == b"x"


def test_a_manager_that_was_ended_at_once_by_another_process_can_be_connected_again(
    home: Path, run_python: Run
) -> None:
    with penstock.connect("QM1", home, create=True) as qm, qm.queue("Q") as q:
        q.put(b"x")
        ended = run_python(
            "import sys, penstock\n"
            "with penstock.connect('QM1', sys.argv[1]) as qm: qm.end('immediate')"
        )
        assert ended.stderr == ""
        for call in (lambda: q.put(b"y"), q.get, lambda: q.get(wait=5)):
            with pytest.raises(penstock.QueueManagerStopping) as caught:
                call()
            assert caught.value.reason == 2162
    with penstock.connect("QM1", home) as qm, qm.open("Q") as q:
        assert q.get().data == b"x"


def test_import_loads_neither_numpy_nor_cffi_nor_the_commands_libraries(run_python: Run) -> None:
    ended = run_python(
        """
import sys
import penstock
heavy = {"numpy", "cffi", "click", "rich", "logging", "asyncio", "dataclasses", "tomllib",
         "typing", "threading", "inspect", "difflib", "lark", "prompt_toolkit",
         "pyexpat", "penstock.cli", "penstock.admin.settings", "penstock.journal",
         "penstock.headers.rfh2", "penstock.objects", "penstock.batch"}
print(sorted(heavy & set(sys.modules)))
"""
    )
    assert ended.stdout == "[]\n", ended.stdout + ended.stderr


def test_discarded_messages_are_reported_on_stderr_without_any_logging_set_up(
    home: Path, run_python: Run
) -> None:
    ended = run_python(
        """
import sys, penstock
with penstock.connect("QM1", sys.argv[1], create=True) as qm, qm.queue("Q") as q:
    q.put(b"x", persistent=False)
"""
    )
    assert "1 non-persistent message discarded" in ended.stderr


def test_the_logger_is_called_penstock(caplog: pytest.LogCaptureFixture) -> None:
    from penstock import _logging as notices

    with caplog.at_level(logging.WARNING, "penstock"):
        notices.discarded_at_restart("QM1", 3)
    assert caplog.record_tuples == [
        (
            "penstock",
            logging.WARNING,
            "queue manager QM1: the restart discarded 3 non-persistent messages",
        )
    ]

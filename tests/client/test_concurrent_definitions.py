"""Changes of one definition by several processes: none is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import QueueManager
from penstock.client import object_commands

ONE_ALTER = """
import sys
import penstock
with penstock.connect("QM1", sys.argv[1]) as qm:
    qm.alter("QLOCAL", "Q", bothresh=7)
"""
MANY_ALTERS = """
import sys
import penstock
with penstock.connect("QM1", sys.argv[1]) as qm:
    for number in range(1, 151):
        qm.alter("QLOCAL", "Q", **{sys.argv[2]: number})
        assert qm.display("QLOCAL", "Q")[0][sys.argv[2]] == number
"""


def alter_between_read_and_store(
    qm: QueueManager, home: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[object, object]:
    """Alters MAXDEPTH while another process alters BOTHRESH; the stored values of both."""
    check = object_commands._check_change
    calls = []

    def interrupted(*arguments: object, **more: object) -> None:
        calls.append(1)
        if len(calls) == 1:
            program = [sys.executable, "-c", ONE_ALTER, str(home)]
            subprocess.run(program, check=True, timeout=60)
        check(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(object_commands, "_check_change", interrupted)
    qm.define("QLOCAL", "Q")
    qm.alter("QLOCAL", "Q", maxdepth=9)
    monkeypatch.undo()
    (row,) = qm.display("QLOCAL", "Q")
    return row["maxdepth"], row["bothresh"]


def test_a_change_by_another_process_between_read_and_store_is_kept(
    qm: QueueManager, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert alter_between_read_and_store(qm, home, monkeypatch) == (9, 7)


def test_without_the_stamp_that_change_would_be_lost(
    qm: QueueManager, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Careless(QueueManager):
        """Stores what it made of what it read, whatever has happened in between."""

        def alter_object(self, *given: Any) -> bool:
            slot, generation, kind, name, attrs, _, *rest = given
            return super().alter_object(slot, generation, kind, name, attrs, 0, *rest)

    with Careless("QM1", home) as careless:
        assert alter_between_read_and_store(careless, home, monkeypatch) == (9, 0)


def test_two_processes_that_alter_one_queue_lose_none_of_their_changes(
    qm: QueueManager, home: Path
) -> None:
    qm.define("QLOCAL", "Q")
    workers = [
        subprocess.Popen([sys.executable, "-c", MANY_ALTERS, str(home), keyword])
        for keyword in ("maxdepth", "bothresh")
    ]
    assert [worker.wait(60) for worker in workers] == [0, 0]
    (row,) = qm.display("QLOCAL", "Q")
    assert (row["maxdepth"], row["bothresh"]) == (150, 150)


def test_two_processes_that_define_one_name_make_one_queue(qm: QueueManager, home: Path) -> None:
    program = (
        "import sys, penstock\n"
        "with penstock.connect('QM1', sys.argv[1]) as qm:\n"
        "    won = 0\n"
        "    for number in range(60):\n"
        "        try:\n"
        "            qm.define('QLOCAL', f'N{number}', descr=sys.argv[2])\n"
        "            won += 1\n"
        "        except penstock.ObjectAlreadyExists:\n"
        "            pass\n"
        "print(won)\n"
    )
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(home), name], stdout=subprocess.PIPE, text=True
        )
        for name in ("one", "two")
    ]
    made = [int(worker.communicate(timeout=60)[0]) for worker in workers]
    assert sum(made) == 60
    shown = [row["descr"] for row in qm.display("QLOCAL", "N*")]
    assert [shown.count("one"), shown.count("two")] == made


def test_processes_that_start_a_new_queue_manager_together_make_one_set_of_objects(
    home: Path,
) -> None:
    penstock.create("QM1", home, segment_size=1 << 20, journal_limit=64 << 20, ring_size=1 << 20)
    program = (
        "import sys, penstock\n"
        "with penstock.connect('QM1', sys.argv[1]) as qm:\n"
        "    print(len(qm.display('QUEUE')), len(qm.display('CHANNEL')), len(qm.display('QMGR')))\n"
    )
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(home)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    assert {worker.communicate(timeout=60)[0] for worker in workers} == {"8 9 1\n"}
    penstock.delete("QM1", home)

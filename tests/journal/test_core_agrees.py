"""T11: the core and the second reader find the same in the files of real queue managers."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.admin import settings as qmdir
from penstock.journal import QueueManagerFiles, describe_segments, iter_record_dicts

SMALL = {"segment_size": 1 << 20, "journal_limit": 16 << 20}
Row = tuple[bytes, bytes, int, int, bytes]


def by_core(queue: Any) -> list[Row]:
    """The persistent messages that a browse finds, in delivery order."""
    return [
        (m.msg_id, m.correl_id, m.priority, m.backout_count, m.data)
        for m in queue.browse()
        if m.persistent
    ]


def by_reader(directory: Path, name: str) -> list[Row]:
    rows = []
    for m in QueueManagerFiles(directory).replay().messages(name):
        if m.persistent:
            d = m.descriptor()
            rows.append((d.msg_id, d.correl_id, m.priority, m.backout_count, m.body()))
    return rows


def assert_sound(directory: Path) -> None:
    """verify() has only findings that are normal after a crash."""
    found = [f for f in QueueManagerFiles(directory).verify() if f.severity != "note"]
    assert not found, found


def work(qm: Any, rng: random.Random, steps: int) -> None:
    """Puts and gets of all kinds; every unit is ended.

    The last put flushes the BACKOUT records, which else wait for the next flush (rule 46).
    """
    with qm.open("ORDERS") as orders, qm.open("OTHER") as other:
        for step in range(steps):
            choice = rng.random()
            queue = rng.choice((orders, other))
            body = rng.randbytes(rng.choice((0, 1, 100, 1000, 5000, 70_000 * (step % 10 == 0))))
            if choice < 0.5:
                queue.put(body, priority=rng.randrange(10), correl_id=step.to_bytes(4, "big"))
            elif choice < 0.65:
                try:
                    queue.get(wait=0)
                except penstock.NoMessageAvailable:
                    pass
            elif choice < 0.85:
                with qm.transaction():
                    orders.put(b"o%d" % step, priority=3)
                    other.put(b"t%d" % step * 500)
            else:
                backed_out(qm, queue, step)
        other.put(b"the last of this work")


def backed_out(qm: Any, queue: Any, step: int) -> None:
    try:
        with qm.transaction():
            queue.put(b"never there")
            queue.get(wait=0)
            raise KeyError(step)
    except (KeyError, penstock.NoMessageAvailable):
        pass


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    penstock.create("QM1", home=tmp_path, **SMALL)
    with penstock.connect("QM1", home=tmp_path) as qm:
        qm.define("QLOCAL", "ORDERS", defpsist=True, maxdepth=100_000)
        qm.define("QLOCAL", "OTHER", defpsist=True, maxdepth=100_000, msgdlvsq="FIFO")
    return qmdir.manager_directory("QM1", tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_both_find_the_same_while_it_runs_after_an_end_and_after_the_restart(
    directory: Path, seed: int
) -> None:
    rng = random.Random(seed)
    for _ in range(3):
        with penstock.connect("QM1", home=directory.parent) as qm:
            work(qm, rng, 150)
            with qm.open("ORDERS") as orders, qm.open("OTHER") as other:
                shown = {"ORDERS": by_core(orders), "OTHER": by_core(other)}
            for name, rows in shown.items():
                assert by_reader(directory, name) == rows
            assert_sound(directory)
        for name, rows in shown.items():
            assert by_reader(directory, name) == rows
        assert_sound(directory)


KILLED = """
import os, random, signal, sys
import penstock
sys.path.insert(0, sys.argv[3])
from test_core_agrees import work
qm = penstock.connect("QM1", home=sys.argv[1])
work(qm, random.Random(int(sys.argv[2])), 120)
unit = qm.transaction()
unit.__enter__()
with qm.open("ORDERS") as q:
    q.put(b"never committed")
    q.put(b"never committed" * 30_000)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("seed", range(3))
def test_both_find_the_same_after_a_kill(directory: Path, seed: int) -> None:
    for turn in range(3):
        arguments = [str(directory.parent), str(seed * 10 + turn), str(Path(__file__).parent)]
        command = [sys.executable, "-c", KILLED, *arguments]
        ended = subprocess.run(command, timeout=60, check=False, env=dict(os.environ))
        assert ended.returncode == -signal.SIGKILL
        assert_sound(directory)
        before = {name: by_reader(directory, name) for name in ("ORDERS", "OTHER")}
        with penstock.connect("QM1", home=directory.parent) as qm:
            for name, rows in before.items():
                with qm.open(name) as queue:
                    assert by_core(queue) == rows
        assert not any(b"never" in row[4] for rows in before.values() for row in rows)


def test_definitions_are_the_same_in_both(directory: Path) -> None:
    with penstock.connect("QM1", home=directory.parent) as qm:
        qm.define("QLOCAL", "THIRD", maxdepth=7)
        qm.alter("QLOCAL", "OTHER", maxdepth=8)
        qm.delete("QLOCAL", "THIRD")
        qm.define("QLOCAL", "FOURTH")
        state = QueueManagerFiles(directory).replay()
        own = [name for name in state.queue_names() if not name.startswith("SYSTEM.")]
        assert own == ["FOURTH", "ORDERS", "OTHER"]
        depths = {o.name: o.attributes.get(15) for o in state.objects.values()}
        assert depths["OTHER"] == 8 and depths["ORDERS"] == 100_000


def test_reading_beside_a_busy_queue_manager_finds_no_damage(directory: Path) -> None:
    with penstock.connect("QM1", home=directory.parent) as qm:
        rng = random.Random(7)
        for _ in range(15):
            work(qm, rng, 30)
            assert_sound(directory)
    rows = list(iter_record_dicts(directory))
    assert rows and describe_segments(directory)

"""T11 for prepared units: the core and the second reader find the same in real files."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import Xid
from penstock.admin import settings as qmdir
from penstock.journal import QueueManagerFiles

Row = tuple[bool, bytes, int, int, bytes]


def work(qm: Any, rng: random.Random, serial: list[int]) -> None:
    """Puts, gets, prepares and resolves some units; the others stay prepared."""
    with qm.open("ORDERS") as queue:
        for _ in range(25):
            for _ in range(rng.randrange(5)):
                size = rng.choice((0, 10, 4000, 150_000 * (rng.random() < 0.1)))
                queue.put(rng.randbytes(size), persistent=rng.random() < 0.7)
            for _ in range(rng.randrange(4)):
                if rng.random() < 0.5 and queue.depth > 8:
                    queue.get(syncpoint=True)
                else:
                    queue.put(rng.randbytes(50), persistent=rng.random() < 0.7, syncpoint=True)
            serial[0] += 1
            qm.prepare(Xid(4, b"%d" % serial[0], rng.randbytes(3)), allow_empty=True)
            there = qm.recover()
            if len(there) > 5:
                chosen = rng.sample(there, 3)
                (qm.commit_prepared if rng.random() < 0.6 else qm.backout_prepared)(*chosen)
        queue.put(b"the last of this work", persistent=True)


def by_core(qm: Any, with_volatile_puts: bool) -> list[tuple[str, list[Row]]]:
    found = []
    for xid in qm.recover():
        batch = qm.browse_prepared(xid)
        rows = zip(batch, batch.is_put.tolist(), strict=True)
        kept = [(m, put) for m, put in rows if with_volatile_puts or m.persistent or not put]
        found.append(
            (str(xid), [(p, m.msg_id, m.priority, m.backout_count, m.data) for m, p in kept])
        )
    return found


def by_reader(directory: Path) -> list[tuple[str, list[Row]]]:
    state = QueueManagerFiles(directory).replay()
    found = []
    for unit in state.prepared:
        rows = []
        for call, m in state.prepared_messages(unit):
            d = m.descriptor()
            rows.append((call == "PUT", d.msg_id, m.priority, m.backout_count, m.body()))
        found.append((str(unit.xid), rows))
    return found


def assert_sound(directory: Path) -> None:
    found = [f for f in QueueManagerFiles(directory).verify() if f.severity != "note"]
    assert not found, found


@pytest.mark.parametrize("seed", range(3))
def test_both_find_the_same_units_while_it_runs_after_an_end_and_after_the_restart(
    tmp_path: Path, seed: int
) -> None:
    rng, serial = random.Random(seed), [0]
    penstock.create("QM1", home=tmp_path, segment_size=1 << 20, journal_limit=64 << 20)
    directory = qmdir.manager_directory("QM1", tmp_path)
    with penstock.connect("QM1", home=tmp_path) as qm:
        qm.define("QLOCAL", "ORDERS", npmclass="HIGH")
    for _ in range(3):
        with penstock.connect("QM1", home=tmp_path) as qm:
            assert by_reader(directory) == by_core(qm, with_volatile_puts=True)
            work(qm, rng, serial)
            shown = by_core(qm, with_volatile_puts=False)
            assert shown and by_reader(directory) == shown
            with qm.open("ORDERS") as queue:
                durable = [m.data for m in queue.browse() if m.persistent]
            state = QueueManagerFiles(directory).replay()
            assert [m.body() for m in state.messages("ORDERS") if m.persistent] == durable
            assert_sound(directory)
        assert by_reader(directory) == shown
        assert_sound(directory)

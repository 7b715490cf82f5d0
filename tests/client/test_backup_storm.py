"""Backups in a loop beside writers that are killed: each copy, and the queue manager restored from
it, holds every unit of work that was committed before it began, whole, and no half of another."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import penstock
from penstock.client.restore import restore
from penstock.journal import QueueManagerFiles

SECONDS = 6.0
WRITERS = 4
WRITER = """
import os, sys, time, penstock
home, acked, name = sys.argv[1:]
log = os.open(acked, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
with penstock.connect("QM1", home) as qm, qm.open("Q") as queue:
    for number in range(100000):
        unit = f"{name}-{number}"
        with qm.transaction():
            for half in "ab":
                queue.put(f"{unit}-{half} ".encode() * 40, persistent=True)
        os.write(log, f"{unit}\\n".encode())
        time.sleep(0.002)  # else a backup on a slow machine is given up at 80 % of the journal
        if number % 3 == 0:
            with qm.transaction():  # moves what is oldest: the journal turns over
                queue.put(queue.get().data, persistent=True)
"""


def acked_units(folder: Path) -> set[str]:
    return {
        line
        for file in folder.iterdir()
        for line in file.read_text().split("\n")[:-1]  # a line is written whole or not at all
    }


class Writers:
    """Processes that put units; some of them are killed from time to time, and replaced."""

    def __init__(self, home: Path, folder: Path, chance: random.Random) -> None:
        self._home, self._folder, self._chance = home, folder, chance
        self._count = self.kills = 0
        self._all = [self._start() for _ in range(WRITERS)]

    def _start(self) -> subprocess.Popen[bytes]:
        self._count += 1
        name = f"w{self._count}"
        return subprocess.Popen(
            [sys.executable, "-c", WRITER, self._home, self._folder / name, name]
        )

    def kill_one(self) -> None:
        at = self._chance.randrange(WRITERS)
        self._all[at].kill()
        self._all[at].wait()
        self.kills += 1
        self._all[at] = self._start()

    def end(self) -> None:
        for one in self._all:
            one.kill()
            one.wait()


def test_each_backup_beside_killed_writers_holds_every_unit_that_was_committed_before(
    home: Path, tmp_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    penstock.create("QM1", home, segment_size=256 << 10, journal_limit=256 << 20)
    folder = tmp_path / "acked"
    folder.mkdir()
    chance = random.Random(seed)
    made = 0
    with penstock.connect("QM1", home) as qm:
        qm.queue("Q", maxdepth=999_999).close()
        writers = Writers(home, folder, chance)
        try:
            deadline = time.monotonic() + SECONDS
            while time.monotonic() < deadline or made < 4:
                time.sleep(chance.random() * 0.2)
                writers.kill_one()
                before = acked_units(folder)
                copy = qm.backup(tmp_path / f"copy{made}").path
                check(read(copy), before, seed)
                restored = restore(copy, "QM2", tmp_path / f"home{made}").path.parent
                with penstock.connect("QM2", restored) as other, other.open("Q") as queue:
                    check([m.data for m in queue.browse()], before, seed)
                made += 1
        finally:
            writers.end()
    assert len(acked_units(folder)) > 20
    print(f"{made} backups, {writers.kills} kills, {len(acked_units(folder))} units")


def read(copy: Path) -> list[bytes]:
    """The messages of a copy, by the second reader."""
    return [message.body() for message in QueueManagerFiles(copy).replay().messages("Q")]


def check(bodies: list[bytes], before: set[str], seed: int) -> None:
    halves: dict[str, int] = {}
    for body in bodies:
        unit, _, half = body.split(b" ")[0].decode().rpartition("-")
        halves[unit] = halves.get(unit, 0) + 1
        assert body == f"{unit}-{half} ".encode() * 40
    missing = before - halves.keys()
    assert not missing, f"seed {seed}: {sorted(missing)[:5]} are missing"
    torn = [unit for unit, count in halves.items() if count != 2]
    assert not torn, f"seed {seed}: units in part or twice: {torn[:5]}"

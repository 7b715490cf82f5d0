"""A full disk under a queue manager that is to be emptied.

    python tests/crash/full_disk.py [--only WORD]

Small file systems of several sizes, in memory and (where loop devices can be had) ext4, each with a
queue manager whose queue is filled with persistent messages until a put is 2192. Then a stranger's
file takes every block that is left. The queue must be emptied by single gets, by units of work of
100 messages, by the command ``penstock get``; at once, after an orderly end and a start, and with
the only process killed three times in between. Every message must come once, in order, and puts
must work again when the stranger's file is gone.

Runs in a new mount namespace, as root or with a user namespace; where neither is allowed it reports
that and fails. Where ext4 cannot be mounted it says so, and that part is left out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from full_namespace import inside_namespace

import penstock
from penstock import journal

MIB = 1 << 20
KIB = 1 << 10
PUTS_AGAIN_SECONDS = 20
KILLS = 3
GETS_BEFORE_A_KILL = 3
DYING = """
import os, sys, penstock
queue = penstock.connect("FULL", sys.argv[1]).open("Q")
for _ in range(int(sys.argv[2])):
    print(queue.get().data.decode(), flush=True)
os.kill(os.getpid(), 9)
"""


class Case(NamedTuple):
    """What is tried: file system, its size, bytes of a segment (0: as usual), of a message."""

    system: str
    size: int
    segment: int
    body: int
    drain: str
    before: str

    def __str__(self) -> str:
        segment = f"{self.segment // KIB} KiB" if self.segment else "usual"
        return (
            f"{self.system:5} {self.size // MIB:4} MiB, {segment} segments, bodies of {self.body}: "
            f"{self.drain}, {self.before}"
        )


CASES = (
    *(
        Case("tmpfs", 24 * MIB, 256 * KIB, 1000, drain, before)
        for drain in ("single", "units", "command")
        for before in ("at once", "after an end", "killed")
    ),
    Case("tmpfs", 12 * MIB, 32 * KIB, 100, "single", "killed"),
    Case("tmpfs", 64 * MIB, MIB, 20000, "single", "killed"),
    Case("tmpfs", 96 * MIB, 0, 50, "units", "after an end"),
    Case("tmpfs", 400 * MIB, 0, 1000, "single", "at once"),
    Case("tmpfs", 400 * MIB, 0, 1000, "units", "killed"),
    *(
        Case("ext4", 24 * MIB, 256 * KIB, 4000, drain, before)
        for drain in ("single", "units")
        for before in ("at once", "killed")
    ),
    Case("ext4", 64 * MIB, MIB, 20000, "single", "after an end"),
)


@contextmanager
def room_of(case: Case, folder: Path) -> Iterator[Path]:
    """The mounted file system."""
    room = folder / "room"
    room.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={case.size},mode=700", "full", str(room)]
    if case.system == "ext4":
        image = folder / "image"
        with image.open("wb") as file:
            file.truncate(case.size)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", image], check=True)
        command = ["mount", "-o", "loop", str(image), str(room)]
    subprocess.run(command, check=True, capture_output=True)
    try:
        room.chmod(0o700)
        yield room
    finally:
        subprocess.run(["umount", "-l", room], check=False)


def can_mount_ext4(folder: Path) -> str:
    """Why not, or nothing."""
    try:
        with room_of(Case("ext4", 8 * MIB, 0, 0, "", ""), folder):
            return ""
    except FileNotFoundError as error:
        return str(error)
    except subprocess.CalledProcessError as error:
        return (error.stderr or b"").decode().strip() or str(error)


def take_the_rest(room: Path) -> None:
    """Every block that is left, for a file that is not the queue manager's."""
    with (room / "stranger").open("ab", buffering=0) as file:
        for size in (64 * KIB, 4 * KIB, 512, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))
        with suppress(OSError):
            os.fsync(file.fileno())


def fill(case: Case, room: Path) -> list[bytes]:
    """What was accepted, in order."""
    usual = {"segment_size": case.segment, "journal_limit": max(case.size, 16 * case.segment)}
    penstock.create("FULL", room, **(usual if case.segment else {}))
    made: list[bytes] = []
    qm = penstock.connect("FULL", room)
    qm.define("QLOCAL", "Q", maxdepth=999_999_999, defpsist=True)
    with qm.open("Q") as queue:
        for many in (50, 1):
            with suppress(penstock.StorageMediumFull):
                while True:
                    new = [
                        b"%09d" % number + b"x" * case.body
                        for number in range(len(made), len(made) + many)
                    ]
                    with qm.transaction():
                        for body in new:
                            queue.put(body, persistent=True)
                    made += new
    take_the_rest(room)
    with suppress(penstock.StorageMediumFull):
        qm.close()
    take_the_rest(room)  # what the orderly end has cut from the reserve for a checkpoint
    return made


def get_all(qm: penstock.QueueManager, many: int) -> list[bytes]:
    """In units of work of so many; 1: each get alone."""
    got: list[bytes] = []
    with qm.open("Q") as queue:
        with suppress(penstock.NoMessageAvailable):
            while many == 1:
                got.append(queue.get().data)
        unit = [b""] * many
        while len(unit) == many > 1:
            unit = []
            with qm.transaction(), suppress(penstock.NoMessageAvailable):
                while len(unit) < many:
                    unit.append(queue.get().data)
            got += unit
    return got


def kill_some(room: Path) -> list[bytes]:
    """The only process gets some messages, and is killed; again and again."""
    got: list[bytes] = []
    for _ in range(KILLS):
        done = subprocess.run(
            [sys.executable, "-c", DYING, str(room), str(GETS_BEFORE_A_KILL)],
            capture_output=True,
            check=False,
        )
        assert done.returncode == -9, done.stderr.decode()
        got += done.stdout.split(b"\n")[:-1]
    return got


def by_command(room: Path) -> list[bytes]:
    """One line a message."""
    command = [sys.executable, "-m", "penstock.cli", "get", "FULL", "Q", "--home", str(room)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode in {0, 1}, done.stderr.decode()
    return done.stdout.split(b"\n")[:-1]


def puts_again(qm: penstock.QueueManager) -> None:
    """Soon after the stranger's file is gone."""
    end = time.monotonic() + PUTS_AGAIN_SECONDS
    with qm.open("Q") as queue:
        while True:
            try:
                queue.put(b"again", persistent=True)
                break
            except penstock.StorageMediumFull:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        assert queue.get().data == b"again"


def fill_and_empty(case: Case, room: Path) -> int:
    """How many messages."""
    made = fill(case, room)
    got = kill_some(room) if case.before == "killed" else []
    if case.drain == "command":
        got += by_command(room)
    qm = penstock.connect("FULL", room)
    if case.before == "after an end":
        with suppress(penstock.StorageMediumFull):
            qm.close()
        qm = penstock.connect("FULL", room)
    if case.drain != "command":
        got += get_all(qm, 1 if case.drain == "single" else 100)
    assert got == made, f"{len(got)} of {len(made)} messages, or in another order"
    (room / "stranger").unlink()
    puts_again(qm)
    qm.close()
    damage = [f for f in journal.verify(room / "FULL") if f["severity"] == "damage"]
    assert damage == [], damage
    return len(made)


def run(case: Case, folder: Path) -> int:
    """The same on a file system of its own."""
    with room_of(case, folder) as room:
        return fill_and_empty(case, room)


def main() -> None:
    """All cases."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", help="cases with this in their line")
    arguments = parser.parse_args()
    inside_namespace()
    begin, messages, cases = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory(prefix="penstock-full-disk-") as name:
        refused = can_mount_ext4(Path(name))
        if refused:
            print(f"ext4: left out, it cannot be mounted here: {refused}", flush=True)
        for case in CASES:
            if arguments.only not in str(case) or (refused and case.system == "ext4"):
                continue
            start = time.monotonic()
            count = run(case, Path(name))
            print(f"{case}: {count} messages, {time.monotonic() - start:.1f} s", flush=True)
            messages, cases = messages + count, cases + 1
    print(
        f"full disk: {cases} cases, {messages} messages, verdict: each one came once, in order, "
        f"in {time.monotonic() - begin:.0f} s"
    )


if __name__ == "__main__":
    main()

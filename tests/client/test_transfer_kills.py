"""Unload and load under SIGKILL: whatever line of theirs is the last one that a process executes,
the same command with ``resume`` brings each message over once, in order.

The steps of a process are counted by the tracing of Python, in the modules that steer the
transfer; it is killed before the n-th line of them, and its successor may be killed as well.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import penstock
from penstock.client import unload as unload_module

SMALL = {"segment_size": 1 << 20, "journal_limit": 64 << 20, "ring_size": 1 << 20}
TRACED = ("client/unload.py", "client/load.py", "client/transfer_ledger.py",
          "message_files/json_lines.py", "message_files/parquet_files.py",
          "message_files/file_lock.py")  # fmt: skip
MESSAGES = 7
STRIDE = int(os.environ.get("PENSTOCK_TRANSFER_STRIDE", "23"))  # 1: every line, half an hour
TIMES = 400 // STRIDE  # of the random ones
SEED = int(os.environ.get("PENSTOCK_TRANSFER_SEED", "20"))
COMPLETE, KILLED = 0, 1


def child(work: Callable[[], Any], step: int) -> int:
    """Does the work in a process that is killed before the traced line of this number."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        try:
            kill_before(step)
            work()
            sys.settrace(None)
            os.write(writer, b"\n")
        except BaseException:
            sys.settrace(None)
            os.write(writer, traceback.format_exc().encode()[-60000:])
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        report = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        return KILLED
    assert report == "\n", report
    return COMPLETE


def kill_before(step: int) -> None:
    left = step

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        return line if frame.f_code.co_filename.endswith(TRACED) else None

    sys.settrace(call)


class World:
    """A queue manager, the file, and what must have become of the messages."""

    def __init__(self, home: Path, folder: Path, parquet: bool, persistent: bool) -> None:
        self.home, self.folder, self.parquet = home, folder, parquet
        self.persistent = persistent
        penstock.create("QM1", home, **SMALL)
        with self.connect() as qm:
            qm.queue("Q").close()
        self.path = folder / "none"
        self.bodies: list[bytes] = []

    def connect(self) -> Any:
        return penstock.connect("QM1", self.home)

    def begin(self, number: int) -> None:
        """A new file, and messages on the queue."""
        self.path = self.folder / f"file{number}"
        self.bodies = [b"%d.%d" % (number, at) for at in range(MESSAGES)]
        with self.connect() as qm, qm.open("Q") as queue:
            assert queue.depth == 0, number
            for body in self.bodies:
                queue.put(body, persistent=self.persistent, format="MQSTR")

    def unload(self) -> None:
        with self.connect() as qm:
            qm.unload(self.path, "Q", remove=True, resume=True, parquet=self.parquet)

    def load(self) -> None:
        with self.connect() as qm:
            qm.load(self.path, resume=True, parquet=self.parquet)

    def check_unloaded(self) -> None:
        with self.connect() as qm, qm.open("Q") as queue:
            assert queue.depth == 0
        if not self.parquet:
            lines = [json.loads(line) for line in self.path.read_bytes().splitlines()]
            assert [line["text"].encode() for line in lines[1:-1]] == self.bodies

    def check_loaded(self) -> None:
        with self.connect() as qm, qm.open("Q") as queue:
            assert [message.data for message in queue.browse()] == self.bodies

    def empty(self) -> None:
        with self.connect() as qm, qm.open("Q") as queue:
            while len(queue.get_batch(100)):
                pass


def run(world: World, number: int, step: int, second: int | None) -> bool:
    """An unload and a load, each killed at a step; whether any of the two was long enough."""
    world.begin(number)
    reached = False
    for work, check in ((world.unload, world.check_unloaded), (world.load, world.check_loaded)):
        if child(work, step) == KILLED:
            reached = True
            if second is not None:
                child(work, second)
            work()
        check()
    world.empty()
    return reached


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unload_module, "UNIT_MESSAGES", 3)


@pytest.mark.parametrize("parquet", [False, True], ids=["JSON lines", "Parquet"])
def test_a_kill_of_the_only_process_at_any_line_neither_loses_nor_doubles(
    home: Path, tmp_path: Path, parquet: bool
) -> None:
    world = World(home, tmp_path, parquet, persistent=True)
    stride = 6 * STRIDE if parquet else STRIDE  # twice as many lines, and slow ones
    step = random.Random(SEED).randrange(stride)
    number = 0
    while run(world, number, step, None):
        step += stride
        number += 1
        assert step < 20_000
    assert step > 600, step


def test_kills_of_both_processes_at_random_lines_neither_lose_nor_double(
    home: Path, tmp_path: Path
) -> None:
    world = World(home, tmp_path, parquet=False, persistent=True)
    chance = random.Random(SEED)
    for number in range(TIMES):
        run(world, number, chance.randrange(400), chance.randrange(500))


def test_non_persistent_messages_survive_kills_beside_a_living_process(
    home: Path, tmp_path: Path
) -> None:
    world = World(home, tmp_path, parquet=False, persistent=False)
    chance = random.Random(SEED)
    keeper, said = os.pipe()
    go_on, ended = os.pipe()
    pid = os.fork()
    if pid == 0:  # keeps the queue manager running
        os.close(ended)
        signal.alarm(300)
        with world.connect():
            os.write(said, b".")
            os.read(go_on, 1)
        os._exit(0)
    os.close(go_on)
    try:
        assert os.read(keeper, 1) == b"."
        for number in range(TIMES):
            run(world, number, chance.randrange(400), chance.randrange(500))
    finally:
        os.close(ended)
        os.waitpid(pid, 0)

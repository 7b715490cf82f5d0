"""Salvage of what the core has written: a queue manager with units, gets, bodies in chunks, several
segments and checkpoints, killed or ended, whose files are then damaged at random.

The model is the journal of the test itself: what it put, committed and got.
"""

from __future__ import annotations

import ast
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.journal import MemoryFiles
from penstock.journal.salvage import Salvage
from thorough import one_in

SMALL = {"segment_size": 64 << 10, "journal_limit": 32 << 20, "ring_size": 256 << 10}
FOLDERS = ("journal", "checkpoint")


class Model:
    """What is on the queues, and what was."""

    def __init__(self) -> None:
        self.present: dict[bytes, str] = {}
        self.was: dict[bytes, str] = {}
        self.never: set[bytes] = set()


def body_of(chance: random.Random, number: int) -> bytes:
    size = chance.choice((10, 300, 3000, 20_000, 90_000))
    return b"%06d:" % number + bytes([number % 256]) * size


def work(qm: penstock.QueueManager, model: Model, chance: random.Random) -> None:
    """Puts and gets, alone and in units, with checkpoints; each body is there once."""
    queues = {name: qm.queue(name) for name in ("A", "B")}
    for number in range(220):
        name = chance.choice(("A", "B"))
        queue = queues[name]
        step = chance.randrange(10)
        if step < 6:
            made = [body_of(chance, 10 * number + at) for at in range(chance.randrange(1, 4))]
            with qm.transaction() as unit:
                for body in made:
                    queue.put(body, priority=chance.randrange(10))
                if step == 0:
                    unit.backout()
                    model.never |= set(made)
                else:
                    model.present |= dict.fromkeys(made, name)
        elif step < 9:
            for _ in range(chance.randrange(1, 4)):
                message = queue.get(default=None)
                if message is not None:
                    model.was[message.data] = model.present.pop(message.data)
        elif number % 3 == 0:
            qm.checkpoint()
    for queue in queues.values():
        queue.close()


def written(home: Path, model: Model, how: str) -> None:
    """Fills a queue manager in a process of its own, which ends or is killed."""
    penstock.create("QM1", home, **SMALL)
    chance = random.Random(5)
    sys.stdout.flush()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(100)
        made = Model()
        try:
            with penstock.connect("QM1", home) as qm:
                work(qm, made, chance)
                text = repr((made.present, made.was, made.never)).encode()
                with open(writer, "wb") as pipe:
                    pipe.write(text)
                if how == "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        model.present, model.was, model.never = ast.literal_eval(pipe.read().decode())
    os.waitpid(pid, 0)


def files_in(path: Path) -> dict[str, bytes]:
    found = {name: (path / name).read_bytes() for name in ("qm.toml", "HEAD")}
    for folder in FOLDERS:
        for file in sorted((path / folder).iterdir()):
            found[f"{folder}/{file.name}"] = file.read_bytes()
    return found


def damages(files: dict[str, bytes], chance: random.Random, folder: str = "") -> dict[str, bytes]:
    """Some files flipped, cut off, overwritten or missing."""
    mutant = dict(files)
    paths = sorted(path for path in files if path.startswith(folder))
    for path in chance.sample(paths, min(len(paths), chance.randrange(1, 4))):
        data = bytearray(mutant[path])
        used = max(1, len(data.rstrip(b"\0")))
        kind = chance.randrange(5)
        if kind == 0:
            del mutant[path]
            continue
        if kind == 1:
            del data[chance.randrange(used) :]
        elif kind == 2:
            at = chance.randrange(used) & -512
            data[at : at + 512] = bytes(min(512, len(data) - at))
        elif kind == 3:
            at, other = (chance.randrange(used) & -4096 for _ in range(2))
            data[at : at + 4096] = data[other : other + 4096]
        else:
            for _ in range(chance.randrange(1, 6)):
                data[chance.randrange(used)] ^= 1 << chance.randrange(8)
        mutant[path] = bytes(data)
    return mutant


@pytest.fixture(params=["ended", "killed"])
def world(request: pytest.FixtureRequest, home: Path) -> Iterator[tuple[Model, dict[str, bytes]]]:
    model = Model()
    written(home, model, request.param)
    yield model, files_in(home / "QM1")


def found_in(files: dict[str, bytes]) -> tuple[dict[bytes, str], Salvage]:
    found = Salvage(MemoryFiles(files)).run()
    bodies: dict[bytes, str] = {}
    for message, queue in found.messages():
        body = message.body()
        assert body not in bodies, body[:7]
        bodies[body] = queue.name
    return bodies, found


def test_salvage_of_what_the_core_wrote(world: tuple[Model, dict[str, bytes]]) -> None:
    model, files = world
    bodies, found = found_in(files)
    assert bodies == model.present and found.losses == []
    assert len(model.present) > 50 and len(model.was) > 50 and len(model.never) > 10
    without = {path: data for path, data in files.items() if not path.startswith("checkpoint")}
    del without["qm.toml"]
    bodies, found = found_in(without)
    assert model.present.keys() <= bodies.keys(), "each record is there"
    assert bodies.keys() <= model.present.keys() | model.was.keys()
    assert any(loss.kind == "file" for loss in found.losses)
    for seed in range(0, 8, one_in(4)):
        bodies, _ = found_in(damages(files, random.Random(seed), "checkpoint"))
        assert model.present.keys() <= bodies.keys(), seed
    for seed in range(0, 40, one_in(4)):
        mutant = damages(files, random.Random(seed))
        bodies, found = found_in(mutant)
        assert not bodies.keys() & model.never, seed
        known = {**model.was, **model.present}
        assert bodies.keys() <= known.keys(), seed
        for body, queue in bodies.items():
            assert queue == known[body] or queue.startswith("SALVAGED."), seed
        if bodies != model.present:
            assert found.losses, seed
        if bodies.keys() & model.was.keys():
            assert any(loss.kind in ("uncertain", "file") for loss in found.losses), seed

"""Unload and load of persistent messages of 256 bytes, seconds a message; no aims."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from conftest import Interleave

MESSAGES = 100_000
BODY = b"x" * 256
UNIT = 1000


class Transfer:
    """A queue manager whose queue is unloaded and loaded in turn."""

    def __init__(self, files: Path, messages: int, parquet: bool) -> None:
        self.files, self.messages, self.parquet = files, messages, parquet
        self.number = 0
        self.qm = penstock.connect("BENCH", files, create=True)
        with self.qm.queue("Q") as queue:
            for _ in range(messages // UNIT):
                queue.put_batch([BODY] * UNIT, persistent=True)

    def path(self) -> Path:
        """Of the newest file."""
        return self.files / f"file{self.number}"

    def unload(self) -> float:
        """To a new file."""
        self.number += 1
        begin = time.perf_counter()
        done = self.qm.unload(self.path(), "Q", remove=True, parquet=self.parquet)
        seconds = time.perf_counter() - begin
        assert done == self.messages
        return seconds / done

    def load(self) -> float:
        """From it."""
        begin = time.perf_counter()
        done = self.qm.load(self.path(), parquet=self.parquet)
        seconds = time.perf_counter() - begin
        with self.qm.open("Q") as queue:
            assert done == queue.depth == self.messages
        return seconds / done


@pytest.mark.parametrize("parquet", [False, True], ids=["JSON lines", "Parquet"])
def bench_unload_and_load(
    interleave: Interleave, files: Path, scale: Callable[[int], int], parquet: bool
) -> None:
    """The two in turn, so that each finds what the other has left: the first side comes last."""
    count = max(UNIT, scale(MESSAGES) // UNIT * UNIT)
    transfer = Transfer(files, count, parquet)
    name = "Parquet" if parquet else "JSON lines"
    try:
        interleave(
            f"{name} of {count:,} messages", {"load": transfer.load, "unload": transfer.unload}, []
        )
    finally:
        transfer.qm.close()

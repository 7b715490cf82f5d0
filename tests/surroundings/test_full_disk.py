"""A queue manager on a disk on which no block is free can be emptied."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

import penstock
from surroundings import tmpfs

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "crash"))

from full_disk import Case, fill, fill_and_empty, take_the_rest

SIZE = 12 << 20
PATIENCE_S = 60.0


@pytest.mark.parametrize("drain", ["single", "units", "command"])
@pytest.mark.parametrize("before", ["at once", "after an end", "killed"])
def test_every_message_comes_once_and_in_order(drain: str, before: str) -> None:
    with tmpfs(SIZE) as room:
        assert fill_and_empty(Case("tmpfs", SIZE, 128 << 10, 500, drain, before), room) > 1000


def test_a_put_is_refused_with_a_text_that_says_that_gets_go_on() -> None:
    with tmpfs(SIZE) as room:
        fill(Case("tmpfs", SIZE, 128 << 10, 500, "", ""), room)
        with penstock.connect("FULL", room) as qm, qm.open("Q") as queue:
            for _ in range(200):
                queue.get()
            take_the_rest(room)
            with pytest.raises(penstock.StorageMediumFull, match="2192"):
                while True:
                    queue.put(b"x" * 500, persistent=True)
            queue.get()
            (room / "stranger").unlink()


def test_three_files_are_reserved_small_ones_until_the_journal_is_in_use(tmp_path: Path) -> None:
    def reserved(count: int) -> list[int]:
        end = time.monotonic() + PATIENCE_S
        files: list[Path] = []
        while len(files) < count and time.monotonic() < end:
            qm.maintain()  # it does nothing while the thread is in a round of its own
            time.sleep(0.01)
            files = list((tmp_path / "ONE" / "journal").glob("reserve-*.psj"))
        return sorted(path.stat().st_size for path in files)

    penstock.create("ONE", tmp_path)
    with penstock.connect("ONE", tmp_path) as qm:
        qm.define("QLOCAL", "Q")
        with qm.open("Q") as queue:
            queue.put(b"one", persistent=True)
            assert reserved(3) == [256 << 10] * 3
            for _ in range(30):
                queue.put(bytes(100_000), persistent=True)
            assert reserved(6) == [256 << 10] * 3 + [2 << 20] * 3
    assert (tmp_path / "ONE" / "checkpoint" / "checkpoint.reserve").stat().st_size < 1 << 20

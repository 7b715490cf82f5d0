"""The files of a queue manager: how much of the disk it takes before it is used."""

from __future__ import annotations

import time
from pathlib import Path

import penstock

MIB = 1 << 20
NEW_MAX = 4 * MIB
PATIENCE_S = 60.0


def use_first_segment(qm: penstock.QueueManager) -> None:
    """Puts more than half of a first segment; returns when a spare has been made."""
    with qm.queue("Q") as queue:
        for _ in range(11):
            queue.put(bytes(100_000), persistent=True)
    end = time.monotonic() + PATIENCE_S
    while qm.status().spare_segments == 0 and time.monotonic() < end:
        qm.maintain()  # it does nothing while the thread is in a round of its own
        time.sleep(0.01)
    assert qm.status().spare_segments == 1


def allocated(path: Path) -> int:
    """Bytes on the disk of all files below the directory."""
    return sum(file.stat().st_blocks * 512 for file in path.rglob("*") if file.is_file())


def test_a_new_queue_manager_has_at_most_4_mib_of_files_until_it_is_used(tmp_path: Path) -> None:
    penstock.create("NEW", tmp_path)
    with penstock.connect("NEW", tmp_path) as qm, qm.queue("Q") as queue:
        for _ in range(10):
            queue.put(b"few", persistent=True)
        qm.maintain()  # a round that would make whatever is wanted ahead
        assert allocated(tmp_path) <= NEW_MAX
    assert allocated(tmp_path) <= NEW_MAX
    with penstock.connect("NEW", tmp_path) as qm:
        qm.maintain()
        assert allocated(tmp_path) <= NEW_MAX


def test_a_full_size_spare_is_made_once_half_of_the_first_segment_is_used(tmp_path: Path) -> None:
    penstock.create("USED", tmp_path)
    with penstock.connect("USED", tmp_path) as qm:
        use_first_segment(qm)
        assert allocated(tmp_path) > 64 * MIB


def test_a_spare_that_was_made_is_found_again_by_the_next_start(tmp_path: Path) -> None:
    penstock.create("AGAIN", tmp_path)
    with penstock.connect("AGAIN", tmp_path) as qm:
        use_first_segment(qm)
    with penstock.connect("AGAIN", tmp_path) as qm, qm.open("Q") as queue:
        assert qm.status().spare_segments == 1
        assert queue.depth == 11

"""The files of a queue manager: how much of the disk it takes, and what copies of them do to it."""

from __future__ import annotations

import os
import shutil
import stat
import time
from pathlib import Path

import pytest

import penstock
from penstock import mqi
from surroundings import copy_at_work, facts_at_work, run_python

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
    facts = facts_at_work(path).values()
    return sum(file.st_blocks * 512 for file in facts if stat.S_ISREG(file.st_mode))


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


def test_a_spare_twice_as_long_is_made_once_half_of_the_first_segment_is_used(
    tmp_path: Path,
) -> None:
    penstock.create("USED", tmp_path)
    with penstock.connect("USED", tmp_path) as qm:
        before = allocated(tmp_path)
        use_first_segment(qm)
        spare, reserved = 4 * MIB, 8 * MIB
        assert spare <= allocated(tmp_path) - before < spare + reserved


def test_a_spare_that_was_made_is_found_again_by_the_next_start(tmp_path: Path) -> None:
    penstock.create("AGAIN", tmp_path)
    with penstock.connect("AGAIN", tmp_path) as qm:
        use_first_segment(qm)
    with penstock.connect("AGAIN", tmp_path) as qm, qm.open("Q") as queue:
        assert qm.status().spare_segments == 1
        assert queue.depth == 11


PUTS = """
import sys
import penstock
with penstock.connect("LINKED", sys.argv[1]) as qm, qm.queue("Q") as queue:
    for i in range(int(sys.argv[2])):
        queue.put(b"%d" % i, persistent=True)
    print(queue.depth)
"""


def link_copy(path: Path, copy: Path) -> None:
    """What `cp -al` makes: the same files under other names."""
    copy_at_work(path, copy, os.link)


def logged(path: Path, code: str) -> int:
    """Entries of that code in the newest error log."""
    return (path / "errors" / "AMQERR01.LOG").read_text().count(code)


def test_a_copy_of_hard_links_stops_nobody_and_the_next_start_says_what_to_do(
    tmp_path: Path,
) -> None:
    penstock.create("LINKED", tmp_path)
    copy = tmp_path / "copies" / "LINKED"
    with penstock.connect("LINKED", tmp_path) as qm, qm.queue("Q") as queue:
        use_first_segment(qm)  # there is a spare, too
        link_copy(qm.path, copy)
        for i in range(500):
            queue.put(b"%d" % i, persistent=True)
        assert run_python(PUTS, tmp_path, 500).strip() == "1011"  # another process leads, too
        with qm.queue("BIG") as big:
            for _ in range(5):  # and the linked spare is used
                big.put(bytes(1_000_000), persistent=True)
                assert len(big.get().data) == 1_000_000
        end = time.monotonic() + PATIENCE_S
        while logged(qm.path, "AMQ7911") == 0:
            assert time.monotonic() < end, "the log says nothing"
            time.sleep(0.01)
    path = tmp_path / "LINKED"
    assert logged(path, "AMQ7911") == 1
    for refused in (path, copy):
        with pytest.raises(penstock.MQError, match=r"hard link.*Remove the copy") as caught:
            penstock.connect("LINKED", refused.parent)
        assert caught.value.reason == mqi.MQRC_ENVIRONMENT_ERROR
    shutil.rmtree(copy)
    with penstock.connect("LINKED", tmp_path) as qm, qm.open("Q") as queue:
        assert queue.depth == 1011
        left = [message.data for message in queue.get_batch(2000)]
    assert [data for data in left if len(data) < 4] == 2 * [b"%d" % i for i in range(500)]


def test_a_retired_segment_that_a_copy_shares_is_not_used_again(tmp_path: Path) -> None:
    penstock.create("RETIRED", tmp_path)
    with penstock.connect("RETIRED", tmp_path) as qm, qm.queue("Q") as queue:
        use_first_segment(qm)
        for _ in range(5):  # a full-size segment is active
            queue.put(bytes(1_000_000), persistent=True)
        link_copy(qm.path / "journal", tmp_path / "copy")
        segments = (tmp_path / "copy").glob("0*.psj")
        shared = {file.name: file.stat().st_ino for file in segments}
        while len(queue.get_batch(100)):
            pass
        for _ in range(70):
            queue.put(bytes(1_000_000), persistent=True)
            queue.get()
        qm.checkpoint()
        queue.put(b"later", persistent=True)
        queue.get()
        qm.checkpoint()  # the older of the two needs the copied files no more
        here = {file.stat().st_ino: file.name for file in (qm.path / "journal").iterdir()}
    assert len(shared) >= 2
    assert not any(inode in here for inode in shared.values())  # retired, and not renamed

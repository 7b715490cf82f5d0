"""The time of a put that an application gives, and one that memory was changed to."""

from __future__ import annotations

import errno
import json
import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_command import run

import penstock as library

LAST = 253_402_300_799_999_999  # 9999-12-31T23:59:59.999999Z
KNOWN = 1_234_567_890_123_457
PART = 1 << 20  # bytes that are searched at once


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[library.QueueManager]:
    library.create("QM1", tmp_path)
    with library.connect("QM1", tmp_path) as opened:
        opened.define("QLOCAL", "Q")
        yield opened


@pytest.mark.parametrize("time", [LAST + 1, 2**63, 2**64, -1, 2**200])
def test_a_put_time_after_the_year_9999_is_refused(
    manager: library.QueueManager, time: int
) -> None:
    with manager.open("Q") as queue:
        with pytest.raises(library.InvalidValue, match=rf"2026.*put_time_us {time} "):
            queue.put(b"x", put_time_us=time)
        with pytest.raises(library.MQError) as caught:
            queue.put_batch([b"x", b"y"], put_time_us=[0, time])
        assert caught.value.reason == 2026
        assert queue.depth == 0
        queue.put(b"x", put_time_us=LAST)
        assert queue.get().put_time.isoformat() == "9999-12-31T23:59:59.999999+00:00"


@pytest.mark.parametrize("time", ["1", 1.5, b"1", None])
def test_a_put_time_that_is_no_number_is_refused(manager: library.QueueManager, time: Any) -> None:
    with manager.open("Q") as queue:
        if time is None:
            queue.put(b"x", put_time_us=time)
            return
        with pytest.raises(library.InvalidType, match="put_time_us must be an integer"):
            queue.put(b"x", put_time_us=time)


def test_a_moment_of_numpy_is_a_put_time_of_a_batch(manager: library.QueueManager) -> None:
    with manager.open("Q") as queue:
        queue.put_batch([b"x"], put_time_us=np.array(["2001-02-03T04:05:06"], "M8[us]"))
        assert queue.get().put_time.isoformat() == "2001-02-03T04:05:06+00:00"


def test_a_put_time_that_no_date_holds_is_saturated_at_reading(
    manager: library.QueueManager, tmp_path: Path
) -> None:
    with manager.open("Q") as queue:
        queue.put(b"x", put_time_us=KNOWN)
        change_in_region(tmp_path, KNOWN, 2**63)
        done = run(tmp_path, "browse", "QM1", "Q", "--json")
        assert done.returncode == 0, done
        assert json.loads(done.stdout)["put_time"] == "9999-12-31T23:59:59.999999+00:00"
        found = queue.get()
        assert found.put_time.year == 9999
        queue.put_again(found, b"again", "MQSTR")
        done = run(tmp_path, "get", "QM1", "Q", "--json")
        assert json.loads(done.stdout)["put_time"] == "9999-12-31T23:59:59.999999+00:00"


def change_in_region(home: Path, old: int, new: int) -> None:
    """Changes a number wherever it stands in the shared region."""
    lock = str(home / "QM1" / "lock")  # read by another process: closing it drops locks of ours
    lines = subprocess.run(["cat", lock], capture_output=True, check=True).stdout
    name = lines.partition(b"region=")[2].partition(b"\n")[0].decode()
    fd = os.open(f"/dev/shm/{name}", os.O_RDWR)
    try:
        changed = 0
        for at, size in parts(fd):
            found = os.pread(fd, size, at).find(struct.pack("<Q", old))
            if found >= 0:
                os.pwrite(fd, struct.pack("<Q", new), at + found)
                changed += 1
        assert changed
    finally:
        os.close(fd)


def parts(fd: int) -> Iterator[tuple[int, int]]:
    """The parts of a sparse file that have memory: offset and size."""
    at = 0
    while True:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as error:
            assert error.errno == errno.ENXIO
            return
        end = os.lseek(fd, at, os.SEEK_HOLE)
        while at < end:
            yield at, min(PART, end - at)
            at += PART
        at = end

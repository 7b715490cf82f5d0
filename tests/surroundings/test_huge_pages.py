"""Huge pages for the region, where the system lends them: what it gives, and what that costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import surroundings as s

MIB = 1 << 20
DEEP = 60_000
BEGIN = """
import json, os, sys, time
import penstock
home, shm, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
penstock.create("QM", home=home, region_dir=shm)

def memory():
    facts = os.statvfs(shm)
    return (facts.f_blocks - facts.f_bfree) * facts.f_frsize

def mapped_huge():
    found, inside = 0, False
    for line in open("/proc/self/smaps"):
        fields = line.split()
        if not fields[0].endswith(":"):
            inside = shm in line
        elif inside and fields[0] == "ShmemPmdMapped:":
            found += int(fields[1]) * 1024
    return found

def put(queue):
    for first in range(0, count, 1000):
        last = min(first + 1000, count)
        queue.put_batch([b"%08d" % i + bytes(504) for i in range(first, last)], persistent=False)

def tell(qm, **more):
    status = qm.status()
    print(json.dumps({"huge": status.region_huge, "refusal": status.huge_refusal,
                      "used": status.region_used, "memory": memory(), **more}), flush=True)
"""
FILL = (
    BEGIN
    + """
with penstock.connect("QM", home=home) as qm:
    queue = qm.queue("Q")
    put(queue)
    tell(qm, mapped=mapped_huge())
    got = [int(bytes(body)[:8]) for _ in range(count // 1000) for body in queue.get_batch(1000)]
    right, end = got == list(range(count)), time.monotonic() + 20
    while memory() > 32 << 20 and time.monotonic() < end:
        time.sleep(0.2)
    tell(qm, right=right)
"""
)
SMALL = (
    BEGIN
    + """
with penstock.connect("QM", home=home) as qm:
    put(qm.queue("Q"))
    tell(qm)
"""
)


def figures(program: str, home: Path, shm: Path, count: int) -> list[dict[str, Any]]:
    """What a program tells, line by line."""
    out = s.run_python(program, home, shm, count, seconds=300.0)
    return [json.loads(line) for line in out.splitlines()]


def test_a_file_system_that_lends_none_is_named_and_everything_works(tmp_path: Path) -> None:
    with s.tmpfs(256 * MIB) as shm:
        full, empty = figures(FILL, tmp_path, shm, DEEP)
    assert full["huge"] == full["mapped"] == 0
    assert full["refusal"] == "the option huge= of the region's file system is never"
    assert empty["right"] and empty["memory"] < 32 * MIB, empty


@pytest.mark.parametrize("huge", ["advise", "within_size", "always"])
def test_a_deep_queue_lies_in_huge_pages_and_gives_them_back(tmp_path: Path, huge: str) -> None:
    with s.tmpfs(256 * MIB, huge=huge) as shm:
        full, empty = figures(FILL, tmp_path, shm, DEEP)
    if full["refusal"].startswith("the system had no"):
        s.not_possible_here("huge pages: the memory of this machine is in pieces")
    assert full["refusal"] == ""
    assert 16 * MIB <= full["huge"] <= full["used"], full
    assert full["mapped"] >= full["huge"] // 2, full  # where the processes read it, too
    assert empty["right"] and empty["memory"] < 32 * MIB, empty
    assert empty["huge"] < full["huge"] // 2, empty


def test_a_small_queue_manager_takes_no_more_memory_where_huge_pages_are_lent(
    tmp_path: Path,
) -> None:
    took: dict[str, int] = {}
    for huge in ("never", "advise"):
        with s.tmpfs(256 * MIB, huge=huge) as shm:
            for attempt in ("first", "second"):  # what is taken ahead differs from run to run
                home = tmp_path / huge / attempt
                home.mkdir(parents=True)
                (small,) = figures(SMALL, home, shm, 100)
                took[huge] = min(took.get(huge, small["memory"]), small["memory"])
                assert small["huge"] == 0
    assert small["refusal"] == "the region is small: it asks for huge pages as it grows"
    assert took["advise"] <= took["never"] + MIB, took

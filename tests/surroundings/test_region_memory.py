"""How much memory a queue manager takes, and what it does when there is little."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import surroundings as s

MIB = 1 << 20
FIGURES = "import json, os, penstock, sys\nhome, shm = sys.argv[1:3]\n"

# Fills a queue with persistent messages of `size` bytes until it is refused or has `most`.
FILL = (
    FIGURES
    + """
most, size = int(sys.argv[3]), int(sys.argv[4])
penstock.create("QM", home=home, region_dir=shm)
taken, text, reason = 0, "", 0
with penstock.connect("QM", home=home) as qm:
    queue = qm.queue("Q")
    try:
        while taken < most:
            queue.put_batch([b"%08d" % i + bytes(size - 8) for i in range(taken, taken + 2000)])
            taken += 2000
    except penstock.MQError as error:
        text, reason = error.text, error.reason
    first = [bytes(b) for b in queue.get_batch(500)]
    queue.put(b"after", priority=9)
    after = queue.get().data
    right = all(int(b[:8]) == i for i, b in enumerate(first)) and len(first) == 500
    print(json.dumps([taken, reason, text, right, after.decode(), queue.depth]))
"""
)


def fill(home: Path, shm: Path, most: int, size: int) -> list[object]:
    """Runs FILL; what it printed."""
    return list(json.loads(s.run_python(FILL, home, shm, most, size, seconds=300.0)))


def test_a_64_mb_region_directory_takes_350000_persistent_messages_and_then_says_why_not(
    tmp_path: Path,
) -> None:
    with s.tmpfs(64 * MIB) as shm:
        taken, reason, text, right, after, depth = fill(tmp_path, shm, 1_000_000, 1024)
    assert isinstance(taken, int) and taken >= 350_000, taken
    assert reason == 2071
    assert "region.dir" in str(text) and "--shm-size" in str(text)
    assert right and after == "after" and depth == taken - 500


def test_a_256_mb_region_directory_takes_a_million_persistent_messages(tmp_path: Path) -> None:
    with s.tmpfs(256 * MIB) as shm:
        taken, reason, _text, right, after, depth = fill(tmp_path, shm, 1_000_000, 100)
    assert taken == 1_000_000 and reason == 0
    assert right and after == "after" and depth == taken - 500


GROUP = (
    FIGURES
    + """
penstock.create("QM", home=home, region_dir=shm)
with penstock.connect("QM", home=home) as qm:
    queue, text = qm.queue("Q"), ""
    try:
        for i in range(400):
            queue.put_batch([bytes(60_000)] * 16, persistent=False)
    except penstock.MQError as error:
        text = f"{error.reason} {error.text}"
    taken = queue.depth
    for i in range(100):
        queue.put(bytes(60_000), persistent=True, priority=9)
    kept = sum(len(queue.get().data) for _ in range(100))
    print(json.dumps([taken, text, kept]))
"""
)


def test_in_a_control_group_puts_are_refused_before_the_kernel_kills(tmp_path: Path) -> None:
    with s.tmpfs(1024 * MIB) as shm, s.memory_group(256 * MIB) as group:
        taken, text, kept = json.loads(s.run_python(GROUP, tmp_path, shm, prefix=group))
    assert 64 * MIB < taken * 60_000 < 128 * MIB, taken
    assert text.startswith("2071 ") and "control group" in text and str(256 * MIB) in text
    assert kept == 6_000_000


SMALL_SPACE = (
    FIGURES
    + """
penstock.create("QM", home=home, region_dir=shm)
with penstock.connect("QM", home=home) as qm:
    queue = qm.queue("Q")
    queue.put(b"one")
    queue.put(b"two", persistent=False)
    with qm.transaction():
        queue.put(bytes(300_000))
    print(json.dumps([len(queue.get().data) for _ in range(3)]))
"""
)


def test_a_process_with_2_gib_of_address_space_connects_to_a_region_of_64_gib(
    tmp_path: Path,
) -> None:
    with s.tmpfs(128 * MIB) as shm:
        limits = {resource.RLIMIT_AS: 2 << 30}
        out = s.run_python(SMALL_SPACE, tmp_path, shm, limits=limits)
    assert json.loads(out) == [3, 3, 300_000]


# Attaches, then leaves only little address space, and says what its calls return.
LIMITED = (
    FIGURES
    + """
import resource
qm = penstock.connect("QM", home=home)
queue = qm.queue("Q")
def outcome():
    try:
        queue.put(b"x", persistent=False)
        return "put"
    except penstock.MQError as error:
        return f"{error.reason} {error.text}"
for line in sys.stdin:
    if line.strip() == "end":
        break
    print(outcome(), flush=True)
qm.close()
print("closed", flush=True)
"""
)

GROWER = (
    FIGURES
    + """
penstock.create("QM", home=home, region_dir=shm)
qm = penstock.connect("QM", home=home)
queue, big = qm.queue("Q"), qm.queue("BIG")
print("ready", flush=True)
sys.stdin.readline()
for i in range(40):
    big.put_batch([bytes(1 << 20)] * 16, persistent=False)
print(big.depth, flush=True)
sys.stdin.readline()
queue.put(b"still here", persistent=False)
print(queue.depth, flush=True)
sys.stdin.readline()
qm.close()
"""
)


def test_a_process_without_address_space_for_a_grown_region_gets_2071_alone(
    tmp_path: Path,
) -> None:
    with s.tmpfs(1024 * MIB) as shm, s.python(GROWER, tmp_path, shm) as grower:
        s.hear(grower, "ready")
        limits = {resource.RLIMIT_AS: 600 * MIB}
        with s.python(LIMITED, tmp_path, shm, limits=limits) as limited:
            s.say(limited)
            s.hear(limited, "put")
            s.say(grower)
            s.hear(grower, "640")
            s.say(limited)
            told = s.hear(limited)
            assert told.startswith("2071 ") and "RLIMIT_AS" in told, told
            s.say(grower)
            s.hear(grower, "2")  # the queue manager goes on
            s.say(limited, "end")
            s.hear(limited, "closed")
        s.say(grower)
        assert grower.wait(s.SECONDS) == 0

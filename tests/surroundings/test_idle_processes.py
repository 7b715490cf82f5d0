"""What processes cost that are attached and do nothing."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import surroundings as s

COUNT = 40
SECONDS = 3.0

IDLE = """
import penstock, sys
qm = penstock.connect("QM", home=sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
qm.close()
"""


def counted(path: Path, name: str) -> int:
    """A number of a file of /proc, by its name."""
    lines = path.read_text().splitlines()
    return next(int(line.split(":")[1]) for line in lines if line.startswith(name))


def system_calls(pids: list[int]) -> tuple[int, int]:
    """Calls of read so far, and how often threads of these processes went to sleep."""
    reads = sum(counted(Path(f"/proc/{pid}/io"), "syscr") for pid in pids)
    threads = [task for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()]
    sleeps = sum(counted(task / "status", "voluntary_ctxt_switches") for task in threads)
    return reads, sleeps


def test_idle_processes_do_not_ask_after_each_other(tmp_path: Path) -> None:
    s.run_python("import penstock, sys; penstock.create('QM', home=sys.argv[1])", tmp_path)
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(s.python(IDLE, tmp_path)) for _ in range(COUNT)]
        for child in idle:
            s.hear(child, "ready")
        time.sleep(2.0)  # the rounds that each makes when it has attached
        pids = [child.pid for child in idle]
        reads, sleeps = system_calls(pids)
        begin = time.monotonic()
        time.sleep(SECONDS)
        periods = (time.monotonic() - begin) / 0.5 + 1
        more_reads, more_sleeps = system_calls(pids)
        for child in idle:
            s.say(child)
            assert child.wait(s.SECONDS) == 0
    # each once asked /proc for each of the others in each period
    assert more_reads - reads < COUNT * periods, more_reads - reads
    # of forty, a third looks in a period; waking each in each made 280 sleeps
    assert more_sleeps - sleeps < COUNT * periods / 1.5, more_sleeps - sleeps


READER = """
import penstock, sys
qm = penstock.connect("QM", home=sys.argv[1])
queue = qm.queue("Q")
print(sum(len(message.data) for message in queue.browse()), flush=True)
sys.stdin.readline()
qm.close()
"""

WRITER = """
import penstock, sys
settings = {"segment_size": 1 << 20, "journal_limit": 64 << 20, "region_bodies": 1}
penstock.create("QM", home=sys.argv[1], **settings)
qm = penstock.connect("QM", home=sys.argv[1])
queue = qm.queue("Q")
for i in range(5):
    queue.put_batch([bytes(10_000)] * 100)
print("put", flush=True)
sys.stdin.readline()
for i in range(40):  # rolls segments, and lets checkpoints free the first ones
    queue.get_batch(100)
    queue.put_batch([bytes(10_000)] * 100)
while len(queue.get_batch(1000)) > 0:
    pass
print("got", flush=True)
sys.stdin.readline()
qm.close()
"""


def kept_by(pid: int) -> tuple[int, int]:
    """Journal files that a process has mapped, and how many of them are deleted."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    mapped = [line for line in lines if ".psj" in line]
    return len(mapped), sum(line.endswith("(deleted)") for line in mapped)


def test_an_idle_process_does_not_keep_journal_files_that_were_retired(tmp_path: Path) -> None:
    with s.python(WRITER, tmp_path) as writer:
        s.hear(writer, "put")
        with s.python(READER, tmp_path) as reader:
            s.hear(reader, "5000000")
            before = kept_by(reader.pid)
            assert before[0] >= 5, before
            s.say(writer)
            s.hear(writer, "got")
            for _ in range(200):
                after = kept_by(reader.pid)
                if after[0] <= 1:
                    break
                time.sleep(0.1)
            assert after[0] <= 1 and after[1] == 0, (before, after)
            s.say(reader)
            assert reader.wait(s.SECONDS) == 0
        s.say(writer)
        assert writer.wait(s.SECONDS) == 0

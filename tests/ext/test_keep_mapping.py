"""connect(keep_mapping=True): the region stays mapped, and nothing else of the connection remains.

Each test is a program in a new process, beside this one, which has QM1 open.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import penstock
from penstock import Queue, QueueManager

Run = Callable[..., "CompletedProcess[str]"]

PROGRAM = """
import os, sys
from pathlib import Path
import penstock

HOME = sys.argv[1]

def regions():
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {(line.split("-")[0], line.split()[-1]) for line in lines
            if "/penstock-" in line and not line.endswith("(deleted)")}

def descriptors():
    return sorted(os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
                  if os.path.exists(f"/proc/self/fd/{n}"))

def use(name="QM1", **asked):
    with penstock.connect(name, HOME, **asked) as qm, qm.open("Q", browse=True) as queue:
        queue.put(b"here", priority=9)
        assert queue.get().data == b"here"
        return regions()
"""


def run(run_python: Run, program: str) -> None:
    done = run_python(PROGRAM + program)
    assert done.returncode == 0, done.stderr


def test_the_next_connection_uses_the_mapping_of_the_last_one(
    queue: Queue, run_python: Run
) -> None:
    run(
        run_python,
        """
before = descriptors()
first = use(keep_mapping=True)
assert len(first) == 1 and regions() == first
assert descriptors() == before
for _ in range(3):
    assert use(keep_mapping=True) == first == regions()
assert use() == first
assert not regions()  # the last one did not ask for it
""",
    )


def test_without_it_nothing_stays_mapped(queue: Queue, run_python: Run) -> None:
    run(run_python, "assert len(use()) == 1 and not regions()\n")


def test_the_last_process_that_leaves_keeps_nothing(
    qm: QueueManager, queue: Queue, run_python: Run, home: Path
) -> None:
    queue.close()
    qm.close()
    run(
        run_python,
        """
assert len(use(keep_mapping=True)) == 1
assert "/penstock-" not in Path("/proc/self/maps").read_text()
""",
    )


def test_one_mapping_is_kept_and_that_of_another_queue_manager_replaces_it(
    queue: Queue, run_python: Run, home: Path
) -> None:
    penstock.create("QM2", home, segment_size=1 << 20, ring_size=1 << 20)
    with penstock.connect("QM2", home) as other:
        other.define("QLOCAL", "Q")
        run(
            run_python,
            """
[(_, first)] = use(keep_mapping=True)
both = use("QM2", keep_mapping=True)
assert len(both) == 1 and first not in dict(both).values()
assert regions() == both
""",
        )
    penstock.delete("QM2", home)


def test_a_queue_manager_that_was_restarted_is_mapped_again(
    qm: QueueManager, queue: Queue, run_python: Run
) -> None:
    queue.put(b"stays", persistent=True)
    queue.close()
    qm.close()
    run(
        run_python,
        """
import subprocess
KEEPER = "import penstock, sys; qm = penstock.connect('QM1', sys.argv[1]); print(1); input()"

def start():
    child = subprocess.Popen([sys.executable, "-u", "-c", KEEPER, HOME], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "1\\n"
    return child

def end(child):
    child.communicate("\\n", timeout=60)
    assert child.returncode == 0

child = start()
[(_, old)] = use(keep_mapping=True)
end(child)
assert not os.path.exists(old)
lines = Path("/proc/self/maps").read_text().splitlines()
assert [line.split()[-2:] for line in lines if "/penstock-" in line] == [[old, "(deleted)"]]
child = start()
with penstock.connect("QM1", HOME, keep_mapping=True) as qm, qm.open("Q", browse=True) as queue:
    assert [message.data for message in queue.browse()] == [b"stays"]
    [(_, new)] = regions()
assert new != old
assert "(deleted)" not in Path("/proc/self/maps").read_text()
end(child)
assert "(deleted)" in Path("/proc/self/maps").read_text()
use()  # starts it, and is the last to leave
assert "/penstock-" not in Path("/proc/self/maps").read_text()
""",
    )


def test_a_forked_child_maps_its_own(queue: Queue, run_python: Run) -> None:
    run(
        run_python,
        """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
first = use(keep_mapping=True)
pid = os.fork()
if pid == 0:
    code = 1
    try:
        assert not regions()
        assert len(use(keep_mapping=True)) == 1 == len(regions())
        code = 0
    finally:
        os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert regions() == first == use(keep_mapping=True)
""",
    )

"""Crash-safety layer T5 in Python: every allocation of a call fails, one at a time.

    python tests/crash/python_no_memory.py [--only WORD] [--most N]

Each scenario is a call of the package with what belongs to it. It runs once to count the
allocations of its thread (those of the binding, of the core and of the interpreter on the way),
then with each of them failing. It must raise MemoryError or a penstock error of the reason 2071, or
succeed; never end the process. Several failures in a row are not tried: CPython 3.11 itself ends
with a signal then (PyContextVar_Set when neither token nor context finds memory). Connecting is
left to the core's own T5: there the interpreter hides a MemoryError behind a TypeError of os.open.
Afterwards the scenario succeeds with all memory and the queue manager's indexes hold. Blocks that a
sweep leaves are printed, not judged: the interpreter's caches move by a few.

The program starts itself again with failing_preload.c loaded. Status 0 when all is well.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock
from penstock import mqi

HERE = Path(__file__).resolve().parent
SWEEPS = 3  # the first two fill caches of the interpreter
NO_MEMORY = mqi.MQRC_STORAGE_NOT_AVAILABLE
Scenario = Callable[[], None]


class Failing:
    """The functions of failing_preload.c."""

    def __init__(self) -> None:
        """Finds them in this process."""
        library = ctypes.CDLL(None)
        self.arm = library.failing_preload_arm
        self.arm.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
        self.arm.restype = None
        self.disarm = library.failing_preload_disarm
        self.disarm.restype = ctypes.c_uint64
        self.live = library.failing_preload_live
        self.live.restype = ctypes.c_int64

    def count(self, scenario: Scenario) -> int:
        """The allocations of a run that has all memory."""
        self.arm(0, 0)
        scenario()
        return int(self.disarm())

    def run(self, scenario: Scenario, at: int) -> None:
        """A run in which this allocation fails; raises what must not come."""
        self.arm(at, 1)
        try:
            scenario()
        except MemoryError:
            pass
        except penstock.MQError as error:
            self.disarm()
            if error.reason != NO_MEMORY:
                raise
        finally:
            self.disarm()


def scenarios(qm: Any, around: Any) -> dict[str, Scenario]:
    """Each by its name. What a failed run leaves behind does not disturb the next one. ``around``:
    another queue manager.
    """
    queue = qm.queue("Q")
    outer_queue = around.queue("Q")
    body = bytes(1000)

    def put_get() -> None:
        queue.put(body)
        queue.get()

    def put_get_with_fields() -> None:
        queue.put(body, correl_id=b"x" * 24, reply_to_q="Q", format="MQSTR", expiry=100.0)
        message = queue.get()
        _ = (message.reply_to_q, message.format, message.correl_id, message.put_time)

    def long_body() -> None:
        queue.put(bytes(200_000), persistent=True)
        queue.get()

    def transaction() -> None:
        queue.put(body)
        with qm.transaction():
            queue.put(body, persistent=True)
            queue.get()
        queue.get()

    def nested() -> None:
        with around.transaction() as unit:
            try:
                with qm.transaction():
                    queue.put(body)
            except (MemoryError, penstock.MQError):
                pass
            outer_queue.put(body)
            assert unit.count == 1, "a put in the outer block is outside its unit"
            unit.backout()

    def forgotten() -> None:
        qm.open("Q")  # closed when it is collected

    def batch() -> None:
        queue.put_batch([body] * 10)
        list(queue.get_batch(10))

    def browse() -> None:
        queue.put(body)
        queue.get(browse="first")
        queue.get()

    def open_close() -> None:
        qm.open("Q").close()

    def open_or_make() -> None:
        qm.queue("NEW").close()

    def status() -> None:
        qm.status()
        queue.status()

    def prepare() -> None:
        with qm.transaction() as unit:
            queue.put(body, persistent=True)
            unit.prepare(penstock.Xid(1, b"g", b"b"))
        qm.commit_prepared(penstock.Xid(1, b"g", b"b"))
        queue.get()

    found = (put_get, put_get_with_fields, long_body, transaction, batch, browse, open_close)
    return named(*found, open_or_make, status, prepare, nested, forgotten)


def named(*scenarios: Scenario) -> dict[str, Scenario]:
    """Each by the name of its function."""
    return {scenario.__name__: scenario for scenario in scenarios}


def tidy(qm: Any) -> None:
    """Ends what a failed run has left."""
    for xid in qm.recover():
        qm.backout_prepared(xid)
    with qm.open("Q") as queue:
        while len(queue.get_batch(100)):
            pass


def sweep(failing: Failing, qm: Any, scenario: Scenario, most: int) -> int:
    """Fails each allocation of the scenario; how many failures there were."""
    count = min(failing.count(scenario), most)
    for at in range(1, count + 1):
        failing.run(scenario, at)
    tidy(qm)
    scenario()
    gc.collect()
    handles = [handle.queue for handle in qm.handle_list()]
    assert sorted(handles) == ["Q"], f"handles are left open: {handles}"
    return count


def examine(failing: Failing, qm: Any, name: str, scenario: Scenario, most: int) -> int:
    """Sweeps until the caches are full, then once more; the failures of the last sweep."""
    live, failures = [], 0
    for _ in range(SWEEPS):
        failures = sweep(failing, qm, scenario, most)
        live.append(failing.live())
    qm.check()
    left = live[-1] - live[-2]
    print(f"{name:20} {failures:5} failures, {left:+} blocks", flush=True)
    return failures


def examine_all(only: str, most: int) -> None:
    """All scenarios, in one process."""
    failing, total = Failing(), 0
    with tempfile.TemporaryDirectory(prefix="penstock-t5-", dir="/dev/shm") as home:
        penstock.create("T5", home)
        penstock.create("AROUND", home)
        with penstock.connect("T5", home) as qm, penstock.connect("AROUND", home) as around:
            for name, scenario in scenarios(qm, around).items():
                if only in name:
                    scenario()
                    total += examine(failing, qm, name, scenario, most)
    print(f"T5: {total} failures of allocations under Python, 0 failed")


def build() -> Path:
    """The library that is loaded first."""
    to = HERE.parents[1] / "build" / "crash" / "failing_preload.so"
    to.parent.mkdir(parents=True, exist_ok=True)
    source = HERE / "failing_preload.c"
    subprocess.run(["cc", "-O2", "-g", "-shared", "-fPIC", "-o", to, source], check=True)
    return to


def main() -> int:
    """Runs the program below the library."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="a word of the scenarios to run")
    parser.add_argument("--most", type=int, default=100_000, help="allocations of each scenario")
    options = parser.parse_args()
    if "failing_preload" in os.environ.get("LD_PRELOAD", ""):
        examine_all(options.only, options.most)
        return 0
    environment = {**os.environ, "LD_PRELOAD": str(build()), "PYTHONMALLOC": "malloc"}
    return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

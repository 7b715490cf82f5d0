"""Damage in the shared region under Python workers: stray words while they work (rule 57).

    python region_damage.py [--rounds 500] [--seed 1] [--only ROUND]

In each round a worker puts messages that are acknowledged, this program changes words of the live
region, the worker calls everything and leaves, and another process starts the queue manager again.
A round is violated by a signal in the worker, an exception that is no MQError, a call that does not
return, a start that is refused, or an acknowledged message that is missing. Status 0: none was.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import penstock

KEPT = ("K1", "K2")  # nothing is got from these
HANG_S = 40
CALLS = 60


def kept_messages(random_: random.Random) -> int:
    """How many messages a round puts before the damage."""
    return random_.choice([5, 40, 200])


def begin(home: Path, random_: random.Random) -> tuple[penstock.Connection, list[penstock.Queue]]:
    """A queue manager with acknowledged messages."""
    qm = penstock.connect("QD", home, create=True)
    queues = [qm.queue(name) for name in (*KEPT, "O")]
    for number in range(kept_messages(random_)):
        body = b"%06d" % number + b"." * random_.choice([0, 50, 3000])
        queues[number % 2].put(body, persistent=True, priority=random_.randrange(10))
    for _ in range(10):
        queues[2].put(b"other", persistent=random_.random() < 0.5)
    queues[2].put(b"prepared", persistent=True, syncpoint=True)
    qm.prepare(penstock.Xid(1, b"one", b"a"))
    return qm, queues


def call_something(
    qm: penstock.Connection, queues: list[penstock.Queue], random_: random.Random
) -> None:
    """One call; any error is right."""
    other, some = queues[2], random_.choice(queues)
    calls = [
        lambda: some.put(b"new", persistent=True),
        lambda: some.put(b"np", persistent=False),
        lambda: other.put(b"unit", persistent=True, syncpoint=True),
        lambda: other.get(syncpoint=random_.random() < 0.5),
        lambda: other.get(msg_id=b"\1" * 24),
        lambda: other.get(wait=0.01),
        lambda: some.get(browse=random_.choice(["first", "next"])),
        qm.commit,
        qm.backout,
        lambda: other.get_batch(5),
        lambda: some.put_batch([b"batch"] * 20),
        lambda: some.browse_batch(30, first=True),
        lambda: qm.define("qlocal", f"N{random_.randrange(5)}"),
        lambda: qm.alter("qlocal", "O", descr="x"),
        lambda: qm.delete("qlocal", f"N{random_.randrange(5)}"),
        lambda: qm.display("queue", "*"),
        lambda: (qm.status(), other.status(), qm.unit_list(), qm.handle_list(), qm.process_list()),
        qm.checkpoint,
        qm.maintain,
        qm.check,
        qm.prepared_list,
    ]
    try:
        random_.choice(calls)()
    except penstock.MQError:
        pass


def in_child(program: Callable[[], None]) -> int:
    """A forked process that runs this and nothing of what its parent has begun. Returns its pid."""
    pid = os.fork()
    if pid == 0:
        status = 7
        try:
            program()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return pid


def work(home: Path, seed: int, ready: int, go: int) -> None:
    """The worker: until the damage, and after it."""
    random_ = random.Random(seed)
    qm, queues = begin(home, random_)
    os.write(ready, b"r")
    os.read(go, 1)
    for _ in range(CALLS):
        call_something(qm, queues, random_)
    if random_.random() < 0.5:
        time.sleep(0.15)  # a round of maintenance
    try:
        qm.close()
    except penstock.MQError:
        pass


def look(home: Path, seed: int) -> NoReturn:
    """After the restart: status 0 when every acknowledged message is there."""
    count = kept_messages(random.Random(seed))
    try:
        with penstock.connect("QD", home) as qm:
            seen: set[int] = set()
            for name in KEPT:
                with qm.open(name, input=False, output=False, browse=True) as queue:
                    for message in queue.browse():
                        text = bytes(message.data)[:6]
                        seen |= {int(text)} if text.isdigit() else set()
            missing = [number for number in range(count) if number not in seen]
    except penstock.MQError as error:
        print(f"the restart is refused: {error}")
        sys.exit(5)
    if missing:
        print(f"{len(missing)} of {count} acknowledged messages are missing")
    sys.exit(6 if missing else 0)


def stretches(region: int) -> list[tuple[int, int]]:
    """The parts of the sparse file that have memory."""
    found, at = [], 0
    while True:
        try:
            start = os.lseek(region, at, os.SEEK_DATA)
        except OSError:
            return found
        at = os.lseek(region, start, os.SEEK_HOLE)
        found.append((start, at))


def changed(old: int, random_: random.Random) -> int:
    """A word's new value."""
    return random_.choice(
        [
            random_.getrandbits(64),
            0,
            2**64 - 1,
            old ^ 1 << random_.randrange(64),
            random_.randrange(70000),
            (old + random_.choice([1, -1, 64, 4096])) % 2**64,
            1 << random_.randrange(64),
        ]
    )


def damage(region: int, random_: random.Random) -> None:
    """Changes 1 to 200 words of what is in use."""
    parts = stretches(region)
    left = random_.choice([1, 1, 2, 4, 8, 30, 200])
    for _ in range(20000):
        start, end = random_.choice(parts) if random_.random() < 0.5 else parts[0]
        end = min(end, start + 8192) if random_.random() < 0.35 else end
        at = random_.randrange(start, end) & ~7
        old = int.from_bytes(os.pread(region, 8, at), "little")
        if old == 0 and random_.random() < 0.97:
            continue
        new = struct.pack("<Q", changed(old, random_))[: random_.choice([4, 8])]
        os.pwrite(region, new, at)
        left -= 1
        if left == 0:
            return


def outcome(pid: int) -> str:
    """How a child ended: "" for status 0. One that does not end is killed."""
    until = time.monotonic() + HANG_S
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return "" if code == 0 else f"signal {-code}" if code < 0 else f"status {code}"
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "a hang"


def run_round(home: Path, seed: int) -> str:
    """One round; "" when nothing was violated."""
    ready_in, ready = os.pipe()
    go, go_out = os.pipe()
    pid = in_child(lambda: work(home, seed, ready, go))
    os.close(ready)
    os.close(go)
    if not os.read(ready_in, 1):
        return f"the worker's beginning: {outcome(pid)}"
    maps = Path(f"/proc/{pid}/maps").read_text()
    names = sorted(set(re.findall(r"/\S*/penstock-\S+", maps)))
    region = os.open(names[0], os.O_RDWR)
    damage(region, random.Random(seed + 1))
    os.write(go_out, b"g")
    os.close(go_out)
    os.close(ready_in)
    os.close(region)
    wrong = outcome(pid)
    if wrong:
        return f"the worker: {wrong}"
    wrong = outcome(in_child(lambda: look(home, seed)))
    for name in names:
        Path(name).unlink(missing_ok=True)
    return f"the restart: {wrong}" if wrong else ""


def main() -> int:
    """Runs the rounds and counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    tally: Counter[str] = Counter()
    base = Path(tempfile.mkdtemp(prefix="penstock-damage-"))
    rounds = range(given.rounds) if given.only is None else [given.only]
    try:
        for number in rounds:
            home = base / str(number)
            home.mkdir()
            wrong = run_round(home, given.seed * 100_000 + number)
            tally[wrong or "right"] += 1
            if wrong:
                print(f"round {number}: {wrong}", flush=True)
            shutil.rmtree(home, ignore_errors=True)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(f"region damage: {len(rounds)} rounds, seed {given.seed}: {dict(tally)}")
    return 0 if set(tally) <= {"right"} else 1


if __name__ == "__main__":
    sys.exit(main())

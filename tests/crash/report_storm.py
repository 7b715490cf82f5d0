"""Crash-safety layer T7 for what the queue manager makes itself: reports, stream copies, triggers.

    python tests/crash/report_storm.py [--kills 150] [--workers 6] [--seed 1]

Producers put messages that ask for reports on arrival, delivery and expiration, on a queue with a
stream queue that must duplicate, one by one or in units of up to three, some of which they back
out; some messages expire after a tenth of a second. Consumers get them, in units or not, and back
some out. Callers put on a queue with TRIGTYPE(EVERY), whose initiation queue this process has open.
All of them are killed at random, and others take their places. Each writes to a file of its own
what it is about to do and what has returned; a line is written by one call and outlives its writer.

After some kills the queue is drained, and the queue manager started again from its files. Then,
before a new one takes its place:
  1. each message that was put has one report on its arrival and one copy, and no other has;
  2. each has one report of its end: of its delivery or of its expiration;
  3. what a put or commit has acknowledged was put, what a backout has acknowledged was not;
  4. there are at least as many trigger messages as messages on the queue that triggers, and no more
     than puts that were begun; every acknowledged message is there.

Kills only its own children, through pidfds.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import signal
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import penstock
from penstock import mqi

MANAGER = "REPORTS"
SETTINGS = {"segment_size": 1 << 20, "journal_limit": 256 << 20, "ring_size": 1 << 20}
WORK, COPIES, REPORTS, CALLS, INITIATION = "WORK", "WORK.COPY", "WORK.REPORTS", "CALLS", "INIT"
ASKED = mqi.MQRO_COA | mqi.MQRO_COD | mqi.MQRO_EXPIRATION
ROLES = ("producer", "producer", "consumer", "caller")
BEGUN, DONE, BACKED_OUT = "begun", "done", "backed-out"
SHORT_S = 0.1
DRAIN_S = 60.0
UNIT_MAX = 3
BACKOUT_EVERY = 8
ROUND = 25  # kills of one queue manager, whose reports and copies all stay until the end


def message_id(number: int) -> bytes:
    return struct.pack("<Q16x", number)


def number_of(raw: bytes) -> int:
    return int(struct.unpack_from("<Q", raw)[0])


# ---- workers ----


class Worker:
    """The work of a child until it is killed."""

    def __init__(self, home: Path, index: int, incarnation: int, seed: int) -> None:
        self.base = (index + 1) << 40 | incarnation << 20
        self.rng = random.Random(seed << 64 | self.base)
        self.log = os.open(
            home / f"log.{index}.{incarnation}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        self.counter = 0
        self.role = ROLES[index % len(ROLES)]
        self.qm = penstock.connect(MANAGER, home=home)

    def note(self, what: str, numbers: list[int]) -> None:
        os.write(self.log, f"{self.role} {what} {' '.join(map(str, numbers))}\n".encode())

    def numbers(self) -> list[int]:
        """Ids for the messages of one unit."""
        first = self.counter + 1
        self.counter += self.rng.randint(1, UNIT_MAX)
        return [self.base | number for number in range(first, self.counter + 1)]

    def run(self) -> None:
        act = {"producer": self.produce, "consumer": self.consume, "caller": self.call}[self.role]
        target = self.qm.open(CALLS if self.role == "caller" else WORK)
        while True:
            act(target)

    def produce(self, queue: Any) -> None:
        self.put_all(queue, self.numbers(), report=ASKED, reply_to_q=REPORTS)

    def call(self, queue: Any) -> None:
        self.put_all(queue, self.numbers())

    def put_all(self, queue: Any, numbers: list[int], **more: Any) -> None:
        """In one unit, or the first one by itself."""
        if self.rng.random() < 0.5:
            numbers = numbers[:1]
            self.note(BEGUN, numbers)
            self.put(queue, numbers[0], more)
            self.note(DONE, numbers)
            return
        self.note(BEGUN, numbers)
        backs_out = self.rng.randrange(BACKOUT_EVERY) == 0
        try:
            with self.qm.transaction():
                for number in numbers:
                    self.put(queue, number, more)
                if backs_out:
                    raise KeyError
        except KeyError:
            pass
        self.note(BACKED_OUT if backs_out else DONE, numbers)

    def put(self, queue: Any, number: int, more: dict[str, Any]) -> None:
        expiry = SHORT_S if more and self.rng.random() < 0.3 else None
        queue.put(b"x", persistent=True, msg_id=message_id(number), expiry=expiry, **more)

    def consume(self, queue: Any) -> None:
        try:
            if self.rng.random() < 0.5:
                queue.get(wait=0.05)
                return
            with self.qm.transaction():
                for _ in range(self.rng.randint(1, UNIT_MAX)):
                    queue.get(wait=0.05)
                if self.rng.randrange(BACKOUT_EVERY) == 0:
                    raise KeyError
        except (KeyError, penstock.NoMessageAvailable):
            return


class Child(NamedTuple):
    """A running worker."""

    pid: int
    pidfd: int


def start(home: Path, index: int, incarnation: int, seed: int) -> Child:
    """Forks a worker."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            Worker(home, index, incarnation, seed).run()
        except BaseException as error:
            print(f"worker {index}: {error!r}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    assert pid > 1
    return Child(pid, os.pidfd_open(pid))


def end(child: Child) -> None:
    """Kills a worker. One that has ended by itself has found something wrong."""
    signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)
    _, status = os.waitpid(child.pid, 0)
    os.close(child.pidfd)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, f"status {status}"


# ---- what is there at the end ----


class Seen(NamedTuple):
    """Ids by what was found, with how often."""

    arrived: collections.Counter[int]
    ended: collections.Counter[int]
    copied: collections.Counter[int]
    called: collections.Counter[int]


def drain(qm: Any) -> None:
    """Gets everything off the queue: what expires meanwhile is reported."""
    deadline = time.monotonic() + DRAIN_S
    with qm.open(WORK) as queue:
        while queue.get(wait=SHORT_S * 2, default=None) is not None or queue.depth:
            qm.make_reports()
            assert time.monotonic() < deadline, f"{queue.depth} messages stay"


def look(qm: Any) -> Seen:
    """Everything that the reports, the copies and the calls say."""
    arrived, ended = collections.Counter[int](), collections.Counter[int]()
    with qm.open(REPORTS) as queue:
        for report in queue.browse():
            by = arrived if report.feedback == mqi.MQFB_COA else ended
            assert report.feedback in (mqi.MQFB_COA, mqi.MQFB_COD, mqi.MQFB_EXPIRATION)
            by[number_of(report.correl_id)] += 1
    found = []
    for name in (COPIES, CALLS):
        with qm.open(name) as queue:
            found.append(collections.Counter(number_of(one.msg_id) for one in queue.browse()))
    return Seen(arrived, ended, *found)


def noted(home: Path, role: str) -> dict[str, set[int]]:
    """The ids that workers of a role have written, by what."""
    found: dict[str, set[int]] = {BEGUN: set(), DONE: set(), BACKED_OUT: set()}
    for path in home.glob("log.*"):
        for line in path.read_text("ascii").splitlines():
            who, what, *numbers = line.split()
            if who == role:
                found[what] |= set(map(int, numbers))
    return found


def check(home: Path, seen: Seen, triggers: int) -> None:
    """The four claims."""
    put = noted(home, "producer")
    messages = set(seen.arrived)
    for name, counter in (("arrival", seen.arrived), ("end", seen.ended), ("copy", seen.copied)):
        odd = {number: count for number, count in counter.items() if count != 1}
        assert not odd, f"{name}: more than one of {odd}"
        assert set(counter) == messages, f"{name}: {set(counter) ^ messages}"
    assert put[DONE] <= messages, f"lost: {put[DONE] - messages}"
    assert messages <= put[BEGUN], f"invented: {messages - put[BEGUN]}"
    assert not messages & put[BACKED_OUT], f"backed out: {messages & put[BACKED_OUT]}"
    calls = noted(home, "caller")
    there = set(seen.called)
    assert calls[DONE] <= there <= calls[BEGUN] and not there & calls[BACKED_OUT]
    assert len(there) <= triggers <= len(calls[BEGUN]), (len(there), triggers, len(calls[BEGUN]))


# ---- the storm ----


def define(qm: Any) -> None:
    qm.define("QLOCAL", REPORTS, maxdepth=999999)
    qm.define("QLOCAL", COPIES, maxdepth=999999)
    qm.define("QLOCAL", WORK, maxdepth=200000, streamq=COPIES, strmqos="MUSTDUP")
    qm.define("QLOCAL", INITIATION, maxdepth=999999)
    qm.define("PROCESS", "PROGRAM", applicid="program")
    qm.define(
        "QLOCAL", CALLS, maxdepth=999999, trigger=True, trigtype="EVERY", initq=INITIATION,
        process="PROGRAM",
    )  # fmt: skip


def storm(home: Path, kills: int, workers: int, seed: int) -> int:
    """Runs workers and kills them; the number of trigger messages."""
    rng = random.Random(seed)
    with penstock.connect(MANAGER, home=home) as qm, qm.open(INITIATION) as watched:
        children = [start(home, index, 0, seed) for index in range(workers)]
        incarnations = [0] * workers
        try:
            for _ in range(kills):
                time.sleep(rng.uniform(0.005, 0.05))
                index = rng.randrange(workers)
                end(children[index])
                incarnations[index] += 1
                children[index] = start(home, index, incarnations[index], seed)
        finally:
            for child in children:
                end(child)
        deadline = time.monotonic() + DRAIN_S
        while any(row["pid"] != os.getpid() for row in (*qm.unit_rows(), *qm.handle_rows())):
            assert time.monotonic() < deadline, "what killed workers had open stays"
            time.sleep(0.02)
        drain(qm)
        triggers = 0
        while (message := watched.get(default=None)) is not None:
            triggers += 1
            assert message.format == "MQTRIG"
        return triggers


def run_round(kills: int, workers: int, seed: int) -> collections.Counter[str]:
    """One queue manager; what was found."""
    with tempfile.TemporaryDirectory(prefix="penstock-reports-") as made:
        home = Path(made)
        penstock.create(MANAGER, home, **SETTINGS)
        with penstock.connect(MANAGER, home=home) as qm:
            define(qm)
        triggers = storm(home, kills, workers, seed)
        with penstock.connect(MANAGER, home=home) as qm:  # restarted from its files
            seen = look(qm)
        check(home, seen, triggers)
    return collections.Counter(
        messages=len(seen.arrived), calls=len(seen.called), triggers=triggers
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=150)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found = collections.Counter[str]()
    for done in range(0, given.kills, ROUND):
        kills = min(ROUND, given.kills - done)
        found += run_round(kills, given.workers, given.seed * 100000 + done)
    print(
        f"{given.kills} kills, seed {given.seed}: {found['messages']} messages with their reports "
        f"and copies, {found['calls']} calls, {found['triggers']} trigger messages"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Crash-safety layer T7 with Python processes: killed at random while others work, then counted.

    python tests/crash/python_storm.py [--kills 300] [--workers 10] [--seed 1] [--time SECONDS]

The same invariants as storm.c, through ``import penstock``. Workers are producers (units of 1 to 4
messages onto A), movers (A to B, one unit), consumers (from B), listers and gatherers. A lister
puts to a distribution list of three queues by MQPUT or MQPUT1, in a unit of 1 to 3 calls or each
destination by itself (MQPMO_NO_SYNCPOINT); a gatherer takes a message from the first queue and its
copies from the others, in one unit. Producers, movers and consumers put and get their messages one
by one or as batches, producers' batches outside a unit, too, and sometimes prepare a unit instead
of committing it; movers also have a second thread, to which they pass units. Each worker sometimes
resolves prepared units of any worker, as their names demand. Ids are (worker, incarnation,
counter), never used again; each copy of a list's message has its own, as CorrelId by MQPMR. Each
worker writes its next action and its result to a pipe; a line below PIPE_BUF is written whole or
not at all and outlives its writer.

Three witnesses at the end: the live region, the second reader on a copy of the files, and a restart
recovery of that copy; once more with the remaining units in doubt, which all three must agree on,
and which a restart resolves as the live region does. Every acked id is on one queue or was taken
once, a unit has taken effect as a whole or not at all, of an interrupted put to a list outside
syncpoint the first destinations have their copies, nothing was invented or doubled or came back
after a backout, bodies are whole, a producer's messages of one priority are in order, and for
persistent messages all three agree to the byte.

Kills only its own children, through pidfds, never a pid of 1 or less.
"""

from __future__ import annotations

import argparse
import contextlib
import mmap
import os
import random
import shutil
import signal
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import penstock
from penstock import Xid, mqi
from penstock.admin import settings as qmdir
from penstock.journal import QueueManagerFiles

MANAGER = "STORM"
SETTINGS = {"segment_size": 1 << 20, "journal_limit": 64 << 20, "ring_size": 1 << 20}
DEPTH_MAX = 200
STUCK_SECONDS = 60.0
APART_SECONDS = 0.2  # in which the rest of a put to a list comes, unless it was cut short
STOP = 0
ROLES = ("producer", "mover", "consumer", "lister", "gatherer") * 2
ENDS = {"consumer": 1, "gatherer": 1, "mover": 2, "producer": 3, "lister": 3}
# A unit that the queue manager backed out, and a put that found the journal full: backed out by us.
REFUSALS = (penstock.BackedOut, penstock.StorageMediumFull)
REFUSED = {mqi.MQRC_BACKED_OUT, mqi.MQRC_STORAGE_MEDIUM_FULL}
Row = tuple[bytes, int, bytes]  # CorrelId, Priority, body
UNIT_MAX = 4
PREPARE_EVERY, RESOLVE_EVERY, LINGER_EVERY = 6, 10, 3
COMMITS, BACKS_OUT = b"commits", b"backs out"  # qualifier: the outcome of a prepared unit
# A list's destinations, the second one through an alias, and their queues. Of the number of a copy
# the lowest bits say which destination it is for, APART that each was put by itself.
DESTINATIONS, COPIES = ("L.1", "BY.ALIAS", "L.3"), ("L.1", "L.2", "L.3")
APART, LIST_BITS = 4, 3
QUEUES = ("A", "B", *COPIES)


def root(number: int) -> int:
    """The seed of content, priority and persistence: the same for all copies of a message."""
    return number >> LIST_BITS if role_of((number >> 48) - 1) == "lister" else number


def role_of(index: int) -> str:
    return ROLES[index % len(ROLES)]


def priority_of(number: int) -> int:
    return root(number) % 3


def correl_id(number: int) -> bytes:
    return struct.pack("<Q16x", number)


def body_of(number: int) -> bytes:
    """The body that belongs to an id: a checksum over priority and content, the id, a filling."""
    number = root(number)
    length = 70_000 if number % 97 == 0 else 6_000 if number % 31 == 0 else 16 + number % 400
    content = struct.pack("<QI", number, number % 3) + random.Random(number).randbytes(length)
    return struct.pack("<I", zlib.crc32(content)) + content


def persistent(number: int) -> bool:
    return root(number) % 4 != 0


def number_of(message: Any) -> int:
    """The id of a message that is whole; dies otherwise."""
    number = int(struct.unpack_from("<Q", message.correl_id)[0])
    if message.data != body_of(number) or message.priority != priority_of(number):
        raise AssertionError(f"message {number:#x} is not whole")
    return number


# ---- prepared units ----


def xid_of(number: int, fate: bytes) -> Xid:
    return Xid(0x53544F52, struct.pack("<Q", number), fate)


def resolve(qm: Any, count: int | None = None) -> int:
    """Resolves the first `count` prepared units of each outcome, all of an outcome in one call;
    other workers may do the same concurrently. Returns the non-persistent messages discarded.
    """
    discarded = 0
    for fate in (COMMITS, BACKS_OUT):
        names = [xid for xid in qm.recover() if xid.bqual == fate][:count]
        try:
            if names and fate == COMMITS:
                qm.commit_prepared(*names)
            elif names:
                discarded += qm.backout_prepared(*names)
        except penstock.UnknownXid:
            pass
    return discarded


def units_in_doubt(qm: Any) -> dict[Xid, list[tuple[bool, int, bytes]]]:
    """Each prepared unit with its messages in the order of the calls: put or got, id, body."""
    units = {}
    for status in qm.prepared_list():
        batch = qm.browse_prepared(status.xid)
        assert (status.puts, status.gets) == (sum(batch.is_put), sum(~batch.is_put)), status
        numbers = [number_of(message) for message in batch]
        bodies = [batch.body(index) for index in range(len(batch))]
        units[status.xid] = list(zip(batch.is_put.tolist(), numbers, bodies, strict=True))
    return units


# ---- workers ----


def turns(index: int, shared: Any) -> Iterator[None]:
    """Until the worker's role is over: each turn is seen by the supervisor."""
    end, parent = ENDS[role_of(index)], os.getppid()
    while shared[STOP] < end and os.getppid() == parent:
        yield
        shared[1 + index] = (shared[1 + index] + 1) % 256


class Worker:
    """The work of a child until it is killed or stopped."""

    in_order = ("A", *COPIES)  # where a producer's messages of a priority stay in order

    def __init__(self, home: Path, index: int, incarnation: int, seed: int, pipe: int) -> None:
        self.base = (index + 1) << 48 | incarnation << 24
        self.rng = random.Random(seed << 64 | self.base)
        self.pipe = pipe
        self.counter = 0
        self.qm = penstock.connect(MANAGER, home=home)
        self.a, self.b = self.qm.open("A"), self.qm.open("B")
        self.copies = [self.qm.open(name) for name in COPIES]
        self.other = ThreadPoolExecutor(1)
        os.environ["PENSTOCK_HOME"] = str(home)
        if role_of(index) == "lister":
            self.open_list()

    def live(self, index: int, shared: Any) -> None:
        """Does what its role does, until the supervisor ends that."""
        step = getattr(self, role_of(index))
        for _ in turns(index, shared):
            step()
            if shared[STOP] == 0 and self.rng.random() < 1 / RESOLVE_EVERY:
                resolve(self.qm, self.rng.randint(1, 6))  # later ones stay in doubt

    def report(self, kind: str, numbers: list[int]) -> None:
        line = " ".join([kind, *map(str, numbers)]) + "\n"
        os.write(self.pipe, line.encode())

    def put(self, queue: Any, number: int, **how: Any) -> None:
        queue.put(
            body_of(number),
            priority=priority_of(number),
            persistent=persistent(number),
            correl_id=correl_id(number),
            **how,
        )

    def put_together(self, queue: Any, numbers: list[int]) -> None:
        """All by one call; outside a unit all take effect or none: one of them is persistent, or
        there is only one.
        """
        result = queue.put_batch(
            [body_of(number) for number in numbers],
            priority=[priority_of(number) for number in numbers],
            persistent=[persistent(number) for number in numbers],
            correl_id=[correl_id(number) for number in numbers],
        )
        assert len(result) == len(numbers)

    def put_all(self, queue: Any, numbers: list[int]) -> None:
        if self.rng.random() < 0.5:
            self.put_together(queue, numbers)
        else:
            for number in numbers:
                self.put(queue, number)

    def get_some(self, queue: Any) -> list[int]:
        """Takes one message, or several by one call. Raises NoMessageAvailable."""
        if self.rng.random() < 0.5:
            return [number_of(queue.get(wait=0.02))]
        batch = queue.get_batch(UNIT_MAX, wait=0.02)
        if not len(batch):
            raise penstock.NoMessageAvailable(mqi.MQRC_NO_MSG_AVAILABLE, "none came")
        return [number_of(message) for message in batch]

    def end_unit(self, unit: Any) -> bytes:
        """Backs out, now and then; or prepares the unit; or leaves its end to its block. What
        becomes of it.
        """
        if self.rng.random() < 1 / 16:
            raise KeyError
        if self.rng.random() >= 1 / PREPARE_EVERY:
            return COMMITS
        fate = COMMITS if self.rng.random() < 2 / 3 else BACKS_OUT
        self.prepare(unit, fate)
        return fate

    def prepare(self, unit: Any, fate: bytes) -> None:
        """From here on the unit is prepared. Its worker may be killed before it reports that."""
        self.counter += 1
        unit.prepare(xid_of(self.base | self.counter, fate))
        if self.rng.random() < 1 / LINGER_EVERY:
            time.sleep(0.01)

    def producer(self) -> None:
        if self.a.depth > DEPTH_MAX:
            time.sleep(0.005)
            return
        count = self.rng.randint(1, UNIT_MAX)
        numbers = [self.base | self.counter + i + 1 for i in range(count)]
        self.counter += count
        self.report("intent", numbers)
        fate = COMMITS
        try:
            if self.rng.random() < 0.25:
                self.put_together(self.a, numbers)
            else:
                with self.qm.transaction() as unit:
                    self.put_all(self.a, numbers)
                    fate = self.end_unit(unit)
        except (KeyError, *REFUSALS):
            fate = BACKS_OUT
        self.report("acked" if fate == COMMITS else "undone", numbers)

    def mover(self) -> None:
        if self.b.depth > DEPTH_MAX:
            time.sleep(0.005)
            return
        with contextlib.suppress(KeyError, penstock.NoMessageAvailable, *REFUSALS):
            if self.rng.random() < 0.25:
                self.move_by_two_threads()
                return
            with self.qm.transaction() as unit:
                self.put_all(self.b, self.get_some(self.a))
                self.end_unit(unit)

    def move_by_two_threads(self) -> None:
        """With a unit that is passed: the other thread puts and commits."""
        with self.qm.unit() as unit:
            number = number_of(self.a.get(wait=0.02, unit=unit))
            self.other.submit(self.put, self.b, number, unit=unit).result()
            if self.rng.random() < 1 / 16:
                raise KeyError(number)
            self.other.submit(unit.commit).result()

    def consumer(self) -> None:
        numbers: list[int] = []
        try:
            with self.qm.transaction() as unit:
                numbers = self.get_some(self.b)
                if self.rng.random() < 1 / 8:
                    self.end_unit_by_backout(unit)
                self.report("taking", numbers)
                if self.rng.random() < 1 / PREPARE_EVERY:
                    self.prepare(unit, COMMITS)
        except (KeyError, penstock.NoMessageAvailable, *REFUSALS):
            return
        self.report("took", numbers)

    def end_unit_by_backout(self, unit: Any) -> NoReturn:
        """Now, or by the worker that finds it prepared."""
        if self.rng.random() < 0.5:
            self.prepare(unit, BACKS_OUT)
        raise KeyError

    # ---- distribution lists ----

    def open_list(self) -> None:
        self.hconn, _, reason = mqi.MQCONN(MANAGER)
        assert reason == 0, reason
        self.hobj, _, reason = mqi.MQOPEN(self.hconn, self.destinations(), mqi.MQOO_OUTPUT)
        assert reason == 0, reason

    def destinations(self) -> Any:
        records = [mqi.MQOR(ObjectName=name) for name in DESTINATIONS]
        return mqi.MQOD(Version=2, RecsPresent=len(records), ObjectRecs=records)

    def lister(self) -> None:
        if self.copies[0].depth > DEPTH_MAX:
            time.sleep(0.005)
            return
        apart = self.rng.random() < 0.4
        puts = [self.next_copies(apart) for _ in range(1 if apart else self.rng.randint(1, 3))]
        numbers = [number for copies in puts for number in copies]
        self.report("apart" if apart else "intent", numbers)
        reasons = [reason for copies in puts for reason in self.put_to_list(copies, apart)]
        assert REFUSED.issuperset(filter(None, reasons)), reasons
        if not apart:
            done = not any(reasons) and self.rng.random() >= 1 / 16
            reasons = [mqi.MQCMIT(self.hconn)[1] if done else mqi.MQRC_BACKED_OUT] * len(numbers)
            assert REFUSED.issuperset(filter(None, reasons)), reasons
            if any(reasons):
                mqi.MQBACK(self.hconn)
        self.report_each(numbers, reasons)
        if any(reasons):
            time.sleep(0.005)  # a full journal has no more room at once

    def report_each(self, numbers: list[int], reasons: list[int]) -> None:
        for kind, failed in (("acked", False), ("undone", True)):
            row = zip(numbers, reasons, strict=True)
            reported = [number for number, reason in row if bool(reason) == failed]
            if reported:
                self.report(kind, reported)

    def next_copies(self, apart: bool) -> list[int]:
        """Numbers for the copies of a new message."""
        self.counter += 1 << LIST_BITS
        first = self.base | self.counter | (APART if apart else 0)
        return [first + place for place in range(len(COPIES))]

    def put_to_list(self, copies: list[int], apart: bool) -> list[int]:
        """MQPUT or MQPUT1 of one message to the list; the reason code of each destination."""
        md = mqi.MQMD(Priority=priority_of(copies[0]), Persistence=int(persistent(copies[0])))
        pmo = mqi.MQPMO(
            Version=2,
            Options=mqi.MQPMO_NO_SYNCPOINT if apart else mqi.MQPMO_SYNCPOINT,
            RecsPresent=len(copies),
            PutMsgRecFields=mqi.MQPMRF_CORREL_ID,
            PutMsgRecs=[mqi.MQPMR(CorrelId=correl_id(number)) for number in copies],
        )
        answers = [mqi.MQRR() for _ in copies]
        if self.rng.random() < 0.5:
            pmo.ResponseRecs = answers
            _, reason = mqi.MQPUT(self.hconn, self.hobj, md, pmo, body_of(copies[0]))
        else:
            od = self.destinations()
            od.ResponseRecs = answers
            _, reason = mqi.MQPUT1(self.hconn, od, md, pmo, body_of(copies[0]))
        if reason == mqi.MQRC_MULTIPLE_REASONS:
            return [answer.Reason for answer in answers]
        return [reason] * len(copies)

    def gatherer(self) -> None:
        numbers: list[int] = []
        try:
            with self.qm.transaction():
                numbers.append(number_of(self.copies[0].get(wait=0.02)))
                numbers += self.other_copies(numbers[0])
                if self.rng.random() < 1 / 16:
                    raise KeyError(numbers[0])
                self.report("taking", numbers)
        except (KeyError, penstock.NoMessageAvailable, penstock.BackedOut):
            return
        self.report("took", numbers)

    def other_copies(self, first: int) -> list[int]:
        """Takes the copies of a message from the other queues. Those of a unit are all there, or
        soon are: it is shown, or brought back by the repair of a dead gatherer's, bit by bit. A
        copy that was put apart and comes too late stays where it is, and its part of the journal.
        """
        found = []
        for number, queue in enumerate(self.copies[1:], first + 1):
            try:
                wait = APART_SECONDS if first & APART else STUCK_SECONDS / 2
                found.append(number_of(queue.get(wait=wait, correl_id=correl_id(number))))
            except penstock.NoMessageAvailable:
                if not first & APART:
                    raise AssertionError(f"half a list: {first:#x}") from None
        return found


def child(
    make: type[Worker], home: Path, index: int, incarnation: int, seed: int, pipe: int, shared: Any
) -> NoReturn:
    """A worker's process; ends in order when the supervisor ends its role."""
    status = 3
    try:
        worker = make(home, index, incarnation, seed, pipe)
        worker.live(index, shared)
        worker.qm.close()
        status = 0
    except BaseException as error:  # a child must not return into the supervisor
        sys.stderr.write(f"worker {index}: {type(error).__name__}: {error}\n")
    finally:
        os._exit(status)


# ---- the supervisor ----


@dataclass
class Fate:
    """The reports about an id."""

    intended: int = 0
    acked: int = 0
    undone: int = 0
    taking: int = 0
    gave: int = 0  # back, what it was taking
    took: int = 0
    queued: int = 0

    @property
    def present(self) -> bool:
        """Whether its put has taken effect: it is on a queue, or a worker began to take it."""
        return bool(self.queued or self.taking or self.took)


@dataclass
class Child:
    pid: int = 0
    pidfd: int = -1
    pipe: int = -1
    incarnation: int = 0
    rest: bytes = b""
    beat: int = -1
    changed: float = 0.0


class Storm:
    """One queue manager, its workers, and all their reports."""

    def __init__(self, home: Path, workers: int, seed: int, make: type[Worker] = Worker) -> None:
        self.home, self.seed, self.make = home, seed, make
        self.rng = random.Random(seed)
        self.fates: dict[int, Fate] = {}
        self.together: dict[str, list[list[int]]] = {"intent": [], "apart": []}
        self.units = {"acked": 0, "undone": 0}
        self.cancels = 0
        self.longest = 0.0
        self.shared = mmap.mmap(-1, mmap.PAGESIZE)
        penstock.create(MANAGER, home=home, **SETTINGS)
        self.qm = penstock.connect(MANAGER, home=home)
        for name in QUEUES:
            self.qm.define("QLOCAL", name, maxdepth=999_999)
        self.qm.define("QALIAS", DESTINATIONS[1], target=COPIES[1])
        self.children = [Child() for _ in range(workers)]
        for index in range(workers):
            self.spawn(index)

    def spawn(self, index: int) -> None:
        c = self.children[index]
        c.incarnation += 1
        c.pipe, write_end = os.pipe()
        sys.stdout.flush()
        c.pid = os.fork()
        if c.pid == 0:
            child(self.make, self.home, index, c.incarnation, self.seed, write_end, self.shared)
        os.close(write_end)
        os.set_blocking(c.pipe, False)
        c.pidfd = os.pidfd_open(c.pid)
        c.changed, c.rest = time.monotonic(), b""

    def drain(self, c: Child) -> None:
        while True:
            try:
                block = os.read(c.pipe, 1 << 16)
            except BlockingIOError:
                return
            if not block:
                return
            *lines, c.rest = (c.rest + block).split(b"\n")
            for line in lines:
                self.learn(line.decode().split())

    def learn(self, words: list[str]) -> None:
        kind, numbers = words[0], [int(word) for word in words[1:]]
        if kind == "cancels":
            self.cancels += len(numbers)
            return
        if kind in self.units:
            self.units[kind] += 1
        if kind in self.together:
            self.together[kind].append(numbers)
            kind = "intended"
        for number in numbers:
            fate = self.fates.setdefault(number, Fate())
            setattr(fate, kind, getattr(fate, kind) + 1)

    def kill(self, index: int) -> None:
        c = self.children[index]
        if c.pid <= 1 or c.pidfd < 0:
            raise AssertionError(f"refusing to kill {c.pid}")
        signal.pidfd_send_signal(c.pidfd, signal.SIGKILL)
        self.bury(c, -signal.SIGKILL)
        self.spawn(index)

    def bury(self, c: Child, *allowed: int) -> None:
        while True:
            self.drain(c)
            ended, status = os.waitpid(c.pid, os.WNOHANG)
            if ended:
                break
            time.sleep(0.0002)
        self.drain(c)
        os.close(c.pipe)
        os.close(c.pidfd)
        c.pidfd = -1
        code = os.waitstatus_to_exitcode(status)
        if code not in (0, *allowed):
            raise AssertionError(f"a worker ended with {code}")

    def watch(self) -> None:
        now = time.monotonic()
        for index, c in enumerate(self.children):
            self.drain(c)
            beat = self.shared[1 + index]
            if beat != c.beat:
                c.beat, c.changed = beat, now
            self.longest = max(self.longest, now - c.changed)
            if now - c.changed > STUCK_SECONDS:
                raise AssertionError(f"worker {index} is stuck")

    def run(self, kills: int, seconds: float) -> int:
        done, start = 0, time.monotonic()
        while done < kills and (not seconds or time.monotonic() - start < seconds):
            time.sleep(self.rng.random() * 0.05)
            self.watch()
            self.kill(self.rng.randrange(len(self.children)))
            done += 1
        for stop in (1, 2, 3):  # consumers, movers, producers: all queues end up with messages
            self.shared[STOP] = stop
            time.sleep(0.3)
            self.watch()
        for c in self.children:
            self.bury(c)
        return done

    def end_all(self) -> None:
        """Ends the remaining processes after a failure."""
        for c in self.children:
            if c.pid > 1 and c.pidfd >= 0:
                signal.pidfd_send_signal(c.pidfd, signal.SIGKILL)
                os.waitpid(c.pid, 0)

    # ---- the end check ----

    def check(self, copy_home: Path) -> dict[str, int]:
        """All three witnesses; what each counted. Raises AssertionError."""
        self.qm.maintain()
        doubted = self.check_in_doubt(copy_home.with_name("doubt"))
        live = {name: self.browse(self.qm, name) for name in QUEUES}
        for name, rows in live.items():
            with self.qm.open(name) as queue:
                assert queue.depth == len(rows), f"{name}: depth {queue.depth} of {len(rows)}"
        self.qm.check()
        status = self.qm.status()
        assert (status.attached, status.units) == (1, 0), status
        self.judge(live)
        copy = self.copy_files(copy_home)
        kept = {name: self.kept(rows) for name, rows in live.items()}
        read = {name: self.read(copy, name) for name in kept}
        assert read == kept, self.difference("the second reader", kept, read)
        findings = [f for f in QueueManagerFiles(copy).verify() if f.severity == "damage"]
        assert not findings, findings
        with penstock.connect(MANAGER, home=copy_home) as recovered:
            found = {name: self.browse(recovered, name) for name in kept}
            assert found == kept, self.difference("recovery", kept, found)
            recovered.check()
        return {
            "live": sum(map(len, live.values())),
            "persistent": sum(map(len, kept.values())),
            "doubted": doubted,
        }

    def copy_files(self, home: Path) -> Path:
        """The folder of a copy of the queue manager's files."""
        copy = qmdir.manager_directory(MANAGER, home)
        home.mkdir(mode=0o700)
        shutil.copytree(qmdir.manager_directory(MANAGER, self.home), copy)
        return copy

    def check_in_doubt(self, home: Path) -> int:
        """Resolves the units in doubt, here and in a copy of the files: the same units with the
        same messages, except for non-persistent puts, and the same queues afterwards, except for
        non-persistent messages; those that were got are discarded there. Returns the units' number.
        """
        units = units_in_doubt(self.qm)
        copy = self.copy_files(home)
        assert resolve(self.qm) == 0, "discarded without a restart"
        assert units_in_doubt(self.qm) == {}, "units that do not end"
        wanted = {name: self.kept(self.browse(self.qm, name)) for name in QUEUES}
        kept = {
            xid: [row for row in rows if not row[0] or persistent(row[1])]
            for xid, rows in units.items()
        }
        state = QueueManagerFiles(copy).replay()
        read = {str(unit.xid): list(state.prepared_messages(unit)) for unit in state.prepared}
        reported = {xid: [(c == "PUT", m.body()) for c, m in rows] for xid, rows in read.items()}
        assert reported == {str(x): [(put, body) for put, _, body in r] for x, r in kept.items()}
        lost = sum(
            not persistent(number)
            for xid, rows in kept.items()
            for _, number, _ in rows
            if xid.bqual == BACKS_OUT
        )
        with penstock.connect(MANAGER, home=home) as recovered:
            assert units_in_doubt(recovered) == kept, "a restart has other units in doubt"
            assert resolve(recovered) == lost, "discarded after a restart"
            found = {name: self.browse(recovered, name) for name in QUEUES}
            assert found == wanted, self.difference("a restart with units in doubt", wanted, found)
            recovered.check()
        return len(units)

    def kept(self, rows: list[Row]) -> list[Row]:
        """The messages that a restart keeps."""
        return [row for row in rows if persistent(self.id_of(row))]

    @staticmethod
    def id_of(row: Row) -> int:
        return int(struct.unpack_from("<Q", row[0])[0])

    def browse(self, qm: Any, name: str) -> list[Row]:
        with qm.open(name) as queue:
            messages = list(queue.browse())
        for message in messages:
            number_of(message)
        return [(m.correl_id, m.priority, m.data) for m in messages]

    @staticmethod
    def read(directory: Path, name: str) -> list[Row]:
        messages = QueueManagerFiles(directory).replay().messages(name)
        return [(m.descriptor().correl_id, m.priority, m.body()) for m in messages]

    def difference(self, who: str, kept: dict[str, list[Row]], found: dict[str, list[Row]]) -> str:
        parts = []
        for name, rows in kept.items():
            wanted, seen = [self.id_of(r) for r in rows], [self.id_of(r) for r in found[name]]
            missing, more = set(wanted) - set(seen), set(seen) - set(wanted)
            parts.append(f"{name}: {len(missing)} missing, {len(more)} more, order or bytes differ")
        return f"{who} does not agree with the live region: {'; '.join(parts)}"

    def judge(self, live: dict[str, list[Row]]) -> None:
        for name, rows in live.items():
            numbers = [self.id_of(row) for row in rows]
            for number in numbers:
                assert number in self.fates, f"invented: {number:#x}"
                self.fates[number].queued += 1
            if name in self.make.in_order:
                self.judge_order(name, numbers)
        for number, fate in self.fates.items():
            here = fate.queued + fate.took
            assert fate.intended == 1, f"invented: {number:#x} {fate}"
            assert here <= 1, f"doubled: {number:#x} {fate}"
            assert not (fate.undone and here), f"back after a backout: {number:#x} {fate}"
            if fate.acked:
                assert here or fate.taking > fate.gave, f"lost: {number:#x} {fate}"
        self.judge_units()

    def judge_order(self, name: str, numbers: list[int]) -> None:
        newest: dict[tuple[int, int], int] = {}
        for number in numbers:
            key = (number >> 48, priority_of(number))
            assert newest.get(key, 0) < number, f"out of order on {name}: {number:#x}"
            newest[key] = number

    def judge_units(self) -> None:
        """A unit is whole. A put outside a unit is separate for each destination, in order: one
        that has begun follows a complete one, unless the journal was full.
        """
        for numbers in self.together["intent"]:
            there = [self.fates[number].present for number in numbers]
            assert all(there) or not any(there), f"half a unit: {list(map(hex, numbers))} {there}"
        full = any(self.fates[n].undone for numbers in self.together["apart"] for n in numbers)
        for numbers in self.together["apart"]:
            there = [self.fates[number].present for number in numbers]
            in_order = there == sorted(there, reverse=True)
            assert in_order or full, f"a hole in a list: {list(map(hex, numbers))} {there}"

    def lists(self) -> str:
        """The number of messages put to lists, for the last line."""
        units = [n for numbers in self.together["intent"] for n in numbers if root(n) != n]
        apart = self.together["apart"]
        cut = [sum(self.fates[number].present for number in numbers) for numbers in apart]
        return (
            f"{len(units) // len(COPIES)} puts to lists in units and {len(apart)} apart "
            f"({sum(0 < count < len(COPIES) for count in cut)} of these cut short)"
        )


def storm(description: str, make: type[Worker], kind: str) -> None:
    """A whole storm, as the command line has it; prints what it counted."""
    parser = argparse.ArgumentParser(description=description.split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--time", type=float, default=0.0, help="seconds at most")
    arguments = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="penstock-storm-") as folder:
        home = Path(folder, "home")
        home.mkdir(mode=0o700)
        run = Storm(home, arguments.workers, arguments.seed, make)
        try:
            done = run.run(arguments.kills, arguments.time)
            counts = run.check(Path(folder, "copy"))
        except BaseException:
            run.end_all()
            print(f"T7 FAILED, seed {arguments.seed}", file=sys.stderr)
            raise
        run.qm.close()
    print(
        f"T7: {done} kills of {arguments.workers} {kind} in "
        f"{time.monotonic() - start:.1f} s, {run.units['acked']} units acked, "
        f"{run.units['undone']} backed out, {run.cancels} cancels, {run.lists()}, "
        f"{len(run.fates)} ids, {counts['live']} messages "
        f"left ({counts['persistent']} persistent, three witnesses agree), "
        f"{counts['doubted']} units in doubt at the end, 0 lost, 0 twice, "
        f"0 torn, longest stand-still {run.longest * 1000:.0f} ms, seed {arguments.seed}"
    )


if __name__ == "__main__":
    storm(__doc__ or "", Worker, "processes")

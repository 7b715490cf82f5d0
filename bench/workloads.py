"""The named workloads: each uses queues, checks the results, and returns seconds.

Times cover the measured loop alone; bodies are made before it, checks follow it. Functions named
``*_worker`` run in separate processes (see :class:`Crew`).
"""

from __future__ import annotations

import multiprocessing
import os
import queue as standard_queue
import random
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count as counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import limits
import penstock
from limits import WrongResult

NAME = "BENCH"
MAX_DEPTH = 999_999_999
UNIT = 1000  # messages in a unit of work where the unit itself is not measured
REGION_DIRECTORY = Path("/dev/shm")
END_SECONDS = 60.0  # until processes that were ended are gone
WORKER_SECONDS = 600.0  # a worker that is silent for longer counts as stuck


def body(number: int, size: int, producer: int = 0) -> bytes:
    """A body of `size` bytes that starts with producer and number."""
    return (b"%04d %010d " % (producer, number)).ljust(size, b"m")[:size]


def expect(condition: bool, text: str) -> None:
    """Raises :class:`WrongResult` unless `condition` holds."""
    if not condition:
        raise WrongResult(text)


@contextmanager
def manager(home: Path) -> Iterator[penstock.QueueManager]:
    """A new queue manager below `home`, deleted afterwards."""
    penstock.create(NAME, home=str(home))
    try:
        with penstock.connect(NAME, home=str(home)) as qm:
            yield qm
    finally:
        _delete(home)


def _delete(home: Path) -> None:
    """Waits for Spark's listener of last micro-batches, which connects for a moment at the end of a
    query, in a thread of this process.
    """
    until = time.monotonic() + END_SECONDS
    while True:
        try:
            return penstock.delete(NAME, home=str(home))
        except penstock.ObjectInUse:
            if time.monotonic() > until:
                raise
        time.sleep(0.02)


def wait_until_alone(qm: penstock.QueueManager) -> None:
    """Waits until no other process is attached: Spark ends those of its sources without waiting."""
    until = time.monotonic() + END_SECONDS
    while len(attached := qm.process_list()) > 1:
        expect(time.monotonic() < until, f"{len(attached) - 1} processes are still attached")
        time.sleep(0.05)


def define(qm: penstock.QueueManager, name: str, persistent: bool) -> penstock.Queue:
    """Defines a local queue without a practical limit of depth and opens it."""
    qm.define("QLOCAL", name, defpsist=persistent, maxdepth=MAX_DEPTH)
    return qm.open(name)


def drain(qm: penstock.QueueManager, queue: penstock.Queue, count: int) -> list[bytes]:
    """Takes exactly `count` messages in units of work; the queue must be empty then."""
    bodies: list[bytes] = []
    while len(bodies) < count:
        with qm.transaction():
            bodies += [queue.get().data for _ in range(min(UNIT, count - len(bodies)))]
    expect(queue.depth == 0, f"{queue.depth} messages more than were put")
    return bodies


def fill(qm: penstock.QueueManager, queue: penstock.Queue, bodies: Sequence[bytes]) -> None:
    """Puts all bodies in units of work."""
    for start in range(0, len(bodies), UNIT):
        with qm.transaction():
            for data in bodies[start : start + UNIT]:
                queue.put(data)


# ---- non-persistent pairs in one process, and the peers ----


class TenDeques:
    """The priority queue that a Python programmer writes in a minute: ten deques and a lock."""

    def __init__(self) -> None:
        self._levels: tuple[deque[bytes], ...] = tuple(deque() for _ in range(10))
        self._from_the_top = self._levels[::-1]
        self._lock = threading.Lock()

    def put(self, data: bytes, priority: int) -> None:
        """Appends to its level."""
        with self._lock:
            self._levels[priority].append(data)

    def get(self) -> bytes:
        """Takes from the highest level that has something."""
        with self._lock:
            for level in self._from_the_top:
                if level:
                    return level.popleft()
        raise IndexError("empty")


Plan = list[tuple[bytes, int]]  # body and priority of each put


def plan(count: int, size: int, seed: int = 20260101) -> Plan:
    """`count` puts with numbered bodies and priorities from a fixed random sequence."""
    chance = random.Random(seed)
    return [(body(number, size), chance.randrange(10)) for number in range(count)]


def pairs_penstock(queue: penstock.Queue, work: Plan) -> float:
    """A put and a get for each step of the plan; the depth must be the same after it."""
    before = queue.depth
    put, get = queue.put, queue.get
    begun = time.perf_counter()
    for data, priority in work:
        put(data, priority=priority)
        get()
    elapsed = time.perf_counter() - begun
    expect(queue.depth == before, f"depth {before} became {queue.depth} in put+get pairs")
    return elapsed / len(work)


def pairs_deques(levels: TenDeques, work: Plan) -> float:
    """The same with :class:`TenDeques`."""
    put, get = levels.put, levels.get
    begun = time.perf_counter()
    for data, priority in work:
        put(data, priority=priority)
        get()
    return (time.perf_counter() - begun) / len(work)


def pairs_priority_queue(
    entries: standard_queue.PriorityQueue[tuple[int, int, bytes]], work: Plan, numbers: counter[int]
) -> float:
    """The same with the standard library's priority queue, arrival order kept by a number."""
    put, get = entries.put, entries.get
    begun = time.perf_counter()
    for data, priority in work:
        put((-priority, next(numbers), data))
        get()
    return (time.perf_counter() - begun) / len(work)


def pairs_simple_queue(entries: standard_queue.SimpleQueue[bytes], work: Plan) -> float:
    """A first-in-first-out hand-over in C, without priorities: what a call costs at least."""
    put, get = entries.put, entries.get
    begun = time.perf_counter()
    for data, _ in work:
        put(data)
        get()
    return (time.perf_counter() - begun) / len(work)


def check_same_order(queue: penstock.Queue, work: Plan, backlog: int) -> None:
    """Runs the plan through the queue and through ten deques: same bodies in the same order.

    The queue must be empty; it holds the plan's last `backlog` messages afterwards.
    """
    model = TenDeques()
    expect(queue.depth == 0, "the queue is not empty at the start")
    for number, (data, priority) in enumerate(work):
        queue.put(data, priority=priority)
        model.put(data, priority)
        if number >= backlog:
            got, expected = queue.get(), model.get()
            expect(got.data == expected, f"got {got.data[:20]!r}, expected {expected[:20]!r}")
    expect(queue.depth == backlog, f"depth {queue.depth} instead of {backlog}")


def gets_at_head(queue: penstock.Queue, count: int) -> float:
    """Seconds for a get of whatever is first; the messages go back afterwards, untimed."""
    get = queue.get
    begun = time.perf_counter()
    got = [get() for _ in range(count)]
    elapsed = time.perf_counter() - begun
    for message in got:
        queue.put(message.data, priority=message.priority, correl_id=message.correl_id)
    return elapsed / count


def gets_by_correl_id(queue: penstock.Queue, wanted: Sequence[bytes]) -> float:
    """Seconds for a get by CorrelId; the messages go back afterwards, untimed."""
    get = queue.get
    begun = time.perf_counter()
    got = [get(correl_id=correl_id) for correl_id in wanted]
    elapsed = time.perf_counter() - begun
    for message, correl_id in zip(got, wanted, strict=True):
        expect(message.correl_id == correl_id, "got a message with another CorrelId")
        queue.put(message.data, priority=message.priority, correl_id=correl_id)
    return elapsed / len(wanted)


# ---- durable calls ----


class Flushes:
    """Counts the flush batches that reach the journal while a block runs."""

    def __init__(self, home: Path) -> None:
        self._directory = home / NAME
        self.count = 0

    def __enter__(self) -> Flushes:
        self._before = limits.count_batches(self._directory)
        return self

    def __exit__(self, *_: object) -> None:
        self.count = limits.count_batches(self._directory) - self._before


def durable_puts(
    qm: penstock.QueueManager, queue: penstock.Queue, home: Path, size: int, count: int
) -> float:
    """Puts outside syncpoint, one producer: a flush each, every body there, in order."""
    bodies = [body(number, size) for number in range(count)]
    put = queue.put
    with Flushes(home) as flushes:
        begun = time.perf_counter()
        for data in bodies:
            put(data, persistent=True)
        elapsed = time.perf_counter() - begun
    expect(flushes.count >= count, f"{flushes.count} flushes for {count} durable puts")
    expect(drain(qm, queue, count) == bodies, "the bodies got are not the bodies put")
    return elapsed / count


def durable_gets(
    qm: penstock.QueueManager, queue: penstock.Queue, home: Path, size: int, count: int
) -> float:
    """Gets of persistent messages outside syncpoint: a flush each, every body, in order."""
    bodies = [body(number, size) for number in range(count)]
    fill(qm, queue, bodies)
    get = queue.get
    with Flushes(home) as flushes:
        begun = time.perf_counter()
        got = [get() for _ in range(count)]
        elapsed = time.perf_counter() - begun
    expect(flushes.count >= count, f"{flushes.count} flushes for {count} durable gets")
    expect([m.data for m in got] == bodies, "the bodies got are not the bodies put")
    expect(queue.depth == 0, "messages are left")
    return elapsed / count


def moves(
    qm: penstock.QueueManager,
    source: penstock.Queue,
    target: penstock.Queue,
    home: Path,
    size: int,
    count: int,
) -> float:
    """Get and put in one unit of work: one flush a unit, every body moved, in order."""
    bodies = [body(number, size) for number in range(count)]
    fill(qm, source, bodies)
    get, put = source.get, target.put
    with Flushes(home) as flushes:
        begun = time.perf_counter()
        for _ in range(count):
            with qm.transaction():
                put(get().data, persistent=True)
        elapsed = time.perf_counter() - begun
    expect(flushes.count >= count, f"{flushes.count} flushes for {count} units of work")
    expect(drain(qm, target, count) == bodies, "the bodies moved are not the bodies put")
    expect(source.depth == 0, "messages are left in the source")
    return elapsed / count


def check_producers(bodies: Sequence[bytes], producers: int, each: int) -> None:
    """Every message of every producer once, each producer's in its order."""
    expected = dict.fromkeys(range(producers), 0)
    for data in bodies:
        producer, number = map(int, data.split()[:2])
        expect(expected[producer] == number, f"producer {producer}: {number} out of order")
        expected[producer] += 1
    expect(set(expected.values()) == {each}, f"messages by producer: {expected}")


def thread_puts(queue: penstock.Queue, producers: int, each: int, size: int) -> float:
    """Durable puts by threads of this process; the messages stay in the queue."""
    barrier = threading.Barrier(producers)
    spans: list[tuple[float, float]] = []
    failures: list[BaseException] = []

    def produce(producer: int) -> None:
        bodies = [body(number, size, producer) for number in range(each)]
        try:
            barrier.wait(WORKER_SECONDS)
            begun = time.monotonic()
            for data in bodies:
                queue.put(data, persistent=True)
            spans.append((begun, time.monotonic()))
        except BaseException as error:
            failures.append(error)
            barrier.abort()

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(producers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return span(spans) / (producers * each)


def span(spans: Sequence[tuple[float, float]]) -> float:
    """Seconds from the first begin to the last end."""
    return max(end for _, end in spans) - min(begun for begun, _ in spans)


# ---- processes ----

Worker = Callable[..., Any]


class Crew:
    """Worker processes that wait for commands on a pipe; end them by leaving the block."""

    def __init__(self, worker: Worker, arguments: Sequence[tuple[Any, ...]]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._processes = []
        self.exit_codes: list[int | None] = []  # known after the block
        for values in arguments:
            ours, theirs = context.Pipe()
            process = context.Process(target=worker, args=(theirs, *values), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            with suppress(OSError):
                pipe.send(None)
            pipe.close()
        for process in self._processes:
            process.join(WORKER_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
            self.exit_codes.append(process.exitcode)

    def ask(self, command: Any) -> list[Any]:
        """Sends `command` to every worker and gives their answers."""
        for pipe in self._pipes:
            pipe.send(command)
        return self.answers()

    def answers(self) -> list[Any]:
        """One answer of each worker; a worker's error is raised here."""
        answers = []
        for pipe in self._pipes:
            if not pipe.poll(WORKER_SECONDS):
                raise WrongResult("a worker process does not answer")
            answer = pipe.recv()
            if isinstance(answer, BaseException):
                raise answer
            answers.append(answer)
        return answers


def put_worker(pipe: Connection, home: str, queue_name: str, producer: int, size: int) -> None:
    """Puts as many messages as each command demands; answers with begin and end."""
    with penstock.connect(NAME, home=home) as qm, qm.open(queue_name) as queue:
        pipe.send("ready")
        while (each := pipe.recv()) is not None:
            bodies = [body(number, size, producer) for number in range(each)]
            begun = time.monotonic()
            for data in bodies:
                queue.put(data, persistent=True)
            pipe.send((begun, time.monotonic()))


def process_puts(crew: Crew, producers: int, each: int) -> float:
    """Durable puts by the processes of a crew; the messages stay in the queue."""
    return span(crew.ask(each)) / (producers * each)


def pairs_worker(pipe: Connection, home: str, queue_name: str, size: int) -> None:
    """Does put+get pairs: commands are (count, start), answers (begin, end)."""
    with penstock.connect(NAME, home=home) as qm, qm.open(queue_name) as queue:
        work: Plan = []
        pipe.send("ready")
        while (command := pipe.recv()) is not None:
            count, start = command
            if len(work) != count:
                work = plan(count, size)
            while (begun := time.monotonic()) < start:
                pass
            pairs_penstock(queue, work)
            pipe.send((begun, time.monotonic()))


def soon() -> float:
    """A start (time.monotonic) for which every worker has its command."""
    return time.monotonic() + 0.005


def echo_worker(pipe: Connection, home: str, processor: int) -> None:
    """Answers each message of REQUEST with one on REPLY; an empty one ends it."""
    os.sched_setaffinity(0, {processor})
    with (
        penstock.connect(NAME, home=home) as qm,
        qm.open("REQUEST") as requests,
        qm.open("REPLY") as replies,
    ):
        pipe.send("ready")
        while data := requests.get(wait=WORKER_SECONDS).data:
            replies.put(data)
        pipe.send("ended")


def round_trips(requests: penstock.Queue, replies: penstock.Queue, count: int) -> list[float]:
    """Seconds of each request until its reply, which must be the same bytes."""
    times = []
    for number in range(count):
        data = body(number, 32)
        begun = time.perf_counter()
        requests.put(data)
        reply = replies.get(wait=60.0)
        times.append(time.perf_counter() - begun)
        expect(reply.data == data, f"reply {reply.data!r} to {data!r}")
    return times


@contextmanager
def on_processor(processor: int) -> Iterator[None]:
    """Keeps this thread on one processor inside the block."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


# ---- restart ----


def fill_worker(pipe: Connection, home: str, size: int, count: int, kill: bool) -> None:
    """Creates the queue manager, puts `count` persistent messages, ends in order or by SIGKILL."""
    penstock.create(NAME, home=home)
    with penstock.connect(NAME, home=home) as qm:
        queue = define(qm, "BACKLOG", persistent=True)
        for start in range(0, count, UNIT):
            with qm.transaction():
                for number in range(start, min(start + UNIT, count)):
                    queue.put(body(number, size), priority=number % 10)
        pipe.send(queue.depth)
        pipe.recv()
        if kill:
            os.kill(os.getpid(), signal.SIGKILL)
        queue.close()


def _mapped_region_bytes(before: set[str]) -> int:
    """Bytes allocated to the files on the region's tmpfs that were mapped since `before`."""
    paths = mapped_regions() - before
    return sum(os.stat(path).st_blocks * 512 for path in paths)


def mapped_regions() -> set[str]:
    """Files on tmpfs that this process has mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {line.split(maxsplit=5)[5] for line in lines if f" {REGION_DIRECTORY}/" in line}


def restart_worker(pipe: Connection, home: str, size: int, count: int, kill: bool) -> None:
    """Attaches as the first process and answers (seconds, bytes of the region, seconds to the first
    get); then checks the backlog's depth and head, and ends in order or by SIGKILL.
    """
    before = mapped_regions()
    begun = time.perf_counter()
    qm = penstock.connect(NAME, home=home)
    attached = time.perf_counter() - begun
    region_bytes = _mapped_region_bytes(before)
    queue = qm.open("BACKLOG")
    first = next(iter(queue.browse()))
    to_first = time.perf_counter() - begun
    head = body(9, size)
    if queue.depth != count or first.data != head or first.priority != 9:
        pipe.send(WrongResult(f"after the restart: depth {queue.depth}, head {first.data[:20]!r}"))
        return
    pipe.send((attached, region_bytes, to_first))
    pipe.recv()
    if kill:
        os.kill(os.getpid(), signal.SIGKILL)
    queue.close()
    qm.close()


def restart(home: Path, size: int, count: int, kill: bool) -> tuple[float, int, float]:
    """Runs :func:`restart_worker` once; its answer."""
    with Crew(restart_worker, [(str(home), size, count, kill)]) as crew:
        answer: tuple[float, int, float] = crew.answers()[0]
    _check_end(crew, kill)
    return answer


def fill_backlog(home: Path, size: int, count: int, kill: bool) -> None:
    """Makes the queue manager with its backlog and leaves it ended or killed."""
    with Crew(fill_worker, [(str(home), size, count, kill)]) as crew:
        expect(crew.answers() == [count], "the backlog is not complete")
    _check_end(crew, kill)


def discard(home: Path) -> None:
    """Deletes the queue manager, if there is one, with the region that a kill left behind."""
    if (home / NAME).exists():
        penstock.delete(NAME, home=str(home))


def _check_end(crew: Crew, kill: bool) -> None:
    expected = -signal.SIGKILL if kill else 0
    expect(crew.exit_codes == [expected], f"the worker ended with {crew.exit_codes}")


def create_and_attach(home: Path) -> float:
    """Seconds for a new queue manager and the first attach to it; it must then work."""
    begun = time.perf_counter()
    penstock.create(NAME, home=str(home))
    qm = penstock.connect(NAME, home=str(home))
    elapsed = time.perf_counter() - begun
    with qm:
        queue = qm.queue("FIRST")
        queue.put(b"works")
        expect(queue.get().data == b"works", "the new queue manager does not work")
        queue.close()
    penstock.delete(NAME, home=str(home))
    return elapsed


def close_last(home: Path, count: int) -> float:
    """Seconds that the last connection takes to close, after durable puts; they must be there."""
    penstock.create(NAME, home=str(home))
    qm = penstock.connect(NAME, home=str(home))
    with qm.queue("LAST") as queue:
        for _ in range(count):
            queue.put(b"x" * 1000, persistent=True)
    begun = time.perf_counter()
    qm.close()
    elapsed = time.perf_counter() - begun
    with penstock.connect(NAME, home=str(home)) as again, again.open("LAST") as queue:
        expect(queue.depth == count, "messages are missing after the orderly end")
    penstock.delete(NAME, home=str(home))
    return elapsed

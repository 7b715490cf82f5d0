"""Non-persistent put and get in one process, and what depth and CorrelId add to it."""

from __future__ import annotations

import queue as standard_queue
import random
from collections.abc import Callable
from itertools import count
from pathlib import Path

import limits
import workloads as w
from conftest import Interleave
from programs import Program, span
from report import Aim

BODY = 256
BACKLOG = 100  # messages that stay in the queue during the pairs
PAIRS = 2_000
C_PAIRS = 5_000
SIDE_BY_SIDE = 50_000  # pairs of each process where two run
ROUNDS = 101  # short rounds: the median one is not interrupted on a busy machine
DEEP = 1_000_000
SHALLOW = 1_000

Scale = Callable[[int], int]


def bench_put_get_pairs(interleave: Interleave, files: Path, scale: Scale) -> None:
    """A put with a priority and a get, 256 bytes, ten priorities at random, backlog of 100."""
    work = w.plan(scale(PAIRS), BODY)
    levels = w.TenDeques()
    entries: standard_queue.PriorityQueue[tuple[int, int, bytes]] = standard_queue.PriorityQueue()
    simple: standard_queue.SimpleQueue[bytes] = standard_queue.SimpleQueue()
    numbers = count()
    for data, priority in work[:BACKLOG]:
        levels.put(data, priority)
        entries.put((-priority, next(numbers), data))
        simple.put(data)
    with w.manager(files) as qm, w.define(qm, "PAIRS", persistent=False) as queue:
        w.check_same_order(queue, work, BACKLOG)
        interleave(
            "put+get in process, non-persistent, 256 bytes",
            {
                "penstock": lambda: w.pairs_penstock(queue, work),
                "ten deques and a lock": lambda: w.pairs_deques(levels, work),
                "queue.PriorityQueue": lambda: w.pairs_priority_queue(entries, work, numbers),
                "queue.SimpleQueue (no priorities)": lambda: w.pairs_simple_queue(simple, work),
                "C: robust lock and copy, twice": lambda: limits.copy_pairs(BODY, len(work)),
            },
            [
                Aim("time", 0.6, "ten deques and a lock"),
                Aim("rate", 4.0, "queue.PriorityQueue"),
            ],
            rounds=ROUNDS,
        )


def bench_put_get_at_depth(interleave: Interleave, files: Path, scale: Scale) -> None:
    """The same pair on a queue of a million messages and on one of a thousand."""
    work = w.plan(scale(PAIRS), BODY)
    with (
        w.manager(files) as qm,
        w.define(qm, "DEEP", persistent=False) as deep,
        w.define(qm, "SHALLOW", persistent=False) as shallow,
    ):
        for queue, depth in ((deep, scale(DEEP)), (shallow, SHALLOW)):
            for data, priority in w.plan(depth, BODY, seed=7):
                queue.put(data, priority=priority)
        interleave(
            f"put+get at depth {scale(DEEP):,}, non-persistent",
            {
                "penstock": lambda: w.pairs_penstock(deep, work),
                "at depth 1,000": lambda: w.pairs_penstock(shallow, work),
            },
            [Aim("extra", 0.25e-6, "at depth 1,000")],
            rounds=ROUNDS,
        )


def bench_get_by_correl_id(interleave: Interleave, files: Path, scale: Scale) -> None:
    """A get by CorrelId among a million messages against a get of the first one."""
    depth, gets = scale(DEEP), scale(500)
    chance = random.Random(11)
    with w.manager(files) as qm, w.define(qm, "REPLIES", persistent=False) as queue:
        for number in range(depth):
            queue.put(w.body(number, BODY), correl_id=b"%024d" % number)
        interleave(
            f"get by CorrelId among {depth:,}, non-persistent",
            {
                "penstock": lambda: w.gets_by_correl_id(
                    queue, [b"%024d" % number for number in chance.sample(range(depth), gets)]
                ),
                "get at the head": lambda: w.gets_at_head(queue, gets),
            },
            [Aim("time", 2.0, "get at the head")],
            rounds=ROUNDS,
        )
        w.expect(queue.depth == depth, f"depth {queue.depth} instead of {depth}")


def bench_pairs_in_c(interleave: Interleave, files: Path, scale: Scale) -> None:
    """The same pair through the C interface, against a robust lock and a copy each way."""
    pairs = scale(C_PAIRS)
    with Program("c_pair", files, "PAIRS", BODY) as program:
        interleave(
            "put+get in C, non-persistent, 256 bytes",
            {
                "penstock": lambda: span([program], f"pairs {pairs} 0") / pairs,
                "C: robust lock and copy, twice": lambda: limits.copy_pairs(BODY, pairs),
            },
            [Aim("absolute", 120e-9)],
            rounds=ROUNDS,
        )
        program.must("empty", "empty")


def bench_two_processes_on_two_queues(interleave: Interleave, files: Path, scale: Scale) -> None:
    """Pairs in C by one process, and by two processes each on its own queue."""
    pairs = scale(SIDE_BY_SIDE)
    with (
        Program("c_pair", files, "ONE", BODY) as one,
        Program("c_pair", files, "OTHER", BODY) as other,
    ):

        def run(*programs: Program) -> float:
            return span(list(programs), f"pairs {pairs} {int(w.soon() * 1e9)}")

        interleave(
            "put+get in C by two processes on two queues, all pairs counted",
            {
                "penstock": lambda: run(one, other) / (2 * pairs),
                "one process": lambda: run(one) / pairs,
            },
            [Aim("rate", 1.6, "one process")],
            rounds=41,
        )
        one.must("empty", "empty")
        other.must("empty", "empty")


def bench_two_python_processes(interleave: Interleave, files: Path, scale: Scale) -> None:
    """The same from Python."""
    each = scale(SIDE_BY_SIDE // 5)
    with w.manager(files) as qm:
        for name in ("ONE", "OTHER"):
            w.define(qm, name, persistent=False).close()
        jobs = [(str(files), name, BODY) for name in ("ONE", "OTHER")]
        with w.Crew(w.pairs_worker, jobs) as both, w.Crew(w.pairs_worker, jobs[:1]) as single:
            both.answers()
            single.answers()
            interleave(
                "put+get in Python by two processes on two queues, all pairs counted",
                {
                    "penstock": lambda: w.span(both.ask((each, w.soon()))) / (2 * each),
                    "one process": lambda: w.span(single.ask((each, w.soon()))) / each,
                },
                [Aim("rate", 1.6, "one process")],
                rounds=41,
            )

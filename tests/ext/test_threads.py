"""One connection and one queue in many threads and processes at the same time."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import penstock
from penstock import Queue, QueueManager

EACH = 300


def together(*calls: object) -> None:
    """Runs the calls in new threads; raises an exception that one of them raised."""
    failures: list[BaseException] = []

    def run(call: object) -> None:
        try:
            call()  # type: ignore[operator]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_threads_share_a_handle_without_loss_or_doubles(queue: Queue) -> None:
    got: list[bytes] = []

    def produce(number: int) -> None:
        for step in range(EACH):
            queue.put(b"%d.%d" % (number, step), persistent=step % 50 == 0)

    def consume() -> None:
        while True:
            try:
                got.append(queue.get(wait=1.5).data)
            except penstock.NoMessageAvailable:
                return

    together(*([lambda n=n: produce(n) for n in range(3)] + [consume] * 3))
    assert Counter(got) == Counter(b"%d.%d" % (n, s) for n in range(3) for s in range(EACH))


def test_every_waiter_gets_the_reply_with_its_correl_id(qm: QueueManager, queue: Queue) -> None:
    clients = 40
    replies: dict[int, bytes] = {}

    def client(number: int) -> None:
        replies[number] = queue.get(wait=30, correl_id=b"%d" % number).data

    def server() -> None:
        for _ in range(100000):
            if queue.status().waiters == clients:
                break
        for number in reversed(range(clients)):
            queue.put(b"%d" % number, correl_id=b"%d" % number)

    together(server, *[lambda n=n: client(n) for n in range(clients)])
    assert replies == {number: b"%d" % number for number in range(clients)}
    assert qm.status().woken_by_bound == 0


def test_units_of_many_threads_are_whole(qm: QueueManager, queue: Queue) -> None:
    def work(number: int) -> None:
        for step in range(20):
            try:
                with qm.transaction():
                    for part in range(3):
                        queue.put(b"%d.%d.%d" % (number, step, part))
                    if step % 2:
                        raise KeyError
            except KeyError:
                pass

    together(*[lambda n=n: work(n) for n in range(6)])
    assert Counter(m.data for m in queue.browse()) == Counter(
        b"%d.%d.%d" % (n, s, p) for n in range(6) for s in range(0, 20, 2) for p in range(3)
    )


def test_opening_and_closing_in_many_threads_leaves_no_handle(
    qm: QueueManager, queue: Queue
) -> None:
    def work() -> None:
        for _ in range(50):
            with qm.open("Q") as mine:
                mine.put(b"x")
                mine.get()

    together(*[work] * 6)
    assert qm.status().handles == 1
    assert queue.depth == 0


def test_processes_share_a_queue_without_loss_or_doubles(
    qm: QueueManager, queue: Queue, home: Path
) -> None:
    program = """
import sys, penstock
with penstock.connect("QM1", sys.argv[1]) as qm, qm.open("Q") as q:
    for step in range(100):
        with qm.transaction():
            q.put(f"{sys.argv[2]}.{step}".encode(), persistent=step % 10 == 0)
"""
    workers = [
        subprocess.Popen([sys.executable, "-c", program, str(home), str(number)])
        for number in range(3)
    ]
    got = [queue.get(wait=60).data for _ in range(300)]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    assert Counter(got) == Counter(b"%d.%d" % (n, s) for n in range(3) for s in range(100))
    for number in range(3):
        mine = [d for d in got if d.startswith(b"%d." % number)]
        assert mine == [b"%d.%d" % (number, s) for s in range(100)]

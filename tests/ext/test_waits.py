"""Waits: woken by a put, ended by time, signals and close; one that raised has taken nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

import penstock
from penstock import Queue, QueueManager


class Later:
    """Calls a function in a thread once `ready` is true."""

    def __init__(self, ready: Callable[[], bool], call: Callable[[], object]) -> None:
        self._ready = ready
        self._call = call
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        for _ in range(10000):
            if self._ready():
                break
            time.sleep(0.001)
        self._call()

    def __enter__(self) -> Later:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()


class Interrupted(Exception):
    """Raised by the signal handler of a test."""


@pytest.fixture
def handler() -> Iterator[list[int]]:
    """SIGUSR1 is counted in the list; it raises when the list begins with -1."""
    seen: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        if seen[0] == -1:
            raise Interrupted

    before = signal.signal(signal.SIGUSR1, handle)
    yield seen
    signal.signal(signal.SIGUSR1, before)


def waits(queue: Queue) -> Callable[[], bool]:
    return lambda: queue.status().waiters > 0


def test_a_wait_ends_with_the_message_that_comes(queue: Queue) -> None:
    with Later(waits(queue), lambda: queue.put(b"x")):
        assert queue.get(wait=30).data == b"x"


def test_a_wait_for_ever_ends_with_the_message_that_comes(queue: Queue) -> None:
    with Later(waits(queue), lambda: queue.put(b"x")):
        assert queue.get(wait=None).data == b"x"


def test_a_wait_for_a_correl_id_leaves_other_messages(queue: Queue) -> None:
    def put() -> None:
        queue.put(b"other", correl_id=b"other")
        queue.put(b"mine", correl_id=b"mine")

    with Later(waits(queue), put):
        assert queue.get(wait=30, correl_id=b"mine").data == b"mine"
    assert queue.depth == 1


def test_a_wait_ends_at_the_commit_of_the_put(qm: QueueManager, queue: Queue) -> None:
    def put() -> None:
        with qm.transaction():
            queue.put(b"x")

    with Later(waits(queue), put):
        assert queue.get(wait=30).data == b"x"


@pytest.mark.parametrize("wait", [0.05, 1, 1.2])
def test_a_wait_ends_with_2033_when_its_time_is_up(queue: Queue, wait: float) -> None:
    begun = time.monotonic()
    with pytest.raises(penstock.NoMessageAvailable):
        queue.get(wait=wait)
    assert time.monotonic() - begun >= wait


def test_other_threads_run_while_one_waits(queue: Queue) -> None:
    count = 0

    def work() -> None:
        nonlocal count
        for _ in range(1000):
            count += 1
        queue.put(b"%d" % count)

    with Later(waits(queue), work):
        assert queue.get(wait=30).data == b"1000"


def test_a_handler_that_raises_ends_the_wait_and_nothing_was_taken(
    queue: Queue, handler: list[int]
) -> None:
    handler.append(-1)
    with (
        Later(waits(queue), lambda: os.kill(os.getpid(), signal.SIGUSR1)),
        pytest.raises(Interrupted),
    ):
        queue.get(wait=30)
    queue.put(b"x")
    assert queue.depth == 1


def test_a_handler_that_returns_lets_the_wait_go_on(queue: Queue, handler: list[int]) -> None:
    def work() -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        for _ in range(10000):
            if handler:
                break
            time.sleep(0.001)
        queue.put(b"x")

    with Later(waits(queue), work):
        assert queue.get(wait=30).data == b"x"
    assert handler == [signal.SIGUSR1]


def test_signals_do_not_lengthen_a_wait(queue: Queue, handler: list[int]) -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.01):
            os.kill(os.getpid(), signal.SIGUSR1)

    thread = threading.Thread(target=work)
    thread.start()
    begun = time.monotonic()
    with pytest.raises(penstock.NoMessageAvailable):
        queue.get(wait=0.5)
    elapsed = time.monotonic() - begun
    stop.set()
    thread.join()
    assert elapsed >= 0.5
    assert handler


def test_messages_and_interrupts_at_random_lose_nothing(queue: Queue) -> None:
    armed = [False]

    def handle(number: int, frame: FrameType | None) -> None:
        if armed[0]:
            armed[0] = False
            raise Interrupted

    def work() -> None:
        for number in range(300):
            queue.put(b"%d" % number)
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.0005)

    before = signal.signal(signal.SIGUSR1, handle)
    thread = threading.Thread(target=work)
    got: list[penstock.Message] = []
    interrupts = 0
    thread.start()
    while len(got) < 300 and (thread.is_alive() or queue.depth):
        try:
            armed[0] = True
            # no bytecode, and so no handler, between the return of get() and the end of extend()
            got.extend(map(queue.get, (5.0,)))
            armed[0] = False
        except Interrupted:
            interrupts += 1
    thread.join()
    signal.signal(signal.SIGUSR1, before)
    assert [m.data for m in got] == [b"%d" % number for number in range(300)]
    assert interrupts > 0


def test_close_by_another_thread_ends_a_wait_with_2019(qm: QueueManager, queue: Queue) -> None:
    with Later(waits(queue), queue.close), pytest.raises(penstock.ClosedHandle) as caught:
        queue.get(wait=None)
    assert caught.value.reason == 2019


def test_closing_the_connection_ends_waits_of_every_thread(qm: QueueManager, queue: Queue) -> None:
    outcomes: list[BaseException] = []

    def work() -> None:
        try:
            queue.get(wait=None)
        except penstock.MQError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for _ in range(10000):
        if queue.status().waiters == 5:
            break
        time.sleep(0.001)
    qm.close()
    for thread in threads:
        thread.join()
    assert [type(o) for o in outcomes] == [penstock.ClosedHandle] * 5


def test_inhibiting_gets_ends_a_wait(qm: QueueManager, queue: Queue) -> None:
    with (
        Later(waits(queue), lambda: qm.alter("QLOCAL", "Q", get="DISABLED")),
        pytest.raises(penstock.GetInhibited),
    ):
        queue.get(wait=30)


def test_a_quiescing_manager_ends_a_wait(qm: QueueManager, queue: Queue) -> None:
    with (
        Later(waits(queue), lambda: qm.end("controlled")),
        pytest.raises(penstock.QueueManagerQuiescing) as caught,
    ):
        queue.get(wait=30)
    assert caught.value.reason == 2161
    with pytest.raises(penstock.QueueManagerQuiescing):
        queue.put(b"x")


def test_a_browse_can_wait_for_more(queue: Queue) -> None:
    queue.put(b"1")
    messages = queue.browse(wait=30)
    assert next(messages).data == b"1"
    with Later(waits(queue), lambda: queue.put(b"2")):
        assert next(messages).data == b"2"
    messages.close()  # type: ignore[attr-defined]

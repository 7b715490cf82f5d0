"""What an installed package must be able to do, in one process: put, get, unit, wait, restart.

    python tests/packaging/one_process.py HOME

For the smoke tests of wheels (tools/smoke_wheel.sh, tools/smoke_aarch64.sh), away from the sources.
Deaths of processes are not among them: under qemu-user the kernel does not mark the robust locks of
a process that was killed, so that nothing could be concluded there.
"""

from __future__ import annotations

import platform
import sys
import threading
import time

import penstock

THREADS = 4
EACH = 200  # messages a thread
SMALL = {"segment_size": 1 << 20, "journal_limit": 64 << 20, "ring_size": 1 << 20}  # bytes


def put_and_get(home: str) -> None:
    """Priorities, persistence, empty queues."""
    with penstock.connect("QM1", home) as qm:
        qm.define("QLOCAL", "Q")
        queue = qm.queue("Q")
        queue.put(b"low", priority=1, persistent=True)
        queue.put(b"high", priority=8, persistent=False)
        assert [queue.get().data, queue.get().data] == [b"high", b"low"]
        try:
            queue.get()
        except penstock.MQError as error:
            assert error.reason_name == "MQRC_NO_MSG_AVAILABLE", error
        else:
            raise AssertionError("a get from an empty queue returned")


def units(home: str) -> None:
    """One unit is committed and one backed out."""
    with penstock.connect("QM1", home) as qm:
        queue = qm.queue("Q")
        with qm.transaction():
            queue.put(b"kept", persistent=True)
        try:
            with qm.transaction():
                assert queue.get().data == b"kept"
                raise LookupError
        except LookupError:
            pass
        message = queue.get()
        assert (message.data, message.backout_count) == (b"kept", 1)


def waits(home: str) -> None:
    """Threads wait for what other threads put, each message once."""
    got: list[bytes] = []

    def take() -> None:
        with penstock.connect("QM1", home) as qm:
            queue = qm.queue("Q")
            got.extend(queue.get(wait=60).data for _ in range(EACH))

    def give(number: int) -> None:
        with penstock.connect("QM1", home) as qm:
            queue = qm.queue("Q")
            for i in range(EACH):
                queue.put(b"%d %d" % (number, i), persistent=i % 2 == 0)

    threads = [threading.Thread(target=take) for _ in range(THREADS)]
    threads += [threading.Thread(target=give, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = sorted(b"%d %d" % (number, i) for number in range(THREADS) for i in range(EACH))
    assert sorted(got) == expected


def restart(home: str) -> None:
    """The last connection ends the queue manager in order; persistent messages are there again."""
    with penstock.connect("QM1", home) as qm:
        queue = qm.queue("Q")
        for i in range(EACH):
            queue.put(b"%d" % i, persistent=True, priority=i % 10)
        queue.put(b"gone", persistent=False, priority=9)
    with penstock.connect("QM1", home) as qm:
        queue = qm.queue("Q")
        order = sorted(range(EACH), key=lambda i: (-(i % 10), i))
        assert [queue.get().data for _ in range(EACH)] == [b"%d" % i for i in order]


def main() -> None:
    """Runs all of it and prints one line."""
    home = sys.argv[1]
    begin = time.monotonic()
    penstock.create("QM1", home, **SMALL)
    for step in (put_and_get, units, waits, restart):
        step(home)
    penstock.delete("QM1", home)
    seconds = time.monotonic() - begin
    version = f"{sys.version.split()[0]} {platform.machine()}"
    print(f"put, get, unit, wait, restart: passed in {seconds:.1f} s on Python {version}")


if __name__ == "__main__":
    main()

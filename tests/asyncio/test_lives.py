"""Loops, threads, processes: many tasks, several loops, forks, closes, deaths."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from face import SMALL, in_loop, until

import penstock
import penstock.asyncio
from penstock.asyncio import Queue, QueueManager

TASKS = int(os.environ.get("PENSTOCK_TASKS", "10000"))


def test_ten_thousand_tasks_wait_and_each_gets_its_message(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        before = threading.active_count()  # others of this process, of tests before
        tasks = [asyncio.create_task(q.get(wait=None)) for _ in range(TASKS)]
        await until(lambda: q.handle.status().waiters == TASKS)
        threads = threading.active_count()
        for i in range(TASKS):
            await q.put(str(i), persistent=False)
        got = await asyncio.gather(*tasks)
        assert sorted(int(message.text) for message in got) == list(range(TASKS))
        assert threads <= before + 1  # the thread of the connection

    in_loop(home, body)


def test_loops_in_several_threads_work_side_by_side(home: Path) -> None:
    penstock.create("QM1", home, **SMALL)
    penstock.connect("QM1", home).close()
    totals = []

    def one() -> None:
        async def body(qm: QueueManager, q: Queue) -> None:
            getters = [asyncio.create_task(q.get(wait=None)) for _ in range(50)]
            for i in range(50):
                await q.put(str(i), persistent=i % 5 == 0)
            totals.append(len(await asyncio.gather(*getters)))

        in_loop(home, body)

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals == [50, 50, 50]


def test_a_connection_is_refused_in_another_loop(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        async def other() -> None:
            with pytest.raises(penstock.InvalidValue, match="another event loop"):
                await q.get(wait=1)

        await asyncio.to_thread(asyncio.run, other())

    in_loop(home, body)


def test_closing_ends_gets_that_wait(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        other = await qm.queue("OTHER")
        one = asyncio.create_task(other.get(wait=None))
        await until(lambda: other.handle.status().waiters == 1)
        await other.close()
        with pytest.raises(penstock.ClosedHandle):
            await one
        second = await penstock.asyncio.connect("QM1", home)
        theirs = await second.queue("Q")
        two = asyncio.create_task(theirs.get(wait=None))
        await until(lambda: q.handle.status().waiters == 1)
        await second.close()
        with pytest.raises(penstock.ClosedHandle):
            await two
        await until(lambda: q.handle.status().waiters == 0)

    in_loop(home, body)


def test_quiescing_ends_gets_that_wait(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        getter = asyncio.create_task(q.get(wait=None))
        await until(lambda: q.handle.status().waiters == 1)
        await qm.alter("QLOCAL", "Q", get="DISABLED")
        with pytest.raises(penstock.GetInhibited):
            await getter

    in_loop(home, body)


_LOOP = "loop = asyncio.new_event_loop(); loop.run_until_complete(main())"
_LEFT = """
import asyncio, sys, penstock.asyncio
async def main():
    qm = await penstock.asyncio.connect("QM1", sys.argv[1])
    q = await qm.queue("Q")
    tasks = [asyncio.ensure_future(q.get(wait=None)) for _ in range(10)]
    while q.handle.status().waiters < 10:
        await asyncio.sleep(0.001)
    {end}
{run}
"""


@pytest.mark.parametrize(
    ("end", "run"),
    [
        ("return", "asyncio.run(main())"),
        ("sys.exit(0)", "asyncio.run(main())"),
        (
            "return",
            "loop = asyncio.new_event_loop(); loop.run_until_complete(main()); loop.close()",
        ),
        ("return", "loop = asyncio.new_event_loop(); loop.run_until_complete(main())"),
    ],
)
def test_a_process_ends_with_tasks_that_wait(home: Path, end: str, run: str) -> None:
    penstock.create("QM1", home, **SMALL)
    with penstock.connect("QM1", home) as qm, qm.queue("Q") as q:
        program = _LEFT.format(end=end, run=run)
        ended = subprocess.run(
            [sys.executable, "-c", program, str(home)], capture_output=True, timeout=60, check=False
        )
        assert ended.returncode == 0, ended.stderr
        assert q.status().waiters == 0
        q.put(b"still here")
        assert q.get().data == b"still here"


def test_a_killed_process_hands_its_wake_ups_on_and_leaves_no_socket(home: Path) -> None:
    penstock.create("QM1", home, **SMALL)
    with penstock.connect("QM1", home) as qm, qm.queue("Q") as q:
        program = _LEFT.format(
            end="print('up', flush=True); await asyncio.sleep(600)", run="asyncio.run(main())"
        )
        before = set(os.listdir("/dev/shm"))
        child = subprocess.Popen([sys.executable, "-c", program, str(home)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        made = {name for name in set(os.listdir("/dev/shm")) - before if "wake-" in name}
        assert made
        child.send_signal(signal.SIGSTOP)
        q.put(b"for a dead one", persistent=False)
        got = []
        getter = threading.Thread(target=lambda: got.append(q.get(30)))
        getter.start()
        child.kill()
        child.wait()
        child.stdout.close()
        getter.join()
        assert got[0].data == b"for a dead one"
        while q.status().waiters:
            pass
        while made & set(os.listdir("/dev/shm")):
            pass


def test_a_forked_child_has_nothing_of_the_loop_and_may_connect_anew(home: Path) -> None:
    async def body(qm: QueueManager, q: Queue) -> None:
        getter = asyncio.create_task(q.get(wait=None))
        await until(lambda: q.handle.status().waiters == 1)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                asyncio.events._set_running_loop(None)
                call = q.get()
                try:
                    call.send(None)
                except penstock.MQError as error:
                    code = 0 if error.reason == 2012 else 2
                if code == 0:
                    asyncio.run(child())
            except BaseException:
                code = 3
            os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        assert (await getter).data == b"from the child"

    async def child() -> None:
        qm = await penstock.asyncio.connect("QM1", home)
        q = await qm.queue("Q")
        await q.put(b"from the child", persistent=False)
        await q.close()
        await qm.close()

    in_loop(home, body)


def test_waits_and_cancels_leave_no_descriptors_and_no_memory(home: Path) -> None:
    import tracemalloc

    async def body(qm: QueueManager, q: Queue) -> None:
        async def some(count: int) -> None:
            for i in range(count):
                task = asyncio.create_task(q.get(wait=None))
                await asyncio.sleep(0)
                if i % 2:
                    task.cancel()
                else:
                    await q.put(b"x", persistent=i % 8 == 0)
                await asyncio.wait([task])

        await some(200)
        descriptors = len(os.listdir("/proc/self/fd"))
        contexts = (await qm.status()).contexts
        tracemalloc.start()
        await some(100)
        before = tracemalloc.get_traced_memory()[0]
        await some(2000)
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert len(os.listdir("/proc/self/fd")) == descriptors
        assert (await qm.status()).contexts == contexts
        assert grown < 100_000

    in_loop(home, body)

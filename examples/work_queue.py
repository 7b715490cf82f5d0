"""A work queue: several processes, priorities, retries, and a dead-letter queue.

Each worker takes a job in a unit of work. An exception backs the unit out, and the job returns to
its position with its BackoutCount raised by one. After three attempts the worker moves it to the
dead-letter queue, in the same unit that takes it off the work queue. A worker that is killed leaves
its job to the others.

    python examples/work_queue.py

prints

    done: 9 jobs, dead letters: 1
"""

from __future__ import annotations

import multiprocessing

import penstock
from penstock import mqi

ATTEMPTS = 3
WORKERS = 2


def work(body: bytes) -> bytes:
    """The work itself; one of the jobs cannot be done."""
    if body == b"job 4":
        raise ValueError("job 4 cannot be done")
    return body.upper()


def worker(name: str) -> None:
    """Takes jobs until none comes for a second."""
    with (
        penstock.connect(name) as qm,
        qm.open("JOBS") as jobs,
        qm.open("RESULTS") as results,
    ):
        while True:
            try:
                with qm.transaction():
                    job = jobs.get(wait=1)
                    if job.backout_count >= ATTEMPTS:
                        qm.dead_letter(job, mqi.MQRC_BACKOUT_THRESHOLD_REACHED, "JOBS")
                    else:
                        results.put(work(job.data), correl_id=job.msg_id)
            except penstock.NoMessageAvailable:
                return
            except ValueError:
                continue  # backed out: another attempt follows


def main() -> None:
    """Puts ten jobs, starts the workers, counts results."""
    with (
        penstock.connect("WORK", create=True) as qm,
        qm.queue("JOBS") as jobs,
        qm.queue("RESULTS") as results,
        qm.queue("DEAD") as dead,
    ):
        qm.alter("QMGR", "WORK", deadq="DEAD")
        for number in range(10):
            jobs.put(b"job %d" % number, priority=9 if number == 7 else 4)
        context = multiprocessing.get_context("spawn")
        workers = [context.Process(target=worker, args=("WORK",)) for _ in range(WORKERS)]
        for process in workers:
            process.start()
        for process in workers:
            process.join()
        done, failed = results.get_batch(100), dead.get_batch(100)
        print(f"done: {len(done)} jobs, dead letters: {len(failed)}")


if __name__ == "__main__":
    main()

"""Periodic jobs: a schedule, two processes that run it, and a worker that does what comes.

Both processes run all schedules, and one of them is killed (``kill -9``) on the way: each job comes
once nevertheless.

    python examples/periodic_jobs.py

does 20 jobs of a schedule and prints

    jobs: 20, runners killed: 1, left: 0
"""

from __future__ import annotations

import multiprocessing

import penstock

NAME, JOBS = "PERIODIC", 20


def run_schedules(name: str) -> None:
    """A process of a service that keeps the schedules running."""
    with penstock.connect(name) as qm:
        qm.run_schedules()


def main() -> None:
    """Does the jobs and prints the counts."""
    start = multiprocessing.get_context("spawn").Process
    with penstock.connect(NAME, create=True) as qm, qm.queue("JOBS") as jobs:
        runners = [start(target=run_schedules, args=(NAME,), daemon=True) for _ in range(2)]
        for runner in runners:
            runner.start()
        qm.schedule("count", "JOBS", put="count", every=0.02, missed="all")
        done = killed = 0
        for job in jobs.consume(wait=60, limit=JOBS):
            done += job.text == "count"
            if done == JOBS // 2:
                runners[0].kill()
                killed += 1
        qm.delete_schedule("count")
        for runner in runners:
            runner.terminate()
            runner.join()
        print(f"jobs: {done}, runners killed: {killed}, left: {len(qm.schedules())}")


if __name__ == "__main__":
    main()

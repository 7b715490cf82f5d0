"""A triggered batch: a program that runs only when there is work, and ends when there is none.

Orders arrive on a queue with TRIGTYPE(DEPTH). The third of them makes a trigger message on the
initiation queue, and sets NOTRIGGER; the trigger monitor starts the program that the process
definition names, with the MQTMC2 as its argument. The program works the queue off, sets TRIGGER
again, and ends: the next three orders start it again.

    python examples/triggered_batch.py

prints

    2 batches: 3 orders of ORDERS, 3 orders of ORDERS; left: 0
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import penstock

BATCH = 3
MANAGER = "TRIGGERED"
QUEUE_NAME, MANAGER_NAME = slice(8, 56), slice(684, 732)  # in the MQTMC2


def batch(mqtmc2: str) -> None:
    """What the trigger monitor starts: takes all orders in one unit of work."""
    name, manager = mqtmc2[QUEUE_NAME].rstrip(), mqtmc2[MANAGER_NAME].rstrip()
    with (
        penstock.connect(manager) as qm,
        qm.open("REPORTS") as reports,
        qm.transaction(),
        qm.open(name) as orders,
    ):
        count = 0
        while orders.get(default=None) is not None:
            count += 1
        reports.put(f"{count} orders of {name}")
    with penstock.connect(manager) as qm:
        qm.alter("QLOCAL", name, trigger=True)


def order(qm: penstock.QueueManager, reports: penstock.Queue) -> str:
    """Puts a batch of orders; the report of the program that they start."""
    with qm.open("ORDERS", input=False, browse=False) as orders:
        for number in range(BATCH):
            orders.put(f"order {number}", persistent=True)
    text = str(reports.get(wait=60).text)
    while not qm.display("QLOCAL", "ORDERS")[0]["trigger"]:  # what the program does last
        time.sleep(0.01)
    return text


def main() -> None:
    """Defines the queues, starts the trigger monitor, orders twice."""
    with penstock.connect(MANAGER, create=True) as qm, qm.queue("REPORTS") as reports:
        program = f"{sys.executable} {Path(__file__).resolve()}"
        qm.define("QLOCAL", "INIT", replace=True)
        qm.define("PROCESS", "BATCH", applicid=program, replace=True)
        qm.define(
            "QLOCAL", "ORDERS", trigger=True, trigtype="DEPTH", trigdpth=BATCH, process="BATCH",
            initq="INIT", replace=True,
        )  # fmt: skip
        monitor = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", "trigger-monitor", MANAGER, "--initq", "INIT"],
            stderr=subprocess.DEVNULL,
        )
        try:
            batches = [order(qm, reports) for _ in range(2)]
            with qm.open("ORDERS") as orders:
                print(f"{len(batches)} batches: {', '.join(batches)}; left: {orders.depth}")
        finally:
            monitor.terminate()
            monitor.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        batch(sys.argv[1])
    else:
        main()

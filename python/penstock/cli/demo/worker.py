"""The processes of the demonstration: ``python -m penstock.cli.demo.worker ROLE PLAN NUMBER``.

Each writes short lines to stdout, which the supervisor reads: ``ready`` when it is attached,
``moved N`` after each commit. Lines of at most 4,096 bytes enter a pipe whole or not at all.
"""

from __future__ import annotations

import os
import signal
import sys
import zlib
from pathlib import Path
from types import FrameType

import penstock

from .plan import LEDGER_QUEUE, LINES_QUEUE, MANAGER, Entry, Plan, Receipt, Tag, progress_queue

PATIENCE = 20.0  # seconds; a dead process's messages are back within one


def report(text: str) -> None:
    """One line to the supervisor."""
    os.write(1, text.encode() + b"\n")


def produce(plan: Plan, number: int) -> None:
    """Puts this producer's lines from where its last committed unit ended."""
    lines = list(plan.lines_of(number))
    with (
        penstock.connect(MANAGER, home=plan.home) as qm,
        qm.open(LINES_QUEUE) as queue,
        qm.open(progress_queue(number)) as progress,
    ):
        report("ready")
        position = 0
        while position < len(lines):
            with qm.transaction():
                # A predecessor that was killed had it in its unit of work: wait until it is back.
                position = int(progress.get(wait=PATIENCE).data)
                chosen = lines[position : position + plan.unit]
                for tag, line, priority in chosen:
                    queue.put(line, priority=priority, persistent=True, correl_id=tag.pack())
                position += len(chosen)
                progress.put(str(position).encode(), persistent=True)
            report(f"moved {len(chosen)}")


class _Consumer:
    """Takes lines and puts receipts until it is stopped or, draining, the queue is empty."""

    def __init__(self, plan: Plan, number: int, drain: bool) -> None:
        self.plan = plan
        self.number = number
        self.drain = drain
        self.stopping = False
        self.sequence = 0

    def stop(self, signal_number: int, frame: FrameType | None) -> None:
        """SIGTERM: ends after the present unit."""
        self.stopping = True

    def run(self) -> None:
        """Attaches and works."""
        signal.signal(signal.SIGTERM, self.stop)
        with (
            penstock.connect(MANAGER, home=self.plan.home) as qm,
            qm.open(LINES_QUEUE) as queue,
            qm.open(LEDGER_QUEUE) as ledger,
        ):
            report("ready")
            while not self.stopping:
                with qm.transaction():
                    taken = self.take(queue, ledger)
                report(f"moved {taken}")
                if self.drain and not taken:
                    break

    def take(self, queue: penstock.Queue, ledger: penstock.Queue) -> int:
        """The work of one unit; returns the number of lines taken."""
        entries: list[Entry] = []
        while len(entries) < self.plan.unit:
            try:
                m = queue.get(wait=0 if entries or self.drain else 0.1)
            except penstock.NoMessageAvailable:
                break
            tag = Tag.unpack(m.correl_id)
            crc = zlib.crc32(m.data)
            entries.append(Entry(tag, crc, m.priority, m.backout_count, m.number))
        if entries:
            receipt = Receipt(self.number, self.drain, os.getpid(), self.sequence, entries)
            ledger.put(receipt.pack(), persistent=True)
            self.sequence += 1
        return len(entries)


def main(arguments: list[str]) -> None:
    """ROLE is ``produce``, ``consume`` or ``drain``."""
    role, path, number = arguments
    plan = Plan.load(Path(path))
    if role == "produce":
        produce(plan, int(number))
    else:
        _Consumer(plan, int(number), role == "drain").run()


if __name__ == "__main__":
    main(sys.argv[1:])

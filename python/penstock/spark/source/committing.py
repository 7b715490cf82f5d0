"""Commits the micro-batches of a stream, with its entry in the ledger, in one atomic call.

Units with a number below the ledger's, and parts that are not in the plan of a micro-batch, are
those of a late driver: they are backed out, and no row was made of them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..base import units
from ..base.ledger import Ledger, ledger
from .aside import Counts, counted, counts_in
from .taking import planned

if TYPE_CHECKING:
    from penstock import QueueManager, Xid

__all__ = ["Commits"]


class Commits:
    """What a stream has committed.

    Attributes:
        counts: Of what was put aside in committed micro-batches.
        took_ms: How long the last commit took, by this process.
    """

    def __init__(self, noted: dict[str, str]) -> None:
        """Args: noted: the choice of queues, for the ledger."""
        self._noted = noted
        self._number = -1  # unknown
        self.counts = Counts()
        self.took_ms = 0

    @property
    def known(self) -> int:
        """The newest committed number that is known; 0: none."""
        return max(0, self._number)

    def register(self, qm: QueueManager, stream: str) -> None:
        """Enters a new stream into the ledger: before its first commit it is known, too."""
        with ledger(qm) as book:
            if book.read(f"stream:{stream}") is None:
                entry = {"unit": 0, **self._noted, "time": int(time.time())}
                book.add(f"stream:{stream}", entry)

    def number(self, qm: QueueManager, stream: str) -> int:
        """The number in the ledger, read once: only this stream changes it."""
        if self._number < 0:
            with ledger(qm) as book:
                _, ledgers = units.of_stream(qm.recover(), stream)
                units.back_out(qm, ledgers)
                entry = book.read(f"stream:{stream}")
            self._number = entry["unit"] if entry else 0
            self.counts = counts_in(entry)
        return self._number

    def commit(self, qm: QueueManager, stream: str, end: int, plan: dict[str, int]) -> None:
        """Commits the micro-batches up to that number; committed ones stay so.

        plan: Queue -> number of its parts, of the last one. Other parts of it are of a late driver.
        """
        done = self.number(qm, stream)
        with ledger(qm) as book:
            there = qm.recover()
            found, ledgers = units.of_stream(there, stream)
            units.back_out(qm, ledgers)
            asides = units.asides(there, stream)
            for number in {*found, *asides}:
                if number <= done:  # of a late driver
                    units.back_out(qm, found.pop(number, {}).values())
                    units.back_out(qm, asides.pop(number, ()))
            last = planned(found.get(end, {}), plan)
            units.back_out(qm, set(found.get(end, {}).values()) - set(last.values()))
            found[end] = last
            due: list[Xid] = []
            counts = self.counts
            for number in range(done + 1, end + 1):
                parts, aside = found.get(number, {}), asides.get(number, {})
                if len(due) + len(parts) + len(aside) > units.MOST_UNITS:
                    self._commit(qm, book, (stream, number - 1), due, counts)
                    due = []
                due += [*(parts[part] for part in sorted(parts)), *aside]
                counts = counts.plus(counted(aside.values()))
            if end > done:
                start = time.monotonic_ns()
                self._commit(qm, book, (stream, end), due, counts)
                self.took_ms = (time.monotonic_ns() - start) // 1_000_000

    def _commit(
        self,
        qm: QueueManager,
        book: Ledger,
        batch: tuple[str, int],
        due: list[Xid],
        counts: Counts,
    ) -> None:
        stream, number = batch
        xid = units.ledger_unit(units.SOURCE, stream)
        entry = {"unit": number, **self._noted, "time": int(time.time())}
        book.prepare(f"stream:{stream}", {**entry, **counts.entry()}, xid)
        qm.commit_prepared(*due, xid)
        self._number = number
        self.counts = counts

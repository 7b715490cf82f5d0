"""The proofs: every line exactly once, whole, with its priority, and in order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from .plan import PRODUCERS, Entry, Plan, Receipt, Tag


class ProofFailed(Exception):
    """A line is lost, doubled, changed or out of order; the text names it."""


class Census:
    """Compares the messages found with the input."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._expected: dict[Tag, int] = {}
        for producer in range(PRODUCERS):
            for tag, _, priority in plan.lines_of(producer):
                self._expected[tag] = priority
        if len(self._expected) != plan.total:
            raise ProofFailed(f"the input has {len(self._expected)} lines now, {plan.total} before")

    @property
    def by_priority(self) -> dict[int, int]:
        """The number of lines of each priority, highest first."""
        counts = Counter(self._expected.values())
        return dict(sorted(counts.items(), reverse=True))

    def name(self, tag: Tag) -> str:
        """File and line number of a tag, as text for users."""
        return f"{self._plan.files[tag.file]}:{tag.line + 1}"

    def exactly_once(
        self, receipts: Iterable[Receipt], queued: Iterable[Tag], positions: Sequence[int]
    ) -> tuple[int, int]:
        """Every line below its producer's position is on one receipt or once on the queue; others
        nowhere.

        positions: of each producer, from its progress queue. Returns (lines on receipts, lines
        queued). Raises ProofFailed.
        """
        taken = Counter(entry.tag for receipt in receipts for entry in receipt.entries)
        waiting = Counter(queued)
        found = taken + waiting
        for tag in self._expected:
            due = 1 if tag.position < positions[tag.producer] else 0
            if found[tag] != due:
                raise ProofFailed(
                    f"{self.name(tag)}: taken {taken[tag]} times, on the queue {waiting[tag]} "
                    f"times, but must be there {'once' if due else 'not at all'}"
                )
        strangers = [tag for tag in found if tag not in self._expected]
        if strangers:
            raise ProofFailed(f"a message that is no line of the input: {strangers[0]}")
        return taken.total(), waiting.total()

    def whole(self, receipts: Iterable[Receipt]) -> int:
        """Each line arrived with its bytes and its priority. Returns how many.

        Raises ProofFailed.
        """
        checked = 0
        for receipt in receipts:
            for entry in receipt.entries:
                if entry.crc != entry.tag.crc:
                    raise ProofFailed(f"{self.name(entry.tag)}: its bytes changed on the way")
                if entry.priority != self._expected[entry.tag]:
                    raise ProofFailed(
                        f"{self.name(entry.tag)}: priority {entry.priority}, put with "
                        f"{self._expected[entry.tag]}"
                    )
                checked += 1
        return checked

    def in_order(self, receipts: Iterable[Receipt]) -> int:
        """Checks the order of the lines that each run of a consumer took. Returns their number.

        Lines of one producer and one priority come in put order, except those that a backout
        returned after their consumer was killed (backout count above 0). While nothing is put and
        no process is killed (drain) there are no exceptions: priorities only fall, and within a
        priority message numbers only rise. Raises ProofFailed.
        """
        runs: dict[tuple[int, int], list[Receipt]] = defaultdict(list)
        for receipt in receipts:
            runs[receipt.consumer, receipt.run].append(receipt)
        checked = 0
        for run in runs.values():
            run.sort(key=lambda receipt: receipt.sequence)
            entries = [entry for receipt in run for entry in receipt.entries]
            checked += self._draining(entries) if run[0].drain else self._working(entries)
        return checked

    def _working(self, entries: list[Entry]) -> int:
        """Put order per producer and priority, except for lines that were backed out."""
        newest: dict[tuple[int, int], int] = {}
        fresh = [entry for entry in entries if not entry.backout_count]
        for entry in fresh:
            tag = entry.tag
            key = tag.producer, entry.priority
            if newest.get(key, -1) >= tag.position:
                raise ProofFailed(
                    f"{self.name(tag)} came after a later line of its producer and priority"
                )
            newest[key] = tag.position
        return len(fresh)

    def _draining(self, entries: list[Entry]) -> int:
        """Strictly by priority, then arrival."""
        for before, entry in pairwise(entries):
            if before.place >= entry.place:
                raise ProofFailed(
                    f"{self.name(entry.tag)} with priority {entry.priority}, arrival "
                    f"{entry.number} came after {self.name(before.tag)} with priority "
                    f"{before.priority}, arrival {before.number}"
                )
        return len(entries)

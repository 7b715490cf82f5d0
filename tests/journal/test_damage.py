"""T12: every single damage to a 64 KiB segment, and the second reader's result.

Each of 524,288 bits flipped; each of 65,536 truncations; each of 8,128 pairs of sectors swapped;
for each of 16,256 ordered pairs one sector's bytes also written over the other; each of 128 sectors
zeroed. On a *marked* image (a mark page covers the last batch) nothing may be lost silently. On an
*unmarked* one only the last batch may, because such damage looks like a torn tail; those are
counted.

Allowed outcomes: the same batches are read as from the whole image (damage in bytes that are not
interpreted), or the files are refused. Everything else is *silent*: fewer or other batches.

The scan under test is the reader's own, with a checker that caches the checksums of the whole
image, so that a case costs only the bytes that it damaged; a sample of the cases is read again, in
full and through the index.

pytest takes every 61st flip and truncation and all the others; `python
tests/journal/test_damage.py --all` takes all, on both processors, and prints the counts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
if __name__ == "__main__":
    tests = Path(__file__).resolve().parents[1]
    sys.path[:0] = [str(tests), str(tests.parent / "python")]

import writer as w

from penstock.journal import DamagedFile, MemoryFiles, QueueManagerFiles
from penstock.journal.segment import Checker, Scan, Segment, read_segment, scan_segment
from penstock.journal.store import check_end
from thorough import one_in

SIZE = 65536
SECTOR = 512
SECTORS = SIZE // SECTOR
PATH = "journal/0000000001.psj"

# Outcomes
SAME, REFUSED, TAIL, SILENT = "same", "refused", "last batch dropped", "SILENT LOSS"
Case = tuple[str, int, int]


class RememberingChecker(Checker):
    """Computes a checksum only once for the same bytes at the same offset.

    ``changed`` is the range that a case damaged; outside it the image's own checksums hold.
    """

    def __init__(self, whole: bytes) -> None:
        self.whole = whole
        self.crcs: dict[tuple[int, int], int] = {}
        self.batches: dict[bytes, int] = {}
        self.changed: Sequence[tuple[int, int]] = ()

    def record_crcs(
        self, data: bytes, starts: Sequence[int], lengths: Sequence[int]
    ) -> Sequence[int]:
        found = []
        for place in zip(starts, lengths, strict=True):
            at, length = place
            if any(low < at + length and at < high for low, high in self.changed):
                found.append(super().record_crcs(data, [at], [length])[0])
                continue
            if place not in self.crcs:
                self.crcs[place] = super().record_crcs(self.whole, [at], [length])[0]
            found.append(self.crcs[place])
        return found

    def hashes(self, salt: bytes, messages: Sequence[bytes]) -> Sequence[int]:
        found = []
        for message in messages:
            known = self.batches.get(salt + message)
            if known is None:
                known = super().hashes(salt, [message])[0]
                if len(self.batches) < 10_000:
                    self.batches[salt + message] = known
            found.append(known)
        return found


def image(marked: bool, seed: int = 1) -> bytes:
    """A 64 KiB segment as work leaves it: single puts, a unit, a big batch, chunks, a mark page."""
    rng = random.Random(seed)
    store = w.Store(size=SIZE)
    store.append(w.define(1, 1, "ORDERS", {15: 5000, 2013: "damage test"}))
    store.append(w.put(1, rng.randbytes(100)))
    store.append(*(w.put(n, rng.randbytes(300), priority=n % 10) for n in range(2, 9)))
    records = [w.put(9, b"in a unit", unit=5, ext=True), w.get(1, unit=5)]
    lsns = store.append(*records)
    store.append(w.commit(5, lsns[0], records))
    store.append(*(w.put(n, rng.randbytes(900)) for n in range(10, 17)))
    store.put_chunked(20, rng.randbytes(5000), 2500, unit=6)
    store.append(w.get(2), w.backout(0, [(3, 1, 1)]))
    store.append(*(w.put(n, rng.randbytes(60)) for n in range(30, 34)))
    if marked:
        store.mark()
    return store.files[PATH]


def cases() -> Iterator[Case]:
    """All damages, as (kind, first, second)."""
    for bit in range(SIZE * 8):
        yield ("flip", bit >> 3, bit & 7)
    for size in range(SIZE):
        yield ("cut", size, 0)
    for one in range(SECTORS):
        yield ("zero", one, 0)
        for other in range(SECTORS):
            if one < other:
                yield ("swap", one, other)
            if one != other:
                yield ("overwrite", one, other)


def damaged(whole: bytes, case: Case) -> tuple[bytes, list[tuple[int, int]]]:
    """The image after the damage, and the stretches that it touched."""
    kind, a, b = case
    if kind == "cut":
        return whole[:a], [(a, SIZE)]
    if kind == "flip":
        return whole[:a] + bytes([whole[a] ^ 1 << b]) + whole[a + 1 :], [(a, a + 1)]
    at, to = a * SECTOR, b * SECTOR
    data = bytearray(whole)
    if kind == "zero":
        data[at : at + SECTOR] = bytes(SECTOR)
        return bytes(data), [(at, at + SECTOR)]
    data[to : to + SECTOR] = whole[at : at + SECTOR]
    if kind == "swap":
        data[at : at + SECTOR] = whole[to : to + SECTOR]
        return bytes(data), [(at, at + SECTOR), (to, to + SECTOR)]
    return bytes(data), [(to, to + SECTOR)]


@dataclass
class Judge:
    """Reads damaged images and compares with the whole one."""

    whole: bytes

    def __post_init__(self) -> None:
        self.checker = RememberingChecker(self.whole)
        self.page = self.whole[:4096]
        self.segment: Segment = read_segment(PATH, self.page, SIZE, w.QM_ID)
        self.right: Scan = scan_segment(self.segment, self.whole)
        # the last batch that holds records; a mark page after it has nothing to lose
        self.last = max(k for k, batch in enumerate(self.right.batches) if batch.record_count)
        self.marked = self.last < len(self.right.batches) - 1

    def outcome(self, case: Case) -> str:
        """The result of a restart of the image after this damage."""
        data, self.checker.changed = damaged(self.whole, case)
        try:
            segment = self.segment
            if len(data) != SIZE or data[:4096] != self.page:
                segment = read_segment(PATH, data[:4096], len(data), w.QM_ID)
            scan = scan_segment(segment, data, checker=self.checker)
            check_end(scan, None, None)
        except DamagedFile:
            return REFUSED
        return self._compare(scan)

    def _compare(self, scan: Scan) -> str:
        right = self.right.batches
        same = 0
        for found, batch in zip(scan.batches, right, strict=False):
            end = batch.offset + batch.length
            touched = any(low < end and batch.offset < high for low, high in self.checker.changed)
            if found != batch or (
                touched and scan.data[batch.offset : end] != self.whole[batch.offset : end]
            ):
                break
            same += 1
        if same < len(scan.batches):
            return SILENT  # something was read that was never written
        if same > self.last:
            return SAME
        return TAIL if same == self.last else SILENT

    def outcome_in_full(self, case: Case) -> str:
        """The same through the whole reader: files, index, messages with their bodies."""
        data, _ = damaged(self.whole, case)
        try:
            found = contents(data)
        except DamagedFile:
            return REFUSED
        if found == contents(self.whole):
            return SAME
        before_last = self.right.batches[self.last].offset
        data = self.whole[:before_last] + bytes(SIZE - before_last)
        return TAIL if found == contents(data) else SILENT


def contents(data: bytes) -> object:
    """Objects and messages of an image, everything compared that a user would see."""
    head = w.Store(size=SIZE).head
    files = MemoryFiles({PATH: data, "HEAD": head, "qm.toml": w.QM_TOML.encode()})
    state = QueueManagerFiles(files).replay()
    messages = [(m.identity, m.backout_count, m.descriptor(), m.body()) for m in state.messages()]
    return messages, [(k, o.name, o.attributes) for k, o in state.objects.items()], state.units


def judge_all(
    marked: bool, seed: int, sample: int, part: int = 0, parts: int = 1, full: int = 0
) -> Counter[str]:
    """Counts of outcomes by kind.

    sample: only every sample-th flip and truncation is taken. part, parts: this process's share.
    full: every full-th case is read in full too and must come out the same.
    """
    judge = Judge(image(marked, seed))
    counts: Counter[str] = Counter()
    taken = 0
    for number, case in enumerate(cases()):
        if number % parts != part:
            continue
        if case[0] in ("flip", "cut") and number // parts % sample:
            continue
        outcome = judge.outcome(case)
        counts[f"{case[0]}: {outcome}"] += 1
        counts[outcome] += 1
        taken += 1
        if full and taken % full == 0:
            counts["read in full"] += 1
            assert judge.outcome_in_full(case) == outcome, case
        assert outcome != SILENT, case
        assert not (marked and outcome == TAIL), case
    return counts


def report(marked: bool, counts: Counter[str]) -> str:
    """One line for a person."""
    total = sum(counts[outcome] for outcome in (SAME, REFUSED, TAIL, SILENT))
    return (
        f"T12 second reader, {'marked' if marked else 'unmarked'} image: {total} damages, "
        f"{counts[REFUSED]} refused, {counts[SAME]} without effect, {counts[TAIL]} taken for a "
        f"torn tail (last batch), {counts[SILENT]} silent losses; "
        f"{counts['read in full']} read in full"
    )


def test_the_number_of_cases_is_that_of_the_plan() -> None:
    kinds = Counter(case[0] for case in cases())
    assert kinds == {"flip": 524288, "cut": 65536, "zero": 128, "swap": 8128, "overwrite": 16256}


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "unmarked"])
def test_no_damage_is_a_silent_loss_but_in_the_last_unmarked_batch(marked: bool) -> None:
    counts = judge_all(marked, seed=1, sample=61 * one_in(3), full=301)
    print(report(marked, counts))
    assert counts[TAIL] == 0 or not marked
    assert marked or counts[TAIL] > 0  # else the image does not exercise the exception


def test_the_check_finds_a_reader_that_takes_all_damage_for_a_torn_tail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A planted fault: without the marks the middle of the journal would vanish silently."""
    judge = Judge(image(marked=True))
    case = ("flip", judge.right.batches[3].offset + 200, 0)
    assert judge.outcome(case) == REFUSED
    monkeypatch.setitem(Judge.outcome.__globals__, "check_end", lambda *_: None)
    assert judge.outcome(case) == SILENT


def test_the_check_finds_a_reader_that_checks_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: changed bytes that are read as if they were right."""
    judge = Judge(image(marked=True))
    case = ("flip", judge.right.batches[3].offset + 200, 0)
    right = {at: judge.whole[at + 4 : at + 8] for at in judge.right.starts}
    monkeypatch.setattr(
        judge.checker,
        "record_crcs",
        lambda data, starts, lengths: [int.from_bytes(right[at], "little") for at in starts],
    )
    assert judge.outcome(case) == SILENT


def main() -> None:
    """Command line: all cases, on both kinds of image."""
    parser = argparse.ArgumentParser(description="T12 for the second reader")
    parser.add_argument("--all", action="store_true", help="every flip and cut, not every 61st")
    parser.add_argument("--seed", type=int, default=1, help="of the bodies in the image")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    sample = 1 if options.all else 61
    parts = options.jobs
    with multiprocessing.Pool(parts) as pool:
        for marked in (True, False):
            work = [(marked, options.seed, sample, k, parts, 2000) for k in range(parts)]
            counts: Counter[str] = sum(pool.starmap(judge_all, work), Counter())
            print(report(marked, counts), f"(seed {options.seed})", flush=True)


if __name__ == "__main__":
    main()

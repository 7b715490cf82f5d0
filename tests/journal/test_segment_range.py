"""A range of segments answers alike however much of it was listed, and opens what it must."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock.journal import segment_files
from penstock.journal.errors import DamagedFile
from penstock.journal.segment_range import SegmentRange

SMALL = {"segment_size": 256 << 10, "journal_limit": 8 << 20, "ring_size": 1 << 18}
PRUNED = 5  # one of the archive


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A queue manager that has ended, with an archive that has a hole."""
    home = tmp_path_factory.mktemp("home")
    penstock.create("QM1", home, logging="linear", **SMALL)
    with penstock.connect("QM1", home) as qm, qm.queue("Q") as queue:
        for _ in range(60):
            queue.put_batch([bytes(10_000)] * 20, persistent=True)
            queue.get_batch(20)
        qm.checkpoint()
    archived = home / "QM1" / "archive"
    assert len(list(archived.glob("*.psj"))) > 30
    (gone,) = archived.glob(f"*{PRUNED:010d}*.psj")
    gone.unlink()
    return home / "QM1"


def answers(journal: Callable[[], SegmentRange], lsn: int) -> list[object]:
    """All that a reader asks, about one LSN."""
    end = journal().end_lsn
    return [
        end,
        journal().oldest_lsn,
        journal().before(lsn),
        [segment.number for segment in journal().overlapping(lsn, lsn + (600 << 10))],
        journal().holes(lsn, end),
    ]


def test_a_range_listed_from_its_end_answers_as_one_listed_as_a_whole(files: Path) -> None:
    whole = SegmentRange(files)
    bases = [segment.base_lsn for segment in whole.overlapping(0, whole.end_lsn)]
    some = [*bases[PRUNED - 3 : PRUNED + 1], *bases[PRUNED + 2 :: 16], *bases[-3:]]
    for lsn in [0, *(base + more for base in some for more in (-1, 0, 1)), whole.end_lsn]:
        expected = answers(lambda: whole, lsn)
        assert answers(lambda: SegmentRange.newest(files, 0), lsn) == expected
    backwards = SegmentRange.newest(files, 0)
    for lsn in reversed(some):
        assert answers(lambda: backwards, lsn) == answers(lambda: whole, lsn)
    assert whole.holes(0, whole.end_lsn) and whole.oldest_lsn > bases[PRUNED - 2]


def test_who_reads_near_the_end_opens_no_archive(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    real = segment_files._inspect

    def inspect(directory: str, qm_id: bytes, number: int, in_archive: bool) -> object:
        opened.append(number)
        return real(directory, qm_id, number, in_archive)

    monkeypatch.setattr(segment_files, "_inspect", inspect)
    journal = SegmentRange.newest(files, 0)
    assert len(opened) == 2
    oldest = journal.oldest_lsn
    assert opened[2:] == [PRUNED + 1]
    near = journal.before(journal.end_lsn)
    assert near is not None and near > oldest
    assert journal.overlapping(near, journal.end_lsn) and len(opened) == 3
    journal.overlapping(near - (3 << 20), journal.end_lsn)
    assert 12 < len(set(opened)) < 30, "about as far back as was asked for"


def test_an_oldest_segment_that_goes_meanwhile_is_looked_for_again(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = SegmentRange.newest(files, 0)
    expected = journal.oldest_lsn
    real, asked = segment_files._inspect, []

    def goes(directory: str, qm_id: bytes, number: int, in_archive: bool) -> object:
        asked.append(number)
        return None if len(asked) == 1 else real(directory, qm_id, number, in_archive)

    monkeypatch.setattr(segment_files, "_inspect", goes)
    assert journal.oldest_lsn == expected and len(asked) == 2
    monkeypatch.setattr(segment_files, "_inspect", lambda *_: None)
    with pytest.raises(DamagedFile, match="the oldest segments go while they are listed"):
        _ = journal.oldest_lsn

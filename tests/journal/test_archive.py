"""Linear logging: retired segments stay in the archive and can be scanned, listed and pruned."""

from __future__ import annotations

import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.admin import settings as qmdir
from penstock.journal import QueueManagerFiles, archive
from penstock.journal.scan import list_segments, scan

SMALL = {"segment_size": 128 << 10, "journal_limit": 1 << 20, "ring_size": 1 << 18}


@pytest.fixture
def linear(home: Path) -> Path:
    """The directory of a queue manager whose archive is several times its journal's limit."""
    penstock.create("QM1", home, logging="linear", **SMALL)
    with penstock.connect("QM1", home) as qm:
        fill(qm, 0, 400)
    return qmdir.manager_directory("QM1", home)


def fill(qm: Any, start: int, end: int) -> None:
    """Puts and takes messages; a body contains its number."""
    with qm.queue("Q", maxdepth=1000) as queue:
        for i in range(start, end):
            put = queue.put(b"%06d" % i * 1500, persistent=True)
            queue.get(msg_id=put.msg_id)
            if i % 40 == 39:
                qm.checkpoint()


def bodies(directory: Path) -> list[int]:
    return [
        int((batch.body(i) or b"")[:6])
        for segment in list_segments(directory)
        for batch in scan(segment, ["body"], events=("PUT",))
        for i in range(len(batch))
    ]


def test_everything_ever_put_is_in_journal_and_archive_beyond_the_journals_limit(
    linear: Path,
) -> None:
    assert bodies(linear) == list(range(400))
    files, size = archive.usage(linear)
    assert files > 8 and size > 2 * SMALL["journal_limit"]
    segments = list_segments(linear)
    assert [s.number for s in segments] == list(range(1, len(segments) + 1))
    assert sum(s.archived for s in segments) == files
    in_journal = sum(f.stat().st_size for f in (linear / "journal").glob("*.psj"))
    assert in_journal <= SMALL["journal_limit"]
    assert QueueManagerFiles(linear).verify() == []


def test_linear_and_circular_logging_hold_the_same_messages_after_a_restart(home: Path) -> None:
    for name, logging in (("LIN", "linear"), ("CIR", "circular")):
        penstock.create(name, home, logging=logging, **{**SMALL, "journal_limit": 4 << 20})
        for turn in range(2):
            with penstock.connect(name, home) as qm:
                fill(qm, 100 * turn, 100 * turn + 80)
                with qm.open("Q") as queue:
                    queue.put(b"%d stays" % turn, persistent=True)
    for name in ("LIN", "CIR"):
        with penstock.connect(name, home) as qm, qm.open("Q") as queue:
            assert [m.data for m in queue.browse()] == [b"0 stays", b"1 stays"]
    assert archive.usage(home / "LIN")[0] > 0
    assert archive.usage(home / "CIR") == (0, 0) and not (home / "CIR" / "archive").exists()


def test_linear_logging_can_be_switched_on_and_off_later(home: Path) -> None:
    penstock.create("QM1", home, **SMALL)
    path = home / "QM1" / "qm.toml"
    for logging in ("circular", "linear", "circular", "linear"):
        text = path.read_text()
        for old in ("circular", "linear"):
            text = text.replace(f'logging = "{old}"', f'logging = "{logging}"')
        path.write_text(text)
        before = archive.usage(home / "QM1")[0]
        with penstock.connect("QM1", home) as qm:
            fill(qm, 0, 80)
        assert (archive.usage(home / "QM1")[0] > before) == (logging == "linear")


def test_pruning_removes_the_oldest_segments_that_end_before_the_moment(linear: Path) -> None:
    kept = archive.segments(linear)
    moment = kept[4].first
    assert moment is not None
    removed = archive.prune(linear, moment)
    assert 3 <= len(removed) <= 4 and removed == kept[: len(removed)]
    assert archive.segments(linear) == kept[len(removed) :]
    assert not any(segment.file.exists() for segment in removed)
    left = bodies(linear)
    assert left == list(range(left[0], 400)) and left[0] > 0
    with pytest.raises(ValueError, match="time zone"):
        archive.prune(linear, datetime(2026, 1, 1))
    assert archive.prune(linear, datetime(2026, 1, 1, tzinfo=timezone.utc)) == []


def test_pruning_everything_leaves_a_queue_manager_that_works(linear: Path) -> None:
    assert archive.prune(linear, datetime(2099, 1, 1, tzinfo=timezone.utc))
    assert archive.usage(linear) == (0, 0)
    with penstock.connect("QM1", linear.parent) as qm:
        fill(qm, 400, 480)
    assert bodies(linear)[-80:] == list(range(400, 480))


def test_an_older_copy_put_back_beside_its_archive_replaces_no_file_of_it(
    home: Path, tmp_path: Path
) -> None:
    penstock.create("QM1", home, logging="linear", **SMALL)
    root = home / "QM1"
    with penstock.connect("QM1", home) as qm:
        fill(qm, 0, 120)
    copy = shutil.copytree(root, tmp_path / "copy", ignore=shutil.ignore_patterns("archive"))
    with penstock.connect("QM1", home) as qm:
        fill(qm, 120, 300)
    before = {file.name: file.read_bytes() for file in (root / "archive").iterdir()}
    for folder in ("journal", "checkpoint"):
        shutil.rmtree(root / folder)
        shutil.copytree(copy / folder, root / folder)
    shutil.copy(copy / "HEAD", root / "HEAD")
    assert bodies(root) == list(range(120))  # what was archived since is another history
    with penstock.connect("QM1", home) as qm:
        fill(qm, 1000, 1180)
    assert {name: (root / "archive" / name).read_bytes() for name in before} == before
    assert bodies(root) == [*range(120), *range(1000, 1180)]
    superseded = archive.superseded(root)
    assert superseded and {file.name for file in superseded} <= before.keys()
    assert QueueManagerFiles(root).verify() == []
    archive.prune(root, datetime(2099, 1, 1, tzinfo=timezone.utc))
    assert {file.name for file in archive.superseded(root)} == {
        file.name for file in (root / "archive").iterdir()
    }


def test_deleting_removes_the_archive_but_not_what_others_put_there(linear: Path) -> None:
    note = linear / "archive" / "note.txt"
    note.write_text("mine")
    with pytest.raises(penstock.ObjectInUse, match="holds archive"):
        penstock.delete("QM1", linear.parent)
    assert [p.name for p in linear.rglob("*") if p.is_file()] == ["note.txt"]


def test_deleting_leaves_nothing(linear: Path) -> None:
    penstock.delete("QM1", linear.parent)
    assert not linear.exists()


def test_another_word_than_circular_or_linear_is_refused(home: Path) -> None:
    with pytest.raises(penstock.InvalidValue, match="'circular' or 'linear', not 'round'"):
        penstock.create("QM1", home, logging="round")


def test_an_archived_file_whose_number_the_journal_has_now_is_superseded(tmp_path: Path) -> None:
    for folder, numbers in (("journal", range(4, 7)), ("archive", range(1, 9))):
        (tmp_path / folder).mkdir()
        for number in numbers:
            prefix = "0000000000-" if folder == "archive" else ""
            (tmp_path / folder / f"{prefix}{number:010d}.psj").touch()
    assert [int(file.stem[-10:]) for file in archive.superseded(tmp_path)] == [4, 5, 6, 7, 8]

"""Damage of the newest checkpoint costs a longer restart, and nothing that was acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
import surroundings as s
from penstock import journal

CHURN = """
import sys, penstock
with penstock.connect("QM", sys.argv[1]) as qm, qm.queue("Q") as queue:
    if sys.argv[2] != "none":
        queue.put(b"kept " + sys.argv[2].encode(), persistent=True, priority=0)
    for _ in range(20):
        with qm.transaction():
            for number in range(50):
                queue.put(bytes(2000), persistent=True, priority=9)
        with qm.transaction():
            for number in range(50):
                queue.get()
    if sys.argv[3] == "checkpoint":
        qm.checkpoint()
    print("done", flush=True)
    sys.stdin.read()
"""


def churn(home: Path, turn: object, checkpoint: bool) -> None:
    """Messages that come and go, and one that stays unless turn is "none"; then a kill."""
    with s.python(CHURN, home, turn, "checkpoint" if checkpoint else "") as child:
        s.hear(child, "done")
        child.kill()
        child.wait(s.SECONDS)


def make(home: Path) -> Path:
    penstock.create("QM", home, segment_size=256 << 10, journal_limit=64 << 20)
    with penstock.connect("QM", home) as qm:
        qm.define("qlocal", "Q")
        return Path(qm.path)


def checkpoints(folder: Path) -> list[Path]:
    return sorted((folder / "checkpoint").glob("*.psc"))


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 16
    path.write_bytes(data)


def contents(home: Path) -> list[bytes]:
    with penstock.connect("QM", home) as qm, qm.queue("Q") as queue:
        return [bytes(message.data) for message in queue.browse()]


def severities(folder: Path) -> set[tuple[str, str]]:
    return {(f["severity"], f["file"]) for f in journal.verify(folder) if f["severity"] != "note"}


def test_a_damaged_checkpoint_is_passed_over_reported_and_replaced(tmp_path: Path) -> None:
    folder = make(tmp_path)
    for turn in range(4):
        churn(tmp_path, turn, checkpoint=True)
    churn(tmp_path, 4, checkpoint=False)
    newer = checkpoints(folder)[-1]
    flip(newer, 4200)
    assert severities(folder) == {("warning", f"checkpoint/{newer.name}")}
    with penstock.connect("QM", tmp_path) as qm, qm.queue("Q") as queue:
        assert [bytes(m.data) for m in queue.browse()] == [b"kept %d" % n for n in range(5)]
        log = (folder / "errors" / "AMQERR01.LOG").read_text()
        assert "AMQ7912" in log and newer.name in log
        qm.checkpoint()
        assert qm.status().checkpoint_damaged == 0
        assert newer not in checkpoints(folder) and len(checkpoints(folder)) == 2
        assert severities(folder) == set()
    assert contents(tmp_path) == [b"kept %d" % n for n in range(5)]


def test_both_damaged_are_refused_when_the_beginning_of_the_journal_is_gone(tmp_path: Path) -> None:
    folder = make(tmp_path)
    for turn in ("none", "none", "none", 3):
        churn(tmp_path, turn, checkpoint=True)
    older, newer = checkpoints(folder)
    assert not (folder / "journal" / "0000000001.psj").exists()
    flip(older, 100)
    assert severities(folder) == {("warning", f"checkpoint/{older.name}")}
    flip(newer, 100)
    assert ("damage", f"checkpoint/{newer.name}") in severities(folder)
    with pytest.raises(penstock.MQError, match="no older checkpoint is whole") as refused:
        penstock.connect("QM", tmp_path)
    assert refused.value.reason == 2101
    flip(newer, 100)
    assert contents(tmp_path) == [b"kept 3"]


def test_the_image_of_a_damaged_checkpoint_is_lost_and_nothing_else(tmp_path: Path) -> None:
    folder = make(tmp_path)
    with penstock.connect("QM", tmp_path) as qm:
        qm.define("qlocal", "HIGH", npmclass="HIGH")
        with qm.queue("HIGH") as queue:
            queue.put(b"persistent", persistent=True)
            queue.put(b"not persistent", persistent=False)
    flip(checkpoints(folder)[-1], 5000)
    for _ in range(2):
        with penstock.connect("QM", tmp_path) as qm, qm.queue("HIGH") as queue:
            assert [bytes(m.data) for m in queue.browse()] == [b"persistent"]


def test_half_made_checkpoints_of_a_killed_process_go_with_the_next_one(tmp_path: Path) -> None:
    folder = make(tmp_path)
    with penstock.connect("QM", tmp_path) as qm, qm.queue("Q") as queue:
        half = folder / "checkpoint" / "0000000000777000.tmp"
        half.write_bytes(b"half made")
        queue.put(b"x", persistent=True)
        qm.checkpoint()
        assert not half.exists()

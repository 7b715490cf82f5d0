"""What one forgotten message, or one idle unit of work, does to everybody's journal."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

import penstock
from penstock import journal

BODY = b"x" * 20_000
LIMIT = 16 << 20


def create(home: Path) -> None:
    penstock.create("ONE", home, journal_limit=LIMIT, segment_size=1 << 20)
    with penstock.connect("ONE", home) as qm:
        qm.define("qlocal", "DEAD")
        qm.define("qlocal", "Q")


def damages(home: Path) -> list[dict[str, object]]:
    return [f for f in journal.verify(home / "ONE") if f["severity"] == "damage"]


def test_a_forgotten_message_in_each_segment_does_not_end_the_traffic(tmp_path: Path) -> None:
    create(tmp_path)
    letters = [b"dead letter %d" % n for n in range(38)]
    with penstock.connect("ONE", tmp_path) as qm:
        with qm.queue("DEAD") as dead, qm.queue("Q") as queue:
            for n in range(1500):  # twice the limit
                if n % 40 == 0:
                    dead.put(letters[n // 40], persistent=True)
                queue.put(BODY, persistent=True)
                queue.get()
        status = qm.status()
        assert status.journal_bytes <= LIMIT
        assert status.moved_messages > 0
        assert status.live_bytes < len(letters) * 512
    assert damages(tmp_path) == []
    with penstock.connect("ONE", tmp_path) as qm, qm.queue("DEAD") as dead:
        assert [dead.get().data for _ in letters] == letters


@pytest.mark.parametrize("prepared", [False, True])
def test_a_forgotten_unit_does_not_end_the_traffic_and_is_whole_at_its_end(
    tmp_path: Path, prepared: bool
) -> None:
    create(tmp_path)
    xid = penstock.Xid(1, b"forgotten", b"")
    with penstock.connect("ONE", tmp_path) as qm, qm.queue("DEAD") as dead, qm.queue("Q") as queue:
        dead.put(b"got", persistent=True)
        with penstock.connect("ONE", tmp_path) as other, other.queue("DEAD") as letters:
            letters.get(syncpoint=True)
            letters.put(b"put", persistent=True, syncpoint=True)
            if prepared:
                other.prepare(xid)
            for _ in range(400):  # two thirds of the limit: at 80 % an open unit is ended (2003)
                queue.put(BODY, persistent=True, syncpoint=False)
                queue.get(syncpoint=False)
            qm.checkpoint()
            qm.checkpoint()
            assert qm.status().journal_bytes <= LIMIT // 2
            if prepared:
                for _ in range(1500):
                    queue.put(BODY, persistent=True)
                    queue.get()
                other.commit_prepared(xid)
            else:
                other.commit()
        assert [message.data for message in dead.browse()] == [b"put"]
    assert damages(tmp_path) == []


def test_a_full_journal_says_what_holds_it_and_is_drained_by_single_gets(tmp_path: Path) -> None:
    create(tmp_path)
    with penstock.connect("ONE", tmp_path) as qm, qm.queue("Q") as queue:
        with pytest.raises(penstock.MQError, match=r"deepest queue is Q with \d+ messages") as full:
            while True:
                queue.put(BODY, persistent=True)
        assert full.value.reason == 2192
        command = [sys.executable, "-m", "penstock.cli", "status", "ONE", "--home", str(tmp_path)]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        text = " ".join(shown.stdout.split())
        assert "the journal's files take more than half of journal.limit" in text
        while queue.depth:
            queue.get()
            assert qm.status().journal_bytes <= LIMIT
        queue.put(BODY, persistent=True)
    assert damages(tmp_path) == []


def fill(qm: penstock.QueueManager, queue: penstock.Queue) -> None:
    """Until no message fits, however short: the first refusals are estimates, a few puts early."""
    for _ in range(10):
        before = queue.depth
        for body in (BODY, b""):
            with pytest.raises(penstock.StorageMediumFull):
                while True:
                    queue.put(body, persistent=True)
        if queue.depth == before:
            return
        qm.maintain()
    raise AssertionError("the journal does not become full")


def test_on_a_full_journal_an_expired_message_waits_with_its_report_and_keeps_no_get(
    tmp_path: Path,
) -> None:
    create(tmp_path)
    with penstock.connect("ONE", tmp_path) as qm, qm.queue("Q") as queue:
        qm.define("QLOCAL", "REPORTS")
        queue.put(b"late", persistent=True, expiry=0.3, report=0x200000, reply_to_q="REPORTS")
        fill(qm, queue)
        time.sleep(0.6)
        depth = queue.depth
        assert queue.get().data == BODY
        assert queue.depth == depth - 1
        with qm.queue("REPORTS") as reports:
            assert reports.depth == 0
        assert next(iter(queue.browse())).data == BODY
        while queue.get(default=None) is not None:
            pass
        with qm.queue("REPORTS") as reports:
            assert reports.get().feedback == 258
        assert queue.depth == 0
    assert damages(tmp_path) == []

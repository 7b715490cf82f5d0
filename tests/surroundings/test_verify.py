"""``penstock verify`` and a start agree about what is damaged (item 23)."""

from __future__ import annotations

from pathlib import Path

import penstock
from penstock import journal


def damages(folder: Path) -> list[str]:
    """What verify calls damaged."""
    return [
        f"{f['file']}: {f['text']}" for f in journal.verify(folder) if f["severity"] == "damage"
    ]


def listed_expiry(folder: Path) -> list[int]:
    """The expiry of each message on a queue, as the newest checkpoint lists it."""
    state = journal.QueueManagerFiles(folder).replay()
    return [entry.expiry_us for entry in state.entries.values()]


def test_messages_with_an_expiry_are_not_called_damaged(tmp_path: Path) -> None:
    expiries = [0.1, 30.0, 31.23, 86400.0, None]
    with penstock.connect("QM", tmp_path, create=True) as qm:
        with qm.queue("Q") as queue:
            for expiry in expiries:
                queue.put(b"x", persistent=True, expiry=expiry)
        qm.checkpoint()
        assert damages(qm.path) == []
        folder = qm.path
    assert damages(folder) == []


def test_an_expiry_stays_what_it_was_through_checkpoints_and_restarts(tmp_path: Path) -> None:
    with penstock.connect("QM", tmp_path, create=True) as qm, qm.queue("Q") as queue:
        queue.put(b"x", persistent=True, expiry=3600.0)
        folder = qm.path
    first = listed_expiry(folder)
    assert len(first) == 1 and first[0] % 100_000 == 0
    for _ in range(5):
        with penstock.connect("QM", tmp_path) as qm, qm.queue("Q") as queue:
            queue.put(b"y", persistent=True)  # so that each end writes a checkpoint
            assert damages(qm.path) == []
        assert first[0] in listed_expiry(folder)
    assert damages(folder) == []

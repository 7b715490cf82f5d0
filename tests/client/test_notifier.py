"""``qm.notifier()``: a descriptor for event loops of any kind."""

from __future__ import annotations

import select
from pathlib import Path

import pytest

import penstock


def _readable(notifier: object, seconds: float) -> bool:
    return bool(select.select([notifier], [], [], seconds)[0])


def test_the_descriptor_is_readable_when_a_message_comes(qm: penstock.QueueManager) -> None:
    with qm.queue("A") as a, qm.queue("B") as b, qm.notifier([a, b]) as notifier:
        assert notifier.ready() == []
        assert not _readable(notifier, 0)
        b.put(b"1")
        assert _readable(notifier, 30)
        assert notifier.ready() == [b]
        assert notifier.ready() == [b]  # until it is taken
        assert b.get().data == b"1"
        assert notifier.ready() == []
        with qm.transaction():
            a.put(b"2")
            assert not _readable(notifier, 0)
        assert _readable(notifier, 30)
        assert notifier.ready() == [a]
    assert a.closed


def test_a_getter_is_woken_beside_a_notifier(qm: penstock.QueueManager) -> None:
    from threading import Thread

    with qm.queue("A") as a, qm.notifier([a]) as notifier:
        assert notifier.ready() == []
        got = []
        getter = Thread(target=lambda: got.append(a.get(30)))
        getter.start()
        while a.status().waiters < 2:
            pass
        a.put(b"1", persistent=False)
        getter.join()
        assert got[0].data == b"1"
        assert _readable(notifier, 30)
        assert notifier.ready() == []


def test_a_notifier_is_for_open_queues_and_ends(qm: penstock.QueueManager, home: Path) -> None:
    with pytest.raises(penstock.InvalidType, match="open queues"):
        qm.notifier(["A"])  # type: ignore[list-item]
    with qm.queue("A") as a:
        notifier = qm.notifier([a])
        notifier.close()
        notifier.close()
        for call in (notifier.fileno, notifier.ready):
            with pytest.raises(penstock.ClosedHandle):
                call()
        assert a.status().waiters == 0

"""Messages of units take few bytes of journal, and read the same wherever they lie (item 13)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import penstock
from penstock import journal
from penstock.journal import QueueManagerFiles, iter_record_dicts
from penstock.journal import layout as L
from surroundings import copy_at_work

BODY = bytes(256)


def flushed(qm: penstock.QueueManager) -> int:
    """Bytes of flush batches so far, without padding to pages."""
    return int(qm.status().flushed_bytes)


def crashed(qm: penstock.QueueManager, to: Path) -> Path:
    """A copy of the files as a crash would leave them now."""
    folder = to / "copy" / "QM"
    copy_at_work(qm.path, folder)
    (folder / "lock").unlink(missing_ok=True)
    return folder


def run_thread(call: Callable[[], object]) -> None:
    """A call that belongs to no unit of this thread."""
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def types(folder: Path) -> list[str]:
    return [row["type"] for row in iter_record_dicts(folder)]


def test_bytes_of_journal_for_a_message_of_256_bytes_in_units_of_hundreds(tmp_path: Path) -> None:
    with penstock.connect("QM", tmp_path, create=True) as qm, qm.queue("Q") as queue:
        queue.put(BODY, persistent=True)
        before = flushed(qm)
        for _ in range(5):
            with qm.transaction():
                for _ in range(100):
                    queue.put(BODY, persistent=True)
        put = (flushed(qm) - before) / 500
        before = flushed(qm)
        for _ in range(5):
            with qm.transaction():
                for _ in range(100):
                    queue.get(wait=0)
        get = (flushed(qm) - before) / 500
        before = flushed(qm)
        for _ in range(5):
            queue.put_batch([BODY] * 100, persistent=True)
        batch = (flushed(qm) - before) / 500
    print(f"put {put:.1f}, get {get:.1f}, put in a batch {batch:.1f} bytes")
    assert put <= 304
    assert get <= 28
    assert batch <= 296


def test_a_unit_over_many_batches_repeats_what_is_common_and_is_read_after_a_crash(
    tmp_path: Path,
) -> None:
    bodies = [b"%d" % n * (n % 97 + 1) for n in range(300)]
    with penstock.connect("QM", tmp_path, create=True) as qm, qm.queue("Q") as queue:
        other = qm.queue("OTHER")
        with qm.transaction():
            for n, body in enumerate(bodies):
                queue.put(body, persistent=True, priority=n % 10, correl_id=b"%d" % n)
                if n % 10 == 0:  # outside the unit: its flush closes the batch
                    run_thread(lambda: other.put(b"x", persistent=True))
        expected = [(m.msg_id, m.correl_id, m.priority, m.data) for m in queue.browse()]
        folder = crashed(qm, tmp_path)
        other.close()
    found = types(folder)
    assert found.count("COMMON") >= 30  # the first batch has one PUT of the unit, in full
    assert not [f for f in journal.verify(folder) if f["severity"] == "damage"]
    by_reader = [
        (m.descriptor().msg_id, m.descriptor().correl_id, m.priority, m.body())
        for m in QueueManagerFiles(folder).replay().messages("Q")
    ]
    assert by_reader == expected
    with penstock.connect("QM", folder.parent) as qm, qm.queue("Q") as queue:
        assert [(m.msg_id, m.correl_id, m.priority, m.data) for m in queue.browse()] == expected


def test_one_thread_and_two_queue_managers_do_not_refer_to_each_others_records(
    tmp_path: Path,
) -> None:
    """The LSNs of both are alike; what the thread remembers belongs to one of them."""
    homes = [tmp_path / "a", tmp_path / "b"]
    for home in homes:
        home.mkdir()
    with (
        penstock.connect("QM", homes[0], create=True) as first,
        penstock.connect("QM", homes[1], create=True) as second,
        first.queue("Q") as q1,
        second.queue("Q") as q2,
    ):
        with first.transaction(), second.transaction():
            for n in range(100):
                q1.put(b"first %d" % n, persistent=True)
                q2.put(b"second %d" % n, persistent=True)
        folders = [crashed(first, tmp_path / "1"), crashed(second, tmp_path / "2")]
    for folder, word in zip(folders, (b"first", b"second"), strict=True):
        bodies = [m.body() for m in QueueManagerFiles(folder).replay().messages("Q")]
        assert bodies == [word + b" %d" % n for n in range(100)]


def test_what_does_not_fit_a_common_record_is_read_as_it_was_put(tmp_path: Path) -> None:
    """Formats, extensions, long bodies, given identifiers and expiry, mixed in a unit."""
    with penstock.connect("QM", tmp_path, create=True) as qm, qm.queue("Q") as queue:
        with qm.transaction():
            for n in range(60):
                queue.put(
                    bytes([n]) * (70_000 if n % 20 == 19 else n),
                    persistent=n % 7 != 6,
                    format=("MQSTR", "MQRFH2", "")[n % 3],
                    msg_id=b"given %d" % n if n % 4 == 1 else None,
                    reply_to_q="REPLY" if n % 5 == 2 else "",
                    expiry=3600.0 if n % 6 == 3 else None,
                )
        shown = [m for m in queue.browse() if m.persistent]
        folder = crashed(qm, tmp_path)
    entries = QueueManagerFiles(folder).replay().messages("Q")
    for m, entry in zip(shown, entries, strict=True):
        d = entry.descriptor()
        assert (d.msg_id, d.format, d.reply_to_q) == (m.msg_id, m.format, m.reply_to_q)
        assert entry.body() == m.data
    assert not [f for f in journal.verify(folder) if f["severity"] == "damage"]


def test_outside_units_records_are_written_in_full(tmp_path: Path) -> None:
    with penstock.connect("QM", tmp_path, create=True) as qm, qm.queue("Q") as queue:
        for _ in range(10):
            queue.put(BODY, persistent=True)
        folder = crashed(qm, tmp_path)
    assert "COMMON" not in types(folder)
    assert L.RECORD_HEADER == 32

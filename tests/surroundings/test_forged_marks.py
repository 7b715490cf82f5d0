"""Bodies that look like batch headers disturb neither a restart nor the second reader (item 9)."""

from __future__ import annotations

import struct
from pathlib import Path

import penstock
from penstock import journal
from penstock.journal import layout as L
from penstock.journal.siphash import siphash
from surroundings import copy_at_work

PAGE = L.PAGE


def newest_segment(folder: Path) -> Path:
    return max((folder / "journal").glob("[0-9]*.psj"))


def header(folder: Path, salt: bytes | None) -> bytes:
    """A header of a batch to come, which says that everything up to it is durable.

    salt: None takes the right one out of the file, which nobody can do who only puts messages.
    """
    page = newest_segment(folder).read_bytes()[:PAGE]
    h = L.overlay("psj_segment", page)[0]
    lsn = int(h.base_lsn) + int(h.size) - PAGE
    start = struct.pack("<IIQQQIIQ", L.BATCH_MAGIC, 64, lsn, lsn, 1 << 50, 0, 0, h.segment_no)
    start += struct.pack("<Q", siphash(salt or L.raw(h.salt), b""))
    where = struct.pack("<QQ", h.segment_no, h.generation)
    sealed = siphash(salt or L.raw(h.salt), L.raw(h.qm_id) + where + start)
    return start + struct.pack("<Q", sealed)


def crashed_with(tmp_path: Path, salt: bytes | None) -> Path:
    """A copy of the files while a queue manager runs that has such bodies in its last batch, whose
    first page did not reach the medium: a torn tail, behind which sectors are looked at."""
    with penstock.connect("QM", tmp_path, create=True) as qm, qm.queue("Q") as queue:
        queue.put(b"acknowledged", persistent=True)
        forged = header(qm.path, salt)
        end = qm.status().durable_lsn
        for shift in range(64):  # one of them has a header at the beginning of each sector
            queue.put(bytes(shift) + forged * 128, persistent=True)
        folder = tmp_path / "copy" / "QM"
        copy_at_work(qm.path, folder)
        for name in ("lock",):
            (folder / name).unlink(missing_ok=True)
    path = newest_segment(folder)
    data = bytearray(path.read_bytes())
    base = int(L.overlay("psj_segment", bytes(data[:PAGE]))[0].base_lsn)
    begin = end - base
    for at in range(begin, len(data), PAGE):
        if data[at : at + 4] == b"PSBT" and data[at + 8 : at + 16] == struct.pack("<Q", base + at):
            data[at : at + 64] = bytes(64)  # each real header behind the end
    path.write_bytes(data)
    return folder


def damages(folder: Path) -> list[str]:
    return [f["text"] for f in journal.verify(folder) if f["severity"] == "damage"]


def test_a_restart_believes_no_header_in_a_body(tmp_path: Path) -> None:
    folder = crashed_with(tmp_path, bytes(range(16)))
    assert damages(folder) == []
    with penstock.connect("QM", folder.parent) as qm, qm.queue("Q") as queue:
        assert queue.get(wait=0).data == b"acknowledged"
    assert damages(folder) == []


def test_the_same_headers_with_the_salt_would_be_believed(tmp_path: Path) -> None:
    folder = crashed_with(tmp_path, None)
    assert any("was durable" in text for text in damages(folder))
    try:
        penstock.connect("QM", folder.parent).close()
    except penstock.MQError as error:
        assert error.reason == 2101
    else:
        raise AssertionError("the forged mark was not seen")

"""Files of a queue manager that vanish are noticed, by a start and by ``penstock verify``."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from penstock import journal
from penstock.journal.errors import DamagedFile
from penstock.journal.segment_files import ScanReport, list_segments
from surroundings import hear, python

SEGMENT = 256 << 10
MESSAGES = 2000

FILL = """
import sys, penstock
with penstock.connect("QM", sys.argv[1]) as qm, qm.queue("Q") as queue:
    for at in range(0, int(sys.argv[2]), 100):
        with qm.transaction():
            for number in range(at, at + 100):
                queue.put(b"%08d" % number + bytes(600), persistent=True)
    print("filled", flush=True)
    sys.stdin.read()
"""


def fill_and_kill(home: Path) -> Path:
    """A queue manager with acknowledged messages in several segments, whose process was killed."""
    penstock.create("QM", home, segment_size=SEGMENT, journal_limit=64 << 20)
    with penstock.connect("QM", home) as qm:
        qm.define("qlocal", "Q", maxdepth=MESSAGES)
        folder = Path(qm.path)
    with python(FILL, home, MESSAGES) as child:
        hear(child, "filled")
        child.kill()
        child.wait(60)
    return folder


def segments_of(folder: Path) -> list[Path]:
    return sorted((folder / "journal").glob("[0-9]*.psj"))


def damages(folder: Path) -> str:
    found = [f for f in journal.verify(folder) if f["severity"] == "damage"]
    return "; ".join(f"{f['file']}: {f['text']}" for f in found)


# Seen: three newest segments removed, 20,000 acknowledged messages became 10,800, "no damage".
def test_newest_segments_that_were_removed_are_noticed_by_start_verify_and_scan(
    tmp_path: Path,
) -> None:
    folder = fill_and_kill(tmp_path)
    assert damages(folder) == ""
    newest = segments_of(folder)[-3:]
    kept = {path: path.read_bytes() for path in newest}
    for count in (1, 2, 3):
        for path in newest[-count:]:
            path.unlink()
        assert "HEAD: names segment" in damages(folder)
        with pytest.raises(penstock.MQError, match="HEAD names it as the newest") as refused:
            penstock.connect("QM", tmp_path)
        assert refused.value.reason == 2101
        with pytest.raises(DamagedFile, match="HEAD"):
            list_segments(folder)
        report = ScanReport()
        assert list_segments(folder, on_damage="skip", report=report)
        assert [error.file for error in report.damage] == ["HEAD"]
        for path, data in kept.items():
            path.write_bytes(data)
            path.chmod(0o600)
    with penstock.connect("QM", tmp_path) as qm, qm.queue("Q") as queue:
        assert sum(1 for _ in queue.browse()) == MESSAGES


def test_without_head_a_start_is_refused_and_one_bad_page_is_mended(tmp_path: Path) -> None:
    folder = fill_and_kill(tmp_path)
    head = folder / "HEAD"
    data = head.read_bytes()
    assert len(data) == 8192 and head.stat().st_mode & 0o777 == 0o600
    head.unlink()
    assert damages(folder).startswith("HEAD: is missing")
    with pytest.raises(penstock.MQError, match="HEAD: the file is missing"):
        penstock.connect("QM", tmp_path)
    head.write_bytes(bytes(8192))
    head.chmod(0o600)
    assert damages(folder).startswith("HEAD: does not begin with PSTKHEAD")
    with pytest.raises(penstock.MQError, match="HEAD: neither page"):
        penstock.connect("QM", tmp_path)
    for at in (1000, 5000):
        head.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert damages(folder) == ""
        assert any(f["file"] == "HEAD" for f in journal.verify(folder))
        with penstock.connect("QM", tmp_path) as qm, qm.queue("Q") as queue:
            assert sum(1 for _ in queue.browse()) == MESSAGES
            assert not any(f["file"] == "HEAD" for f in journal.verify(folder))
        data = head.read_bytes()


def test_head_goes_with_its_queue_manager(tmp_path: Path) -> None:
    penstock.create("QM", tmp_path)
    assert (tmp_path / "QM" / "HEAD").exists()
    penstock.delete("QM", tmp_path)
    assert not (tmp_path / "QM").exists()

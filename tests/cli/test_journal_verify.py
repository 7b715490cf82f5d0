"""The second reader from the command line: journal, verify."""

from __future__ import annotations

import json
from pathlib import Path

from command_process import Command


def first_segment(command: Command) -> Path:
    return sorted((command.home / "QM1" / "journal").glob("0*.psj"))[0]


def test_journal_lists_every_record_with_its_queue(qm1: Command) -> None:
    qm1.ok("put", "QM1", "Q", data=b"a\nbc\n")
    found = [json.loads(line) for line in qm1.ok("journal", "QM1", "--json").splitlines()]
    puts = [r for r in found if r["type"] == "PUT"]
    assert [(r["queue"], r["body_length"]) for r in puts] == [("Q", 1), ("Q", 2)]
    assert any(r["type"] == "COMMIT" for r in found)
    lines = qm1.ok("journal", "QM1").decode().splitlines()
    assert len(lines) == len(found) and sum(" PUT " in line for line in lines) == 2


def test_journal_shows_the_segments(qm1: Command) -> None:
    segments = json.loads(qm1.ok("journal", "QM1", "--segments", "--json"))
    assert segments[0]["file"] == "journal/" + first_segment(qm1).name
    assert b"base LSN" in qm1.ok("journal", "QM1", "--segments")


def test_verify_finds_nothing_wrong_in_order_and_after_kills(qm1: Command) -> None:
    qm1.ok("put", "QM1", "Q", data=b"a\nb\n")
    assert b"no damage" in qm1.ok("verify", "QM1")
    with qm1.running("get", "QM1", "Q", "--count", "9", "--wait", "-1") as process:
        while b'"waiters": 1' not in qm1.ok("status", "QM1", "--json"):
            assert process.poll() is None
        process.kill()
    assert b"no damage" in qm1.ok("verify", "QM1")


def test_verify_names_a_damaged_file_and_offset_with_status_2(qm1: Command) -> None:
    qm1.ok("put", "QM1", "Q", data=b"find this line\n")
    path = first_segment(qm1)
    data = bytearray(path.read_bytes())
    data[data.index(b"find this line")] ^= 1
    path.write_bytes(data)
    done = qm1.run("verify", "QM1")
    assert done.returncode == 2 and f"journal/{path.name} at offset".encode() in done.stdout
    (finding, *_) = (json.loads(x) for x in qm1.run("verify", "QM1", "--json").stdout.splitlines())
    assert finding["severity"] == "damage"


def test_neither_starts_the_queue_manager(qm1: Command) -> None:
    qm1.ok("verify", "QM1")
    qm1.ok("journal", "QM1")
    assert qm1.ok("list").split() == [b"QM1", b"ended"]

"""The demonstration: its plan, its proofs, and a small run of the whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli.demo.census import Census, ProofFailed
from penstock.cli.demo.device import padded
from penstock.cli.demo.plan import (
    PRODUCERS,
    Entry,
    Plan,
    Receipt,
    Tag,
    file_lines,
    library_sources,
    make_plan,
)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Three small files with lines of three priorities."""
    words = [b"ERROR", b"WARN", b"plain"]
    for number in range(3):
        lines = [b"%s %d.%d" % (words[n % 3], number, n) for n in range(20 + number)]
        (tmp_path / f"{number}.log").write_bytes(b"\n".join(lines))
    files = [str(tmp_path / f"{number}.log") for number in range(3)]
    return make_plan(str(tmp_path), files, "ERROR=9,WARN=6", unit=5, lines=0)


def delivered(plan: Plan) -> list[Entry]:
    """Every line as one consumer would see it if all were put before."""
    entries = []
    number = 0
    for producer in range(PRODUCERS):
        for tag, _, priority in plan.lines_of(producer):
            number += 1
            entries.append(Entry(tag, tag.crc, priority, 0, number))
    return sorted(entries, key=lambda entry: entry.place)


def receipts(entries: list[Entry], drain: bool = True, size: int = 7) -> list[Receipt]:
    """The entries in units of one run."""
    return [
        Receipt(0, drain, 1, n, entries[at : at + size])
        for n, at in enumerate(range(0, len(entries), size))
    ]


def all_put(plan: Plan) -> list[int]:
    return [len(list(plan.lines_of(producer))) for producer in range(PRODUCERS)]


def test_every_line_of_the_files_belongs_to_one_producer_and_shares_are_even(plan: Plan) -> None:
    tags = [tag for producer in range(PRODUCERS) for tag, _, _ in plan.lines_of(producer)]
    lines = {(tag.file, tag.line) for tag in tags}
    assert len(lines) == len(tags) == plan.total == 63
    assert all_put(plan) == [21, 21, 21]


def test_a_plan_and_its_receipts_survive_being_written(plan: Plan, tmp_path: Path) -> None:
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan
    for receipt in receipts(delivered(plan)):
        assert Receipt.unpack(receipt.pack()) == receipt


def test_a_tag_is_exactly_a_correlation_identifier() -> None:
    tag = Tag(4000000000, 3, 2, 1, 0xFFFFFFFF)
    assert len(tag.pack()) == 24 and Tag.unpack(tag.pack()) == tag
    with pytest.raises(ValueError, match="not a line's tag"):
        Tag.unpack(bytes(24))


def test_lines_are_split_at_newlines_only_and_an_open_end_counts(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a\r\n\n\x0c b")
    assert file_lines(str(path)) == [b"a\r", b"", b"\x0c b"]


def test_the_standard_library_has_lines_enough() -> None:
    assert sum(len(file_lines(path)) for path in library_sources(60000)) >= 60000


def test_a_perfect_delivery_is_proven(plan: Plan) -> None:
    census = Census(plan)
    found = receipts(delivered(plan))
    assert census.exactly_once(found, [], all_put(plan)) == (63, 0)
    assert census.whole(found) == 63
    assert census.in_order(found) == 63


def test_a_lost_line_is_named(plan: Plan) -> None:
    entries = delivered(plan)
    lost = entries.pop(5).tag
    with pytest.raises(ProofFailed, match=f":{lost.line + 1}: taken 0 times"):
        Census(plan).exactly_once(receipts(entries), [], all_put(plan))


def test_a_doubled_line_is_named_wherever_its_second_copy_is(plan: Plan) -> None:
    entries = delivered(plan)
    with pytest.raises(ProofFailed, match="taken 2 times"):
        Census(plan).exactly_once(receipts([*entries, entries[3]]), [], all_put(plan))
    with pytest.raises(ProofFailed, match="taken 1 times, on the queue 1 times"):
        Census(plan).exactly_once(receipts(entries), [entries[3].tag], all_put(plan))


def test_a_line_that_no_producer_has_committed_must_not_be_there(plan: Plan) -> None:
    positions = all_put(plan)
    positions[1] -= 1
    with pytest.raises(ProofFailed, match="must be there not at all"):
        Census(plan).exactly_once(receipts(delivered(plan)), [], positions)


def test_a_changed_body_and_a_changed_priority_are_named(plan: Plan) -> None:
    entries = delivered(plan)
    with pytest.raises(ProofFailed, match="its bytes changed"):
        Census(plan).whole(receipts([entries[0]._replace(crc=1), *entries[1:]]))
    with pytest.raises(ProofFailed, match="priority 4, put with 9"):
        Census(plan).whole(receipts([entries[0]._replace(priority=4), *entries[1:]]))


def test_two_lines_in_the_wrong_order_are_named(plan: Plan) -> None:
    entries = delivered(plan)
    for at in (0, 20, 40):
        swapped = list(entries)
        swapped[at], swapped[at + 1] = swapped[at + 1], swapped[at]
        with pytest.raises(ProofFailed, match="came after"):
            Census(plan).in_order(receipts(swapped))


def test_while_others_put_and_die_only_fresh_lines_of_one_producer_are_compared(
    plan: Plan,
) -> None:
    census = Census(plan)
    entries = delivered(plan)
    last = [e for e in entries if e.tag.producer == 0 and e.priority == 9]
    mixed = [last[1], last[0]._replace(backout_count=1), *last[2:]]
    assert census.in_order(receipts(mixed, drain=False)) == len(last) - 1
    with pytest.raises(ProofFailed, match="later line of its producer"):
        census.in_order(receipts([last[1], last[0]], drain=False))


def test_a_padded_block_ends_at_a_page() -> None:
    assert [len(padded(bytes(n))) for n in (1, 4096, 4097)] == [4096, 4096, 8192]


def test_the_whole_demonstration_proves_exactly_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock.cli", "demo", "--home", str(tmp_path)]
    done = subprocess.run(
        [*command, "--lines", "6000", "--unit", "20", "--seed", "1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("SIGKILL") == 3
    assert "queue manager restarted" in done.stdout and "proven" in done.stdout
    assert "raw disk" in done.stdout
    assert not list(tmp_path.iterdir())


def test_files_of_few_lines_are_moved_too(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"an ERROR\n\nlast")
    home = tmp_path / "home"
    command = [sys.executable, "-m", "penstock.cli", "demo", "--home", str(home)]
    done = subprocess.run(
        [*command, str(tmp_path / "one")], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3 lines taken exactly once" in done.stdout

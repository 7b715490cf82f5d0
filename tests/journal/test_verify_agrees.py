"""A start and ``penstock verify`` agree on every mutant of a common corpus (item 23)."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

import pytest
from mutants import corpus

import penstock
from penstock import journal
from thorough import one_in

OTHER_OBJECT = (2043, 2085)  # a definition has another name or type: it is believed


def make_queue_manager(home: Path) -> Path:
    """A small queue manager that ended in order."""
    penstock.create("MUTANT", home, segment_size=1 << 20, journal_limit=16 << 20)
    with penstock.connect("MUTANT", home) as qm:
        qm.define("qlocal", "MUTANT.Q", maxdepth=1000, descr="for mutants")
        for name in ("MUTANT.Q", "B"):
            with qm.queue(name) as queue:
                for number in range(6):
                    queue.put(b"%d" % number, persistent=True, priority=number % 3)
        folder = Path(qm.path)
    for spare in (folder / "journal").glob("spare-*"):
        spare.unlink()  # nothing to be damaged
    return folder


def is_refused(folder: Path) -> str:
    """What a start says; empty when it starts."""
    try:
        with penstock.connect(folder.name, folder.parent) as qm:
            for name in ("MUTANT.Q", "B"):
                try:
                    with qm.open(name, input=False, output=False, browse=True) as queue:
                        for message in queue.browse():
                            bytes(message.data)
                except penstock.MQError as error:
                    if error.reason not in OTHER_OBJECT:
                        raise
    except penstock.MQError as error:
        return str(error)
    return ""


def is_damaged(folder: Path) -> str:
    """What verify calls damaged; empty when nothing."""
    found = [f for f in journal.verify(folder) if f["severity"] == "damage"]
    return "; ".join(f"{f['file']}: {f['text']}" for f in found)


def only_the_record_tells(name: str) -> bool:
    """Expiry, tags, priority and placement in a line of the checkpoint: a start believes them, the
    second reader compares them with the record. A start would have to read every record. The same
    of the base of a column, and of that of the queues: all messages are then on other ones."""
    what, number, *_ = (*name.split(), "")
    if what == "column":
        return int(number) in (3, 4, 5, 6, 7, 11, 12, 13, 14) and " base " in name
    at = int(number) if what == "line" else 0
    return 24 <= at < 56 or 72 <= at < 80


@pytest.mark.timeout(600)  # hundreds of starts, on a slow and busy machine too
def test_a_start_and_the_second_reader_agree_on_every_mutant(tmp_path: Path) -> None:
    original = make_queue_manager(tmp_path / "original")
    assert is_damaged(original) == ""
    differences, count, refused = [], 0, 0
    for name, change in islice(corpus(original), 0, None, one_in(3)):
        folder = tmp_path / "mutant" / original.name
        shutil.copytree(original, folder)
        change(folder)
        said = is_damaged(folder)
        core = is_refused(folder)
        shutil.rmtree(folder.parent)
        count += 1
        refused += bool(core)
        if bool(said) != bool(core) and not (said and only_the_record_tells(name)):
            differences.append(f"{name}: verify {said or 'finds nothing'}; start {core or 'works'}")
    print(f"{count} mutants, {refused} refused")
    assert count > 400 // one_in(3) and refused > 150 // one_in(3)
    assert not differences, "\n".join(differences)

"""What keeps one process from writing the journal stays in that process.

In each case a process (the "sufferer") loses what a leader needs: descriptors, a limit, rights. It
puts messages over many journal segments, so that each roll asks for descriptors again. Another
process that is attached and idle leads in its place; without one, nothing is lost.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from surroundings import FOLLOW, NOBODY, hear, not_possible_here, python, run_python, say

SMALL = {"segment_size": 64 << 10, "ring_size": 1 << 20, "journal_limit": 64 << 20}
COUNT = 60  # messages of 8 KB: about eight segments
BODY = 8000

SUFFERER = """
import errno, os, resource, sys
import penstock

def limit(kind, value):
    resource.setrlimit(kind, (value, resource.getrlimit(kind)[1]))

def use_up():
    taken = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        assert error.errno == errno.EMFILE, error
    return taken

qm = penstock.connect("QM1", home=sys.argv[1])
q = qm.queue("Q")
q.put(b"before")
qm.maintain()
qm.checkpoint()  # waits for a round: no file is open for a moment only, such as one being made
"""
SUFFERER += FOLLOW
PUTS = f"for i in range({COUNT}): q.put(bytes({BODY}))"
LIMITS = {
    "RLIMIT_NOFILE lowered": "limit(resource.RLIMIT_NOFILE, 3)",
    "RLIMIT_FSIZE lowered": "limit(resource.RLIMIT_FSIZE, 4096)",
    "descriptors closed": "os.closerange(3, 65536)",
    "descriptors replaced": "os.closerange(3, 65536); own = [os.open(os.path.join("
    "sys.argv[1], f'own{i}'), os.O_RDWR | os.O_CREAT) for i in range(40)]",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory with a queue manager of small segments."""
    penstock.create("QM1", home=tmp_path, **SMALL)
    with penstock.connect("QM1", home=tmp_path) as qm, qm.queue("Q"):
        pass
    return tmp_path


@pytest.fixture
def other(home: Path) -> Iterator[penstock.QueueManager]:
    """A connection of this process: attached, idle, in good health."""
    with penstock.connect("QM1", home=home) as qm:
        yield qm


def errors(home: Path) -> str:
    logs = sorted((home / "QM1" / "errors").glob("AMQERR*.LOG"))
    return "".join(log.read_text() for log in logs)


def depth(qm: penstock.QueueManager) -> int:
    with qm.queue("Q") as q:
        return int(q.depth)


@pytest.mark.parametrize("what", LIMITS)
def test_who_cannot_lead_puts_through_another_process_and_nobody_stops(
    home: Path, other: penstock.QueueManager, what: str
) -> None:
    with python(SUFFERER, home) as child:
        hear(child, "ready")
        for line in (LIMITS[what], PUTS):
            say(child, line)
            hear(child, "done")
        assert depth(other) == 1 + COUNT
        with other.queue("Q") as q:
            q.put(b"after")
    assert "AMQ7909" not in errors(home)
    with penstock.connect("QM1", home=home) as qm:
        assert depth(qm) == 2 + COUNT


def test_files_of_the_program_get_nothing_of_the_journal(
    home: Path, other: penstock.QueueManager
) -> None:
    with python(SUFFERER, home) as child:
        hear(child, "ready")
        for line in (
            LIMITS["descriptors replaced"],
            PUTS,
            "assert all(os.fstat(fd).st_size == 0 for fd in own)",
        ):
            say(child, line)
            hear(child, "done")
        assert depth(other) == 1 + COUNT
    assert sorted(path.name for path in home.iterdir() if path.is_dir()) == ["QM1"]


def test_a_process_that_has_used_up_its_descriptors_goes_on_alone(home: Path) -> None:
    with python(SUFFERER, home, limits={resource.RLIMIT_NOFILE: 256}) as child:
        hear(child, "ready")
        for line in ("taken = use_up()", PUTS):
            say(child, line)
            hear(child, "done")
    with penstock.connect("QM1", home=home) as qm:
        assert depth(qm) == 1 + COUNT
    assert "AMQ7909" not in errors(home)


def test_an_idle_process_that_cannot_lead_stops_nobody(
    home: Path, other: penstock.QueueManager
) -> None:
    with python(SUFFERER, home) as child:
        hear(child, "ready")
        for line in LIMITS["RLIMIT_NOFILE lowered"], LIMITS["RLIMIT_FSIZE lowered"]:
            say(child, line)
            hear(child, "done")
        with other.queue("Q") as q:
            for _ in range(COUNT):
                q.put(bytes(BODY))
        # the maintenance threads of both write marks and make spares meanwhile
        say(child, "import time; time.sleep(1.5); q.put(b'still there')")
        hear(child, "done")
        assert depth(other) == 2 + COUNT
    assert "AMQ7909" not in errors(home)


def test_alone_a_put_that_is_not_decided_is_refused_and_the_limit_can_be_raised(
    home: Path,
) -> None:
    with python(SUFFERER, home) as child:
        hear(child, "ready")
        say(child, LIMITS["RLIMIT_NOFILE lowered"])
        hear(child, "done")
        say(child, PUTS)
        answer = hear(child)
        assert answer.startswith("2102 "), answer
        assert "Too many open files" in answer
        say(child, "limit(resource.RLIMIT_NOFILE, 256); n = q.depth")
        hear(child, "done")
        say(child, "q.put(b'again'); assert q.depth == n + 1")
        hear(child, "done")
    assert "AMQ7909" not in errors(home)


def test_alone_a_decided_unit_stops_the_queue_manager_and_the_log_says_why(home: Path) -> None:
    with python(SUFFERER, home) as child:
        hear(child, "ready")
        say(child, LIMITS["RLIMIT_FSIZE lowered"])
        hear(child, "done")
        say(child, PUTS)
        answer = hear(child)
        assert answer.startswith("2009 "), answer
        say(child, "q.put(b'')")
        answer = hear(child)
        assert re.search(rf"writing the journal: .*errno 27.* {child.pid} ", answer), answer
        say(child, "qm.close()")
        hear(child)
    log = [line for line in errors(home).splitlines() if "AMQ7909E" in line]
    assert len(log) == 1
    assert re.search(rf"writing the journal: .*\(errno 27\), in process {child.pid} \(", log[0])
    with penstock.connect("QM1", home=home) as qm:
        assert depth(qm) >= 1


def test_who_has_lost_its_rights_puts_through_another_process(
    home: Path, other: penstock.QueueManager
) -> None:
    if os.geteuid() != 0:
        not_possible_here("giving up rights needs root")
    with python(SUFFERER, home) as child:
        hear(child, "ready")
        say(child, f"os.setgid({NOBODY}); os.setuid({NOBODY})")
        hear(child, "done")
        say(child, PUTS)
        hear(child, "done")
        assert depth(other) == 1 + COUNT
    assert "AMQ7909" not in errors(home)


@pytest.mark.parametrize("how", ["removed", "cut short"])
def test_a_segment_that_is_taken_away_stops_the_next_flush_with_its_name(
    home: Path, how: str
) -> None:
    with penstock.connect("QM1", home=home) as qm, qm.queue("Q") as q:
        q.put(b"before")
        for path in (home / "QM1" / "journal").glob("0*.psj"):
            if how == "removed":
                path.unlink()
            else:
                os.truncate(path, 4096)
        with pytest.raises(penstock.MQError) as caught:
            q.put(b"after")
        assert caught.value.reason == 2009
        assert re.search(rf"journal/\d+\.psj was {how}", str(caught.value))
        with pytest.raises(penstock.MQError, match=f"segment was {how}.* process {os.getpid()}"):
            q.put(b"again")


@pytest.mark.parametrize(
    ("limit", "value", "reason", "text"),
    [
        (resource.RLIMIT_NOFILE, 12, 2102, r"12 files \(RLIMIT_NOFILE.*fewer than 15 left"),
        (resource.RLIMIT_FSIZE, 60000, 2012, r"60000 bytes at most \(RLIMIT_FSIZE.*needs 65536"),
    ],
)
def test_a_limit_that_makes_work_impossible_is_refused_at_connect_with_limit_and_need(
    home: Path, other: penstock.QueueManager, limit: int, value: int, reason: int, text: str
) -> None:
    program = (
        "import resource, sys\nimport penstock\n"
        f"resource.setrlimit({limit}, ({value}, {value}))\n"
        "try:\n    penstock.connect('QM1', home=sys.argv[1])\n"
        "except penstock.MQError as error:\n    print(error.reason, error)\n"
    )
    answer = run_python(program, home)
    assert answer.startswith(f"{reason} "), answer
    assert re.search(text, answer), answer
    assert depth(other) == 0


def test_a_limit_below_the_length_of_the_region_is_refused_by_the_one_who_makes_it(
    home: Path,
) -> None:
    penstock.create("ALONE", home, segment_size=65536, journal_limit=1 << 20, region_size=1 << 28)
    program = (
        "import resource, sys\nimport penstock\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))\n"
        "try:\n    penstock.connect('ALONE', home=sys.argv[1])\n"
        "except penstock.MQError as error:\n    print(error.reason, error)\n"
    )
    answer = run_python(program, home)
    assert re.match(r"2012 .* 268435456 bytes \(region.size\), longer .*RLIMIT_FSIZE", answer), (
        answer
    )
    penstock.connect("ALONE", home).close()  # nothing was left in the way

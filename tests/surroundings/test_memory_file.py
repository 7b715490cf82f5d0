"""A container's /dev/shm of 64 MB: the region is in memory alone, and the journal limits it."""

from __future__ import annotations

import grp
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

import surroundings as s

MIB = 1 << 20
SMALL = 64 * MIB
BEGIN = "import json, os, penstock, sys\nhome = sys.argv[1]\n"
NAME = "memfd:penstock-"  # what /proc shows for the region
TELL_DESCRIPTORS = f"""
def descriptors(pid="self"):
    found = []
    for name in os.listdir(f"/proc/{{pid}}/fd"):
        try:
            if {NAME!r} in os.readlink(f"/proc/{{pid}}/fd/{{name}}"):
                found.append(int(name))
        except FileNotFoundError:
            pass
    return found
"""
BEGIN += TELL_DESCRIPTORS
CREATE = "penstock.create('QM', home, segment_size='1M')\n"
CONNECT = "qm = penstock.connect('QM', home)\nqueue = qm.queue('Q')\n"
FOLLOW = BEGIN + CONNECT + s.FOLLOW  # connects and does what it is told
TRY = (
    BEGIN
    + """
try:
    with penstock.connect("QM", home) as qm:
        print("connected", qm.status().attached, qm.status().region_in_memory)
except penstock.MQError as error:
    print(error.reason, error.text)
"""
)


@pytest.fixture
def shm() -> Iterator[tuple[str, ...]]:
    """The prefix of a process whose /dev/shm has 64 MB."""
    with s.small_shm(SMALL) as prefix:
        yield prefix


@pytest.fixture
def home(tmp_path: Path, shm: tuple[str, ...]) -> Path:
    """A home with the queue manager QM, which has not been started."""
    s.run_python(BEGIN + CREATE, tmp_path, prefix=shm)
    return tmp_path


def tell(child: subprocess.Popen[str], statement: str, expected: str | None = "done") -> str:
    """Has a FOLLOW execute a statement; its answer."""
    s.say(child, statement)
    return s.hear(child, expected)


def kill(child: subprocess.Popen[str]) -> None:
    """Ends it as SIGKILL does."""
    child.send_signal(signal.SIGKILL)
    child.wait(s.SECONDS)


def follower(home: Path, prefix: tuple[str, ...]) -> AbstractContextManager[subprocess.Popen[str]]:
    """A process that is connected and does what it is told."""
    return s.python(FOLLOW, home, prefix=prefix)


def attempt(home: Path, prefix: tuple[str, ...]) -> str:
    """What another process gets that connects."""
    return s.run_python(TRY, home, prefix=prefix).strip()


# ---- what it takes ----

PUT_MANY = (
    BEGIN
    + CONNECT
    + """
first, last = int(sys.argv[2]), int(sys.argv[3])
for at in range(first, last, 5000):
    queue.put_batch([b"%08d" % i for i in range(at, at + 5000)], persistent=True)
status = qm.status()
print(json.dumps([queue.depth, status.region_in_memory, status.region_used]))
"""
)
GET_MANY = (
    BEGIN
    + CONNECT
    + """
depth, seen = queue.depth, set()
while batch := queue.get_batch(5000):
    seen.update(int(bytes(body)) for body in batch)
print(json.dumps([depth, len(seen), min(seen), max(seen)]))
qm.close()
"""
)
MILLION = 1_000_000


def test_with_the_dev_shm_of_a_container_a_million_persistent_messages_are_taken_and_come_back(
    home: Path, shm: tuple[str, ...]
) -> None:
    depth, in_memory, used = json.loads(
        s.run_python(PUT_MANY, home, 0, MILLION, prefix=shm, seconds=300.0)
    )
    assert (depth, in_memory) == (MILLION, 1) and used > 2 * SMALL
    out = s.run_python(GET_MANY, home, prefix=shm, seconds=300.0)
    assert json.loads(out) == [MILLION, MILLION, 0, MILLION - 1]


def test_a_million_messages_of_two_processes_come_back_after_both_were_killed(
    home: Path, shm: tuple[str, ...]
) -> None:
    half = MILLION // 2
    stay = PUT_MANY + "sys.stdout.flush()\nsys.stdin.read()\n"
    with (
        follower(home, shm) as first,
        s.python(stay, home, 0, half, prefix=shm) as one,
        s.python(stay, home, half, MILLION, prefix=shm) as two,
    ):
        s.hear(first, "ready")
        assert max(json.loads(s.hear(child))[0] for child in (one, two)) == MILLION
        for child in (one, two, first):
            kill(child)
    out = s.run_python(GET_MANY, home, prefix=shm, seconds=300.0)
    assert json.loads(out) == [MILLION, MILLION, 0, MILLION - 1]


def test_memory_that_is_no_longer_needed_leaves_the_memory_file(
    home: Path, shm: tuple[str, ...]
) -> None:
    program = (
        BEGIN
        + CONNECT
        + """
import time
def bytes_used():
    return os.stat(f"/proc/self/fd/{descriptors()[0]}").st_blocks * 512
for _ in range(50):
    queue.put_batch([bytes(4000)] * 500, persistent=False)
full = bytes_used()
while queue.get_batch(5000):
    pass
end = time.monotonic() + 30
while bytes_used() > full / 4 and time.monotonic() < end:
    time.sleep(0.1)
print(json.dumps([full, bytes_used()]))
"""
    )
    full, left = json.loads(s.run_python(program, home, prefix=shm))
    assert full > 100_000_000 and left < full / 4


def test_a_control_group_limits_the_region_in_memory_before_the_kernel_kills(
    home: Path, shm: tuple[str, ...]
) -> None:
    program = (
        BEGIN
        + CONNECT
        + """
text = ""
try:
    while True:
        queue.put_batch([bytes(60_000)] * 16, persistent=False)
except penstock.MQError as error:
    text = f"{error.reason} {error.text}"
print(json.dumps([queue.depth, text]))
"""
    )
    with s.memory_group(256 * MIB) as group:
        depth, text = json.loads(s.run_python(program, home, prefix=(*group, *shm)))
    assert 64 * MIB < depth * 60_000 < 128 * MIB
    assert text.startswith("2071 ") and "control group" in text and str(256 * MIB) in text


# ---- where it is not used ----


def test_a_large_dev_shm_holds_the_region_as_ever(tmp_path: Path) -> None:
    with s.small_shm(512 * MIB) as prefix:
        s.run_python(BEGIN + CREATE, tmp_path, prefix=prefix)
        assert attempt(tmp_path, prefix) == "connected 1 0"


def test_a_region_dir_that_was_chosen_is_used_however_small(
    tmp_path: Path, shm: tuple[str, ...]
) -> None:
    create = BEGIN + "penstock.create('QM', home, region_dir='/dev/shm')"
    s.run_python(create, tmp_path, prefix=shm)
    assert attempt(tmp_path, shm) == "connected 1 0"


def test_the_region_of_a_group_stays_in_dev_shm_and_says_why_it_is_full(
    tmp_path: Path, shm: tuple[str, ...]
) -> None:
    name = grp.getgrgid(os.getegid()).gr_name
    program = (
        BEGIN
        + f"penstock.create('QM', home, group={name!r})\n"
        + CONNECT
        + """
try:
    while True:
        queue.put_batch([bytes(60_000)] * 16, persistent=False)
except penstock.MQError as error:
    print(error.reason, error.text)
"""
    )
    text = s.run_python(program, tmp_path, prefix=shm)
    assert text.startswith("2071 ") and "--shm-size" in text
    assert "that of a group cannot be in memory alone" in text


# ---- who has it ----


def test_the_region_outlives_its_creator_while_another_process_has_it(
    home: Path, shm: tuple[str, ...]
) -> None:
    with follower(home, shm) as creator, follower(home, shm) as other:
        s.hear(creator, "ready")
        s.hear(other, "ready")
        tell(creator, "queue.put(b'not kept', persistent=False)")
        kill(creator)
        assert attempt(home, shm) == "connected 2 1"
        tell(other, "assert queue.get(wait=5).data == b'not kept'")


def test_when_all_are_killed_the_next_start_has_the_persistent_messages(
    home: Path, shm: tuple[str, ...]
) -> None:
    with follower(home, shm) as one, follower(home, shm) as two:
        s.hear(one, "ready")
        s.hear(two, "ready")
        tell(one, "queue.put(b'not kept', persistent=False)")
        tell(two, "queue.put(b'kept', persistent=True)")
        kill(one)
        kill(two)
    with follower(home, shm) as after:
        s.hear(after, "ready")
        tell(after, "assert queue.depth == 1 and queue.get().data == b'kept'")


PUT_ON = """
for number in range(int(sys.argv[2]), 1 << 30):
    queue.put(b"%d" % number, persistent=True)
    print(number, flush=True)
"""
DRAIN = "print(json.dumps([int(queue.get().data) for _ in range(queue.depth)]))"


def killed(worker: subprocess.Popen[str]) -> set[int]:
    """What it had put when it was killed; it must not have failed before."""
    assert worker.stdout is not None and worker.stderr is not None
    kill(worker)
    assert worker.returncode == -signal.SIGKILL and worker.stderr.read() == ""
    return {int(line) for line in worker.stdout.read().splitlines(True) if line.endswith("\n")}


def test_kills_at_any_moment_lead_to_no_refusal_and_lose_nothing(
    home: Path, shm: tuple[str, ...]
) -> None:
    chance, put = random.Random(9), set[int]()
    with ExitStack() as children:
        workers: list[subprocess.Popen[str]] = []
        for start in range(40):
            worker = s.python(BEGIN + CONNECT + PUT_ON, home, start * 1_000_000, prefix=shm)
            workers.append(children.enter_context(worker))
            if chance.random() < 0.7:  # else it is killed while it connects
                put.add(int(s.hear(workers[-1])))
            while len(workers) > chance.choice((0, 1, 2, 3)):
                put |= killed(workers.pop(chance.randrange(len(workers))))
        for last in workers:
            put |= killed(last)
    got = json.loads(s.run_python(BEGIN + CONNECT + DRAIN, home, prefix=shm))
    assert len(got) == len(set(got)) and put <= set(got) and len(put) > 20


def test_a_program_that_executes_another_one_leaves_the_region_to_the_others(
    home: Path, shm: tuple[str, ...]
) -> None:
    with follower(home, shm) as one, follower(home, shm) as two:
        s.hear(one, "ready")
        s.hear(two, "ready")
        tell(two, "queue.put(b'not kept', persistent=False)")
        s.say(one, "os.execv('/bin/sh', ['sh', '-c', 'echo executed; exec sleep 60'])")
        s.hear(one, "executed")
        assert attempt(home, shm) == "connected 2 1"
        kill(two)
        assert attempt(home, shm) == "connected 1 1"  # a new one: the program has nothing of it


FORK = (
    BEGIN
    + CONNECT
    + """
if os.fork() == 0:
    print(descriptors(), flush=True)
    os.read(0, 1)
    os._exit(0)
sys.stdin.read()
"""
)


def test_a_forked_child_that_outlives_its_parent_neither_keeps_the_memory_nor_stops_a_start(
    home: Path, shm: tuple[str, ...]
) -> None:
    with s.python(FORK, home, prefix=shm) as parent:
        s.hear(parent, "[]")
        kill(parent)
        assert attempt(home, shm) == "connected 1 1"


def test_a_process_that_closed_its_descriptor_is_named_and_no_second_region_is_made(
    home: Path, shm: tuple[str, ...]
) -> None:
    with follower(home, shm) as one:
        s.hear(one, "ready")
        tell(one, "queue.put(b'not kept', persistent=False)")
        with follower(home, shm) as two:
            s.hear(two, "ready")
            tell(one, "for fd in descriptors(): os.close(fd)")
            assert attempt(home, shm) == "connected 3 1"  # two has it
            tell(two, "qm.close()")
            answer = attempt(home, shm)
        assert answer.startswith("2012 ") and "closed its descriptor" in answer
        assert str(inside(one, shm)) in answer
        tell(one, "assert queue.get().data == b'not kept'")
        tell(one, "qm.close()")
    assert attempt(home, shm) == "connected 1 1"


def test_a_closerange_in_the_only_process_leads_to_a_refusal_that_names_it(
    home: Path, shm: tuple[str, ...]
) -> None:
    with follower(home, shm) as one:
        s.hear(one, "ready")
        tell(one, "os.closerange(3, 65536)")
        answer = attempt(home, shm)
        assert answer.startswith("2059 ") and str(inside(one, shm)) in answer
        kill(one)
    assert attempt(home, shm) == "connected 1 1"


def test_the_region_never_grows_into_a_file_of_the_program_that_got_its_descriptor(
    home: Path, shm: tuple[str, ...], tmp_path: Path
) -> None:
    with follower(home, shm) as one:
        s.hear(one, "ready")
        tell(one, "taken = descriptors()[0]")
        mine = tmp_path / "mine"
        tell(one, f"mine = os.open({str(mine)!r}, os.O_RDWR | os.O_CREAT)")
        tell(one, "os.dup2(mine, taken); os.close(mine)")
        answer = ""
        for _ in range(64):
            answer = tell(one, "queue.put_batch([bytes(60_000)] * 16, persistent=False)", None)
            if answer != "done":
                break
        assert answer.startswith("2071 ") and "closed its descriptor" in answer
        assert mine.stat().st_size == 0 and mine.stat().st_blocks == 0


def inside(child: subprocess.Popen[str], prefix: tuple[str, ...]) -> int:
    """The pid of a program started with the prefix, which replaces itself by the program."""
    assert prefix[0] == "nsenter"
    return child.pid


def test_a_process_that_is_undumpable_is_named_and_no_second_region_is_made(
    home: Path, shm: tuple[str, ...]
) -> None:
    hide = "import ctypes; assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0"
    weak = (*shm, "setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")
    with follower(home, weak) as one, follower(home, weak) as two:
        s.hear(one, "ready")
        s.hear(two, "ready")
        tell(one, hide)
        assert attempt(home, weak) == "connected 3 1"  # two shows it
        tell(two, "qm.close()")
        answer = attempt(home, weak)
        assert answer.startswith("2012 ") and "PR_SET_DUMPABLE" in answer
        assert str(inside(one, shm)) in answer
        tell(one, "queue.put(b'works', persistent=True)")
        tell(one, "qm.close()")
    assert attempt(home, weak) == "connected 1 1"


def test_another_pid_namespace_is_refused(home: Path, shm: tuple[str, ...]) -> None:
    other = (*shm, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    with follower(home, shm) as one:
        s.hear(one, "ready")
        answer = attempt(home, other)
        assert answer.startswith("2012 ") and "another PID namespace" in answer
        kill(one)
    assert attempt(home, other) == "connected 1 1"
    assert attempt(home, shm) == "connected 1 1"


def test_a_process_with_little_address_space_joins_a_region_in_memory(
    home: Path, shm: tuple[str, ...]
) -> None:
    weak = (*shm, "prlimit", f"--as={2 << 30}")
    with follower(home, shm) as one, follower(home, weak) as two:
        s.hear(one, "ready")
        s.hear(two, "ready")
        tell(one, "queue.put_batch([bytes(4000)] * 500, persistent=False)")
        tell(two, "assert sum(map(len, queue.get_batch(5000))) == 2_000_000")


# ---- what is left when files are lost ----


def test_a_lock_file_deleted_under_a_region_in_memory_is_noticed(
    home: Path, shm: tuple[str, ...]
) -> None:
    with follower(home, shm) as one:
        s.hear(one, "ready")
        (home / "QM" / "lock").unlink()
        answer = attempt(home, shm)
        assert answer.startswith("2012 ") and str(inside(one, shm)) in answer
        kill(one)
    assert attempt(home, shm) == "connected 1 1"


def test_a_name_deleted_in_dev_shm_leads_to_a_refusal_as_long_as_somebody_lives(
    home: Path, shm: tuple[str, ...]
) -> None:
    with follower(home, shm) as one:
        s.hear(one, "ready")
        tell(one, "[os.unlink('/dev/shm/' + n) for n in os.listdir('/dev/shm')]")
        answer = attempt(home, shm)
        assert answer.startswith("2012 ") and "is gone" in answer
        kill(one)
    assert attempt(home, shm) == "connected 1 1"


# ---- the command ----


def command(home: Path, prefix: tuple[str, ...], *arguments: str) -> tuple[int, str]:
    """Status and output of the command."""
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "penstock.cli", *arguments],
        env={**os.environ, "PENSTOCK_HOME": str(home), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=s.SECONDS,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_command_shows_verifies_ends_and_deletes_a_queue_manager_in_memory(
    home: Path, shm: tuple[str, ...]
) -> None:
    with follower(home, shm) as one:
        s.hear(one, "ready")
        tell(one, "queue.put(b'kept', persistent=True)")
        status, text = command(home, shm, "status", "QM")
        assert status == 0 and "in memory" in text, text
        status, text = command(home, shm, "list")
        assert status == 0 and "QM" in text, text
        assert command(home, shm, "delete", "QM")[0] != 0  # it is in use
        status, text = command(home, shm, "end", "-i", "QM")
        assert status == 0, text
        tell(one, "qm.close()", None)
    status, text = command(home, shm, "verify", "QM")
    assert status == 0, text
    status, text = command(home, shm, "delete", "QM")
    assert status == 0 and not (home / "QM").exists(), text
    assert s.run_python("import os; print(os.listdir('/dev/shm'))", prefix=shm).strip() == "[]"


def test_what_dead_processes_left_in_dev_shm_goes_with_the_queue_manager(
    home: Path, shm: tuple[str, ...]
) -> None:
    with follower(home, shm) as one:
        s.hear(one, "ready")
        kill(one)
    left = "import os; print(len(os.listdir('/dev/shm')))"
    assert s.run_python(left, prefix=shm).strip() == "1"
    status, text = command(home, shm, "delete", "QM")
    assert status == 0, text
    assert s.run_python(left, prefix=shm).strip() == "0"

"""More than one user: queue managers of a group, strangers, root, dropped privileges, odd files."""

from __future__ import annotations

import grp
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

import penstock as library
from surroundings import NOBODY, SECONDS, facts_at_work, hear, not_possible_here, say

ALICE, BOB, MALLORY = 20001, 20002, 20003
GROUP = 100
SETTINGS = "segment_size=131072, journal_limit=64 << 20"

CREATE = f"penstock.create('QM', home, group=group, {SETTINGS})\n"
PUT = """
with penstock.connect('QM', home) as manager, manager.queue('Q') as queue:
    for number in range(int(sys.argv[3])):
        queue.put(b'%6d' % number + bytes(994), persistent=True)
"""
GET = """
with penstock.connect('QM', home) as manager, manager.queue('Q') as queue:
    while queue.depth:
        print(int(queue.get().data[:6]))
"""
STAY = """
manager = penstock.connect('QM', home)
queue = manager.queue('Q')
manager.maintain()  # what it would write beside us: mark, spare and reserved files
manager.checkpoint()  # waits for a round that was under way
print('ready', flush=True)
sys.stdin.readline()
"""
CONNECT = "penstock.connect('QM', home)"
SALVAGE = """
from penstock.client.salvage import salvage
try:
    open(home + '/QM/new', 'w')
except PermissionError:
    print('refused')
found = salvage(home + '/QM', 'QM2', home)
print(found.messages, found.losses)
"""
REFUSED = """
try:
    penstock.connect('QM', home)
except penstock.MQError as error:
    print(error.reason, error)
"""


@cache
def interpreter_for_all() -> str:
    """A Python that every user may start: this one, or the system's of the same version."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if os.geteuid() != 0:
        not_possible_here("another user needs root")
    for path in (sys.executable, f"/usr/bin/python{version}", "/usr/bin/python3"):
        if not os.path.exists(path):
            continue
        done = (
            subprocess.run(
                [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                user=NOBODY,
                capture_output=True,
                text=True,
                check=False,
                cwd="/",
            )
            if may_start(path)
            else None
        )
        if done is not None and done.stdout.strip() == version:
            return path
    not_possible_here("no Python that another user may start")


def may_start(path: str) -> bool:
    """Whether a stranger can execute a program."""
    return subprocess.run(
        ["/bin/sh", "-c", 'test -x "$0"', path], user=NOBODY, check=False
    ).returncode == 0  # fmt: skip


@contextmanager
def started(
    user: int, group: int, program: str, home: Path, *arguments: object
) -> Iterator[subprocess.Popen[str]]:
    """A program of a user, who is in one group, with umask 077; killed at the end of the block."""
    text = "import os, sys\nimport penstock\nhome, group = sys.argv[1:3]\n" + program
    packages = Path(pytest.__file__).resolve().parents[1]
    root = Path(library.__file__).resolve().parents[1]
    with subprocess.Popen(
        [interpreter_for_all(), "-c", text, str(home), group_name(), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
        env={"PYTHONPATH": f"{root}:{packages}", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/"},
        user=user,
        group=group,
        extra_groups=[group],
        umask=0o077,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def as_user(user: int, group: int, program: str, home: Path, *arguments: object) -> str:
    """Runs a program of a user to its end, which must be status 0; its standard output."""
    with started(user, group, program, home, *arguments) as child:
        out, err = child.communicate(timeout=SECONDS)
    assert child.returncode == 0, err[-3000:]
    return out


def group_name() -> str:
    try:
        return grp.getgrgid(GROUP).gr_name
    except KeyError:
        not_possible_here(f"there is no group {GROUP}")


@pytest.fixture
def home() -> Iterator[Path]:
    """A home in which every user may create."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-users-", dir="/tmp"))
    folder.chmod(0o777)
    yield folder
    for keeper in folder.glob("*/keeper.pid"):  # of a test that failed
        with suppress(ProcessLookupError):
            os.kill(int(keeper.read_text()), signal.SIGKILL)
    for region in regions(folder):
        region.unlink(missing_ok=True)
    shutil.rmtree(folder)


def regions(home: Path) -> list[Path]:
    """The files of shared regions that the lock of the queue manager names, or named."""
    try:
        text = (home / "QM" / "lock").read_bytes()[:1024].decode()
    except FileNotFoundError:
        return []
    name = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)["region"]
    return list(Path("/dev/shm").glob(name[: len("penstock-") + 16] + "*"))


def tree(folder: Path) -> dict[str, tuple[int, ...]]:
    """Every name below a folder, and what would show that somebody changed it."""
    return {
        str(path): (facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino)
        for path in [folder, *sorted(folder.rglob("*"))]
        for facts in [path.lstat()]
    }


def command(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as root."""
    return subprocess.run(
        [sys.executable, "-m", "penstock.cli", *arguments],
        env={**os.environ, "PENSTOCK_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


# ---- a group ----


def test_members_of_a_group_share_a_queue_manager_whoever_creates_its_files(home: Path) -> None:
    as_user(ALICE, GROUP, CREATE + PUT, home, 300)
    with started(ALICE, GROUP, STAY, home) as alice:
        hear(alice, "ready")
        with started(BOB, GROUP, STAY, home) as bob:
            hear(bob, "ready")
            as_user(BOB, GROUP, PUT, home, 300)
            facts = facts_at_work(home / "QM")
            owners = {fact.st_uid for fact in facts.values()}
            for path, fact in [*facts.items(), *((path, path.stat()) for path in regions(home))]:
                kind = 0o2770 if stat.S_ISDIR(fact.st_mode) else 0o660
                assert (stat.S_IMODE(fact.st_mode), fact.st_gid) == (kind, GROUP), path
            assert owners == {ALICE, BOB}
            say(bob)
            assert bob.wait(SECONDS) == 0
        say(alice)
        assert alice.wait(SECONDS) == 0
    got = as_user(BOB, GROUP, GET, home).split()
    assert got == [str(number) for number in range(300)] * 2
    assert not [path for path in regions(home) if path.stat().st_size]


def test_a_member_restarts_what_another_member_left_by_a_kill(home: Path) -> None:
    as_user(ALICE, GROUP, CREATE + PUT, home, 20)
    for user, other in ((ALICE, BOB), (BOB, ALICE)):
        with started(user, GROUP, STAY, home) as child:
            hear(child, "ready")
            child.send_signal(signal.SIGKILL)
            child.wait(SECONDS)
        assert as_user(other, GROUP, GET, home).split() == [str(n) for n in range(20)]
        assert not [path for path in regions(home) if path.stat().st_size]
        as_user(other, GROUP, PUT, home, 20)


def test_whoever_is_not_in_the_group_is_refused_by_name(home: Path) -> None:
    as_user(ALICE, GROUP, CREATE, home)
    text = as_user(MALLORY, NOBODY, REFUSED, home)
    assert text.startswith("2035 ")
    assert f"user {MALLORY} may not use" in text and f"group {group_name()}" in text
    main = "from penstock.cli.__main__ import cli\ncli(['status', 'QM', '--home', home])\n"
    with started(MALLORY, NOBODY, main, home) as child:
        _, err = child.communicate(timeout=SECONDS)
    assert child.returncode == 2 and f"user {MALLORY} may not use" in err
    text = as_user(MALLORY, NOBODY, REFUSED.replace(CONNECT, CREATE.strip()), home)
    assert text.startswith("2100 ")
    other = CREATE.strip().replace("'QM'", "'QM2'")
    text = as_user(MALLORY, NOBODY, REFUSED.replace(CONNECT, other), home)
    assert text.startswith("2035 ") and f"is not in group {group_name()}" in text
    assert not (home / "QM2").exists()


def test_a_user_who_may_only_read_salvages_and_changes_nothing(home: Path) -> None:
    as_user(ALICE, GROUP, CREATE + PUT, home, 20)
    for path in [home / "QM", *(home / "QM").rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = tree(home / "QM")
    text = as_user(MALLORY, NOBODY, SALVAGE, home)
    assert text.split() == ["refused", "20", "[]"]
    assert tree(home / "QM") == before


def test_a_file_that_a_stranger_could_have_put_there_is_refused(home: Path) -> None:
    as_user(ALICE, GROUP, CREATE + PUT, home, 1)
    segment = home / "QM" / "journal" / "0000000001.psj"
    for change, back in (
        (lambda: os.chown(segment, -1, NOBODY), lambda: os.chown(segment, -1, GROUP)),
        (lambda: segment.chmod(0o666), lambda: segment.chmod(0o660)),
        (lambda: os.link(segment, home / "other"), lambda: (home / "other").unlink()),
    ):
        change()
        text = as_user(ALICE, GROUP, REFUSED, home)
        assert text.startswith(("2035 ", "2012 ")), text
        back()
    assert as_user(BOB, GROUP, GET, home).split() == ["0"]


def test_the_command_creates_and_starts_a_queue_manager_of_a_group(home: Path) -> None:
    main = "from penstock.cli.__main__ import cli\ncli([*sys.argv[3:], '--home', home])\n"
    as_user(ALICE, GROUP, main, home, "create", "QM", "--group", group_name())
    assert (home / "QM").stat().st_mode & 0o7777 == 0o2770
    as_user(BOB, GROUP, main, home, "start", "QM")
    for path, fact in facts_at_work(home / "QM").items():
        kind = 0o2770 if stat.S_ISDIR(fact.st_mode) else 0o660
        assert stat.S_IMODE(fact.st_mode) == kind, path
    as_user(ALICE, GROUP, main, home, "end", "-w", "QM")
    done = command(home, "create", "QM2", "--group", group_name())
    assert done.returncode == 2 and "user 0 is not in group" in done.stderr


def test_an_existing_queue_manager_becomes_a_groups_as_the_manual_says(home: Path) -> None:
    as_user(ALICE, GROUP, CREATE.replace("group=group, ", "") + PUT, home, 3)
    folder = home / "QM"
    assert as_user(BOB, GROUP, REFUSED, home).startswith("2035 ")
    settings = folder / "qm.toml"
    text = settings.read_text().replace('group = ""', f'group = "{group_name()}"')
    settings.write_text(text)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, -1, GROUP)
        path.chmod(0o2770 if path.is_dir() else 0o660)
    assert as_user(BOB, GROUP, GET, home).split() == ["0", "1", "2"]
    as_user(ALICE, GROUP, PUT, home, 1)


# ---- root ----


@pytest.mark.parametrize("shared", [False, True])
def test_root_may_look_at_anothers_queue_manager_and_changes_nothing(
    home: Path, shared: bool
) -> None:
    create = CREATE if shared else CREATE.replace("group=group, ", "")
    as_user(ALICE, GROUP, create + PUT, home, 5)
    for running in (False, True):
        with started(ALICE, GROUP, STAY if running else "", home) as alice:
            if running:
                hear(alice, "ready")
            before = tree(home)
            assert library_refuses(home)
            for name in ("status", "journal", "verify", "errors", "list"):
                done = command(home, name, *([] if name == "list" else ["QM"]))
                assert done.returncode == 0 and done.stdout, (name, done)
            text = command(home, "status", "QM").stdout
            assert ("running, attached process" if running else "not running") in text
            if running:
                found = json.loads(command(home, "status", "QM", "--json").stdout)
                assert found["running"] and found["pids"] == [alice.pid]
            assert tree(home) == before
            if running:
                say(alice)
            assert alice.wait(SECONDS) == 0


def library_refuses(home: Path) -> bool:
    """Whether root is refused for work, by name."""
    with pytest.raises(library.MQError) as caught:
        library.connect("QM", home)
    assert caught.value.reason == 2035
    return "user 0" in str(caught.value) or "user root" in str(caught.value)


# ---- dropped privileges ----


def test_a_process_that_drops_its_privileges_after_connect_works_to_the_end(home: Path) -> None:
    program = (
        "manager = penstock.connect('QM', home)\n"
        "queue = manager.queue('Q')\n"
        "queue.put(b'before', persistent=True)\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "queue.put(b'after', persistent=True)\n"
        "queue.put(b'lost', persistent=False)\n"
        "manager.close()\n"
        "print('closed')\n"
    )
    if os.geteuid() != 0:
        not_possible_here("dropping privileges needs root")
    library.create("QM", home)
    assert as_user(0, 0, program, home) == "closed\n"
    with library.connect("QM", home) as manager, manager.queue("Q") as queue:
        assert [queue.get().data for _ in range(queue.depth)] == [b"before", b"after"]


# ---- one user ----


def test_a_directory_that_others_may_write_is_refused_with_what_to_do(home: Path) -> None:
    library.create("QM", home)
    (home / "QM").chmod(0o770)
    with pytest.raises(library.MQError, match=r"2035.*chmod go-w.*--group"):
        library.connect("QM", home)
    (home / "QM").chmod(0o700)
    library.connect("QM", home).close()


@pytest.mark.parametrize("place", ["journal", "checkpoint", "errors", "lock"])
@pytest.mark.parametrize("wrong", ["owner", "mode", "links"])
def test_owner_mode_and_link_count_of_every_file_are_checked(
    home: Path, place: str, wrong: str
) -> None:
    if os.geteuid() != 0:
        not_possible_here("giving a file away needs root")
    library.create("QM", home)
    with library.connect("QM", home) as manager, manager.queue("Q") as queue:
        queue.put(b"kept", persistent=True)
    path = home / "QM" / place
    if place == "checkpoint":
        path = max(path.glob("*.psc"))  # the newest; a reserve that is not read may be there, too
    elif path.is_dir():
        path = min(path.iterdir())
    if wrong == "owner":
        os.chown(path, ALICE, -1)
    elif wrong == "mode":
        path.chmod(0o602)
    else:
        os.link(path, home / "other")
    size = path.stat().st_size
    if place == "errors":  # a log that is not ours is no reason to stop, and is not written
        library.connect("QM", home).close()
        # a second name, which a backup made, keeps nobody from logging
        assert (path.stat().st_size == size) == (wrong != "links")
    else:
        with pytest.raises(library.MQError) as caught:
            library.connect("QM", home)
        assert caught.value.reason == (2012 if wrong == "links" else 2035)
    os.chown(path, 0, -1)
    path.chmod(0o600)
    (home / "other").unlink(missing_ok=True)
    with library.connect("QM", home) as manager, manager.queue("Q") as queue:
        assert queue.get().data == b"kept"


def test_a_directory_of_regions_whose_owner_is_another_user_is_refused(home: Path) -> None:
    if os.geteuid() != 0:
        not_possible_here("giving a directory away needs root")
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        library.create("QM", home, region_dir=str(folder))
        library.connect("QM", home).close()
        for owner, mode in ((ALICE, 0o755), (ALICE, 0o1777), (0, 0o777)):
            os.chown(folder, owner, -1)
            folder.chmod(mode)
            with pytest.raises(library.MQError, match=r"2035.*region_dir"):
                library.connect("QM", home)
        folder.chmod(0o1777)
        library.connect("QM", home).close()
    finally:
        shutil.rmtree(folder)


def test_a_lock_file_is_no_reason_to_unlink_elsewhere(home: Path, tmp_path: Path) -> None:
    """Names that it gives are taken only when they are this queue manager's own."""
    precious = Path("/dev/shm/penstock-precious-" + home.name)
    other = tmp_path / "penstock-precious"
    for file in (precious, other):
        file.write_text("precious")
    try:
        for directory in ("/dev/shm", str(tmp_path)):
            for step in ("connect", "delete"):
                library.create("QM", home)
                library.connect("QM", home).close()
                lock = home / "QM" / "lock"
                lines = lock.read_bytes()[:1024].decode().splitlines()
                name = (precious if directory == "/dev/shm" else other).name
                lines = [f"region={name}" if x.startswith("region=") else x for x in lines]
                lines = [f"directory={directory}" if x.startswith("dire") else x for x in lines]
                text = "\n".join(lines).rstrip("\n") + "\n"
                lock.write_text(text + "\n" * (1024 - len(text)))
                if step == "connect":
                    library.connect("QM", home).close()
                library.delete("QM", home)
                assert precious.read_text() == other.read_text() == "precious"
    finally:
        precious.unlink()

"""Means of the layer "surroundings": processes under limits, file systems, users, namespaces.

Every process started here is a child of the test, has a bounded time and is killed with its block.
A means that the machine does not allow ends the test as not possible here, with the reason.
"""

from __future__ import annotations

import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

SECONDS = 60.0  # the longest that a child of a test runs
# Numbers of the system calls read, futex, clock_nanosleep, poll and the like, and of
# restart_syscall, which a wait with a time limit becomes after a stop.
_WAITING = {
    "x86_64": ("0", "7", "202", "219", "230", "232", "270", "271", "281"),
    "aarch64": ("22", "63", "72", "73", "98", "115", "128"),
}[platform.machine()]
NOBODY = 65534  # user and group of a stranger
Limits = Mapping[int, int]  # resource.RLIMIT_... -> value
# The end of a child's program: it does what it is told, a statement a line, until its input ends,
# and answers each with "done" or what was raised.
FOLLOW = """
print("ready", flush=True)
for line in sys.stdin:
    try:
        exec(line)
        print("done", flush=True)
    except penstock.MQError as error:
        print(error.reason, error, flush=True)
"""


def not_possible_here(reason: str) -> NoReturn:
    """Ends the test: the machine does not let it make its surroundings."""
    raise pytest.skip.Exception(f"not possible here: {reason}")


def _before_exec(
    limits: Limits, user: int | None, group: int | None, processors: set[int] | None
) -> Callable[[], None]:
    """What the child does between fork and exec."""

    def prepare() -> None:
        for kind, value in limits.items():
            resource.setrlimit(kind, (value, value))
        if processors is not None:
            os.sched_setaffinity(0, processors)
        if group is not None:
            os.setgroups([group])
            os.setgid(group)
        if user is not None:
            os.setuid(user)

    return prepare


@contextmanager
def python(
    program: str,
    *arguments: object,
    limits: Limits | None = None,
    user: int | None = None,
    group: int | None = None,
    processors: set[int] | None = None,
    prefix: tuple[str, ...] = (),
    **environment: str,
) -> Iterator[subprocess.Popen[str]]:
    """A Python program, given as text, as a process with pipes; killed at the end of the block.

    ``limits`` are resource limits (both soft and hard), ``user`` and ``group`` the ids it runs
    with, ``processors`` its affinity, ``prefix`` a command that starts it (``unshare --pid``).
    """
    if (user is not None or group is not None) and os.geteuid() != 0:
        not_possible_here("another user needs root")
    child = subprocess.Popen(
        [*prefix, sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        preexec_fn=_before_exec(limits or {}, user, group, processors),
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()


def run_python(program: str, *arguments: object, seconds: float = SECONDS, **options: Any) -> str:
    """Runs a program to its end, which must be status 0; its standard output."""
    with python(program, *arguments, **options) as child:
        out, errors = child.communicate(timeout=seconds)
        assert child.returncode == 0, f"status {child.returncode}: {errors[-3000:]}"
    return out


def say(child: subprocess.Popen[str], line: str = "") -> None:
    """Sends a line to a program's standard input."""
    assert child.stdin is not None
    child.stdin.write(line + "\n")
    child.stdin.flush()


def hear(child: subprocess.Popen[str], expected: str | None = None) -> str:
    """The next line of a program's standard output, without its end."""
    assert child.stdout is not None
    line = child.stdout.readline().rstrip("\n")
    if not line:
        errors = child.stderr.read() if child.stderr else ""
        status = child.wait(SECONDS)
        raise AssertionError(f"the program ended with {status}: {errors[-3000:]}")
    assert expected is None or line == expected, f"{line!r} instead of {expected!r}"
    return line


def stop_at_rest(pid: int) -> None:
    """SIGSTOP for a process all of whose threads wait: one that is in the middle of something holds
    locks that everybody else then waits for.
    """
    end = time.monotonic() + SECONDS
    while True:
        os.kill(pid, signal.SIGSTOP)
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        while any(
            (task / "stat").read_text().rsplit(")", 1)[1].split()[0] != "T" for task in tasks
        ):
            time.sleep(0.001)
        if all((task / "syscall").read_text().split()[0] in _WAITING for task in tasks):
            return
        os.kill(pid, signal.SIGCONT)
        assert time.monotonic() < end, f"process {pid} is never at rest"
        time.sleep(0.01)


def copy_at_work(path: Path, to: Path, copy: Callable[[str, str], object] = shutil.copy2) -> None:
    """Copies the directory of a running queue manager as tools do: a name that has gone since it
    was read (a spare segment gets its own when it is whole) is passed over.
    """

    def copy_if_there(source: str, target: str) -> None:
        with suppress(FileNotFoundError):
            copy(source, target)

    shutil.copytree(path, to, copy_function=copy_if_there)


def facts_at_work(path: Path) -> dict[Path, os.stat_result]:
    """Of a directory and all below it, in the same manner."""
    facts = {}
    for name in [path, *path.rglob("*")]:
        with suppress(FileNotFoundError):
            facts[name] = name.stat()
    return facts


@contextmanager
def tmpfs(size: int, mode: int = 0o700, huge: str = "") -> Iterator[Path]:
    """A mounted tmpfs of that many bytes, with that option huge=, unmounted at the end of the
    block."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-tmpfs-"))
    options = f"size={size},mode={mode:o}" + (f",huge={huge}" if huge else "")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "penstock-test", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        folder.rmdir()
        not_possible_here(f"mounting a tmpfs: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


@contextmanager
def small_shm(size: int) -> Iterator[tuple[str, ...]]:
    """A mount namespace in which /dev/shm has so many bytes, as in a container: the prefix that
    starts a process in it."""
    mount = (
        f"mount -t tmpfs -o size={size},mode=1777 penstock-test /dev/shm && echo ready && exec cat"
    )
    try:
        holder = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", mount],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    except FileNotFoundError:
        not_possible_here("unshare is not installed")
    try:
        assert holder.stdout is not None and holder.stderr is not None
        if holder.stdout.readline() != "ready\n":
            not_possible_here(f"making a mount namespace: {holder.stderr.read().strip()}")
        yield ("nsenter", f"--mount=/proc/{holder.pid}/ns/mnt", "--")
    finally:
        holder.kill()
        holder.communicate()


@contextmanager
def memory_group(limit: int) -> Iterator[tuple[str, ...]]:
    """A control group with so many bytes of memory: the prefix that starts a process in it."""
    version1, version2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    old = (version1 / "memory.limit_in_bytes").exists()
    folder = (version1 if old else version2) / f"penstock-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        not_possible_here(f"making a control group: {error}")
    try:
        try:
            (folder / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(limit))
        except OSError as error:
            not_possible_here(f"limiting a control group: {error}")
        enter = 'echo $$ > "$0"; exec "$@"'
        yield ("sh", "-c", enter, str(folder / "cgroup.procs"))
    finally:
        folder.rmdir()

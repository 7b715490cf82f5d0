"""The command beside ordinary life: the last process to leave, signals, hostile text, odd files."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock as library
from surroundings import SECONDS, not_possible_here

HOSTILE = "x\x1b[2J\x1b]0;owned\x07\u009b31m\u202e[red]y[/red] \u2028z"
ACTIVE = ("\x1b", "\x07", "\u009b", "\u202e", "\u2028")  # of HOSTILE
LATE = 0.5  # seconds that a slow system call is late


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home with queue manager QM1 and its queue Q, whose messages are not persistent."""
    library.create("QM1", tmp_path)
    with library.connect("QM1", tmp_path) as manager:
        manager.define("QLOCAL", "Q")
    yield tmp_path
    run(tmp_path, "end", "-p", "QM1")


def start(home: Path, *arguments: str, **options: object) -> subprocess.Popen[bytes]:
    """The command as a process."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = {**os.environ, "PENSTOCK_HOME": str(home), "TERM": "xterm"}
    return subprocess.Popen(
        [sys.executable, "-m", "penstock.cli", *arguments],
        **{**pipes, "env": environment, **options},  # type: ignore[call-overload]
    )


def run(home: Path, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Runs the command to its end."""
    with start(home, *arguments) as process:
        try:
            out, err = process.communicate(data, timeout=SECONDS)
        finally:
            process.kill()
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


# ---- the last process to leave ----


def test_a_put_that_loses_what_it_put_ends_with_status_3_and_tells_how_to_keep_it(
    home: Path,
) -> None:
    done = run(home, "put", "QM1", "Q", data=b"a\nb\nc\n")
    assert done.returncode == 3
    assert b"3 non-persistent messages" in done.stderr
    assert b"--persistent" in done.stderr and b"`penstock start QM1`" in done.stderr
    assert run(home, "get", "QM1", "Q").returncode == 1
    assert run(home, "put", "QM1", "Q", "--not-persistent", data=b"a\n").returncode == 3


def test_a_put_that_loses_nothing_ends_with_status_0(home: Path) -> None:
    with library.connect("QM1", home) as manager:
        manager.define("QLOCAL", "HIGH", npmclass="HIGH")
        manager.define("QLOCAL", "DURABLE", defpsist=True)
    assert run(home, "put", "QM1", "Q", "--persistent", data=b"a\n").returncode == 0
    assert run(home, "put", "QM1", "DURABLE", data=b"a\n").returncode == 0
    assert run(home, "put", "QM1", "HIGH", data=b"a\n").returncode == 0
    assert run(home, "put", "QM1", "Q", data=b"").returncode == 0
    run(home, "start", "QM1")
    assert run(home, "put", "QM1", "Q", data=b"b\n").returncode == 0
    assert run(home, "get", "QM1", "Q").stdout == b"a\nb\n"


def test_a_put_that_fails_and_loses_lines_tells_both_and_its_status_is_that_of_the_failure(
    home: Path,
) -> None:
    with library.connect("QM1", home) as manager:
        manager.alter("QLOCAL", "Q", maxdepth=2)
    done = run(home, "put", "QM1", "Q", data=b"a\nb\nc\n")
    assert done.returncode == 2 and b"(2053)" in done.stderr
    assert b"`penstock start QM1`" in done.stderr


# ---- signals ----

LATE_READ = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void be_late(void)   /* in user mode, whatever signals arrive: their handlers run here */
{
    struct timespec end, now;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += 500 * 1000000;
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec < end.tv_sec + end.tv_nsec / 1000000000 ||
           (now.tv_sec == end.tv_sec + end.tv_nsec / 1000000000 &&
            now.tv_nsec < end.tv_nsec % 1000000000));
}

ssize_t read(int fd, void *to, size_t size)
{
    ssize_t (*real)(int, void *, size_t) =
        (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    if (fd == 0)
        be_late();
    return real(fd, to, size);
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    int (*real)(struct pollfd *, nfds_t, int) =
        (int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
    if (count > 0 && fds[0].fd == 0)
        be_late();
    return real(fds, count, timeout);
}
"""


@pytest.fixture(scope="module")
def late_read(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library in which every wait for stdin begins half a second after the call."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        not_possible_here("no C compiler")
    folder = tmp_path_factory.mktemp("late")
    (folder / "late.c").write_text(LATE_READ)
    made = folder / "late.so"
    command = [compiler, "-shared", "-fPIC", "-o", str(made), str(folder / "late.c"), "-ldl"]
    subprocess.run(command, check=True, timeout=SECONDS)
    return made


@pytest.mark.parametrize("arguments", [("mqsc", "QM1"), ("put", "QM1", "Q", "--persistent")])
def test_ctrl_c_just_before_a_read_ends_the_command(
    home: Path, late_read: Path, arguments: tuple[str, ...]
) -> None:
    """The signal is there after the interpreter's last look and before the system call."""
    environment = {**os.environ, "PENSTOCK_HOME": str(home), "LD_PRELOAD": str(late_read)}
    with (
        library.connect("QM1", home) as manager,
        manager.open("Q") as queue,
        start(home, *arguments, env=environment) as process,
    ):
        try:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(b"PING QMGR\n")
            process.stdin.flush()
            if arguments[0] == "mqsc":
                assert process.stdout.readline() and process.stdout.readline()
            else:
                assert queue.get(wait=SECONDS).data == b"PING QMGR"
            time.sleep(LATE / 2)  # it is in its next wait by now, and not in the system call yet
            process.send_signal(signal.SIGINT)
            assert process.wait(SECONDS) == 130
        finally:
            process.kill()


# ---- hostile text ----


def on_terminal(home: Path, *arguments: str) -> str:
    """What the command prints on a terminal, to its end."""
    master, terminal = pty.openpty()
    with start(home, *arguments, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        text = b""
        end = time.monotonic() + SECONDS
        try:
            while time.monotonic() < end:
                if select.select([master], [], [], 0.2)[0]:
                    try:
                        got = os.read(master, 65536)
                    except OSError:  # the other side is closed
                        break
                    if not got:
                        break
                    text += got
        finally:
            process.kill()
            os.close(master)
    return text.decode("utf-8", "replace")


def own_sequences(text: str) -> str:
    """The text without the colours and frames that the command itself makes."""
    import re

    return re.sub(r"\x1b\[[0-9;?]*[mhlKAHJ]", "", text)


COMMANDS = (
    ("status", "QM1"),
    ("status", "QM1", "--json"),
    ("browse", "QM1", "Q"),
    ("browse", "QM1", "Q", "--json"),
    ("get", "QM1", "Q", "--count", "1"),
    ("get", "QM1", "Q", "--count", "1", "--json"),
    ("mqsc", "QM1", "DISPLAY QLOCAL(Q) DESCR", "DISPLAY CONN(*) ALL"),
    ("mqsc", "QM1", f"DEFINE QLOCAL('{HOSTILE}')"),
    ("mqsc", "QM1", "--dump"),
    ("mqsc", "QM1", "--attributes", HOSTILE),
    ("journal", "QM1"),
    ("journal", "QM1", "--json"),
    ("journal", "QM1", "--segments"),
    ("verify", "QM1"),
    ("archive", "QM1"),
    ("archive", "QM1", "--prune-before", HOSTILE),
    ("resolve", "QM1"),
    ("resolve", "QM1", "--json"),
    ("resolve", "QM1", HOSTILE, "--commit"),
    ("errors", "QM1"),
    ("list",),
    ("create", HOSTILE),
    ("create", "QM2", "--platform", HOSTILE),
    ("create", "QM2", "--group", HOSTILE),
    ("start", HOSTILE),
    ("end", HOSTILE),
    ("delete", HOSTILE),
    ("put", "QM1", HOSTILE),
    ("put", "QM1", "Q", HOSTILE),
    ("put", "QM1", "Q", "--priority-map", HOSTILE),
    ("get", "QM1", HOSTILE),
    ("browse", HOSTILE, "Q"),
    ("cfstruct", "fail", "QM1", HOSTILE, "--yes"),
    ("cfstruct", "list", "QM1"),
    ("verify", HOSTILE),
    ("demo", HOSTILE),
    (HOSTILE,),
)


def test_no_command_prints_what_a_terminal_would_obey(home: Path) -> None:
    """Bodies, descriptions, programs, the log, names and arguments are all hostile."""
    program = (
        "import sys, ctypes, penstock\n"
        "ctypes.CDLL(None).prctl(15, b'\\xc2\\x9b1m\\x1b[5m[b]', 0, 0, 0)\n"
        "manager = penstock.connect('QM1', sys.argv[1])\n"
        "manager.alter('QLOCAL', 'Q', descr='[red]y[/red]')\n"
        "queue = manager.open('Q')\n"
        "for _ in range(4): queue.put(sys.argv[2].encode() + b'\\x9b\\xff', persistent=True)\n"
        "with manager.transaction():\n"
        "    queue.put(b'in a unit', persistent=True)\n"
        "    manager.prepare(penstock.Xid(7, b'\\x1b[2J', b'\\xc2\\x9b'))\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    log = home / "QM1" / "errors" / "AMQERR03.LOG"
    log.write_bytes(b"AMQ1234I " + HOSTILE.encode() + b" \x9b\rspoofed\n")
    with subprocess.Popen(
        [sys.executable, "-c", program, str(home), HOSTILE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        try:
            assert other.stdout is not None and other.stdout.readline() == b"ready\n"
            for arguments in COMMANDS:
                text = own_sequences(on_terminal(home, *arguments)).replace("\r\n", "\n")
                assert text or arguments[0] == "archive", arguments
                found = [c for c in (*ACTIVE, "\r") if c in text]
                assert not found, (arguments, found, text)
                done = run(home, *arguments)
                for stream in (done.stderr, b"" if "get" in arguments else done.stdout):
                    if arguments[0] not in ("browse",) and "--dump" not in arguments:
                        assert not any(c.encode() in stream for c in ACTIVE), (arguments, stream)
        finally:
            other.kill()


def test_markup_in_a_name_is_text(home: Path) -> None:
    from penstock.cli.terminal import table_console

    console = table_console(force_terminal=False)
    with console.capture() as caught:
        console.print("[red]x[/red] :smile: [/nothing]")
    assert caught.get() == "[red]x[/red] :smile: [/nothing]\n"


def test_bodies_in_a_pipe_are_unchanged(home: Path) -> None:
    body = HOSTILE.encode() + b" \x9b\xff"
    with library.connect("QM1", home) as manager, manager.open("Q") as queue:
        queue.put(body, persistent=True)
        assert run(home, "browse", "QM1", "Q").stdout == body + b"\n"
        assert run(home, "get", "QM1", "Q").stdout == body + b"\n"


# ---- odd files ----


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_errors_follows_no_links_and_hangs_on_no_fifo(
    home: Path, tmp_path: Path, kind: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("AMQ9999E secret\n")
    odd = home / "QM1" / "errors" / "AMQERR02.LOG"
    if kind == "link":
        odd.symlink_to(secret)
    elif kind == "fifo":
        os.mkfifo(odd)
    else:
        odd.mkdir()
    done = run(home, "errors", "QM1")
    assert done.returncode == 2 and b"AMQERR02.LOG is left out" in done.stderr
    assert b"AMQ8003" in done.stdout and b"secret" not in done.stdout


@pytest.mark.parametrize("name", ["qm.toml", "lock"])
def test_no_command_hangs_on_a_fifo_in_the_directory(home: Path, name: str) -> None:
    (home / "QM1" / name).unlink(missing_ok=True)
    os.mkfifo(home / "QM1" / name)
    for command in ("status", "journal", "verify", "errors", "put", "delete"):
        run(home, command, "QM1", *(["Q"] if command == "put" else []))
    shutil.rmtree(home / "QM1")


def test_the_keepers_file_overwrites_no_file_behind_a_link(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    (home / "QM1" / "keeper.pid").symlink_to(target)
    assert run(home, "start", "QM1").returncode == 0
    assert target.read_text() == "precious"
    assert int((home / "QM1" / "keeper.pid").read_text()) > 1

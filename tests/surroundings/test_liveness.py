"""Who is alive: nothing that a process does to files, threads or children destroys a region in use.

Each test is a row of the table in docs/operations.md, "Who is alive". A process that must survive
puts a non-persistent message first: it is there afterwards only if the region was never discarded.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import penstock
from surroundings import SECONDS, copy_at_work, hear, not_possible_here, python, run_python, say

WORKER = """
import os, sys, threading, time, ctypes, signal, subprocess, shutil, pathlib
import penstock
home = sys.argv[1]
qm = penstock.connect("QM1", home)
q = qm.open("Q")
def put(): q.put(b"kept", persistent=False)
"""
ATTACH = WORKER + "put()\nprint('ready', flush=True)\nsys.stdin.readline()\n"
# what a tool does with a name that has gone since it read the directory (a spare segment gets its
# name when it is whole): it goes on
READ = """
def if_there(read, *paths):
    try:
        read(*paths)
    except FileNotFoundError:
        pass
def files():
    return [path for path in qm.path.rglob('*') if path.is_file()]
"""
LIVE = """
import sys, penstock
with penstock.connect("QM1", sys.argv[1]) as qm, qm.open("Q") as q:
    print(q.depth)
"""


@pytest.fixture
def home(home: Path) -> Path:
    """A home whose queue manager QM1 has a queue Q."""
    penstock.create("QM1", home, segment_size=1 << 20, journal_limit=64 << 20, ring_size=1 << 20)
    with penstock.connect("QM1", home) as qm:
        qm.define("QLOCAL", "Q")
    return home


@contextmanager
def attached(home: Path, then: str = "", **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that is attached, has put a message, and has done ``then``."""
    program = WORKER + "put()\n" + then + "\nprint('ready', flush=True)\nsys.stdin.readline()\n"
    with python(program, home, **options) as child:
        hear(child, "ready")
        yield child


def depth(home: Path) -> int:
    """The depth of Q as another process sees it: 1 when the region is still the one put to."""
    return int(run_python(LIVE, home))


def eventually(condition: Callable[[], bool]) -> None:
    """Waits for a condition."""
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def logged(home: Path) -> str:
    """The error log."""
    return (home / "QM1" / "errors" / "AMQERR01.LOG").read_text()


@pytest.mark.parametrize(
    "reading",
    [
        "(qm.path / 'lock').read_bytes()",
        "shutil.copytree(qm.path, pathlib.Path(home) / 'copy',"
        " copy_function=lambda *names: if_there(shutil.copy2, *names))",
        "import tarfile\nwith tarfile.open(pathlib.Path(home) / 'x.tar', 'w') as tar:\n"
        "    [if_there(tar.add, path) for path in files()]",
        "subprocess.run(['cat', str(qm.path / 'lock')], stdout=subprocess.DEVNULL, check=True)",
        "[if_there(lambda: path.open('rb').close()) for path in files()]",
    ],
)
def test_reading_the_directory_of_a_running_queue_manager_harms_nothing(
    home: Path, reading: str
) -> None:
    with attached(home, READ + reading) as child:
        assert depth(home) == 1
        assert depth(home) == 1
        say(child)
        assert child.wait(SECONDS) == 0
    assert penstock.connect("QM1", home).close() is None


@pytest.mark.parametrize("command", ["status", "list", "verify", "errors"])
def test_the_command_run_within_an_attached_process_harms_nothing(home: Path, command: str) -> None:
    arguments = [command] if command == "list" else [command, "QM1"]
    run = (
        "from penstock.cli.__main__ import main\nimport contextlib, io\n"
        f"sys.argv = ['penstock', *{arguments!r}, '--home', home]\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main()\n"
    )
    with attached(home, run):
        assert depth(home) == 1


def test_a_delete_within_an_attached_process_is_refused_and_harms_nothing(home: Path) -> None:
    refused = (
        "try:\n    penstock.delete('QM1', home)\nexcept penstock.ObjectInUse as error:\n"
        "    assert str(os.getpid()) in str(error)\nelse:\n    raise SystemExit(5)"
    )
    with attached(home, refused):
        assert depth(home) == 1


def test_a_killed_process_is_restarted_after_and_its_messages_are_discarded(home: Path) -> None:
    with attached(home) as child:
        child.kill()
        child.wait(SECONDS)
    assert depth(home) == 0


def test_an_exit_without_a_close_counts_as_a_death(home: Path) -> None:
    with attached(home) as other:
        run_python(WORKER + "put()\nos._exit(0)", home)
        eventually(lambda: "ended without leaving" in logged(home))
        assert depth(home) == 2
        assert other.poll() is None


@pytest.mark.parametrize("who", ["main", "thread"])
def test_a_process_that_executes_another_program_has_left(home: Path, who: str) -> None:
    execute = "os.execv('/bin/sleep', ['sleep', '600'])"
    if who == "thread":
        execute = f"t = threading.Thread(target=lambda: {execute})\nt.start(); t.join()"
    unit = "q.put(b'open', syncpoint=True)\n"
    with attached(home) as other, python(WORKER + unit + execute, home) as child:
        eventually(lambda: "ended without leaving" in logged(home))
        assert child.poll() is None  # sleeps, with the pid of the one that was attached
        with penstock.connect("QM1", home) as qm:
            pids = {process.pid for process in qm.process_list()}
            assert child.pid not in pids and other.pid in pids
            assert qm.status().units == 0


def test_the_only_process_that_executes_another_program_leaves_a_restart(home: Path) -> None:
    with python(WORKER + "put()\nos.execv('/bin/sleep', ['sleep', '600'])", home) as child:
        eventually(lambda: Path(f"/proc/{child.pid}/comm").read_text().strip() == "sleep")
        assert depth(home) == 0
        assert child.poll() is None


@pytest.mark.parametrize(
    "way",
    [
        "pid = os.fork()\nif pid == 0:\n    time.sleep(600)\n    os._exit(0)",
        "import multiprocessing\n"
        "m = multiprocessing.get_context('fork').Process(target=time.sleep, args=(600,))\n"
        "m.daemon = True\nm.start(); pid = m.pid",
        "pid = subprocess.Popen(['sleep', '600']).pid",
        "pid = os.posix_spawn('/bin/sleep', ['sleep', '600'], os.environ)",
        "pid = subprocess.Popen(['sleep', '600'], close_fds=False).pid",
    ],
    ids=["fork", "multiprocessing", "subprocess", "posix_spawn", "keeps descriptors"],
)
def test_a_child_that_outlives_its_parent_keeps_nobody_out(home: Path, way: str) -> None:
    program = WORKER + "put()\n" + way + "\nprint(pid, flush=True)\nsys.stdin.readline()\n"
    with python(program, home) as child:
        pid = int(hear(child))
        try:
            child.kill()
            child.wait(SECONDS)
            assert Path(f"/proc/{pid}").exists()
            assert depth(home) == 0
            assert depth(home) == 0
        finally:
            os.kill(pid, signal.SIGKILL)


def test_a_bare_clone_that_keeps_the_descriptor_is_named_until_it_ends(home: Path) -> None:
    clone = (
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "pid = libc.syscall(ctypes.c_long(56 if os.uname().machine == 'x86_64' else 220),\n"
        "    ctypes.c_long(17), ctypes.c_long(0), None, None, None)\n"
        "if pid == 0:\n    libc.pause()\n    libc._exit(0)"
    )
    program = WORKER + "put()\n" + clone + "\nprint(pid, flush=True)\nsys.stdin.readline()\n"
    with python(program, home) as child:
        pid = int(hear(child))
        try:
            child.kill()
            child.wait(SECONDS)
            with pytest.raises(penstock.MQError, match=f"open in process {pid}") as refused:
                penstock.connect("QM1", home)
            assert refused.value.reason == 2059
        finally:
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: not Path(f"/proc/{pid}").exists())
    assert depth(home) == 0


def test_a_stopped_process_is_alive(home: Path) -> None:
    with attached(home) as child:
        child.send_signal(signal.SIGSTOP)
        try:
            eventually(lambda: _state(child.pid) == "T")
            assert depth(home) == 1
        finally:
            child.send_signal(signal.SIGCONT)
        assert depth(home) == 1


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_process_that_closed_all_descriptors_is_named_and_its_region_stays(home: Path) -> None:
    with attached(home, "os.closerange(3, 65536)") as child:
        with pytest.raises(penstock.MQError, match=f"process {child.pid} is attached") as refused:
            penstock.connect("QM1", home)
        assert refused.value.reason == 2059
        child.kill()
        child.wait(SECONDS)
    assert depth(home) == 0


def test_closed_descriptors_whose_numbers_are_used_again_are_left_alone(home: Path) -> None:
    again = (
        "os.closerange(3, 65536)\n"
        "files = [open(pathlib.Path(home) / f'mine{n}', 'wb') for n in range(40)]"
    )
    close = (
        "\ntry:\n    qm.close()\nexcept penstock.MQError:\n    pass\n"
        "for n, file in enumerate(files):\n    file.write(b'own'); file.close()\n"
        "    assert (pathlib.Path(home) / f'mine{n}').read_bytes() == b'own'\n"
        "os._exit(0)"
    )
    run_python(WORKER + "put()\n" + again + close, home)


def test_a_deleted_region_is_refused_while_its_process_lives_and_then_rebuilt(home: Path) -> None:
    with attached(home) as child:
        region = next(
            line.partition("=")[2]
            for line in (home / "QM1" / "lock").read_text("utf-8", "replace").splitlines()
            if line.startswith("region=")
        )
        Path("/dev/shm", region).unlink()
        with pytest.raises(penstock.MQError, match=f"process {child.pid} is attached") as refused:
            penstock.connect("QM1", home)
        assert refused.value.reason == 2012
        child.kill()
        child.wait(SECONDS)
    assert depth(home) == 0


def test_another_pid_namespace_is_refused_while_somebody_lives_and_served_after(home: Path) -> None:
    prefix = ("unshare", "--pid", "--fork", "--kill-child")
    if subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode != 0:
        not_possible_here("a PID namespace")
    with attached(home) as child:
        with python(LIVE, home, prefix=prefix) as stranger:
            _, errors = stranger.communicate(timeout=SECONDS)
            assert "2012" in errors and str(child.pid) in errors
        say(child)
        assert child.wait(SECONDS) == 0
    assert run_python(LIVE, home, prefix=prefix) == "0\n"
    assert run_python(LIVE, home, prefix=prefix) == "0\n"  # one container after another
    assert depth(home) == 0


def test_a_container_that_was_killed_is_followed_by_another_one(home: Path) -> None:
    prefix = ("unshare", "--pid", "--fork", "--kill-child")
    if subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode != 0:
        not_possible_here("a PID namespace")
    with python(ATTACH, home, prefix=prefix) as container:
        hear(container, "ready")
        container.kill()
        container.wait(SECONDS)
    eventually(lambda: run_python(LIVE, home, prefix=prefix) == "0\n")


def test_a_pid_that_another_process_has_by_now_keeps_nobody_out(home: Path) -> None:
    """In a PID namespace of its own, where the next pid can be chosen."""
    program = (
        "import os, subprocess, sys, pathlib\n"
        "home, worker, live = sys.argv[1:]\n"
        "child = subprocess.Popen([sys.executable, '-c', worker, home], stdin=subprocess.PIPE,\n"
        "                         stdout=subprocess.PIPE, text=True)\n"
        "assert child.stdout.readline() == 'ready\\n'\n"
        "threads = sorted(map(int, os.listdir(f'/proc/{child.pid}/task')))\n"
        "child.kill(); child.wait()\n"
        "pathlib.Path('/proc/sys/kernel/ns_last_pid').write_text(str(child.pid - 1))\n"
        "code = 'import threading, time; [threading.Thread(target=time.sleep, args=(60,),'\\\n"
        "    ' daemon=True).start() for _ in range(9)]; print(1, flush=True); time.sleep(60)'\n"
        "again = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE)\n"
        "assert again.pid == child.pid, (again.pid, child.pid)\n"
        "again.stdout.readline()\n"
        "assert threads == sorted(map(int, os.listdir(f'/proc/{again.pid}/task')))[:len(threads)]\n"
        "done = subprocess.run([sys.executable, '-c', live, home],\n"
        "                      capture_output=True, text=True)\n"
        "again.kill(); again.wait()\n"
        "print(done.stdout.strip() or done.stderr)\n"
    )
    prefix = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    if subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode != 0:
        not_possible_here("a PID namespace with its own /proc")
    assert run_python(program, home, ATTACH, LIVE, prefix=prefix).strip() == "0"


def test_a_record_of_another_boot_is_discarded(home: Path) -> None:
    with attached(home) as child:
        child.kill()
        child.wait(SECONDS)
    lock = home / "QM1" / "lock"
    text = bytearray(lock.read_bytes())
    at = text.index(b"boot=") + len(b"boot=")
    text[at : at + 32] = b"0123456789abcdef" * 2
    lock.write_bytes(bytes(text))
    assert depth(home) == 0


@pytest.mark.parametrize("during", ["connect", "close"])
def test_a_fork_while_another_thread_connects_or_closes_leaves_a_child_that_connects(
    home: Path, during: str
) -> None:
    program = (
        "import os, sys, threading, penstock\n"
        "home = sys.argv[1]\n"
        "stop = threading.Event()\n"
        "def work():\n"
        "    while not stop.is_set():\n"
        "        penstock.connect('QM1', home).close()\n"
        "keep = penstock.connect('QM1', home)  # and everything is imported: a fork during an\n"
        "if sys.argv[2] == 'close':             # import leaves the child Python's own locks\n"
        "    keep.close()\n"
        "threads = [threading.Thread(target=work) for _ in range(3)]\n"
        "[t.start() for t in threads]\n"
        "bad = 0\n"
        "for _ in range(25):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        with penstock.connect('QM1', home) as qm:\n"
        "            os._exit(0 if qm.status() else 1)\n"
        "    bad += os.waitpid(pid, 0)[1] != 0\n"
        "stop.set()\n"
        "[t.join() for t in threads]\n"
        "print(bad)\n"
    )
    assert run_python(program, home, during) == "0\n"


def test_a_delete_waits_for_a_connect_under_way_and_then_names_it(home: Path) -> None:
    program = (
        "import sys, penstock\n"
        "while True:\n"
        "    try:\n"
        "        with penstock.connect('QM1', sys.argv[1]) as qm:\n"
        "            qm.status()\n"
        "    except penstock.QueueManagerNameError:\n"
        "        break\n"
        "    except penstock.MQError as error:\n"
        "        if error.reason not in (2012, 2058, 2059, 2101, 2195): raise\n"
        "print('gone')\n"
    )
    with python(program, home) as child:
        outcomes = set()
        until = time.monotonic() + SECONDS
        while "deleted" not in outcomes and time.monotonic() < until:
            try:
                penstock.delete("QM1", home)
                outcomes.add("deleted")
            except penstock.ObjectInUse as error:
                assert str(child.pid) in str(error)
                outcomes.add("in use")
        assert "deleted" in outcomes
        hear(child, "gone")
    assert not (home / "QM1").exists()


def test_threads_of_one_process_that_connect_and_close_leave_no_thread_behind(home: Path) -> None:
    def work() -> None:
        for _ in range(20):
            penstock.connect("QM1", home).close()

    before = len(os.listdir("/proc/self/task"))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    eventually(lambda: len(os.listdir("/proc/self/task")) == before)


def test_a_copy_of_a_killed_queue_managers_directory_does_not_touch_the_original(
    home: Path,
) -> None:
    with attached(home):
        (home / "other").mkdir(mode=0o700)
        copy_at_work(home / "QM1", home / "other" / "QM1")
        (home / "other" / "QM1").chmod(0o700)
        assert int(run_python(LIVE, home / "other")) == 0  # a queue manager of its own
        assert depth(home) == 1

"""Temporary queue managers: complete while they are there, and gone without a trace."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

import penstock
from penstock.client import temporary_manager

Run = Callable[..., "subprocess.CompletedProcess[str]"]
HOLDER = """
import sys, penstock
made = penstock.temporary()
with made as qm:
    print(qm.path, flush=True)
    sys.stdin.read()
    if sys.argv[1:] == ["keep"]:
        made.discard = False
"""


@contextlib.contextmanager
def program(text: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A program that runs beside the test; killed when it has not ended by itself."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", text, *arguments]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as started:
        try:
            yield started
        finally:
            if started.poll() is None:
                started.kill()


def line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline().strip()


def region(path: Path) -> Path:
    """The file of the shared memory, which the lock file names."""
    found = re.search(rb"penstock-[0-9a-f]{16}-[0-9a-f]{16}", (path / "lock").read_bytes())
    assert found is not None
    return Path("/dev/shm", found[0].decode())


def test_a_temporary_queue_manager_is_complete_and_leaves_nothing() -> None:
    with penstock.temporary() as qm, qm.queue("ORDERS") as orders:
        assert (qm.name, qm.path.parent.parent) == ("TEMPORARY", Path("/dev/shm"))
        assert qm.path.parent.stat().st_mode & 0o777 == 0o700
        memory = region(qm.path)
        assert memory.exists()
        with qm.transaction():
            orders.put("3 bolts", persistent=True)
        orders.put("lost with it", persistent=False)
        assert len(orders) == 2
        qm.check()
    assert qm.closed
    assert not memory.exists() and not qm.path.parent.exists()


def test_an_exception_leaves_nothing_either() -> None:
    with pytest.raises(LookupError), penstock.temporary("T.1", max_message_length=40000) as qm:
        memory = region(qm.path)
        assert qm.path.name == "T!1"
        with qm.queue("Q", maxmsgl=40000) as q, pytest.raises(penstock.MessageTooBig):
            q.put(bytes(40001))
        raise LookupError
    assert not memory.exists() and not qm.path.parent.exists()


def test_its_small_tables_refuse_nothing() -> None:
    with penstock.temporary() as qm:
        queues = [qm.queue(f"Q.{number}", maxmsgl=10_000_000) for number in range(300)]
        for number, queue in enumerate(queues):
            queue.put(f"{number}", persistent=number % 2 == 0)
        large = bytes(range(256)) * 20000  # 5 MB: more than a segment of its journal
        for persistent in (True, False):
            queues[0].put(large, persistent=persistent)
        queues[1].put_batch([b"x" * 100] * 20000)
        assert [queue.get().text for queue in queues] == [str(n) for n in range(300)]
        assert [queues[0].get().data for _ in range(2)] == [large, large]
        assert len(queues[1]) == 20000
        qm.check()


def test_processes_that_are_connected_are_stopped_and_told() -> None:
    child = """
import sys, penstock
with penstock.connect("TEMPORARY", sys.argv[1]) as qm, qm.open("Q") as queue:
    print("connected", flush=True)
    try:
        queue.get(wait=None)
    except penstock.MQError as error:
        print(error.reason, flush=True)
"""
    with contextlib.ExitStack() as stack:
        with penstock.temporary() as qm:
            qm.queue("Q").close()
            started = stack.enter_context(program(child, str(qm.path.parent)))
            assert line(started.stdout) == "connected"
        assert line(started.stdout) == "2009"
        assert started.wait() == 0
    assert not qm.path.parent.exists()


@pytest.mark.parametrize("way", ["close", "end", "delete"])
def test_the_block_may_end_it_itself(way: str) -> None:
    with penstock.temporary() as qm:
        memory = region(qm.path)
        if way == "end":
            qm.end("immediate")
        else:
            qm.close()
        if way == "delete":
            penstock.delete(qm.name, qm.path.parent)
    assert not memory.exists() and not qm.path.parent.exists()


def test_one_that_is_not_discarded_keeps_what_was_committed(tmp_path: Path) -> None:
    with penstock.temporary("KEPT", home=tmp_path, discard=False) as qm:
        queue = qm.queue("Q")
        queue.put("committed")
        queue.put("not committed", syncpoint=True)
        memory = region(qm.path)
    assert not memory.exists()
    with penstock.connect("KEPT", qm.path.parent) as qm, qm.open("Q") as queue:
        assert [message.text for message in queue] == ["committed"]


def test_whether_it_is_discarded_may_be_decided_in_the_block(tmp_path: Path) -> None:
    made = penstock.temporary(home=tmp_path)
    with made as qm:
        made.discard = False
    assert penstock.managers(qm.path.parent) == ["TEMPORARY"]
    with pytest.raises(RuntimeError, match="for one block"):
        made.__enter__()


def test_wrong_arguments_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(penstock.QueueManagerNameError, match="'A-B'"):
        penstock.temporary("A-B", home=tmp_path)
    with pytest.raises(penstock.InvalidType, match="journal_limit"):
        penstock.temporary(home=tmp_path, journal_limits=1)
    with pytest.raises(penstock.InvalidValue, match="segment_size"):
        penstock.temporary(home=tmp_path, segment_size=5000)
    assert list(tmp_path.iterdir()) == []
    with (
        pytest.raises(FileNotFoundError, match="absent"),
        penstock.temporary(home=tmp_path / "absent"),
    ):
        pass


def test_one_that_cannot_start_leaves_no_folder(tmp_path: Path) -> None:
    made = penstock.temporary(home=tmp_path, region_dir=str(tmp_path))
    with pytest.raises(penstock.WrongEnvironment, match="tmpfs"), made:
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_that_leaves_the_block_ends_nothing(run_python: Run) -> None:
    ended = run_python(
        """
import os, sys, penstock, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # fork beside the core's threads
with penstock.temporary() as qm:
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        with qm.queue("Q") as queue:
            queue.put("still there")
            print(queue.get().text)
if not child:
    os._exit(0)
print(qm.path.exists())
"""
    )
    assert ended.stdout == "still there\nFalse\n", ended.stderr


def test_what_a_killed_process_left_is_removed_by_the_next_one_and_no_other(
    run_python: Run,
) -> None:
    folders = []
    with program(HOLDER) as living, program(HOLDER) as killed, program(HOLDER, "keep") as kept:
        for started in (living, killed, kept):
            folders.append(Path(line(started.stdout)).parent)
        memory = region(folders[1] / "TEMPORARY")
        kept.communicate("")
        assert memory.exists() and all(folder.exists() for folder in folders)
        killed.kill()
        killed.wait()
        ended = run_python("import penstock\nwith penstock.temporary(): print('made')")
        assert ended.stdout == "made\n", ended.stderr
        assert [folder.exists() for folder in folders] == [True, False, True]
        assert not memory.exists()
        living.communicate("")
        assert living.returncode == 0
    shutil.rmtree(folders[2])
    assert not folders[0].exists()


def test_importing_penstock_does_not_load_what_makes_temporary_ones(run_python: Run) -> None:
    ended = run_python(
        "import sys, penstock\n"
        "print(sorted({'fcntl', 'tempfile', 'shutil', 'penstock.client.temporary_manager'}"
        " & set(sys.modules)))"
    )
    assert ended.stdout == "[]\n", ended.stderr


def test_another_connection_of_the_process_does_not_keep_it(tmp_path: Path) -> None:
    for _ in range(40):
        with penstock.temporary(home=tmp_path) as qm:
            other = penstock.connect(qm.name, qm.path.parent)
            with other.queue("Q") as queue:
                queue.put(b"x")
        assert not any(tmp_path.iterdir())
        other.close()


def test_an_error_of_the_block_is_not_replaced_by_that_of_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise penstock.ObjectInUse(2042, "somebody stays")

    monkeypatch.setattr(temporary_manager, "remove_manager", refuse)
    monkeypatch.setattr(temporary_manager, "_LEAVE_SECONDS", 0.0)
    made = penstock.temporary(home=tmp_path)
    with pytest.warns(ResourceWarning, match="stays"), pytest.raises(KeyError), made:
        raise KeyError("of the block")
    made = penstock.temporary(home=tmp_path)
    with pytest.raises(penstock.ObjectInUse, match="somebody stays"), made:
        pass


def test_a_second_end_of_the_block_closes_nothing(tmp_path: Path) -> None:
    made = penstock.temporary(home=tmp_path)
    made.__enter__()
    made.__exit__(None, None, None)
    with open(tmp_path / "mine", "w") as mine:  # it has the number of the descriptor that was free
        made.__exit__(None, None, None)
        mine.write("x")

"""``penstock start``: a process that stays attached, so that non-persistent messages outlive
applications.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import NoReturn

import click

from .common import PID_FILE, directory_of, fail, manager_argument
from .terminal import echo

LOOK_SECONDS = 0.5  # between two checks for the end of the queue manager
_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


@click.command("start")
@manager_argument
def command(qm: str, home: Path | None) -> None:
    """Start QM and keep it running until `penstock end`: a keeper process stays attached.

    Returns when the keeper is attached. Its process id is in keeper.pid in QM's directory.
    """
    directory = directory_of(qm, home)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _become_keeper(qm, home.resolve() if home else None, directory.resolve(), writer)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read().decode()
    word, _, text = answer.partition(" ")
    if word != "attached":
        fail(text or "the keeper process ended before it was attached")
    echo(f"queue manager {qm} runs; {text}")


def _become_keeper(qm: str, home: Path | None, directory: Path, writer: int) -> NoReturn:
    """In the child: leaves session and terminal by a second fork, before it connects."""
    status = 1
    try:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            nowhere = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(nowhere, fd)
            os.close(nowhere)
            _keep(qm, home, directory, writer)
        status = 0
    finally:
        os._exit(status)


def _keep(qm: str, home: Path | None, directory: Path, writer: int) -> None:
    """The keeper: attaches, reports it, waits until the queue manager ends, disconnects."""
    import penstock

    def answer(text: str) -> None:
        os.write(writer, text.encode())
        os.close(writer)

    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # inherited by the helper thread
    try:
        manager = penstock.connect(qm, home=home, keeper=True)
    except Exception as error:
        answer(f"refused {error}")
        return
    with manager:
        others = [p.pid for p in manager.process_list() if p.keeper and p.pid != os.getpid()]
        if others:
            answer(f"attached it was kept already, by process {others[0]}")
            return
        pid_file = directory / PID_FILE
        _write_pid(pid_file)
        answer(f"attached process {os.getpid()} keeps it")
        try:
            _wait(manager)
        finally:
            pid_file.unlink(missing_ok=True)


def _write_pid(path: Path) -> None:
    """Writes this process's id into a new file; what lay there is removed, a link not followed."""
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(fd, "w", encoding="ascii") as file:
        os.fchmod(fd, 0o600 | os.stat(path.parent).st_mode & 0o060)  # a group's, as all files
        file.write(f"{os.getpid()}\n")


def _wait(manager: object) -> None:
    """Returns on a signal, or when the queue manager is ending."""
    import penstock

    assert isinstance(manager, penstock.QueueManager)
    while signal.sigtimedwait(_SIGNALS, LOOK_SECONDS) is None:
        try:
            manager.make_reports()
            status = manager.status()
        except penstock.MQError:
            return
        if status.quiescing or status.stopped:
            return

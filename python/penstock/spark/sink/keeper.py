"""Keeps a queue manager running from the first task of a write to its end.

Non-persistent messages of a prepared unit are lost when the queue manager ends, which it does when
its last process disconnects: between two tasks of a write, or before its commit, nobody may be
connected. A task that has prepared such messages therefore starts this program before it
disconnects. One such *keeper* serves all tasks of a batch; it stays connected until the driver has
committed or dropped the batch, the JVM above the task has ended, or the queue manager is ending.

Keeper and driver meet at an abstract Unix socket, whose name is a hash of queue manager, sink and
version. Its kernel object ends with the process, so nothing is left over. What a keeper could not
prevent (it was killed, the driver is in another network namespace) is no silent loss: the commit
counts the messages (writer.py).
"""

from __future__ import annotations

import errno
import hashlib
import os
import select
import socket
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import penstock

from ..base import host
from ..base.errors import SourceError

if TYPE_CHECKING:
    from penstock import QueueManager

__all__ = ["keep", "release"]

_CONNECTED = b"connected\n"
_LEAVE_SECONDS = 10.0  # of a keeper, at most; nothing depends on its end
_LOOK_SECONDS = 0.5  # between two looks whether the queue manager is ending


def keep(qm: QueueManager, home: str | None, sink: str, version: int) -> None:
    """Returns when a keeper is connected.

    Args:
        qm: The queue manager; this process stays connected meanwhile.
        home: The option.
        sink, version: Of the batch.

    Raises:
        SourceError: The program did not start; its standard error says why.
    """
    address = _address(qm, sink, version)
    command = [
        sys.executable,
        "-m",
        __name__,
        qm.name,
        home or "",
        address,
        str(host.jvm() or os.getpid()),
    ]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    ) as program:
        assert program.stdout is not None
        said = program.stdout.read()
    if said != _CONNECTED:
        raise SourceError(
            f"queue manager {qm.name}: no process could be started that keeps it running until "
            "the commit, for messages that are not persistent; standard error has the reason"
        )


def release(qm: QueueManager, sink: str, version: int) -> None:
    """Ends the keeper of a batch, if there is one, and waits until it has disconnected. This
    process stays connected meanwhile.
    """
    with socket.socket(socket.AF_UNIX) as asking, suppress(ConnectionError, TimeoutError):
        asking.settimeout(_LEAVE_SECONDS)
        asking.connect(f"\0{_address(qm, sink, version)}")
        asking.recv(1)  # it closes its end when it has disconnected


def _address(qm: QueueManager, sink: str, version: int) -> str:
    text = f"{qm.path.resolve()}\0{sink}\0{version}"
    return f"penstock-spark-{hashlib.sha256(text.encode()).hexdigest()}"


def main(manager: str, home: str, address: str, above: str) -> None:
    """The program. It continues in a child, so that the task need not wait for its end."""
    if os.fork():
        os._exit(0)
    jvm = os.pidfd_open(int(above))  # readable when that process has ended
    qm = penstock.connect(manager, home or None)
    with socket.socket(socket.AF_UNIX) as listening:
        is_first = _listens(listening, address)
        if is_first:
            os.write(1, _CONNECTED)
            _close_standard_files()
        while is_first and not _is_ending(qm):
            if select.select([listening.fileno(), jvm], [], [], _LOOK_SECONDS)[0]:
                break
        with suppress(penstock.MQError):  # then the next restart reads the journal instead
            qm.detach(commit=False)
    if not is_first:
        os.write(1, _CONNECTED)  # the other one is


def _listens(listening: socket.socket, address: str) -> bool:
    """Whether the socket has got the address: another keeper of the batch may have it."""
    try:
        listening.bind(f"\0{address}")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    listening.listen()
    return True


def _is_ending(qm: QueueManager) -> bool:
    """Whether all processes are to leave the queue manager."""
    try:
        status = qm.status()
    except penstock.MQError:
        return True
    return bool(status.quiescing or status.stopped)


def _close_standard_files() -> None:
    """Lets go of the task's pipe and of the JVM's standard error, which it reads to the end."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):
        os.dup2(nowhere, number)
    os.close(nowhere)


if __name__ == "__main__":
    main(*sys.argv[1:])

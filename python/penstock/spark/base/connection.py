"""The queue manager as the data source uses it: connections that are always closed, and errors in
one sentence.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import penstock
from penstock.constants import ReasonCode

from . import acting, host, worker
from .errors import CannotServe, SourceError
from .options import Options

if TYPE_CHECKING:
    from penstock import Queue, QueueManager

__all__ = ["connect", "connected", "leave", "open_queue", "reported", "served"]

_NAME_LENGTH = 28  # of PutApplName
_ELSEWHERE = (  # reasons of a process that is not where the queue manager is
    ReasonCode.ENVIRONMENT_ERROR,
    ReasonCode.NOT_AUTHORIZED,
    ReasonCode.Q_MGR_NAME_ERROR,
)


@contextmanager
def reported(options: Options, queue: str | None = None) -> Iterator[None]:
    """Turns the engine's errors into one sentence that names queue manager and queue."""
    try:
        yield
    except penstock.MQError as error:
        where = f"queue manager {options['queueManager']}"
        if queue is not None:
            where += f", queue {queue}"
        raise SourceError(f"{where}: {error}") from error


def connect(options: Options) -> QueueManager:
    """A connection; messages that it puts name the Spark application. Raises SourceError."""
    worker.keep_imports()
    with reported(options):
        qm = penstock.connect(options["queueManager"], options["home"], keep_mapping=True)
    name = acting.application()
    if name is not None:
        qm.name_program(name.encode("ascii", "replace").decode("ascii")[:_NAME_LENGTH])
    return qm


@contextmanager
def connected(options: Options) -> Iterator[QueueManager]:
    """A connection that is closed at the end; what it had begun and not ended is backed out.

    Raises SourceError for errors of the engine in the block, too.
    """
    with _closed_at_end(connect(options), options) as qm:
        yield qm


@contextmanager
def served(options: Options, where: host.Host) -> Iterator[QueueManager]:
    """connected() for a task.

    Args:
        options: Of the use.
        where: The driver's machine.

    Raises:
        WrongHost: The task runs on another machine.
        CannotServe: It runs there, but cannot attach to the queue manager.
    """
    where.check(options["queueManager"])
    try:
        qm = connect(options)
    except SourceError as error:
        cause = error.__cause__
        if not isinstance(cause, penstock.MQError) or cause.reason not in _ELSEWHERE:
            raise
        raise CannotServe(
            f"{error}; this is a task on {host.here().name}, as user {os.geteuid()}: executors "
            "need the PID namespace of the queue manager's processes, its home and region "
            "directory as these have them, and the right to write there"
        ) from cause
    with _closed_at_end(qm, options):
        yield qm


@contextmanager
def _closed_at_end(qm: QueueManager, options: Options) -> Iterator[QueueManager]:
    try:
        with reported(options, options["queue"]):
            yield qm
    except BaseException:
        with suppress(penstock.MQError):  # report the first error
            qm.detach(commit=False)
        raise
    with reported(options):
        leave(qm)


def leave(qm: QueueManager) -> None:
    """Disconnects; unfinished work is backed out.

    The last process of a queue manager writes a final checkpoint. It cannot when the disk is full;
    then the queue manager's log has an entry, and the next start reads the journal instead. That is
    no error here: earlier work is durable, and a committed batch must not be reported as failed.
    """
    with suppress(penstock.StorageMediumFull):
        qm.detach(commit=False)


def open_queue(qm: QueueManager, name: str, use: str) -> Queue:
    """Opens a queue that the option names.

    Args:
        qm: The connection.
        name: Of the queue.
        use: "browse", "input" or "output".

    Raises:
        MQError: There is none, or it cannot be used so.
    """
    return qm.open(
        name, input=use == "input", browse=use == "browse", output=use == "output"
    )  # fmt: skip

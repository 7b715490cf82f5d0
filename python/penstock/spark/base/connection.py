"""The queue manager as the data source uses it: connections that are always closed, and errors in
one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import penstock

from .errors import SourceError
from .options import Options

if TYPE_CHECKING:
    from penstock import Queue, QueueManager

__all__ = ["connect", "connected", "leave", "open_queue", "told"]


@contextmanager
def told(options: Options, queue: str | None = None) -> Iterator[None]:
    """Turns the engine's errors into one sentence that names queue manager and queue."""
    try:
        yield
    except penstock.MQError as error:
        where = f"queue manager {options['queueManager']}"
        if queue is not None:
            where += f", queue {queue}"
        raise SourceError(f"{where}: {error}") from error


def connect(options: Options) -> QueueManager:
    """A connection. Raises SourceError."""
    with told(options):
        return penstock.connect(options["queueManager"], options["home"], keep_mapping=True)


@contextmanager
def connected(options: Options) -> Iterator[QueueManager]:
    """A connection that is closed at the end; what it had begun and not ended is backed out.

    Raises SourceError for errors of the engine in the block, too.
    """
    qm = connect(options)
    try:
        with told(options, options["queue"]):
            yield qm
    except BaseException:
        with suppress(penstock.MQError):  # the first error is the one to tell
            qm.detach(commit=False)
        raise
    with told(options):
        leave(qm)


def leave(qm: QueueManager) -> None:
    """Disconnects; what was begun and not ended is backed out.

    The last process of a queue manager writes its end. Where the disk is full it cannot; the queue
    manager's log says so, and the next start reads the journal instead. What was done before is
    done, so that is no error here: a batch that was committed must not be said to have failed.
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

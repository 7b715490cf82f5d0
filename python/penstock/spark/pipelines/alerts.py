"""The consumer of alerts: a plain Python service, without Spark.

It takes alerts as they come and appends each as one line to a file, exactly once: lines are on disk
before the unit of work commits, and a service that was killed in between knows at its next start,
by the last lines' identifiers, which of the messages that come again it has written already.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import penstock

__all__ = ["ids_in", "serve"]

UNIT = 100  # alerts of a unit of work at most
LOOK_SECONDS = 1.0  # how often a waiting service looks whether it is to stop


def serve(
    qm: penstock.QueueManager,
    queue: str,
    output: Path,
    stop: threading.Event,
    *,
    leave_when_empty: bool = False,
) -> int:
    """Takes alerts until it is stopped.

    Args:
        qm: A connection.
        queue: Created when absent.
        output: One JSON object a line: the alert's fields and ``msg_id``. Created when absent; an
            incomplete last line is removed.
        stop: Set by a signal handler or another thread; checked every second.
        leave_when_empty: Return when there is nothing to take.

    Returns:
        Lines written.

    Raises:
        MQError, OSError: Messages that were taken and not written are on the queue again.
    """
    written = 0
    with qm.queue(queue) as alerts, output.open("a+b") as file:
        known = _last_ids(file)
        while not stop.is_set():
            with qm.transaction():
                taken = list(_take(alerts))
                fresh = [message for message in taken if message.msg_id.hex() not in known]
                for message in fresh:
                    file.write(_line(message))
                file.flush()
                os.fsync(file.fileno())
            known = {message.msg_id.hex() for message in taken} or known
            written += len(fresh)
            if leave_when_empty and not taken:
                break
    return written


def _take(alerts: penstock.Queue) -> Iterator[penstock.Message]:
    """The messages on the queue, after a wait for the first."""
    wait = LOOK_SECONDS
    for _ in range(UNIT):
        try:
            yield alerts.get(wait=wait)
        except penstock.NoMessageAvailable:
            return
        wait = 0


def _line(message: penstock.Message) -> bytes:
    """The alert as a line. A body that is no JSON object becomes the field ``text``."""
    text = message.data.decode("utf-8", "replace")
    try:
        fields = json.loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        fields = {"text": text}
    fields["msg_id"] = message.msg_id.hex()
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _last_ids(file: BinaryIO) -> set[str]:
    """Identifiers of the last unit's lines; cuts off a line that has no end."""
    file.seek(0)
    last: list[bytes] = []
    end = 0
    for line in file:
        if not line.endswith(b"\n"):
            file.truncate(end)
            break
        end += len(line)
        last = [*last[1 - UNIT :], line]
    file.seek(0, os.SEEK_END)
    return {json.loads(line)["msg_id"] for line in last}


def ids_in(output: Path) -> list[str]:
    """Identifiers of the alerts that are written, in their order; a line without an end is none."""
    try:
        lines = output.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    return [json.loads(line)["msg_id"] for line in lines[:-1]]

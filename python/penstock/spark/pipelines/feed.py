"""Log files into a queue, each line once, the most severe lines with the highest priority.

The position in each file is a message, too: on a second queue, replaced in the same unit of work as
the lines that were put. So a killed feeder continues at its position, without losing or repeating a
line, and a feeder that runs again puts only lines that were added to the files.

Only one feeder at a time works on a queue; it has the positions open exclusively.

Files are identified by their resolved paths. A file that is shorter than its position has been
replaced and is read from its beginning. Blank lines are skipped. A last line without an end is
taken as it is; text that is appended to it later is another line. A line that is longer than a
message can be (MAXMSGL of the queue and of the queue manager) stops the feeder before it; nothing
is truncated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import penstock

from .formats import FORMATS, Format, severity_of

__all__ = ["POSITIONS", "Fed", "LineTooLong", "feed"]

POSITIONS = ".POSITIONS"  # ending of the queue that holds how far each file was read
UNIT_LINES = 500  # of a unit of work: large enough to make a flush cheap a line
UNIT_BYTES = 4 << 20  # ... but no more bytes than this, and one line


@dataclass(frozen=True)
class Fed:
    """The result of ``feed``: messages put, their bytes, files read."""

    messages: int
    bytes: int
    files: int


class LineTooLong(ValueError):
    """A line that is too long for a message; the text names its position."""


def feed(
    qm: penstock.QueueManager,
    queue: str,
    files: Iterable[str | Path],
    formats: Sequence[Format] = FORMATS,
) -> Fed:
    """Puts every line of the files that was not put yet, persistent, in units of work.

    Both queues are created when absent.

    Args:
        qm: A connection; its current thread must have no open unit of work.
        queue: Name of the queue for the lines, at most 38 characters.
        files: Their lines end with a newline; a carriage return before it is left in the message.
        formats: Of the lines, for their levels.

    Raises:
        ObjectInUse: 2042: another feeder works on this queue.
        LineTooLong: The lines before it in its file were put.
        MQError: From put and get. Committed lines stay.
        OSError: From open and read.
    """
    messages = size = looked_at = 0
    qm.queue(queue + POSITIONS).close()
    positions = qm.open(queue + POSITIONS, input=True, exclusive=True)
    with positions, qm.queue(queue) as lines:
        most = _longest(qm, queue)
        for file in files:
            looked_at += 1
            path = Path(file).resolve()
            key = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).digest()[:24]
            with path.open("rb") as opened:
                opened.seek(_position(positions, key, path))
                for unit in _units(opened, most):
                    levels = [severity_of(line, formats) for line in unit]
                    _put(qm, lines, positions, key, path, unit, levels, opened.tell())
                    messages += len(unit)
                    size += sum(map(len, unit))
    return Fed(messages, size, looked_at)


def _position(positions: penstock.Queue, key: bytes, path: Path) -> int:
    """The position where reading continues, in bytes from the beginning of the file."""
    for message in positions.browse(correl_id=key):
        offset = int(json.loads(message.data)["offset"])
        return offset if offset <= path.stat().st_size else 0
    return 0


def _longest(qm: penstock.QueueManager, queue: str) -> int:
    """Bytes that a message on the queue may have."""
    objects = (*qm.display("QMGR"), *qm.display("QLOCAL", queue))
    return min(int(str(found["maxmsgl"])) for found in objects)


def _units(opened: BinaryIO, most: int) -> Iterator[list[bytes]]:
    """Yields the lines, without their ends and without blank ones, in lists for a unit of work.

    When a list is yielded the file is positioned behind its last line. Raises LineTooLong for a
    line of more than ``most`` bytes, after all before it were yielded.
    """
    unit: list[bytes] = []
    size = 0
    begin = opened.tell()
    while line := opened.readline(most + 2):  # no more of a long one than shows that it is
        text = line.rstrip(b"\n")
        if len(text) > most:
            opened.seek(begin)
            break
        begin += len(line)
        if text.strip():
            unit.append(text)
            size += len(text)
        if len(unit) == UNIT_LINES or size >= UNIT_BYTES:
            yield unit
            unit, size = [], 0
    if unit:
        yield unit
    if line:
        raise LineTooLong(
            f"{opened.name}: the line at byte {begin} is longer than a message may be "
            f"(MAXMSGL, {most} bytes)"
        )


def _put(
    qm: penstock.QueueManager,
    lines: penstock.Queue,
    positions: penstock.Queue,
    key: bytes,
    path: Path,
    unit: list[bytes],
    levels: list[int],
    offset: int,
) -> None:
    """Puts a unit of lines and the position behind it, or neither."""
    record = json.dumps({"file": str(path), "offset": offset})
    with qm.transaction():
        try:
            while True:
                positions.get(correl_id=key)
        except penstock.NoMessageAvailable:
            pass
        positions.put(record.encode("utf-8", "surrogateescape"), persistent=True, correl_id=key)
        lines.put_batch(unit, priority=levels, persistent=True)

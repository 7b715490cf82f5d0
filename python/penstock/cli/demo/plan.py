"""The demonstration's input: files, their lines, and the producer and priority of each line.

The plan is written as JSON once; every process reads that file.
"""

from __future__ import annotations

import json
import struct
import sysconfig
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from ..lines import PriorityMap

MANAGER = "DEMO"
LINES_QUEUE = "DEMO.LINES"
LEDGER_QUEUE = "DEMO.LEDGER"
PRODUCERS = 3
CONSUMERS = 2
DEFAULT_LINES = 60000  # of the standard library, about
SOURCE_RULES = "raise =9,except=8,class =7,def =6,import =5,return=4,if =3,#=1"
LOG_RULES = (
    "FATAL=9,CRIT=9,ERROR=8,error=8,Failed=7,WARN=6,warn=6,NOTICE=4,notice=4,INFO=3,info=3,DEBUG=1"
)

_TAG = struct.Struct("<4sIIIBxxxI")  # exactly a CorrelId: 24 bytes
_ENTRY = struct.Struct("<24sIiIQ")
_RECEIPT = struct.Struct("<4sBBHIIQ")


class Tag(NamedTuple):
    """The identity of the line in a message; stored in the CorrelId."""

    file: int  # index in the plan
    line: int  # 0, 1, ...
    position: int  # in the sequence of its producer
    producer: int
    crc: int  # of the line's bytes

    def pack(self) -> bytes:
        """The 24 bytes of the CorrelId."""
        return _TAG.pack(b"LINE", self.file, self.line, self.position, self.producer, self.crc)

    @classmethod
    def unpack(cls, data: bytes) -> Tag:
        """Raises ValueError for bytes that are no tag."""
        if len(data) != _TAG.size or data[:4] != b"LINE":
            raise ValueError(f"not a line's tag: {data.hex()}")
        return cls(*_TAG.unpack(data)[1:])


class Entry(NamedTuple):
    """One line as a consumer saw it."""

    tag: Tag
    crc: int  # of the bytes that arrived
    priority: int
    backout_count: int
    number: int  # message number

    @property
    def place(self) -> tuple[int, int]:
        """Sorts as messages are delivered: priority (9 is the highest placing), then arrival."""
        return -min(self.priority, 9), self.number


@dataclass(frozen=True, slots=True)
class Receipt:
    """The lines that one unit of work of a consumer took, in this order."""

    consumer: int
    drain: bool  # taken after the last put was committed
    run: int  # process id of the consumer: one run is one process
    sequence: int  # of the unit in that run
    entries: list[Entry]

    def pack(self) -> bytes:
        """The body of a message on the ledger."""
        head = _RECEIPT.pack(
            b"RCPT", self.consumer, self.drain, 0, self.run, self.sequence, len(self.entries)
        )
        return head + b"".join(_ENTRY.pack(e.tag.pack(), *e[1:]) for e in self.entries)

    @classmethod
    def unpack(cls, data: bytes) -> Receipt:
        """Raises ValueError for a body that is no receipt."""
        if data[:4] != b"RCPT":
            raise ValueError("not a receipt")
        _, consumer, drain, _, run, sequence, count = _RECEIPT.unpack_from(data)
        if len(data) != _RECEIPT.size + count * _ENTRY.size:
            raise ValueError(f"a receipt of {count} lines has {len(data)} bytes")
        entries = [
            Entry(Tag.unpack(tag), *rest)
            for tag, *rest in _ENTRY.iter_unpack(data[_RECEIPT.size :])
        ]
        return cls(consumer, bool(drain), run, sequence, entries)


def progress_queue(producer: int) -> str:
    """Name of the queue that holds a producer's position."""
    return f"DEMO.PROGRESS.{producer}"


def file_lines(path: str) -> list[bytes]:
    """The lines of a file without their newline; a last line without one counts."""
    data = Path(path).read_bytes()
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


@dataclass(frozen=True, slots=True)
class Plan:
    """Files, rule, size of a unit. Each producer has an equal share of consecutive lines."""

    home: str
    files: list[str]
    counts: list[int]  # lines of each file
    rules: str
    unit: int  # lines a unit of work

    def save(self, path: Path) -> None:
        """Writes the plan for the other processes."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Reads what save() wrote."""
        return cls(**json.loads(path.read_text()))

    @property
    def total(self) -> int:
        """Lines in all."""
        return sum(self.counts)

    @property
    def priorities(self) -> PriorityMap:
        """The rule, parsed."""
        return PriorityMap.parse(self.rules)

    def lines_of(self, producer: int) -> Iterator[tuple[Tag, bytes, int]]:
        """The producer's lines in the order in which it puts them: tag, bytes, priority."""
        rules = self.priorities
        first = self.total * producer // PRODUCERS
        end = self.total * (producer + 1) // PRODUCERS
        start = 0  # of the file, in all lines
        for number, (path, count) in enumerate(zip(self.files, self.counts, strict=True)):
            if start < end and start + count > first:
                lines = file_lines(path)
                for at in range(max(first - start, 0), min(end - start, count)):
                    line = lines[at]
                    tag = Tag(number, at, start + at - first, producer, zlib.crc32(line))
                    yield tag, line, rules.priority_of(line, 0) or 0
            start += count


def library_sources(lines: int) -> list[str]:
    """Source files of Python's standard library with about this many lines together."""
    folder = Path(sysconfig.get_path("stdlib"))
    chosen: list[str] = []
    total = 0
    for path in sorted(folder.glob("*.py")) + sorted(folder.glob("*/*.py")):
        if total >= lines:
            break
        if "site-packages" in path.parts:
            continue
        chosen.append(str(path))
        total += len(file_lines(str(path)))
    return chosen


def make_plan(home: str, files: list[str], rules: str | None, unit: int, lines: int) -> Plan:
    """Chooses the files and counts their lines.

    files: none means the standard library, about ``lines`` lines. Raises OSError, ValueError.
    """
    if rules is None:
        rules = LOG_RULES if files else SOURCE_RULES
    PriorityMap.parse(rules)
    chosen = [str(Path(f).resolve()) for f in files] or library_sources(lines)
    return Plan(home, chosen, [len(file_lines(path)) for path in chosen], rules, unit)

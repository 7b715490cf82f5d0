"""A part of the journal as driver, tasks and server send it to each other: numbers, never a path.

Which directory the numbers are about is known where the part is read: on the server its queue
manager's, in a task on the queue manager's host that of its option home.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import InputPartition

from penstock.journal.errors import DamagedFile
from penstock.journal.segment_files import SegmentFile, listed_elsewhere

from ..base.errors import SourceError
from ..base.host import Host
from ..source.journal_events import EventSlice
from ..source.journal_records import Segment

__all__ = ["JournalPart", "part_of"]

_EVENTS = ("start", "end", "since", "first", "durable_lsn")
_OF_FILE = ("number", "generation", "base_lsn", "size", "end_lsn")
_RECORDS = (*_OF_FILE, "start")
_MOST = 1 << 63


class JournalPart(InputPartition):
    """What one task reads.

    Attributes:
        kind: ``events`` of decided units of work, or ``records`` of one segment.
        numbers: Of the kind.
    """

    def __init__(self, kind: str, numbers: Mapping[str, Any]) -> None:
        """Raises ValueError, KeyError: the numbers are not those of the kind."""
        super().__init__(None)
        names = {"events": _EVENTS, "records": (*_RECORDS, "end", "closed")}[kind]
        self.kind = kind
        self.numbers = {name: numbers[name] for name in names}
        for name, value in self.numbers.items():
            if name == "closed":
                if not isinstance(value, bool):
                    raise ValueError(f"{name} is {value!r:.40}")
            elif (name, value) == ("end", None):
                continue
            elif type(value) is not int or not 0 <= value < _MOST:
                raise ValueError(f"{name} is {value!r:.40}")

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        return {"kind": self.kind, **self.numbers}

    def of(self, directory: Path, where: Host) -> InputPartition:
        """The part for a reader of this directory on this host. Raises SourceError."""
        own = self.numbers
        if self.kind == "events":
            return EventSlice(
                str(directory),
                own["start"],
                own["end"],
                since=own["since"],
                first=own["first"],
                durable_lsn=own["durable_lsn"],
                where=where,
            )
        segment = SegmentFile(
            **{name: own[name] for name in (*_OF_FILE, "closed")},
            directory=str(directory), qm_id=b"", restart_epoch=0, prev_end_lsn=0, archived=False,
            name="", first_us=None, last_us=None,
        )  # fmt: skip
        try:
            found = listed_elsewhere(segment)
        except DamagedFile as error:
            raise SourceError(f"journal of {directory.name}: {error}") from error
        return Segment(found, where, own["start"], own["end"])


def part_of(partition: Segment | EventSlice) -> JournalPart:
    """What a reader has planned."""
    if isinstance(partition, EventSlice):
        return JournalPart("events", {name: getattr(partition, name) for name in _EVENTS})
    own = {name: getattr(partition.segment, name) for name in (*_OF_FILE, "closed")}
    return JournalPart("records", {**own, "start": partition.start, "end": partition.end})

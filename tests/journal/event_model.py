"""Events of decided units of work by brute force: all records in memory, one after another.

The records come from the cffi reader. What is decided is kept in dictionaries, as FORMAT.md says,
section 10; nothing is looked for, sorted only at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from penstock.journal import layout as L
from penstock.journal.prepared import unit_ids_of
from penstock.journal.records import Record
from penstock.journal.scan import SegmentFile, list_segments
from penstock.journal.segment import read_segment, scan_segment

KINDS = (L.PUT, L.GET, L.EXPIRE, L.CLEAR, L.OBJECT_DELETE)


class Decided(NamedTuple):
    """An event in the order of its fields."""

    commit_lsn: int
    lsn: int
    kind: str
    queue: str
    number: int
    unit_id: int
    body: bytes | None


def records_of(segment: SegmentFile) -> Iterator[Record]:
    data = (Path(segment.directory) / segment.file).read_bytes()
    header = read_segment(segment.file, data[: L.PAGE], len(data), segment.qm_id)
    found = scan_segment(header, data, limit=segment.end_lsn - segment.base_lsn)
    assert found.problem is None
    yield from found.records()


class EventModel:
    """Reads everything there is."""

    def __init__(self, directory: Path, durable_lsn: int = 0) -> None:
        self.names: dict[tuple[int, int], str] = {}
        self.pieces: dict[tuple[int, int], list[bytes]] = {}
        self.units: dict[int, list[Record]] = {}
        self.prepared: set[int] = set()
        self.events: list[Decided] = []
        self.lsns: list[int] = []
        epoch = 0
        for segment in list_segments(directory, durable_lsn=durable_lsn):
            if segment.restart_epoch != epoch:
                self.units = {u: r for u, r in self.units.items() if u in self.prepared}
            epoch = segment.restart_epoch
            for record in records_of(segment):
                self.lsns.append(record.lsn)
                self._record(record)
        self.events.sort()

    def _record(self, record: Record) -> None:
        if record.type == L.OBJECT:
            name = L.overlay("ps_object_name", record.sections()[L.SEC_OBJECT_NAME])[0]
            if name.name_space == 1:
                self.names[record.object, record.object_gen] = L.text(name.name)
        elif record.type == L.CHUNK:
            piece = bytes(record.sections()[L.SEC_BODY])
            self.pieces.setdefault((record.unit_id, record.identity), []).append(piece)
        elif record.type == L.PREPARE:
            self.prepared.add(record.unit_id)
        elif record.type == L.COMMIT:
            self._decide(record.unit_id, record)
        elif record.type == L.COMMIT_PREPARED:
            for unit in unit_ids_of(record, record.sections()[L.SEC_UNITS]):
                self._decide(unit, record)
        elif record.type == L.BACKOUT:
            self.units.pop(record.unit_id, None)
        elif record.type == L.BACKOUT_PREPARED:
            for unit in unit_ids_of(record, record.sections()[L.SEC_UNITS]):
                self.units.pop(unit, None)
        elif record.type in KINDS:
            if record.unit_id == 0:
                self._event(record, record)
            else:
                self.units.setdefault(record.unit_id, []).append(record)
            if record.commits:
                self._decide(record.unit_id, record)

    def _decide(self, unit: int, by: Record) -> None:
        for record in self.units.pop(unit, ()):
            self._event(record, by)

    def _event(self, record: Record, by: Record) -> None:
        queue = self.names.get((record.object, record.object_gen), "")
        if record.type == L.OBJECT_DELETE and not queue:
            return
        body = self._body(record) if record.type == L.PUT else None
        self.events.append(
            Decided(
                by.lsn, record.lsn, record.type_name, queue, record.identity, record.unit_id, body
            )
        )

    def _body(self, record: Record) -> bytes:
        sections = record.sections()
        if L.SEC_CHUNKED in sections:
            return b"".join(self.pieces[record.unit_id, record.identity])
        return bytes(sections.get(L.SEC_BODY, b""))

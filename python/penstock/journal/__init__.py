"""The second, independent reader of a queue manager's files.

Written from ``csrc/FORMAT.md`` alone: cffi declarations (ABI mode) over bytes from a read-only
mapping, its own checksums, no use of the C core. It never writes, never takes a lock, and may run
beside a working queue manager. Where it and the core disagree, one of them is wrong.

    files = QueueManagerFiles("/path/to/QM1")
    for record in files.records(): ...
    state = files.replay()
    for message in state.messages("ORDERS"): message.descriptor(), message.body()
    for finding in files.verify(): ...
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Any

from ..admin.settings import Settings, SettingsError, parse_settings
from . import layout as L
from .checkpoint import Checkpoint
from .errors import DamagedFile, Finding, UnsupportedFile
from .files import DirectoryFiles, FileSet, MemoryFiles
from .messages import Message
from .prepared import PreparedRow, PreparedUnit, XidParts, unit_ids_of, xid_of
from .records import Descriptor, Record, attributes_of, counts_of, descriptor_of, dues_of, utc
from .replay import ObjectDefinition, Replay, State, Unit
from .segment import Batch, Checker, Scan, Segment
from .store import TornTail, View, read_view, steady, torn_tail
from .verify import Verifier

__all__ = [
    "Batch",
    "Checkpoint",
    "DamagedFile",
    "Descriptor",
    "DirectoryFiles",
    "FileSet",
    "Finding",
    "MemoryFiles",
    "Message",
    "ObjectDefinition",
    "PreparedRow",
    "PreparedUnit",
    "QueueManagerFiles",
    "Record",
    "Scan",
    "Segment",
    "State",
    "TornTail",
    "Unit",
    "UnsupportedFile",
    "XidParts",
    "describe_checkpoints",
    "describe_segments",
    "iter_record_dicts",
    "verify",
]

Path = str | os.PathLike[str]


class QueueManagerFiles:
    """The files of one queue manager.

    path: its directory, or a FileSet. All methods raise DamagedFile when the files violate
    FORMAT.md, except verify(), which returns findings.
    """

    def __init__(self, path: Path | FileSet) -> None:
        if isinstance(path, (str, os.PathLike)):
            self.files: FileSet = DirectoryFiles(path)
            if not os.path.isdir(path):
                raise DamagedFile(os.fspath(path), 0, "file", "is not a directory")
        else:
            self.files = path

    def settings(self) -> Settings | None:
        """The settings of qm.toml; None without the file. Raises DamagedFile."""
        try:
            data = self.files.read("qm.toml", 0, 1 << 20)
        except FileNotFoundError:
            return None
        try:
            return parse_settings(data.decode("utf-8"))
        except (SettingsError, UnicodeDecodeError) as error:
            raise DamagedFile("qm.toml", 0, "settings", str(error)) from error

    def qm_id(self) -> bytes | None:
        """The queue manager's id, 16 bytes; None without a qm.toml."""
        settings = self.settings()
        return None if settings is None else settings.qm_id

    def view(self) -> View:
        """A consistent view of names, headers and the newest checkpoint."""
        qm_id = self.qm_id()
        return steady(self.files, lambda: read_view(self.files, qm_id))

    @property
    def segments(self) -> list[Segment]:
        """Headers of the segments that count, oldest first."""
        return self.view().segments

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The newest checkpoint."""
        return self.view().checkpoint

    def scans(self, checker: Checker | None = None) -> Iterator[Scan]:
        """One segment after another, each copied and checked when it is reached."""
        qm_id = self.qm_id()
        done = 0
        while True:
            scan = steady(self.files, partial(self._scan_after, qm_id, done, checker))
            if scan is None:
                return
            done = scan.segment.number
            yield scan

    def _scan_after(self, qm_id: bytes | None, done: int, checker: Checker | None) -> Scan | None:
        view = read_view(self.files, qm_id)
        first = max(done + 1, view.segments[0].number)
        return next(view.scans(first, checker), None)

    def batches(self) -> Iterator[Batch]:
        """All valid flush batches, oldest first."""
        for scan in self.scans():
            yield from scan.batches

    def records(self) -> Iterator[Record]:
        """All records of all valid batches, oldest first."""
        for scan in self.scans():
            yield from scan.records()

    def replay(self) -> State:
        """The state that a restart would recover."""
        qm_id = self.qm_id()
        return steady(self.files, lambda: Replay(read_view(self.files, qm_id)).run())

    def torn_tail(self) -> TornTail | None:
        """The batch that the last crash tore, None when there is none."""
        newest = deque(self.scans(), maxlen=1)
        return torn_tail(newest[0]) if newest else None

    def verify(self) -> list[Finding]:
        """Checks everything; an empty list means that all is well."""
        result: list[Finding] = []

        def look() -> None:
            verifier = Verifier(self.files, self.qm_id())
            result[:] = verifier.run()
            if verifier.damaged():
                first = next(f for f in result if f.severity == "damage")
                raise DamagedFile(first.file, first.offset, first.rule, first.text)

        try:
            steady(self.files, look)
        except DamagedFile as error:
            if not result:
                result.append(Finding.of(error))
        return result


def describe_segments(path: Path | FileSet) -> list[dict[str, Any]]:
    """The segments of a queue manager, one dict each, JSON-able, with their use."""
    result = []
    for scan in QueueManagerFiles(path).scans():
        segment = scan.segment
        created = utc(segment.created_us)
        result.append(
            {
                "file": segment.file,
                "segment": segment.number,
                "generation": segment.generation,
                "restart_epoch": segment.restart_epoch,
                "base_lsn": segment.base_lsn,
                "end_lsn": scan.end_lsn,
                "size": segment.size,
                "used": scan.end,
                "prev_end_lsn": segment.prev_end_lsn,
                "created": None if created is None else created.isoformat(),
                "batches": len(scan.batches),
                "records": scan.records_count,
                "durable_lsn": max((b.durable_lsn for b in scan.batches), default=0),
            }
        )
    return result


def describe_checkpoints(path: Path | FileSet) -> list[dict[str, Any]]:
    """The newest checkpoint as a list of at most one dict, JSON-able."""
    checkpoint = QueueManagerFiles(path).checkpoint
    if checkpoint is None:
        return []
    created = utc(checkpoint.created_us)
    return [
        {
            "file": checkpoint.file,
            "begin_lsn": checkpoint.begin_lsn,
            "begin_segment": checkpoint.begin_segment,
            "end_lsn": checkpoint.end_lsn,
            "oldest_segment": checkpoint.oldest_segment,
            "restart_epoch": checkpoint.restart_epoch,
            "clean": checkpoint.clean,
            "created": None if created is None else created.isoformat(),
            "objects": len(checkpoint.objects),
            "messages": len(checkpoint.messages),
            "image_records": len(checkpoint.image),
        }
    ]


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _section_values(record: Record) -> dict[str, Any]:
    """The sections of a record as JSON-able data; the body only by its length."""
    sections = record.sections()
    values: dict[str, Any] = {}
    if L.SEC_DESCRIPTOR in sections:
        descriptor = descriptor_of(sections)
        values["descriptor"] = {
            name: _plain(getattr(descriptor, name)) for name in Descriptor.__slots__
        }
    if L.SEC_BODY in sections:
        values["body_length"] = len(sections[L.SEC_BODY])
    tags = (L.SEC_CHUNKED, L.SEC_CHUNK, L.SEC_COMMIT, L.SEC_IMAGE, L.SEC_PREPARED, L.SEC_TAKEN)
    for tag in tags:
        if tag in sections:
            struct = L.SECTION_STRUCTS[tag]
            at = L.overlay(struct, sections[tag])[0]
            names = [name for name, _, _ in L.fields(struct) if name != "zero"]
            values[L.SECTIONS[tag].lower()] = {name: int(getattr(at, name)) for name in names}
    if L.SEC_XID in sections:
        values["xid"] = str(xid_of(record, sections[L.SEC_XID]))
    if L.SEC_UNITS in sections:
        values["units"] = unit_ids_of(record, sections[L.SEC_UNITS])
    if L.SEC_COUNTS in sections:
        values["counts"] = [
            {"identity": identity, "object": slot, "count": count}
            for identity, slot, count in counts_of(sections)
        ]
    if L.SEC_DUE in sections:
        values["due"] = list(dues_of(sections))
    if L.SEC_OBJECT_NAME in sections:
        at = L.overlay("ps_object_name", sections[L.SEC_OBJECT_NAME])[0]
        values["name"] = L.text(at.name)
        values["object_type"] = int(at.type)
        values["name_space"] = int(at.name_space)
    if L.SEC_OBJECT_ATTRS in sections:
        attributes = attributes_of(record, sections[L.SEC_OBJECT_ATTRS])
        values["attributes"] = {str(selector): value for selector, value in attributes.items()}
    return values


def record_dict(record: Record) -> dict[str, Any]:
    """One record as JSON-able data. Raises DamagedFile."""
    result: dict[str, Any] = {
        "lsn": record.lsn,
        "file": record.file,
        "offset": record.offset,
        "length": record.length,
        "type": record.type_name,
        "commits": record.commits,
        "unit": record.unit_id,
        "object": record.object,
        "object_gen": record.object_gen,
        "identity": record.identity,
        "crc": f"{record.crc:08x}",
    }
    if record.known:
        result.update(_section_values(record))
    return result


def iter_record_dicts(path: Path | FileSet) -> Iterator[dict[str, Any]]:
    """All records, oldest first, as JSON-able dicts; ``queue`` is the object's name when the
    definition is known where the record stands."""
    files = QueueManagerFiles(path)
    names: dict[tuple[int, int], str] = {}
    checkpoint = files.checkpoint
    for record in checkpoint.objects if checkpoint else ():
        names[record.object, record.object_gen] = str(_section_values(record)["name"])
    for scan in files.scans():
        for batch, starts in scan.by_batch():
            time = utc(batch.time_us)
            for start in starts:
                record = scan.record(start)
                values = record_dict(record)
                if "name" in values:
                    names[record.object, record.object_gen] = values["name"]
                values["queue"] = names.get((record.object, record.object_gen))
                values["segment"] = scan.segment.number
                values["batch_lsn"] = batch.lsn
                values["time"] = None if time is None else time.isoformat()
                yield values


def verify(path: Path | FileSet) -> list[dict[str, Any]]:
    """Everything that can be checked, as JSON-able findings; an empty list: all is well."""
    return [finding.as_dict() for finding in QueueManagerFiles(path).verify()]

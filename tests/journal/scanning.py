"""Rows of a journal as the cffi reader finds them, to compare scanned columns with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from penstock.journal import layout as L
from penstock.journal.checkpoint import checkpoint_names, read_checkpoint
from penstock.journal.records import Record, descriptor_of
from penstock.journal.scan import COLUMNS, EVENTS, ScanBatch, ScanReport, SegmentFile, scan
from penstock.journal.segment import Batch, read_segment, scan_segment

DESCRIPTOR = (
    *("msg_id", "correl_id", "group_id", "accounting_token", "priority", "placement", "report"),
    *("msg_type", "feedback", "encoding", "ccsid", "put_appl_type", "backout_count"),
    *("msg_seq_number", "offset", "msg_flags", "original_length"),
)
TEXTS = (
    *("format", "put_appl_name", "user_identifier", "appl_origin_data", "reply_to_q"),
    *("reply_to_qmgr", "appl_identity_data"),
)
NONE = np.datetime64("NaT", "us")


def moment(us: int) -> np.datetime64:
    return np.datetime64(us, "us")


class Reference:
    """The rows of segments, in LSN order; remembers names and pieces from one to the next."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.names: dict[tuple[int, int], str] = {}
        self.pieces: dict[int, list[bytes]] = {}
        for name in checkpoint_names(sorted(p.name for p in directory.glob("checkpoint/*")))[:1]:
            path = directory / "checkpoint" / name
            for record in read_checkpoint(f"checkpoint/{name}", path.read_bytes(), None).objects:
                self._name(record)

    def _name(self, record: Record) -> None:
        data = record.sections().get(L.SEC_OBJECT_NAME)
        if data is not None:
            at = L.overlay("ps_object_name", data)[0]
            if at.name_space == 1:
                self.names[record.object, record.object_gen] = L.text(at.name)

    def rows(self, segment: SegmentFile) -> Iterator[dict[str, Any]]:
        """Each row of EVENTS, complete."""
        data = (self.directory / segment.file).read_bytes()
        header = read_segment(segment.file, data[: L.PAGE], len(data), segment.qm_id)
        assert header.generation == segment.generation
        found = scan_segment(header, data, limit=segment.end_lsn - segment.base_lsn)
        assert found.problem is None
        for batch, starts in found.by_batch():
            for start in starts:
                record = found.record(start)
                if record.type in (L.OBJECT, L.OBJECT_DELETE):
                    self._name(record)
                if record.type == L.CHUNK:
                    piece = bytes(record.sections()[L.SEC_BODY])
                    self.pieces.setdefault(record.identity, []).append(piece)
                if record.type_name in EVENTS:
                    row = self._row(segment, batch, record)
                    units = np.frombuffer(record.sections().get(L.SEC_UNITS, b""), "<u8")
                    yield from ({**row, "unit_id": unit} for unit in units) if len(units) else [row]

    def _row(self, segment: SegmentFile, batch: Batch, record: Record) -> dict[str, Any]:
        row: dict[str, Any] = {
            "event": record.type_name.encode(),
            "lsn": record.lsn,
            "time": moment(batch.time_us),
            "segment": segment.number,
            "unit_id": record.unit_id,
            "commits": record.commits,
            "queue": self.names.get((record.object, record.object_gen), "").encode(),
            "sequence": record.identity,
        }
        row["identity"] = row["sequence"]
        if record.type in (L.PUT, L.TAKEN):
            self._message(row, batch, record)
        return row

    def _message(self, row: dict[str, Any], batch: Batch, record: Record) -> None:
        sections = record.sections()
        d = descriptor_of(sections)
        row.update({name: getattr(d, name) for name in DESCRIPTOR})
        row.update({name: getattr(d, name).encode("latin-1") for name in TEXTS})
        row["persistent"] = d.persistence == 1
        row["put_time"] = moment(d.put_time_us)
        row["expiry_time"] = moment(d.expiry_us) if d.expiry_us else NONE
        left = max(d.expiry_us - batch.time_us, 0)
        row["expiry"] = min(-(-left // 100_000), 2**31 - 1) if d.expiry_us else -1
        if L.SEC_CHUNKED in sections:
            row["body"] = b"".join(self.pieces[record.identity])
        else:
            row["body"] = bytes(sections.get(L.SEC_BODY, b""))
        row["body_length"] = len(row["body"])


def same(got: Any, want: Any) -> bool:
    if isinstance(want, np.datetime64) and np.isnat(want):
        return bool(np.isnat(got))
    if isinstance(want, bytes):
        return bytes(got) == want
    return bool(got == want)


def assert_rows(batches: list[ScanBatch], wanted: list[dict[str, Any]]) -> None:
    """The batches hold these rows, every column of them."""
    assert sum(map(len, batches)) == len(wanted)
    rows = iter(wanted)
    for batch in batches:
        for i in range(len(batch)):
            want = next(rows)
            for name, values in batch.columns.items():
                if name in want:
                    assert same(values[i], want[name]), (name, values[i], want)
                else:
                    assert not values[i].tobytes().strip(b"\0") or np.isnat(values[i]), (name, want)
            if batch.bodies is not None:
                assert batch.body(i) == want.get("body")


def assert_agrees(directory: Path, segments: list[SegmentFile], **options: Any) -> int:
    """Every column of every row is what the cffi reader finds; the rows."""
    reference = Reference(directory)
    rows = 0
    for segment in segments:
        wanted = list(reference.rows(segment))
        report = ScanReport()
        batches = list(scan(segment, COLUMNS, report=report, **options))
        assert_rows(batches, wanted)
        assert report.rows == len(wanted) and not report.damage
        rows += len(wanted)
    return rows

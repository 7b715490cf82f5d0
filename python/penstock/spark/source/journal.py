"""``mode=journal``: the journal and its archive as a table of records, for audit and replay.

One partition is one segment; the one that is still being written is read up to the LSN that was
durable when the read was planned. Only requested columns are made; bodies are read only for them.

Rows are records (penstock.journal.scan): PUT with the message, GET, COMMIT and so on. A record of a
unit of work counts when its unit was committed, which ``commits`` of that or another record of the
unit shows, or a COMMIT or COMMIT_PREPARED row.

Damage is refused, or skipped and counted (``onDamage=skip``); so is a segment that was recycled
after the read was planned (``failOnDataLoss``). What was skipped is a separate row, with the event
DAMAGED or LOST, the segment, and the bytes in ``body_length``, if the column ``event`` was
requested.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

import penstock

from ..base import host
from ..base.connection import reported
from ..base.errors import DataLoss, OptionError, SourceError
from ..base.options import Options
from ..base.schema import arrow_schema, check_read

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql.types import StructType

    from penstock.journal.scan import ScanReport, SegmentFile

__all__ = ["JournalReader", "Segment", "columns"]

_log = logging.getLogger("penstock.spark")
_SECONDS = frozenset(("expiry",))  # tenths in the journal
_NONE_IF_ZERO = frozenset(("group_id",))


def columns() -> dict[str, str]:
    """Column of the journal -> its type; named and typed as those of a queue where they have it."""
    from penstock import _engine
    from penstock.journal import scan

    made = {"event": "string", "queue": "string", "identity": "bigint", "body": "binary",
            "expiry": "double"}  # fmt: skip
    known = {"uint": "int", "int": "int", "bool": "boolean", "time": "timestamp", "id": "binary",
             "text": "string"}  # fmt: skip
    kinds = {
        name: "bigint" if kind == "uint" and size == 8 else known[kind]
        for name, kind, size, _ in _engine.scan_fields()
    }
    return {name: made.get(name) or kinds[name] for name in scan.COLUMNS}


class Segment(InputPartition):
    """One segment, on one host."""

    def __init__(self, segment: SegmentFile, where: host.Host) -> None:
        super().__init__(None)
        self.segment = segment
        self.where = where


class JournalReader(DataSourceReader):
    """Reads records of the journal."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises SchemaError for unknown columns, OptionError for unknown events and times."""
        from penstock.journal import scan

        check_read(schema, columns())
        self.options = options
        self.schema = schema
        self.events: tuple[str, ...] = scan.EVENTS
        if options["events"] is not None:
            self.events = tuple(name.strip().upper() for name in options["events"].split(","))
        for name in self.events:
            if name not in scan.EVENTS:
                raise OptionError(f"option events names {name}; there are {', '.join(scan.EVENTS)}")
        self.times = (_moment(options, "startingTime"), _moment(options, "endingTime"))

    def partitions(self) -> Sequence[InputPartition]:
        """The segments that may have rows. Raises SourceError when one is damaged."""
        from penstock.journal import DamagedFile, scan

        options = self.options
        path = _directory(options)
        where = host.here()
        try:
            segments = scan.list_segments(
                path, durable_lsn=_durable_lsn(path, options), on_damage=options["onDamage"]
            )
        except DamagedFile as error:
            raise SourceError(f"journal of {options['queueManager']}: {error}") from error
        return [Segment(segment, where) for segment in segments if self._may_have(segment)]

    def _may_have(self, segment: SegmentFile) -> bool:
        start, end = self.times
        first_lsn, end_lsn = self.options["startingLsn"], self.options["endingLsn"]
        first_us, last_us = segment.first_us, segment.last_us
        return not (
            (first_lsn is not None and segment.end_lsn <= first_lsn)
            or (end_lsn is not None and segment.base_lsn >= end_lsn)
            or (start is not None and last_us is not None and last_us < start.timestamp() * 1e6)
            or (end is not None and first_us is not None and first_us >= end.timestamp() * 1e6)
        )

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a segment as record batches."""
        if not isinstance(partition, Segment):  # what Spark plans when there are no partitions
            return
        from penstock.journal import DamagedFile, scan

        options = self.options
        partition.where.check(options["queueManager"])
        schema = arrow_schema(self.schema)
        segment, report = partition.segment, scan.ScanReport()
        try:
            for batch in self._scan(segment, report):
                made = _record_batch(batch, schema, options["queue"])
                if made.num_rows:
                    yield made
        except scan.JournalDataLoss as error:
            text = f"journal of {options['queueManager']}: {error}"
            if options["failOnDataLoss"]:
                raise DataLoss(text) from error
            yield from _passed_over("LOST", text, segment, segment.size, schema)
        except DamagedFile as error:
            raise SourceError(f"journal of {options['queueManager']}: {error}") from error
        if report.damaged_bytes:
            text = f"{segment.file}: {report.damaged_bytes} damaged bytes were passed over"
            yield from _passed_over("DAMAGED", text, segment, report.damaged_bytes, schema)

    def _scan(self, segment: SegmentFile, report: ScanReport) -> Iterator[Any]:
        from penstock.journal import scan

        names = [field.name for field in self.schema.fields]
        if self.options["queue"] is not None and "queue" not in names:
            names.append("queue")
        return scan.scan(
            segment,
            names,
            start_lsn=self.options["startingLsn"] or 0,
            end_lsn=self.options["endingLsn"],
            start_time=self.times[0],
            end_time=self.times[1],
            events=self.events,
            on_damage=self.options["onDamage"],
            verify=self.options["verify"] or "body" in names,
            batch_rows=self.options["batchRows"],
            batch_bytes=self.options["batchBytes"],
            report=report,
        )


def _record_batch(batch: Any, schema: Any, queue: str | None) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = batch.to_arrow()
    if queue is not None:
        rows = rows.filter(pc.fill_null(pc.equal(rows.column("queue"), queue), False))
    arrays = []
    for field in schema:
        column = rows.column(field.name)
        if field.name in _SECONDS:
            tenths = column.cast(pa.float64())
            tenths = pc.if_else(pc.less(tenths, 0.0), pa.scalar(None, pa.float64()), tenths)
            column = pc.divide(tenths, 10.0)
        elif field.name in _NONE_IF_ZERO:
            nothing = pa.scalar(bytes(column.type.byte_width), column.type)
            column = pc.if_else(pc.equal(column, nothing), pa.scalar(None, column.type), column)
        try:
            arrays.append(column.cast(field.type))
        except pa.ArrowInvalid as error:
            raise SourceError(f"column {field.name} of the journal: {error}") from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _passed_over(
    event: str, text: str, segment: SegmentFile, size: int, schema: Any
) -> Iterator[Any]:
    """The row that counts what was skipped."""
    import pyarrow as pa

    _log.warning("%s", text)
    if "event" not in schema.names:
        return
    known: Mapping[str, Any] = {
        "event": event,
        "segment": segment.number,
        "lsn": segment.base_lsn,
        "body_length": size,
    }
    arrays = [pa.array([known.get(field.name)], field.type) for field in schema]
    yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _moment(options: Options, name: str) -> datetime | None:
    """A time, in UTC unless it has an offset."""
    from datetime import datetime, timezone

    text = options[name]
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        raise OptionError(
            f"option {name} is {text!r}; it takes a time such as 2026-01-31T23:59:00+01:00"
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)


def _directory(options: Options) -> Path:
    from penstock.admin.settings import (
        ManagerNameError,
        SettingsError,
        manager_directory,
        read_settings,
    )

    name = options["queueManager"]
    try:
        path = manager_directory(name, options["home"])
    except ManagerNameError as error:
        raise SourceError(f"queue manager {name}: {error}") from error
    try:
        read_settings(path)
    except (FileNotFoundError, NotADirectoryError):
        raise SourceError(f"there is no queue manager {name} in {path.parent}") from None
    except (OSError, SettingsError) as error:
        raise SourceError(f"queue manager {name}: {error}") from error
    return path


def _durable_lsn(path: Path, options: Options) -> int:
    """The durable LSN of a running queue manager; 0: the files contain all.

    A stopped queue manager is not started.
    """
    from penstock import _engine

    if not _engine.attached_processes(path):
        return 0
    with reported(options), penstock.connect(options["queueManager"], options["home"]) as qm:
        return qm.status().durable_lsn

"""Rows of the journal with ``isolation=none``: its records, a segment for each task.

Damage is refused, or skipped and counted (``onDamage=skip``, of batch reads); so is a segment that
was recycled or removed after the read was planned (``failOnDataLoss``). What was skipped is a
separate row, with the event DAMAGED or LOST, the segment, and the bytes in ``body_length``, if the
column ``event`` was requested.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition

from ..base import host, worker
from ..base.errors import DataLoss, OptionError, SourceError
from ..base.options import Options
from ..base.queue_choice import QueueChoice
from ..base.schema import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock.journal.scan import SegmentFile

__all__ = ["Segment", "chosen_events", "columns", "moment", "read_records", "record_batch"]

_log = logging.getLogger("penstock.spark")
_SECONDS = frozenset(("expiry",))  # tenths in the journal
_NONE_IF_ZERO = frozenset(("group_id",))
_OF_DECISIONS = {"commit_lsn": "bigint", "commit_time": "timestamp"}  # null in records


def columns() -> dict[str, str]:
    """Column of the journal -> its type; named and typed as those of a queue where they have it.

    commit_lsn, commit_time: of the decision, with isolation=committed.
    """
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
    return {**{name: made.get(name) or kinds[name] for name in scan.COLUMNS}, **_OF_DECISIONS}


def chosen_events(options: Options, known: Sequence[str]) -> tuple[str, ...]:
    """The events that the option names, all without it. Raises OptionError."""
    if options["events"] is None:
        return tuple(known)
    names = tuple(name.strip().upper() for name in options["events"].split(","))
    for name in names:
        if name not in known:
            raise OptionError(f"option events names {name}; there are {', '.join(known)}")
    return names


class Segment(InputPartition):
    """One segment, on one host; of it the records with start <= LSN < end (None: all)."""

    def __init__(
        self, segment: SegmentFile, where: host.Host, start: int = 0, end: int | None = None
    ) -> None:
        super().__init__(None)
        self.segment = segment
        self.where = where
        self.start, self.end = start, end


def read_records(
    part: Segment,
    options: Options,
    schema: StructType,
    events: Sequence[str],
    times: tuple[datetime | None, datetime | None] = (None, None),
    *,
    skip_damage: bool = False,
    verify: bool = False,
) -> Iterator[Any]:
    """The rows of a segment as record batches. Raises DataLoss, SourceError."""
    from penstock.journal import DamagedFile, scan

    worker.keep_imports()
    part.where.check(options["queueManager"])
    choice = QueueChoice.of(options)
    names = [field.name for field in schema.fields if field.name not in _OF_DECISIONS]
    if not choice.is_all and "queue" not in names:
        names.append("queue")
    arrow, segment, report = arrow_schema(schema), part.segment, scan.ScanReport()
    try:
        for batch in scan.scan(
            segment,
            names or ["lsn"],
            start_lsn=part.start,
            end_lsn=part.end,
            start_time=times[0],
            end_time=times[1],
            events=events,
            on_damage="skip" if skip_damage else "refuse",
            verify=verify or "body" in names,
            batch_rows=options["batchRows"],
            batch_bytes=options["batchBytes"],
            report=report,
        ):
            made = record_batch(_of_queues(batch.to_arrow(), choice), arrow)
            if made.num_rows:
                yield made
    except scan.JournalDataLoss as error:
        until = min(segment.end_lsn, part.end or segment.end_lsn)
        lsns = f"LSN {max(part.start, segment.base_lsn)} to {until}"
        text = f"journal of {options['queueManager']}, {lsns}: {error}"
        if options["failOnDataLoss"]:
            raise DataLoss(text) from error
        yield from _skipped("LOST", text, segment, segment.size, arrow)
    except DamagedFile as error:
        raise SourceError(f"journal of {options['queueManager']}: {error}") from error
    if report.damaged_bytes:
        text = f"{segment.file}: {report.damaged_bytes} damaged bytes were passed over"
        yield from _skipped("DAMAGED", text, segment, report.damaged_bytes, arrow)


def _of_queues(rows: Any, choice: QueueChoice) -> Any:
    """The rows about the chosen queues."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if choice.is_all:
        return rows
    names = pc.unique(rows.column("queue"))
    kept = pa.array([name for name in names.to_pylist() if name and choice(name)], pa.string())
    return rows.filter(pc.is_in(rows.column("queue"), value_set=kept))


def record_batch(rows: Any, schema: Any) -> Any:
    """The rows with the columns of the schema and their types."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrays = []
    for field in schema:
        if field.name not in rows.schema.names:
            arrays.append(pa.nulls(rows.num_rows, field.type))
            continue
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


def _skipped(event: str, text: str, segment: SegmentFile, size: int, schema: Any) -> Iterator[Any]:
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


def moment(options: Options, name: str) -> datetime | None:
    """A time, in UTC unless it has an offset."""
    text = options[name]
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        raise OptionError(
            f"option {name} is {text!r}; it takes a time such as 2026-01-31T23:59:00+01:00"
        ) from None
    return read if read.tzinfo is not None else read.replace(tzinfo=timezone.utc)

"""``mode=journal``: the journal and its archive as a table, for audit and replay.

``isolation=none`` (the default): rows are records (penstock.journal.scan): PUT with the message,
GET, COMMIT and so on. One partition is one segment; the one that is still being written is read up
to the LSN that was durable when the read was planned. A record of a unit of work counts when its
unit was committed, which ``commits`` of that or another record of the unit shows, or a COMMIT or
COMMIT_PREPARED row. See journal_records.py.

``isolation=committed``: rows are the events of decided units of work, each once, in the order of
the decisions. LSNs and times of the options are those of decisions. See journal_events.py.

Only requested columns are made; bodies are read only for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

import penstock

from ..base import host
from ..base.connection import reported
from ..base.errors import DataLoss, OptionError, SourceError
from ..base.options import Options
from ..base.queue_choice import QueueChoice
from ..base.schema import check_read
from .journal_records import Segment, chosen_events, columns, moment, read_records

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql.types import StructType

    from penstock.journal.scan import SegmentFile
    from penstock.journal.segment_range import SegmentRange

__all__ = ["JournalReader", "Segment", "columns", "directory_of", "lsn_at"]

_NO_LIMIT = 1 << 62


class JournalReader(DataSourceReader):
    """Reads the journal once."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises SchemaError for unknown columns, OptionError for unknown events and times."""
        from penstock.journal import events, scan

        check_read(schema, columns())
        self.options = options
        self.schema = schema
        self.is_committed = options["isolation"] == "committed"
        known = events.KINDS if self.is_committed else scan.EVENTS
        self.events = chosen_events(options, known)
        self.choice = QueueChoice.of(options)
        self.times = (moment(options, "startingTime"), moment(options, "endingTime"))
        if self.is_committed and (options["onDamage"] == "skip" or options["verify"]):
            raise OptionError(
                "options onDamage=skip and verify=true are of isolation=none: committed events are "
                "read from records that are whole"
            )

    def partitions(self) -> Sequence[InputPartition]:
        """The segments, or slices, that may have rows. Raises SourceError for a damaged file."""
        from penstock.journal import DamagedFile, scan

        options = self.options
        path = directory_of(options)
        durable = _durable_lsn(path, options)
        where = host.here()
        try:
            if self.is_committed:
                return self._slices(path, durable)
            segments = scan.list_segments(path, durable_lsn=durable, on_damage=options["onDamage"])
        except scan.JournalDataLoss as error:
            raise DataLoss(f"journal of {options['queueManager']}: {error.text}") from error
        except DamagedFile as error:
            raise SourceError(f"journal of {options['queueManager']}: {error}") from error
        first, last = options["startingLsn"] or 0, options["endingLsn"]
        return [Segment(one, where, first, last) for one in segments if self._may_have(one)]

    def _slices(self, path: Path, durable: int) -> Sequence[InputPartition]:
        from penstock.journal.segment_range import SegmentRange
        from penstock.journal.unit_index import EventReport

        from .journal_events import Walk, on_loss, slices_of, wanted

        options = self.options
        journal = SegmentRange(path, durable_lsn=durable)
        since = journal.oldest_lsn
        start = since if options["startingLsn"] is None else options["startingLsn"]
        end = journal.end_lsn if options["endingLsn"] is None else options["endingLsn"]
        if self.times[0] is not None:
            start = max(start, lsn_at(journal, self.times[0]))
        if self.times[1] is not None:
            end = min(end, lsn_at(journal, self.times[1]))
        end = min(end, journal.end_lsn)
        if start >= end:
            return []
        chosen, loss = wanted(self.events, self.choice), on_loss(options)
        walk = Walk(chosen, start, since, loss, EventReport())
        planned = walk.plan(journal, end, _NO_LIMIT)
        return [] if planned is None else slices_of(journal, planned, since, None)

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
        """The rows of a partition as record batches."""
        from .journal_events import EventSlice, read_events

        if isinstance(partition, EventSlice):
            yield from read_events(partition, self.options, self.schema, self.events)
        elif isinstance(partition, Segment):  # else what Spark plans when there are no partitions
            yield from read_records(
                partition,
                self.options,
                self.schema,
                self.events,
                self.times,
                skip_damage=self.options["onDamage"] == "skip",
                verify=self.options["verify"],
            )


def lsn_at(journal: SegmentRange, time: datetime) -> int:
    """The LSN of the first record that was sealed at ``time`` or later; else the end."""
    from penstock.journal.scan import index_rows

    us = int(time.timestamp() * 1e6)
    for segment in journal.overlapping(journal.oldest_lsn, journal.end_lsn):
        if segment.last_us is not None and segment.last_us < us:
            continue
        for rows in index_rows(segment, segment.base_lsn, segment.end_lsn, journal.scanned):
            late = rows["time"].astype("datetime64[us]").astype("int64") >= us
            if late.any():
                return int(rows["lsn"][int(late.argmax())])
    return journal.end_lsn


def directory_of(options: Options) -> Path:
    """The directory of the queue manager. Raises SourceError."""
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

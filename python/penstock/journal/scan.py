"""The journal as a table: segments and archives scanned into columns, without a queue manager.

    for segment in list_segments("/path/to/QM1"):
        for batch in scan(segment, ["event", "time", "queue", "body_length"]):
            batch.columns["queue"]; batch.to_arrow()

A row is a journal record: PUT, GET, COMMIT, BACKOUT, EXPIRE and the like; the chunks of a long body
are part of their PUT. COMMIT_PREPARED and BACKOUT_PREPARED have a row for each unit that they
resolve. Rows of a segment come in LSN order. Another row, possibly segments later, gives the
outcome of a row's unit of work: see :func:`unit_outcomes`.

Files are mapped read-only and decoded in C (``csrc/scan.h``); columns that are not requested are
not copied. A queue manager may be at work: a segment that it recycles during the scan is detected,
and read from the archive if it was moved there, else reported as :class:`JournalDataLoss`. A
segment that is still being written is read up to the LSN that was known durable when it was listed.

Sizes are bytes, times microseconds since 1970 UTC or aware datetimes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import _engine
from . import layout as L
from .checkpoint import checkpoint_names
from .errors import DamagedFile, UnsupportedFile
from .files import DirectoryFiles
from .records import record_length
from .segment_files import (
    JournalDataLoss,
    MappedSegment,
    OnDamage,
    ScanReport,
    SegmentFile,
    list_segments,
    open_segment,
)

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "COLUMNS",
    "EVENTS",
    "JournalDataLoss",
    "ScanBatch",
    "ScanReport",
    "SegmentFile",
    "UnitOutcomes",
    "list_segments",
    "scan",
    "unit_outcomes",
]

Moment = int | datetime | None
Column = npt.NDArray[Any]

_MORE, _END, _DAMAGED, _UNSUPPORTED, _NEED_SEGMENT, _NEED_BYTES = range(6)
_BODY_LOST = 2
_LSN_MAX = (1 << 64) - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

EVENTS = (
    "PUT",
    "GET",
    "COMMIT",
    "BACKOUT",
    "PREPARE",
    "COMMIT_PREPARED",
    "BACKOUT_PREPARED",
    "EXPIRE",
    "OBJECT_DELETE",
    "CLEAR",
    "TAKEN",
    "MOVED",
)
"""The events that rows may have, and have unless others are chosen."""

_TYPE_OF = {name: number for number, name in L.RECORD_TYPES.items()}
_EVENT_NAMES = np.zeros(256, dtype="S18")
for _number, _name in L.RECORD_TYPES.items():
    _EVENT_NAMES[_number] = _name.encode()

_FIELDS = {name: (kind, size, message) for name, kind, size, message in _engine.scan_fields()}
_PRIVATE = frozenset(("object", "object_name", "body_state", "first_lsn"))
# column -> the field that it is made from, when that has another name
_MADE_FROM = {"queue": "object", "identity": "sequence"}

COLUMNS = (
    "event",
    "lsn",
    "time",
    "segment",
    "unit_id",
    "commits",
    "queue",
    "identity",
    "body",
    *(
        name
        for name in _FIELDS
        if name not in _PRIVATE
        and name not in ("event", "lsn", "time", "segment", "unit_id", "commits")
    ),
)
"""Every column. Those that only messages have are null in Arrow, and zero bytes (times: NaT) in
NumPy, in rows of other events than PUT and TAKEN: TAKEN is the image of a non-persistent message
that a unit had got when it was prepared.

event: name of the record type. time: when its batch was sealed. commits: the record also commits
its unit. queue: name of the object; empty when no file contains it. sequence, identity: the message
number (CLEAR: messages below it are gone). expiry: tenths of a second that the message had left at
``time``, -1 unlimited; expiry_time: when it expires. body_length: of the whole body.
"""


def _dtype(name: str) -> np.dtype[Any]:
    """The NumPy type of a field of the core."""
    kind, size, _ = _FIELDS[name]
    if kind == "time":
        return np.dtype("datetime64[us]")
    code = {"uint": f"<u{size}", "int": f"<i{size}", "bool": "?", "id": f"V{size}"}
    return np.dtype(code.get(kind, f"S{size}"))


def no_rows(name: str) -> Column:
    """A column of COLUMNS, or of events, without rows."""
    made = {"event": _EVENT_NAMES.dtype, "queue": np.dtype("S48")}
    as_field = {"identity": "sequence", "commit_lsn": "lsn", "commit_time": "time"}
    return np.empty(0, made.get(name) or _dtype(as_field.get(name, name)))


# ---- names of queues ----


class _Names:
    """Names of objects by slot and generation, which are never given to another one."""

    def __init__(self) -> None:
        self.known: dict[int, bytes] = {0: b""}

    def of(self, keys: Column, segment: SegmentFile) -> Column:
        """The name of each key (slot << 32 | generation), as ``S48``."""
        different = np.unique(keys)
        unknown = [key for key in different.tolist() if key not in self.known]
        if unknown:
            self._find(unknown, segment)
        names = np.array([self.known[key] for key in different.tolist()], dtype="S48")
        if len(different) == 1:
            return np.broadcast_to(names, len(keys))
        return names[np.searchsorted(different, keys)]

    def _find(self, unknown: list[int], segment: SegmentFile) -> None:
        """Searches the definitions: the checkpoint, this segment, then others, nearest first.

        A name that no file contains is empty.
        """
        missing = set(unknown)
        missing -= self._take(_checkpoint_names_of(segment), missing)
        missing -= self._take(_segment_names(segment), missing)
        if missing:
            others = list_segments(segment.directory, on_damage="skip")
            others.sort(
                key=lambda other: (
                    other.number > segment.number,
                    abs(other.number - segment.number),
                )
            )
            for other in others:
                if missing and other.number != segment.number:
                    missing -= self._take(_segment_names(other), missing)
        self.known.update(dict.fromkeys(missing, b""))

    def _take(self, names: dict[int, bytes], missing: set[int]) -> set[int]:
        self.known.update(names)
        return missing & names.keys()


def _segment_names(segment: SegmentFile) -> dict[int, bytes]:
    """The names in the OBJECT and OBJECT_DELETE records of a segment."""
    found: dict[int, bytes] = {}
    columns = ("object", "object_name")
    events = ("OBJECT", "OBJECT_DELETE")
    try:
        for part in _parts(segment, columns, _Choice(events=events, verify=False), ScanReport()):
            keys, names = part.fields["object"].tolist(), part.fields["object_name"].tolist()
            found.update((key, name) for key, name in zip(keys, names, strict=True) if name)
    except DamagedFile:
        return found  # the scan of that segment reports its damage
    return found


def _checkpoint_names_of(segment: SegmentFile) -> dict[int, bytes]:
    """The names in the OBJECTS blocks of the newest checkpoint; none when it cannot be read."""
    files = DirectoryFiles(segment.directory)
    found: dict[int, bytes] = {}
    for name in checkpoint_names(files.names("checkpoint"))[:1]:
        path = f"checkpoint/{name}"
        try:
            size = files.size(path)
            for at, length in _object_blocks(files, path, size, segment.qm_id):
                found.update(_names_in(files.read(path, at, length)))
        except (FileNotFoundError, DamagedFile):
            return found
    return found


def _object_blocks(
    files: DirectoryFiles, path: str, size: int, qm_id: bytes
) -> Iterator[tuple[int, int]]:
    """Place and length of the payload of each OBJECTS block whose CRC holds."""
    begin = files.read(path, 48, 8)
    seed = _engine.crc32c(qm_id + begin)
    at = L.PAGE
    while at + L.BLOCK_HEADER <= size:
        head = files.read(path, at, L.BLOCK_HEADER)
        magic, crc, kind, _, length, _ = struct.unpack("<IIIIQQ", head)
        start = at + L.BLOCK_HEADER
        if magic != L.BLOCK_MAGIC or length > L.BLOCK_MAX or start + length > size:
            return
        if kind == L.BLOCK_OBJECTS:
            payload = files.read(path, start, length)
            if _engine.crc32c(payload, _engine.crc32c(head[8:], seed)) == crc:
                yield start, length
        at = start + (length + 7 & ~7)


def _names_in(payload: bytes) -> Iterator[tuple[int, bytes]]:
    """Slot << 32 | generation and name of the OBJECT records of a block."""
    at = 0
    name_at = L.RECORD_HEADER + L.SECTION_HEADER
    while at + name_at + 64 <= len(payload):
        length = record_length(payload, at)
        slot, generation = struct.unpack_from("<II", payload, at + 16)
        (tag,) = struct.unpack_from("<H", payload, at + L.RECORD_HEADER)
        space, _ = struct.unpack_from("<II", payload, at + name_at)
        if tag == L.SEC_OBJECT_NAME and space == 1:
            name = payload[at + name_at + 8 : at + name_at + 56].rstrip(b" \0")
            yield slot << 32 | generation, name
        if length < L.RECORD_HEADER:
            return
        at += length


# (slot, generation) identifies one definition of a queue manager permanently, in any file
_names_of: dict[bytes, _Names] = {}


# ---- scanning ----


@dataclass(slots=True)
class _Choice:
    """The selection of a scan."""

    events: Sequence[str] = EVENTS
    start_lsn: int = 0
    end_lsn: int = _LSN_MAX
    start_us: int = 0
    end_us: int = _LSN_MAX
    verify: bool = True
    on_damage: OnDamage = "refuse"
    batch_rows: int = 50_000
    batch_bytes: int = 32 << 20
    body: bool = False

    def types(self) -> int:
        """A bit for each type of record."""
        return sum(1 << _TYPE_OF[name] for name in set(self.events))


@dataclass(slots=True)
class _Part:
    """Fields of the core for some rows."""

    fields: dict[str, Column]
    count: int
    bodies: Column | None = None
    offsets: npt.NDArray[np.int64] | None = None


class ScanBatch:
    """Some rows of a segment.

    columns: name -> NumPy array, in the order of the request; texts are ``S``, identifiers ``V24``,
    times ``datetime64[us]`` in UTC. ``body`` is not among them: bodies is one array of bytes, row i
    has those from offsets[i] to offsets[i + 1]. Both are None unless ``body`` was requested.
    messages: the mask of the rows that have the columns of a message.
    """

    __slots__ = ("_lost", "_names", "bodies", "columns", "messages", "offsets", "segment")

    def __init__(self, segment: SegmentFile, names: tuple[str, ...], part: _Part) -> None:
        self.segment = segment
        self.columns: dict[str, Column] = {}
        self.bodies = part.bodies
        self.offsets = part.offsets
        self._names = names
        events = part.fields["event"]
        self.messages: Column = (events == L.PUT) | (events == L.TAKEN) | (events == L.MOVED)
        self._lost = part.fields.get("body_state")
        for name in names:
            if name == "body":
                continue
            values = part.fields[_MADE_FROM.get(name, name)]
            if name == "event":
                values = _EVENT_NAMES[values]
            elif name == "queue":
                values = queue_names(values, segment)
            self.columns[name] = values

    def __len__(self) -> int:
        return len(self.messages)

    def body(self, row: int) -> bytes | None:
        """A copy of one body; None in rows without. Raises ValueError when none were requested."""
        if self.bodies is None or self.offsets is None:
            raise ValueError("the column body was not asked for")
        if not self.has_body[row]:
            return None
        return bytes(self.bodies[self.offsets[row] : self.offsets[row + 1]])

    @property
    def has_body(self) -> npt.NDArray[np.bool_]:
        """The mask of the rows with a body that could be read."""
        if self._lost is None:
            everywhere: npt.NDArray[np.bool_] = self.messages
            return everywhere
        has: npt.NDArray[np.bool_] = np.logical_and(self.messages, self._lost != _BODY_LOST)
        return has

    def to_arrow(self) -> pyarrow.RecordBatch:
        """The rows as an Arrow record batch: bodies without a copy, no Python object a row.

        Texts are strings, identifiers fixed-size binaries, the body large_binary. Needs pyarrow.
        """
        from .arrow import record_batch

        return record_batch(
            self._names, self.columns, self.messages, self.bodies, self.offsets, self.has_body
        )


def _new_part(names: Iterable[str], rows: int, body_bytes: int | None) -> _Part:
    part = _Part({name: np.empty(rows, dtype=_dtype(name)) for name in names}, 0)
    if body_bytes is not None:
        part.bodies = np.empty(body_bytes, dtype=np.uint8)
        part.offsets = np.empty(rows + 1, dtype=np.int64)
    return part


def _cut(part: _Part, count: int) -> _Part:
    """The first `count` rows; small rests don't keep the whole memory."""
    part.count = count
    for name, values in part.fields.items():
        part.fields[name] = values[:count] if count > len(values) // 2 else values[:count].copy()
    if part.offsets is not None and part.bodies is not None:
        part.offsets = part.offsets[: count + 1]
        used = int(part.offsets[count])
        whole = used > len(part.bodies) // 2
        part.bodies = part.bodies[:used] if whole else part.bodies[:used].copy()
    return part


class _Run:
    """One scan of one segment: maps it and provides the data that the core requests."""

    def __init__(self, segment: SegmentFile, choice: _Choice, report: ScanReport) -> None:
        self.segment = segment
        self.choice = choice
        self.report = report
        self.others: list[MappedSegment] = []
        self.body_bytes = choice.batch_bytes if choice.body else None
        self.mapped = open_segment(segment)

    def close(self) -> None:
        """Closes all files."""
        for mapped in (self.mapped, *self.others):
            mapped.close()

    def begin(self) -> None:
        """Maps the segment and passes the selection to the core."""
        choice = self.choice
        limit = self.segment.end_lsn - self.segment.base_lsn
        self.mapped.populate(limit)
        self.mapped.scan.choose(
            limit,
            choice.start_lsn,
            choice.end_lsn,
            choice.start_us,
            choice.end_us,
            choice.types(),
            choice.verify,
            False,
        )

    def check_still(self) -> None:
        """Raises JournalDataLoss when a file that was read has been put to another use."""
        for mapped in (self.mapped, *self.others):
            if not mapped.still():
                text = "the segment was recycled while it was read"
                raise JournalDataLoss(mapped.name, 56, "recycled", text)

    def answer(self, result: int) -> None:
        """Provides the data that the core has requested. Raises DamagedFile."""
        if result in (_DAMAGED, _UNSUPPORTED):
            self._damaged(result)
        elif result == _NEED_SEGMENT:
            self._give_segment(self.mapped.scan.needs[0])
        elif result == _NEED_BYTES:
            self.body_bytes = max(self.mapped.scan.needs[1], self.body_bytes or 0)

    def _damaged(self, result: int) -> None:
        offset, text = self.mapped.scan.problem
        if result == _UNSUPPORTED and self.choice.verify:
            raise UnsupportedFile(self.mapped.name, offset, "unsupported", text)
        rule = "batch" if result == _DAMAGED else "record"
        self.report.met(DamagedFile(self.mapped.name, offset, rule, text), self.choice.on_damage)
        self.report.damaged_bytes += self.mapped.scan.skip()

    def _give_segment(self, lsn: int) -> None:
        for segment in list_segments(self.segment.directory, on_damage="skip"):
            if segment.base_lsn <= lsn < segment.end_lsn and segment.number < self.segment.number:
                other = open_segment(segment)
                self.others.append(other)
                length = segment.end_lsn - segment.base_lsn
                other.populate(length)
                self.mapped.scan.add_piece(other.bytes, length, segment.base_lsn)
                return
        if self.choice.on_damage != "skip":
            text = f"a part of a body lies at LSN {lsn}, in a segment that is gone"
            raise JournalDataLoss(self.mapped.name, 0, "gone", text)
        self.mapped.scan.allow_lost()


def _parts(
    segment: SegmentFile, names: Iterable[str], choice: _Choice, report: ScanReport
) -> Iterator[_Part]:
    """The rows of a segment as fields of the core."""
    names = tuple(names)
    try:
        run = _Run(segment, choice, report)
    except JournalDataLoss:
        raise
    except DamagedFile as error:
        report.met(error, choice.on_damage)
        report.damaged_bytes += segment.end_lsn - segment.base_lsn
        return
    report.segments += 1
    try:
        run.begin()
        result = _MORE
        while result != _END:
            part = _new_part(names, choice.batch_rows, run.body_bytes)
            result, count = run.mapped.scan.next(
                part.fields, choice.batch_rows, part.bodies, part.offsets
            )
            run.check_still()
            if count:
                report.rows += count
                yield _cut(part, count)
            run.answer(result)
    finally:
        batches, records = run.mapped.scan.done
        report.batches += batches
        report.records += records
        run.close()


def _microseconds(moment: Moment, default: int) -> int:
    if moment is None:
        return default
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(f"{moment!r} has no time zone")
        return max((moment - _EPOCH) // timedelta(microseconds=1), 0)
    return max(moment, 0)


def _check(columns: Iterable[str], events: Sequence[str], on_damage: str) -> tuple[str, ...]:
    names = tuple(columns)
    for name in names:
        if name not in COLUMNS:
            raise ValueError(f"no column {name!r}; there are {', '.join(COLUMNS)}")
    for event in events:
        if event not in EVENTS:
            raise ValueError(f"no event {event!r}; there are {', '.join(EVENTS)}")
    if on_damage not in ("refuse", "skip"):
        raise ValueError(f"on_damage is 'refuse' or 'skip', not {on_damage!r}")
    return names


def scan(
    segment: SegmentFile,
    columns: Iterable[str],
    *,
    start_lsn: int = 0,
    end_lsn: int | None = None,
    start_time: Moment = None,
    end_time: Moment = None,
    events: Sequence[str] = EVENTS,
    on_damage: OnDamage = "refuse",
    verify: bool = True,
    batch_rows: int = 50_000,
    batch_bytes: int = 32 << 20,
    report: ScanReport | None = None,
) -> Iterator[ScanBatch]:
    """The rows of one segment, at most ``batch_rows`` rows and ``batch_bytes`` of bodies at a time.

    segment: from list_segments(). columns: of COLUMNS. Rows have start_lsn <= lsn < end_lsn, and
    are in batches that were sealed at start_time <= time < end_time. A body of more than
    ``batch_bytes`` comes in a separate batch.

    on_damage: "refuse" raises DamagedFile, which names file and offset, at the first invalid batch,
    after the rows before it; "skip" continues at the next valid batch and counts in ``report``.
    verify: check every record's checksum, which reads its body; without, only those of batches, and
    bodies are read only when they are requested.

    Raises ValueError for wrong arguments, DamagedFile, JournalDataLoss when the segment is gone.
    """
    names = _check(columns, events, on_damage)
    if batch_rows < 1 or batch_bytes < 0:
        raise ValueError(f"batches of {batch_rows} rows and {batch_bytes} bytes")
    choice = _Choice(
        events=events,
        start_lsn=max(start_lsn, 0),
        end_lsn=_LSN_MAX if end_lsn is None else max(end_lsn, 0),
        start_us=_microseconds(start_time, 0),
        end_us=_microseconds(end_time, _LSN_MAX),
        verify=verify,
        on_damage=on_damage,
        batch_rows=batch_rows,
        batch_bytes=batch_bytes,
        body="body" in names,
    )
    return _batches(segment, names, choice, report or ScanReport())


def _batches(
    segment: SegmentFile, names: tuple[str, ...], choice: _Choice, report: ScanReport
) -> Iterator[ScanBatch]:
    wanted = {_MADE_FROM.get(name, name) for name in names if name != "body"} | {"event"}
    if choice.body:
        wanted.add("body_state")
    for part in _parts(segment, wanted, choice, report):
        if choice.body:
            report.bodies_lost += int(np.count_nonzero(part.fields["body_state"] == _BODY_LOST))
        yield ScanBatch(segment, names, part)


# ---- the index of a segment ----

INDEX_COLUMNS = (
    "event",
    "lsn",
    "time",
    "unit_id",
    "commits",
    "object",
    "first_lsn",
    "body_length",
)
"""What unit_index.py reads of a record: no texts, no identifiers, no bodies. event: the number of
the record type. object: slot << 32 | generation. first_lsn: of the unit's first record, in COMMIT
and PREPARE."""


def index_rows(
    segment: SegmentFile, start_lsn: int, end_lsn: int, report: ScanReport
) -> Iterator[Mapping[str, Column]]:
    """INDEX_COLUMNS of the rows with start_lsn <= LSN < end_lsn, some rows at a time.

    Checksums of batches are checked, those of bodies are not. Raises DamagedFile, JournalDataLoss.
    """
    choice = _Choice(start_lsn=start_lsn, end_lsn=end_lsn, verify=False)
    for part in _parts(segment, INDEX_COLUMNS, choice, report):
        yield part.fields


def queue_names(objects: Column, segment: SegmentFile) -> Column:
    """The name of each object, as ``S48``; empty for one that is no queue.

    objects: slot << 32 | generation. segment: where the search for unknown ones begins.
    """
    return _names_of.setdefault(segment.qm_id, _Names()).of(objects, segment)


# ---- what became of units ----


@dataclass(frozen=True, slots=True)
class UnitOutcomes:
    """The outcomes of units of work in some segments; sums with ``+``.

    committed, backed_out, prepared: unit ids, sorted, without repetition. newest_epoch: the newest
    restart, which dropped all units that were open and not prepared.
    """

    committed: npt.NDArray[np.uint64]
    backed_out: npt.NDArray[np.uint64]
    prepared: npt.NDArray[np.uint64]
    newest_epoch: int

    def __add__(self, other: UnitOutcomes) -> UnitOutcomes:
        return UnitOutcomes(
            np.union1d(self.committed, other.committed),
            np.union1d(self.backed_out, other.backed_out),
            np.union1d(self.prepared, other.prepared),
            max(self.newest_epoch, other.newest_epoch),
        )

    def states(self, unit_ids: Column, restart_epoch: int) -> Column:
        """``committed``, ``backed out``, ``prepared`` or ``open`` for each unit, as ``S10``.

        unit_ids: of the rows of a segment with that restart_epoch. Unit 0 stands for records that
        stand alone: committed. A unit whose COMMIT lies in a segment that is not among those looked
        at counts as open, or as backed out when a restart came after.
        """
        dropped = restart_epoch < self.newest_epoch
        states = np.full(len(unit_ids), b"backed out" if dropped else b"open", dtype="S10")
        states[np.isin(unit_ids, self.prepared)] = b"prepared"
        states[np.isin(unit_ids, self.backed_out)] = b"backed out"
        states[np.isin(unit_ids, self.committed) | (unit_ids == 0)] = b"committed"
        return states


def unit_outcomes(
    segments: Iterable[SegmentFile],
    *,
    on_damage: OnDamage = "refuse",
    report: ScanReport | None = None,
) -> UnitOutcomes:
    """The units of work that records of these segments committed, backed out or prepared.

    Raises as scan() does. Results for single segments, also from other processes, can be added.
    """
    names: tuple[str, ...] = ("event", "commits", "unit_id")
    found: dict[str, list[Column]] = {"committed": [], "backed_out": [], "prepared": []}
    epoch = 0
    choice = _Choice(on_damage=_on_damage(on_damage))
    for segment in segments:
        epoch = max(epoch, segment.restart_epoch)
        for part in _parts(segment, names, choice, report or ScanReport()):
            event, unit = part.fields["event"], part.fields["unit_id"]
            ends = (event == L.COMMIT) | (event == L.COMMIT_PREPARED)
            undone = (event == L.BACKOUT) | (event == L.BACKOUT_PREPARED)
            found["committed"].append(np.unique(unit[part.fields["commits"] | ends]))
            found["backed_out"].append(np.unique(unit[undone]))
            found["prepared"].append(np.unique(unit[event == L.PREPARE]))
    empty = np.empty(0, dtype=np.uint64)
    sets = {name: np.unique(np.concatenate([empty, *parts])) for name, parts in found.items()}
    return UnitOutcomes(**sets, newest_epoch=epoch)


def _on_damage(text: OnDamage) -> OnDamage:
    _check((), (), text)
    return text

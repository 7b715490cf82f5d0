"""What can be proven of damaged files: definitions and messages, and a list of what is lost.

    found = Salvage(files).run()
    for message in found.messages(): ...
    for loss in found.losses: ...

The rules are those of recovery (FORMAT.md, section 10), applied to what is left:

* **The base** is the newest checkpoint that can be read in full. Whole blocks of a damaged one that
  is newer add definitions and messages to it, no more: what they do not list may have been in the
  blocks that are lost.
* **Segments** are read whatever is missing between them, one whose header is bad or whose end is
  cut off as well, as far as its batches prove themselves.
* **A batch** counts when it stands in the chain from the first page on, or behind damage if it is
  known that it was on the medium: below the end that the next segment gives, or below a durable
  mark of the same epoch. Behind a tear nothing was ever acknowledged. Where one of the batch's
  hashes holds, its records are judged by themselves. A segment whose salt is lost is read up to the
  first damage, and named: the hashes of its batches prove nothing.
* **A unit** took effect when its COMMIT can be read, with those of its records that can be read.
  What a unit put whose end cannot be read is not taken; what it got stays. So it is with prepared
  units: nobody has decided them.
* **A message** is taken when its record and all chunks can be read, no record says that it is gone,
  and a commit or the base says that it was there. Each message number counts once.
* **A MOVED** proves that its message was committed, unless it names a unit: then the unit's COMMIT
  does. Where a part of the journal is lost it stands for the PUT as well.
* **A get may be lost** with a stretch of the journal: messages that stand before its end may have
  been got. They are taken, and counted.

Messages whose queue has no readable definition are on a queue named SALVAGED.<slot>.<generation>.
Nothing is ever written into the directory, and files are opened as the reader opens them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..admin.settings import Settings, SettingsError, parse_settings
from . import layout as L
from .checkpoint import Checkpoint, checkpoint_names, read_checkpoint, readable_blocks
from .errors import DamagedFile, UnsupportedFile
from .files import DirectoryFiles, FileSet
from .head import NAME as HEAD
from .head import check_head, read_head
from .messages import Entry, Message, check_message
from .prepared import PreparedUnit
from .records import Record
from .replay import Key, ObjectDefinition, Operation, Replay, State, operation_of
from .segment import (
    Scan,
    Segment,
    check_header_page,
    read_segment,
    segment_from_batches,
    segment_name,
    surviving_scan,
)
from .store import View, archived_segments, segment_numbers

_PLACEHOLDER = "SALVAGED"
_Partial = tuple[list[Record], list[dict[str, Any]]]  # OBJECT records and lines of a checkpoint


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that is not salvaged, or that is uncertain.

    kind: "file", "range" (bytes of a file), "record", "unit", "message", "definition" or
    "uncertain". offset, end: of the range in the file; -1: unknown, or the whole file. number,
    queue: of the message, 0 and "" for other kinds. count: how many, where it stands for several.
    """

    kind: str
    text: str
    file: str = ""
    offset: int = -1
    end: int = -1
    number: int = 0
    queue: str = ""
    count: int = 1

    def as_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        return asdict(self)


class SalvageFiles(DirectoryFiles):
    """A directory whose files are read as far as the medium gives them; a name more (a hard link)
    does no harm to a reader."""

    only_name = False

    def __init__(self, root: str | os.PathLike[str]) -> None:
        super().__init__(root)
        self.unreadable: list[tuple[str, int]] = []  # pages that the medium does not give

    def read(self, path: str, offset: int, size: int) -> bytes:
        """A copy of at most ``size`` bytes; pages that cannot be read are zero."""
        try:
            return super().read(path, offset, size)
        except DamagedFile as error:
            if error.rule != "medium":
                raise
        size = max(0, min(size, self.size(path) - offset))
        made = bytearray()
        fd = os.open(self.root / path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            while len(made) < size:
                at = offset + len(made)
                step = min(size - len(made), L.PAGE - at % L.PAGE)
                try:
                    data = os.pread(fd, step, at)
                except OSError as error:
                    if error.errno != errno.EIO:
                        raise
                    self.unreadable.append((path, at))
                    data = b""
                made += data.ljust(step, b"\0")
        finally:
            os.close(fd)
        return bytes(made)


class Salvage:
    """One pass over the files. ``losses`` grows in the order of the checks."""

    def __init__(self, files: FileSet) -> None:
        self.files = files
        self.losses: list[Loss] = []
        self.settings: Settings | None = None
        self.state: State | None = None
        self._holes: list[int] = []  # LSNs where lost stretches of the journal end
        self._uncertain = 0

    def run(self) -> Salvage:
        """Reads everything but descriptors and bodies. Raises DamagedFile when nothing is left."""
        self.settings = self._settings()
        pages = self._header_pages()
        qm_id = self._qm_id(pages)
        checkpoint, partial = self._checkpoints(qm_id)
        if qm_id is None and checkpoint is not None:
            qm_id = checkpoint.qm_id
        segments = self._segments(qm_id)
        if checkpoint is None and not segments:
            raise DamagedFile("journal", 0, "salvage", "no segment and no checkpoint can be read")
        self._missing(segments, checkpoint)
        self._check_head(segments, qm_id)
        view = _SalvageView(self.files, segments, checkpoint, [])
        replay = _SalvageReplay(view, self)
        replay.partial = partial
        self.state = replay.run(self._scans(segments, checkpoint))
        self._report(self.state)
        return self

    @property
    def incomplete(self) -> bool:
        """Whether a stretch of the journal is lost."""
        return bool(self._holes)

    def lose(self, kind: str, text: str, **where: Any) -> None:
        """Adds to the list, once."""
        loss = Loss(kind, text, **where)
        if loss not in self.losses:
            self.losses.append(loss)

    def damaged(self, error: DamagedFile, kind: str = "record") -> None:
        """Adds what an exception says."""
        self.lose(kind, f"{error.text} [{error.rule}]", file=error.file, offset=error.offset)

    # ---- what is there ----

    def _qm_id(self, pages: list[tuple[str, bytes]]) -> bytes | None:
        """The queue manager's id: that of the settings, unless all headers have another one."""
        own = self.settings.qm_id if self.settings else None
        votes = _ids_of_headers(pages)
        if not votes or own in votes:
            return own
        if own is not None:
            self.lose("file", "its qm_id is that of no file", file="qm.toml")
        return max(votes, key=votes.__getitem__)

    def _settings(self) -> Settings | None:
        try:
            data = self.files.read("qm.toml", 0, 1 << 20)
            return parse_settings(data.decode("utf-8"))
        except (OSError, DamagedFile, SettingsError, UnicodeDecodeError) as error:
            self.lose("file", f"the settings cannot be read: {error}", file="qm.toml")
            return None

    def _names(self) -> dict[int, str]:
        """Segment files by number; those of the archive where the journal has none."""
        journal = segment_numbers(self.files.names("journal"))
        newest = max(journal, default=1 << 63)  # archived ones beyond are of another history
        archived = archived_segments(self.files.names("archive"))
        found = {n: f"archive/{name}" for n, name in archived.items() if n < newest}
        return found | {number: segment_name(number) for number in journal}

    def _header_pages(self) -> list[tuple[str, bytes]]:
        """The first page of each segment and checkpoint, and both pages of HEAD."""
        paths = list(self._names().values())
        paths += [f"checkpoint/{name}" for name in checkpoint_names(self.files.names("checkpoint"))]
        found = []
        for path, at in [(path, 0) for path in paths] + [(HEAD, 0), (HEAD, L.PAGE)]:
            try:
                found.append((path, self.files.read(path, at, L.PAGE)))
            except (OSError, DamagedFile):
                continue  # reported where the file is read
        return found

    def _checkpoints(self, qm_id: bytes | None) -> tuple[Checkpoint | None, list[_Partial]]:
        """The base, and what can be read of damaged ones that are newer, oldest first."""
        partial: list[_Partial] = []
        for name in checkpoint_names(self.files.names("checkpoint")):
            path = f"checkpoint/{name}"
            try:
                data = self.files.read(path, 0, self.files.size(path))
                return read_checkpoint(path, data, qm_id), partial[::-1]
            except OSError as error:
                self.lose("file", f"cannot be read: {error.strerror}", file=path)
            except DamagedFile as error:
                self.damaged(error, "file")
                try:
                    data = self.files.read(path, 0, self.files.size(path))
                    partial.append(readable_blocks(path, data, qm_id))
                except (OSError, DamagedFile):
                    continue
        self.lose("file", "no checkpoint can be read in full", file="checkpoint")
        return None, partial[::-1]

    def _segments(self, qm_id: bytes | None) -> list[Segment]:
        found: list[Segment] = []
        for number, path in sorted(self._names().items()):
            try:
                segment = self._segment(path, number, qm_id)
                if segment.restart_epoch == 0 and found:  # without its header
                    segment = replace(segment, restart_epoch=found[-1].restart_epoch)
                if not segment.salt:
                    generation = found[-1].generation + 1 if found else 1
                    segment = replace(segment, generation=generation)
                if found:
                    _check_order(found[-1], segment)
            except OSError as error:
                self.lose("file", f"cannot be read: {error.strerror}", file=path)
                continue
            except DamagedFile as error:
                self.damaged(error, "file")
                continue
            found.append(segment)
        return found

    def _segment(self, path: str, number: int, qm_id: bytes | None) -> Segment:
        """A segment by its header, else by its batches. Raises DamagedFile, OSError."""
        size = self.files.size(path)
        page = self.files.read(path, 0, L.PAGE)
        try:
            try:
                segment = read_segment(path, page, size, qm_id)
            except UnsupportedFile:
                raise
            except DamagedFile as error:
                if error.rule != "file" or len(page) < L.PAGE:
                    raise
                stated = int(L.overlay("psj_segment", page)[0].size)
                segment = read_segment(path, page, stated, qm_id)
                self.lose("range", error.text, file=path, offset=size, end=max(size, stated))
                self._holes.append(segment.end_lsn)
        except UnsupportedFile:
            raise
        except DamagedFile as error:
            data = self.files.read(path, 0, size)
            foreign = error.rule == "foreign"
            rebuilt = None if foreign else segment_from_batches(path, data, number, qm_id)
            if rebuilt is None:
                raise
            self.damaged(error, "range")
            if not rebuilt.salt:
                self.lose("uncertain", "its salt is lost: nothing proves its batches", file=path)
            return rebuilt
        if segment.number != number:
            text = f"the name says segment {number}, the header {segment.number}"
            raise DamagedFile(path, 48, "chain", text)
        return segment

    def _missing(self, segments: list[Segment], checkpoint: Checkpoint | None) -> None:
        """Segments that must have existed: holes between those that are there, and at both ends."""
        numbers = {segment.number for segment in segments}
        newest = max(numbers, default=0)
        if max(self._names(), default=0) > newest:  # listed, as what cannot be read
            self._holes.append(1 << 63)
        needed = checkpoint.begin_segment if checkpoint else 1
        if checkpoint is None and numbers and min(numbers) > 1:
            needed = min(numbers)  # older ones may have been retired, or lost
            text = f"no checkpoint says whether segments before {needed} were still needed"
            self.lose("uncertain", text, file="journal")
            self._holes.append(segments[0].base_lsn)
        for number in (*(checkpoint.listed if checkpoint else ()), *range(needed, newest)):
            if number not in numbers:
                self.lose("file", f"segment {number} is missing", file=segment_name(number))
                after = next((s for s in segments if s.number > number), None)
                self._holes.append(after.base_lsn if after else 1 << 63)
        if checkpoint is None:
            return
        reached = max((segment.generation for segment in segments), default=0)
        if newest < checkpoint.begin_segment or reached < checkpoint.generation:
            text = f"the checkpoint names generation {checkpoint.generation}"
            self.lose("file", f"the newest segments are missing: {text}", file="journal")
            self._holes.append(1 << 63)

    def _check_head(self, segments: list[Segment], qm_id: bytes | None) -> None:
        """What HEAD says of the newest segment, if it can be read."""
        try:
            head = read_head(self.files, qm_id)
            if head.damaged is not None:
                self.damaged(head.damaged, "range")
            if not segments:
                raise DamagedFile(HEAD, 56, "head", f"names segment {head.segment_no}")
            check_head(head, segments[-1])
        except DamagedFile as error:
            self.damaged(error, "file")
            if error.rule == "head":
                self._holes.append(1 << 63)
        except OSError as error:
            self.lose("file", f"cannot be read: {error.strerror}", file=HEAD)

    # ---- the journal ----

    def _scans(self, segments: list[Segment], checkpoint: Checkpoint | None) -> Iterator[Scan]:
        """What counts of each segment of the replay."""
        first = checkpoint.begin_segment if checkpoint else 0
        for at, segment in enumerate(segments):
            if segment.number < first:
                continue
            after = segments[at + 1] if at + 1 < len(segments) else None
            try:
                scan = self._scan(segment, after, checkpoint)
            except (OSError, DamagedFile) as error:
                self.lose("file", f"cannot be read: {error}", file=segment.file)
                self._holes.append(segment.end_lsn)
                continue
            yield scan

    def _scan(self, segment: Segment, after: Segment | None, checkpoint: Checkpoint | None) -> Scan:
        data = self.files.read(segment.file, 0, segment.size)
        limit, known, rolled = None, 0, False
        if after is not None and after.number == segment.number + 1 and after.prev_end_lsn:
            limit = known = after.prev_end_lsn - segment.base_lsn
        elif after is not None and after.restart_epoch == segment.restart_epoch:
            known, rolled = segment.size, True  # to its end, wherever that is
        elif checkpoint is not None and segment.base_lsn <= checkpoint.end_lsn <= segment.end_lsn:
            known = checkpoint.end_lsn - segment.base_lsn
        scan, lost = surviving_scan(segment, data, limit, known)
        if rolled and lost and lost[-1][1] >= min(len(data), segment.size):
            lost.pop()  # behind its end, as far as can be known
        for start, end, text in lost:
            self.lose("range", text, file=segment.file, offset=start, end=end)
            self._holes.append(segment.base_lsn + end)
        return scan

    # ---- what comes of it ----

    def messages(self) -> Iterator[tuple[Message, ObjectDefinition]]:
        """The messages in delivery order within each queue, each whole, with its queue."""
        assert self.state is not None
        bound = max(self._holes, default=0)
        for message in self.state.messages():
            queue = self.state.objects[message.entry.key]
            try:
                error = check_message(message)
            except OSError as failure:
                error = DamagedFile("journal", 0, "medium", str(failure))
            if error is not None:
                self.lose(
                    "message", f"{error.text} [{error.rule}]", file=error.file,
                    offset=error.offset, number=message.identity, queue=queue.name,
                )  # fmt: skip
                continue
            if message.entry.lsn < bound:
                self._uncertain += 1
            yield message, queue
        if self._uncertain:
            text = "messages that may have been got already, by records that are lost"
            self.lose("uncertain", text, count=self._uncertain)
            self._uncertain = 0

    def definitions(self) -> list[ObjectDefinition]:
        """The definitions, those that a start would refuse left out."""
        assert self.state is not None
        return [one for one in self.state.objects.values() if not one.problem]

    def _report(self, state: State) -> None:
        """Units that are not decided, and definitions that cannot be used."""
        for unit in state.units:
            self._unit(state, f"unit {unit.unit_id} has no readable end", unit.operations)
        for prepared in state.prepared:
            self._in_doubt(state, prepared)
        for definition in state.objects.values():
            if definition.problem:
                text = f"{definition.name!r}: {definition.problem}"
                self.lose("definition", text, file=definition.file, offset=definition.offset)

    def _unit(self, state: State, text: str, operations: list[Operation]) -> None:
        puts = [op for op in operations if op.type == L.PUT]
        self.lose("unit", f"{text}: {len(puts)} messages that it put are not taken")
        for op in puts:
            known = state.objects.get(op.key)
            self.lose(
                "message", "put by a unit that is not committed, as far as can be read",
                file=op.file, offset=op.offset, number=op.identity,
                queue=known.name if known else "",
            )  # fmt: skip

    def _in_doubt(self, state: State, unit: PreparedUnit) -> None:
        """A prepared unit: what it got stays on its queue."""
        puts = [row for row in unit.rows if row.call == "PUT"]
        text = f"unit {unit.unit_id} is prepared as {unit.xid}, and not decided"
        self.lose("unit", f"{text}: {len(puts)} messages that it put are not taken")
        for row in unit.rows:
            queue = state.objects[row.entry.key].name
            if row.call == "GET":
                state.entries[row.entry.identity] = row.entry
                self.lose(
                    "uncertain", f"got by the prepared unit {unit.xid}",
                    number=row.entry.identity, queue=queue,
                )  # fmt: skip
            else:
                self.lose(
                    "message", f"{row.call.lower()} by the prepared unit {unit.xid}",
                    number=row.entry.identity, queue=queue,
                )  # fmt: skip


def _check_order(before: Segment, segment: Segment) -> None:
    """Raises DamagedFile: the later segment is none of this journal."""
    if segment.base_lsn < before.end_lsn:
        raise DamagedFile(segment.file, 72, "chain", "begins inside an earlier segment")
    if segment.generation <= before.generation:
        raise DamagedFile(segment.file, 56, "chain", "its generation is not above an earlier one's")


def _ids_of_headers(pages: list[tuple[str, bytes]]) -> dict[bytes, int]:
    """The queue managers' ids of intact headers, and in how many each stands."""
    votes: dict[bytes, int] = {}
    for path, page in pages:
        struct, magic = "psj_segment", L.SEGMENT_MAGIC
        if path == HEAD:
            struct, magic = "psh_page", L.HEAD_MAGIC
        if path.startswith("checkpoint"):
            struct, magic = "psc_header", L.CHECKPOINT_MAGIC
        try:
            check_header_page(path, page, struct, magic)
        except DamagedFile:
            continue
        own = L.raw(L.overlay(struct, page)[0].qm_id)
        votes[own] = votes.get(own, 0) + 1
    return votes


class _SalvageView(View):
    """A view of files that nobody changes, whose headers may be damaged."""

    def still(self, segment: Segment, page: bytes | None = None) -> None:
        """Nothing is recycled."""


class _SalvageReplay(Replay):
    """A replay that goes on after damage."""

    def __init__(self, view: View, salvage: Salvage) -> None:
        super().__init__(view, self._met)
        self.salvage = salvage
        self.partial: list[_Partial] = []
        self.decided: set[int] = set()  # units whose end can be read, and commits them

    def _met(self, severity: str, error: DamagedFile) -> None:
        if severity == "damage":
            self.salvage.damaged(error)

    def _load_checkpoint(self) -> None:
        try:
            super()._load_checkpoint()
        except DamagedFile as error:
            self.salvage.damaged(error)
        for objects, lines in self.partial:
            for record in objects:
                try:
                    operation = operation_of(record)
                    self._define(operation.value, operation)
                except DamagedFile as error:
                    self.salvage.damaged(error)
            for line in lines:
                entry = Entry.from_checkpoint(line)
                if entry.identity and entry.placement < L.PRIORITIES:
                    self._list(entry)

    def _list(self, entry: Entry) -> None:
        """A message of a damaged checkpoint."""
        if entry.identity not in self.state.entries:
            self._insert(entry)

    def _replay(self, scan: Scan) -> None:
        for start in scan.starts:
            if scan.segment.base_lsn + start < self.view.begin_lsn:
                continue
            try:
                record = scan.record(start)
                if record.known:
                    self._record(record)
                    self._note_decision(record)
            except DamagedFile as error:
                self.salvage.damaged(error)

    def _note_decision(self, record: Record) -> None:
        if record.type == L.COMMIT or (record.commits and record.type != L.MOVED):
            self.decided.add(record.unit_id)
        elif record.type == L.COMMIT_PREPARED:
            self.decided.update(operation_of(record).value)

    def _move(self) -> None:
        """Messages whose PUT is lost are known by their MOVED. One that names a unit was not
        committed when it was written."""
        before = len(self.state.entries)
        for op in self.moved.values() if self.salvage.incomplete else ():
            if op.identity in self.state.entries or op.identity in self.gone:
                continue
            if op.unit_id == 0 or op.unit_id in self.decided:
                self._put(op.value, op)
        if len(self.state.entries) > before:
            text = "messages that only their MOVED record shows: they may have been got before it"
            self.salvage.lose("uncertain", text, count=len(self.state.entries) - before)
        super()._move()

    def _may_stand(self, entry: Entry, op: Operation) -> bool:
        """A queue without a definition gets one, unless it was deleted."""
        if entry.key in self.state.objects:
            return True
        slot, generation = entry.key
        if op.lsn < self.checkpoint_end or slot == 0 or generation <= self.newest.get(slot, 0):
            return False
        self._placeholder(entry.key, op.file, op.offset)
        return True

    def _placeholder(self, key: Key, file: str, offset: int) -> None:
        name = f"{_PLACEHOLDER}.{key[0]}.{key[1]}"
        text = f"the definition of object {key} cannot be read: its messages are on {name}"
        self.salvage.lose("definition", text, file=file, offset=offset)
        self.newest[key[0]] = max(self.newest.get(key[0], 0), key[1])
        self.state.objects[key] = ObjectDefinition(
            key[0], key[1], 1, 1, name, 0, {}, 0, file, offset, ""
        )

    def _drop_orphans(self) -> None:
        """Messages that a damaged checkpoint lists, of a queue whose definition it has lost."""
        whole = self.view.checkpoint is not None and not self.partial
        for key in [key for key in self.queues if key not in self.state.objects]:
            if self.queues[key] and not whole and key[1] > self.newest.get(key[0], 0):
                entry = next(iter(self.queues[key].values()))
                self._placeholder(key, "checkpoint", entry.lsn)
        super()._drop_orphans()

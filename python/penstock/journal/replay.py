"""From files to messages: the state that a restart recovers, by the recovery rules of FORMAT.md.

Terms: an *operation* is a decoded record; its *effect* changes the state. A record outside a unit
takes effect at its own position, the records of a unit take effect together, in their order, at the
commit of the unit. Every effect is idempotent by message number, because the replay begins before
the checkpoint was complete.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import Any

from . import checksum
from . import layout as L
from .carried import CarriedOperation
from .definitions import definition_problem
from .errors import DamagedFile
from .messages import Entry, Message, chunks_of_image
from .prepared import (
    PreparedRow,
    PreparedUnit,
    preparation_of,
    preparation_parts,
    unit_ids_of,
    xid_parts,
)
from .records import Record, attributes_of, counts_of, dues_of
from .segment import Scan
from .store import TornTail, View, torn_tail

Key = tuple[int, int]  # object slot and generation
Report = Callable[[str, DamagedFile], None]


@dataclass(frozen=True, slots=True)
class ObjectDefinition:
    """A stored object. type: MQQT_* or MQOT_*; attributes: selector -> int or str. problem: why a
    start refuses it, "" when it does not."""

    slot: int
    generation: int
    name_space: int
    type: int
    name: str
    instance: int
    attributes: dict[int, int | str]
    lsn: int
    file: str
    offset: int
    problem: str

    @property
    def is_local_queue(self) -> bool:
        """Whether messages can be put on it."""
        return self.name_space == 1 and self.type == 1


@dataclass(slots=True)
class Unit:
    """Records of a unit of work that is not decided yet."""

    unit_id: int
    first_lsn: int
    record_count: int = 0
    running_crc: int = 0
    operations: list[Operation] = field(default_factory=list, repr=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """A record's effect, without its bytes. value: what the type needs beyond the identity."""

    type: int
    key: Key
    identity: int
    file: str
    offset: int
    lsn: int
    value: Any = None
    unit_id: int = 0

    def fail(self, text: str, rule: str) -> DamagedFile:
        """The exception for something wrong about this operation."""
        what = f"{L.record_type_name(self.type)} record: {text}"
        return DamagedFile(self.file, self.offset, rule, what)


class State:
    """The state that a restart recovers.

    objects: by slot and generation. units: neither resolved nor prepared when the journal ended;
    their records have no effect. prepared: prepared units, oldest first; the messages that they put
    are not yet on their queues, those that they got are neither on them nor gone. torn_tail: the
    batch that the last crash tore, or None. end_lsn: the end of the journal.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self.objects: dict[Key, ObjectDefinition] = {}
        self.entries: dict[int, Entry] = {}
        self.units: list[Unit] = []
        self.prepared: list[PreparedUnit] = []
        self.torn_tail: TornTail | None = None
        self.end_lsn = 0
        self.next_number = 1
        self.next_unit_id = 1
        self.records_replayed = 0
        self.image_loaded = False

    def queue_names(self) -> list[str]:
        """Names of the local queues, sorted."""
        return sorted(one.name for one in self.objects.values() if one.is_local_queue)

    def key_of(self, name: str) -> Key:
        """Slot and generation of the local queue; KeyError when there is none."""
        for key, definition in self.objects.items():
            if definition.name == name and definition.is_local_queue:
                return key
        raise KeyError(name)

    def messages(self, name: str | None = None) -> Iterator[Message]:
        """The messages of one queue, or of all, in delivery order within each queue.

        Descriptor and body are read on access.
        """
        wanted = None if name is None else self.key_of(name)
        chosen = [e for e in self.entries.values() if wanted is None or e.key == wanted]
        chosen.sort(key=lambda e: (e.key, -e.placement, e.identity))
        for entry in chosen:
            yield Message(self.view, entry, self.objects[entry.key].name)

    def prepared_messages(self, unit: PreparedUnit) -> Iterator[tuple[str, Message]]:
        """The messages of a prepared unit in the order of the calls, each with its call: "PUT",
        "GET", or "TAKEN" for a non-persistent one that was got."""
        for row in unit.rows:
            yield row.call, Message(self.view, row.entry, self.objects[row.entry.key].name)

    def depths(self) -> dict[str, int]:
        """Queue name -> messages."""
        result = {definition.name: 0 for definition in self.objects.values()}
        for entry in self.entries.values():
            result[self.objects[entry.key].name] += 1
        return result


def _damaged(file: str, text: str, rule: str) -> DamagedFile:
    """The exception for a line of a checkpoint."""
    return DamagedFile(file, L.PAGE, rule, text)


def _stop(severity: str, error: DamagedFile) -> None:
    """The report of a plain replay: damage ends it, warnings pass."""
    if severity == "damage":
        raise error


def operation_of(record: Record) -> Operation:
    """Decodes a record. Raises DamagedFile."""
    sections = record.sections()
    value: Any = None
    if record.type in (L.PUT, L.MOVED):
        value = entry_of(record, sections)
    elif record.type == L.TAKEN:
        at = L.overlay("ps_taken", sections[L.SEC_TAKEN])[0]
        value = (int(at.before), entry_of(record, sections))
    elif record.type == L.PREPARE:
        value = (commit_of(sections), preparation_of(record, sections))
    elif record.type in (L.COMMIT_PREPARED, L.BACKOUT_PREPARED):
        value = unit_ids_of(record, sections[L.SEC_UNITS])
    elif record.type == L.OBJECT:
        value = definition_of(record, sections)
    elif record.type == L.COMMIT:
        value = commit_of(sections)
    elif record.type == L.BACKOUT:
        value = list(zip_longest(counts_of(sections), dues_of(sections), fillvalue=0))
    elif record.type == L.IMAGE_CONSUMED:
        value = int(L.overlay("ps_image", sections[L.SEC_IMAGE])[0].checkpoint_lsn)
    return Operation(
        type=record.type,
        key=(record.object, record.object_gen),
        identity=record.identity,
        file=record.file,
        offset=record.offset,
        lsn=record.lsn,
        value=value,
        unit_id=record.unit_id,
    )


def commit_of(sections: dict[int, memoryview]) -> tuple[int, int, int]:
    """First LSN, record count and running CRC that a COMMIT or PREPARE record states."""
    c = L.overlay("ps_commit", sections[L.SEC_COMMIT])[0]
    return int(c.first_lsn), int(c.record_count), int(c.running_crc)


def entry_of(record: Record, sections: dict[int, memoryview]) -> Entry:
    """The index entry of a PUT, MOVED or TAKEN record."""
    d = L.overlay("ps_descriptor", sections[L.SEC_DESCRIPTOR])[0]
    chunk_count, first_lsn = 0, record.lsn
    length = len(sections.get(L.SEC_BODY, b""))
    if L.SEC_CHUNKED in sections:
        c = L.overlay("ps_chunked", sections[L.SEC_CHUNKED])[0]
        chunk_count, first_lsn, length = int(c.count), int(c.first_lsn), int(c.total)
    return Entry(
        identity=record.identity,
        key=(record.object, record.object_gen),
        lsn=record.lsn,
        first_lsn=first_lsn,
        length=length,
        record_length=record.length,
        chunk_count=chunk_count,
        priority=int(d.priority),
        placement=int(d.placement),
        persistent=bool(d.persistence),
        expiry_us=int(d.expiry_us),
        backout_count=int(d.backout_count),
        due_us=int(d.due_us),
        record_type=L.TAKEN if record.type == L.TAKEN else L.PUT,
    )


def definition_of(record: Record, sections: dict[int, memoryview]) -> ObjectDefinition:
    """The definition in an OBJECT record."""
    n = L.overlay("ps_object_name", sections[L.SEC_OBJECT_NAME])[0]
    attributes = sections.get(L.SEC_OBJECT_ATTRS, memoryview(b""))
    space, type_ = int(n.name_space), int(n.type)
    return ObjectDefinition(
        slot=record.object,
        generation=record.object_gen,
        name_space=space,
        type=type_,
        name=L.text(n.name),
        instance=int(n.instance),
        attributes=attributes_of(record, attributes),
        lsn=record.lsn,
        file=record.file,
        offset=record.offset,
        problem=definition_problem(record.object, L.raw(n.name), space, type_, attributes),
    )


class Replay:
    """Builds a State from a View.

    report is called with a severity and the exception that describes it; the default raises damage
    and lets warnings pass.
    """

    def __init__(self, view: View, report: Report = _stop) -> None:
        self.view = view
        self.report = report
        self.state = State(view)
        self.units: dict[int, Unit] = {}
        self.prepared: dict[int, PreparedUnit] = {}
        self.queues: dict[Key, dict[int, Entry]] = {}
        self.newest: dict[int, int] = {}  # object slot -> its newest generation
        self.gone: set[int] = set()
        self.counts: dict[int, int] = {}  # BackoutCounts from BACKOUT records
        self.delays: dict[int, tuple[int, int]] = {}  # count and due time of the last with a delay
        self.cleared: dict[Key, int] = {}  # bound of the newest CLEAR
        self.moved: dict[int, Operation] = {}  # the newest MOVED of a message number
        self.image_consumed = False
        self.checkpoint_end = view.checkpoint.end_lsn if view.checkpoint else 0

    def run(self, scans: Iterable[Scan] | None = None) -> State:
        """Checkpoint, journal from its begin LSN, image. Raises what report raises."""
        self._load_checkpoint()
        self._carry()
        epoch, scan = None, None
        for scan in self.view.scans(self.view.replay_from()) if scans is None else scans:
            if scan.segment.restart_epoch != epoch and epoch is not None:
                self.units.clear()  # nothing open survives a restart, prepared units do
            epoch = scan.segment.restart_epoch
            self._replay(scan)
        if scan is not None:
            self.state.end_lsn = scan.end_lsn
            self.state.torn_tail = torn_tail(scan)
        self._move()
        self._load_image()
        self._drop_orphans()
        for unit in self.prepared.values():
            self._hold(unit)
        self.state.prepared = list(self.prepared.values())
        self.state.units = list(self.units.values())
        return self.state

    def _replay(self, scan: Scan) -> None:
        for start in scan.starts:
            if scan.segment.base_lsn + start < self.view.begin_lsn:
                continue
            record = scan.record(start)
            if record.known:
                self.state.records_replayed += 1
                self._record(record)

    def _record(self, record: Record) -> None:
        state = self.state
        if record.unit_id < L.NUMBER_LIMIT - 1:
            state.next_unit_id = max(state.next_unit_id, record.unit_id + 1)
        operation = operation_of(record)
        if record.type == L.COMMIT:
            self._commit(operation, record.unit_id)
        elif record.type == L.PREPARE:
            self._prepare(operation, record.unit_id)
        elif record.type in (L.COMMIT_PREPARED, L.BACKOUT_PREPARED):
            self._end_prepared(operation)
        elif record.type == L.BACKOUT:
            self.units.pop(record.unit_id, None)
            self._effect(operation)
        elif record.type == L.COMMON:
            pass  # read with the records that refer to it
        elif record.unit_id == 0 or record.type == L.MOVED:
            self._effect(operation)
        else:
            unit = self.units.setdefault(record.unit_id, Unit(record.unit_id, record.lsn))
            unit.record_count += 1
            unit.running_crc = checksum.crc32c(struct.pack("<I", record.crc), unit.running_crc)
            if record.type != L.CHUNK:
                unit.operations.append(operation)
            if record.commits:
                self._decide(self.units.pop(record.unit_id))

    def _decide(self, unit: Unit) -> None:
        for operation in unit.operations:
            self._effect(operation)

    def _commit(self, commit: Operation, unit_id: int) -> None:
        self._decide(self._whole_unit(commit, commit.value, unit_id))

    def _whole_unit(self, last: Operation, stated: tuple[int, int, int], unit_id: int) -> Unit:
        """The unit that a COMMIT or PREPARE record completes. It must match the record unless its
        beginning is in the checkpoint."""
        unit = self.units.pop(unit_id, Unit(unit_id, stated[0]))
        found = (unit.first_lsn, unit.record_count, unit.running_crc)
        if self._is_known(stated) and (unit_id == 0 or stated != found):
            text = f"unit {unit_id} has first LSN {found[0]}, {found[1]} records, running CRC "
            text += f"{found[2]:#010x}; the record says {stated[0]}, {stated[1]}, {stated[2]:#010x}"
            self.report("damage", last.fail(text, "unit"))
        return unit

    def _is_known(self, stated: tuple[int, int, int]) -> bool:
        """Whether all records of a unit must have been read: not, when its first ones precede the
        replay from a checkpoint that lists no units; it was resolved by then."""
        checkpoint = self.view.checkpoint
        listed = checkpoint is not None and checkpoint.units_listed
        return listed or stated[1] == 0 or stated[0] >= self.view.begin_lsn

    def _prepare(self, op: Operation, unit_id: int) -> None:
        stated, preparation = op.value
        unit = self._whole_unit(op, stated, unit_id)
        if any(other.xid == preparation.xid for other in self.prepared.values()):
            text = f"unit {unit_id} has the name {preparation.xid} of another prepared unit"
            self.report("damage", op.fail(text, "xid"))
        self.prepared[unit_id] = PreparedUnit(
            unit_id=unit_id,
            preparation=preparation,
            first_lsn=stated[0],
            record_count=unit.record_count,
            lsn=op.lsn,
            file=op.file,
            offset=op.offset,
            complete=self._is_known(stated),
            operations=unit.operations,
        )

    def _end_prepared(self, op: Operation) -> None:
        for unit_id in op.value:
            unit = self.prepared.pop(unit_id, None)  # None: resolved before the checkpoint began
            if unit is None or op.type == L.BACKOUT_PREPARED:
                continue
            for operation in unit.operations:
                if operation.type != L.TAKEN:
                    self._effect(operation)

    def _hold(self, unit: PreparedUnit) -> None:
        """Adds an unresolved prepared unit: its messages leave their queues for it."""
        if not unit.complete:
            text = f"PREPARE record: unit {unit.unit_id} was over, but its end does not follow"
            self.report("damage", DamagedFile(unit.file, unit.offset, "unit", text))
        images: list[tuple[int, Entry]] = []
        for op in unit.operations:
            if op.type == L.TAKEN:
                self._hold_image(op, images)
            elif op.type == L.PUT and self._may_stand(op.value, op):
                if op.identity in self.moved:
                    self._locate(op.value, self.moved[op.identity])
                unit.rows.append(PreparedRow("PUT", op.value))
                self._saw_number(op.value)
            elif op.type == L.GET:
                entry = self._take(op.identity)
                if entry is not None:
                    unit.rows.append(PreparedRow("GET", entry))
                else:
                    text = f"message {op.identity} of a prepared unit is not there"
                    self.report("warning", op.fail(text, "message"))
        for number, (before, entry) in enumerate(sorted(images, key=lambda image: image[0])):
            unit.rows.insert(before + number, PreparedRow("TAKEN", entry))

    def _hold_image(self, op: Operation, images: list[tuple[int, Entry]]) -> None:
        before, entry = op.value
        again = any(entry.identity == other.identity for _, other in images)
        if entry.key in self.state.objects and not again:
            images.append((before, entry))
            self._saw_number(entry)

    def _may_stand(self, entry: Entry, op: Operation) -> bool:
        """Whether the queue of a message is defined; damage unless it was deleted before."""
        if entry.key in self.state.objects:
            return True
        if op.lsn >= self.checkpoint_end:
            text = f"message {entry.identity} is on object {entry.key}, which is not defined"
            self.report("damage", op.fail(text, "object"))
        return False

    def _effect(self, op: Operation) -> None:
        if op.type in (L.OBJECT, L.OBJECT_DELETE, L.CLEAR) and op.key[0] == 0:
            self.report("damage", op.fail("object slot 0", "object"))
        if op.type == L.PUT:
            self._put(op.value, op)
        elif op.type in (L.GET, L.EXPIRE):
            if not self._remove(op.identity) and op.lsn >= self.checkpoint_end:
                text = f"message {op.identity} is not there"
                self.report("warning", op.fail(text, "message"))
        elif op.type == L.MOVED:
            self.moved[op.identity] = op
            self._saw_number(op.value)
        elif op.type == L.CLEAR:
            self.cleared[op.key] = bound = max(op.identity, self.cleared.get(op.key, 0))
            queue = self.queues.get(op.key, {})
            for identity in [e.identity for e in queue.values() if e.identity < bound]:
                self._remove(identity)
        elif op.type == L.BACKOUT:
            for (identity, _, count), due_us in op.value:
                self.counts[identity] = max(count, self.counts.get(identity, 0))
                if due_us and count >= self.delays.get(identity, (0, 0))[0]:
                    self.delays[identity] = (count, due_us)
                if identity in self.state.entries:
                    self._raise_count(self.state.entries[identity])
        elif op.type == L.OBJECT:
            self._define(op.value, op)
        elif op.type == L.OBJECT_DELETE:
            self._delete(op.key)
        elif op.type == L.IMAGE_CONSUMED and self.view.checkpoint is not None:
            same = op.value == self.view.checkpoint.begin_lsn
            self.image_consumed |= same and op.lsn >= self.checkpoint_end  # not an older one's

    def _put(self, entry: Entry, op: Operation) -> None:
        if not self._may_stand(entry, op):
            return
        present = self.state.entries.get(entry.identity)
        if present is not None and entry.lsn > op.lsn:  # carried, and moved before
            _relocate(present, entry)
            return
        if present is not None or entry.identity in self.gone:
            if present is None or present.lsn != entry.lsn:
                text = f"message {entry.identity} was put before"
                self.report("warning", op.fail(text, "duplicate"))
            return
        if entry.identity < self.cleared.get(entry.key, 0):
            return
        self._insert(entry)

    def _move(self) -> None:
        """The messages that are present lie where their newest MOVED record is, unless the
        checkpoint lists a later place."""
        for identity, op in self.moved.items():
            entry = self.state.entries.get(identity)
            if entry is not None:
                self._locate(entry, op)

    def _locate(self, entry: Entry, op: Operation) -> None:
        to: Entry = op.value
        if entry.lsn < op.lsn and any(getattr(to, n) != getattr(entry, n) for n in _KEPT_BY_MOVES):
            text = f"differs from message {entry.identity} at LSN {entry.lsn}"
            self.report("damage", op.fail(text, "message"))
        _relocate(entry, to)

    def _raise_count(self, entry: Entry) -> None:
        count, due_us = self.delays.get(entry.identity, (0, 0))
        if count > entry.backout_count:
            entry.due_us = due_us
        entry.backout_count = max(entry.backout_count, self.counts.get(entry.identity, 0))

    def _insert(self, entry: Entry) -> None:
        self._raise_count(entry)
        self.state.entries[entry.identity] = entry
        self.queues.setdefault(entry.key, {})[entry.identity] = entry
        self._saw_number(entry)

    def _saw_number(self, entry: Entry) -> None:
        self.state.next_number = max(self.state.next_number, entry.identity + 1)

    def _remove(self, identity: int) -> bool:
        self.gone.add(identity)
        return self._take(identity) is not None

    def _take(self, identity: int) -> Entry | None:
        """The message leaves its queue."""
        entry = self.state.entries.pop(identity, None)
        if entry is not None:
            del self.queues[entry.key][identity]
        return entry

    def _define(self, definition: ObjectDefinition, op: Operation) -> None:
        slot, generation = op.key
        newest = self.newest.get(slot, 0)
        if generation < newest:
            return  # the checkpoint already has its successor
        older = (slot, newest)
        if generation > newest and older in self.state.objects:
            text = f"object {older} was not deleted before slot {slot} was used again"
            self.report("warning", op.fail(text, "object"))
            self._delete(older)
        self.newest[slot] = generation
        self.state.objects[op.key] = definition

    def _delete(self, key: Key) -> None:
        self.state.objects.pop(key, None)
        for identity in list(self.queues.get(key, {})):
            self._remove(identity)
        self.newest[key[0]] = max(self.newest.get(key[0], 0), key[1])

    def _load_checkpoint(self) -> None:
        checkpoint = self.view.checkpoint
        if checkpoint is None:
            return
        for record in checkpoint.objects:
            operation = operation_of(record)
            self._define(operation.value, operation)
        for record in checkpoint.gone:
            self._delete((record.object, record.object_gen))
        before: tuple[int, int, int] | None = None
        for row in checkpoint.messages.tolist():
            listed = dict(zip(_MESSAGE_FIELDS, row, strict=True))
            entry = Entry.from_checkpoint(listed)
            order = (entry.key[0], -entry.placement, entry.identity)
            if before is not None and order <= before:
                text = f"message {entry.identity} is listed out of order or twice"
                self.report("damage", DamagedFile(checkpoint.file, L.PAGE, "order", text))
            if _contradicts_itself(listed):
                text = f"the line of message {entry.identity} contradicts itself"
                self.report("damage", DamagedFile(checkpoint.file, L.PAGE, "message", text))
            before = order
            if entry.identity in self.state.entries:
                text = f"message {entry.identity} is listed twice"
                error = DamagedFile(checkpoint.file, L.PAGE, "duplicate", text)
                self.report("damage", error)
            self._insert(entry)
        self.state.next_number = max(self.state.next_number, checkpoint.next_number)
        self.state.next_unit_id = max(self.state.next_unit_id, checkpoint.next_unit_id)

    def _carry(self) -> None:
        """The units that the checkpoint carries go on."""
        checkpoint = self.view.checkpoint
        if checkpoint is None:
            return
        for unit in checkpoint.units:
            operations = [self._carried(checkpoint.file, one) for one in unit.operations]
            if unit.prepare_end_lsn == 0:
                self.units[unit.unit_id] = Unit(
                    unit.unit_id, unit.first_lsn, unit.record_count, unit.running_crc, operations
                )
                continue
            fail = partial(_damaged, checkpoint.file)
            xid = xid_parts(fail, L.overlay("ps_xid", unit.xid)[0])
            self.prepared[unit.unit_id] = PreparedUnit(
                unit_id=unit.unit_id,
                preparation=preparation_parts(xid, L.overlay("ps_prepared", unit.prepared)[0]),
                first_lsn=unit.first_lsn,
                record_count=unit.record_count,
                lsn=unit.prepare_end_lsn,
                file=checkpoint.file,
                offset=L.PAGE,
                complete=True,
                operations=operations,
            )

    @staticmethod
    def _carried(file: str, one: CarriedOperation) -> Operation:
        value: Any = None
        if one.line is not None:
            entry = Entry.from_checkpoint(one.line)
            entry.record_type = one.type
            value = (one.before, entry) if one.type == L.TAKEN else entry
        return Operation(one.type, one.key, one.number, file, L.PAGE, one.lsn, value)

    def _load_image(self) -> None:
        checkpoint = self.view.checkpoint
        if checkpoint is None or not checkpoint.has_image or self.image_consumed:
            return
        self.state.image_loaded = True
        for record, chunks in chunks_of_image(checkpoint.image):
            sections = record.sections()
            entry = entry_of(record, sections)
            entry.image = (record, chunks)
            if entry.identity in self.state.entries:
                text = f"message {entry.identity} of the image is there already"
                self.report("damage", record.fail(text, "duplicate"))
                continue
            self._insert(entry)

    def _drop_orphans(self) -> None:
        """Messages whose queue was deleted while the checkpoint was taken."""
        for key in [key for key in self.queues if key not in self.state.objects]:
            if self.queues[key] and self.view.checkpoint is not None:
                text = f"{len(self.queues[key])} messages on object {key}, which is not defined"
                error = DamagedFile(self.view.checkpoint.file, L.PAGE, "object", text)
                self.report("warning", error)
            self._delete(key)


def _relocate(entry: Entry, to: Entry) -> None:
    """The later of two places of a message holds."""
    if to.lsn > entry.lsn:
        entry.lsn, entry.first_lsn = to.lsn, to.first_lsn


def _contradicts_itself(m: dict[str, Any]) -> bool:
    """Whether a line of a MESSAGES block is one that no writer makes."""
    return bool(
        m["number"] == 0
        or m["placement"] >= L.PRIORITIES
        or m["has_ext"] > 1
        or m["is_volatile"] > 1
        or m["zero"]
        or m["due_us"] > L.DUE_MAX
        or m["length"] > L.BODY_MAX
        or m["first_lsn"] > m["lsn"]
    )


_KEPT_BY_MOVES = (
    "key",
    "length",
    "record_length",
    "chunk_count",
    "priority",
    "placement",
    "persistent",
)
_MESSAGE_FIELDS = tuple(name for name, _, _ in L.fields("psc_message"))

"""A message as the files hold it: index entry, descriptor, body with its chunk chain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import layout as L
from .checksum import tag
from .errors import DamagedFile
from .records import Descriptor, Record, descriptor_of
from .store import View

EXPIRY_SLACK_US = 1_000_000  # a listed expiry is at most so much later than the descriptor's


@dataclass(slots=True)
class Entry:
    """The index entry of a message; descriptor and body are at ``lsn``.

    image: for a message of a checkpoint's image, its PUT record and chunks.
    listed: the fields of the checkpoint's list, to be compared with the record.
    record_type: TAKEN for the image of a non-persistent message in a prepared unit; a PUT's may be
    a MOVED.
    """

    identity: int
    key: tuple[int, int]
    lsn: int
    first_lsn: int
    length: int
    record_length: int
    chunk_count: int
    priority: int
    placement: int
    persistent: bool
    expiry_us: int
    backout_count: int
    due_us: int
    image: tuple[Record, list[Record]] | None = None
    listed: dict[str, Any] | None = None
    record_type: int = L.PUT

    @classmethod
    def from_checkpoint(cls, m: dict[str, Any]) -> Entry:
        """The entry of a ``struct psc_message``."""
        return cls(
            identity=m["number"],
            key=(m["object"], m["object_gen"]),
            lsn=m["lsn"],
            first_lsn=m["first_lsn"],
            length=m["length"],
            record_length=m["record_length"],
            chunk_count=m["chunk_count"],
            priority=m["priority"],
            placement=m["placement"],
            persistent=not m["is_volatile"],
            expiry_us=m["expiry_us"],
            backout_count=m["backout_count"],
            due_us=m["due_us"],
            listed=m,
        )


class Message:
    """One message of a queue. Reading descriptor or body raises DamagedFile when they are damaged,
    or when a queue manager at work has recycled the segment since."""

    def __init__(self, view: View, entry: Entry, queue: str) -> None:
        self.view = view
        self.entry = entry
        self.queue = queue

    @property
    def identity(self) -> int:
        """The message number; never used twice."""
        return self.entry.identity

    @property
    def priority(self) -> int:
        """MQMD Priority of the put."""
        return self.entry.priority

    @property
    def placement(self) -> int:
        """Placement priority 0..9, fixed at arrival."""
        return self.entry.placement

    @property
    def backout_count(self) -> int:
        """BackoutCount: backed-out gets of the message."""
        return self.entry.backout_count

    @property
    def due_us(self) -> int:
        """The wall clock before which no get finds it, microseconds since 1970; 0: none."""
        return self.entry.due_us

    @property
    def persistent(self) -> bool:
        """False for messages of a checkpoint's image and of queues in a CFSTRUCT."""
        return self.entry.persistent

    @property
    def length(self) -> int:
        """Body bytes."""
        return self.entry.length

    def record(self) -> Record:
        """Its PUT (or TAKEN) record, verified."""
        if self.entry.image is not None:
            return self.entry.image[0]
        wanted: tuple[int, ...] = (self.entry.record_type,)
        if self.entry.record_type == L.PUT:
            wanted = (L.PUT, L.MOVED)
        return self.view.record_at(self.entry.lsn, wanted, self.entry.identity)

    def descriptor(self) -> Descriptor:
        """Its descriptor as stored at the put."""
        record = self.record()
        return descriptor_of(record.sections())

    def body(self) -> bytes:
        """Its bytes, gathered from its chunks when it has any."""
        record = self.record()
        sections = record.sections()
        if L.SEC_CHUNKED not in sections:
            return bytes(sections.get(L.SEC_BODY, b""))
        c = L.overlay("ps_chunked", sections[L.SEC_CHUNKED])[0]
        total, count = int(c.total), int(c.count)
        if c.zero or not 0 < total <= min(L.BODY_MAX, count * L.CHUNK_BYTES) or count > total:
            raise record.fail(f"{total} bytes in {count} chunks", "chunk")
        if self.entry.image is not None:
            chunks = self.entry.image[1]
        else:
            chunks = self._chain(record, int(c.first_lsn), int(c.last_lsn), count, total)
        if len(chunks) != count:
            raise record.fail(f"{len(chunks)} chunks of {count}", "chunk")
        return join_chunks(record, chunks, total)

    def _chain(
        self, record: Record, first_lsn: int, last_lsn: int, count: int, total: int
    ) -> list[Record]:
        """The chunks in order, found from the last to the first."""
        if total > sum(segment.size for segment in self.view.segments):
            raise record.fail(f"a body of {total} bytes exceeds the journal", "chunk")
        chunks: list[Record] = []
        below, at = record.lsn, last_lsn
        while len(chunks) < count:
            if not first_lsn <= at < below:
                raise record.fail(f"the chunk chain leads to LSN {at}", "chunk")
            chunk = self.view.record_at(at, (L.CHUNK,), record.identity)
            if chunk.unit_id != record.unit_id:
                raise chunk.fail(f"belongs to unit {chunk.unit_id}", "chunk")
            chunks.append(chunk)
            below = at
            at = int(L.overlay("ps_chunk", chunk.sections()[L.SEC_CHUNK])[0].prev_lsn)
        if at != 0 or below != first_lsn:
            raise record.fail("the chunk chain does not end at its first chunk", "chunk")
        chunks.reverse()
        return chunks


def join_chunks(record: Record, chunks: list[Record], total: int) -> bytes:
    """The body from its chunks, which must follow each other without gaps."""
    pieces: list[memoryview] = []
    offset = 0
    for number, chunk in enumerate(chunks):
        sections = chunk.sections()
        c = L.overlay("ps_chunk", sections[L.SEC_CHUNK])[0]
        piece = sections[L.SEC_BODY]
        if c.zero or (int(c.number), int(c.offset), int(c.total)) != (number, offset, total):
            raise chunk.fail(f"chunk {int(c.number)} where chunk {number} should be", "chunk")
        if not 0 < len(piece) <= L.CHUNK_BYTES:
            raise chunk.fail(f"a piece of {len(piece)} bytes", "chunk")
        pieces.append(piece)
        offset += len(piece)
    if offset != total:
        raise record.fail(f"chunks hold {offset} bytes of {total}", "chunk")
    return b"".join(pieces)


def chunks_of_image(records: list[Record]) -> Iterator[tuple[Record, list[Record]]]:
    """Each PUT record of an image with the CHUNK records before it. Raises DamagedFile."""
    chunks: list[Record] = []
    for record in records:
        if chunks and chunks[0].identity != record.identity:
            raise record.fail(f"stands between the chunks of message {chunks[0].identity}", "chunk")
        if record.type == L.CHUNK:
            chunks.append(record)
            continue
        yield record, chunks
        chunks = []
    if chunks:
        raise chunks[0].fail("its message is missing", "chunk")


def check_message(message: Message) -> DamagedFile | None:
    """Reads a whole message and compares it with the checkpoint. Returns the error or None."""
    try:
        descriptor = message.descriptor()
        body = message.body()
    except DamagedFile as error:
        return error
    record = message.record()
    listed = message.entry.listed
    if (record.object, record.object_gen) != message.entry.key:
        return record.fail(f"is on object {record.object}, not on {message.entry.key}", "message")
    if listed is None:
        return None
    qm_id = message.view.segments[-1].qm_id
    sections = record.sections()
    chunks = 0
    if L.SEC_CHUNKED in sections:
        chunks = int(L.overlay("ps_chunked", sections[L.SEC_CHUNKED])[0].count)
    found = {
        "chunk_count": chunks,
        "length": len(body),
        "record_length": record.length,
        "priority": descriptor.priority,
        "placement": descriptor.placement,
        "has_ext": int(L.SEC_DESCRIPTOR_EXT in sections),
        "is_volatile": int(not descriptor.persistence),
        "zero": 0,
    }
    for name, value in found.items():
        if listed[name] != value:
            text = f"{name} is {value}, the checkpoint lists {listed[name]}"
            return record.fail(text, "message")
    if not _expires_as_listed(message, descriptor.expiry_us, listed["expiry_us"]):
        text = f"expiry_us is {descriptor.expiry_us}, the checkpoint lists {listed['expiry_us']}"
        return record.fail(text, "message")
    for name in ("msg_id", "correl_id", "group_id"):
        identifier = getattr(descriptor, name)
        right = {tag(identifier, qm_id)} if any(identifier) else {0, tag(identifier, qm_id)}
        if listed[f"tag_{name}"] not in right:
            text = f"tag_{name} is {min(right)}, the checkpoint lists {listed[f'tag_{name}']}"
            return record.fail(text, "message")
    return None


def _expires_as_listed(message: Message, stored_us: int, listed_us: int) -> bool:
    """Whether a checkpoint's expiry_us fits the descriptor's: FORMAT.md, section 8, Expiry."""
    if stored_us == 0 or listed_us == 0:
        return stored_us == listed_us
    if stored_us <= listed_us <= stored_us + EXPIRY_SLACK_US:
        return True
    checkpoint = message.view.checkpoint
    return checkpoint is not None and stored_us < listed_us <= checkpoint.created_us

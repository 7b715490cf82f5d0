"""Declarations of the files of a queue manager, written from FORMAT.md, not from the core.

The structs are given to cffi as text (ABI mode: nothing is compiled) and laid over read-only bytes.
NumPy record types are derived from the same declarations, so that there is one description here.
A test compares every size, offset and constant with the core's.
"""

from __future__ import annotations

import functools
from typing import Any

import cffi  # type: ignore[import-untyped, unused-ignore]
import numpy as np

DECLARATIONS = """
struct psj_segment {
    char magic[8]; uint16_t major; uint16_t minor; uint32_t header_size;
    uint64_t compatible; uint64_t incompatible; uint8_t qm_id[16];
    uint64_t segment_no; uint64_t generation; uint64_t restart_epoch;
    uint64_t base_lsn; uint64_t size; uint64_t prev_end_lsn; uint64_t created_us;
    uint8_t salt[16]; uint64_t timeline; uint8_t zero[3964]; uint32_t crc;
};
struct psh_page {
    char magic[8]; uint16_t major; uint16_t minor; uint32_t header_size;
    uint64_t compatible; uint64_t incompatible; uint8_t qm_id[16];
    uint64_t sequence; uint64_t segment_no; uint64_t generation; uint64_t timeline;
    uint8_t zero[4012]; uint32_t crc;
};
struct psj_batch {
    uint32_t magic; uint32_t length; uint64_t lsn; uint64_t durable_lsn; uint64_t time_us;
    uint32_t record_count; uint32_t zero; uint64_t segment_no; uint64_t records; uint64_t hash;
};
struct psj_record {
    uint16_t eighths; uint8_t type; uint8_t flags; uint32_t crc;
    uint64_t unit_id; uint32_t object; uint32_t object_gen; uint64_t number;
};
struct psj_short {
    uint16_t eighths; uint8_t type; uint8_t flags; uint32_t crc; uint32_t common; int32_t unit;
    uint64_t number;
};
struct ps_short_put { uint32_t fields; int32_t time; };
struct ps_section { uint16_t tag; uint16_t zero; uint32_t length; };
struct ps_descriptor {
    uint8_t msg_id[24]; uint8_t correl_id[24]; uint64_t put_time_us; uint64_t expiry_us;
    int32_t priority; int32_t report; int32_t msg_type; int32_t feedback; int32_t encoding;
    int32_t ccsid; char format[8]; int32_t put_appl_type; char user_identifier[12];
    char put_appl_name[28]; char appl_origin_data[4]; uint8_t accounting_token[32];
    uint8_t persistence; uint8_t placement; uint8_t has_ext; uint8_t md_version;
    uint32_t backout_count; uint64_t due_us;
};
struct ps_descriptor_ext {
    char reply_to_q[48]; char reply_to_qmgr[48]; char appl_identity_data[32]; uint8_t group_id[24];
    int32_t msg_seq_number; int32_t offset; int32_t msg_flags; int32_t original_length;
    uint64_t zero[3];
};
struct ps_chunked {
    uint64_t first_lsn; uint64_t last_lsn; uint64_t total; uint32_t count; uint32_t zero;
};
struct ps_chunk {
    uint64_t prev_lsn; uint64_t offset; uint64_t total; uint32_t number; uint32_t zero;
};
struct ps_commit { uint64_t first_lsn; uint32_t record_count; uint32_t running_crc; };
struct ps_count { uint64_t identity; uint32_t object; uint32_t count; };
struct ps_object_name { uint32_t name_space; uint32_t type; char name[48]; uint64_t instance; };
struct ps_attr { int32_t selector; uint16_t kind; uint16_t length; };
struct ps_image { uint64_t checkpoint_lsn; };
struct ps_xid {
    int32_t format_id; uint16_t gtrid_length; uint16_t bqual_length; uint8_t gtrid[64];
    uint8_t bqual[64];
};
struct ps_prepared {
    uint64_t prepared_us; uint64_t bytes; uint32_t puts; uint32_t gets; uint32_t lost_puts;
    uint32_t lost_gets;
};
struct ps_taken { uint32_t before; uint32_t zero; };
struct psc_header {
    char magic[8]; uint16_t major; uint16_t minor; uint32_t header_size;
    uint64_t compatible; uint64_t incompatible; uint8_t qm_id[16];
    uint64_t begin_lsn; uint64_t begin_segment; uint64_t end_lsn; uint64_t next_number;
    uint64_t next_unit_id; uint64_t restart_epoch; uint64_t generation;
    uint32_t clean; uint32_t has_image; uint64_t created_us; uint64_t oldest_segment;
    uint32_t units_listed; uint8_t zero[3960]; uint32_t crc;
};
struct psc_block {
    uint32_t magic; uint32_t crc; uint32_t type; uint32_t count; uint64_t length;
    uint64_t sequence;
};
struct psc_message {
    uint64_t number; uint64_t lsn; uint64_t first_lsn; uint64_t expiry_us;
    uint64_t tag_msg_id; uint64_t tag_correl_id; uint64_t tag_group_id;
    uint32_t object; uint32_t object_gen; uint32_t length; uint32_t backout_count;
    int32_t priority; uint8_t placement; uint8_t has_ext; uint8_t is_volatile; uint8_t zero;
    uint32_t record_length; uint32_t chunk_count; uint64_t due_us;
};
struct psc_columns {
    uint64_t base[17]; uint8_t width[17]; uint8_t due_width; uint8_t zero[6];
};
struct psc_segment { uint64_t number; uint64_t generation; uint64_t base_lsn; uint64_t end_lsn; };
struct psc_unit {
    uint64_t id; uint64_t first_lsn; uint64_t pieces_lsn; uint64_t operations;
    uint32_t record_count; uint32_t running_crc; uint64_t prepare_end_lsn;
    struct ps_prepared prepared; struct ps_xid xid;
};
struct psc_operation {
    uint64_t number; uint64_t lsn; uint32_t object; uint32_t object_gen; uint32_t type;
    uint32_t before;
};
struct psc_end {
    uint64_t block_count; uint64_t object_count; uint64_t message_count; uint64_t image_count;
    uint64_t end_lsn; uint64_t segment_count; uint64_t unit_count; uint64_t operation_count;
    uint64_t unit_put_count;
};
"""

STRUCTS = tuple(line.split()[1] for line in DECLARATIONS.splitlines() if line.startswith("struct"))

PAGE = 4096
SECTOR = 512
MAJOR = 2
MINOR = 0
MIN_SEGMENT = 32768
SEGMENT_MAGIC = b"PSTKJRNL"
CHECKPOINT_MAGIC = b"PSTKCKPT"
HEAD_MAGIC = b"PSTKHEAD"
BATCH_MAGIC = 0x54425350
BLOCK_MAGIC = 0x4B425350
BATCH_HEADER = 64
RECORD_HEADER = 32
RECORD_MIN = 24  # bytes of a short record
COMMON_MAX = 240  # of a COMMON record
SECTION_HEADER = 8
BLOCK_HEADER = 32
CHUNK_BYTES = 61440
INLINE_BODY_MAX = 61440
RECORD_MAX = 65536
BLOCK_MAX = (1 << 20) + 65536
BODY_MAX = 104857600
MUST_UNDERSTAND = 0x80
FLAG_COMMITS = 1
FLAG_SHORT = 2
FLAG_UNDECIDED = 8  # of a MOVED: its unit has put the message, and was not decided
PADDING_SHIFT = 4
PADDING_MASK = 0x70
PRIORITIES = 10
NUMBER_LIMIT = 1 << 63  # message numbers and unit ids are below it

PUT, GET, COMMIT, BACKOUT = 1, 2, 3, 4
PREPARE, COMMIT_PREPARED, BACKOUT_PREPARED = 5, 6, 7
CHUNK, MOVED, EXPIRE, MARK, IMAGE_CONSUMED = 8, 9, 10, 11, 12
OBJECT, OBJECT_DELETE, CHANNEL_SEQUENCE, CLUSTER_OBJECT, SUBSCRIPTION, CLEAR = (
    13,
    14,
    15,
    16,
    17,
    18,
)
TAKEN = 19
COMMON = 20
CHANNEL_BATCH, RETAINED, TRIGGER, STORE_UNIT = 21, 22, 23, 24

RECORD_TYPES = {
    PUT: "PUT",
    GET: "GET",
    COMMIT: "COMMIT",
    BACKOUT: "BACKOUT",
    PREPARE: "PREPARE",
    COMMIT_PREPARED: "COMMIT_PREPARED",
    BACKOUT_PREPARED: "BACKOUT_PREPARED",
    CHUNK: "CHUNK",
    MOVED: "MOVED",
    EXPIRE: "EXPIRE",
    MARK: "MARK",
    IMAGE_CONSUMED: "IMAGE_CONSUMED",
    OBJECT: "OBJECT",
    OBJECT_DELETE: "OBJECT_DELETE",
    CHANNEL_SEQUENCE: "CHANNEL_SEQUENCE",
    CLUSTER_OBJECT: "CLUSTER_OBJECT",
    SUBSCRIPTION: "SUBSCRIPTION",
    CLEAR: "CLEAR",
    TAKEN: "TAKEN",
    COMMON: "COMMON",
    CHANNEL_BATCH: "CHANNEL_BATCH",
    RETAINED: "RETAINED",
    TRIGGER: "TRIGGER",
    STORE_UNIT: "STORE_UNIT",
}
NOT_UNDERSTOOD = frozenset(
    (
        *(MARK, CHANNEL_SEQUENCE, CLUSTER_OBJECT, SUBSCRIPTION),
        *(CHANNEL_BATCH, RETAINED, TRIGGER, STORE_UNIT),
    )
)
UNDERSTOOD = frozenset(RECORD_TYPES) - NOT_UNDERSTOOD

SEC_DESCRIPTOR, SEC_DESCRIPTOR_EXT, SEC_PROPERTIES, SEC_ORIGIN, SEC_GROUP, SEC_BODY = range(1, 7)
SEC_CHUNKED, SEC_CHUNK, SEC_COMMIT, SEC_COUNTS, SEC_OBJECT_NAME, SEC_OBJECT_ATTRS = range(7, 13)
SEC_XID, SEC_STORES, SEC_IMAGE, SEC_UNITS, SEC_PREPARED, SEC_TAKEN = range(13, 19)
SEC_SEGMENT, SEC_DUE, SEC_PUBLICATION = range(19, 22)

# Fields of a short PUT behind ps_short_put, in this order: bit -> bytes.
SHORT_PLACEMENT = 0xF
SHORT_MSG_ID, SHORT_CORREL_ID, SHORT_PUT_TIME, SHORT_EXPIRY, SHORT_PRIORITY, SHORT_EXT = (
    1 << bit for bit in range(4, 10)
)
SHORT_DUE = 1 << 10
SHORT_FIELDS = {
    SHORT_MSG_ID: 24,
    SHORT_CORREL_ID: 24,
    SHORT_PUT_TIME: 8,
    SHORT_EXPIRY: 8,
    SHORT_PRIORITY: 4,
    SHORT_EXT: 192,
    SHORT_DUE: 8,
}
DUE_MAX = 253_402_300_799_999_999  # the last due time: the end of the year 9999

SECTIONS = {
    SEC_DESCRIPTOR: "DESCRIPTOR",
    SEC_DESCRIPTOR_EXT: "DESCRIPTOR_EXT",
    SEC_PROPERTIES: "PROPERTIES",
    SEC_ORIGIN: "ORIGIN",
    SEC_GROUP: "GROUP",
    SEC_BODY: "BODY",
    SEC_CHUNKED: "CHUNKED",
    SEC_CHUNK: "CHUNK",
    SEC_COMMIT: "COMMIT",
    SEC_COUNTS: "COUNTS",
    SEC_OBJECT_NAME: "OBJECT_NAME",
    SEC_OBJECT_ATTRS: "OBJECT_ATTRS",
    SEC_XID: "XID",
    SEC_STORES: "STORES",
    SEC_IMAGE: "IMAGE",
    SEC_UNITS: "UNITS",
    SEC_PREPARED: "PREPARED",
    SEC_TAKEN: "TAKEN",
    SEC_SEGMENT: "SEGMENT",
    SEC_DUE: "DUE",
    SEC_PUBLICATION: "PUBLICATION",
}
# Sections of a fixed size: tag -> struct.
SECTION_STRUCTS = {
    SEC_DESCRIPTOR: "ps_descriptor",
    SEC_DESCRIPTOR_EXT: "ps_descriptor_ext",
    SEC_CHUNKED: "ps_chunked",
    SEC_CHUNK: "ps_chunk",
    SEC_COMMIT: "ps_commit",
    SEC_OBJECT_NAME: "ps_object_name",
    SEC_IMAGE: "ps_image",
    SEC_XID: "ps_xid",
    SEC_PREPARED: "ps_prepared",
    SEC_TAKEN: "ps_taken",
}

SECTIONS_UNDERSTOOD = frozenset(
    (*SECTION_STRUCTS, SEC_BODY, SEC_COUNTS, SEC_DUE, SEC_OBJECT_ATTRS, SEC_UNITS)
)

BLOCK_OBJECTS, BLOCK_MESSAGES, BLOCK_IMAGE, BLOCK_END, BLOCK_SEGMENTS = 1, 2, 3, 4, 5
BLOCK_UNITS, BLOCK_OPERATIONS, BLOCK_UNIT_PUTS = 6, 7, 8
BLOCK_TYPES = {
    BLOCK_OBJECTS: "OBJECTS",
    BLOCK_MESSAGES: "MESSAGES",
    BLOCK_IMAGE: "IMAGE",
    BLOCK_END: "END",
    BLOCK_SEGMENTS: "SEGMENTS",
    BLOCK_UNITS: "UNITS",
    BLOCK_OPERATIONS: "OPERATIONS",
    BLOCK_UNIT_PUTS: "UNIT_PUTS",
}
CARRIED = frozenset((PUT, GET, EXPIRE, CLEAR, TAKEN))  # types of the lines of OPERATIONS

ffi: Any = cffi.FFI()
ffi.cdef(DECLARATIONS)


@functools.cache
def size_of(struct: str) -> int:
    """Bytes of a struct."""
    return int(ffi.sizeof(f"struct {struct}"))


@functools.cache
def _array_type(struct: str) -> Any:
    return ffi.typeof(f"struct {struct}[]")


def overlay(struct: str, data: bytes | memoryview, offset: int = 0, count: int = 1) -> Any:
    """``count`` structs laid over ``data`` at ``offset``: a cffi array that keeps the bytes alive.

    Raises ValueError when they do not fit into ``data``; nothing is read beyond it.
    """
    size = size_of(struct) * count
    if offset < 0 or offset + size > len(data):
        raise ValueError(f"struct {struct} at {offset} does not fit into {len(data)} bytes")
    return ffi.from_buffer(_array_type(struct), memoryview(data)[offset : offset + size])


def fields(struct: str) -> list[tuple[str, Any, int]]:
    """(name, cffi type, offset) of each field."""
    return [(name, f.type, f.offset) for name, f in ffi.typeof(f"struct {struct}").fields]


@functools.cache
def dtype(struct: str) -> np.dtype[Any]:
    """The NumPy record type with the same offsets; arrays of bytes become void or sub-arrays."""
    names, formats, offsets = [], [], []
    for name, kind, offset in fields(struct):
        if kind.kind == "array":
            code: Any = f"V{ffi.sizeof(kind)}"
        else:
            sign = "i" if kind.cname.startswith("int") else "u"
            code = f"<{sign}{ffi.sizeof(kind)}"
        names.append(name)
        formats.append(code)
        offsets.append(offset)
    spec = {"names": names, "formats": formats, "offsets": offsets, "itemsize": size_of(struct)}
    return np.dtype(spec)  # type: ignore[call-overload, no-any-return]


def raw(array: Any) -> bytes:
    """The bytes of a cffi array field."""
    return bytes(ffi.buffer(array))


def text(array: Any) -> str:
    """A blank-padded (or NUL-padded) character field without its padding."""
    return raw(array).decode("latin-1").rstrip(" \0")


def record_type_name(stored: int) -> str:
    """``PUT`` for 0x81; ``type 77`` for an unknown one."""
    number = stored & ~MUST_UNDERSTAND
    return RECORD_TYPES.get(number, f"type {number}")

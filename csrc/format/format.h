/*
 * format.h - what the files of a queue manager look like, as structs. FORMAT.md is the same in
 * words, with a grammar and a worked example; the Python reader is written from FORMAT.md alone.
 *
 * Everything is little-endian and fixed width. Bytes called "zero" are written as zero and checked.
 *
 * LSN: a 64-bit offset in an endless stream of bytes. A segment file holds the stretch
 * [base_lsn, base_lsn + size): its first page is the segment header, the rest flush batches. The
 * next segment's base_lsn is >= the end of this one's stretch (greater after a recovery).
 *
 * A flush batch starts on a page boundary: batch header, records back to back, zero padding to the
 * page. A record is a record header and sections. A unit's records need not be adjacent: they enter
 * the journal at the call that made them, its COMMIT record closes the unit. A record with
 * REC_COMMITS is the last record of its unit and its commit in one (single calls outside
 * syncpoint). PUTs and GETs of units may be short: they refer to a COMMON record of their batch
 * (short_codec.h).
 *
 * Checksums: each record carries a plain CRC-32C of itself. The batch header has two SipHashes
 * keyed by the salt of its segment: one of the 4-byte CRC fields of its records in order, and one
 * of queue-manager id, segment number, generation and the header, so that neither stale or
 * misplaced bytes (rule 5) nor bytes of a message that look like a header (rule 60) can pass.
 */
#ifndef PENSTOCK_FORMAT_H
#define PENSTOCK_FORMAT_H

#include "base/base.h"
#include "penstock/descriptor.h"

#define PSJ_MAGIC "PSTKJRNL"
#define PSC_MAGIC "PSTKCKPT"
#define PSH_MAGIC "PSTKHEAD"
/* Message numbers and unit ids are below it, so that the next one never wraps to 0, which means
 * "none". */
#define PS_NUMBER_LIMIT (UINT64_C(1) << 63)
/* The last due time: the end of the year 9999. */
#define PS_DUE_MAX UINT64_C(253402300799999999)
enum {
    PS_FORMAT_MAJOR = 2,
    PS_FORMAT_MINOR = 0,
    PS_MIN_SEGMENT = 32768,            /* smallest segment, header page included */
    PS_BATCH_MAGIC = 0x54425350,       /* "PSBT" */
    PS_BLOCK_MAGIC = 0x4b425350,       /* "PSBK" */
    PS_CHUNK_BYTES = 61440,            /* body bytes of a CHUNK record at most */
    PS_INLINE_BODY_MAX = 61440,        /* a longer body is stored as CHUNK records before its PUT */
    PS_ALIGN = 8,                      /* records, sections and blocks are multiples of this */
};

/* First page of a segment file `journal/<segment_no, 10 decimal digits>.psj`. */
struct psj_segment {
    char magic[8];            /*  0..7   PSJ_MAGIC */
    uint16_t major;           /*  8..9   a reader refuses another major */
    uint16_t minor;           /* 10..11  informational */
    uint32_t header_size;     /* 12..15  4096 */
    uint64_t compatible;      /* 16..23  feature bits a reader may ignore */
    uint64_t incompatible;    /* 24..31  feature bits a reader must know, else refuse */
    uint8_t qm_id[16];        /* 32..47 */
    uint64_t segment_no;      /* 48..55  1, 2, 3, ... without holes from the oldest kept */
    uint64_t generation;      /* 56..63  one more each time any segment of the store is (re)used */
    uint64_t restart_epoch;   /* 64..71  one more at each recovery that writes */
    uint64_t base_lsn;        /* 72..79  LSN of this file's byte 0, page aligned */
    uint64_t size;            /* 80..87  of the file, page aligned */
    uint64_t prev_end_lsn;    /* 88..95  where the previous segment's batches end; 0 in segment 1 */
    uint64_t created_us;      /* 96..103 wall clock, microseconds since 1970 UTC */
    uint8_t salt[16];         /* 104..119 random, drawn when the file is taken into use */
    uint64_t timeline;        /* 120..127 HEAD's */
    uint8_t zero[3964];       /* 128..4091 */
    uint32_t crc;             /* 4092..4095 CRC-32C of bytes 0..4091 */
};
MQX_STATIC_ASSERT(sizeof(struct psj_segment) == 4096, "segment header is one page");
MQX_STATIC_ASSERT(offsetof(struct psj_segment, crc) == 4092, "segment header CRC is last");

/* A page of the file `HEAD`, which has two: the one with sequence % 2 = 0 at offset 0. */
struct psh_page {
    char magic[8];            /*  0..7   PSH_MAGIC */
    uint16_t major;           /*  8..9 */
    uint16_t minor;           /* 10..11 */
    uint32_t header_size;     /* 12..15  4096 */
    uint64_t compatible;      /* 16..23 */
    uint64_t incompatible;    /* 24..31 */
    uint8_t qm_id[16];        /* 32..47 */
    uint64_t sequence;        /* 48..55  one more with each write; the higher one counts */
    uint64_t segment_no;      /* 56..63  the newest segment that may hold records */
    uint64_t generation;      /* 64..71  its generation */
    uint64_t timeline;        /* 72..79  0; a restored store's is higher */
    uint8_t zero[4012];       /* 80..4091 */
    uint32_t crc;             /* 4092..4095 CRC-32C of bytes 0..4091 */
};
MQX_STATIC_ASSERT(sizeof(struct psh_page) == 4096, "a page of HEAD");
MQX_STATIC_ASSERT(offsetof(struct psh_page, crc) == 4092, "its CRC is last");

/* Start of a flush batch, page aligned. */
struct psj_batch {
    uint32_t magic;           /*  0..3   PS_BATCH_MAGIC */
    uint32_t length;          /*  4..7   header and records, without the padding */
    uint64_t lsn;             /*  8..15  of this header */
    uint64_t durable_lsn;     /* 16..23  durable mark: all batches below it were on disk when
                               * written */
    uint64_t time_us;         /* 24..31  wall clock when sealed */
    uint32_t record_count;    /* 32..35  0 in a mark page */
    uint32_t zero;            /* 36..39 */
    uint64_t segment_no;      /* 40..47 */
    uint64_t records;         /* 48..55  SipHash of the records' crc fields in order */
    uint64_t hash;            /* 56..63  SipHash of qm_id, segment_no, generation and bytes 0..55 */
};
MQX_STATIC_ASSERT(sizeof(struct psj_batch) == 64, "batch header");

enum { /* record types; PS_MUST_UNDERSTAND is set in the stored type unless stated otherwise */
    PS_MUST_UNDERSTAND = 0x80,
    PS_REC_PUT = 1,
    PS_REC_GET = 2,
    PS_REC_COMMIT = 3,
    PS_REC_BACKOUT = 4,
    PS_REC_PREPARE = 5,            /* the unit is complete; it is resolved by its xid */
    PS_REC_COMMIT_PREPARED = 6,    /* of all units that it names */
    PS_REC_BACKOUT_PREPARED = 7,
    PS_REC_CHUNK = 8,
    PS_REC_MOVED = 9,              /* the message as a PUT has it, written anew by compaction */
    PS_REC_EXPIRE = 10,
    PS_REC_MARK = 11,              /* reserved, optional (mark pages are batches without records) */
    PS_REC_IMAGE_CONSUMED = 12,
    PS_REC_OBJECT = 13,            /* define or alter: the whole definition */
    PS_REC_OBJECT_DELETE = 14,
    PS_REC_CHANNEL_SEQUENCE = 15,  /* reserved */
    PS_REC_CLUSTER_OBJECT = 16,    /* reserved */
    PS_REC_SUBSCRIPTION = 17,      /* reserved */
    PS_REC_CLEAR = 18,             /* every message of the queue with a number < header.number is
                                    * gone */
    PS_REC_COMMON = 20,            /* what short records behind it in its batch have in common */
    PS_REC_CHANNEL_BATCH = 21,     /* reserved: a channel's batch whose outcome is not known */
    PS_REC_RETAINED = 22,          /* reserved: retained publication of a topic */
    PS_REC_TRIGGER = 23,           /* reserved: what a queue's trigger has seen */
    PS_REC_STORE_UNIT = 24,        /* reserved: part of a unit that another store decides */
    PS_REC_TAKEN = 19,             /* image of a non-persistent message got in a unit that is being
                                    * prepared */
};

enum { /* record flags */
    PS_FLAG_COMMITS = 1,   /* this record also commits its unit */
    PS_FLAG_SHORT = 2,     /* struct psj_short */
    PS_FLAG_UNDECIDED = 8, /* of a MOVED: its unit has put the message, and was not decided */
    PS_PADDING_SHIFT = 4,  /* bits 4-6 of a short record: zero bytes at its end */
    PS_PADDING_MASK = 0x70,
    PS_RECORD_MIN = 24,    /* bytes of the shortest record */
};

struct psj_record {
    uint16_t eighths;         /*  0..1   length of header and sections, divided by 8 */
    uint8_t type;             /*  2 */
    uint8_t flags;            /*  3 */
    uint32_t crc;             /*  4..7   CRC-32C of bytes 0..3, then of bytes 8..length-1 */
    uint64_t unit_id;         /*  8..15  0: stands alone */
    uint32_t object;          /* 16..19  object (queue) slot */
    uint32_t object_gen;      /* 20..23  its generation */
    uint64_t number;          /* 24..31  message number, 0 where there is none; CLEAR: the bound */
};
MQX_STATIC_ASSERT(sizeof(struct psj_record) == 32, "record header");

/* A GET, or with struct ps_short_put a PUT, that refers to a COMMON record of its batch. */
struct psj_short {
    uint16_t eighths;         /*  0..1   as in psj_record */
    uint8_t type;             /*  2 */
    uint8_t flags;            /*  3      with PS_FLAG_SHORT */
    uint32_t crc;             /*  4..7   CRC-32C that goes on from the COMMON record's: bytes 0..3,
                               *         then bytes 12..length-1 */
    uint32_t common;          /*  8..11  this record's LSN minus that of its COMMON record */
    int32_t unit;             /* 12..15  unit_id minus that of the COMMON record */
    uint64_t number;          /* 16..23  message number */
};
MQX_STATIC_ASSERT(sizeof(struct psj_short) == PS_RECORD_MIN, "short record");

enum { /* fields behind ps_short_put, in the order of their bits; without one, the value is ... */
    PS_SHORT_PLACEMENT = 0xf,     /* no field: the descriptor's placement */
    PS_SHORT_MSG_ID = 1 << 4,     /* 24: ... the common MsgId, its last 8 bytes, highest first,
                                   * raised by the message number */
    PS_SHORT_CORREL_ID = 1 << 5,  /* 24: ... zeroes */
    PS_SHORT_PUT_TIME = 1 << 6,   /*  8: ... `time` */
    PS_SHORT_EXPIRY = 1 << 7,     /*  8: ... 0 */
    PS_SHORT_PRIORITY = 1 << 8,   /*  4: ... the placement */
    PS_SHORT_EXT = 1 << 9,        /* 192: ... none */
    PS_SHORT_DUE = 1 << 10,       /*  8: ... 0 */
    PS_SHORT_KNOWN = 0x7ff,
};
struct ps_short_put { /* then the fields, then the body */
    uint32_t fields;          /* PS_SHORT_* */
    int32_t time;             /* put_time_us minus that of the COMMON record; 0 with
                               * PS_SHORT_PUT_TIME */
};
MQX_STATIC_ASSERT(sizeof(struct ps_short_put) == 8, "short put");

enum { /* section tags */
    PS_SEC_DESCRIPTOR = 1,    /* struct ps_descriptor */
    PS_SEC_DESCRIPTOR_EXT = 2,/* struct ps_descriptor_ext, when any field differs from its initial
                               * value */
    PS_SEC_PROPERTIES = 3,    /* reserved */
    PS_SEC_ORIGIN = 4,        /* reserved: the MQXQH */
    PS_SEC_GROUP = 5,         /* reserved */
    PS_SEC_BODY = 6,          /* message bytes; always the last section */
    PS_SEC_CHUNKED = 7,       /* struct ps_chunked: the body is in CHUNK records (then no BODY) */
    PS_SEC_CHUNK = 8,         /* struct ps_chunk: in a CHUNK record */
    PS_SEC_COMMIT = 9,        /* struct ps_commit */
    PS_SEC_COUNTS = 10,       /* array of struct ps_count: backout counts, in a BACKOUT record */
    PS_SEC_OBJECT_NAME = 11,  /* struct ps_object_name */
    PS_SEC_OBJECT_ATTRS = 12, /* attribute list, see struct ps_attr */
    PS_SEC_XID = 13,          /* struct ps_xid */
    PS_SEC_STORES = 14,       /* reserved: participating stores */
    PS_SEC_IMAGE = 15,        /* struct ps_image, in IMAGE_CONSUMED */
    PS_SEC_UNITS = 16,        /* array of unit ids, 64 bits each, in COMMIT_PREPARED and
                               * BACKOUT_PREPARED */
    PS_SEC_PREPARED = 17,     /* struct ps_prepared, in PREPARE */
    PS_SEC_TAKEN = 18,        /* struct ps_taken, in TAKEN */
    PS_SEC_SEGMENT = 19,      /* reserved: of a segmented message */
    PS_SEC_DUE = 20,          /* array of due times, 64 bits each, one for each of COUNTS, 0 none:
                               * in a BACKOUT record */
    PS_SEC_PUBLICATION = 21,  /* reserved: topic and subscription of a publication */
};

struct ps_section { /* then `length` bytes, then zeroes to a multiple of 8 */
    uint16_t tag;
    uint16_t zero;
    uint32_t length;
};
MQX_STATIC_ASSERT(sizeof(struct ps_section) == 8, "section header");

struct ps_chunked {
    uint64_t first_lsn;       /* LSN of the first CHUNK record (header) */
    uint64_t last_lsn;        /* LSN of the last one; each names its predecessor */
    uint64_t total;           /* body bytes */
    uint32_t count;
    uint32_t zero;
};
MQX_STATIC_ASSERT(sizeof(struct ps_chunked) == 32, "chunked");

struct ps_chunk { /* followed by a BODY section with the piece */
    uint64_t prev_lsn;        /* 0 in the first */
    uint64_t offset;          /* of this piece in the body */
    uint64_t total;           /* body bytes of the message */
    uint32_t number;          /* 0, 1, ... */
    uint32_t zero;
};
MQX_STATIC_ASSERT(sizeof(struct ps_chunk) == 32, "chunk");

struct ps_commit {
    uint64_t first_lsn;       /* LSN of the unit's first record */
    uint32_t record_count;    /* records of the unit before this one, CHUNKs included */
    uint32_t running_crc;     /* CRC-32C of the crc fields of those records in order */
};
MQX_STATIC_ASSERT(sizeof(struct ps_commit) == 16, "commit");

struct ps_count {
    uint64_t identity;
    uint32_t object;
    uint32_t count;           /* the message's new BackoutCount */
};
MQX_STATIC_ASSERT(sizeof(struct ps_count) == 16, "count");

struct ps_image {
    uint64_t checkpoint_lsn;  /* the checkpoint whose non-persistent image has been loaded */
};

struct ps_prepared {
    uint64_t prepared_us;     /* wall clock */
    uint64_t bytes;           /* of the bodies of all messages put and got */
    uint32_t puts;            /* messages, non-persistent ones included */
    uint32_t gets;
    uint32_t lost_puts;       /* of these, what a restart loses: non-persistent puts ... */
    uint32_t lost_gets;       /* ... and gets without an image, of temporary queues */
};
MQX_STATIC_ASSERT(sizeof(struct ps_prepared) == 32, "prepared");

struct ps_taken {
    uint32_t before;          /* PUT and GET records of the unit that come before it in the order of
                               * the calls */
    uint32_t zero;
};
MQX_STATIC_ASSERT(sizeof(struct ps_taken) == 8, "taken");

/* ---- checkpoint file `checkpoint/<begin_lsn, 16 hex digits>.psc`
 *      header page, blocks, END block ---- */

struct psc_header {
    char magic[8];            /*   0..7  PSC_MAGIC */
    uint16_t major;           /*   8..9 */
    uint16_t minor;           /*  10..11 */
    uint32_t header_size;     /*  12..15 4096 */
    uint64_t compatible;      /*  16..23 */
    uint64_t incompatible;    /*  24..31 */
    uint8_t qm_id[16];        /*  32..47 */
    uint64_t begin_lsn;       /*  48..55 replay starts at the first batch whose end is > this LSN
                               * ... */
    uint64_t begin_segment;   /*  56..63 ... in this segment */
    uint64_t end_lsn;         /*  64..71 durable LSN when the checkpoint was complete */
    uint64_t next_number;     /*  72..79 message numbers given out are below this; 1..2^63 - 1 */
    uint64_t next_unit_id;    /*  80..87  unit ids given out are below this; 1..2^63 - 1 */
    uint64_t restart_epoch;   /*  88..95 */
    uint64_t generation;      /*  96..103 newest segment generation */
    uint32_t clean;           /* 104..107 1: orderly end, the journal ends at end_lsn exactly */
    uint32_t has_image;       /* 108..111 1: IMAGE blocks follow (only when clean) */
    uint64_t created_us;      /* 112..119 */
    uint64_t oldest_segment;  /* 120..127 oldest segment still needed when written */
    uint32_t units_listed;    /* 128..131 1: UNITS has every unit that was not decided at
                               * begin_lsn */
    uint8_t zero[3960];       /* 132..4091 */
    uint32_t crc;             /* 4092..4095 */
};
MQX_STATIC_ASSERT(sizeof(struct psc_header) == 4096, "checkpoint header is one page");

enum { /* block types */
    PSC_OBJECTS = 1,  /* payload: OBJECT records, as in the journal (object slots are kept) */
    PSC_MESSAGES = 2, /* payload: struct psc_columns and the columns (message_columns.h): of
                       * messages by queue slot, placement desc., arrival */
    PSC_IMAGE = 3,    /* payload: PUT records of non-persistent messages of NPMCLASS(HIGH) queues */
    PSC_END = 4,      /* payload: struct psc_end */
    PSC_SEGMENTS = 5, /* payload: array of struct psc_segment, numbers ascending */
    PSC_UNITS = 6,    /* payload: array of struct psc_unit, ids ascending */
    PSC_OPERATIONS = 7, /* payload: array of struct psc_operation: of the units, one after the
                         * other, in the order of the records */
    PSC_UNIT_PUTS = 8,  /* payload: columns of struct psc_message: of the operations that are a PUT
                         * or TAKEN, in their order */
};

struct psc_block { /* then `length` payload bytes, then zeroes to a multiple of 8 */
    uint32_t magic;           /*  0..3   PS_BLOCK_MAGIC */
    uint32_t crc;             /*  4..7   CRC-32C seeded with crc32c(qm_id, begin_lsn), bytes 8..31,
                               * payload */
    uint32_t type;            /*  8..11 */
    uint32_t count;           /* 12..15  items in the payload */
    uint64_t length;          /* 16..23  payload bytes, at most 1 MiB + 64 KiB */
    uint64_t sequence;        /* 24..31  0, 1, 2, ... */
};
MQX_STATIC_ASSERT(sizeof(struct psc_block) == 32, "checkpoint block");

struct psc_message { /* a message in the journal; descriptor and body are in the journal at `lsn` */
    uint64_t number;          /*  0..7   message number */
    uint64_t lsn;             /*  8..15  of its PUT record */
    uint64_t first_lsn;       /* 16..23  of its first CHUNK record, or = lsn */
    uint64_t expiry_us;       /* 24..31 */
    uint64_t tag_msg_id;      /* 32..39  keyed tags, key = qm_id (see FORMAT.md) */
    uint64_t tag_correl_id;   /* 40..47 */
    uint64_t tag_group_id;    /* 48..55  0 when there is no GroupId */
    uint32_t object;          /* 56..59 */
    uint32_t object_gen;      /* 60..63 */
    uint32_t length;          /* 64..67  body bytes */
    uint32_t backout_count;   /* 68..71 */
    int32_t priority;         /* 72..75 */
    uint8_t placement;        /* 76 */
    uint8_t has_ext;          /* 77 */
    uint8_t is_volatile;      /* 78      1: its persistence is 0: of a queue in a structure */
    uint8_t zero;             /* 79 */
    uint32_t record_length;   /* 80..83  of the PUT record */
    uint32_t chunk_count;     /* 84..87 */
    uint64_t due_us;          /* 88..95  before it no get finds the message; 0: it is available */
};
MQX_STATIC_ASSERT(sizeof(struct psc_message) == 96, "checkpoint message");

enum { PSC_COLUMN_COUNT = 17 };
struct psc_columns { /* before the columns, in the order of psc_message */
    uint64_t base[17];        /*   0..135 added to each value of the column */
    uint8_t width[17];        /* 136..152 bytes of a value: 0, 1, 2, 4 or 8 */
    uint8_t due_width;        /* 153      of the column due_us behind them: 0 or 8; its base is 0 */
    uint8_t zero[6];          /* 154..159 */
};
MQX_STATIC_ASSERT(sizeof(struct psc_columns) == 160, "checkpoint columns");

struct psc_segment { /* a segment older than begin_segment that must exist */
    uint64_t number;          /*  0..7 */
    uint64_t generation;      /*  8..15 */
    uint64_t base_lsn;        /* 16..23 */
    uint64_t end_lsn;         /* 24..31  where its batches end */
};
MQX_STATIC_ASSERT(sizeof(struct psc_segment) == 32, "checkpoint segment");

struct psc_unit { /* a unit of work that was not decided at begin_lsn */
    uint64_t id;              /*  0..7 */
    uint64_t first_lsn;       /*  8..15  of its first record */
    uint64_t pieces_lsn;      /* 16..23  of the first CHUNK record behind its last PUT, 0: none */
    uint64_t operations;      /* 24..31  how many of the lines in OPERATIONS are its own */
    uint32_t record_count;    /* 32..35  records below begin_lsn, CHUNKs included */
    uint32_t running_crc;     /* 36..39  over their crc fields */
    uint64_t prepare_end_lsn; /* 40..47  end of its PREPARE record, 0: it is not prepared */
    struct ps_prepared prepared; /* 48..79 as in that record, zeroes when it is not prepared */
    struct ps_xid xid;        /* 80..215 the same */
};
MQX_STATIC_ASSERT(sizeof(struct psc_unit) == 216, "checkpoint unit");

struct psc_operation { /* a record of such a unit that does something when the unit is committed */
    uint64_t number;          /*  0..7   message number; CLEAR: the bound */
    uint64_t lsn;             /*  8..15  of the record */
    uint32_t object;          /* 16..19 */
    uint32_t object_gen;      /* 20..23 */
    uint32_t type;            /* 24..27  PUT, GET, EXPIRE, CLEAR or TAKEN */
    uint32_t before;          /* 28..31  TAKEN: as in struct ps_taken */
};
MQX_STATIC_ASSERT(sizeof(struct psc_operation) == 32, "checkpoint operation");

struct psc_end {
    uint64_t block_count;     /* blocks before this one */
    uint64_t object_count;
    uint64_t message_count;
    uint64_t image_count;
    uint64_t end_lsn;
    uint64_t segment_count;
    uint64_t unit_count;
    uint64_t operation_count;
    uint64_t unit_put_count;
};
MQX_STATIC_ASSERT(sizeof(struct psc_end) == 72, "checkpoint end");

#endif

/*
 * journal_scan.h - a segment of the journal as a table: rows of chosen columns out of its bytes.
 *
 * A pure function over (pointer, length), without region, locks, files or allocation beyond the
 * calling thread's record buffer (rule 41). The bytes are untrusted and may change while they are
 * read: a segment may be recycled while a reader that is not attached reads it. Every length is
 * read once, into memory of our own, and checked there; what is decoded is a private copy. So no
 * bytes lead outside `length`, and what a change leaves behind is the caller's to throw away: after
 * each call it compares the header's generation on the file with `generation` (rule 8).
 *
 * Terms
 *   row       one record of the chosen types; CHUNK records are pieces of their PUT, not rows. A
 *             record that ends prepared units is one row for each unit that it names.
 *   column    one field of mqe_journal_scan_fields[], an array of `size` bytes a row in memory of
 *             the caller. Only columns that are given are filled in.
 *   limit     offset that no batch crosses: where the segment ends by its successor, or
 *             the durable LSN. The chain of good batches must reach it exactly: anything else is
 *             damage (FORMAT.md 9.4).
 *
 * Which bytes are examined: with `verify` the CRC of every record of a batch and the batch's hashes
 * are checked before its first row; without it the headers, sections and the batch's hashes (which
 * cover the records' CRC fields), and bodies only when they are requested.
 *
 * A call ends when the rows are full, when the segment ends, or with something for the caller to
 * do; the next one continues where it ended. Rows of earlier calls stay true whatever comes later,
 * because a batch is checked before any of its rows is given.
 */
#ifndef PENSTOCK_JOURNAL_SCAN_H
#define PENSTOCK_JOURNAL_SCAN_H

#include "base/base.h"

enum mqe_journal_scan_result {
    MQE_SCAN_MORE = 0,        /* the rows are full, or the bodies: take them and call again */
    MQE_SCAN_END = 1,         /* the limit is reached */
    MQE_SCAN_DAMAGED = 2,     /* problem and problem_offset: what and where */
    MQE_SCAN_UNSUPPORTED = 3, /* the same: whole, but of a newer version */
    MQE_SCAN_NEED_SEGMENT = 4,/* a piece of a body lies at need_lsn: give its segment, or set
                               * allow_lost */
    MQE_SCAN_NEED_BYTES = 5,  /* the next body has need_bytes, no row is given */
};

enum mqe_journal_scan_kind {
    MQE_SCAN_UINT,
    MQE_SCAN_INT,
    MQE_SCAN_BOOL,
    MQE_SCAN_TIME,  /* microseconds since 1970 UTC; INT64_MIN: none */
    MQE_SCAN_ID,    /* bytes */
    MQE_SCAN_TEXT,  /* bytes; the padding is NUL */
};

struct mqe_journal_scan_field {
    const char *name;
    uint32_t kind;    /* enum mqe_journal_scan_kind */
    uint32_t size;    /* bytes a row */
    uint32_t message; /* 1: only rows of PUT and TAKEN have it; 0 bytes, or "none", in others */
    uint32_t from;    /* internal: which struct, and where in it */
    uint32_t offset;
};
extern const struct mqe_journal_scan_field mqe_journal_scan_fields[];
extern const uint32_t mqe_journal_scan_field_count;

enum mqe_journal_scan_body { /* column body_state */
    MQE_SCAN_NO_BODY = 0,   /* no PUT, or bodies are not requested */
    MQE_SCAN_BODY = 1,
    MQE_SCAN_BODY_LOST = 2, /* a piece of it lies in a segment that is not there any more */
};

struct mqe_journal_scan_piece { /* another segment, in which pieces of bodies may lie */
    const unsigned char *bytes;
    uint64_t length;  /* that may be read */
    uint64_t base_lsn;
};

struct mqe_journal_scan_header { /* of the segment, verified (FORMAT.md 4) */
    uint8_t qm_id[16];
    uint64_t segment_no, generation, restart_epoch;
    uint64_t base_lsn, size, prev_end_lsn;
    uint64_t created_us, timeline;
    uint8_t salt[16];
};

struct mqe_journal_scan {
    const unsigned char *bytes;
    uint64_t length;
    struct mqe_journal_scan_header header;
    /* the caller's, between calls */
    uint64_t limit;            /* offset */
    uint64_t start_lsn, end_lsn; /* rows with start_lsn <= lsn < end_lsn */
    uint64_t start_us, end_us; /* of batches sealed at start_us <= time < end_us */
    uint64_t types;            /* bit n: records of type n are rows */
    uint32_t verify;
    uint32_t allow_lost;
    const struct mqe_journal_scan_piece *pieces;
    uint32_t piece_count;
    /* where it is */
    uint32_t in_batch;         /* 1: the batch at `at` is checked, its rows are being given */
    uint32_t batch_length;
    uint64_t batch_time_us;
    uint64_t at;               /* offset of the batch */
    uint64_t record_at;        /* offset of the next record of it */
    uint32_t units_given;      /* rows given for units that it names, when there are more */
    /* what it says */
    uint64_t batches, records; /* gone through */
    uint64_t problem_offset;
    uint64_t need_lsn, need_bytes;
    char problem[160];
};

/* `length` bytes at `bytes` (8-byte aligned) as a segment: number 0 takes the one of the header,
 * qm_id NULL too. 0, or MQRC_OBJECT_DAMAGED with a text. The limit is the length, everything is
 * chosen but OBJECT, CHUNK and IMAGE_CONSUMED records. */
int mqe_journal_scan_open(struct mqe_journal_scan *scan, const void *bytes, uint64_t length,
                          const uint8_t *qm_id, uint64_t number) MQX_MUST_USE;

struct mqe_journal_scan_rows {
    void *const *columns;    /* parallel to mqe_journal_scan_fields; NULL: not requested */
    uint32_t capacity;
    uint32_t count;          /* out */
    unsigned char *bodies;   /* with offsets NULL: not requested */
    uint64_t body_capacity;
    int64_t *offsets;        /* capacity + 1 */
};
/* Fills the rows from the first on. */
enum mqe_journal_scan_result mqe_journal_scan_next(struct mqe_journal_scan *scan,
                                                   struct mqe_journal_scan_rows *rows);

/* After MQE_SCAN_DAMAGED: continues at the next good batch, or at the limit. Bytes left out. */
uint64_t mqe_journal_scan_skip(struct mqe_journal_scan *scan);

/* The newest durable mark of the segment (FORMAT.md 9.5), 0 without one, and where the chain of
 * batch headers ends; the wall clock of its first and of its last batch, 0 without one. Looks at
 * headers alone. */
struct mqe_journal_scan_span {
    uint64_t mark, end_lsn;
    uint64_t first_us, last_us;
};
void mqe_journal_scan_read_span(const struct mqe_journal_scan *scan,
                                struct mqe_journal_scan_span *out);
/* The wall clock of the first batch alone, 0 without one. */
uint64_t mqe_journal_scan_first_us(const struct mqe_journal_scan *scan);

#endif

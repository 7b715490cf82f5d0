/*
 * journal_scan.c - see penstock/journal_scan.h: a segment as rows of chosen columns.
 *
 * Terms
 *   chosen batch   one whose time and LSNs overlap what the caller requested; others are stepped
 *                  over by their headers.
 *   passed record  one of a known type that is no row: not decoded. A record of an unknown type
 *                  is decoded, and refused when its must-understand bit is set.
 *   piece          the part of a body that one CHUNK record holds; pieces are gathered from the
 *                  last to the first, each names its predecessor.
 *
 * The state machine of mqe_journal_scan_next()
 *   in_batch 0, at < limit              begin_batch: verify the batch at `at`, or step over it
 *                                       when it is not chosen
 *   in_batch 1, record_at in the batch  one_record: give a row, or step over the record
 *   in_batch 1, record_at at its end    next_batch
 *   at = limit, or end_lsn reached      MQE_SCAN_END
 * It stops in front of a record that does not fit into the rows, the bodies or the segments that
 * the caller has given, and continues with the same record at the next call.
 *
 * What is decoded of a PUT: its bytes up to the section BODY are copied into the record buffer (512
 * at first, all when that is not enough) and decoded there with the length cut to that point, of a
 * short record behind a copy of its COMMON record, which its copied distance then leads to; the
 * body is copied from the segment straight into the caller's memory. So a scan without bodies
 * touches a few cache lines of each record.
 *
 * Invariants
 *   1. A length is read once, into memory of this thread, and checked there before it is used: the
 *      segment may be recycled while it is scanned (rule 8, rule 41).
 *   2. `record_at` is in the batch at `at`, and `at` <= limit <= length.
 *   3. Rows are given only of a batch whose checksums were verified.
 *
 * No locks, no region, no allocation beyond the thread's record buffer (mqx_scratch).
 *
 * Errors. Results of enum mqe_journal_scan_result; `problem` and `problem_offset` say what is wrong
 * and where.
 */
#include "penstock/journal_scan.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/siphash.h"
#include "format/short_codec.h"
#include "format/segment.h"
#include "journal/scan_columns.h"

#include <stdio.h>
#include <string.h>

enum {
    SECTOR = 512,
    CRCS_AT_ONCE = 64, /* even: the parts of a hash are words of 8 bytes */
    QUEUES = 1,   /* name space of the objects that hold messages */
    PREFIX = 512, /* a PUT record without its body fits into it */
    TENTH_US = 100000,
};

#define TYPE(name) (1ull << PS_REC_##name)
#define MESSAGE_TYPES                                                                      \
    (TYPE(PUT) | TYPE(GET) | TYPE(COMMIT) | TYPE(BACKOUT) | TYPE(PREPARE) |                \
     TYPE(COMMIT_PREPARED) | TYPE(BACKOUT_PREPARED) | TYPE(EXPIRE) | TYPE(OBJECT_DELETE) | \
     TYPE(CLEAR) | TYPE(TAKEN) | TYPE(MOVED))
/* Not decoded when it is no row; all others must be understood. */
#define PASSED_TYPES \
    (MESSAGE_TYPES | TYPE(CHUNK) | TYPE(OBJECT) | TYPE(IMAGE_CONSUMED) | TYPE(COMMON))

/* ---- problems ---- */

/* Says what is wrong, and at which offset of the segment. */
static MQX_COLD enum mqe_journal_scan_result problem(struct mqe_journal_scan *scan, uint64_t offset,
                                                     const char *what)
{
    MQX_ASSERT(what != NULL);
    MQX_ASSERT(offset <= scan->length);
    (void)snprintf(scan->problem, sizeof scan->problem, "%s", what);
    scan->problem_offset = offset;
    return MQE_SCAN_DAMAGED;
}

/* ---- opening ---- */

/* The header page is copied first and verified in the copy (invariant 1). */
int mqe_journal_scan_open(struct mqe_journal_scan *scan, const void *bytes, uint64_t length,
                          const uint8_t *qm_id, uint64_t number)
{
    struct psj_segment header;
    MQX_ASSERT(scan != NULL);
    MQX_ASSERT(bytes != NULL || length == 0);
    *scan =
        (struct mqe_journal_scan){.bytes = bytes, .length = length, .limit = length, .verify = 1};
    if (length < PS_MIN_SEGMENT || ((uintptr_t)bytes & 7u) != 0) {
        return mqx_fail(MQRC_OBJECT_DAMAGED, "%llu bytes are no journal segment",
                        (unsigned long long)length);
    }
    memcpy(&header, bytes, sizeof header);
    memcpy(scan->header.qm_id, header.qm_id, sizeof header.qm_id);
    scan->header.segment_no = header.segment_no;
    scan->header.generation = header.generation;
    scan->header.restart_epoch = header.restart_epoch;
    scan->header.base_lsn = header.base_lsn;
    scan->header.size = header.size;
    scan->header.prev_end_lsn = header.prev_end_lsn;
    scan->header.created_us = header.created_us;
    scan->header.timeline = header.timeline;
    memcpy(scan->header.salt, header.salt, sizeof header.salt);
    scan->end_lsn = UINT64_MAX;
    scan->end_us = UINT64_MAX;
    scan->types = MESSAGE_TYPES;
    scan->at = MQX_PAGE_SIZE;
    return mqx_segment_verify(&header, qm_id != NULL ? qm_id : header.qm_id,
                              number != 0 ? number : header.segment_no, length);
}

/* ---- batches ----
 *
 * A batch is verified as a whole before its first row: its header must say that it belongs at this
 * offset of this use of the file, which its keyed hash proves, its records must fill it exactly,
 * and a second hash covers their CRC fields. With `verify` each record's own CRC is
 * computed as well. A record that fails only that is reported with its own offset, anything else
 * with the batch's.
 */

/* Where a batch at that offset would lie: what its hash is bound to, so stale bytes of an earlier
 * use of the file do not pass (rule 5). */
static struct mqx_flush_batch_position position_of(const struct mqe_journal_scan *scan,
                                                   uint64_t offset)
{
    MQX_ASSERT(offset <= scan->length);
    MQX_ASSERT(scan->header.segment_no != 0);
    return (struct mqx_flush_batch_position){scan->header.qm_id, scan->header.salt,
                                             scan->header.segment_no, scan->header.generation,
                                             scan->header.base_lsn + offset};
}

/* The header at `offset`, copied; NULL, or what is wrong with it. */
static const char *take_header(const struct mqe_journal_scan *scan, uint64_t offset, uint64_t limit,
                               struct psj_batch *out)
{
    const struct mqx_flush_batch_position position = position_of(scan, offset);
    MQX_ASSERT(limit <= scan->length);
    if (offset > limit || limit - offset < sizeof *out) {
        return "no room for a batch";
    }
    memcpy(out, scan->bytes + offset, sizeof *out);
    if (out->magic != PS_BATCH_MAGIC) {
        return "no batch here";
    }
    if (!mqx_flush_batch_is_at(&position, out)) {
        return "the batch does not belong here";
    }
    return mqx_round_up(out->length, MQX_PAGE_SIZE) <= limit - offset ? NULL
                                                                      : "the batch does not fit";
}

/* Can a record of this length be here? */
static bool length_fits(uint32_t length, uint64_t room)
{
    MQX_ASSERT(room <= INT64_MAX); /* a subtraction that did not wrap */
    return length >= PS_RECORD_MIN && length % 8 == 0 &&
           length <= MQX_RING_RECORD_MAX && length <= room;
}

/* The CRC of a record whose length has been read and checked. */
static uint32_t record_crc(const unsigned char *at, const struct psj_record *head, uint32_t length,
                           uint32_t seed)
{
    const uint32_t skip = mqx_record_is_short(head) ? offsetof(struct psj_short, unit)
                                                    : offsetof(struct psj_record, unit_id);
    MQX_ASSERT(length >= PS_RECORD_MIN);
    MQX_ASSERT(length <= MQX_RING_RECORD_MAX);
    return mqx_crc32c(mqx_crc32c(seed, head, 4), at + skip, length - skip);
}

/* The COMMON record of the short one at `record`, of which `before` bytes are in front of it in the
 * batch: its first bytes, copied. NULL: there is none. */
static const unsigned char *common_of(const unsigned char *record, uint64_t before,
                                      struct psj_record *out)
{
    uint32_t distance;
    MQX_ASSERT(out != NULL);
    MQX_ASSERT(before <= INT64_MAX); /* a subtraction that did not wrap */
    memcpy(&distance, record + offsetof(struct psj_short, common), sizeof distance);
    if (distance % 8 != 0 || distance < sizeof *out || distance > before) {
        return NULL;
    }
    memcpy(out, record - distance, sizeof *out);
    const uint32_t length = mqx_record_length(out);
    return out->type == (PS_REC_COMMON | PS_MUST_UNDERSTAND) && out->flags == 0 &&
                   length >= sizeof *out && length <= distance && length <= MQX_COMMON_MAX
               ? record - distance
               : NULL;
}

/* NULL when the batch is good, else what is wrong, *bad_offset where. */
static const char *check_batch(const struct mqe_journal_scan *scan, uint64_t offset,
                               const struct psj_batch *batch, uint64_t *bad_offset)
{
    struct mqx_siphash hash;
    uint32_t crcs[CRCS_AT_ONCE];
    uint32_t records = 0;
    uint64_t at = sizeof *batch;
    uint64_t bad_record = 0;
    mqx_siphash_begin(&hash, scan->header.salt);
    MQX_ASSERT(batch->length >= sizeof *batch); /* take_header() */
    MQX_ASSERT(batch->length <= scan->length - offset);
    while (at < batch->length) {
        struct psj_record head = {0};
        const unsigned char *record = scan->bytes + offset + at;
        memcpy(&head, record, offsetof(struct psj_record, unit_id));
        const uint32_t length = mqx_record_length(&head);
        struct psj_record common = {.crc = 0};
        if (!length_fits(length, batch->length - at) ||
            (mqx_record_is_short(&head) &&
             common_of(record, at - sizeof *batch, &common) == NULL)) {
            *bad_offset = offset + at;
            return "a record does not fit its batch";
        }
        if (bad_record == 0 && scan->verify != 0 &&
            record_crc(record, &head, length, common.crc) != head.crc) {
            bad_record = offset + at;
        }
        crcs[records % CRCS_AT_ONCE] = head.crc;
        at += length;
        records += 1;
        if (records % CRCS_AT_ONCE == 0) {
            mqx_siphash_add(&hash, crcs, sizeof crcs);
        }
    }
    *bad_offset = offset;
    if (records != batch->record_count) {
        return "the batch's number of records is wrong";
    }
    if (batch->records !=
        mqx_siphash_finish(&hash, crcs, records % CRCS_AT_ONCE * sizeof crcs[0])) {
        return "the batch's hash of its records is wrong";
    }
    *bad_offset = bad_record;
    return bad_record == 0 ? NULL : "the record's CRC is wrong";
}

/* Does the batch overlap the times and LSNs that the caller requested? */
static bool is_chosen(const struct mqe_journal_scan *scan, const struct psj_batch *batch,
                      uint64_t offset)
{
    const uint64_t lsn = scan->header.base_lsn + offset;
    MQX_ASSERT(batch->lsn == lsn);
    MQX_ASSERT(offset >= MQX_PAGE_SIZE);
    return batch->time_us >= scan->start_us && batch->time_us < scan->end_us &&
           lsn + batch->length > scan->start_lsn && lsn < scan->end_lsn;
}

/* Moves behind the current batch. */
static void next_batch(struct mqe_journal_scan *scan)
{
    MQX_ASSERT(scan->batch_length >= sizeof(struct psj_batch));
    scan->at += mqx_round_up(scan->batch_length, MQX_PAGE_SIZE);
    MQX_ASSERT(scan->at <= scan->limit);
    scan->in_batch = 0;
    scan->batches += 1;
}

/* Checks the batch at `at` and begins it, or steps over it. */
static enum mqe_journal_scan_result begin_batch(struct mqe_journal_scan *scan)
{
    uint64_t bad = scan->at;
    struct psj_batch batch = {0};
    MQX_ASSERT(scan->in_batch == 0);
    MQX_ASSERT(scan->at % MQX_PAGE_SIZE == 0);
    const char *wrong = take_header(scan, scan->at, scan->limit, &batch);
    scan->batch_length = batch.length;
    scan->batch_time_us = batch.time_us;
    if (wrong == NULL && is_chosen(scan, &batch, scan->at)) {
        wrong = check_batch(scan, scan->at, &batch, &bad);
        scan->in_batch = 1;
        scan->units_given = 0;
        scan->record_at = scan->at + sizeof batch;
    }
    if (wrong != NULL) {
        scan->in_batch = 0;
        return problem(scan, bad, wrong);
    }
    if (scan->in_batch == 0) {
        next_batch(scan);
    }
    return MQE_SCAN_MORE;
}

/* Looks at every page from the next one on: a batch begins on a page boundary. The bad batch's
 * own length is not believed. */
uint64_t mqe_journal_scan_skip(struct mqe_journal_scan *scan)
{
    const uint64_t from = scan->at;
    struct psj_batch batch;
    uint64_t bad;
    MQX_ASSERT(scan->at % MQX_PAGE_SIZE == 0);
    scan->in_batch = 0;
    do {
        scan->at += MQX_PAGE_SIZE;
    } while (scan->at < scan->limit && (take_header(scan, scan->at, scan->limit, &batch) != NULL ||
                                        check_batch(scan, scan->at, &batch, &bad) != NULL));
    scan->at = scan->at < scan->limit ? scan->at : scan->limit;
    MQX_ASSERT(scan->at >= from);
    return scan->at - from;
}

/* Two passes: the chain of headers gives times and end; then every sector behind it is examined,
 * because a durable mark counts wherever its header lies (FORMAT.md 9.5). */
void mqe_journal_scan_read_span(const struct mqe_journal_scan *scan,
                                struct mqe_journal_scan_span *out)
{
    struct psj_batch batch;
    uint64_t offset = MQX_PAGE_SIZE;
    MQX_ASSERT(scan->limit <= scan->length);
    *out = (struct mqe_journal_scan_span){0};
    while (take_header(scan, offset, scan->limit, &batch) == NULL) {
        out->first_us = out->first_us == 0 ? batch.time_us : out->first_us;
        out->last_us = batch.time_us;
        out->mark = batch.durable_lsn > out->mark ? batch.durable_lsn : out->mark;
        offset += mqx_round_up(batch.length, MQX_PAGE_SIZE);
    }
    MQX_ASSERT(offset <= scan->limit || offset == MQX_PAGE_SIZE);
    out->end_lsn = scan->header.base_lsn + offset;
    for (; offset + SECTOR <= scan->limit; offset += SECTOR) {
        memcpy(&batch, scan->bytes + offset, sizeof batch);
        struct mqx_flush_batch_position position = position_of(scan, 0);
        position.lsn = batch.lsn; /* a header counts wherever it lies */
        if (batch.magic == PS_BATCH_MAGIC && mqx_flush_batch_is_at(&position, &batch) &&
            batch.lsn % MQX_PAGE_SIZE == 0 && batch.lsn - scan->header.base_lsn < scan->length &&
            batch.lsn - scan->header.base_lsn >= MQX_PAGE_SIZE && batch.durable_lsn > out->mark) {
            out->mark = batch.durable_lsn;
        }
    }
}

uint64_t mqe_journal_scan_first_us(const struct mqe_journal_scan *scan)
{
    struct psj_batch batch;
    MQX_ASSERT(scan->length >= MQX_PAGE_SIZE);
    MQX_ASSERT(scan->limit <= scan->length);
    return take_header(scan, MQX_PAGE_SIZE, scan->limit, &batch) == NULL ? batch.time_us : 0;
}

/* ---- records ----
 *
 * A record is a header and sections (format.h), the body last. What is decoded is a copy, because
 * the decoder reads a length more than once.
 */

struct taken { /* a private copy of a record without its body, and where its body lies */
    struct mqx_decoded decoded;
    uint64_t body_at;
    uint32_t body_length;
};

/* Where the section BODY of the `have` copied bytes begins; `length` without one; 0: that cannot be
 * decided before more bytes are copied. */
static uint32_t find_body(const unsigned char *copy, uint32_t have, uint32_t length)
{
    uint32_t at = sizeof(struct psj_record);
    MQX_ASSERT(have <= length);
    MQX_ASSERT(have >= at);
    while (at < length) {
        struct ps_section section;
        if (have - at < sizeof section) { /* at <= have, always */
            return 0;
        }
        memcpy(&section, copy + at, sizeof section);
        const uint64_t end = at + sizeof section + mqx_round_up(section.length, 8);
        if (section.tag == PS_SEC_BODY && section.zero == 0 && end == length) {
            return at;
        }
        if (end > have) {
            return have < length ? 0 : length; /* the parser reports what is wrong */
        }
        at = (uint32_t)end;
    }
    return length;
}

/* Bytes between the end of a body and the next multiple of 8 are zero in every version. */
static bool padding_is_zero(const unsigned char *bytes, uint32_t length)
{
    MQX_ASSERT(bytes != NULL);
    MQX_ASSERT(length < 8);
    for (uint32_t i = 0; i < length; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Decodes the copy of a record. */
static enum mqe_journal_scan_result parse(struct mqe_journal_scan *scan, uint64_t offset,
                                          const unsigned char *copy, struct taken *out)
{
    MQX_ASSERT(offset < scan->length);
    MQX_ASSERT((uintptr_t)copy % 8 == 0);
    if (mqx_record_parse(copy, &out->decoded) != MQX_OK) {
        (void)problem(scan, offset, mqx_error_text());
        return MQE_SCAN_UNSUPPORTED;
    }
    return MQE_SCAN_MORE;
}

/* The copy of a record that is parsed has what the decoder needs and not a byte more: the decoder
 * reads lengths more than once, and the segment may change meanwhile. */

/* A short record: the COMMON record, then its own bytes up to the body, are copied to `copy`; the
 * copied record is cut there and made to refer to the copy of the other. NULL: its form
 * is wrong, or it has changed since its batch was verified. */
static const unsigned char *copy_short(const struct mqe_journal_scan *scan, uint64_t offset,
                                       uint32_t length, unsigned char *copy, struct taken *out)
{
    struct psj_record common;
    const unsigned char *from =
        common_of(scan->bytes + offset, offset - scan->at - sizeof(struct psj_batch), &common);
    if (from == NULL) {
        return NULL;
    }
    const uint32_t in_front = mqx_record_length(&common);
    unsigned char *const at = copy + in_front;
    struct psj_short *record = (void *)at;
    MQX_ASSERT(in_front <= MQX_COMMON_MAX);
    MQX_ASSERT(in_front % 8 == 0);
    memcpy(copy, from, in_front);
    memcpy(at, scan->bytes + offset, length < PREFIX ? length : PREFIX);
    record->common = in_front;
    const uint32_t padding = (uint32_t)(record->flags & PS_PADDING_MASK) >> PS_PADDING_SHIFT;
    const uint32_t least = sizeof *record + sizeof(struct ps_short_put);
    if (mqx_record_type((void *)at) == PS_REC_GET || length < least + padding) {
        return at;
    }
    const uint32_t body = mqx_short_body_at(at), end = length - padding;
    if (!padding_is_zero(scan->bytes + offset + end, padding)) {
        return NULL;
    }
    if (body < end) {
        const uint32_t cut = (uint32_t)mqx_round_up(body, 8);
        out->body_at = offset + body;
        out->body_length = end - body;
        record->eighths = (uint16_t)(cut / 8);
        record->flags &= (uint8_t)~PS_PADDING_MASK;
        record->flags |= (uint8_t)((cut - body) << PS_PADDING_SHIFT);
        memset(at + body, 0, cut - body);
    }
    return at;
}

/* Copies the record at `offset` up to its body and decodes the copy. */
static enum mqe_journal_scan_result take_record(struct mqe_journal_scan *scan, uint64_t offset,
                                                uint32_t length, struct taken *out)
{
    unsigned char *copy = mqx_scratch(MQX_RING_RECORD_MAX);
    uint32_t have = length < PREFIX ? length : PREFIX;
    MQX_ASSERT(length_fits(length, scan->length - offset));
    if (copy == NULL) {
        return problem(scan, offset, "no memory to decode a record");
    }
    out->body_length = 0;
    const uint8_t flags = scan->bytes[offset + offsetof(struct psj_record, flags)];
    if ((flags & PS_FLAG_SHORT) != 0) {
        const unsigned char *at = copy_short(scan, offset, length, copy, out);
        return at != NULL ? parse(scan, offset, at, out)
                          : problem(scan, offset, "the form of a short record is wrong");
    }
    memcpy(copy, scan->bytes + offset, have);
    uint32_t body = find_body(copy, have, length);
    if (body == 0) {
        have = length;
        memcpy(copy, scan->bytes + offset, have);
        body = find_body(copy, have, length);
        body = body == 0 ? length : body;
    }
    MQX_ASSERT(body <= length);
    if (body < length) {
        struct ps_section section;
        memcpy(&section, copy + body, sizeof section);
        out->body_length = section.length;
        out->body_at = offset + body + sizeof section;
        if (!padding_is_zero(scan->bytes + out->body_at + section.length,
                             (uint32_t)(mqx_round_up(section.length, 8) - section.length))) {
            return problem(scan, offset, "reserved bytes behind the body are not zero");
        }
    }
    ((struct psj_record *)(void *)copy)->eighths = (uint16_t)(body / 8); /* what the parser sees */
    const enum mqe_journal_scan_result result = parse(scan, offset, copy, out);
    if (result == MQE_SCAN_MORE && out->decoded.chunked != NULL && body < length) {
        return problem(scan, offset, "a record has a body and chunks");
    }
    return result;
}

/* ---- bodies in pieces ----
 *
 * Pieces may lie in earlier segments. The caller gives those that it has; for one that is missing
 * the scan stops with MQE_SCAN_NEED_SEGMENT and need_lsn, and repeats the record at the next call.
 */

struct gathering {
    struct mqe_journal_scan *scan;
    uint64_t number; /* of the message */
    uint64_t total;
    uint64_t put_at; /* offset of the PUT, for messages */
    unsigned char *body;
    uint64_t begin;  /* everything from here on has been copied */
    uint32_t piece;  /* the next piece has this number - 1 */
};

/* The bytes from `lsn` on, in this segment or another that was given; *room how many. */
static const unsigned char *bytes_at(const struct mqe_journal_scan *scan, uint64_t lsn,
                                     uint64_t *room)
{
    const uint64_t own = lsn - scan->header.base_lsn;
    MQX_ASSERT(lsn % 8 == 0);
    MQX_ASSERT(scan->piece_count == 0 || scan->pieces != NULL);
    if (lsn >= scan->header.base_lsn + MQX_PAGE_SIZE && own < scan->limit) {
        *room = scan->limit - own;
        return scan->bytes + own;
    }
    for (uint32_t i = 0; i < scan->piece_count; i++) {
        const struct mqe_journal_scan_piece *piece = &scan->pieces[i];
        const uint64_t offset = lsn - piece->base_lsn;
        if (lsn >= piece->base_lsn + MQX_PAGE_SIZE && offset < piece->length) {
            *room = piece->length - offset;
            return piece->bytes + offset;
        }
    }
    return NULL;
}

struct piece_head { /* a CHUNK record up to its bytes */
    struct psj_record record;
    struct ps_section chunk_section;
    struct ps_chunk chunk;
    struct ps_section body_section;
};
MQX_STATIC_ASSERT(sizeof(struct piece_head) == 80, "the head of a CHUNK record has no holes");

/* Is it the piece that the one after it names: same message, same total, adjoining offset, the
 * number before? */
static bool piece_fits(const struct gathering *g, const struct piece_head *head, uint64_t room)
{
    const struct ps_chunk *chunk = &head->chunk;
    MQX_ASSERT(g->piece > 0);
    MQX_ASSERT(room >= sizeof *head);
    return length_fits(mqx_record_length(&head->record), room) &&
           mqx_record_type(&head->record) == PS_REC_CHUNK && !mqx_record_is_short(&head->record) &&
           head->record.number == g->number && head->chunk_section.tag == PS_SEC_CHUNK &&
           head->chunk_section.length == sizeof *chunk && head->body_section.tag == PS_SEC_BODY &&
           sizeof *head + mqx_round_up(head->body_section.length, 8) ==
               mqx_record_length(&head->record) &&
           chunk->total == g->total && chunk->number + 1u == g->piece &&
           chunk->offset <= g->begin && head->body_section.length == g->begin - chunk->offset &&
           (chunk->number == 0) == (chunk->offset == 0);
}

/* Copies the pieces from the last to the first: each names its predecessor. */
static enum mqe_journal_scan_result gather(struct gathering *g, const struct ps_chunked *chunked)
{
    uint64_t lsn = chunked->last_lsn;
    MQX_ASSERT(chunked->total == g->total);
    MQX_ASSERT(g->body != NULL || g->total == 0);
    g->begin = g->total;
    g->piece = chunked->count;
    while (g->piece > 0) { /* falls with each piece */
        struct piece_head head;
        uint64_t room = 0;
        const unsigned char *at = lsn % 8 == 0 ? bytes_at(g->scan, lsn, &room) : NULL;
        if (at == NULL && lsn % 8 == 0) {
            g->scan->need_lsn = lsn;
            return MQE_SCAN_NEED_SEGMENT;
        }
        if (at == NULL || room < sizeof head) {
            return problem(g->scan, g->put_at, "a piece of the body lies nowhere");
        }
        memcpy(&head, at, sizeof head);
        if (!piece_fits(g, &head, room) ||
            record_crc(at, &head.record, mqx_record_length(&head.record), 0) != head.record.crc) {
            return problem(g->scan, g->put_at, "a piece of the body is not what it should be");
        }
        MQX_ASSERT(head.chunk.offset + head.body_section.length == g->begin);
        memcpy(g->body + head.chunk.offset, at + sizeof head, head.body_section.length);
        g->begin = head.chunk.offset;
        g->piece = head.chunk.number;
        lsn = head.chunk.prev_lsn;
    }
    return g->begin == 0 ? MQE_SCAN_MORE
                         : problem(g->scan, g->put_at, "the body has no beginning");
}

/* Bounds what is asked of the caller's memory: a body is not longer than the stretch of journal
 * that holds its pieces. */
static bool chunks_possible(const struct mqe_journal_scan *scan, const struct ps_chunked *chunked,
                            uint64_t lsn)
{
    MQX_ASSERT(chunked != NULL);
    MQX_ASSERT(lsn >= scan->header.base_lsn);
    return chunked->last_lsn < lsn && chunked->first_lsn <= chunked->last_lsn &&
           chunked->total <= MQX_MAX_BODY && lsn - scan->header.base_lsn < scan->length &&
           chunked->total <= chunked->last_lsn - chunked->first_lsn + PS_CHUNK_BYTES &&
           chunked->count <= chunked->total;
}

/* ---- rows ----
 *
 * A row is complete or not given at all: room for its body is checked before any column is filled.
 */

/* Room for a body of `size` behind those that are there; NULL: *out is what the caller must do. */
static unsigned char *body_room(struct mqe_journal_scan *scan,
                                const struct mqe_journal_scan_rows *rows, uint64_t size,
                                enum mqe_journal_scan_result *out)
{
    const uint64_t used = (uint64_t)rows->offsets[rows->count];
    MQX_ASSERT(used <= rows->body_capacity);
    MQX_ASSERT(rows->count < rows->capacity);
    if (size <= rows->body_capacity - used) {
        return rows->bodies + used;
    }
    scan->need_bytes = size;
    *out = rows->count > 0 ? MQE_SCAN_MORE : MQE_SCAN_NEED_BYTES;
    return NULL;
}

/* The body of the row being made; MQE_SCAN_MORE and body_state NO_BODY: it did not fit, the rows
 * are to be taken first. */
static enum mqe_journal_scan_result give_body(struct mqe_journal_scan *scan,
                                              struct mqe_journal_scan_rows *rows,
                                              const struct taken *taken, struct mqx_scan_row *row)
{
    enum mqe_journal_scan_result result = MQE_SCAN_MORE;
    const struct ps_chunked *chunked = taken->decoded.chunked;
    uint64_t size = chunked != NULL ? chunked->total : taken->body_length;
    MQX_ASSERT(row->body_state == MQE_SCAN_NO_BODY);
    MQX_ASSERT(rows->offsets != NULL);
    unsigned char *to = body_room(scan, rows, size, &result);
    if (to == NULL) {
        return result;
    }
    row->body_state = MQE_SCAN_BODY;
    if (chunked == NULL && size > 0) {
        memcpy(to, scan->bytes + taken->body_at, size);
    } else if (chunked != NULL) {
        struct gathering g = {.scan = scan, .number = row->number, .total = size,
                              .put_at = scan->record_at, .body = to};
        result = gather(&g, chunked);
        if (result == MQE_SCAN_NEED_SEGMENT && scan->allow_lost != 0) {
            row->body_state = MQE_SCAN_BODY_LOST;
            result = MQE_SCAN_MORE;
            size = 0;
        }
    }
    rows->offsets[rows->count + 1] = rows->offsets[rows->count] + (int64_t)size;
    return result;
}

/* The time left to expiry when the batch was sealed, in tenths of a second as in MQMD. */
static int32_t tenths_left(uint64_t expiry_us, uint64_t time_us)
{
    if (expiry_us == 0) {
        return -1;
    }
    const uint64_t left = expiry_us > time_us ? expiry_us - time_us : 0;
    const uint64_t tenths = left / TENTH_US + (left % TENTH_US != 0);
    MQX_ASSERT(expiry_us != 0);
    MQX_ASSERT(tenths <= left);
    return tenths > INT32_MAX ? INT32_MAX : (int32_t)tenths;
}

/* A wall clock of the journal as a column; one that a signed number cannot hold becomes "none". */
static int64_t timestamp(uint64_t us)
{
    return us <= INT64_MAX ? (int64_t)us : INT64_MIN;
}

/* The columns that are not in the descriptor. CLEAR has a bound where others have a message
 * number. Times that do not apply are INT64_MIN. */
static struct mqx_scan_row row_of(const struct mqe_journal_scan *scan, const struct taken *taken)
{
    const struct psj_record *head = taken->decoded.head;
    const struct ps_descriptor *d = taken->decoded.descriptor;
    const struct ps_chunked *chunked = taken->decoded.chunked;
    MQX_ASSERT(head != NULL);
    MQX_ASSERT(chunked == NULL || d != NULL);
    struct mqx_scan_row row = {
        .lsn = scan->header.base_lsn + scan->record_at,
        .time_us = timestamp(scan->batch_time_us),
        .segment = scan->header.segment_no,
        .unit_id = head->unit_id,
        .object = (uint64_t)head->object << 32 | head->object_gen,
        .number = head->number,
        .first_lsn = taken->decoded.commit != NULL ? taken->decoded.commit->first_lsn : 0,
        .event = (uint8_t)mqx_record_type(head),
        .commits = (head->flags & PS_FLAG_COMMITS) != 0,
        .put_time_us = INT64_MIN,
        .expiry_us = INT64_MIN,
    };
    if (taken->decoded.name != NULL && taken->decoded.name->name_space == QUEUES) {
        memcpy(row.name, taken->decoded.name->name, sizeof row.name);
    }
    if (d != NULL) {
        row.body_length = chunked != NULL ? chunked->total : taken->body_length;
        row.put_time_us = timestamp(d->put_time_us);
        row.expiry = tenths_left(d->expiry_us, scan->batch_time_us);
        row.expiry_us = d->expiry_us != 0 ? timestamp(d->expiry_us) : INT64_MIN;
    }
    return row;
}

/* One row for each unit of work that the record names, from units_given on; as many as fit. */
static void give_units(struct mqe_journal_scan *scan, struct mqe_journal_scan_rows *rows,
                       const struct mqx_decoded *decoded, struct mqx_scan_row *row)
{
    const uint32_t count = decoded->unit_count;
    MQX_ASSERT(count > 0);
    MQX_ASSERT(rows->count < rows->capacity);
    while (scan->units_given < count && rows->count < rows->capacity) {
        row->unit_id = decoded->units[scan->units_given];
        if (rows->offsets != NULL) {
            rows->offsets[rows->count + 1] = rows->offsets[rows->count];
        }
        mqx_scan_give_row(rows, row, NULL, NULL);
        rows->count += 1;
        scan->units_given += 1;
    }
    if (scan->units_given >= count) {
        scan->units_given = 0;
    }
}

/* The record at record_at becomes a row, or several. MQE_SCAN_MORE with rows->count as it was, or
 * with units_given: it has to wait until the rows have been taken. */
static enum mqe_journal_scan_result give_record(struct mqe_journal_scan *scan,
                                                struct mqe_journal_scan_rows *rows, uint32_t length)
{
    struct taken taken;
    MQX_ASSERT(scan->in_batch != 0);
    MQX_ASSERT(rows->count < rows->capacity);
    enum mqe_journal_scan_result result = take_record(scan, scan->record_at, length, &taken);
    if (result != MQE_SCAN_MORE) {
        return result;
    }
    struct mqx_scan_row row = row_of(scan, &taken);
    if (taken.decoded.unit_count != 0) {
        give_units(scan, rows, &taken.decoded, &row);
        return MQE_SCAN_MORE;
    }
    const bool put = taken.decoded.descriptor != NULL;
    const struct ps_chunked *chunked = taken.decoded.chunked;
    if (chunked != NULL && !chunks_possible(scan, chunked, row.lsn)) {
        return problem(scan, scan->record_at, "the record's chunks cannot be where it says");
    }
    if (rows->offsets != NULL && put) {
        result = give_body(scan, rows, &taken, &row);
        if (result != MQE_SCAN_MORE || row.body_state == MQE_SCAN_NO_BODY) {
            return result;
        }
    } else if (rows->offsets != NULL) {
        rows->offsets[rows->count + 1] = rows->offsets[rows->count];
    }
    mqx_scan_give_row(rows, &row, taken.decoded.descriptor, taken.decoded.ext);
    rows->count += 1;
    return MQE_SCAN_MORE;
}

/* Gives the record at record_at, or steps over it; *full when it has to wait. */
static enum mqe_journal_scan_result one_record(struct mqe_journal_scan *scan,
                                               struct mqe_journal_scan_rows *rows, bool *full)
{
    struct psj_record head = {0};
    memcpy(&head, scan->bytes + scan->record_at, offsetof(struct psj_record, unit_id));
    const uint64_t end = scan->at + scan->batch_length;
    const uint64_t lsn = scan->header.base_lsn + scan->record_at;
    const uint16_t type = mqx_record_type(&head);
    MQX_ASSERT(scan->record_at >= scan->at + sizeof(struct psj_batch));
    MQX_ASSERT(scan->record_at < end);
    const uint32_t length = mqx_record_length(&head);
    if (!length_fits(length, end - scan->record_at)) {
        return problem(scan, scan->record_at, "the record changed while it was read");
    }
    const uint64_t bit = type < 64 ? 1ull << type : 0;
    enum mqe_journal_scan_result result = MQE_SCAN_MORE;
    if ((bit & PASSED_TYPES) == 0) {
        struct taken taken;
        result = take_record(scan, scan->record_at, length, &taken);
    } else if ((bit & scan->types & ~TYPE(CHUNK)) != 0 && lsn >= scan->start_lsn &&
               lsn < scan->end_lsn) {
        const uint32_t before = rows->count;
        result = give_record(scan, rows, length);
        *full = rows->count == before || scan->units_given != 0;
    }
    if (result != MQE_SCAN_MORE || *full) {
        return result;
    }
    scan->records += 1;
    scan->record_at += length;
    MQX_ASSERT(scan->record_at <= end);
    return MQE_SCAN_MORE;
}

enum mqe_journal_scan_result mqe_journal_scan_next(struct mqe_journal_scan *scan,
                                                   struct mqe_journal_scan_rows *rows)
{
    enum mqe_journal_scan_result result = MQE_SCAN_MORE;
    bool full = false;
    MQX_ASSERT(rows->capacity > 0);
    rows->count = 0;
    if (scan->limit > scan->length) {
        return problem(scan, scan->length, "the limit lies beyond the segment's bytes");
    }
    if (rows->offsets != NULL) {
        rows->offsets[0] = 0;
    }
    while (result == MQE_SCAN_MORE && !full && rows->count < rows->capacity) {
        if (scan->in_batch != 0 && scan->record_at < scan->at + scan->batch_length) {
            result = one_record(scan, rows, &full);
        } else if (scan->in_batch != 0) {
            next_batch(scan);
        } else if (scan->at >= scan->limit || scan->header.base_lsn + scan->at >= scan->end_lsn) {
            return MQE_SCAN_END;
        } else {
            result = begin_batch(scan);
        }
    }
    return result;
}

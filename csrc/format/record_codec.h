/*
 * record_codec.h - journal records: encoding and decoding.
 *
 * Encoding happens outside all locks, into a buffer of the calling thread (mqx_scratch), checksum
 * included; what enters the ring is finished bytes. Decoding checks every length before use: it
 * reads untrusted bytes, takes (pointer, length) and nothing else, allocates nothing (rule 41).
 *
 * What a reader accepts: bytes called zero are zero, each known section has the right size and is
 * there once, the ones that the type needs are there, a body is the last one. Sections of unknown
 * tags are skipped, reserved ones refused. A record that fails only these tests has a valid
 * checksum, so it was written on purpose (by a newer version): it is refused by number or name,
 * never taken for a torn one. Records without the must-understand bit and of unknown type are
 * skipped.
 *
 * Locks: none. Errors: MQX_TORN for bytes that are no whole record, 2101 for a record that this
 * version cannot read.
 */
#ifndef PENSTOCK_RECORD_CODEC_H
#define PENSTOCK_RECORD_CODEC_H

#include "base/base.h"
#include "format/format.h"

#include <sys/uio.h>

/* A record taken apart; pointers into the given bytes, or into this struct, which must not be
 * copied; NULL when the section is absent. */
struct mqx_decoded {
    const struct psj_record *head;
    const struct ps_descriptor *descriptor;
    const struct ps_descriptor_ext *ext;
    const struct ps_chunked *chunked;
    const struct ps_chunk *chunk;
    const struct ps_commit *commit;
    const struct ps_count *counts;
    const uint64_t *dues;      /* of the counted messages, or NULL */
    uint32_t due_count;
    uint32_t count_count;
    const struct ps_object_name *name;
    const unsigned char *attrs;
    uint32_t attrs_length;
    const struct ps_image *image;
    const struct ps_xid *xid;
    const struct ps_prepared *prepared;
    const struct ps_taken *taken;
    const uint64_t *units;
    uint32_t unit_count;
    const unsigned char *body;
    uint32_t body_length;
    struct { /* what `head`, `descriptor` and `ext` of a short record point to */
        struct psj_record head;
        struct ps_descriptor descriptor;
        struct ps_descriptor_ext ext;
    } whole;
};

/* `at` is 8-byte aligned everywhere below. */

/* Length and CRC only: 0, or MQX_TORN when `size` bytes at `at` do not begin with a whole valid
 * record. The `before` bytes in front of it are of the same batch: a short record's COMMON record
 * is looked for there, and taken for valid when it has the form. */
int mqx_record_check(const void *at, size_t size, size_t before) MQX_MUST_USE;
/* Takes a record apart that mqx_record_check() accepted; MQRC_OBJECT_DAMAGED with a text when this
 * version cannot read it. An unknown optional record gives 0 and only `head`. */
int mqx_record_parse(const void *at, struct mqx_decoded *out) MQX_MUST_USE;
/* Both. */
int mqx_record_decode(const void *at, size_t size, size_t before,
                      struct mqx_decoded *out) MQX_MUST_USE;
static inline uint32_t mqx_record_length(const struct psj_record *head)
{
    return (uint32_t)head->eighths * PS_ALIGN;
}
/* Type without the must-understand bit. */
static inline uint16_t mqx_record_type(const struct psj_record *head)
{
    return (uint16_t)(head->type & ~PS_MUST_UNDERSTAND);
}

/* The thread's encode buffer, at least `size` bytes (<= MQX_RING_RECORD_MAX + 4096); NULL: no
 * memory. */
unsigned char *mqx_scratch(size_t size);
/* For a call inside a call that has a record in the buffer: it gets another one until the first is
 * restored. NULL: there was none. */
unsigned char *mqx_scratch_put_away(void);
void mqx_scratch_restore(unsigned char *memory);
/* MQX_SCRATCH_KEPT bytes of the thread that no other use of the buffer changes, zero at first;
 * 64-byte aligned. NULL: no memory. For short_codec. */
enum { MQX_SCRATCH_KEPT = 4096 };
void *mqx_scratch_kept(void);

struct mqx_record_head { /* what the caller gives of a record */
    uint16_t type;        /* PS_REC_*, without the must-understand bit */
    uint16_t flags;
    uint64_t unit_id;
    uint32_t object;
    uint32_t object_gen;
    uint64_t number;      /* message number */
};

/* Each returns the record's length (multiple of 8), written to `to` (8-byte aligned); CRC
 * complete. */
/* GET, BACKOUT, EXPIRE, CLEAR, OBJECT_DELETE: nothing but the header */
uint32_t mqx_encode_plain(unsigned char *to, const struct mqx_record_head *head);
/* PUT, MOVED. `chunked` excludes `body`; an empty body has no section. */
uint32_t mqx_encode_put(unsigned char *to, const struct mqx_record_head *head,
                        const struct ps_descriptor *descriptor, const struct ps_descriptor_ext *ext,
                        const struct ps_chunked *chunked, const void *body, uint32_t body_length);
uint32_t mqx_encode_chunk(unsigned char *to, const struct mqx_record_head *head,
                          const struct ps_chunk *chunk, const void *piece, uint32_t piece_length);
uint32_t mqx_encode_commit(unsigned char *to, const struct mqx_record_head *head,
                           const struct ps_commit *commit);
/* BACKOUT; `dues`: NULL, or the due time of each of the counted messages. */
uint32_t mqx_encode_counts(unsigned char *to, const struct mqx_record_head *head,
                           const struct ps_count *counts, const uint64_t *dues,
                           uint32_t count_count);
uint32_t mqx_encode_object(unsigned char *to, const struct mqx_record_head *head,
                           const struct ps_object_name *name, const void *attrs,
                           uint32_t attrs_length);
uint32_t mqx_encode_prepare(unsigned char *to, const struct mqx_record_head *head,
                            const struct ps_xid *xid, const struct ps_prepared *prepared,
                            const struct ps_commit *commit);
/* COMMIT_PREPARED, BACKOUT_PREPARED */
uint32_t mqx_encode_units(unsigned char *to, const struct mqx_record_head *head,
                          const uint64_t *units, uint32_t unit_count);
/* A PUT's sections and `taken`. */
uint32_t mqx_encode_taken(unsigned char *to, const struct mqx_record_head *head,
                          const struct ps_descriptor *descriptor,
                          const struct ps_descriptor_ext *ext, const struct ps_taken *taken,
                          const struct ps_chunked *chunked, const void *body,
                          uint32_t body_length);
/* COMMON with a descriptor; without one: mqx_encode_plain() */
uint32_t mqx_encode_common(unsigned char *to, const struct mqx_record_head *head,
                           const struct ps_descriptor *descriptor);
uint32_t mqx_encode_image_consumed(unsigned char *to, const struct ps_image *image);
/* Length of a PUT record with an inline body of these sizes. */
uint32_t mqx_put_record_length(bool ext, uint32_t body_length);

/* ---- short records: encoded by short_codec.h ---- */

static inline bool mqx_record_is_short(const void *at)
{
    return (((const struct psj_record *)at)->flags & PS_FLAG_SHORT) != 0;
}
/* The COMMON record of a short one that mqx_record_check() accepted. */
static inline const struct psj_record *mqx_record_common(const void *at)
{
    return (const void *)((const unsigned char *)at - ((const struct psj_short *)at)->common);
}
/* The crc field of a short record of that length; it goes on from its COMMON record's. */
uint32_t mqx_short_crc(uint32_t common_crc, const void *at, uint32_t length);
/* Where the body of a short PUT begins, from its first 32 bytes: an offset. */
uint32_t mqx_short_body_at(const void *at);

/* May it name a unit? */
bool mqx_xid_is_sound(const struct ps_xid *xid);

/* The running checksum of a unit after one more record (struct ps_commit). */
uint32_t mqx_running_crc(uint32_t running, const struct psj_record *record);
/* ... after `count` more records, whose crc fields are these. */
uint32_t mqx_running_crcs(uint32_t running, const uint32_t *crcs, uint32_t count);

#endif

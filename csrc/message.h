/*
 * message.h - records of the journal, built and taken apart.
 *
 * Encoding happens outside all locks, into a buffer of the calling thread (mqx_scratch), checksum
 * included; what enters the ring is finished bytes. Decoding checks every length before use: it reads
 * untrusted bytes, takes (pointer, length) and nothing else, allocates nothing (rule 41).
 */
#ifndef PENSTOCK_MESSAGE_H
#define PENSTOCK_MESSAGE_H

#include "base.h"
#include "format.h"

#include <sys/uio.h>

/* A record taken apart; pointers into the given bytes, NULL when the section is absent. */
struct mqx_decoded {
    const struct psj_record *head;
    const struct ps_descriptor *descriptor;
    const struct ps_descriptor_ext *ext;
    const struct ps_chunked *chunked;
    const struct ps_chunk *chunk;
    const struct ps_commit *commit;
    const struct ps_count *counts;
    uint32_t count_count;
    const struct ps_object_name *name;
    const unsigned char *attrs;
    uint32_t attrs_length;
    const struct ps_image *image;
    const unsigned char *body;
    uint32_t body_length;
};

/* Verifies lengths, CRC, sections. 0; MQX_TORN when `size` bytes at `at` do not hold a whole valid record;
 * MQRC_NOT_... codes never: an unknown must-understand type is MQRC_OBJECT_DAMAGED with its number. */
int mqx_record_decode(const void *at, size_t size, struct mqx_decoded *out) MQX_MUST_USE;

/* The thread's encode buffer, at least `size` bytes (<= MQX_RING_RECORD_MAX + 4096); NULL: no memory. */
unsigned char *mqx_scratch(size_t size);

struct mqx_record_head { /* what the caller says of a record */
    uint16_t type;        /* PS_REC_*, without the must-understand bit */
    uint16_t flags;
    uint64_t unit_id;
    uint32_t object;
    uint32_t object_gen;
    uint64_t number;      /* identity and arrival */
};

/* Each returns the record's length (multiple of 8), written to `to`; CRC complete. */
uint32_t mqx_encode_plain(unsigned char *to, const struct mqx_record_head *head); /* GET, BACKOUT, EXPIRE, CLEAR... */
uint32_t mqx_encode_put(unsigned char *to, const struct mqx_record_head *head,
                        const struct ps_descriptor *descriptor, const struct ps_descriptor_ext *ext,
                        const struct ps_chunked *chunked, const void *body, uint32_t body_length);
uint32_t mqx_encode_chunk(unsigned char *to, const struct mqx_record_head *head,
                          const struct ps_chunk *chunk, const void *piece, uint32_t piece_length);
uint32_t mqx_encode_commit(unsigned char *to, const struct mqx_record_head *head,
                           const struct ps_commit *commit);
uint32_t mqx_encode_counts(unsigned char *to, const struct mqx_record_head *head,
                           const struct ps_count *counts, uint32_t count_count);
uint32_t mqx_encode_object(unsigned char *to, const struct mqx_record_head *head,
                           const struct ps_object_name *name, const void *attrs,
                           uint32_t attrs_length);
uint32_t mqx_encode_image_consumed(unsigned char *to, const struct ps_image *image);
/* Length of a PUT record with these parts. */
uint32_t mqx_put_record_length(bool ext, uint32_t body_length);

#endif

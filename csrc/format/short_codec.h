/*
 * short_codec.h - short records: PUTs and GETs of units without what they have in common.
 *
 * Purpose. The messages that one thread puts on a queue differ in number, time and body; user,
 * application, format and most other fields are the same, and so is the queue. These stand in a
 * COMMON record, once in each flush batch that needs it. A short record refers to it by its
 * distance and holds the rest: a GET has 24 bytes, a PUT 32, changed fields and the body.
 *
 * Why in the same batch. A record is encoded and checksummed outside all locks, before it is known
 * in which segment, and in which batch, it will lie. So the writer hands both to the ring, the
 * finished COMMON record and the finished short one. Under the ring lock only one question is
 * answered: is this COMMON record in the open batch already? If not, it enters the ring in front of
 * the record, in the same micro-transaction; either way the distance is stored then (ring.c).
 * No roll and no distance ever means that something is encoded again, a batch can be read by
 * itself, damage in it stays in it, and what the flush leader verifies is in the ring.
 *
 * Why the checksum needs no position. A short record's CRC continues from the CRC of its COMMON
 * record, which depends on the contents of that alone; the distance is left out. A distance that
 * leads to another COMMON record, or to none, fails the CRC.
 *
 * A record that does not fit its COMMON record (another queue, user, format, ...; a unit id or a
 * time too far from it), a body in pieces, and records outside units are written in full. So a
 * COMMON record is a saving, never a need.
 *
 * Locks: none; a thread's COMMON records belong to it (mqx_common_for).
 */
#ifndef PENSTOCK_SHORT_CODEC_H
#define PENSTOCK_SHORT_CODEC_H

#include "format/record_codec.h"

enum {
    MQX_COMMON_MAX = 240, /* bytes of a COMMON record at the most */
};

struct mqx_common { /* a finished COMMON record, and where it lies */
    unsigned char record[MQX_COMMON_MAX] MQX_ALIGNED(8);
    uint32_t length;      /* 0: none yet */
    uint64_t store;       /* which queue manager's region `lsn` belongs to */
    uint64_t lsn;         /* of its newest copy in the journal, 0: none */
    uint64_t unit_id;     /* which unit asked for it last, */
    uint32_t asked;       /* and how often before it got it */
};

/* A COMMON record of the calling thread for which the record fits; made anew when there is none
 * yet. It is valid until the thread's next call. `store` tells regions apart; d NULL: a GET. NULL:
 * no memory, or the record is one to be written in full. So are the first ones of a unit unless
 * `many` follow: they would not save what the COMMON record costs. */
struct mqx_common *mqx_common_for(uint64_t store, const struct mqx_record_head *head,
                                  const struct ps_descriptor *d, bool many);
/* Does this record fit it, too? */
bool mqx_common_fits(const struct mqx_common *common, const struct mqx_record_head *head,
                     const struct ps_descriptor *d);

/* Length of a short PUT at the most. */
uint32_t mqx_short_put_length(bool ext, uint32_t body_length);
/* As mqx_encode_put() and mqx_encode_plain(), for a `common` that suits them. */
uint32_t mqx_encode_short_put(unsigned char *to, const struct mqx_common *common,
                              const struct mqx_record_head *head, const struct ps_descriptor *d,
                              const struct ps_descriptor_ext *ext, const void *body,
                              uint32_t body_length);
uint32_t mqx_encode_short_get(unsigned char *to, const struct mqx_common *common,
                              const struct mqx_record_head *head);

/* ---- compaction ----
 *
 * A short PUT moves as it is, with the COMMON record that it has: what is written anew is the type,
 * and `unit` becomes 0 once the unit is decided. So its length stays, which readers rely on, and
 * its fields need not be taken apart. Messages of one writer follow each other and share the copy
 * of their COMMON record.
 */

/* `common` becomes that record, with the place of its newest copy if it was that one before. */
void mqx_common_take(struct mqx_common *common, uint64_t store, const struct psj_record *record);
/* A MOVED from a short PUT or MOVED; `common` was taken from it. `flags`: PS_FLAG_UNDECIDED, or
 * none. */
uint32_t mqx_encode_short_moved(unsigned char *to, const struct mqx_common *common,
                                const void *record, uint32_t flags);

#endif

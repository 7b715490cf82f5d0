/*
 * match.h - which message a get or browse is about: matching, expiry, indexes.
 */
#ifndef PENSTOCK_SELECT_H
#define PENSTOCK_SELECT_H

#include "queue/queue.h"

enum { MQX_MATCH_SCAN_MAX = 64, MQX_MATCH_EXCLUDE_MAX = 8 };

struct mqx_match {
    uint32_t bits;                        /* MQE_MATCH_*; only ids that are not all NUL, see
                                           * mqx_match_init */
    uint64_t tag[MQX_INDEX_COUNT];
    uint8_t id[MQX_INDEX_COUNT][MQX_ID_SIZE];
    int32_t seq_number, offset;
    uint64_t number, up_to;
    uint32_t excluded;                    /* messages whose tag matched but whose full id did not */
    uint64_t exclude[MQX_MATCH_EXCLUDE_MAX]; /* their numbers */
};

struct mqe_get;
/* From the caller's match bits: an id of all NULs matches any. */
void mqx_match_init(const struct mqx_region *region, const struct mqe_get *get,
                    struct mqx_match *out);

/* The first available message in delivery order that matches and is not expired, 0 when there is
 * none; expired ones that it meets are discarded. Selective searches in a queue with more than
 * MQX_MATCH_SCAN_MAX messages use an index, which is built on the way: the stripe lock is dropped
 * and taken between steps, so nothing read before is valid afterwards. On failure the lock has been
 * dropped. */
int mqx_match_first(struct mqx_store *store, struct mqx_stripe_guard *guard, uint32_t object,
                    const struct mqx_match *match, uint64_t now_us,
                    uint32_t *out_slot) MQX_MUST_USE;

/* The next one after the cursor, which moves onto it; walks at most 64 messages a lock hold. */
int mqx_match_next(struct mqx_store *store, struct mqx_stripe_guard *guard, uint32_t object,
                   const struct mqx_match *match, uint64_t now_us, struct mqx_cursor *cursor,
                   uint32_t *out_slot) MQX_MUST_USE;

/* Is the message one of those? By tags, and by full ids where they are at hand: what lies in the
 * journal is still to be verified. */
bool mqx_match_message(const struct mqx_region *region, const struct mqx_match *match,
                       const struct mqx_message *message);

/* Does the message, with descriptor and extension at hand, carry exactly these ids? */
bool mqx_match_exact(const struct mqx_match *match, const struct ps_descriptor *d,
                     const struct ps_descriptor_ext *ext);

#endif

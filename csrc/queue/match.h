/*
 * match.h - which message a get or browse is about: match options, expiry, id indexes.
 *
 * Terms
 *   match     what the caller asks for: ids, sequence number, offset, message number, persistence.
 *             Nothing requested: any message.
 *   by entry  the options that the index entry alone decides: MQE_MATCH_NUMBER, _PERSISTENT,
 *             _UP_TO.
 *   reported  an expired message that may ask for a report (queue.h). It is not discarded, and only
 *             a search with MQE_MATCH_EXPIRED finds it.
 *   excluded  messages whose tags matched but whose full id, read from the journal, did not.
 *
 * Cost. A search without options takes the first available message. One by ids uses an id index in
 * queues with more than MQX_MATCH_SCAN_MAX messages, and builds it on the way; everything else
 * walks in delivery order, at most MQX_LOCKED_STEPS_MAX messages a lock hold.
 *
 * Locks: the stripe lock of the queue (guard). mqx_match_first and mqx_match_next may drop it and
 * take it again, so nothing read before is valid afterwards; on failure the lock has been dropped.
 */
#ifndef PENSTOCK_MATCH_H
#define PENSTOCK_MATCH_H

#include "queue/queue.h"

enum { MQX_MATCH_SCAN_MAX = 64, MQX_MATCH_EXCLUDE_MAX = 8 };

struct mqx_match {
    uint32_t bits;                        /* MQE_MATCH_*; ids only when not all NUL, see
                                           * mqx_match_init */
    uint64_t tag[MQX_INDEX_COUNT];
    uint8_t id[MQX_INDEX_COUNT][MQX_ID_SIZE];
    int32_t seq_number, offset;
    uint64_t number, up_to;
    uint32_t excluded;                    /* how many */
    uint64_t exclude[MQX_MATCH_EXCLUDE_MAX]; /* their message numbers */
    bool ends_at_expired;                 /* a reported message that matches ends the search: */
    uint64_t expired;                     /* out: its message number; to be 0 before */
};

struct mqe_get;
/* From the caller's match options: an id of all NULs matches any. */
void mqx_match_init(const struct mqx_region *region, const struct mqe_get *get,
                    struct mqx_match *out);

/* The first available message in delivery order that matches and is not expired, 0 when there is
 * none; expired ones on the way are discarded, but for reported ones. */
int mqx_match_first(struct mqx_store *store, struct mqx_stripe_guard *guard, uint32_t object,
                    struct mqx_match *match, uint64_t now_us,
                    uint32_t *out_slot) MQX_MUST_USE;

/* The next one after the cursor, which moves onto it. */
int mqx_match_next(struct mqx_store *store, struct mqx_stripe_guard *guard, uint32_t object,
                   struct mqx_match *match, uint64_t now_us, struct mqx_cursor *cursor,
                   uint32_t *out_slot) MQX_MUST_USE;

/* Does the message match? By tags, and by full ids where the body is in the region: one that is in
 * the journal is still to be verified. */
bool mqx_match_message(const struct mqx_region *region, const struct mqx_match *match,
                       const struct mqx_message *message);

/* Does a message with this descriptor and extension have exactly these ids? `ext` may be NULL when
 * the descriptor has none. */
bool mqx_match_exact(const struct mqx_match *match, const struct ps_descriptor *d,
                     const struct ps_descriptor_ext *ext);

#endif

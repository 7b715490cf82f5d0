/*
 * expire.h - expired messages are discarded: by the search that meets them (match.h), and by the
 * maintenance.
 *
 * Terms
 *   reported   an expired message that may ask for a report: its discard is the caller's, together
 *              with the report (MQE_MATCH_EXPIRED of engine.h). Nothing here discards it.
 *
 * Invariants
 *   1. A persistent message that is discarded needs no record: it expires again after a restart,
 *      even when the clock has been set back (header.expired_us).
 *   2. The maintenance looks at the first EXPIRE_LOOKS_MAX messages of a queue; behind as many that
 *      stay, expired ones wait for a search.
 *
 * Locks: the stripe lock of the queue; mqx_queue_expire_step() takes it.
 */
#ifndef PENSTOCK_EXPIRE_H
#define PENSTOCK_EXPIRE_H

#include "queue/expiry_time.h"
#include "queue/queue.h"

/* May an expired message ask for a report, so that it must not be discarded before that is made?
 * The report options of a body in the journal are not known here: then it may. */
bool mqx_queue_reports_expiry(const struct mqx_region *region, const struct mqx_message *message);

/* Discards an expired, available message, as mqx_queue_discard(). */
bool mqx_queue_expire(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot);

struct mqx_expire_step {         /* out */
    bool more;                   /* call again */
    bool reports;                /* a message stays until its report has been made */
};
/* One lock hold: discards at most 64 expired messages. */
int mqx_queue_expire_step(struct mqx_store *store, uint32_t object, uint64_t now_us,
                          struct mqx_expire_step *out) MQX_MUST_USE;

#endif

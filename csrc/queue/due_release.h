/*
 * due_release.h - delayed messages become available when they are due.
 *
 * There is no timer and no thread for it: who is about to search a queue (get, browse, batch,
 * status) makes what is due available first, and waiters bound their sleep by the queue's next due
 * time. So no call misses a message that was due when it began, and an idle waiter gets it within
 * the precision of its sleep.
 *
 * Locks: none may be held. The stripe lock is taken once for each 64 messages (rule 23) and dropped
 * between, so a million messages that are due at one moment keep nobody out; waiters that a message
 * matches are woken after each hold.
 *
 * Errors: 2009 2162.
 */
#ifndef PENSTOCK_DUE_RELEASE_H
#define PENSTOCK_DUE_RELEASE_H

#include "base/error.h"
#include "queue/due_index.h"
#include "queue/wait_list.h"

/* Makes all due messages of the queue available. */
int mqx_due_release_all(struct mqx_store *store, uint32_t object) MQX_COLD MQX_MUST_USE;

/* The same, when there are any: one load for a queue without delayed messages. */
static inline int mqx_due_release(struct mqx_store *store, uint32_t object)
{
    const struct mqx_object *queue = mqx_object(&store->region, object);
    MQX_ASSERT(object != 0);
    return MQX_LIKELY(queue == NULL || !mqx_due_is_due(&store->region, queue))
               ? MQX_OK
               : mqx_due_release_all(store, object);
}

#endif

/*
 * due_release.c - see due_release.h.
 */
#include "queue/due_release.h"

#include "base/assert.h"
#include "queue/delayed.h"

/* One lock hold. A message that expired while it was delayed is found expired by the next search.
 */
static int release_some(struct mqx_store *store, uint32_t object, bool *out_more)
{
    struct mqx_region *region = &store->region;
    struct mqx_object *queue = mqx_object(region, object);
    struct mqx_wakeups wakes;
    struct mqx_stripe_guard guard;
    MQX_ASSERT(queue != NULL); /* the caller has looked at it */
    wakes.count = 0;
    int status = mqx_stripe_guard_take(region, object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    const uint64_t now = mqx_due_now(region);
    for (int i = 0; i < MQX_LOCKED_STEPS_MAX && queue->delayed != 0 && queue->next_due_us <= now &&
                    wakes.count < MQX_LOCKED_STEPS_MAX;
         i++) {
        const uint32_t slot = mqx_due_index_first(region, queue);
        status = mqx_delayed_show(&guard, queue, slot);
        if (MQX_UNLIKELY(status != MQX_OK)) {
            mqx_stripe_guard_rollback(&guard);
            break;
        }
        mqx_stripe_guard_commit(&guard);
        if (queue->waiters != 0) {
            mqx_wait_list_pick(&guard, object, slot, &wakes);
        }
    }
    *out_more = queue->delayed != 0 && queue->next_due_us <= now;
    mqx_stripe_guard_drop(&guard);
    mqx_wait_list_wake(region, &wakes);
    return status;
}

int mqx_due_release_all(struct mqx_store *store, uint32_t object)
{
    bool more = true;
    int status = MQX_OK;
    MQX_ASSERT(object != 0);
    while (more && status == MQX_OK) {
        status = release_some(store, object, &more);
    }
    return status;
}

/*
 * expiry.c - mqe_expired_take: which queues have expired messages that nobody has looked at.
 *
 * An expired message that asks for a report is not discarded before that has been made (expire.h),
 * and reports are made by the host program's calls: by the get or browse that meets the message,
 * or, where none comes, by whoever takes the hint that the maintenance leaves here.
 *
 * header.expired: a table of queue slots without chains. A hint that another one overwrites is
 * given again by the next round of maintenance, which meets the same messages.
 *
 * Locks: none; one exchange takes a hint, so that one process acts on it. Errors: none; a damaged
 * word leads to a queue without such messages, or to none.
 */
#include "api/entry.h"

bool mqe_expired_take(mqe_manager *manager, uint32_t *slot, uint32_t *generation)
{
    MQX_ASSERT(slot != NULL);
    MQX_ASSERT(generation != NULL);
    struct mqx_header *header = manager->store.region.header;
    for (uint32_t i = 0; header != NULL && i < MQX_EXPIRED_MAX; i++) {
        uint32_t seen = mqx_load_relaxed(&header->expired[i]);
        if (seen == 0 || !mqx_cas32(&header->expired[i], seen, 0)) {
            continue;
        }
        const struct mqx_object *queue = mqx_object(&manager->store.region, seen);
        if (queue != NULL && mqx_load_relaxed(&queue->type) == MQX_LOCAL_QUEUE) {
            *slot = seen;
            *generation = mqx_load_acquire(&queue->generation);
            return true;
        }
    }
    return false;
}

bool mqe_expired_due(const mqe_manager *manager)
{
    MQX_ASSERT(manager != NULL);
    const struct mqx_header *header = manager->store.region.header;
    uint32_t any = 0;
    for (uint32_t i = 0; header != NULL && i < MQX_EXPIRED_MAX; i++) {
        any |= mqx_load_relaxed(&header->expired[i]);
    }
    return any != 0;
}

/*
 * expire.c - see expire.h.
 */
#include "queue/expire.h"

#include "base/assert.h"

enum {
    EXPIRE_LOOKS_MAX = 4 * MQX_LOCKED_STEPS_MAX, /* messages examined in one lock hold */
};

bool mqx_queue_reports_expiry(const struct mqx_region *region, const struct mqx_message *message)
{
    MQX_ASSERT(message->expiry != 0);
    if ((message->flags & MQX_MSGF_HAS_EXT) == 0) {
        return false; /* the extension has ReplyToQ */
    }
    if (message->cells == 0) {
        return true;
    }
    const struct ps_descriptor *d = mqx_body_descriptor(region, message);
    return d != NULL && (d->report & MQRO_EXPIRATION) != 0;
}

bool mqx_queue_expire(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot)
{
    const struct mqx_message *message = mqx_message(guard->region, slot);
    uint64_t *latest = &guard->region->header->expired_us;
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    if (message != NULL && (message->flags & MQX_MSGF_PERSISTENT) != 0 &&
        mqx_load_relaxed(latest) < mqx_expiry_us_of(guard->region, message)) {
        mqx_store_relaxed(latest, mqx_expiry_us_of(guard->region, message));
    }
    return mqx_queue_discard(guard, queue, slot);
}

int mqx_queue_expire_step(struct mqx_store *store, uint32_t object, uint64_t now_us,
                          struct mqx_expire_step *out)
{
    struct mqx_object *queue = mqx_object(&store->region, object);
    struct mqx_cursor cursor = {0};
    struct mqx_stripe_guard guard;
    int status = mqx_stripe_guard_take(&store->region, object, &guard);
    *out = (struct mqx_expire_step){.more = false};
    if (status != MQX_OK) {
        return status;
    }
    uint32_t removed = 0, slot = 0;
    /* the cursor stays valid when the message under it is removed */
    for (int i = 0; i < EXPIRE_LOOKS_MAX && queue != NULL && queue->expiring != 0; i++) {
        slot = mqx_priority_index_next(&store->region, queue, &cursor, false);
        const struct mqx_message *message = mqx_message(&store->region, slot);
        if (message == NULL) {
            break;
        }
        const bool unfinished = message->state == MQX_MSG_GONE && message->pins == 0;
        const bool expired = mqx_delayed_or_available(message) &&
                             mqx_queue_expired(&store->region, message, now_us);
        const bool reports = expired && mqx_queue_reports_expiry(&store->region, message);
        out->reports = out->reports || reports;
        if (unfinished || (expired && !reports)) {
            removed += 1;
            if (!mqx_queue_expire(&guard, queue, slot) || removed >= MQX_LOCKED_STEPS_MAX) {
                break;
            }
        }
    }
    MQX_ASSERT(removed <= MQX_LOCKED_STEPS_MAX);
    out->more = removed >= MQX_LOCKED_STEPS_MAX;
    mqx_stripe_guard_drop(&guard);
    return MQX_OK;
}

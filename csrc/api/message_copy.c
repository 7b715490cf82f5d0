/*
 * message_copy.c - see message_copy.h.
 */
#include "api/message_copy.h"

#include "journal/journal.h"
#include "queue/delayed.h"
#include "region/message_body.h"
#include "region/queue_clock.h"

enum {
    ZOS_BACKOUT_MAX = 255,  /* what BackoutCount counts to on z/OS */
    EXPIRY_MAX = 999999999, /* of the field Expiry, tenths of a second */
    TENTH_US = 100000,
};

static MQX_COLD void cap_backout_count(const struct mqx_store *store, struct ps_descriptor *d)
{
    MQX_ASSERT(d->backout_count > ZOS_BACKOUT_MAX);
    if (store->region.header->platform == MQX_PLATFORM_ZOS) {
        d->backout_count = ZOS_BACKOUT_MAX;
    }
}

/* A delayed message waits until the time that its last backout said, if one did, and not until that
 * of its put. That lies where an available one has its links, so it is read under the lock, which
 * the caller has or has not. */
static MQX_COLD int set_due(struct mqx_store *store, const struct mqx_message *message,
                            struct ps_descriptor *d)
{
    struct mqx_region *region = &store->region;
    struct mqx_stripe_guard guard;
    const uint32_t object = message->object;
    MQX_ASSERT(object != 0);
    const bool held = mqx_lock_held(region, &mqx_stripe_of(region, object)->lock);
    const int status = held ? MQX_OK : mqx_stripe_guard_take(region, object, &guard);
    if (status == MQX_OK && message->state == MQX_MSG_DELAYED) {
        d->due_us = mqx_delayed_due_us(message);
    }
    if (status == MQX_OK && !held) {
        mqx_stripe_guard_drop(&guard);
    }
    MQX_ASSERT(mqx_lock_held(region, &mqx_stripe_of(region, object)->lock) == held);
    return status;
}

int mqx_message_copy(struct mqx_store *store, const struct mqx_message *message,
                     struct ps_descriptor *d, struct ps_descriptor_ext *ext, void *body,
                     uint64_t bytes)
{
    MQX_ASSERT(d != NULL);
    MQX_ASSERT(bytes <= message->length);
    MQX_ASSERT(body != NULL || bytes == 0);
    int status = message->cells != 0
                     ? mqx_body_read(&store->region, message, d, ext, body, bytes)
                     : mqx_journal_fetch(store, message, d, ext, body, bytes);
    d->backout_count = message->backout_count;
    if (MQX_UNLIKELY(message->backout_count > ZOS_BACKOUT_MAX)) {
        cap_backout_count(store, d);
    }
    if (status == MQX_OK &&
        MQX_UNLIKELY(mqx_load_relaxed(&message->state) == MQX_MSG_DELAYED)) {
        status = set_due(store, message, d);
    }
    return status;
}

int32_t mqx_expiry_left(const struct mqx_region *region, const struct ps_descriptor *d)
{
    MQX_ASSERT(d != NULL);
    if (d->expiry_us == 0) {
        return -1;
    }
    const uint64_t now = mqx_queue_coarse_us(region);
    const uint64_t left = d->expiry_us > now ? (d->expiry_us - now) / TENTH_US : 0;
    return left < 1 ? 1 : left > EXPIRY_MAX ? EXPIRY_MAX : (int32_t)left;
}

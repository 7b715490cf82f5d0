/*
 * message_copy.c - see message_copy.h.
 */
#include "api/message_copy.h"

#include "base/clock.h"
#include "journal/journal.h"
#include "region/message_body.h"

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

int mqx_message_copy(struct mqx_store *store, const struct mqx_message *message,
                     struct ps_descriptor *d, struct ps_descriptor_ext *ext, void *body,
                     uint64_t bytes)
{
    MQX_ASSERT(d != NULL);
    MQX_ASSERT(bytes <= message->length);
    MQX_ASSERT(body != NULL || bytes == 0);
    const int status = message->cells != 0
                           ? mqx_body_read(&store->region, message, d, ext, body, bytes)
                           : mqx_journal_fetch(store, message, d, ext, body, bytes);
    d->backout_count = message->backout_count;
    if (MQX_UNLIKELY(message->backout_count > ZOS_BACKOUT_MAX)) {
        cap_backout_count(store, d);
    }
    return status;
}

int32_t mqx_expiry_left(const struct ps_descriptor *d)
{
    MQX_ASSERT(d != NULL);
    if (d->expiry_us == 0) {
        return -1;
    }
    const uint64_t now = mqx_clock_coarse_us();
    const uint64_t left = d->expiry_us > now ? (d->expiry_us - now) / TENTH_US : 0;
    return left < 1 ? 1 : left > EXPIRY_MAX ? EXPIRY_MAX : (int32_t)left;
}

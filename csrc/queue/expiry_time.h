/*
 * expiry_time.h - when a message expires: between the wall clock and the 32 bits of an entry.
 *
 * message.expiry is 0 for a message that never expires, else tenths of a second, rounded up, since
 * the last whole one before header.epoch_us.
 *
 * Locks: none; what an entry holds is read under its stripe lock.
 */
#ifndef PENSTOCK_EXPIRY_TIME_H
#define PENSTOCK_EXPIRY_TIME_H

#include "base/assert.h"
#include "region/region.h"

enum { MQX_DECISECOND_US = 100000 };

/* What message.expiry counts from: a whole tenth of a second, so that an expiry which was rounded
 * up once stays the same through checkpoints and restarts. */
static inline uint64_t mqx_expiry_base(const struct mqx_region *region)
{
    const uint64_t epoch = region->header->epoch_us;
    MQX_ASSERT(region->base != NULL);
    return epoch - epoch % MQX_DECISECOND_US;
}

/* Wall-clock time at which the message expires; 0: never. */
static inline uint64_t mqx_expiry_us_of(const struct mqx_region *region,
                                        const struct mqx_message *message)
{
    MQX_ASSERT(message != NULL);
    return message->expiry == 0
               ? 0
               : mqx_expiry_base(region) + (uint64_t)message->expiry * MQX_DECISECOND_US;
}

static inline bool mqx_queue_expired(const struct mqx_region *region,
                                     const struct mqx_message *message, uint64_t now_us)
{
    MQX_ASSERT(message != NULL);
    return message->expiry != 0 && now_us >= mqx_expiry_us_of(region, message);
}

/* Wall-clock expiry as the entry keeps it: rounded up, never 0. One before the start of the region
 * becomes 1. */
static inline uint32_t mqx_expiry_of(const struct mqx_region *region, uint64_t expiry_us)
{
    const uint64_t epoch = mqx_expiry_base(region);
    if (expiry_us == 0) {
        return 0;
    }
    const uint64_t tenths =
        expiry_us <= epoch ? 1 : (expiry_us - epoch + MQX_DECISECOND_US - 1) / MQX_DECISECOND_US;
    MQX_ASSERT(tenths != 0);
    return tenths > UINT32_MAX ? UINT32_MAX : (uint32_t)tenths;
}

#endif

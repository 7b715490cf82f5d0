/*
 * lock_watchdog.c - see lock_watchdog.h.
 */
#include "process/lock_watchdog.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/host_info.h"

uint64_t mqx_lock_watchdog_long_us = 5000000;

static struct mqx_lock *lock_at(struct mqx_region *region, uint32_t i)
{
    MQX_ASSERT(i < MQX_LOCK_WATCHDOG_MAX);
    MQX_ASSERT(i < MQX_LOCK_WATCHDOG_FIXED + region->stripe_mask + 1);
    struct mqx_header *header = region->header;
    struct mqx_lock *const fixed[MQX_LOCK_WATCHDOG_FIXED] = {
        &header->catalog_lock, &header->slots_lock, &header->arena_lock,
        &header->journal.ring_lock};
    return i < MQX_LOCK_WATCHDOG_FIXED ? fixed[i]
                                       : &region->stripes[i - MQX_LOCK_WATCHDOG_FIXED].lock;
}

/* A lock that can be taken is not held long. */
static bool can_be_taken(struct mqx_region *region, struct mqx_lock *lock)
{
    MQX_ASSERT(!mqx_lock_held(region, lock));
    const int status = mqx_lock_try(region, lock);
    if (status == MQX_OK) {
        mqx_lock_drop(region, lock);
    }
    return status == MQX_OK;
}

bool mqx_lock_watchdog_check(struct mqx_lock_watchdog *watchdog, struct mqx_region *region,
                             struct mqx_held_lock *out)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(region->stripe_mask < MQX_STRIPE_MAX);
    const uint64_t now_us = mqx_clock_monotonic_us();
    const uint32_t count = MQX_LOCK_WATCHDOG_FIXED + region->stripe_mask + 1;
    bool found = false;
    MQX_ASSERT(count <= MQX_LOCK_WATCHDOG_MAX);
    for (uint32_t i = 0; i < count && !found; i++) {
        struct mqx_lock *lock = lock_at(region, i);
        const uint32_t holder = mqx_load_relaxed(&lock->holder);
        if (holder == 0 || holder != watchdog->seen[i].holder || can_be_taken(region, lock)) {
            watchdog->seen[i].holder = holder;
            watchdog->seen[i].reported = 0;
            watchdog->seen[i].since_us = now_us;
            continue;
        }
        const uint64_t held_us = now_us - watchdog->seen[i].since_us;
        if (held_us >= mqx_lock_watchdog_long_us && watchdog->seen[i].reported == 0) {
            watchdog->seen[i].reported = 1;
            *out = (struct mqx_held_lock){.pid = mqx_process_slot(region, holder - 1)->pid,
                                          .rank = lock->rank,
                                          .seconds = (uint32_t)(held_us / 1000000)};
            found = true;
        }
    }
    return found;
}

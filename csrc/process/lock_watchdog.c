/*
 * lock_watchdog.c - see lock_watchdog.h. The caller holds no lock of the region.
 */
#include "process/lock_watchdog.h"

#include "base/clock.h"
#include "os/host_info.h"

uint64_t mqx_lock_watchdog_long_us = 5000000;

static struct mqx_lock *lock_at(struct mqx_region *region, uint32_t i)
{
    struct mqx_header *header = region->header;
    struct mqx_lock *const fixed[MQX_LOCK_WATCHDOG_FIXED] = {
        &header->catalog_lock, &header->slots_lock, &header->arena_lock,
        &header->journal.ring_lock};
    return i < MQX_LOCK_WATCHDOG_FIXED ? fixed[i]
                                       : &region->stripes[i - MQX_LOCK_WATCHDOG_FIXED].lock;
}

/* True when the lock could be had: then nobody sits on it. */
static bool can_be_had(struct mqx_region *region, struct mqx_lock *lock)
{
    const int status = mqx_lock_try(region, lock);
    if (status == 0) {
        mqx_lock_drop(region, lock);
    }
    return status == 0;
}

bool mqx_lock_watchdog_check(struct mqx_lock_watchdog *watch, struct mqx_region *region,
                             struct mqx_held *out)
{
    const uint64_t now_us = mqx_clock_monotonic_us();
    const uint32_t count = MQX_LOCK_WATCHDOG_FIXED + region->header->stripe_count;
    bool found = false;
    mqx_check(count <= MQX_LOCK_WATCHDOG_MAX);
    for (uint32_t i = 0; i < count && !found; i++) {
        struct mqx_lock *lock = lock_at(region, i);
        const uint32_t holder = mqx_load_relaxed(&lock->holder);
        if (holder == 0 || holder != watch->seen[i].holder || can_be_had(region, lock)) {
            watch->seen[i].holder = holder;
            watch->seen[i].told = 0;
            watch->seen[i].since_us = now_us;
            continue;
        }
        const uint64_t held_us = now_us - watch->seen[i].since_us;
        if (held_us >= mqx_lock_watchdog_long_us && watch->seen[i].told == 0) {
            watch->seen[i].told = 1;
            *out = (struct mqx_held){.pid = mqx_process_slot(region, holder - 1)->pid,
                                     .lock = lock->rank,
                                     .seconds = (uint32_t)(held_us / 1000000)};
            found = true;
        }
    }
    return found;
}

/*
 * lock_watchdog.c - see lock_watchdog.h.
 */
#include "process/lock_watchdog.h"

#include "base/amq_codes.h"
#include "base/clock.h"
#include "base/error.h"
#include "process/error_log.h"

#include <stddef.h>
#include <string.h>

enum { SLOW_US = 1000000, SECOND_US = 1000000 };

uint64_t mqx_lock_watchdog_long_us = 5000000;

static struct mqx_lock *lock_at(struct mqx_region *region, uint32_t i)
{
    MQX_ASSERT(i < MQX_LOCK_WATCHDOG_MAX);
    MQX_ASSERT(i < mqx_lock_watchdog_count(region));
    struct mqx_header *header = region->header;
    struct mqx_lock *const fixed[MQX_LOCK_WATCHDOG_FIXED] = {
        &header->maintenance_lock, &header->journal.flush_lock, &header->growth_lock,
        &header->journal.roll_lock, &header->catalog_lock, &header->slots_lock,
        &header->arena_lock, &header->journal.ring_lock};
    return i < MQX_LOCK_WATCHDOG_FIXED ? fixed[i]
                                       : &region->stripes[i - MQX_LOCK_WATCHDOG_FIXED].lock;
}

uint32_t mqx_lock_watchdog_count(const struct mqx_region *region)
{
    MQX_ASSERT(region->stripe_mask < MQX_STRIPE_MAX);
    return MQX_LOCK_WATCHDOG_FIXED + region->stripe_mask + 1;
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

/* What moves while the owner works, of the two locks that are not tried. */
static uint64_t progress_of(const struct mqx_region *region, const struct mqx_lock *lock,
                            bool *out_tried)
{
    const struct mqx_header *header = region->header;
    MQX_ASSERT(out_tried != NULL);
    *out_tried = false;
    if (lock == &header->journal.flush_lock) {
        return mqx_load_relaxed(&header->journal.flush_word);
    }
    if (lock == &header->maintenance_lock) {
        return mqx_load_relaxed(&header->last_reap_us);
    }
    *out_tried = true;
    return 0;
}

/* ---- notes in the lock ---- */

static void note_slow(struct mqx_lock *lock, uint32_t holder, uint64_t since_us)
{
    MQX_ASSERT(holder != 0);
    if ((mqx_load_relaxed(&lock->slow_holder) & ~MQX_SLOW_LOGGED) != holder) {
        mqx_store_relaxed(&lock->slow_since_s, (uint32_t)(since_us / SECOND_US));
        mqx_store_release(&lock->slow_holder, holder);
    }
}

/* True for the first of all who ask, each time the lock is held long. */
static bool is_to_be_logged(struct mqx_lock *lock, uint32_t holder)
{
    MQX_ASSERT(holder != 0 && (holder & MQX_SLOW_LOGGED) == 0);
    return mqx_cas32(&lock->slow_holder, holder, holder | MQX_SLOW_LOGGED);
}

/* The owner, as the attachment slots name him; false when there is none of that number. */
static bool describe(const struct mqx_region *region, const struct mqx_lock *lock,
                     uint32_t holder, struct mqx_held_lock *out)
{
    MQX_ASSERT(holder != 0);
    if (holder > MQX_PROCESS_MAX) {
        return false;
    }
    const struct mqx_process *process = mqx_process_slot(region, holder - 1);
    const uint32_t rank = lock->rank < MQX_RANK_COUNT ? lock->rank : 0;
    const uint64_t now_s = mqx_clock_monotonic_us() / SECOND_US;
    const uint32_t since_s = mqx_load_relaxed(&lock->slow_since_s);
    *out = (struct mqx_held_lock){
        .pid = holder == 1 ? 0 : process->pid,
        .rank = rank,
        .seconds = now_s > since_s ? (uint32_t)(now_s - since_s) : 0,
        .name = mqx_rank_name(rank),
    };
    memcpy(out->program, process->program, sizeof out->program - 1);
    return true;
}

bool mqx_lock_watchdog_slow(struct mqx_region *region, uint32_t i, struct mqx_held_lock *out)
{
    const struct mqx_lock *lock = lock_at(region, i);
    MQX_ASSERT(out != NULL);
    const uint32_t slow = mqx_load_acquire(&lock->slow_holder) & ~MQX_SLOW_LOGGED;
    return slow != 0 && slow == mqx_load_relaxed(&lock->holder) &&
           describe(region, lock, slow, out);
}

/* ---- looking ---- */

/* One look at one lock; true when it is to be logged. */
static bool check_one(struct mqx_lock_watchdog *watchdog, struct mqx_region *region, uint32_t i,
                      uint64_t now_us)
{
    struct mqx_lock *lock = lock_at(region, i);
    const uint32_t holder = mqx_load_relaxed(&lock->holder);
    bool tried;
    const uint64_t progress = progress_of(region, lock, &tried);
    MQX_ASSERT(i < MQX_LOCK_WATCHDOG_MAX);
    if (holder == 0 || (holder & MQX_SLOW_LOGGED) != 0 || holder != watchdog->seen[i].holder ||
        progress != watchdog->seen[i].progress || (tried && can_be_taken(region, lock))) {
        const bool first_look = holder != watchdog->seen[i].holder; /* others know more */
        const uint32_t slow = mqx_load_relaxed(&lock->slow_holder);
        watchdog->seen[i].holder = holder;
        watchdog->seen[i].progress = progress;
        watchdog->seen[i].reported = 0;
        watchdog->seen[i].since_us = now_us;
        if (slow != 0 && (!first_look || (slow & ~MQX_SLOW_LOGGED) != holder)) {
            mqx_store_relaxed(&lock->slow_holder, 0u);
        }
        return false;
    }
    const uint64_t held_us = now_us - watchdog->seen[i].since_us;
    if (held_us >= SLOW_US || held_us >= mqx_lock_watchdog_long_us) {
        note_slow(lock, holder, watchdog->seen[i].since_us);
    }
    if (held_us >= mqx_lock_stranger_us && mqx_lock_is_strangers(region, lock)) {
        return false; /* the stop is logged */
    }
    if (held_us < mqx_lock_watchdog_long_us || watchdog->seen[i].reported != 0) {
        return false;
    }
    watchdog->seen[i].reported = 1;
    return is_to_be_logged(lock, holder);
}

bool mqx_lock_watchdog_check(struct mqx_lock_watchdog *watchdog, struct mqx_region *region,
                             struct mqx_held_lock *out)
{
    MQX_ASSERT(region->base != NULL);
    const uint64_t now_us = mqx_clock_monotonic_us();
    const uint32_t count = mqx_lock_watchdog_count(region);
    bool found = false;
    MQX_ASSERT(count <= MQX_LOCK_WATCHDOG_MAX);
    for (uint32_t i = 0; i < count && !found; i++) {
        found = check_one(watchdog, region, i, now_us) &&
                describe(region, lock_at(region, i), watchdog->seen[i].holder, out);
    }
    return found;
}

void mqx_lock_watchdog_waited(struct mqx_region *region, struct mqx_lock *lock, uint64_t since_us)
{
    const uint64_t now_us = mqx_clock_monotonic_us();
    const uint32_t holder = mqx_load_relaxed(&lock->holder);
    struct mqx_held_lock held;
    MQX_ASSERT(now_us >= since_us);
    if (holder == 0 || (holder & MQX_SLOW_LOGGED) != 0) {
        return;
    }
    note_slow(lock, holder, since_us);
    if (now_us - since_us >= mqx_lock_watchdog_long_us && is_to_be_logged(lock, holder) &&
        describe(region, lock, holder, &held)) {
        mqx_lock_watchdog_log(region, &held);
    }
}

MQX_STATIC_ASSERT(offsetof(struct mqx_store, region) == 0, "the region of a store leads to it");

void mqx_lock_watchdog_log(struct mqx_region *region, const struct mqx_held_lock *held)
{
    MQX_ASSERT(held->name != NULL);
    mqx_log((struct mqx_store *)(void *)region, MQX_AMQ_LOCK_HELD_LONG, 'W',
            "process %d (%s) has held the %s lock of the shared region for %u s, and who needs it "
            "waits. Is that process stopped? Continue it (kill -CONT %d) or end it; what others "
            "have committed stays", held->pid, held->program, held->name, held->seconds,
            held->pid);
}

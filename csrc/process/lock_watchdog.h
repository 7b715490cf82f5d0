/*
 * lock_watchdog.h - naming the process that has held a lock of the region for seconds, because it
 * is stopped or being debugged (rules 24, 53).
 *
 * A lock is never broken while its owner lives; the watchdog only names the owner. Two look after
 * it, so that two processes are enough: the maintenance thread of each process once a round, and
 * whoever waits for the lock, once a second (mqx_lock_waited).
 *
 * Terms
 *   slow       somebody has waited a second, or two looks a second apart found the same owner:
 *              noted in the lock (region/lock.h), shown by `penstock status`.
 *   held long  slow for 5 s: logged, once for all processes and each time it is held.
 *
 * What counts as the same hold
 *   most locks   the same owner in every look, and a trylock failed: a busy lock that many
 *                processes take in turn is free sooner or later
 *   flush        the same owner, and no flush has ended (flush_word). It is not tried: who finds it
 *                taken then would wait for a leader that there is not
 *   maintenance  the same owner, and nothing was reaped (last_reap_us), which long rounds do each
 *                second. It is not tried: a round would be left out
 *
 * Locks: none may be held by the caller, but the maintenance lock in mqx_lock_watchdog_waited().
 * The watched locks are taken by trylock and dropped at once.
 */
#ifndef PENSTOCK_LOCK_WATCHDOG_H
#define PENSTOCK_LOCK_WATCHDOG_H

#include "region/region.h"

enum {
    MQX_LOCK_WATCHDOG_FIXED = 8, /* locks besides the stripes' */
    MQX_LOCK_WATCHDOG_MAX = MQX_LOCK_WATCHDOG_FIXED + MQX_STRIPE_MAX
};

struct mqx_lock_watchdog { /* starts zeroed */
    struct {
        uint32_t holder;   /* attachment slot + 1 */
        uint32_t reported;
        uint64_t progress; /* flush_word, last_reap_us; else 0 */
        uint64_t since_us; /* monotonic clock */
    } seen[MQX_LOCK_WATCHDOG_MAX];
};

struct mqx_held_lock {
    int32_t pid;        /* 0: of a process that is attaching */
    uint32_t rank;
    uint32_t seconds;
    const char *name;   /* of the lock; static */
    char program[80];
};

/* 5 s; tests shorten it. */
extern uint64_t mqx_lock_watchdog_long_us;

/* Looks at every watched lock once; true when one is to be logged. */
bool mqx_lock_watchdog_check(struct mqx_lock_watchdog *watchdog, struct mqx_region *region,
                             struct mqx_held_lock *out);
/* The region of a store's `long_wait`: notes, and after 5 s logs, the owner of a lock that the
 * thread has waited for since `since_us`. */
void mqx_lock_watchdog_waited(struct mqx_region *region, struct mqx_lock *lock, uint64_t since_us);
/* Logs one; `region` is that of a store. */
void mqx_lock_watchdog_log(struct mqx_region *region, const struct mqx_held_lock *held) MQX_COLD;
/* The i-th watched lock, when it is slow now; i < mqx_lock_watchdog_count(). */
bool mqx_lock_watchdog_slow(struct mqx_region *region, uint32_t i, struct mqx_held_lock *out);
uint32_t mqx_lock_watchdog_count(const struct mqx_region *region);

#endif

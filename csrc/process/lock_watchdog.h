/*
 * lock_watchdog.h - reporting a lock of the region that one process has held for seconds, because
 * it is stopped or being debugged (rule 24).
 *
 * A lock is never broken while its owner lives; the watchdog only reports the owner.
 *
 * A lock counts as held long when in every check for 5 s the same process had it and a trylock
 * failed: a busy lock that many processes take in turn is free sooner or later.
 *
 * Watched are the locks that are held for microseconds: catalog, slots, arena, ring, stripes. The
 * others are held during file operations or whole maintenance rounds.
 *
 * Locks: none may be held by the caller; the watched locks are taken by trylock and dropped at
 * once.
 */
#ifndef PENSTOCK_LOCK_WATCHDOG_H
#define PENSTOCK_LOCK_WATCHDOG_H

#include "region/region.h"

enum {
    MQX_LOCK_WATCHDOG_FIXED = 4, /* locks besides the stripes' */
    MQX_LOCK_WATCHDOG_MAX = MQX_LOCK_WATCHDOG_FIXED + MQX_STRIPE_MAX
};

struct mqx_lock_watchdog { /* starts zeroed */
    struct {
        uint32_t holder;   /* attachment slot + 1 */
        uint32_t reported;
        uint64_t since_us; /* monotonic clock */
    } seen[MQX_LOCK_WATCHDOG_MAX];
};

struct mqx_held_lock {
    int32_t pid;
    uint32_t rank;
    uint32_t seconds;
};

/* 5 s; tests shorten it. */
extern uint64_t mqx_lock_watchdog_long_us;

/* Checks every watched lock once; true when one is to be reported, once for each time it is held
 * long. */
bool mqx_lock_watchdog_check(struct mqx_lock_watchdog *watchdog, struct mqx_region *region,
                             struct mqx_held_lock *out);

#endif

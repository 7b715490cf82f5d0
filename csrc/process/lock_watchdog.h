/*
 * lock_watchdog.h - noticing a lock of the region that somebody holds for seconds: a stopped or debugged
 * process (rule 24).
 *
 * Nothing is ever taken from a living owner; the one thing to do is to say who it is. A lock counts
 * as held long when at every look for 5 s the same process had it and it could not be had by a
 * trylock: a busy lock that many take in turn is had sooner or later.
 *
 * Watched: the locks that are held for microseconds (catalog, slots, arena, ring, stripes).
 */
#ifndef PENSTOCK_WATCH_H
#define PENSTOCK_WATCH_H

#include "region/region.h"

enum {
    MQX_LOCK_WATCHDOG_FIXED = 4,
    MQX_LOCK_WATCHDOG_MAX = MQX_LOCK_WATCHDOG_FIXED + MQX_STRIPE_MAX
};

struct mqx_lock_watchdog { /* starts zeroed */
    struct {
        uint32_t holder;   /* attachment slot + 1 */
        uint32_t told;
        uint64_t since_us;
    } seen[MQX_LOCK_WATCHDOG_MAX];
};

struct mqx_held {
    int32_t pid;
    uint32_t lock;    /* rank */
    uint32_t seconds;
};

/* 5 s; tests shorten it. */
extern uint64_t mqx_lock_watchdog_long_us;

/* Looks at every lock once; true when there is one to be reported, once for each time it is held
 * long. */
bool mqx_lock_watchdog_check(struct mqx_lock_watchdog *watch, struct mqx_region *region,
                             struct mqx_held *out);

#endif

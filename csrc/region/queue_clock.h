/*
 * queue_clock.h - the clock by which messages are put, expire and become due: the wall clock, and
 * what a test has advanced it by (header.advanced_us), the same in all processes. It is back at the
 * wall clock when the last process has left.
 *
 * Files, locks and statistics have the clocks of base/clock.h and the file table.
 *
 * Locks: none. No errors.
 */
#ifndef PENSTOCK_QUEUE_CLOCK_H
#define PENSTOCK_QUEUE_CLOCK_H

#include "base/clock.h"
#include "region/region.h"

static inline uint64_t mqx_queue_advanced_us(const struct mqx_region *region)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(region->header != NULL);
    return mqx_load_relaxed(&region->header->advanced_us);
}

/* Microseconds since 1970 UTC. */
static inline uint64_t mqx_queue_now_us(const struct mqx_region *region)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(region->header != NULL);
    return mqx_clock_wall_us() + mqx_queue_advanced_us(region);
}

/* The same, to the kernel's tick. */
static inline uint64_t mqx_queue_coarse_us(const struct mqx_region *region)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(region->header != NULL);
    return mqx_clock_coarse_us() + mqx_queue_advanced_us(region);
}

#endif
